//! The sums of a vector view in one pane: cells of vectors, or what the kernel test needs.
//!
//! Both keep the same promises. A merge is exact, in any order. Events that found no room are
//! counted. A state gives back the same bits.

use crate::stats::algebra::Merge;
use crate::stats::kernel::features::{BlockSums, FeatureParts};
use crate::stats::kernel::sums::{KernelOptions, KernelParts, KernelSums, SampleRow, TOPS};
use crate::stats::multiclass::sums::{Rows, Shape};
use crate::stats::multiclass::{Ranked, VectorSums};
use crate::stats::weight::Weight;
use serde::{Deserialize, Serialize};

/// What a view keeps of its events.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ViewShape {
    /// Sums of cells.
    Cells(Shape),
    /// A sample, and features.
    Kernel {
        /// K.
        classes: usize,
        /// Size of the sample, and features.
        keeping: KernelOptions,
    },
}

/// An event with its outcome, as a vector view takes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VectorEvent<'a> {
    /// Probabilities of all classes.
    pub entries: &'a [f64],
    /// What they are divided by.
    pub sum: f64,
    /// The class that happened.
    pub class: u32,
    /// The event's rank in samples; the outcome does not change it.
    pub rank: u64,
    /// Its weight, if events have weights.
    pub weight: Option<Weight>,
}

/// What vector views know of a prediction whose outcome came separately.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetainedVector<'a> {
    /// Its largest probabilities, for cells.
    pub ranked: Ranked<'a>,
    /// The whole vector, for samples; `None` if the prediction came before vectors were kept whole.
    pub whole: Option<FullVector<'a>>,
    /// Its weight, if events have weights.
    pub weight: Option<Weight>,
}

/// All probabilities of a retained prediction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FullVector<'a> {
    /// As in [`VectorEvent`].
    pub rank: u64,
    /// Probabilities of all classes, divided by their sum.
    pub row: &'a [f64],
}

impl RetainedVector<'_> {
    /// The largest probability.
    pub fn top(&self) -> f64 {
        let whole = self
            .whole
            .map(|w| w.row.iter().copied().fold(0.0, f64::max));
        let first = self.ranked.values.first().copied();
        first.or(whole).unwrap_or(0.0)
    }
}

/// The sums. See the module.
#[derive(Debug, Clone, PartialEq)]
pub enum ViewSums {
    /// Sums of cells.
    Cells(VectorSums),
    /// A sample, and features.
    Kernel(Box<KernelSums>),
}

/// The sums of a vector view in a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ViewSumsState {
    /// Sums of cells.
    Cells {
        /// Events that found no cell.
        refused: u64,
        /// The cells.
        rows: Rows,
    },
    /// A sample, and features.
    Kernel(Box<KernelState>),
}

impl ViewSumsState {
    /// Bytes, approximately.
    pub fn bytes(&self) -> usize {
        match self {
            ViewSumsState::Cells { rows, .. } => rows
                .iter()
                .map(|(name, sums)| 8 * (name.len() + sums.len()))
                .sum(),
            ViewSumsState::Kernel(state) => {
                let sample = state.sample.iter();
                sample.map(|(.., p)| 12 + 8 * p.len()).sum::<usize>() + 16 * state.waves.len()
            }
        }
    }
}

/// What the kernel test needs, in a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelState {
    /// Bits of ν.
    nu: Option<u64>,
    features: u32,
    seed: u64,
    n: u64,
    refused: u64,
    most: u32,
    /// By rank: rank, class, probabilities.
    sample: Vec<(u64, u32, Vec<f64>)>,
    /// Re and Im of the features, frequency by frequency.
    waves: Vec<(i64, i64)>,
    /// Σ‖δ‖² and Σ(1 − ‖g‖²).
    diagonals: (i64, i64),
    closed: bool,
    /// Linear and block sums: their number, and Σ, Σ of squares, Σ of null variances in halves of
    /// 64 bits.
    blocks: [(u64, [(i64, u64); 3]); 2],
    /// Outcomes that the block sums do not know of.
    outdated: u64,
    /// Events by their largest probability.
    tops: [u64; TOPS],
}

/// The halves of an integer.
fn halves(x: i128) -> (i64, u64) {
    ((x >> 64) as i64, x as u64)
}

