//! Workers that count partitions which move between them, and a panel that judges their parcels, without a broker: every
//! verdict and every change of an alert is that of one engine that has read all partitions, to the bit, though
//! the panel is restored from snapshots in between. Where parcels are missed, slides are skipped and counted, and
//! what is judged at the end is exact all the same.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::partitions::{PARTITIONS, Record, feed, judged, logs, plan};
use trueline::app::berth::Berth;
use trueline::app::lanes::{Lane, Lanes};
use trueline::app::panel::Panel;
use trueline::judge::Change;
use trueline::monitor::{Engine, Plan};
use trueline::stats::rng::Rng;
use trueline::store::checkpoint::PartitionCheckpoint;
use trueline::store::laid::Mark;
use trueline::store::reader::FoundCheckpoint;

const WORKERS: usize = 3;

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

/// Models by time alone: windows by count keep other panes where the union was made anew.
fn by_time(mut plan: Plan) -> Plan {
    let model = &mut plan.models[0];
    model.ladder.windows.retain(|w| w.name != "last:1000");
    plan
}

/// The newest parcel of each partition, with its epoch.
type Topic = BTreeMap<i32, (PartitionCheckpoint, i64)>;

/// Workers, the topic, and who judges.
struct Fleet<'l> {
    logs: &'l [Vec<Record>],
    rng: Rng,
    plan: Plan,
    workers: Vec<Lanes>,
    owner: Vec<usize>,
    epochs: BTreeMap<i32, i64>,
    claims: i64,
    topic: Topic,
    panel: Panel,
    said: Said,
    /// The share of parcels that the panel does not see.
    missed: f64,
}

