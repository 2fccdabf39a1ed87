//! Workers that count and one process that judges, on a real Kafka: three workers of one group
//! join, leave and are killed while predictions and outcomes of 12 partitions flow, and the judge
//! is killed in between. What it judges in the end is to the bit what one undisturbed process
//! judges that has read everything; every change of an alert is notified once; and a partition that
//! no worker counts is named, until one does.
//!
//! `TRUELINE_MOVES` and `TRUELINE_EVENTS` make it as long as wanted; in CI it is short.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use crate::support::broker::{Broker, unique};
use crate::support::late::{MINUTE, Record, close, config, now_ms, of_environment, send};
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;
use serde_json::Value;
use trueline::stats::rng::Rng;

const PARTITIONS: i32 = 12;
const MODELS: [&str; 2] = ["fair", "boaster"];

/// Predictions over the 100 minutes that ended ten minutes ago, and their outcomes, which are as
/// the scores say in one model and nearer to one half in the other. Some never come, some twice,
/// some too late for their window.
fn records(n: u64) -> Vec<Record> {
    let mut rng = Rng::new(20_261_122);
    let begin = now_ms() - 155 * MINUTE;
    let step = (100 * MINUTE) as f64 / n as f64;
    let mut all = Vec::new();
    for id in 0..n {
        let at = begin + (id as f64 * step) as i64;
        let model = (id / PARTITIONS as u64 % 2) as usize;
        let score = rng.uniform();
        let chance = [score, 0.5 + 0.3 * (score - 0.5)][model];
        let happened = rng.uniform() < chance;
        let mut put = |time_ms: i64, outcome: bool, text: String| {
            all.push(Record {
                time_ms,
                outcome,
                partition: (id % PARTITIONS as u64) as i32,
                text,
            });
        };
        let name = MODELS[model];
        let prediction =
            format!(r#"{{"id":"{id}","model":"{name}","time_ms":{at},"score":{score}}}"#);
        put(at, false, prediction);
        let outcome =
            |time_ms: i64, y: bool| format!(r#"{{"id":"{id}","time_ms":{time_ms},"outcome":{y}}}"#);
        let mut later = || at + (-(1.0 - rng.uniform()).ln() * MINUTE as f64 * 1.5) as i64;
        let (first, second) = (later(), later());
        let draw = rng.uniform();
        if draw >= 0.1 {
            put(first, true, outcome(first, happened));
        }
        if draw >= 0.995 {
            put(second, true, outcome(second, !happened));
        }
    }
    all.sort_by_key(|r| r.time_ms);
    all
}

/// Two topics of records and what is configured over them.
struct Stage<'b> {
    broker: &'b Broker,
    topics: [String; 2],
}

impl<'b> Stage<'b> {
    fn new(broker: &'b Broker) -> Stage<'b> {
        let topics =
            ["predictions", "outcomes"].map(|t| format!("trueline-fleet-{t}-{}", unique()));
        broker.create_topics(&[(&topics[0], PARTITIONS), (&topics[1], PARTITIONS)]);
        Stage { broker, topics }
    }

    fn config(&self, group: &str, state: &str, more: &str) -> String {
        let (group, kafka) = (
            format!("{}-{group}", self.topics[0]),
            "[kafka.options]\n\"session.timeout.ms\" = \"6000\"",
        );
        let text = config(&self.broker.bootstrap, &group, &self.topics, kafka, state);
        let text = text.replace("on_missing = \"negative\"", "on_missing = \"drop\"");
        text.replace("[model.alert]", "[model.alert]\nfor = \"0s\"") + more
    }

    /// A process of the fleet; its state topic has the name of the group.
    fn member(&self, verdicts: &str, state: &str, more: &str) -> String {
        let topic = format!("{}-fleet", self.topics[0]);
        let state = format!("topic = \"{topic}\"\nverdicts = \"{verdicts}\"\n{state}");
        self.config("fleet", &state, more)
    }

    fn send(&self, records: &[Record]) {
        let mut sender = self.broker.producer();
        send(&mut sender, &self.topics, records);
        sender.flush();
    }
}

/// The windows of the models as the API shows them, without alerts: they remember each slide, and
/// in which order outcomes and predictions of several partitions were read between two of them is
/// chance.
fn windows(service: &Service) -> BTreeMap<(&'static str, &'static str), Value> {
    let mut all = BTreeMap::new();
    for model in MODELS {
        for name in ["30m", "10h"] {
            let Some(mut window) = service.window(model, name) else {
                continue;
            };
            let fields = window.as_object_mut().expect("an object");
            fields.retain(|key, _| !key.starts_with("alert"));
            all.insert((model, name), window);
        }
    }
    all
}

/// Waits until what is judged no longer changes.
fn settled(service: &Service, what: &str) -> BTreeMap<(&'static str, &'static str), Value> {
    wait_for(what, LIMIT, || {
        let one = windows(service);
        std::thread::sleep(Duration::from_secs(3));
        (one.len() == 4 && windows(service) == one).then_some(one)
    })
}

fn standing(service: &Service, standing: &str) -> Option<f64> {
    let label = format!("state=\"{standing}\"");
    let scrape = service.scrape()?;
    (scrape.count("trueline_judge_partitions") > 0)
        .then(|| scrape.sum("trueline_judge_partitions", &[&label]))
}

/// Waits until the checkpoints hold all records.
fn covered(judge: &Service) {
    wait_for("checkpoints of all records", 2 * LIMIT, || {
        let covered = standing(judge, "covered") == Some(f64::from(PARTITIONS));
        let scrape = judge.scrape()?;
        (covered && scrape.sum("trueline_judge_uncovered_records", &[]) == 0.0).then_some(())
    });
}

#[test]
fn one_judge_over_many_workers_says_what_one_process_says() {
    let name = "one_judge_over_many_workers_says_what_one_process_says";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let moves = of_environment("TRUELINE_MOVES", 8);
    let records = records(of_environment("TRUELINE_EVENTS", 60_000));
    let stage = Stage::new(&broker);
    let alerts = format!("{}-alerts", stage.topics[0]);
    broker.create_topics(&[(&alerts, 1)]);
    let sink = format!("\n[[sink]]\nname = \"told\"\nkind = \"kafka\"\ntopic = \"{alerts}\"\n");
    // The same file for all but for the role: who only counts tells nobody.
    let mut judge = Service::start(&stage.member("all", "", &sink));
    let mut workers: Vec<Service> = (0..3)
        .map(|_| Service::start(&stage.member("none", "", &sink)))
        .collect();
    let mut runs = [true; 3];
    workers.iter().for_each(Service::wait_ready);
    let mut rng = Rng::new(of_environment("TRUELINE_SEED", 5));
    for (turn, part) in (0u64..).zip(records.chunks(records.len() / moves as usize + 1)) {
        for (i, chunk) in part.chunks(part.len().div_ceil(30)).enumerate() {
            stage.send(chunk);
            std::thread::sleep(Duration::from_millis(100));
            if i != 12 {
                continue;
            }
            let which = (rng.uniform() * 3.0) as usize;
            match runs[which] {
                false => workers[which].start_again(),
                true => {
                    let (signal, code) = [("KILL", None), ("TERM", Some(0))][turn as usize % 2];
                    assert_eq!(workers[which].end(signal), code, "{signal} in turn {turn}");
                }
            }
            runs[which] ^= true;
            if !runs.contains(&true) {
                workers[which].start_again();
                runs[which] = true;
            }
            if turn % 3 == 1 {
                assert_eq!(judge.end("KILL"), None);
                judge.start_again();
            }
        }
    }
    for (worker, runs) in workers.iter_mut().zip(&mut runs) {
        if !std::mem::replace(runs, true) {
            worker.start_again();
        }
    }
    close(&mut broker.producer(), &stage.topics, PARTITIONS);
    covered(&judge);
    let judged = settled(&judge, "the last windows of the judge");
    judge.wait_ready();
    assert_eq!(judge.metric("trueline_process_role", &["judge"]), 1.0);
    assert_eq!(judge.metric("trueline_records_total", &[]), 0.0);
    let skipped = judge.metric("trueline_judge_panes_skipped_total", &[]);
    for worker in &workers {
        assert_eq!(worker.metric("trueline_process_role", &["worker"]), 1.0);
        let (_, streams) = worker.get("/api/v1/streams").expect("an answer");
        let streams: Value = serde_json::from_str(&streams).expect("json");
        assert_eq!(
            streams["streams"],
            Value::Array(Vec::new()),
            "workers judge nothing"
        );
    }
    // One that has read all as one.
    let mut whole = Service::start(&stage.config("whole", "", ""));
    let sent = records.len() + 2 * PARTITIONS as usize;
    wait_for("everything to be read", 2 * LIMIT, || {
        let scrape = whole.scrape()?;
        let read = scrape.sum("trueline_partition_position_offset", &[]) as usize == sent;
        let idle = scrape.sum("trueline_partition_idle", &[]) == 2.0 * f64::from(PARTITIONS);
        (read && idle).then_some(())
    });
    let expected = settled(&whole, "the last windows of one process");
    assert_eq!(judged, expected);
    assert_eq!(expected[&("fair", "10h")]["verdict"], "calibrated");
    for window in ["30m", "10h"] {
        assert_eq!(expected[&("boaster", window)]["verdict"], "miscalibrated");
    }
    let n = expected[&("boaster", "10h")]["n"].as_u64();
    println!("{n:?} events of one model judged; {skipped} panes skipped");
    assert_eq!(whole.end("TERM"), Some(0));
    assert_eq!(judge.end("TERM"), Some(0));
    let told = broker.notices(["status", "severity"], &alerts);
    println!("told: {told:?}");
    for (alert, notices) in &told {
        let again = notices.windows(2).any(|pair| pair[0] == pair[1]);
        assert!(!again, "{alert} was told twice: {notices:?}");
    }
    let boaster: Vec<_> = told
        .iter()
        .filter(|(a, _)| a.starts_with("boaster"))
        .collect();
    assert_eq!(boaster.len(), 1, "{told:?}");
    assert_eq!(boaster[0].1[0][0], "firing");
}

#[test]
fn partitions_that_no_worker_counts_are_named_until_one_does_and_one_process_judges() {
    let name = "partitions_that_no_worker_counts_are_named_until_one_does_and_one_process_judges";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let records = records(6_000);
    let (early, later) = records.split_at(records.len() / 2);
    let stage = Stage::new(&broker);
    stage.send(early);
    let patience = "missing_after = \"4s\"";
    let mut judge = Service::start(&stage.member("all", patience, ""));
    let said = judge.wait_not_ready(&["no worker has written a checkpoint"]);
    assert_eq!(
        said.matches("no worker has").count(),
        PARTITIONS as usize,
        "{said}"
    );
    wait_for("missing partitions", LIMIT, || {
        (standing(&judge, "missing") == Some(f64::from(PARTITIONS))).then_some(())
    });
    let mut worker = Service::start(&stage.member("none", "", ""));
    covered(&judge);
    judge.wait_ready();
    // Nothing in the state topic of a healthy fleet is foreign.
    let mut inspect = Command::new(env!("CARGO_BIN_EXE_trueline"));
    let inspect = inspect.args(["state", "inspect", "--json", "--config"]);
    let output = inspect.arg(judge.config()).output().expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let state: Value = serde_json::from_slice(&output.stdout).expect("json");
    let by = state["judge"]["by"].as_str();
    assert!(by.is_some_and(|by| by.contains("process ")), "{state:#}");
    assert_eq!(worker.end("KILL"), None);
    stage.send(later);
    let said = judge.wait_not_ready(&["verdicts go on without it"]);
    println!("{said}");
    wait_for("stale partitions", LIMIT, || {
        (standing(&judge, "stale") == Some(f64::from(PARTITIONS))).then_some(())
    });
    assert!(judge.metric("trueline_judge_delay_seconds", &[]) >= 4.0);
    assert!(judge.metric("trueline_judge_uncovered_records", &[]) >= later.len() as f64);
    worker.start_again();
    covered(&judge);
    judge.wait_ready();
    // A second one that is to judge is the one that does.
    let second = Service::start(&stage.member("all", patience, ""));
    judge.wait_not_ready(&["claimed to judge"]);
    covered(&second);
    second.wait_ready();
    let role = |of: &Service, role: &str| of.metric("trueline_process_role", &[role]);
    assert_eq!((role(&judge, "standby"), role(&judge, "judge")), (1.0, 0.0));
    assert_eq!(role(&second, "judge"), 1.0);
    wait_for("the streams of the second alone", LIMIT, || {
        let streams = |of: &Service| of.scrape().map(|s| s.sum("trueline_streams", &[]));
        (streams(&judge)? == 0.0 && streams(&second)? > 0.0).then_some(())
    });
    // After a restart it is asked for again, and goes on from its own snapshot.
    assert_eq!(judge.end("TERM"), Some(0));
    judge.start_again();
    covered(&judge);
    second.wait_not_ready(&["claimed to judge"]);
    assert_eq!(role(&judge, "judge"), 1.0);
}

#[test]
fn a_claim_of_nobody_deafens_the_judge_until_the_owner_claims_again() {
    let name = "a_claim_of_nobody_deafens_the_judge_until_the_owner_claims_again";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let records = records(6_000);
    let (early, later) = records.split_at(records.len() / 2);
    let stage = Stage::new(&broker);
    stage.send(early);
    let judge = Service::start(&stage.member("all", "missing_after = \"4s\"", ""));
    let worker = Service::start(&stage.member("none", "", ""));
    covered(&judge);
    judge.wait_ready();
    // As a process that gave up long ago would: its claim was on its way.
    let (group, topic) = (format!("{}-fleet", stage.topics[0]), &stage.topics[0]);
    let mut sender = broker.producer();
    for partition in [0, 3] {
        let key = format!("{group}/{topic}/{partition}/claim");
        sender.send_keyed(&group, partition, &key, b"stray 1 1");
    }
    sender.flush();
    stage.send(later);
    let said = worker.wait_not_ready(&["claim of", "stray 1 1 claimed it at offset"]);
    println!("{said}");
    wait_for("both claims to be noticed", LIMIT, || {
        (worker.metric("trueline_claims_superseded_total", &[]) == 2.0).then_some(())
    });
    judge.wait_not_ready(&["verdicts go on without it"]);
    println!("{}", worker.wait_for_line(&["claiming it again"]));
    covered(&judge);
    judge.wait_ready();
    worker.wait_ready();
}
