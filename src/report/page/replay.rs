//! The page of a replay: a summary, then each stream with its windows, their past and its alerts.

use std::fmt::Write;

use super::{document, measures, recalibration, table};
use crate::alert::AlertState;
use crate::judge::{DecidedError, HistoryPoint, StreamReport, Verdict, WindowReport};
use crate::report::html::{error_range, escape, number, significance, thousands};
use crate::report::moment::clock;
use crate::report::window::{Past, badge, section};
use crate::stats::discrimination::Discrimination;

/// Most streams in detail.
const DETAILED: usize = 40;
/// Most rows of the table of windows.
const ROWS: usize = 1000;

/// A change of the alert of a stream, of a window or of a detector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeLine {
    /// Event time of the change.
    pub at_ms: i64,
    /// The change in words.
    pub sentence: String,
    /// Whether an alert began.
    pub began: bool,
}

/// A stream at the end of the replay.
#[derive(Debug)]
pub struct StreamPart<'a> {
    /// The last judgements.
    pub report: &'a StreamReport,
    /// The past of each window, by its name.
    pub past: Vec<(String, Vec<HistoryPoint>)>,
    /// The last changes of its alerts, the oldest first.
    pub changes: Vec<ChangeLine>,
    /// Number of earlier changes that were not kept.
    pub more_changes: usize,
}

/// The whole page; `name` names the replayed events, `counts` describes all records.
pub fn page(name: &str, counts: &str, mut streams: Vec<StreamPart<'_>>) -> String {
    streams.sort_by(|a, b| {
        let (x, y) = (urgency(a.report), urgency(b.report));
        y.partial_cmp(&x).unwrap_or(std::cmp::Ordering::Equal)
    });
    let mut body = summary(name, counts, &streams);
    body += &overview(&streams);
    for (i, stream) in streams.iter().take(DETAILED).enumerate() {
        detail(i, stream, &mut body);
    }
    if streams.len() > DETAILED {
        let _ = write!(
            body,
            "<p>{} more streams are in the table alone.</p>",
            streams.len() - DETAILED
        );
    }
    document(name, &body)
}

/// Sort key by which the worst streams are greatest: firing, number of miscalibrated windows,
/// highest lower end of an error.
fn urgency(report: &StreamReport) -> (bool, usize, f64) {
    let bad = report.windows.iter().filter(|w| is_bad(w)).count();
    let lower = report.windows.iter().map(WindowReport::lower);
    let fires = report.alert.state == AlertState::Firing;
    (fires, bad, lower.fold(0.0, f64::max))
}

fn is_bad(window: &WindowReport) -> bool {
    window.verdict == Verdict::Miscalibrated
}

