use super::super::fixed::Score;
use super::super::rng::Rng;
use super::*;

fn scored(z: f64, y: bool) -> Scored {
    Scored::new(Score::new(z).unwrap(), y)
}

/// Calibrated events whose scores are made by `score`; each comes again with this probability.
fn events(seed: u64, n: usize, again: f64, score: impl Fn(f64) -> f64) -> Vec<Scored> {
    erring(seed, n, again, score, |z| z)
}

/// [`events`] whose outcomes happen with probability `truth(z)`.
fn erring(
    seed: u64,
    n: usize,
    again: f64,
    score: impl Fn(f64) -> f64,
    truth: impl Fn(f64) -> f64,
) -> Vec<Scored> {
    let mut rng = Rng::new(seed);
    let mut all = Vec::with_capacity(n);
    while all.len() < n {
        let z = score(rng.uniform());
        let one = scored(z, rng.uniform() < truth(z));
        all.push(one);
        if rng.uniform() < again {
            all.push(one);
        }
    }
    all
}

fn repeats(events: &[Scored]) -> Repeats {
    let mut all = Repeats::default();
    events.chunks(128).for_each(|batch| all.observe(batch));
    all
}

/// ΣV.
fn information(events: &[Scored]) -> f64 {
    let z = events.iter().map(|e| e.score().value());
    z.map(|z| z * (1.0 - z)).sum()
}

fn measured(events: &[Scored]) -> Option<RepeatedScores> {
    repeats(events).measure(events.len() as u64, information(events))
}

fn suspicious(sets: u64, make: impl Fn(u64) -> Vec<Scored>) -> u64 {
    let found = |seed: &u64| measured(&make(*seed)).is_some_and(|m| m.is_suspicious());
    (1..=sets).filter(found).count() as u64
}

#[test]
fn the_sample_depends_on_the_events_and_not_on_their_order_or_split() {
    for (n, decimals) in [(100, 1e9), (5_000, 1e9), (60_000, 1e9), (60_000, 1e3)] {
        let all = events(n as u64, n, 0.02, |u| (u * decimals).round() / decimals);
        let whole = repeats(&all);
        assert!(whole.parts().1.len() <= SAMPLED_MAX);
        let mut backwards = all.clone();
        backwards.reverse();
        assert_eq!(repeats(&backwards), whole);
        for at in [1, n / 3, n - 1] {
            let (mut one, other) = (repeats(&all[..at]), repeats(&all[at..]));
            let before = one.clone();
            one.merge(&other);
            assert_eq!(one, whole);
            let mut swapped = other;
            swapped.merge(&before);
            assert_eq!(swapped, whole);
            // Taken out again, what is left is sampled at the level of the whole.
            one.retract(&swapped).unwrap();
            assert!(one.parts().1.is_empty());
        }
        let (level, counts) = whole.parts();
        assert_eq!(
            Repeats::from_parts(level, counts.to_vec()),
            Some(whole.clone())
        );
        assert!(Repeats::from_parts(level, vec![counts[0], counts[0]]).is_none());
    }
    assert_eq!(
        Repeats::default().retract(&repeats(&events(1, 99, 0.0, |u| u))),
        Err(Overflow)
    );
}

#[test]
fn shares_are_those_of_the_events() {
    let all = events(3, 200_000, 0.05, |u| u);
    let found = measured(&all).unwrap();
    assert!((0.03..0.07).contains(&found.share), "{found:?}");
    assert!(found.by_chance < 0.5, "{found:?}");
    // 20,000 events on 10,000 values: 1 − (1 − e⁻²)/2 of them repeat.
    for score in [
        |u: f64| (u * 1e4).round() / 1e4,
        |u: f64| (u * 8192.0).round() / 8192.0,
    ] {
        let all = events(3, 2_000, 0.0, score);
        let rounded = measured(&all).unwrap();
        let (seen, chance) = (rounded.repeats as f64, rounded.by_chance);
        assert!((seen - chance).abs() < 3.0 * chance.sqrt(), "{rounded:?}");
    }
    assert_eq!(Repeats::default().measure(0, 0.0), None);
}

