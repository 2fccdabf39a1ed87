//! Two HTML pages: the list of streams, and one stream with its reliability diagrams.
//!
//! Plain HTML with inline style and no script, so that it works without other software, behind any
//! proxy and in a text browser. Every value from outside passes through [`escape`].

use std::fmt::Write;

use super::diagram;
use super::path::{encode, encode_id};
use super::text::{clock, escape, number, or_none, significance, thousands};
use crate::alert::AlertState;
use crate::judge::detector_report::{HELD, kind};
use crate::judge::{DetectorReport, Numbers, Recalibration, StreamReport, WindowReport, shown};
use crate::report::recalibration;
use crate::stats::evaluation::Evaluation;
use crate::stats::kernel::window::WindowEvaluation;
use crate::stats::multiclass;
use crate::telemetry::Published;
use crate::telemetry::verdict_words;

const STYLE: &str = include_str!("page.css");

/// The page at `/`.
pub fn index(published: &Published) -> String {
    let mut body = String::new();
    body.push_str("<h1>trueline</h1><p class=lead>Are the models' probabilities true?</p>");
    health(published, &mut body);
    let reports = published.reports();
    if reports.is_empty() {
        body.push_str(
            "<p>No stream has been judged yet. A stream appears with its first window.</p>",
        );
    } else {
        body.push_str(
            "<div class=scroll><table><thead><tr><th>stream<th>window<th>verdict<th class=num>n\
             <th class=num>ECE ℓ2<th class=num>interval<th class=num>p<th>alert<th>ends (UTC)<tbody>",
        );
        for report in &reports {
            for (i, window) in report.windows.iter().enumerate() {
                index_row(report, window, i == 0, &mut body);
            }
        }
        body.push_str("</table></div>");
    }
    body.push_str(
        "<h2>Addresses</h2><ul class=links>\
         <li><a href=/metrics>/metrics</a> for Prometheus\
         <li><a href=/live>/live</a> and <a href=/ready>/ready</a> for probes\
         <li><a href=/api/v1/streams>/api/v1/streams</a> the list above as JSON\
         <li>/api/v1/streams/{id} one stream in full\
         <li>/api/v1/streams/{id}/reliability the cells of its diagram\
         <li><a href=/api/v1/ledger>/api/v1/ledger</a> false-alarm budgets: guarantees and use\
         <li><a href=/api/v1/comparisons>/api/v1/comparisons</a> and /api/v1/models/{model}/comparison compare versions that scored the same ids\
         <li>/api/v1/streams/{id}/recalibration recalibration maps; <code>?format=csv</code> as a table\
         <li><a href=/api/v1/alerts>/api/v1/alerts</a> alerts, <a href=/api/v1/silences>/api/v1/silences</a> silences\
         <li><a href=/runbooks>/runbooks</a> what to do about an alert\
         <li>/api/v1/tap labelled predictions as lines of JSON; <code>?model=</code> and <code>?rate=</code>\
         <li>POST /-/reload reloads the configuration\
         </ul>",
    );
    page("trueline", &body)
}

/// The page of one stream; `window` selects one of its windows.
pub fn stream(report: &StreamReport, window: Option<&str>) -> String {
    let id = &report.id;
    let mut body = String::new();
    let _ = write!(
        body,
        "<p class=crumb><a href=/>all streams</a></p><h1>{}</h1><p class=lead>",
        escape(&id.model)
    );
    let segment = if id.segment.is_empty() {
        "all"
    } else {
        &id.segment
    };
    let _ = write!(
        body,
        "version <b>{}</b> · segment <b>{}</b> · view <b>{}</b> · last event {} UTC</p>",
        escape(or_none(&id.version)),
        escape(segment),
        escape(&id.view.to_string()),
        clock(report.last_event_ms)
    );
    stream_alert(report, &mut body);
    if let Some(report) = &report.detector {
        detector(report, &mut body);
    }
    let path = encode_id(id);
    for shown in report
        .windows
        .iter()
        .filter(|w| window.is_none_or(|name| w.window == name))
    {
        section(&path, shown, &mut body);
    }
    let _ = write!(
        body,
        "<p class=foot>As JSON: <a href=\"/api/v1/streams/{path}\">everything</a>, \
         <a href=\"/api/v1/streams/{path}/reliability\">cells</a>. \
         Grey bars: where the event rate of a cell would fall if its scores were true; red: outside. \
         Whiskers: exact 95 % interval of the observed rate. Area of a point: events in the cell.</p>"
    );
    page(&format!("{id} · trueline"), &body)
}

