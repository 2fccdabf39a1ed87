//! Tests of the algebra of sums.

use super::super::axis::Axis;
use super::super::batch::BatchedSums;
use super::*;

fn events(seed: u64, n: usize) -> Vec<(Score, bool)> {
    let mut x = seed;
    (0..n)
        .map(|_| {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (
                Score::new((x >> 11) as f64 / (1u64 << 53) as f64).unwrap(),
                x >> 7 & 1 == 1,
            )
        })
        .collect()
}

fn sums(events: &[(Score, bool)]) -> Sums {
    let mut s = Sums::new(Grid::new(Axis::Linear, 8));
    events.iter().for_each(|&(z, y)| s.observe(z, y).unwrap());
    s
}

#[test]
fn any_split_merges_to_the_whole_and_retract_undoes_merge() {
    let all = events(7, 1000);
    for at in [0, 1, 10, 500, 1000] {
        let (mut left, right) = (sums(&all[..at]), sums(&all[at..]));
        let before = left.clone();
        left.merge(&right).unwrap();
        assert_eq!(left, sums(&all));
        left.retract(&right).unwrap();
        assert!(before.occupied().eq(left.occupied()) && before.logs == left.logs);
    }
}

#[test]
fn order_does_not_matter() {
    let mut all = events(3, 500);
    let forward = sums(&all);
    all.reverse();
    assert_eq!(forward, sums(&all));
}

#[test]
fn retracting_what_was_never_merged_fails() {
    assert_eq!(sums(&[]).retract(&sums(&events(1, 3))), Err(Overflow));
}

#[test]
fn listed_sums_take_events_as_others_do() {
    let all = events(5, 400);
    for at in [0, 5, 300] {
        let (first, more) = all.split_at(at);
        let whole = sums(first);
        let list = Arc::new(whole.occupied().collect());
        let mut listed = Sums::of_listed(whole.grid(), list, *whole.logs()).unwrap();
        let scores = (whole.distinct(), whole.repeats());
        listed.merge_scores(scores.0, scores.1).unwrap();
        assert_eq!(listed, whole);
        let mut batched = BatchedSums::from_sums(vec![listed.clone()]).unwrap();
        let mut one_by_one = listed.clone();
        let mut merged = listed.clone();
        for &(z, y) in more {
            batched.observe_one(Scored::new(z, y)).unwrap();
            one_by_one.observe(z, y).unwrap();
        }
        merged.merge(&sums(more)).unwrap();
        for taken in [&one_by_one, &merged, &batched.into_sums()[0]] {
            assert_eq!(*taken, sums(&all));
        }
        // The list that they shared is as it was.
        assert_eq!(listed, whole);
        merged.retract(&sums(more)).unwrap();
        assert!(merged.occupied().eq(whole.occupied()));
    }
}
