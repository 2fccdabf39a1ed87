//! The judge of one stream: windows, verdicts, alerts.
//!
//! It takes sealed panes in order of time, and at every slide of a window takes the window's total,
//! evaluates it, and moves the window's alert. Streams of scores and of vectors are judged alike;
//! only the evaluation differs ([`Numbers::of`]), and streams of scores may have a detector. The
//! judge knows event time only; the clock enters in one place, [`Judge::tick`], when no event or no
//! judgement has come for too long: then values are withdrawn rather than frozen.
//!
//! Always: a window's report is a function of the panes that were sealed, so any order, split or
//! restart that seals the same panes gives the same report, to the last bit of each p-value; the
//! seed of a resampling test is derived from stream, window and end of window.
//!
//! A window is judged at its slides. Until its first slide ends (up to four hours for a day) it is
//! judged as that fills, each time the window that it gathers from slides; its report says since
//! when it has data. After a restart each window is evaluated over the panes that it still holds,
//! which for scores and slides under an hour is one slide less than was judged: the evaluation says
//! its own n. Bounds, n, verdict and alert stay as they were judged, and the next slide makes all
//! of it whole.
//!
//! A window in which an event found no room is `undecided(capacity)`: what is left would be a
//! biased sample.
//!
//! Cost: at each slide the panes that changed are added to the window's sums or taken out of them, or all
//! are merged where there is no room for these sums, and the total is evaluated.

use super::alarm;
use super::detector::Detector;
use super::detector_report::sentence;
use super::judgement::{HistoryPoint, WindowJudgement};
use super::numbers::Numbers;
use super::recalibration::{JudgedWindow, Recalibration};
use super::report::{Change, Evidence, Family, Step, StreamReport, WindowReport};
use super::stream::StreamId;
use super::verdict::{JudgeOptions, Undecided, Verdict};
use crate::alert::Alert;
use crate::collect::PaneDelta;
use crate::stats::axis::Grid;
use crate::stats::sequential::Outcome;
use crate::window::{
    Correction, EmptySums, Ladder, PackError, Pane, PaneSums, Revision, Total, Windows,
};
use std::sync::Arc;

mod alerts;
mod before;
mod evaluate;
mod judged;
mod last_end;
mod persist;
mod seed;
mod state;
mod withheld;

use before::Before;
use judged::Judged;
use last_end::LastEnd;
pub use seed::seed;
use withheld::Withheld;

pub use state::{JudgeState, WindowVerdict};

/// The judge of one stream. See the module.
#[derive(Debug, Clone)]
pub struct Judge {
    windows: Windows,
    alerts: Vec<Alert>,
    /// Of each window, at the last tick.
    last_ends: Vec<LastEnd>,
    /// What windows said before they became stalled; empty until any did.
    withheld: Vec<Option<Withheld>>,
    report: StreamReport,
    /// The cells of the model's scores, for the record of an alert.
    grid: Grid,
    /// Watches a stream of scores.
    detector: Option<Box<Detector>>,
    /// Whether the report says what the detector would say now.
    detector_reported: bool,
    evaluations: u64,
    stopwatch: Option<Stopwatch>,
    /// Judgements since they were last taken, where there is a stopwatch.
    judgements: Vec<WindowJudgement>,
}

/// Nanoseconds since some moment: handed in by a caller that wants to know how long evaluations take.
/// Nothing that is judged depends on it.
pub type Stopwatch = fn() -> u64;

impl Judge {
    /// A judge of a stream of scores.
    pub fn new(id: StreamId, ladder: &Ladder, grid: Grid) -> Judge {
        Judge::of_sums(id, ladder, grid, PaneSums::Scores(grid))
    }

