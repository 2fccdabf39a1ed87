//! The runbooks of the alerts, as they were when the program was built.
//!
//! A person woken by an alert may reach nothing but this process: the link of a notification leads here and
//! needs no other server.

use std::fmt::Write;

use super::page::page;
use crate::report::html::escape;

macro_rules! page {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../deploy/runbooks/", $name, ".md")),
        )
    };
}

/// Name and text of each, in alphabetical order.
pub const RUNBOOKS: &[(&str, &str)] = &[
    page!("TruelineAlertsLost"),
    page!("TruelineAlertsWaiting"),
    page!("TruelineBehind"),
    page!("TruelineChallengerWorse"),
    page!("TruelineConfigReloadFailed"),
    page!("TruelineDeadLettersFailing"),
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
    page!("TruelineSnapshotFailing"),
    page!("TruelineSnapshotOld"),
    page!("TruelineStale"),
    page!("TruelineTransactionOpen"),
    page!("TruelineUndecided"),
    page!("TruelineWatermarkStalled"),
];

/// The page that lists them.
pub fn list() -> String {
    let mut body = String::from(
        "<h1>Runbooks</h1><p class=lead>What to do about each alert.</p><ul class=links>",
    );
    for (name, _) in RUNBOOKS {
        let _ = write!(body, "<li><a href=/runbooks/{name}>{name}</a>");
    }
    body.push_str("</ul>");
    page("runbooks · trueline", "/runbooks", &body)
}

/// The page of one; its name may end in `.md`.
pub fn one(name: &str) -> Option<String> {
    let name = name.strip_suffix(".md").unwrap_or(name);
    let (name, text) = RUNBOOKS.iter().find(|(known, _)| *known == name)?;
    let body = format!(
        "<p class=crumb><a href=/runbooks>all runbooks</a></p><pre class=runbook>{}</pre>",
        escape(text)
    );
    Some(page(name, "/runbooks", &body))
}
