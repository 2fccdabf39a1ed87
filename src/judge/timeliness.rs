//! Whether outcomes that come too late differ from those in time: a maturity that is too short.
//!
//! If positives come after five minutes and negatives after forty, a maturity of thirty minutes
//! counts nearly all positives and half of the negatives, and the scores of a calibrated model look
//! far too low. The outcomes that come too late show this fault. Lateness that depends on the score
//! alone, or on nothing, is harmless: residuals y − z of late outcomes are then like those of
//! outcomes in time with such scores. So residuals are compared, and not rates, by score: the mean
//! residual in time is fitted by least squares as a cubic in the score. Let φ = (1, z, z², z³), let
//! sums over i be over the N events in time and sums over j over the n late outcomes, and
//!
//! ```text
//!   G = Σᵢ φφᵀ,   H = Σᵢ z(1 − z)φφᵀ,   m = Σⱼ φ,   q = G⁻¹m
//!   F = qᵀ Σᵢ (y − z)φ                      the fitted residuals of the late outcomes
//!   S = Σⱼ (y − z),   W = Σⱼ z(1 − z),   V = Σᵢ z(1 − z)
//!
//!   x = |S − F|,   L = x²/(2(k(W + qᵀHq) + x/3)),   bias = D − (a/n)·F
//! ```
//!
//! where D is the change of Σ(y − z) that all late outcomes would make, and a the number of events
//! they would add ([`LateOutcomes`]). A power of z that is almost a sum of the lower ones over the
//! events in time is left out: of scores that are all alike, a mean is left. qᵀHq is the variance
//! of the fit if the scores are true (White 1980, equation 2), and k is how much more residuals
//! vary in time than the scores say:
//!
//! ```text
//!   k = Σᵢ (y − z)²/V = 1 + Σᵢ (y − z)(1 − 2z)/V,   at least 1
//! ```
//!
//! A rare outcome that is ten times as frequent as its scores say has k = 10. In time, z is the
//! mean score of a cell.
//!
//! If late outcomes are like those in time, Bernstein's inequality bounds the probability of such
//! an x by 2e^(−L), also where late outcomes are few and positives rare (Bernstein 1946; Boucheron,
//! Lugosi, Massart, *Concentration inequalities*, 2013, corollary 2.11). The maturity is *too
//! short* if the late outcomes would move the stream by more than the tolerance, |bias| ≥ τ·V with
//! τ in log-odds and at least .05, and
//!
//! * L ≥ 12.5, a probability of 7·10⁻⁶ at one check. Each pane is a check, and checks share most of
//!   their data, so few streams reach this by chance;
//! * or L ≥ 4.5 if an alarm is due. As this is checked only then, it holds back at most one in 45
//!   true alarms.
//!
//! An alarm of a young stream with much traffic may be due before late outcomes could come. A
//! prediction without an outcome stays *open* for one more maturity. With o open predictions, s
//! that were open before, and c late outcomes of both, late outcomes may explain an alarm if
//!
//! ```text
//!   o · min(1, (c + 3)/s) · min(1, (x + 3√(k(W + qᵀHq)) + 3)/n) ≥ τ·V
//! ```
//!
//! which holds in the first maturities of a stream. Later, enough late outcomes have come to show
//! whether they are harmless, and outcomes that never come are known too. Such an alarm waits, for
//! at most one maturity.
//!
//! From 20,000 events in time on, all sums are halved together, but at most once in two maturities,
//! so a fault that was fixed is forgotten within some maturities. Were they halved more often, sums
//! of few panes would be compared with the open predictions of a whole maturity, and alarms of a
//! stream with much traffic would always wait; and late outcomes, whose predictions are up to a
//! maturity older, would look different after any change of the model.
//!
//! Always: sums are floats added pane by pane, in their order.

use crate::stats::fixed::from_fixed;
use crate::stats::stored::checked;
use crate::stats::sums::Sums;
use crate::window::LateOutcomes;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

mod in_time;

use in_time::{InTime, POWERS};

/// Least L at which late outcomes differ.
const DIFFERENT: f64 = 12.5;

/// Least L at which late outcomes differ if an alarm is due.
const DIFFERENT_AT_ALARM: f64 = 4.5;

/// Least change of log-odds that matters.
const MATTERS: f64 = 0.05;

