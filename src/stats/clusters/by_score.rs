//! Clusters that nothing names: the events of one score.
//!
//! Where a continuous model repeats its scores and outcomes of one score agree, those events are no
//! independent ones: an event that is counted twice, a user who is scored again. They lie in one finest
//! cell, so a union of finest cells is a union of such clusters, and the sums of a window give the sums by
//! bucket: each finest cell is in one, by a hash of its index. All that is said of named clusters then
//! holds, as long as dependence does not reach over scores.
//!
//! The price: an error of single scores looks the same as dependence within them and is not found. Models
//! of few distinct scores are tested value by value instead.

use super::sums::{Bucket, ClusterCell, ClusterSums, LEVEL_MAX};
use crate::columns::LevelCell;
use crate::fixed::{ONE, to_fixed};
use crate::levels::Level;
use crate::ln::ln;
use crate::repeats::RepeatedScores;

/// Occupied cells below which buckets would hold too few of them to be alike.
const CELLS_MIN: usize = 128;

/// The sums of buckets of whole finest cells, where events of one score count as a cluster; `None` where
/// they need not. `level` is that of the grid.
pub fn by_score(finest: &Level, level: u32, repeated: &RepeatedScores) -> Option<ClusterSums> {
    let clustered = finest.occupied.len() >= CELLS_MIN && repeated.are_clusters(agreement(finest)?);
    let up = level.saturating_sub(LEVEL_MAX);
    let row = |c: LevelCell| {
        const CLIP: f64 = 1.0 / ONE as f64;
        let mean = (c.z / c.count).clamp(CLIP, 1.0 - CLIP);
        let cell = ClusterCell {
            n: c.count as u64,
            y: c.y as u64,
            z: to_fixed(c.z) as u64,
        };
        let terms = [c.u * ln(mean), -c.u * ln(1.0 - mean)].map(to_fixed);
        (
            Bucket::of(&c.index.to_le_bytes()),
            (c.index >> up) as usize,
            cell,
            terms,
        )
    };
    let rows = finest.occupied.iter().map(row);
    clustered
        .then(|| ClusterSums::of_cells(rows).ok())
        .flatten()
}

/// Σ [(ΣU)² − ΣU²] over cells, in standard deviations of independent outcomes.
fn agreement(level: &Level) -> Option<f64> {
    let cells = level.occupied.iter();
    let (d, variance) = cells.fold((0.0, 0.0), |(d, variance), c| {
        (d + c.u * c.u - c.u2, variance + 2.0 * (c.v * c.v - c.v2))
    });
    (variance > 0.0).then(|| d / variance.sqrt())
}
