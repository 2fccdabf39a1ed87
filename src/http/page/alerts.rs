//! The page at `/alerts`: firing, pending, acknowledged, silenced and recently ended alerts.

use std::fmt::Write;
use std::sync::Arc;

use super::index::parts;
use crate::alert::{AlertState, Severity, Silence, Silences};
use crate::http::path::{encode, page_path};
use crate::judge::sentence::because;
use crate::judge::{DecidedError, StreamReport, alarm, shown as shown_numbers};
use crate::report::html::{error_range, escape, or_none, thousands};
use crate::report::moment::clock;
use crate::telemetry::Published;
use crate::telemetry::facts::AlertFacts;
use crate::telemetry::history::HistoryAlert;

/// Most ended alerts on the page.
const ENDED_MAX: usize = 25;
/// Most alerts in one group: the rest is on the page of streams.
const GROUP_MAX: usize = 100;
/// Most streams of one alert.
const STREAMS_MAX: usize = 50;
/// How long an alert that ended is listed.
const ENDED_MS: i64 = 3 * 86_400_000;
/// The runbook of alerts of models.
const RUNBOOK: &str = "/runbooks/TruelineMiscalibrated";

/// An alert, and the reports of its streams that are in its state.
struct Shown {
    alert: AlertFacts,
    reports: Vec<Arc<StreamReport>>,
}

impl Shown {
    fn of(alert: &AlertFacts, published: &Published) -> Shown {
        let reports = alert.streams.iter().filter_map(|id| published.report(id));
        Shown {
            reports: reports.filter(|r| r.alert.state == alert.state).collect(),
            alert: alert.clone(),
        }
    }

    fn fires(&self) -> bool {
        self.alert.state == AlertState::Firing
    }

    /// Whether all streams of the alert are silenced.
    fn is_silenced(&self, silences: &Silences, now_ms: i64) -> bool {
        let silenced = |r: &Arc<StreamReport>| {
            let labels = r.id.labels(r.alert.severity);
            silences.silence_of(&labels, now_ms).is_some()
        };
        !self.reports.is_empty() && self.reports.iter().all(silenced)
    }

    fn is_acknowledged(&self, silences: &Silences) -> bool {
        silences
            .ack_of(&self.alert.fingerprint, self.alert.since_ms)
            .is_some()
    }
}

/// The name of a list of alerts, and whether an alert belongs to it.
type Group<'a> = (&'a str, &'a dyn Fn(&Shown) -> bool);

/// The page at `/alerts`.
pub fn alerts(published: &Published, now_ms: i64) -> String {
    let silences = published.control.silences();
    let all = Arc::clone(&published.facts().alerts);
    let elsewhere = super::elsewhere(published, "alerts");
    let open = |a: &&AlertFacts| matches!(a.state, AlertState::Firing | AlertState::Pending);
    let open = all.iter().filter(open);
    let mut open: Vec<Shown> = open.map(|a| Shown::of(a, published)).collect();
    open.sort_by_key(|s| (s.alert.severity != Severity::Page, s.alert.since_ms));
    let silenced = |s: &Shown| s.is_silenced(&silences, now_ms);
    let acked = |s: &Shown| s.is_acknowledged(&silences);
    let mut body = String::from("<h1>Alerts</h1>");
    super::sources::warning(published, &mut body);
    let groups: [Group<'_>; 4] = [
        ("Firing", &|s| s.fires() && !silenced(s) && !acked(s)),
        ("Acknowledged", &|s| s.fires() && acked(s) && !silenced(s)),
        ("Silenced", &|s| s.fires() && silenced(s)),
        ("Pending", &|s| !s.fires()),
    ];
    body.push_str(elsewhere.as_deref().unwrap_or_default());
    for (name, is_of) in groups.into_iter().filter(|_| elsewhere.is_none()) {
        let group: Vec<&Shown> = open.iter().filter(|s| is_of(s)).collect();
        if name == "Firing" || !group.is_empty() {
            table(name, &group, &silences, now_ms, &mut body);
        }
    }
    ended(published, now_ms, &mut body);
    deployments(&silences, &mut body);
    silence_list(&silences, now_ms, &mut body);
    super::page("alerts · trueline", "/alerts", &body)
}

