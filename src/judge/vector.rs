//! The judge of one vector view: windows of sparse sums, verdicts, alerts.
//!
//! The same promises as [`super::judge`] makes for scores, in the same reports; what is computed, at each slide, is
//! [`multiclass::evaluate_sums`]: T-Cal with K classes and the interval with covariances; or [`kernel::window::evaluate`]: the
//! kernel test. A window in which an event found no room is `undecided(capacity)`: what is left would be a biased sample. There is no detector, no
//! recalibration map and no direction: those are of single scores.
//!
//! Cost: once a slide, a merge of the panes of the window and some hundred operations a cell for k of 2; or all pairs of the sample.

use super::alarm;
use super::book::{Change, Evidence, Step, StreamReport, WindowReport};
use super::coverage::Coverage;
use super::judge::{Memory, Stopwatch};
use super::numbers::Numbers;
use super::sentence::{alert_sentence, verdict_sentence};
use super::stream::StreamId;
use super::verdict::{JudgeOptions, Undecided, Verdict};
use crate::alert::{Alert, Condition, Holds};
use crate::stats::axis::Grid;
use crate::stats::kernel::{self, window::WindowEvaluation};
use crate::stats::multiclass::{self, Evaluation};
use crate::window::held::{Held, HeldShape, RetainedVector, Seen};
use crate::window::sparse::{Revised, Slid, SparseState, SparseWindows, windows_by_time};
use crate::window::{Ladder, Unlabelled};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// See the module.
#[derive(Debug, Clone)]
pub struct VectorJudge {
    windows: SparseWindows,
    posts: Posts,
}

/// What is said, apart from the windows so that they can be walked while it changes.
#[derive(Debug, Clone)]
struct Posts {
    alerts: Vec<Alert>,
    report: StreamReport,
    /// Told with evidence; the sums are of other cells.
    grid: Grid,
    evaluations: u64,
    stopwatch: Option<Stopwatch>,
    nanos: Vec<u64>,
}

/// A judge in a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VectorState {
    /// Panes.
    pub windows: SparseState,
    /// Verdict and alert of each window.
    pub memories: Vec<Memory>,
    /// The alert of the stream.
    pub alert: Alert,
}

impl VectorJudge {
    /// A judge that has seen nothing; `None` where the shape has no dimension.
    pub fn new(id: StreamId, shape: HeldShape, ladder: &Ladder, grid: Grid) -> Option<VectorJudge> {
        let windows: Vec<WindowReport> = windows_by_time(ladder).map(WindowReport::blank).collect();
        Some(VectorJudge {
            windows: SparseWindows::new(shape, ladder)?,
            posts: Posts {
                alerts: vec![Alert::default(); windows.len()],
                report: StreamReport {
                    id,
                    last_event_ms: 0,
                    due_ms: None,
                    detector: None,
                    alert: Alert::default(),
                    windows,
                },
                grid,
                evaluations: 0,
                stopwatch: None,
                nanos: Vec::new(),
            },
        })
    }

    /// The latest judgements.
    pub fn report(&self) -> &StreamReport {
        &self.posts.report
    }

    /// Takes an event that another view of it has accepted; answers whether there was room for it.
    pub fn observe(&mut self, time_ms: i64, seen: Seen<'_>) -> bool {
        self.seen(time_ms.max(self.posts.report.last_event_ms));
        self.windows.observe(time_ms, seen)
    }

    /// Takes a mature prediction that another view of it has accepted, with its class, if it has one; `implied` where
    /// that is not an outcome that came. Answers whether there was a cell for it.
    pub fn observe_matured(
        &mut self,
        time_ms: i64,
        vector: RetainedVector<'_>,
        class: Option<u32>,
        implied: bool,
    ) -> bool {
        self.seen(time_ms.max(self.posts.report.last_event_ms));
        self.windows
            .observe_matured(time_ms, vector, class, implied)
    }

    /// Takes a late outcome; the windows that hold its event show it at their next slide. Answers whether there was a
    /// cell for it.
    pub fn revise(&mut self, revised: &Revised<'_>) -> bool {
        self.windows.revise(revised)
    }

