//! Verdicts that never stand still in silence, on a real Kafka: partitions of records that are not
//! counted, clocks that are wrong, transactions that hide records, streams after a downtime.

use std::time::{Duration, Instant};

use crate::support::broker::{Broker, unique};
use crate::support::clock::{NO_COMPILER, SteppingClock};
use crate::support::late::now_ms;
use crate::support::sender::Sender;
use crate::support::service::{LIMIT, Service};
use crate::support::{skip, wait_for};

const YEAR_MS: i64 = 365 * 86_400_000;

/// One model, `fraud`; event time is the record's timestamp, as in the README's first deployment.
fn config(brokers: &str, group: &str, topic: &str, kafka: &str, limits: &str) -> String {
    format!(
        r#"
version = 1
[kafka]
brokers = "{brokers}"
group = "{group}"
statistics_interval = "1s"
{kafka}
[[source]]
topics = ["{topic}"]
fields = {{ score = "score" }}
[[model]]
name = "fraud"
windows = [{{ width = "10s", slide = "2s" }}, {{ width = "10h", slide = "10m" }}]
lateness = "2s"
[model.test]
min_events = 10
[limits]
{limits}
"#
    )
}

fn event(model: &str, i: u64) -> String {
    format!(
        r#"{{"model":"{model}","score":0.5,"outcome":{}}}"#,
        i.is_multiple_of(2)
    )
}

/// Sends `n` events of the model now.
fn send(sender: &mut Sender, topic: &str, partition: i32, n: u64) {
    for i in 0..n {
        sender.send_at(topic, partition, now_ms(), event("fraud", i).as_bytes());
    }
}

/// End of the short window, in milliseconds since 1970.
fn end_ms(service: &Service) -> Option<i64> {
    service.window("fraud", "10s")?["end_ms"].as_i64()
}

fn late(service: &Service) -> f64 {
    service.counted("late").expect("an answer")
}

fn observed(service: &Service) -> f64 {
    service.counted("observed").unwrap_or(0.0)
}

fn wait_observed(service: &Service, n: u64) {
    wait_for("the events to be counted", LIMIT, || {
        (observed(service) == n as f64).then_some(())
    });
}

#[test]
fn a_partition_of_records_that_are_not_counted_freezes_no_verdict() {
    let name = "a_partition_of_records_that_are_not_counted_freezes_no_verdict";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-churn-{}", unique());
    broker.create_topics(&[(&topic, 2)]);
    let mut sender = broker.producer();
    let service = Service::start(&config(&broker.bootstrap, &topic, &topic, "", ""));
    service.wait_ready();
    let begun = Instant::now();
    let mut worst_ms = 0;
    while begun.elapsed() < Duration::from_secs(36) {
        send(&mut sender, &topic, 0, 20);
        let second = begun.elapsed().as_secs();
        match second {
            // Of another model, then broken.
            8..22 => sender.send(&topic, 1, event("churn", second).as_bytes()),
            22.. => sender.send(&topic, 1, b"{\"model\":"),
            _ => {}
        }
        sender.flush();
        std::thread::sleep(Duration::from_millis(200));
        if second >= 12 {
            let end_ms = end_ms(&service).expect("a window");
            worst_ms = worst_ms.max(now_ms() - end_ms);
        }
    }
    // The slide, the lateness, and a poll of each.
    assert!(worst_ms < 9_000, "the window stood still: {worst_ms} ms");
    let rejected = service.counted("rejected").expect("an answer");
    assert!(rejected > 50.0, "{rejected}");
    assert_eq!(late(&service), 0.0);
}

