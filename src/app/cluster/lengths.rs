//! How long the topics of the sources are: the latest answers of the brokers, and earlier ones.
//!
//! A judge asks after it has read the checkpoints: what came before the question is in a
//! checkpoint, or verdicts wait for it. If a broker does not answer, verdicts wait for the
//! partitions that it leads, as for a late worker, up to `missing_after`. That broker is asked
//! again separately, so that other answers need not wait for it. If no broker answers, nothing is
//! judged beyond what was known before.

use crate::kafka::{Ends, FollowState, KafkaError, TopicPartition};
use crate::monitor::liveness::Reach;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long all answers may take.
const WITHIN: Duration = Duration::from_secs(10);

/// How long the ends of partitions may take whose brokers answered last time.
const ENDS_WITHIN: Duration = Duration::from_secs(6);

/// How long the ends of partitions may take whose brokers did not answer last time.
const AGAIN_WITHIN: Duration = Duration::from_secs(2);

/// Least time that is left for each of the questions that follow.
const LEAST: Duration = Duration::from_secs(1);

/// Pause before a broker that did not answer is asked again.
const AGAIN: Duration = Duration::from_secs(5);

/// An answer that has been missing for this long is reported; a single failure is not.
const TROUBLE: Duration = Duration::from_secs(10);

/// The partitions about which a judge asks.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// All partitions.
    pub(super) ends: BTreeSet<TopicPartition>,
    /// Partitions that end, for the judge, where an open transaction begins.
    pub(super) stable: BTreeSet<TopicPartition>,
    /// Partitions without a record in any checkpoint.
    pub(super) begins: BTreeSet<TopicPartition>,
}

#[derive(Debug, Default)]
pub(super) struct Lengths {
    begins: Ends,
    ends: Ends,
    /// Partitions whose ends were missing from the last answers, each with the time since when.
    silent: BTreeMap<TopicPartition, Instant>,
    /// When the ends of those partitions were last requested.
    again: Option<Instant>,
    /// When a broker last answered.
    answered: Option<Instant>,
    /// How often no broker has answered since, and the last error.
    failed: (u32, String),
}

impl Lengths {
    /// Asks the brokers at `now`. Returns whether any of them answered.
    pub(super) fn ask(&mut self, link: &dyn FollowState, wanted: &Wanted, now: Instant) -> bool {
        match self.answers(link, wanted, now) {
            Ok(()) => {
                self.answered = Some(now);
                self.failed = (0, String::new());
                true
            }
            Err(error) => {
                self.fail(&error);
                false
            }
        }
    }

    /// Notes that no broker answered.
    pub(super) fn fail(&mut self, error: &KafkaError) {
        crate::warn_limited!(%error, "how long the topics are is not known; no verdicts beyond what was read before");
        self.failed = (self.failed.0 + 1, error.to_string());
    }

    fn answers(
        &mut self,
        link: &dyn FollowState,
        wanted: &Wanted,
        now: Instant,
    ) -> Result<(), KafkaError> {
        let until = Instant::now() + WITHIN;
        let left = || until.saturating_duration_since(Instant::now()).max(LEAST);
        let mut ends = self.ask_ends(link, &wanted.ends, now)?;
        let stable = some(&wanted.stable, &ends);
        let stable_ends = match stable.is_empty() {
            true => Ends::new(),
            false => link.stable_ends(&stable, left() / 2).unwrap_or_default(),
        };
        for partition in stable {
            match stable_ends.get(&partition) {
                Some(end) => ends.insert(partition, *end),
                None => ends.remove(&partition),
            };
        }
        let begins = some(&wanted.begins, &ends);
        if !begins.is_empty() {
            let begins = link.begins(&begins, left());
            self.begins.extend(begins.unwrap_or_default());
        }
        for partition in &wanted.ends {
            if ends.contains_key(partition) {
                self.silent.remove(partition);
            } else {
                self.silent.entry(partition.clone()).or_insert(now);
            }
        }
        self.ends.extend(ends);
        Ok(())
    }

