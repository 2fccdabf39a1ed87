//! Partitions that move between processes with their state, on a real Kafka: three processes of one
//! group join and leave, in order and by kill -9, and freeze for longer than a session, while
//! predictions and outcomes flow over 12 partitions. What they hold in the end must be, partition
//! by partition and to the bit, what one undisturbed process holds; and summed up, what a process
//! without a state topic counts that reads all partitions as one. The three hold more pending
//! predictions than memory may take, the undisturbed processes have room for all.
//!
//! `TRUELINE_MOVES` and `TRUELINE_EVENTS` make it as long as wanted; in CI it is short.

mod broken;
mod disks;
mod networks;
mod processes;
mod state;

use crate::support::broker::{Broker, unique};
use crate::support::late::{Kind, config, vectors};
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;
use serde_json::Value;
use state::{Held, Windows, assert_same, checkpoints, hold, known, windows};
use std::time::{Duration, Instant};
use trueline::collect::SourceCounters;

const PARTITIONS: i32 = 12;
const SLIDE: i64 = 600_000;

/// Longer than a session.
const FROZEN: Duration = Duration::from_secs(9);
const SESSION: &str = "[kafka.options]\n\"session.timeout.ms\" = \"6000\"";

/// Whether the services together have read so many records and hold so many partitions.
fn settled(services: &[&Service], partitions: usize) -> bool {
    let of = |s: &&Service| {
        let scrape = s.scrape()?;
        let lag = scrape.sum("trueline_partition_lag_records", &[]);
        let lags = scrape.count("trueline_partition_lag_records");
        Some((lags, lag))
    };
    let all: Option<Vec<_>> = services.iter().map(of).collect();
    all.is_some_and(|all| {
        let lags: usize = all.iter().map(|(lags, _)| lags).sum();
        lags == partitions && all.iter().all(|(_, lag)| *lag == 0.0)
    })
}

/// A broker with two topics of records, and groups that read them.
struct Stage<'b> {
    broker: &'b Broker,
    topics: [String; 2],
    kind: Kind,
    /// Records sent, those of the clock included.
    sent: usize,
}

