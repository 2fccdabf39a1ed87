//! The deltas of one partition on their way to a judge in another process.
//!
//! A checkpoint holds the windows of its partition, which are sums over slides. They are enough to
//! resume from, but not to judge every slide between two checkpoints. If another process judges, a
//! checkpoint therefore also carries, in order, the deltas since the checkpoint before. The deltas
//! of a partition are numbered from its beginning; a [`DeltaBatch`] says with which number it
//! begins. A judge that has read up to a number continues there, and notices when deltas are
//! missing.
//!
//! A process that takes a partition over continues with the numbers of the checkpoint that it found
//! ([`DeltaBatch::origins`]). It reads the records after that checkpoint again, so it makes the
//! same deltas as the previous process. It also sends the deltas of that checkpoint again. If
//! deltas are spread over several judges ([`super::repartition`]), the previous process may have
//! died after it wrote its checkpoint and before the judges got their shares.
//!
//! A judge may not know that checkpoint, if its writer had lost the partition by then. So a batch
//! also names the earlier checkpoints from which claimants resumed.
//!
//! A process that judges itself writes checkpoints without deltas. A process that takes over such a
//! partition numbers its deltas from one, so that a judge that has read nothing of it begins with
//! its windows.
//!
//! A [`DeltaLog`] keeps deltas until the checkpoint that carries them is stored, and then for a
//! while, up to [`KEPT_BYTES`], so that a judge may miss checkpoints that the broker compacted away
//! and still find every delta.
//!
//! A log has [room](DeltaLog::is_full) for as many bytes as the windows of its partition take, so
//! that its checkpoint at most doubles. Half full, it asks for a checkpoint; full, it asks to stop
//! reading. What was read by then may still seal many panes of each stream, for example after a gap
//! in event time. If a checkpoint with them could not be written, a log that is longer by
//! [`OVERRUN_BYTES`] is cut: the judge then resumes from the windows and counts the slides that it
//! skipped.

use super::delta::Delta;
use crate::stats::stored::checked;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Stored deltas are kept as long as all deltas take no more than this.
const KEPT_BYTES: usize = 64 << 10;

/// Least room for the deltas of a partition that wait for the broker.
const UNSENT_BYTES: usize = 16 << 20;

/// Deltas beyond its room at which a log is cut once they could not be written.
const OVERRUN_BYTES: usize = 64 << 20;

/// Most earlier checkpoints that a batch names: as many takeovers in a row may pass before a judge
/// reads one.
const ORIGINS_MAX: usize = 8;

/// A place in the deltas of a partition, as one claimant of the partition numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPosition {
    /// Epoch of the claimant.
    pub epoch: i64,
    /// Number of the next delta.
    pub next: u64,
}

impl LogPosition {
    /// A place after which no batch continues: its reader takes windows in place of deltas.
    pub const NOWHERE: LogPosition = LogPosition {
        epoch: i64::MIN,
        next: u64::MAX,
    };
}

/// Deltas in a checkpoint. See the module.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DeltaBatch {
    /// The checkpoint from which this claimant resumed, then the one from which its predecessor
    /// resumed, and so on; empty if there was none, or none with deltas.
    pub origins: Vec<LogPosition>,
    /// Number of the first delta that may be here: none after it is missing.
    #[serde(deserialize_with = "checked")]
    pub from: u64,
    /// Number of the delta that comes next.
    #[serde(deserialize_with = "checked")]
    pub next: u64,
    /// Deltas with their numbers, in order. The batch of one judge partition lacks the deltas of
    /// other models.
    pub deltas: Vec<(u64, Delta)>,
    /// Predictions that wait for outcomes, by slot of their stream.
    #[serde(deserialize_with = "checked")]
    pub pending: Vec<(u32, u64)>,
    /// When the oldest of them are mature, by model of the snapshot.
    #[serde(deserialize_with = "checked")]
    pub due_ms: Vec<Option<i64>>,
}

impl DeltaBatch {
    /// This batch without deltas, and without pending predictions.
    pub fn without_deltas(&self) -> DeltaBatch {
        DeltaBatch {
            deltas: Vec::new(),
            pending: Vec::new(),
            origins: self.origins.clone(),
            due_ms: self.due_ms.clone(),
            ..*self
        }
    }

    /// The number from which a reader that has read up to `read` continues; `None` if deltas in
    /// between are missing. `epoch` is the checkpoint's. A reader that has read nothing misses
    /// nothing of a batch that starts at the beginning.
    pub fn resumes(&self, epoch: i64, read: Option<LogPosition>) -> Option<u64> {
        let next = match read {
            None => 0,
            Some(read) if read.epoch == epoch => read.next,
            Some(read) => {
                // Deltas up to an earlier checkpoint are the same in every process.
                let has = |o: &LogPosition| read.epoch == o.epoch && read.next <= o.next;
                self.origins.iter().any(has).then_some(read.next)?
            }
        };
        (self.from..=self.next).contains(&next).then_some(next)
    }
}

