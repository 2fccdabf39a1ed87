//! The record of a change of an alert, from which the change can be recomputed.
//!
//! A record keeps the sums of each window that was judged at that moment, with options and seeds;
//! the detector's state before its pane, and that pane; the previous alert, and its hold times. It
//! also keeps the results: the evaluations, the detector's report and the alert after.
//! [`Record::recompute`] computes the results again and compares the texts, in which every double
//! is the shortest decimal that reads back as the same bits: equal texts are equal bits. Windows
//! that were judged earlier have no sums here; their verdicts are taken unchanged, and listed as
//! such.
//!
//! Size: 10 to 100 kB for each window that was judged, depending on its occupied cells.

use super::detector;
use super::evaluation;
use crate::alert::{Alert, AlertState, Condition, Holds};
use crate::judge::alarm;
use crate::judge::sentence;
use crate::judge::{
    Change, Detector, DetectorOptions, DetectorState, DetectorStep, Facts, JudgeOptions, Numbers,
    Step, StreamId, StreamReport, Verdict, WindowReport,
};
use crate::stats::evaluation::Options;
use crate::stats::multiclass::sums::Shape;
use crate::stats::overdispersion::Overdispersion;
use crate::stats::sequential::Outcome;
use crate::stats::sums::Sums;
use crate::window::{Packed, PaneSums, Total, ViewShape, ViewSums, ViewSumsState, hex};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

mod cells;
mod words;

use cells::Cells;

/// Version of the format.
pub const FORMAT: u32 = 2;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Window {
    name: String,
    start_ms: i64,
    end_ms: i64,
    since_ms: i64,
    n: u64,
    verdict: Verdict,
    /// Seed of the window's resampling.
    seed: u64,
    /// Packed sums, hexadecimal; `None` if the window was not judged at that moment.
    sums: Option<String>,
    /// Sums of a vector view.
    #[serde(default)]
    vector: Option<VectorWindow>,
    /// Overdispersion of the stream's outcomes.
    overdispersion: Option<Overdispersion>,
    /// The evaluation as it was reported.
    evaluation: Option<Value>,
}

/// The sums of a window of a vector view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct VectorWindow {
    classes: usize,
    /// Most cells; 0 for the kernel view.
    cells_max: usize,
    /// Whether events have weights.
    #[serde(default)]
    weighted: bool,
    /// Cells, or the state of the kernel test, as in snapshots, hexadecimal.
    rows: String,
}

/// Largest window of a kernel view to keep, in bytes: samples of vectors with hundreds of classes
/// would make records of megabytes.
const HELD_BYTES_MAX: usize = 1 << 20;

impl VectorWindow {
    fn of(held: &ViewSums) -> Option<VectorWindow> {
        let (classes, cells_max, bytes) = match (held, held.state()) {
            (ViewSums::Cells(sums), ViewSumsState::Cells { rows, .. }) => {
                let shape = sums.shape();
                (shape.classes, shape.cells_max, postcard::to_stdvec(&rows))
            }
            (ViewSums::Kernel(sums), state) if held.bytes() <= HELD_BYTES_MAX => {
                (sums.classes(), 0, postcard::to_stdvec(&state))
            }
            _ => return None,
        };
        let weighted = matches!(held, ViewSums::Cells(sums) if sums.shape().weighted);
        Some(VectorWindow {
            classes,
            cells_max,
            weighted,
            rows: hex::text(&bytes.ok()?),
        })
    }

    fn sums(&self, id: &StreamId) -> Option<ViewSums> {
        let (classes, bytes) = (self.classes, hex::bytes(&self.rows)?);
        let Some(view) = id.view.cells() else {
            let state: ViewSumsState = postcard::from_bytes(&bytes).ok()?;
            let ViewSumsState::Kernel(kernel) = &state else {
                return None;
            };
            let keeping = kernel.keeping();
            let blank = ViewShape::Kernel { classes, keeping }.blank()?;
            return blank.restored(state);
        };
        let cells_max = self.cells_max;
        let shape = Shape {
            view,
            classes,
            cells_max,
            weighted: self.weighted,
        };
        let (rows, refused) = (postcard::from_bytes(&bytes).ok()?, 0);
        let blank = ViewShape::Cells(shape).blank()?;
        blank.restored(ViewSumsState::Cells { refused, rows })
    }
}

