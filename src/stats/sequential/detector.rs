//! The Shiryaev-Roberts e-detector over the mixture of bets.
//!
//! Every component c keeps M_c: the sum, over all possible moments of change s, of the present
//! value of a stake a_s that was placed at s. A pane with likelihood ratios e_c and injected
//! capital a moves it to
//!
//! ```text
//!   M_c ← e_c·(M_c + a),     M = Σ weight_c·M_c,     alarm when M ≥ A, then M restarts from 0
//! ```
//!
//! **Guarantee.** If scores are right (within the tolerance), E[e_c | past] ≤ 1, so A·(alarms) + M
//! less the capital injected is a supermartingale: the expected number of false alarms up to *any*
//! stopping time is at most the capital injected by then, divided by A. Nothing is assumed of the
//! scores, which may drift; looks cost nothing. With one unit an event, the average run length to a
//! false alarm is at least A events ([the module](super) proves it). SR is never below the CUSUM of
//! the same bets, which has the same guarantee.
//!
//! *Signs.* A cell of a scale bets +c with probability w and −c with 1 − w: e = w·e₊ + (1 − w)·e₋,
//! and then w moves to the posterior, drawn back to ½ by ρ = min(½, c²·Σz(1−z)/H): it forgets in
//! time measured by information, so the noise of a calibrated year does not lock it in. w is used
//! before it learns.
//!
//! *Onset.* Beside M_c stands o_c, the mean moment of the stakes in it, each weighted by its worth:
//! the posterior mean of the change under a flat prior. A stake placed now moves it by a/(M_c + a)
//! of the way; e_c multiplies old and new alike and drops out. (Keeping N_c = M_c·o_c would
//! do too; the ratio does not grow with the size of the numbers, so a time in milliseconds keeps
//! its digits.)
//!
//! Always: M_c is kept as its logarithm, −∞ before the first stake, so no pane is too large; state
//! is a function of the likelihoods and stakes since the last restart, to the last bit on every
//! machine. It is an error to feed an outcome twice, or panes in an order that depends on outcomes.
//!
//! Cost: 287·3 + 572·4 numbers, 25 kB a stream; about 3000 exponentials a pane where every cell is
//! occupied, by [`exp_each`] as vector code. The ratios of cells are multiplied, so that they share
//! a logarithm.

use super::likelihood::{CellLikelihood, Likelihoods};
use super::mixture::{
    CELL_AMPLITUDES, CELL_OFFSET, CELLS, COMPONENTS, DIRECTED, LEARNT, LOG_WEIGHTS, SCALES, Scale,
    TOWARDS, Z_SCALES, bump_component, bumps, component, horizon, towards_component,
};
use crate::exp::exp_each;
use crate::ln::ln_each_by;

/// A sign is never surer than this, so that it can always turn.
const SIGN_MIN: f64 = 1e-12;

/// Most that one pane may draw a sign back to even.
const FORGET_MAX: f64 = 0.5;

/// Most events of a pane whose ratios can be multiplied: plus − minus is at most 2·½ an event, so
/// no product is beyond e^±500.
const FEW: u64 = 500;

/// Cells whose exponentials are taken together, and share a logarithm: each mixture of a cell is at
/// least [`SIGN_MIN`] of its larger ratio, so their product is at least 10⁻¹⁹² of theirs.
const BATCH: usize = 16;

/// Terms of the series of a logarithm, for an error of rounding alone.
const LN_TERMS: usize = 6;

/// log M is never above this: capping only lowers it. e⁶⁴⁴ = 10²⁸⁰.
const LOG_MAX: f64 = 644.0;

/// The scale of z at which the detector remembers where the scores lie.
pub const SPREAD_SCALE: usize = 4;

/// Number of cells of this scale.
pub const SPREAD: usize = 2 << SPREAD_SCALE;

/// Where a stake is placed in the stream: the coordinates in which the onset is estimated.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct StreamPosition {
    /// Event number, from 1 for the first event after a restart.
    pub event: f64,
    /// Time, in milliseconds.
    pub ms: f64,
}

impl StreamPosition {
    /// The position a share `x` of the way to `o`.
    fn towards(&self, o: &StreamPosition, x: f64) -> StreamPosition {
        StreamPosition {
            event: self.event + x * (o.event - self.event),
            ms: self.ms + x * (o.ms - self.ms),
        }
    }
}

/// The worth of a component, and since when.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Component {
    /// log M_c, −∞ before the first stake.
    pub log_worth: f64,
    /// o_c, the mean position of its stakes by worth.
    pub onset: StreamPosition,
}

