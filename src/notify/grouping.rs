//! Which streams share an alert.
//!
//! A model has a stream for each version, segment and view, and one fault concerns many of them.
//! People receive one alert for all of them: streams with the same values of `group_by` share it.
//! It fires while one of its streams fires, since the start of the first one, with the greatest of
//! their severities. A stream that joins later is sent only to sinks that want some of the streams.
//!
//! If partitions move between processes, no process knows all streams of a model. Then each stream
//! has its own alert ([`GroupBy::STREAM`]), which moves with it.
//!
//! An open alert keeps its start, whichever of its streams end. After a restart it takes the start
//! from the notification ([`Deduplicator::firing_since`]). Repeated changes are recognised by this
//! start.
//!
//! [`Deduplicator::firing_since`]: super::Deduplicator::firing_since

use crate::alert::{Alert, AlertState, Severity};
use crate::collect::ROLL_UP;
use crate::judge::{StreamId, StreamReport, alarm};
use std::collections::BTreeMap;

/// The labels, in addition to the model, by which streams are grouped into alerts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupBy {
    /// Each version of a model has its own alert.
    pub version: bool,
    /// Each segment has its own alert.
    pub segment: bool,
    /// Each view has its own alert.
    pub view: bool,
}

impl GroupBy {
    /// Each stream has its own alert.
    pub const STREAM: GroupBy = GroupBy {
        version: true,
        segment: true,
        view: true,
    };

    /// The alert of a stream.
    pub fn group_of(&self, id: &StreamId) -> GroupId {
        let part = |on: bool, text: String| if on { text } else { String::new() };
        GroupId {
            model: id.model.clone(),
            version: part(self.version, id.version.clone()),
            segment: part(self.segment, id.segment.clone()),
            view: part(self.view, id.view.to_string()),
        }
    }
}

/// What the streams of an alert have in common; the other parts are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupId {
    /// The model.
    pub model: String,
    /// The version, or "".
    pub version: String,
    /// The segment, or "".
    pub segment: String,
    /// The view, or "".
    pub view: String,
}

impl GroupId {
    /// Identifies the alert; for an alert of one stream, the stream's fingerprint.
    pub fn fingerprint(&self) -> String {
        alarm::fingerprint([&self.model, &self.version, &self.segment, &self.view])
    }

    /// Name of the alert: `fraud`, `fraud/3`, or the stream's.
    pub fn name(&self) -> String {
        let parts = [&self.model, &self.version, &self.segment, &self.view].map(String::as_str);
        match self.view.is_empty() {
            true => parts.join("/").trim_end_matches('/').to_owned(),
            false => parts.join("/"),
        }
    }
}

/// An alert that fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// When it began.
    pub since_ms: i64,
    /// The greatest severity of its streams.
    pub severity: Severity,
    /// When one of its streams was last bad.
    pub bad_ms: Option<i64>,
    /// The streams that fire.
    pub streams: BTreeMap<StreamId, Severity>,
}

/// What a change of a stream's alert means to its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupChange {
    /// The alert begins, or its severity changes.
    Fires,
    /// One more stream fires.
    Joined,
    /// The last stream has ended.
    Ended {
        /// When the alert began.
        since_ms: i64,
        /// Its severity before.
        severity: Severity,
        /// When one of its streams was last bad.
        bad_ms: Option<i64>,
    },
}

/// The alerts that fire, by the labels that their streams share.
#[derive(Debug, Default)]
pub struct AlertGroups {
    by: GroupBy,
    open: BTreeMap<GroupId, Group>,
}

impl AlertGroups {
    /// Groups without an alert that fires.
    pub fn new(by: GroupBy) -> AlertGroups {
        AlertGroups {
            by,
            open: BTreeMap::new(),
        }
    }

    /// The labels by which streams are grouped.
    pub fn by(&self) -> GroupBy {
        self.by
    }

    /// The alerts that fire.
    pub fn open(&self) -> impl Iterator<Item = (&GroupId, &Group)> {
        self.open.iter()
    }

    /// The alert, if it fires.
    pub fn get(&self, id: &GroupId) -> Option<&Group> {
        self.open.get(id)
    }

