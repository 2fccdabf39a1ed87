//! Outcomes that depend on each other: how often independent ones are called overdispersed and
//! clustered ones are found; levels, power and coverage where clusters are named; how often repeats
//! are noticed, and continuous scores taken for them.

use crate::support::bars::{Bar, count, data_sets, each};
use trueline::judge::sentence::shown_of_scores;
use trueline::stats::attribute::Attribute;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::clusters::Bucket;
use trueline::stats::evaluation::{Critical, DecideBy, Evaluation, Options, evaluate};
use trueline::stats::fixed::Score;
use trueline::stats::null::normal_survival;
use trueline::stats::overdispersion::{Dispersion, Overdispersion, PaneTotals};
use trueline::stats::repeats::Repeats;
use trueline::stats::rng::Rng;
use trueline::stats::sums::Sums;
use trueline::stats::tolerance::Conclusion;

/// Base panes of a series.
const PANES: i64 = 100;

/// Data sets of a point in CI.
const DATA_SETS: u64 = 400;

/// A score from a uniform number, or an error from an hour.
type ScoreOf = fn(f64) -> f64;

/// Whether a series of `events` a pane is called overdispersed. Scores come from `score`, outcomes
/// happen with the odds of their scores times `odds`; clusters of so many events in a row share a
/// normal shift of the log odds of this spread.
fn overdispersed(
    seed: u64,
    events: usize,
    score: ScoreOf,
    odds: f64,
    (length, spread): (usize, f64),
) -> bool {
    let (mut rng, mut series) = (Rng::new(seed), Dispersion::default());
    let (mut shift, mut nth) = (0.0, 0);
    for pane in 0..PANES {
        let mut sums = Sums::new(Grid::new(Axis::Linear, 3));
        for _ in 0..events {
            if nth % length == 0 {
                shift = spread * rng.normal();
            }
            nth += 1;
            let z = score(rng.uniform());
            let against = (1.0 - z) / z / odds * f64::exp(-shift);
            let y = rng.uniform() < 1.0 / (1.0 + against);
            let z = Score::new(z).expect("a score");
            sums.observe(z, y).expect("few events");
        }
        series.observe(pane, &PaneTotals::of(&sums));
    }
    let measured = series.measure().expect("a hundred base panes");
    measured.gated().is_some()
}

fn uniform(u: f64) -> f64 {
    u
}

fn rare(u: f64) -> f64 {
    0.001 + 0.018 * u
}

#[test]
fn independent_outcomes_are_seldom_called_overdispersed_calibrated_or_not() {
    let n = data_sets(DATA_SETS);
    let bar = Bar::new(n, 0.0..=0.05, &[0.15]);
    let points: [(&str, usize, ScoreOf, f64); 4] = [
        ("uniform", 100, uniform, 1.0),
        ("uniform, odds doubled", 100, uniform, 2.0),
        ("rare", 600, rare, 1.0),
        ("rare, odds doubled", 600, rare, 2.0),
    ];
    for (name, events, score, odds) in points {
        let called = count(n, |seed| overdispersed(seed, events, score, odds, (1, 0.0)));
        bar.assert(name, called);
    }
}

#[test]
fn clusters_of_a_burst_and_of_a_day_are_found() {
    let n = data_sets(DATA_SETS);
    let points = [
        ("bursts of 50", (50, 0.5), Bar::new(n, 0.93..=1.0, &[0.8])),
        ("days of 500", (500, 0.3), Bar::new(n, 0.83..=1.0, &[0.7])),
    ];
    for (name, clusters, bar) in points {
        let found = count(n, |seed| overdispersed(seed, 100, uniform, 1.0, clusters));
        bar.assert(name, found);
    }
}

/// Whether repeats are suspected among 5000 calibrated events, of which a share comes again.
fn suspected(seed: u64, again: f64) -> bool {
    let (mut rng, mut sample) = (Rng::new(seed), Vec::new());
    while sample.len() < 5_000 {
        let z = rng.uniform();
        let event = (z, rng.uniform() < z);
        sample.push(event);
        if rng.uniform() < again {
            sample.push(event);
        }
    }
    let information = sample.iter().map(|(z, _)| z * (1.0 - z)).sum();
    let measured = Repeats::from_scores(&sample).measure(sample.len() as u64, information);
    measured.is_some_and(|m| m.is_suspicious())
}

