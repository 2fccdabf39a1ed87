//! The files of `deploy/` against the one table of metrics: a rule or panel cannot name a metric or
//! a label that the program does not export, and no alert is without its page.
//!
//! Read as text: the rules are plain YAML with one expression per `expr:`, the dashboard is JSON.
//! What the expressions mean is checked by promtool and a real Prometheus in
//! `tests/repo/prometheus.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::support::expressions::{ALERT_FILES, alerts, dashboard, deploy, recorded, rules};
use serde_json::Value;
use trueline::notify::notification::{Links, STREAMS_MAX};
use trueline::notify::options::Texts;
use trueline::notify::template::Template;
use trueline::notify::{Notification, webhook};
use trueline::telemetry::metrics::{Group, Kind, Metric, TABLE};

/// Labels that Prometheus itself adds.
const ADDED: [&str; 2] = ["job", "instance"];

/// Labels by name of every series that may be asked for: the table, and what the rules record.
fn known() -> BTreeMap<String, BTreeSet<String>> {
    let mut known = BTreeMap::new();
    for row in TABLE {
        let labels = |more: &'static [&'static str]| -> BTreeSet<String> {
            let all = row.all_labels().chain(ADDED).chain(more.iter().copied());
            all.map(str::to_owned).collect()
        };
        if row.kind == Kind::Histogram {
            known.insert(format!("{}_bucket", row.name), labels(&["le"]));
            known.insert(format!("{}_sum", row.name), labels(&[]));
            known.insert(format!("{}_count", row.name), labels(&[]));
        } else {
            known.insert(row.name.to_owned(), labels(&[]));
        }
    }
    for (name, expr) in recorded() {
        let labels = words(&expr)
            .filter(|word| !word.starts_with("trueline"))
            .map(str::to_owned);
        known.insert(name, labels.collect());
    }
    known
}

/// Identifiers of an expression; recorded names contain colons.
fn words(expr: &str) -> impl Iterator<Item = &str> {
    expr.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))
        .filter(|word| !word.is_empty())
}

/// Metrics of an expression with the labels that their selectors use.
fn selectors(expr: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let mut rest = expr;
    while let Some(at) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '_') {
        rest = &rest[at..];
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))
            .unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        rest = tail;
        let ours = ["trueline", "process_", "up"]
            .iter()
            .any(|start| word.starts_with(start));
        if !ours {
            continue;
        }
        let mut labels = Vec::new();
        if let Some(inside) = tail.strip_prefix('{') {
            let (inside, after) = inside.split_once('}').unwrap();
            rest = after;
            for part in inside.split("\",") {
                let name = part.split(['=', '!']).next().unwrap().trim();
                labels.push(name.to_owned());
            }
        }
        found.push((word.to_owned(), labels));
    }
    found
}

fn check(place: &str, expr: &str, known: &BTreeMap<String, BTreeSet<String>>) {
    let selectors = selectors(expr);
    assert!(!selectors.is_empty(), "{place}: no metric in `{expr}`");
    for (name, labels) in selectors {
        if matches!(name.as_str(), "trueline" | "up") {
            continue;
        }
        let of = known
            .get(&name)
            .unwrap_or_else(|| panic!("{place}: `{name}` is not in the table of metrics"));
        for label in labels {
            assert!(
                of.contains(&label),
                "{place}: `{name}` has no label `{label}`"
            );
        }
    }
}

#[test]
fn every_expression_names_metrics_and_labels_of_the_table() {
    let known = known();
    for (name, expr) in recorded() {
        check(&name, &expr, &known);
    }
    for file in ALERT_FILES {
        for (name, expr) in rules(file, "alert") {
            check(&name, &expr, &known);
        }
    }
    let (queries, variables) = dashboard();
    assert!(queries.len() > 40 && variables.len() == 6);
    for (title, expr) in queries {
        check(&title, &expr, &known);
    }
    for (name, metric, label) in variables {
        check(&name, &metric, &known);
        let (of, _) = metric.split_once('{').unwrap_or((&metric, ""));
        let added = ADDED.contains(&&*label);
        assert!(added || known[of].contains(&label), "variable {name}");
    }
}

