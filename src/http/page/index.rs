//! The page at `/`: counts, filters, streams or models with the worst first, and the sources.
//!
//! A page holds [`ROWS`] rows, so that it stays below 100 kB however many streams there are.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use strum::VariantArray;

use super::sources;
use crate::alert::AlertState;
use crate::http::path::{self, encode, encode_id};
use crate::http::urgency::{Filter, Urgency, counts, sort};
use crate::judge::{DecidedError, Quantity, StreamReport, alarm};
use crate::report::html::{escape, number, or_none, thousands};
use crate::report::moment::clock;
use crate::report::window::{badge, verdict_class};
use crate::telemetry::Published;

pub(super) const ROWS: usize = 50;
/// Largest accepted number of a page; pages after the last one are empty.
const PAGES_MAX: usize = 1_000_000;

type Row = (Urgency, Arc<StreamReport>);

/// The page at `/`.
pub fn index(published: &Published, query: Option<&str>) -> String {
    let filter = Filter::of(query);
    let by_model = path::query(query, "by").as_deref() == Some("model");
    let mut body = String::from("<h1>Are the models' probabilities true?</h1>");
    let mut rows = filter.named(published);
    heads(published, &filter, by_model, &rows, &mut body);
    form(&filter, by_model, &mut body);
    rows.retain(|(urgency, _)| filter.admits(*urgency));
    sort(&mut rows);
    let page = path::query(query, "page").and_then(|p| p.parse().ok());
    let page: usize = page.unwrap_or(1).clamp(1, PAGES_MAX);
    match rows.is_empty() {
        true => body.push_str(&nothing(published, &filter)),
        false if by_model => models(&filter, &rows, page, &mut body),
        false => streams(&filter, &rows, page, &mut body),
    }
    sources::table(published, &mut body);
    let firing = rows.iter().filter(|(s, _)| *s <= Urgency::Warn).count();
    let title = match firing {
        0 => "trueline".to_owned(),
        n => format!("{n} firing · trueline"),
    };
    super::page(&title, "/", &body)
}

/// Why the list has no row.
fn nothing(published: &Published, filter: &Filter) -> Cow<'static, str> {
    if let Some((what, hint)) = filter.fault() {
        return format!("<p>This cannot be asked: {}; {hint}.</p>", escape(&what)).into();
    }
    if let Some(elsewhere) = super::elsewhere(published, "streams") {
        return elsewhere.into();
    }
    let none = match *filter == Filter::default() && published.reports().is_empty() {
        true => "<p>No stream has been judged yet. A stream appears with its first window.</p>",
        false => "<p>No stream is like that. <a href=/>All streams</a></p>",
    };
    none.into()
}

/// The counts, and the health of the program.
fn heads(published: &Published, filter: &Filter, by_model: bool, rows: &[Row], body: &mut String) {
    body.push_str("<ul class=counts>");
    let by = if by_model { "model" } else { "" };
    let mut head = |state: &str, n: usize, name: &str, class: &str| {
        let asked = Filter {
            state: state.to_owned(),
            ..filter.clone()
        };
        let address = escape(&asked.address("/", &[("by", by)]));
        let current = if filter.state == state {
            " aria-current=true"
        } else {
            ""
        };
        let _ = write!(
            body,
            "<li><a href=\"{address}\"{current}><b class={class}>{n}</b> {name}</a>"
        );
    };
    for (urgency, n) in counts(rows.iter().map(|(s, _)| *s)) {
        head(urgency.as_str(), n, urgency.as_str(), urgency.class());
    }
    head("", rows.len(), "in all", "soft");
    body.push_str("</ul><p class=health>");
    body.push_str(if published.live() {
        "<span class=\"badge good\">live</span> "
    } else {
        "<span class=\"badge bad\">not live: a loop is silent, values are withdrawn</span> "
    });
    let missing = published.missing();
    if missing.is_empty() {
        body.push_str("<span class=\"badge good\">ready</span> ");
    }
    for (part, why) in missing {
        let _ = write!(
            body,
            "<span class=\"badge wait\">waiting for {}</span> <span class=sub>{}</span> ",
            escape(&part),
            escape(&why)
        );
    }
    sources::badges(published, body);
    body.push_str("</p>");
}