    /// Tells when the oldest predictions that wait for outcomes are mature; a window that was never judged is
    /// immature until then.
    pub fn awaits(&mut self, due_ms: Option<i64>) {
        let report = &mut self.posts.report;
        report.due_ms = due_ms;
        for window in &mut report.windows {
            if due_ms.is_some() && window.end_ms == 0 {
                window.verdict = Verdict::Undecided(Undecided::Immature);
            }
        }
    }

    /// Counts an event that came too late.
    pub fn miss(&mut self) {
        self.windows.miss();
    }

    /// Changes the cap of cells of panes that open from now on.
    pub fn cap(&mut self, cells_max: usize) {
        self.windows.cap(cells_max);
    }

    /// Whether any event would be taken.
    pub fn has_room(&self) -> bool {
        self.windows.has_room()
    }

    /// Its panes, for a union of lanes.
    pub fn windows(&self) -> &SparseWindows {
        &self.windows
    }

    /// Its panes, to lay them out or take others.
    pub fn windows_mut(&mut self) -> &mut SparseWindows {
        &mut self.windows
    }

    /// Seals all panes before the line and judges the windows that slid.
    pub fn seal(&mut self, line_ms: i64, o: &JudgeOptions, changes: &mut Vec<Change>) {
        if o.is_silent() {
            self.windows.pass(line_ms);
            return;
        }
        let (windows, posts) = (&mut self.windows, &mut self.posts);
        windows.seal(line_ms, |end_ms, slid| {
            posts.judge(end_ms, slid, o, changes)
        });
    }

    /// The input ended.
    pub fn finish(&mut self, end_ms: i64, o: &JudgeOptions, changes: &mut Vec<Change>) {
        let slid = self.windows.finish(end_ms);
        if !slid.is_empty() {
            self.posts.judge(end_ms, slid, o, changes);
        }
    }

    /// No event came for too long.
    pub fn withdraw(&mut self, now_ms: i64, o: &JudgeOptions, changes: &mut Vec<Change>) {
        for index in 0..self.posts.alerts.len() {
            let stale = (Verdict::Undecided(Undecided::Stale), None);
            self.posts.publish(index, now_ms, stale, o, changes);
        }
        let none = Vec::new();
        self.posts
            .sound(now_ms, Condition::Unknown, none, o, changes);
    }

    /// The stream is let go: an alert that fires ends.
    pub fn leave(&mut self, now_ms: i64, o: &JudgeOptions, changes: &mut Vec<Change>) {
        let at_once = JudgeOptions {
            keep_firing_ms: 0,
            ..o.clone()
        };
        let none = Vec::new();
        self.posts
            .sound(now_ms, Condition::Unknown, none, &at_once, changes);
    }

    /// Times evaluations from now on.
    pub fn time_by(&mut self, stopwatch: Option<Stopwatch>) {
        self.posts.stopwatch = stopwatch;
    }

    /// Moves the times of evaluations, in nanoseconds, to the end of `all`.
    pub fn take_nanos(&mut self, all: &mut Vec<u64>) {
        all.append(&mut self.posts.nanos);
    }

    /// Panes held, open and sealed.
    pub fn panes(&self) -> usize {
        self.windows.panes()
    }

    /// Windows evaluated since the last call.
    pub fn take_evaluations(&mut self) -> u64 {
        std::mem::take(&mut self.posts.evaluations)
    }

    /// Verdict and alert of each window.
    pub fn memories(&self) -> Vec<Memory> {
        let memory = |(alert, r): (&Alert, &WindowReport)| Memory {
            alert: *alert,
            start_ms: r.start_ms,
            end_ms: r.end_ms,
            n: r.n,
            verdict: r.verdict,
        };
        let posts = &self.posts;
        let all = posts.alerts.iter().zip(&posts.report.windows);
        all.map(memory).collect()
    }

    /// The alert of the stream.
    pub fn alert(&self) -> Alert {
        self.posts.report.alert
    }

    /// For a snapshot.
    pub fn state(&self) -> VectorState {
        VectorState {
            windows: self.windows.state(),
            memories: self.memories(),
            alert: self.alert(),
        }
    }

