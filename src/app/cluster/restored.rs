//! Makes a shard from its checkpoint.

use super::cursor::{CheckpointCursor, Progress};
use crate::app::candidates::caught;
use crate::app::clock;
use crate::app::dropped::report_dropped;
use crate::collect::PartitionId;
use crate::collect::join::{JoinState, JournalError, SpillBackend, SpillError};
use crate::monitor::{LocalShard, Plan, RestoreError, VerdictState};
use crate::store::FormatError;
use crate::store::reader::FoundCheckpoint;
use crate::telemetry::facts::CheckpointCounts;
use std::borrow::Cow;
use std::sync::Arc;

/// Where predictions that exceed memory go, and how many shards share the memory.
pub type Room = (Arc<dyn SpillBackend>, usize);

/// Why a shard could not be made from a checkpoint.
#[derive(Debug)]
pub(super) enum Unusable {
    /// The checkpoint is faulty.
    Checkpoint(String),
    /// The store of pending predictions failed.
    Store(SpillError),
}

/// Logs and counts the checkpoints that were refused in favour of an older one, and the records of
/// notifications that cannot be read.
pub(super) fn report_refused(found: &FoundCheckpoint, counts: &mut CheckpointCounts) {
    for (key, fault) in &found.refused {
        tracing::error!(%key, %fault, "checkpoint refused, using an older one");
    }
    for (key, fault) in &found.unreadable {
        tracing::error!(%key, %fault, "a record of a notification cannot be read; people may be notified again");
    }
    counts.refused += (found.refused.len() + found.unreadable.len()) as u64;
}

/// The reasons why no checkpoint can be used, as text.
pub(super) fn in_words(faults: &[(String, FormatError)]) -> String {
    let named = faults.iter().map(|(key, fault)| format!("{key}: {fault}"));
    named.collect::<Vec<_>>().join("; ")
}

/// The shard that a checkpoint holds.
pub(super) fn shard_of(
    at: PartitionId,
    found: FoundCheckpoint,
    topics: &[String],
    plan: &Plan,
    cursor: &mut CheckpointCursor,
    room: Option<Room>,
) -> Result<(LocalShard, Vec<VerdictState>), Unusable> {
    let (mut snapshot, mut verdicts) = (found.checkpoint.snapshot, found.checkpoint.verdicts);
    snapshot.rebind(topics);
    snapshot.carry_over_verdicts(plan, &mut verdicts);
    let joins = snapshot.joins.len();
    if joins > 1 {
        let why = format!("its checkpoint holds {joins} joins where a partition has one");
        return Err(Unusable::Checkpoint(why));
    }
    let segment = |_: &JoinState, mark: usize| {
        let bytes = found.segments.get(mark).ok_or(JournalError::Torn)?;
        Ok(Cow::Borrowed(bytes.as_slice()))
    };
    let restored = caught(|| LocalShard::restore(at, plan, snapshot, &segment, room));
    let shard = match restored.map_err(Unusable::Checkpoint)? {
        Ok(shard) => shard.after(found.epoch, found.checkpoint.deltas),
        Err(RestoreError::Spill(error)) => return Err(Unusable::Store(error)),
        Err(error) => return Err(Unusable::Checkpoint(error.to_string())),
    };
    report_dropped("checkpoint", shard.dropped().iter(), "");
    if !shard.view().has_journals() {
        cursor.begin_journal();
    }
    cursor.written = Some(Progress::new(shard.view(), &verdicts));
    cursor.at_ms = Some(clock::now_ms());
    Ok((shard, verdicts))
}
