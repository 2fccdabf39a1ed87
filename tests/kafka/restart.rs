//! A start with predictions that wait for their outcomes: HTTP answers while they are loaded, and
//! says how far that is.
//!
//! Small in CI. With `TRUELINE_PENDING=10000000` so many wait, and times and memory have their
//! bars.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use trueline::config::Config;
use trueline::config::bounds::{MemoryBound, human};
use trueline::config::value::Outside;

use crate::support::broker::{Broker, unique};
use crate::support::late::{MINUTE, now_ms, of_environment};
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;

const PARTITIONS: i32 = 4;
/// Predictions in CI.
const FEW: u64 = 20_000;
/// How many make it worth to look at times.
const MANY: u64 = 10_000_000;
/// Restarts that are timed.
const RESTARTS: usize = 5;
/// How soon a process that was started says that it is live.
const LIVE: Duration = Duration::from_secs(1);
/// How long it may take to have them back.
const BACK: Duration = Duration::from_secs(4);
/// What filling may take, bytes.
const FILLING: u64 = 1_100_000_000;

fn config(brokers: &str, topic: &str) -> String {
    format!(
        r#"
version = 1
[kafka]
brokers = "{brokers}"
group = "{topic}"
[[source]]
topics = ["{topic}"]
[source.fields]
id = "id"
time = "time_ms"
score = "score"
[source.outcomes]
topics = ["{topic}-outcomes"]
maturity = "7d"
[[model]]
name = "*"
lateness = "1m"
[http]
listen = "LISTEN"
[state]
directory = "STATE"
interval = "1m"
"#
    )
}

fn fill(broker: &Broker, topic: &str, n: u64) {
    let mut sender = broker.producer();
    let begin = now_ms() - 60 * MINUTE;
    for i in 0..n {
        let time_ms = begin + (i * 50 * MINUTE as u64 / n) as i64;
        let id = format!(
            "{:08x}-0000-4000-8000-{i:012x}",
            i.wrapping_mul(0x9e37_79b9) & 0xffff_ffff
        );
        let text = format!(r#"{{"model":"m","score":0.5,"id":"{id}","time_ms":{time_ms}}}"#);
        let partition = (i % PARTITIONS as u64) as i32;
        sender.send(topic, partition, text.as_bytes());
    }
    sender.flush();
}

fn pending(service: &Service) -> Option<u64> {
    let scrape = service.scrape()?;
    Some(scrape.sum("trueline_predictions_retained", &[]) as u64)
}

/// How long after its start the process was live, and had its state back.
fn restart(service: &mut Service) -> (Duration, Duration) {
    assert_eq!(service.end("TERM"), Some(0));
    let start = Instant::now();
    service.start_again();
    let soon = |what: &str, answer: &dyn Fn() -> bool| {
        while !answer() {
            assert!(start.elapsed() < LIMIT, "waited in vain: {what}");
            std::thread::sleep(Duration::from_millis(2));
        }
        start.elapsed()
    };
    let is_live = || matches!(service.get("/live"), Some((200, _)));
    let live = soon("live", &is_live);
    let is_loading = |said: String| said.contains("loading");
    let is_back = || (service.get("/ready")).is_some_and(|(_, said)| !is_loading(said));
    (live, soon("the state back", &is_back))
}

/// What `trueline check` prints as the most.
fn bound(service: &Service) -> u64 {
    let text = fs::read_to_string(service.config()).expect("the configuration");
    let outside = Outside {
        variable: &|_| None,
        directory: PathBuf::new(),
    };
    let config = Config::parse(&text, "restart.toml", &outside);
    MemoryBound::of(&config.expect("a sound configuration")).total()
}

/// Starts with a pipe in place of a segment: the load stands still until somebody writes to it.
fn start_slowly(service: &mut Service, n: u64) {
    assert_eq!(service.end("TERM"), Some(0));
    let journal = service.state().join("journal");
    let segments = fs::read_dir(&journal).expect("journals");
    let mut segments: Vec<PathBuf> = segments.flatten().map(|file| file.path()).collect();
    segments.sort();
    let last = segments.last().expect("a segment");
    let aside = service.state().join("aside");
    fs::rename(last, &aside).expect("renamed");
    assert!(
        Command::new("mkfifo")
            .arg(last)
            .status()
            .is_ok_and(|s| s.success())
    );
    let bytes = fs::read(&aside).expect("a segment");
    // Open on both sides, so that the process finds a writer whenever it opens the pipe, and no
    // write fails between its two readings.
    let both = OpenOptions::new().read(true).write(true).open(last);
    let pipe = both.expect("a pipe");
    service.start_again();
    wait_for("the server", LIMIT, || {
        service.get("/live").filter(|(status, _)| *status == 200)
    });
    service.wait_not_ready(&["loading"]);
    // It is read once to be checked, and once to be taken in.
    write_to(&pipe, &bytes);
    service.wait_not_ready(&["loading, ", " %"]);
    assert_eq!(service.get("/live").map(|(status, _)| status), Some(200));
    write_to(&pipe, &bytes);
    fs::rename(&aside, last).expect("renamed");
    service.wait_ready();
    assert_eq!(pending(service), Some(n));
}

/// Writes to a pipe, which takes all of it only while somebody reads.
fn write_to(pipe: &File, bytes: &[u8]) {
    let (mut pipe, bytes) = (pipe.try_clone().expect("a handle"), bytes.to_vec());
    // A thread that is never joined: without a reader it would not end.
    let writer = std::thread::spawn(move || pipe.write_all(&bytes).expect("written"));
    wait_for("the segment to be read", LIMIT, || {
        writer.is_finished().then_some(())
    });
}

#[test]
fn a_start_answers_while_pending_predictions_are_loaded() {
    let name = "a_start_answers_while_pending_predictions_are_loaded";
    let Some(broker) = Broker::alone(name) else {
        return;
    };
    let n = of_environment("TRUELINE_PENDING", FEW);
    let topic = format!("trueline-restart-{}", unique());
    let outcomes = format!("{topic}-outcomes");
    broker.create_topics(&[(&topic, PARTITIONS), (&outcomes, PARTITIONS)]);
    let mut service = Service::start(&config(&broker.bootstrap, &topic));
    service.wait_ready();
    fill(&broker, &topic, n);
    wait_for("all to be pending", 4 * LIMIT, || {
        (pending(&service)? == n).then_some(())
    });
    let (filling, bound) = (service.peak_bytes(), bound(&service));
    println!(
        "{n} pending: peak while filling {}, bound {}",
        human(filling),
        human(bound)
    );
    assert!(filling <= bound, "{filling}");
    let mut all = Vec::new();
    for _ in 0..RESTARTS {
        let (live, back) = restart(&mut service);
        service.wait_ready();
        assert_eq!(pending(&service), Some(n));
        let peak = service.peak_bytes();
        println!(
            "live after {live:.2?}, back after {back:.2?}, peak {}",
            human(peak)
        );
        assert!(peak <= bound, "{peak}");
        all.push((back, live));
    }
    all.sort_unstable();
    if n >= MANY {
        let slowest = all.iter().map(|(_, live)| *live).max();
        assert!(slowest < Some(LIVE), "{all:?}");
        assert!(all[RESTARTS / 2].0 <= BACK, "{all:?}");
        assert!(filling <= FILLING, "{filling}");
    }
    start_slowly(&mut service, n);
}
