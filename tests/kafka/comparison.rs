//! Two versions that score the same ids, their outcomes on a topic of their own, on a real Kafka:
//! what the service says of them, and that killing it changes no digit.

use crate::support::broker::{Broker, unique};
use crate::support::late::{MINUTE, close, now_ms};
use crate::support::sender::Sender;
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;
use serde_json::Value;
use trueline::stats::rng::Rng;

const PARTITIONS: i32 = 2;
const IDS: u64 = 12_000;

fn config(brokers: &str, instance: &str, topics: &[String; 2]) -> String {
    let [predictions, outcomes] = topics;
    format!(
        r#"
version = 1
[kafka]
brokers = "{brokers}"
group = "{predictions}-{instance}"
statistics_interval = "1s"
options = {{ "session.timeout.ms" = "6000" }}
[[source]]
topics = ["{predictions}"]
[source.fields]
id = "id"
version = "version"
time = "time_ms"
score = "score"
[source.outcomes]
topics = ["{outcomes}"]
maturity = "5m"
time = "time_ms"
[[model]]
name = "*"
windows = [{{ width = "30m", slide = "10m" }}]
lateness = "5m"
compare = {{ enabled = true, champion = "1" }}
[model.alert]
window_alerts = true
stale_after = "7d"
"#
    )
}

/// Topic, partition and text of each record, in order of time: version 1 says the truth, version 2
/// its square.
fn records() -> Vec<(usize, i32, String)> {
    let mut rng = Rng::new(41);
    let begin = now_ms() - 155 * MINUTE;
    let mut all = Vec::new();
    for id in 0..IDS {
        let at = begin + (id as i64 * 100 * MINUTE) / IDS as i64;
        let partition = (id % PARTITIONS as u64) as i32;
        let truth = rng.uniform();
        let happened = rng.uniform() < truth;
        for (version, score) in [(1, truth), (2, truth * truth)] {
            let text = format!(
                r#"{{"id":"{id}","model":"m","version":"{version}","time_ms":{at},"score":{score}}}"#
            );
            all.push((at, (0, partition, text)));
        }
        let later = at + (rng.uniform() * 3.0 * MINUTE as f64) as i64;
        let text = format!(r#"{{"id":"{id}","time_ms":{later},"outcome":{happened}}}"#);
        all.push((later, (1, partition, text)));
    }
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, record)| record).collect()
}

fn send(sender: &mut Sender, topics: &[String; 2], records: &[(usize, i32, String)]) {
    for (topic, partition, text) in records {
        sender.send(&topics[*topic], *partition, text.as_bytes());
    }
    sender.flush();
}

/// What is said of versions, once every id has been compared.
fn compared(service: &Service) -> Value {
    wait_for("all ids to be compared", LIMIT, || {
        let (status, body) = service.get("/api/v1/models/m/comparison")?;
        let body: Value = serde_json::from_str(&body).ok()?;
        let all = (status == 200).then(|| body["comparisons"].clone())?;
        (all[0]["pairs"] == IDS).then_some(all)
    })
}

fn read(service: &Service) -> u64 {
    service.counted("records").map_or(0, |n| n as u64)
}

#[test]
fn versions_that_score_the_same_ids_are_compared_and_a_kill_changes_no_digit() {
    let name = "versions_that_score_the_same_ids_are_compared_and_a_kill_changes_no_digit";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topics = ["scored", "happened"].map(|t| format!("trueline-compare-{t}-{}", unique()));
    broker.create_topics(&[(&topics[0], PARTITIONS), (&topics[1], PARTITIONS)]);
    let (mut sender, records) = (broker.producer(), records());
    let mut service = Service::start(&config(&broker.bootstrap, "one", &topics));
    service.wait_ready();
    let half = records.len() / 2;
    send(&mut sender, &topics, &records[..half]);
    wait_for("half of the records", LIMIT, || {
        (read(&service) > half as u64 / 2).then_some(())
    });
    service.end("KILL");
    service.start_again();
    send(&mut sender, &topics, &records[half..]);
    close(&mut sender, &topics, PARTITIONS);

    let all = compared(&service);
    assert_eq!(all.as_array().map(Vec::len), Some(1), "{all:#}");
    let (one, worse) = (&all[0], "worse");
    assert_eq!(
        (&one["champion"], &one["challenger"]),
        (&"1".into(), &"2".into())
    );
    for measure in ["brier", "in_the_large", "calibration"] {
        assert_eq!(one[measure]["challenger_is"], worse, "{one:#}");
    }
    let labels = ["champion=\"1\"", "challenger=\"2\"", "model=\"m\""];
    let metric = |name: &str| service.metric(&format!("trueline_comparison_{name}"), &labels);
    for (name, value) in [
        ("pairs_total", &one["pairs"]),
        ("brier_difference", &one["brier"]["difference"]),
        ("brier_difference_lower", &one["brier"]["lower"]),
        ("calibration_difference_upper", &one["calibration"]["upper"]),
    ] {
        let told = value.as_f64().expect("a number");
        wait_for(name, LIMIT, || (metric(name) == told).then_some(()));
    }

    // After the last snapshot there is nothing to read again; after a kill the snapshot is all
    // there is.
    std::thread::sleep(std::time::Duration::from_secs(2));
    service.end("KILL");
    service.start_again();
    assert_eq!(compared(&service), all);

    let undisturbed = Service::start(&config(&broker.bootstrap, "two", &topics));
    assert_eq!(compared(&undisturbed), all);
}
