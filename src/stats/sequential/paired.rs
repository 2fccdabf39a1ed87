//! Two versions on the same events: the difference of Brier score and of calibration, valid at all
//! times.
//!
//! A champion gives an event the score c, a challenger gives it s, and its outcome is y. Both
//! scores are paired with the same outcome, so the randomness of the outcome cancels, and a
//! difference shows after far fewer events than two separate scores would need. There are three
//! differences, all challenger − champion (below 0: the challenger is better), and each an average
//! over the pairs so far of what is *expected given the past and both scores*:
//!
//! * **Brier score**: (1/n)Σ E[(y − s)² − (y − c)²]. The summand is (c − s)(2y − c − s), the form
//!   2g(y − m) of [`super::drift`] with g = c − s and m the mean of both scores. This is Δ_n of
//!   Choe, Ramdas (2024), with its guarantee.
//! * **Calibration in the large**: |p̄ − s̄| − |p̄ − c̄|, p̄ = (1/n)ΣE[y|past]. Both residuals
//!   share p̄, and their difference c̄ − s̄ is known without error; the expression is monotone in
//!   p̄, so an interval of p̄ (g = ½) carries over. Errors of either sign cancel within each
//!   version, hence:
//! * **Calibration**: the difference of what recalibration would win. An online recalibrator moves
//!   the scores of a version in each of 16 cells by D = Σresidual/(n + 20) of the cell, learnt from
//!   *earlier panes only*; its gain in Brier score is W = 2D(y − z) − D². The interval is of (1/n)Σ
//!   E[W_challenger − W_champion]: g = D_s − D_c. In expectation W is at most (E[y|past] − z)², so
//!   no gain exceeds the squared calibration error, and with D near a cell's true error, after some
//!   hundred events a cell, it *is* the squared calibration error binned into these cells (the
//!   reliability part of the Brier score's decomposition), less about 16·p(1 − p)·ln(n)/n for what
//!   was being learnt. Errors of opposite sign in different cells do not cancel.
//!
//! Guarantee: for each of the three, with probability at least 1 − α the interval covers at all
//! times, however often one looks and whatever the scores do. The only condition is that no pair is
//! chosen by its outcome. There is no guarantee for the three together, or for any other stretch
//! than from the first pair to now.
//!
//! Sums add up over streams of pairs that each learnt by themselves ([`Paired::merge`]): D of a
//! pair is then learnt of earlier panes of its own stream, which is known beforehand as well, so
//! the guarantee is the same.
//!
//! Always: sums are integers, D is rounded to 2⁻³² before it is used; so the same panes of pairs
//! give the same bits in whatever order the pairs of a pane came. 3 kB. Cost: 30 ns a pair, 20 µs
//! an interval.

use super::drift::Drift;
use super::sequences::correction;
use crate::axis::Grid;
use crate::fixed::{ONE, from_fixed, to_fixed};
#[cfg(feature = "serde")]
use crate::stored::checked;

/// Binary logarithm of the number of cells.
const LEVEL: u32 = 4;

/// Number of cells of each version.
pub const CELLS: usize = 1 << LEVEL;

const UNIT: i64 = ONE as i64;

/// Two scores of one event, in units of 2⁻³².
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Pair {
    /// The champion's score.
    pub champion: u64,
    /// The challenger's score.
    pub challenger: u64,
    /// The outcome of the event.
    pub outcome: bool,
}

/// The sums of one version.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Side {
    /// Σz, in units of 2⁻³².
    #[cfg_attr(feature = "serde", serde(deserialize_with = "checked"))]
    pub score: u128,
    /// Σ(y − z)², in units of 2⁻⁶⁴.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "checked"))]
    pub brier: u128,
    /// ΣW, in units of 2⁻⁶⁴.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "checked"))]
    pub gain: i128,
    /// Number and Σ(y − z), in units of 2⁻³², of each cell.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "checked"))]
    pub cells: Vec<(u64, i128)>,
}

/// The sums over pairs of scores of two versions, from which their differences follow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Paired {
    /// Number of pairs.
    pub n: u64,
    /// Σy.
    pub positives: u64,
    /// Champion and challenger.
    pub sides: [Side; 2],
    /// Drift of the difference of Brier score.
    pub score: Drift,
    /// Drift of the rate of positives.
    pub rate: Drift,
    /// Drift of the difference of gains.
    pub gain: Drift,
}

impl Default for Side {
    fn default() -> Side {
        Side {
            score: 0,
            brier: 0,
            gain: 0,
            cells: vec![(0, 0); CELLS],
        }
    }
}

