//! How far the topic of checkpoints holds a partition, and which parts of the partition it does not
//! hold yet.
//!
//! A cursor knows which pieces of the journal the last checkpoints still need, and so which may be
//! deleted. It does no work of its own: the [store](super::checkpoint_store) does.

use crate::alert::Alert;
use crate::collect::Origin;
use crate::monitor::{ShardView, VerdictState};
use crate::store::checkpoint::{self, JournalChunk, JournalRange};
use crate::store::reader::FoundCheckpoint;
use std::collections::{BTreeSet, VecDeque};
use std::time::Instant;

/// How many checkpoints in a row need a journal segment: the previous one must stay whole too.
pub(super) const WHOLE: usize = 2;

/// How far one partition is stored in the topic of checkpoints. See the module.
#[derive(Debug, Default)]
pub struct CheckpointCursor {
    pub(super) group: String,
    pub(super) topic: String,
    /// Partition of the topic of checkpoints.
    pub(super) state_partition: i32,
    pub(super) prefix: String,
    pub(super) epoch: i64,
    /// The claim of another process that followed ours, and since when it is known.
    pub(super) superseded: Option<Superseded>,
    /// Number of the last checkpoint that was written.
    pub(super) number: u64,
    /// Number of the last parts for judges that were written. Writing them may fail where the
    /// checkpoint itself is written. Their slots alternate by this number, so the last whole part
    /// stays.
    pub(super) judges_number: u64,
    /// Which epoch wrote each stretch of the journal, oldest first.
    pub(super) journal_epochs: Vec<JournalRange>,
    /// Journal pieces that are in the topic.
    pub(super) pieces: BTreeSet<JournalChunk>,
    /// Keys of earlier epochs, to be deleted once superseded.
    pub(super) old: Vec<String>,
    /// New journal pieces that are not in the topic.
    pub(super) unwritten: Vec<(JournalChunk, Vec<u8>)>,
    /// First journal segment that the last checkpoints need, newest last.
    pub(super) needed: VecDeque<u64>,
    /// How far the partition was at the last checkpoint.
    pub(super) written: Option<Progress>,
    /// When the last checkpoint was written, or read.
    pub(super) at_ms: Option<i64>,
}

/// A claim of another process to a partition that this one holds.
#[derive(Debug, Clone)]
pub struct Superseded {
    /// Who claims.
    pub by: String,
    /// Offset of the claim.
    pub offset: i64,
    /// When it was found.
    pub since: Instant,
}

/// How far a partition is, with the alerts of its streams and what was notified of them. A new
/// checkpoint is due if this differs from the last one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Progress {
    pub records: u64,
    /// Positions change without a record if a log ends in control records.
    pub positions: Vec<Origin>,
    /// Set where a log was found to be shorter than what was read of it.
    pub truncated_at: Vec<Option<i64>>,
    pub sealed_until_ms: Vec<i64>,
    pub idle: bool,
    pub alerts: Vec<(Alert, Option<String>)>,
}

impl Progress {
    /// How far a shard is, and the alerts of its streams.
    pub fn new(shard: ShardView<'_>, verdicts: &[VerdictState]) -> Progress {
        let alerts = verdicts.iter().map(|v| (v.alert, v.notified.clone()));
        Progress {
            records: shard.counters().total().records,
            positions: shard.partitions().positions().collect(),
            truncated_at: (shard.partitions().states())
                .map(|p| p.truncated_at)
                .collect(),
            sealed_until_ms: shard.sealed_until_ms(),
            idle: shard.partitions().are_idle(),
            alerts: alerts.collect(),
        }
    }
}

impl CheckpointCursor {
    /// Takes note of a claim in the topic of state; returns whether it is new and supersedes ours.
    pub(super) fn claimed(&mut self, key: &str, offset: i64, by: &str) -> bool {
        let known = self.superseded.as_ref().map_or(self.epoch, |s| s.offset);
        let newer = offset > known && key == checkpoint::claim_key(&self.prefix);
        if newer {
            let since = self.superseded.as_ref().map(|s| s.since);
            let since = since.unwrap_or_else(Instant::now);
            let by = by.to_owned();
            self.superseded = Some(Superseded { by, offset, since });
        }
        newer
    }

    /// Continues the journal of a checkpoint.
    pub(super) fn resume(&mut self, found: &FoundCheckpoint) {
        self.journal_epochs.clone_from(&found.checkpoint.epochs);
        let joins = found.checkpoint.snapshot.joins.iter();
        let marks = joins.flat_map(|j| &j.marks);
        let end = marks.last().map_or((0, 0), |m| (m.segment, m.len));
        // What others wrote from there on does not belong to this checkpoint.
        self.journal_epochs.retain(|s| (s.segment, s.offset) < end);
        self.journal_epochs.push(JournalRange {
            segment: end.0,
            offset: end.1,
            epoch: self.epoch,
        });
    }

    /// Starts a new journal: what others wrote of one is not part of it.
    pub(super) fn begin_journal(&mut self) {
        self.journal_epochs = vec![JournalRange {
            segment: 0,
            offset: 0,
            epoch: self.epoch,
        }];
    }

