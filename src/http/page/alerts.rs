//! The page at `/alerts`: what fires, waits, is looked after or silenced, and what ended last.

use std::fmt::Write;
use std::sync::Arc;

use super::index::parts;
use crate::alert::{AlertState, Severity, Silences};
use crate::http::path::{encode_id, page_path};
use crate::http::text::{clock, escape, number, or_none, thousands};
use crate::judge::sentence::because;
use crate::judge::{StreamReport, alarm, shown};
use crate::telemetry::Published;
use crate::telemetry::history::HistoryAlert;

/// Alerts that ended, at most.
const ENDED_MAX: usize = 25;
/// Alerts in one group, at most: the rest is on the page of streams.
const GROUP_MAX: usize = 100;
/// How long an alert that ended is listed.
const ENDED_MS: i64 = 3 * 86_400_000;
/// The runbook of alerts of models.
const RUNBOOK: &str = "/runbooks/TruelineMiscalibrated";

/// The name of a list of streams, and which belong to it.
pub(super) type Group<'a> = (&'a str, &'a dyn Fn(&StreamReport) -> bool);

/// The page.
pub fn alerts(published: &Published, now_ms: i64) -> String {
    let book = published.control.book();
    let mut open: Vec<Arc<StreamReport>> = published.reports();
    open.retain(|r| matches!(r.alert.state, AlertState::Firing | AlertState::Pending));
    open.sort_by_key(|r| (r.alert.severity != Severity::Page, r.alert.since_ms));
    let silenced = |r: &StreamReport| {
        book.silence_of(&r.id.labels(r.alert.severity), now_ms)
            .is_some()
    };
    let acked = |r: &StreamReport| book.ack_of(&r.id.fingerprint(), r.alert.since_ms).is_some();
    let firing = |r: &StreamReport| r.alert.state == AlertState::Firing;
    let mut body = String::from("<h1>Alerts</h1>");
    let groups: [Group<'_>; 4] = [
        ("Firing", &|r| firing(r) && !silenced(r) && !acked(r)),
        ("Acknowledged", &|r| firing(r) && acked(r) && !silenced(r)),
        ("Silenced", &|r| firing(r) && silenced(r)),
        ("Pending", &|r| !firing(r)),
    ];
    for (name, is_of) in groups {
        let group: Vec<&StreamReport> = open.iter().map(|r| &**r).filter(|r| is_of(r)).collect();
        if name == "Firing" || !group.is_empty() {
            table(name, &group, &book, now_ms, &mut body);
        }
    }
    ended(published, now_ms, &mut body);
    silences(&book, now_ms, &mut body);
    super::page("alerts · trueline", "/alerts", &body)
}

fn table(name: &str, group: &[&StreamReport], book: &Silences, now_ms: i64, body: &mut String) {
    let _ = write!(
        body,
        "<h2>{name} <span class=soft>{}</span></h2>",
        group.len()
    );
    if group.is_empty() {
        body.push_str("<p>No alert fires that nobody looks after.</p>");
        return;
    }
    body.push_str(
        "<table class=wide><thead><tr><th>stream<th>severity<th>since (UTC)<th>what is known<th>who<tbody>",
    );
    for report in group.iter().take(GROUP_MAX) {
        row(report, book, now_ms, body);
    }
    body.push_str("</table>");
    if group.len() > GROUP_MAX {
        let _ = write!(
            body,
            "<p>And {} more: <a href=\"/?state=firing\">all streams that fire</a></p>",
            group.len() - GROUP_MAX
        );
    }
}