impl<'b> Stage<'b> {
    fn new(broker: &'b Broker, kind: Kind, records: usize) -> Stage<'b> {
        let topics = ["predictions", "outcomes"].map(|t| format!("trueline-move-{t}-{}", unique()));
        broker.create_topics(&[(&topics[0], PARTITIONS), (&topics[1], PARTITIONS)]);
        Stage {
            broker,
            topics,
            kind,
            sent: records + 2 * PARTITIONS as usize,
        }
    }

    /// The configuration of a member of a group; its state topic has the name of the group.
    fn config(&self, group: &str, instance: Option<&str>, moving: bool) -> String {
        let group = self.group(group);
        let instance = instance.map_or(String::new(), |i| format!("instance = \"{i}\"\n"));
        let state = match moving {
            true => format!("topic = \"{group}\""),
            false => String::new(),
        };
        let text = config(
            &self.broker.bootstrap,
            &group,
            &self.topics,
            &(instance + SESSION),
            &state,
        );
        match self.kind {
            Kind::Scores => text,
            Kind::Vectors => vectors(&text),
        }
    }

    /// Streams of a model.
    fn views(&self) -> usize {
        match self.kind {
            Kind::Scores => 1,
            Kind::Vectors => 3,
        }
    }

    fn group(&self, group: &str) -> String {
        format!("{}-{group}", self.topics[0])
    }

    /// Waits until the service, which has all partitions, has read the clock and judged what it
    /// closed.
    fn judged(&self, service: &Service) -> Windows {
        wait_for("the clock to be read", 2 * LIMIT, || {
            let scrape = service.scrape()?;
            let read = scrape.sum("trueline_partition_position_offset", &[]);
            (read as usize == self.sent).then_some(())
        });
        // Panes are sealed once more when partitions are known to be read to their ends, a second
        // later and on a busy machine more.
        let all = 2.0 * f64::from(PARTITIONS);
        wait_for("the ends of the partitions", LIMIT, || {
            let scrape = service.scrape()?;
            (scrape.sum("trueline_partition_idle", &[]) >= all).then_some(())
        });
        // The clock is an hour ahead of all that was judged before it.
        let closed = |window: &Value| {
            let end = window["end"].as_str().expect("an end");
            let end = humantime::parse_rfc3339(end).expect("a time");
            end.elapsed()
                .is_ok_and(|age| age < Duration::from_secs(3600))
        };
        wait_for("the last windows", LIMIT, || {
            let one = windows(service);
            std::thread::sleep(Duration::from_secs(2));
            let last = one.len() == 6 * self.views() && one.values().all(closed);
            (last && windows(service) == one).then_some(one)
        })
    }

    /// Compares what a group holds in the end, and what it judged, with an undisturbed process and
    /// with one that has no state topic.
    fn compare(&self, group: &str, moved: &Windows) {
        let stored = |group: &str| {
            let group = self.group(group);
            checkpoints(self.broker, &group, &group, &self.topics[0])
        };
        let ours = stored(group);
        let mut still = Service::start(&self.config("still", None, true));
        let undisturbed = self.judged(&still);
        assert_eq!(still.end("TERM"), Some(0));
        let theirs = stored("still");
        for (partition, checkpoint) in &ours {
            let (ours, theirs) = (
                known(&checkpoint.snapshot),
                known(&theirs[partition].snapshot),
            );
            assert_eq!(ours.0, theirs.0, "offsets of {partition}");
            assert_eq!(ours.1, theirs.1, "counters of {partition}");
            assert_eq!(ours.2.len(), 4, "three models and the clock");
            for (model, state) in &ours.2 {
                let what = format!("state of {model} in partition {partition}");
                assert_same(&what, state, &theirs.2[model]);
            }
            assert_eq!(ours.3.len(), if self.views() > 1 { 4 } else { 0 });
            for (model, state) in &ours.3 {
                assert_eq!(state.views.len(), 2);
                let what = format!("vector views of {model} in partition {partition}");
                assert_same(&what, state, &theirs.3[model]);
            }
        }
        let mut whole = Service::start(&self.config("whole", None, false));
        let as_one = self.judged(&whole);
        assert_eq!(whole.end("TERM"), Some(0));
        let snapshot = trueline::store::load(&whole.state());
        let snapshot = snapshot.expect("sound").expect("a snapshot");
        let (mut parts, mut one) = (Held::new(), Held::new());
        hold(&mut one, &snapshot);
        ours.values().for_each(|p| hold(&mut parts, &p.snapshot));
        assert_eq!(parts.len(), one.len());
        for (at, sums) in &one {
            assert!(parts[at] == *sums, "sums of {at:?} differ");
        }
        for source in [0, 1] {
            let mut all = SourceCounters::default();
            ours.values()
                .for_each(|p| all.add(&p.snapshot.counters.source(source)));
            assert_eq!(all, snapshot.counters.source(source));
            assert!(
                source == 0 || (all.matched > 1000 && all.revised > 100),
                "{all:?}"
            );
        }
        // And the verdicts over all partitions, to the last bit of each p-value.
        assert_eq!(as_one.len(), 3 * self.views() * 2);
        let numbers = ["evaluation", "vector", "kernel"];
        let decided = |w: &&Value| numbers.iter().any(|name| w[name].is_object());
        assert_eq!(as_one.values().filter(decided).count(), as_one.len());
        assert_eq!(undisturbed, as_one);
        assert_eq!(*moved, as_one);
    }
}

struct Process {
    service: Service,
    runs: bool,
    /// Since when it is stopped and not ended.
    frozen: Option<Instant>,
}

impl Process {
    fn start(config: &str) -> Process {
        Process {
            service: Service::start(config),
            runs: true,
            frozen: None,
        }
    }

    fn end(&mut self, signal: &str) {
        let code = self.service.end(signal);
        if signal == "TERM" {
            assert_eq!(code, Some(0));
        }
        self.runs = false;
    }

    fn start_again(&mut self) {
        self.service.start_again();
        self.runs = true;
    }

    fn freeze(&mut self) {
        self.service.signal("STOP");
        self.frozen = Some(Instant::now());
    }

    /// Goes on, after the group has given its partitions to others.
    fn thaw(&mut self) {
        if let Some(since) = self.frozen.take() {
            std::thread::sleep(FROZEN.saturating_sub(since.elapsed()));
            self.service.signal("CONT");
        }
    }
}
