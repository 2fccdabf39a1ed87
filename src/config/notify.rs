//! `[notify]` and `[[sink]]`: notifications and their sinks.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::alert::Matcher;
use crate::judge::Plan;
use crate::notify::template::{PLACEHOLDERS, TemplateError};
use crate::notify::{GroupBy, Kind, NotifyOptions, SinkOptions, Template, Texts};
use crate::notify::{opsgenie, pagerduty};

use super::document::Record;
use super::problem::{Problems, TextPosition};
use super::value::nearest;
use super::write::MASK;

/// Default topic of alerts.
pub const TOPIC: &str = "trueline-alerts";

/// The models that matchers may name.
#[derive(Clone, Copy)]
pub struct MatcherModels<'p> {
    /// The plan with the models.
    pub plan: &'p Plan,
    /// Whether a matcher that means nothing to them is a problem: after another problem, they may
    /// not be the ones that were meant.
    pub known: bool,
}

/// Options of notifications. `listen` is the default address of the pages.
pub fn notify(
    root: &Record,
    listen: SocketAddr,
    models: MatcherModels<'_>,
    problems: &mut Problems<'_>,
) -> NotifyOptions {
    let record = root.child("notify");
    let texts = Texts {
        summary: template(record, "summary", problems),
        description: template(record, "description", problems),
    };
    let mut sinks: Vec<SinkOptions> = Vec::new();
    for sink in root.all("sink") {
        let options = options(sink, record.truth("dry_run"), models, problems);
        if sinks.iter().any(|s| s.name == options.name) {
            let what = format!("two sinks are called `{}`", options.name);
            problems.add(sink.entry("name").at, what, "give each a name of its own");
        }
        sinks.push(options);
    }
    for key in ["external_url", "runbook_url"] {
        let url = record.text(key).unwrap_or("http://");
        if !["http://", "https://"]
            .iter()
            .any(|scheme| url.starts_with(scheme))
        {
            let what = format!("`{key}` is \"{url}\", which is no address of a page");
            let remedy = "begin it with \"https://\" or \"http://\"";
            problems.add(record.entry(key).at, what, remedy);
        }
    }
    let (external_url, runbook_url) = links(root, listen);
    NotifyOptions {
        group_by: group_by(record, problems),
        max_age_ms: record.milliseconds("max_age"),
        runbook_url,
        external_url,
        texts,
        sinks,
    }
}

/// Addresses of the pages and of the runbooks; by default those of a server that listens at
/// `listen`.
pub fn links(root: &Record, listen: SocketAddr) -> (String, String) {
    let record = root.child("notify");
    let external_url = record.owned("external_url");
    // A link cannot name "all addresses"; `localhost` at least works on this machine.
    let external_url = external_url.unwrap_or_else(|| match listen.ip().is_unspecified() {
        true => format!("http://localhost:{}", listen.port()),
        false => format!("http://{listen}"),
    });
    let runbook_url = record.owned("runbook_url");
    let runbook_url =
        runbook_url.unwrap_or_else(|| format!("{}/runbooks", external_url.trim_end_matches('/')));
    (external_url, runbook_url)
}

/// The labels by which alerts are grouped.
fn group_by(record: &Record, problems: &mut Problems<'_>) -> GroupBy {
    let mut by = GroupBy::default();
    let mut has_model = false;
    for item in record.list("group_by") {
        match item.value.as_str() {
            "model" => has_model = true,
            "version" => by.version = true,
            "segment" => by.segment = true,
            "view" => by.view = true,
            other => {
                let what = format!("`group_by` has the unknown label `{other}`");
                problems.add(item.at, what, "known are model, version, segment, view");
            }
        }
    }
    if !has_model {
        let at = record.entry("group_by").at;
        let what = "`group_by` has no \"model\", and an alert is of one model";
        problems.add(at, what, "write [\"model\"] or more labels");
    }
    by
}

fn template(record: &Record, key: &str, problems: &mut Problems<'_>) -> Template {
    let text = record.text(key).unwrap_or_default();
    let at = record.entry(key).at;
    match Template::parse(text) {
        Ok(template) => return template,
        Err(TemplateError::Unknown(name)) => {
            let what = format!("`{key}` has the unknown placeholder `{{{name}}}`");
            let remedy = match nearest(&name, PLACEHOLDERS.iter().copied()) {
                Some(near) => format!("did you mean `{{{near}}}`?"),
                None => format!("known are {}", PLACEHOLDERS.join(", ")),
            };
            problems.add(at, what, remedy);
        }
        Err(TemplateError::Unbalanced) => {
            let what = format!("`{key}` has an unbalanced brace");
            problems.add(at, what, "close it, or double it for a literal brace");
        }
    }
    // The empty template replaces an invalid one while further problems are looked for.
    Template::parse("").unwrap_or_else(|_| unreachable!("an empty text has no braces"))
}