    /// Forgets stretches of the journal that neither this checkpoint nor the previous ones need.
    pub(super) fn prune(&mut self, needs: u64) {
        let first = self.needed.iter().copied().fold(needs, u64::min);
        let over = |pair: &[JournalRange]| (pair[1].segment, pair[1].offset) <= (first, 0);
        while self.journal_epochs.windows(2).next().is_some_and(over) {
            self.journal_epochs.remove(0);
        }
    }

    /// Bytes that wait to be written.
    pub(super) fn unwritten(&self) -> usize {
        self.unwritten.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// Pieces and keys that no whole checkpoint needs.
    pub(super) fn drops(&mut self) -> Vec<String> {
        if self.needed.len() < WHOLE {
            return Vec::new();
        }
        let first = self.needed.iter().min().copied().unwrap_or(0);
        let epochs = &self.journal_epochs;
        let unneeded = |&(segment, offset, epoch): &JournalChunk| {
            segment < first || checkpoint::epoch_at(epochs, segment, offset) != Some(epoch)
        };
        let gone: Vec<JournalChunk> = self.pieces.iter().copied().filter(unneeded).collect();
        let mut keys = std::mem::take(&mut self.old);
        for piece in gone {
            self.pieces.remove(&piece);
            keys.push(checkpoint::journal_key(&self.prefix, piece));
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(segment: u64, offset: u64, epoch: i64) -> JournalRange {
        JournalRange {
            segment,
            offset,
            epoch,
        }
    }

    #[test]
    fn pieces_of_the_journal_go_when_neither_of_the_last_two_checkpoints_needs_them() {
        let mut cursor = CheckpointCursor {
            epoch: 9,
            journal_epochs: vec![stretch(0, 0, 5), stretch(0, 6, 9)],
            // The one at (0, 6) of epoch 5 was written by the dead behind its last checkpoint.
            pieces: [(0, 0, 5), (0, 3, 5), (0, 6, 5), (0, 6, 9), (1, 0, 9)].into(),
            old: vec!["5/head/0".to_owned()],
            ..CheckpointCursor::default()
        };
        cursor.needed.push_back(0);
        assert!(
            cursor.drops().is_empty(),
            "the giver's checkpoint may be needed"
        );
        cursor.needed.push_back(0);
        assert_eq!(cursor.drops(), ["5/head/0", "5/journal/0/6"]);
        // The next checkpoint needs nothing of the first segment; the previous one still does.
        cursor.prune(1);
        assert_eq!(cursor.journal_epochs.len(), 2);
        cursor.needed = [0, 1].into();
        assert!(cursor.drops().is_empty());
        cursor.needed = [1, 1].into();
        let gone = ["5/journal/0/0", "5/journal/0/3", "9/journal/0/6"];
        assert_eq!(cursor.drops(), gone);
        cursor.prune(1);
        assert_eq!(cursor.journal_epochs, [stretch(0, 6, 9)]);
        assert_eq!(cursor.pieces.iter().collect::<Vec<_>>(), [&(1, 0, 9)]);
    }

    #[test]
    fn a_claim_after_ours_supersedes_it_and_one_before_or_of_another_partition_does_not() {
        let mut cursor = CheckpointCursor {
            prefix: "g/t/3/".to_owned(),
            epoch: 9,
            ..CheckpointCursor::default()
        };
        assert!(!cursor.claimed("g/t/3/claim", 8, "old"));
        assert!(!cursor.claimed("g/t/33/claim", 12, "other"));
        assert!(cursor.superseded.is_none());
        assert!(cursor.claimed("g/t/3/claim", 12, "stray"));
        let since = cursor.superseded.as_ref().map(|s| s.since);
        assert!(!cursor.claimed("g/t/3/claim", 12, "stray"));
        // Of several claims the last one counts, and the time of the first.
        assert!(cursor.claimed("g/t/3/claim", 20, "again"));
        let now = cursor.superseded.as_ref().map(|s| (s.by.as_str(), s.since));
        assert_eq!(now, since.map(|since| ("again", since)));
    }

    #[test]
    fn a_taker_continues_the_journal_where_the_checkpoint_ends() {
        use crate::collect::join::{GivenUp, JoinState, JournalMark};
        let mut cursor = CheckpointCursor {
            epoch: 20,
            ..CheckpointCursor::default()
        };
        let mut found = FoundCheckpoint::default();
        found.checkpoint.epochs = vec![stretch(0, 0, 5), stretch(2, 10, 9)];
        let mark = |segment, len| JournalMark {
            segment,
            len,
            crc: 0,
            until_ms: 0,
        };
        found.checkpoint.snapshot.joins = vec![JoinState {
            given_up: GivenUp::default(),
            join: 0,
            partition: 3,
            predictions: 0,
            outcomes: 1,
            ids: false,
            marks: vec![mark(1, 100), mark(2, 30)],
        }];
        cursor.resume(&found);
        let all = [stretch(0, 0, 5), stretch(2, 10, 9), stretch(2, 30, 20)];
        assert_eq!(cursor.journal_epochs, all);
    }
}