/// Deltas that a judge elsewhere may not have yet. See the module.
#[derive(Debug)]
pub struct DeltaLog {
    origins: Vec<LogPosition>,
    /// Number of the first delta.
    from: u64,
    deltas: VecDeque<Delta>,
    bytes: usize,
    /// Deltas before this number are stored.
    stored: u64,
    /// Bytes that it may take.
    room: usize,
    /// Whether the last checkpoint with its deltas was not written.
    failed: bool,
    /// Deltas that were cut before they were stored.
    cut: u64,
}

impl Default for DeltaLog {
    fn default() -> DeltaLog {
        DeltaLog {
            origins: Vec::new(),
            from: 0,
            deltas: VecDeque::new(),
            bytes: 0,
            stored: 0,
            room: UNSENT_BYTES,
            failed: false,
            cut: 0,
        }
    }
}

impl DeltaLog {
    /// The log of a partition that resumes from a checkpoint without deltas. A reader that has read
    /// nothing lacks what the checkpoint holds, so the log does not begin at number 0.
    pub fn after_windows() -> DeltaLog {
        DeltaLog {
            from: 1,
            stored: 1,
            ..DeltaLog::default()
        }
    }

    /// The log of a partition that resumes from the checkpoint of this epoch, which has these
    /// deltas, and windows of `windows_bytes` bytes.
    pub fn resume(epoch: i64, found: DeltaBatch, windows_bytes: usize) -> DeltaLog {
        let next = found.next;
        let mut origins = vec![LogPosition { epoch, next }];
        origins.extend(found.origins.into_iter().take(ORIGINS_MAX - 1));
        let mut log = DeltaLog {
            origins,
            from: found.from,
            // A judge may not have them yet.
            stored: found.from,
            ..DeltaLog::default()
        };
        let deltas = found.deltas.into_iter().map(|(_, delta)| delta);
        log.extend(deltas, || windows_bytes);
        log
    }

    /// Takes deltas, in order; `windows_bytes` returns the bytes that the partition's windows take.
    pub fn extend(
        &mut self,
        deltas: impl IntoIterator<Item = Delta>,
        windows_bytes: impl FnOnce() -> usize,
    ) {
        let before = self.bytes;
        for mut delta in deltas {
            delta.pack();
            self.bytes += delta.bytes();
            self.deltas.push_back(delta);
        }
        if self.bytes > before && self.is_due() {
            self.room = UNSENT_BYTES.max(windows_bytes());
        }
        self.trim();
    }

    /// Whether the next checkpoint is due at once.
    pub fn is_due(&self) -> bool {
        self.bytes > self.room / 2
    }

    /// Whether nothing more may be read until a checkpoint is stored.
    pub fn is_full(&self) -> bool {
        self.bytes > self.room
    }

    /// How many deltas, which no checkpoint has, were cut since the last call.
    pub fn take_cut(&mut self) -> u64 {
        std::mem::take(&mut self.cut)
    }

    fn trim(&mut self) {
        while let Some(oldest) = self.deltas.front() {
            let stored = self.from < self.stored;
            let most = match stored {
                true => KEPT_BYTES,
                false if self.failed => self.room + OVERRUN_BYTES,
                // Nothing more is read while it is full.
                false => break,
            };
            if self.bytes <= most {
                break;
            }
            self.bytes -= oldest.bytes();
            self.deltas.pop_front();
            self.from += 1;
            self.cut += u64::from(!stored);
        }
    }

    /// The deltas for a checkpoint.
    pub fn batch(&self, pending: Vec<(u32, u64)>, due_ms: Vec<Option<i64>>) -> DeltaBatch {
        DeltaBatch {
            origins: self.origins.clone(),
            from: self.from,
            next: self.from + self.deltas.len() as u64,
            deltas: (self.from..).zip(self.deltas.iter().cloned()).collect(),
            pending,
            due_ms,
        }
    }

    /// Notes that the deltas before `next` are stored.
    pub fn stored_until(&mut self, next: u64) {
        self.stored = self.stored.max(next);
        self.failed = false;
        self.trim();
    }

    /// Notes that deltas that were handed over could not be stored.
    pub fn not_stored(&mut self) {
        self.failed = true;
        self.trim();
    }

    /// Heap bytes held, approximately.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::Key;

    /// Bytes of each delta here.
    const EACH: usize = 128;

    fn delta() -> Delta {
        Delta::Correction {
            key: Key::new("", "", ""),
            start_ms: 0,
            views: Vec::new(),
        }
    }

    /// Adds `bytes` bytes of deltas, of a partition whose windows take `windows_bytes`.
    fn extend(log: &mut DeltaLog, bytes: usize, windows_bytes: usize) {
        let deltas = std::iter::repeat_with(delta).take(bytes.div_ceil(EACH));
        log.extend(deltas, || windows_bytes);
    }

    fn batch(origins: &[LogPosition], from: u64, n: u64) -> DeltaBatch {
        DeltaBatch {
            origins: origins.to_vec(),
            from,
            next: from + n,
            deltas: (from..from + n).map(|i| (i, delta())).collect(),
            ..DeltaBatch::default()
        }
    }

    fn position(epoch: i64, next: u64) -> LogPosition {
        LogPosition { epoch, next }
    }

