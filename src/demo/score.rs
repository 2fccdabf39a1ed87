//! Compares every verdict on every window with the truth.
//!
//! The demo fails if the last verdict on a window is wrong, or if a window of the drifting model
//! was miscalibrated before the drift, or first became so more than two widths after it. A window
//! without a comparable verdict is open, which is not a failure unless no window was judged.
//! Single wrong verdicts before the end do not fail the demo, but are counted and printed: every
//! slide is a test, and a test at level α may be wrong with probability α. The tolerance reduces
//! that probability, because a verdict requires size as well as significance.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::config;
use super::models::{DRIFT_AFTER_MS, Expected, MODELS, Model};
use crate::judge::{StreamReport, Verdict, WindowReport};

/// How a verdict compares with the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// The verdict is right.
    Right,
    /// The verdict is wrong.
    Wrong,
    /// There is no verdict yet, or any verdict is accepted while the drift passes through the
    /// window.
    Open,
}

impl Agreement {
    /// Combines the agreement of two windows: the worse one counts.
    fn and(self, other: Agreement) -> Agreement {
        match (self, other) {
            (Agreement::Wrong, _) | (_, Agreement::Wrong) => Agreement::Wrong,
            (Agreement::Open, _) | (_, Agreement::Open) => Agreement::Open,
            (Agreement::Right, Agreement::Right) => Agreement::Right,
        }
    }

    /// The first word of a model's line in the summary.
    fn mark(self) -> &'static str {
        match self {
            Agreement::Right => "right",
            Agreement::Wrong => "WRONG",
            Agreement::Open => "open ",
        }
    }
}

/// The history of one window of one model.
#[derive(Debug, Clone)]
struct Line {
    model: Model,
    width_ms: i64,
    /// Event time of the last verdict that was counted.
    seen_ms: i64,
    judged: u64,
    wrong: u64,
    last: Agreement,
    /// Last verdict on a window that ended before the drift.
    before: Option<Verdict>,
    /// End, since the start, of the first window after the drift with the verdict `miscalibrated`.
    flipped_ms: Option<i64>,
}

/// The score of the whole demo.
#[derive(Debug, Clone)]
pub struct Score {
    start_ms: i64,
    lines: BTreeMap<(&'static str, String), Line>,
}

impl Score {
    /// An empty score; the producers started at `start_ms`.
    pub fn new(start_ms: i64) -> Score {
        Score {
            start_ms,
            lines: BTreeMap::new(),
        }
    }

    /// How a verdict compares with the truth.
    pub fn agreement(&self, model: &Model, report: &WindowReport, width_ms: i64) -> Agreement {
        let expected = model.expected(report.end_ms - self.start_ms, width_ms);
        match (report.verdict, expected) {
            (Verdict::Undecided(_), _) => Agreement::Open,
            (Verdict::Calibrated, Expected::Calibrated) => Agreement::Right,
            (Verdict::Miscalibrated, Expected::Miscalibrated) => Agreement::Right,
            (_, Expected::Either) => Agreement::Open,
            _ => Agreement::Wrong,
        }
    }

    /// Observes the published reports. Each verdict counts once.
    pub fn observe(&mut self, reports: &[Arc<StreamReport>]) {
        for report in reports {
            let Some(model) = MODELS.iter().find(|m| m.name == report.id.model) else {
                continue;
            };
            for window in &report.windows {
                let width_ms = config::width_ms(&window.window);
                let now = self.agreement(model, window, width_ms);
                let line = self
                    .lines
                    .entry((model.name, window.window.clone()))
                    .or_insert_with(|| Line::new(*model, width_ms));
                line.observe(window, window.end_ms - self.start_ms, now);
            }
        }
    }

    /// The lines of the summary, and the agreement of the demo as a whole.
    pub fn summary(&self) -> (Vec<String>, Agreement) {
        let mut out = Vec::new();
        let mut all = Agreement::Right;
        for model in &MODELS {
            let lines: Vec<&Line> = self.lines.values().filter(|l| l.model == *model).collect();
            let each = lines.iter().map(|line| line.agreement());
            let found = each.reduce(Agreement::and).unwrap_or(Agreement::Open);
            all = all.and(found);
            let open = match found {
                Agreement::Open => ", a window is still open",
                Agreement::Right | Agreement::Wrong => "",
            };
            out.push(format!(
                "{}  {:<17} {:<22} {}{open}",
                found.mark(),
                model.name,
                model.truth,
                words(&lines)
            ));
        }
        let judged: u64 = self.lines.values().map(|l| l.judged).sum();
        let wrong: u64 = self.lines.values().map(|l| l.wrong).sum();
        // A demo without any verdict does not work.
        if judged == 0 {
            all = Agreement::Wrong;
        }
        out.push(format!(
            "{wrong} of {judged} verdicts were wrong before the end"
        ));
        (out, all)
    }
}

impl Line {
    fn new(model: Model, width_ms: i64) -> Line {
        Line {
            model,
            width_ms,
            seen_ms: i64::MIN,
            judged: 0,
            wrong: 0,
            last: Agreement::Open,
            before: None,
            flipped_ms: None,
        }
    }

