//! Where reading starts, on a real Kafka: "latest" means one offset for good, partitions that are
//! added are read whole, and lost state is never passed over in silence.

use crate::support;
use std::process::Command;
use std::time::Duration;

use crate::support::broker::{Broker, unique};
use crate::support::sender::Sender;
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;
use trueline::report::moment::rfc3339;

const EACH: u64 = 1000;

/// A service that takes a checkpoint every `interval` and reads from the end.
fn config(brokers: &str, topic: &str, source: &str, state: &str) -> String {
    format!(
        r#"
version = 1
[kafka]
brokers = "{brokers}"
group = "{topic}"
[kafka.options]
"session.timeout.ms" = "6000"
"topic.metadata.refresh.interval.ms" = "2000"
[[source]]
topics = ["{topic}"]
fields = {{ score = "score", time = "time_ms" }}
{source}
[[model]]
name = "*"
windows = [{{ width = "10h", slide = "10m" }}]
lateness = "30m"
[http]
listen = "LISTEN"
[state]
directory = "STATE"
{state}
"#
    )
}

/// Sends so many events to a partition.
fn send(sender: &mut Sender, topic: &str, partition: i32, n: u64) {
    let now = support::late::now_ms() - support::late::MINUTE;
    for i in 0..n {
        let (time_ms, y) = (now + i as i64, i % 2);
        let text = format!(r#"{{"model":"m","score":0.5,"outcome":{y},"time_ms":{time_ms}}}"#);
        sender.send(topic, partition, text.as_bytes());
    }
    sender.flush();
}

fn read(service: &Service) -> Option<f64> {
    service.counted("records")
}

/// Waits until so many records were read, and a little longer for those that should not be.
fn wait_read(service: &Service, n: u64) {
    wait_for(&format!("{n} records to be read"), LIMIT, || {
        (read(service)? >= n as f64).then_some(())
    });
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(read(service), Some(n as f64));
}

/// The whole life of a source that starts at the end, with its state in the directory or in a
/// topic.
///
/// A process with a state topic counts what it has read itself, any other what all before it read
/// too.
fn latest_means_one_offset(broker: &Broker, state: &str) {
    let before = |n: u64| if state.is_empty() { n } else { 0 };
    let topic = format!("trueline-latest-{}", unique());
    broker.create_topics(&[(&topic, 2)]);
    let mut sender = broker.producer();
    send(&mut sender, &topic, 0, 100);
    let text = state.replace("TOPIC", &format!("{topic}-state"));
    let latest = "start = \"latest\"";
    let mut service = Service::start(&config(&broker.bootstrap, &topic, latest, &text));
    service.wait_ready();

    // Killed before the first snapshot that is taken by the clock, one partition still empty.
    send(&mut sender, &topic, 0, EACH);
    wait_read(&service, EACH);
    service.end("KILL");
    send(&mut sender, &topic, 0, 200);
    send(&mut sender, &topic, 1, 300);
    service.start_again();
    wait_read(&service, EACH + 500);

    // An orderly end.
    assert_eq!(service.end("TERM"), Some(0));
    send(&mut sender, &topic, 1, 50);
    service.start_again();
    wait_read(&service, before(EACH + 500) + 50);

    // A partition that is added, and has records before anybody knows of it.
    broker.add_partitions(&topic, 3);
    let mut sender = broker.producer();
    send(&mut sender, &topic, 2, 70);
    wait_read(&service, before(EACH + 500) + 120);

    // The same while nobody reads.
    assert_eq!(service.end("TERM"), Some(0));
    broker.add_partitions(&topic, 4);
    let mut sender = broker.producer();
    send(&mut sender, &topic, 3, 80);
    service.start_again();
    wait_read(&service, before(EACH + 620) + 80);
    assert_eq!(service.end("TERM"), Some(0));
}

#[test]
fn latest_means_one_offset_with_state_in_the_directory() {
    let name = "latest_means_one_offset_with_state_in_the_directory";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    latest_means_one_offset(&broker, "");
}

#[test]
fn latest_means_one_offset_with_state_in_a_topic() {
    let name = "latest_means_one_offset_with_state_in_a_topic";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    latest_means_one_offset(&broker, "topic = \"TOPIC\"");
}

#[test]
fn partitions_that_are_added_are_read_before_their_records_are_late() {
    let name = "partitions_that_are_added_are_read_before_their_records_are_late";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-added-{}", unique());
    broker.create_topics(&[(&topic, 1)]);
    let text = config(&broker.bootstrap, &topic, "", "")
        .replace("\"topic.metadata.refresh.interval.ms\" = \"2000\"\n", "")
        .replace("{ width = \"10h\", slide = \"10m\" }", "\"6s\"")
        .replace("lateness = \"30m\"\n", "");
    let service = Service::start(&text);
    service.wait_ready();

    let mut sent = 0;
    let mut send_now = |sender: &mut Sender, partition: i32| {
        let time_ms = support::late::now_ms();
        let text = format!(r#"{{"model":"m","score":0.5,"outcome":1,"time_ms":{time_ms}}}"#);
        sender.send(&topic, partition, text.as_bytes());
        sender.flush();
        sent += 1;
    };
    let mut sender = broker.producer();
    wait_for("a window", LIMIT, || {
        send_now(&mut sender, 0);
        service.window("m", "6s")?["end_ms"].as_i64()
    });
    broker.add_partitions(&topic, 2);
    let mut sender = broker.producer();
    wait_for("the partition to be read", LIMIT, || {
        send_now(&mut sender, 0);
        send_now(&mut sender, 1);
        let added = ["partition=\"1\""];
        (service
            .scrape()?
            .sum("trueline_partition_position_offset", &added)
            > 0.0)
            .then_some(())
    });
    wait_read(&service, sent);
    assert_eq!(service.counted("late"), Some(0.0));
}

#[test]
fn a_duration_back_starts_at_the_first_record_that_is_so_young() {
    let name = "a_duration_back_starts_at_the_first_record_that_is_so_young";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-back-{}", unique());
    broker.create_topics(&[(&topic, 1)]);
    let mut sender = broker.producer();
    let now = support::late::now_ms();
    for age_ms in [7_200_000, 3_700_000, 3_500_000, 60_000] {
        let text = format!(
            r#"{{"model":"m","score":0.5,"outcome":1,"time_ms":{}}}"#,
            now - age_ms
        );
        sender.send_at(&topic, 0, now - age_ms, text.as_bytes());
    }
    sender.flush();
    let back = "start = \"1h\"";
    let mut service = Service::start(&config(&broker.bootstrap, &topic, back, ""));
    wait_read(&service, 2);
    assert_eq!(service.end("TERM"), Some(0));
}

#[test]
fn lost_state_stops_by_name_until_a_setting_says_where_to_start() {
    let name = "lost_state_stops_by_name_until_a_setting_says_where_to_start";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-lost-{}", unique());
    broker.create_topics(&[(&topic, 2)]);
    let mut sender = broker.producer();
    send(&mut sender, &topic, 0, EACH);
    send(&mut sender, &topic, 1, EACH);
    let mut service = Service::start(&config(&broker.bootstrap, &topic, "", ""));
    wait_read(&service, 2 * EACH);
    assert_eq!(service.end("TERM"), Some(0));
    std::fs::remove_dir_all(service.state()).expect("a state directory");
    send(&mut sender, &topic, 0, 10);

    service.start_again();
    let said = service.wait_not_ready(&["on_missing_state", &format!("partition {topic}/0")]);
    assert!(said.contains("read it up to offset 1000"), "{said}");
    assert_eq!(read(&service), Some(0.0));
    assert_eq!(service.end("TERM"), Some(0));

    let also = |text: String, value: &str| {
        text.replace(
            "fields = {",
            &format!("on_missing_state = \"{value}\"\nfields = {{"),
        )
    };
    service.rewrite(|text| also(text, "committed"));
    service.start_again();
    wait_read(&service, 10);
    service.wait_for_line(&["WARN", "sums are missing", r#""read":1000"#]);
    assert_eq!(service.end("TERM"), Some(0));

    std::fs::remove_dir_all(service.state()).expect("a state directory");
    service.rewrite(|text| text.replace("\"committed\"", "\"earliest\""));
    service.start_again();
    wait_read(&service, 2 * EACH + 10);
    service.wait_ready();
    assert_eq!(service.end("TERM"), Some(0));
    // With its state it continues, whatever the setting says.
    send(&mut sender, &topic, 1, 5);
    service.start_again();
    wait_read(&service, 2 * EACH + 15);
    assert_eq!(service.end("TERM"), Some(0));
}

/// The folders of a state directory to which a state was moved.
fn set_aside(service: &Service) -> usize {
    let files = std::fs::read_dir(service.state()).expect("a state directory");
    let names = files.map(|f| f.expect("an entry").file_name());
    names
        .filter(|name| name.to_string_lossy().starts_with("set-aside-"))
        .count()
}

/// `trueline state reset`: its exit code and what it said.
fn reset(service: &Service) -> (Option<i32>, String) {
    let reset = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args(["state", "reset"])
        .arg(service.state())
        .output()
        .expect("trueline starts");
    let said = String::from_utf8_lossy(&reset.stderr).into_owned();
    (reset.status.code(), said)
}

#[test]
fn starting_over_sets_the_state_aside_and_reads_again_from_the_place_that_is_named() {
    let name = "starting_over_sets_the_state_aside_and_reads_again_from_the_place_that_is_named";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-over-{}", unique());
    broker.create_topics(&[(&topic, 2)]);
    let mut sender = broker.producer();
    send(&mut sender, &topic, 0, EACH);
    std::thread::sleep(Duration::from_secs(2));
    let between = support::late::now_ms();
    std::thread::sleep(Duration::from_secs(1));
    send(&mut sender, &topic, 1, 300);
    let mut service = Service::start(&config(&broker.bootstrap, &topic, "", ""));
    wait_read(&service, EACH + 300);
    assert_eq!(service.end("TERM"), Some(0));

    // What was read is read once more, and only once in what is kept.
    service.start_again_with(&["--from", "earliest"]);
    wait_read(&service, EACH + 300);
    service.wait_ready();
    assert_eq!(service.end("TERM"), Some(0));
    assert_eq!(set_aside(&service), 1);
    service.start_again();
    wait_read(&service, EACH + 300);
    assert_eq!(service.end("TERM"), Some(0));

    // By the time of the records.
    service.start_again_with(&["--from", &rfc3339(between)]);
    wait_read(&service, 300);
    assert_eq!(service.end("TERM"), Some(0));
    assert_eq!(set_aside(&service), 2);

    // Set aside without a start: the next one asks where to read.
    let (code, said) = reset(&service);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("trueline run --from START"), "{said}");
    let (code, said) = reset(&service);
    assert_eq!(code, Some(66), "{said}");
    assert_eq!(set_aside(&service), 3);
    service.start_again();
    service.wait_not_ready(&["on_missing_state"]);
    let (code, said) = reset(&service);
    assert_eq!(code, Some(69), "{said}");
    assert_eq!(service.end("TERM"), Some(0));
    service.start_again_with(&["--from", "1h"]);
    wait_read(&service, EACH + 300);
    assert_eq!(service.end("TERM"), Some(0));
}

#[test]
fn a_state_directory_that_is_deleted_fails_readiness_and_keeps_others_out() {
    let name = "a_state_directory_that_is_deleted_fails_readiness_and_keeps_others_out";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-deleted-{}", unique());
    broker.create_topics(&[(&topic, 1)]);
    let mut sender = broker.producer();
    send(&mut sender, &topic, 0, EACH);
    let every_second = "interval = \"1s\"";
    let mut service = Service::start(&config(&broker.bootstrap, &topic, "", every_second));
    wait_read(&service, EACH);
    service.wait_ready();
    // The snapshot of the next second holds them, and its offsets are committed.
    std::thread::sleep(Duration::from_secs(4));
    std::fs::remove_dir_all(service.state()).expect("a state directory");
    service.wait_not_ready(&["was deleted or replaced"]);
    let second = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args(["run", "--listen", "127.0.0.1:0", "--config"])
        .arg(service.config())
        .output()
        .expect("trueline starts");
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    let said = said + &String::from_utf8_lossy(&second.stdout);
    assert_eq!(second.status.code(), Some(69), "{said}");
    assert!(
        said.contains("in use by another running trueline"),
        "{said}"
    );
    // Nothing is committed of what is in memory only.
    send(&mut sender, &topic, 0, 10);
    wait_read(&service, EACH + 10);
    assert_eq!(
        service.end("TERM"),
        Some(69),
        "the last snapshot was not written"
    );
    service.start_again();
    let said = service.wait_not_ready(&["on_missing_state"]);
    assert!(said.contains("read it up to offset 1000"), "{said}");
    assert_eq!(service.end("TERM"), Some(0));
}

#[test]
fn a_state_topic_that_is_deleted_fails_readiness() {
    let name = "a_state_topic_that_is_deleted_fails_readiness";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-stateless-{}", unique());
    let home = format!("{topic}-state");
    broker.create_topics(&[(&topic, 1)]);
    let mut sender = broker.producer();
    send(&mut sender, &topic, 0, EACH);
    let state = format!("topic = \"{home}\"\ninterval = \"1s\"");
    let mut service = Service::start(&config(&broker.bootstrap, &topic, "", &state));
    wait_read(&service, EACH);
    service.wait_ready();
    broker.delete_topic(&home);
    send(&mut sender, &topic, 0, 10);
    service.wait_not_ready(&["state topic", "checkpoints cannot be written"]);
    // Made again, it has nothing of what was written once, as journals are.
    broker.create_topics(&[(&home, 1)]);
    send(&mut sender, &topic, 0, 10);
    service.wait_not_ready(&["state topic", "deleted and recreated"]);
    assert_eq!(
        service.end("TERM"),
        Some(69),
        "the last checkpoint was not written"
    );
}

#[test]
fn an_outcome_topic_that_is_missing_is_named_and_waited_for() {
    let name = "an_outcome_topic_that_is_missing_is_named_and_waited_for";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-missing-{}", unique());
    let outcomes = format!("{topic}-outcomes");
    broker.create_topics(&[(&topic, 2)]);
    let source = format!(
        "[source.outcomes]\ntopics = [\"{outcomes}\"]\noutcome = \"y\"\nmaturity = \"1m\"\n\
         on_missing = \"negative\""
    );
    let fields = "{ id = \"id\", score = \"score\", time = \"time_ms\" }";
    let text = config(&broker.bootstrap, &topic, &source, "")
        .replace("{ score = \"score\", time = \"time_ms\" }", fields)
        .replace("lateness = \"30m\"\n", "");
    let mut service = Service::start(&text);
    let mut sender = broker.producer();
    let begin = support::late::now_ms() - 20 * support::late::MINUTE;
    for i in 0..EACH as i64 {
        let at = begin + i * support::late::MINUTE / 60;
        let text = format!(r#"{{"id":"{i}","model":"m","score":0.5,"time_ms":{at}}}"#);
        sender.send(&topic, (i % 2) as i32, text.as_bytes());
    }
    sender.flush();
    wait_read(&service, EACH);
    service.wait_not_ready(&[&format!("kafka topic `{outcomes}`"), "create it"]);
    // Longer than a partition is held that may go elsewhere.
    std::thread::sleep(Duration::from_secs(35));
    service.wait_not_ready(&[&outcomes]);
    let implied = || service.metric("trueline_records_implied_total", &[]);
    assert_eq!(implied(), 0.0);

    broker.create_topics(&[(&outcomes, 1)]);
    service.wait_ready();
    let mut sender = broker.producer();
    let outcome = format!(r#"{{"id":"7","model":"m","y":1,"time_ms":{begin}}}"#);
    sender.send(&outcomes, 0, outcome.as_bytes());
    sender.flush();
    wait_for("outcomes to be implied", LIMIT, || {
        (implied() > 0.0).then_some(())
    });
    assert_eq!(service.counted("records"), Some(EACH as f64 + 1.0));
    assert_eq!(service.end("TERM"), Some(0));
}

#[test]
fn a_source_that_is_added_leaves_group_and_state_of_the_others() {
    let name = "a_source_that_is_added_leaves_group_and_state_of_the_others";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-added-{}", unique());
    let second = format!("{topic}-second");
    broker.create_topics(&[(&topic, 1), (&second, 1)]);
    let mut sender = broker.producer();
    send(&mut sender, &topic, 0, EACH);
    send(&mut sender, &second, 0, 100);
    let state = format!("topic = \"{topic}-state\"");
    let mut service = Service::start(&config(&broker.bootstrap, &topic, "", &state));
    wait_read(&service, EACH);
    assert_eq!(service.end("TERM"), Some(0));
    send(&mut sender, &topic, 0, 10);
    let source = format!(
        "[[source]]\ntopics = [\"{second}\"]\nfields = {{ score = \"score\", time = \"time_ms\" }}\n"
    );
    // Behind the first: it keeps the group.
    service.rewrite(|text| text.replace("[[model]]", &format!("{source}[[model]]")));
    service.start_again();
    // 10 more of the first, all of the second.
    wait_read(&service, 110);
    assert_eq!(service.end("TERM"), Some(0));
    // Before the first: the topic's state is found again under the topic's name.
    service.rewrite(|text| {
        let without = text.replace(&source, "");
        without.replacen("[[source]]", &format!("{source}[[source]]"), 1)
    });
    send(&mut sender, &topic, 0, 20);
    service.start_again();
    wait_read(&service, 20);
    assert_eq!(service.end("TERM"), Some(0));
}