#[test]
fn one_record_with_its_clock_ahead_makes_no_other_late() {
    let name = "one_record_with_its_clock_ahead_makes_no_other_late";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-ahead-{}", unique());
    broker.create_topic_of_any_time(&topic, 1);
    let mut sender = broker.producer();
    let mut service = Service::start(&config(&broker.bootstrap, &topic, &topic, "", ""));
    service.wait_ready();
    send(&mut sender, &topic, 0, 500);
    sender.flush();
    wait_observed(&service, 500);
    // Ten years: rejected by name. 58 minutes, which `future_max` allows: counted.
    let ahead_ms = now_ms() + 10 * YEAR_MS;
    sender.send_at(&topic, 0, ahead_ms, event("fraud", 0).as_bytes());
    let ahead_ms = now_ms() + 58 * 60_000;
    sender.send_at(&topic, 0, ahead_ms, event("fraud", 0).as_bytes());
    for _ in 0..50 {
        send(&mut sender, &topic, 0, 20);
        sender.flush();
        std::thread::sleep(Duration::from_millis(100));
    }
    wait_observed(&service, 1_501);
    let why = "reason=\"time_out_of_range\"";
    assert_eq!(service.metric("trueline_records_total", &[why]), 1.0);
    assert_eq!(late(&service), 0.0);
    // And after a restart.
    assert_eq!(service.end("TERM"), Some(0));
    service.start_again();
    send(&mut sender, &topic, 0, 500);
    sender.flush();
    wait_observed(&service, 2_001);
    assert_eq!(late(&service), 0.0);
}

