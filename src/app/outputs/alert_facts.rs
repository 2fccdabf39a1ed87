//! The alerts as people see them: one for each group of streams, including those that do not fire.

use std::collections::BTreeMap;

use crate::alert::{AlertState, Severity};
use crate::judge::StreamReport;
use crate::notify::grouping::{AlertGroups, GroupId};
use crate::telemetry::facts::AlertFacts;

/// The alert of each group of `reports`, with the state and the severity of its most urgent stream.
pub fn alert_facts<'r>(
    reports: impl Iterator<Item = &'r StreamReport>,
    groups: &AlertGroups,
) -> Vec<AlertFacts> {
    let mut all: BTreeMap<GroupId, Vec<&StreamReport>> = BTreeMap::new();
    for report in reports {
        let id = groups.by().group_of(&report.id);
        all.entry(id).or_default().push(report);
    }
    let facts = all.into_iter().map(|(id, mut reports)| {
        reports.sort_by_key(|r| (r.alert.state.urgency(), r.alert.severity != Severity::Page));
        let first = reports.first().map(|r| (r.alert.state, r.alert.severity));
        let (state, severity) = first.unwrap_or_default();
        let group = groups.get(&id).filter(|_| state == AlertState::Firing);
        let same = reports.iter().filter(|r| r.alert.state == state);
        let since_ms = same.filter_map(|r| r.alert.since_ms).min();
        AlertFacts {
            fingerprint: id.fingerprint(),
            name: id.name(),
            state,
            severity,
            since_ms: group.map(|g| g.since_ms).or(since_ms),
            streams: reports.iter().map(|r| r.id.clone()).collect(),
            model: id.model,
            version: id.version,
            segment: id.segment,
            view: id.view,
        }
    });
    facts.collect()
}
