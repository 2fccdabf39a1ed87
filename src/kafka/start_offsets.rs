//! Finds where a partition without a known position starts.
//!
//! Every start is a number, which the caller stores before the first record is read. If the setting
//! were given to librdkafka instead, "latest" would mean another offset after each restart, and the
//! records in between would be missing without a counter.
//!
//! ```text
//!   its log was found cut or made again   as `truncated` says, however long it is now
//!   the group has committed an offset     its sums are gone: as `missing_state` says
//!   the topic was read before             it was added since: at its first record
//!   otherwise                             as `start` says
//! ```
//!
//! A commit tells later processes how many partitions the topic had when the group began to read
//! it, in its metadata: a partition with a higher number was added since.
//!
//! If the broker goes down meanwhile, librdkafka would never read the partition. So partitions
//! without an answer are remembered here and requested again.

use super::group_client::GroupClient;
use super::handler::Begin;
use super::options::{MissingState, StartAt, Truncated};
use super::process_start::ProcessStart;
use super::topics::Topics;
use super::{KafkaOptions, Partition};
use crate::telemetry::now_ms;
use rdkafka::{Offset, TopicPartitionList};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Longest wait for one answer when partitions are assigned.
const FIRST_WAIT: Duration = Duration::from_secs(5);
/// Longest wait of a retry.
const RETRY_WAIT: Duration = Duration::from_secs(1);
/// Pause between two retries.
const RETRY_PAUSE: Duration = Duration::from_secs(3);
/// Longest wait for all answers, in multiples of the wait for one: a thread that waits here does
/// nothing else.
const ALL: u32 = 2;
/// Start of the metadata of a commit, before the number of partitions.
const PARTITIONS: &str = "partitions=";

/// How a partition starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Start {
    At(Begin),
    /// At this offset, after the log was found to end before the position.
    Again(i64),
    /// Not at all, for this reason.
    Refused(String),
}

/// What is known of a partition whose start is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    /// Nothing.
    New,
    /// Its topic was read before, so the partition was added since.
    Later,
    /// It was read up to an offset, and its log was found to end before that.
    Truncated { read: i64, end: i64 },
}

/// How long a thread may wait for several answers.
#[derive(Clone, Copy)]
pub(super) struct Wait {
    /// Longest wait for one answer.
    each: Duration,
    /// End of the wait for all answers.
    until: Instant,
}

impl Wait {
    /// A wait of `each` for every answer, and [`ALL`] times as long for all.
    pub fn each(each: Duration) -> Wait {
        let until = Instant::now() + ALL * each;
        Wait { each, until }
    }

    /// How long the next answer may take; `None` if no time is left.
    pub fn next(self) -> Option<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        Some(left.min(self.each)).filter(|left| !left.is_zero())
    }
}

/// Finds the starts of partitions, and remembers those without an answer.
pub(super) struct StartOffsets {
    start: StartAt,
    missing: MissingState,
    truncated: Truncated,
    /// Partitions without an answer, and what is known of them.
    unknown: BTreeMap<Partition, Unknown>,
    retry_at: Instant,
    /// Which of the unknown starts is requested first.
    retries: usize,
    /// By topic number, how many partitions the topic had when the group began to read it.
    begun_with: BTreeMap<u16, i32>,
    /// By topic number, how many partitions the topic had at the last answer.
    counts: BTreeMap<u16, i32>,
}

/// What is requested of a topic once, for all its partitions.
struct TopicProgress {
    committed: TopicPartitionList,
    begun_with: i32,
}

impl StartOffsets {
    /// A table without partitions.
    pub fn new(options: &KafkaOptions) -> StartOffsets {
        StartOffsets {
            start: options.start,
            missing: options.missing_state,
            truncated: options.truncated,
            unknown: BTreeMap::new(),
            retry_at: Instant::now(),
            retries: 0,
            begun_with: BTreeMap::new(),
            counts: BTreeMap::new(),
        }
    }

    /// Partitions without a start that do not exist, each with the number of partitions of its
    /// topic.
    pub fn absent(&self) -> impl Iterator<Item = (Partition, i32)> {
        let counted = |p: &Partition| Some((*p, *self.counts.get(&p.topic)?));
        let counted = self.unknown.keys().filter_map(counted);
        counted.filter(|(p, count)| p.partition >= *count)
    }