/// The detector, above the windows.
fn detector(report: &DetectorReport, body: &mut String) {
    let bounds = &report.bounds;
    match &report.alarm {
        Some(alarm) => {
            let _ = write!(
                body,
                "<section><h2>detector <span class=\"badge bad\">alarm</span></h2><p class=when>since {} UTC, started about \
                 {} UTC · alarm {} since it was clear</p><p class=words>{}.</p>",
                clock(alarm.since_ms),
                clock(alarm.onset_ms as i64),
                alarm.times,
                escape(&kind(&alarm.evidence))
            );
        }
        None if report.held_ms.is_some() => {
            let _ = write!(
                body,
                "<section><h2>detector <span class=\"badge\">holds</span></h2><p class=words>{HELD}.</p>"
            );
        }
        None => {
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
    let _ = write!(
        body,
        "<p>Anytime-valid with {:.0} % confidence: mean of outcome minus score {} to {}, ECE ℓ2 at least {}, over {} events. {}: {}.</p></section>",
        100.0 * report.confidence,
        number(bounds.mean.0),
        number(bounds.mean.1),
        number(bounds.ece2_lower.sqrt()),
        thousands(bounds.n),
        escape(&report.account),
        escape(&report.promise)
    );
}

/// The alert of the stream, if it is active.
fn stream_alert(report: &StreamReport, body: &mut String) {
    let alert = &report.alert;
    let (state, severity) = (alert.state.as_str(), alert.severity);
    let class = match alert.state {
        AlertState::Inactive => return,
        AlertState::Firing => "bad",
        AlertState::Pending | AlertState::Resolved => "wait",
    };
    let since = alert.since_ms.map_or("-".to_owned(), clock);
    let fingerprint = report.id.fingerprint();
    let _ = write!(
        body,
        "<p class=when>alert <code>{fingerprint}</code> <span class=\"{class}\">{state}</span> ({severity}) since {since} UTC</p>"
    );
}

/// One window on the page of a stream.
fn section(path: &str, window: &WindowReport, body: &mut String) {
    let _ = write!(
        body,
        "<section><h2>window {} {}</h2><p class=when>{} to {} UTC{} · n = {} · alert {}</p>",
        escape(&window.window),
        badge(window),
        clock(window.start_ms),
        clock(window.end_ms),
        data_since(window),
        thousands(window.n),
        alert(window)
    );
    match window.evaluated() {
        Some(numbers @ Numbers::Scores(e)) => {
            let _ = write!(
                body,
                "<p class=words>{}{}</p><div class=pair>",
                escape(&capital(&shown(window.verdict, numbers))),
                events_left(window, e)
            );
            let advised = window
                .recalibration
                .as_deref()
                .and_then(Recalibration::advised);
            body.push_str(&diagram::svg(&e.reliability, advised.map(|(map, _)| map)));
            figures(e, body);
            body.push_str("</div>");
            recalibration_maps(path, window, body);
        }
        other => {
            let words = match other {
                Some(numbers @ Numbers::Cells(e)) => {
                    vector_sentence(&shown(window.verdict, numbers), e)
                }
                Some(numbers @ Numbers::Kernel(e)) => {
                    kernel_sentence(&shown(window.verdict, numbers), e)
                }
                _ => undecided_sentence(window).to_owned(),
            };
            let _ = write!(body, "<p class=words>{words}</p>");
        }
    }
    if let Some(f) = &window.family {
        let _ = write!(
            body,
            "<p>Among {} classes tested together: p {} of this class, {} of all being calibrated (Holm).</p>",
            f.classes,
            significance(f.adjusted_p_value),
            significance(f.p_value)
        );
    }
    body.push_str("</section>");
}

/// Recalibration maps for a miscalibrated window.
fn recalibration_maps(path: &str, window: &WindowReport, body: &mut String) {
    let Some(recalibration) = window.recalibration.as_deref() else {
        return;
    };
    let words = match &recalibration.judged {
        Some(j) => recalibration::words(&j.judgement, &j.fitted.fits),
        None => format!(
            "maps were fitted to the window that ends at {} UTC and will be evaluated on the next window",
            clock(recalibration.fitted.end_ms)
        ),
    };
    let name = encode(&window.window);
    let _ = write!(
        body,
        "<p class=words>Recalibration: {}. <a href=\"/api/v1/streams/{path}/recalibration?window={name}\">maps</a>",
        escape(&words)
    );
    if recalibration.advised().is_some() {
        let _ = write!(
            body,
            ", <a href=\"/api/v1/streams/{path}/recalibration?window={name}&amp;format=csv\">table</a>; the line in the diagram is the map"
        );
    }
    body.push_str("</p>");
}

/// Start of the data, if it is later than the start of the window.
fn data_since(window: &WindowReport) -> String {
    if window.n > 0 && window.since_ms > window.start_ms {
        format!(", data since {}", clock(window.since_ms))
    } else {
        String::new()
    }
}

/// Number of events behind the figures, if a restart left fewer than were judged.
fn events_left(window: &WindowReport, e: &Evaluation) -> String {
    if e.n == window.n {
        return String::new();
    }
    let n = thousands(e.n);
    format!(" Restarted since: until the next slide the figures cover the {n} events that remain.")
}

/// The numbers of an evaluation as a table of two columns.
fn figures(e: &Evaluation, body: &mut String) {
    let percent = e.interval.confidence * 100.0;
    let mut rows: Vec<(String, String)> = vec![
        (
            "ECE ℓ2, debiased".into(),
            number(e.interval.estimate_squared.max(0.0).sqrt()),
        ),
        (
            format!("its {percent:.0} % interval, {} cells", e.interval.cells),
            format!(
                "{} to {}",
                number(e.interval.lower),
                number(e.interval.upper)
            ),
        ),
        (
            "smallest detectable at this n".into(),
            e.detectable_ece_l2.map_or("–".into(), number),
        ),
        ("tolerance".into(), number(e.tolerance.tolerance)),
        ("ECE ℓ1, plug-in".into(), number(e.ece_l1)),
        ("p-value of the decision".into(), significance(e.p_value)),
        ("T-Cal p-value".into(), significance(e.tcal.p_value)),
    ];
    for part in &e.combined.parts {
        rows.push((
            format!("{} part p-value", part.part.as_str()),
            significance(part.p_value),
        ));
    }
    if let Some(r) = &e.tolerance.ratio {
        rows.push((
            "observed/expected".into(),
            format!("{} to {}", number(r.lower), number(r.upper)),
        ));
    }
    if let Some(discrete) = &e.discrete {
        rows.push((
            "exact discrete test p-value".into(),
            significance(discrete.p_value),
        ));
    }
    rows.extend([
        ("event rate".into(), number(e.event_rate)),
        ("mean score".into(), number(e.mean_score)),
        ("mean residual".into(), number(e.in_the_large.mean_residual)),
        ("Brier score".into(), number(e.brier.score)),
        ("log loss".into(), number(e.log_loss)),
    ]);
    body.push_str("<table class=figures><tbody>");
    for (name, value) in rows {
        let _ = write!(body, "<tr><td>{name}<td class=num>{value}");
    }
    body.push_str("</table>");
}

/// A row of the index. The first row of a stream names it for all its windows.
fn index_row(report: &StreamReport, window: &WindowReport, first: bool, body: &mut String) {
    body.push_str(if first { "<tr class=first>" } else { "<tr>" });
    if first {
        let _ = write!(
            body,
            "<td rowspan={}><a href=\"/streams/{}\">{}</a>",
            report.windows.len(),
            encode_id(&report.id),
            escape(&report.id.to_string())
        );
    }
    let _ = write!(
        body,
        "<td>{}<td>{}<td class=num>{}",
        escape(&window.window),
        badge(window),
        thousands(window.n)
    );
    match window.evaluated() {
        Some(Numbers::Kernel(e)) => {
            let p = e.p_value.map_or("–".to_owned(), significance);
            let _ = write!(
                body,
                "<td class=num>KCE {}<td class=num>≥ {}<td class=num>{p}",
                number(e.kce),
                number(e.lower)
            );
        }
        Some(e) => {
            let _ = write!(
                body,
                "<td class=num>{}<td class=num>{} – {}<td class=num>{}",
                number(e.ece_squared().unwrap_or(0.0).max(0.0).sqrt()),
                number(e.lower()),
                number(e.upper()),
                e.p_value().map_or("–".to_owned(), significance)
            );
        }
        None => body.push_str("<td class=num>–<td class=num>–<td class=num>–"),
    }
    let _ = write!(body, "<td>{}<td>{}", alert(window), clock(window.end_ms));
}

/// Whether the program is live and ready, and what is missing.
fn health(published: &Published, body: &mut String) {
    let missing = published.missing();
    body.push_str("<p class=health>");
    body.push_str(if published.live() {
        "<span class=\"badge good\">live</span> "
    } else {
        "<span class=\"badge bad\">not live: a loop is silent, values are withdrawn</span> "
    });
    if missing.is_empty() {
        body.push_str("<span class=\"badge good\">ready</span>");
    }
    for (part, why) in missing {
        let _ = write!(
            body,
            "<span class=\"badge wait\">waiting for {}: {}</span> ",
            escape(&part),
            escape(&why)
        );
    }
    body.push_str("</p>");
}

/// State of the alert, highlighted if it needs attention.
fn alert(window: &WindowReport) -> String {
    let class = match window.alert {
        AlertState::Firing => "bad",
        AlertState::Pending => "wait",
        AlertState::Inactive | AlertState::Resolved => return window.alert.as_str().to_owned(),
    };
    format!("<span class=\"{class}\">{}</span>", window.alert.as_str())
}

fn badge(window: &WindowReport) -> String {
    let (verdict, reason) = verdict_words(window.verdict);
    let class = match verdict {
        "calibrated" => "good",
        "miscalibrated" => "bad",
        _ => "wait",
    };
    let reason = reason.map_or(String::new(), |r| format!(": {}", r.replace('_', " ")));
    format!("<span class=\"badge {class}\">{verdict}{reason}</span>")
}

/// Verdict and numbers of a vector view, which has no diagram.
fn vector_sentence(shown: &str, e: &multiclass::Evaluation) -> String {
    let i = &e.interval;
    let shown = capital(shown);
    format!(
        "{shown}. ℓ2-ECE over {} coordinates {}, {:.0} % interval {} to {}, p {}. A vector has no single score, so no \
         diagram, direction, detector or recalibration.",
        e.dimension,
        number(i.estimate_squared.max(0.0).sqrt()),
        100.0 * i.confidence,
        number(i.lower),
        number(i.upper),
        significance(e.tcal.p_value)
    )
}

/// Verdict and numbers of a kernel view.
fn kernel_sentence(shown: &str, e: &WindowEvaluation) -> String {
    let shown = capital(shown);
    let by = match &e.features {
        Some(f) if e.by_features => format!("by {} random features of all events", f.count),
        _ => format!("by {} of {} events", e.sample.n, e.n),
    };
    format!(
        "{shown}. Kernel calibration error {} over {} classes, {:.0} % interval {} to {}, p {}, {by}. A vector has \
         no single score, so no diagram, direction, detector or recalibration.",
        number(e.kce),
        e.classes,
        100.0 * e.confidence,
        number(e.lower),
        number(e.upper),
        e.p_value.map_or("undefined".to_owned(), significance)
    )
}

fn undecided_sentence(window: &WindowReport) -> &'static str {
    match verdict_words(window.verdict).1 {
        Some("too_few") => "Too few events for a verdict.",
        Some("few_clusters") => "Too few clusters for a verdict.",
        Some("immature") => "Outcomes are still expected; there is no verdict before they are due.",
        Some("stale") => "No new data; the last values were withdrawn.",
        Some("stalled") => "A partition holds the watermark back; the last values were withdrawn.",
        Some("late") => "Too many events arrived late to judge this window.",
        Some("capacity") => "A limit was reached; not all events of this window were kept.",
        _ => "No verdict.",
    }
}

pub(super) fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{}</title>\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\
         <meta http-equiv=refresh content=10><style>{STYLE}</style><main>{body}</main></html>\n",
        escape(title)
    )
}

/// The text with its first letter as a capital.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}
