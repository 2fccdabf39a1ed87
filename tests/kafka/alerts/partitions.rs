//! Alerts go with their partitions from process to process, and each change is notified by one of
//! them.

use super::receiver::{Receiver, webhook};
use super::{config, firing, keys_in_order, phase, produce_to};
use crate::support::broker::{Broker, unique};
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[test]
fn alerts_move_with_their_partitions_and_are_notified_once() {
    let name = "alerts_move_with_their_partitions_and_are_notified_once";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let (topic, brokers) = (format!("trueline-moved-{}", unique()), &broker.bootstrap);
    broker.create_topics(&[(&topic, 2)]);
    let receiver = Receiver::start(false);
    let config = config(brokers, &topic, "1s", &webhook(&receiver)).replace(
        "interval = \"1s\"",
        &format!("interval = \"1s\"\ntopic = \"{topic}-state\""),
    );
    let phase = |number: i64, good: bool| {
        let [a, b] = ["a", "b"].map(|model| phase(&[model], number, good));
        produce_to(brokers, &topic, &[&a, &b]);
    };
    let told = || receiver.of("/hook");
    let wait_told = |n: usize| {
        wait_for("notices", LIMIT, || (told().len() >= n).then_some(()));
        // Long enough for what fires and was not told here to be found.
        std::thread::sleep(Duration::from_millis(2_500));
        assert_eq!(told().len(), n, "{:#?}", told());
    };
    let journal = |service: &Service| {
        std::fs::read_to_string(service.state().join("alerts.journal")).unwrap_or_default()
    };

    let mut one = Service::start(&config);
    one.wait_ready();
    phase(0, false);
    wait_told(2);
    let before: BTreeMap<String, i64> = firing(&one).into_iter().collect();
    assert_eq!(before.len(), 2);

    // Half of it goes to another process.
    let mut other = Service::start(&config);
    wait_for("an alert in each process", LIMIT, || {
        let parts = [firing(&one), firing(&other)];
        let all: BTreeMap<String, i64> = parts.concat().into_iter().collect();
        (parts.iter().all(|p| p.len() == 1) && all == before).then_some(())
    });
    wait_told(2);
    assert!(journal(&one).contains("\"released\""), "{}", journal(&one));
    assert!(
        journal(&other).contains("\"acquired\""),
        "{}",
        journal(&other)
    );
    phase(1, true);
    wait_told(4);
    phase(2, false);
    wait_told(6);

    // It dies, and the first has all again; then that one goes, and the other comes back.
    other.end("KILL");
    wait_for("both alerts in the first process", LIMIT, || {
        (firing(&one).len() == 2).then_some(())
    });
    wait_told(6);
    assert_eq!(one.end("TERM"), Some(0));
    other.start_again();
    wait_for("both alerts in the other process", LIMIT, || {
        (firing(&other).len() == 2).then_some(())
    });
    wait_told(6);
    phase(3, true);
    wait_told(8);
    let keys = keys_in_order("webhook", &told());
    assert_eq!(keys.len(), 8, "{keys:?}");
    let ends = told().iter().filter(|n| n["status"] == "resolved").count();
    assert_eq!(ends, 4);
}

/// The owner of an alert stops while the sink takes nothing.
#[test]
fn what_waits_for_a_sink_goes_along_with_its_alert() {
    let name = "what_waits_for_a_sink_goes_along_with_its_alert";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    for (signal, judges) in [("KILL", false), ("TERM", true)] {
        let (topic, brokers) = (format!("trueline-waits-{}", unique()), &broker.bootstrap);
        broker.create_topics(&[(&topic, 2)]);
        let receiver = Receiver::start(false);
        receiver.refuses.store(true, Ordering::Relaxed);
        let with = |more: &str| {
            let state = format!("interval = \"1s\"\ntopic = \"{topic}-state\"{more}");
            config(brokers, &topic, "1s", &webhook(&receiver)).replace("interval = \"1s\"", &state)
        };
        let all = match judges {
            true => with("\nverdicts = \"all\"\njudge_partitions = 4"),
            false => with(""),
        };
        let worker =
            judges.then(|| Service::start(&with("\nverdicts = \"none\"\njudge_partitions = 4")));
        let phase = |number: i64, good: bool| {
            let a = phase(&["a"], number, good);
            let time = phase(&["last"], number, true);
            produce_to(brokers, &topic, &[&a, &time]);
        };
        let told = || receiver.of("/hook");
        let mut both = [Service::start(&all), Service::start(&all)];
        worker.iter().chain(&both).for_each(Service::wait_ready);
        phase(0, false);
        let queued = |s: &Service| s.metric("trueline_notifications_queued", &[]) > 0.0;
        let owner = wait_for("a notification that waits", LIMIT, || {
            both.iter().position(queued)
        });
        // Its checkpoint says so.
        std::thread::sleep(Duration::from_secs(4));
        both[owner].end(signal);
        receiver.refuses.store(false, Ordering::Relaxed);
        wait_for("the notification of the next owner", LIMIT, || {
            (!told().is_empty()).then_some(())
        });
        both[owner].start_again();
        both[owner].wait_ready();
        phase(1, true);
        wait_for("the end", LIMIT, || {
            told()
                .iter()
                .any(|n| n["status"] == "resolved")
                .then_some(())
        });
        std::thread::sleep(Duration::from_secs(4));
        let keys: Vec<_> = told().iter().map(|n| n["key"].clone()).collect();
        let states: Vec<_> = told().iter().map(|n| n["status"].clone()).collect();
        assert_eq!(states, ["firing", "resolved"], "{signal}: {keys:#?}");
    }
}