#[test]
fn repeats_are_noticed_and_continuous_scores_are_no_repeats() {
    let n = data_sets(DATA_SETS);
    let never = Bar::new(n, 0.0..=0.002, &[0.05]);
    let once = count(n, |seed| suspected(seed, 0.0));
    never.assert("each event once", once);
    let mostly = Bar::new(n, 0.9..=1.0, &[0.8]);
    let twice = count(n, |seed| suspected(seed, 0.02));
    mostly.assert("one in fifty twice", twice);
}

/// Windows of a point in CI.
const WINDOWS: u64 = 500;

/// Clusters of so many events, what events of one share, and the correlation of the normal
/// variables that say whether they happen.
#[derive(Clone, Copy)]
struct Shape {
    size: usize,
    shares: Shares,
    rho: f64,
}

/// What the events of a cluster share.
#[derive(Clone, Copy, PartialEq)]
enum Shares {
    /// Only the correlation.
    Cluster,
    /// The correlation; it raises scores above ½ and lowers the others.
    Slope,
    /// The correlation and the score.
    Score,
    /// Score and outcome.
    All,
}

const fn shape(size: usize, shares: Shares, rho: f64) -> Shape {
    Shape { size, shares, rho }
}

const TEN_TIMES: Shape = shape(10, Shares::All, 0.0);
const BURSTS: Shape = shape(50, Shares::Cluster, 0.1);
const CANCELLING: Shape = shape(50, Shares::Slope, 0.3);
const DAYS: Shape = shape(500, Shares::Cluster, 0.02);
const ALONE: Shape = shape(1, Shares::Cluster, 0.0);
const TEN_OF_A_SCORE: Shape = shape(10, Shares::Score, 0.1);
const TENS_OF_A_SCORE: Shape = shape(10, Shares::Score, 0.3);
const TENS: Shape = shape(10, Shares::Cluster, 0.3);

/// Events in clusters, one after the other: score, and whether it happens, which it does with
/// probability `truth(z)`.
fn events(
    seed: u64,
    (score, truth): (ScoreOf, fn(f64) -> f64),
    shape: Shape,
) -> impl Iterator<Item = (f64, bool)> {
    let mut rng = Rng::new(seed);
    let (mut shared, mut z, mut y) = (0.0, 0.0, false);
    (0..).map(move |i: usize| {
        let first = i.is_multiple_of(shape.size);
        if first {
            shared = rng.normal();
        }
        if first || shape.shares != Shares::All {
            if first || matches!(shape.shares, Shares::Cluster | Shares::Slope) {
                z = score(rng.uniform());
            }
            let sign = if shape.shares == Shares::Slope && z < 0.5 {
                -1.0
            } else {
                1.0
            };
            let own = shape.rho.sqrt() * sign * shared + (1.0 - shape.rho).sqrt() * rng.normal();
            y = normal_survival(own) < truth(z);
        }
        (z, y)
    })
}

/// What a window with this many events in clusters finds, told of them or not.
fn evaluated(
    seed: u64,
    (n, score, truth): (usize, ScoreOf, fn(f64) -> f64),
    shape: Shape,
    told: bool,
) -> Evaluation {
    let grid = Grid::new(Axis::Linear, 12);
    let mut sums = Sums::new(if told { grid.clustered() } else { grid });
    for (i, (z, y)) in events(seed, (score, truth), shape).take(n).enumerate() {
        let name = format!("{seed}-{}", i / shape.size);
        let attribute = match told {
            true => Attribute::Cluster(Bucket::of(name.as_bytes())),
            false => Attribute::None,
        };
        let score = Score::new(z).expect("a score");
        sums.observe_with(score, y, attribute).expect("few events");
    }
    let mut options = Options::default();
    options.tcal.seed = seed;
    evaluate(&sums, &options).expect("events")
}

fn calibrated(z: f64) -> f64 {
    z
}

/// Log odds divided by 1.25.
fn sharp(z: f64) -> f64 {
    1.0 / (1.0 + (z / (1.0 - z)).powf(-1.0 / 1.25))
}