/// Least events in time at which all sums are halved.
const HALVE_AT: f64 = 20_000.0;

/// Least maturities between two halvings.
const HALVE_AFTER: i64 = 2;

/// Stretches of a maturity in which predictions without an outcome are counted.
const STRETCHES: i64 = 8;

/// Sums over late outcomes that were seen.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
struct Late {
    /// m of the module.
    powers: [f64; POWERS],
    /// S of the module.
    residual: f64,
}

impl Late {
    fn add(&mut self, late: &LateOutcomes) {
        let powers = [late.z, late.z2, late.z3].map(|sum| from_fixed(sum.into()));
        self.powers[0] += late.n as f64;
        self.powers[1..]
            .iter_mut()
            .zip(powers)
            .for_each(|(sum, z)| *sum += z);
        self.residual += late.y as f64 - powers[0];
    }

    fn halve(&mut self) {
        let sums = self.powers.iter_mut().chain([&mut self.residual]);
        sums.for_each(|sum| *sum *= 0.5);
    }
}

/// How late outcomes differ from those in time.
struct Difference {
    /// F of the module.
    fitted: f64,
    /// x of the module.
    x: f64,
    /// k(W + qᵀHq) of the module.
    variance: f64,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Timeliness {
    in_time: InTime,
    late: Late,
    /// How many late outcomes came, how many of these had not been counted, and the change they
    /// would make.
    came: f64,
    added: f64,
    shift: f64,
    /// Predictions without an outcome that are open: start of the stretch, and number.
    #[serde(deserialize_with = "checked")]
    open: VecDeque<(i64, u64)>,
    /// Predictions that were open before.
    settled: f64,
    #[serde(deserialize_with = "checked")]
    maturity_ms: i64,
    /// End of the newest pane.
    #[serde(deserialize_with = "checked")]
    at_ms: i64,
    /// When the sums were last halved; at first, the end of the first pane.
    #[serde(deserialize_with = "checked")]
    halved_ms: Option<i64>,
    /// Since when an alarm waits, or waited last.
    #[serde(deserialize_with = "checked")]
    waits_ms: Option<i64>,
}

impl Timeliness {
    /// Takes the outcomes of a sealed pane.
    pub fn observe(&mut self, pane: &Sums) {
        self.in_time.add(pane);
        let since_ms = *self.halved_ms.get_or_insert(self.at_ms);
        let soon = self.at_ms.saturating_sub(since_ms) < HALVE_AFTER * self.maturity_ms;
        if self.in_time.n() < HALVE_AT || soon {
            return;
        }
        self.halved_ms = Some(self.at_ms);
        self.in_time.halve();
        self.late.halve();
        let counts = [&mut self.came, &mut self.added, &mut self.settled];
        counts.into_iter().for_each(|sum| *sum *= 0.5);
        self.shift *= 0.5;
    }

    /// Takes late outcomes.
    pub fn miss(&mut self, late: &LateOutcomes) {
        self.late.add(late);
        self.came += late.came as f64;
        self.added += late.added as f64;
        self.shift += from_fixed(late.shift.into());
    }

    /// Takes the number of predictions of the pane up to `at_ms` that had no outcome at their
    /// maturity.
    pub fn give_up(&mut self, at_ms: i64, given_up: u64, maturity_ms: i64) {
        (self.at_ms, self.maturity_ms) = (at_ms, maturity_ms);
        let stretch_ms = maturity_ms / STRETCHES;
        while let Some((begin_ms, n)) = self.open.front()
            && begin_ms + stretch_ms + maturity_ms <= at_ms
        {
            self.settled += *n as f64;
            self.open.pop_front();
        }
        match self.open.back_mut() {
            Some((begin_ms, n)) if at_ms - *begin_ms < stretch_ms => *n += given_up,
            _ if given_up > 0 => self.open.push_back((at_ms, given_up)),
            _ => {}
        }
    }

    /// Whether the maturity is too short, for scores that are tolerated up to `tolerance` in
    /// log-odds.
    pub fn is_too_short(&self, tolerance: f64) -> bool {
        self.differs(tolerance, DIFFERENT)
    }

    /// Whether the maturity is too short, if an alarm is due.
    pub fn explains_alarm(&self, tolerance: f64) -> bool {
        self.differs(tolerance, DIFFERENT_AT_ALARM)
    }

