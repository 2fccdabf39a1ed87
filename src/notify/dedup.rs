//! Decides whether a notification must be sent. Pure: no clock and no file.
//!
//! The engine makes each change once. But after a crash it resumes from a snapshot that is older
//! than the last notification, and repeats some changes. So this module keeps for each alert what
//! was notified last: its start, its severity, the time of the change, and when it was last bad.
//!
//! | notification | is sent |
//! |---|---|
//! | fires, the end of the last firing was notified | if it is bad later than was known at that end |
//! | fires, that end was administrative | yes, with a start later than that of the last firing |
//! | fires, the last one fires, which started earlier | yes |
//! | fires, the last one fires, which started then or later | if severity differs and the change is later than the last one notified, or of that time and severity is greater |
//! | resolved | if the last one fires, and started, or was notified, then or earlier |
//!
//! Repeated changes are not always the same. While a watermark is stalled, an alert ends by the
//! clock, and fires again once its data are judged. A process that resumes from an earlier state
//! without waiting sees one long firing; a process that waits at another time sees other firings.
//! So an end is compared with the event time that had been judged by then, not with the clock.
//! Times also do not go back: a notification of the same firing has the later of both starts, which
//! people know. A firing that continues after its end was notified starts where it is bad again. An
//! administrative end does not depend on the data: alerts were regrouped, or the streams were gone.
//! An alert that fires after such an end is always sent, and starts at least 1 ms later than
//! before. So the start of an alert never decreases, nor does the time of change within one firing:
//! no two changes have the same key.
//!
//! A silence suppresses firing notifications but not resolutions. [`Deduplicator::is_unsent`] finds
//! firing alerts without a notification: a silence on them has expired, or the queue was full.
//! [`Deduplicator::orphans`] finds alerts that were notified and have not been seen firing for
//! [`ORPHAN_MS`]: their streams are gone, or since a restart they are grouped differently or judged
//! without their state. An alert whose stream was [released](Deduplicator::release) with its
//! partition is not an orphan; its new owner resolves it. A stream that comes back brings what its
//! last owner knew. If a released alert fires here without that, only a later start or change is
//! sent.
//!
//! A notification names the other severities of its firing that were notified before
//! ([`Notification::earlier`]). Its end closes only what people may have open because of these:
//! another process may have notified the same alert.

use super::notification::{Notification, Status};
use crate::alert::{Severity, Silences};
use std::collections::{BTreeMap, BTreeSet};

/// How long a notified alert may not be seen firing, while all is read, before it is resolved as an
/// orphan. Longer than a restart takes to repeat a change that was notified before a crash.
pub const ORPHAN_MS: i64 = 600_000;

/// Most resolved alerts to keep.
pub const RESOLVED_MAX: usize = 10_000;

/// Most released firing alerts to keep. An alert that returns brings its last notification with it.
pub const RELEASED_MAX: usize = 10_000;

/// The last notified firing of an alert.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LastFiring {
    since_ms: i64,
    at_ms: i64,
    /// When the alert was last bad, according to the data judged by then.
    bad_ms: i64,
    severity: Severity,
    /// The other severities that were notified during this firing.
    earlier: Vec<Severity>,
    firing: bool,
    /// Its end was notified, and was administrative.
    administrative: bool,
    /// When it was last seen firing, by a clock that runs only while all is read.
    seen_ms: Option<i64>,
    /// Another process owns it now.
    released: bool,
}

impl LastFiring {
    fn is_ours(&self) -> bool {
        self.firing && !self.released
    }

    /// The severities that were notified during this firing, except this one.
    fn others(&self, severity: Severity) -> Vec<Severity> {
        let all = self.earlier.iter().copied().chain([self.severity]);
        all.filter(|s| *s != severity).collect()
    }
}

/// The last notified firing of each alert, by fingerprint.
#[derive(Debug, Clone, Default)]
pub struct Deduplicator {
    last: BTreeMap<String, LastFiring>,
    /// The released alerts: time of the last change, and fingerprint.
    released: BTreeSet<(i64, String)>,
}

