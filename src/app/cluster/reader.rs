//! Follows the topic of checkpoints in order, and decides which checkpoint of each partition is
//! current.
//!
//! [`crate::store::checkpoint`] describes the protocol. A process that takes a partition over
//! resumes from the newest whole checkpoint before its claim. So a reader that reads in order
//! ignores checkpoints under an epoch below the last claim, and each current checkpoint continues
//! the one before it. A broker compacts only superseded checkpoints away.
//!
//! Checkpoints that were in the topic at the start are not opened one by one. Only the newest one
//! of each partition is opened: at the end of the topic or, after a restart, at the offset up to
//! which it had been read. Every later checkpoint is opened as it comes.
//!
//! Offsets order claims and checkpoints, and mean nothing across topics. If a partition ends before
//! the offset up to which it had been read, or an offset comes again, the topic was
//! [replaced](Replaced).
//!
//! Memory: the records of one checkpoint for each partition. Journals of pending predictions are
//! skipped.

use super::restored::in_words;
use crate::collect::PartitionId;
use crate::store::checkpoint::prefix;
use crate::store::reader::{CheckpointReader, FoundCheckpoint};
use std::collections::BTreeMap;

/// A new checkpoint.
#[derive(Debug)]
pub struct Arrival {
    /// Its partition.
    pub at: PartitionId,
    /// When it was written, milliseconds since 1970.
    pub at_ms: Option<i64>,
    /// The checkpoint, or why it cannot be used.
    pub found: Result<FoundCheckpoint, String>,
}

/// A claim to judge, as written in the topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeLease {
    /// Offset of the claim.
    pub claim: i64,
    /// The claimant.
    pub by: String,
}

/// The topic is not the one that was read before: it was recreated or truncated, or the
/// configuration names another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaced {
    /// It ends before the offset up to which it had been read before a restart.
    Shorter,
    /// Offsets repeated while it was read.
    Rewound,
}

#[derive(Debug)]
struct PartitionReader {
    reader: CheckpointReader,
    /// The last claim; later checkpoints under earlier claims are ignored.
    claim: i64,
    head_ms: Option<i64>,
    /// The newest checkpoint was written under an earlier claim.
    ignores: bool,
}

#[derive(Debug, Default)]
struct StatePartition {
    /// The offset that comes next.
    next: i64,
    /// The offset up to which it had been read before a restart.
    resume: Option<i64>,
    /// Checkpoints are opened as they come.
    open: bool,
    /// It was read to its end at least once.
    ended: bool,
    readers: BTreeMap<PartitionId, PartitionReader>,
}

/// Follows the topic of checkpoints. See the module.
#[derive(Debug)]
pub struct StateTopicReader {
    /// Number, group and name of each topic whose partitions have checkpoints.
    topics: Vec<(u16, String, String)>,
    lease_key: String,
    lease: Option<JudgeLease>,
    resume: BTreeMap<i32, i64>,
    all: BTreeMap<i32, StatePartition>,
    replaced: Option<Replaced>,
}

/// The key under which the judge of a group claims to judge.
pub fn lease_key(group: &str) -> String {
    format!("{group}/judge")
}

impl StateTopicReader {
    /// A reader for topics with their number and group. `resume` has the offsets up to which
    /// partitions of the topic had been read.
    pub fn new(topics: Vec<(u16, String, String)>, resume: &[(i32, i64)]) -> StateTopicReader {
        let group = topics.first().map_or("", |(_, group, _)| group);
        StateTopicReader {
            lease_key: lease_key(group),
            lease: None,
            topics,
            resume: resume.iter().copied().collect(),
            all: BTreeMap::new(),
            replaced: None,
        }
    }

    /// Begins to read `state_partitions` partitions.
    pub fn begin(&mut self, state_partitions: i32) {
        let state_partition = |n: i32| StatePartition {
            resume: self.resume.get(&n).copied(),
            ..StatePartition::default()
        };
        let all = (0..state_partitions).map(|n| (n, state_partition(n)));
        self.all = all.collect();
    }

    /// Whether everything that was in the topic at the start was read.
    pub fn are_read(&self) -> bool {
        !self.all.is_empty() && self.all.values().all(|h| h.ended)
    }

    /// How the topic was found to be another one since the last call, if so.
    pub fn take_replaced(&mut self) -> Option<Replaced> {
        self.replaced.take()
    }

