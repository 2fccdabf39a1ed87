//! Selects what of a shard is written to the topic of checkpoints, and writes it in batches.

use super::checkpoint_records::{self, CheckpointRecords, MADE_AGAIN, OffsetFloors, begins_again};
use super::cursor::{CheckpointCursor, Progress, WHOLE};
use super::foreign::{self, SeenClaim};
use super::judge_topic::JudgeTopicWriter;
use crate::collect::{Origin, PartitionId};
use crate::kafka::WriteState;
use crate::monitor::{LocalShard, VerdictState};
use crate::store::checkpoint::{CHUNK_BYTES, PartitionCheckpoint, claim_key};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A shard on its way to the topic.
pub(super) struct Outgoing {
    pub(super) at: PartitionId,
    pub(super) records: CheckpointRecords,
    pub(super) positions: Vec<Origin>,
    pub(super) progress: Progress,
    /// First journal segment that the checkpoint needs.
    pub(super) needs: u64,
    /// Number of the delta that follows the last one in the checkpoint.
    pub(super) deltas_until: u64,
    /// Number of its parts for judges.
    pub(super) judges_number: u64,
}

impl Outgoing {
    /// Records in the cursor that the checkpoint is in the topic, so that the next one uses the
    /// other slot.
    pub(super) fn stored(&self, cursor: &mut CheckpointCursor, at_ms: i64) {
        cursor.number = self.records.number;
        let pieces = self.records.pieces.iter();
        cursor.pieces.extend(pieces.map(|(piece, _)| *piece));
        cursor.needed.push_back(self.needs);
        if cursor.needed.len() > WHOLE {
            cursor.needed.pop_front();
        }
        cursor.at_ms = Some(at_ms);
    }
}

/// Shards to be written.
pub(super) struct Batch {
    pub(super) shards: Vec<Outgoing>,
    /// By partition of the topic, the earliest claim among the shards held here.
    pub(super) epochs: BTreeMap<i32, i64>,
}

/// What became of a batch.
pub(super) struct Answer {
    pub(super) sent: Vec<Outgoing>,
    pub(super) result: Result<(), String>,
    /// The checkpoints are in the topic, even if a later part failed.
    pub(super) stored: bool,
    pub(super) took: Duration,
    pub(super) bytes: u64,
    /// Claims of other processes among our records.
    pub(super) claims: Vec<SeenClaim>,
}

/// A shard as it is now; `None` if nothing has changed since it was last written, or if its store
/// of pending predictions failed.
pub(super) fn outgoing(
    shard: &mut LocalShard,
    cursor: &mut CheckpointCursor,
    verdicts: &[VerdictState],
) -> Option<Outgoing> {
    let progress = Progress::new(shard.view(), verdicts);
    if cursor.written.as_ref() == Some(&progress) || shard.view().fault().is_some() {
        return None;
    }
    let journals = shard.take_journals();
    let deltas = shard.delta_batch();
    let snapshot = shard.snapshot();
    for delta in journals {
        let mut offset = delta.offset;
        for bytes in delta.bytes.chunks(CHUNK_BYTES) {
            let piece = (delta.segment, offset, cursor.epoch);
            cursor.unwritten.push((piece, bytes.to_vec()));
            offset += bytes.len() as u64;
        }
    }
    let mut marks = snapshot.joins.iter().flat_map(|j| &j.marks);
    let needs = marks.next().map_or(0, |m| m.segment);
    cursor.prune(needs);
    Some(Outgoing {
        at: shard.at,
        positions: shard.view().partitions().positions().collect(),
        deltas_until: deltas.as_ref().map_or(0, |d| d.next),
        records: CheckpointRecords {
            state_partition: cursor.state_partition,
            prefix: cursor.prefix.clone(),
            epoch: cursor.epoch,
            number: cursor.number + 1,
            checkpoint: PartitionCheckpoint {
                snapshot,
                verdicts: verdicts.to_vec(),
                epochs: cursor.journal_epochs.clone(),
                deltas,
            },
            drops: cursor.drops(),
            pieces: std::mem::take(&mut cursor.unwritten),
        },
        progress,
        needs,
        judges_number: cursor.judges_number + 1,
    })
}

/// Writes batches, and finds the claims of others between them.
pub(super) struct BatchWriter {
    pub(super) writer: Arc<dyn WriteState>,
    pub(super) foreign: foreign::ForeignClaims,
    /// Writer to the topic of judges, if several judges share the models.
    pub(super) judges: Option<JudgeTopicWriter>,
    pub(super) known: OffsetFloors,
    /// The topic was deleted and recreated since a partition was claimed. The journals that
    /// checkpoints need are gone, so none is written.
    pub(super) made_again: bool,
}

impl BatchWriter {
    /// Writes a batch. The shares of judges are written only after the checkpoint itself is in the
    /// topic, and if no later claim came before it. So judges never know more of a partition than
    /// the process that takes it over.
    pub(super) fn write(&mut self, batch: Batch) -> Answer {
        let start = Instant::now();
        let mut offsets = BTreeMap::new();
        let records = batch.shards.iter().map(|o| &o.records);
        for c in records.clone() {
            let known = self.known.entry(c.state_partition).or_insert(c.epoch);
            *known = c.epoch.max(*known);
        }
        let writer = self.writer.as_ref();
        let mut written = match self.made_again {
            true => Err(MADE_AGAIN.to_owned()),
            false => checkpoint_records::write(writer, records, &mut offsets, &self.known),
        };
        self.made_again |= begins_again(&self.known, &offsets);
        for (state_partition, written) in &offsets {
            let known = self.known.entry(*state_partition).or_insert(-1);
            *known = written.iter().copied().fold(*known, i64::max);
        }
        let stored = written.is_ok();
        let claims = match stored {
            true => self.foreign.find(&batch.epochs, offsets),
            false => Vec::new(),
        };
        if let (Ok(sent), Some(judges)) = (&mut written, &mut self.judges) {
            let counts = |(o, head): &(&Outgoing, i64)| {
                let key = claim_key(&o.records.prefix);
                let mut later = claims.iter().filter(|c| c.key == key);
                !later.any(|c| (o.records.epoch + 1..*head).contains(&c.offset))
            };
            let current = batch.shards.iter().zip(sent.heads.iter().copied());
            let current = current
                .filter(counts)
                .map(|(o, _)| (&o.records, o.judges_number));
            match judges.write(current) {
                Ok(bytes) => sent.bytes += bytes,
                Err(why) => written = Err(why),
            }
        }
        Answer {
            result: written.as_ref().map(|_| ()).map_err(Clone::clone),
            bytes: written.map_or(0, |sent| sent.bytes),
            sent: batch.shards,
            stored,
            claims,
            took: start.elapsed(),
        }
    }
}