/// The Shiryaev-Roberts e-detector. All of its state is public, for a snapshot.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Detector {
    /// The components, [`COMPONENTS`] of them.
    pub components: Vec<Component>,
    /// w of each cell and amplitude, [`CELLS`] of them, in (0, 1).
    pub signs: Vec<[f64; LEARNT]>,
    /// Events since it began or was restarted.
    pub events: u64,
    /// Σ z(1 − z) of their scores in each of [`SPREAD`] equal cells of z: where the scores lie.
    pub variance: [f64; SPREAD],
}

impl Default for Detector {
    fn default() -> Detector {
        let blank = Component {
            log_worth: f64::NEG_INFINITY,
            onset: StreamPosition::default(),
        };
        Detector {
            components: vec![blank; COMPONENTS],
            signs: vec![[0.5; LEARNT]; CELLS],
            events: 0,
            variance: [0.0; SPREAD],
        }
    }
}

impl Detector {
    /// Whether a detector can have this state; for one that was stored.
    pub fn is_sound(&self) -> bool {
        let sign = |w: &f64| (SIGN_MIN..=1.0 - SIGN_MIN).contains(w);
        let whole = |c: &Component| {
            !c.log_worth.is_nan()
                && c.log_worth <= LOG_MAX
                && c.onset.event.is_finite()
                && c.onset.ms.is_finite()
        };
        self.components.len() == COMPONENTS
            && self.signs.len() == CELLS
            && self.variance.iter().all(|v| v.is_finite())
            && self.components.iter().all(whole)
            && self.signs.iter().flatten().all(sign)
    }

    /// Takes a pane with `capital` to stake on it at time `ms`; returns log M.
    ///
    /// The capital may depend on anything before the pane's outcomes.
    pub fn observe(&mut self, pane: &Likelihoods, capital: f64, ms: f64) -> f64 {
        let position = StreamPosition {
            event: self.events as f64 + 1.0,
            ms,
        };
        let ratios = self.ratios(pane);
        grow(
            &mut self.components,
            &ratios,
            ln_from_zero(capital),
            &position,
        );
        self.events += pane.n;
        let cells = &pane.cells[Scale::of(SPREAD_SCALE).first..];
        for (sum, cell) in self.variance.iter_mut().zip(cells) {
            *sum += cell.variance;
        }
        self.log_worth()
    }

    /// log M.
    pub fn log_worth(&self) -> f64 {
        let mut worths = [f64::NEG_INFINITY; LANES * COMPONENTS.div_ceil(LANES)];
        for (x, worth) in worths.iter_mut().zip(self.worths()) {
            *x = worth;
        }
        log_sum(worths)
    }

    /// log(weight_c·M_c) of each component.
    pub fn worths(&self) -> impl Iterator<Item = f64> + Clone {
        let weighted = |(one, log_weight): (&Component, &f64)| log_weight + one.log_worth;
        self.components.iter().zip(LOG_WEIGHTS.iter()).map(weighted)
    }

    /// log e_c of a pane for each component; the signs learn from it.
    fn ratios(&mut self, pane: &Likelihoods) -> [f64; COMPONENTS] {
        let mut ratios = [0.0; COMPONENTS];
        ratios[..2 * DIRECTED].copy_from_slice(&pane.directed);
        let sums = match pane.n <= FEW {
            true => self.learn_few(pane),
            false => self.learn(pane),
        };
        ratios[component(0, 0)..component(SCALES, 0)].copy_from_slice(sums.as_flattened());
        ratios[towards_component(0)..towards_component(TOWARDS)].copy_from_slice(&pane.towards);
        for (i, bump) in bumps().enumerate() {
            let of = |cell: &CellLikelihood| match bump.up {
                true => cell.plus[bump.amplitude],
                false => cell.minus[bump.amplitude],
            };
            let cells = &pane.cells[bump.first..bump.first + bump.cells];
            ratios[bump_component(i)] = cells.iter().map(of).sum();
        }
        ratios
    }

