//! Compares every verdict on every window with the truth.
//!
//! The demo succeeds if the last verdict on every window is right, and if the short window of the
//! drifting model was calibrated before the drift and miscalibrated within two widths after it.
//! Single wrong verdicts before the end do not fail the demo, but are counted and printed: every
//! slide is a test, and a test at level α may be wrong with probability α. The tolerance reduces
//! that probability, because a verdict requires size as well as significance.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::models::{DRIFT_AFTER_MS, Expected, MODELS, Model};
use crate::judge::{StreamReport, Verdict, WindowReport};

/// How a verdict compares with the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// It is right.
    Right,
    /// It is wrong.
    Wrong,
    /// There is no verdict yet, or any is right while the drift passes through the window.
    Open,
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
    /// End of the first window after the drift with the verdict `miscalibrated`, since the start.
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
    pub fn observe(&mut self, reports: &[Arc<StreamReport>], width_ms: impl Fn(&str) -> i64) {
        for report in reports {
            let Some(model) = MODELS.iter().find(|m| m.name == report.id.model) else {
                continue;
            };
            for window in &report.windows {
                let width_ms = width_ms(&window.window);
                let now = self.agreement(model, window, width_ms);
                let line = self
                    .lines
                    .entry((model.name, window.window.clone()))
                    .or_insert_with(|| Line::new(*model, width_ms));
                line.observe(window, window.end_ms - self.start_ms, now);
            }
        }
    }

    /// The lines of the summary, and whether the demo succeeded.
    pub fn summary(&self) -> (Vec<String>, bool) {
        let mut out = Vec::new();
        let mut all = true;
        for model in &MODELS {
            let lines: Vec<&Line> = self.lines.values().filter(|l| l.model == *model).collect();
            let right = !lines.is_empty() && lines.iter().all(|line| line.right());
            all &= right;
            let mark = if right { "right" } else { "WRONG" };
            out.push(format!(
                "{mark}  {:<17} {:<22} {}",
                model.name,
                model.truth,
                words(&lines)
            ));
        }
        let judged: u64 = self.lines.values().map(|l| l.judged).sum();
        let wrong: u64 = self.lines.values().map(|l| l.wrong).sum();
        out.push(format!(
            "{} of {judged} verdicts were wrong before the end",
            wrong
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

    fn right(&self) -> bool {
        if !self.model.drifts() {
            return self.last == Agreement::Right;
        }
        // A window wider than the time since the drift is still open at the end.
        let in_time = self
            .flipped_ms
            .is_some_and(|at| at <= DRIFT_AFTER_MS + 2 * self.width_ms);
        self.before == Some(Verdict::Calibrated) && self.last != Agreement::Wrong && in_time
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
