//! Verdicts, and the numbers that they follow from.
//!
//! Both `miscalibrated` and `calibrated` need evidence from the test and the interval together
//! ([`crate::stats::tolerance`]): the error exceeds the tolerance, or is within it. Everything else
//! is undecided, with the reason. A window that was evaluated without such evidence reports its
//! numbers; a window that could not be evaluated has none.

use crate::alert::{Condition, Severity};
use crate::stats::evaluation::{Evaluation, Options, evaluate};
use crate::stats::kernel::{self, window::WindowEvaluation};
use crate::stats::multiclass;
use crate::stats::tcal;
use crate::stats::tolerance::{Conclusion, FEW, Tolerance};
use crate::window::{Total, ViewSums};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use strum::IntoStaticStr;

/// Why there is no verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Undecided {
    /// Fewer events than the configured least number.
    TooFew,
    /// Its predictions still wait for their outcomes.
    Immature,
    /// No event came, or nothing was judged, for a while.
    Stale,
    /// The watermark is stalled though events are counted.
    Stalled,
    /// More events came after their pane was sealed than in time.
    Late,
    /// A sum reached the end of its integer, or an event found no cell left.
    Capacity,
    /// Too many predictions have no outcome.
    Coverage,
    /// Evaluated: too few positives, or negatives, are to be expected to show anything.
    FewOutcomes,
    /// Evaluated: events are clustered, and there are too few clusters to show anything.
    FewClusters,
    /// Evaluated: the error is shown neither to exceed the tolerance nor to be within it.
    Inconclusive,
}

/// What is known of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Verdict {
    /// The error is shown to be within the tolerance.
    Calibrated,
    /// The error is shown to exceed the tolerance.
    Miscalibrated,
    /// Neither is shown.
    Undecided(Undecided),
}

impl Undecided {
    /// Its name, as in labels and JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Verdict {
    /// The verdict without its reason: `calibrated`, `miscalibrated` or `undecided`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Why it is undecided; `None` of the others.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Verdict::Undecided(why) => Some(why.as_str()),
            Verdict::Calibrated | Verdict::Miscalibrated => None,
        }
    }

    /// Whether the window was evaluated, so that numbers stand behind the verdict.
    pub fn is_evaluated(self) -> bool {
        match self {
            Verdict::Calibrated | Verdict::Miscalibrated => true,
            Verdict::Undecided(why) => matches!(
                why,
                Undecided::Inconclusive | Undecided::FewOutcomes | Undecided::FewClusters
            ),
        }
    }

    /// The condition that it gives to an alert.
    pub fn condition(self) -> Condition {
        match self {
            Verdict::Calibrated => Condition::Good,
            Verdict::Miscalibrated => Condition::Bad(Severity::Warn),
            Verdict::Undecided(_) => Condition::Unknown,
        }
    }
}

impl From<Conclusion> for Verdict {
    fn from(conclusion: Conclusion) -> Verdict {
        match conclusion {
            Conclusion::Miscalibrated => Verdict::Miscalibrated,
            Conclusion::Calibrated => Verdict::Calibrated,
            Conclusion::FewOutcomes => Verdict::Undecided(Undecided::FewOutcomes),
            Conclusion::FewClusters => Verdict::Undecided(Undecided::FewClusters),
            Conclusion::Inconclusive => Verdict::Undecided(Undecided::Inconclusive),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Undecided(why) => write!(f, "undecided({})", why.as_str()),
            _ => f.write_str(self.as_str()),
        }
    }
}

/// The numbers of an evaluated window. Cloning shares them.
#[derive(Debug, Clone, PartialEq)]
pub enum Numbers {
    /// Numbers of single scores.
    Scores(Arc<Evaluation>),
    /// Numbers of vectors, by cells.
    Cells(Arc<multiclass::Evaluation>),
    /// Numbers of vectors, by the kernel test.
    Kernel(Arc<WindowEvaluation>),
}

impl Numbers {
    /// The numbers of the sums of a window; `None` if there are too few events for any.
    pub fn of(total: &Total, options: &Options) -> Option<Numbers> {
        let sums = match total {
            Total::Scores(sums) => {
                return evaluate(sums, options).map(|e| Numbers::Scores(Arc::new(e)));
            }
            Total::Vector(sums) => &**sums,
        };
        let (alpha, confidence) = (options.tcal.alpha, options.confidence);
        match sums {
            ViewSums::Cells(sums) => multiclass::evaluate_sums(sums, alpha, confidence)
                .map(|e| Numbers::Cells(Arc::new(e))),
            ViewSums::Kernel(sums) => kernel::window::evaluate(sums, alpha, confidence)
                .map(|e| Numbers::Kernel(Arc::new(e))),
        }
    }

    /// The numbers, if they are of single scores.
    pub fn scores(&self) -> Option<&Evaluation> {
        match self {
            Numbers::Scores(e) => Some(e),
            _ => None,
        }
    }

