use super::*;
use crate::notify::notification::Links;

fn notification(status: Status, since_ms: i64, at_ms: i64, severity: Severity) -> Notification {
    let mut notification = Notification {
        status,
        since_ms,
        severity,
        ..Notification::trial(at_ms, Links::default())
    };
    notification.start(since_ms);
    notification
}

/// Sends what must be sent; returns for each notification whether it was sent.
fn send(dedup: &mut Deduplicator, notifications: &[Notification]) -> Vec<bool> {
    send_through(dedup, notifications, &Silences::default())
}

fn send_through(
    dedup: &mut Deduplicator,
    notifications: &[Notification],
    silences: &Silences,
) -> Vec<bool> {
    let mut answers = Vec::new();
    for notification in notifications {
        let mut notification = notification.clone();
        let admitted = dedup.admits(&mut notification, silences, 50);
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
    assert_eq!(send(&mut dedup, &story), [true; 5]);
    for from in 0..story.len() {
        for to in from..=story.len() {
            let mut after = Deduplicator::after(story.iter());
            let again = send(&mut after, &story[from..to]);
            assert!(!again.contains(&true), "{from}..{to}: {again:?}");
        }
    }
    // After a crash at any point, exactly the rest is sent.
    for sent in 0..=story.len() {
        let mut after = Deduplicator::after(story[..sent].iter());
        let rest = send(&mut after, &story);
        let wanted: Vec<bool> = (0..story.len()).map(|i| i >= sent).collect();
        assert_eq!(rest, wanted, "{sent}");
    }
}

#[test]
fn a_severity_that_rises_at_the_moment_of_the_begin_is_sent_and_one_that_falls_then_is_not() {
    let story = [
        notification(Firing, 10, 10, Warn),
        notification(Firing, 10, 10, Page),
        notification(Firing, 10, 10, Warn),
        notification(Firing, 10, 20, Warn),
    ];
    let mut dedup = Deduplicator::default();
    let sent = [true, true, false, true];
    assert_eq!(send(&mut dedup, &story), sent);
    // The changes are repeated after a crash.
    assert_eq!(send(&mut dedup, &story), [false; 4]);
    let mut dedup = Deduplicator::after(story[..1].iter());
    assert_eq!(send(&mut dedup, &story), [false, true, false, true]);
}

#[test]
fn a_severity_that_was_silenced_when_it_rose_is_another_than_sinks_know() {
    let mut dedup = Deduplicator::default();
    let fingerprint = notification(Firing, 10, 20, Warn).fingerprint;
    let has = |dedup: &Deduplicator, severity| dedup.has_other_severity(&fingerprint, severity);
    assert!(!has(&dedup, Page));
    send(&mut dedup, &[notification(Firing, 10, 10, Warn)]);
    assert!(has(&dedup, Page) && !has(&dedup, Warn));
    send(&mut dedup, &[notification(Resolved, 10, 30, Warn)]);
    assert!(!has(&dedup, Page));
}

#[test]
fn a_notification_names_the_other_severities_that_were_notified_of_its_firing() {
    let story = [
        (notification(Firing, 10, 10, Warn), vec![]),
        (notification(Firing, 10, 20, Page), vec![Warn]),
        (notification(Firing, 10, 30, Warn), vec![Page]),
        (notification(Resolved, 10, 40, Page), vec![Page]),
        (notification(Firing, 50, 50, Page), vec![]),
        // The end of the last firing was not notified.
        (notification(Firing, 60, 60, Warn), vec![Page]),
        (notification(Resolved, 60, 70, Warn), vec![Page]),
        (notification(Firing, 80, 80, Page), vec![]),
        (notification(Resolved, 80, 90, Page), vec![]),
    ];
    let silences = Silences::default();
    for restarts in [false, true] {
        let mut dedup = Deduplicator::default();
        for (mut change, earlier) in story.clone() {
            assert!(dedup.admits(&mut change, &silences, 50));
            assert_eq!(change.earlier, earlier, "{}", change.key);
            dedup.record(&change);
            if restarts {
                let line = serde_json::to_string(&change).expect("JSON");
                let read: Notification = serde_json::from_str(&line).expect("a notification");
                dedup = Deduplicator::after([&read].into_iter());
            }
            // A sink that lacks the alert gets it again.
            let mut joined = change.clone();
            joined.earlier = Vec::new();
            dedup.follow(&mut joined);
            assert_eq!(joined.earlier, earlier, "{}", change.key);
        }
    }
    // A journal of a previous version has no such list.
    let mut line = serde_json::to_value(&story[1].0).expect("JSON");
    let removed = line.as_object_mut().and_then(|line| line.remove("earlier"));
    assert!(removed.is_some());
    let read: Notification = serde_json::from_value(line).expect("a notification");
    let dedup = Deduplicator::after([&read].into_iter());
    let mut ended = notification(Resolved, 10, 40, Warn);
    assert!(dedup.admits(&mut ended, &silences, 50));
    assert_eq!((ended.severity, ended.earlier), (Page, vec![]));
}

#[test]
fn an_alert_that_left_and_begins_again_here_is_notified() {
    let first = notification(Firing, 10, 10, Page);
    let mut dedup = Deduplicator::after([&first].into_iter());
    assert!(dedup.release(&first.fingerprint));
    // Meanwhile its next owner has notified the end and released the stream.
    assert_eq!(dedup.firing_since(&first.fingerprint), None);
    assert_eq!(dedup.fired_since(&first.fingerprint), Some(10));
    let again = notification(Firing, 90, 90, Page);
    assert_eq!(send(&mut dedup, &[again]), [true]);
    assert_eq!(dedup.firing_since(&first.fingerprint), Some(90));
}

#[test]
fn an_alert_that_the_clock_ended_is_notified_again_once_it_is_bad_later_than_was_known() {
    // The watermark was stalled, and the alert ended at 50 by the clock; it was last bad at 30.
    let mut ended = notification(Resolved, 10, 50, Warn);
    ended.bad_ms = Some(30);
    let begun = [notification(Firing, 10, 10, Warn), ended];
    let fingerprint = begun[0].fingerprint.clone();
    let since = |dedup: &Deduplicator| dedup.firing_since(&fingerprint);
    assert!(Deduplicator::after(begun.iter()).is_unsent(&fingerprint, 10, Warn));
    // Without a crash, its next data are judged. After a crash, no time may be lost, or it ends at
    // another time.
    for (since_ms, known) in [(40, 40), (10, 40), (20, 40)] {
        let goes_on = [
            notification(Firing, since_ms, since_ms.min(30), Warn),
            notification(Firing, since_ms, 30, Page),
            notification(Firing, since_ms, 40, Warn),
            notification(Resolved, since_ms, 70, Warn),
        ];
        let mut dedup = Deduplicator::after(begun.iter());
        assert_eq!(send(&mut dedup, &goes_on[..3]), [false, false, true]);
        assert_eq!(since(&dedup), Some(known));
        assert!(!dedup.is_unsent(&fingerprint, since_ms, Warn));
        assert_eq!(send(&mut dedup, &goes_on), [false, false, false, true]);
    }
    // A stream of the alert ends, and its severity falls. The alert is not bad later because of
    // that.
    let mut falls = notification(Firing, 10, 45, Warn);
    falls.bad_ms = Some(30);
    let mut dedup = Deduplicator::after(begun.iter());
    assert_eq!(send(&mut dedup, &[falls]), [false]);
    // It had started again at 60 before the crash; the repeat sees one long firing.
    let again = [begun.as_slice(), &[notification(Firing, 60, 60, Warn)]].concat();
    let one = [
        notification(Firing, 10, 10, Warn),
        notification(Firing, 10, 65, Page),
        notification(Resolved, 10, 70, Page),
    ];
    let mut dedup = Deduplicator::after(again.iter());
    assert_eq!(send(&mut dedup, &one), [false, true, true]);
}

#[test]
fn an_alert_that_fires_after_an_administrative_end_is_sent_once_with_a_new_key() {
    let begun = notification(Firing, 10, 10, Page);
    let ended = Notification {
        administrative: true,
        ..begun.resolved(90, "grouped otherwise")
    };
    // The journal also has this; a journal of a previous version does not.
    let line = serde_json::to_string(&ended).expect("JSON");
    let read: Notification = serde_json::from_str(&line).expect("a notification");
    let older = line.replace(r#""administrative":true,"#, "");
    let older: Notification = serde_json::from_str(&older).expect("a notification");
    assert!(read.administrative && !older.administrative);
    let mut dedup = Deduplicator::after([&older].into_iter());
    assert_eq!(send(&mut dedup, std::slice::from_ref(&begun)), [false]);
    let mut dedup = Deduplicator::after([&read].into_iter());
    let mut again = begun.clone();
    assert!(dedup.admits(&mut again, &Silences::default(), 95));
    assert_eq!((again.since_ms, again.at_ms), (11, 10));
    assert!(again.key != begun.key);
    dedup.record(&again);
    assert!(!dedup.is_unsent(&begun.fingerprint, 10, Page));
    // Later changes in event time are sent, although the clock was ahead of them.
    let rest = [
        begun,
        notification(Firing, 10, 20, Warn),
        notification(Resolved, 10, 30, Warn),
        notification(Firing, 10, 30, Warn),
    ];
    assert_eq!(send(&mut dedup, &rest), [false, true, true, false]);
}

#[test]
fn no_key_comes_twice_however_often_changes_are_made_again() {
    // Some changes that crashes and clocks may repeat, in any order.
    let changes: Vec<Notification> = [10, 45]
        .into_iter()
        .flat_map(|since_ms| {
            let at = [45, 50, 60].into_iter();
            at.map(move |at_ms| (since_ms, at_ms))
        })
        .flat_map(|(since_ms, at_ms)| {
            let of = |status, severity| notification(status, since_ms, at_ms, severity);
            let withdrawn = Notification {
                administrative: true,
                ..of(Resolved, Warn)
            };
            [
                of(Firing, Warn),
                of(Firing, Page),
                of(Resolved, Warn),
                withdrawn,
            ]
        })
        .collect();
    let mut rng = crate::stats::rng::Rng::new(7);
    let (mut sent, silences) = (0, Silences::default());
    for _ in 0..2_000 {
        let mut dedup = Deduplicator::default();
        let mut keys = std::collections::BTreeSet::new();
        for _ in 0..40 {
            let mut change = changes[(rng.bits() % changes.len() as u64) as usize].clone();
            if dedup.admits(&mut change, &silences, 50) {
                dedup.record(&change);
                sent += 1;
                assert!(keys.insert(change.key.clone()), "{}", change.key);
            }
        }
    }
    assert!(sent > 5_000, "{sent}");
}

#[test]
fn a_silence_suppresses_firing_notifications_and_not_resolutions() {
    let mut silences = Silences::default();
    let matcher = "model=*".parse().expect("a matcher");
    let silence = silences.draft(vec![matcher], (0, 100), "ann", "");
    let mut dedup = Deduplicator::default();
    let begun = notification(Firing, 10, 10, Warn);
    assert_eq!(send(&mut dedup, std::slice::from_ref(&begun)), [true]);
    silences.enter(silence.expect("sound"));
    let worse = notification(Firing, 10, 20, Page);
    let ended = notification(Resolved, 10, 30, Page);
    let mut told = ended.clone();
    assert!(dedup.admits(&mut told, &silences, 50));
    let severities = (told.severity, told.earlier.as_slice());
    assert_eq!(
        severities,
        (Warn, &[][..]),
        "nobody was notified that it rose"
    );
    assert_eq!(
        send_through(&mut dedup, &[worse.clone(), ended], &silences),
        [false, true]
    );
    let next = notification(Firing, 60, 60, Page);
    assert_eq!(
        send_through(&mut dedup, std::slice::from_ref(&next), &silences),
        [false]
    );
    assert!(
        dedup.is_unsent(&next.fingerprint, 60, Page),
        "found when the silence has expired"
    );
    assert_eq!(send(&mut dedup, &[next]), [true]);
    // An alert that fires and resolves while silenced is never sent.
    let quiet = notification(Firing, 80, 80, Warn);
    assert_eq!(
        send_through(
            &mut Deduplicator::default(),
            &[quiet, notification(Resolved, 80, 90, Warn)],
            &silences
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
    let again = send(&mut dedup, std::slice::from_ref(&begun));
    assert_eq!(again, [false]);
    assert!(dedup.reacquire(&begun.fingerprint) && !dedup.reacquire(&begun.fingerprint));
    let far = 5_000 + 20 * ORPHAN_MS;
    assert!(dedup.orphans(far).is_empty(), "it has time to be seen");
    assert_eq!(dedup.orphans(far + ORPHAN_MS), [begun.fingerprint]);
}
