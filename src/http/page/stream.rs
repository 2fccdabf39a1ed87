//! The page of one stream: its alert and what keeps that open, its windows with their history, and
//! related streams.

use std::fmt::Write;

use super::alerts::owner;
use super::index::{parts, segment, urgency_badge};
use super::sources;
use super::window::section;
use crate::alert::AlertState;
use crate::http::alerts::{keeps_open, no_alert};
use crate::http::path::{encode, encode_id, page_path};
use crate::http::urgency::Urgency;
use crate::judge::detector_report::{WAITS, kind};
use crate::judge::{DetectorReport, HistoryPoint, StreamReport};
use crate::monitor::activity::Unjudged;
use crate::report::comparison;
use crate::report::html::{escape, number, or_none, range, thousands};
use crate::report::moment::clock;
use crate::report::window::Past;
use crate::telemetry::Published;
use crate::telemetry::facts::AlertFacts;
use crate::telemetry::history::{HistoryAlert, StreamHistory};

/// Most past alerts that are shown.
const ALERTS_SHOWN: usize = 10;
/// Most streams of the same model that are shown.
const SIBLINGS_SHOWN: usize = 24;

/// The page of a stream; `window` selects one of its windows.
pub fn stream(
    report: &StreamReport,
    published: &Published,
    window: Option<&str>,
    now_ms: i64,
) -> String {
    let id = &report.id;
    let path = encode_id(id);
    let mut body = String::new();
    let _ = write!(
        body,
        "<p class=crumb><a href=/>all streams</a> / <a href=\"/?model={}\">{}</a></p><h1>{} {}</h1><p class=lead>",
        encode(&id.model),
        escape(or_none(&id.model)),
        escape(or_none(&id.model)),
        urgency_badge(Urgency::of(report), report)
    );
    let _ = write!(
        body,
        "version <b>{}</b> · segment <b>{}</b> · view <b>{}</b> · last event {}</p>",
        escape(or_none(&id.version)),
        escape(segment(&id.segment)),
        escape(&id.view.to_string()),
        report
            .last_event_ms()
            .map_or("none yet".to_owned(), |ms| format!("{} UTC", clock(ms)))
    );
    let history = published.history.stream(id).unwrap_or_default();
    sources::warning(published, &mut body);
    alert(report, published, now_ms, &mut body);
    past_alerts(report, &history, &mut body);
    if let Some(report) = &report.detector {
        detector(report, &mut body);
    } else if let Some(why) = no_alert(report, &published.facts()) {
        let _ = write!(body, "<p class=words>This stream has {}.</p>", escape(&why));
    }
    let asked = |name: &str| window.is_none_or(|asked| name == asked);
    if let Some(waits) = published.facts().unjudged(id) {
        waiting(waits, report, &mut body);
    }
    let began = began(&history);
    for shown in report.windows.iter().filter(|w| asked(&w.window)) {
        let past = Past {
            points: &points(&history, &shown.window),
            alerts_ms: &began,
        };
        section(&path, shown, report.due_ms, past, &mut body);
    }
    comparisons(report, published, &mut body);
    siblings(report, published, &mut body);
    let _ = write!(
        body,
        "<p class=foot>As JSON: <a href=\"/api/v1/streams/{path}\">everything</a>, \
         <a href=\"/api/v1/streams/{path}/reliability\">cells and curve</a>, \
         <a href=\"/api/v1/streams/{path}/history\">history</a>, \
         <a href=\"/api/v1/streams/{path}/recalibration\">recalibration maps</a>.</p>"
    );
    super::page(&format!("{id} · trueline"), "", &body)
}