#[test]
fn what_comes_twice_is_suspicious_and_continuous_scores_are_not() {
    let uniform = |again: f64| suspicious(100, |s| events(s, 5_000, again, |u| u));
    let rare = |again: f64| suspicious(100, |s| events(s, 5_000, again, |u| 1e-4 + 1e-3 * u));
    assert!(uniform(0.0) == 0 && rare(0.0) <= 3);
    assert!(uniform(0.02) >= 85 && rare(0.02) >= 85);
    assert!(uniform(0.05) >= 97 && rare(0.05) >= 97);
    let tenfold = |s| -> Vec<Scored> {
        let once = events(s, 500, 0.0, |u| u);
        once.iter().flat_map(|e| [*e; 10]).collect()
    };
    assert_eq!(suspicious(100, tenfold), 100);
    // Scores at the ends repeat without weight.
    let saturated = |u: f64| if u < 0.5 { 1.0 } else { u };
    assert_eq!(suspicious(100, |s| events(s, 5_000, 0.0, saturated)), 0);
}

#[test]
fn models_that_repeat_their_scores_are_seldom_suspicious() {
    let bits = |u: f64, mask: u32| f64::from(f32::from_bits((u as f32).to_bits() & mask));
    let of: [(&str, &dyn Fn(f64) -> f64); 7] = [
        ("two decimals", &|u| (u * 1e2).round() / 1e2),
        ("four decimals", &|u| (u * 1e4).round() / 1e4),
        ("twelve bits after the point", &|u| {
            (u * 4096.0).round() / 4096.0
        }),
        ("single precision", &|u| f64::from(u as f32)),
        ("single precision near 1", &|u| {
            f64::from((1.0 - 1e-2 * u) as f32)
        }),
        ("half precision", &|u| bits(u, 0xffff_e000)),
        ("500 leaves", &|u| {
            ((u * 500.0).floor() / 500.0 + 0.001).powf(1.3)
        }),
    ];
    for (name, score) in of {
        for n in [1_000, 20_000] {
            let found = suspicious(100, |s| events(s, n, 0.0, score));
            assert!(found <= 15, "{name}, {n}: {found}");
        }
    }
}

/// Rare scores are few steps apart, however many decimals they are written with.
#[test]
fn rare_scores_of_many_decimals_are_seldom_suspicious_and_what_comes_twice_is() {
    for (decimals, mean, n) in [(7, 0.01, 10_000), (8, 0.01, 30_000), (9, 0.0015, 100_000)] {
        let ten = 10f64.powi(decimals);
        let rare = |u: f64| (ten * mean * -(1.0 - u).ln()).round().min(ten) / ten;
        let of = |again: f64| suspicious(20, |s| events(s, n, again, rare));
        let (once, twice) = (of(0.0), of(0.05));
        assert!(once <= 2 && twice >= 13, "{decimals}: {once}, {twice}");
    }
}

/// Leaves of unequal size, few events of them, and what comes twice among as few.
#[test]
fn small_windows_of_a_tree_are_seldom_suspicious_and_repeats_are() {
    let leaf = |leaves: f64, rare: f64| {
        move |u: f64| {
            // The golden section scatters scores over leaves, whose sizes rise with the square.
            let leaf = (u * u * leaves).floor();
            0.001 + rare * (leaf * 0.618_033_988_75).fract().powf(1.3)
        }
    };
    for (leaves, n) in [(300.0, 200), (70.0, 200), (300.0, 1_000), (2_000.0, 1_000)] {
        for rare in [0.9, 0.03] {
            let found = suspicious(200, |s| events(s, n, 0.0, leaf(leaves, rare)));
            assert!(found <= 24, "{leaves} leaves, {rare}, {n}: {found}");
        }
    }
    let uniform = |n, again| suspicious(100, |s| events(s, n, again, |u| u));
    let rare = |n, again| suspicious(100, |s| events(s, n, again, |u| 1e-4 + 1e-3 * u));
    let found = [uniform(1_000, 0.2), uniform(5_000, 0.2), rare(5_000, 0.2)];
    assert!(
        found[0] >= 80 && found[1..].iter().all(|&f| f >= 85),
        "{found:?}"
    );
    let found = [uniform(1_000, 0.05), rare(1_000, 0.05)];
    assert!(found.iter().all(|&f| f >= 40), "{found:?}");
}

