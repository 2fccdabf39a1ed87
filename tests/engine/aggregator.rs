//! Workers that count partitions which move between them, and an aggregator that judges their
//! checkpoints, without a broker: every verdict and every change of an alert is that of one engine
//! that has read all partitions, to the bit, though the aggregator is restored from snapshots in
//! between. Where checkpoints are missed, slides are skipped and counted, and what is judged at the
//! end is exact all the same.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::partitions::{
    MODELS, PARTITIONS, Record, feed, judged, logs, of_models, plan, restored,
};
use trueline::judge::{Change, DetectorOptions};
use trueline::monitor::liveness::Freshness;
use trueline::monitor::repartition::{judge_partition, shares};
use trueline::monitor::{Aggregator, Engine, LocalShard, Plan, Shards, Snapshot};
use trueline::stats::rng::Rng;
use trueline::store::checkpoint::PartitionCheckpoint;

const WORKERS: usize = 3;

/// Judge partitions, over which the models are spread.
const JUDGES: i32 = 3;

/// A time of this machine that does not pass: nothing becomes stale.
const NOW_MS: i64 = 1_800_000_000_000;

/// What was said, in order, by stream and window.
type Said = BTreeMap<String, Vec<String>>;

fn say(said: &mut Said, changes: Vec<Change>) {
    for c in changes {
        let of = format!("{} {}", c.stream, c.window);
        let what = format!("{} {:?} {}", c.at_ms, c.step, c.sentence);
        said.entry(of).or_default().push(what);
    }
}

/// Models by time alone: windows by count keep other panes where the union was rebuilt.
fn by_time(mut plan: Plan) -> Plan {
    let model = &mut plan.models[0];
    model.ladder.windows.retain(|w| w.name != "last:1000");
    plan
}

/// The newest checkpoint of each partition, with its epoch.
type Topic = BTreeMap<i32, (PartitionCheckpoint, i64)>;

/// Workers, the topic, and who judges.
struct Fleet<'l> {
    logs: &'l [Vec<Record>],
    rng: Rng,
    plan: Plan,
    workers: Vec<Shards>,
    owner: Vec<usize>,
    epochs: BTreeMap<i32, i64>,
    claims: i64,
    topic: Topic,
    aggregator: Aggregator,
    said: Said,
    /// Judges that share the models, and what they said.
    judges: Vec<Aggregator>,
    shared: Said,
    /// The share of checkpoints that the panel does not see.
    missed: f64,
}

