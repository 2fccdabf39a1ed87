//! Decides whether a notification must be sent. Pure: no clock and no file.
//!
//! The engine makes each change once. After a crash, however, it resumes from a snapshot that is
//! older than the last notification and makes some changes again. A firing of an alert is
//! identified by the event time at which it started, which is the same after a crash. So for each
//! alert this module keeps the last notified firing, its severity and the time of that change:
//!
//! | notification | is sent |
//! |---|---|
//! | fires, started after the last firing | yes |
//! | fires, same or earlier start, the last one fires | if severity differs and the change is later than the last one notified |
//! | fires, same or earlier start, the end of the last one was notified | if it was bad later than that end |
//! | resolved | if the last one fires, and started, or was notified, then or earlier |
//!
//! The start of a firing is not always the same after a crash. While a watermark stands still, an alert ends by the
//! clock, and fires again once its data are judged. A process that resumes from before that, and need not wait, knows
//! one long firing. So what was notified is compared with later changes too, whenever they say that they started, and
//! what is sent then says the later start: the one that is known to those who were notified.
//!
//! A silence suppresses firing notifications but not resolutions. [`Deduplicator::is_unsent`] finds
//! firing alerts without a notification: a silence on them has expired, or the queue was full.
//! [`Deduplicator::orphans`] finds alerts that were notified and have not been seen firing for
//! [`ORPHAN_MS`]: the configuration no longer contains their streams. An alert whose stream was
//! [released](Deduplicator::release) with its partition is not an orphan; its new owner resolves
//! it.

use super::notification::{Notification, Status};
use crate::alert::{Severity, Silences};
use std::collections::BTreeMap;

/// How long a notified alert may go unseen before it is resolved as an orphan. Longer than it takes
/// to catch up after a restart, when a change notified before the crash has been made again.
pub const ORPHAN_MS: i64 = 600_000;

/// Most resolved alerts to keep.
pub const RESOLVED_MAX: usize = 10_000;

/// Most released firing alerts to keep. An alert that returns brings its last notification with it.
pub const RELEASED_MAX: usize = 10_000;

/// The last notified firing of an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LastFiring {
    since_ms: i64,
    at_ms: i64,
    severity: Severity,
    firing: bool,
    /// When it was last seen firing, by a clock that does not step.
    seen_ms: Option<i64>,
    /// Another process owns it now.
    released: bool,
}

/// The last notified firing of each alert, by fingerprint.
#[derive(Debug, Clone, Default)]
pub struct Deduplicator {
    last: BTreeMap<String, LastFiring>,
}