fn options(
    sink: &Record,
    dry_run: bool,
    models: MatcherModels<'_>,
    problems: &mut Problems<'_>,
) -> SinkOptions {
    let kind = match sink.text("kind") {
        Some("webhook") => Kind::Webhook,
        Some("slack") => Kind::Slack,
        Some("teams") => Kind::Teams,
        Some("pagerduty") => Kind::PagerDuty,
        Some("opsgenie") => Kind::Opsgenie,
        Some("kafka") => Kind::Kafka,
        _ => Kind::Alertmanager,
    };
    let duration = |key: &str| Duration::from_millis(sink.milliseconds(key).unsigned_abs());
    SinkOptions {
        name: sink.owned("name").unwrap_or_default(),
        kind,
        address: address(sink, kind, problems),
        secret: sink.owned("secret"),
        authorization: sink.owned("authorization"),
        ca_file: sink.path("ca_file").map(Path::to_path_buf),
        matchers: matchers(sink, models, problems),
        resolved: sink.truth("resolved"),
        timeout: duration("timeout"),
        retry_max: duration("retry_max"),
        resend: duration("resend"),
        queue_max: sink.count("queue_max"),
        dry_run: dry_run || sink.truth("dry_run"),
    }
}

/// The address of a sink. Rejects keys that its kind does not use.
fn address(sink: &Record, kind: Kind, problems: &mut Problems<'_>) -> String {
    let (needed, useless): (&str, &[&str]) = match kind {
        Kind::Kafka => ("topic", &["url", "secret", "authorization", "ca_file"]),
        Kind::Webhook => ("url", &["topic"]),
        Kind::Slack | Kind::Teams | Kind::Alertmanager => ("url", &["topic", "secret"]),
        Kind::PagerDuty | Kind::Opsgenie => ("url", &["topic", "authorization"]),
    };
    if problems.has(sink.entry("kind").at) {
        // The kind is unknown, so the other keys cannot be checked.
        return String::new();
    }
    let name = kind.as_str();
    // Ignores the default topic, which the file that `check` prints contains.
    let given = |key: &&&str| sink.entry(key).given && sink.text(key) != Some(TOPIC);
    for key in useless.iter().filter(given) {
        let what = format!("`{key}` is of no use to the kind \"{name}\"");
        problems.add(sink.entry(key).at, what, "remove it");
    }
    let public = match kind {
        Kind::PagerDuty => Some(pagerduty::ADDRESS),
        Kind::Opsgenie => Some(opsgenie::ADDRESS),
        _ => None,
    };
    if public.is_some() && !sink.entry("secret").given {
        let what = format!("a sink of the kind \"{name}\" has no `secret`");
        let remedy = "write the key of the integration: secret = \"${KEY}\"";
        problems.add(sink.at, what, remedy);
    }
    let given = sink.owned(needed);
    let Some(address) = given.or(public.map(str::to_owned)) else {
        if !sink.entry(needed).given {
            let what = format!("a sink of the kind \"{name}\" has no `{needed}`");
            problems.add(sink.at, what, format!("add `{needed}`"));
        }
        return String::new();
    };
    let at = sink.entry(needed).at;
    let http = address.starts_with("http://") || address.starts_with("https://");
    if kind != Kind::Kafka && !http && address != MASK {
        let what = "`url` is neither http nor https";
        let remedy = "write \"http://host:port\"";
        problems.add(at, what, remedy);
    }
    address
}

fn matchers(sink: &Record, models: MatcherModels<'_>, problems: &mut Problems<'_>) -> Vec<Matcher> {
    let mut refuse = |at: TextPosition, what: &str| {
        let (what, remedy) = what.rsplit_once("; ").unwrap_or((what, "correct it"));
        problems.add(at, what, remedy);
    };
    let (mut positions, mut list) = (Vec::new(), Vec::new());
    for item in sink.list("match") {
        let matcher = item.value.parse::<Matcher>();
        match matcher.and_then(|m| m.possible().map(|()| m)) {
            Ok(matcher) => {
                positions.push(item.at);
                list.push(matcher);
            }
            Err(what) => refuse(item.at, &what),
        }
    }
    if let (Err(what), Some(last)) = (Matcher::possible_together(&list), positions.last()) {
        refuse(*last, &what);
    }
    let resolve = |(at, matcher): (TextPosition, &Matcher)| {
        let resolved = models.plan.resolve_matcher(matcher, &list);
        resolved.unwrap_or_else(|what| {
            if models.known {
                refuse(at, &what);
            }
            matcher.clone()
        })
    };
    positions.into_iter().zip(&list).map(resolve).collect()
}
