//! Partitions that move between processes with their state, on a real Kafka: three processes of one group
//! join and leave, in order and by kill -9, and freeze for longer than a session, while predictions and outcomes flow over 12 partitions. What
//! they hold in the end must be, partition by partition and to the bit, what one undisturbed process
//! holds; and summed up, what a process without a state topic counts that reads all partitions as one. The
//! three hold more pending predictions than memory may take, the undisturbed processes have room for all.
//!
//! `TRUELINE_MOVES` and `TRUELINE_EVENTS` make it as long as wanted; in CI it is short.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::broker::{Broker, unique};
use crate::support::late::{Kind, close_of, config, of_environment, records_of, spilling, vectors};
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;
use serde_json::Value;
use trueline::collect::SourceCounters;
use trueline::monitor::snapshot::{Snapshot, StreamState, VersionState};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::rng::Rng;
use trueline::stats::sums::Sums;
use trueline::store::checkpoint::{PartitionCheckpoint, prefix};
use trueline::store::reader::CheckpointReader;
use trueline::window::{Packed, PaneState, SumsState};

const PARTITIONS: i32 = 12;
const SLIDE: i64 = 600_000;
/// Longer than a session.
const FROZEN: Duration = Duration::from_secs(9);
const SESSION: &str = "[kafka.options]\n\"session.timeout.ms\" = \"6000\"";

/// The checkpoints of a group as they lie in its topic.
fn checkpoints(
    broker: &Broker,
    group: &str,
    state: &str,
    topic: &str,
) -> BTreeMap<i32, PartitionCheckpoint> {
    let open = |partition: i32| {
        let mut reader = CheckpointReader::new(prefix(group, topic, partition));
        for (key, value) in broker.read_keyed(state, partition) {
            reader.read(&key, value.as_deref());
        }
        let found = reader
            .newest()
            .expect("sound checkpoints")
            .expect("a checkpoint");
        assert!(found.refused.is_empty(), "{:?}", found.refused);
        (partition, found.checkpoint)
    };
    (0..PARTITIONS).map(open).collect()
}

/// What is known of a partition, but for the wall clock's part in it and the order of first arrival.
type Known = (
    BTreeMap<(u16, i32), i64>,
    Vec<SourceCounters>,
    BTreeMap<String, StreamState>,
    BTreeMap<String, VersionState>,
);

fn known(snapshot: &Snapshot) -> Known {
    let positions = snapshot.partitions.positions();
    let vectors = snapshot.vectors.iter().cloned().map(|mut version| {
        version.model = 0;
        // Partitions do not judge; what waits at the moment is told by ticks.
        version
            .views
            .iter_mut()
            .for_each(|v| v.judge.verdicts.clear());
        (version.name.clone(), version)
    });
    let subjects = snapshot.streams.iter().cloned().map(|mut subject| {
        subject.slot = None;
        subject.model = 0;
        (subject.name.clone(), subject)
    });
    (
        positions
            .map(|p| ((p.source, p.partition), p.offset))
            .collect(),
        snapshot
            .counters
            .sources()
            .map(|(_, c)| c.clone())
            .collect(),
        subjects.collect(),
        vectors.collect(),
    )
}

/// Sums, late events and predictions without outcome of each slide of each window, by model.
type Held = BTreeMap<(String, usize, i64), (Sums, u64, Vec<u64>)>;

