//! A process that is killed while an alert fires, or while a notification waits, sends each
//! notification once.

use super::receiver::{Receiver, webhook};
use super::{config, firing, keys_in_order, phase, produce, scored};
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Kills the process while an alert fires, with a snapshot that knows of it or one that does not,
/// and starts it again.
fn killed_while_firing(snapshot: &str) {
    let (_cluster, brokers) = scored();
    let receiver = Receiver::start(false);
    let hook = webhook(&receiver);
    let mut service = Service::start(&config(&brokers, "scored", snapshot, &hook));
    produce(&brokers, "scored", &phase(&["a", "b"], 0, false));
    wait_for("two alerts", LIMIT, || {
        (receiver.of("/hook").len() == 2).then_some(())
    });
    // What it told is on disk before it told it; that it was told is there soon after.
    wait_for("the journal", LIMIT, || {
        let journal = std::fs::read_to_string(service.state().join("alerts.journal")).ok()?;
        (journal.matches("\"delivered\":true").count() == 2).then_some(())
    });
    if snapshot == "1s" {
        std::thread::sleep(Duration::from_millis(2_500));
    }
    let before = firing(&service);
    assert_eq!(before.len(), 2);
    service.end("KILL");
    service.start_again();
    let after = wait_for("both alerts after the restart", LIMIT, || {
        Some(firing(&service)).filter(|f| f.len() == 2)
    });
    assert_eq!(after, before, "they fire since when they did");
    let told = service.metric("trueline_notifications_sent_total", &["hook"]);
    assert_eq!(
        (told, receiver.of("/hook").len()),
        (0.0, 2),
        "and no sink receives it again"
    );
    // The sink receives their end once, and a new begin too.
    produce(&brokers, "scored", &phase(&["a", "b"], 1, true));
    produce(&brokers, "scored", &phase(&["a", "b"], 2, false));
    wait_for("four more changes", LIMIT, || {
        (receiver.of("/hook").len() >= 6).then_some(())
    });
    std::thread::sleep(Duration::from_secs(1));
    let keys = keys_in_order("webhook", &receiver.of("/hook"));
    assert_eq!(keys.len(), 6, "{keys:?}");
}

#[test]
fn a_kill_while_an_alert_fires_notifies_nobody_twice() {
    killed_while_firing("1s");
}

#[test]
fn a_kill_with_an_older_snapshot_notifies_nobody_twice() {
    killed_while_firing("1h");
}

#[test]
fn a_notification_that_nobody_took_before_a_kill_is_sent_after_it() {
    let (_cluster, brokers) = scored();
    let receiver = Receiver::start(true);
    let mut service = Service::start(&config(&brokers, "scored", "1s", &webhook(&receiver)));
    let history = [false, true, false];
    for (number, good) in (0..).zip(history) {
        produce(&brokers, "scored", &phase(&["a"], number, good));
    }
    wait_for("three notices that wait", LIMIT, || {
        let queued = service.metric("trueline_notifications_queued", &["hook"]);
        (queued == 3.0).then_some(())
    });
    std::thread::sleep(Duration::from_millis(2_500));
    service.end("KILL");
    service.start_again();
    receiver.away.store(false, Ordering::Relaxed);
    wait_for("all three", LIMIT, || {
        (receiver.of("/hook").len() >= 3).then_some(())
    });
    std::thread::sleep(Duration::from_secs(1));
    let notices = receiver.of("/hook");
    keys_in_order("webhook", &notices);
    let told: Vec<&str> = notices
        .iter()
        .filter_map(|n| n["status"].as_str())
        .collect();
    assert_eq!(told, ["firing", "resolved", "firing"]);
}