impl<'l> Fleet<'l> {
    fn new(logs: &'l [Vec<Record>], seed: u64, missed: f64, plan: Plan) -> Fleet<'l> {
        let worker = || Shards::of_worker(plan.clone(), vec![0]);
        let mut fleet = Fleet {
            logs,
            rng: Rng::new(seed),
            workers: (0..WORKERS).map(|_| worker()).collect(),
            owner: (0..PARTITIONS as usize).map(|p| p % WORKERS).collect(),
            epochs: BTreeMap::new(),
            claims: 0,
            topic: Topic::new(),
            aggregator: Aggregator::new(plan.clone(), vec!["t".to_owned()]),
            said: Said::new(),
            judges: (0..JUDGES)
                .map(|_| Aggregator::new(plan.clone(), vec!["t".to_owned()]))
                .collect(),
            shared: Said::new(),
            plan,
            missed,
        };
        for p in 0..PARTITIONS {
            fleet.each_judge(|judge| judge.set_freshness((0, p).into(), Freshness::Behind));
            fleet.adopt(p);
        }
        fleet
    }

    /// The same without the judges that share the models: half the work.
    fn of_one_judge(logs: &'l [Vec<Record>], seed: u64, missed: f64, plan: Plan) -> Fleet<'l> {
        let mut fleet = Fleet::new(logs, seed, missed, plan);
        fleet.judges.clear();
        fleet
    }

    fn shard(&mut self, p: i32) -> &mut LocalShard {
        let worker = &mut self.workers[self.owner[p as usize]];
        worker.get_mut((0, p).into()).expect("its own")
    }

    /// The owner takes the partition over from the topic.
    fn adopt(&mut self, p: i32) {
        self.claims += 1;
        let worker = &mut self.workers[self.owner[p as usize]];
        let (at, plan) = ((0, p).into(), worker.plan());
        let mut shard = match self.topic.get(&p) {
            None => LocalShard::new(at, plan, vec!["t".to_owned()], None),
            Some((checkpoint, epoch)) => {
                let deltas = checkpoint.deltas.clone();
                restored(at, plan, &checkpoint.snapshot, &[]).after(*epoch, deltas)
            }
        };
        shard.assign(at);
        worker.adopt(shard, Vec::new());
        self.epochs.insert(p, self.claims);
    }

    fn position(&mut self, p: i32) -> usize {
        let view = self.shard(p).view();
        let next = view.partitions().positions().next();
        next.map_or(0, |o| o.offset) as usize
    }

    /// Writes a checkpoint, which the panel may see.
    fn write(&mut self, p: i32) {
        let epoch = self.epochs[&p];
        let shard = self.shard(p);
        let deltas = shard.delta_batch();
        shard.deltas_stored(deltas.as_ref().expect("it counts").next);
        let checkpoint = PartitionCheckpoint {
            snapshot: shard.snapshot(),
            deltas,
            ..PartitionCheckpoint::default()
        };
        // As it comes out of the topic.
        let bytes = postcard::to_stdvec(&checkpoint).expect("encoded");
        let checkpoint = postcard::from_bytes(&bytes).expect("decoded");
        self.topic.insert(p, (checkpoint, epoch));
        if self.rng.uniform() >= self.missed {
            self.show(p);
        }
    }

    fn show(&mut self, p: i32) {
        let (at, (checkpoint, epoch)) = ((0, p).into(), self.topic[&p].clone());
        if !self.judges.is_empty() {
            let all = shares(&checkpoint.snapshot, checkpoint.deltas.as_ref(), JUDGES);
            for (judge, (snapshot, deltas)) in self.judges.iter_mut().zip(all) {
                judge.take(at, epoch, snapshot, deltas).expect("usable");
            }
        }
        self.aggregator
            .take(at, epoch, checkpoint.snapshot, checkpoint.deltas)
            .expect("usable");
    }

    fn read(&mut self, p: i32, to: usize) {
        let (from, logs) = (self.position(p), self.logs);
        let shard = self.shard(p);
        let records = logs[p as usize].iter().enumerate();
        for (offset, r) in records.take(to).skip(from) {
            feed(shard, p, offset, r);
        }
        let owner = self.owner[p as usize];
        self.workers[owner].advance();
    }

    fn each_judge(&mut self, mut act: impl FnMut(&mut Aggregator)) {
        act(&mut self.aggregator);
        self.judges.iter_mut().for_each(act);
    }

    fn judge(&mut self) {
        self.aggregator.advance();
        let changes = self.aggregator.tick(NOW_MS);
        say(&mut self.said, changes);
        for judge in &mut self.judges {
            judge.advance();
            say(&mut self.shared, judge.tick(NOW_MS));
        }
    }

    /// One worker gives some of its partitions up, or dies with what it had not written.
    fn move_some(&mut self) {
        let worker = (self.rng.uniform() * WORKERS as f64) as usize;
        let dies = self.rng.uniform() < 0.4;
        for p in 0..PARTITIONS {
            if self.owner[p as usize] != worker || (!dies && self.rng.uniform() < 0.5) {
                continue;
            }
            if !dies {
                self.write(p);
                self.workers[worker].release((0, p).into()).expect("ours");
            }
            self.owner[p as usize] = (worker + 1 + (self.rng.uniform() * 2.0) as usize) % WORKERS;
            self.adopt(p);
        }
        if dies {
            self.workers[worker] = Shards::of_worker(self.plan.clone(), vec![0]);
        }
    }

    /// The panel dies, goes on from its snapshot, and reads the newest checkpoints again.
    fn restart(&mut self) {
        let plan = self.plan.clone();
        self.each_judge(|judge| {
            let bytes = postcard::to_stdvec(&judge.snapshot()).expect("encoded");
            let snapshot: Snapshot = postcard::from_bytes(&bytes).expect("decoded");
            let topics = vec!["t".to_owned()];
            *judge = Aggregator::restore(plan.clone(), topics, snapshot).expect("sound");
            // Nothing was judged in this process yet.
            assert_eq!(judge.counters().evaluations, 0);
            for p in 0..PARTITIONS {
                judge.set_freshness((0, p).into(), Freshness::Behind);
            }
        });
        let all: Vec<i32> = self.topic.keys().copied().collect();
        all.into_iter().for_each(|p| self.show(p));
    }

    fn play(&mut self) {
        let n = self.logs[0].len();
        while (0..PARTITIONS).any(|p| self.position(p) < n - 1) {
            for p in 0..PARTITIONS {
                let step = (self.rng.uniform() * 60.0) as usize;
                let to = (self.position(p) + step).min(n - 1);
                self.read(p, to);
                if self.rng.uniform() < 0.1 {
                    self.write(p);
                    self.judge();
                }
            }
            if self.rng.uniform() < 0.1 {
                self.move_some();
            }
            if self.rng.uniform() < 0.03 {
                self.restart();
            }
        }
        self.end();
    }

    /// What was missed is made up for at once, and shown at the next slides, which the last records
    /// bring.
    fn end(&mut self) {
        let n = self.logs[0].len();
        self.missed = 0.0;
        for to in [n - 1, n] {
            for p in 0..PARTITIONS {
                self.read(p, to);
                self.write(p);
            }
            self.judge();
        }
    }
}

/// An engine that reads all partitions.
fn engine(plan: Plan) -> Engine {
    let mut engine = Engine::new(plan);
    for p in 0..PARTITIONS {
        engine.assign((0, p).into());
    }
    engine
}

fn whole(logs: &[Vec<Record>], plan: Plan) -> (Engine, Said) {
    let mut whole = engine(plan);
    for offset in 0..logs[0].len() {
        for (p, log) in (0..).zip(logs) {
            feed(&mut whole, p, offset, &log[offset]);
        }
    }
    let mut said = Said::new();
    let changes = whole.tick(NOW_MS);
    say(&mut said, changes);
    (whole, said)
}

#[test]
fn verdicts_over_checkpoints_are_those_of_one_engine_that_read_everything() {
    for seed in 1..=4 {
        let logs = logs(seed, 3_000);
        let (whole, expected) = whole(&logs, plan());
        let changes: usize = expected.values().map(Vec::len).sum();
        assert!(changes > 80, "only {changes} changes");
        let mut fleet = Fleet::of_one_judge(&logs, seed, 0.0, plan());
        fleet.play();
        assert_eq!(fleet.aggregator.skipped(), 0);
        let (ours, theirs) = (judged(fleet.aggregator.monitor()), judged(whole.monitor()));
        assert_eq!(ours.len(), theirs.len());
        for (stream, said) in &theirs {
            assert!(
                &ours[stream] == said,
                "{stream}, seed {seed}:\n{}\n{said}",
                ours[stream]
            );
        }
        let streams: BTreeSet<_> = expected.keys().chain(fleet.said.keys()).collect();
        for stream in streams {
            let (ours, theirs) = (fleet.said.get(stream), expected.get(stream));
            assert_eq!(ours, theirs, "{stream}, seed {seed}");
        }
    }
}

#[test]
fn judges_that_share_the_models_say_what_one_judge_says() {
    let homes: BTreeSet<i32> = MODELS.map(|m| judge_partition(m, JUDGES)).into();
    assert!(homes.len() > 1, "{MODELS:?} lie in {homes:?}");
    for (seed, missed) in [(31, 0.0), (32, 0.0), (33, 0.9)] {
        let logs = of_models(logs(seed, 3_000));
        let plan = by_time(watched("1 per 20s", 10));
        let (whole, _) = whole(&logs, plan.clone());
        let mut fleet = Fleet::new(&logs, seed, missed, plan);
        fleet.play();
        let mut ours = BTreeMap::new();
        for judge in &fleet.judges {
            let theirs = judged(judge.monitor());
            assert!(!theirs.is_empty());
            for (stream, said) in theirs {
                assert_eq!(ours.insert(stream, said), None, "two judges have a stream");
            }
        }
        assert_eq!(ours, judged(whole.monitor()), "seed {seed}");
        assert_eq!(fleet.shared, fleet.said, "seed {seed}");
        let skipped: Vec<u64> = fleet.judges.iter().map(Aggregator::skipped).collect();
        assert_eq!(skipped.iter().any(|&n| n > 0), missed > 0.0, "{skipped:?}");
    }
}

/// With a detector on each stream, whose budget is small enough for many alarms. Tests of windows,
/// of this many events and more, are most of the work.
fn watched(budget: &str, min_events: u64) -> Plan {
    let mut plan = plan();
    plan.models[0].judge.min_events = min_events;
    plan.models[0].judge.detector = Some(DetectorOptions {
        streams: 16.0,
        ..DetectorOptions::alone(budget.parse().expect("a budget"), 0.0)
    });
    plan
}

/// What the detectors said.
fn detected(said: &Said) -> Said {
    let of = said.iter().filter(|(of, _)| of.ends_with(" detector"));
    of.map(|(of, all)| (of.clone(), all.clone())).collect()
}

/// The partitions one after another, the last one first.
fn backwards(logs: &[Vec<Record>], plan: Plan) -> Said {
    let mut whole = engine(plan);
    for (p, log) in (0..PARTITIONS).zip(logs).rev() {
        for (offset, r) in log.iter().enumerate() {
            feed(&mut whole, p, offset, r);
        }
    }
    let mut said = Said::new();
    say(&mut said, whole.tick(NOW_MS));
    said
}

/// A stream's share of the budget follows from the configuration, so neither the order in which
/// records arrive nor who counts them can move an alarm.
#[test]
fn the_same_events_raise_the_same_alarms_in_every_order_and_topology() {
    for (seed, budget) in (21..).zip(["1 per 20s", "2000 events", "5% ever", "1 per 20s"]) {
        let logs = logs(seed, 3_000);
        let (_, forwards) = whole(&logs, watched(budget, u64::MAX));
        let expected = detected(&forwards);
        let alarms: usize = expected.values().map(Vec::len).sum();
        assert!(alarms >= 5, "{alarms} under {budget}, seed {seed}");
        let found = detected(&backwards(&logs, watched(budget, u64::MAX)));
        assert_eq!(found, expected, "another order, {budget}, seed {seed}");
        let mut fleet = Fleet::of_one_judge(&logs, seed, 0.0, watched(budget, u64::MAX));
        fleet.play();
        let found = detected(&fleet.said);
        assert_eq!(found, expected, "workers that move, {budget}, seed {seed}");
    }
}

#[test]
fn missed_checkpoints_skip_counted_slides_and_the_last_windows_are_exact() {
    let mut skipped = 0;
    for seed in 11..=13 {
        let logs = logs(seed, 3_000);
        let plan = by_time(plan());
        let (whole, _) = whole(&logs, plan.clone());
        let mut fleet = Fleet::of_one_judge(&logs, seed, 0.9, plan);
        fleet.play();
        skipped += fleet.aggregator.skipped();
        let (ours, theirs) = (judged(fleet.aggregator.monitor()), judged(whole.monitor()));
        for (stream, said) in &theirs {
            assert!(&ours[stream] == said, "{stream}, seed {seed}");
        }
    }
    assert!(skipped > 0);
}

/// Whether the last windows are those of one engine that has read everything.
fn assert_exact(fleet: &Fleet<'_>, plan: Plan) {
    let (whole, _) = whole(fleet.logs, plan);
    let (ours, theirs) = (judged(fleet.aggregator.monitor()), judged(whole.monitor()));
    assert!(!theirs.is_empty());
    for (stream, said) in &theirs {
        assert_eq!(ours.get(stream), Some(said), "{stream}");
    }
    let mut shared = BTreeMap::new();
    for judge in &fleet.judges {
        shared.extend(judged(judge.monitor()));
    }
    for (stream, said) in &theirs {
        assert_eq!(shared.get(stream), Some(said), "{stream}, of judges");
    }
}

/// The judge dies between a checkpoint whose deltas it cannot use and its next look. Its snapshot
/// must not say that it has them.
#[test]
fn a_snapshot_from_before_windows_were_taken_makes_up_for_them_after_a_restart() {
    let logs = of_models(logs(41, 900));
    let plan = by_time(plan());
    let mut fleet = Fleet::new(&logs, 41, 0.0, plan.clone());
    let third = logs[0].len() / 3;
    for p in 0..PARTITIONS {
        fleet.read(p, third);
        fleet.write(p);
    }
    fleet.judge();
    let rebuilt = fleet.aggregator.rebuilt();
    for p in 0..PARTITIONS {
        fleet.read(p, 2 * third);
        // Whoever claimed it began with a checkpoint that the judge does not know.
        fleet.claims += 1;
        fleet.epochs.insert(p, fleet.claims);
        fleet.write(p);
    }
    assert_eq!(fleet.aggregator.rebuilt(), rebuilt, "nobody has looked");
    fleet.restart();
    fleet.judge();
    assert_eq!(fleet.aggregator.rebuilt(), 1, "of this process");
    fleet.end();
    assert_exact(&fleet, plan);
}

/// Processes that judged themselves leave checkpoints without deltas. The judge that comes has read
/// nothing of them, and the deltas of those that take over are not all there is.
#[test]
fn what_processes_brought_that_judged_themselves_is_in_the_windows_of_a_fresh_judge() {
    let logs = of_models(logs(42, 900));
    let plan = by_time(plan());
    let mut fleet = Fleet::new(&logs, 42, 1.0, plan.clone());
    for p in 0..PARTITIONS {
        fleet.read(p, logs[0].len() / 2);
        fleet.write(p);
    }
    for (checkpoint, _) in fleet.topic.values_mut() {
        checkpoint.deltas = None;
    }
    for p in 0..PARTITIONS {
        let worker = fleet.owner[p as usize];
        fleet.workers[worker].release((0, p).into()).expect("ours");
        fleet.adopt(p);
    }
    fleet.end();
    assert_exact(&fleet, plan);
}

/// Who starts over names another state topic, where epochs begin again; the judge may keep its
/// directory.
#[test]
fn a_judge_that_keeps_its_state_takes_the_checkpoints_of_a_new_topic() {
    let logs = of_models(logs(43, 900));
    let plan = by_time(plan());
    let mut before = Fleet::new(&logs, 43, 0.0, plan.clone());
    before.epochs.values_mut().for_each(|epoch| *epoch += 1_000);
    for p in 0..PARTITIONS {
        before.read(p, 450);
        before.write(p);
    }
    before.judge();
    let mut fleet = Fleet::new(&logs, 43, 0.0, plan.clone());
    (fleet.aggregator, fleet.judges) = (before.aggregator, before.judges);
    fleet.restart();
    for p in 0..PARTITIONS {
        fleet.read(p, 600);
        fleet.write(p);
    }
    fleet.judge();
    assert_eq!(fleet.aggregator.rebuilt(), 1, "of this process");
    fleet.end();
    assert_exact(&fleet, plan);
}
