//! The evaluation of a window, or why nothing can be said of it.

use super::judged::Judged;
use super::{Judge, JudgeOptions, Numbers, Undecided, Verdict, seed};
use crate::judge::coverage::Coverage;
use crate::window::{PackError, Unlabelled};

impl Judge {
    /// Evaluates a window as it stands. Its total is taken once, and only where it is needed.
    pub(super) fn evaluate(
        &mut self,
        index: usize,
        end_ms: i64,
        options: &JudgeOptions,
    ) -> Result<Judged, PackError> {
        let unlabelled = self.windows.unlabelled(index, end_ms);
        let undecided = self.undecided(index, end_ms, &unlabelled, options);
        let covered = !unlabelled.is_empty();
        if let Some(why) = undecided {
            let total = covered.then(|| self.windows.next_total(index, end_ms).ok());
            let coverage = total.flatten().and_then(|t| Coverage::of(&t, &unlabelled));
            return Ok(Judged {
                coverage: coverage.map(Box::new),
                ..Judged::undecided(why)
            });
        }
        let total = self.windows.next_total(index, end_ms)?;
        let coverage = Coverage::of(&total, &unlabelled).map(Box::new);
        if total.refused() > 0 {
            return Ok(Judged {
                coverage,
                ..Judged::undecided(Undecided::Capacity)
            });
        }
        let mut wanted = options.evaluation.clone();
        wanted.overdispersion = self.report.overdispersion;
        let window = &self.report.windows[index].window;
        wanted.tcal.seed = seed(&self.report.id, window, end_ms, wanted.tcal.seed);
        // Weights say less than their number.
        let enough = |e: &Numbers| {
            e.effective_n()
                .is_none_or(|n| n >= options.min_events as f64)
        };
        let numbers = Numbers::of(&total, &wanted).filter(enough);
        let too_few = Verdict::Undecided(Undecided::TooFew);
        Ok(Judged {
            verdict: (numbers.as_ref())
                .map_or(too_few, |n| n.verdict(&options.evaluation.tolerance)),
            numbers,
            coverage,
        })
    }

    /// Why nothing can be said of a window, without a look at its sums.
    fn undecided(
        &self,
        index: usize,
        end_ms: i64,
        unlabelled: &Unlabelled,
        options: &JudgeOptions,
    ) -> Option<Undecided> {
        if self.windows.refused(index, end_ms) > 0 {
            return Some(Undecided::Capacity);
        }
        let n = self.windows.n(index, end_ms);
        let due = n + unlabelled.dropped().iter().sum::<u64>();
        if due >= options.min_events && (n as f64) < options.coverage_min * due as f64 {
            return Some(Undecided::Coverage);
        }
        if n < options.min_events.max(1) {
            return Some(Undecided::TooFew);
        }
        (self.windows.late(index, end_ms) > n).then_some(Undecided::Late)
    }
}
