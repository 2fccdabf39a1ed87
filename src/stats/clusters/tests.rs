use super::super::axis::Axis;
use super::super::null::normal_survival;
use super::*;

/// Scores of a cluster.
#[derive(Clone, Copy, PartialEq)]
enum Scores {
    /// Each event its own.
    Fresh,
    /// All events the same.
    Same,
    /// All events the same, with the same outcome.
    Copies,
}

/// `clusters` clusters of `size` events; normal variables with this correlation within a cluster say
/// whether events of a true probability happen.
fn sample(
    seed: u64,
    (clusters, size): (usize, usize),
    scores: Scores,
    rho: f64,
    truth: fn(f64) -> f64,
) -> Vec<ClusteredEvent> {
    let mut rng = Rng::new(seed);
    let mut all = Vec::new();
    for cluster in 0..clusters as u64 {
        let shared = rng.normal();
        let (mut z, mut y) = (rng.uniform(), false);
        for i in 0..size {
            if scores == Scores::Fresh {
                z = rng.uniform();
            }
            if scores != Scores::Copies || i == 0 {
                let own = rho.sqrt() * shared + (1.0 - rho).sqrt() * rng.normal();
                y = normal_survival(own) < truth(z);
            }
            all.push(ClusteredEvent {
                score: Score::new(z).unwrap(),
                outcome: y,
                cluster,
            });
        }
    }
    all
}

fn combined(t: &ClusterTests) -> f64 {
    let parts = [t.coarse, t.fine, t.score_test, t.ks].map(|p| p.min(0.99));
    let mean = parts.map(|p| (std::f64::consts::PI * (0.5 - p)).tan());
    0.5 - (mean.iter().sum::<f64>() / 4.0).atan() / std::f64::consts::PI
}

fn same(z: f64) -> f64 {
    z
}

/// How many sets are rejected at 5 %, by T-Cal coarse and fine, score test, KS, in the large, and all
/// combined.
fn rejected(sets: u64, make: impl Fn(u64) -> Vec<ClusteredEvent>) -> [u64; 6] {
    let mut counts = [0; 6];
    for seed in 0..sets {
        let grid = Grid::new(Axis::Linear, 9);
        let t = sign_flips(&make(seed), grid, 99, seed).unwrap();
        let all = combined(&t);
        let p = [t.coarse, t.fine, t.score_test, t.ks, t.in_the_large, all];
        let hit = p.iter().map(|p| u64::from(*p <= 0.05));
        counts.iter_mut().zip(hit).for_each(|(c, hit)| *c += hit);
    }
    counts
}

/// A rate of .07 gives more than 16 of 80 with probability 3·10⁻⁵.
const SETS: u64 = 80;
const MOST: u64 = 16;

#[test]
fn calibrated_clusters_are_rejected_as_often_as_asked() {
    let rows: [(&str, (usize, usize), Scores, f64); 6] = [
        ("every event ten times", (100, 10), Scores::Copies, 0.0),
        ("ten of one score", (100, 10), Scores::Same, 0.1),
        ("bursts of 50", (40, 50), Scores::Fresh, 0.1),
        ("days of 200", (10, 200), Scores::Fresh, 0.05),
        ("eight clusters", (8, 200), Scores::Fresh, 0.05),
        ("independent", (200, 5), Scores::Fresh, 0.0),
    ];
    for (name, shape, scores, rho) in rows {
        let counts = rejected(SETS, |s| sample(s, shape, scores, rho, same));
        assert!(counts.iter().all(|c| *c <= MOST), "{name}: {counts:?}");
    }
    // Clusters that are not named are found out by the same bar.
    let unnamed = rejected(SETS, |s| {
        let mut all = sample(s, (100, 10), Scores::Copies, 0.0, same);
        (0..).zip(&mut all).for_each(|(i, e)| e.cluster = i);
        all
    });
    assert!(unnamed[5] > 75, "{unnamed:?}");
}

#[test]
fn errors_are_found() {
    let shifted = |z: f64| {
        let odds = z / (1.0 - z) * f64::exp(0.5);
        odds / (1.0 + odds)
    };
    let sharp = |z: f64| {
        let odds = (z / (1.0 - z)).powf(1.0 / 1.5);
        odds / (1.0 + odds)
    };
    for shape in [(100, 10), (10, 100)] {
        let of = |truth| rejected(20, |s| sample(s, shape, Scores::Fresh, 0.0, truth));
        let (moved, flat) = (of(shifted), of(sharp));
        assert!(
            moved[3] >= 17 && moved[4] >= 17 && moved[5] >= 17,
            "{moved:?}"
        );
        assert!(flat[0] >= 14 && flat[2] >= 17 && flat[5] >= 17, "{flat:?}");
    }
}

#[test]
fn the_order_of_events_does_not_matter_and_few_clusters_are_refused() {
    let grid = Grid::new(Axis::Linear, 12);
    let all = sample(1, (12, 30), Scores::Fresh, 0.1, same);
    let mut backwards = all.clone();
    backwards.reverse();
    let tests = sign_flips(&all, grid, 99, 5);
    assert_eq!(tests, sign_flips(&backwards, grid, 99, 5));
    assert_eq!(tests.map(|t| (t.clusters, t.patterns)), Ok((12, 100)));
    let eight = sample(1, (8, 30), Scores::Fresh, 0.1, same);
    assert_eq!(sign_flips(&eight, grid, 99, 5).unwrap().patterns, 128);
    let few = sign_flips(&eight[30..], grid, 99, 5).unwrap_err();
    assert_eq!(few.to_string(), "only 7 clusters; at least 8 are needed");
}

#[test]
fn statistics_are_the_formulas() {
    let event = |z: f64, outcome, cluster| ClusteredEvent {
        score: Score::new(z).unwrap(),
        outcome,
        cluster,
    };
    // One cell of level 2; U = .75, .75 of one cluster, −.25 and .5 of two others.
    let all = [
        event(0.25, true, 1),
        event(0.25, true, 1),
        event(0.25, false, 2),
        event(0.5, true, 3),
    ];
    let data = Data::of(&all, Grid::new(Axis::Linear, 3));
    let mut u = vec![0.0; data.events.len()];
    let found = data.statistics(&[1.0, 1.0, 1.0], &mut u);
    // At level 2 the cells are [¼, ½) and [½, ¾): (1.25² − 1.5² − .25²)/3 + 0.
    assert!((found.levels[1] - (1.5625 - 2.25 - 0.0625) / 3.0).abs() < 1e-9);
    assert!((found.ks - 1.75).abs() < 1e-9 && (found.total - 1.75).abs() < 1e-9);
    let flipped = data.statistics(&[1.0, -1.0, 1.0], &mut u);
    assert!((flipped.levels[1] - (3.0625 - 2.25 - 0.0625) / 3.0).abs() < 1e-9);
    // Two scores leave two directions; their score test is U₁²/V₁ + U₂²/V₂.
    let both = 1.25f64.powi(2) / (3.0 * 0.1875) + 0.25 / 0.25;
    assert!((found.score - both).abs() < 1e-6, "{}", found.score);
}
