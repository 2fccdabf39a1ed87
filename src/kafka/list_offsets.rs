//! Requests first or end offsets from brokers, and keeps the answers of the brokers that answer.
//!
//! librdkafka sends one request to each leader, and returns nothing if one of them does not answer
//! or refuses one partition. So a failed request is repeated leader by leader, and what a leader
//! refuses is requested in halves, all within one deadline. In this step, a leader that does not
//! answer is not asked twice.

use super::KafkaError;
use super::client::{Ends, TopicPartition};
use super::client_callbacks::ClientCallbacks;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError as Native;
use rdkafka::topic_partition_list::TopicPartitionListElem;
use rdkafka::types::RDKafkaErrorCode as Code;
use rdkafka::{Offset, TopicPartitionList};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Why a request failed.
enum Failure {
    /// A broker did not answer.
    Silent(KafkaError),
    /// A broker refused a partition.
    Refused(KafkaError),
}

/// The brokers, as far as they can be asked for offsets.
trait Asked {
    /// Offsets of these partitions, without those that have no leader.
    fn ask(&mut self, of: &[TopicPartition], within: Duration) -> Result<Ends, Failure>;

    /// The leaders of those of these partitions that have one.
    fn leaders(
        &mut self,
        of: &[TopicPartition],
        within: Duration,
    ) -> Result<BTreeMap<TopicPartition, i32>, KafkaError>;
}

/// First or end offsets of these partitions, without those that no broker reports in time. It is an
/// error if none is reported. `which` is the beginning or the end, which brokers accept in place of
/// a time.
pub(super) fn offsets(
    client: &BaseConsumer<ClientCallbacks>,
    of: &[TopicPartition],
    which: Offset,
    within: Duration,
) -> Result<Ends, KafkaError> {
    answers(&mut Asking { client, which }, of, within)
}

fn answers(
    asked: &mut impl Asked,
    of: &[TopicPartition],
    within: Duration,
) -> Result<Ends, KafkaError> {
    if of.is_empty() {
        return Ok(Ends::new());
    }
    let until = Instant::now() + within;
    let left = || until.saturating_duration_since(Instant::now());
    let error = match asked.ask(of, within / 2) {
        Ok(ends) => return Ok(ends),
        Err(Failure::Silent(error) | Failure::Refused(error)) => error,
    };
    let Ok(leaders) = asked.leaders(of, left() / 2) else {
        return Err(error);
    };
    let mut groups: BTreeMap<i32, Vec<TopicPartition>> = BTreeMap::new();
    for partition in of {
        if let Some(leader) = leaders.get(partition) {
            groups.entry(*leader).or_default().push(partition.clone());
        }
    }
    let mut all = Ends::new();
    let mut rest = u32::try_from(groups.len()).unwrap_or(u32::MAX);
    for group in groups.into_values() {
        let share = left() / rest.max(1);
        ask_in_halves(asked, &group, Instant::now() + share, &mut all);
        rest -= 1;
    }
    match all.is_empty() {
        true => Err(error),
        false => Ok(all),
    }
}

/// Asks one leader for offsets of its partitions, and for each half of them if it refuses one.
fn ask_in_halves(asked: &mut impl Asked, of: &[TopicPartition], until: Instant, all: &mut Ends) {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return;
    }
    match asked.ask(of, left) {
        Ok(ends) => all.extend(ends),
        Err(Failure::Refused(_)) if of.len() > 1 => {
            let (first, second) = of.split_at(of.len() / 2);
            ask_in_halves(asked, first, until, all);
            ask_in_halves(asked, second, until, all);
        }
        Err(_) => {}
    }
}

/// Brokers that are asked through a client.
struct Asking<'c> {
    client: &'c BaseConsumer<ClientCallbacks>,
    which: Offset,
}

impl Asked for Asking<'_> {
    fn ask(&mut self, of: &[TopicPartition], within: Duration) -> Result<Ends, Failure> {
        let mut list = TopicPartitionList::new();
        for (topic, partition) in of {
            list.add_partition_offset(topic, *partition, self.which)
                .map_err(failure)?;
        }
        let found = self.client.offsets_for_times(list, within);
        let found = found.map_err(failure)?;
        Ok(found.elements().iter().filter_map(answer).collect())
    }

    fn leaders(
        &mut self,
        of: &[TopicPartition],
        within: Duration,
    ) -> Result<BTreeMap<TopicPartition, i32>, KafkaError> {
        let until = Instant::now() + within;
        let topics: BTreeSet<&str> = of.iter().map(|(topic, _)| topic.as_str()).collect();
        let mut all = BTreeMap::new();
        for topic in topics {
            let left = until.saturating_duration_since(Instant::now());
            let metadata = self.client.fetch_metadata(Some(topic), left)?;
            let partitions = metadata.topics().iter().flat_map(|t| t.partitions());
            let led = partitions.filter(|p| p.leader() >= 0);
            all.extend(led.map(|p| ((topic.to_owned(), p.id()), p.leader())));
        }
        Ok(all)
    }
}

