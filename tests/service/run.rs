//! `trueline run` as a process, against a broker in the test: restart, bad surroundings, bad
//! configuration.

use crate::support::{free_port, scrape};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

/// A child that does not outlive its test.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A directory of this test alone, empty at first.
fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("run-{name}"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("a scratch directory");
    dir
}

fn config(dir: &Path, brokers: &str, port: u16, state: &Path) -> PathBuf {
    let text = format!(
        r#"version = 1
[kafka]
brokers = "{brokers}"
group = "test"
# The mock broker keeps a group that its last member left closed for one session timeout.
[kafka.options]
"session.timeout.ms" = "6000"
[[source]]
topics = ["events"]
fields = {{ time = "ts", score = "score", outcome = "outcome" }}
[[model]]
name = "*"
windows = [{{ width = "1h", slide = "1h" }}]
lateness = "1s"
[model.alert]
window_alerts = true
stale_after = "30d"
[http]
listen = "127.0.0.1:{port}"
[state]
directory = '{}'
interval = "1s"
"#,
        state.display()
    );
    let path = dir.join("trueline.toml");
    fs::write(&path, text).expect("a configuration file");
    path
}

fn start(config: &Path) -> Guard {
    let log = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(config.with_extension("log"))
        .expect("a log file");
    Guard(
        Command::new(env!("CARGO_BIN_EXE_trueline"))
            .args(["run", "--config"])
            .arg(config)
            .stderr(log)
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary starts"),
    )
}

fn terminate(mut child: Guard) -> ExitStatus {
    let pid = child.0.id().to_string();
    let _ = Command::new("kill").args(["-TERM", &pid]).status();
    let start = Instant::now();
    loop {
        if let Some(status) = child.0.try_wait().expect("a child") {
            return status;
        }
        assert!(
            start.elapsed() < Duration::from_secs(40),
            "no end after SIGTERM"
        );
        thread::sleep(Duration::from_millis(50));
    }
}

fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n"
    )
    .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    if let Some((_, body)) = answer.split_once("\r\n\r\n") {
        scrape::assert_conserved(path, body);
    }
    Some(answer)
}

/// Waits until `found` likes the answer of `path`.
fn await_answer(port: u16, path: &str, found: impl Fn(&str) -> bool) -> String {
    let start = Instant::now();
    let mut last = String::new();
    while start.elapsed() < Duration::from_secs(40) {
        if let Some(answer) = get(port, path) {
            if found(&answer) {
                return answer;
            }
            last = answer;
        }
        thread::sleep(Duration::from_millis(200));
    }
    panic!("{path} never said what was awaited; last: {last}");
}

/// Produces `count` events from number `from` on; event i is at minute zero plus i milliseconds.
fn produce(brokers: &str, base_ms: i64, from: i64, count: i64) {
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .create()
        .expect("a producer");
    for i in from..from + count {
        let score = (i % 100) as f64 / 128.0 + 0.1;
        let outcome = i64::from((i * 7919) % 1000 < (score * 1000.0) as i64);
        let payload = format!(
            r#"{{"model":"m","ts":{},"score":{score},"outcome":{outcome}}}"#,
            base_ms + i
        );
        let record = BaseRecord::<(), str>::to("events")
            .payload(&payload)
            .partition((i % 3) as i32);
        producer.send(record).expect("room in the queue");
    }
    producer.flush(Duration::from_secs(10)).expect("delivered");
}