    /// The numbers, if they are of vectors by cells.
    pub fn cells(&self) -> Option<&multiclass::Evaluation> {
        match self {
            Numbers::Cells(e) => Some(e),
            _ => None,
        }
    }

    /// The numbers, if they are of the kernel test.
    pub fn kernel(&self) -> Option<&WindowEvaluation> {
        match self {
            Numbers::Kernel(e) => Some(e),
            _ => None,
        }
    }

    /// Whether the test rejects that the model is calibrated.
    pub fn reject(&self) -> bool {
        match self {
            Numbers::Scores(e) => e.reject,
            Numbers::Cells(e) => e.tcal.reject,
            Numbers::Kernel(e) => e.reject,
        }
    }

    /// The p-value of the test that decides; `None` if it has none.
    pub fn p_value(&self) -> Option<f64> {
        match self {
            Numbers::Scores(e) => e.deciding_p_value(),
            Numbers::Cells(e) => Some(e.tcal.p_value),
            Numbers::Kernel(e) => e.p_value,
        }
    }

    /// The debiased estimate of the squared ℓ2-ECE, which may be negative; the kernel test has
    /// none.
    pub fn ece_squared(&self) -> Option<f64> {
        match self {
            Numbers::Scores(e) => Some(e.interval.estimate_squared),
            Numbers::Cells(e) => Some(e.interval.estimate_squared),
            Numbers::Kernel(_) => None,
        }
    }

    /// Lower end of the interval of the ℓ2-ECE.
    pub fn lower(&self) -> f64 {
        match self {
            Numbers::Scores(e) => e.interval.lower,
            Numbers::Cells(e) => e.interval.lower,
            Numbers::Kernel(e) => e.lower,
        }
    }

    /// Upper end of the interval of the ℓ2-ECE; for the kernel test, of the kernel calibration
    /// error.
    pub fn upper(&self) -> f64 {
        match self {
            Numbers::Scores(e) => e.interval.upper,
            Numbers::Cells(e) => e.interval.upper,
            Numbers::Kernel(e) => e.upper,
        }
    }

    /// Whether 0 is in the interval, as it always is if the lower end of the kernel test is 0.
    pub fn contains_zero(&self) -> bool {
        match self {
            Numbers::Scores(e) => e.interval.contains_zero,
            Numbers::Cells(e) => e.interval.contains_zero,
            Numbers::Kernel(e) => e.lower <= 0.0,
        }
    }

    /// Confidence of the interval.
    pub fn confidence(&self) -> f64 {
        match self {
            Numbers::Scores(e) => e.interval.confidence,
            Numbers::Cells(e) => e.interval.confidence,
            Numbers::Kernel(e) => e.confidence,
        }
    }

    /// Effective number of events, if events have weights.
    pub fn effective_n(&self) -> Option<f64> {
        match self {
            Numbers::Scores(e) => e.weights.map(|w| w.effective),
            Numbers::Cells(e) => e.weights.map(|w| w.effective),
            Numbers::Kernel(_) => None,
        }
    }

    /// The verdict on a window of enough events.
    pub fn verdict(&self, tolerance: &Tolerance) -> Verdict {
        self.conclusion(tolerance).into()
    }

    /// The tolerance on the scale of the ℓ2-ECE. If it is relative, that of cells of vectors is a
    /// share of their [`rare_mean`](multiclass::Evaluation::rare_mean), and that of the kernel test
    /// is a share of ½, because that test keeps no mean.
    pub fn tolerated(&self, tolerance: &Tolerance) -> f64 {
        match self {
            Numbers::Scores(e) => e.tolerance.tolerance,
            _ => tolerance.resolve(self.cells().map_or(0.5, |e| e.rare_mean)),
        }
    }

    /// The conclusion that the numbers support. The kernel test never shows an error to be within
    /// the tolerance: KCE is at most the ℓ2-ECE, so its upper end bounds nothing.
    fn conclusion(&self, tolerance: &Tolerance) -> Conclusion {
        if let Numbers::Scores(e) = self {
            return e.tolerance.conclusion;
        }
        // The interval is based on the normal law.
        if self.cells().is_some_and(|e| e.information < FEW) {
            return Conclusion::FewOutcomes;
        }
        let tau = self.tolerated(tolerance);
        let exceeds = self.lower() > tau || tau <= 0.0;
        if self.reject() && exceeds {
            Conclusion::Miscalibrated
        } else if self.kernel().is_none() && self.upper() <= tau && !self.shows_more(tau) {
            Conclusion::Calibrated
        } else {
            Conclusion::Inconclusive
        }
    }