fn hold(held: &mut Held, snapshot: &Snapshot) {
    let grid = Grid::new(Axis::Linear, 12);
    for subject in &snapshot.streams {
        // A stream of which no pane is sealed has no windows yet.
        let windows = subject.judges.first().map_or(&[][..], |j| &j.rings);
        for (window, ring) in windows.iter().enumerate() {
            let panes = ring.panes.iter().chain(&ring.gathering);
            for pane in panes {
                let PaneState {
                    start_ms,
                    late,
                    sums: SumsState::Scores(sums),
                    unlabelled,
                    ..
                } = pane
                else {
                    panic!("sums of scores")
                };
                let slide = start_ms - start_ms.rem_euclid(SLIDE);
                let entry = held.entry((subject.name.clone(), window, slide));
                let (all, lates, open) = entry.or_insert_with(|| (Sums::new(grid), 0, vec![0; 32]));
                let packed = Packed::from_bytes(sums).expect("sound sums");
                packed.merge_into(all).expect("sums that fit");
                *lates += late;
                let counts = unlabelled.dropped().into_iter().chain(unlabelled.implied());
                open.iter_mut().zip(counts).for_each(|(a, b)| *a += b);
            }
        }
    }
}

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

/// Windows of the three models by stream and name.
type Windows = BTreeMap<String, Value>;

/// The windows of the three models as the API shows them, without alerts: they remember each slide, and
/// slides are skipped when partitions move; and without linear and block sums, which are of each partition's events by themselves.
fn windows(service: &Service) -> Windows {
    let mut all = BTreeMap::new();
    for stream in service.streams().expect("streams") {
        if stream["model"] == "clock" {
            continue;
        }
        let path = stream["links"]["self"].as_str().expect("a link");
        let (_, body) = service.get(path).expect("an answer");
        let stream: Value = serde_json::from_str(&body).expect("the API answers JSON");
        for mut window in stream["windows"].as_array().cloned().expect("windows") {
            let name = format!(
                "{} {} {}",
                stream["model"], stream["view"], window["window"]
            );
            let fields = window.as_object_mut().expect("an object");
            fields.retain(|key, _| !key.starts_with("alert"));
            if let Some(kernel) = fields.get_mut("kernel").and_then(Value::as_object_mut) {
                kernel.retain(|key, _| !key.starts_with("blocks"));
            }
            all.insert(name, window);
        }
    }
    all
}

