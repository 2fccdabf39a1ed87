//! Half the greatest rate for a long time on a real Kafka, joined: after the warm-up memory is flat and the lag
//! does not grow. `TRUELINE_SOAK` says how long, `30m`; without it half a minute, which says little more than
//! that the test works.

use std::time::{Duration, Instant};

use crate::support::broker::{Broker, Sender, unique};
use crate::support::late::now_ms;
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;
use trueline::stats::rng::Rng;

const PARTITIONS: i32 = 4;

/// How long the greatest rate is measured.
const MEASURE: Duration = Duration::from_secs(8);

/// Records of both kinds that are sent between two looks at the clock.
const BURST: u64 = 500;

/// Lag that is made of what was fetched and not counted yet, in time at the rate of the run: statistics
/// come once a second.
const LAG_SECONDS: f64 = 3.0;

fn config(brokers: &str, topics: &[String; 2]) -> String {
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
maturity = "5s"
time = "time_ms"
on_missing = "negative"
revise = true
[[model]]
name = "*"
windows = ["10s", "30s"]
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
        let (id, time_ms) = (self.next, now_ms());
        let (score, model) = (self.rng.uniform(), id % 10);
        let partition = (id / 2 % PARTITIONS as u64) as i32;
        let prediction =
            format!(r#"{{"id":"{id}","model":"m{model}","time_ms":{time_ms},"score":{score}}}"#);
        sender.send(&topics[0], partition, prediction.as_bytes());
        let outcome = self.rng.uniform() < score;
        let outcome = format!(r#"{{"id":"{id}","time_ms":{time_ms},"outcome":{outcome}}}"#);
        sender.send(&topics[1], partition, outcome.as_bytes());
        self.next += 2;
    }
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
    let scrape = service.scrape().expect("an answer");
    scrape.sum("trueline_records_read_total", &[])
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
    let wanted = std::env::var("TRUELINE_SOAK").ok();
    let wanted = wanted.map(|text| humantime::parse_duration(&text).expect("a time such as 30m"));
    let long = wanted.unwrap_or(Duration::from_secs(30));
    let topics = ["predictions", "outcomes"].map(|t| format!("trueline-soak-{t}-{}", unique()));
    broker.create_topics(&[(&topics[0], PARTITIONS), (&topics[1], PARTITIONS)]);
    let mut service = Service::start(&config(&broker.bootstrap, &topics));
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
    let rate = most / 2.0;
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
    if wanted.is_none() {
        return;
    }
    // The warm-up is the first third.
    let third = memory.len() / 3;
    let (middle, last) = (&memory[third..2 * third], &memory[2 * third..]);
    assert!(
        greatest(last) <= greatest(middle) * 1.05 + 8.0,
        "memory grows: {memory:?}"
    );
    let median = |all: &[f64]| {
        let mut all = all.to_vec();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let (middle, last) = (&lag[third..2 * third], &lag[2 * third..]);
    assert!(
        median(last) <= median(middle).max(rate * LAG_SECONDS),
        "the lag grows: {lag:?}"
    );
}
