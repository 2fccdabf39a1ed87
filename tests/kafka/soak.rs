//! A long time on a real Kafka, joined. At half the greatest rate memory is flat after the warm-up
//! and the lag does not grow. Through a kill, a freeze, a transaction that hangs and steps of the
//! wall clock memory is flat, and the sums are those of a pass that nobody disturbs.
//! `TRUELINE_SOAK` says how long, `30m`. Without it a test lasts half a minute. The first one then
//! has windows that are full after some seconds, and memory may grow less than by a leak of some
//! hundred bytes a record. In the second one windows and retained predictions fill until the freeze
//! ends; in the 50,000 records after it memory may grow less than by a leak of 800 bytes a record.

use std::time::{Duration, Instant};

use super::kills::{known, settle};
use crate::support::broker::{Broker, unique};
use crate::support::clock::{NO_COMPILER, SteppingClock};
use crate::support::late::{close, now_ms};
use crate::support::sender::Sender;
use crate::support::service::{LIMIT, Service};
use crate::support::{skip, wait_for};
use trueline::stats::rng::Rng;

const PARTITIONS: i32 = 4;

/// How long a test lasts without the long mode.
const BRIEF: Duration = Duration::from_secs(30);

/// How long the greatest rate is measured.
const MEASURE: Duration = Duration::from_secs(8);

/// Records of both kinds that are sent between two looks at the clock.
const BURST: u64 = 500;

/// Lag that is made of what was fetched and not counted yet, in time at the rate of the run:
/// statistics come once a second.
const LAG_SECONDS: f64 = 3.0;

/// The same where nothing is long: a process that reads less than six of ten records lags more at
/// the end.
const BRIEF_LAG_SECONDS: f64 = 10.0;

/// Greatest rate without the long mode.
const BRIEF_RATE: f64 = 20_000.0;

/// By what share and by how many MiB memory may differ between two halves of a run.
const LONG_GROWTH: (f64, f64) = (0.05, 8.0);

/// The same without the long mode: a half lasts ten seconds, and a snapshot is taken every five.
const BRIEF_GROWTH: (f64, f64) = (0.1, 16.0);