fn table(name: &str, group: &[&Shown], silences: &Silences, now_ms: i64, body: &mut String) {
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
        "<table class=wide><thead><tr><th>alert<th>severity<th>since (UTC)<th>what is known<th>who<tbody>",
    );
    for shown in group.iter().take(GROUP_MAX) {
        row(shown, silences, now_ms, body);
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

fn row(shown: &Shown, silences: &Silences, now_ms: i64, body: &mut String) {
    let alert = &shown.alert;
    let Some(worst) = shown.reports.first() else {
        return;
    };
    let class = match (alert.state, alert.severity) {
        (AlertState::Firing, Severity::Page) => "full",
        (AlertState::Firing, Severity::Warn) => "bad",
        _ => "wait",
    };
    let _ = write!(
        body,
        "<tr><th scope=row><a href=\"/?model={}\">{}</a>",
        encode(&alert.model),
        escape(or_none(&alert.name)),
    );
    streams(shown, body);
    let _ = write!(
        body,
        "<td><span class=\"badge {class}\">{}</span><td data-k=since>{}<td>{}<div class=sub>{}<a href={RUNBOOK}>runbook</a> · \
         <a href=\"{}#alert\">what keeps it open</a></div><td data-k=who>",
        badge(alert.state, alert.severity),
        alert.since_ms.map_or("–".to_owned(), clock),
        escape(&known(worst)),
        size(worst),
        page_path(&worst.id)
    );
    // If only one of several streams is silenced, the alert is not.
    let silence = silences.silence_of(&worst.id.labels(worst.alert.severity), now_ms);
    let silence = silence.filter(|_| shown.is_silenced(silences, now_ms));
    if !owner(alert, silence, silences, body) && shown.fires() {
        body.push_str("nobody yet");
    }
}

/// The severity of an alert that people must act on, otherwise its state.
fn badge(state: AlertState, severity: Severity) -> &'static str {
    let severity = state.severity(severity).map(Severity::as_str);
    severity.unwrap_or(state.as_str())
}

/// The streams of an alert: a single one by its name, several behind their number.
fn streams(shown: &Shown, body: &mut String) {
    let link =
        |r: &StreamReport| format!("<a href=\"{}\">{}</a>", page_path(&r.id), escape(&parts(r)));
    if let [only] = &shown.reports[..] {
        let _ = write!(body, "<div class=sub>{}</div>", link(only));
        return;
    }
    let _ = write!(
        body,
        "<details class=sub><summary>{} streams</summary><ul class=plain>",
        shown.reports.len()
    );
    for report in shown.reports.iter().take(STREAMS_MAX) {
        let badge = badge(report.alert.state, report.alert.severity);
        let _ = write!(body, "<li>{} {badge}", link(report));
    }
    body.push_str("</ul></details>");
}

/// The numbers of the window that represents a stream.
fn known(report: &StreamReport) -> String {
    let window = alarm::speaker(report).and_then(|at| report.windows.get(at));
    window.map_or(String::new(), |w| match w.evaluated() {
        Some(numbers) => shown_numbers(w.verdict, numbers),
        None => because(w),
    })
}

/// The interval of the error of this window.
fn size(report: &StreamReport) -> String {
    let window = alarm::speaker(report).and_then(|at| report.windows.get(at));
    let sized = window.and_then(|w| Some((w, w.evaluated()?)));
    sized.map_or(String::new(), |(w, e)| {
        let (name, error) = (escape(&w.window), DecidedError::of(e));
        let what = if error.is_ratio() { "" } else { "error " };
        format!(
            "{name}: {what}{}, n {} · ",
            error_range(&error),
            thousands(w.n)
        )
    })
}

/// Who looks after an alert, and who silenced it; returns whether anybody did.
pub(super) fn owner(
    alert: &AlertFacts,
    silence: Option<&Silence>,
    silences: &Silences,
    body: &mut String,
) -> bool {
    let ack = silences.ack_of(&alert.fingerprint, alert.since_ms);
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

/// The last marked deployments.
fn deployments(silences: &Silences, body: &mut String) {
    if silences.deployments.is_empty() {
        return;
    }
    body.push_str(
        "<h2>Deployments</h2><table class=wide><thead><tr><th>model<th>at (UTC)<th>by<th>note<tbody>",
    );
    for d in silences.deployments.iter().rev().take(ENDED_MAX) {
        let version = d
            .version
            .as_ref()
            .map_or(String::new(), |v| format!(" {v}"));
        let _ = write!(
            body,
            "<tr><th scope=row>{}{}<td>{}<td>{}<td>{}",
            escape(&d.model),
            escape(&version),
            clock(d.at_ms),
            escape(&d.by),
            escape(&d.note)
        );
    }
    body.push_str("</table>");
}

/// Silences that have not expired.
fn silence_list(silences: &Silences, now_ms: i64, body: &mut String) {
    let alive: Vec<_> = silences
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
