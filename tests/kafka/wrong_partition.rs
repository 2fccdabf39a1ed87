//! Outcomes that are written to another partition than their predictions, as by another client
//! library, and partitions of predictions to which there is none of outcomes.

use std::time::Duration;

use serde_json::Value;

use crate::alerts::receiver::{Receiver, webhook};
use crate::alerts::{config, phase};
use crate::support::broker::{Broker, unique};
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;

/// The configuration, with outcomes of this topic.
fn joined(text: &str, labels: &str) -> String {
    let joined = format!(
        "score = \"score\"\nid = \"id\"\n[source.outcomes]\ntopics = [\"{labels}\"]\nid = \"id\"\n\
         time = \"time_ms\"\noutcome = \"outcome\"\nmaturity = \"5s\"\non_missing = \"negative\"\n"
    );
    text.replace("score = \"score\"\n", &joined)
}

#[test]
fn outcomes_on_another_partition_are_named_where_people_look() {
    let name = "outcomes_on_another_partition_are_named_where_people_look";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topics = ["predictions", "labels"].map(|t| format!("trueline-wrong-{t}-{}", unique()));
    let [predictions, labels] = &topics;
    broker.create_topics(&[(predictions, 2), (labels, 2)]);
    let receiver = Receiver::start(false);
    let text = config(&broker.bootstrap, predictions, "1h", &webhook(&receiver));
    let service = Service::start(&joined(&text, labels));
    service.wait_ready();

    // Outcomes that wait for predictions that are nowhere yet are on no wrong partition.
    let mut sender = broker.producer();
    let records = phase(&["a"], 0, true);
    let first: Value = serde_json::from_str(&records[0]).expect("JSON");
    for i in 0..40 {
        let y =
            serde_json::json!({"id": format!("u-{i}"), "time_ms": first["time_ms"], "outcome": 1});
        sender.send(labels, i % 2, y.to_string().as_bytes());
    }
    sender.flush();
    let waiting = || service.metric("trueline_records_open", &[labels, "waiting"]);
    wait_for("outcomes that wait", LIMIT, || {
        (waiting() == 40.0).then_some(())
    });
    let ratio = || service.metric("trueline_outcomes_wrong_partition_ratio", &[labels]);
    // It is looked up twice a second.
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(ratio(), 0.0);

    // The model is calibrated; its outcomes are all on the other of two partitions.
    for (i, record) in (0..).zip(records) {
        let mut p: Value = serde_json::from_str(&record).expect("JSON");
        p["id"] = Value::from(format!("k-{i}"));
        let outcome = p.as_object_mut().and_then(|p| p.remove("outcome"));
        let y = serde_json::json!({"id": p["id"], "time_ms": p["time_ms"], "outcome": outcome});
        sender.send(predictions, i % 2, p.to_string().as_bytes());
        sender.send(labels, (i + 1) % 2, y.to_string().as_bytes());
        if i % 50 == 0 {
            sender.flush();
        }
    }
    sender.flush();

    wait_for("a ratio of 1", LIMIT, || (ratio() == 1.0).then_some(()));
    service.wait_for_line(&["are on another partition than their prediction"]);
    let (_, sources) = service.get("/api/v1/sources").expect("an answer");
    let sources: Value = serde_json::from_str(&sources).expect("JSON");
    let concern = &sources["concerns"][0];
    let what = concern["what"].as_str().expect("words");
    assert!(
        what.starts_with("100 % of the outcomes that wait"),
        "{sources:#}"
    );
    assert_eq!(concern["source"], Value::from(labels.as_str()));
    let (_, page) = service.get("/").expect("a page");
    assert!(
        page.contains("write both topics with the same partitioner"),
        "{page}"
    );

    // The alert that follows says that its numbers may be wrong, and why.
    let notice = wait_for("a notice", LIMIT, || receiver.of("/hook").pop());
    assert_eq!(notice["status"], "firing", "{notice:#}");
    let evidence = notice["evidence"].as_str().expect("words");
    assert!(
        evidence.contains("Outcomes wait on another partition than their predictions"),
        "{evidence}"
    );
}

/// A process whose partitions may move assigns the partitions of outcomes along with those of
/// predictions.
#[test]
fn a_partition_without_outcomes_is_named_and_holds_nothing_until_it_is_added() {
    let name = "a_partition_without_outcomes_is_named_and_holds_nothing_until_it_is_added";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topics = ["predictions", "labels"].map(|t| format!("trueline-fewer-{t}-{}", unique()));
    let [predictions, labels] = &topics;
    broker.create_topics(&[(predictions, 2), (labels, 1)]);
    let text = joined(&config(&broker.bootstrap, predictions, "1s", ""), labels);
    let moving = format!("[state]\ntopic = \"{predictions}-state\"\n");
    let service = Service::start(&text.replace("[state]\n", &moving));
    let part = format!("partition {labels}/1");
    let why = format!("topic `{predictions}` has 2 partitions and `{labels}` 1");
    service.wait_not_ready(&[&part, &why, "give both as many"]);

    let mut sender = broker.producer();
    for (i, record) in phase(&["a"], 0, true).iter().enumerate() {
        let mut p: Value = serde_json::from_str(record).expect("JSON");
        p["id"] = Value::from(format!("k-{i}"));
        let outcome = p.as_object_mut().and_then(|p| p.remove("outcome"));
        let y = serde_json::json!({"id": p["id"], "time_ms": p["time_ms"], "outcome": outcome});
        sender.send(predictions, 0, p.to_string().as_bytes());
        sender.send(labels, 0, y.to_string().as_bytes());
    }
    sender.flush();
    wait_for("a window", LIMIT, || {
        service.window("a", "6s")?["end_ms"].as_i64()
    });
    broker.add_partitions(labels, 2);
    service.wait_ready();
}
