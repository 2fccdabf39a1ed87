//! Whether outcomes that come too late differ from those in time: a maturity that is too short.
//!
//! Where positives come after five minutes and negatives after forty, a maturity of thirty counts
//! nearly all positives and half of the negatives, and a calibrated model looks far too low. The
//! outcomes that come too late show it. Lateness that depends on the score alone, or on nothing, is
//! harmless: then late outcomes depart from their scores as those in time do. So residuals y − z
//! are compared, and not rates. With sums over the events in time (mean residual u, Σz(1 − z) = V)
//! and n late outcomes with residuals of sum S, scores of variance W = Σz(1 − z),
//!
//! ```text
//!   x = |S − n·u|,   L = x²/(2(W·(1 + n/N) + x/3)),   bias = S − S₀ − (n − n₀)·u,   N events in time
//! ```
//!
//! where S₀ and n₀ are of the outcomes that the late ones replace. By Bernstein's inequality x has
//! a chance of at most 2e^(−L) if late outcomes are as those in time (Bernstein 1946; Boucheron,
//! Lugosi, Massart, *Concentration inequalities*, 2013, corollary 2.11), also where they are few
//! and rare. The maturity is *too short* if the late outcomes would move the stream by more than
//! what is tolerated, |bias| ≥ τ·V with τ in log-odds and at least .05, and
//!
//! * L ≥ 12.5, a chance of 7·10⁻⁶ at one look. A look is a pane, and looks share most of their data,
//!   so streams that meet it by chance are rare;
//! * or L ≥ 4.5 where an alarm is due. That is looked at only then, so of true alarms at most one in
//!   45 is held back.
//!
//! Sums are halved together from 20,000 events in time on, so what was mended is forgotten within
//! some 100,000 events. Only outcomes that reach the stream can be seen: those of a join with
//! `revise = true`.
//!
//! Always: sums are floats added pane by pane and correction by correction, in their order.

use crate::stats::fixed::{ONE, from_fixed};
use crate::stats::sums::Sums;
use serde::{Deserialize, Serialize};

/// L from which on late outcomes differ.
const DIFFERENT: f64 = 12.5;

/// The same where an alarm is due.
const DIFFERENT_AT_ALARM: f64 = 4.5;

/// Least change of log-odds that matters.
const MATTERS: f64 = 0.05;

/// Events in time at which all sums are halved.
const HALVE_AT: f64 = 20_000.0;

/// Sums over outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
struct Part {
    n: f64,
    /// Σ(y − z).
    residual: f64,
    /// Σz(1 − z).
    variance: f64,
}

impl Part {
    fn of(sums: &Sums) -> Part {
        let (mut y, mut z, mut z2) = (0i128, 0i128, 0i128);
        sums.each_occupied(|_, cell| {
            y += i128::from(cell.y);
            z += i128::from(cell.z);
            z2 += i128::from(cell.z2);
        });
        Part {
            n: sums.n() as f64,
            residual: from_fixed(y * i128::from(ONE) - z),
            variance: from_fixed(z - z2),
        }
    }

    fn add(&mut self, o: &Part) {
        self.n += o.n;
        self.residual += o.residual;
        self.variance += o.variance;
    }

    fn halve(&mut self) {
        self.n *= 0.5;
        self.residual *= 0.5;
        self.variance *= 0.5;
    }
}

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Timeliness {
    in_time: Part,
    late: Part,
    replaced: Part,
}

impl Timeliness {
    /// Takes the outcomes of a sealed pane.
    pub fn observe(&mut self, pane: &Sums) {
        self.in_time.add(&Part::of(pane));
        if self.in_time.n >= HALVE_AT {
            for part in [&mut self.in_time, &mut self.late, &mut self.replaced] {
                part.halve();
            }
        }
    }

    /// Takes outcomes that came too late, and those that they replace.
    pub fn miss(&mut self, late: &Sums, replaced: &Sums) {
        self.late.add(&Part::of(late));
        self.replaced.add(&Part::of(replaced));
    }