/// Who loads one file of alerts has all that its alerts need.
#[test]
fn what_an_alert_asks_for_is_recorded_in_its_file() {
    let mut seen = 0;
    for file in ALERT_FILES {
        let recorded = rules(file, "record");
        for (alert, expr) in rules(file, "alert") {
            for word in words(&expr).filter(|w| w.starts_with("trueline:")) {
                let is_here = recorded.iter().any(|(name, _)| name == word);
                assert!(is_here, "{file}: {alert} asks for {word}");
                seen += 1;
            }
        }
    }
    assert!(seen > 5, "the test bites: {seen} names");
}

/// The values of many streams in one diagram are a picture of none.
#[test]
fn a_diagram_of_the_dashboard_is_of_one_stream() {
    let (queries, _) = dashboard();
    let by_cell = queries
        .iter()
        .filter(|(_, expr)| expr.contains("by (cell)"));
    let all: Vec<_> = by_cell.collect();
    assert!(all.len() > 5);
    for (title, expr) in all {
        let one = expr.contains("topk(1, ") || expr.contains("bottomk(1, ");
        assert!(one, "{title}: {expr}");
    }
}

/// The last value of a range is that of a process that may be dead.
#[test]
fn a_number_of_the_dashboard_is_that_of_now() {
    let text = fs::read_to_string(deploy("grafana/trueline.json")).unwrap();
    let board: Value = serde_json::from_str(&text).unwrap();
    let panels = board["panels"].as_array().unwrap();
    let is_number = |p: &&Value| p["type"] == "stat" || p["type"] == "table";
    let mut seen = 0;
    for panel in panels.iter().filter(is_number) {
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(target["instant"], true, "{}", panel["title"]);
            seen += 1;
        }
    }
    assert!(seen > 5);
    // Without a process nothing is known of models, and nothing is ready.
    for (title, is_zero) in [("Models with a firing alert", false), ("Ready", true)] {
        let panel = panels.iter().find(|p| p["title"] == title).expect(title);
        let expr = panel["targets"][0]["expr"].as_str().unwrap();
        assert_eq!(expr.ends_with(" or vector(0)"), is_zero, "{title}: {expr}");
        assert_eq!(panel["type"], "stat", "{title}");
    }
}

/// A legend with variables has no name that is known here.
#[test]
fn what_the_dashboard_sets_for_one_name_is_the_name_of_a_legend() {
    let text = fs::read_to_string(deploy("grafana/trueline.json")).unwrap();
    let board: Value = serde_json::from_str(&text).unwrap();
    let mut seen = 0;
    for panel in board["panels"].as_array().unwrap() {
        let all = panel["fieldConfig"]["overrides"].as_array();
        let by_name = all.into_iter().flatten().map(|o| &o["matcher"]);
        for matcher in by_name.filter(|m| m["id"] == "byName") {
            let mut targets = panel["targets"].as_array().unwrap().iter();
            let names = |legend: &Value| *legend == matcher["options"] || legend == "{{state}}";
            let named = targets.any(|t| names(&t["legendFormat"]));
            assert!(named, "{}: {matcher}", panel["title"]);
            seen += 1;
        }
    }
    assert!(seen > 2);
}

#[test]
fn every_metric_of_a_window_is_on_the_dashboard_or_said_why_not() {
    // Shown as text elsewhere, or only of use to other rules.
    let left_out = [
        "trueline_window_start_timestamp_seconds",
        "trueline_window_evaluated_timestamp_seconds",
        "trueline_window_positives",
        "trueline_window_events_effective",
        // Notifications follow the alerts of streams.
        "trueline_alert",
        "trueline_alert_since_timestamp_seconds",
        "trueline_ece_l2_squared",
        "trueline_ece_l2_contains_zero",
        "trueline_tcal_p_value",
        "trueline_tcal_reject",
        "trueline_part_p_value",
        "trueline_more_events",
        "trueline_discrete_p_value",
        "trueline_class_adjusted_p_value",
        "trueline_kernel_sample_events",
        "trueline_reject",
        "trueline_direction",
        "trueline_spiegelhalter_z",
    ];
    let (queries, _) = dashboard();
    let shown: BTreeSet<&str> = queries.iter().flat_map(|(_, expr)| words(expr)).collect();
    for row in TABLE
        .iter()
        .filter(|row| row.group.labels().contains(&"window"))
    {
        let is_shown = shown.contains(row.name);
        assert_ne!(is_shown, left_out.contains(&row.name), "{}", row.name);
    }
}