/// The detector's last step and its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Watch {
    account: String,
    budget: String,
    /// The share of the budget that the detector stakes in this step.
    share: f64,
    alpha: f64,
    tolerance: f64,
    /// State before the pane as in snapshots (JSON has no infinities, but the logarithm of an empty
    /// bet is one), the pane, its start and end; `None` if it took no pane at that moment.
    step: Option<(String, String, (i64, i64))>,
    /// Whether it was in alarm after the step.
    alarm: bool,
    /// Its report after the step.
    report: Value,
}

/// A change of an alert, with all that is needed to recompute it.
#[derive(Serialize, Deserialize)]
pub struct Record {
    format: u32,
    /// Version of the program.
    program: String,
    /// Key of the change in notifications.
    pub key: String,
    /// Fingerprint of the alert.
    pub fingerprint: String,
    /// The stream.
    pub stream: StreamId,
    /// Event time of the change; the clock's time if data had stopped.
    pub at_ms: i64,
    /// The change in words.
    pub sentence: String,
    from: Alert,
    to: Alert,
    condition: Condition,
    /// Whether data had stopped, so that the condition is unknown.
    silent: bool,
    /// Whether a window alone raises an alert.
    window_alerts: bool,
    holds: Holds,
    cells: Cells,
    options: Options,
    windows: Vec<Window>,
    detector: Option<Watch>,
    /// Hash of the active configuration.
    pub configuration: String,
    /// Next offset of each partition when the record was written.
    pub offsets: Vec<(String, i32, i64)>,
}

/// The result of recomputing a record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Parts that are equal to the bit.
    pub equal: Vec<String>,
    /// Parts that differ or cannot be read.
    pub different: Vec<String>,
    /// Parts that were taken unchanged.
    pub taken: Vec<String>,
}

/// The word for a change in its key.
pub fn word(from: &Alert, to: &Alert) -> &'static str {
    match (from.state, to.state) {
        (_, AlertState::Firing) => to.severity.as_str(),
        (AlertState::Firing, _) => AlertState::Resolved.as_str(),
        (AlertState::Resolved, AlertState::Inactive) => "over",
        (_, state) => state.as_str(),
    }
}

impl Record {
    /// Makes the record of a change; `None` if it is not a change of a stream's alert.
    pub fn of(
        change: &Change,
        configuration: &str,
        offsets: Vec<(String, i32, i64)>,
    ) -> Option<Record> {
        let (Step::Stream { from, to }, Some(facts)) = (change.step, change.facts.as_deref())
        else {
            return None;
        };
        let evidence = facts.evidence.as_deref()?;
        let (id, options) = (&change.stream, &evidence.options);
        let windows = evidence.report.windows.iter().enumerate();
        let judged = options.evaluation.clone();
        let fingerprint = id.fingerprint();
        Some(Record {
            format: FORMAT,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            key: format!("{fingerprint}-{}-{}", change.at_ms, word(&from, &to)),
            fingerprint,
            stream: id.clone(),
            at_ms: change.at_ms,
            sentence: sentence_of(change, facts),
            from,
            to,
            condition: evidence.condition,
            silent: evidence.condition == Condition::Unknown,
            window_alerts: options.window_alerts,
            holds: options.holds(),
            cells: Cells::of(evidence.grid),
            windows: windows
                .map(|(i, w)| {
                    let sums = evidence.sums.get(i).and_then(Option::as_ref);
                    window(id, w, sums, judged.tcal.seed)
                })
                .collect(),
            detector: watch(options, &evidence.report, evidence.step.as_ref()),
            options: judged,
            configuration: configuration.to_owned(),
            offsets,
        })
    }

    /// Reads a record.
    pub fn read(text: &str) -> Result<Record, String> {
        let record: Record = serde_json::from_str(text).map_err(|e| e.to_string())?;
        match record.format {
            FORMAT => Ok(record),
            other => Err(format!(
                "its format is {other}, this program reads {FORMAT}"
            )),
        }
    }