    /// Whether outcomes that may still come late may explain an alarm.
    pub fn may_explain_alarm(&self, tolerance: f64) -> bool {
        let open: u64 = self.open.iter().map(|(_, n)| n).sum();
        if open == 0 {
            return false;
        }
        let share = |sum: f64, of: f64| if sum < of { sum / of } else { 1.0 };
        let come = share(self.came + 3.0, self.settled);
        let late = self.difference();
        let differ = late.x + 3.0 * late.variance.sqrt() + 3.0;
        let most = open as f64 * come * share(differ, self.late.powers[0]);
        most >= tolerance.max(MATTERS) * self.in_time.variance()
    }

    /// Since when an alarm that is due at `at_ms` waits; `None` if it has waited for a whole
    /// maturity.
    pub fn wait(&mut self, at_ms: i64) -> Option<i64> {
        let past = |since_ms: i64| at_ms.saturating_sub(since_ms) > 2 * self.maturity_ms;
        let since_ms = self.waits_ms.filter(|since_ms| !past(*since_ms));
        let since_ms = since_ms.unwrap_or(at_ms);
        self.waits_ms = Some(since_ms);
        (at_ms - since_ms < self.maturity_ms).then_some(since_ms)
    }

    fn difference(&self) -> Difference {
        let Late { powers, residual } = self.late;
        let (fitted, of_fit) = self.in_time.fit(&powers);
        let of_late = (powers[1] - powers[2]).max(0.0);
        Difference {
            fitted,
            x: (residual - fitted).abs(),
            variance: self.in_time.spread() * (of_late + of_fit),
        }
    }

    fn differs(&self, tolerance: f64, least: f64) -> bool {
        let n = self.late.powers[0];
        if n <= 0.0 || self.in_time.n() <= 0.0 {
            return false;
        }
        let late = self.difference();
        let bias = self.shift - self.added / n * late.fitted;
        let least = least * 2.0 * (late.variance + late.x / 3.0);
        late.x > 0.0
            && late.x * late.x >= least
            && bias.abs() >= tolerance.max(MATTERS) * self.in_time.variance()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::axis::{Axis, Grid};
    use crate::stats::fixed::Score;
    use crate::stats::rng::Rng;
    use crate::window::sums_of;

    fn grid() -> Grid {
        Grid::new(Axis::Linear, 8)
    }

    /// A thousand events whose outcomes come as their scores say.
    fn calibrated(rng: &mut Rng) -> Sums {
        let one = |_| {
            let z = rng.uniform();
            (z, rng.uniform() < z)
        };
        sums_of(grid(), (0..1000).map(one))
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
            let (mut pane, mut missed) = (Sums::new(grid()), LateOutcomes::default());
            for _ in 0..100 {
                let z = rng.uniform();
                let y = rng.uniform() < truth(z);
                let score = Score::new(z).unwrap();
                match rng.uniform() < late(z, y) {
                    true => missed.count(score, None, y, 1),
                    false => pane.observe(score, y).unwrap(),
                }
            }
            timeliness.observe(&pane);
            timeliness.miss(&missed);
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
            // Over-confident, and late where scores are high.
            let milder = |z: f64| 1.0 / (1.0 + (1.0 / z - 1.0).sqrt());
            let upper = |z: f64, _: bool| if z > 0.5 { 0.2 } else { 0.0 };
            assert!(!ever(seed, 200, upper, milder), "seed {seed}");
            assert!(ever(seed, 40, slightly, milder), "seed {seed}");
            // A model that is wrong everywhere by the same odds is wrong in time and late.
            let truth = |z: f64| 0.8 * z;
            assert!(!ever(seed, 40, |_, _| 0.3, truth), "seed {seed}");
        }
    }

    #[test]
    fn lateness_by_chance_seldom_explains_the_alarm_of_a_rare_outcome_that_got_frequent() {
        let (z, truth) = (Score::new(0.002).unwrap(), 0.02);
        let explained = (0..200).filter(|seed| {
            let (mut rng, mut timeliness) = (Rng::new(*seed), Timeliness::default());
            for _ in 0..10 {
                let (mut pane, mut missed) = (Sums::new(grid()), LateOutcomes::default());
                (0..1000).for_each(|_| pane.observe(z, rng.uniform() < truth).unwrap());
                (0..100).for_each(|_| missed.count(z, None, rng.uniform() < truth, 1));
                timeliness.observe(&pane);
                timeliness.miss(&missed);
            }
            timeliness.explains_alarm(0.05)
        });
        let explained = explained.count();
        // At most one in 45 by the bound; 14 % without k.
        assert!(explained <= 6, "{explained}");
    }

