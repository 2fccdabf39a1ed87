//! A process that is frozen for longer than its session, ended soon after its start, reloaded a
//! hundred times, and short of descriptors, on a real Kafka: nothing is lost and nothing counts
//! twice.

use std::time::Duration;

use crate::support::broker::{Broker, unique};
use crate::support::late::now_ms;
use crate::support::sender::Sender;
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;

/// One model `m` over topic `TOPIC`, a snapshot each second.
fn config(broker: &Broker, topic: &str) -> String {
    format!(
        r#"
version = 1
[kafka]
brokers = "{}"
group = "{topic}"
[kafka.options]
"session.timeout.ms" = "6000"
[[source]]
topics = ["{topic}"]
fields = {{ score = "score", time = "time_ms" }}
[[model]]
name = "m"
windows = [{{ width = "10h", slide = "10m" }}]
lateness = "30m"
"#,
        broker.bootstrap
    )
}

fn event(i: u64, time_ms: i64) -> String {
    let y = i % 2;
    format!(r#"{{"model":"m","score":0.5,"outcome":{y},"time_ms":{time_ms}}}"#)
}

fn send(sender: &mut Sender, topic: &str, partition: i32, n: u64) {
    for i in 0..n {
        sender.send(topic, partition, event(i, now_ms()).as_bytes());
    }
    sender.flush();
}

fn wait_observed(service: &Service, n: u64) {
    wait_for("the events to be counted", LIMIT, || {
        (service.counted("observed") == Some(n as f64)).then_some(())
    });
}

#[test]
fn a_process_that_is_frozen_beyond_its_session_counts_everything_once() {
    let name = "a_process_that_is_frozen_beyond_its_session_counts_everything_once";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-frozen-{}", unique());
    broker.create_topics(&[(&topic, 2)]);
    let mut sender = broker.producer();
    let mut service = Service::start(&config(&broker, &topic));
    service.wait_ready();
    for _ in 0..2 {
        send(&mut sender, &topic, 0, 500);
        service.signal("STOP");
        send(&mut sender, &topic, 1, 500);
        std::thread::sleep(Duration::from_secs(8));
        service.signal("CONT");
    }
    wait_observed(&service, 2000);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(service.counted("observed"), Some(2000.0));
    assert_eq!(service.counted("late"), Some(0.0));
    service.wait_ready();
    assert_eq!(service.end("TERM"), Some(0));
}

/// Entries of a directory of the process.
fn entries(service: &Service, of: &str) -> usize {
    let path = format!("/proc/{}/{of}", service.id());
    std::fs::read_dir(path).expect("it runs").count()
}

/// Reloads that its log tells of: carried out, and refused.
fn reloads(service: &Service) -> (usize, usize) {
    let told = |words| service.lines_with(words);
    (
        told("configuration reloaded"),
        told("configuration not reloaded"),
    )
}

#[test]
fn ends_signals_and_few_descriptors_at_bad_moments_lose_nothing() {
    let name = "ends_signals_and_few_descriptors_at_bad_moments_lose_nothing";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-moments-{}", unique());
    broker.create_topics(&[(&topic, 2)]);
    let mut sender = broker.producer();
    let mut service = Service::start(&config(&broker, &topic));
    for ms in [400, 200, 100] {
        send(&mut sender, &topic, 0, 100);
        std::thread::sleep(Duration::from_millis(ms));
        assert_eq!(service.end("TERM"), Some(0), "{ms} ms after its start");
        service.start_again();
    }
    wait_observed(&service, 300);
    service.wait_ready();
    let held = |service: &Service| (entries(service, "fd"), entries(service, "task"));
    let before = held(&service);
    let webhook = "[[sink]]\nname = \"s\"\nkind = \"webhook\"\nurl = \"http://127.0.0.1:9/\"\n";
    for n in 0..100 {
        // It comes and goes, and every fifth file is unsound.
        service.rewrite(|text| match n % 5 {
            4 => text.replace("version = 1", "version = 0"),
            _ if text.contains(webhook) => text.replace(webhook, ""),
            _ => text.replace("version = 0", "version = 1") + webhook,
        });
        let before = reloads(&service);
        service.signal("HUP");
        std::thread::sleep(Duration::from_millis(20));
        // One of each kind is waited for now and then, so that some are carried out.
        match n % 10 {
            7 => wait_for("a reload", LIMIT, || {
                (reloads(&service).0 > before.0).then_some(())
            }),
            9 => wait_for("a refused reload", LIMIT, || {
                (reloads(&service).1 > before.1).then_some(())
            }),
            _ => {}
        }
        if n % 5 == 4 {
            service.rewrite(|text| {
                text.replace("version = 0", "version = 1")
                    .replace(webhook, "")
            });
        }
    }
    send(&mut sender, &topic, 1, 100);
    wait_observed(&service, 400);
    let grown = || {
        let now = held(&service);
        (now.0 <= before.0 + 8 && now.1 <= before.1 + 4).then_some(())
    };
    wait_for("descriptors and threads as before", LIMIT, grown);
    assert_eq!(service.end("TERM"), Some(0));

    // So few descriptors that idle connections take all of them.
    service.start_again();
    service.wait_ready();
    service.limit_descriptors(64);
    let idle: Vec<_> = (0..100).map(|_| service.connect()).collect();
    send(&mut sender, &topic, 0, 100);
    std::thread::sleep(Duration::from_secs(2));
    let open = entries(&service, "fd");
    assert!(open >= 60, "{open} descriptors of 64");
    drop(idle);
    wait_observed(&service, 500);
    assert_eq!(service.end("TERM"), Some(0));
    service.start_again();
    wait_observed(&service, 500);
    assert_eq!(service.end("TERM"), Some(0));
}