/// A quantity of both versions, and its difference with an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Difference {
    /// The champion's value.
    pub champion: f64,
    /// The challenger's value.
    pub challenger: f64,
    /// Challenger − champion.
    pub difference: f64,
    /// Lower end of its interval.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

/// The comparison of two versions.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Compared {
    /// Number of pairs.
    pub n: u64,
    /// Share of positive outcomes.
    pub event_rate: f64,
    /// Mean scores of champion and challenger.
    pub score_means: (f64, f64),
    /// Brier score.
    pub brier: Difference,
    /// Absolute mean residual.
    pub in_the_large: Difference,
    /// What an online recalibration would win of the Brier score.
    pub calibration: Difference,
}

impl Side {
    /// D of every cell, in units of 2⁻³².
    fn corrections(&self, grid: Grid) -> [i64; CELLS] {
        let level = grid.level().min(LEVEL);
        std::array::from_fn(|cell| {
            let (n, residual) = self.cells[cell];
            if n == 0 {
                return 0;
            }
            let (low, high) = grid.edges(level, cell as u32);
            to_fixed(correction(from_fixed(residual), n as f64, low, high))
        })
    }

    fn merge(&mut self, other: &Side) {
        self.score += other.score;
        self.brier += other.brier;
        self.gain += other.gain;
        for (ours, theirs) in self.cells.iter_mut().zip(&other.cells) {
            ours.0 += theirs.0;
            ours.1 += theirs.1;
        }
    }

    /// Adds an event of score `z`; returns D of its cell.
    fn observe(&mut self, z: u64, y: i64, corrections: &[i64; CELLS], cell: usize) -> i64 {
        let u = y - z as i64;
        let d = corrections[cell];
        self.score += u128::from(z);
        self.brier += u128::from(u.unsigned_abs()) * u128::from(u.unsigned_abs());
        self.gain += 2 * i128::from(u) * i128::from(d) - i128::from(d) * i128::from(d);
        self.cells[cell].0 += 1;
        self.cells[cell].1 += i128::from(u);
        d
    }
}

/// The cell of a score.
fn cell_of(z: u64, grid: Grid) -> usize {
    let finest = grid.cell_of(z as f64 / ONE as f64);
    (finest >> grid.level().saturating_sub(LEVEL)) as usize
}

impl Paired {
    /// Takes the pairs of a sealed pane, in any order.
    pub fn observe(&mut self, pairs: &[Pair], grid: Grid) {
        let [champion, challenger] = &mut self.sides;
        // Learnt from earlier panes, and so known before any outcome of this one.
        let known = [champion.corrections(grid), challenger.corrections(grid)];
        for pair in pairs {
            let y = if pair.outcome { UNIT } else { 0 };
            let (c, s) = (pair.champion, pair.challenger);
            let residual = 2 * y - c as i64 - s as i64;
            let d_c = champion.observe(c, y, &known[0], cell_of(c, grid));
            let d_s = challenger.observe(s, y, &known[1], cell_of(s, grid));
            self.score.observe(c as i64 - s as i64, residual);
            self.rate.observe(UNIT / 2, residual);
            self.gain.observe(d_s - d_c, residual);
            self.n += 1;
            self.positives += u64::from(pair.outcome);
        }
    }

    /// Adds the sums of other pairs of the same versions, learnt by themselves.
    pub fn merge(&mut self, other: &Paired) {
        self.n += other.n;
        self.positives += other.positives;
        for (ours, theirs) in self.sides.iter_mut().zip(&other.sides) {
            ours.merge(theirs);
        }
        self.score.merge(&other.score);
        self.rate.merge(&other.rate);
        self.gain.merge(&other.gain);
    }

    /// The differences, each with an interval at confidence 1 − `alpha`; `None` without pairs.
    pub fn compared(&self, alpha: f64) -> Option<Compared> {
        if self.n == 0 {
            return None;
        }
        let n = self.n as f64;
        let side = 0.5 * alpha;
        let [champion, challenger] = &self.sides;
        let squared = |x: f64| x / (ONE as f64) / (ONE as f64) / n;
        let about = |of: &dyn Fn(&Side) -> f64, exact: i128, drift: &Drift| {
            let (difference, r) = (squared(exact as f64), drift.radius(side) / n);
            Difference {
                champion: squared(of(champion)),
                challenger: squared(of(challenger)),
                difference,
                lower: (difference - r).max(-1.0),
                upper: (difference + r).min(1.0),
            }
        };
        let brier = challenger.brier as i128 - champion.brier as i128;
        let gain = challenger.gain - champion.gain;
        let mean = |s: &Side| from_fixed(s.score as i128) / n;
        let means = (mean(champion), mean(challenger));
        Some(Compared {
            n: self.n,
            event_rate: self.positives as f64 / n,
            score_means: means,
            brier: about(&|s| s.brier as f64, brier, &self.score),
            in_the_large: self.in_the_large(means, side),
            calibration: about(&|s| s.gain as f64, gain, &self.gain),
        })
    }