    #[test]
    fn what_was_mended_is_forgotten() {
        let mut rng = Rng::new(5);
        let mut timeliness = Timeliness::default();
        let mut some = || calibrated(&mut rng);
        timeliness.observe(&some());
        let mut late = LateOutcomes::default();
        (0..1000).for_each(|i| {
            let z = Score::new((f64::from(i) + 0.5) / 1000.0).unwrap();
            late.count(z, None, false, 1);
        });
        timeliness.miss(&late);
        assert!(timeliness.is_too_short(0.05));
        (0..100).for_each(|_| timeliness.observe(&some()));
        assert!(!timeliness.is_too_short(0.05));
    }

    /// Six maturities of 20 panes with 2000 events each. The outcome of one event in fifty comes
    /// half a maturity late, whatever it is. From pane `broken` on, positives have twice the odds.
    fn much_traffic(seed: u64, broken: usize, mut each: impl FnMut(usize, &Timeliness)) {
        let hour = 3_600_000;
        let (mut rng, mut timeliness) = (Rng::new(seed), Timeliness::default());
        let mut coming = VecDeque::new();
        for i in 0..120 {
            let (mut pane, mut late) = (Sums::new(grid()), LateOutcomes::default());
            for j in 0..2000 {
                let z = rng.uniform();
                let odds = if i < broken { 1.0 } else { 2.0 } * z / (1.0 - z);
                let y = rng.uniform() < odds / (1.0 + odds);
                let score = Score::new(z).unwrap();
                match j % 50 {
                    0 => late.count(score, None, y, 1),
                    _ => pane.observe(score, y).unwrap(),
                }
            }
            timeliness.give_up((i as i64 + 1) * hour / 20, late.n, hour);
            coming.push_back(late);
            if coming.len() > 10 {
                coming.iter().take(1).for_each(|late| timeliness.miss(late));
                coming.pop_front();
            }
            timeliness.observe(&pane);
            each(i, &timeliness);
        }
    }

    #[test]
    fn an_alarm_of_a_stream_with_much_traffic_waits_in_its_first_maturities_alone() {
        for seed in 0..5 {
            let mut waits = Vec::new();
            much_traffic(seed, 120, |_, t| waits.push(t.may_explain_alarm(0.05)));
            assert!(waits[..10].contains(&true), "seed {seed}");
            assert!(!waits[60..].contains(&true), "seed {seed}");
        }
    }

    #[test]
    fn outcomes_that_are_late_by_chance_are_harmless_after_a_break_too() {
        for seed in 0..5 {
            much_traffic(seed, 80, |i, t| {
                assert!(!t.is_too_short(0.05), "seed {seed}, pane {i}");
                let waits = i > 80 && t.may_explain_alarm(0.05);
                assert!(!waits && !t.explains_alarm(0.05), "seed {seed}, pane {i}");
            });
        }
    }

    #[test]
    fn an_alarm_waits_while_nothing_is_known_of_late_outcomes_and_no_longer() {
        let hour = 3_600_000;
        let mut rng = Rng::new(9);
        let mut pane = || calibrated(&mut rng);
        // A third of the outcomes never comes.
        let mut never = Timeliness::default();
        let waits: Vec<bool> = (1..=24)
            .map(|i| {
                never.give_up(i * hour / 4, 500, hour);
                never.observe(&pane());
                never.may_explain_alarm(0.05)
            })
            .collect();
        assert!(waits[..4].iter().all(|w| *w) && !waits[8..].contains(&true));
        // Each alarm waits for an hour at most.
        assert_eq!(never.wait(7 * hour), Some(7 * hour));
        assert_eq!(never.wait(8 * hour - 1), Some(7 * hour));
        assert_eq!(never.wait(8 * hour), None);
        assert_eq!(never.wait(10 * hour), Some(10 * hour));
        // No outcome is missing.
        let mut all = Timeliness::default();
        all.give_up(hour, 0, hour);
        all.observe(&pane());
        assert!(!all.may_explain_alarm(0.05));
    }
}
