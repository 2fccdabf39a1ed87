//! Tests of the algebra of sums.

use super::super::axis::Axis;
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