/// Shows where two states begin to differ.
fn assert_same<T: PartialEq + Debug>(what: &str, ours: &T, theirs: &T) {
    if ours == theirs {
        return;
    }
    let (a, b) = (format!("{ours:?}"), format!("{theirs:?}"));
    let at = a.bytes().zip(b.bytes()).position(|(x, y)| x != y);
    let near = |text: &str| {
        let at = at.unwrap_or(text.len());
        let range = at.saturating_sub(200)..(at + 100).min(text.len());
        text.get(range).unwrap_or_default().to_owned()
    };
    panic!("{what} differs:\n{}\n{}", near(&a), near(&b));
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

    /// Waits until the service, which has all partitions, has read the clock and judged what it closed.
    fn judged(&self, service: &Service) -> Windows {
        wait_for("the clock to be read", 2 * LIMIT, || {
            let scrape = service.scrape()?;
            let read = scrape.sum("trueline_partition_position_offset", &[]);
            (read as usize == self.sent).then_some(())
        });
        // Panes are sealed once more when partitions are known to be read to their ends, a second later and
        // on a busy machine more.
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

    /// Compares what a group holds in the end, and what it judged, with an undisturbed process and with
    /// one that has no state topic.
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

#[test]
fn processes_that_join_leave_freeze_and_die_hold_what_one_process_holds() {
    let name = "processes_that_join_leave_freeze_and_die_hold_what_one_process_holds";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let moves = of_environment("TRUELINE_MOVES", 8);
    // Of three classes, whose largest, two largest and samples of whole vectors move.
    let kind = Kind::Vectors;
    let records = records_of(kind, of_environment("TRUELINE_EVENTS", 60_000), PARTITIONS);
    let stage = Stage::new(&broker, kind, records.len());
    // One is a static member, which keeps its partitions when it comes back soon; the others are not.
    let mut all: Vec<Process> = [Some("one"), None, None]
        .map(|instance| Process::start(&spilling(&stage.config("group", instance, true))))
        .into();
    all.iter().for_each(|p| p.service.wait_ready());
    let mut sender = broker.producer();
    let mut rng = Rng::new(of_environment("TRUELINE_SEED", 11));
    let share = records.len() / moves as usize + 1;
    for (turn, part) in records.chunks(share).enumerate() {
        let when = (rng.uniform() * 30.0) as usize;
        for (i, chunk) in part.chunks(part.len().div_ceil(30)).enumerate() {
            for r in chunk {
                let topic = &stage.topics[usize::from(r.outcome)];
                sender.send(topic, r.partition, r.text.as_bytes());
            }
            std::thread::sleep(Duration::from_millis(100));
            // A partition that the broker takes later than others would have late records.
            sender.flush();
            for process in all.iter().filter(|p| p.runs && p.frozen.is_none()) {
                // Looks at conservation.
                process.service.scrape();
            }
            if i == when {
                disturb(&mut all, turn, &mut rng);
            }
        }
    }
    sender.flush();
    // One is left, and has all partitions when the clock moves on.
    all.iter_mut().for_each(Process::thaw);
    if !all[1].runs {
        all[1].start_again();
    }
    for which in [0, 2] {
        if all[which].runs {
            all[which].end("TERM");
        }
    }
    let last = &mut all[1];
    wait_for("one process to have all partitions", 2 * LIMIT, || {
        settled(&[&last.service], 2 * PARTITIONS as usize).then_some(())
    });
    last.service.wait_spilled();
    close_of(kind, &mut sender, &stage.topics, PARTITIONS);
    let moved = stage.judged(&last.service);
    last.end("TERM");
    stage.compare("group", &moved);
}

/// Lets one process leave, die, freeze or come back. Every kind comes in turn, at whom chance wants.
fn disturb(all: &mut [Process], turn: usize, rng: &mut Rng) {
    let which = (rng.uniform() * 3.0) as usize;
    for process in all.iter_mut() {
        if process.frozen.is_some_and(|since| since.elapsed() > FROZEN) {
            process.thaw();
        }
    }
    let awake = |p: &&Process| p.runs && p.frozen.is_none();
    let alone = all.iter().filter(awake).count() < 2;
    let process = &mut all[which];
    if process.frozen.is_some() {
        return;
    }
    if !process.runs {
        return process.start_again();
    }
    match turn % 4 {
        0 | 2 => {
            process.end("KILL");
            if alone || rng.uniform() < 0.3 {
                process.start_again();
            }
        }
        1 => {
            process.end("TERM");
            if alone {
                process.start_again();
            }
        }
        _ if alone => {}
        _ => process.freeze(),
    }
}

#[test]
fn a_network_cut_with_state_in_a_topic_loses_and_doubles_nothing() {
    let name = "a_network_cut_with_state_in_a_topic_loses_and_doubles_nothing";
    let Some(broker) = Broker::own(name) else {
        return;
    };
    let cut = of_environment("TRUELINE_CUT_SECONDS", 10);
    let kind = Kind::Scores;
    let records = records_of(kind, 40_000, PARTITIONS);
    let stage = Stage::new(&broker, kind, records.len());
    let mut all: Vec<Process> = [Some("one"), None]
        .map(|instance| Process::start(&stage.config("group", instance, true)))
        .into();
    all.iter().for_each(|p| p.service.wait_ready());
    let mut sender = broker.producer();
    for (i, chunk) in records.chunks(records.len().div_ceil(40)).enumerate() {
        for r in chunk {
            let topic = &stage.topics[usize::from(r.outcome)];
            sender.send(topic, r.partition, r.text.as_bytes());
        }
        if i == 20 {
            broker.signal("STOP");
            for _ in 0..cut {
                std::thread::sleep(Duration::from_secs(1));
                let answers = |p: &Process| p.service.scrape().is_some();
                assert!(all.iter().all(answers), "metrics are answered meanwhile");
            }
            broker.signal("CONT");
        }
        std::thread::sleep(Duration::from_millis(100));
        sender.flush();
    }
    sender.flush();
    all[0].end("TERM");
    let last = &mut all[1];
    wait_for("one process to have all partitions", 2 * LIMIT, || {
        settled(&[&last.service], 2 * PARTITIONS as usize).then_some(())
    });
    close_of(kind, &mut sender, &stage.topics, PARTITIONS);
    let moved = stage.judged(&last.service);
    last.end("TERM");
    stage.compare("group", &moved);
}

/// What `state inspect` says of the topic in which partition 3 holds something foreign and 5 nothing whole.
fn assert_inspected(service: &Service, topic: &str) {
    let inspect = |more: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_trueline"));
        let command = command.args(["state", "inspect", "--config"]);
        let output = command.arg(service.config()).args(more).output();
        output.expect("it starts")
    };
    let output = inspect(&["--json"]);
    assert_eq!(output.status.code(), Some(65), "{output:?}");
    let all: Value = serde_json::from_slice(&output.stdout).expect("json");
    assert_eq!(
        (&all["topic"], &all["partitions"]),
        (&topic.into(), &PARTITIONS.into())
    );
    let state = all["state"].as_array().expect("partitions");
    assert_eq!(state.len(), PARTITIONS as usize);
    for one in state {
        let name = one["partition"].as_str().expect("a name");
        let partition: i32 = name.rsplit('/').next().unwrap().parse().expect("a number");
        assert_eq!(one["state_partition"], partition, "{one:#}");
        let usable = partition != 3 && partition != 5;
        assert_eq!(one["usable"], usable, "{one:#}");
        assert!(
            one["claim"]["by"]
                .as_str()
                .is_some_and(|by| by.contains("process "))
        );
        if usable {
            assert_eq!(one["writer"], one["claim"], "{one:#}");
            assert!(
                one["age_seconds"]
                    .as_f64()
                    .is_some_and(|s| (0.0..3600.0).contains(&s))
            );
            // The service may have ended before it had read all of both topics.
            let next = one["checkpoint"]["next"].as_array().map(Vec::len);
            assert!(next >= Some(1), "{one:#}");
            assert!(one["checkpoint"]["records"].as_u64() > Some(0), "{one:#}");
        }
    }
    let output = inspect(&[]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("/3/notes: foreign") && said.contains("/head/"),
        "{said}"
    );
    assert_eq!(said.matches("no usable checkpoint").count(), 2, "{said}");
}

#[test]
fn a_partition_whose_state_is_broken_or_gone_stops_by_name_and_the_others_go_on() {
    let name = "a_partition_whose_state_is_broken_or_gone_stops_by_name_and_the_others_go_on";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let records = records_of(Kind::Scores, 6_000, PARTITIONS);
    let stage = Stage::new(&broker, Kind::Scores, records.len());
    let mut service = Service::start(&stage.config("group", None, true));
    service.wait_ready();
    let mut sender = broker.producer();
    for r in &records {
        let topic = &stage.topics[usize::from(r.outcome)];
        sender.send(topic, r.partition, r.text.as_bytes());
    }
    sender.flush();
    wait_for("all records", LIMIT, || {
        settled(&[&service], 2 * PARTITIONS as usize).then_some(())
    });
    assert_eq!(service.end("TERM"), Some(0));
    // Something foreign lies under the keys of one partition; every head of another is cut short.
    let group = stage.group("group");
    let key = |partition: i32, rest: &str| prefix(&group, &stage.topics[0], partition) + rest;
    sender.send_keyed(&group, 3, &key(3, "notes"), b"hello");
    for (name, value) in broker.read_keyed(&group, 5) {
        let name = String::from_utf8(name).expect("text");
        if let (true, Some(value)) = (name.contains("/head/"), value) {
            sender.send_keyed(&group, 5, &name, &value[..20]);
        }
    }
    sender.flush();
    assert_inspected(&service, &group);
    service.start_again();
    let said = service.wait_not_ready(&["/notes: foreign", "/head/", "torn", "on_broken"]);
    assert_eq!(said.matches("state of ").count(), 2, "{said}");
    for r in &records {
        let topic = &stage.topics[usize::from(r.outcome)];
        sender.send(topic, r.partition, r.text.as_bytes());
    }
    sender.flush();
    wait_for("the others to go on", LIMIT, || {
        settled(&[&service], 2 * PARTITIONS as usize - 4).then_some(())
    });
    let scrape = service.scrape().expect("an answer");
    assert_eq!(scrape.sum("trueline_partition_suspended", &[]), 2.0);
    let written = wait_for("checkpoints to be written", LIMIT, || {
        let scrape = service.scrape()?;
        (scrape.sum("trueline_checkpoint_written_bytes_total", &[]) > 0.0).then_some(scrape)
    });
    for (metric, series) in [
        ("trueline_records_moved_total", 4),
        ("trueline_checkpoints_total", 3),
        (
            "trueline_checkpoint_timestamp_seconds",
            PARTITIONS as usize - 2,
        ),
    ] {
        assert_eq!(written.count(metric), series, "{metric}");
    }
    for metric in [
        "trueline_checkpoint_read_bytes_total",
        "trueline_checkpoint_restore_seconds",
    ] {
        assert!(written.sum(metric, &[]) > 0.0, "{metric}");
    }
    assert_eq!(service.end("TERM"), Some(0));
    // Only when told so do they begin anew.
    service.rewrite(|text| text.replace("[state]", "[state]\non_broken = \"fresh\""));
    service.start_again();
    wait_for("all partitions", LIMIT, || {
        settled(&[&service], 2 * PARTITIONS as usize).then_some(())
    });
    assert_eq!(service.end("TERM"), Some(0));
}

#[test]
fn a_full_disk_during_a_takeover_ends_the_process_and_the_next_has_everything() {
    const PREDICTIONS: u32 = 40_000;
    let name = "a_full_disk_during_a_takeover_ends_the_process_and_the_next_has_everything";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let records = records_of(Kind::Scores, PREDICTIONS.into(), PARTITIONS);
    let stage = Stage::new(&broker, Kind::Scores, records.len());
    let mut sender = broker.producer();
    for r in &records {
        let topic = &stage.topics[usize::from(r.outcome)];
        sender.send(topic, r.partition, r.text.as_bytes());
    }
    sender.flush();
    // All is there before it reads: a hundred minutes in a second would make what lags behind late.
    let mut service = Service::start(&spilling(&stage.config("group", None, true)));
    service.wait_ready();
    // Records are counted as they come, what is retained some time later: only the end of both is compared.
    let retained = |service: &Service, what: &str| {
        wait_for(what, LIMIT, || {
            let retained = service.scrape()?.sum("trueline_predictions_retained", &[]);
            (retained == f64::from(PREDICTIONS)).then_some(())
        });
    };
    retained(&service, "all predictions");
    assert_eq!(service.end("TERM"), Some(0));
    // No file may grow beyond 8 KiB: to the process, a full disk.
    let limited = "trap '' XFSZ; ulimit -S -f 8; exec timeout 120 \"$0\" run --config \"$1\"";
    let limited = Command::new("bash")
        .args(["-c", limited, env!("CARGO_BIN_EXE_trueline")])
        .arg(service.config())
        .output()
        .expect("bash");
    let said = [limited.stdout, limited.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert_eq!(limited.status.code(), Some(69), "{said}");
    for words in ["could not be taken over", "spill", "free space"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    service.start_again();
    retained(&service, "all predictions in the next process");
    assert_eq!(service.metric("trueline_partition_suspended", &[]), 0.0);
    assert_eq!(service.end("TERM"), Some(0));
}