    /// Whether all starts are known.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.unknown.is_empty()
    }

    /// Whether the start of this partition is not known yet.
    pub fn awaits(&self, p: Partition) -> bool {
        self.unknown.contains_key(&p)
    }

    /// The starts of newly assigned partitions; `partitions` says what is known of each. A
    /// partition without an answer is missing in the result; its start is requested again.
    pub fn first(
        &mut self,
        client: &dyn GroupClient,
        topics: &Topics,
        partitions: &[(Partition, Unknown)],
    ) -> BTreeMap<Partition, Start> {
        let found = self.request(client, topics, partitions, Wait::each(FIRST_WAIT));
        let unknown = partitions.iter().filter(|(p, _)| !found.contains_key(p));
        self.unknown.extend(unknown.copied());
        self.retry_at = Instant::now() + RETRY_PAUSE;
        found
    }

    /// Finds out how many partitions these topics had when the group began to read them, for the
    /// commits of this process. Returns whether all are known.
    pub fn learn(
        &mut self,
        client: &dyn GroupClient,
        topics: &Topics,
        numbers: BTreeSet<u16>,
        wait: Wait,
    ) -> bool {
        let mut known = true;
        for number in numbers {
            known &= self.begun_with.contains_key(&number)
                || self.ask(client, topics, number, wait).is_some();
        }
        known
    }

    /// Forgets a partition that was revoked or has started.
    pub fn remove(&mut self, p: Partition) {
        self.unknown.remove(&p);
    }

    /// Requests the unknown starts again if that is due.
    pub fn retry(
        &mut self,
        client: &dyn GroupClient,
        topics: &Topics,
    ) -> BTreeMap<Partition, Start> {
        if Instant::now() < self.retry_at {
            return BTreeMap::new();
        }
        let mut unknown: Vec<_> = self.unknown.iter().map(|(p, what)| (*p, *what)).collect();
        if !unknown.is_empty() {
            // Another partition comes first each time, so that partitions without an answer do not
            // delay the others.
            self.retries = (self.retries + 1) % unknown.len();
            unknown.rotate_left(self.retries);
        }
        let found = self.request(client, topics, &unknown, Wait::each(RETRY_WAIT));
        self.retry_at = Instant::now() + RETRY_PAUSE;
        found
    }

    /// The metadata of a commit of this partition.
    pub fn metadata(&self, p: Partition) -> Option<String> {
        let n = self.begun_with.get(&p.topic)?;
        Some(format!(
            "{PARTITIONS}{n} {}",
            ProcessStart::of_this_process().client_id()
        ))
    }

    /// Requests the starts of partitions, in order, while time is left.
    fn request(
        &mut self,
        client: &dyn GroupClient,
        topics: &Topics,
        partitions: &[(Partition, Unknown)],
        wait: Wait,
    ) -> BTreeMap<Partition, Start> {
        let mut found = BTreeMap::new();
        let mut known: BTreeMap<u16, Option<TopicProgress>> = BTreeMap::new();
        for &(p, what) in partitions {
            if let (Unknown::Truncated { read, end }, Truncated::Stop) = (what, self.truncated) {
                // This needs no broker.
                found.insert(p, Start::Refused(truncated(read, end)));
                continue;
            }
            if wait.next().is_none() {
                break;
            }
            if let Unknown::Truncated { .. } = what {
                let at = match self.truncated {
                    Truncated::Latest => StartAt::Latest,
                    Truncated::Stop | Truncated::Earliest => StartAt::Earliest,
                };
                let start = resolve(client, topics.name(p), p.partition, at, wait);
                found.extend(start.map(|offset| (p, Start::Again(offset))));
                continue;
            }
            let known = known
                .entry(p.topic)
                .or_insert_with(|| self.ask(client, topics, p.topic, wait));
            let known = known.as_ref();
            let later = what == Unknown::Later;
            let start = known.and_then(|k| self.start_of(client, topics, p, later, k, wait));
            found.extend(start.map(|start| (p, start)));
        }
        found
    }

    /// The commits of all partitions of a topic, and how many partitions it began with; `None`
    /// without an answer.
    fn ask(
        &mut self,
        client: &dyn GroupClient,
        topics: &Topics,
        number: u16,
        wait: Wait,
    ) -> Option<TopicProgress> {
        // An earlier count may be too small by now.
        self.counts.remove(&number);
        let name = topics.name((number, 0).into());
        let count = client.partitions(name, wait.next()?).ok()?;
        let count = i32::try_from(count).ok().filter(|count| *count > 0)?;
        self.counts.insert(number, count);
        let mut list = TopicPartitionList::new();
        list.add_partition_range(name, 0, count - 1);
        let committed = client.committed(list, wait.next()?).ok()?;
        let told = committed.elements_for_topic(name);
        let told = told.iter().filter_map(|e| partitions_of(e.metadata()));
        let begun_with = told.min().or(self.begun_with.get(&number).copied());
        let begun_with = begun_with.unwrap_or(count);
        self.begun_with.insert(number, begun_with);
        Some(TopicProgress {
            committed,
            begun_with,
        })
    }

    fn start_of(
        &self,
        client: &dyn GroupClient,
        topics: &Topics,
        p: Partition,
        later: bool,
        known: &TopicProgress,
        wait: Wait,
    ) -> Option<Start> {
        let name = topics.name(p);
        let entry = known.committed.find_partition(name, p.partition)?;
        // An error does not mean that nothing was committed.
        entry.error().ok()?;
        let committed = match entry.offset() {
            Offset::Offset(offset) => Some(offset),
            _ => None,
        };
        let added = later || p.partition >= known.begun_with;
        let at = match (committed, self.missing) {
            (None, _) if added => StartAt::Earliest,
            (None, _) => self.start,
            (Some(offset), MissingState::Committed) => {
                return Some(Start::At(Begin {
                    offset,
                    without_sums_of: committed,
                }));
            }
            (Some(_), MissingState::Start(at)) => at,
            (Some(offset), MissingState::Stop) => {
                return Some(Start::Refused(format!(
                    "the group has read it up to offset {offset}, and the state has no sums of it: the state was \
                     deleted, or is another; bring it back, or set `on_missing_state` of the source to say where to \
                     start without it"
                )));
            }
        };
        let offset = resolve(client, name, p.partition, at, wait)?;
        Some(Start::At(Begin {
            offset,
            without_sums_of: committed,
        }))
    }
}

