//! Pending vectors move with their partitions from process to process and lose no bit.

use super::{
    MATURITY_MS, MINUTE, Record, SPAN_MS, START_MS, VECTORS, feed, join, outcome, panes, plan,
    rows, views, whole, wide, windows,
};
use crate::support::partitions;
use crate::support::records::origin;
use std::collections::BTreeMap;
use trueline::collect::join::{Missing, Repeated};
use trueline::judge::WindowReport;
use trueline::monitor::{LocalShard, Shards, Snapshot, VerdictState};
use trueline::stats::kernel::window::WindowEvaluation;
use trueline::stats::rng::Rng;

/// The kernel test of a window but for what is of outcomes at maturity.
fn unblocked(w: &WindowReport) -> Option<WindowEvaluation> {
    let mut e = w.kernel().cloned()?;
    (e.blocks, e.blocks_outdated) = Default::default();
    Some(e)
}

const PARTITIONS: i32 = 3;

/// What is in the topic of states of one partition.
#[derive(Default)]
struct Checkpoint {
    written: Option<(Snapshot, Vec<VerdictState>)>,
    disk: BTreeMap<u64, Vec<u8>>,
}

/// Processes among which partitions move with what waits in them.
struct Group {
    all: Vec<Shards>,
    owner: Vec<usize>,
    checkpoints: Vec<Checkpoint>,
    /// For each partition predictions and outcomes, by time of arrival.
    logs: Vec<[Vec<(i64, Record)>; 2]>,
}

impl Group {
    fn shards(&mut self, p: usize) -> &mut Shards {
        &mut self.all[self.owner[p]]
    }

    fn write(&mut self, p: usize) {
        let (owner, checkpoint) = (self.owner[p], &mut self.checkpoints[p]);
        let verdicts = self.all[owner].verdicts((0, p as i32).into());
        let shard = self.all[owner].get_mut((0, p as i32).into()).unwrap();
        for d in shard.take_journals() {
            let segment = checkpoint.disk.entry(d.segment).or_default();
            // A process that died before its checkpoint may have written more: that is cut off.
            segment.truncate(d.offset as usize);
            segment.extend(d.bytes);
        }
        checkpoint.written = Some((shard.snapshot(), verdicts));
    }

    fn adopt(&mut self, p: usize, process: usize) {
        self.owner[p] = process;
        let (shards, checkpoint) = (&mut self.all[process], &self.checkpoints[p]);
        let (at, plan) = ((0, p as i32).into(), shards.plan());
        let (mut shard, verdicts) = match &checkpoint.written {
            None => (LocalShard::new(at, plan, Vec::new(), None), Vec::new()),
            Some((snapshot, verdicts)) => {
                let marks = snapshot.joins.iter().map(|j| &j.marks);
                let segments: Vec<Vec<Vec<u8>>> = marks
                    .map(|marks| {
                        marks
                            .iter()
                            .map(|m| checkpoint.disk[&m.segment].clone())
                            .collect()
                    })
                    .collect();
                let shard = partitions::restored(at, plan, snapshot, &segments);
                (shard, verdicts.clone())
            }
        };
        (0..2).for_each(|source| {
            shard.assign((source, p as i32).into());
        });
        shards.adopt(shard, verdicts);
    }

    /// Reads all of a partition that had come at a time.
    fn read(&mut self, p: usize, until_ms: i64) {
        let logs = std::mem::take(&mut self.logs[p]);
        let shard = self.shards(p).get_mut((0, p as i32).into()).unwrap();
        let mut from = [0; 2];
        for at in shard.view().partitions().positions() {
            from[usize::from(at.source)] = at.offset as usize;
        }
        for (source, log) in (0u16..).zip(&logs) {
            let next = log.iter().enumerate().skip(from[usize::from(source)]);
            for (offset, (_, record)) in next.take_while(|(_, (at, _))| *at <= until_ms) {
                let origin = origin(source, p as i32, offset as i64);
                feed(shard, origin, record);
            }
        }
        self.logs[p] = logs;
        self.shards(p).advance();
        for shards in &self.all {
            for source in 0..2 {
                let (counts, moved) = (shards.counters().source(source), shards.moved(source));
                assert_eq!(
                    counts.records + moved.brought,
                    counts.disposed() + moved.taken
                );
            }
        }
    }
}

