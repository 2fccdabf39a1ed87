//! Writes checkpoints as records of a topic: bodies and journals, then heads, then what goes.

use crate::kafka::WriteState;
use crate::store::checkpoint::{self, JournalChunk, KeyedRecord, PartitionCheckpoint};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long the broker may take no record of a batch before writing it is called failed.
const WRITE: Duration = Duration::from_secs(30);

/// A checkpoint on its way to a topic.
pub(super) struct CheckpointRecords {
    pub(super) state_partition: i32,
    pub(super) prefix: String,
    pub(super) epoch: i64,
    pub(super) number: u64,
    pub(super) checkpoint: PartitionCheckpoint,
    /// New pieces of its journal.
    pub(super) pieces: Vec<(JournalChunk, Vec<u8>)>,
    /// Keys that no checkpoint needs any more.
    pub(super) drops: Vec<String>,
}

/// By partition of the topic, the offsets of the records that were written.
pub(super) type Offsets = BTreeMap<i32, Vec<i64>>;

/// What was written.
#[derive(Debug, Default)]
pub(super) struct Sent {
    pub(super) bytes: u64,
    /// The offset of the head of each checkpoint.
    pub(super) heads: Vec<i64>,
}

/// By partition of the topic, an offset after which all of its next records lie.
pub(super) type OffsetFloors = BTreeMap<i32, i64>;

/// What is said once the offsets of the topic begin again.
pub(super) const MADE_AGAIN: &str = "the topic was deleted and recreated, and the earlier state is gone; this \
     process writes and commits nothing more: stop all processes and start over, with another `group` and `topic`";

/// Whether records lie where others lay before: the topic was made again.
pub(super) fn begins_again(known: &OffsetFloors, offsets: &Offsets) -> bool {
    offsets.iter().any(|(state_partition, written)| {
        let known = known.get(state_partition);
        known.is_some_and(|known| written.iter().any(|offset| (0..=*known).contains(offset)))
    })
}

/// Writes all records of these checkpoints, but no head into a topic that was made again; `offsets`
/// has those that were written also after an error.
pub(super) fn write<'c>(
    writer: &dyn WriteState,
    checkpoints: impl Iterator<Item = &'c CheckpointRecords>,
    offsets: &mut Offsets,
    known: &OffsetFloors,
) -> Result<Sent, String> {
    let (mut bodies, mut heads, mut drops) = (Vec::new(), Vec::new(), Vec::new());
    for c in checkpoints {
        for (piece, bytes) in &c.pieces {
            let key = checkpoint::journal_key(&c.prefix, *piece);
            bodies.push((c.state_partition, (key, Some(bytes.clone()))));
        }
        let (body, head) = checkpoint::records(&c.checkpoint, &c.prefix, c.epoch, c.number)?;
        bodies.extend(body.into_iter().map(|keyed| (c.state_partition, keyed)));
        heads.push((c.state_partition, head));
        let dropped = c.drops.iter();
        drops.extend(dropped.map(|key| (c.state_partition, (key.clone(), None))));
    }
    let size = |(_, (key, value)): &(i32, KeyedRecord)| {
        (key.len() + value.as_ref().map_or(0, Vec::len)) as u64
    };
    let bytes = bodies.iter().chain(&heads).map(size).sum();
    put(writer, &bodies, offsets)?;
    if begins_again(known, offsets) {
        return Err(MADE_AGAIN.to_owned());
    }
    let heads = put(writer, &heads, offsets)?;
    if !drops.is_empty() {
        put(writer, &drops, offsets)?;
    }
    Ok(Sent { bytes, heads })
}

fn put(
    writer: &dyn WriteState,
    records: &[(i32, KeyedRecord)],
    offsets: &mut Offsets,
) -> Result<Vec<i64>, String> {
    let all: Vec<(i32, &KeyedRecord)> = records.iter().map(|(p, keyed)| (*p, keyed)).collect();
    let written = writer.put(&all, WRITE, &|| {});
    let written = written.map_err(|error| error.to_string())?;
    // The client does not know the offsets of records that it had to send twice: it says -1 of the
    // first one of a batch, and counts on from there.
    let unknown = records.iter().zip(&written);
    let unknown = unknown.filter(|(_, offset)| **offset < 0);
    let unknown: BTreeSet<i32> = unknown.map(|((of, _), _)| *of).collect();
    for ((state_partition, _), offset) in records.iter().zip(&written) {
        if !unknown.contains(state_partition) {
            offsets.entry(*state_partition).or_default().push(*offset);
        }
    }
    Ok(written)
}
