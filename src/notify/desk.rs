//! Whether a notice has to be told: pure, without clock or file.
//!
//! The engine makes each change once, but after a crash it goes on from a snapshot that is older than what people were told, and makes some
//! of them again. Each firing of an alert is known by the moment at which it began, in event time, which is the same then; so for each
//! alert the last firing that was told is remembered, with its severity and the moment of that change, and
//!
//! | notice | is told |
//! |---|---|
//! | fires since before the last | no: that is over |
//! | fires since the last, which was told to have ended | no |
//! | fires since the last, with another severity | if the change is later than the last told |
//! | fires since after the last | yes |
//! | has ended | if one that began then or before was told to fire |
//!
//! A silence keeps back what fires, and not what has ended. [`Desk::missing`] finds what fires and was not told: because a silence held it
//! back and is over, or the way was full. [`Desk::orphans`] finds what was told to fire and has not been seen firing for
//! [`ORPHAN_MS`]: streams that the configuration no longer has. One whose stream has [left](Desk::left) with its partition is no
//! orphan: whoever has it now ends it.

use super::notice::{Notice, Status};
use crate::alert::{Severity, Silences};
use std::collections::BTreeMap;

/// How long an alert that was told may not be seen firing before it is told to have ended. Longer than reading on from a
/// snapshot takes, after which a change that was told before a crash has been made again.
pub const ORPHAN_MS: i64 = 600_000;

/// Most alerts that are remembered after their end.
pub const ENDED_MAX: usize = 10_000;

/// Most firing alerts of streams that left that are remembered. One that comes back brings what was told with it.
pub const AWAY_MAX: usize = 10_000;

/// The last firing of an alert that was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Told {
    since_ms: i64,
    at_ms: i64,
    severity: Severity,
    firing: bool,
    /// By the clock, when it was last seen firing.
    seen_ms: Option<i64>,
    /// It is another process's now.
    away: bool,
}

/// What was told. See the module.
#[derive(Debug, Clone, Default)]
pub struct Desk {
    told: BTreeMap<String, Told>,
}

