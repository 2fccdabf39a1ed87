//! Processes among which partitions move say together what one process says of all records.

use super::{BEGIN_MS, Record, observe, observe_in, plan, records, said};
use crate::support::partitions;
use std::collections::BTreeMap;
use trueline::judge::ComparisonReport;
use trueline::monitor::{Engine, LocalShard, Shards, Snapshot};
use trueline::stats::rng::Rng;
use trueline::stats::sequential::Compared;

/// Partition of an id.
fn partition(id: u32, partitions: i32) -> i32 {
    (id as i32).wrapping_mul(7) % partitions
}

/// Takes a partition over from its last snapshot.
fn adopt(shards: &mut Shards, written: &BTreeMap<i32, Snapshot>, p: i32) {
    let (at, plan) = ((0, p).into(), shards.plan());
    let mut shard = match written.get(&p) {
        None => LocalShard::new(at, plan, Vec::new(), None),
        Some(snapshot) => partitions::restored(at, plan, snapshot, &[]),
    };
    shard.assign(at);
    shards.adopt(shard, Vec::new());
}

/// Plays the records, which lie in partitions by id, over two processes among which these move;
/// answers what is said of all of them at last, and how many rows were counted.
fn played(
    records: &[Record],
    partitions: i32,
    moves: f64,
) -> (BTreeMap<(String, String), Compared>, u64) {
    let mut rng = Rng::new(11);
    let mut logs: Vec<Vec<Record>> = vec![Vec::new(); partitions as usize];
    for r in records {
        logs[partition(r.id, partitions) as usize].push(*r);
    }
    let mut written = BTreeMap::new();
    let plan = plan(Some("1"), 1_000_000, Vec::new());
    let mut all = [0, 1].map(|_| Shards::new(plan.clone(), vec![0]));
    let mut owner = vec![0; logs.len()];
    (0..partitions).for_each(|p| adopt(&mut all[0], &written, p));
    let mut now_ms = BEGIN_MS;
    let end_ms = records.iter().map(|r| r.time_ms).max().expect("some");
    while now_ms < end_ms + 10_000 {
        now_ms += 2_000;
        for p in 0..partitions {
            let shards: &mut Shards = &mut all[owner[p as usize]];
            let lane = shards.get_mut((0, p).into()).expect("ours");
            let from = lane
                .view()
                .partitions()
                .positions()
                .next()
                .map_or(0, |o| o.offset);
            let log = logs[p as usize].iter().zip(0..).skip(from as usize);
            for (r, offset) in log.take_while(|(r, _)| r.time_ms <= now_ms) {
                observe_in(lane, (p, offset), r);
            }
            shards.advance();
            if rng.uniform() < 0.2 {
                let lane = shards.get_mut((0, p).into()).expect("ours");
                written.insert(p, lane.snapshot());
            }
            if rng.uniform() < moves {
                if rng.uniform() < 0.5 {
                    let lane = shards.get_mut((0, p).into()).expect("ours");
                    written.insert(p, lane.snapshot());
                }
                shards.release((0, p).into()).expect("ours");
                owner[p as usize] = 1 - owner[p as usize];
                adopt(&mut all[owner[p as usize]], &written, p);
            }
        }
    }
    for p in 0..partitions {
        let shards = &mut all[owner[p as usize]];
        let lane = shards.get_mut((0, p).into()).expect("ours");
        lane.finish();
        written.insert(p, lane.snapshot());
        if owner[p as usize] != 0 {
            shards.release((0, p).into()).expect("ours");
            adopt(&mut all[0], &written, p);
        }
    }
    let one = |r: ComparisonReport| ((r.id.champion, r.id.challenger), r.compared);
    let said = all[0].comparisons().into_iter().map(one).collect();
    let counts = all.iter().flat_map(Shards::pair_counts);
    (said, counts.map(|(_, c, _)| c.taken).sum())
}

#[test]
fn partitions_that_move_say_together_what_one_process_says_of_all() {
    let mut records = records(6_000, 21);
    records.sort_by_key(|r| r.time_ms);
    let mut whole = Engine::new(plan(Some("1"), 1_000_000, Vec::new()));
    whole.assign((0, 0).into());
    (0..)
        .zip(&records)
        .for_each(|(i, r)| observe(&mut whole, i, r));
    whole.finish();
    let expected = said(&whole);
    assert_eq!(expected.len(), 2);
    // By one partition, all three differences.
    assert_eq!(played(&records, 1, 0.0).0, expected);
    assert_eq!(played(&records, 1, 0.2).0, expected);
    let (still, taken) = played(&records, 4, 0.0);
    let (moving, again) = played(&records, 4, 0.2);
    assert_eq!(moving, still);
    // Each process counts what it reads. What came after the last checkpoint of a process that died
    // is read again.
    assert!(
        taken == records.len() as u64 && again >= taken,
        "{taken} {again}"
    );
    for (names, one) in &expected {
        let all = &moving[names];
        assert_eq!((all.n, all.brier), (one.n, one.brier));
        assert_eq!(all.in_the_large, one.in_the_large);
        // Learnt in each partition: a little less is won.
        let near = (all.calibration.difference - one.calibration.difference).abs();
        println!("{names:?} {:?} {:?}", one.calibration, all.calibration);
        assert!(near < 0.01, "{near}");
        let (a, b) = (all.calibration, one.calibration);
        assert!(a.lower < b.upper && b.lower < a.upper && a.lower < a.difference);
    }
}
