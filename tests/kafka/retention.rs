//! Records and topics that are gone, on a real Kafka: what retention deleted before it was read is
//! counted and told, and a topic that was created again is never taken for the one before.

use crate::support;
use std::time::{Duration, Instant};

use crate::support::broker::{Broker, unique};
use crate::support::sender::Sender;
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;

const EACH: u64 = 1000;

fn config(brokers: &str, topic: &str, also: &str) -> String {
    format!(
        r#"
version = 1
[kafka]
brokers = "{brokers}"
group = "{topic}"
statistics_interval = "1s"
[kafka.options]
"session.timeout.ms" = "6000"
"topic.metadata.refresh.interval.ms" = "1000"
[[source]]
topics = ["{topic}"]
fields = {{ score = "score", time = "time_ms" }}
{also}
[[model]]
name = "*"
windows = [{{ width = "10h", slide = "10m" }}]
lateness = "30m"
[model.alert]
window_alerts = true
stale_after = "7d"
"#
    )
}

/// Sends so many events to each of two partitions.
fn send(sender: &mut Sender, topic: &str, n: u64) {
    let now = support::late::now_ms() - support::late::MINUTE;
    for i in 0..n {
        for partition in [0, 1] {
            let time_ms = now + i as i64;
            let text = format!(
                r#"{{"model":"m","score":0.5,"outcome":{},"time_ms":{time_ms}}}"#,
                i % 2
            );
            sender.send(topic, partition, text.as_bytes());
        }
    }
    sender.flush();
}

fn wait_read(service: &Service, n: u64) {
    wait_for("the records to be read", LIMIT, || {
        (service.counted("records")? == n as f64).then_some(())
    });
}

fn lost(service: &Service) -> f64 {
    service.metric("trueline_records_lost_total", &[])
}

