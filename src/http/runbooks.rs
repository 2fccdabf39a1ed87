//! The runbooks of the alerts and the guide, as they were when the program was built.
//!
//! A person woken by an alert may reach nothing but this process: the link of a notification leads
//! here and needs no other server.

use std::fmt::Write;

use super::page::page;
use crate::report::markdown;

macro_rules! page {
    ($name:literal) => {
        page!("runbooks", $name)
    };
    ($folder:literal, $name:literal) => {
        (
            $name,
            include_str!(concat!("../../deploy/", $folder, "/", $name, ".md")),
        )
    };
}

/// Name and text of each runbook, in alphabetical order.
pub const RUNBOOKS: &[(&str, &str)] = &[
    page!("TruelineAlertsLost"),
    page!("TruelineAlertsWaiting"),
    page!("TruelineBehind"),
    page!("TruelineChallengerWorse"),
    page!("TruelineConfigReloadFailed"),
    page!("TruelineDeadLettersFailing"),
    page!("TruelineDetectorIdle"),
    page!("TruelineDown"),
    page!("TruelineEventLogRefuses"),
    page!("TruelineEventsRejected"),
    page!("TruelineGroupShared"),
    page!("TruelineJudgeMissing"),
    page!("TruelineLoopSilent"),
    page!("TruelineMiscalibrated"),
    page!("TruelineNotReady"),
    page!("TruelineOutcomesAbsent"),
    page!("TruelineOutcomesMissing"),
    page!("TruelineOutcomesOrphaned"),
    page!("TruelineOutcomesStopped"),
    page!("TruelinePartitionUncounted"),
    page!("TruelineRecordsLate"),
    page!("TruelineRecordsLost"),
    page!("TruelineRecordsRefused"),
    page!("TruelineRecordsRejected"),
    page!("TruelineRegistryUnreachable"),
    page!("TruelineSeriesRefused"),
    page!("TruelineSlidesSkipped"),
    page!("TruelineSnapshotFailing"),
    page!("TruelineSnapshotOld"),
    page!("TruelineStale"),
    page!("TruelineTransactionOpen"),
    page!("TruelineUndecided"),
    page!("TruelineWatermarkStalled"),
];

/// Name and text of each page of the guide, in alphabetical order.
pub const GUIDE: &[(&str, &str)] = &[
    page!("guide", "alerts"),
    page!("guide", "dependence"),
    page!("guide", "formats"),
    page!("guide", "installation"),
    page!("guide", "json"),
    page!("guide", "methods"),
    page!("guide", "numbers"),
    page!("guide", "operation"),
    page!("guide", "outcomes"),
    page!("guide", "pages"),
    page!("guide", "posted_events"),
    page!("guide", "recalibration"),
    page!("guide", "reports"),
    page!("guide", "sampling"),
    page!("guide", "sizing"),
    page!("guide", "streams"),
    page!("guide", "verdicts"),
    page!("guide", "which_test"),
];

/// The page that lists the runbooks and the guide.
pub fn list() -> String {
    let mut body = String::from(
        "<h1>Runbooks</h1><p class=lead>What to do about each alert.</p><ul class=links>",
    );
    for (name, _) in RUNBOOKS {
        let _ = write!(body, "<li><a href=/runbooks/{name}>{name}</a>");
    }
    body.push_str("</ul><h2>Guide</h2><ul class=links>");
    for (name, text) in GUIDE {
        let _ = write!(body, "<li><a href=/guide/{name}>{}</a>", title(text));
    }
    body.push_str("</ul>");
    page("runbooks · trueline", "/runbooks", &body)
}

/// The heading of a page.
fn title(text: &str) -> &str {
    let first = text.lines().next().unwrap_or_default();
    first.trim_start_matches("# ")
}

/// The page of a runbook; its name may end in `.md`.
pub fn one(name: &str) -> Option<String> {
    shown(RUNBOOKS, name)
}

/// A page of the guide; its name may end in `.md`.
pub fn guide(name: &str) -> Option<String> {
    shown(GUIDE, name)
}