    /// Puts back a snapshot; evaluations are made again over the panes. `None` where it is of another shape.
    pub fn restore(&mut self, state: VectorState, o: &JudgeOptions) -> Option<()> {
        if state.memories.len() != self.posts.alerts.len() {
            return None;
        }
        self.windows.restore(state.windows)?;
        self.recall(state.memories, state.alert, o);
        Some(())
    }

    /// Takes over what another judge of the stream remembers, over the panes that are held here. `None` where it is of
    /// other windows.
    pub fn remember(
        &mut self,
        memories: Vec<Memory>,
        alert: Alert,
        o: &JudgeOptions,
    ) -> Option<()> {
        if memories.len() != self.posts.alerts.len() {
            return None;
        }
        for (index, memory) in memories.iter().enumerate() {
            self.windows.had(index, memory.n > 0);
        }
        self.recall(memories, alert, o);
        Some(())
    }

    fn recall(&mut self, memories: Vec<Memory>, alert: Alert, o: &JudgeOptions) {
        for (index, memory) in memories.into_iter().enumerate() {
            let decided = !matches!(memory.verdict, Verdict::Undecided(_));
            let total = self.windows.total(index, memory.end_ms);
            self.posts.alerts[index] = memory.alert;
            let r = &mut self.posts.report.windows[index];
            r.start_ms = memory.start_ms;
            r.since_ms = match memory.end_ms {
                0 => 0,
                end_ms => self.windows.since_ms(index, end_ms),
            };
            r.end_ms = memory.end_ms;
            r.evaluated_at_ms = memory.end_ms;
            r.n = memory.n;
            r.verdict = memory.verdict;
            r.alert = memory.alert.state;
            r.alert_since_ms = memory.alert.since_ms;
            r.coverage = total
                .as_ref()
                .and_then(|t| cover(&t.sums, &t.unlabelled, o));
            let weighed = total.filter(|_| decided);
            let weighed = weighed.and_then(|t| weigh(&t.sums, &t.unlabelled, o).1);
            r.numbers = weighed;
        }
        self.posts.report.alert = alert;
    }

    /// Tells the newest event time.
    pub fn seen(&mut self, last_event_ms: i64) {
        self.posts.report.last_event_ms = last_event_ms;
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        size_of::<VectorJudge>()
            + self.windows.bytes()
            + self.posts.report.windows.len()
                * (size_of::<WindowReport>()
                    + size_of::<Evaluation>()
                    + size_of::<WindowEvaluation>())
    }
}

/// How many predictions have an outcome.
fn cover(total: &Held, unlabelled: &Unlabelled, o: &JudgeOptions) -> Option<Box<Coverage>> {
    let coverage = || match total {
        Held::Cells(sums) => Coverage::of_cells(sums.tops(), unlabelled),
        Held::Kernel(sums) => Coverage::of_cells(sums.tops(), unlabelled),
    };
    (!o.is_silent()).then(coverage).flatten().map(Box::new)
}

/// The numbers of what a window of a vector view holds; `None` of fewer than two events.
pub fn evaluate(total: &Held, alpha: f64, confidence: f64) -> Option<Numbers> {
    match total {
        Held::Cells(sums) => {
            multiclass::evaluate_sums(sums, alpha, confidence).map(|e| Numbers::Cells(Arc::new(e)))
        }
        Held::Kernel(sums) => {
            kernel::window::evaluate(sums, alpha, confidence).map(|e| Numbers::Kernel(Arc::new(e)))
        }
    }
}

/// The verdict on a window as it stands.
fn weigh(total: &Held, unlabelled: &Unlabelled, o: &JudgeOptions) -> (Verdict, Option<Numbers>) {
    let undecided = |why| (Verdict::Undecided(why), None);
    if total.refused() > 0 {
        return undecided(Undecided::Capacity);
    }
    let due = total.n() + unlabelled.dropped().iter().sum::<u64>();
    if due >= o.min_events && (total.n() as f64) < o.coverage_min * due as f64 {
        return undecided(Undecided::Coverage);
    }
    if total.n() < o.min_events.max(2) {
        return undecided(Undecided::TooFew);
    }
    if total.late() > total.n() {
        return undecided(Undecided::Late);
    }
    let test = &o.evaluation;
    match evaluate(total, test.tcal.alpha, test.confidence) {
        None => undecided(Undecided::TooFew),
        // Weights say less than their number.
        Some(e) if e.effective_n().is_some_and(|n| n < o.min_events as f64) => {
            undecided(Undecided::TooFew)
        }
        Some(e) => (e.verdict(o.tolerance), Some(e)),
    }
}

