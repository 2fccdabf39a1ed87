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
//! is a function of the panes and stakes since the last restart, to the last bit on one machine. It
//! is an error to feed an outcome twice, or panes in an order that depends on outcomes.
//!
//! Cost: 287·3 + 572·4 numbers, 25 kB a stream; about 3000 exponentials and logarithms a pane where
//! every cell is occupied.

use super::likelihood::{CellLikelihood, Likelihoods};
use super::mixture::{
    CELL_AMPLITUDES, CELLS, COMPONENTS, DIRECTED, LEARNT, LOG_WEIGHTS, SCALES, Scale, TOWARDS,
    bump_component, bumps, component, horizon, towards_component,
};

/// A sign is never surer than this, so that it can always turn.
const SIGN_MIN: f64 = 1e-12;

/// Most that one pane may draw a sign back to even.
const FORGET_MAX: f64 = 0.5;

/// log M is never above this: capping only lowers it. e⁶⁴⁴ = 10²⁸⁰.
const LOG_MAX: f64 = 644.0;

/// The scale of z at which it is remembered where the scores lie.
pub const SPREAD_SCALE: usize = 4;

/// Its number of cells.
pub const SPREAD: usize = 2 << SPREAD_SCALE;

/// Where a stake is placed in the stream: the coordinates in which the onset is estimated.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Place {
    /// Event number, from 1 for the first event after a restart.
    pub event: f64,
    /// Time, in milliseconds.
    pub ms: f64,
}

impl Place {
    /// The place a share `x` of the way to `o`.
    fn towards(&self, o: &Place, x: f64) -> Place {
        Place {
            event: self.event + x * (o.event - self.event),
            ms: self.ms + x * (o.ms - self.ms),
        }
    }
}

/// What a component is worth.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Component {
    /// log M_c, −∞ before the first stake.
    pub log_worth: f64,
    /// o_c, the mean place of its stakes by worth.
    pub onset: Place,
}

/// See the module. All of its state is public, for a snapshot.
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
            onset: Place::default(),
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
    /// Whether a detector can have this state; ask it of one that was stored.
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
        let place = Place {
            event: self.events as f64 + 1.0,
            ms,
        };
        let ratios = self.ratios(pane);
        let log_a = capital.ln();
        for (c, log_e) in self.components.iter_mut().zip(ratios) {
            grow(c, log_e, log_a, &place);
        }
        self.events += pane.n;
        let cells = &pane.cells[Scale::of(SPREAD_SCALE).first..];
        for (sum, cell) in self.variance.iter_mut().zip(cells) {
            *sum += cell.variance;
        }
        self.log_worth()
    }

    /// log M.
    pub fn log_worth(&self) -> f64 {
        log_sum(self.worths())
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
        for k in 0..SCALES {
            let scale = Scale::of(k);
            let rates = CELL_AMPLITUDES.map(|c| c * c / horizon(scale.cells));
            let all = scale.first..scale.first + scale.cells;
            let mut sum = [0.0; LEARNT];
            for (cell, signs) in pane.cells[all.clone()].iter().zip(&mut self.signs[all]) {
                if cell.n > 0 {
                    learn(signs, cell, &rates, &mut sum);
                }
            }
            ratios[component(k, 0)..component(k, LEARNT)].copy_from_slice(&sum);
        }
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
}

/// Adds the log-likelihood ratio of the signed bets of one cell to `sum`, then moves the signs.
#[inline]
fn learn(
    signs: &mut [f64; LEARNT],
    cell: &CellLikelihood,
    rates: &[f64; LEARNT],
    sum: &mut [f64; LEARNT],
) {
    for j in 0..LEARNT {
        let w = signs[j];
        let (plus, minus) = (cell.plus[j], cell.minus[j]);
        let top = plus.max(minus);
        let small = (-(plus - minus).abs()).exp();
        let (a, b) = if plus >= minus {
            (w, (1.0 - w) * small)
        } else {
            (w * small, 1.0 - w)
        };
        sum[j] += top + (a + b).ln();
        let forget = (rates[j] * cell.variance).min(FORGET_MAX);
        let next = (1.0 - forget) * (a / (a + b)) + 0.5 * forget;
        signs[j] = next.clamp(SIGN_MIN, 1.0 - SIGN_MIN);
    }
}

/// M ← e·(M + a), and the mean place of the stakes.
fn grow(c: &mut Component, log_e: f64, log_a: f64, place: &Place) {
    let sum = log_add(c.log_worth, log_a);
    if sum == f64::NEG_INFINITY {
        return;
    }
    c.onset = c.onset.towards(place, (log_a - sum).exp());
    c.log_worth = (log_e + sum).min(LOG_MAX);
}

/// log(eᵃ + eᵇ).
pub(super) fn log_add(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY {
        high
    } else {
        high + (low - high).exp().ln_1p()
    }
}

/// log Σeˣ; −∞ of nothing.
pub(super) fn log_sum(all: impl Iterator<Item = f64> + Clone) -> f64 {
    let top = all.clone().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY {
        return top;
    }
    top + all.map(|x| (x - top).exp()).sum::<f64>().ln()
}