fn shown(pages: &[(&str, &str)], name: &str) -> Option<String> {
    let name = name.strip_suffix(".md").unwrap_or(name);
    let (_, text) = pages.iter().find(|(known, _)| *known == name)?;
    let body = format!(
        "<p class=crumb><a href=/runbooks>all runbooks and the guide</a></p><article class=text>{}</article>",
        markdown::html(text, &link)
    );
    Some(page(title(text), "/runbooks", &body))
}

/// Where a link of these pages leads on this server.
fn link(target: &str) -> Option<String> {
    let (path, fragment) = match target.split_once('#') {
        Some((path, _)) => (path, &target[path.len()..]),
        None => (target, ""),
    };
    if path.is_empty() || path.starts_with("https://") {
        return Some(target.to_owned());
    }
    if path == "../runbooks" {
        return Some("/runbooks".to_owned());
    }
    let name = path.rsplit('/').next()?.strip_suffix(".md")?;
    let has = |pages: &[(&str, &str)]| pages.iter().any(|(known, _)| *known == name);
    let folder = match (has(RUNBOOKS), has(GUIDE)) {
        (true, _) => "runbooks",
        (_, true) => "guide",
        _ => return None,
    };
    Some(format!("/{folder}/{name}{fragment}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_pages_of_this_server_and_others_are_text() {
        let cases = [
            ("TruelineStale.md", Some("/runbooks/TruelineStale")),
            ("../guide/alerts.md#budget", Some("/guide/alerts#budget")),
            (
                "../runbooks/TruelineStale.md",
                Some("/runbooks/TruelineStale"),
            ),
            ("operation.md", Some("/guide/operation")),
            ("../runbooks", Some("/runbooks")),
            ("#here", Some("#here")),
            ("../../CHANGELOG.md", None),
            ("../prometheus/README.md", None),
        ];
        for (target, wanted) in cases {
            assert_eq!(link(target).as_deref(), wanted, "{target}");
        }
    }

    /// Each fragment is the id of a heading.
    #[test]
    fn every_link_with_a_fragment_leads_to_a_heading() {
        let all = RUNBOOKS.iter().map(|(name, _)| one(name));
        let all = all.chain(GUIDE.iter().map(|(name, _)| guide(name)));
        let mut found = 0;
        for page in all.map(|page| page.expect("a page")) {
            for rest in page.split("<a href=\"").skip(1) {
                let target = rest.split('"').next().expect("an address");
                let Some((path, fragment)) = target.split_once('#') else {
                    continue;
                };
                let there = match path.rsplit_once('/') {
                    Some(("/runbooks", name)) => one(name).expect(target),
                    Some(("/guide", name)) => guide(name).expect(target),
                    _ => page.clone(),
                };
                found += 1;
                let id = format!(" id=\"{fragment}\">");
                assert!(
                    path.starts_with("https://") || there.contains(&id),
                    "{target}"
                );
            }
        }
        assert!(found > 30, "{found}");
    }

    #[test]
    fn every_command_of_kafka_names_its_broker() {
        let pages = RUNBOOKS.iter().chain(GUIDE);
        let mut found = 0;
        for (name, text) in pages {
            for code in text.split('`').skip(1).step_by(2) {
                if code.starts_with("kafka-") && code.contains(".sh ") {
                    assert!(code.contains("--bootstrap-server"), "{name}: {code}");
                    found += 1;
                }
            }
        }
        assert!(found >= 3, "{found}");
    }

    #[test]
    fn every_page_of_the_guide_is_here() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/guide");
        let files = std::fs::read_dir(folder).expect("the guide");
        let names = files.map(|file| file.expect("a file").file_name().into_string());
        let mut names: Vec<String> = names.map(|name| name.expect("a name")).collect();
        names.retain(|name| name.ends_with(".md"));
        names.sort();
        let known: Vec<String> = GUIDE.iter().map(|(name, _)| format!("{name}.md")).collect();
        assert_eq!(known, names);
    }
}
