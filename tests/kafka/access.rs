//! Access rights on a real Kafka: what is said of a right that is missing, from the start or since
//! a moment ago, and that nothing is taken for read that may not be read.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::process::Command;
use std::ptr;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::bindings as sys;
use rdkafka::producer::{BaseProducer, Producer};
use sys::rd_kafka_AclOperation_t as Operation;
use sys::rd_kafka_ResourceType_t as Resource;

use crate::support::broker::{Broker, unique};
use crate::support::late::{MINUTE, now_ms};
use crate::support::sender::Sender;
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;

const READ: Operation = Operation::RD_KAFKA_ACL_OPERATION_READ;
const WRITE: Operation = Operation::RD_KAFKA_ACL_OPERATION_WRITE;
const DESCRIBE: Operation = Operation::RD_KAFKA_ACL_OPERATION_DESCRIBE;
const TOPIC: Resource = Resource::RD_KAFKA_RESOURCE_TOPIC;
const GROUP: Resource = Resource::RD_KAFKA_RESOURCE_GROUP;

/// Grants a right to the user `reader`, or takes it away. rdkafka has no function for that.
fn set_right(broker: &Broker, granted: bool, on: Resource, name: &str, operation: Operation) {
    let client: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", &broker.bootstrap)
        .create()
        .expect("a client");
    let text = |text: &str| CString::new(text).expect("no nul");
    let (name, user, host) = (text(name), text("User:reader"), text("*"));
    let literal = sys::rd_kafka_ResourcePatternType_t::RD_KAFKA_RESOURCE_PATTERN_LITERAL;
    let allow = sys::rd_kafka_AclPermissionType_t::RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW;
    let (name, user, host) = (name.as_ptr(), user.as_ptr(), host.as_ptr());
    // SAFETY: the client and the texts outlive the block, and so the request, whose answer is
    // waited for. Each thing made here is destroyed once, after its last use. Without a buffer for
    // errors, only null says that one was not made.
    unsafe {
        let client = client.client().native_ptr();
        let queue = sys::rd_kafka_queue_new(client);
        let (no, none) = (ptr::null_mut(), 0);
        if granted {
            let acl = sys::rd_kafka_AclBinding_new(
                on, name, literal, user, host, operation, allow, no, none,
            );
            assert!(!acl.is_null());
            let mut all = [acl];
            sys::rd_kafka_CreateAcls(client, all.as_mut_ptr(), 1, ptr::null(), queue);
            let answer = sys::rd_kafka_queue_poll(queue, 30_000);
            assert!(!answer.is_null());
            assert_eq!(sys::rd_kafka_event_error(answer) as i32, 0);
            sys::rd_kafka_event_destroy(answer);
            sys::rd_kafka_AclBinding_destroy(acl);
        } else {
            let acl = sys::rd_kafka_AclBindingFilter_new(
                on, name, literal, user, host, operation, allow, no, none,
            );
            assert!(!acl.is_null());
            let mut all = [acl];
            sys::rd_kafka_DeleteAcls(client, all.as_mut_ptr(), 1, ptr::null(), queue);
            let answer = sys::rd_kafka_queue_poll(queue, 30_000);
            assert!(!answer.is_null());
            assert_eq!(sys::rd_kafka_event_error(answer) as i32, 0);
            sys::rd_kafka_event_destroy(answer);
            sys::rd_kafka_AclBinding_destroy(acl);
        }
        sys::rd_kafka_queue_destroy(queue);
    }
}

fn config(broker: &Broker, topics: &[String; 2]) -> String {
    let [predictions, outcomes] = topics;
    let brokers = broker.sasl();
    format!(
        r#"
version = 1
[kafka]
brokers = "{brokers}"
group = "{predictions}"
statistics_interval = "1s"
[kafka.sasl]
mechanism = "PLAIN"
username = "reader"
password = "right"
[[source]]
topics = ["{predictions}"]
dead_letter = "{predictions}.dead"
on_missing_state = "earliest"
[source.fields]
id = "id"
time = "time_ms"
score = "score"
[source.outcomes]
topics = ["{outcomes}"]
maturity = "1m"
time = "time_ms"
[[model]]
name = "m"
windows = [{{ width = "10m", slide = "1m" }}]
lateness = "0s"
[http]
listen = "LISTEN"
[state]
directory = "STATE"
interval = "1s"
"#
    )
}