    fn observe(&mut self, report: &WindowReport, end_ms: i64, now: Agreement) {
        if report.evaluated_at_ms <= self.seen_ms || matches!(report.verdict, Verdict::Undecided(_))
        {
            return;
        }
        self.seen_ms = report.evaluated_at_ms;
        self.last = now;
        self.judged += 1;
        self.wrong += u64::from(now == Agreement::Wrong);
        if end_ms <= DRIFT_AFTER_MS {
            self.before = Some(report.verdict);
        } else if report.verdict == Verdict::Miscalibrated && self.flipped_ms.is_none() {
            self.flipped_ms = Some(end_ms);
        }
    }

    fn agreement(&self) -> Agreement {
        if !self.model.drifts() {
            return self.last;
        }
        // A window wider than the time since the drift is still open at the end.
        let late = |at: i64| at > DRIFT_AFTER_MS + 2 * self.width_ms;
        match (self.before, self.flipped_ms) {
            _ if self.last == Agreement::Wrong => Agreement::Wrong,
            (Some(Verdict::Miscalibrated), _) => Agreement::Wrong,
            (_, Some(at)) if late(at) => Agreement::Wrong,
            (Some(_), Some(_)) => Agreement::Right,
            _ => Agreement::Open,
        }
    }
}

/// The history of one model in words.
fn words(lines: &[&Line]) -> String {
    let judged: u64 = lines.iter().map(|l| l.judged).sum();
    let Some(short) = lines.iter().min_by_key(|l| l.width_ms) else {
        return "no verdict was published".to_owned();
    };
    if !short.model.drifts() {
        let right = judged - lines.iter().map(|l| l.wrong).sum::<u64>();
        return format!("{right} of {judged} verdicts right");
    }
    let before = short
        .before
        .map_or("no verdict".to_owned(), |v| v.to_string());
    match short.flipped_ms {
        None => format!("{before} before the drift, no other verdict after it"),
        Some(at) => format!(
            "{before} before the drift, miscalibrated {:.0} s after it",
            (at - DRIFT_AFTER_MS) as f64 / 1000.0
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{StreamId, Undecided};
    use crate::stats::view::View;
    use crate::window::{Ladder, Width, WindowSpec};

    /// The summary after one verdict on each window of every model.
    fn summary(verdict: impl Fn(&Model, usize) -> Verdict) -> (Vec<String>, Agreement) {
        let windows = [("10s", 10_000), ("30s", 30_000)];
        let slide_ms = 2_000;
        let specs = windows.map(|(name, width_ms)| WindowSpec {
            name: name.to_owned(),
            width: Width::Time { width_ms, slide_ms },
        });
        let ladder = Ladder::new(specs.to_vec(), 0).unwrap();
        let mut score = Score::new(0);
        for end_ms in [18_000, 38_000, 90_000] {
            let report = |model: &Model| {
                let id = StreamId {
                    model: model.name.to_owned(),
                    version: String::new(),
                    segment: String::new(),
                    view: View::Binary,
                };
                let mut report = StreamReport::blank(id, &ladder);
                for (index, window) in report.windows.iter_mut().enumerate() {
                    window.end_ms = end_ms;
                    window.evaluated_at_ms = end_ms;
                    let drifted = model.drifts() && end_ms > DRIFT_AFTER_MS;
                    window.verdict = match drifted {
                        true => Verdict::Miscalibrated,
                        false => verdict(model, index),
                    };
                }
                Arc::new(report)
            };
            let reports: Vec<_> = MODELS.iter().map(report).collect();
            score.observe(&reports);
        }
        score.summary()
    }

    fn truth(model: &Model) -> Verdict {
        match model.expected(0, 10_000) {
            Expected::Miscalibrated => Verdict::Miscalibrated,
            Expected::Calibrated | Expected::Either => Verdict::Calibrated,
        }
    }

    #[test]
    fn a_window_without_a_verdict_is_open_and_only_a_wrong_verdict_fails() {
        let (lines, mark) = summary(|model, _| truth(model));
        assert_eq!(mark, Agreement::Right, "{lines:?}");
        let none = Verdict::Undecided(Undecided::Inconclusive);
        let (lines, mark) = summary(|model, index| match index {
            1 => none,
            _ => truth(model),
        });
        assert_eq!(mark, Agreement::Open);
        assert!(lines[0].starts_with("open   credit_default"), "{lines:?}");
        assert!(!lines.concat().contains("WRONG"), "{lines:?}");
        assert_eq!(Score::new(0).summary().1, Agreement::Wrong);
        let (lines, mark) = summary(|_, _| Verdict::Miscalibrated);
        assert_eq!(mark, Agreement::Wrong);
        assert!(lines[0].starts_with("WRONG  credit_default"), "{lines:?}");
    }
}