/// The bars of the promise: .07 for each of the three kinds of clusters; and the defaults, which
/// take events as independent, fail them where dependence is strong.
#[test]
fn a_model_whose_clusters_are_named_is_rejected_as_often_as_asked() {
    let n = data_sets(WINDOWS);
    let bar = Bar::new(n, 0.0..=0.07, &[0.15]);
    let cases: [(&str, usize, ScoreOf, Shape); 6] = [
        ("every event ten times", 5_000, uniform, TEN_TIMES),
        ("bursts of 50", 5_000, uniform, BURSTS),
        ("days of 500", 5_000, uniform, DAYS),
        ("independent", 2_000, uniform, ALONE),
        ("rare, independent", 2_000, rare, ALONE),
        ("rare, ten times", 20_000, rare, TEN_TIMES),
    ];
    for (name, events, score, shape) in cases {
        let rejected = count(n, |seed| {
            evaluated(seed, (events, score, calibrated), shape, true).reject
        });
        bar.assert(name, rejected);
    }
    let blind = count(n, |seed| {
        evaluated(seed, (5_000, uniform, calibrated), DAYS, false).reject
    });
    bar.refuse("without clusters", blind);
}

/// Effects of a cluster that cancel in its total are in Spiegelhalter's sum, and in the decision.
#[test]
fn effects_that_cancel_in_a_cluster_are_seen_by_what_they_change() {
    let n = data_sets(WINDOWS);
    let all = each(n, |seed| {
        evaluated(seed, (5_000, uniform, calibrated), CANCELLING, true)
    });
    let small = |e: &&Evaluation| {
        let p = e.spiegelhalter.as_ref().and_then(|t| t.p_value);
        p.is_some_and(|p| p <= 0.05)
    };
    let bar = Bar::new(n, 0.0..=0.07, &[0.15]);
    bar.assert("Spiegelhalter", all.iter().filter(small).count() as u64);
    bar.assert("rejected", all.iter().filter(|e| e.reject).count() as u64);
}

/// Panes of a window, of 100 events each.
const WINDOW_PANES: i64 = 50;

/// What the series says of the window.
fn measured(series: &Dispersion) -> Option<Overdispersion> {
    let scales = series.scales()?;
    Some(scales.within(WINDOW_PANES as f64))
}

/// A calibrated window of 5000 events, and the series of it and 20,000 events before it.
fn stream(seed: u64, score: ScoreOf, shape: Shape) -> (Dispersion, Sums) {
    let (mut series, mut window) = (
        Dispersion::default(),
        Sums::new(Grid::new(Axis::Linear, 12)),
    );
    let mut events = events(seed, (score, calibrated), shape);
    for pane in 0..250 {
        let mut sums = Sums::new(Grid::new(Axis::Linear, 3));
        for (z, y) in events.by_ref().take(100) {
            let z = Score::new(z).expect("a score");
            sums.observe(z, y).expect("few events");
            if pane >= 250 - WINDOW_PANES {
                window.observe(z, y).expect("few events");
            }
        }
        series.observe(pane, &PaneTotals::of(&sums));
    }
    (series, window)
}

/// Whether a calibrated window is rejected where nothing names the clusters: as the stream has
/// measured the dispersion, and without that.
fn unnamed(seed: u64, shape: Shape) -> [bool; 2] {
    let (series, window) = stream(seed, uniform, shape);
    [measured(&series), None].map(|overdispersion| {
        let options = Options {
            overdispersion,
            ..Options::default()
        };
        evaluate(&window, &options).expect("events").reject
    })
}

/// The promise where nothing names the clusters: at most .10. Of ten events of one score φ says too
/// little: their pairs share a cell at every level. They are noticed by their scores, and count as
/// a cluster. Without what was measured, independence is taken for granted, and three of the shapes
/// are rejected more often than at the level.
#[test]
fn a_model_whose_clusters_are_not_named_is_rejected_in_one_of_ten_windows_at_most() {
    let n = data_sets(DATA_SETS);
    let bar = Bar::new(n, 0.0..=0.1, &[0.2]);
    let often = Bar::new(n, 0.15..=1.0, &[0.05]);
    for (name, shape, misleads) in [
        ("every event ten times", TEN_TIMES, false),
        ("bursts of 50", BURSTS, true),
        ("days of 500", DAYS, true),
        ("clusters of ten", TENS, true),
        ("independent", ALONE, false),
        ("ten of one score", TEN_OF_A_SCORE, false),
        ("ten of one score, correlation .3", TENS_OF_A_SCORE, false),
    ] {
        let all = each(n, |seed| unnamed(seed, shape));
        let [corrected, blind] = [0, 1].map(|i| all.iter().filter(|r| r[i]).count() as u64);
        println!("{name}: {blind} of {n} without");
        bar.assert(name, corrected);
        if misleads {
            often.assert(name, blind);
        }
    }
}