impl<'l> Fleet<'l> {
    fn new(logs: &'l [Vec<Record>], seed: u64, missed: f64, plan: Plan) -> Fleet<'l> {
        let worker = || Lanes::new(plan.clone(), vec![0]).counting();
        let mut fleet = Fleet {
            logs,
            rng: Rng::new(seed),
            workers: (0..WORKERS).map(|_| worker()).collect(),
            owner: (0..PARTITIONS as usize).map(|p| p % WORKERS).collect(),
            epochs: BTreeMap::new(),
            claims: 0,
            topic: Topic::new(),
            panel: Panel::new(plan.clone(), vec!["t".to_owned()]),
            said: Said::new(),
            plan,
            missed,
        };
        for p in 0..PARTITIONS {
            fleet.panel.pass((0, p), false);
            fleet.adopt(p);
        }
        fleet
    }

    fn lane(&mut self, p: i32) -> &mut Lane {
        let worker = &mut self.workers[self.owner[p as usize]];
        worker.lane_mut(0, p).expect("its own")
    }

    /// The owner takes the partition over from the topic.
    fn adopt(&mut self, p: i32) {
        self.claims += 1;
        let worker = &mut self.workers[self.owner[p as usize]];
        let plan = worker.plan_of_lane();
        let (mut engine, origin) = match self.topic.get(&p) {
            None => (Engine::new(plan), None),
            Some((parcel, epoch)) => {
                let upto = parcel.laid.as_ref().expect("laid out").upto();
                let snapshot = parcel.snapshot.clone();
                let engine = Engine::restore(plan, snapshot).expect("sound");
                (
                    engine,
                    Some(Mark {
                        epoch: *epoch,
                        upto,
                    }),
                )
            }
        };
        engine.assign(0, p);
        let lane = Lane::new((0, p), engine, vec!["t".to_owned()], Berth::after(origin));
        worker.adopt(lane, Vec::new());
        self.epochs.insert(p, self.claims);
    }

    fn position(&mut self, p: i32) -> usize {
        let next = self.lane(p).engine.positions().first().map(|o| o.offset);
        next.unwrap_or(0) as usize
    }

    /// Writes a parcel, which the panel may see.
    fn write(&mut self, p: i32) {
        let epoch = self.epochs[&p];
        let lane = self.lane(p);
        let laid = lane.laid();
        lane.is_safe(laid.as_ref().expect("it counts").upto());
        let parcel = PartitionCheckpoint {
            snapshot: lane.engine.snapshot(),
            laid,
            ..PartitionCheckpoint::default()
        };
        // As it comes out of the topic.
        let bytes = postcard::to_stdvec(&parcel).expect("encoded");
        let parcel = postcard::from_bytes(&bytes).expect("decoded");
        self.topic.insert(p, (parcel, epoch));
        if self.rng.uniform() >= self.missed {
            self.show(p);
        }
    }

    fn show(&mut self, p: i32) {
        let (parcel, epoch) = self.topic[&p].clone();
        let found = FoundCheckpoint {
            checkpoint: parcel,
            epoch,
            ..FoundCheckpoint::default()
        };
        self.panel.take((0, p), found).expect("usable");
    }

    fn read(&mut self, p: i32, to: usize) {
        let (from, logs) = (self.position(p), self.logs);
        let lane = self.lane(p);
        let records = logs[p as usize].iter().enumerate();
        for (offset, r) in records.take(to).skip(from) {
            feed(&mut lane.engine, p, offset, r);
        }
        let owner = self.owner[p as usize];
        self.workers[owner].settle();
    }

    fn judge(&mut self) {
        self.panel.settle();
        let changes = self.panel.tick(NOW_MS);
        say(&mut self.said, changes);
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
                self.workers[worker].release(0, p).expect("its own");
            }
            self.owner[p as usize] = (worker + 1 + (self.rng.uniform() * 2.0) as usize) % WORKERS;
            self.adopt(p);
        }
        if dies {
            self.workers[worker] = Lanes::new(self.plan.clone(), vec![0]).counting();
        }
    }

    /// The panel dies, goes on from its snapshot, and reads the newest parcels again.
    fn restart(&mut self) {
        let bytes = postcard::to_stdvec(&self.panel.snapshot()).expect("encoded");
        let snapshot = postcard::from_bytes(&bytes).expect("decoded");
        let (plan, topics) = (self.plan.clone(), vec!["t".to_owned()]);
        self.panel = Panel::restore(plan, topics, snapshot).expect("sound");
        for p in 0..PARTITIONS {
            self.panel.pass((0, p), false);
        }
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
        // What was missed is made up for at once, and shown at the next slides, which the last records bring.
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

fn whole(logs: &[Vec<Record>], plan: Plan) -> (Engine, Said) {
    let mut whole = Engine::new(plan);
    (0..PARTITIONS).for_each(|p| {
        whole.assign(0, p);
    });
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
        assert!(expected.values().map(Vec::len).sum::<usize>() > 100);
        let mut fleet = Fleet::new(&logs, seed, 0.0, plan());
        fleet.play();
        assert_eq!(fleet.panel.skipped(), 0);
        let (ours, theirs) = (judged(fleet.panel.union()), judged(&whole));
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
            let none = Vec::new();
            let (a, b) = (fleet.said.get(stream), expected.get(stream));
            assert_eq!(
                a.unwrap_or(&none),
                b.unwrap_or(&none),
                "{stream}, seed {seed}"
            );
        }
    }
}

#[test]
fn missed_checkpoints_skip_counted_slides_and_the_last_windows_are_exact() {
    let mut skipped = 0;
    for seed in 11..=13 {
        let logs = logs(seed, 3_000);
        let plan = by_time(plan());
        let (whole, _) = whole(&logs, plan.clone());
        let mut fleet = Fleet::new(&logs, seed, 0.9, plan);
        fleet.play();
        skipped += fleet.panel.skipped();
        let (ours, theirs) = (judged(fleet.panel.union()), judged(&whole));
        for (stream, said) in &theirs {
            assert!(&ours[stream] == said, "{stream}, seed {seed}");
        }
    }
    assert!(skipped > 0);
}