    /// Whether the maturity is too short, for scores that are tolerated up to `tolerance` in
    /// log-odds.
    pub fn is_too_short(&self, tolerance: f64) -> bool {
        self.differs(tolerance, DIFFERENT)
    }

    /// Whether it is where an alarm is due.
    pub fn explains_alarm(&self, tolerance: f64) -> bool {
        self.differs(tolerance, DIFFERENT_AT_ALARM)
    }

    fn differs(&self, tolerance: f64, least: f64) -> bool {
        let Timeliness {
            in_time,
            late,
            replaced,
        } = self;
        if late.n <= 0.0 || in_time.n <= 0.0 {
            return false;
        }
        let mean = in_time.residual / in_time.n;
        let x = (late.residual - late.n * mean).abs();
        let spread = late.variance * (1.0 + late.n / in_time.n) + x / 3.0;
        let bias = late.residual - replaced.residual - (late.n - replaced.n) * mean;
        x * x >= least * 2.0 * spread
            && x > 0.0
            && bias.abs() >= tolerance.max(MATTERS) * in_time.variance
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::axis::{Axis, Grid};
    use crate::stats::fixed::Score;
    use crate::stats::rng::Rng;

    fn empty() -> Sums {
        Sums::new(Grid::new(Axis::Linear, 8))
    }

    /// Whether a stream of panes is ever called too short, with these chances of being late for
    /// positives and negatives of a score, and outcomes of this probability.
    fn ever(
        seed: u64,
        panes: u32,
        late: impl Fn(f64, bool) -> f64,
        truth: impl Fn(f64) -> f64,
    ) -> bool {
        let (mut rng, mut timeliness) = (Rng::new(seed), Timeliness::default());
        (0..panes).any(|_| {
            let (mut pane, mut missed) = (empty(), empty());
            for _ in 0..100 {
                let z = rng.uniform();
                let y = rng.uniform() < truth(z);
                let sums = match rng.uniform() < late(z, y) {
                    true => &mut missed,
                    false => &mut pane,
                };
                sums.observe(Score::new(z).unwrap(), y).unwrap();
            }
            timeliness.observe(&pane);
            timeliness.miss(&missed, &empty());
            timeliness.is_too_short(0.05)
        })
    }

    #[test]
    fn lateness_by_outcome_is_seen_soon_and_lateness_by_score_or_chance_never() {
        for seed in 0..50 {
            let by_outcome = |_: f64, y: bool| if y { 0.0 } else { 0.5 };
            assert!(ever(seed, 4, by_outcome, |z| z), "seed {seed}");
            let slightly = |_: f64, y: bool| if y { 0.02 } else { 0.12 };
            assert!(ever(seed, 40, slightly, |z| z), "seed {seed}");
            assert!(!ever(seed, 200, |_, _| 0.3, |z| z), "seed {seed}");
            assert!(!ever(seed, 200, |z, _| 0.6 * z, |z| z), "seed {seed}");
            // A model that is wrong everywhere by the same odds is wrong in time and late.
            let truth = |z: f64| 0.8 * z;
            assert!(!ever(seed, 40, |_, _| 0.3, truth), "seed {seed}");
        }
    }

    #[test]
    fn what_was_mended_is_forgotten() {
        let mut rng = Rng::new(5);
        let mut timeliness = Timeliness::default();
        let mut some = |late: bool| {
            let mut sums = empty();
            for _ in 0..1000 {
                let z = rng.uniform();
                let y = !late && rng.uniform() < z;
                sums.observe(Score::new(z).unwrap(), y).unwrap();
            }
            sums
        };
        timeliness.observe(&some(false));
        timeliness.miss(&some(true), &empty());
        assert!(timeliness.is_too_short(0.05));
        (0..100).for_each(|_| timeliness.observe(&some(false)));
        assert!(!timeliness.is_too_short(0.05));
    }
}
