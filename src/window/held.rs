//! What a pane of a vector view holds: sums of cells, or what the kernel test needs.
//!
//! Both keep the same promises, which [`super::sparse`] builds on: a merge is exact and has no order; what was refused and
//! what came late is counted; a state gives back the same bits.

use crate::stats::algebra::Merge;
use crate::stats::kernel::features::{BlockSums, FeatureParts};
use crate::stats::kernel::sums::{KernelOptions, KernelParts, KernelSums, SampleRow, TOPS};
use crate::stats::multiclass::sums::{Rows, Shape};
use crate::stats::multiclass::{Ranked, VectorSums};
use crate::stats::weight::Weight;
use serde::{Deserialize, Serialize};

/// What is kept of which view.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HeldShape {
    /// Sums of cells.
    Cells(Shape),
    /// A sample, and features.
    Kernel {
        /// K.
        classes: usize,
        /// How.
        keeping: KernelOptions,
    },
}

/// An event as a vector view takes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen<'a> {
    /// Probabilities of all classes.
    pub entries: &'a [f64],
    /// What they are divided by.
    pub sum: f64,
    /// The class that happened.
    pub class: u32,
    /// A hash of what the event is called, without its outcome; for samples.
    pub rank: u64,
    /// Its weight, where events have weights.
    pub weight: Option<Weight>,
}

/// What vector views know of a prediction that waited for its outcome.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetainedVector<'a> {
    /// Its largest probabilities, for cells.
    pub ranked: Ranked<'a>,
    /// All of it, for samples; `None` where it came before any was kept.
    pub whole: Option<FullVector<'a>>,
    /// Its weight, where events have weights.
    pub weight: Option<Weight>,
}

/// A whole vector that waited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FullVector<'a> {
    /// As in [`Seen`].
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

/// See the module.
#[derive(Debug, Clone, PartialEq)]
pub enum Held {
    /// Sums of cells.
    Cells(VectorSums),
    /// A sample, and features.
    Kernel(Box<KernelSums>),
}

/// What is held, in a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum HeldState {
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