/// Whether the last hour of four days is rejected, as the scales up to an hour say and as all do.
/// Panes last three minutes and have 100 events. The log odds of the hour of day are off by
/// `error`.
fn last_hour(seed: u64, error: impl Fn(f64) -> f64) -> [bool; 2] {
    const DAY: i64 = 480;
    const HOUR: i64 = DAY / 24;
    let (mut rng, mut series) = (Rng::new(seed), Dispersion::default());
    let mut window = Sums::new(Grid::new(Axis::Linear, 12));
    for pane in 0..4 * DAY {
        let off = error((pane % DAY) as f64 / HOUR as f64);
        let mut sums = Sums::new(Grid::new(Axis::Linear, 3));
        for _ in 0..100 {
            let z = rng.uniform();
            let y = rng.uniform() < 1.0 / (1.0 + (1.0 - z) / z * f64::exp(-off));
            let z = Score::new(z).expect("a score");
            sums.observe(z, y).expect("few events");
            if pane >= 4 * DAY - HOUR {
                window.observe(z, y).expect("few events");
            }
        }
        series.observe(pane, &PaneTotals::of(&sums));
    }
    let scales = series.scales().expect("many panes");
    [HOUR as f64, f64::INFINITY].map(|width| {
        let options = Options {
            overdispersion: Some(scales.within(width)),
            ..Options::default()
        };
        evaluate(&window, &options).expect("events").reject
    })
}

/// A model that is wrong each evening, or in the course of the day, is not overdispersed. Wide
/// stretches say that it is.
#[test]
fn an_error_that_comes_each_day_is_found_in_its_hours() {
    let n = data_sets(100);
    let found = Bar::new(n, 0.9..=1.0, &[0.5]);
    let unseen = Bar::new(n, 0.0..=0.1, &[0.5]);
    let level = Bar::new(n, 0.0..=0.1, &[0.5]);
    let errors: [(&str, ScoreOf, bool); 3] = [
        (
            "evenings",
            |hour| if hour >= 16.0 { 0.4 } else { 0.0 },
            true,
        ),
        ("nights", |hour| if hour < 8.0 { 0.4 } else { 0.0 }, false),
        (
            "a daily cycle",
            |hour| 0.4 * f64::sin(hour / 24.0 * std::f64::consts::TAU - 1.6),
            true,
        ),
    ];
    for (name, error, is_wrong) in errors {
        let all = each(n, |seed| last_hour(seed, error));
        let [own, of_all] = [0, 1].map(|i| all.iter().filter(|r| r[i]).count() as u64);
        if is_wrong { &found } else { &level }.assert(name, own);
        unseen.assert(&format!("{name}, all scales"), of_all);
    }
}

/// Outcomes that vary three times as independent ones, in clusters that no cell sees whole, under
/// each test that may decide and each source of critical values.
#[test]
fn whichever_test_decides_takes_account_of_a_dispersion_that_was_measured() {
    let n = data_sets(DATA_SETS);
    let bar = Bar::new(n, 0.0..=0.1, &[0.2]);
    let monte_carlo = Critical::MonteCarlo { replicates: 999 };
    // Three scores, so that the paper's procedure has exact tests of them.
    fn few(u: f64) -> f64 {
        [0.3, 0.5, 0.7][(3.0 * u) as usize]
    }
    let often = Bar::new(n, 0.15..=1.0, &[0.05]);
    let scores: [ScoreOf; 2] = [uniform, few];
    // With the index of its scores.
    let cases = [
        ("T-Cal, moments", DecideBy::Tcal, Critical::Moments, 0),
        ("T-Cal, redrawn", DecideBy::Tcal, monte_carlo, 0),
        ("T-Cal, theorem", DecideBy::Tcal, Critical::Theorem, 0),
        ("paper, few scores", DecideBy::Paper, monte_carlo, 1),
    ];
    // Of each case: as the dispersion corrects it, and without that.
    let all = each(n, |seed| {
        let streams = scores.map(|score| stream(seed, score, BURSTS));
        cases.map(|(_, decide_by, critical, at)| {
            [true, false].map(|correct| {
                dispersed(seed, &streams[at], |o| {
                    (o.decide_by, o.tcal.critical) = (decide_by, critical);
                    o.correct_overdispersion = correct;
                })
            })
        })
    });
    for (at, (name, _, critical, _)) in cases.into_iter().enumerate() {
        // The theorem's critical values are so large that it rejects nothing here.
        let misleads = critical != Critical::Theorem;
        let [corrected, blind] = [0, 1].map(|i| all.iter().filter(|r| r[at][i]).count() as u64);
        println!("{name}: {blind} of {n} without");
        bar.assert(name, corrected);
        if misleads {
            often.assert(name, blind);
        }
    }
}

