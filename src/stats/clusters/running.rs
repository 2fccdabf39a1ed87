//! Dispersion of a stream so far, for bets on its next pane.
//!
//! Events of a cluster can err together in many ways: all scores are too low, or low ones are too
//! low and high ones too high. A sum of residuals U = y − z shows only the dependence that does not
//! cancel in it. So φ is measured for several sums: of all U, of U times the log-odds of z, and of
//! the U of each half, quarter and eighth of the cells. Bets on all scores are divided by the
//! first, bets on slopes by the second, and all others by the greatest.
//!
//! Dependence may rise. So φ is the larger of two: that of all panes, and that of the last panes.
//! The last panes have at least [`BLOCK_EVENTS`] events in enough groups, and at most about twice
//! as many.

use super::super::axis::{Grid, logit};
use super::super::fixed::CLIP;
use super::super::overdispersion::{chi_squared_quantile, residual_squares};
use super::super::sums::Sums;
use super::CLUSTERS_MIN;
use super::robust::dispersion_of;
use super::sums::{BUCKETS, ClusterSums};
use std::ops::Range;

/// Normal quantile below which the estimate lies with probability 0.1.
const Z_10: f64 = -1.281_551_565_544_6;

/// Normal quantile below which the estimate lies with probability 0.01. It is used for few groups:
/// their estimate may be so far too small that bets win against a calibrated model in spite of a
/// threshold of millions.
const Z_01: f64 = -2.326_347_874_040_8;

/// Fewest groups of equal size over which bets are placed. With 9 names one of 300 calibrated
/// streams still alarmed, in spite of [`Z_01`], although at most 0.009 are expected to (threshold
/// over stake e^17.76, 1500 panes); with 12 names none of 1000.
pub const GROUPS_MIN: f64 = 12.0;

/// Degrees of freedom from which [`Z_10`] is enough.
const MANY: f64 = 19.0;

/// Fewest events of a block of the last panes: some bursts of dozens of events in each bucket, and
/// about the delay at which errors of practical size are found.
pub const BLOCK_EVENTS: u64 = 4096;

/// Fewest groups of equal size of a block: half the buckets, so that its bound is not much wider
/// than that of all panes.
const BLOCK_GROUPS: f64 = 32.0;

/// Number of parts into which the cells are divided; each part has sums of its own.
const PARTS: usize = 8;

/// Number of bits of logit² after the binary point.
const SLOPE_BITS: u32 = 16;

/// The unit of sums.
const UNIT: f64 = 1.0 / (1u64 << 32) as f64;

/// Dispersions φ: the variance of bucket totals as a multiple of that of independent outcomes; each
/// at least 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dispersions {
    /// For bets on all scores alike.
    pub intercept: f64,
    /// For bets on the slope in log-odds.
    pub slope: f64,
    /// For any other bet.
    pub other: f64,
}

/// Sums of one bucket. Each saturates at the end of its integer's range.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct BucketTotals {
    /// Events by part of the cells.
    n: [u64; PARTS],
    /// ΣU by part, in units of 2⁻³².
    u: [i64; PARTS],
    /// ΣU·logit z in units of 2⁻³².
    slope: i64,
}

impl BucketTotals {
    fn merge(&mut self, o: &BucketTotals) {
        for part in 0..PARTS {
            self.n[part] = self.n[part].saturating_add(o.n[part]);
            self.u[part] = self.u[part].saturating_add(o.u[part]);
        }
        self.slope = self.slope.saturating_add(o.slope);
    }

    /// Number of events of these parts.
    fn events(&self, parts: Range<usize>) -> f64 {
        self.n[parts].iter().map(|&n| n as f64).sum()
    }

    /// ΣU of these parts.
    fn residual(&self, parts: Range<usize>) -> f64 {
        self.u[parts].iter().map(|&u| u as f64 * UNIT).sum()
    }
}

/// Sums by bucket of several panes.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Block {
    /// Empty before the first pane of clustered events.
    buckets: Vec<BucketTotals>,
    /// ΣU² by part, in units of 2⁻³².
    u2: [u64; PARTS],
    /// ΣU²·logit² z in units of 2⁻³²; z is the middle of its cell.
    slope2: u64,
}

/// Sums by bucket of all panes of a stream so far, and of the last ones.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RunningClusters {
    all: Block,
    /// The block before the one under way.
    before: Block,
    /// The block under way.
    last: Block,
}

impl RunningClusters {
    /// Most heap bytes held.
    pub const BYTES_MAX: usize = 3 * BUCKETS * size_of::<BucketTotals>();

    /// Adds a pane; one of events without clusters adds nothing.
    pub fn add(&mut self, pane: &Sums) {
        let Some(block) = Block::of(pane) else {
            return;
        };
        self.all.merge(&block);
        self.last.merge(&block);
        if self.last.n() >= BLOCK_EVENTS && self.last.groups() >= BLOCK_GROUPS {
            self.before = std::mem::take(&mut self.last);
        }
    }

    /// Upper bounds on φ, each at least 1, which the true φ exceeds with probability 0.1 (0.01
    /// where there are few groups of clusters); `None` while there are too few groups.
    pub fn dispersions(&self) -> Option<Dispersions> {
        let all = self.all.dispersions()?;
        let mut last = self.before.clone();
        last.merge(&self.last);
        Some(match last.dispersions() {
            Some(last) => Dispersions {
                intercept: all.intercept.max(last.intercept),
                slope: all.slope.max(last.slope),
                other: all.other.max(last.other),
            },
            None => all,
        })
    }