impl Deduplicator {
    /// A deduplicator that has sent these notifications, oldest first.
    pub fn after<'n>(notifications: impl Iterator<Item = &'n Notification>) -> Deduplicator {
        let mut dedup = Deduplicator::default();
        notifications.for_each(|n| dedup.record(n));
        dedup
    }

    /// Whether the notification must be sent; fills in `was`, and a start that was notified since. Call [`Deduplicator::record`] once it
    /// is queued.
    pub fn admits(&self, notification: &mut Notification, book: &Silences, now_ms: i64) -> bool {
        let last = self.last.get(&notification.fingerprint);
        if notification.status == Status::Resolved {
            let Some(l) = last.filter(|l| l.firing) else {
                return false;
            };
            let ends = l.since_ms <= notification.since_ms || l.at_ms <= notification.at_ms;
            notification.since_ms = notification.since_ms.max(l.since_ms);
            return ends;
        }
        if notification.is_silenced(book, now_ms) {
            return false;
        }
        notification.was = None;
        match last {
            Some(l) if l.since_ms >= notification.since_ms => {
                notification.since_ms = l.since_ms;
                notification.was = l.firing.then_some(l.severity);
                let news = !l.firing || l.severity != notification.severity;
                news && notification.at_ms > l.at_ms
            }
            _ => true,
        }
    }

    /// Records that the notification is queued.
    pub fn record(&mut self, notification: &Notification) {
        let last = LastFiring {
            since_ms: notification.since_ms,
            at_ms: notification.at_ms,
            severity: notification.severity,
            firing: notification.status == Status::Firing,
            seen_ms: None,
            released: false,
        };
        self.last.insert(notification.fingerprint.clone(), last);
        if self.last.len() > 2 * RESOLVED_MAX {
            self.prune();
        }
    }

    /// Marks the alert as owned by another process. Returns whether that is a change.
    pub fn release(&mut self, fingerprint: &str) -> bool {
        let last = self.last.get_mut(fingerprint);
        last.is_some_and(|l| l.firing && !std::mem::replace(&mut l.released, true))
    }

    /// The oldest released alert, if there are more than [`RELEASED_MAX`].
    pub fn oldest_released(&self) -> Option<String> {
        let released = || self.last.iter().filter(|(_, l)| l.released);
        let oldest = || released().min_by_key(|(_, l)| l.at_ms);
        (released().count() > RELEASED_MAX)
            .then(oldest)?
            .map(|(f, _)| f.clone())
    }

    /// Marks the alert as owned by this process again. Returns whether that is a change.
    pub fn reacquire(&mut self, fingerprint: &str) -> bool {
        let Some(last) = self.last.get_mut(fingerprint) else {
            return false;
        };
        last.seen_ms = None;
        std::mem::take(&mut last.released)
    }

    /// Whether this notification, or a later one of its alert, was already recorded.
    pub fn is_recorded(&self, notification: &Notification) -> bool {
        let last = self.last.get(&notification.fingerprint);
        last.is_some_and(|l| (l.since_ms, l.at_ms) >= (notification.since_ms, notification.at_ms))
    }

    /// The start of the notified firing; `None` if the alert does not fire.
    pub fn firing_since(&self, fingerprint: &str) -> Option<i64> {
        let last = self.last.get(fingerprint).filter(|l| l.firing);
        last.map(|l| l.since_ms)
    }

    /// Removes an alert that another process has resolved.
    pub fn remove(&mut self, fingerprint: &str) {
        self.last.remove(fingerprint);
    }

    /// Whether nobody was notified that the alert fires with this severity.
    pub fn is_unsent(&self, fingerprint: &str, since_ms: i64, severity: Severity) -> bool {
        let sent = |l: &LastFiring| l.firing && l.since_ms >= since_ms && l.severity == severity;
        !self.last.get(fingerprint).is_some_and(sent)
    }

    /// Records that the alert is firing now, by a clock that does not step.
    pub fn saw_firing(&mut self, fingerprint: &str, now_ms: i64) {
        if let Some(last) = self.last.get_mut(fingerprint) {
            last.seen_ms = Some(now_ms);
        }
    }

    /// Alerts that were notified and have not been seen firing for [`ORPHAN_MS`].
    pub fn orphans(&mut self, now_ms: i64) -> Vec<String> {
        let mut orphans = Vec::new();
        let owned = |l: &LastFiring| l.firing && !l.released;
        for (fingerprint, last) in self.last.iter_mut().filter(|(_, l)| owned(l)) {
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
mod tests {
    use super::*;
    use crate::notify::notification::Links;

    fn notification(status: Status, since_ms: i64, at_ms: i64, severity: Severity) -> Notification {
        let links = Links {
            page: String::new(),
            runbook: String::new(),
        };
        Notification {
            status,
            since_ms,
            severity,
            ..Notification::trial(at_ms, links)
        }
    }

    /// Sends what must be sent; returns for each notification whether it was.
    fn send(
        dedup: &mut Deduplicator,
        notifications: &[Notification],
        book: &Silences,
    ) -> Vec<bool> {
        let mut answers = Vec::new();
        for notification in notifications {
            let mut notification = notification.clone();
            let admitted = dedup.admits(&mut notification, book, 50);
            if admitted {
                dedup.record(&notification);
            }
            answers.push(admitted);
        }
        answers
    }

    use Severity::{Page, Warn};
    use Status::{Firing, Resolved};

    #[test]
    fn changes_that_the_engine_repeats_after_a_crash_are_not_sent_again() {
        let story = [
            notification(Firing, 10, 10, Warn),
            notification(Firing, 10, 15, Page),
            notification(Firing, 10, 20, Warn),
            notification(Resolved, 10, 30, Warn),
            notification(Firing, 40, 40, Warn),
        ];
        let mut dedup = Deduplicator::default();
        let book = Silences::default();
        assert_eq!(send(&mut dedup, &story, &book), [true; 5]);
        for from in 0..story.len() {
            for to in from..=story.len() {
                let mut after = Deduplicator::after(story.iter());
                let again = send(&mut after, &story[from..to], &book);
                assert!(!again.contains(&true), "{from}..{to}: {again:?}");
            }
        }
        // After a crash at any point exactly the rest is sent.
        for sent in 0..=story.len() {
            let mut after = Deduplicator::after(story[..sent].iter());
            let rest = send(&mut after, &story, &book);
            let wanted: Vec<bool> = (0..story.len()).map(|i| i >= sent).collect();
            assert_eq!(rest, wanted, "{sent}");
        }
    }

    #[test]
    fn an_alert_that_the_clock_ended_and_a_crash_continues_is_notified_again_and_ends() {
        // The watermark stood still, and the alert ended at 50 by the clock. After a crash no time is lost.
        let ended = notification(Resolved, 10, 50, Warn);
        let book = Silences::default();
        let mut dedup = Deduplicator::after([notification(Firing, 10, 10, Warn), ended].iter());
        let fingerprint = notification(Firing, 10, 10, Warn).fingerprint;
        assert!(dedup.is_unsent(&fingerprint, 10, Warn));
        let goes_on = [
            notification(Firing, 10, 10, Warn),
            notification(Firing, 10, 45, Page),
            notification(Firing, 10, 55, Warn),
            notification(Resolved, 10, 70, Warn),
        ];
        let sent = send(&mut dedup, &goes_on, &book);
        assert_eq!(sent, [false, false, true, true]);
        // It had begun again at 60 before the crash.
        let again = [
            notification(Firing, 10, 10, Warn),
            notification(Resolved, 10, 50, Warn),
            notification(Firing, 60, 60, Warn),
        ];
        let mut dedup = Deduplicator::after(again.iter());
        assert!(!dedup.is_unsent(&fingerprint, 10, Warn));
        let one = [
            notification(Firing, 10, 10, Warn),
            notification(Firing, 10, 65, Page),
            notification(Resolved, 10, 70, Page),
        ];
        assert_eq!(send(&mut dedup, &one, &book), [false, true, true]);
        // It begins again as before, once it has ended by the clock after the crash.
        let repeats = [
            notification(Resolved, 10, 100, Warn),
            notification(Firing, 60, 60, Warn),
            notification(Firing, 60, 110, Warn),
        ];
        let mut dedup = Deduplicator::after(again.iter());
        assert_eq!(send(&mut dedup, &repeats, &book), [true, false, true]);
    }

    #[test]
    fn a_silence_suppresses_firing_notifications_and_not_resolutions() {
        let mut book = Silences::default();
        let matcher = "model=*".parse().expect("a matcher");
        let silence = book.draft(vec![matcher], (0, 100), "ann", "");
        let mut dedup = Deduplicator::default();
        let none = Silences::default();
        let begun = notification(Firing, 10, 10, Warn);
        assert_eq!(
            send(&mut dedup, std::slice::from_ref(&begun), &none),
            [true]
        );
        book.enter(silence.expect("sound"));
        let worse = notification(Firing, 10, 20, Page);
        let ended = notification(Resolved, 10, 30, Page);
        assert_eq!(
            send(&mut dedup, &[worse.clone(), ended], &book),
            [false, true]
        );
        let next = notification(Firing, 60, 60, Page);
        assert_eq!(
            send(&mut dedup, std::slice::from_ref(&next), &book),
            [false]
        );
        assert!(
            dedup.is_unsent(&next.fingerprint, 60, Page),
            "found when the silence has expired"
        );
        assert_eq!(send(&mut dedup, &[next], &none), [true]);
        // An alert that fires and resolves while silenced is never sent.
        let quiet = notification(Firing, 80, 80, Warn);
        assert_eq!(
            send(
                &mut Deduplicator::default(),
                &[quiet, notification(Resolved, 80, 90, Warn)],
                &book
            ),
            [false; 2]
        );
    }

    #[test]
    fn an_alert_that_is_no_longer_seen_becomes_an_orphan() {
        let begun = notification(Firing, 10, 10, Warn);
        let mut dedup = Deduplicator::after(std::iter::once(&begun));
        assert!(dedup.orphans(1_000).is_empty());
        dedup.saw_firing(&begun.fingerprint, 5_000);
        assert!(dedup.orphans(5_000 + ORPHAN_MS - 1).is_empty());
        assert_eq!(dedup.orphans(5_000 + ORPHAN_MS), [begun.fingerprint]);
    }

    #[test]
    fn a_released_alert_is_not_an_orphan_and_is_recognised_when_it_returns() {
        let begun = notification(Firing, 10, 10, Warn);
        let mut dedup = Deduplicator::after(std::iter::once(&begun));
        dedup.saw_firing(&begun.fingerprint, 5_000);
        assert!(dedup.release(&begun.fingerprint) && !dedup.release(&begun.fingerprint));
        assert!(dedup.orphans(5_000 + 10 * ORPHAN_MS).is_empty());
        let again = send(
            &mut dedup,
            std::slice::from_ref(&begun),
            &Silences::default(),
        );
        assert_eq!(again, [false]);
        assert!(dedup.reacquire(&begun.fingerprint) && !dedup.reacquire(&begun.fingerprint));
        let far = 5_000 + 20 * ORPHAN_MS;
        assert!(dedup.orphans(far).is_empty(), "it has time to be seen");
        assert_eq!(dedup.orphans(far + ORPHAN_MS), [begun.fingerprint]);
    }
}