    /// Applies a change of a stream's alert. `notified` returns, by fingerprint, the start of an
    /// alert that was notified before a restart and still fires.
    pub fn step(
        &mut self,
        stream: &StreamId,
        to: &Alert,
        notified: impl Fn(&str) -> Option<i64>,
    ) -> Option<(GroupId, GroupChange)> {
        let id = self.by.group_of(stream);
        if to.state != AlertState::Firing {
            let change = self.end(&id, stream, to.bad_ms)?;
            return Some((id, change));
        }
        let since_ms = to.since_ms.unwrap_or_default();
        let Some(group) = self.open.get_mut(&id) else {
            let fingerprint = id.fingerprint();
            let before = notified(&fingerprint).filter(|&before| before <= since_ms);
            let group = Group {
                since_ms: before.unwrap_or(since_ms),
                severity: to.severity,
                bad_ms: to.bad_ms,
                streams: BTreeMap::from([(stream.clone(), to.severity)]),
            };
            self.open.insert(id.clone(), group);
            return Some((id, GroupChange::Fires));
        };
        group.bad_ms = group.bad_ms.max(to.bad_ms);
        let before = group.streams.insert(stream.clone(), to.severity);
        let changes = group.settle(before, Some(to.severity));
        let change = match (changes, before.is_none()) {
            (true, _) => GroupChange::Fires,
            (false, true) => GroupChange::Joined,
            (false, false) => return None,
        };
        Some((id, change))
    }

    /// Removes a stream, last bad at `bad_ms`, from its alert, because the stream no longer fires.
    fn end(&mut self, id: &GroupId, stream: &StreamId, bad_ms: Option<i64>) -> Option<GroupChange> {
        let group = self.open.get_mut(id)?;
        let before = group.streams.remove(stream)?;
        group.bad_ms = group.bad_ms.max(bad_ms);
        if group.streams.is_empty() {
            let group = self.open.remove(id)?;
            return Some(GroupChange::Ended {
                since_ms: group.since_ms,
                severity: group.severity,
                bad_ms: group.bad_ms,
            });
        }
        let changes = group.settle(Some(before), None);
        changes.then_some(GroupChange::Fires)
    }

    /// Removes a stream that has left this process.
    pub fn remove(&mut self, stream: &StreamId) {
        self.end(&self.by.group_of(stream), stream, None);
    }

    /// Compares with all reports: streams that are gone leave their alerts, and streams that fire
    /// since a restart join theirs.
    pub fn sync<'r>(
        &mut self,
        reports: impl Iterator<Item = &'r StreamReport>,
        notified: impl Fn(&str) -> Option<i64>,
    ) {
        let before = std::mem::take(&mut self.open);
        for report in reports.filter(|r| r.alert.state == AlertState::Firing) {
            let id = self.by.group_of(&report.id);
            self.step(&report.id, &report.alert, &notified);
            if let (Some(group), Some(before)) = (self.open.get_mut(&id), before.get(&id)) {
                group.since_ms = before.since_ms;
                group.bad_ms = group.bad_ms.max(before.bad_ms);
            } else if let Some(group) = self.open.get_mut(&id) {
                let since_ms = report.alert.since_ms.unwrap_or_default();
                group.since_ms = group.since_ms.min(since_ms);
            }
        }
    }
}

impl Group {
    /// Updates the greatest severity after that of one stream has changed from `before` to `now`.
    /// Returns whether it changed. Thousands of streams may share an alert, so all are searched
    /// only if one of the most severe streams has become less severe.
    fn settle(&mut self, before: Option<Severity>, now: Option<Severity>) -> bool {
        let rises = now.filter(|now| *now >= self.severity);
        let severity = match rises {
            Some(now) => now,
            None if before < Some(self.severity) => return false,
            None => self.streams.values().copied().max().unwrap_or_default(),
        };
        std::mem::replace(&mut self.severity, severity) != severity
    }

