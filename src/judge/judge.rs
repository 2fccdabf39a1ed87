//! The judge of one stream: windows, verdicts, alerts.
//!
//! The judge takes sealed panes in order of time. At every slide of a window it takes the window's
//! total, evaluates it, and moves the window's alert. Streams of scores and of vectors are judged
//! alike; only the evaluation differs ([`Numbers::of`]), and only streams of scores may have a
//! detector. The judge uses event time. It uses the clock in one method, [`Judge::tick`], which
//! withdraws values if no event or no judgement has come for too long. A stream whose windows were
//! all withdrawn stays so until an event comes, and then until it has a pane or a waiting
//! prediction. Event time moved by other streams, and its own maturing predictions, do not change
//! this.
//!
//! Always: a window's report is a function of the panes that were sealed, so any order, split or
//! restart that seals the same panes gives the same report, to the last bit of each p-value; the
//! seed of a resampling test is derived from stream, window and end of window.
//!
//! A window is judged at its slides. Until its first slide ends (up to four hours for a window of a
//! day), the window is also judged while that slide fills, whenever the shorter window that feeds
//! it slides. Its report says since when it has data. After a restart, each window is evaluated
//! again over its panes, which are those that were judged. Only what came late since then, a
//! revised outcome or the pane of a partition that is behind, is in that evaluation already, while
//! bounds, n, verdict and alert stay as they were judged until the next slide.
//!
//! A window that had no room for an event is `undecided(capacity)`: the remaining events are a
//! biased sample.
//!
//! Cost of each slide: the changed panes are added to the window's sums or subtracted from them
//! (all panes are merged if there is no room to keep these sums), and the total is evaluated.

use super::alarm;
use super::coverage::{self, Coverage, Lacking};
use super::detector::Detector;
use super::detector_report::sentence;
use super::judgement::{HistoryPoint, WindowJudgement};
use super::options::JudgeOptions;
use super::report::{Change, Family, Step, StreamReport, WindowReport};
use super::runtime::Stopwatch;
use super::stream::StreamId;
use super::verdict::{Numbers, Undecided, Verdict};
use crate::alert::Alert;
use crate::stats::axis::Grid;
use crate::stats::overdispersion::{Overdispersion, Scales};
use crate::stats::sequential::Outcome;
use crate::window::{EmptySums, Ladder, PackError, Packed, Pane, PaneSums, Unlabelled, Windows};
use std::sync::Arc;

mod alerts;
mod dispersion;
mod last_end;
mod late;
mod next_end;
mod persist;
mod state;
mod withheld;

use last_end::LastEnd;
use withheld::Withheld;

pub use state::{JudgeState, WindowVerdict};

/// The judge of one stream. See the module.
#[derive(Debug, Clone)]
pub struct Judge {
    windows: Windows,
    alerts: Vec<Alert>,
    /// The end of each window at the last tick.
    last_ends: Vec<LastEnd>,
    /// What windows said before they became stalled; empty until any did.
    withheld: Vec<Option<Withheld>>,
    /// Whether no event has come since a tick found the stream stale. Panes of earlier events, such
    /// as predictions that mature now, do not end this.
    stale: bool,
    /// Late outcomes since the last pane was sealed.
    unseen_late: u64,
    /// Shared with its readers: a change copies it, once.
    report: Arc<StreamReport>,
    /// The cells of the model's scores, for the record of an alert.
    grid: Grid,
    /// How much its outcomes vary, at each scale.
    scales: Option<Scales>,
    /// Watches a stream of scores.
    detector: Option<Box<Detector>>,
    /// Whether the report has the present state of the detector.
    detector_reported: bool,
    evaluations: u64,
    stopwatch: Option<Stopwatch>,
    /// Judgements since they were last taken, if there is a stopwatch.
    judgements: Vec<WindowJudgement>,
}

/// The detector before a pane: a copy of 24 kB, which is dropped unused at most panes.
struct Before<'p> {
    detector: Box<Detector>,
    pane: &'p Packed,
    span_ms: (i64, i64),
}

