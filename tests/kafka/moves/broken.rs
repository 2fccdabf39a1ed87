//! State in the topic that cannot be used stops its partition by name, and no other.

use super::{PARTITIONS, Stage, settled};
use crate::support::broker::Broker;
use crate::support::json_page::JsonPage;
use crate::support::late::{Kind, records_of, send};
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;
use serde_json::Value;
use trueline::store::checkpoint::prefix;

/// What `state inspect` says of the topic in which partition 3 holds something foreign and 5
/// nothing whole.
fn assert_inspected(service: &Service, topic: &str) {
    let inspect = |more: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_trueline"));
        let command = command.args(["state", "inspect", "--config"]);
        let output = command.arg(service.config()).args(more).output();
        output.expect("it starts")
    };
    let output = inspect(&["--json"]);
    assert_eq!(output.status.code(), Some(65), "{output:?}");
    let all: Value = serde_json::from_slice(&output.stdout).expect("json");
    let mut page = JsonPage::read();
    page.check("state-topic", &all);
    page.finish(|section| ["state-topic", "claim"].contains(&section));
    assert_eq!(
        (&all["topic"], &all["partitions"]),
        (&topic.into(), &PARTITIONS.into())
    );
    let state = all["state"].as_array().expect("partitions");
    assert_eq!(state.len(), PARTITIONS as usize);
    for one in state {
        let name = one["partition"].as_str().expect("a name");
        let partition: i32 = name.rsplit('/').next().unwrap().parse().expect("a number");
        assert_eq!(one["state_partition"], partition, "{one:#}");
        let usable = partition != 3 && partition != 5;
        assert_eq!(one["usable"], usable, "{one:#}");
        assert!(
            one["claim"]["by"]
                .as_str()
                .is_some_and(|by| by.contains("process "))
        );
        if usable {
            assert_eq!(one["writer"], one["claim"], "{one:#}");
            assert!(
                one["age_seconds"]
                    .as_f64()
                    .is_some_and(|s| (0.0..3600.0).contains(&s))
            );
            // The service may have ended before it had read all of both topics.
            let next = one["checkpoint"]["partitions"].as_array().map(Vec::len);
            assert!(next >= Some(1), "{one:#}");
            assert!(one["checkpoint"]["records"].as_u64() > Some(0), "{one:#}");
        }
    }
    let output = inspect(&[]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("/3/notes: foreign") && said.contains("/head/"),
        "{said}"
    );
    assert_eq!(said.matches("no usable checkpoint").count(), 2, "{said}");
}

#[test]
fn a_partition_whose_state_is_broken_or_gone_stops_by_name_and_the_others_go_on() {
    let name = "a_partition_whose_state_is_broken_or_gone_stops_by_name_and_the_others_go_on";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let records = records_of(Kind::Scores, 6_000, PARTITIONS);
    let stage = Stage::new(&broker, Kind::Scores, records.len());
    let mut service = Service::start(&stage.config("group", None, true));
    service.wait_ready();
    let mut sender = broker.producer();
    send(&mut sender, &stage.topics, &records);
    sender.flush();
    wait_for("all records", LIMIT, || {
        // A partition that was read to its end before they were sent is settled too.
        let read = service.scrape()?.sum("trueline_records_read_total", &[]);
        let all = read >= records.len() as f64;
        (all && settled(&[&service], 2 * PARTITIONS as usize)).then_some(())
    });
    assert_eq!(service.end("TERM"), Some(0));
    // Something foreign lies under the keys of one partition; every head of another is cut short.
    let group = stage.group("group");
    let key = |partition: i32, rest: &str| prefix(&group, &stage.topics[0], partition) + rest;
    sender.send_keyed(&group, 3, &key(3, "notes"), b"hello");
    for (name, value) in broker.read_keyed(&group, 5) {
        let name = String::from_utf8(name).expect("text");
        if let (true, Some(value)) = (name.contains("/head/"), value) {
            sender.send_keyed(&group, 5, &name, &value[..20]);
        }
    }
    sender.flush();
    assert_inspected(&service, &group);
    service.start_again();
    let said = service.wait_not_ready(&["/notes: foreign", "/head/", "torn", "on_broken"]);
    assert_eq!(said.matches("state of ").count(), 2, "{said}");
    send(&mut sender, &stage.topics, &records);
    sender.flush();
    wait_for("the others to go on", LIMIT, || {
        settled(&[&service], 2 * PARTITIONS as usize - 4).then_some(())
    });
    let scrape = service.scrape().expect("an answer");
    assert_eq!(scrape.sum("trueline_partition_suspended", &[]), 2.0);
    let written = wait_for("checkpoints to be written", LIMIT, || {
        let scrape = service.scrape()?;
        (scrape.sum("trueline_checkpoint_written_bytes_total", &[]) > 0.0).then_some(scrape)
    });
    for (metric, series) in [
        ("trueline_records_moved_total", 4),
        ("trueline_checkpoints_total", 3),
        (
            "trueline_checkpoint_timestamp_seconds",
            PARTITIONS as usize - 2,
        ),
    ] {
        assert_eq!(written.count(metric), series, "{metric}");
    }
    for metric in [
        "trueline_checkpoint_read_bytes_total",
        "trueline_checkpoint_restore_seconds",
    ] {
        assert!(written.sum(metric, &[]) > 0.0, "{metric}");
    }
    assert_eq!(service.end("TERM"), Some(0));
    // They start empty only where the configuration says so.
    service.rewrite(|text| text.replace("[state]", "[state]\non_broken = \"fresh\""));
    service.start_again();
    wait_for("all partitions", LIMIT, || {
        settled(&[&service], 2 * PARTITIONS as usize).then_some(())
    });
    assert_eq!(service.end("TERM"), Some(0));
}
