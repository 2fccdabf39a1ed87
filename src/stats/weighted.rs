//! Sums of weighted events, and what the estimators make of them.
//!
//! Record a has a weight w_a > 0, known when its prediction was made; records were drawn with
//! chances proportional to 1/w. With U = y − z, V = z(1 − z), μ₃ = V(1 − 2z), W_i = Σw over cell i,
//! W over all:
//!
//! * The target is the population that the weights restore: the mean residual of a cell is ΣwU/W_i,
//!   the squared ℓ2-ECE Σ(W_i/W)(ΣwU/W_i)². These are ratio (Hájek) estimators; scaling all weights
//!   changes nothing.
//! * **Debiased** T_d = (1/W) Σ_i [(ΣwU)² − Σw²U²]/W_i, the sum over pairs of different events.
//!   Each wU has mean 0 under the null and events are independent, so T_d has mean 0, exactly, as
//!   without weights.
//! * **Null**, given scores and weights: wU has variance w²V and third moment w³μ₃, so the formulas
//!   of [`super::null`] hold with V → w²V, μ₃ → w³μ₃ and 1/N → 1/W: variance (1/W²) Σ 2[(Σw²V)² −
//!   Σw⁴V²]/W_i², third cumulant (1/W³) Σ {8[(Σw²V)³ − 3Σw²V·Σw⁴V² + 2Σw⁶V³] + 4[(Σw³μ₃)² −
//!   Σw⁶μ₃²]}/W_i³, and the covariance of two levels likewise.
//! * **Unbiased** T = (1/W) Σ_i [(ΣwU)² − Σw²U²]/(W_i − Σw²/W_i): with one residual e for the cell
//!   the pairs have the mean e²(W_i² − Σw²). N − 1 is this for weights of 1.
//! * **Off the null**, by the delta method on the ratios, an event of cell i moves T by ψ =
//!   [2e_i·wU − w(e_i² + θ)]/w̄ with e_i = ΣwU/W_i and θ = Σ(W_i/W)e_i², whose mean is 0; so n·var
//!   T → Eψ², estimated by σ̂₁² = (n/W²) Σ_i [4e_i²Σw²U² − 4e_i(e_i² + θ)Σw²U + (e_i² + θ)²Σw²].
//!   For weights of 1 it is equation (7) of the interval paper.
//! * Where a number of events chooses something (cells of the interval, levels of the test), it is
//!   the effective one, (Σw)²/Σw² (Kish, *Survey sampling*, 1965, §11.7).
//!
//! The null assumes that, given its score, an outcome does not depend on the weight: P(y = 1 | z,
//! w) = z. That holds if the probability of being kept was a function of the score or independent
//! of the outcome. If it was a function of a feature on which calibration depends, T_d keeps its
//! mean of 0 for a population that is calibrated as a whole, but its spread is then not exactly
//! the null's.
//!
//! **Exactness.** Weights and scores are integers ([`super::weight`], [`super::fixed`]), z² and V²
//! rounded once as in a [`Cell`], and all products of weights exact. So sums merge and part to the
//! last bit, and events whose weights are all 1 give the bits that they give without weights. No
//! field can leave its integer with fewer than [`EVENTS_MAX`] events.
//!
//! **Cost.** 256 bytes a cell against 48, in a map and not an array; only models that use weights
//! pay it.

use super::algebra::{Merge, Overflow, Retract};
use super::axis::Grid;
use super::cell::{Cell, EVENTS_MAX};
use super::fixed::{ONE, Score};
use super::logs::{LogSums, log_terms};
use super::weight::{Weight, Wide};
use std::collections::BTreeMap;

/// Sums of one cell of weighted events. Weights are in units of 2⁻¹⁶, scores and what is made of
/// them in units of 2⁻³², products in the product of the units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WeightedCell {
    /// Number of events.
    pub n: u64,
    /// Number of positive outcomes.
    pub y: u64,
    /// Σw.
    pub w: u64,
    /// Σwy.
    pub wy: u64,
    /// Σwz.
    pub wz: u128,
    /// Σwyz.
    pub wyz: u128,
    /// Σwz².
    pub wz2: u128,
    /// Σw².
    pub w2: u128,
    /// Σw²y.
    pub w2y: u128,
    /// Σw²z.
    pub w2z: u128,
    /// Σw²yz.
    pub w2yz: u128,
    /// Σw²z².
    pub w2z2: u128,
    /// Σw²V².
    pub w2v2: u128,
    /// Σw³.
    pub w3: u128,
    /// Σw⁴V².
    pub w4v2: Wide,
    /// Σw⁶.
    pub w6: Wide,
}