/// What a step of the alert rests on, beside the reports of the windows.
enum Ground<'p> {
    /// A judgement just made, and the detector before the pane that it took.
    Judged(Option<Before<'p>>),
    /// Reports as they stand: panes may have changed since the judgements.
    Standing,
    /// Reports as they stand, because someone closed the alert; who, and why.
    Closed(&'p str),
}

/// The result of evaluating a window.
struct Judged {
    verdict: Verdict,
    /// `None` while undecided.
    numbers: Option<Numbers>,
    coverage: Option<Box<Coverage>>,
}

impl Judged {
    fn undecided(why: Undecided) -> Judged {
        Judged {
            verdict: Verdict::Undecided(why),
            numbers: None,
            coverage: None,
        }
    }
}

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
            stale: false,
            unseen_late: 0,
            report: Arc::new(StreamReport::blank(id, ladder)),
            grid,
            scales: None,
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

    /// The latest judgements; the same pointer for as long as nothing changes.
    pub fn report(&self) -> &Arc<StreamReport> {
        &self.report
    }

    /// The report, to change it: those that hold it keep what they have.
    fn edit(&mut self) -> &mut StreamReport {
        Arc::make_mut(&mut self.report)
    }

    /// Puts into the report the present state of the detector; done before reports are read, not at
    /// each pane.
    pub fn report_detector(&mut self) {
        self.measure_dispersion();
        if let (false, Some(detector)) = (self.detector_reported, &self.detector) {
            let report = detector.report().map(Arc::new);
            self.edit().detector = report;
            self.detector_reported = true;
        }
    }

    /// Sets the newest event time.
    pub fn set_last_event_ms(&mut self, last_event_ms: i64) {
        if self.report.last_event_ms != last_event_ms {
            self.edit().last_event_ms = last_event_ms;
            self.stale = false;
        }
    }

    /// Notes that an event came since the last tick, whatever its time.
    pub fn note_event(&mut self) {
        self.stale = false;
    }

    /// Sets when the oldest waiting predictions are mature; from the next tick on a window that was
    /// never judged is immature until then.
    pub fn set_due_ms(&mut self, due_ms: Option<i64>) {
        if self.report.due_ms != due_ms {
            self.edit().due_ms = due_ms;
        }
    }

    /// Changes the cap on cells of vectors, for panes that begin from now on.
    pub fn set_cells_max(&mut self, cells_max: usize) {
        self.windows.set_cells_max(cells_max);
    }

    /// Sets how many bytes the sums that windows keep from slide to slide may take.
    pub fn set_running_bytes_max(&mut self, bytes: usize) {
        self.windows.set_running_bytes_max(bytes);
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
        self.unseen_late = 0;
        let before = self.step_detector(pane, options, changes);
        let sealed = self.windows.seal(pane, end_ms);
        let stale = self.stale || (pane.is_none() && self.all_stale());
        self.measure_dispersion();
        for index in 0..self.alerts.len() {
            if self.windows.due(index, end_ms, pane.is_some()) || self.fills(index) {
                self.judge(index, end_ms, sealed, stale, options, changes);
            } else {
                // The watermark moved.
                self.give_back(index, end_ms, changes);
            }
        }
        if !self.awaits_window() {
            let condition = alarm::condition_of(stale, &self.report, options.window_alerts);
            let ground = Ground::Judged(before);
            self.step_alert(end_ms, condition, options, ground, changes);
        }
        self.windows.drop_unpacked();
    }

    /// Shows the pane to the detector; returns what it was before.
    fn step_detector<'p>(
        &mut self,
        pane: Option<&'p Pane>,
        options: &JudgeOptions,
        changes: &mut Vec<Change>,
    ) -> Option<Before<'p>> {
        let (detector, pane) = (self.detector.as_mut()?, pane?);
        let (min_events, coverage_min) = (options.min_events, options.coverage_min);
        let lacking = Lacking::of(&self.windows, pane, min_events, coverage_min);
        detector.observe_missing(pane, lacking);
        if !self.report.alert.counts(pane.start_ms) {
            return None;
        }
        let scores = pane.sums.scores()?;
        // A pane that does not unpack is reported by the windows that take it.
        let sums = scores.unpack(self.grid).ok()?;
        let before = Before {
            detector: detector.clone(),
            pane: scores.packed(),
            span_ms: (pane.start_ms, pane.end_ms),
        };
        let outcome = detector.observe(&sums, before.span_ms);
        let was = before.detector.hold();
        let told = outcome != Outcome::Quiet || detector.hold() != was;
        self.detector_reported = false;
        // The report is made when it is read, but at once if an alert depends on it.
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
                sentence: sentence(&self.report.id.to_string(), report, was),
                facts: None,
            });
        }
        Some(before)
    }

    /// Whether the first slide of a window has grown since it was last judged.
    fn fills(&self, index: usize) -> bool {
        let report = &self.report.windows[index];
        let slid = report.n > 0 && self.windows.whole(index, report.end_ms);
        // The end of the report is within a slide or nothing was judged: what is gathered counts.
        !slid && self.windows.young(index) && self.windows.gathered(index) != report.n
    }

    /// Judges windows as they stand when the input has ended at `end_ms`, except those judged there
    /// already, which lack the late outcomes in `unseen_late`.
    /// A stale stream stays as it is: its windows say so already.
    pub fn finish(&mut self, end_ms: i64, options: &JudgeOptions, changes: &mut Vec<Change>) {
        if self.stale {
            return;
        }
        self.measure_dispersion();
        let sealed = self.windows.finish(end_ms);
        if (self.report.windows.iter()).all(|report| report.end_ms != end_ms) {
            self.unseen_late = 0;
        }
        for index in 0..self.alerts.len() {
            if self.report.windows[index].end_ms == end_ms {
                continue;
            }
            self.judge(index, end_ms, sealed, false, options, changes);
        }
        let condition = alarm::condition(&self.report, options.window_alerts);
        self.step_alert(end_ms, condition, options, Ground::Judged(None), changes);
    }

    /// Judges a window: evaluates it, unless its panes are unusable or the stream is `stale`.
    fn judge(
        &mut self,
        index: usize,
        end_ms: i64,
        sealed: Result<(), PackError>,
        stale: bool,
        options: &JudgeOptions,
        changes: &mut Vec<Change>,
    ) {
        let begun = self.stopwatch.map(|now| now());
        let settled = self.is_settled(index, stale);
        let width_ms = end_ms - self.windows.start_ms(index, end_ms);
        let dispersion = self.dispersion_within(width_ms);
        let evaluated =
            sealed.and_then(|()| self.evaluate(index, end_ms, stale, dispersion, options));
        let judged = match evaluated {
            Ok(judged) => judged,
            Err(_) => Judged::undecided(Undecided::Capacity),
        };
        let report = &mut Arc::make_mut(&mut self.report).windows[index];
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
        self.refit(index, judged.verdict, dispersion, options);
        self.publish(
            index,
            end_ms,
            judged.verdict,
            judged.numbers,
            options,
            changes,
        );
        // For an empty window, one point says all that others would.
        if nanos.is_some() && !(settled && self.is_settled(index, stale)) {
            let report = &self.report.windows[index];
            self.judgements.push(WindowJudgement {
                stream: self.report.id.clone(),
                window: report.window.clone(),
                point: HistoryPoint::of(report),
                nanos: nanos.filter(|_| evaluated),
            });
        }
    }

    /// Evaluates a window as it stands; `stale` and `dispersion` are those of its stream. Its total
    /// is taken once, and only if it is needed.
    fn evaluate(
        &mut self,
        index: usize,
        end_ms: i64,
        stale: bool,
        dispersion: Option<Overdispersion>,
        options: &JudgeOptions,
    ) -> Result<Judged, PackError> {
        let unlabelled = self.windows.unlabelled(index, end_ms);
        let undecided = match stale {
            true => Some(Undecided::Stale),
            false => self.undecided(index, end_ms, &unlabelled, options),
        };
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
        wanted.overdispersion = dispersion;
        let window = &self.report.windows[index].window;
        wanted.tcal.seed = self.report.id.seed(window, end_ms, wanted.tcal.seed);
        // Weighted events say less than their number.
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
        let expected = n + unlabelled.dropped().iter().sum::<u64>();
        if expected >= options.min_events && coverage::is_below(options.coverage_min, n, expected) {
            return Some(Undecided::Coverage);
        }
        let late = self.windows.late(index, end_ms);
        if late > n && n.saturating_add(late) >= options.min_events {
            return Some(Undecided::Late);
        }
        (n < options.min_events.max(1)).then_some(Undecided::TooFew)
    }

    /// Sets the result of a class among all classes in one window.
    pub fn set_family(&mut self, index: usize, family: Family) {
        if let Some(report) = self.edit().windows.get_mut(index) {
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
