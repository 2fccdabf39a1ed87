//! What a worker and a judge cost: unit costs from which the guide sizes a fleet
//! (`deploy/guide/sizing.md`).
//!
//! `KAFKA_BOOTSTRAP=127.0.0.1:19092 cargo bench --bench fleet [-- EVENTS [HOURS]]`
//!
//! Two real processes, one that counts (`verdicts = "none"`) and one that judges (`"all"`,
//! `judge_partitions`), read and judge a topic of 4 partitions, filled before. Each stream is a
//! model of its own, has 10 events a second of event time unless said, and lies in one partition.
//! The processor time of both is taken from /proc. Five runs:
//!
//! ```text
//! few      4 streams of 1000 events a second each: hardly anything but events
//! many     a stream for every 8000 events, checkpoints every 20 s
//! often    the same with checkpoints every second
//! sparse   the same with one event a second for each stream: ten times as many panes
//! full     8 streams over HOURS of event time (26): windows of a day are full
//! ```
//!
//! What the two take to start, seen on an empty topic, and what time alone costs, seen in ten
//! seconds without events at the end of each run, is left out. Then a few events more let every
//! partition write a checkpoint: what the worker takes for that is the cost of its bytes. With it,
//! *sparse* and *many* give the cost of a pane of a stream, and with both, each run gives that of
//! an event. A judge's cost is that of its evaluations, with everything before them. *full* says
//! what a stream takes in memory.

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use std::net::TcpListener;
use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PARTITIONS: i32 = 4;
const BEGIN_MS: usize = 1_760_000_000_000;
/// How long a run may take.
const LIMIT: Duration = Duration::from_secs(600);
/// How long nothing happens before a run counts as done.
const QUIET: Duration = Duration::from_secs(6);

