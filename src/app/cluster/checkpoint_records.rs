//! Writes checkpoints as records of a topic: bodies and journals, then heads, then deletions.

use crate::kafka::WriteState;
use crate::store::checkpoint::{self, JournalChunk, KeyedRecord, PartitionCheckpoint};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long the broker may accept no record of a batch before the write counts as failed.
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
    /// Keys that no checkpoint needs.
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

/// By partition of the topic, an offset below all records to come.
pub(super) type OffsetFloors = BTreeMap<i32, i64>;

/// The message once the offsets of the topic start again.
pub(super) const MADE_AGAIN: &str = "the topic was deleted and recreated, and the earlier state is gone; this \
     process writes and commits nothing more: stop all processes and start over, with another `group` and `topic`";

/// Whether new records have offsets that earlier records had, because the topic was recreated.
pub(super) fn begins_again(known: &OffsetFloors, offsets: &Offsets) -> bool {
    offsets.iter().any(|(state_partition, written)| {
        let known = known.get(state_partition);
        known.is_some_and(|known| written.iter().any(|offset| (0..=*known).contains(offset)))
    })
}

/// Writes all records of these checkpoints, but no heads if the topic was recreated. After an
/// error, `offsets` still has the offsets of the records that were written.
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
    // The client does not know the offsets of records that it had to send twice: it gives -1 for
    // the first record of a batch and counts on from there.
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
