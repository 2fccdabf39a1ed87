//! Judges that share what workers count, on a real Kafka: three processes of one group judge, and
//! are killed at eight moments while events flow. Every window, every alert and everything that
//! people are notified of is that of one process that has read all, and nothing is notified twice.
//!
//! `TRUELINE_MODELS`, `TRUELINE_SEGMENTS` and `TRUELINE_PHASE` (seconds of event time) make it as
//! large as wanted; in CI it is small.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::alerts::{self, BEGIN_MS};
use crate::support::broker::{Broker, unique};
use crate::support::late::of_environment;
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;
use serde_json::Value;
use trueline::stats::rng::Rng;

const PARTITIONS: i32 = 6;
const JUDGES: usize = 3;
const JUDGE_PARTITIONS: usize = 12;
/// Phases, good and bad in turn, of every third model; the others are always good.
const PHASES: u64 = 4;
const KILLS: u64 = 8;

/// How much is sent.
struct Size {
    models: u64,
    segments: u64,
    /// Seconds of event time in a phase.
    phase: u64,
}

/// One event a second of each stream.
fn second(size: &Size, second: u64, rng: &mut Rng, put: &mut dyn FnMut(i32, String)) {
    let bad = second / size.phase % 2 == 1;
    for stream in 0..size.models * size.segments {
        let (model, segment) = (stream / size.segments, stream % size.segments);
        let score = rng.uniform();
        let chance = match bad && model.is_multiple_of(3) {
            true => 0.4 * score,
            false => score,
        };
        let happened = rng.uniform() < chance;
        let time_ms = BEGIN_MS + second as i64 * 1000 + (rng.uniform() * 1000.0) as i64;
        let event = format!(
            r#"{{"model":"model-{model}","time_ms":{time_ms},"score":{score},"outcome":{happened},"country":"c{segment}"}}"#
        );
        put(((stream + second) % PARTITIONS as u64) as i32, event);
    }
}

/// What is configured over a topic.
fn config(broker: &Broker, topic: &str, group: &str, state: &str) -> String {
    let sink =
        format!("[[sink]]\nname = \"told\"\nkind = \"kafka\"\ntopic = \"{topic}-{group}\"\n");
    let text = alerts::config(&broker.bootstrap, topic, "1s", &sink);
    let text = text.replace(
        &format!("group = \"{topic}\""),
        &format!("group = \"{topic}-{group}\""),
    );
    let text = text.replace(
        "score = \"score\"",
        "score = \"score\"\nsegments = [\"country\"]",
    );
    let text = text.replace(
        "windows = [\"6s\"]",
        "windows = [{ width = \"60s\", slide = \"30s\" }]",
    );
    let text = text.replace("lateness = \"1s\"", "lateness = \"5s\"");
    let text = text.replace("min_events = 200", "min_events = 40");
    // Windows have 60 events, whose outcomes are then drawn 999 times and not 9,999.
    let text = text.replace("alpha = 0.001", "alpha = 0.05");
    format!("{text}{state}\n[limits]\nstreams_max = 100000\n")
}

/// By stream, its windows and its alert. The error names a stream that two processes hold: they
/// answer one after another, so a partition that moves between two answers is in both.
fn streams(of: &[&Service]) -> Result<BTreeMap<String, Value>, String> {
    let mut all = BTreeMap::new();
    for service in of {
        for mut stream in service.streams().unwrap_or_default() {
            let fields = stream.as_object_mut().expect("an object");
            // What is seen of time that goes on.
            fields.retain(|key, _| !key.contains("age"));
            let name = ["model", "version", "segment", "view"].map(|key| stream[key].to_string());
            let name = name.join("/");
            if all.insert(name.clone(), stream).is_some() {
                return Err(format!("{name} is judged twice"));
            }
        }
    }
    Ok(all)
}

/// Waits until so many streams are judged up to this moment, each once, and until that no longer
/// changes.
fn settled(of: &[&Service], expected: usize, until_ms: i64) -> BTreeMap<String, Value> {
    let judged = |stream: &Value| {
        let end_ms = stream["windows"][0]["end_ms"].as_i64();
        stream["model"] == "last" || end_ms.is_some_and(|ms| ms >= until_ms)
    };
    let limit = 3 * LIMIT + Duration::from_millis(20) * expected as u32;
    wait_for("the last verdicts", limit, || {
        let complete =
            |all: &BTreeMap<String, Value>| all.len() == expected && all.values().all(judged);
        let once = || streams(of).inspect_err(|twice| println!("{twice}")).ok();
        let one = once().filter(complete)?;
        std::thread::sleep(Duration::from_secs(2));
        (once()? == one).then_some(one)
    })
}