    /// Recomputes everything and compares.
    pub fn recompute(&self) -> Checked {
        let mut checked = Checked::default();
        let windows = self.windows.iter();
        let windows = windows.map(|w| self.window_again(w, &mut checked));
        let windows: Vec<Option<Verdict>> = windows.collect();
        let detector = self.detector.as_ref();
        let detector = detector.map(|w| self.watch_again(w, &mut checked));
        let counts = |w: &Window| self.from.counts(w.start_ms.max(w.since_ms));
        let verdicts = self.windows.iter().zip(windows);
        let verdicts = verdicts.filter(|(w, _)| counts(w));
        let verdicts = verdicts.map(|(w, again)| again.unwrap_or(w.verdict));
        let condition = match self.silent {
            true => Condition::Unknown,
            false => alarm::of_verdicts(detector, verdicts, self.window_alerts),
        };
        checked.compare("condition", condition == self.condition);
        let to = self.from.step(condition, self.at_ms, &self.holds);
        checked.compare("transition", to == self.to);
        checked
    }

    /// Evaluates a window again and returns its verdict.
    fn window_again(&self, window: &Window, checked: &mut Checked) -> Option<Verdict> {
        let part = format!("window {}", window.name);
        let total = match (&window.vector, &window.sums) {
            (Some(vector), _) => {
                let sums = vector.sums(&self.stream);
                sums.map(|sums| Total::Vector(Arc::new(sums)))
            }
            (None, Some(sums)) => unpacked(sums, &self.cells).map(Total::Scores),
            (None, None) => {
                checked.taken.push(part);
                return None;
            }
        };
        let mut options = self.options.clone();
        options.tcal.seed = window.seed;
        options.overdispersion = window.overdispersion;
        let base = self.options.tcal.seed;
        let seed = self.stream.seed(&window.name, window.end_ms, base);
        if window.vector.is_none() {
            checked.compare(&format!("{part}: seed"), seed == window.seed);
        }
        let again = total.and_then(|total| Numbers::of(&total, &options));
        self.compared(&part, window, again, checked)
    }

    /// Compares a window's evaluation and verdict with what was reported.
    fn compared(
        &self,
        part: &str,
        window: &Window,
        again: Option<Numbers>,
        checked: &mut Checked,
    ) -> Option<Verdict> {
        let reported = window.evaluation.as_ref();
        let same = reported
            .zip(again.as_ref())
            .is_some_and(|(reported, again)| same_text(reported, &evaluation::numbers_json(again)));
        checked.compare(&format!("{part}: evaluation"), same);
        let verdict = again.map(|e| e.verdict(&self.options.tolerance));
        checked.compare(&format!("{part}: verdict"), verdict == Some(window.verdict));
        verdict
    }

    /// Lets the detector take its pane again, and returns whether it is in alarm.
    fn watch_again(&self, watch: &Watch, checked: &mut Checked) -> bool {
        let Some((before, pane, span_ms)) = &watch.step else {
            checked.taken.push("detector".to_owned());
            return watch.alarm;
        };
        let again = (|| {
            let options = DetectorOptions {
                account: watch.account.clone(),
                budget: watch.budget.parse().ok()?,
                streams: 1.0,
                weight: 1.0,
                alpha: watch.alpha,
                tolerance: watch.tolerance,
                // The restored state contains it.
                maturity_ms: 0,
            };
            let grid = self.cells.grid()?;
            let odds = options.odds(grid);
            let mut detector = Detector::new(odds, options, watch.share);
            let before: DetectorState = postcard::from_bytes(&hex::bytes(before)?).ok()?;
            detector.restore(&before).ok()?;
            let _: Outcome = detector.observe(&unpacked(pane, &self.cells)?, *span_ms);
            detector.report()
        })();
        let same = again.as_ref().is_some_and(|r| {
            same_text(&watch.report, &detector::json(r)) && r.alarm.is_some() == watch.alarm
        });
        checked.compare("detector", same);
        again.map_or(watch.alarm, |r| r.alarm.is_some())
    }
}

impl Checked {
    fn compare(&mut self, part: &str, same: bool) {
        match same {
            true => self.equal.push(part.to_owned()),
            false => self.different.push(part.to_owned()),
        }
    }
}

/// The change with the numbers of the decisive window.
fn sentence_of(change: &Change, facts: &Facts) -> String {
    let window = &facts.window;
    let why = sentence::because(window);
    format!("{}; over {}: {why}", change.sentence, window.window)
}