fn whole((high, low): (i64, u64)) -> i128 {
    (i128::from(high) << 64) | i128::from(low)
}

impl ViewShape {
    /// Sums of no events; `None` if the shape cannot be kept.
    pub fn blank(self) -> Option<ViewSums> {
        match self {
            ViewShape::Cells(shape) => VectorSums::new(shape).map(ViewSums::Cells),
            ViewShape::Kernel { classes, keeping } => {
                let sums = KernelSums::new(classes, keeping)?;
                Some(ViewSums::Kernel(Box::new(sums)))
            }
        }
    }
}

impl ViewSums {
    /// Adds an event; returns whether it was taken.
    pub fn observe(&mut self, event: VectorEvent<'_>) -> bool {
        let VectorEvent {
            entries,
            sum,
            class,
            rank,
            weight,
        } = event;
        match self {
            ViewSums::Cells(sums) => sums.observe(entries, sum, class, weight),
            ViewSums::Kernel(sums) => sums.observe(rank, entries, sum, class),
        }
    }

    /// Adds a mature prediction; returns whether there was room for it. A prediction that came
    /// before the view was configured was not kept whole and is left out.
    pub fn observe_retained(&mut self, vector: RetainedVector<'_>, class: u32) -> bool {
        match (self, vector.whole) {
            (ViewSums::Cells(sums), _) => sums.observe_ranked(vector.ranked, class, vector.weight),
            (ViewSums::Kernel(sums), Some(w)) => sums.observe(w.rank, w.row, 1.0, class),
            (ViewSums::Kernel(_), None) => true,
        }
    }

    /// Changes the class of a counted event, or counts an event that was not counted, exactly.
    /// Returns whether there was room for it.
    pub fn revise(&mut self, vector: RetainedVector<'_>, before: Option<u32>, now: u32) -> bool {
        match (self, vector.whole) {
            (ViewSums::Cells(sums), _) => sums.revise(vector.ranked, before, now, vector.weight),
            (ViewSums::Kernel(sums), Some(w)) => sums.revise(w.rank, w.row, before, now),
            (ViewSums::Kernel(_), None) => true,
        }
    }

    /// [`ViewSums::merge`] for sums that are kept: events of cells beyond the cap are refused.
    pub fn merge_capped(&mut self, other: &ViewSums) {
        match (self, other) {
            (ViewSums::Cells(ours), ViewSums::Cells(theirs)) => ours.merge_capped(theirs),
            (ours, theirs) => ours.merge(theirs),
        }
    }

    /// Adds the sums of other events, of the same shape.
    pub fn merge(&mut self, other: &ViewSums) {
        let merged = match (self, other) {
            (ViewSums::Cells(ours), ViewSums::Cells(theirs)) => ours.merge(theirs),
            (ViewSums::Kernel(ours), ViewSums::Kernel(theirs)) => ours.merge(theirs),
            // Panes of one stream are of one shape.
            (ViewSums::Cells(_), ViewSums::Kernel(_))
            | (ViewSums::Kernel(_), ViewSums::Cells(_)) => Ok(()),
        };
        // Both count what they cannot add as refused.
        debug_assert_eq!(merged, Ok(()));
    }

    /// Number of events, without those refused.
    pub fn n(&self) -> u64 {
        match self {
            ViewSums::Cells(sums) => sums.n(),
            ViewSums::Kernel(sums) => sums.n(),
        }
    }

    /// Events that were refused.
    pub fn refused(&self) -> u64 {
        match self {
            ViewSums::Cells(sums) => sums.refused(),
            ViewSums::Kernel(sums) => sums.refused(),
        }
    }

    /// Closes a base pane, which then takes no more events. Call this once, before merging it with
    /// others.
    pub fn close(&mut self) {
        match self {
            ViewSums::Cells(_) => {}
            ViewSums::Kernel(sums) => sums.close(),
        }
    }

    /// Changes the cap on cells for what is observed from now on. A sample keeps its size, unless
    /// the cap is 0.
    pub fn set_cells_max(&mut self, cells_max: usize) {
        match self {
            ViewSums::Cells(sums) => sums.cap(cells_max),
            ViewSums::Kernel(sums) => sums.admit(cells_max > 0),
        }
    }

