//! What is written of a shard to the topic of checkpoints, and the writing of a batch.

use super::cursor::{CheckpointCursor, Progress};
use super::foreign::{self, SeenClaim};
use crate::collect::Origin;
use crate::kafka::WriteState;
use crate::monitor::delta_log::DeltaBatch;
use crate::monitor::{LocalShard, Shard, VerdictState};
use crate::store::checkpoint::{self, CHUNK_BYTES, JournalChunk, KeyedRecord, PartitionCheckpoint};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long one batch of checkpoints may take to be written before it is called failed.
const WRITE: Duration = Duration::from_secs(30);

/// A shard on its way to the topic.
pub(super) struct Outgoing {
    pub(super) source: u16,
    pub(super) partition: i32,
    pub(super) state_partition: i32,
    pub(super) prefix: String,
    pub(super) epoch: i64,
    pub(super) number: u64,
    pub(super) checkpoint: PartitionCheckpoint,
    pub(super) pieces: Vec<(JournalChunk, Vec<u8>)>,
    pub(super) drops: Vec<String>,
    pub(super) positions: Vec<Origin>,
    pub(super) progress: Progress,
    /// First journal segment that the checkpoint needs.
    pub(super) needs: u64,
    /// Number of the delta after the last one.
    pub(super) deltas_until: u64,
}

/// Shards to be written.
pub(super) struct Batch {
    pub(super) shards: Vec<Outgoing>,
    /// By partition of the topic, the first claim of a shard that is held here.
    pub(super) epochs: BTreeMap<i32, i64>,
}

/// What became of a batch.
pub(super) struct Answer {
    pub(super) sent: Vec<Outgoing>,
    pub(super) result: Result<(), String>,
    pub(super) took: Duration,
    pub(super) bytes: u64,
    /// Claims that others have written among our records.
    pub(super) claims: Vec<SeenClaim>,
}

/// How far a shard is.
pub(super) fn progress_of(shard: &Shard, verdicts: &[VerdictState]) -> Progress {
    let alerts = verdicts.iter().map(|v| (v.alert, v.notified.clone()));
    Progress {
        records: shard.counters().total().records,
        sealed_until_ms: shard.sealed_until_ms(),
        idle: shard.is_idle(),
        alerts: alerts.collect(),
    }
}

/// A shard as it is now; `None` where nothing happened since it was last written.
pub(super) fn outgoing(
    shard: &mut LocalShard,
    cursor: &mut CheckpointCursor,
    verdicts: &[VerdictState],
) -> Option<Outgoing> {
    let progress = progress_of(shard.shard(), verdicts);
    if cursor.written.as_ref() == Some(&progress) || shard.shard().fault().is_some() {
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
        source: shard.source,
        partition: shard.partition,
        state_partition: cursor.state_partition,
        prefix: cursor.prefix.clone(),
        epoch: cursor.epoch,
        number: cursor.number + 1,
        positions: shard.shard().positions(),
        deltas_until: deltas.as_ref().map_or(0, DeltaBatch::next),
        checkpoint: PartitionCheckpoint {
            snapshot,
            verdicts: verdicts.to_vec(),
            epochs: cursor.lineage.clone(),
            deltas,
        },
        drops: cursor.drops(),
        pieces: std::mem::take(&mut cursor.unwritten),
        progress,
        needs,
    })
}

/// Writes batches, and finds the claims of others between them.
pub(super) struct BatchWriter {
    pub(super) writer: Arc<dyn WriteState>,
    pub(super) foreign: foreign::ForeignClaims,
}

impl BatchWriter {
    /// Writes a batch: bodies and journals, then heads, then what is no longer needed goes.
    pub(super) fn write(&mut self, batch: Batch) -> Answer {
        let start = Instant::now();
        let mut offsets = BTreeMap::new();
        let written = try_write(self.writer.as_ref(), &batch.shards, &mut offsets);
        let claims = match written.is_ok() {
            true => self.foreign.find(&batch.epochs, offsets),
            false => Vec::new(),
        };
        Answer {
            result: written.as_ref().map(|_| ()).map_err(Clone::clone),
            bytes: written.unwrap_or(0),
            sent: batch.shards,
            claims,
            took: start.elapsed(),
        }
    }
}

/// By partition of the topic, the offsets of the records that were written.
type Offsets = BTreeMap<i32, Vec<i64>>;

fn try_write(
    writer: &dyn WriteState,
    sent: &[Outgoing],
    offsets: &mut Offsets,
) -> Result<u64, String> {
    let (mut bodies, mut heads, mut drops) = (Vec::new(), Vec::new(), Vec::new());
    for o in sent {
        for (piece, bytes) in &o.pieces {
            let key = checkpoint::journal_key(&o.prefix, *piece);
            bodies.push((o.state_partition, (key, Some(bytes.clone()))));
        }
        let (body, head) = checkpoint::records(&o.checkpoint, &o.prefix, o.epoch, o.number)?;
        bodies.extend(body.into_iter().map(|keyed| (o.state_partition, keyed)));
        heads.push((o.state_partition, head));
        drops.extend(
            o.drops
                .iter()
                .map(|key| (o.state_partition, (key.clone(), None))),
        );
    }
    let size = |(_, (key, value)): &(i32, KeyedRecord)| {
        (key.len() + value.as_ref().map_or(0, Vec::len)) as u64
    };
    let bytes = bodies.iter().chain(&heads).map(size).sum();
    put(writer, &bodies, offsets)?;
    put(writer, &heads, offsets)?;
    // What stays is in nobody's way.
    let _ = put(writer, &drops, offsets);
    Ok(bytes)
}

fn put(
    writer: &dyn WriteState,
    records: &[(i32, KeyedRecord)],
    offsets: &mut Offsets,
) -> Result<(), String> {
    let all: Vec<(i32, &KeyedRecord)> =
        records.iter().map(|(home, keyed)| (*home, keyed)).collect();
    let written = writer.put(&all, WRITE).map_err(|error| error.to_string())?;
    for ((home, _), offset) in records.iter().zip(written) {
        offsets.entry(*home).or_default().push(offset);
    }
    Ok(())
}
