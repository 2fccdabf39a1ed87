//! Confidence sequences: intervals that hold at all times together, from sums.
//!
//! With probability at least 1 − α the intervals cover at all times, however often one looks and
//! whatever the scores do. There are three quantities, each an average over the events since the
//! last restart; none needs independence or a constant mean:
//!
//! * calibration in the large, (1/n)Σ(E[y|past] − z): (S ± r(V, α/2))/n with S = Σ(y − z), V = Σ(y
//!   − z)²;
//! * the same in each of 16 bins, at α/16 each;
//! * a lower bound of ECE², (1/n)Σ(p − z)² with p = E[y|past, z] of every single event: no
//!   smoothness is assumed, and no bin hides an error. An online recalibrator corrects the scores
//!   of a cell by D = S_c/(n_c + 20), within ±¼, taken from earlier panes; its gain in Brier score
//!   W = 2(y − z)D − D² has a mean of at most (p − z)². Seven scales of 1 to 64 cells; the best one
//!   counts, at α/7 each.
//!
//! There is no upper bound of ECE² without smoothness.
//!
//! Within a pane D is constant in a cell, so ΣW = 2D·S − nD² and ΣW² = 4D²·V − 4D³·S + nD⁴ come
//! from the pane's cell sums. D is cut only where every score of the cell would leave [0, 1]: z + D
//! of some may leave it. The bound needs no more, since W has its mean for any D, and by D within
//! ±¼ it is at least −(2·¼ + ¼²).
//!
//! An average over all time reacts slowly to a change. So the sequences restart when an alarm
//! begins and when it ends, the k-th time with α·6/(π²k²), which sums to α.
//!
//! Always: sums are integers in units of 2⁻³² as in [`crate::sums`], gains are floats added pane by
//! pane in order; [`Sequences`] is all the state, 3 kB. [The module](super) derives the bounds.

use super::radius::radius;
use crate::axis::Grid;
use crate::fixed::{ONE, from_fixed};
#[cfg(feature = "serde")]
use crate::stored::checked;
use crate::sums::{Cell, Sums};
use std::f64::consts::PI;

/// Scales of the lower bound of ECE²: 1, 2, …, 64 cells.
pub const SCALES: usize = 7;

/// Level of the cells that are kept.
const LEVEL: u32 = 6;

/// Number of bins with an interval of their own.
pub const BINS: usize = 16;

/// |D| is at most this: corrections beyond a quarter gain little more and cost radius.
const CORRECTION_MAX: f64 = 0.25;

/// A correction counts for nothing before about this many events.
const CORRECTION_PRIOR: f64 = 20.0;

/// W is at least minus this: 2·¼ + ¼².
const GAIN_MIN: f64 = 2.0 * CORRECTION_MAX + CORRECTION_MAX * CORRECTION_MAX;

/// Sums of one cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Bin {
    /// Number of events.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "checked"))]
    pub n: u64,
    /// Σy.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "checked"))]
    pub y: u64,
    /// Σz, in units of 2⁻³².
    #[cfg_attr(feature = "serde", serde(deserialize_with = "checked"))]
    pub z: u128,
    /// Σ(y − z)², in units of 2⁻³².
    #[cfg_attr(feature = "serde", serde(deserialize_with = "checked"))]
    pub u2: u128,
}

impl Bin {
    fn add(&mut self, c: &Cell) {
        self.n += c.n;
        self.y += c.y;
        self.z += u128::from(c.z);
        // Σ(y − z)² = Σy − 2Σyz + Σz²; each event's part is at least 0 up to its rounding.
        let plus = (u128::from(c.y) << 32) + u128::from(c.z2);
        self.u2 += plus.saturating_sub(2 * u128::from(c.yz));
    }

    fn merge(&mut self, o: &Bin) {
        self.n += o.n;
        self.y += o.y;
        self.z += o.z;
        self.u2 += o.u2;
    }

    /// Σ(y − z).
    pub fn residual(&self) -> f64 {
        from_fixed((i128::from(self.y) * i128::from(ONE)) - self.z as i128)
    }

    /// Σ(y − z)² as a float.
    pub fn residual_squared(&self) -> f64 {
        from_fixed(self.u2 as i128)
    }
}

/// The gain of corrected scores at one scale.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Gain {
    /// ΣW.
    pub sum: f64,
    /// ΣW².
    pub square: f64,
}

impl Gain {
    /// Adds events of residuals with sum `u` and sum of squares `u2`, corrected by `d` each.
    pub fn add(&mut self, d: f64, n: f64, u: f64, u2: f64) {
        self.sum += 2.0 * d * u - n * d * d;
        self.square += d * d * (4.0 * u2 - 4.0 * d * u + n * d * d);
    }
}

/// D of a cell whose earlier `n` events have residuals of sum `u`, for scores from `low` to `high`:
/// in [−`high`, 1 − `low`], so some score of the cell stays in [0, 1] by it, but not every one.
pub fn correction(u: f64, n: f64, low: f64, high: f64) -> f64 {
    let d = (u / (n + CORRECTION_PRIOR)).clamp(-CORRECTION_MAX, CORRECTION_MAX);
    d.max(-high).min(1.0 - low)
}

/// The lower bound of ECE² from the gains of all scales after `n` events, at confidence 1 − α; 0
/// where none is shown.
pub fn ece2_lower(gains: &[Gain; SCALES], n: u64, alpha: f64) -> f64 {
    let share = alpha / SCALES as f64;
    let bound = |g: &Gain| (g.sum - radius(g.square, share, GAIN_MIN)) / n.max(1) as f64;
    gains.iter().map(bound).fold(0.0, f64::max)
}

