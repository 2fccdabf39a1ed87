//! A judge with a backlog.

use super::{Topic, follower};
use crate::alert::AlertState;
use crate::app::clock;
use crate::app::cluster::judge_task::JudgeTask;
use crate::app::cluster::judges::Judges;
use crate::app::cluster::lengths::Lengths;
use crate::app::cluster::topology::Topology;
use crate::app::outputs::alerts::AlertDispatcher;
use crate::app::outputs::publish;
use crate::app::testing::{self, event};
use crate::collect::PartitionId;
use crate::judge::{JudgeOptions, Step};
use crate::monitor::{LocalShard, PartitionEvent, Plan, RecordSink};
use crate::notify::{self, AlertJournal, Host, NotifyOptions, Status};
use crate::store::checkpoint::{KeyedRecord, PartitionCheckpoint, records};
use crate::telemetry::Published;
use crate::telemetry::facts::{
    CheckpointCounts, FreshnessCounts, JudgeFacts, Role, SchemaRequests,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SECOND_MS: i64 = 1_000;
const HOUR_MS: i64 = 3_600_000;
const HOUR: Duration = Duration::from_secs(3_600);

fn topics() -> Vec<String> {
    vec!["t".to_owned()]
}

fn plan() -> Plan {
    testing::plan(JudgeOptions {
        min_events: 20,
        ..JudgeOptions::plain()
    })
}

/// What a worker counts of partition 0.
struct Partition {
    shard: LocalShard,
    begin_ms: i64,
    offset: i64,
    checkpoints: u64,
}

impl Partition {
    /// A partition whose first event has this time.
    fn new(begin_ms: i64) -> Partition {
        let at = (0, 0).into();
        let mut shard = LocalShard::new(at, &plan(), topics(), None);
        shard.assign(at);
        shard.keep_log();
        Partition {
            shard,
            begin_ms,
            offset: 0,
            checkpoints: 0,
        }
    }

    /// Counts this many seconds of events, ten a second, calibrated or not, and writes a
    /// checkpoint.
    fn read(&mut self, seconds: i64, calibrated: bool) -> Vec<KeyedRecord> {
        for n in self.offset..self.offset + 10 * seconds {
            let origin = PartitionId::from((0, 0)).at(n);
            let happens = n % 10 != 0 && (calibrated || n % 2 == 0);
            let event = event("m", "1", self.begin_ms + n * 100, 0.9, happens);
            self.shard.observe(origin, &event);
        }
        self.offset += 10 * seconds;
        let at = (0, 0).into();
        self.shard.on_partition(at, PartitionEvent::Ended);
        let checkpoint = PartitionCheckpoint {
            deltas: self.shard.delta_batch(),
            snapshot: self.shard.snapshot(),
            ..PartitionCheckpoint::default()
        };
        self.checkpoints += 1;
        let written = records(&checkpoint, "g/t/0/", 1, self.checkpoints);
        let (mut body, head) = written.expect("encoded");
        body.push(head);
        body
    }
}

/// Lets the follower of the topic read these records next.
fn bring(topic: &Topic, records: Vec<KeyedRecord>) {
    let mut come = topic.come.lock();
    come.extend((100..).zip(records));
}

fn facts(engine: &Topology) -> JudgeFacts {
    match engine.role() {
        Role::Judge(facts) => facts,
        _ => panic!("it judges"),
    }
}

/// A judge that has read an empty topic.
fn judge(topic: &Topic) -> Topology {
    let judges = Judges::one(plan(), topics(), follower(topic, HOUR), None);
    let mut engine = Topology::Judges(Box::new(judges.expect("without state")));
    let begun = Instant::now();
    while facts(&engine).backlog {
        engine.follow(Duration::from_millis(10));
        assert!(begun.elapsed() < Duration::from_secs(10), "it does not end");
    }
    engine
}

#[test]
fn people_hear_of_a_backlog_what_still_fires_at_its_end_and_metrics_say_how_late_it_is() {
    for still_fires in [false, true] {
        let (topic, published) = (Topic::default(), Arc::new(Published::default()));
        let mut engine = judge(&topic);
        let folder = TempDir::with_prefix("trueline-backlog-").expect("a folder");
        let host: Arc<dyn Host> = Arc::new(notify::Threads);
        let options = NotifyOptions {
            max_age_ms: HOUR_MS,
            ..notify::tests::options(&[])
        };
        let started =
            AlertDispatcher::start(options, folder.path(), &engine, None, &host, &published);
        let mut alerts = started.expect("it starts");
        let (mut fired, mut steps, mut shown) = (0, 0, BTreeSet::new());
        let mut step = |engine: &mut Topology| {
            engine.follow(Duration::from_millis(10));
            let changes = engine.tick(clock::steady_ms());
            let fires = changes.iter().filter(
                |c| matches!(c.step, Step::Stream { to, .. } if to.state == AlertState::Firing),
            );
            fired += fires.count();
            alerts.dispatch(&changes, engine, &published);
            publish::facts(
                &published,
                engine,
                &[],
                &topics(),
                SchemaRequests::default(),
            );
            let facts = published.facts();
            if matches!(facts.role, Role::Judge(judge) if judge.backlog) {
                steps += 1;
                shown.insert(facts.watermark.as_ref().and_then(|w| w.time_ms));
            }
        };
        // The judge has caught up; then hours of old data come.
        (0..3).for_each(|_| step(&mut engine));
        let begin_ms = clock::now_ms() - 5 * HOUR_MS;
        let mut partition = Partition::new(begin_ms);
        partition.read(1_000, true);
        partition.read(1_500, false);
        if !still_fires {
            partition.read(1_000, true);
        }
        bring(&topic, partition.read(100, !still_fires));
        let end_ms = begin_ms + partition.offset * 100;
        let (begun, mut through) = (Instant::now(), None);
        // Longer than the time between two comparisons.
        while through.is_none_or(|at: Instant| at.elapsed() < Duration::from_millis(1_500)) {
            step(&mut engine);
            let watermark = published.facts().watermark.clone();
            let judged_ms = watermark.and_then(|w| w.time_ms);
            if judged_ms >= Some(end_ms - 2 * SECOND_MS) {
                through.get_or_insert_with(Instant::now);
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{judged_ms:?}");
        }
        let all_covered = FreshnessCounts {
            covered: 2,
            ..FreshnessCounts::default()
        };
        assert_eq!(facts(&engine).partitions, all_covered);
        let fires = published
            .facts()
            .alerts
            .iter()
            .any(|a| a.state == AlertState::Firing);
        assert_eq!(fires, still_fires);
        alerts.stop(Duration::from_secs(60), &mut engine);
        assert!(fired > 0 && steps > 1, "{fired} in {steps} steps");
        let (journal, _) = AlertJournal::open(folder.path()).expect("a journal");
        let told = journal.state().last.values().map(|n| n.status);
        let expected = still_fires.then_some(Status::Firing);
        assert_eq!(told.collect::<Vec<_>>(), Vec::from_iter(expected));
        // Each step is shown.
        let judged_ms = |ms: &Option<i64>| ms.expect("something is judged");
        assert_eq!(shown.len(), steps);
        assert!(
            shown
                .iter()
                .map(judged_ms)
                .all(|ms| ms < end_ms - 60 * SECOND_MS)
        );
    }
}

#[test]
fn a_backlog_is_judged_while_brokers_are_away_without_asking_them_again() {
    let topic = Topic::default();
    let mut engine = judge(&topic);
    bring(
        &topic,
        Partition::new(clock::now_ms() - 24 * HOUR_MS).read(30_000, true),
    );
    let begun = Instant::now();
    while !facts(&engine).backlog {
        engine.follow(Duration::ZERO);
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing comes");
    }
    topic.set_away(true);
    topic.asked.store(0, Ordering::Relaxed);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(3_300) {
        engine.follow(Duration::ZERO);
        std::thread::sleep(Duration::from_millis(150));
    }
    assert!(facts(&engine).backlog, "it is through too early");
    assert_eq!(topic.asked.load(Ordering::Relaxed), 1);
    while facts(&engine).backlog {
        engine.follow(Duration::ZERO);
    }
    // The next look asks again.
    std::thread::sleep(Duration::from_millis(1_100));
    engine.follow(Duration::ZERO);
    assert!(topic.asked.load(Ordering::Relaxed) > 1);
}

#[test]
fn what_comes_while_a_backlog_is_judged_waits_from_then_on() {
    let task = JudgeTask::new(&plan(), &topics(), &follower(&Topic::default(), HOUR), None);
    let (mut task, mut counts) = (task.expect("without state"), CheckpointCounts::default());
    let (mut offset, pause) = (0, Duration::from_millis(60));
    let mut take = |task: &mut JudgeTask, records: Vec<KeyedRecord>| {
        for (key, value) in records {
            let (key, value) = (key.as_bytes(), value.as_deref());
            task.take(0, offset, None, key, value, &mut counts);
            offset += 1;
        }
    };
    let mut partition = Partition::new(clock::now_ms() - HOUR_MS);
    task.begin(1);
    take(&mut task, partition.read(30, true));
    task.end(0, &mut CheckpointCounts::default());
    task.look(&Lengths::default());
    task.advance(1);
    assert!(task.is_behind());
    std::thread::sleep(pause);
    let came = Instant::now();
    take(&mut task, partition.read(30, true));
    std::thread::sleep(pause);
    assert!(task.behind_ms() >= 120, "{}", task.behind_ms());
    while task.is_behind() {
        task.advance(1);
    }
    for _ in 0..2 {
        let (ms, most) = (task.behind_ms(), came.elapsed().as_millis());
        assert!((60..=most as i64 + 1).contains(&ms), "{ms} of {most}");
        task.look(&Lengths::default());
    }
    task.advance(usize::MAX);
    assert_eq!(task.behind_ms(), 0);
}
