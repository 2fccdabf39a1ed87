//! Spreads the checkpoint of a partition over several judges, by model.
//!
//! If the work is too much for one judge, the models are divided among *judge partitions* by a hash
//! of their names. From every checkpoint, a judge receives the share for the models of its judge
//! partitions: their deltas with their numbers, their windows, and how far the whole partition has
//! come. So every judge knows the watermark of all partitions, and judges its models as one judge
//! of everything would, to the bit.
//!
//! ```text
//!   checkpoint of partition 0 ─┬─► share 0 ─┐
//!                              └─► share 1 ─┼─┐
//!   checkpoint of partition 1 ─┬─► share 0 ─┘ │   judge partition 0: models a, c
//!                              └─► share 1 ───┘   judge partition 1: models b, d
//! ```
//!
//! The division is by model and not by stream, because roll-ups, comparisons of versions and the
//! alert of a model need all streams of the model in one place. The cost: one process judges a
//! model, however many segments it has.

use super::delta_log::DeltaBatch;
use super::snapshot::{ComparedState, Snapshot, StreamState, VectorViewState, VersionState};
use crate::collect::{PairingState, VectorPanesState};
use std::collections::BTreeSet;

/// What a checkpoint says to the judge of one judge partition.
pub type JudgeShare = (Snapshot, Option<DeltaBatch>);

/// The judge partition of a model among `partitions`: CRC-32 of its name; no release may change
/// this.
pub fn judge_partition(model: &str, partitions: i32) -> i32 {
    let hash = crc32fast::hash(model.as_bytes());
    (hash % partitions.max(1).unsigned_abs()).cast_signed()
}

/// The shares of a checkpoint, one for each of `partitions` judge partitions.
pub fn shares(
    snapshot: &Snapshot,
    deltas: Option<&DeltaBatch>,
    partitions: i32,
) -> Vec<JudgeShare> {
    let n = usize::try_from(partitions.max(1)).unwrap_or(1);
    let mut all: Vec<JudgeShare> = (0..n)
        .map(|_| (progress(snapshot), deltas.map(DeltaBatch::without_deltas)))
        .collect();
    let home = |model: &str| usize::try_from(judge_partition(model, partitions)).unwrap_or(0);
    for stream in &snapshot.streams {
        let (share, _) = &mut all[home(&stream.name)];
        share.streams.push(sealed_stream(stream));
    }
    for version in &snapshot.vectors {
        let (share, _) = &mut all[home(&version.name)];
        share.vectors.push(sealed_version(version));
    }
    for compared in &snapshot.compared {
        for (i, (share, _)) in all.iter_mut().enumerate() {
            let here = compared.comparisons.iter();
            let here = here.filter(|c| home(c.model()) == i).cloned();
            share.compared.push(ComparedState {
                model: compared.model,
                pairing: PairingState::default(),
                comparisons: here.collect(),
            });
        }
    }
    let Some(deltas) = deltas else { return all };
    for (number, delta) in &deltas.deltas {
        if let (_, Some(share)) = &mut all[home(delta.model())] {
            share.deltas.push((*number, delta.clone()));
        }
    }
    for (share, theirs) in &mut all {
        let Some(theirs) = theirs else { continue };
        let here: BTreeSet<u32> = share.streams.iter().filter_map(|s| s.slot).collect();
        let pending = deltas
            .pending
            .iter()
            .filter(|(slot, _)| here.contains(slot));
        theirs.pending = pending.copied().collect();
    }
    all
}

/// How far the partition has come, without its streams.
fn progress(snapshot: &Snapshot) -> Snapshot {
    Snapshot {
        topics: snapshot.topics.clone(),
        partitions: snapshot.partitions.clone(),
        models: snapshot.models.clone(),
        ..Snapshot::default()
    }
}

/// A stream without its unsealed panes: judges do not see these.
fn sealed_stream(stream: &StreamState) -> StreamState {
    StreamState {
        model: stream.model,
        name: stream.name.clone(),
        version: stream.version.clone(),
        segment: stream.segment.clone(),
        newest_ms: stream.newest_ms,
        late: stream.late,
        slot: stream.slot,
        open: Vec::new(),
        late_outcomes: Vec::new(),
        pending: stream.pending.clone(),
        judges: stream.judges.clone(),
    }
}

/// A version with vector views, without its unsealed panes.
fn sealed_version(version: &VersionState) -> VersionState {
    let view = |v: &VectorViewState| VectorViewState {
        view: v.view.clone(),
        open: VectorPanesState::default(),
        pending: v.pending.clone(),
        judge: v.judge.clone(),
    };
    VersionState {
        views: version.views.iter().map(view).collect(),
        ..version.names_only()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_stays_where_it_is_and_models_spread_evenly() {
        // Shares that other processes have written depend on these.
        let homes = ["fraud", "credit", "ads", ""].map(|model| judge_partition(model, 64));
        assert_eq!(homes, [2, 62, 32, 0]);
        let mut counts = [0_u32; 16];
        for i in 0..16_000 {
            counts[judge_partition(&format!("model-{i}"), 16) as usize] += 1;
        }
        // Of a fair spread each is within 5 standard errors (31) of 1,000.
        assert!(
            counts.iter().all(|&n| n.abs_diff(1_000) < 155),
            "{counts:?}"
        );
    }
}