    /// log e of the signed bets of each scale on a pane of few events, whose ratios e^(plus −
    /// minus) and their products stay within their range: coarser cells multiply those of finer
    /// ones, and a scale takes one logarithm. All minus together are the bet on the intercept.
    fn learn_few(&mut self, pane: &Likelihoods) -> [[f64; LEARNT]; SCALES] {
        let mut ratios = [[1.0; LEARNT]; CELLS];
        for k in (0..SCALES).rev() {
            let scale = Scale::of(k);
            if k == SCALES - 1 || k == Z_SCALES - 1 {
                let all = scale.first..scale.first + scale.cells;
                finest_ratios(&pane.cells[all.clone()], &mut ratios[all]);
                continue;
            }
            let fine = Scale::of(k + 1).first;
            for cell in 0..scale.cells {
                let (a, b) = (ratios[fine + 2 * cell], ratios[fine + 2 * cell + 1]);
                ratios[scale.first + cell] = std::array::from_fn(|j| a[j] * b[j]);
            }
        }
        std::array::from_fn(|k| {
            let scale = Scale::of(k);
            let all = scale.first..scale.first + scale.cells;
            let (cells, signs) = (&pane.cells[all.clone()], &mut self.signs[all.clone()]);
            let rates = rates(scale);
            let mut product = [1.0; LEARNT];
            for ((cell, ratio), signs) in cells.iter().zip(&ratios[all]).zip(signs) {
                if cell.n == 0 {
                    continue;
                }
                for j in 0..LEARNT {
                    let a = signs[j] * ratio[j];
                    let whole = (1.0 - signs[j]) + a;
                    product[j] *= whole;
                    signs[j] = moved(a / whole, rates[j] * cell.variance);
                }
            }
            ln_each_by::<LN_TERMS, LEARNT>(&mut product);
            std::array::from_fn(|j| pane.directed[2 * (j + CELL_OFFSET) + 1] + product[j])
        })
    }

    /// log e of the signed bets of each scale on any pane: the larger of plus and minus is taken
    /// out of the sum.
    fn learn(&mut self, pane: &Likelihoods) -> [[f64; LEARNT]; SCALES] {
        std::array::from_fn(|k| {
            let scale = Scale::of(k);
            let all = scale.first..scale.first + scale.cells;
            let (cells, signs) = (&pane.cells[all.clone()], &mut self.signs[all]);
            let rates = rates(scale);
            let mut sum = [0.0; LEARNT];
            each_batch(cells, |batch| {
                let mut small = [0.0; BATCH * LEARNT];
                for (small, i) in small.as_chunks_mut().0.iter_mut().zip(batch) {
                    *small = difference(&cells[*i]).map(|d| -d.abs());
                }
                exp_each(&mut small);
                let mut product = [1.0; LEARNT];
                for (small, i) in small.as_chunks::<LEARNT>().0.iter().zip(batch) {
                    let (cell, signs) = (&cells[*i], &mut signs[*i]);
                    for j in 0..LEARNT {
                        let (plus, minus) = (cell.plus[j], cell.minus[j]);
                        let (top, up, down) = match plus >= minus {
                            true => (plus, 1.0, small[j]),
                            false => (minus, small[j], 1.0),
                        };
                        let a = signs[j] * up;
                        let whole = a + (1.0 - signs[j]) * down;
                        sum[j] += top;
                        product[j] *= whole;
                        signs[j] = moved(a / whole, rates[j] * cell.variance);
                    }
                }
                ln_each_by::<LN_TERMS, LEARNT>(&mut product);
                for j in 0..LEARNT {
                    sum[j] += product[j];
                }
            });
            sum
        })
    }
}

/// How fast signs of a scale are drawn back to even, by variance.
fn rates(scale: Scale) -> [f64; LEARNT] {
    CELL_AMPLITUDES.map(|c| c * c / horizon(scale.cells))
}

/// The sign after `posterior` is drawn back to even by the share `forget`.
#[inline]
fn moved(posterior: f64, forget: f64) -> f64 {
    let forget = forget.min(FORGET_MAX);
    let next = (1.0 - forget) * posterior + 0.5 * forget;
    next.clamp(SIGN_MIN, 1.0 - SIGN_MIN)
}

/// plus − minus.
#[inline]
fn difference(cell: &CellLikelihood) -> [f64; LEARNT] {
    std::array::from_fn(|j| cell.plus[j] - cell.minus[j])
}

/// e^(plus − minus) of cells with events.
fn finest_ratios(cells: &[CellLikelihood], ratios: &mut [[f64; LEARNT]]) {
    each_batch(cells, |batch| {
        let mut numbers = [0.0; BATCH * LEARNT];
        for (x, i) in numbers.as_chunks_mut().0.iter_mut().zip(batch) {
            *x = difference(&cells[*i]);
        }
        exp_each(&mut numbers);
        for (x, i) in numbers.as_chunks().0.iter().zip(batch) {
            ratios[*i] = *x;
        }
    });
}