impl Desk {
    /// One that knows what these notices told, the oldest first.
    pub fn after<'n>(notices: impl Iterator<Item = &'n Notice>) -> Desk {
        let mut desk = Desk::default();
        notices.for_each(|n| desk.told(n));
        desk
    }

    /// Whether the notice has to be told; `was` is filled in. It is to be followed by [`Desk::told`] once it is on its way.
    pub fn admits(&self, notice: &mut Notice, book: &Silences, now_ms: i64) -> bool {
        let last = self.told.get(&notice.fingerprint);
        if notice.status == Status::Resolved {
            return last.is_some_and(|l| l.firing && l.since_ms <= notice.since_ms);
        }
        if book.silence_of(&notice.labels(), now_ms).is_some() {
            return false;
        }
        notice.was = None;
        match last {
            Some(l) if l.since_ms > notice.since_ms => false,
            Some(l) if l.since_ms == notice.since_ms => {
                let changed = l.severity != notice.severity && notice.at_ms > l.at_ms;
                notice.was = Some(l.severity);
                l.firing && changed
            }
            _ => true,
        }
    }

    /// The notice is on its way.
    pub fn told(&mut self, notice: &Notice) {
        let told = Told {
            since_ms: notice.since_ms,
            at_ms: notice.at_ms,
            severity: notice.severity,
            firing: notice.status == Status::Firing,
            seen_ms: None,
            away: false,
        };
        self.told.insert(notice.fingerprint.clone(), told);
        if self.told.len() > 2 * ENDED_MAX {
            self.forget();
        }
    }

    /// The stream of the alert is another process's now. Says whether that was news.
    pub fn left(&mut self, fingerprint: &str) -> bool {
        let last = self.told.get_mut(fingerprint);
        last.is_some_and(|l| l.firing && !std::mem::replace(&mut l.away, true))
    }

    /// The oldest alert of those that left, where there are too many of them.
    pub fn longest_away(&self) -> Option<String> {
        let away = || self.told.iter().filter(|(_, l)| l.away);
        let oldest = || away().min_by_key(|(_, l)| l.at_ms);
        (away().count() > AWAY_MAX)
            .then(oldest)?
            .map(|(f, _)| f.clone())
    }

    /// The alert is this process's again, as it was told. Says whether that was news.
    pub fn back(&mut self, fingerprint: &str) -> bool {
        let Some(last) = self.told.get_mut(fingerprint) else {
            return false;
        };
        last.seen_ms = None;
        std::mem::take(&mut last.away)
    }

    /// Whether as much was told already as this notice says, or more.
    pub fn knows(&self, notice: &Notice) -> bool {
        let last = self.told.get(&notice.fingerprint);
        last.is_some_and(|l| (l.since_ms, l.at_ms) >= (notice.since_ms, notice.at_ms))
    }

    /// Since when an alert fires that was told; `None` where it does not.
    pub fn fires_since(&self, fingerprint: &str) -> Option<i64> {
        let last = self.told.get(fingerprint).filter(|l| l.firing);
        last.map(|l| l.since_ms)
    }

    /// Another process has ended the alert.
    pub fn over(&mut self, fingerprint: &str) {
        self.told.remove(fingerprint);
    }

    /// Whether what fires like this was told.
    pub fn missing(&self, fingerprint: &str, since_ms: i64, severity: Severity) -> bool {
        let told = |l: &Told| l.since_ms == since_ms && l.severity == severity;
        !self.told.get(fingerprint).is_some_and(told)
    }

    /// The alert is seen firing.
    pub fn seen(&mut self, fingerprint: &str, now_ms: i64) {
        if let Some(last) = self.told.get_mut(fingerprint) {
            last.seen_ms = Some(now_ms);
        }
    }

    /// Alerts that were told to fire and have not been seen firing for long.
    pub fn orphans(&mut self, now_ms: i64) -> Vec<String> {
        let mut orphans = Vec::new();
        let ours = |l: &Told| l.firing && !l.away;
        for (fingerprint, last) in self.told.iter_mut().filter(|(_, l)| ours(l)) {
            let seen_ms = *last.seen_ms.get_or_insert(now_ms);
            if now_ms.saturating_sub(seen_ms) >= ORPHAN_MS {
                orphans.push(fingerprint.clone());
            }
        }
        orphans
    }

    /// Forgets the oldest of those that have ended.
    fn forget(&mut self) {
        let ended = self.told.values().filter(|l| !l.firing);
        let mut times: Vec<i64> = ended.map(|l| l.at_ms).collect();
        times.sort_unstable();
        if let Some(line) = times.len().checked_sub(ENDED_MAX).map(|k| times[k]) {
            self.told.retain(|_, l| l.firing || l.at_ms >= line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::notice::Links;

    fn notice(status: Status, since_ms: i64, at_ms: i64, severity: Severity) -> Notice {
        let links = Links {
            page: String::new(),
            runbook: String::new(),
        };
        Notice {
            status,
            since_ms,
            severity,
            ..Notice::trial(at_ms, links)
        }
    }

    /// Tells what has to be told; answers for each whether it was.
    fn tell(desk: &mut Desk, notices: &[Notice], book: &Silences) -> Vec<bool> {
        let mut answers = Vec::new();
        for notice in notices {
            let mut notice = notice.clone();
            let admitted = desk.admits(&mut notice, book, 50);
            if admitted {
                desk.told(&notice);
            }
            answers.push(admitted);
        }
        answers
    }

    use Severity::{Page, Warn};
    use Status::{Firing, Resolved};

    #[test]
    fn what_the_engine_does_again_after_a_crash_is_not_told_again() {
        let story = [
            notice(Firing, 10, 10, Warn),
            notice(Firing, 10, 15, Page),
            notice(Firing, 10, 20, Warn),
            notice(Resolved, 10, 30, Warn),
            notice(Firing, 40, 40, Warn),
        ];
        let mut desk = Desk::default();
        let book = Silences::default();
        assert_eq!(tell(&mut desk, &story, &book), [true; 5]);
        for from in 0..story.len() {
            for to in from..=story.len() {
                let mut after = Desk::after(story.iter());
                let again = tell(&mut after, &story[from..to], &book);
                assert!(!again.contains(&true), "{from}..{to}: {again:?}");
            }
        }
        // And whatever was told when it broke off, the rest is.
        for told in 0..=story.len() {
            let mut after = Desk::after(story[..told].iter());
            let rest = tell(&mut after, &story, &book);
            let wanted: Vec<bool> = (0..story.len()).map(|i| i >= told).collect();
            assert_eq!(rest, wanted, "{told}");
        }
    }

    #[test]
    fn a_silence_keeps_back_what_fires_and_not_what_ends() {
        let mut book = Silences::default();
        let matcher = "model=*".parse().expect("a matcher");
        let silence = book.draft(vec![matcher], (0, 100), "ann", "");
        let mut desk = Desk::default();
        let none = Silences::default();
        let begun = notice(Firing, 10, 10, Warn);
        assert_eq!(tell(&mut desk, std::slice::from_ref(&begun), &none), [true]);
        book.enter(silence.expect("sound"));
        let worse = notice(Firing, 10, 20, Page);
        let ended = notice(Resolved, 10, 30, Page);
        assert_eq!(
            tell(&mut desk, &[worse.clone(), ended], &book),
            [false, true]
        );
        let next = notice(Firing, 60, 60, Page);
        assert_eq!(tell(&mut desk, std::slice::from_ref(&next), &book), [false]);
        assert!(
            desk.missing(&next.fingerprint, 60, Page),
            "found when the silence is over"
        );
        assert_eq!(tell(&mut desk, &[next], &none), [true]);
        // One that fired and ended in silence is never told.
        let quiet = notice(Firing, 80, 80, Warn);
        assert_eq!(
            tell(
                &mut Desk::default(),
                &[quiet, notice(Resolved, 80, 90, Warn)],
                &book
            ),
            [false; 2]
        );
    }

    #[test]
    fn one_that_is_seen_no_more_is_an_orphan_after_a_while() {
        let begun = notice(Firing, 10, 10, Warn);
        let mut desk = Desk::after(std::iter::once(&begun));
        assert!(desk.orphans(1_000).is_empty());
        desk.seen(&begun.fingerprint, 5_000);
        assert!(desk.orphans(5_000 + ORPHAN_MS - 1).is_empty());
        assert_eq!(desk.orphans(5_000 + ORPHAN_MS), [begun.fingerprint]);
    }

    #[test]
    fn one_that_has_left_is_no_orphan_and_is_known_again_when_it_comes_back_as_it_was() {
        let begun = notice(Firing, 10, 10, Warn);
        let mut desk = Desk::after(std::iter::once(&begun));
        desk.seen(&begun.fingerprint, 5_000);
        assert!(desk.left(&begun.fingerprint) && !desk.left(&begun.fingerprint));
        assert!(desk.orphans(5_000 + 10 * ORPHAN_MS).is_empty());
        let again = tell(
            &mut desk,
            std::slice::from_ref(&begun),
            &Silences::default(),
        );
        assert_eq!(again, [false]);
        assert!(desk.back(&begun.fingerprint) && !desk.back(&begun.fingerprint));
        let far = 5_000 + 20 * ORPHAN_MS;
        assert!(desk.orphans(far).is_empty(), "it has time to be seen");
        assert_eq!(desk.orphans(far + ORPHAN_MS), [begun.fingerprint]);
    }
}