#[test]
fn judges_that_are_killed_say_what_one_process_says() {
    let name = "judges_that_are_killed_say_what_one_process_says";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let size = Size {
        models: of_environment("TRUELINE_MODELS", 300),
        segments: of_environment("TRUELINE_SEGMENTS", 1),
        phase: of_environment("TRUELINE_PHASE", 60),
    };
    let topic = format!("trueline-judges-{}", unique());
    broker.create_topics(&[
        (&topic, PARTITIONS),
        (&format!("{topic}-fleet"), 1),
        (&format!("{topic}-whole"), 1),
    ]);
    let member = |verdicts: &str| {
        let state = format!(
            "topic = \"{topic}-state\"\nverdicts = \"{verdicts}\"\njudge_partitions = {JUDGE_PARTITIONS}"
        );
        config(&broker, &topic, "fleet", &state)
    };
    let worker = Service::start(&member("none"));
    let mut judges: Vec<Service> = (0..JUDGES)
        .map(|_| Service::start(&member("all")))
        .collect();
    worker.wait_ready();
    judges.iter().for_each(Service::wait_ready);
    let (mut rng, mut sender) = (Rng::new(20_261_123), broker.producer());
    let seconds = PHASES * size.phase;
    let begun = Instant::now();
    let mut dead: Option<usize> = None;
    for now in 0..seconds {
        second(&size, now, &mut rng, &mut |partition, event| {
            sender.send(&topic, partition, event.as_bytes());
        });
        sender.flush();
        let part = seconds / KILLS;
        if now % part == part / 4 {
            let which = (now / part) as usize % JUDGES;
            assert_eq!(judges[which].end("KILL"), None);
            dead = Some(which);
        }
        if now % part == part / 2
            && let Some(which) = dead.take()
        {
            judges[which].start_again();
        }
        std::thread::sleep(Duration::from_millis(250));
    }
    println!("{seconds} s of events sent in {:?}", begun.elapsed());
    // What closes all windows.
    for partition in 0..PARTITIONS {
        let time_ms = BEGIN_MS + (seconds + 200) as i64 * 1000;
        let event = format!(
            r#"{{"model":"last","time_ms":{time_ms},"score":0.5,"outcome":true,"country":"c0"}}"#
        );
        sender.send(&topic, partition, event.as_bytes());
    }
    sender.flush();
    let streams_expected = (size.models * (size.segments + 1) + 2) as usize;
    let until_ms = BEGIN_MS + (seconds + 60) as i64 * 1000;
    let all: Vec<&Service> = judges.iter().collect();
    let judged = settled(&all, streams_expected, until_ms);
    judges.iter().for_each(Service::wait_ready);
    let skipped = |s: &Service| s.metric("trueline_judge_panes_skipped_total", &[]);
    let skipped: Vec<f64> = judges.iter().map(skipped).collect();
    let counts: Vec<usize> = all
        .iter()
        .map(|s| streams(&[s]).expect("one process").len())
        .collect();
    println!("{counts:?} streams; {skipped:?} panes skipped");

    let whole = Service::start(&config(&broker, &topic, "whole", ""));
    let expected = settled(&[&whole], streams_expected, until_ms);
    for (stream, said) in &expected {
        assert_eq!(&judged[stream], said, "{stream}");
    }
    assert_eq!(skipped, [0.0; JUDGES]);
    let even = judged.len() as f64 / JUDGES as f64;
    for n in counts {
        assert!(
            (n as f64 / even - 1.0).abs() <= 0.2,
            "{n} of {even} streams"
        );
    }
    let (ours, theirs) = (
        broker.notices(["key", "status"], &format!("{topic}-fleet")),
        broker.notices(["key", "status"], &format!("{topic}-whole")),
    );
    for model in (0..size.models).step_by(3) {
        let of_model = format!("model-{model} ");
        assert!(
            theirs.keys().any(|alert| alert.starts_with(&of_model)),
            "no alert of {of_model}, which is bad"
        );
    }
    for (alert, notices) in &ours {
        let mut keys: Vec<&String> = notices.iter().map(|[key, _]| key).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(
            keys.len(),
            notices.len(),
            "{alert} was notified twice: {notices:?}"
        );
    }
    assert_eq!(ours, theirs);
    println!(
        "{} alerts, {} notifications",
        ours.len(),
        ours.values().map(Vec::len).sum::<usize>()
    );
}

#[test]
fn a_judge_that_starts_again_judges_while_workers_write_without_a_pause() {
    let name = "a_judge_that_starts_again_judges_while_workers_write_without_a_pause";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let size = Size {
        models: 6,
        segments: 1,
        phase: 60,
    };
    let topic = format!("trueline-busy-{}", unique());
    broker.create_topics(&[(&topic, PARTITIONS), (&format!("{topic}-fleet"), 1)]);
    let member = |verdicts: &str| {
        let state =
            format!("topic = \"{topic}-state\"\nverdicts = \"{verdicts}\"\njudge_partitions = 2");
        config(&broker, &topic, "fleet", &state)
    };
    // Each writes every second, at another moment of it.
    let worker = |_| {
        std::thread::sleep(Duration::from_millis(300));
        Service::start(&member("none"))
    };
    let workers: Vec<Service> = (0..3).map(worker).collect();
    let mut judge = Service::start(&member("all"));
    workers.iter().for_each(Service::wait_ready);
    judge.wait_ready();
    let (mut rng, mut sender, mut now) = (Rng::new(20_261_127), broker.producer(), 0);
    let mut send = || {
        second(&size, now, &mut rng, &mut |partition, event| {
            sender.send(&topic, partition, event.as_bytes());
        });
        sender.flush();
        now += 1;
        std::thread::sleep(Duration::from_millis(100));
    };
    (0..30).for_each(|_| send());
    assert_eq!(judge.end("TERM"), Some(0));
    judge.start_again();
    // No second passes in which nothing is written to the judge partitions.
    let begun = Instant::now();
    while judge.get("/ready").is_none_or(|(status, _)| status != 200) {
        assert!(begun.elapsed() < LIMIT, "{:?}", judge.get("/ready"));
        send();
    }
}