/// The interval of the mean residual from S, V and n, within [−1, 1].
pub fn mean(s: f64, v: f64, n: u64, alpha: f64) -> (f64, f64) {
    if n == 0 {
        return (-1.0, 1.0);
    }
    let (n, r) = (n as f64, radius(v, 0.5 * alpha, 1.0));
    (((s - r) / n).max(-1.0), ((s + r) / n).min(1.0))
}

/// The state of all sequences; all of it is public for a snapshot.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Sequences {
    /// Sums of the grid's cells folded to 64.
    pub bins: Vec<Bin>,
    /// Gains at scales of 1, 2, …, 64 cells.
    pub gains: [Gain; SCALES],
    /// k, from 1: how many times the sequences have begun.
    pub epoch: u64,
}

impl Default for Sequences {
    fn default() -> Sequences {
        Sequences {
            bins: vec![Bin::default(); 1 << LEVEL],
            gains: [Gain::default(); SCALES],
            epoch: 1,
        }
    }
}

/// The interval of one bin.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BinBounds {
    /// Least score.
    pub low: f64,
    /// Largest score.
    pub high: f64,
    /// Number of events.
    pub n: u64,
    /// Lower end of the mean residual of the bin.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

/// The bounds of all sequences at one time.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Bounds {
    /// Events since the sequences last began.
    pub n: u64,
    /// Mean residual: its lower and upper end.
    pub mean: (f64, f64),
    /// The bins that hold events.
    pub bins: Vec<BinBounds>,
    /// Lower bound of ECE².
    pub ece2_lower: f64,
}

impl Sequences {
    /// Adds a pane.
    pub fn observe(&mut self, pane: &Sums) {
        let level = pane.grid().level();
        let mut fresh = [Bin::default(); 1 << LEVEL];
        pane.each_occupied(|index, cell| {
            let at = if level >= LEVEL {
                index >> (level - LEVEL)
            } else {
                index << (LEVEL - level)
            };
            fresh[at as usize].add(cell);
        });
        let mut known = [Bin::default(); 1 << LEVEL];
        for ((known, bin), new) in known.iter_mut().zip(&mut self.bins).zip(&fresh) {
            *known = *bin;
            bin.merge(new);
        }
        for (k, gain) in (0..SCALES as u32).zip(&mut self.gains).rev() {
            let cells = 1 << k;
            for (i, (known, new)) in (0..).zip(known.iter().zip(&fresh)).take(cells) {
                if new.n == 0 {
                    continue;
                }
                // A grid coarser than 64 cells has no cell of level k to ask for the edges.
                let (low, high) = if k <= level {
                    pane.grid().edges(k, i)
                } else {
                    (0.0, 1.0)
                };
                let d = correction(known.residual(), known.n as f64, low, high);
                gain.add(d, new.n as f64, new.residual(), new.residual_squared());
            }
            halve(&mut known[..cells]);
            halve(&mut fresh[..cells]);
        }
    }

    /// Restarts with the next share of α.
    pub fn restart(&mut self) {
        *self = Sequences {
            epoch: self.epoch + 1,
            ..Sequences::default()
        };
    }

    /// α of this epoch.
    fn alpha(&self, alpha: f64) -> f64 {
        let k = self.epoch as f64;
        alpha * 6.0 / (PI * PI * k * k)
    }

    /// The interval of the mean residual at confidence 1 − `alpha` over all epochs.
    pub fn mean(&self, alpha: f64) -> (f64, f64) {
        let all = folded(&self.bins, 0)[0];
        let alpha = self.alpha(alpha);
        mean(all.residual(), all.residual_squared(), all.n, alpha)
    }

    /// All bounds at confidence 1 − `alpha` each, over all epochs.
    pub fn bounds(&self, grid: Grid, alpha: f64) -> Bounds {
        let n = self.bins.iter().map(|b| b.n).sum();
        let share = self.alpha(alpha) / BINS as f64;
        let level = BINS.ilog2();
        let bin = |(i, b): (u32, &Bin)| {
            let (low, high) = grid.edges(level, i);
            let (lower, upper) = mean(b.residual(), b.residual_squared(), b.n, share);
            BinBounds {
                low,
                high,
                n: b.n,
                lower,
                upper,
            }
        };
        let bins = folded(&self.bins, level);
        Bounds {
            n,
            mean: self.mean(alpha),
            bins: (0..).zip(&bins).filter(|(_, b)| b.n > 0).map(bin).collect(),
            ece2_lower: ece2_lower(&self.gains, n, self.alpha(alpha)),
        }
    }
}

/// Puts the bins of the next coarser level into the first half.
fn halve(bins: &mut [Bin]) {
    for i in 0..bins.len() / 2 {
        bins[i] = bins[2 * i];
        let other = bins[2 * i + 1];
        bins[i].merge(&other);
    }
}

/// The bins of level `k`, at most [`LEVEL`].
fn folded(bins: &[Bin], k: u32) -> Vec<Bin> {
    let mut coarse = vec![Bin::default(); 1 << k];
    let each = bins.len() >> k;
    for (coarse, fine) in coarse.iter_mut().zip(bins.chunks(each.max(1))) {
        fine.iter().for_each(|b| coarse.merge(b));
    }
    coarse
}