/// Number of integers of a stored cell.
pub const NUMBERS: usize = 18;

impl WeightedCell {
    /// The sums of one event of a score in units of 2⁻³², at most [`ONE`].
    pub fn of(z: u64, outcome: bool, weight: Weight) -> WeightedCell {
        let one = Cell::of(z, outcome);
        let w = u64::from(weight.fixed());
        let (wide, y) = (u128::from(w), u128::from(one.y));
        let [z, z2, v2] = [one.z, one.z2, one.v2].map(u128::from);
        // w < 2³² and z ≤ 2³², so w²z ≤ 2⁹⁶ and w⁴ < 2¹²⁸.
        let (w2, w3) = (wide * wide, wide * wide * wide);
        WeightedCell {
            n: 1,
            y: one.y,
            w,
            wy: w * one.y,
            wz: wide * z,
            wyz: wide * y * z,
            wz2: wide * z2,
            w2,
            w2y: w2 * y,
            w2z: w2 * z,
            w2yz: w2 * y * z,
            w2z2: w2 * z2,
            w2v2: w2 * v2,
            w3,
            w4v2: Wide::product(w2 * w2, v2),
            w6: Wide::product(w3, w3),
        }
    }

    fn zip(
        &self,
        o: &WeightedCell,
        f: fn(u64, u64) -> Option<u64>,
        g: fn(u128, u128) -> Option<u128>,
        h: fn(Wide, Wide) -> Option<Wide>,
    ) -> Option<WeightedCell> {
        Some(WeightedCell {
            n: f(self.n, o.n)?,
            y: f(self.y, o.y)?,
            w: f(self.w, o.w)?,
            wy: f(self.wy, o.wy)?,
            wz: g(self.wz, o.wz)?,
            wyz: g(self.wyz, o.wyz)?,
            wz2: g(self.wz2, o.wz2)?,
            w2: g(self.w2, o.w2)?,
            w2y: g(self.w2y, o.w2y)?,
            w2z: g(self.w2z, o.w2z)?,
            w2yz: g(self.w2yz, o.w2yz)?,
            w2z2: g(self.w2z2, o.w2z2)?,
            w2v2: g(self.w2v2, o.w2v2)?,
            w3: g(self.w3, o.w3)?,
            w4v2: h(self.w4v2, o.w4v2)?,
            w6: h(self.w6, o.w6)?,
        })
    }

    /// All integers of the cell, for storage.
    pub fn numbers(&self) -> [u128; NUMBERS] {
        let [a, b] = self.w4v2.halves();
        let [c, d] = self.w6.halves();
        let [n, y, w, wy] = [self.n, self.y, self.w, self.wy].map(u128::from);
        [
            n, y, w, wy, self.wz, self.wyz, self.wz2, self.w2, self.w2y, self.w2z, self.w2yz,
            self.w2z2, self.w2v2, self.w3, a, b, c, d,
        ]
    }

    /// The cell of these integers; `None` where no events can have them.
    pub fn from_numbers(x: &[u128; NUMBERS]) -> Option<WeightedCell> {
        let small = |x: u128| u64::try_from(x).ok();
        let cell = WeightedCell {
            n: small(x[0])?,
            y: small(x[1])?,
            w: small(x[2])?,
            wy: small(x[3])?,
            wz: x[4],
            wyz: x[5],
            wz2: x[6],
            w2: x[7],
            w2y: x[8],
            w2z: x[9],
            w2yz: x[10],
            w2z2: x[11],
            w2v2: x[12],
            w3: x[13],
            w4v2: Wide::from_halves([x[14], x[15]]),
            w6: Wide::from_halves([x[16], x[17]]),
        };
        cell.is_bounded().then_some(cell)
    }

    /// Whether its number of events can have these sums.
    fn is_bounded(&self) -> bool {
        let n = u128::from(self.n);
        let (w, one) = (u128::from(u32::MAX), u128::from(ONE));
        let small = self.y <= self.n && self.wy <= self.w && u128::from(self.w) <= n * w;
        let firsts = [self.wz, self.wyz, self.wz2];
        let seconds = [self.w2y, self.w2];
        let rest = [self.w2z, self.w2yz, self.w2z2, self.w2v2];
        (1..=EVENTS_MAX).contains(&self.n)
            && small
            && firsts.iter().all(|&x| x <= n * w * one)
            && seconds.iter().all(|&x| x <= n * w * w)
            && rest.iter().all(|&x| x <= n * w * w * one)
            && self.w3 <= n * w * w * w
    }