/// Calls `f` with the indices of cells with events, at most [`BATCH`] at a time.
#[inline]
fn each_batch(cells: &[CellLikelihood], mut f: impl FnMut(&[usize])) {
    let mut occupied = (0..cells.len()).filter(|i| cells[*i].n > 0);
    loop {
        let mut batch = [0; BATCH];
        let slots = batch.iter_mut().zip(occupied.by_ref());
        match slots.map(|(slot, i)| *slot = i).count() {
            0 => break,
            found => f(&batch[..found]),
        }
    }
}

/// M ← e·(M + a) of each component, and the mean position of its stakes.
///
/// Of M and a the lesser is a share x/(1 + x) of the sum, and log(M + a) is the larger one's
/// logarithm and ln(1 + x), with x = e^−|log M − log a|.
fn grow(all: &mut [Component], log_e: &[f64; COMPONENTS], log_a: f64, position: &StreamPosition) {
    let mut lesser = [0.0; COMPONENTS];
    for (x, c) in lesser.iter_mut().zip(&*all) {
        *x = -(c.log_worth - log_a).abs();
    }
    exp_each(&mut lesser);
    let mut whole = [0.0; COMPONENTS];
    for (whole, x) in whole.iter_mut().zip(&lesser) {
        *whole = 1.0 + x;
    }
    let mut log_whole = whole;
    ln_each_by::<LN_TERMS, COMPONENTS>(&mut log_whole);
    for (i, c) in all.iter_mut().enumerate().take(COMPONENTS) {
        let (log_high, stake) = match c.log_worth < log_a {
            true => (log_a, 1.0),
            false => (c.log_worth, lesser[i]),
        };
        // Nothing was staked, now or before.
        if log_high == f64::NEG_INFINITY {
            continue;
        }
        c.onset = c.onset.towards(position, stake / whole[i]);
        c.log_worth = (log_e[i] + (log_high + log_whole[i])).min(LOG_MAX);
    }
}

/// Numbers that are compared or added side by side.
const LANES: usize = 4;

/// log Σeˣ; −∞ of nothing.
fn log_sum<const N: usize>(mut all: [f64; N]) -> f64 {
    let mut tops = [f64::NEG_INFINITY; LANES];
    for four in all.as_chunks::<LANES>().0 {
        for (top, x) in tops.iter_mut().zip(four) {
            *top = if x > top { *x } else { *top };
        }
    }
    let top = tops.into_iter().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY {
        return top;
    }
    all.iter_mut().for_each(|x| *x -= top);
    exp_each(&mut all);
    let mut sums = [0.0; LANES];
    for four in all.as_chunks::<LANES>().0 {
        for (sum, x) in sums.iter_mut().zip(four) {
            *sum += x;
        }
    }
    top + ln_from_zero(sums.iter().sum())
}

/// The logarithm of a positive number, −∞ of 0.
fn ln_from_zero(x: f64) -> f64 {
    if x <= 0.0 {
        return f64::NEG_INFINITY;
    }
    let mut one = [x];
    ln_each_by::<LN_TERMS, 1>(&mut one);
    one[0]
}

#[cfg(test)]
mod tests {
    use super::super::odds::Odds;
    use super::*;
    use crate::axis::{Axis, Grid};
    use crate::fixed::Score;
    use crate::rng::Rng;
    use crate::sums::Sums;

    #[test]
    fn a_pane_of_few_events_is_taken_like_one_of_many() {
        let (grid, mut rng) = (Grid::new(Axis::Linear, 12), Rng::new(3));
        let odds = Odds::new(grid, 0.05);
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs().max(1.0);
        for always in [false, true] {
            let (mut few, mut many) = (Detector::default(), Detector::default());
            for _ in 0..20 {
                let mut sums = Sums::new(grid);
                for _ in 0..FEW {
                    let z = rng.uniform();
                    let y = always || rng.uniform() < z;
                    sums.observe(Score::new(z).unwrap(), y).unwrap();
                }
                let mut pane = odds.likelihoods(&sums);
                few.observe(&pane, 1.0, 0.0);
                pane.n += 1;
                many.observe(&pane, 1.0, 0.0);
                let pairs = few.components.iter().zip(&many.components);
                for (a, b) in pairs {
                    assert!(near(a.log_worth, b.log_worth), "{a:?} {b:?}");
                }
                let pairs = few.signs.as_flattened().iter();
                for (a, b) in pairs.zip(many.signs.as_flattened()) {
                    assert!(near(*a, *b), "{a} {b}");
                }
            }
        }
    }
}