fn row(report: &StreamReport, book: &Silences, now_ms: i64, body: &mut String) {
    let (id, alert) = (&report.id, &report.alert);
    let class = match (alert.state, alert.severity) {
        (AlertState::Firing, Severity::Page) => "full",
        (AlertState::Firing, Severity::Warn) => "bad",
        _ => "wait",
    };
    let window = alarm::speaker(report).and_then(|at| report.windows.get(at));
    let known = window.map_or(String::new(), |w| match w.evaluated() {
        Some(numbers) => shown(w.verdict, numbers),
        None => because(w),
    });
    let sized = window.and_then(|w| Some((w, w.evaluated()?)));
    let sized = sized.map_or(String::new(), |(w, e)| {
        format!(
            "{}: error {} to {}, n {} · ",
            escape(&w.window),
            number(e.lower()),
            number(e.upper()),
            thousands(w.n)
        )
    });
    let _ = write!(
        body,
        "<tr><th scope=row><a href=\"/streams/{}\">{}</a><div class=sub>{}</div>\
         <td><span class=\"badge {class}\">{}</span><td>{}<td>{}<div class=sub>{sized}<a href={RUNBOOK}>runbook</a> · \
         <a href=\"{}#alert\">what keeps it open</a></div><td>",
        encode_id(id),
        escape(or_none(&id.model)),
        escape(&parts(report)),
        alert.severity,
        alert.since_ms.map_or("–".to_owned(), clock),
        escape(&known),
        page_path(id)
    );
    if !owner(report, book, now_ms, body) && alert.state == AlertState::Firing {
        body.push_str("nobody yet");
    }
}

/// Who looks after an alert, and who silenced it; answers whether anybody did.
pub(super) fn owner(
    report: &StreamReport,
    book: &Silences,
    now_ms: i64,
    body: &mut String,
) -> bool {
    let fingerprint = report.id.fingerprint();
    let ack = book.ack_of(&fingerprint, report.alert.since_ms);
    let silence = book.silence_of(&report.id.labels(report.alert.severity), now_ms);
    if let Some(ack) = ack {
        let _ = write!(
            body,
            "acknowledged by <b>{}</b> at {} {}",
            escape(&ack.by),
            clock(ack.at_ms),
            note(&ack.note)
        );
    }
    if let Some(silence) = silence {
        let _ = write!(
            body,
            "<div>silenced by <b>{}</b> until {} {}</div>",
            escape(&silence.by),
            clock(silence.until_ms),
            note(&silence.note)
        );
    }
    ack.is_some() || silence.is_some()
}

fn note(note: &str) -> String {
    match note {
        "" => String::new(),
        note => format!("<span class=soft>“{}”</span>", escape(note)),
    }
}

/// Alerts that ended, the last first.
fn ended(published: &Published, now_ms: i64, body: &mut String) {
    let mut ended = Vec::new();
    published.history.each(|id, history| {
        let over = |a: &&HistoryAlert| a.state != "firing" && now_ms - a.at_ms < ENDED_MS;
        let all = history.alerts.iter().filter(over);
        ended.extend(all.map(|a| (a.at_ms, id.clone(), a.state.clone())));
    });
    if ended.is_empty() {
        return;
    }
    ended.sort_by(|a, b| b.cmp(a));
    body.push_str(
        "<h2>Ended in the last three days</h2><table class=wide><thead><tr><th>stream<th>became<th>at (UTC)<tbody>",
    );
    for (at_ms, id, state) in ended.iter().take(ENDED_MAX) {
        let _ = write!(
            body,
            "<tr><th scope=row><a href=\"{}\">{}</a><td>{}<td>{}",
            page_path(id),
            escape(&id.to_string()),
            escape(state),
            clock(*at_ms)
        );
    }
    body.push_str("</table>");
}

/// Silences that have not expired.
fn silences(book: &Silences, now_ms: i64, body: &mut String) {
    let alive: Vec<_> = book
        .silences
        .iter()
        .filter(|s| s.until_ms > now_ms)
        .collect();
    if alive.is_empty() {
        return;
    }
    body.push_str(
        "<h2>Silences</h2><table class=wide><thead><tr><th>matches<th>by<th>until (UTC)<th>why<th>lift<tbody>",
    );
    for s in alive {
        let matchers: Vec<String> = s.matchers.iter().map(ToString::to_string).collect();
        let _ = write!(
            body,
            "<tr><th scope=row>{}<td>{}<td>{}<td>{}<td><code>trueline alert silence --lift {}</code>",
            escape(&matchers.join(", ")),
            escape(&s.by),
            clock(s.until_ms),
            escape(&s.note),
            s.id
        );
    }
    body.push_str("</table>");
}
