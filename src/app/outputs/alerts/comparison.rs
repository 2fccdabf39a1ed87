//! The comparison of what fires with what people were notified of.
//!
//! Changes alone would miss alerts whose silence has ended, and notified alerts that no longer fire
//! because their streams are gone or a crash took them back. Once a minute, and at once after sinks
//! change, the comparison also finds firing alerts that a sink did not get.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::AlertDispatcher;
use crate::app::cluster::topology::Topology;
use crate::app::outputs::lookup::Lookup;
use crate::notify::Notification;
use crate::notify::grouping::GroupId;
use crate::notify::notifier::Firing;

/// Time between two offers of what fires to the sinks that did not get it.
const OFFER: Duration = Duration::from_secs(60);

/// Why an alert ends that was notified before a crash and does not fire after it.
const JUDGED_AGAIN: &str = "judged again after a restart: it does not fire";

impl AlertDispatcher {
    /// Sends notifications of firing alerts that are missing.
    pub(super) fn compare(
        &mut self,
        engine: &Topology,
        lookup: &Lookup<'_>,
        now_ms: i64,
        caught_up: bool,
    ) {
        let notifier = &self.notifier;
        let notified = |fingerprint: &str| notifier.firing_since(fingerprint);
        self.groups
            .sync(engine.reports().map(Arc::as_ref), notified);
        let open: Vec<(GroupId, Firing)> = self
            .groups
            .open()
            .map(|(id, group)| {
                let firing = Firing {
                    fingerprint: id.fingerprint(),
                    since_ms: group.since_ms,
                    severity: group.severity,
                };
                (id.clone(), firing)
            })
            .collect();
        let (ids, firing): (Vec<GroupId>, Vec<Firing>) = open.into_iter().unzip();
        // If several processes judge a stream, it may fire in another one.
        if !self.divided {
            self.end_judged_again(engine, &firing, now_ms);
        }
        // Until then, an alert that does not fire may fire again, and one that fires may end.
        if !caught_up {
            return;
        }
        let reading_ms = self.reading.ms();
        let missing = self.notifier.compare(&firing, now_ms, reading_ms);
        let offers = self.offered.is_none_or(|at| at.elapsed() >= OFFER);
        // Sinks from before a reload cannot show what the new ones lack.
        if offers && !self.notifier.replaces_sinks() {
            self.offered = Some(Instant::now());
        }
        for (id, alert) in ids.iter().zip(&firing) {
            let missing = missing.contains(&alert.fingerprint);
            let lacks = || self.notifier.lacks_sink(&alert.fingerprint, now_ms);
            let joined = !missing && offers && lacks();
            if (missing || joined)
                && let Some(group) = self.groups.get(id)
                && let at_ms = group.bad_ms.unwrap_or(group.since_ms)
                && let Some(notification) = self.firing(id, None, at_ms, lookup)
            {
                let notification = Notification {
                    joined,
                    ..notification
                };
                self.notifier.notify(notification, now_ms);
            }
        }
    }

    /// Ends notified alerts that do not fire after a crash, although their events were judged
    /// again. This happens, for example, if outcomes now come before the judgement.
    fn end_judged_again(&mut self, engine: &Topology, firing: &[Firing], now_ms: i64) {
        let fires = firing.iter().map(|f| f.fingerprint.as_str());
        let fires: HashSet<&str> = fires.collect();
        let notified = self.notifier.firing().filter(|(f, _)| !fires.contains(f));
        let notified: BTreeMap<String, i64> = notified.map(|(f, at)| (f.to_owned(), at)).collect();
        if notified.is_empty() {
            return;
        }
        let by = self.groups.by();
        for report in engine.reports() {
            let fingerprint = by.group_of(&report.id).fingerprint();
            let judged = report.windows.iter().filter(|w| w.verdict.is_evaluated());
            let judged_ms = judged.map(|w| w.end_ms).max();
            if let (Some(at_ms), Some(judged_ms)) = (notified.get(&fingerprint), judged_ms)
                && judged_ms > *at_ms
            {
                self.notifier
                    .resolve(&fingerprint, judged_ms, JUDGED_AGAIN, now_ms);
            }
        }
    }
}