/// Events of a stream that was not judged yet, and what it waits for.
fn waiting(waits: &Unjudged, report: &StreamReport, body: &mut String) {
    if let Some(until_ms) = waits.until_ms {
        let _ = write!(
            body,
            "<p class=words>Waiting for the first window to end: {} events so far. They are judged when one later than {} UTC \
             comes; the last one is of {} UTC. If no more come, judge them with <code>trueline replay</code>.</p>",
            thousands(waits.events),
            clock(until_ms),
            report.last_event_ms().map_or("–".to_owned(), clock)
        );
    }
    if waits.late > 0 {
        let _ = write!(
            body,
            "<p class=words>{} events came too late: later ones had sealed their panes. They count in no window. Write \
             records in the order of their times, or raise <code>lateness</code>. \
             <a href=/runbooks/TruelineRecordsLate>runbook</a></p>",
            thousands(waits.late)
        );
    }
}

/// The history of a window.
fn points(history: &StreamHistory, window: &str) -> Vec<HistoryPoint> {
    let known = history.windows.iter().find(|(name, _)| name == window);
    known.map_or(Vec::new(), |(_, points)| points.iter().copied().collect())
}

/// When alerts began; changes of severity are left out.
fn began(history: &StreamHistory) -> Vec<i64> {
    let mut fires = false;
    let begins = |a: &&HistoryAlert| {
        let fired = std::mem::replace(&mut fires, a.state == AlertState::Firing.as_str());
        fires && !fired
    };
    let began = history.alerts.iter().filter(begins);
    began.map(|a| a.at_ms).collect()
}

/// The alert, who looks after it, what keeps it open and when it ends.
fn alert(report: &StreamReport, published: &Published, now_ms: i64, body: &mut String) {
    let alert = &report.alert;
    let class = match alert.state {
        AlertState::Inactive => return,
        AlertState::Firing => "bad",
        AlertState::Pending | AlertState::Resolved => "wait",
    };
    let since = alert.since_ms.map_or("–".to_owned(), clock);
    let facts = published.facts();
    let ours = facts.alerts.iter().find(|a| a.streams.contains(&report.id));
    let ours = ours.cloned().unwrap_or_else(|| AlertFacts {
        name: report.id.to_string(),
        fingerprint: report.id.fingerprint(),
        ..AlertFacts::default()
    });
    let name = escape(&ours.name);
    let severity = alert.state.severity(alert.severity);
    let severity = severity.map_or(String::new(), |s| format!("<dt>severity<dd>{s}"));
    let _ = write!(
        body,
        "<section id=alert><h2>alert <span class=\"badge {class}\">{}</span></h2><dl class=facts>{severity}\
         <dt>since<dd>{since} UTC<dt>part of<dd>the alert <a href=/alerts>{name}</a><dt>looked after<dd>",
        alert.state.as_str()
    );
    let silences = published.control.silences();
    let silence = silences.silence_of(&report.id.labels(alert.severity), now_ms);
    if !owner(&ours, silence, &silences, body) {
        body.push_str("nobody yet");
        // An alert that does not fire cannot be acknowledged.
        if alert.state == AlertState::Firing {
            let ack = escape(argument(&ours));
            let _ = write!(body, "; <code>trueline alert ack {ack} --by NAME</code>");
        }
    }
    body.push_str("</dl>");
    let words = keeps_open(report, &facts, now_ms, |ms| format!("{} UTC", clock(ms)));
    if !words.is_empty() {
        body.push_str("<h3>What keeps it open, and when it ends</h3><ul class=plain>");
        for sentence in words {
            let _ = write!(body, "<li>{}", escape(&sentence));
        }
        body.push_str("</ul>");
    }
    body.push_str(
        "<p class=row><a href=/runbooks/TruelineMiscalibrated>what to do: the runbook</a><a href=/alerts>all alerts</a></p></section>",
    );
}

/// The argument that names the alert on a command line: its name, unless a shell would change it.
fn argument(alert: &AlertFacts) -> &str {
    let plain = |c: char| c.is_alphanumeric() || "-._/=,:".contains(c);
    match alert.name.starts_with(char::is_alphanumeric) && alert.name.chars().all(plain) {
        true => &alert.name,
        false => &alert.fingerprint,
    }
}