/// The headings of the sections of a page, in order.
fn sections(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter_map(|line| line.strip_prefix("## "))
}

#[test]
fn every_alert_has_its_page_and_every_page_its_alert() {
    let files = ALERT_FILES.map(|f| fs::read_to_string(deploy("prometheus").join(f)).unwrap());
    let text = files.concat();
    let known = known();
    let mut pages = BTreeSet::new();
    for name in alerts() {
        let page = format!("{name}.md");
        assert!(text.contains(&format!("/runbooks/{name}\n")), "{name}");
        let body = fs::read_to_string(deploy(&format!("runbooks/{page}"))).unwrap();
        assert!(body.starts_with(&format!("# {name}\n")), "{page}");
        assert!(
            sections(&body).eq(["What it means", "Check", "Fix"]),
            "{page}"
        );
        for (metric, labels) in selectors(&body)
            .into_iter()
            .filter(|(m, _)| m.starts_with("trueline_"))
        {
            let of = known
                .get(&metric)
                .unwrap_or_else(|| panic!("{page}: {metric}"));
            assert!(
                labels.iter().all(|label| of.contains(label)),
                "{page}: {metric}"
            );
        }
        pages.insert(page);
    }
    for entry in fs::read_dir(deploy("runbooks")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(pages.contains(&name), "{name} has no alert");
    }
}

/// What users of sinks leave out is what a sink sends, and nothing else.
#[test]
fn the_file_of_model_alerts_has_only_what_sinks_send() {
    let names = |file| rules(file, "alert").into_iter().map(|(name, _)| name);
    let sent: Vec<String> = names("trueline_model_alerts.yml").collect();
    assert_eq!(sent, ["TruelineMiscalibrated"]);
    let always: Vec<String> = names("trueline_service_alerts.yml").collect();
    for name in [
        "TruelineOutcomesMissing",
        "TruelineStale",
        "TruelineUndecided",
        "TruelineChallengerWorse",
    ] {
        assert!(always.iter().any(|n| n == name), "{name}");
    }
}

#[test]
fn every_alert_has_a_rule_test_that_fires_and_one_that_is_silent() {
    let text = fs::read_to_string(deploy("prometheus/trueline_rules_test.yml")).unwrap();
    for name in alerts() {
        let (mut fires, mut silent) = (0, 0);
        for entry in text.split("alertname: ").skip(1) {
            let (of, rest) = entry.split_once([',', '\n']).expect("a name and more");
            if of.trim() == name {
                let (_, expected) = rest.split_once("exp_alerts:").expect("what is expected");
                match expected.trim_start().starts_with("[]") {
                    true => silent += 1,
                    false => fires += 1,
                }
            }
        }
        assert!(
            fires >= 1 && silent >= 1,
            "{name}: fires in {fires} rule tests, is silent in {silent}"
        );
    }
}

/// A part that is not ready may fail for a reason of its own.
#[test]
fn an_inhibition_names_the_parts_that_follow_from_its_source() {
    let text = fs::read_to_string(deploy("prometheus/alertmanager.yml")).unwrap();
    let mut named = 0;
    for rule in text.split("- source_matchers:").skip(1) {
        let (source, rest) = rule.split_once("target_matchers:").expect("a target");
        let (target, _) = rest.split_once('\n').expect("more than a target");
        // Of a loop that is silent nothing goes on.
        if target.contains("TruelineNotReady") && !source.contains("TruelineLoopSilent") {
            assert!(target.contains("'part="), "{source} holds back {target}");
            named += 1;
        }
    }
    assert_eq!(named, 2);
}

/// The groups of metrics in the order of the reference, each with its heading.
const HEADINGS: [(Group, &str); 8] = [
    (
        Group::Stream,
        "Per stream; detector metrics only if its budget is not `none`",
    ),
    (Group::Account, "Per account of the false-alarm budget"),
    (
        Group::Comparison,
        "Per pair of versions if `[model.compare]` is enabled; intervals are anytime-valid",
    ),
    (Group::Window, "Per stream and window, always present"),
    (
        Group::Evaluation,
        "Per stream and window, withdrawn while nothing can be evaluated",
    ),
    (
        Group::Cell,
        "Per cell of the reliability diagram, withdrawn while nothing can be evaluated",
    ),
    (Group::Input, "Input"),
    (Group::Process, "Process"),
];