fn topics(broker: &Broker) -> [String; 2] {
    let topics = ["scored", "happened"].map(|t| format!("trueline-access-{t}-{}", unique()));
    let dead = format!("{}.dead", topics[0]);
    broker.create_topics(&[(&topics[0], 1), (&topics[1], 1), (&dead, 1)]);
    topics
}

/// A hundred predictions of one minute.
fn predict(sender: &mut Sender, topic: &str, minute: i64) {
    for i in 0..100 {
        let at = minute + i * MINUTE / 100;
        let text = format!(r#"{{"id":"{at}","model":"m","time_ms":{at},"score":0.5}}"#);
        sender.send_at(topic, 0, at, text.as_bytes());
    }
    sender.flush();
}

#[test]
fn an_outcome_topic_that_may_no_longer_be_read_is_not_taken_for_read() {
    let Some(broker) =
        Broker::own("an_outcome_topic_that_may_no_longer_be_read_is_not_taken_for_read")
    else {
        return;
    };
    let topics = topics(&broker);
    for topic in &topics {
        set_right(&broker, true, TOPIC, topic, DESCRIBE);
        set_right(&broker, true, TOPIC, topic, READ);
    }
    set_right(&broker, true, GROUP, &topics[0], READ);
    let dead = format!("{}.dead", topics[0]);
    set_right(&broker, true, TOPIC, &dead, DESCRIBE);
    let (mut sender, begin) = (broker.producer(), now_ms() - 60 * MINUTE);
    predict(&mut sender, &topics[0], begin);
    sender.send(&topics[0], 0, b"no record");
    sender.flush();
    let started = Instant::now();
    let service = Service::start(&config(&broker, &topics));
    service.wait_ready();
    let watermark = || service.metric("trueline_watermark_timestamp_seconds", &[]);
    let minute = |n: i64| (begin + n * MINUTE) as f64 / 1e3;
    wait_for("both topics to be read to their ends", LIMIT, || {
        (watermark() > minute(0)).then_some(())
    });
    service.wait_for_line(&["dead letter not written", &dead, "uthorization"]);
    let part = format!("kafka {}", topics[1]);

    set_right(&broker, false, TOPIC, &topics[1], READ);
    println!("{}", service.wait_not_ready(&[&part, "grant READ on it"]));
    service.wait_for_line(&[&topics[1], "this user lacks a right"]);
    predict(&mut sender, &topics[0], begin + 20 * MINUTE);
    wait_for("the later predictions", LIMIT, || {
        (service.counted("records")? >= 201.0).then_some(())
    });
    // Longer than an end must last to be taken for one.
    std::thread::sleep(Duration::from_secs(5));
    assert!(watermark() < minute(2), "what happened may be unread");
    // The broker refuses a commit each second; the log has it every 30 seconds.
    let lines = service.lines_with("COMMITFAIL") as u64;
    assert!(
        (1..=1 + started.elapsed().as_secs() / 30).contains(&lines),
        "{lines}"
    );

    set_right(&broker, true, TOPIC, &topics[1], READ);
    service.wait_ready();
    wait_for("the watermark to go on", LIMIT, || {
        (watermark() > minute(20)).then_some(())
    });

    // The user does not even see the topic, so the group takes it away.
    for operation in [READ, DESCRIBE] {
        set_right(&broker, false, TOPIC, &topics[1], operation);
    }
    service.wait_for_line(&["partition revoked", &topics[1]]);
    let said = service.wait_not_ready(&[&part]);
    assert!(!said.contains("group of"), "{said}");
    assert_eq!(
        service.lines_with("two processes where there may be one"),
        0
    );
}

/// The rights that the guide names for the judge of all workers, and no other.
#[test]
fn a_judge_needs_no_right_to_read_what_workers_read() {
    let Some(broker) = Broker::own("a_judge_needs_no_right_to_read_what_workers_read") else {
        return;
    };
    let topics = topics(&broker);
    let state = format!("{}-state", topics[0]);
    broker.create_topics(&[(&state, 1)]);
    for topic in &topics {
        set_right(&broker, true, TOPIC, topic, DESCRIBE);
    }
    for operation in [READ, WRITE] {
        set_right(&broker, true, TOPIC, &state, operation);
    }
    let text = config(&broker, &topics);
    let own = format!("[state]\ntopic = \"{state}\"\nverdicts = \"all\"");
    let mut service = Service::start(&text.replace("[state]", &own));
    service.wait_ready();
    let (code, said) = service.check();
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert_eq!(service.lines_with("uthorization"), 0);
    // One of several judges needs no right on the state topic, but on that of judges.
    let judges = format!("{state}-judges");
    broker.create_topics(&[(&judges, 6)]);
    service.rewrite(|text| {
        text.replace(
            "verdicts = \"all\"",
            "verdicts = \"all\"\njudge_partitions = 6",
        )
    });
    let (code, said) = service.check();
    assert_eq!(code, Some(69), "{said}");
    assert!(said.contains(&format!("kafka topic `{judges}`")), "{said}");
    for operation in [READ, WRITE] {
        set_right(&broker, true, TOPIC, &judges, operation);
        set_right(&broker, false, TOPIC, &state, operation);
    }
    let (code, said) = service.check();
    assert_eq!((code, said.as_str()), (Some(0), ""));
    for operation in [READ, WRITE] {
        set_right(&broker, true, TOPIC, &state, operation);
    }
    // A worker for several judges writes to both topics.
    service.rewrite(|text| {
        text.replace("verdicts = \"all\"", "verdicts = \"none\"")
            .replace("judge_partitions = 6", "judge_partitions = 5")
    });
    let (_, said) = service.check();
    let other =
        format!("kafka topic `{judges}`: has 6 partitions and `judge_partitions` in [state] is 5");
    assert!(said.contains(&other), "{said}");
    set_right(&broker, false, TOPIC, &judges, READ);
    set_right(&broker, false, TOPIC, &judges, WRITE);
    let (_, said) = service.check();
    let denied = format!("kafka topic `{judges}`: this user lacks a right");
    assert!(said.contains(&denied), "{said}");
    service.rewrite(|text| {
        text.replace("verdicts = \"none\"", "verdicts = \"all\"")
            .replace("\njudge_partitions = 5", "")
    });
    // It says which right is missing, which is not that to read.
    set_right(&broker, false, TOPIC, &topics[1], DESCRIBE);
    let (code, said) = service.check();
    assert_eq!(code, Some(69), "{said}");
    assert!(said.contains("grant DESCRIBE on it"), "{said}");
    assert_eq!(service.end("TERM"), Some(0));
}

#[test]
fn a_check_names_each_right_that_is_missing() {
    let Some(broker) = Broker::own("a_check_names_each_right_that_is_missing") else {
        return;
    };
    let topics = topics(&broker);
    let service = Service::start(&config(&broker, &topics));
    let says = |words: &[&str]| {
        let (code, said) = service.check();
        assert_eq!(code, Some(69), "{said}");
        for word in words {
            assert!(said.contains(word), "no {word}: {said}");
        }
    };
    let on = |topic: &str| format!("kafka topic `{topic}`: this user lacks a right");
    let dead = format!("{}.dead", topics[0]);
    says(&[
        &on(&topics[0]),
        &on(&topics[1]),
        &on(&dead),
        "grant READ",
        "grant WRITE",
    ]);
    for topic in topics.iter().chain([&dead]) {
        set_right(&broker, true, TOPIC, topic, DESCRIBE);
    }
    let group = format!("kafka group `{}`: this user lacks a right", topics[0]);
    says(&[&group, &on(&topics[0]), &on(&topics[1])]);
    // What reads a range and joins no group needs no right on it.
    for topic in &topics {
        set_right(&broker, true, TOPIC, topic, READ);
    }
    says(&[&group]);
    let replay = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args(["replay", "--last", "1h", "--config"])
        .arg(service.config())
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&replay.stderr).into_owned();
    assert_eq!(replay.status.code(), Some(65), "no record: {said}");
    for topic in &topics {
        set_right(&broker, false, TOPIC, topic, READ);
    }
    set_right(&broker, true, GROUP, &topics[0], READ);
    set_right(&broker, true, TOPIC, &topics[0], READ);
    says(&[&on(&topics[1])]);
    set_right(&broker, true, TOPIC, &topics[1], READ);
    service.wait_ready();
    let (_, said) = service.check();
    assert!(!said.contains("lacks a right"), "{said}");
}