/// Whether a calibrated window of 5000 events in bursts is rejected, with the dispersion that the
/// stream has measured over it and 20,000 events before it.
fn dispersed(
    seed: u64,
    (series, window): &(Dispersion, Sums),
    set: impl FnOnce(&mut Options),
) -> bool {
    let mut options = Options {
        overdispersion: measured(series),
        ..Options::default()
    };
    options.tcal.seed = seed;
    set(&mut options);
    evaluate(window, &options).expect("events").reject
}

/// A tree of 500 leaves repeats its scores, and its outcomes are independent: their events seldom
/// count as clusters, and its errors are found.
#[test]
fn leaves_of_a_tree_are_seldom_clusters() {
    fn leaf(u: f64) -> f64 {
        ((u * 500.0).floor() / 500.0 + 0.001).powf(1.3)
    }
    let n = data_sets(DATA_SETS);
    let seldom = Bar::new(n, 0.0..=0.12, &[0.25]);
    let of = |truth| {
        each(n, |seed| {
            evaluated(seed, (5_000, leaf, truth), ALONE, false)
        })
    };
    let all = of(calibrated);
    let clustered = all.iter().filter(|e| e.clusters.is_some()).count() as u64;
    let rejected = all.iter().filter(|e| e.reject).count() as u64;
    seldom.assert("clustered", clustered);
    seldom.assert("rejected", rejected);
    let found = of(sharp).iter().filter(|e| e.reject).count() as u64;
    Bar::new(n, 0.97..=1.0, &[0.9]).assert("found", found);
}

#[test]
fn errors_are_found_by_clusters_and_clusters_of_one_event_cost_little() {
    let n = data_sets(150);
    fn sharper(z: f64) -> f64 {
        1.0 / (1.0 + (z / (1.0 - z)).powf(-1.0 / 1.5))
    }
    fn shifted(z: f64) -> f64 {
        1.0 / (1.0 + (1.0 - z) / z * f64::exp(-0.15))
    }
    type Truth = fn(f64) -> f64;
    // What is found of a right test, and of a wrong one.
    let cases: [(&str, usize, Truth, Shape, f64, f64); 4] = [
        ("T 1.25", 2_000, sharp, ALONE, 0.89, 0.7),
        ("odds +.15", 2_000, shifted, ALONE, 0.55, 0.3),
        ("bursts, T 1.5", 5_000, sharper, BURSTS, 0.97, 0.8),
        ("days, T 1.5", 5_000, sharper, DAYS, 0.94, 0.75),
    ];
    for (name, events, truth, shape, least, wrong) in cases {
        let found = count(n, |seed| {
            evaluated(seed, (events, uniform, truth), shape, true).reject
        });
        Bar::new(n, least..=1.0, &[wrong]).assert(name, found);
    }
}

/// Scores that are .1 too low, in bursts of 50: the interval of independent events covers the error
/// in two of three sets.
#[test]
fn the_interval_covers_whatever_the_dependence() {
    let n = data_sets(WINDOWS);
    fn low(u: f64) -> f64 {
        0.1 + 0.7 * u
    }
    fn truth(z: f64) -> f64 {
        z + 0.1
    }
    let covers = |told| {
        count(n, |seed| {
            let i = evaluated(seed, (5_000, low, truth), BURSTS, told).interval;
            (i.lower..=i.upper).contains(&0.1)
        })
    };
    let bar = Bar::new(n, 0.85..=1.0, &[0.75]);
    let (told, blind) = (covers(true), covers(false));
    bar.assert("covered", told);
    bar.refuse("covered without clusters", blind);
}

#[test]
fn fewer_clusters_than_eight_decide_nothing_and_say_so() {
    let shape = Shape { size: 800, ..DAYS };
    let e = evaluated(1, (5_000, uniform, |z| 0.5 * z), shape, true);
    assert_eq!(e.tolerance.conclusion, Conclusion::FewClusters);
    assert!(!e.reject && e.p_value == 1.0 && e.tolerance.more_events.is_none());
    let said = shown_of_scores(&e);
    assert!(
        said.contains("clusters, and tests over clusters need 8"),
        "{said}"
    );
}