    /// Whether all its weights are 1: then Σw = N and Σw² = N, and by Cauchy and Schwarz only then.
    pub(crate) fn is_plain(&self) -> bool {
        self.w == self.n << 16 && self.w2 == u128::from(self.n) << 32
    }
}

impl Merge for WeightedCell {
    fn empty(&self) -> WeightedCell {
        WeightedCell::default()
    }

    fn merge(&mut self, o: &WeightedCell) -> Result<(), Overflow> {
        let sum = self.zip(o, u64::checked_add, u128::checked_add, Wide::checked_add);
        *self = sum.ok_or(Overflow)?;
        Ok(())
    }
}

impl Retract for WeightedCell {
    fn retract(&mut self, o: &WeightedCell) -> Result<(), Overflow> {
        let rest = self.zip(o, u64::checked_sub, u128::checked_sub, Wide::checked_sub);
        *self = rest.ok_or(Overflow)?;
        Ok(())
    }
}

/// The log sums of one event: the first two times the weight's integer, the others times its
/// square.
fn weighted_logs(score: Score, outcome: bool, weight: Weight) -> LogSums {
    let one = log_terms(score, outcome);
    let w = i128::from(weight.fixed());
    LogSums {
        loss: w * one.loss,
        u_logit: w * one.u_logit,
        v_logit: w * w * one.v_logit,
        v_logit2: w * w * one.v_logit2,
    }
}

/// Sums of the weighted events of a stream, by cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WeightedSums {
    n: u64,
    cells: BTreeMap<u32, WeightedCell>,
    logs: LogSums,
}

impl WeightedSums {
    /// Number of events.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Occupied cells, ascending.
    pub fn cells(&self) -> impl Iterator<Item = (u32, &WeightedCell)> {
        self.cells.iter().map(|(&index, cell)| (index, cell))
    }

    /// The logarithmic sums: those of loss and ΣUℓ times the weight's integer, the others times its
    /// square.
    pub fn logs(&self) -> &LogSums {
        &self.logs
    }

    /// Adds one event, or nothing where a sum would leave its integer.
    pub fn observe(
        &mut self,
        grid: &Grid,
        score: Score,
        outcome: bool,
        weight: Weight,
    ) -> Result<(), Overflow> {
        let logs = weighted_logs(score, outcome, weight);
        let logs = self.logs.zip(&logs, i128::checked_add)?;
        if self.n >= EVENTS_MAX {
            return Err(Overflow);
        }
        let one = WeightedCell::of(score.fixed(), outcome, weight);
        let index = grid.cell_of(score.value());
        self.cells.entry(index).or_default().merge(&one)?;
        (self.n, self.logs) = (self.n + 1, logs);
        Ok(())
    }

    /// Adds sums given by their parts. On overflow the sums are unusable.
    pub fn merge_parts(
        &mut self,
        cells: impl IntoIterator<Item = (u32, WeightedCell)>,
        logs: &LogSums,
    ) -> Result<(), Overflow> {
        for (index, cell) in cells {
            self.cells.entry(index).or_default().merge(&cell)?;
            self.n = self.n.checked_add(cell.n).ok_or(Overflow)?;
        }
        self.logs = self.logs.zip(logs, i128::checked_add)?;
        if self.n > EVENTS_MAX {
            return Err(Overflow);
        }
        Ok(())
    }

    /// Heap bytes held: a node of a B-tree holds up to 11 entries and is at least half full.
    pub fn bytes(&self) -> usize {
        size_of::<WeightedSums>()
            + self.cells.len() * 2 * (size_of::<WeightedCell>() + size_of::<u32>())
    }
}

impl Merge for WeightedSums {
    fn empty(&self) -> WeightedSums {
        WeightedSums::default()
    }

    fn merge(&mut self, o: &WeightedSums) -> Result<(), Overflow> {
        self.merge_parts(o.cells().map(|(index, cell)| (index, *cell)), &o.logs)
    }
}

impl Retract for WeightedSums {
    fn retract(&mut self, o: &WeightedSums) -> Result<(), Overflow> {
        for (index, cell) in o.cells() {
            let ours = self.cells.get_mut(&index).ok_or(Overflow)?;
            ours.retract(cell)?;
            self.n -= cell.n;
        }
        self.cells.retain(|_, cell| cell.n > 0);
        self.logs = self.logs.zip(&o.logs, i128::checked_sub)?;
        Ok(())
    }
}

/// A raw event: score in [0, 1], outcome, weight above 0.
pub type WeightedEvent = (f64, bool, f64);
