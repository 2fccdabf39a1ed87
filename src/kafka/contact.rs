//! Measures how long brokers have not answered, from the statistics of the client.
//!
//! The client keeps trying to reach a broker that is away, and a reader only sees that no record
//! comes. So this module measures since when no broker has been connected and answering, and since
//! when this holds for the leader of a partition, or a leader is missing. A group that has lost a
//! member revokes its partitions, so "no broker" is also measured without partitions. The module
//! also counts how often in a row a partition was fetched from no broker although its leader is
//! known.

use super::{KafkaError, Partition};
use rdkafka::types::RDKafkaErrorCode;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// After this many statistics in a row, the client is assumed never to fetch the partition again:
/// metadata that is only late is requested several times a second.
const UNFETCHED: u32 = 3;

#[derive(Default)]
pub(super) struct Contact {
    cut_off: Option<Instant>,
    /// The last reason why a broker could not be reached, since one was reached.
    why: Option<KafkaError>,
    leaderless: BTreeMap<Partition, Instant>,
    unfetched: BTreeMap<Partition, u32>,
}

impl Contact {
    /// Notes whether any broker is connected and answers; if not, `answered` is when one last did,
    /// if known.
    pub fn update(&mut self, connected: bool, answered: Option<Instant>) {
        self.why = self.why.take().filter(|_| !connected);
        self.cut_off = match connected {
            true => None,
            false => self.cut_off.or(answered).or_else(|| Some(Instant::now())),
        };
    }

    /// Notes an error. Returns its cause, if the error only says that all brokers are down and the
    /// cause is known.
    pub fn explain(&mut self, code: RDKafkaErrorCode, error: KafkaError) -> KafkaError {
        if code == RDKafkaErrorCode::AllBrokersDown {
            return self.why.clone().unwrap_or(error);
        }
        if error.is_of_connection() {
            self.why = Some(error.clone());
        }
        error
    }

    /// Notes whether the leader of a partition is connected and answers.
    pub fn update_leader(&mut self, p: Partition, connected: bool) {
        match connected {
            true => {
                self.leaderless.remove(&p);
            }
            false => {
                self.leaderless.entry(p).or_insert_with(Instant::now);
            }
        }
    }

    /// Notes whether a partition is fetched from no broker although its leader is known. Returns
    /// whether this has lasted too long to end.
    pub fn update_unfetched(&mut self, p: Partition, unfetched: bool) -> bool {
        if !unfetched {
            self.unfetched.remove(&p);
            return false;
        }
        let times = self.unfetched.entry(p).or_default();
        *times = times.saturating_add(1);
        *times >= UNFETCHED
    }

    /// The partitions that the client is assumed never to fetch again.
    pub fn unfetched(&self) -> impl Iterator<Item = Partition> {
        let all = self.unfetched.iter();
        all.filter_map(|(p, times)| (*times >= UNFETCHED).then_some(*p))
    }

    /// Removes a revoked partition.
    pub fn remove(&mut self, p: Partition) {
        self.leaderless.remove(&p);
        self.unfetched.remove(&p);
    }

    /// How long no broker has been connected and answering; `None` if one is.
    pub fn cut_off(&self) -> Option<Duration> {
        self.cut_off.map(|since| since.elapsed())
    }

    /// The partitions whose leader is not connected or does not answer, each with how long.
    pub fn leaderless(&self) -> impl Iterator<Item = (Partition, Duration)> {
        self.leaderless
            .iter()
            .map(|(p, since)| (*p, since.elapsed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_all_brokers_are_down_is_said_as_long_as_nobody_knows_why() {
        let mut contact = Contact::default();
        let (down, tls) = (RDKafkaErrorCode::AllBrokersDown, RDKafkaErrorCode::SSL);
        let all = || KafkaError::Unreachable {
            brokers: "b:1".to_owned(),
            detail: "1/1 brokers are down".to_owned(),
        };
        let why = || KafkaError::Tls {
            detail: "certificate verify failed".to_owned(),
        };
        let other = || KafkaError::Other("no".to_owned());
        assert_eq!(contact.explain(down, all()), all());
        assert_eq!(contact.explain(tls, why()), why());
        assert_eq!(contact.explain(RDKafkaErrorCode::Fail, other()), other());
        contact.update(false, None);
        assert_eq!(contact.explain(down, all()), why());
        contact.update(true, None);
        assert_eq!(contact.explain(down, all()), all());
    }

    #[test]
    fn brokers_that_owe_answers_are_away_since_the_last_one() {
        let mut contact = Contact::default();
        let ago = |seconds| Instant::now().checked_sub(Duration::from_secs(seconds));
        contact.update(false, ago(9));
        let away = |contact: &Contact| contact.cut_off().map(|time| time.as_secs());
        assert_eq!(away(&contact), Some(9));
        contact.update(false, None);
        assert_eq!(away(&contact), Some(9));
        contact.update(true, None);
        assert_eq!(away(&contact), None);
    }

    #[test]
    fn a_partition_is_given_up_after_three_statistics_in_a_row() {
        let mut contact = Contact::default();
        let p = (0, 4).into();
        let all = [true, true, false, true, true, true, true];
        let now = all.map(|unfetched| contact.update_unfetched(p, unfetched));
        assert_eq!(now, [false, false, false, false, false, true, true]);
        assert!(contact.unfetched().eq([p]));
        contact.remove(p);
        assert_eq!(contact.unfetched().count(), 0);
    }
}