/// The answer about a partition: `None` if it has no leader, 0 if it does not exist.
fn answer(e: &TopicPartitionListElem<'_>) -> Option<(TopicPartition, i64)> {
    let partition = || (e.topic().to_owned(), e.partition());
    match (e.error(), e.offset()) {
        (Ok(()), Offset::Offset(offset)) => Some((partition(), offset)),
        (Ok(()), _) => None,
        (Err(error), _) => match error.rdkafka_error_code() {
            Some(Code::UnknownPartition | Code::UnknownTopic | Code::UnknownTopicOrPartition) => {
                Some((partition(), 0))
            }
            _ => None,
        },
    }
}

fn failure(error: Native) -> Failure {
    let code = error.rdkafka_error_code();
    let error = error.into();
    match code {
        Some(
            Code::OperationTimedOut
            | Code::RequestTimedOut
            | Code::BrokerTransportFailure
            | Code::AllBrokersDown
            | Code::Resolve,
        ) => Failure::Silent(error),
        _ => Failure::Refused(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three brokers that lead the partitions of two topics in turn.
    #[derive(Default)]
    struct Cluster {
        /// Brokers that do not answer.
        silent: BTreeSet<i32>,
        /// Partitions that their leaders refuse.
        refused: BTreeSet<TopicPartition>,
        /// Partitions without a leader.
        leaderless: BTreeSet<TopicPartition>,
        /// Number of partitions in each request.
        asked: Vec<usize>,
    }

    fn leader(partition: &TopicPartition) -> i32 {
        partition.1 % 3
    }

    impl Asked for Cluster {
        fn ask(&mut self, of: &[TopicPartition], _: Duration) -> Result<Ends, Failure> {
            self.asked.push(of.len());
            let error = || KafkaError::Other("it is away".to_owned());
            let led = of.iter().filter(|p| !self.leaderless.contains(*p));
            let led: Vec<&TopicPartition> = led.collect();
            if led.iter().any(|p| self.silent.contains(&leader(p))) {
                return Err(Failure::Silent(error()));
            }
            if led.is_empty() || led.iter().any(|p| self.refused.contains(*p)) {
                return Err(Failure::Refused(error()));
            }
            let end = |p: &TopicPartition| (p.clone(), 100 + i64::from(p.1));
            Ok(led.into_iter().map(end).collect())
        }

        fn leaders(
            &mut self,
            of: &[TopicPartition],
            _: Duration,
        ) -> Result<BTreeMap<TopicPartition, i32>, KafkaError> {
            if self.silent.len() == 3 {
                return Err(KafkaError::Other("no broker answers".to_owned()));
            }
            let led = of.iter().filter(|p| !self.leaderless.contains(*p));
            Ok(led.map(|p| (p.clone(), leader(p))).collect())
        }
    }

    fn partitions() -> Vec<TopicPartition> {
        let of = |topic: &'static str| (0..6).map(move |p| (topic.to_owned(), p));
        of("a").chain(of("b")).collect()
    }

    fn found(cluster: &mut Cluster) -> Option<Vec<TopicPartition>> {
        let found = answers(cluster, &partitions(), Duration::from_secs(5)).ok()?;
        assert!(found.iter().all(|(p, end)| *end == 100 + i64::from(p.1)));
        Some(found.into_keys().collect())
    }

    fn without(gone: impl Fn(&TopicPartition) -> bool) -> Option<Vec<TopicPartition>> {
        Some(partitions().into_iter().filter(|p| !gone(p)).collect())
    }

    #[test]
    fn all_are_asked_at_once_where_all_answer() {
        let mut cluster = Cluster::default();
        assert_eq!(found(&mut cluster), without(|_| false));
        assert_eq!(cluster.asked, [12]);
        assert_eq!(answers(&mut cluster, &[], Duration::ZERO), Ok(Ends::new()));
        assert_eq!(cluster.asked, [12]);
    }

    #[test]
    fn a_broker_that_does_not_answer_hides_what_it_leads_and_no_more() {
        let mut cluster = Cluster {
            silent: [1].into(),
            ..Cluster::default()
        };
        assert_eq!(found(&mut cluster), without(|p| leader(p) == 1));
        // The silent broker is not asked for each of its partitions.
        assert_eq!(cluster.asked, [12, 4, 4, 4]);
        cluster.silent = [0, 1, 2].into();
        assert_eq!(found(&mut cluster), None);
    }

    #[test]
    fn a_partition_that_is_refused_hides_itself_alone() {
        let refused: BTreeSet<TopicPartition> = [("a".to_owned(), 4), ("b".to_owned(), 2)].into();
        let mut cluster = Cluster {
            refused: refused.clone(),
            leaderless: [("b".to_owned(), 0)].into(),
            ..Cluster::default()
        };
        let gone = |p: &TopicPartition| refused.contains(p) || *p == ("b".to_owned(), 0);
        assert_eq!(found(&mut cluster), without(gone));
        // A refused topic does not hide the other.
        cluster.refused = partitions().into_iter().filter(|p| p.0 == "a").collect();
        let gone = |p: &TopicPartition| p.0 == "a" || *p == ("b".to_owned(), 0);
        assert_eq!(found(&mut cluster), without(gone));
    }
}
