//! One alert a model: what people receive of many streams, of a backlog, and after they close an
//! alert or mark a deployment.

use std::time::Duration;

use serde_json::Value;

use crate::alerts::receiver::{Receiver, webhook};
use crate::alerts::{config, keys_in_order, phase, produce, scored, trueline};
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;

/// The records of a phase in two countries.
fn in_countries(number: i64, good: bool) -> Vec<String> {
    let records = phase(&["a"], number, good).into_iter();
    let placed = records.enumerate().map(|(i, record)| {
        let country = ["DE", "FR"][i % 2];
        record.replace(
            "{\"model\"",
            &format!("{{\"country\":\"{country}\",\"model\""),
        )
    });
    placed.collect()
}

/// Long enough for what fires and was not notified to be found.
fn settle() {
    std::thread::sleep(Duration::from_millis(2_500));
}

#[test]
fn a_model_has_one_alert_that_ends_when_someone_closes_it_or_marks_a_deployment() {
    let (_cluster, brokers) = scored();
    let receiver = Receiver::start(false);
    let of_france = webhook(&receiver).replace("\"hook\"", "\"france\"");
    let of_france = of_france.replace("/hook", "/france") + "match = [\"segment=country=FR\"]\n";
    let text = config(&brokers, "scored", "1h", &(webhook(&receiver) + &of_france));
    let text = text.replace(
        "score = \"score\"",
        "score = \"score\"\nsegments = [\"country\"]",
    );
    let mut service = Service::start(&text);
    service.wait_ready();
    let url = service.url();
    let alert = |arguments: &[&str]| trueline(&[&["alert"], arguments, &["--url", &url]].concat());
    let wait_for_notices = |n: usize| {
        let sinks = ["/hook", "/france"];
        wait_for("notices", LIMIT, || {
            sinks
                .iter()
                .all(|s| receiver.of(s).len() >= n)
                .then_some(())
        });
        settle();
        for sink in sinks {
            assert_eq!(
                receiver.of(sink).len(),
                n,
                "{sink}: {:#?}",
                receiver.of(sink)
            );
        }
        receiver.of("/hook").pop().expect("a notice")
    };

    // The roll-up and both countries fire; each sink is notified once.
    produce(&brokers, "scored", &in_countries(0, false));
    let fires = wait_for_notices(1);
    let fingerprint = fires["fingerprint"]
        .as_str()
        .expect("a fingerprint")
        .to_owned();
    assert_eq!(
        (&fires["alert"], &fires["status"]),
        (&Value::from("a"), &Value::from("firing"))
    );
    let (_, list) = service.get("/api/v1/alerts").expect("an answer");
    let list: Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!(list["count"], 1, "{list:#}");
    assert_eq!(list["alerts"][0]["streams_firing"], 3, "{list:#}");
    assert_eq!(
        list["alerts"][0]["fingerprint"],
        Value::from(fingerprint.as_str())
    );

    // Any of its names acknowledges it.
    let (code, said) = alert(&["ack", "a//country=DE/binary", "--by", "bob"]);
    assert_eq!(code, Some(0), "{said}");
    let (_, said) = alert(&["list"]);
    assert!(said.contains("acknowledged by bob"), "{said}");
    let (code, said) = alert(&["ack", fires["key"].as_str().expect("a key"), "--by", "eve"]);
    assert_eq!(code, Some(0), "{said}");
    // The configuration file says where the service listens.
    let file = service.config().to_str().expect("a path");
    let (_, said) = trueline(&["alert", "list", "--config", file]);
    assert!(said.contains("acknowledged by eve"), "{said}");

    // Closed, it ends at once, and the bad data from before do not open it again, nor does a kill.
    let (code, said) = alert(&["close", "nothing", "--by", "ann"]);
    assert_eq!(code, Some(1), "{said}");
    let (code, said) = alert(&["close", "a", "--by", "ann", "--note", "rolled back"]);
    assert_eq!(code, Some(0), "{said}");
    let ends = wait_for_notices(2);
    assert_eq!(
        (&ends["status"], &ends["what"]),
        (
            &Value::from("resolved"),
            &Value::from("closed by ann: rolled back")
        )
    );
    service.end("KILL");
    service.start_again();
    service.wait_ready();
    produce(&brokers, "scored", &in_countries(1, true));
    wait_for_notices(2);

    // New bad data open it again; a deployment lets it end after its hold, on new good data.
    produce(&brokers, "scored", &in_countries(2, false));
    let fires = wait_for_notices(3);
    assert_eq!(fires["deployment"], Value::Null);
    let url = service.url();
    let alert = |arguments: &[&str]| trueline(&[&["alert"], arguments, &["--url", &url]].concat());
    let (code, said) = alert(&["deployed", "nothing", "--by", "ann"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("no stream of model `nothing`"), "{said}");
    // The pipeline deploys a version before its first record.
    let (code, said) = alert(&["deployed", "a", "--version", "next", "--by", "ci"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = alert(&["deployed", "a", "--by", "ann", "--note", "v4"]);
    assert_eq!(code, Some(0), "{said}");
    settle();
    assert_eq!(
        receiver.of("/hook").len(),
        3,
        "a deployment alone ends no alert"
    );
    produce(&brokers, "scored", &in_countries(3, true));
    let ends = wait_for_notices(4);
    assert_eq!(ends["what"], "calibrated again");
    produce(&brokers, "scored", &in_countries(4, false));
    let fires = wait_for_notices(5);
    assert_eq!(fires["deployment"]["note"], "v4", "{fires:#}");
    let description = fires["description"].as_str().expect("a text");
    assert!(description.contains("by ann: v4"), "{description}");
    let (_, all) = service.get("/api/v1/deployments").expect("an answer");
    assert!(all.contains("\"v4\""), "{all}");
    keys_in_order("hook", &receiver.of("/hook"));
}

#[test]
fn a_backlog_sends_what_still_fires_at_its_end_once() {
    let (_cluster, brokers) = scored();
    for (number, good) in [(0, false), (1, true), (2, false), (3, true), (4, false)] {
        produce(&brokers, "scored", &phase(&["a"], number, good));
    }
    let receiver = Receiver::start(false);
    let text = config(&brokers, "scored", "1s", &webhook(&receiver));
    let service = Service::start(&text.replace("max_age = \"3650d\"\n", ""));
    wait_for("a notice", LIMIT, || {
        (!receiver.of("/hook").is_empty()).then_some(())
    });
    settle();
    let notices = receiver.of("/hook");
    assert_eq!(notices.len(), 1, "{notices:#?}");
    assert_eq!(notices[0]["status"], "firing");
    let last_phase = begin_of(4);
    assert!(
        notices[0]["since_ms"].as_i64() >= Some(last_phase),
        "{notices:#?}"
    );
    // Its end is news again.
    produce(&brokers, "scored", &phase(&["a"], 5, true));
    wait_for("its end", LIMIT, || {
        (receiver.of("/hook").len() == 2).then_some(())
    });
    assert_eq!(receiver.of("/hook")[1]["status"], "resolved");
    drop(service);
}

/// Event time at which a phase begins.
fn begin_of(number: i64) -> i64 {
    let first = phase(&["a"], number, true).swap_remove(0);
    let first: Value = serde_json::from_str(&first).expect("JSON");
    first["time_ms"].as_i64().expect("a time")
}