/// An event far enough ahead on each partition that every window before it seals.
fn seal(brokers: &str, at_ms: i64) {
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .create()
        .expect("a producer");
    // A jump of more than an hour is believed once three records say so.
    for partition in [0, 1, 2, 0, 1, 2, 0, 1, 2] {
        let payload = format!(r#"{{"model":"m","ts":{at_ms},"score":0.5,"outcome":1}}"#);
        let record = BaseRecord::<(), str>::to("events")
            .payload(&payload)
            .partition(partition);
        producer.send(record).expect("room in the queue");
    }
    producer.flush(Duration::from_secs(10)).expect("delivered");
}

#[test]
fn a_restart_goes_on_from_the_snapshot_and_counts_each_event_once() {
    let dir = scratch("restart");
    let cluster = MockCluster::new(1).expect("a mock cluster");
    cluster.create_topic("events", 3, 1).expect("a topic");
    let brokers = cluster.bootstrap_servers();
    // The start of an hour that has passed, so that the window can seal.
    let now_ms = std::time::UNIX_EPOCH
        .elapsed()
        .expect("a clock")
        .as_millis() as i64;
    let base_ms = now_ms / 3_600_000 * 3_600_000 - 7_200_000;

    let port = free_port();
    let path = config(&dir, &brokers, port, &dir.join("state"));
    produce(&brokers, base_ms, 0, 3000);
    let first = start(&path);
    await_answer(port, "/ready", |a| a.starts_with("HTTP/1.1 200"));
    await_answer(port, "/metrics", |a| observed(a) == 3000);
    assert!(terminate(first).success(), "SIGTERM ends with 0");

    produce(&brokers, base_ms, 3000, 2000);
    let second = start(&path);
    seal(&brokers, base_ms + 3_700_000);
    let api = await_answer(port, "/api/v1/streams", |a| a.contains("\"n\": 5000"));
    assert!(api.contains("\"m\""), "{api}");
    assert!(terminate(second).success());
}

/// Sum of the observed records over all series of the metric.
fn observed(metrics: &str) -> u64 {
    metrics
        .lines()
        .filter(|line| line.starts_with("trueline_records_total") && line.contains("\"observed\""))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum::<f64>() as u64
}

#[test]
fn a_broker_that_is_down_at_the_start_keeps_it_waiting_and_not_ready() {
    let dir = scratch("down");
    let port = free_port();
    let nobody = format!("127.0.0.1:{}", free_port());
    let child = start(&config(&dir, &nobody, port, &dir.join("state")));
    await_answer(port, "/ready", |a| a.starts_with("HTTP/1.1 503"));
    let live = await_answer(port, "/live", |_| true);
    assert!(live.starts_with("HTTP/1.1 200"), "{live}");
    assert!(terminate(child).success());
}

#[test]
fn an_unwritable_state_directory_ends_the_start_with_its_path_and_the_remedy() {
    let dir = scratch("state");
    let file = dir.join("a-file");
    fs::write(&file, "in the way").expect("a file");
    let path = config(&dir, "127.0.0.1:1", 0, &file.join("state"));
    let output = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args(["run", "--config"])
        .arg(&path)
        .output()
        .expect("the binary starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(69), "{said}");
    assert!(
        said.contains("a-file") && said.contains("[state] directory"),
        "{said}"
    );
}

#[test]
fn a_state_directory_that_goes_away_is_told_and_counted_and_everything_else_goes_on() {
    let dir = scratch("state-gone");
    let port = free_port();
    let state = dir.join("state");
    let path = config(&dir, "127.0.0.1:1", port, &state);
    let child = start(&path);
    // It answers before it has opened everything in the directory; without that it does not start.
    await_answer(port, "/metrics", |a| {
        a.contains("loop_silence_seconds{loop=\"engine\"}")
    });
    fs::rename(&state, dir.join("elsewhere")).expect("a directory that can be moved");
    fs::write(&state, "in the way").expect("a file");
    await_answer(port, "/metrics", |a| {
        let failed = |l: &str| {
            l.strip_prefix("trueline_snapshot_errors_total ")
                .is_some_and(|n| n != "0")
        };
        a.lines().any(failed)
    });
    let log = fs::read_to_string(path.with_extension("log")).expect("the log");
    let told = |line: &str| {
        line.contains("snapshot not written") && line.contains(&state.display().to_string())
    };
    assert!(log.lines().any(told), "{log}");
    assert!(get(port, "/live").is_some_and(|a| a.starts_with("HTTP/1.1 200")));
    await_answer(port, "/ready", |a| a.contains("was deleted or replaced"));
    // Its last snapshot was not written.
    assert_eq!(terminate(child).code(), Some(69));
}

/// Sum of the samples of a metric.
fn sum(metrics: &str, name: &str) -> f64 {
    let lines = metrics.lines().filter(|line| line.starts_with(name));
    let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    values.sum()
}

/// Sends predictions without outcomes, dealt out to three partitions.
fn predictions(brokers: &str, n: i64) {
    let now_ms = std::time::UNIX_EPOCH
        .elapsed()
        .expect("a clock")
        .as_millis() as i64;
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .create()
        .expect("a producer");
    for i in 0..n {
        let payload = format!(
            r#"{{"model":"m","id":{i},"ts":{},"score":0.25}}"#,
            now_ms + i
        );
        let record = BaseRecord::<(), str>::to("events").payload(&payload);
        producer
            .send(record.partition((i % 3) as i32))
            .expect("room in the queue");
        if i % 1000 == 0 {
            producer.poll(Duration::ZERO);
        }
    }
    producer.flush(Duration::from_secs(10)).expect("delivered");
}

#[test]
fn a_spill_store_without_room_ends_the_process_with_the_remedy_and_the_next_goes_on() {
    let dir = scratch("spill");
    let cluster = MockCluster::new(1).expect("a mock cluster");
    cluster.create_topic("events", 3, 1).expect("a topic");
    let brokers = cluster.bootstrap_servers();
    let port = free_port();
    let path = config(&dir, &brokers, port, &dir.join("state"));
    let text = fs::read_to_string(&path).expect("the configuration");
    let joined = text.replace(
        "fields = { time = \"ts\", score = \"score\", outcome = \"outcome\" }",
        "fields = { time = \"ts\", score = \"score\", id = \"id\" }\n[source.outcomes]\nmaturity = \"10m\"\n\
         pending_memory = \"1MiB\"",
    );
    assert_ne!(joined, text);
    fs::write(&path, joined).expect("a configuration file");
    predictions(&brokers, 60_000);

    // No file may grow beyond 8 KiB: to the process, a full disk. The signal must not end it.
    let limited = Command::new("bash")
        .args(["-c", "ulimit -S -f 8; exec \"$0\" run --config \"$1\""])
        .arg(env!("CARGO_BIN_EXE_trueline"))
        .arg(&path)
        .output()
        .expect("bash");
    let said = String::from_utf8_lossy(&limited.stderr);
    assert_eq!(limited.status.code(), Some(69), "{said}");
    assert!(
        said.contains("spill") && said.contains("free space") && said.contains("pending_memory"),
        "{said}"
    );

    // Room again: nothing was kept of the failure, and nothing is missing.
    let child = start(&path);
    await_answer(port, "/metrics", |a| {
        sum(a, "trueline_records_open{") == 60_000.0
            && sum(a, "trueline_predictions_spilled ") > 30_000.0
            && sum(a, "trueline_predictions_memory_bytes ") <= f64::from(1 << 20)
            && sum(a, "trueline_spill_bytes ") > 1e6
    });
    assert!(terminate(child).success());
    // What had spilled is filled again from the journals.
    let child = start(&path);
    await_answer(port, "/metrics", |a| {
        sum(a, "trueline_records_open{") == 60_000.0
            && sum(a, "trueline_predictions_spilled ") > 30_000.0
    });
    assert!(terminate(child).success());
}

#[test]
fn a_full_disk_loses_no_pending_prediction_and_once_there_is_room_all_is_saved() {
    let dir = scratch("full");
    let cluster = MockCluster::new(1).expect("a mock cluster");
    cluster.create_topic("events", 3, 1).expect("a topic");
    let brokers = cluster.bootstrap_servers();
    let port = free_port();
    let path = config(&dir, &brokers, port, &dir.join("state"));
    let text = fs::read_to_string(&path).expect("the configuration");
    let joined = text.replace(
        "fields = { time = \"ts\", score = \"score\", outcome = \"outcome\" }",
        "fields = { time = \"ts\", score = \"score\", id = \"id\" }\n[source.outcomes]\nmaturity = \"10m\"",
    );
    assert_ne!(joined, text);
    fs::write(&path, joined).expect("a configuration file");

    // No file may grow beyond 8 KiB: to the process, a full disk. The signal must not end it.
    let limited = Command::new("bash")
        .args(["-c", "ulimit -S -f 8; exec \"$0\" run --config \"$1\""])
        .arg(env!("CARGO_BIN_EXE_trueline"))
        .arg(&path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let limited = Guard(limited.expect("bash"));
    let pid = limited.0.id().to_string();
    await_answer(port, "/ready", |a| a.starts_with("HTTP/1.1 200"));
    let now_ms = std::time::UNIX_EPOCH
        .elapsed()
        .expect("a clock")
        .as_millis() as i64;
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", &brokers)
        .create()
        .expect("a producer");
    for i in 0..3000 {
        let payload = format!(
            r#"{{"model":"m","id":{i},"ts":{},"score":0.25}}"#,
            now_ms + i
        );
        let record = BaseRecord::<(), str>::to("events").payload(&payload);
        producer
            .send(record.partition((i % 3) as i32))
            .expect("room in the queue");
    }
    producer.flush(Duration::from_secs(10)).expect("delivered");
    await_answer(port, "/metrics", |a| {
        sum(a, "trueline_records_open{") == 3000.0
            && sum(a, "trueline_snapshot_errors_total") >= 2.0
    });
    await_answer(port, "/ready", |a| {
        a.contains("snapshots cannot be written")
    });
    assert!(get(port, "/live").is_some_and(|a| a.starts_with("HTTP/1.1 200")));

    // Room again, without a restart: the journals catch up.
    let lifted = Command::new("prlimit")
        .args(["--fsize=unlimited:", "--pid", &pid])
        .status();
    assert!(lifted.expect("prlimit").success());
    let before = sum(
        &get(port, "/metrics").expect("an answer"),
        "trueline_snapshot_errors_total",
    );
    await_answer(port, "/metrics", |a| {
        sum(a, "trueline_snapshot_bytes") > 3000.0 * 40.0
            && sum(a, "trueline_snapshot_errors_total") <= before + 1.0
    });
    await_answer(port, "/ready", |a| a.starts_with("HTTP/1.1 200"));
    // The guard kills it.
    drop(limited);

    let second = start(&path);
    await_answer(port, "/metrics", |a| {
        sum(a, "trueline_records_open{") == 3000.0
            && sum(a, "trueline_records_read_total{") == 0.0
            && sum(a, "trueline_records_moved_total{") == 3000.0
    });
    let log = fs::read_to_string(path.with_extension("log")).expect("a log");
    assert!(log.contains("restored from a snapshot"), "{log}");
    assert!(terminate(second).success());
}

#[test]
fn two_processes_do_not_share_a_state_directory() {
    let dir = scratch("lock");
    let port = free_port();
    let path = config(&dir, "127.0.0.1:1", port, &dir.join("state"));
    let first = start(&path);
    await_answer(port, "/live", |_| true);
    let output = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args(["run", "--listen", "127.0.0.1:0", "--config"])
        .arg(&path)
        .output()
        .expect("the binary starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(69), "{said}");
    assert!(said.contains("in use by another"), "{said}");
    assert!(terminate(first).success());
}

#[test]
fn a_wrong_configuration_ends_with_78_and_a_missing_argument_with_64() {
    let dir = scratch("config");
    let path = dir.join("trueline.toml");
    fs::write(&path, "version = 1\n[kafak]\nbrokers = \"x\"\n").expect("a file");
    let run = |args: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_trueline"))
            .args(args)
            .env_remove("TRUELINE_CONFIG")
            .output()
            .expect("the binary starts")
    };
    let wrong = run(&["run", "--config", &path.display().to_string()]);
    assert_eq!(wrong.status.code(), Some(78));
    let said = String::from_utf8_lossy(&wrong.stderr);
    assert!(said.contains("kafak") && said.contains("kafka"), "{said}");
    assert_eq!(run(&["run", "--listen"]).status.code(), Some(64));
    // Like `check`, it reads `trueline.toml` unless told otherwise.
    let unnamed = run(&["run"]);
    assert_eq!(unnamed.status.code(), Some(78));
    let said = String::from_utf8_lossy(&unnamed.stderr);
    assert!(said.contains("trueline.toml"), "{said}");
}