/// Seconds of processor time that a process has taken.
fn cpu(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let fields = after_name.split(' ').skip(11).take(2);
    // Hundredths of a second: the unit of /proc on every Linux of today.
    fields.filter_map(|f| f.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn client(brokers: &str) -> ClientConfig {
    let mut c = ClientConfig::new();
    c.set("bootstrap.servers", brokers);
    c
}

/// A topic with `events` records of `streams` streams, each of `rate` events a second.
fn fill(brokers: &str, topic: &str, streams: usize, events: usize, rate: usize) {
    let admin: AdminClient<DefaultClientContext> =
        client(brokers).create().expect("an admin client");
    let new = [NewTopic::new(topic, PARTITIONS, TopicReplication::Fixed(1))];
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let made = admin.create_topics(&new, &AdminOptions::new());
    (runtime.expect("a runtime").block_on(made)).expect("a topic");
    produce(brokers, topic, streams, 0..events, rate);
}

/// Writes the events of these numbers.
fn produce(brokers: &str, topic: &str, streams: usize, events: Range<usize>, rate: usize) {
    let producer: BaseProducer = client(brokers)
        .set("linger.ms", "20")
        .set("batch.size", "200000")
        .set("compression.type", "lz4")
        .set("queue.buffering.max.messages", "500000")
        .create()
        .expect("a producer");
    let mut x = 0x9E37_79B9_7F4A_7C15u64;
    for i in events {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        let stream = i % streams;
        let time_ms = BEGIN_MS + (i / streams) * 1000 / rate;
        let score = (x >> 11) as f64 / (1u64 << 53) as f64;
        let outcome = u32::from(((x as u32) as f64 / f64::from(u32::MAX)) < score);
        let mut r = format!(
            r#"{{"model":"model-{stream}","version":"2026-11-03","request_id":"{x:016x}","time_ms":{time_ms},"score":{score},"outcome":{outcome},"note":""#
        );
        while r.len() < 198 {
            r.push('x');
        }
        r.push_str("\"}");
        let partition = stream as i32 % PARTITIONS;
        while producer
            .send(
                BaseRecord::<(), str>::to(topic)
                    .partition(partition)
                    .payload(&r),
            )
            .is_err()
        {
            producer.poll(Duration::from_millis(10));
        }
    }
    producer.flush(LIMIT).expect("all is written");
}

/// A `trueline run`.
struct Process {
    child: Child,
    port: u16,
    _folder: TempDir,
}

impl Process {
    fn start(brokers: &str, topic: &str, verdicts: &str, interval: &str) -> Process {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let folder = TempDir::with_prefix("trueline-fleet-").expect("a folder");
        let text = format!(
            r#"
version = 1
[kafka]
brokers = "{brokers}"
group = "{topic}"
[[source]]
topics = ["{topic}"]
[source.fields]
score = "score"
version = "version"
time = "time_ms"
[[model]]
name = "*"
[limits]
streams_max = 100000
threads = 1
[http]
listen = "127.0.0.1:{port}"
[state]
directory = "{}"
topic = "{topic}-state"
interval = "{interval}"
verdicts = "{verdicts}"
judge_partitions = 4
"#,
            folder.path().join("state").display()
        );
        let config = folder.path().join("trueline.toml");
        std::fs::write(&config, text).expect("a configuration");
        let log = std::fs::File::create(folder.path().join("log")).expect("a log");
        let child = Command::new(env!("CARGO_BIN_EXE_trueline"))
            .args(["run", "--config"])
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        Process {
            child: child.expect("trueline starts"),
            port,
            _folder: folder,
        }
    }

    fn cpu(&self) -> f64 {
        cpu(self.child.id())
    }

    fn resident(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
        let kib = line.and_then(|l| l.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok());
        kib.unwrap_or(0.0) * 1024.0
    }

    /// The series of these names, each added up over its labels.
    fn metrics<const N: usize>(&self, names: [&str; N]) -> [f64; N] {
        let answer = ureq::get(format!("http://127.0.0.1:{}/metrics", self.port)).call();
        let text = answer.ok().and_then(|mut a| {
            let body = a.body_mut().with_config().limit(1 << 30);
            body.read_to_string().ok()
        });
        let text = text.unwrap_or_default();
        names.map(|name| {
            let of = |line: &str| {
                let rest = line.strip_prefix(name)?;
                let value = rest
                    .strip_prefix(' ')
                    .or(rest.split_once("} ").map(|p| p.1));
                value
                    .filter(|_| rest.starts_with([' ', '{']))?
                    .parse::<f64>()
                    .ok()
            };
            text.lines().filter_map(of).sum::<f64>()
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").arg(&pid).status();
        let _ = self.child.wait();
    }
}

/// What a run came to.
#[derive(Debug, Default)]
struct Run {
    streams: f64,
    events: f64,
    /// Stretches of 50 s of a stream with events, by the schedule.
    panes: f64,
    evaluations: f64,
    seconds: f64,
    worker: Side,
    judge: Side,
}

/// One of the two processes.
#[derive(Debug, Default)]
struct Side {
    /// Processor time, seconds.
    cpu: f64,
    /// Processor time of a second without events.
    idle: f64,
    /// Written (by the worker) or read (by the judge) of checkpoints.
    bytes: f64,
    /// The same of one checkpoint of each partition, without what was sealed since the one before,
    /// and the processor time that it takes.
    checkpoint: f64,
    checkpoint_cpu: f64,
    state: f64,
    resident: f64,
}

impl Side {
    fn of(process: &Process, bytes: &str) -> Side {
        let [bytes, state] = process.metrics([bytes, "trueline_state_bytes"]);
        Side {
            cpu: process.cpu(),
            idle: 0.0,
            bytes,
            checkpoint: 0.0,
            checkpoint_cpu: 0.0,
            state,
            resident: process.resident(),
        }
    }
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mib = |bytes: f64| bytes / f64::from(1 << 20);
        write!(
            f,
            "{:.2} s of processor time, {:.3} a second without events, {:.1} MiB of checkpoints, {:.2} MiB in one \
             ({:.2} s), {:.1} MiB of state, {:.0} MiB resident",
            self.cpu,
            self.idle,
            mib(self.bytes),
            mib(self.checkpoint),
            self.checkpoint_cpu,
            mib(self.state),
            mib(self.resident)
        )
    }
}

fn run(
    brokers: &str,
    name: &str,
    streams: usize,
    events: usize,
    rate: usize,
    interval: &str,
) -> Run {
    let topic = format!("trueline-fleet-{}-{name}", std::process::id());
    fill(brokers, &topic, streams, events, rate);
    let begun = Instant::now();
    let judge = Process::start(brokers, &topic, "all", interval);
    let wait = |what: &str, done: &mut dyn FnMut() -> bool| {
        while !done() {
            assert!(begun.elapsed() < LIMIT, "{name}: {what}");
            std::thread::sleep(Duration::from_millis(500));
        }
    };
    // A judge that begins later begins with the newest checkpoints, and judges no slide before
    // them.
    wait("the judge has its partitions", &mut || {
        judge.metrics(["trueline_judge_tasks"])[0] as i32 == PARTITIONS
    });
    let worker = Process::start(brokers, &topic, "none", interval);
    wait("records are read", &mut || {
        worker.metrics(["trueline_records_read_total"])[0] as usize == events
    });
    let (mut last, mut since) = (-1.0, Instant::now());
    let judged = "trueline_evaluation_seconds_count";
    let quiet = QUIET.max(match interval {
        "20s" => Duration::from_secs(24),
        _ => QUIET,
    });
    wait("all is judged", &mut || {
        let [now] = judge.metrics([judged]);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        (now > 0.0 || events == 0) && since.elapsed() > quiet
    });
    let seconds = begun.elapsed().as_secs_f64();
    let mut all = Run {
        streams: streams as f64,
        events: events as f64,
        panes: (events / (rate * 50)) as f64,
        evaluations: last,
        seconds,
        worker: Side::of(&worker, "trueline_checkpoint_written_bytes_total"),
        judge: Side::of(&judge, "trueline_checkpoint_read_bytes_total"),
    };
    let before = [worker.cpu(), judge.cpu()];
    std::thread::sleep(Duration::from_secs(10));
    all.worker.idle = (worker.cpu() - before[0]) / 10.0;
    all.judge.idle = (judge.cpu() - before[1]) / 10.0;
    if events > 0 {
        // Too few for a pane to end, and new to every partition.
        let (before, begun) = (worker.cpu(), Instant::now());
        produce(brokers, &topic, streams, events..events + streams, rate);
        std::thread::sleep(quiet);
        let took = worker.cpu() - before;
        all.worker.checkpoint_cpu = took - all.worker.idle * begun.elapsed().as_secs_f64();
        let [written] = worker.metrics(["trueline_checkpoint_written_bytes_total"]);
        all.worker.checkpoint = written - all.worker.bytes;
    }
    println!(
        "{name}: {streams} streams, {events} events, {} panes of streams, {} evaluations in {seconds:.0} s",
        all.panes, all.evaluations
    );
    println!("  worker {}\n  judge  {}", all.worker, all.judge);
    all
}

fn main() {
    let Ok(brokers) = std::env::var("KAFKA_BOOTSTRAP") else {
        return println!("KAFKA_BOOTSTRAP is not set: no broker, nothing to measure");
    };
    let mut wanted = std::env::args().skip(1).filter_map(|a| a.parse().ok());
    let events: usize = wanted.next().unwrap_or(4_000_000);
    let hours: usize = wanted.next().unwrap_or(26);
    let streams = (events / 8000).max(1);
    let none = run(&brokers, "none", 4, 0, 1000, "20s");
    let few = run(&brokers, "few", 4, events, 1000, "20s");
    let many = run(&brokers, "many", streams, events, 10, "20s");
    let often = run(&brokers, "often", streams, events, 10, "1s");
    let sparse = run(&brokers, "sparse", streams, events, 1, "20s");
    let full = run(&brokers, "full", 8, 8 * 10 * 3600 * hours, 10, "20s");

    // Beside what starting takes, and time alone.
    let busy = |side: &Side, start: &Side, run: &Run| {
        side.cpu - start.cpu - side.idle * (run.seconds - none.seconds)
    };
    let worker = |r: &Run| busy(&r.worker, &none.worker, r);
    let judge = |r: &Run| busy(&r.judge, &none.judge, r);
    let by_checkpoint = |r: &Run| r.worker.checkpoint_cpu / r.worker.checkpoint;
    let byte = 0.5 * (by_checkpoint(&many) + by_checkpoint(&sparse));
    let beside_bytes = |r: &Run| worker(r) - byte * r.worker.bytes;
    let pane = (beside_bytes(&sparse) - beside_bytes(&many)) / (sparse.panes - many.panes);
    let event = |r: &Run| (beside_bytes(r) - pane * r.panes) / r.events * 1e9;
    println!(
        "worker: {:.2} ns a byte of a checkpoint, {:.1} µs a pane of a stream, {:.1} µs a second and stream",
        byte * 1e9,
        pane * 1e6,
        (many.worker.idle - few.worker.idle) / many.streams * 1e6,
    );
    let of = [
        ("few", &few),
        ("many", &many),
        ("often", &often),
        ("full", &full),
    ];
    let of = of.map(|(name, r)| format!("{:.0} in {name}", event(r)));
    println!("worker: ns an event, {}", of.join(", "));
    let runs = [
        ("many", &many),
        ("often", &often),
        ("sparse", &sparse),
        ("full", &full),
    ];
    let of = runs.map(|(name, r)| format!("{:.0} in {name}", judge(r) / r.evaluations * 1e6));
    println!(
        "judge: µs an evaluation, {}; {:.1} µs a second and stream",
        of.join(", "),
        (many.judge.idle - few.judge.idle) / many.streams * 1e6,
    );
    let kib = |bytes: f64| bytes / full.streams / 1024.0;
    println!(
        "a stream with full windows: {:.0} KiB in a checkpoint and its parts, {:.0} of state at the worker, {:.0} at \
         the judge",
        kib(full.worker.checkpoint),
        kib(full.worker.state - none.worker.state),
        kib(full.judge.state - none.judge.state),
    );
    println!(
        "load {}",
        std::fs::read_to_string("/proc/loadavg")
            .unwrap_or_default()
            .trim()
    );
}
