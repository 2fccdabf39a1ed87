//! The grid of a record.

use crate::stats::axis::{Axis, Grid};
use serde::{Deserialize, Serialize};

/// An exact description of the grid.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Cells {
    level: u32,
    /// Clips of a logit axis; `None` for a linear one.
    clips: Option<(f64, f64)>,
    /// Whether events are clustered.
    #[serde(default)]
    clustered: bool,
    /// Whether events are weighted.
    #[serde(default)]
    weighted: bool,
}

impl Cells {
    pub(super) fn of(grid: Grid) -> Cells {
        Cells {
            level: grid.level(),
            clips: match grid.axis() {
                Axis::Linear => None,
                Axis::Logit { low, high } => Some((low, high)),
            },
            clustered: grid.is_clustered(),
            weighted: grid.is_weighted(),
        }
    }

    /// The grid; `None` if the numbers describe none.
    pub(super) fn grid(&self) -> Option<Grid> {
        let level = (1..=crate::stats::axis::LEVEL_MAX).contains(&self.level);
        let axis = match self.clips {
            None => Axis::Linear,
            Some((low, high)) if 0.0 < low && low < high && high < 1.0 => Axis::Logit { low, high },
            Some(_) => return None,
        };
        let grid = level.then(|| Grid::new(axis, self.level))?;
        Some(match (self.clustered, self.weighted) {
            (true, _) => grid.clustered(),
            (false, true) => grid.weighted(),
            (false, false) => grid,
        })
    }
}