/// Why a partition is not read whose log ended at `end` although it had been read up to `read`.
pub(super) fn truncated(read: i64, end: i64) -> String {
    format!(
        "it ended at offset {end} after it was read up to {read}: the topic was recreated or its log was cut, so it \
         stays unread however long it is now, after a restart too; set `on_truncated` of the source to say where to \
         continue, or reset the state"
    )
}

/// The number of partitions in the metadata of a commit.
fn partitions_of(metadata: &str) -> Option<i32> {
    let words = metadata.strip_prefix(PARTITIONS)?;
    words.split_whitespace().next()?.parse().ok()
}

/// The offset that a setting means now; `None` without an answer.
fn resolve(
    client: &dyn GroupClient,
    topic: &str,
    partition: i32,
    at: StartAt,
    wait: Wait,
) -> Option<i64> {
    let time_ms = match at {
        StartAt::Earliest | StartAt::Latest => None,
        StartAt::Time(ms) => Some(ms),
        StartAt::Back(ms) => Some(now_ms() - ms),
    };
    if let Some(ms) = time_ms {
        let mut list = TopicPartitionList::new();
        let asked = list.add_partition_offset(topic, partition, Offset::Offset(ms.max(0)));
        asked.ok()?;
        let answer = client.offsets_for_times(list, wait.next()?).ok()?;
        let entry = answer.find_partition(topic, partition)?;
        entry.error().ok()?;
        if let Offset::Offset(offset) = entry.offset() {
            return Some(offset);
        }
        // All records are older.
    }
    let (first, end) = client.offset_bounds(topic, partition, wait.next()?).ok()?;
    Some(if at == StartAt::Earliest { first } else { end })
}

#[cfg(test)]
mod tests {
    use super::super::{Brokers, Librdkafka};
    use super::*;

    #[test]
    fn what_awaits_its_start_beyond_the_last_partition_does_not_exist() {
        let mut offsets = StartOffsets::new(&KafkaOptions::default());
        let p = |topic, partition| Partition { topic, partition };
        let unknown = [p(1, 1), p(1, 2), p(2, 5)];
        offsets.unknown = unknown.map(|p| (p, Unknown::New)).into();
        assert_eq!(offsets.absent().count(), 0, "nothing was counted");
        offsets.counts.insert(1, 2);
        assert_eq!(offsets.absent().collect::<Vec<_>>(), [(p(1, 2), 2)]);
    }

    #[test]
    fn brokers_that_do_not_answer_hold_up_all_topics_together_for_the_time_of_two() {
        let names = (0..40).map(|n| format!("t{n}"));
        let options = KafkaOptions {
            brokers: "127.0.0.1:1".to_owned(),
            group: "g".to_owned(),
            topics: names.collect(),
            ..KafkaOptions::default()
        };
        let client = Librdkafka.join(&options).expect("a client");
        let (client, topics) = (client.as_ref(), Topics::new(&options));
        let mut offsets = StartOffsets::new(&options);
        let (began, each) = (Instant::now(), Duration::from_millis(300));
        let wait = Wait::each(each);
        assert!(!offsets.learn(client, &topics, (0..40).collect(), wait));
        // Waits for each answer would add up to 40.
        let waited = began.elapsed();
        assert!((each..20 * each).contains(&waited), "{waited:?}");
        // Known numbers need no answer.
        offsets.begun_with.insert(2, 7);
        assert!(offsets.learn(client, &topics, [2].into(), wait));
    }

    #[test]
    fn a_commit_tells_how_many_partitions_the_topic_had() {
        let mut offsets = StartOffsets::new(&KafkaOptions::default());
        let p = (1, 3).into();
        assert_eq!(offsets.metadata(p), None);
        offsets.begun_with.insert(1, 12);
        let written = offsets.metadata(p).expect("a number");
        assert_eq!(partitions_of(&written), Some(12));
        for other in ["", "12", "partitions=", "partitions=x"] {
            assert_eq!(partitions_of(other), None, "{other}");
        }
    }
}