impl Deduplicator {
    /// A deduplicator that has sent these notifications, oldest first.
    pub fn after<'n>(notifications: impl Iterator<Item = &'n Notification>) -> Deduplicator {
        let mut dedup = Deduplicator::default();
        notifications.for_each(|n| dedup.record(n));
        dedup
    }

    /// Whether the notification must be sent. Fills in `was` and `earlier`, and moves its times so
    /// that they do not go back. An end gets the severity that was notified last: sinks do not know
    /// a later one. Call [`Deduplicator::record`] once it is queued.
    pub fn admits(
        &self,
        notification: &mut Notification,
        silences: &Silences,
        now_ms: i64,
    ) -> bool {
        let last = self.last.get(&notification.fingerprint);
        let (since_ms, at_ms) = (notification.since_ms, notification.at_ms);
        if notification.status == Status::Resolved {
            let Some(l) = last.filter(|l| l.firing) else {
                return false;
            };
            notification.severity = l.severity;
            self.follow(notification);
            return l.since_ms <= since_ms || l.at_ms <= at_ms;
        }
        if notification.is_silenced(silences, now_ms) {
            return false;
        }
        notification.was = None;
        let Some(l) = last else {
            return true;
        };
        if l.released {
            // A stream that comes back would have brought its alert. This one started again, and
            // another process may have notified the end meanwhile.
            return (since_ms, at_ms) > (l.since_ms, l.at_ms);
        }
        if l.administrative {
            notification.follow(l.since_ms.saturating_add(1), at_ms, l.bad_ms);
            return true;
        }
        if !l.firing {
            let bad_ms = notification.bad_ms.unwrap_or(at_ms);
            if since_ms <= l.bad_ms {
                notification.start(bad_ms);
            }
            return bad_ms > l.bad_ms;
        }
        if since_ms > l.since_ms {
            // The end of the last firing was not notified.
            notification.earlier = l.others(notification.severity);
            return true;
        }
        self.follow(notification);
        notification.was = Some(l.severity);
        // If streams start together, the first may be less severe than the others.
        let (is, was) = (notification.severity, l.severity);
        (at_ms > l.at_ms && is != was) || (at_ms == l.at_ms && is > was)
    }

    /// Whether the last notification says that the alert fires with another severity.
    pub fn has_other_severity(&self, fingerprint: &str, severity: Severity) -> bool {
        let last = self.last.get(fingerprint);
        last.is_some_and(|l| l.firing && l.severity != severity)
    }

    /// Moves the start, change and bad time of a notification to those of the last one, if earlier.
    /// Fills in the other severities that were notified. For a firing that was notified before.
    pub fn follow(&self, notification: &mut Notification) {
        if let Some(l) = self.last.get(&notification.fingerprint) {
            notification.earlier = l.others(notification.severity);
            notification.follow(l.since_ms, l.at_ms, l.bad_ms);
        }
    }

    /// Records that the notification is queued.
    pub fn record(&mut self, notification: &Notification) {
        let last = LastFiring {
            since_ms: notification.since_ms,
            at_ms: notification.at_ms,
            bad_ms: notification.bad_ms.unwrap_or(notification.at_ms),
            severity: notification.severity,
            earlier: notification.earlier.clone(),
            firing: notification.status == Status::Firing,
            administrative: notification.administrative,
            seen_ms: None,
            released: false,
        };
        self.reacquire(&notification.fingerprint);
        self.last.insert(notification.fingerprint.clone(), last);
        if self.last.len() > 2 * RESOLVED_MAX {
            self.prune();
        }
    }

    /// Marks the alert as owned by another process. Returns whether that is a change.
    pub fn release(&mut self, fingerprint: &str) -> bool {
        let Some(last) = self.last.get_mut(fingerprint).filter(|l| l.is_ours()) else {
            return false;
        };
        last.released = true;
        self.released.insert((last.at_ms, fingerprint.to_owned()))
    }

    /// The oldest released alert, if there are more than [`RELEASED_MAX`].
    pub fn oldest_released(&self) -> Option<String> {
        let (_, oldest) = self.released.first()?;
        (self.released.len() > RELEASED_MAX).then(|| oldest.clone())
    }

    /// Marks the alert as owned by this process again. Returns whether that is a change.
    pub fn reacquire(&mut self, fingerprint: &str) -> bool {
        let Some(last) = self.last.get_mut(fingerprint) else {
            return false;
        };
        last.seen_ms = None;
        last.released = false;
        self.released.remove(&(last.at_ms, fingerprint.to_owned()))
    }

    /// Whether this notification or a later one of its alert is recorded.
    pub fn is_recorded(&self, notification: &Notification) -> bool {
        let last = self.last.get(&notification.fingerprint);
        last.is_some_and(|l| (l.since_ms, l.at_ms) >= (notification.since_ms, notification.at_ms))
    }

    /// The start of the notified firing; `None` if the alert does not fire or another process owns
    /// it.
    pub fn firing_since(&self, fingerprint: &str) -> Option<i64> {
        let last = self.last.get(fingerprint).filter(|l| l.is_ours());
        last.map(|l| l.since_ms)
    }

    /// The start of the firing that this process notified last, even if another process owns the
    /// alert now; `None` if its end was notified.
    pub fn fired_since(&self, fingerprint: &str) -> Option<i64> {
        let last = self.last.get(fingerprint).filter(|l| l.firing);
        last.map(|l| l.since_ms)
    }

    /// The notified alerts of this process that fire, with the time of the last notified change.
    pub fn firing(&self) -> impl Iterator<Item = (&str, i64)> {
        let ours = self.last.iter().filter(|(_, l)| l.is_ours());
        ours.map(|(fingerprint, l)| (fingerprint.as_str(), l.at_ms))
    }

    /// Removes an alert that another process has resolved.
    pub fn remove(&mut self, fingerprint: &str) {
        self.reacquire(fingerprint);
        self.last.remove(fingerprint);
    }

    /// Whether no notification says that the alert fires with this start, or a later one, and this
    /// severity.
    pub fn is_unsent(&self, fingerprint: &str, since_ms: i64, severity: Severity) -> bool {
        let sent = |l: &LastFiring| l.firing && l.since_ms >= since_ms && l.severity == severity;
        !self.last.get(fingerprint).is_some_and(sent)
    }

    /// Records that the alert is firing now, by a clock that runs only while all is read.
    pub fn saw_firing(&mut self, fingerprint: &str, now_ms: i64) {
        if let Some(last) = self.last.get_mut(fingerprint) {
            last.seen_ms = Some(now_ms);
        }
    }

    /// Alerts that were notified and have not been seen firing for [`ORPHAN_MS`].
    pub fn orphans(&mut self, now_ms: i64) -> Vec<String> {
        let mut orphans = Vec::new();
        for (fingerprint, last) in self.last.iter_mut().filter(|(_, l)| l.is_ours()) {
            let seen_ms = *last.seen_ms.get_or_insert(now_ms);
            if now_ms.saturating_sub(seen_ms) >= ORPHAN_MS {
                orphans.push(fingerprint.clone());
            }
        }
        orphans
    }

    /// Removes the oldest resolved alerts above [`RESOLVED_MAX`].
    fn prune(&mut self) {
        let resolved = self.last.values().filter(|l| !l.firing);
        let mut times: Vec<i64> = resolved.map(|l| l.at_ms).collect();
        times.sort_unstable();
        if let Some(oldest) = times.len().checked_sub(RESOLVED_MAX).map(|k| times[k]) {
            self.last.retain(|_, l| l.firing || l.at_ms >= oldest);
        }
    }
}

#[cfg(test)]
mod tests;