    /// Whether the newest checkpoint of a partition is ignored, because its claim is earlier than
    /// the last one.
    pub fn ignores(&self, at: PartitionId) -> bool {
        let mut readers = self.all.values().filter_map(|h| h.readers.get(&at));
        readers.any(|r| r.ignores)
    }

    /// The next offset of each partition.
    pub fn next(&self) -> Vec<(i32, i64)> {
        self.all.iter().map(|(n, h)| (*n, h.next)).collect()
    }

    /// The last claim to judge.
    pub fn lease(&self) -> Option<&JudgeLease> {
        self.lease.as_ref()
    }

    /// Takes the next record of a partition; returns the checkpoints that have become current.
    pub fn take(
        &mut self,
        state_partition: i32,
        offset: i64,
        at_ms: Option<i64>,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Vec<Arrival> {
        if let Some(known) = self.all.get_mut(&state_partition)
            && offset < known.next
        {
            *known = StatePartition::default();
            self.lease = None;
            self.forget(Replaced::Rewound);
        }
        if key == self.lease_key.as_bytes() {
            self.lease = value.map(|by| JudgeLease {
                claim: offset,
                by: String::from_utf8_lossy(by).into_owned(),
            });
        }
        let of = self.parted(key);
        let Some(state_partition) = self.all.get_mut(&state_partition) else {
            return Vec::new();
        };
        let mut arrivals = match state_partition
            .resume
            .is_some_and(|resume| offset >= resume)
        {
            true => state_partition.open(),
            false => Vec::new(),
        };
        state_partition.next = offset + 1;
        let Some((at, prefix, rest)) = of else {
            return arrivals;
        };
        let reader = state_partition
            .readers
            .entry(at)
            .or_insert_with(|| PartitionReader {
                reader: CheckpointReader::without_journals(prefix),
                claim: i64::MIN,
                head_ms: None,
                ignores: false,
            });
        if rest == "claim" {
            reader.claim = offset;
        }
        let epoch = rest.split('/').next().and_then(|e| e.parse::<i64>().ok());
        let ignored = epoch.is_some_and(|epoch| epoch < reader.claim);
        if value.is_some() && rest.contains("/head/") {
            reader.ignores = ignored;
        }
        if value.is_none() {
            reader.reader.read(key, value);
            if state_partition.open {
                // The deleted record may have been a foreign one that blocked newer checkpoints.
                arrivals.extend(reader.open(at));
            }
            return arrivals;
        }
        if ignored {
            return arrivals;
        }
        // The topic of judges has no claims: a record with a later epoch shows a later claim.
        reader.claim = reader.claim.max(epoch.unwrap_or(i64::MIN));
        reader.reader.read(key, value);
        if rest.contains("/head/") {
            reader.head_ms = at_ms;
            if state_partition.open {
                arrivals.extend(reader.open(at));
            }
        }
        arrivals
    }

    /// Handles the end of a partition; returns the checkpoints that have become current.
    pub fn end(&mut self, state_partition: i32) -> Vec<Arrival> {
        let Some(state_partition) = self.all.get_mut(&state_partition) else {
            return Vec::new();
        };
        state_partition.ended = true;
        let (next, resume) = (state_partition.next, state_partition.resume);
        let came = state_partition.open();
        if resume.is_some_and(|resume| next < resume) {
            self.forget(Replaced::Shorter);
        }
        came
    }

    /// Forgets earlier positions, because they belong to another topic.
    fn forget(&mut self, replaced: Replaced) {
        self.resume.clear();
        self.all.values_mut().for_each(|h| h.resume = None);
        self.replaced = Some(replaced);
    }

    /// The partition of a key, the prefix of the key, and the rest.
    fn parted(&self, key: &[u8]) -> Option<(PartitionId, String, String)> {
        let key = std::str::from_utf8(key).ok()?;
        self.topics.iter().find_map(|(source, group, topic)| {
            let rest = key.strip_prefix(group.as_str())?.strip_prefix('/')?;
            let rest = rest.strip_prefix(topic.as_str())?.strip_prefix('/')?;
            let (partition, rest) = rest.split_once('/')?;
            let partition: i32 = partition.parse().ok()?;
            let prefix = prefix(group, topic, partition);
            Some(((*source, partition).into(), prefix, rest.to_owned()))
        })
    }
}

impl StatePartition {
    /// From now on opens checkpoints as they come; returns those that can be opened now.
    fn open(&mut self) -> Vec<Arrival> {
        if std::mem::replace(&mut self.open, true) {
            return Vec::new();
        }
        let readers = self.readers.iter_mut();
        readers
            .filter_map(|(at, reader)| reader.open(*at))
            .collect()
    }
}

impl PartitionReader {
    fn open(&mut self, at: PartitionId) -> Option<Arrival> {
        let found = match self.reader.newest() {
            Ok(None) => return None,
            Ok(Some(found)) => {
                self.reader.clear_until(&found);
                Ok(found)
            }
            Err(faults) => Err(in_words(&faults)),
        };
        Some(Arrival {
            at,
            at_ms: self.head_ms,
            found,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::checkpoint::{KeyedRecord, PartitionCheckpoint, claim_key, records};

    /// A log in memory and its reader.
    struct Log {
        state_partitions: StateTopicReader,
        next: i64,
    }

    impl Log {
        fn new(resume: &[(i32, i64)]) -> Log {
            let topics = vec![(2, "g/x".to_owned(), "t".to_owned())];
            let mut state_partitions = StateTopicReader::new(topics, resume);
            state_partitions.begin(1);
            Log {
                state_partitions,
                next: 0,
            }
        }

        /// Evaluations counted by the checkpoints that a new record makes current.
        fn put(&mut self, (key, value): &KeyedRecord) -> Vec<u64> {
            let (key, value) = (key.as_bytes(), value.as_deref());
            let came = self
                .state_partitions
                .take(0, self.next, Some(self.next), key, value);
            self.next += 1;
            came.into_iter().map(known).collect()
        }

        fn claim(&mut self) -> i64 {
            assert!(
                self.put(&(claim_key("g/x/t/4/"), Some(Vec::new())))
                    .is_empty()
            );
            self.next - 1
        }

        fn checkpoint(&mut self, epoch: i64, number: u64, n: u64) -> Vec<u64> {
            let mut checkpoint = PartitionCheckpoint::default();
            checkpoint.snapshot.counters.evaluations = n;
            let (body, head) = records(&checkpoint, "g/x/t/4/", epoch, number).expect("encoded");
            body.iter()
                .for_each(|keyed| assert!(self.put(keyed).is_empty()));
            self.put(&head)
        }
    }

    fn known(arrival: Arrival) -> u64 {
        assert_eq!(arrival.at, (2, 4).into());
        let found = arrival.found.expect("sound");
        found.checkpoint.snapshot.counters.evaluations
    }

    #[test]
    fn at_the_start_the_newest_checkpoint_is_taken_and_then_each_as_it_comes() {
        let mut log = Log::new(&[]);
        let epoch = log.claim();
        for n in 1..5 {
            assert!(log.checkpoint(epoch, n, 10 * n).is_empty());
        }
        assert!(!log.state_partitions.are_read());
        let came: Vec<u64> = log.state_partitions.end(0).into_iter().map(known).collect();
        assert_eq!(came, [40]);
        assert!(log.state_partitions.are_read() && log.state_partitions.end(0).is_empty());
        assert_eq!(log.checkpoint(epoch, 5, 50), [50]);
        assert_eq!(log.checkpoint(epoch, 6, 60), [60]);
    }

    #[test]
    fn after_a_restart_every_checkpoint_is_taken_that_came_since() {
        let mut log = Log::new(&[(0, 5)]);
        let epoch = log.claim();
        assert!(log.checkpoint(epoch, 1, 10).is_empty());
        assert!(log.checkpoint(epoch, 2, 20).is_empty());
        // The first record at offset 5 or later opens the earlier checkpoint, and then its own,
        // once whole.
        let (body, head) =
            records(&PartitionCheckpoint::default(), "g/x/t/4/", epoch, 3).expect("encoded");
        assert_eq!(log.put(&body[0]), [20]);
        assert_eq!(log.put(&head), [0]);
        assert!(log.state_partitions.end(0).is_empty());
    }

    #[test]
    fn a_checkpoint_that_is_half_read_when_the_one_before_is_opened_is_whole_with_its_head() {
        let mut log = Log::new(&[(0, 5)]);
        let epoch = log.claim();
        assert!(log.checkpoint(epoch, 1, 10).is_empty());
        let mut next = PartitionCheckpoint::default();
        next.snapshot.counters.evaluations = 20;
        let (body, head) = records(&next, "g/x/t/4/", epoch, 2).expect("encoded");
        assert!(log.put(&body[0]).is_empty());
        // Another record is at the offset that reading had reached.
        assert!(log.put(&("other".to_owned(), None)).is_empty());
        assert_eq!(log.put(&("other".to_owned(), None)), [10]);
        assert_eq!(log.put(&head), [20]);
    }

    #[test]
    fn what_is_written_under_an_old_claim_is_not_heard() {
        let mut log = Log::new(&[]);
        let old = log.claim();
        log.state_partitions.end(0);
        assert_eq!(log.checkpoint(old, 1, 10), [10]);
        let new = log.claim();
        // The previous owner was frozen, and continues.
        assert!(!log.state_partitions.ignores((2, 4).into()));
        assert!(log.checkpoint(old, 2, 20).is_empty());
        assert!(log.state_partitions.ignores((2, 4).into()));
        assert_eq!(log.checkpoint(new, 1, 30), [30]);
        assert!(!log.state_partitions.ignores((2, 4).into()));
        assert!(log.checkpoint(old, 3, 40).is_empty());
        assert_eq!(log.checkpoint(new, 2, 50), [50]);
    }

    #[test]
    fn a_key_that_is_none_of_ours_is_in_the_way_of_checkpoints_until_it_is_deleted() {
        let mut log = Log::new(&[]);
        let (epoch, stray) = (log.claim(), "g/x/t/4/stray".to_owned());
        log.put(&(stray.clone(), Some(vec![1])));
        assert!(log.checkpoint(epoch, 1, 10).is_empty());
        let came = log.state_partitions.end(0);
        assert!(came.len() == 1 && came[0].found.is_err(), "{came:?}");
        assert_eq!(log.put(&(stray, None)), [10]);
        assert_eq!(log.checkpoint(epoch, 2, 20), [20]);
        // A deletion by a worker makes nothing current.
        assert!(log.put(&("g/x/t/4/0/head/1".to_owned(), None)).is_empty());
    }

    #[test]
    fn who_claims_last_to_judge_is_known() {
        let mut log = Log::new(&[]);
        assert_eq!(log.state_partitions.lease(), None);
        log.put(&(lease_key("g/x"), Some(b"one".to_vec())));
        log.put(&(lease_key("g/x"), Some(b"two".to_vec())));
        let lease = log.state_partitions.lease().expect("claimed");
        assert_eq!((lease.claim, lease.by.as_str()), (1, "two"));
    }
    #[test]
    fn a_topic_that_ends_before_what_had_been_read_is_another_one() {
        let mut log = Log::new(&[(0, 100)]);
        let epoch = log.claim();
        assert!(log.checkpoint(epoch, 1, 10).is_empty());
        let came: Vec<u64> = log.state_partitions.end(0).into_iter().map(known).collect();
        assert_eq!(came, [10]);
        let replaced = log.state_partitions.take_replaced();
        assert_eq!(replaced, Some(Replaced::Shorter));
        assert_eq!(log.checkpoint(epoch, 2, 20), [20]);
        assert!(log.state_partitions.end(0).is_empty());
        assert_eq!(log.state_partitions.take_replaced(), None);
        // A topic that ends exactly there is the same one.
        let mut log = Log::new(&[(0, 1)]);
        log.claim();
        assert!(log.state_partitions.end(0).is_empty());
        assert_eq!(log.state_partitions.take_replaced(), None);
    }

    #[test]
    fn a_topic_whose_offsets_come_again_is_another_one_and_is_read_from_its_begin() {
        let mut log = Log::new(&[]);
        log.put(&("other".to_owned(), None));
        log.put(&(lease_key("g/x"), Some(b"one".to_vec())));
        let epoch = log.claim();
        log.state_partitions.end(0);
        assert_eq!(log.checkpoint(epoch, 1, 10), [10]);
        // The new topic has only the claim of a worker.
        log.next = 0;
        let epoch = log.claim();
        let replaced = log.state_partitions.take_replaced();
        assert_eq!(replaced, Some(Replaced::Rewound));
        assert!(log.state_partitions.lease().is_none() && !log.state_partitions.are_read());
        assert!(log.checkpoint(epoch, 1, 30).is_empty());
        let came: Vec<u64> = log.state_partitions.end(0).into_iter().map(known).collect();
        assert_eq!(came, [30]);
        assert_eq!(log.state_partitions.take_replaced(), None);
    }
}