    /// Whether any event would be taken.
    pub fn has_room(&self) -> bool {
        match self {
            ViewSums::Cells(sums) => sums.shape().cells_max > 0,
            ViewSums::Kernel(sums) => sums.has_room(),
        }
    }

    /// The sums, for a snapshot.
    pub fn state(&self) -> ViewSumsState {
        match self {
            ViewSums::Cells(sums) => ViewSumsState::Cells {
                refused: sums.refused(),
                rows: sums.rows(),
            },
            ViewSums::Kernel(sums) => ViewSumsState::Kernel(Box::new(KernelState::of(sums))),
        }
    }

    /// Restores sums of the shape of these; `None` if the state is of another shape.
    pub fn restored(&self, state: ViewSumsState) -> Option<ViewSums> {
        match (self, state) {
            (ViewSums::Cells(ours), ViewSumsState::Cells { refused, rows }) => {
                VectorSums::from_rows(ours.shape(), rows, refused).map(ViewSums::Cells)
            }
            (ViewSums::Kernel(ours), ViewSumsState::Kernel(state)) => {
                let keeping = ours.options();
                let parts = (state.keeping() == keeping).then(|| state.parts())?;
                let sums = ours.with_parts(parts)?;
                Some(ViewSums::Kernel(Box::new(sums)))
            }
            _ => None,
        }
    }

    /// The mean largest probability of each cell, and its number of events.
    pub fn tops(&self) -> Vec<(f64, u64)> {
        match self {
            ViewSums::Cells(sums) => sums.tops().collect(),
            ViewSums::Kernel(sums) => sums.tops().collect(),
        }
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        match self {
            ViewSums::Cells(sums) => sums.bytes(),
            ViewSums::Kernel(sums) => size_of::<KernelSums>() + sums.bytes(),
        }
    }
}

impl KernelState {
    /// The state of these sums.
    pub fn of(sums: &KernelSums) -> KernelState {
        let (keeping, parts) = (sums.options(), sums.parts());
        // Within 63 bits, by the cap on events.
        let narrow = |x: i128| x as i64;
        let features = parts.features.unwrap_or(FeatureParts {
            sums: Vec::new(),
            diagonal: 0,
            null_diagonal: 0,
            n: 0,
        });
        let waves = features.sums.iter();
        KernelState {
            nu: keeping.nu.map(f64::to_bits),
            features: keeping.features as u32,
            seed: keeping.seed,
            n: parts.n,
            refused: parts.refused,
            most: keeping.sample as u32,
            sample: (parts.sample.into_iter())
                .map(|k| (k.rank, k.class, k.row.into_vec()))
                .collect(),
            waves: waves.map(|(a, b)| (narrow(*a), narrow(*b))).collect(),
            diagonals: (narrow(features.diagonal), narrow(features.null_diagonal)),
            closed: parts.closed,
            blocks: parts.blocks.map(|b| {
                let sums = [b.sum, b.squares, b.null_variance];
                (b.count, sums.map(halves))
            }),
            outdated: parts.outdated,
            tops: parts.tops,
        }
    }

    /// The options under which the sums were kept.
    pub fn keeping(&self) -> KernelOptions {
        KernelOptions {
            sample: self.most as usize,
            nu: self.nu.map(f64::from_bits),
            features: self.features as usize,
            seed: self.seed,
        }
    }

    /// The parts of the sums.
    pub fn parts(self) -> KernelParts {
        let kept = |(rank, class, row): (u64, u32, Vec<f64>)| SampleRow {
            rank,
            class,
            row: row.into_boxed_slice(),
        };
        let features = (self.features > 0).then(|| FeatureParts {
            sums: (self.waves.iter())
                .map(|(a, b)| (i128::from(*a), i128::from(*b)))
                .collect(),
            diagonal: i128::from(self.diagonals.0),
            null_diagonal: i128::from(self.diagonals.1),
            n: self.n,
        });
        KernelParts {
            n: self.n,
            refused: self.refused,
            sample: self.sample.into_iter().map(kept).collect(),
            features,
            closed: self.closed,
            blocks: self.blocks.map(|(count, sums)| {
                let [sum, squares, null_variance] = sums.map(whole);
                BlockSums {
                    count,
                    sum,
                    squares,
                    null_variance,
                }
            }),
            outdated: self.outdated,
            tops: self.tops,
        }
    }
}