#[test]
fn pending_vectors_move_with_their_partitions_and_lose_no_bit() {
    const LATENESS_MS: i64 = 2 * MINUTE;
    for seed in 0..4 {
        let rows = rows(2400, 60 + seed);
        let expected = whole(&rows);
        let mut rng = Rng::new(seed);
        let mut logs: Vec<[Vec<(i64, Record)>; 2]> = vec![Default::default(); PARTITIONS as usize];
        for row in &rows {
            let log = &mut logs[row.id as usize % PARTITIONS as usize];
            let arrival = row.time_ms + (rng.uniform() * MINUTE as f64) as i64;
            log[0].push((arrival, Record::Prediction(row.clone())));
            // A sixth comes after maturity and revises.
            let after_ms = (rng.uniform() * 1.2 * MATURITY_MS as f64) as i64;
            log[1].push((arrival + after_ms, outcome(row, after_ms)));
        }
        let end_ms = START_MS + SPAN_MS;
        for (p, log) in (0..).zip(&mut logs) {
            log.iter_mut().for_each(|l| l.sort_by_key(|(at, _)| *at));
            let mut last = rows[0].clone();
            (last.id, last.time_ms) = (1_000_000 + p, end_ms + LATENESS_MS + MATURITY_MS);
            let at = end_ms + 30 * MINUTE;
            log[1].push((at, outcome(&last, 0)));
            log[0].push((at, Record::Prediction(last)));
        }
        let revising = join(Missing::Drop, Repeated::First, true);
        let plan = plan(&views(), vec![revising], LATENESS_MS);
        let mut group = Group {
            all: (0..2)
                .map(|_| Shards::new(plan.clone(), vec![0, 0]))
                .collect(),
            owner: vec![0; PARTITIONS as usize],
            checkpoints: (0..PARTITIONS).map(|_| Checkpoint::default()).collect(),
            logs,
        };
        for p in 0..PARTITIONS as usize {
            group.adopt(p, p % 2);
        }
        let mut now_ms = START_MS;
        while now_ms < end_ms + 10 * MINUTE {
            now_ms += (rng.uniform() * 20_000.0) as i64;
            for p in 0..PARTITIONS as usize {
                group.read(p, now_ms - (rng.uniform() * 10_000.0) as i64);
                if rng.uniform() < 0.1 {
                    group.write(p);
                }
            }
            if rng.uniform() < 0.1 && seed > 0 {
                let p = (rng.uniform() * f64::from(PARTITIONS)) as usize;
                let from = group.owner[p];
                if rng.uniform() < 0.5 {
                    group.write(p);
                }
                // Without it the next owner resumes from the checkpoint before.
                group.all[from].release((0, p as i32).into()).unwrap();
                group.adopt(p, 1 - from);
            }
        }
        for p in 0..PARTITIONS as usize {
            group.read(p, now_ms);
            if group.owner[p] != 0 {
                group.write(p);
                group.all[1].release((0, p as i32).into()).unwrap();
                group.adopt(p, 0);
            }
        }
        group.all[0].advance();
        for p in 0..PARTITIONS as usize {
            group.read(p, i64::MAX);
        }
        let union = group.all[0].monitor().unwrap();
        assert!(
            wide(panes(union)) == wide(panes(expected.monitor())),
            "seed {seed}"
        );
        for view in VECTORS {
            let [ours, theirs] = [union, expected.monitor()].map(|e| windows(e, view)[1].clone());
            assert_eq!((ours.end_ms, ours.n), (theirs.end_ms, theirs.n), "{view}");
            assert!(ours.cells() == theirs.cells() && ours.verdict == theirs.verdict);
            assert_eq!(unblocked(&ours), unblocked(&theirs));
        }
        assert!(group.all[0].counters().total().revised > 0);
    }
}