    /// A judge of a stream whose panes are of this kind.
    pub fn of_sums(id: StreamId, ladder: &Ladder, grid: Grid, empty: EmptySums) -> Judge {
        Judge {
            windows: Windows::new(ladder, empty),
            alerts: vec![Alert::default(); ladder.windows.len()],
            last_ends: Vec::new(),
            withheld: Vec::new(),
            report: StreamReport {
                id,
                last_event_ms: 0,
                due_ms: None,
                overdispersion: None,
                detector: None,
                alert: Alert::default(),
                windows: ladder
                    .windows
                    .iter()
                    .map(|w| WindowReport::blank(&w.name))
                    .collect(),
            },
            grid,
            detector: None,
            detector_reported: true,
            evaluations: 0,
            stopwatch: None,
            judgements: Vec::new(),
        }
    }

    /// Lets a detector that has seen nothing watch the stream.
    pub fn watch_by(&mut self, detector: Detector) {
        self.detector = Some(Box::new(detector));
    }

    /// Times evaluations from now on.
    pub fn time_by(&mut self, stopwatch: Option<Stopwatch>) {
        self.stopwatch = stopwatch;
    }

    /// Moves the judgements since the last call to the end of `all`; none without a stopwatch.
    pub fn take_judgements(&mut self, all: &mut Vec<WindowJudgement>) {
        all.append(&mut self.judgements);
    }

    /// The latest judgements.
    pub fn report(&self) -> &StreamReport {
        &self.report
    }

    /// Tells the newest event time.
    pub fn seen(&mut self, last_event_ms: i64) {
        self.report.last_event_ms = last_event_ms;
    }

    /// Tells when the oldest predictions that wait for outcomes are mature; from the next tick on a window
    /// that was never judged is immature until then.
    pub fn awaits(&mut self, due_ms: Option<i64>) {
        self.report.due_ms = due_ms;
    }

    /// Takes a correction of a sealed pane; the windows that hold it show it at their next slide.
    /// The detector counts it as missed.
    pub fn correct(&mut self, c: &Correction) -> Result<(), PackError> {
        if let Some(detector) = &mut self.detector {
            detector.miss(c);
            self.detector_reported = false;
        }
        self.windows.correct(c)
    }

    /// Takes a late outcome of a vector; answers whether there was room for it.
    pub fn revise(&mut self, r: &Revision<'_>) -> bool {
        self.windows.revise(r)
    }

    /// Changes how many cells of vectors panes that begin from now on have.
    pub fn cap(&mut self, cells_max: usize) {
        self.windows.cap(cells_max);
    }

    /// Lets the sums that windows keep from slide to slide take so many bytes from now on.
    pub fn keep(&mut self, bytes: usize) {
        self.windows.keep(bytes);
    }

    /// Takes a base pane from before `line_ms`; the windows that hold it show it at their next slide.
    /// The detector counts it as missed.
    pub fn place(&mut self, pane: &Pane, line_ms: i64) -> Result<(), PackError> {
        if let Some(detector) = &mut self.detector {
            detector.miss_pane(pane.sums.n());
            self.detector_reported = false;
        }
        let placed = self.windows.place(pane, line_ms);
        self.report.overdispersion = self.windows.dispersion().measure();
        placed
    }

    /// Takes all panes, up to `line_ms`, of another judge of the stream, over other partitions.
    pub fn absorb(&mut self, theirs: &Windows, line_ms: i64) -> Result<(), PackError> {
        let absorbed = self.windows.absorb(theirs, line_ms);
        self.report.overdispersion = self.windows.dispersion().measure();
        absorbed
    }

    /// Whether time alone can change a window: one by time holds panes, or its last judgement does
    /// not know yet that it is empty.
    pub fn moves(&self) -> bool {
        let had = |(i, r): (usize, &WindowReport)| r.n > 0 && self.windows.by_time(i);
        self.windows.moves() || self.report.windows.iter().enumerate().any(had)
    }