    /// The streams, with the representative one first: the most severe, among these the one that
    /// covers its whole version, and then the one with the largest lower bound of the error.
    pub fn ranked<'r>(
        &'r self,
        report_of: impl Fn(&StreamId) -> Option<&'r StreamReport>,
    ) -> Vec<(&'r StreamReport, Severity)> {
        let known = |(id, severity): (&StreamId, &Severity)| Some((report_of(id)?, *severity));
        let mut all: Vec<_> = self.streams.iter().filter_map(known).collect();
        let lower = |r: &StreamReport| {
            let window = alarm::speaker(r).and_then(|i| r.windows.get(i));
            window.map_or(0.0, |w| w.lower())
        };
        let part = |r: &StreamReport| !(r.id.segment.is_empty() || r.id.segment == ROLL_UP);
        all.sort_by(|(a, of_a), (b, of_b)| {
            let severe = of_b.cmp(of_a).then(part(a).cmp(&part(b)));
            severe.then(lower(b).total_cmp(&lower(a)))
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Severity::{Page, Warn};

    fn stream(version: &str, segment: &str) -> StreamId {
        crate::notify::tests::stream("fraud", version, segment)
    }

    fn firing(since_ms: i64, severity: Severity) -> Alert {
        Alert {
            state: AlertState::Firing,
            since_ms: Some(since_ms),
            bad_ms: Some(since_ms + 5),
            severity,
            ..Alert::default()
        }
    }

    #[test]
    fn an_alert_lasts_from_its_first_stream_to_its_last_with_the_greatest_severity() {
        let mut groups = AlertGroups::new(GroupBy::default());
        let well = Alert::default();
        let mut step = |stream: &StreamId, to: &Alert| {
            let change = groups.step(stream, to, |_| None).map(|(_, change)| change);
            let open = groups.open().next();
            (change, open.map(|(_, g)| (g.since_ms, g.severity)))
        };
        let (a, b) = (stream("1", "*"), stream("2", "country=DE"));
        use GroupChange::{Fires, Joined};
        let ended = GroupChange::Ended {
            since_ms: 10,
            severity: Warn,
            bad_ms: Some(25),
        };
        let story = [
            step(&a, &firing(10, Warn)),
            step(&b, &firing(20, Warn)),
            step(&b, &firing(20, Page)),
            step(&a, &well),
            step(&a, &well),
            step(&b, &firing(20, Warn)),
            step(&b, &well),
            step(&b, &firing(90, Warn)),
        ];
        let wanted = [
            (Some(Fires), Some((10, Warn))),
            (Some(Joined), Some((10, Warn))),
            (Some(Fires), Some((10, Page))),
            (None, Some((10, Page))),
            (None, Some((10, Page))),
            (Some(Fires), Some((10, Warn))),
            (Some(ended), None),
            (Some(Fires), Some((90, Warn))),
        ];
        assert_eq!(story, wanted);
    }

    #[test]
    fn the_severity_of_an_alert_falls_with_the_last_of_its_severest_streams() {
        let mut groups = AlertGroups::new(GroupBy::default());
        let well = Alert::default();
        let mut step = |version: &str, to: &Alert| {
            let change = groups.step(&stream(version, ""), to, |_| None);
            let severity = groups.open().next().map(|(_, g)| g.severity);
            (change.map(|(_, change)| change), severity)
        };
        use GroupChange::{Fires, Joined};
        let story = [
            step("1", &firing(0, Page)),
            step("2", &firing(1, Page)),
            step("3", &firing(2, Warn)),
            step("4", &firing(3, Warn)),
            step("3", &well),
            step("2", &firing(1, Warn)),
            step("1", &well),
            step("2", &well),
        ];
        let wanted = [
            (Some(Fires), Some(Page)),
            (Some(Joined), Some(Page)),
            (Some(Joined), Some(Page)),
            (Some(Joined), Some(Page)),
            (None, Some(Page)),
            (None, Some(Page)),
            (Some(Fires), Some(Warn)),
            (None, Some(Warn)),
        ];
        assert_eq!(story, wanted);
    }

    #[test]
    fn alerts_are_told_apart_by_what_is_asked_for() {
        let names = |by: GroupBy| {
            let mut groups = AlertGroups::new(by);
            for id in [stream("1", "*"), stream("1", "country=DE"), stream("2", "")] {
                groups.step(&id, &firing(0, Warn), |_| None);
            }
            let names = groups.open().map(|(id, _)| id.name());
            names.collect::<Vec<_>>()
        };
        assert_eq!(names(GroupBy::default()), ["fraud"]);
        let version = GroupBy {
            version: true,
            ..GroupBy::default()
        };
        assert_eq!(names(version), ["fraud/1", "fraud/2"]);
        let all = [
            "fraud/1/*/binary",
            "fraud/1/country=DE/binary",
            "fraud/2//binary",
        ];
        assert_eq!(names(GroupBy::STREAM), all);
        let id = stream("1", "country=DE");
        assert_eq!(
            GroupBy::STREAM.group_of(&id).fingerprint(),
            id.fingerprint()
        );
    }

    #[test]
    fn an_alert_that_was_notified_before_a_restart_keeps_its_begin() {
        let mut groups = AlertGroups::new(GroupBy::default());
        let id = stream("1", "*");
        groups.step(&id, &firing(50, Warn), |_| Some(10));
        assert_eq!(groups.open().next().map(|(_, g)| g.since_ms), Some(10));
        // The repeated firing after a crash began before the firing that was notified last.
        let mut groups = AlertGroups::new(GroupBy::default());
        groups.step(&id, &firing(50, Warn), |_| Some(90));
        assert_eq!(groups.open().next().map(|(_, g)| g.since_ms), Some(50));
    }
}