    /// Whether the test of a vector view shows an error that its interval may not know: in slices
    /// too fine for the events, where cells of one event say nothing, or one beyond τ that is finer
    /// than the slices, at a level that rejects by itself.
    fn shows_more(&self, tau: f64) -> bool {
        let shows = |e: &multiclass::Evaluation| {
            let levels = || e.tcal.levels.iter().filter(|l| !l.left_out);
            let least = levels().map(|l| l.p_value).fold(1.0, f64::min);
            let bar = tcal::level_bar(e.alpha, e.tcal.p_value, least, None);
            let finer = || levels().any(|l| l.p_value <= bar && l.debiased > tau * tau);
            e.tcal.reject && (e.interval.is_too_fine() || finer())
        };
        self.cells().is_some_and(shows)
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        match self {
            Numbers::Scores(e) => {
                size_of::<Evaluation>()
                    + size_of_val::<[_]>(&e.tcal.levels)
                    + size_of_val::<[_]>(&e.reliability)
                    + size_of_val::<[_]>(&e.curve)
            }
            Numbers::Cells(_) => size_of::<multiclass::Evaluation>(),
            Numbers::Kernel(_) => size_of::<WindowEvaluation>(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::kernel::Vectors;
    use crate::stats::rng::Rng;
    use crate::stats::view::VectorView;

    #[test]
    fn the_kernel_test_never_calls_a_model_calibrated() {
        let mut all = Vectors::new(2);
        for i in 0..200 {
            assert!(all.push(&[0.5, 0.5], i % 2).is_ok());
        }
        let options = kernel::Options {
            replicates: 0,
            ..kernel::Options::default()
        };
        let sample = kernel::evaluate(&all, &options).expect("enough events");
        let numbers = Numbers::Kernel(Arc::new(WindowEvaluation {
            n: 200,
            classes: 2,
            kce: sample.biased.max(0.0).sqrt(),
            sample,
            features: None,
            blocks: Vec::new(),
            blocks_outdated: 0,
            by_features: false,
            p_value: Some(0.8),
            reject: false,
            lower: 0.0,
            upper: 0.01,
            confidence: 0.9,
        }));
        let verdict = numbers.verdict(&Tolerance::absolute(0.05));
        assert_eq!(verdict, Verdict::Undecided(Undecided::Inconclusive));
    }

    /// Rows of a table err by .06 of two classes each, here one way and there the other.
    #[test]
    fn an_error_finer_than_the_slices_is_not_called_calibrated() {
        let mut rng = Rng::new(31);
        let table: Vec<([f64; 3], f64)> = (0..3000)
            .map(|_| {
                let (a, b) = (0.1 + 0.4 * rng.uniform(), 0.1 + 0.3 * rng.uniform());
                let error = if rng.bits().is_multiple_of(2) {
                    0.06
                } else {
                    -0.06
                };
                ([a, b, 1.0 - a - b], error)
            })
            .collect();
        let verdict = |errs: f64| {
            let (mut rng, mut all) = (Rng::new(32), Vectors::new(3));
            for _ in 0..20_000 {
                let (row, error) = &table[(3000.0 * rng.uniform()) as usize];
                let (first, second) = (row[0] + errs * error, row[1] - errs * error);
                let u = rng.uniform();
                let class = u32::from(u >= first) + u32::from(u >= first + second);
                assert!(all.push(row, class).is_ok());
            }
            let e = multiclass::evaluate(&all, VectorView::Full, 0.05, 0.9, None);
            let e = e.expect("there are events");
            assert!(e.interval.upper <= 0.05, "{:?}", e.interval);
            assert_eq!(e.tcal.reject, errs > 0.0);
            Numbers::Cells(Arc::new(e)).verdict(&Tolerance::absolute(0.05))
        };
        assert_eq!(verdict(0.0), Verdict::Calibrated);
        assert_eq!(verdict(1.0), Verdict::Undecided(Undecided::Inconclusive));
    }

    /// The smallest p-value of 12 levels, .004, becomes .031 for all: .005 rejects by itself then.
    #[test]
    fn a_level_rejects_by_itself_by_the_bar_of_scores() {
        let (mut rng, mut all) = (Rng::new(33), Vectors::new(2));
        for _ in 0..20_000 {
            let z = rng.uniform();
            let class = u32::from(rng.uniform() >= z);
            assert!(all.push(&[z, 1.0 - z], class).is_ok());
        }
        let e = multiclass::evaluate(&all, VectorView::Full, 0.05, 0.9, None);
        let mut e = e.expect("there are events");
        (e.tcal.reject, e.tcal.p_value) = (true, 0.031);
        for level in &mut e.tcal.levels {
            (level.p_value, level.debiased, level.left_out) = (0.5, 0.0, false);
        }
        e.tcal.levels[0].p_value = 0.004;
        let mut verdict = |p_value: f64| {
            (e.tcal.levels[8].p_value, e.tcal.levels[8].debiased) = (p_value, 0.06 * 0.06);
            Numbers::Cells(Arc::new(e.clone())).verdict(&Tolerance::absolute(0.05))
        };
        assert_eq!(verdict(0.005), Verdict::Undecided(Undecided::Inconclusive));
        assert_eq!(verdict(0.007), Verdict::Calibrated);
    }
}
