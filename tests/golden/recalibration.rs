//! Recalibration on six published networks and on seeded samples, beside scikit-learn's.
//!
//! Fitted to the first 2000 rows and judged on the others. Golden values are made by
//! `recalibration.py`, which names the versions.

use crate::support::golden::{Case, json, numbers, published, scores, seeded_cases};
use serde_json::Value;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::evaluation::Options;
use trueline::stats::fixed::Score;
use trueline::stats::levels::Level;
use trueline::stats::recalibration::isotonic::pool;
use trueline::stats::recalibration::logistic::Logistic;
use trueline::stats::recalibration::{Cut, Fits, Judgement, Map, Method, Point};
use trueline::stats::sums::Sums;

const FITTED: usize = 2000;

/// Name, scores with outcomes, golden values.
type Network = (String, Vec<(f64, bool)>, Value);

/// A method with scikit-learn's map of that kind.
type Theirs<'a> = (&'a str, Method, &'a dyn Fn(f64) -> f64);

/// The seeded samples, which everybody can draw.
fn seeded() -> Vec<Network> {
    let golden = json("recalibration.json");
    let mut all = seeded_cases();
    all.retain(|(name, ..)| golden["seeded"].get(name).is_some());
    let values = |(name, sample, _): Case| (name.clone(), sample, golden["seeded"][name].clone());
    all.into_iter().map(values).collect()
}

/// The published networks, or none after saying that `test` is skipped.
fn networks(test: &str) -> Vec<Network> {
    let Some(folder) = published(test, "tcal") else {
        return Vec::new();
    };
    let golden = json("recalibration.json");
    let all = golden["networks"].as_object().expect("networks by name");
    let sample = |(name, values): (&String, &Value)| {
        let sample = scores(&folder.join(format!("{name}.none.csv")));
        (name.clone(), sample, values.clone())
    };
    all.iter().map(sample).collect()
}

fn cells(sample: &[(f64, bool)], grid: Grid) -> Vec<Point> {
    let mut sums = Sums::new(grid);
    for &(z, y) in sample {
        sums.observe(Score::new(z).unwrap(), y).unwrap();
    }
    Point::of_cells(&Level::from_sums(&sums))
}

fn judged(fit: &[Point], on: &[Point], cut: &Cut) -> (Fits, Judgement) {
    let fits = Fits::of(fit);
    let judgement = Judgement::of(&fits, on, cut, &Options::default()).unwrap();
    (fits, judgement)
}

#[test]
fn maps_of_seeded_samples_are_those_of_scikit_learn() {
    let seeded = seeded();
    assert_eq!(seeded.len(), 2);
    check_raw_maps(&seeded);
    check_cell_maps(&seeded);
    check_gain(&seeded);
    check_cells_against_raw(&seeded);
}

#[test]
fn maps_of_published_networks_are_those_of_scikit_learn() {
    let networks = networks("maps_of_published_networks_are_those_of_scikit_learn");
    check_raw_maps(&networks);
    check_cell_maps(&networks);
    check_gain(&networks);
    check_cells_against_raw(&networks);
}

/// The greater of the two; what is no number is greater than all, so that no bar passes it.
fn greater(a: f64, b: f64) -> f64 {
    if b.is_nan() || b > a { b } else { a }
}

fn check_raw_maps(networks: &[Network]) {
    let (mut worst, mut worst_log_loss) = (0.0f64, 0.0f64);
    for (name, sample, golden) in networks {
        let (fit, rest) = sample.split_at(FITTED);
        let fit = Point::of_scores(fit);
        let (fits, j) = judged(&fit, &Point::of_scores(rest), &Cut::Scores);
        let Some(Map::Logistic(l)) = fits.map(Method::Logistic) else {
            panic!("{name}: {:?}", fits.maps[0]);
        };
        let theirs = &golden["logistic"];
        for (ours, key) in [(l.intercept, "intercept"), (l.slope, "slope")] {
            worst = greater(worst, (ours - theirs[key].as_f64().unwrap()).abs());
        }
        let trial = j.trial(Method::Logistic).unwrap();
        for (ours, key) in [
            (trial.recalibrated.log_loss, "log_loss"),
            (trial.recalibrated.brier, "brier"),
            (trial.recalibrated.ece_l1, "ece_l1"),
        ] {
            let off = (ours - theirs["judged"][key].as_f64().unwrap()).abs();
            worst_log_loss = greater(worst_log_loss, off);
        }
        // Pools before the two ends are bounded: their thresholds and rates, each block by its
        // ends.
        let mut corners = Vec::new();
        for p in pool(&fit) {
            corners.push((p.low, p.rate()));
            if p.high > p.low {
                corners.push((p.high, p.rate()));
            }
        }
        let scores = numbers(&golden["isotonic"]["scores"]);
        let rates = numbers(&golden["isotonic"]["rates"]);
        assert_eq!(corners.len(), scores.len(), "{name}");
        for ((z, q), (their_z, their_q)) in corners.iter().zip(scores.iter().zip(&rates)) {
            assert_eq!(z, their_z, "{name}");
            assert!((q - their_q).abs() < 1e-12, "{name} at {z}: {q} {their_q}");
        }
    }
    println!("parameters within {worst:.1e}, measures within {worst_log_loss:.1e}");
    assert!(
        worst < 1e-6 && worst_log_loss < 1e-6,
        "{worst} {worst_log_loss}"
    );
}