    fn resumes(batch: &DeltaBatch, read: LogPosition) -> Option<u64> {
        batch.resumes(7, Some(read))
    }

    #[test]
    fn a_reader_continues_after_the_last_delta_that_it_has_or_learns_that_some_are_missing() {
        let own = batch(&[], 10, 5);
        for read in [10, 12, 15] {
            assert_eq!(resumes(&own, position(7, read)), Some(read));
        }
        // Deltas are gone that were never read, or the checkpoint is older than what was read.
        assert_eq!(resumes(&own, position(7, 9)), None);
        assert_eq!(resumes(&own, position(7, 16)), None);
        // Of another claimant, only what this one began with is known.
        assert_eq!(resumes(&own, position(6, 12)), None);
        let taken = batch(&[position(6, 12)], 11, 4);
        assert_eq!(resumes(&taken, position(6, 12)), Some(12));
        assert_eq!(resumes(&taken, position(6, 11)), Some(11));
        assert_eq!(resumes(&taken, position(6, 10)), None);
        assert_eq!(resumes(&taken, position(6, 13)), None);
        assert_eq!(resumes(&taken, position(5, 12)), None);
        // Nothing was read: all must be there.
        assert_eq!(batch(&[], 0, 4).resumes(7, None), Some(0));
        assert_eq!(own.resumes(7, None), None);
        assert_eq!(taken.resumes(7, None), None);
    }

    #[test]
    fn deltas_that_follow_windows_are_of_no_use_to_who_has_read_nothing() {
        let mut log = DeltaLog::after_windows();
        assert_eq!(log.batch(Vec::new(), Vec::new()).resumes(7, None), None);
        extend(&mut log, 1, 0);
        let first = log.batch(Vec::new(), Vec::new());
        assert_eq!(first.resumes(7, None), None);
        assert_eq!(resumes(&first, position(7, 1)), Some(1));
        // A reader that lacks something cannot use them either.
        for batch in [&first, &batch(&[position(5, 9)], 0, 4)] {
            assert_eq!(resumes(batch, LogPosition::NOWHERE), None);
        }
    }

    #[test]
    fn who_takes_over_sends_what_the_last_checkpoint_had_again_until_it_is_stored() {
        let found = batch(&[position(5, 11)], 10, 5);
        let mut log = DeltaLog::resume(6, found, 0);
        extend(&mut log, 1, 0);
        let first = log.batch(Vec::new(), Vec::new());
        assert_eq!(
            (&first.origins[..], first.from, first.next),
            (&[position(6, 15), position(5, 11)][..], 10, 16)
        );
        let numbers: Vec<u64> = first.deltas.iter().map(|d| d.0).collect();
        assert_eq!(numbers, [10, 11, 12, 13, 14, 15]);
        for read in [12, 15] {
            assert_eq!(resumes(&first, position(6, read)), Some(read));
        }
        // A judge has nothing of that checkpoint, and what its claimant began with.
        assert_eq!(resumes(&first, position(5, 11)), Some(11));
        assert_eq!(resumes(&first, position(5, 12)), None);
        let takeovers = (8..40).fold(first, |found, epoch| {
            DeltaLog::resume(epoch, found, 0).batch(Vec::new(), Vec::new())
        });
        assert_eq!(takeovers.origins.len(), ORIGINS_MAX);
    }

    #[test]
    fn a_log_asks_for_its_checkpoint_half_full_and_for_a_pause_when_full() {
        const MIB: usize = 1 << 20;
        assert_eq!(delta().bytes(), EACH);
        let mut log = DeltaLog::default();
        extend(&mut log, 8 * MIB, 0);
        assert!(!log.is_due());
        extend(&mut log, EACH, 0);
        assert!(log.is_due() && !log.is_full());
        let handed = log.batch(Vec::new(), Vec::new()).next;
        extend(&mut log, 8 * MIB + EACH, 0);
        assert!(log.is_full());
        log.stored_until(handed);
        assert!(log.is_due() && !log.is_full());
        // Larger windows give it more room.
        extend(&mut log, EACH, 20 * MIB);
        assert!(!log.is_due());
        assert_eq!(log.take_cut(), 0);
    }

    #[test]
    fn what_is_cut_before_it_is_stored_is_counted_once() {
        let mut log = DeltaLog::default();
        extend(&mut log, UNSENT_BYTES + OVERRUN_BYTES + EACH, 0);
        // One step may seal that much, and the broker is healthy.
        assert_eq!(log.take_cut(), 0);
        log.not_stored();
        assert_eq!(log.take_cut(), 1);
        extend(&mut log, 2 * EACH, 0);
        assert_eq!(log.take_cut(), 2);
        extend(&mut log, 3 * EACH, 0);
        assert_eq!((log.take_cut(), log.take_cut()), (3, 0));
        let batch = log.batch(Vec::new(), Vec::new());
        assert_eq!(batch.from, 6);
        // Deltas that go once they are stored were not cut.
        log.stored_until(batch.next);
        assert!(log.bytes() <= KEPT_BYTES);
        extend(&mut log, UNSENT_BYTES + OVERRUN_BYTES + EACH, 0);
        assert_eq!(log.take_cut(), 0);
    }
}