/// The search form, which works without a script.
fn form(filter: &Filter, by_model: bool, body: &mut String) {
    let _ = write!(
        body,
        "<form class=filter role=search action=/><input type=search name=q value=\"{}\" \
         placeholder=\"model, version, segment or view\" aria-label=\"words in the name of a stream\">\
         <select name=state aria-label=state><option value=\"\">any state",
        escape(&filter.q)
    );
    let states = Urgency::VARIANTS.iter().map(|s| s.as_str());
    for state in std::iter::once("firing").chain(states) {
        let chosen = if filter.state == state {
            " selected"
        } else {
            ""
        };
        let _ = write!(body, "<option{chosen}>{state}");
    }
    body.push_str("</select>");
    if let Some(model) = &filter.model {
        let _ = write!(
            body,
            "<input type=hidden name=model value=\"{}\">",
            escape(model)
        );
    }
    if by_model {
        body.push_str("<input type=hidden name=by value=model>");
    }
    let (other, name) = match by_model {
        true => (filter.address("/", &[]), "each stream"),
        false => (filter.address("/", &[("by", "model")]), "by model"),
    };
    let _ = write!(
        body,
        "<button>Search</button><a href=\"{}\">{name}</a>",
        escape(&other)
    );
    if *filter != Filter::default() {
        body.push_str("<a href=/>no filter</a>");
    }
    body.push_str("</form>");
}

fn streams(filter: &Filter, rows: &[Row], page: usize, body: &mut String) {
    body.push_str(
        "<table class=wide><thead><tr><th>stream<th>state<th>windows<th class=num>error, its interval\
         <th class=num>n<th>alert since (UTC)<th>judged up to (UTC)<tbody>",
    );
    for (urgency, report) in rows.iter().skip((page - 1) * ROWS).take(ROWS) {
        row(*urgency, report, body);
    }
    body.push_str("</table>");
    pages(filter, "", rows.len(), page, body);
}

fn row(urgency: Urgency, report: &StreamReport, body: &mut String) {
    let id = &report.id;
    let _ = write!(
        body,
        "<tr><th scope=row><a href=\"/streams/{}\">{}</a><div class=sub>{}</div><td>{}<td class=chips>",
        encode_id(id),
        escape(or_none(&id.model)),
        escape(&parts(report)),
        urgency_badge(urgency, report)
    );
    for window in &report.windows {
        let verdict = window.verdict;
        let words = verdict
            .reason()
            .unwrap_or(verdict.as_str())
            .replace('_', " ");
        let (class, name) = (verdict_class(window), escape(&window.window));
        let _ = write!(body, "<span class={class}>{name} {words}</span>");
    }
    let speaker = alarm::speaker(report).and_then(|at| report.windows.get(at));
    match speaker.and_then(|w| w.evaluated()).map(DecidedError::of) {
        Some(e) => {
            let interval = match e.quantity {
                Quantity::Kce => format!("≥ {}", number(e.lower)),
                Quantity::EceL2 => format!("{} – {}", number(e.lower), number(e.upper)),
                Quantity::ObservedExpected => format!("observed/expected {}", e.brief()),
            };
            let estimate = match e.is_ratio() {
                true => e.digits(e.estimate),
                false => number(e.estimate),
            };
            let key = e.quantity.short();
            let _ = write!(
                body,
                "<td class=num data-k={key}>{estimate}<div class=sub>{interval}</div>"
            );
        }
        None => body.push_str("<td class=num>"),
    }
    let n = speaker.map_or(0, |w| w.n);
    let _ = write!(body, "<td class=num data-k=n>{}", thousands(n));
    if report.alert.state == AlertState::Inactive {
        body.push_str("<td>");
    } else {
        let since = report.alert.since_ms.map_or("–".to_owned(), clock);
        let state = match report.alert.state {
            AlertState::Firing => "",
            other => other.as_str(),
        };
        let _ = write!(body, "<td class=sub data-k=\"alert since\">{state} {since}");
    }
    let end = speaker.map_or(0, |w| w.end_ms);
    match end {
        0 => body.push_str("<td>"),
        end => {
            let _ = write!(body, "<td class=sub data-k=\"judged up to\">{}", clock(end));
        }
    }
}