/// The isotonic map of golden values: straight between its thresholds.
fn between(scores: &[f64], rates: &[f64], z: f64) -> f64 {
    let at = scores.partition_point(|&s| s < z);
    if at == 0 || at == scores.len() {
        return rates[at.min(rates.len() - 1)];
    }
    let share = (z - scores[at - 1]) / (scores[at] - scores[at - 1]);
    rates[at - 1] + share * (rates[at] - rates[at - 1])
}

fn check_cell_maps(networks: &[Network]) {
    for (name, sample, golden) in networks {
        let (fit, rest) = sample.split_at(FITTED);
        let fits = Fits::of(&cells(fit, Grid::new(Axis::Linear, 12)));
        let of = |key: &str, name: &str| golden[key][name].as_f64().unwrap();
        let line = |key: &str| Logistic {
            intercept: of(key, "intercept"),
            slope: of(key, "slope"),
        };
        let (plain, platt) = (line("logistic"), line("platt"));
        let scores = numbers(&golden["isotonic"]["scores"]);
        let rates = numbers(&golden["isotonic"]["rates"]);
        let theirs: [Theirs; 3] = [
            ("logistic", Method::Logistic, &|z| plain.rate(z)),
            ("platt", Method::Logistic, &|z| platt.rate(z)),
            ("isotonic", Method::Isotonic, &|z| {
                between(&scores, &rates, z)
            }),
        ];
        for (key, method, their) in theirs {
            let map = fits.map(method).unwrap();
            let off: f64 = rest
                .iter()
                .map(|&(z, _)| (map.rate(z) - their(z)).powi(2))
                .sum();
            let off = (off / rest.len() as f64).sqrt();
            let error = of(key, "sampling_error");
            println!("{name} {key}: {off:.5} off, sampling error {error:.5}");
            assert!(off < error, "{name} {key}: {off} {error}");
        }
    }
}

fn check_gain(networks: &[Network]) {
    for (name, sample, golden) in networks {
        let (fit, rest) = sample.split_at(FITTED);
        let grid = Grid::new(Axis::Linear, 12);
        let (_, j) = judged(&cells(fit, grid), &cells(rest, grid), &Cut::Grid(grid));
        let l1 = |m: Method| j.trial(m).unwrap().recalibrated.ece_l1;
        let l2 = |m: Method| j.trial(m).unwrap().recalibrated.ece_l2();
        println!(
            "{name}: l1 {:.4} -> logistic {:.4} beta {:.4} isotonic {:.4}; l2 {:.4} -> {:.4} {:.4} {:.4}; advised {}; scikit-learn l1 logistic {:.4} isotonic {:.4}",
            j.original.ece_l1,
            l1(Method::Logistic),
            l1(Method::Beta),
            l1(Method::Isotonic),
            j.original.ece_l2(),
            l2(Method::Logistic),
            l2(Method::Beta),
            l2(Method::Isotonic),
            j.advice.as_str(),
            golden["logistic"]["judged"]["ece_l1"].as_f64().unwrap(),
            golden["isotonic"]["judged"]["ece_l1"].as_f64().unwrap(),
        );
        for m in Method::ALL {
            let g = j.trial(m).unwrap().log_loss;
            println!(
                "  {} log-loss gain {:.5} ± {:.5}",
                m.as_str(),
                g.mean,
                g.standard_error
            );
        }
        let advised = j.advice.method();
        assert!(advised.is_some(), "{name}: {}", j.advice.as_str());
        for m in advised.into_iter().chain([Method::Isotonic]) {
            assert!(l2(m) < j.original.ece_l2(), "{name} {m:?}");
            assert!(l1(m) < j.original.ece_l1, "{name} {m:?}");
        }
    }
}

fn check_cells_against_raw(networks: &[Network]) {
    let grids = [
        ("linear", Grid::new(Axis::Linear, 12)),
        (
            "logit",
            Grid::new(
                Axis::Logit {
                    low: 1e-6,
                    high: 1.0 - 1e-6,
                },
                12,
            ),
        ),
    ];
    for (axis, grid) in grids {
        let (mut rate, mut loss) = ([0.0f64; 3], [0.0f64; 3]);
        for (_, sample, _) in networks {
            let (fit, rest) = sample.split_at(FITTED);
            let raw = judged(
                &Point::of_scores(fit),
                &Point::of_scores(rest),
                &Cut::Scores,
            );
            let binned = judged(&cells(fit, grid), &cells(rest, grid), &Cut::Grid(grid));
            for m in Method::ALL {
                let (a, b) = (raw.0.map(m).unwrap(), binned.0.map(m).unwrap());
                let off: f64 = rest
                    .iter()
                    .map(|(z, _)| (a.rate(*z) - b.rate(*z)).powi(2))
                    .sum();
                let off = (off / rest.len() as f64).sqrt();
                rate[m as usize] = greater(rate[m as usize], off);
                let recalibrated = |j: &Judgement| j.trial(m).unwrap().recalibrated.log_loss;
                let off = (recalibrated(&raw.1) - recalibrated(&binned.1)).abs();
                loss[m as usize] = greater(loss[m as usize], off);
            }
        }
        println!(
            "{axis}: recalibrated scores differ by {rate:.5?} (root mean square), log loss by {loss:.5?}"
        );
        // The tolerance that is stated: a hundredth of probability, 0.002 nats.
        assert!(rate.iter().all(|&r| r < 0.01), "{axis} {rate:?}");
        assert!(loss.iter().all(|&l| l < 0.002), "{axis} {loss:?}");
    }
}