/// Outcomes of one score that errs agree. Where rounding explains all repeats, that is no sign of
/// events that come twice.
#[test]
fn rounded_scores_that_err_are_seldom_suspicious() {
    let rounded = |to: f64| move |u: f64| (u * to).round() / to;
    let low = |z: f64| z - 0.06;
    let shy = |z: f64| 1.0 / (1.0 + ((1.0 - z) / z).powf(1.0 / 0.6));
    let in_turn = |z: f64| {
        let sign = if ((z * 100.0).round() as u32).is_multiple_of(2) {
            1.0
        } else {
            -1.0
        };
        z + 0.4 * sign * z * (1.0 - z)
    };
    let truths: [(&str, &dyn Fn(f64) -> f64); 3] = [
        ("shift", &low),
        ("temperature", &shy),
        ("in turn", &in_turn),
    ];
    for (name, truth) in truths {
        for (to, n) in [(1e2, 5_000), (1e2, 20_000), (1e3, 20_000)] {
            let found = suspicious(60, |s| erring(s, n, 0.0, rounded(to), truth));
            assert!(found <= 9, "{name}, {to}, {n}: {found}");
        }
    }
}

/// One fallback score that errs; its hash decides whether it is sampled.
#[test]
fn a_fallback_is_no_repeat_whether_or_not_it_is_sampled() {
    // Events, share of the fallback, share of zeros.
    for (n, share, zeros) in [(5_000, 0.2, 0.0), (500, 0.05, 0.0), (20_000, 0.014, 0.95)] {
        for fallback in (1..100).map(|i| f64::from(i) / 100.0) {
            let score = |u: f64| match u {
                u if u < share => fallback,
                u if u < share + zeros => 0.0,
                u => (u - share - zeros) / (1.0 - share - zeros),
            };
            let truth = |z: f64| if z == fallback { 0.5 * z + 0.25 } else { z };
            let events = erring(5, n, 0.0, score, truth);
            let found = measured(&events).unwrap();
            assert!(
                found.share < 0.05 && !found.is_suspicious(),
                "{n}, {fallback}: {found:?}"
            );
            assert!(!found.are_clusters(10.0), "{n}, {fallback}: {found:?}");
        }
    }
    // Of four fallbacks two or more are sampled.
    let hundredths = (1..60).map(|i| f64::from(i) / 100.0);
    let sampled: Vec<f64> = hundredths
        .filter(|z| is_sampled(Score::new(*z).unwrap().fixed(), 4))
        .collect();
    assert!(sampled.len() >= 3, "{sampled:?}");
    for pair in sampled.windows(2) {
        let all = [pair[0], pair[1], 0.1003, 0.4007];
        let score = |u: f64| match u < 0.2 {
            true => all[(u / 0.05) as usize],
            false => (u - 0.2) / 0.8,
        };
        let truth = |z: f64| if all.contains(&z) { 1.5 * z } else { z };
        let events = erring(5, 5_000, 0.0, score, truth);
        let found = measured(&events).unwrap();
        assert!(found.share < 0.05, "{pair:?}: {found:?}");
        assert!(!found.are_clusters(10.0), "{pair:?}: {found:?}");
    }
    // Of a few grades each has many events, and they are what there is.
    let grades = events(5, 5_000, 0.0, |u| (u * 16.0).floor() / 16.0 + 0.01);
    let found = measured(&grades);
    assert!(found.is_none_or(|found| found.share > 0.9));
}

/// Three events in ten are copies of a record, so many of each.
#[test]
fn records_that_come_often_are_repeats_however_often_they_come() {
    for (n, copies) in [
        (1_000, 2),
        (1_000, 10),
        (5_000, 16),
        (5_000, 17),
        (5_000, 79),
    ] {
        let found = suspicious(100, |s| {
            let once = events(s, n, 0.0, |u| u);
            let copied = once[..n * 3 / 10 / copies].iter();
            let copied = copied.flat_map(|e| std::iter::repeat_n(*e, copies - 1));
            once.iter().copied().chain(copied).collect()
        });
        let records = (n * 3 / 10 / copies) as f64;
        // At least one of the records must be sampled.
        let sampled = 100.0 * (1.0 - (-records / 16.0).exp());
        assert!(found as f64 >= sampled - 20.0, "{n}, {copies}: {found}");
    }
}

#[test]
fn zeros_say_nothing_of_repeats() {
    let with = |zeros: f64, s: u64| {
        let score = move |u: f64| match u < zeros {
            true => 0.0,
            false => ((0.05 + 0.9 * (u - zeros) / (1.0 - zeros)) * 1e6).round() / 1e6,
        };
        events(s, 5_000, 0.0, score)
    };
    assert!(suspicious(100, |s| with(0.1, s)) <= 3);
    let of = |zeros| measured(&with(zeros, 3)).unwrap().share;
    assert!((of(0.1) - of(0.0)).abs() < 0.02);
}