#[test]
fn records_that_were_deleted_before_they_were_read_are_counted_and_the_rest_is_read() {
    let name = "records_that_were_deleted_before_they_were_read_are_counted_and_the_rest_is_read";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-gone-{}", unique());
    broker.create_topics(&[(&topic, 2)]);
    let mut sender = broker.producer();
    let mut service = Service::start(&config(&broker.bootstrap, &topic, ""));
    send(&mut sender, &topic, EACH);
    wait_read(&service, 2 * EACH);
    assert_eq!(lost(&service), 0.0);
    assert_eq!(service.end("TERM"), Some(0));

    // While it is down, 300 that it has not read go from one partition, and from the other none
    // that it has not.
    send(&mut sender, &topic, EACH);
    broker.delete_records(&topic, 0, EACH as i64 + 300);
    broker.delete_records(&topic, 1, EACH as i64 - 500);
    service.start_again();
    wait_read(&service, 4 * EACH - 300);
    assert_eq!(lost(&service), 300.0);
    service.wait_for_line(&["ERROR", "deleted by the broker", r#""from":1000,"to":1300"#]);
    service.wait_ready();

    // And it goes on, and so does the next.
    send(&mut sender, &topic, 10);
    wait_read(&service, 4 * EACH - 300 + 20);
    // Snapshots are taken every second; one that was killed before would find the same gap again.
    std::thread::sleep(Duration::from_secs(4));
    service.end("KILL");
    send(&mut sender, &topic, 10);
    service.start_again();
    wait_read(&service, 4 * EACH - 300 + 40);
    assert_eq!(lost(&service), 0.0, "counted once");
    assert_eq!(service.end("TERM"), Some(0));

    // All that it has not read goes, and no record comes after it to say so.
    let read = 4 * EACH - 300 + 40;
    send(&mut sender, &topic, 50);
    broker.delete_records(&topic, 0, 2 * EACH as i64 + 20 + 50);
    service.start_again();
    wait_read(&service, read + 50);
    wait_for("the loss", LIMIT, || (lost(&service) == 50.0).then_some(()));
    service.wait_ready();
    assert_eq!(service.end("TERM"), Some(0));
    service.start_again();
    service.wait_ready();
    send(&mut sender, &topic, 10);
    wait_read(&service, read + 50 + 20);
    assert_eq!(lost(&service), 0.0, "counted once");
    assert_eq!(service.end("TERM"), Some(0));
}

/// A log may end in control records and in those of aborted transactions, which are never handed
/// over.
#[test]
fn a_partition_that_ends_in_transactions_is_read_to_its_end_and_loses_nothing_with_them() {
    let name =
        "a_partition_that_ends_in_transactions_is_read_to_its_end_and_loses_nothing_with_them";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    for state in ["", "topic"] {
        let topic = format!("trueline-markers-{}", unique());
        broker.create_topics(&[(&topic, 2)]);
        let state = match state {
            "" => String::new(),
            _ => format!(
                "[http]\nlisten = \"LISTEN\"\n[state]\ndirectory = \"STATE\"\ntopic = \"{topic}-state\"\n\
                 interval = \"1s\""
            ),
        };
        let text = config(&broker.bootstrap, &topic, "");
        let mut service = Service::start(&format!("{text}{state}\n"));
        let mut sender = broker.transactional(&topic);
        for commit in [true, false, true, false] {
            sender.begin();
            send(&mut sender, &topic, 20);
            sender.end(commit);
        }
        wait_read(&service, 80);
        // 80 records and 4 markers in each.
        wait_for("all to be read", LIMIT, || {
            let idle = service.metric("trueline_partition_idle", &[]);
            let lag = service.metric("trueline_partition_lag_records", &[]);
            let seconds = service.metric("trueline_partition_lag_seconds", &[]);
            (idle == 2.0 && lag == 0.0 && seconds == 0.0).then_some(())
        });
        if !state.is_empty() {
            // What lies behind the last record holds no judge either.
            let judge = "verdicts = \"all\"\nmissing_after = \"4s\"";
            let worker = "verdicts = \"none\"";
            assert_eq!(service.end("TERM"), Some(0));
            service.rewrite(|text| format!("{text}{worker}\n"));
            service.start_again();
            let mut judge = Service::start(&format!("{text}{state}\n{judge}\n"));
            judge.wait_ready();
            sender.begin();
            send(&mut sender, &topic, 1);
            sender.end(false);
            std::thread::sleep(Duration::from_secs(8));
            let (status, said) = judge.get("/ready").expect("an answer");
            assert_eq!(status, 200, "{said}");
            assert_eq!(judge.end("TERM"), Some(0));
        }
        assert_eq!(service.end("TERM"), Some(0));
        let end = if state.is_empty() { 84 } else { 86 };
        (0..2).for_each(|partition| broker.delete_records(&topic, partition, end));
        service.start_again();
        service.wait_ready();
        let before = service.counted("records").expect("an answer") as u64;
        sender.begin();
        send(&mut sender, &topic, 10);
        sender.end(true);
        wait_read(&service, before + 20);
        assert_eq!(lost(&service), 0.0);
        assert_eq!(service.end("TERM"), Some(0));
    }
}

#[test]
fn a_recreated_topic_is_not_read_until_an_offset_is_given() {
    let name = "a_recreated_topic_is_not_read_until_an_offset_is_given";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-anew-{}", unique());
    broker.create_topics(&[(&topic, 2)]);
    let mut sender = broker.producer();
    let mut service = Service::start(&config(&broker.bootstrap, &topic, ""));
    send(&mut sender, &topic, EACH);
    wait_read(&service, 2 * EACH);
    service.wait_ready();
    // Under its eyes: the topic goes and comes back, with less in it.
    drop(sender);
    broker.delete_topic(&topic);
    std::thread::sleep(Duration::from_secs(2));
    broker.create_topics(&[(&topic, 2)]);
    let mut sender = broker.producer();
    send(&mut sender, &topic, 100);
    let said = service.wait_not_ready(&[&format!("partition {topic}/0"), "on_truncated"]);
    assert!(said.contains("was read up to 1000"), "{said}");
    wait_for("both partitions to be suspended", LIMIT, || {
        let suspended = service.scrape()?.sum("trueline_partition_suspended", &[]);
        (suspended == 2.0).then_some(())
    });
    wait_read(&service, 2 * EACH);

    // A restart says the same.
    assert_eq!(service.end("TERM"), Some(0));
    service.start_again();
    service.wait_not_ready(&[&format!("partition {topic}/1"), "on_truncated"]);
    assert_eq!(service.end("TERM"), Some(0));

    // Now it is told where to go on, and is killed while it does.
    service.rewrite(|text| text.replace("fields = {", "on_truncated = \"earliest\"\nfields = {"));
    service.start_again();
    wait_read(&service, 2 * EACH + 200);
    service.wait_ready();
    service.end("KILL");
    service.start_again();
    send(&mut sender, &topic, 50);
    wait_read(&service, 2 * EACH + 300);
    service.wait_ready();
    assert_eq!(service.metric("trueline_partition_suspended", &[]), 0.0);
    assert_eq!(service.end("TERM"), Some(0));
}

/// Once the new log is longer than what was read of the old one, only the state tells that it is
/// another: after an orderly end, after a kill, and in a process that takes the partition over.
#[test]
fn a_recreated_topic_that_has_outgrown_the_old_one_stays_unread_wherever_it_goes() {
    let name = "a_recreated_topic_that_has_outgrown_the_old_one_stays_unread_wherever_it_goes";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    for in_topic in [false, true] {
        let topic = format!("trueline-outgrown-{}", unique());
        broker.create_topics(&[(&topic, 2)]);
        let mut sender = broker.producer();
        let mut text = config(&broker.bootstrap, &topic, "");
        if in_topic {
            text += &format!(
                "[http]\nlisten = \"LISTEN\"\n[state]\ndirectory = \"STATE\"\ntopic = \"{topic}-state\"\n\
                 interval = \"1s\"\n"
            );
        }
        let mut service = Service::start(&text);
        send(&mut sender, &topic, EACH);
        wait_read(&service, 2 * EACH);
        service.wait_ready();
        // The positions are stored every second. The group takes the partitions away meanwhile.
        std::thread::sleep(Duration::from_secs(3));
        drop(sender);
        let mut sender = recreate(&broker, &topic);
        send(&mut sender, &topic, 100);
        let parts = [0, 1].map(|p| format!("partition {topic}/{p}"));
        let unread = [&parts[0], &parts[1], "ended at offset", "read up to 1000"];
        service.wait_not_ready(&unread);
        send(&mut sender, &topic, 3 * EACH);
        // Processes that share a topic each count what they read themselves.
        let before = if in_topic { 0 } else { 2 * EACH };
        let stays_unread = |service: &Service| {
            service.wait_not_ready(&unread);
            std::thread::sleep(Duration::from_secs(2));
            assert_eq!(service.counted("records"), Some(before as f64));
        };

        for signal in ["KILL", "TERM"] {
            let code = service.end(signal);
            assert!(signal == "KILL" || code == Some(0), "{code:?}");
            service.start_again();
            stays_unread(&service);
        }
        if in_topic {
            // Another process takes one partition, then both.
            let mut other = Service::start(&text);
            other.wait_not_ready(&["partition ", "read up to 1000"]);
            assert_eq!(service.end("KILL"), None);
            stays_unread(&other);
            assert_eq!(other.end("TERM"), Some(0));
        } else {
            assert_eq!(service.end("TERM"), Some(0));
        }

        // Nothing of the new one is lost once it is told where to go on.
        service
            .rewrite(|text| text.replace("fields = {", "on_truncated = \"earliest\"\nfields = {"));
        service.start_again();
        let all = 2 * (100 + 3 * EACH);
        wait_read(&service, before + all);
        service.wait_ready();
        assert_eq!(lost(&service), 0.0);
        // And only once.
        assert_eq!(service.end("TERM"), Some(0));
        service.rewrite(|text| text.replace("on_truncated = \"earliest\"\n", ""));
        service.start_again();
        send(&mut sender, &topic, 10);
        let before = if in_topic { 0 } else { before + all };
        wait_read(&service, before + 20);
        service.wait_ready();
        assert_eq!(service.end("TERM"), Some(0));
    }
}

/// Deletes a topic, and makes it again with partitions 0 and 1.
fn recreate(broker: &Broker, topic: &str) -> Sender {
    broker.delete_topic(topic);
    std::thread::sleep(Duration::from_secs(2));
    broker.create_topics(&[(topic, 2)]);
    broker.producer()
}

/// Sends on for longer than `stalled_after`: partition 2 holds nothing.
fn goes_on(service: &Service, sender: &mut Sender, topic: &str) {
    let held = || service.metric("trueline_watermark_held_seconds", &["partition=\"2\""]);
    let moment = Duration::from_secs(5);
    wait_for("nothing to be held", moment, || {
        (held() == 0.0).then_some(())
    });
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(6) {
        send(sender, topic, 1);
        assert_eq!(held(), 0.0);
        std::thread::sleep(Duration::from_millis(100));
    }
    service.wait_ready();
}

const STALLS: &str = "[limits]\nstalled_after = \"5s\"\n";

#[test]
fn nothing_waits_for_partitions_that_a_recreated_topic_no_longer_has() {
    let name = "nothing_waits_for_partitions_that_a_recreated_topic_no_longer_has";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-shrunk-{}", unique());
    broker.create_topics(&[(&topic, 3)]);
    let mut sender = broker.producer();
    let text = config(&broker.bootstrap, &topic, "on_truncated = \"earliest\"") + STALLS;
    let mut service = Service::start(&text);
    send(&mut sender, &topic, EACH);
    wait_read(&service, 2 * EACH);
    service.wait_ready();
    drop(sender);
    let mut sender = recreate(&broker, &topic);
    send(&mut sender, &topic, 100);
    service.wait_for_line(&["ERROR", "partition no longer exists", r#""partition":2"#]);
    wait_read(&service, 2 * EACH + 200);
    goes_on(&service, &mut sender, &topic);
    assert_eq!(service.end("TERM"), Some(0));
}

/// The group gives a process what the one before it under the same `instance` had.
#[test]
fn a_partition_that_an_instance_had_and_that_no_longer_exists_holds_nothing() {
    let name = "a_partition_that_an_instance_had_and_that_no_longer_exists_holds_nothing";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-instance-{}", unique());
    broker.create_topics(&[(&topic, 3)]);
    let mut sender = broker.producer();
    let text = config(&broker.bootstrap, &topic, "on_truncated = \"earliest\"")
        .replace("[kafka.options]", "instance = \"a\"\n[kafka.options]")
        .replace("\"6000\"", "\"40000\"")
        + STALLS;
    let mut service = Service::start(&text);
    send(&mut sender, &topic, EACH);
    wait_read(&service, 2 * EACH);
    service.wait_ready();
    assert_eq!(service.end("TERM"), Some(0));
    drop(sender);
    let mut sender = recreate(&broker, &topic);
    service.start_again();
    service.wait_for_line(&["ERROR", "partition does not exist", r#""partition":2"#]);
    send(&mut sender, &topic, 100);
    wait_read(&service, 2 * EACH + 200);
    goes_on(&service, &mut sender, &topic);
    let failed = service.lines_with("COMMITFAIL");
    goes_on(&service, &mut sender, &topic);
    assert_eq!(service.lines_with("COMMITFAIL"), failed);
    assert_eq!(service.end("TERM"), Some(0));
}