    fn in_the_large(&self, (champion, challenger): (f64, f64), side: f64) -> Difference {
        let n = self.n as f64;
        let (rate, r) = (self.positives as f64 / n, self.rate.radius(side) / n);
        let of = |p: f64| (p - challenger).abs() - (p - champion).abs();
        let (a, b) = (of((rate - r).max(0.0)), of((rate + r).min(1.0)));
        Difference {
            champion: (rate - champion).abs(),
            challenger: (rate - challenger).abs(),
            difference: of(rate),
            lower: a.min(b),
            upper: a.max(b),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Axis;
    use crate::rng::Rng;

    fn grid() -> Grid {
        Grid::new(Axis::Linear, 12)
    }

    fn pair(champion: f64, challenger: f64, outcome: bool) -> Pair {
        Pair {
            champion: to_fixed(champion) as u64,
            challenger: to_fixed(challenger) as u64,
            outcome,
        }
    }

    #[test]
    fn three_pairs_give_what_a_hand_computes() {
        let pairs = [
            pair(0.5, 0.75, true),
            pair(0.25, 0.0, false),
            pair(1.0, 0.5, false),
        ];
        let mut paired = Paired::default();
        paired.observe(&pairs, grid());
        let c = paired.compared(0.05).expect("pairs");
        // (0.25 + 0.0625 + 1)/3 against (0.0625 + 0 + 0.25)/3.
        assert_eq!(c.brier.champion, 1.3125 / 3.0);
        assert_eq!(c.brier.challenger, 0.3125 / 3.0);
        assert_eq!(c.brier.difference, -1.0 / 3.0);
        assert_eq!(c.in_the_large.champion, 1.75 / 3.0 - 1.0 / 3.0);
        assert!((c.in_the_large.challenger - 0.25 / 3.0).abs() < 1e-15);
        // Nothing was learnt from earlier panes.
        assert_eq!(c.calibration.challenger, 0.0);
        assert!(c.brier.lower == -1.0 && c.brier.upper > 0.0);
    }

    #[test]
    fn the_order_within_a_pane_changes_no_bit() {
        let mut rng = Rng::new(7);
        let mut pairs: Vec<Pair> = (0..4000)
            .map(|_| pair(rng.uniform(), rng.uniform(), rng.uniform() < 0.3))
            .collect();
        let (mut a, mut b) = (Paired::default(), Paired::default());
        for pane in pairs.chunks_mut(500) {
            a.observe(pane, grid());
            pane.sort();
            b.observe(pane, grid());
        }
        assert_eq!(a, b);
        assert_eq!(a.compared(0.1), b.compared(0.1));
    }

    #[test]
    fn scores_that_are_the_same_differ_by_nothing() {
        let mut rng = Rng::new(3);
        let mut paired = Paired::default();
        for _ in 0..20 {
            let one = |rng: &mut Rng| {
                let z = rng.uniform();
                pair(z, z, rng.uniform() < z)
            };
            let pairs: Vec<Pair> = (0..100).map(|_| one(&mut rng)).collect();
            paired.observe(&pairs, grid());
        }
        let c = paired.compared(0.05).expect("pairs");
        assert_eq!((c.brier.difference, c.calibration.difference), (0.0, 0.0));
        assert!(c.brier.upper < 1e-4 && c.calibration.lower > -1e-4);
        assert_eq!((c.in_the_large.lower, c.in_the_large.upper), (0.0, 0.0));
    }

    #[test]
    fn coarse_grids_and_the_ends_of_the_scale_have_cells() {
        for level in [1, 2, 4, 16] {
            let mut paired = Paired::default();
            let ends = [pair(0.0, 1.0, true), pair(1.0, 0.0, true)];
            paired.observe(&ends, Grid::new(Axis::Linear, level));
            paired.observe(&ends, Grid::new(Axis::Linear, level));
            let compared = paired.compared(0.05).expect("pairs");
            assert_eq!(compared.brier.difference, 0.0);
            assert_eq!((compared.n, compared.brier.champion), (4, 0.5));
        }
    }
}