/// Alerts that began and ended, the last first.
fn past_alerts(report: &StreamReport, history: &StreamHistory, body: &mut String) {
    if history.alerts.is_empty() {
        return;
    }
    let fingerprint = report.id.fingerprint();
    let _ = write!(
        body,
        "<details class=past><summary>Last alerts: {}</summary><table class=wide><thead><tr><th>at (UTC)<th>became\
         <th>what was known<th>explained<tbody>",
        history.alerts.len()
    );
    for alert in history.alerts.iter().rev().take(ALERTS_SHOWN) {
        let key = format!("{fingerprint}-{}-{}", alert.at_ms, word(alert));
        let _ = write!(
            body,
            "<tr><th scope=row>{}<td>{} {}<td class=sub>{}<td><a href=\"/api/v1/explanations/{key}\">recompute</a>",
            clock(alert.at_ms),
            escape(&alert.state),
            match alert.state.as_str() {
                "firing" => escape(&alert.severity),
                _ => String::new(),
            },
            escape(&alert.sentence)
        );
    }
    body.push_str("</table></details>");
}

/// The word for a change in the key of its record.
fn word(alert: &HistoryAlert) -> &str {
    match alert.state.as_str() {
        "firing" => &alert.severity,
        _ => AlertState::Resolved.as_str(),
    }
}

/// The detector, above the windows.
fn detector(report: &DetectorReport, body: &mut String) {
    let bounds = &report.bounds;
    match (&report.alarm, report.idle(), report.waiting) {
        (Some(alarm), ..) => {
            let _ = write!(
                body,
                "<section><h2>detector <span class=\"badge bad\">alarm</span></h2><p class=when>since {} UTC, started about \
                 {} UTC · alarm {} since it was clear, the last at {} UTC</p><p class=words>{}.</p>",
                clock(alarm.since_ms),
                clock(alarm.onset_ms as i64),
                thousands(alarm.times),
                clock(alarm.at_ms),
                escape(&kind(&alarm.evidence))
            );
        }
        (None, Some(why), _) => {
            let state = match report.hold {
                Some(_) => "on hold",
                None => "bets on nothing",
            };
            let _ = write!(
                body,
                "<section><h2>detector <span class=\"badge wait\">{state}</span></h2><p class=words>{why}.</p>"
            );
        }
        (None, None, Some(waiting)) => {
            let _ = write!(
                body,
                "<section><h2>detector <span class=\"badge wait\">alarm waits</span></h2><p class=when>since {} UTC, until \
                 {} UTC at most</p><p class=words>{WAITS}.</p>",
                clock(waiting.since_ms),
                clock(waiting.until_ms),
            );
        }
        (None, None, None) => {
            let evidence = report.evidence.as_ref();
            let share = evidence.map_or(0.0, |e| e.log_worth / report.log_threshold);
            let _ = write!(
                body,
                "<section><h2>detector <span class=\"badge good\">no alarm</span></h2><p class=when>evidence {:.0} % of \
                 the way to an alarm</p>",
                100.0 * share.max(0.0)
            );
        }
    }
    if bounds.n > 0 {
        let _ = write!(
            body,
            "<p>At all times with {:.0} % confidence: mean of outcome minus score {}, ECE ℓ2 at least {}, over the \
             {} events {}.</p>",
            100.0 * report.confidence,
            range(bounds.mean.0, bounds.mean.1),
            number(bounds.ece2_lower.sqrt()),
            thousands(bounds.n),
            match &report.alarm {
                Some(_) => "since the alarm began",
                None => "since the detector last started over",
            }
        );
    }
    let _ = write!(
        body,
        "<p class=sub>{}: {}. {}.</p></section>",
        escape(&report.account),
        escape(&report.promise),
        match report.alarms {
            1 => "1 alarm so far".to_owned(),
            n => format!(
                "{} alarms so far, with the confirmations of those that last",
                thousands(n)
            ),
        }
    );
}