    /// Takes the base pane that ends at `end_ms`, if any event fell into it, and judges every
    /// window that slides there.
    pub fn seal(
        &mut self,
        pane: Option<&Pane>,
        end_ms: i64,
        options: &JudgeOptions,
        changes: &mut Vec<Change>,
    ) {
        let before = self.step_detector(pane, changes);
        let sealed = self.windows.seal(pane, end_ms);
        if pane.is_some() {
            self.report.overdispersion = self.windows.dispersion().measure();
        }
        for index in 0..self.alerts.len() {
            if self.windows.due(index, end_ms, pane.is_some()) || self.fills(index) {
                self.judge(index, end_ms, sealed, options, changes);
            } else {
                // The watermark moved.
                self.give_back(index, end_ms, changes);
            }
        }
        // Before panes leave on which the judgements rest.
        if !self.awaits_window() {
            let condition = alarm::condition(&self.report, options.window_alerts);
            self.step_alert(end_ms, condition, options, before, changes);
        }
        self.windows.trim(end_ms);
    }

    /// Shows the pane to the detector; answers what it was before.
    fn step_detector<'p>(
        &mut self,
        pane: Option<&'p Pane>,
        changes: &mut Vec<Change>,
    ) -> Option<Before<'p>> {
        let (detector, pane) = (self.detector.as_mut()?, pane?);
        detector.expect(pane);
        if !self.report.alert.counts(pane.start_ms) {
            return None;
        }
        // The windows that take the pane report one that does not unpack.
        let packed = pane.sums.scores()?;
        let sums = packed.unpack(self.grid).ok()?;
        let before = Before {
            detector: detector.clone(),
            pane: packed,
            span_ms: (pane.start_ms, pane.end_ms),
        };
        let outcome = detector.observe(&sums, before.span_ms);
        let told = outcome != Outcome::Quiet
            || detector.held_ms().is_some() != before.detector.held_ms().is_some();
        self.detector_reported = false;
        // The report is made when it is read, but at once where an alert depends on it.
        if told || self.report.detector.is_none() {
            self.report_detector();
        }
        if told && let Some(report) = self.report.detector.as_deref() {
            changes.push(Change {
                stream: self.report.id.clone(),
                window: "detector".to_owned(),
                at_ms: pane.end_ms,
                step: Step::Detector {
                    alarm: outcome == Outcome::Alarm,
                    again: outcome == Outcome::Alarm
                        && report.alarm.as_ref().is_some_and(|a| a.times > 1),
                },
                sentence: sentence(&self.report.id.to_string(), report),
                facts: None,
            });
        }
        self.windows.know(packed, sums);
        Some(before)
    }

    /// Puts into the report what the detector says now; done before reports are read, not at each
    /// pane.
    pub fn report_detector(&mut self) {
        if let (false, Some(detector)) = (self.detector_reported, &self.detector) {
            self.report.detector = detector.report().map(Arc::new);
            self.detector_reported = true;
        }
    }

    /// Says whether the fleet calls the stream.
    pub fn call(&mut self, called: bool, at_ms: i64) {
        if let Some(detector) = &mut self.detector
            && detector.called_ms().is_some() != called
        {
            detector.call(called, at_ms);
            self.detector_reported = false;
        }
    }

    /// Whether the first slide of a window has grown since it was last judged.
    fn fills(&self, index: usize) -> bool {
        let report = &self.report.windows[index];
        let slid = report.n > 0 && self.windows.whole(index, report.end_ms);
        // The end of the report is within a slide or nothing was judged: what is gathered counts.
        !slid && self.windows.young(index) && self.windows.gathered(index) != report.n
    }

    /// The input ended at `end_ms`: judges windows as they stand, but those judged there already.
    pub fn finish(&mut self, end_ms: i64, options: &JudgeOptions, changes: &mut Vec<Change>) {
        let sealed = self.windows.finish(end_ms);
        for index in 0..self.alerts.len() {
            if self.report.windows[index].end_ms == end_ms {
                continue;
            }
            self.judge(index, end_ms, sealed, options, changes);
        }
        let condition = alarm::condition(&self.report, options.window_alerts);
        self.step_alert(end_ms, condition, options, None, changes);
    }

    fn judge(
        &mut self,
        index: usize,
        end_ms: i64,
        sealed: Result<(), PackError>,
        options: &JudgeOptions,
        changes: &mut Vec<Change>,
    ) {
        let begun = self.stopwatch.map(|now| now());
        let judged = match sealed.and_then(|()| self.evaluate(index, end_ms, options)) {
            Ok(judged) => judged,
            Err(_) => Judged::undecided(Undecided::Capacity),
        };
        let report = &mut self.report.windows[index];
        report.start_ms = self.windows.start_ms(index, end_ms);
        report.end_ms = end_ms;
        report.since_ms = self.windows.since_ms(index, end_ms);
        report.n = self.windows.n(index, end_ms);
        report.coverage = judged.coverage;
        report.evaluated_at_ms = end_ms;
        let evaluated = judged.numbers.is_some();
        self.evaluations += u64::from(evaluated);
        let timed = self.stopwatch.zip(begun);
        let nanos = timed.map(|(now, begun)| now().saturating_sub(begun));
        self.refit(index, judged.verdict, options);
        self.publish(
            index,
            end_ms,
            judged.verdict,
            judged.numbers,
            options,
            changes,
        );
        if nanos.is_some() {
            let report = &self.report.windows[index];
            self.judgements.push(WindowJudgement {
                stream: self.report.id.clone(),
                window: report.window.clone(),
                point: HistoryPoint::of(report),
                nanos: nanos.filter(|_| evaluated),
            });
        }
    }

    /// Fits recalibration maps of scores from the window that was just judged.
    fn refit(&mut self, index: usize, verdict: Verdict, options: &JudgeOptions) {
        if self.report.id.view.is_vector() {
            return;
        }
        let report = &self.report.windows[index];
        let window = JudgedWindow {
            start_ms: report.start_ms,
            end_ms: report.end_ms,
            n: report.n,
            verdict,
        };
        let total = || match self.windows.total(index, window.end_ms)? {
            PaneSums::Scores(sums) => Ok(sums),
            PaneSums::Vector(_) => Err(PackError::Corrupt),
        };
        // Sums that overflow are reported by the verdict.
        let next = Recalibration::step(report.recalibration.as_ref(), window, options, total)
            .unwrap_or(None);
        self.report.windows[index].recalibration = next;
    }

    /// The sums of the panes that window `index` holds, with its report; less than the report's
    /// where a pane was dropped after the judgement.
    pub fn total(&self, index: usize) -> Result<(&WindowReport, Total), PackError> {
        let report = &self.report.windows[index];
        Ok((report, self.windows.total(index, report.end_ms)?))
    }

    /// Says what a class is among all classes in one window.
    pub fn set_family(&mut self, index: usize, family: Family) {
        if let Some(report) = self.report.windows.get_mut(index) {
            report.family = Some(family);
        }
    }

    /// Windows evaluated since the last call.
    pub fn take_evaluations(&mut self) -> u64 {
        std::mem::take(&mut self.evaluations)
    }

    /// Its windows.
    pub fn windows(&self) -> &Windows {
        &self.windows
    }

    /// The detector.
    pub fn detector(&self) -> Option<&Detector> {
        self.detector.as_deref()
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let id = &self.report.id;
        let names = id.model.len() + id.version.len() + id.segment.len();
        let evaluation = |r: &WindowReport| {
            r.numbers.as_ref().map_or(0, Numbers::bytes)
                + size_of::<WindowReport>()
                + r.recalibration.as_ref().map_or(0, |m| m.bytes())
                + r.window.len()
        };
        size_of::<Judge>()
            + names
            + self.windows.bytes()
            + self.detector.as_ref().map_or(0, |d| d.bytes())
            + self.alerts.len() * size_of::<Alert>()
            + self.withheld.len() * size_of::<Option<Withheld>>()
            + self.report.windows.iter().map(evaluation).sum::<usize>()
    }
}

/// The pane of one view, from what the collector sealed.
pub fn pane_of(delta: &PaneDelta, view: usize) -> Pane {
    Pane {
        start_ms: delta.start_ms,
        end_ms: delta.end_ms,
        late: delta.late,
        sums: PaneSums::Scores(delta.views[view].clone()),
        unlabelled: delta.unlabelled[view].clone(),
        late_outcomes: delta.late_outcomes.get(view).copied().unwrap_or_default(),
    }
}
