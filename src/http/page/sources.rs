//! The table of sources on the page at `/`, and what is wrong with them.

use std::fmt::Write;

use crate::alert::Severity;
use crate::http::sources::{Lag, rejected};
use crate::report::html::{escape, thousands};
use crate::report::moment::clock;
use crate::telemetry::Published;
use crate::telemetry::concerns::Concern;
use crate::telemetry::facts::{Role, SourceFacts};

/// What is wrong with the sources, in the line of the program's health.
pub(super) fn badges(published: &Published, body: &mut String) {
    let concerns = published.concerns();
    if concerns.is_empty() {
        if !published.facts().sources.is_empty() {
            body.push_str("<span class=\"badge good\">sources</span>");
        }
        return;
    }
    for concern in &concerns {
        let _ = write!(
            body,
            "<a class=\"badge {}\" href=#sources>{}</a> ",
            class(concern),
            escape(&words(concern))
        );
    }
}

fn class(concern: &Concern) -> &'static str {
    let all = concern.severity == Severity::Page || concern.words.starts_with("all");
    if all { "bad" } else { "wait" }
}

fn words(concern: &Concern) -> String {
    format!("{}: {}", concern.source, concern.words)
}

/// Sentences about serious problems of sources, for pages whose numbers may be affected.
pub(super) fn warning(published: &Published, body: &mut String) {
    let grave = published.concerns().into_iter();
    for concern in grave.filter(|c| c.severity == Severity::Page) {
        let _ = write!(
            body,
            "<p class=words><span class=bad>What is read may mislead.</span> {}. <a href=/runbooks/{}>runbook</a></p>",
            escape(&words(&concern)),
            concern.rule
        );
    }
}

pub(super) fn table(published: &Published, body: &mut String) {
    let facts = published.facts();
    if let Role::Judge(_) = facts.role {
        body.push_str("<h2>Sources</h2><p>Workers read the sources: see the page of each.</p>");
    }
    if facts.sources.is_empty() {
        return;
    }
    let concerns = published.concerns();
    body.push_str(
        "<h2 id=sources>Sources</h2><table class=wide><thead><tr><th>source<th>state<th class=num>read\
         <th class=num>rejected<th class=num>late<th class=num>pending<th class=num>matched<th class=num>orphaned<th class=num>expired\
         <th class=num>implied<th class=num>lag<tbody>",
    );
    for source in &facts.sources {
        row(source, &concerns, Lag::of(published, &source.name), body);
    }
    body.push_str(
        "</table><p class=foot>Late: records that came after later ones had sealed their panes; they count in no \
         window. Pending: predictions that wait for their outcome. Matched: outcomes that found their prediction. Orphaned: outcomes that found none \
         in time. Expired: predictions whose outcome never came. Implied: those that count \
         all the same, as <code>on_missing</code> says. Numbers are those since the state began; the state looks at the last minutes, as the shipped rules do.</p>",
    );
}

fn row(source: &SourceFacts, concerns: &[Concern], lag: Lag, body: &mut String) {
    let _ = write!(body, "<tr><th scope=row>{}", escape(&source.name));
    last(source, body);
    body.push_str("<td>");
    let here = |c: &&Concern| c.source == source.name;
    let here: Vec<&Concern> = concerns.iter().filter(here).collect();
    for concern in &here {
        let _ = write!(
            body,
            "<span class={}>{}</span> <a class=sub href=/runbooks/{}>runbook</a><br>",
            class(concern),
            escape(&concern.words),
            concern.rule
        );
    }
    if here.is_empty() {
        body.push_str("<span class=\"badge good\">sound</span>");
    }
    let c = &source.counters;
    let reasons = rejected(source);
    let total: u64 = c.rejected.iter().sum();
    let _ = write!(
        body,
        "<td class=num data-k=read>{}<td class=num data-k=rejected>{}",
        thousands(c.records),
        thousands(total)
    );
    for (reason, n) in reasons.iter().take(3) {
        let _ = write!(body, "<div class=sub>{reason} {}</div>", thousands(*n));
    }
    for (name, n) in [
        ("late", c.late),
        ("pending", c.pending),
        ("matched", c.matched),
        ("orphaned", c.orphaned),
        ("expired", c.expired),
        ("implied", c.implied),
    ] {
        let _ = write!(body, "<td class=num data-k={name}>{}", thousands(n));
    }
    let records = lag.records.map(|n| thousands(n.unsigned_abs()));
    let _ = write!(
        body,
        "<td class=num data-k=lag>{}",
        records.as_deref().unwrap_or("–")
    );
    if let Some(ms) = lag.ms.filter(|ms| *ms >= 1000) {
        let _ = write!(
            body,
            "<div class=sub>{} s</div>",
            thousands(ms.unsigned_abs() / 1000)
        );
    }
}

/// The last rejected record, in words.
fn last(source: &SourceFacts, body: &mut String) {
    let Some(last) = source.last_rejection.as_deref() else {
        return;
    };
    let at = last
        .at_ms
        .map_or(String::new(), |ms| format!(" at {} UTC", clock(ms)));
    let _ = write!(
        body,
        "<div class=sub>last rejection{at}, partition {} offset {}: {}</div>",
        last.partition,
        last.offset,
        escape(&last.detail)
    );
}