impl HeldState {
    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        match self {
            HeldState::Cells { rows, .. } => rows
                .iter()
                .map(|(name, sums)| 8 * (name.len() + sums.len()))
                .sum(),
            HeldState::Kernel(state) => {
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
    /// Linear and block sums: their number, and Σ, Σ of squares, Σ of null variances in halves of 64 bits.
    blocks: [(u64, [(i64, u64); 3]); 2],
    /// Outcomes that these do not know of.
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

impl HeldShape {
    /// Nothing yet; `None` where the shape cannot be kept.
    pub fn blank(self) -> Option<Held> {
        match self {
            HeldShape::Cells(shape) => VectorSums::new(shape).map(Held::Cells),
            HeldShape::Kernel { classes, keeping } => {
                let sums = KernelSums::new(classes, keeping)?;
                Some(Held::Kernel(Box::new(sums)))
            }
        }
    }
}

impl Held {
    /// Adds an event; answers whether it was taken.
    pub fn observe(&mut self, seen: Seen<'_>) -> bool {
        let Seen {
            entries,
            sum,
            class,
            rank,
            weight,
        } = seen;
        match self {
            Held::Cells(sums) => sums.observe(entries, sum, class, weight),
            Held::Kernel(sums) => sums.observe(rank, entries, sum, class),
        }
    }

    /// Adds a mature prediction; one of which too little is known, since it came before the view was asked for, is none
    /// of this view, and left out. Answers whether there was room for it.
    pub fn observe_retained(&mut self, vector: RetainedVector<'_>, class: u32) -> bool {
        match (self, vector.whole) {
            (Held::Cells(sums), _) => sums.observe_ranked(vector.ranked, class, vector.weight),
            (Held::Kernel(sums), Some(w)) => sums.observe(w.rank, w.row, 1.0, class),
            (Held::Kernel(_), None) => true,
        }
    }

    /// Gives an event another class than it was counted with, or any where it was not counted, exactly. Answers
    /// whether there was room for it.
    pub fn revise(&mut self, vector: RetainedVector<'_>, before: Option<u32>, now: u32) -> bool {
        match (self, vector.whole) {
            (Held::Cells(sums), _) => sums.revise(vector.ranked, before, now, vector.weight),
            (Held::Kernel(sums), Some(w)) => sums.revise(w.rank, w.row, before, now),
            (Held::Kernel(_), None) => true,
        }
    }

    /// The same as [`Held::merge`] for what is kept: events of cells beyond the cap are refused.
    pub fn merge_capped(&mut self, other: &Held) {
        match (self, other) {
            (Held::Cells(ours), Held::Cells(theirs)) => ours.merge_capped(theirs),
            (ours, theirs) => ours.merge(theirs),
        }
    }

    /// Adds what other events left, of the same shape.
    pub fn merge(&mut self, other: &Held) {
        let merged = match (self, other) {
            (Held::Cells(ours), Held::Cells(theirs)) => ours.merge(theirs),
            (Held::Kernel(ours), Held::Kernel(theirs)) => ours.merge(theirs),
            // Panes of one stream are of one shape.
            (Held::Cells(_), Held::Kernel(_)) | (Held::Kernel(_), Held::Cells(_)) => Ok(()),
        };
        // Both count what they cannot add as refused.
        debug_assert_eq!(merged, Ok(()));
    }

    /// Number of events, without those refused.
    pub fn n(&self) -> u64 {
        match self {
            Held::Cells(sums) => sums.n(),
            Held::Kernel(sums) => sums.n(),
        }
    }

    /// Events that were refused.
    pub fn refused(&self) -> u64 {
        match self {
            Held::Cells(sums) => sums.refused(),
            Held::Kernel(sums) => sums.refused(),
        }
    }

    /// Events that came too late to be in it.
    pub fn late(&self) -> u64 {
        match self {
            Held::Cells(sums) => sums.late(),
            Held::Kernel(sums) => sums.late(),
        }
    }

    /// Counts events that came too late.
    pub fn add_late(&mut self, late: u64) {
        match self {
            Held::Cells(sums) => sums.add_late(late),
            Held::Kernel(sums) => sums.add_late(late),
        }
    }

    /// A base pane takes no more events: to be called once, before it is merged with others.
    pub fn close(&mut self) {
        match self {
            Held::Cells(_) => {}
            Held::Kernel(sums) => sums.close(),
        }
    }

    /// Changes the cap of cells for what is observed from now on; a sample is as large as ever, unless the cap is 0.
    pub fn cap(&mut self, cells_max: usize) {
        match self {
            Held::Cells(sums) => sums.cap(cells_max),
            Held::Kernel(sums) => sums.admit(cells_max > 0),
        }
    }

    /// Whether any event would be taken.
    pub fn has_room(&self) -> bool {
        match self {
            Held::Cells(sums) => sums.shape().cells_max > 0,
            Held::Kernel(sums) => sums.has_room(),
        }
    }

    /// For a snapshot, late events apart.
    pub fn state(&self) -> HeldState {
        match self {
            Held::Cells(sums) => HeldState::Cells {
                refused: sums.refused(),
                rows: sums.rows(),
            },
            Held::Kernel(sums) => HeldState::Kernel(Box::new(KernelState::of(sums))),
        }
    }

    /// From a state, kept as this is; `None` where it is of another shape.
    pub fn restored(&self, state: HeldState) -> Option<Held> {
        match (self, state) {
            (Held::Cells(ours), HeldState::Cells { refused, rows }) => {
                VectorSums::from_rows(ours.shape(), rows, refused).map(Held::Cells)
            }
            (Held::Kernel(ours), HeldState::Kernel(state)) => {
                let keeping = ours.options();
                let parts = (state.keeping() == keeping).then(|| state.parts())?;
                let sums = ours.with_parts(parts)?;
                Some(Held::Kernel(Box::new(sums)))
            }
            _ => None,
        }
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        match self {
            Held::Cells(sums) => sums.bytes(),
            Held::Kernel(sums) => size_of::<KernelSums>() + sums.bytes(),
        }
    }
}

impl KernelState {
    /// Of sums.
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

    /// How it was kept.
    pub fn keeping(&self) -> KernelOptions {
        KernelOptions {
            sample: self.most as usize,
            nu: self.nu.map(f64::from_bits),
            features: self.features as usize,
            seed: self.seed,
        }
    }

    /// As parts.
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