fn window(id: &StreamId, w: &WindowReport, sums: Option<&PaneSums>, seed: u64) -> Window {
    Window {
        name: w.window.clone(),
        start_ms: w.start_ms,
        end_ms: w.end_ms,
        since_ms: w.since_ms,
        n: w.n,
        verdict: w.verdict,
        seed: id.seed(&w.window, w.end_ms, seed),
        sums: (sums.and_then(PaneSums::scores)).map(|s| hex::text(s.packed().as_bytes())),
        vector: (sums.and_then(PaneSums::vector)).and_then(VectorWindow::of),
        overdispersion: w.scores().and_then(|e| e.overdispersion),
        evaluation: w.numbers.as_ref().map(evaluation::numbers_json),
    }
}

fn watch(
    options: &JudgeOptions,
    report: &StreamReport,
    step: Option<&DetectorStep>,
) -> Option<Watch> {
    let options = options.detector.as_ref()?;
    let report = report.detector.as_deref()?;
    Some(Watch {
        account: options.account.clone(),
        budget: options.budget.to_string(),
        share: step.map_or(0.0, |s| s.share),
        alpha: options.alpha,
        tolerance: options.tolerance,
        step: step.and_then(|s| {
            let before = postcard::to_stdvec(&s.before).ok()?;
            Some((hex::text(&before), hex::text(s.pane.as_bytes()), s.span_ms))
        }),
        alarm: report.alarm.is_some(),
        report: detector::json(report),
    })
}

fn unpacked(text: &str, cells: &Cells) -> Option<Sums> {
    let packed = Packed::from_bytes(&hex::bytes(text)?).ok()?;
    packed.unpack(cells.grid()?).ok()
}

/// Whether both have the same text: unlike equal numbers, equal texts are equal bits (0.0 is not
/// -0.0).
fn same_text(a: &Value, b: &Value) -> bool {
    let (a, b) = (a.to_string(), b.to_string());
    a == b
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Judge;
    use crate::stats::axis::{Axis, Grid};
    use crate::stats::fixed::Score;
    use crate::stats::view::View;
    use crate::window::{Ladder, LateOutcomes, Pane, Unlabelled, WindowSpec};

    #[test]
    fn the_record_of_an_alert_that_someone_closed_is_recomputed_and_says_who_did() {
        let grid = Grid::new(Axis::Linear, 8);
        let ladder = Ladder::new(vec![WindowSpec::time("12s", 12_000)], 0).unwrap();
        let id = StreamId {
            model: "fraud".to_owned(),
            version: "3".to_owned(),
            segment: String::new(),
            view: View::Binary,
        };
        let (mut judge, options) = (Judge::new(id, &ladder, grid), JudgeOptions::plain());
        let mut changes = Vec::new();
        for pane in 1..=10 {
            let mut sums = Sums::new(grid);
            for i in 0..500_u32 {
                let score = Score::new(0.2 + f64::from(i % 50) / 100.0).unwrap();
                sums.observe(score, i % 10 == 0).unwrap();
            }
            let end_ms = 2_000 * pane;
            let pane = Pane {
                start_ms: end_ms - 2_000,
                end_ms,
                late: 0,
                sums: PaneSums::Scores(Packed::new(&sums).into()),
                unlabelled: Unlabelled::default(),
                late_outcomes: LateOutcomes::default(),
            };
            judge.set_last_event_ms(end_ms - 1);
            judge.seal(Some(&pane), end_ms, &options, &mut changes);
        }
        assert_eq!(judge.report().alert.state, AlertState::Firing);
        judge.start_over(20_000, Some("closed by ann: fixed"), &options, &mut changes);
        let change = changes.last().unwrap();
        let record = Record::of(change, "", Vec::new()).unwrap();
        let said = "alert of fraud/3//binary is closed by ann: fixed";
        assert!(record.sentence.starts_with(said), "{}", record.sentence);
        let text = serde_json::to_string(&record).unwrap();
        let checked = Record::read(&text).unwrap().recompute();
        assert!(checked.different.is_empty(), "{checked:?}");
        assert_eq!(checked.taken, ["window 12s"]);
        let words = record.words();
        let said = ["(90 % interval), p = ", ", scores are too high"];
        assert!(said.iter().all(|said| words.contains(said)), "{words}");
    }
}