fn summary(name: &str, counts: &str, streams: &[StreamPart<'_>]) -> String {
    let has = |want: fn(&StreamReport) -> bool| streams.iter().filter(|s| want(s.report)).count();
    let bad = has(|r| r.windows.iter().any(is_bad));
    let fires = has(|r| r.alert.state == AlertState::Firing);
    let good = has(|r| {
        !r.windows.iter().any(is_bad) && r.windows.iter().any(|w| w.verdict == Verdict::Calibrated)
    });
    let undecided = streams.len() - bad - good;
    format!(
        "<h1>Are the models' probabilities true?</h1><p class=lead>{}</p><p class=words>Streams at the end of the events: \
         {bad} miscalibrated in some window, {good} calibrated, {undecided} undecided. Alerts that fire: {fires}.</p>\
         <p class=sub>{}</p>",
        escape(name),
        escape(counts)
    )
}

/// The table of all windows of all streams.
fn overview(streams: &[StreamPart<'_>]) -> String {
    let mut rows = Vec::new();
    for (i, stream) in streams.iter().enumerate() {
        for window in &stream.report.windows {
            let id = escape(&stream.report.id.to_string());
            let name = match i < DETAILED {
                true => format!("<a href=\"#stream-{i}\">{id}</a>"),
                false => id,
            };
            let numbers = window.evaluated();
            let error = numbers.map(|e| error_range(&DecidedError::of(e)));
            let p = numbers.and_then(|e| e.p_value()).map(significance);
            let or_dash = |text: Option<String>| text.unwrap_or("–".to_owned());
            rows.push(vec![
                name,
                escape(&window.window),
                badge(window),
                thousands(window.n),
                or_dash(error),
                or_dash(p),
                stream.report.alert.state.as_str().to_owned(),
            ]);
        }
    }
    let more = rows.len().saturating_sub(ROWS);
    rows.truncate(ROWS);
    let mut out = String::from("<h2>Streams and windows, the worst first</h2>");
    out += &table(
        &[
            "stream", "window", "verdict", "events", "error", "p-value", "alert",
        ],
        &rows,
    );
    if more > 0 {
        let _ = write!(out, "<p>And {more} more windows.</p>");
    }
    out
}

fn detail(i: usize, stream: &StreamPart<'_>, body: &mut String) {
    let report = stream.report;
    let state = report.alert.state;
    let class = match state {
        AlertState::Firing => "full",
        AlertState::Pending => "wait",
        AlertState::Inactive | AlertState::Resolved => "soft",
    };
    let _ = write!(
        body,
        "<h2 id=\"stream-{i}\">{} <span class=\"badge {class}\">alert {}</span></h2>",
        escape(&report.id.to_string()),
        state.as_str()
    );
    alerts(stream, body);
    let began = stream.changes.iter().filter(|c| c.began);
    let began: Vec<i64> = began.map(|c| c.at_ms).collect();
    for (k, window) in report.windows.iter().enumerate() {
        let past = stream.past.iter().find(|(name, _)| name == &window.window);
        let past = Past {
            points: past.map_or(&[][..], |(_, points)| &points[..]),
            alerts_ms: &began,
        };
        let head = format!("window {}", escape(&window.window));
        let id = format!("stream-{i}-{k}");
        let (due_ms, more) = (report.due_ms, further(window));
        section(&head, &id, window, due_ms, past, &more, body);
    }
}

fn alerts(stream: &StreamPart<'_>, body: &mut String) {
    if stream.changes.is_empty() {
        body.push_str("<p>No alert and no detector fired.</p>");
        return;
    }
    let _ = write!(
        body,
        "<details class=past open><summary>Alerts and detector: {} changes</summary>",
        stream.changes.len() + stream.more_changes
    );
    let rows: Vec<_> = stream
        .changes
        .iter()
        .map(|c| vec![clock(c.at_ms), escape(&c.sentence)])
        .collect();
    *body += &table(&["at (UTC)", "change"], &rows);
    if stream.more_changes > 0 {
        let _ = write!(body, "<p>And {} before.</p>", stream.more_changes);
    }
    body.push_str("</details>");
}

/// The HTML after the numbers of a window: the advised map, and how well the scores separate
/// outcomes.
fn further(window: &WindowReport) -> String {
    let mut out = String::new();
    let Some(e) = window.scores() else {
        return out;
    };
    if let Some(r) = window.recalibration.as_deref() {
        let words = match &r.judged {
            Some(j) => crate::report::recalibration::words(&j.judgement, &j.fitted.fits),
            None => "maps wait for the next window that is not calibrated, on which they are tried"
                .to_owned(),
        };
        let _ = write!(out, "<p class=words>Recalibration: {}.</p>", escape(&words));
        if let Some((map, _)) = r.advised() {
            let _ = write!(
                out,
                "<details><summary>What to say instead</summary>{}</details>",
                recalibration::said_instead(e, map)
            );
        }
    }
    if let Some(d) = Discrimination::of_cells(&e.curve) {
        let _ = write!(
            out,
            "<p>AUC {}; accuracy at ½ {}, where always the commoner outcome has {}. Brier score {} = reliability {} − \
             resolution {} + uncertainty {}.</p>",
            d.auc.as_ref().map_or("–".to_owned(), measures::area),
            number(d.accuracy),
            number(d.commoner),
            number(e.brier.score),
            number(e.brier.reliability),
            number(e.brier.resolution),
            number(e.brier.uncertainty)
        );
    }
    out
}
