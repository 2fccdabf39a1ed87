//! Tests of the algebra of sums.

use super::super::axis::Axis;
use super::super::batch::BatchedSums;
use super::*;
use crate::rng::Rng;
use crate::samples;

fn events(seed: u64, n: usize) -> Vec<(Score, bool)> {
    let events = samples::events(&mut Rng::new(seed), n, |u| u, |_| 0.5);
    let score = |(z, y)| (Score::new(z).unwrap(), y);
    events.into_iter().map(score).collect()
}

fn sums(events: &[(Score, bool)]) -> Sums {
    let mut s = Sums::new(Grid::new(Axis::Linear, 8));
    events.iter().for_each(|&(z, y)| s.observe(z, y).unwrap());
    s
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

#[test]
fn listed_sums_add_up_to_a_list() {
    let all = events(6, 600);
    for at in [0, 3, 300, 600] {
        let (first, more) = all.split_at(at);
        let [mut ours, mut theirs] = [first, more].map(sums);
        ours.list();
        theirs.list();
        let (before, shared) = (ours.clone(), sums(first));
        ours.merge(&theirs).unwrap();
        assert_eq!(ours, sums(&all), "split at {at}");
        assert!(
            ours.listed()
                .is_some_and(|list| list.is_sorted_by_key(|(index, _)| *index))
        );
        // The list that they shared is as it was.
        assert_eq!(before, shared);
    }
    let full = Cell {
        n: u64::MAX,
        ..Cell::default()
    };
    let grid = Grid::new(Axis::Linear, 8);
    let mut full = Sums::of_listed(grid, Arc::new(vec![(7, full)]), LogSums::default()).unwrap();
    let other = full.clone();
    assert_eq!(full.merge(&other), Err(Overflow));
}