/// Version, segment and view of a stream.
pub(super) fn parts(report: &StreamReport) -> String {
    let id = &report.id;
    let mut parts = Vec::new();
    if !id.version.is_empty() {
        parts.push(format!("version {}", id.version));
    }
    if !id.segment.is_empty() {
        parts.push(segment(&id.segment).to_owned());
    }
    parts.push(id.view.to_string());
    parts.join(" · ")
}

/// A segment as people read it.
pub(super) fn segment(segment: &str) -> &str {
    match segment {
        "" => "not segmented",
        "*" => "all segments",
        other => other,
    }
}

/// The urgency in colour. A significant error within the tolerance is not green.
pub(super) fn urgency_badge(urgency: Urgency, report: &StreamReport) -> String {
    let speaker = alarm::speaker(report).and_then(|at| report.windows.get(at));
    match (urgency, speaker) {
        (Urgency::Calibrated, Some(window)) => badge(window),
        (Urgency::Page, _) => "<span class=\"badge full\">page</span>".to_owned(),
        _ => format!(
            "<span class=\"badge {}\">{}</span>",
            urgency.class(),
            urgency.as_str()
        ),
    }
}

/// Models, one per row, with the number of their streams of each urgency.
fn models(filter: &Filter, rows: &[Row], page: usize, body: &mut String) {
    let mut models: Vec<(&str, Vec<&Row>)> = Vec::new();
    let mut at = std::collections::HashMap::new();
    for row in rows {
        // Rows are sorted, so the first stream of a model is its worst.
        let model = row.1.id.model.as_str();
        let i = *at.entry(model).or_insert_with(|| {
            models.push((model, Vec::new()));
            models.len() - 1
        });
        models[i].1.push(row);
    }
    body.push_str(
        "<table class=wide><thead><tr><th>model<th>worst<th class=num>streams<th>of them<tbody>",
    );
    for (model, rows) in models.iter().skip((page - 1) * ROWS).take(ROWS) {
        let (urgency, worst) = rows[0];
        let _ = write!(
            body,
            "<tr><th scope=row><a href=\"/?model={}\">{}</a><td>{}<td class=num data-k=streams>{}<td class=chips>",
            encode(model),
            escape(or_none(model)),
            urgency_badge(*urgency, worst),
            rows.len()
        );
        for (urgency, n) in counts(rows.iter().map(|(s, _)| *s)) {
            let (class, name) = (urgency.class(), urgency.as_str());
            let _ = write!(body, "<span class={class}>{n} {name}</span>");
        }
    }
    body.push_str("</table>");
    pages(filter, "model", models.len(), page, body);
}

/// Links to the other pages of a list.
fn pages(filter: &Filter, by: &str, rows: usize, page: usize, body: &mut String) {
    let last = rows.div_ceil(ROWS);
    if last < 2 {
        return;
    }
    let (from, to) = ((page - 1) * ROWS + 1, (page * ROWS).min(rows));
    body.push_str("<nav class=row aria-label=\"pages of the list\">");
    let mut link = |to: usize, name: &str| {
        let address = filter.address("/", &[("by", by), ("page", &to.to_string())]);
        let _ = write!(body, "<a href=\"{}\">{name}</a> ", escape(&address));
    };
    if page > 1 {
        link(page - 1, "← before");
    }
    if page < last {
        link(page + 1, "next →");
    }
    let _ = write!(
        body,
        "<span class=soft>{} to {} of {}</span></nav>",
        from.min(rows),
        to,
        rows
    );
}