    /// Asks for the ends of partitions. Those without an answer last time are requested separately,
    /// at most every [`AGAIN`].
    fn ask_ends(
        &mut self,
        link: &dyn FollowState,
        wanted: &BTreeSet<TopicPartition>,
        now: Instant,
    ) -> Result<Ends, KafkaError> {
        self.silent
            .retain(|partition, _| wanted.contains(partition));
        let apart = self.silent.len() < wanted.len();
        let all = wanted.iter().cloned();
        let (unanswered, answering): (Vec<TopicPartition>, Vec<TopicPartition>) =
            all.partition(|partition| apart && self.silent.contains_key(partition));
        let ends = match answering.is_empty() {
            true => Ok(Ends::new()),
            false => link.ends(&answering, ENDS_WITHIN),
        };
        if unanswered.is_empty() || self.again.is_some_and(|at| now < at + AGAIN) {
            return ends;
        }
        self.again = Some(now);
        let more = link.ends(&unanswered, AGAIN_WITHIN).unwrap_or_default();
        match ends {
            Err(error) if more.is_empty() => Err(error),
            ends => {
                let mut ends = ends.unwrap_or_default();
                ends.extend(more);
                Ok(ends)
            }
        }
    }

    /// How many records of a partition lie after the position up to which a checkpoint holds them;
    /// at least 1 if the end of the partition is not known.
    pub(super) fn uncovered(&self, of: &TopicPartition, position: Option<i64>, idle: bool) -> u64 {
        let reach = Reach {
            begin: self.begins.get(of).copied().unwrap_or(0),
            end: self.ends.get(of).copied().unwrap_or(0),
            position,
            idle,
        };
        reach.uncovered().max(u64::from(!self.knows(of)))
    }

    /// Whether the last answers of the brokers had the end of this partition.
    pub(super) fn knows(&self, of: &TopicPartition) -> bool {
        self.ends.contains_key(of) && !self.silent.contains_key(of)
    }

    /// The end of a partition in the last answers of the brokers, if they had it.
    pub(super) fn end(&self, of: &TopicPartition) -> Option<i64> {
        self.knows(of).then(|| self.ends.get(of).copied())?
    }

    /// Whether no broker answered the last question.
    pub(super) fn is_failing(&self) -> bool {
        self.failed.0 > 0
    }

    /// The reason to report, if answers have been missing for long.
    pub(super) fn trouble(&self, now: Instant) -> Option<String> {
        let lasts = |since: Instant| now.saturating_duration_since(since) >= TROUBLE;
        let (failed, why) = &self.failed;
        if *failed > 0 && self.answered.is_none_or(|at| *failed > 1 && lasts(at)) {
            return Some(format!(
                "no broker says how long the topics are, and nothing beyond what was read before is judged ({why}); \
                 check the brokers, the network and the credentials"
            ));
        }
        let silent = self.silent.iter().filter(|(_, since)| lasts(**since));
        let ((topic, partition), since) = silent.clone().min_by_key(|(_, since)| **since)?;
        Some(format!(
            "of {} partitions no broker says how long they are, of {topic}/{partition} for {} s, and verdicts wait for \
             them, for `missing_after` at most; check the brokers",
            silent.count(),
            now.saturating_duration_since(*since).as_secs()
        ))
    }
}