impl Posts {
    /// Judges the windows that slid at one end, and then the stream.
    fn judge(&mut self, end_ms: i64, slid: Vec<Slid>, o: &JudgeOptions, changes: &mut Vec<Change>) {
        for window in &slid {
            let begun = self.stopwatch.map(|now| now());
            let weighed = weigh(&window.total, &window.unlabelled, o);
            self.evaluations += u64::from(weighed.1.is_some());
            if let (Some(now), Some(begun), true) = (self.stopwatch, begun, weighed.1.is_some()) {
                self.nanos.push(now().saturating_sub(begun));
            }
            let r = &mut self.report.windows[window.window];
            r.start_ms = window.start_ms;
            r.since_ms = window.since_ms;
            r.end_ms = end_ms;
            r.evaluated_at_ms = end_ms;
            r.n = window.total.n();
            r.coverage = cover(&window.total, &window.unlabelled, o);
            self.publish(window.window, end_ms, weighed, o, changes);
        }
        let condition = alarm::condition(&self.report);
        self.sound(end_ms, condition, slid, o, changes);
    }

    /// Steps the alert of the stream.
    fn sound(
        &mut self,
        at_ms: i64,
        condition: Condition,
        slid: Vec<Slid>,
        o: &JudgeOptions,
        changes: &mut Vec<Change>,
    ) {
        let from = self.report.alert;
        let to = from.step(condition, at_ms, &o.holds());
        self.report.alert = to;
        if from.state == to.state && from.severity == to.severity {
            return;
        }
        let mut vectors = vec![None; self.report.windows.len()];
        for window in slid {
            let decided = self.report.windows[window.window].numbers.is_some();
            vectors[window.window] = decided.then_some(window.total);
        }
        let evidence = Evidence {
            from,
            condition,
            sums: Vec::new(),
            vectors,
            report: self.report.clone(),
            options: o.clone(),
            grid: self.grid,
            step: None,
        };
        let speaker = alarm::speaker(&self.report).and_then(|i| self.report.windows.get(i));
        changes.push(Change {
            stream: self.report.id.clone(),
            window: speaker.map(|w| w.window.clone()).unwrap_or_default(),
            at_ms,
            step: Step::Stream { from, to },
            sentence: alarm::sentence(&self.report.id, &from, &to),
            facts: alarm::facts(&self.report, to, Some(Box::new(evidence))),
        });
    }

    fn publish(
        &mut self,
        index: usize,
        at_ms: i64,
        (verdict, numbers): (Verdict, Option<Numbers>),
        o: &JudgeOptions,
        changes: &mut Vec<Change>,
    ) {
        let holds = Holds {
            flap_within_ms: 0,
            ..o.holds()
        };
        let before = self.alerts[index];
        let alert = before.step(verdict.condition(), at_ms, &holds);
        self.alerts[index] = alert;
        let r = &mut self.report.windows[index];
        let from = std::mem::replace(&mut r.verdict, verdict);
        r.numbers = numbers;
        r.alert = alert.state;
        r.alert_since_ms = alert.since_ms;
        let id = &self.report.id;
        let mut tell = |step, sentence| {
            changes.push(Change {
                stream: id.clone(),
                window: r.window.clone(),
                at_ms,
                step,
                sentence,
                facts: None,
            });
        };
        if from != verdict {
            let sentence = verdict_sentence(id, r, from);
            tell(Step::Verdict { from, to: verdict }, sentence);
        }
        if before.state != alert.state {
            let (from, to) = (before.state, alert.state);
            tell(Step::Alert { from, to }, alert_sentence(id, r, from));
        }
    }
}