/// The table of metrics as `deploy/prometheus/README.md` has it.
fn reference() -> String {
    let row = |row: &Metric| {
        let own = match row.labels {
            [] => String::new(),
            labels => format!(" `{{{}}}`", labels.join(", ")),
        };
        let (name, kind) = (row.name, row.kind.as_ref());
        format!("| `{name}`{own} | {kind} | {} | {} |\n", row.unit, row.help)
    };
    let part = |(group, heading): (Group, &str)| {
        let labels = match group.labels() {
            [] => String::new(),
            labels => format!(" (labels `{}`)", labels.join("`, `")),
        };
        let rows: String = TABLE.iter().filter(|r| r.group == group).map(row).collect();
        format!(
            "**{heading}**{labels}\n\n| metric | kind | unit | meaning |\n|---|---|---|---|\n{rows}"
        )
    };
    HEADINGS.map(part).join("\n").trim_end().to_owned()
}

#[test]
fn the_reference_of_metrics_is_the_table() {
    let path = deploy("prometheus/README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- metrics: begin -->", "<!-- metrics: end -->");
    let (before, rest) = readme.split_once(begin).expect("the opening marker");
    let (written, after) = rest.split_once(end).expect("the closing marker");
    let table = reference();
    if std::env::var_os("TRUELINE_BLESS").is_some() {
        fs::write(path, format!("{before}{begin}\n{table}\n{end}{after}")).unwrap();
    } else {
        let hint = "deploy/prometheus/README.md is not current: TRUELINE_BLESS=1 writes it";
        assert!(written.trim() == table, "{hint}");
    }
}

#[test]
fn the_schema_of_alerts_is_that_of_the_notices_that_leave() {
    let schema = fs::read_to_string(deploy("alert.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let links = Links {
        page: String::new(),
        runbook: String::new(),
    };
    let texts = Texts {
        summary: Template::parse("").unwrap(),
        description: Template::parse("").unwrap(),
    };
    let body = webhook::body(&Notification::trial(0, links), &texts);
    let body: Value = serde_json::from_str(&body).unwrap();
    let names =
        |of: &Value| -> BTreeSet<String> { of.as_object().unwrap().keys().cloned().collect() };
    assert_eq!(names(&schema["properties"]), names(&body));
    let required = schema["required"].as_array().unwrap().iter();
    let required: BTreeSet<_> = required
        .map(|name| name.as_str().unwrap().to_owned())
        .collect();
    assert_eq!(required, names(&body));
    assert_eq!(schema["properties"]["streams"]["maxItems"], STREAMS_MAX);
}

#[test]
fn what_the_sinks_are_told_has_a_rule_of_the_same_name_and_a_runbook() {
    let name = trueline::notify::notification::ALERT_NAME;
    assert!(alerts().iter().any(|alert| alert == name));
    assert!(deploy(&format!("runbooks/{name}.md")).exists());
}

/// The pages of the repository that people read.
pub fn pages() -> Vec<std::path::PathBuf> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let names = [
        "README.md",
        "CHANGELOG.md",
        "config/README.md",
        "tests/README.md",
    ];
    let mut pages: Vec<_> = names.iter().map(|name| root.join(name)).collect();
    let mut folders = vec![root.join("deploy"), root.join("tests/papers")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// The anchors of a page, as they are made of its headings.
fn anchors(page: &str) -> Vec<String> {
    let headings = page.lines().filter(|l| l.starts_with('#'));
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let anchor = |l: &str| -> String {
        let text = l.trim_start_matches('#').trim().to_lowercase();
        text.chars()
            .filter(kept)
            .collect::<String>()
            .replace(' ', "-")
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_of_a_page_leads_somewhere() {
    let mut seen = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1) {
            let link = link.split(')').next().unwrap_or_default();
            if link.contains("://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            assert!(target.exists(), "{}: {link}", page.display());
            if !anchor.is_empty() {
                let there = anchors(&fs::read_to_string(&target).unwrap());
                assert!(
                    there.iter().any(|a| a == anchor),
                    "{}: {link}",
                    page.display()
                );
            }
            seen += 1;
        }
    }
    assert!(seen > 20, "the test bites: {seen} links");
}