/// The partitions of `of` whose end is known.
fn some(of: &BTreeSet<TopicPartition>, ends: &Ends) -> Vec<TopicPartition> {
    let known = of.iter().filter(|partition| ends.contains_key(*partition));
    known.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kafka::Followed;
    use std::cell::{Cell, RefCell};

    /// Brokers of one topic, whose partitions all are as long.
    #[derive(Default)]
    struct Link {
        end: Cell<i64>,
        /// Where the first open transaction begins.
        stable: Cell<i64>,
        /// Partitions whose leaders do not answer.
        away: RefCell<BTreeSet<i32>>,
        /// The partitions of each question.
        asked: RefCell<Vec<Vec<i32>>>,
    }

    impl Link {
        fn answer(&self, of: &[TopicPartition], at: i64) -> Result<Ends, KafkaError> {
            let asked = of.iter().map(|(_, partition)| *partition);
            self.asked.borrow_mut().push(asked.collect());
            let away = self.away.borrow();
            let there = of.iter().filter(|(_, p)| !away.contains(p));
            let all: Ends = there.map(|partition| (partition.clone(), at)).collect();
            match all.is_empty() {
                true => Err(KafkaError::Other("nobody is there".to_owned())),
                false => Ok(all),
            }
        }
    }

    impl FollowState for Link {
        fn begin(&self, _: i32) -> Result<(), KafkaError> {
            Ok(())
        }

        fn poll(&self, _: Duration, _: &mut dyn FnMut(Followed<'_>)) -> Result<bool, KafkaError> {
            Ok(false)
        }

        fn partitions(&self, _: &str) -> Result<Option<i32>, KafkaError> {
            Ok(Some(3))
        }

        fn ends(&self, of: &[TopicPartition], within: Duration) -> Result<Ends, KafkaError> {
            assert!(within <= ENDS_WITHIN);
            self.answer(of, self.end.get())
        }

        fn stable_ends(&self, of: &[TopicPartition], _: Duration) -> Result<Ends, KafkaError> {
            self.answer(of, self.stable.get())
        }

        fn begins(&self, of: &[TopicPartition], _: Duration) -> Result<Ends, KafkaError> {
            self.answer(of, 10)
        }
    }

    fn of_topic(partition: i32) -> TopicPartition {
        ("t".to_owned(), partition)
    }

    fn wanted() -> Wanted {
        Wanted {
            ends: (0..3).map(of_topic).collect(),
            ..Wanted::default()
        }
    }

    /// The uncovered records of each partition, after a checkpoint up to `position`.
    fn uncovered(lengths: &Lengths, position: i64) -> [u64; 3] {
        [0, 1, 2].map(|p| lengths.uncovered(&of_topic(p), Some(position), true))
    }

    #[test]
    fn who_does_not_answer_holds_its_partitions_and_no_others() {
        let (link, mut lengths, now) = (Link::default(), Lengths::default(), Instant::now());
        link.end.set(20);
        assert!(lengths.ask(&link, &wanted(), now));
        assert_eq!(uncovered(&lengths, 20), [0, 0, 0]);
        // Known ends are kept, and more records may exist.
        link.away.borrow_mut().insert(1);
        link.end.set(25);
        assert!(lengths.ask(&link, &wanted(), now));
        assert_eq!(uncovered(&lengths, 25), [0, 1, 0]);
        assert_eq!(uncovered(&lengths, 15), [10, 5, 10]);
        link.away.borrow_mut().clear();
        assert!(lengths.ask(&link, &wanted(), now));
        assert_eq!(uncovered(&lengths, 25), [0, 0, 0]);
        assert_eq!(lengths.trouble(now), None);
    }

    #[test]
    fn a_partition_that_nobody_ever_spoke_of_is_not_covered() {
        let (link, mut lengths, now) = (Link::default(), Lengths::default(), Instant::now());
        link.end.set(20);
        link.away.borrow_mut().insert(2);
        assert!(lengths.ask(&link, &wanted(), now));
        let of = |p: i32, idle| lengths.uncovered(&of_topic(p), None, idle);
        assert_eq!([of(0, true), of(2, true), of(2, false)], [0, 1, 1]);
        assert_eq!(of(7, true), 1, "it was not asked for");
        // An empty partition is covered.
        link.away.borrow_mut().clear();
        link.end.set(0);
        assert!(lengths.ask(&link, &wanted(), now));
        assert_eq!(lengths.uncovered(&of_topic(2), None, false), 0);
    }

    #[test]
    fn who_did_not_answer_is_asked_apart_and_not_every_time() {
        let (link, mut lengths, now) = (Link::default(), Lengths::default(), Instant::now());
        link.away.borrow_mut().insert(1);
        let mut ask = |seconds: u64| {
            let at = now + Duration::from_secs(seconds);
            assert!(lengths.ask(&link, &wanted(), at));
            link.asked.take()
        };
        assert_eq!(ask(0), [vec![0, 1, 2]]);
        assert_eq!(ask(1), [vec![0, 2], vec![1]]);
        assert_eq!(ask(3), [vec![0, 2]]);
        assert_eq!(ask(6), [vec![0, 2], vec![1]]);
        link.away.borrow_mut().clear();
        assert_eq!(ask(11), [vec![0, 2], vec![1]]);
        assert_eq!(ask(12), [vec![0, 1, 2]]);
        // The other brokers fail, and this one answers again.
        link.away.borrow_mut().insert(1);
        assert_eq!(ask(20), [vec![0, 1, 2]]);
        *link.away.borrow_mut() = [0, 2].into();
        assert_eq!(ask(26), [vec![0, 2], vec![1]]);
        assert_eq!(ask(27), [vec![1]]);
    }

    #[test]
    fn trouble_is_what_lasts() {
        let (link, mut lengths, now) = (Link::default(), Lengths::default(), Instant::now());
        let at = |seconds: u64| now + Duration::from_secs(seconds);
        let all = || BTreeSet::from([0, 1, 2]);
        // Before the first answer, a failure is reported at once.
        *link.away.borrow_mut() = all();
        assert!(!lengths.ask(&link, &wanted(), at(0)));
        assert!(lengths.trouble(at(0)).is_some());
        link.away.borrow_mut().clear();
        assert!(lengths.ask(&link, &wanted(), at(1)));
        assert_eq!(lengths.trouble(at(100)), None);
        // A single failed question is not reported, however long it took.
        *link.away.borrow_mut() = all();
        assert!(!lengths.ask(&link, &wanted(), at(5)));
        assert_eq!(lengths.trouble(at(15)), None);
        assert!(!lengths.ask(&link, &wanted(), at(15)));
        let why = lengths.trouble(at(15)).expect("it lasts");
        assert!(why.contains("nobody is there"), "{why}");
        // Partial failures are also reported once they last.
        *link.away.borrow_mut() = [1].into();
        for seconds in [20, 26] {
            assert!(lengths.ask(&link, &wanted(), at(seconds)));
            assert_eq!(lengths.trouble(at(seconds)), None);
        }
        assert!(lengths.ask(&link, &wanted(), at(32)));
        let why = lengths.trouble(at(32)).expect("it lasts");
        assert!(
            why.contains("of 1 partitions") && why.contains("t/1 for 12 s"),
            "{why}"
        );
    }

    #[test]
    fn where_a_transaction_is_open_its_begin_is_the_end() {
        let (link, mut lengths, now) = (Link::default(), Lengths::default(), Instant::now());
        link.end.set(20);
        link.stable.set(15);
        let wanted = Wanted {
            stable: [of_topic(0)].into(),
            begins: [of_topic(2)].into(),
            ..wanted()
        };
        assert!(lengths.ask(&link, &wanted, now));
        assert_eq!(uncovered(&lengths, 15), [0, 5, 5]);
        assert_eq!(lengths.uncovered(&of_topic(2), None, false), 10);
        // A silent broker is not asked more often.
        link.away.borrow_mut().insert(0);
        link.asked.take();
        assert!(lengths.ask(&link, &wanted, now));
        assert_eq!(link.asked.take(), [vec![0, 1, 2], vec![2]]);
        assert_eq!(uncovered(&lengths, 15), [1, 5, 5]);
    }
}