/// Windows that are not full before the end of a test without the long mode.
const WIDE: [&str; 2] = ["5s", r#"["10s", "30s"]"#];

/// Those that are full after eight seconds, with what is retained for them. Maturity and windows.
const NARROW: [&str; 2] = [
    "2s",
    r#"[{ width = "2s", slide = "1s" }, { width = "5s", slide = "1s" }]"#,
];

fn config(brokers: &str, topics: &[String; 2], [maturity, windows]: [&str; 2]) -> String {
    let [predictions, outcomes] = topics;
    format!(
        r#"
version = 1
[kafka]
brokers = "{brokers}"
group = "{predictions}"
statistics_interval = "1s"
[[source]]
topics = ["{predictions}"]
[source.fields]
id = "id"
time = "time_ms"
score = "score"
[source.outcomes]
topics = ["{outcomes}"]
maturity = "{maturity}"
time = "time_ms"
on_missing = "negative"
revise = true
[[model]]
name = "*"
windows = {windows}
lateness = "1s"
[http]
listen = "LISTEN"
[state]
directory = "STATE"
interval = "5s"
"#
    )
}

/// Sends predictions, and the outcomes of those sent before, as fast as `rate` allows, for so long.
struct Load {
    rng: Rng,
    next: u64,
}

impl Load {
    fn run(
        &mut self,
        sender: &mut Sender,
        topics: &[String; 2],
        rate: f64,
        until: impl Fn(Duration) -> bool,
    ) -> f64 {
        let (start, from) = (Instant::now(), self.next);
        while until(start.elapsed()) {
            for _ in 0..BURST / 2 {
                self.pair(sender, topics);
            }
            let due = (self.next - from) as f64 / rate;
            let ahead = due - start.elapsed().as_secs_f64();
            if ahead > 0.0 {
                std::thread::sleep(Duration::from_secs_f64(ahead.min(1.0)));
            }
        }
        (self.next - from) as f64 / start.elapsed().as_secs_f64()
    }

    fn pair(&mut self, sender: &mut Sender, topics: &[String; 2]) {
        self.pair_at(sender, topics, (self.next / 2 % PARTITIONS as u64) as i32);
    }

    fn pair_at(&mut self, sender: &mut Sender, topics: &[String; 2], partition: i32) {
        let (id, time_ms) = (self.next, now_ms());
        let (score, model) = (self.rng.uniform(), id % 10);
        let prediction =
            format!(r#"{{"id":"{id}","model":"m{model}","time_ms":{time_ms},"score":{score}}}"#);
        sender.send(&topics[0], partition, prediction.as_bytes());
        let outcome = self.rng.uniform() < score;
        let outcome = format!(r#"{{"id":"{id}","time_ms":{time_ms},"outcome":{outcome}}}"#);
        sender.send(&topics[1], partition, outcome.as_bytes());
        self.next += 2;
    }
}

/// How long the long mode lasts, where it is asked for.
fn wanted() -> Option<Duration> {
    let wanted = std::env::var("TRUELINE_SOAK").ok();
    wanted.map(|text| humantime::parse_duration(&text).expect("a time such as 30m"))
}

/// Memory in MiB and lag in records.
fn look(service: &Service) -> (f64, f64) {
    let scrape = service.scrape().expect("an answer");
    (
        scrape.sum("process_resident_memory_bytes", &[]) / f64::from(1 << 20),
        scrape.sum("trueline_partition_lag_records", &[]),
    )
}

fn read(service: &Service) -> f64 {
    service.counted("records").expect("an answer")
}

/// Memory after the warm-up: no more in its second half than in its first.
fn assert_flat(memory: &[f64], (share, mib): (f64, f64)) {
    let (first, second) = memory.split_at(memory.len() / 2);
    assert!(
        greatest(second) <= greatest(first) * (1.0 + share) + mib,
        "memory grows: {memory:?}"
    );
}

fn greatest(all: &[f64]) -> f64 {
    all.iter().copied().fold(0.0, f64::max)
}

#[test]
fn at_half_the_greatest_rate_memory_is_flat_and_the_lag_does_not_grow() {
    let name = "at_half_the_greatest_rate_memory_is_flat_and_the_lag_does_not_grow";
    let Some(broker) = Broker::alone(name) else {
        return;
    };
    let wanted = wanted();
    let long = wanted.unwrap_or(BRIEF);
    let topics = ["predictions", "outcomes"].map(|t| format!("trueline-soak-{t}-{}", unique()));
    broker.create_topics(&[(&topics[0], PARTITIONS), (&topics[1], PARTITIONS)]);
    let shape = wanted.map_or(NARROW, |_| WIDE);
    let mut service = Service::start(&config(&broker.bootstrap, &topics, shape));
    service.wait_ready();
    let mut sender = broker.producer();
    let mut load = Load {
        rng: Rng::new(1),
        next: 0,
    };
    // The greatest rate at which records are made and read on this machine at the same time.
    let before = read(&service);
    load.run(&mut sender, &topics, f64::INFINITY, |t| t < MEASURE);
    let most = (read(&service) - before) / MEASURE.as_secs_f64();
    sender.flush();
    wait_for("the rest", LIMIT, || {
        (read(&service) as u64 == load.next).then_some(())
    });
    let rate = wanted.map_or(BRIEF_RATE, |_| f64::INFINITY).min(most / 2.0);
    let (start, mut memory, mut lag) = (Instant::now(), Vec::new(), Vec::new());
    let step = (long / 60).clamp(Duration::from_millis(500), Duration::from_secs(10));
    let mut sent = 0.0;
    while start.elapsed() < long {
        sent += load.run(&mut sender, &topics, rate, |t| t < step) * step.as_secs_f64();
        let (mib, records) = look(&service);
        memory.push(mib);
        lag.push(records);
        if memory.len() % 6 == 0 {
            let minutes = start.elapsed().as_secs_f64() / 60.0;
            println!("{minutes:.1} min: {mib:.0} MiB, lag {records}");
        }
    }
    sender.flush();
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{long:?} at {:.0} of {most:.0} records a second: memory {:.0} to {:.0} MiB, greatest lag {:.0}",
        sent / seconds,
        memory[memory.len() / 3],
        greatest(&memory),
        greatest(&lag),
    );
    assert_eq!(service.end("TERM"), Some(0));
    // The warm-up is the first third.
    let third = memory.len() / 3;
    let growth = wanted.map_or(BRIEF_GROWTH, |_| LONG_GROWTH);
    assert_flat(&memory[third..], growth);
    let seconds = wanted.map_or(BRIEF_LAG_SECONDS, |_| LAG_SECONDS);
    let median = |all: &[f64]| {
        let mut all = all.to_vec();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let (middle, last) = (&lag[third..2 * third], &lag[2 * third..]);
    assert!(
        median(last) <= median(middle).max(rate * seconds),
        "the lag grows: {lag:?}"
    );
}

/// What happens to the process, each at its share of the time.
#[derive(Debug, Clone, Copy)]
enum Fault {
    Kill,
    /// Longer than its session in the group.
    Freeze,
    /// Somebody's transaction hides what comes after it on one partition of each topic.
    Transaction,
    /// The wall clock goes ten years forth, back, ten years back, and forth.
    Clock,
}

const FAULTS: [Fault; 4] = [Fault::Kill, Fault::Freeze, Fault::Transaction, Fault::Clock];

/// How long a freeze and a hanging transaction last: less than `stalled_after`, so that no verdict
/// is withdrawn.
const FAULT_LASTS: Duration = Duration::from_secs(13);
const TEN_YEARS_SECONDS: i64 = 10 * 365 * 86_400;

/// Looks at memory before each fault, and after the last one.
const LOOKS: usize = 10;

/// Pairs of records a second.
const MODERATE: f64 = 1_000.0;

#[test]
fn a_kill_a_freeze_a_transaction_and_a_clock_leave_the_sums_and_flat_memory() {
    let name = "a_kill_a_freeze_a_transaction_and_a_clock_leave_the_sums_and_flat_memory";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let Some(clock) = SteppingClock::new() else {
        return skip(name, NO_COMPILER);
    };
    let wanted = wanted();
    let topics = ["predictions", "outcomes"].map(|t| format!("trueline-faults-{t}-{}", unique()));
    broker.create_topics(&[(&topics[0], PARTITIONS), (&topics[1], PARTITIONS)]);
    let group = |which: &str| {
        config(&broker.bootstrap, &topics, WIDE)
            .replace(
                "lateness = \"1s\"",
                "lateness = \"10s\"\n[model.alert]\nstale_after = \"7d\"",
            )
            .replace(
                "statistics_interval",
                &format!("instance = \"{which}\"\nstatistics_interval"),
            )
            .replace(
                "[[source]]",
                "[kafka.options]\n\"session.timeout.ms\" = \"10000\"\n[[source]]",
            )
            .replacen(
                &format!("group = \"{}\"", topics[0]),
                &format!("group = \"{which}-{}\"", topics[0]),
                1,
            )
    };
    let mut service = Service::start_with(&group("one"), clock.env());
    service.wait_ready();
    let mut sender = broker.producer();
    let mut hidden = broker.transactional(&topics[0]);
    let mut load = Load {
        rng: Rng::new(2),
        next: 0,
    };
    let part = wanted.unwrap_or(BRIEF / 3) / (FAULTS.len() as u32 + 1);
    let mut memory = Vec::new();
    for fault in FAULTS.map(Some).into_iter().chain([None]) {
        for _ in 0..LOOKS {
            load.run(&mut sender, &topics, 2.0 * MODERATE, |t| {
                t < part / LOOKS as u32
            });
            memory.push(look(&service).0);
        }
        let mut go = |load: &mut Load, time: Duration| {
            load.run(&mut sender, &topics, 2.0 * MODERATE, |t| t < time);
        };
        match fault {
            Some(Fault::Kill) => {
                service.end("KILL");
                go(&mut load, Duration::from_secs(2));
                service.start_again();
                memory.clear();
            }
            Some(Fault::Freeze) => {
                service.signal("STOP");
                go(&mut load, FAULT_LASTS);
                service.signal("CONT");
            }
            Some(Fault::Transaction) => {
                hidden.begin();
                load.pair_at(&mut hidden, &topics, 0);
                hidden.flush();
                go(&mut load, FAULT_LASTS);
                hidden.end(true);
            }
            Some(Fault::Clock) => {
                for step in [TEN_YEARS_SECONDS, 0, -TEN_YEARS_SECONDS, 0] {
                    clock.step(step);
                    go(&mut load, Duration::from_secs(2));
                }
            }
            None => {}
        }
        println!(
            "{fault:?}: {:.0} MiB",
            memory.last().copied().unwrap_or(0.0)
        );
    }
    sender.flush();
    // Past lateness and maturity of all of them.
    std::thread::sleep(Duration::from_secs(20));
    close(&mut sender, &topics, PARTITIONS);
    let all = load.next + 2 * PARTITIONS as u64;
    settle(&service, all);
    assert_eq!(service.end("TERM"), Some(0));

    let mut undisturbed = Service::start(&group("two"));
    settle(&undisturbed, all);
    assert_eq!(undisturbed.end("TERM"), Some(0));
    let (ours, theirs) = (known(&service), known(&undisturbed));
    assert_eq!(ours.1, theirs.1, "counters");
    assert_eq!(ours.2.len(), 6, "five models and the clock");
    for (model, state) in &ours.2 {
        assert!(*state == theirs.2[model], "state of {model} differs");
    }
    let matched: u64 = ours.1.iter().map(|c| c.matched).sum();
    println!(
        "{matched} of {} pairs matched, memory {memory:.0?} MiB",
        load.next / 2
    );
    assert!(matched > load.next / 2 * 9 / 10, "{matched}");
    // After the freeze, and after the last fault.
    let after = [&memory[LOOKS..2 * LOOKS], &memory[3 * LOOKS..]].concat();
    assert_flat(&after, wanted.map_or(BRIEF_GROWTH, |_| LONG_GROWTH));
}