#[test]
fn transactions_after_a_quiet_time_count_live_as_they_do_afterwards() {
    let name = "transactions_after_a_quiet_time_count_live_as_they_do_afterwards";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-txn-{}", unique());
    broker.create_topics(&[(&topic, 2)]);
    let mut senders = [0, 1].map(|p| broker.transactional(&format!("{topic}-{p}")));
    // One window holds all of it, and is judged at every pane.
    let config = |group: &str| {
        let text = config(&broker.bootstrap, group, &topic, "", "");
        text.replace(
            "width = \"10h\", slide = \"10m\"",
            "width = \"2m\", slide = \"2s\"",
        )
    };
    let live = Service::start(&config(&format!("{topic}-live")));
    live.wait_ready();
    let mut sent = 0;
    for _ in 0..3 {
        // Both partitions are idle.
        wait_for("idle partitions", LIMIT, || {
            (live.metric("trueline_partition_idle", &[]) == 2.0).then_some(())
        });
        senders.iter().for_each(Sender::begin);
        for _ in 0..40 {
            for (partition, sender) in (0..).zip(&mut senders) {
                send(sender, &topic, partition, 10);
                sent += 10;
                sender.flush();
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        senders[0].end(true);
        std::thread::sleep(Duration::from_secs(1));
        senders[1].end(true);
    }
    // Some more on both partitions move event time past all of these.
    std::thread::sleep(Duration::from_secs(6));
    senders.iter().for_each(Sender::begin);
    for (partition, sender) in (0..).zip(&mut senders) {
        send(sender, &topic, partition, 10);
        sender.flush();
    }
    senders.iter().for_each(|sender| sender.end(true));
    wait_observed(&live, sent + 20);
    let after = Service::start(&config(&format!("{topic}-after")));
    for service in [&live, &after] {
        wait_observed(service, sent + 20);
        service.wait_for_n("fraud", "2m", sent);
        assert_eq!(late(service), 0.0);
    }
}

#[test]
fn a_transaction_that_stays_open_holds_verdicts_for_a_bounded_time_and_is_named() {
    let name = "a_transaction_that_stays_open_holds_verdicts_for_a_bounded_time_and_is_named";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-hang-{}", unique());
    broker.create_topics(&[(&topic, 2)]);
    let mut good = broker.producer();
    let mut hangs = broker.transactional(&topic);
    let kafka = "open_transaction_max = \"12s\"";
    let stalls = "stalled_after = \"5s\"";
    let service = Service::start(&config(&broker.bootstrap, &topic, &topic, kafka, stalls));
    service.wait_ready();
    let go = |good: &mut Sender| {
        send(good, &topic, 0, 20);
        good.flush();
        std::thread::sleep(Duration::from_millis(100));
    };
    (0..60).for_each(|_| go(&mut good));
    wait_for("a verdict", LIMIT, || end_ms(&service));
    hangs.begin();
    send(&mut hangs, &topic, 1, 5);
    hangs.flush();
    // It holds verdicts, which are withdrawn, and is named.
    let part = format!("partition {topic}/1");
    let said = wait_for("the stall to be named", LIMIT, || {
        go(&mut good);
        let (_, text) = service.get("/ready")?;
        text.contains("stood still").then_some(text)
    });
    assert!(said.contains(&part), "{said}");
    service.wait_for_line(&["WARN", "TruelineWatermarkStalled", "stood still"]);
    let reason = service.window("fraud", "10s").expect("a window")["reason"].clone();
    assert_eq!(reason, "stalled");
    assert!(service.metric("trueline_watermark_held_seconds", &["partition=\"1\""]) >= 5.0);
    assert!(service.metric("trueline_partition_transaction_seconds", &[]) > 0.0);
    // After the bound verdicts go on without it.
    let held_ms = end_ms(&service).expect("a window");
    wait_for("verdicts to go on", LIMIT, || {
        go(&mut good);
        (end_ms(&service)? > held_ms).then_some(())
    });
    let (status, said) = service.get("/ready").expect("an answer");
    assert_eq!(status, 503);
    assert!(
        said.contains(&part) && said.contains("transaction"),
        "{said}"
    );
    // Once it ends, all is well.
    hangs.end(false);
    wait_for("/ready", LIMIT, || {
        go(&mut good);
        service.get("/ready").filter(|(status, _)| *status == 200)
    });
}

#[test]
fn brokers_that_are_away_after_the_start_fail_ready_until_they_answer_again() {
    let name = "brokers_that_are_away_after_the_start_fail_ready_until_they_answer_again";
    let Some(mut broker) = Broker::own(name) else {
        return;
    };
    let topic = format!("trueline-away-{}", unique());
    broker.create_topics(&[(&topic, 2)]);
    let mut sender = broker.producer();
    // The group takes its partitions away meanwhile.
    let kafka = "[kafka.options]\n\"session.timeout.ms\" = \"6000\"\n\"topic.metadata.propagation.max.ms\" = \"0\"";
    let service = Service::start(&config(&broker.bootstrap, &topic, &topic, kafka, ""));
    service.wait_ready();
    (0..2).for_each(|p| send(&mut sender, &topic, p, 500));
    sender.flush();
    wait_observed(&service, 1_000);
    let part = format!("brokers of {topic}");
    let missed = || {
        let (status, said) = service.get("/ready")?;
        (status == 503 && said.contains(&part)).then_some(said)
    };
    assert!(missed().is_none());
    broker.stop();
    let begun = Instant::now();
    let said = wait_for("the brokers to be missed", LIMIT, missed);
    assert!(said.contains("no broker has answered"), "{said}");
    // The session is over for long, and there is no other process.
    assert!(!said.contains("group of"), "{said}");
    assert_eq!(service.metric("trueline_group_rivals", &[]), 0.0);
    assert!(
        begun.elapsed() > Duration::from_secs(25),
        "{:?}",
        begun.elapsed()
    );
    let label = format!("part=\"{part}\"");
    assert_eq!(service.metric("trueline_ready", &[&label]), 0.0);
    let (status, _) = service.get("/live").expect("an answer");
    assert_eq!(status, 200);
    std::thread::sleep(Duration::from_secs(10));
    assert!(missed().is_some());
    broker.start();
    wait_for("/ready", LIMIT, || {
        service.get("/ready").filter(|(status, _)| *status == 200)
    });
    (0..2).for_each(|p| send(&mut sender, &topic, p, 500));
    sender.flush();
    wait_observed(&service, 2_000);
    assert_eq!(late(&service), 0.0);

    // The leader has changed, so the client takes the metadata of a new topic for old.
    drop(sender);
    broker.delete_topic(&topic);
    // The client must see that it is gone.
    std::thread::sleep(Duration::from_secs(5));
    broker.create_topics(&[(&topic, 2)]);
    let parts = [0, 1].map(|p| format!("partition {topic}/{p}"));
    let said = service.wait_not_ready(&[&parts[0], &parts[1], "on_truncated"]);
    assert!(said.contains("was read up to 1000"), "{said}");
}

/// The connections to a broker that is frozen stay up.
#[test]
fn a_broker_that_is_frozen_is_missed_as_soon_as_one_that_is_gone() {
    let name = "a_broker_that_is_frozen_is_missed_as_soon_as_one_that_is_gone";
    let Some(broker) = Broker::own(name) else {
        return;
    };
    let topic = format!("trueline-frozen-{}", unique());
    broker.create_topics(&[(&topic, 2)]);
    let mut sender = broker.producer();
    let service = Service::start(&config(&broker.bootstrap, &topic, &topic, "", ""));
    service.wait_ready();
    (0..2).for_each(|p| send(&mut sender, &topic, p, 500));
    sender.flush();
    wait_observed(&service, 1_000);
    broker.signal("STOP");
    let begun = Instant::now();
    let part = format!("brokers of {topic}");
    let said = wait_for("the broker to be missed", LIMIT, || {
        let (status, said) = service.get("/ready")?;
        (status == 503 && said.contains(&part)).then_some(said)
    });
    let after = begun.elapsed().as_secs();
    broker.signal("CONT");
    assert!(said.contains("no broker has answered for 3"), "{said}");
    assert!((29..=40).contains(&after), "{after} s");
    service.wait_ready();
}

#[test]
fn a_downtime_longer_than_the_expiry_takes_no_stream_away() {
    let name = "a_downtime_longer_than_the_expiry_takes_no_stream_away";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-down-{}", unique());
    broker.create_topics(&[(&topic, 2)]);
    let mut sender = broker.producer();
    let expires = "stream_expiry = \"10s\"";
    // The group gives the partitions back after the session.
    let kafka = "[kafka.options]\n\"session.timeout.ms\" = \"15000\"";
    let mut service = Service::start(&config(&broker.bootstrap, &topic, &topic, kafka, expires));
    service.wait_ready();
    (0..2).for_each(|p| send(&mut sender, &topic, p, 500));
    sender.flush();
    wait_observed(&service, 1_000);
    // A snapshot is written each second.
    std::thread::sleep(Duration::from_secs(3));
    service.end("KILL");
    (0..2).for_each(|p| send(&mut sender, &topic, p, 500));
    sender.flush();
    std::thread::sleep(Duration::from_millis(10_500));
    service.start_again();
    wait_observed(&service, 2_000);
    assert_eq!(service.metric("trueline_streams_expired_total", &[]), 0.0);
    let streams = service.streams().expect("streams");
    assert_eq!(streams.len(), 1, "{streams:?}");
}

#[test]
fn a_step_of_the_wall_clock_changes_no_state() {
    let name = "a_step_of_the_wall_clock_changes_no_state";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let Some(clock) = SteppingClock::new() else {
        return skip(name, NO_COMPILER);
    };
    let topic = format!("trueline-step-{}", unique());
    broker.create_topics(&[(&topic, 1)]);
    let mut sender = broker.producer();
    let text = config(
        &broker.bootstrap,
        &topic,
        &topic,
        "",
        "stream_expiry = \"1d\"",
    );
    let service = Service::start_with(&text, clock.env());
    service.wait_ready();
    let mut sent = 0;
    // Ten years forth, right again, ten years back, right again.
    for step_s in [0, YEAR_MS / 100, 0, -YEAR_MS / 100, 0] {
        clock.step(step_s);
        if step_s > 0 {
            // It has the clock that steps: a reload is dated by it.
            service.signal("HUP");
            wait_for("a reload ten years ahead", LIMIT, || {
                let loaded_s = service.metric("trueline_config_loaded_timestamp_seconds", &[]);
                let ahead_s = loaded_s - (now_ms() / 1000) as f64;
                ((ahead_s - step_s as f64).abs() < 120.0).then_some(())
            });
        }
        for _ in 0..30 {
            send(&mut sender, &topic, 0, 20);
            sent += 20;
            sender.flush();
            std::thread::sleep(Duration::from_millis(100));
        }
        wait_observed(&service, sent);
        let window = service.window("fraud", "10s").expect("the stream is there");
        assert!(window["n"].as_u64() > Some(0), "{step_s}: {window}");
        assert_ne!(window["reason"], "stale", "{step_s}");
    }
    assert_eq!(service.metric("trueline_streams_expired_total", &[]), 0.0);
    assert_eq!(late(&service), 0.0);
    let rejected = service.counted("rejected").expect("an answer");
    assert_eq!(rejected, 0.0);
}