    /// The effective number of groups over all panes, if events are clustered but groups are too
    /// few for [`RunningClusters::dispersions`]; else `None`.
    pub fn too_few(&self) -> Option<f64> {
        let some = self.all.n() > 0 && self.dispersions().is_none();
        some.then(|| self.all.groups())
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let blocks = [&self.all, &self.before, &self.last];
        let buckets: usize = blocks.iter().map(|block| block.buckets.capacity()).sum();
        buckets * size_of::<BucketTotals>()
    }
}

impl Block {
    /// The block of one pane; `None` if its events have no clusters.
    fn of(pane: &Sums) -> Option<Block> {
        let (clusters, grid) = (pane.clusters()?, pane.grid());
        let mut block = Block {
            buckets: vec![BucketTotals::default(); BUCKETS],
            ..Block::default()
        };
        let kept = ClusterSums::level_of(grid);
        for (bucket, sums) in clusters.occupied() {
            let totals = &mut block.buckets[bucket.index() as usize];
            for (index, c) in sums.cells.iter().enumerate() {
                let part = part(index as u64, kept);
                let residual = (i128::from(c.y) << 32) - i128::from(c.z);
                let residual = i64::try_from(residual).unwrap_or(i64::MAX);
                totals.n[part] = totals.n[part].saturating_add(c.n);
                totals.u[part] = totals.u[part].saturating_add(residual);
            }
            let [towards_one, towards_zero] = sums.directions;
            totals.slope = towards_one.saturating_add(towards_zero);
        }
        pane.each_occupied(|index, cell| {
            let part = part(u64::from(index), grid.level());
            let squares = residual_squares(cell);
            let weighted = (squares * slope_square(grid, index)) >> SLOPE_BITS;
            let add = |sum: u64, x: u128| sum.saturating_add(x.try_into().unwrap_or(u64::MAX));
            block.u2[part] = add(block.u2[part], squares);
            block.slope2 = add(block.slope2, weighted);
        });
        Some(block)
    }

    fn merge(&mut self, o: &Block) {
        let len = self.buckets.len().max(o.buckets.len());
        self.buckets.resize(len, BucketTotals::default());
        for (ours, theirs) in self.buckets.iter_mut().zip(&o.buckets) {
            ours.merge(theirs);
        }
        for (ours, theirs) in self.u2.iter_mut().zip(o.u2) {
            *ours = ours.saturating_add(theirs);
        }
        self.slope2 = self.slope2.saturating_add(o.slope2);
    }

    /// Number of events.
    fn n(&self) -> u64 {
        let all = self.buckets.iter().flat_map(|b| b.n);
        all.fold(0, u64::saturating_add)
    }

    /// The effective number of groups, (Σn_b)²/Σn_b².
    fn groups(&self) -> f64 {
        let sizes = self.occupied().map(|b| b.events(0..PARTS));
        let (n, squares) = sizes.fold((0.0, 0.0), |(n, squares), m| (n + m, squares + m * m));
        n * n / squares
    }

    fn occupied(&self) -> impl Iterator<Item = &BucketTotals> {
        self.buckets.iter().filter(|b| b.n != [0; PARTS])
    }

    /// An upper bound on φ; `None` where there are too few groups. `of` gives the number of events
    /// and the sum of a bucket, `squares` the sum of the squares of all events in units of 2⁻³².
    fn bound(&self, of: impl Fn(&BucketTotals) -> (f64, f64), squares: u64) -> Option<f64> {
        let sums = self.occupied().map(of).filter(|(n, _)| *n > 0.0);
        let said = dispersion_of(sums.collect(), squares as f64 * UNIT);
        let is_known = !said.are_few() && said.effective >= CLUSTERS_MIN as f64;
        let nu = said.effective - 1.0;
        let z = if nu < MANY { Z_01 } else { Z_10 };
        is_known.then(|| (said.factor * nu / chi_squared_quantile(nu, z)).max(1.0))
    }

    fn dispersions(&self) -> Option<Dispersions> {
        let of_parts = |parts: Range<usize>| {
            let squares = self.u2[parts.clone()].iter();
            let squares = squares.fold(0, |sum: u64, x| sum.saturating_add(*x));
            let of = |b: &BucketTotals| (b.events(parts.clone()), b.residual(parts.clone()));
            self.bound(of, squares)
        };
        if self.groups() < GROUPS_MIN {
            return None;
        }
        let intercept = of_parts(0..PARTS)?;
        let of_slope = |b: &BucketTotals| (b.events(0..PARTS), b.slope as f64 * UNIT);
        let slope = self.bound(of_slope, self.slope2)?;
        let mut other = intercept.max(slope);
        for len in [PARTS / 2, PARTS / 4, 1] {
            for begin in (0..PARTS).step_by(len) {
                // A part with too few groups has no bound and does not count.
                other = other.max(of_parts(begin..begin + len).unwrap_or(1.0));
            }
        }
        Some(Dispersions {
            intercept,
            slope,
            other,
        })
    }
}

/// The part of the cells in which a cell of a level lies.
fn part(index: u64, level: u32) -> usize {
    ((index * PARTS as u64) >> level) as usize
}

/// logit² of the middle of a cell, in units of 2^−[`SLOPE_BITS`].
fn slope_square(grid: Grid, index: u32) -> u128 {
    let (low, high) = grid.edges(grid.level(), index);
    let square = logit((0.5 * (low + high)).clamp(CLIP, 1.0 - CLIP)).powi(2);
    (square * f64::from(1u32 << SLOPE_BITS)) as u128
}
