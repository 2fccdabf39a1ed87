//! How many of a window's predictions have an outcome of their own, over all and by score.
//!
//! A calibrated model looks miscalibrated if mostly positive, or mostly negative, outcomes are
//! missing. No test on the labelled part can see that. So the share with an outcome is shown by
//! score, and a window below a configured floor has no verdict.

use crate::stats::levels::Level;
use crate::window::{COVERAGE_CELLS, Pane, Total, Unlabelled, Windows};

/// Whether so few predictions have an outcome that nothing can be said about them.
pub fn is_below(coverage_min: f64, labelled: u64, predictions: u64) -> bool {
    (labelled as f64) < coverage_min * predictions as f64
}

/// Whether so few predictions have outcomes that a window of them has no verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lacking {
    /// Whether this holds for the predictions before a pane.
    pub before: bool,
    /// Whether these predictions are enough for a verdict.
    pub enough: bool,
    /// Whether it holds for these and the pane's predictions together.
    pub with_pane: bool,
}

impl Lacking {
    /// From what the windows hold, and the pane that they take next. The window with the fewest
    /// predictions that are enough for a verdict counts, because it says most about the present; if
    /// none has enough, the one with the most.
    pub fn of(windows: &Windows, pane: &Pane, min_events: u64, coverage_min: f64) -> Lacking {
        let rank = |(labelled, missing): &(u64, u64)| match labelled + missing {
            n if n >= min_events => (false, n),
            n => (true, u64::MAX - n),
        };
        let (labelled, missing) = windows.outcomes().min_by_key(rank).unwrap_or_default();
        let (n, (more, also_missing)) = (labelled + missing, pane.outcomes());
        Lacking {
            before: is_below(coverage_min, labelled, n),
            enough: n >= min_events,
            with_pane: is_below(coverage_min, labelled + more, n + more + also_missing),
        }
    }
}

/// Predictions of one cell of the score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CoverageCell {
    /// Mature predictions.
    pub predictions: u64,
    /// Predictions with an outcome that came.
    pub labelled: u64,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    /// Mature predictions in the window.
    pub predictions: u64,
    /// Predictions with an outcome that came.
    pub labelled: u64,
    /// Predictions that were left out because they had no outcome.
    pub dropped: u64,
    /// Predictions that were counted with an implied outcome.
    pub implied: u64,
    /// By score, in equal cells of [0, 1].
    pub cells: [CoverageCell; COVERAGE_CELLS],
}

impl Coverage {
    /// The coverage of a window with these sums and these unlabelled predictions; `None` if no
    /// outcome was missing. A cell of the sums is placed by its mean score, a cell of vectors by
    /// their largest probability.
    pub fn of(total: &Total, unlabelled: &Unlabelled) -> Option<Coverage> {
        if unlabelled.is_empty() {
            return None;
        }
        let counted = match total {
            Total::Scores(sums) => {
                let finest = Level::from_sums(sums);
                let cells = finest.occupied.iter();
                cells.map(|c| (c.z / c.n, c.count as u64)).collect()
            }
            Total::Vector(sums) => sums.tops(),
        };
        let (dropped, implied) = (unlabelled.dropped(), unlabelled.implied());
        let mut cells = [CoverageCell::default(); COVERAGE_CELLS];
        for (mean, count) in counted {
            let at = (mean * COVERAGE_CELLS as f64) as usize;
            cells[at.min(COVERAGE_CELLS - 1)].predictions += count;
        }
        for (k, cell) in cells.iter_mut().enumerate() {
            // A cell at a border may have its mean in the next one; then not all implied
            // predictions are counted here.
            cell.labelled = cell.predictions.saturating_sub(implied[k]);
            cell.predictions += dropped[k];
        }
        let sum = |of: fn(&CoverageCell) -> u64| cells.iter().map(of).sum();
        Some(Coverage {
            predictions: sum(|c| c.predictions),
            labelled: sum(|c| c.labelled),
            dropped: dropped.iter().sum(),
            implied: implied.iter().sum(),
            cells,
        })
    }

    /// Share of the predictions that have an outcome of their own, in [0, 1].
    pub fn share(&self) -> f64 {
        self.labelled as f64 / self.predictions.max(1) as f64
    }
}