/// The comparisons of this stream's version with others.
fn comparisons(report: &StreamReport, published: &Published, body: &mut String) {
    let id = &report.id;
    let facts = published.facts();
    let about = facts.comparisons.iter().filter(|c| {
        let here = c.id.champion == id.version || c.id.challenger == id.version;
        c.id.model == id.model && c.id.view == id.view && here
    });
    let about: Vec<_> = about.collect();
    if about.is_empty() {
        return;
    }
    body.push_str("<section><h2>Versions on the same ids</h2><ul class=plain>");
    for one in about {
        let _ = write!(body, "<li>{}", escape(&comparison::words(one)));
    }
    let _ = write!(
        body,
        "</ul><p class=row><a href=\"/api/v1/models/{}/comparison\">as JSON</a>\
         <a href=/runbooks/TruelineChallengerWorse>what to do if one is worse</a></p></section>",
        encode(&id.model)
    );
}

/// The name of a list of streams, and whether a stream belongs to it.
type Related<'a> = (&'a str, &'a dyn Fn(&StreamReport) -> bool);

/// Other versions, segments and views of the model, the worst first within each.
fn siblings(report: &StreamReport, published: &Published, body: &mut String) {
    let id = &report.id;
    let all = published.reports();
    let others: Vec<_> = all
        .iter()
        .filter(|r| r.id.model == id.model && r.id != *id)
        .collect();
    if others.is_empty() {
        return;
    }
    body.push_str("<h2>Of the same model</h2>");
    let groups: [Related<'_>; 3] = [
        ("Other versions", &|r| {
            r.id.version != id.version && r.id.segment == id.segment && r.id.view == id.view
        }),
        ("Other segments", &|r| {
            r.id.version == id.version && r.id.segment != id.segment && r.id.view == id.view
        }),
        ("Other views", &|r| {
            r.id.version == id.version && r.id.segment == id.segment && r.id.view != id.view
        }),
    ];
    for (name, is_of) in groups {
        let mut group: Vec<&StreamReport> =
            others.iter().map(|r| &***r).filter(|r| is_of(r)).collect();
        if group.is_empty() {
            continue;
        }
        group.sort_by_key(|r| Urgency::of(r));
        let _ = write!(body, "<h3>{name}</h3><p class=row>");
        for r in group.iter().take(SIBLINGS_SHOWN) {
            let label = parts(r);
            let _ = write!(
                body,
                "<span><a href=\"{}\">{}</a> {}</span>",
                page_path(&r.id),
                escape(&label),
                urgency_badge(Urgency::of(r), r)
            );
        }
        body.push_str("</p>");
    }
    let _ = write!(
        body,
        "<p><a href=\"/?model={}\">All {} streams of {}</a></p>",
        encode(&id.model),
        others.len() + 1,
        escape(or_none(&id.model))
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_began_where_it_fires_after_it_did_not() {
        let alerts = [(1, "firing"), (2, "firing"), (3, "resolved"), (4, "firing")];
        let alerts = alerts.map(|(at_ms, state)| HistoryAlert {
            at_ms,
            state: state.to_owned(),
            severity: "page".to_owned(),
            sentence: String::new(),
        });
        let history = StreamHistory {
            alerts: alerts.into(),
            ..StreamHistory::default()
        };
        assert_eq!(began(&history), [1, 4]);
    }

    #[test]
    fn a_command_names_an_alert_by_what_no_shell_changes() {
        for (name, shown) in [
            ("fraud/3/country=DE/class:1", None),
            ("", Some("00ff")),
            ("--help", Some("00ff")),
            ("fraud/1/*/binary", Some("00ff")),
            ("a\u{7}b", Some("00ff")),
            ("$(x)", Some("00ff")),
        ] {
            let alert = AlertFacts {
                name: name.to_owned(),
                fingerprint: "00ff".to_owned(),
                ..AlertFacts::default()
            };
            assert_eq!(argument(&alert), shown.unwrap_or(name));
        }
    }
}
