use super::super::evaluation::{Direction, Options, evaluate_scores};
use super::super::rng::Rng;
use super::*;
use crate::interval::Interval;

#[test]
fn a_tolerance_reads_as_it_is_written() {
    for text in ["0.02", "10%", "7%", "0.05 or 29%", "0"] {
        let tolerance: Tolerance = text.parse().unwrap();
        assert_eq!(tolerance.to_string(), text);
    }
    for text in [
        "",
        "2",
        "-0.1",
        "0%",
        "150%",
        "0.1 or 0.2",
        "ten",
        "NaN",
        "10 % of it",
    ] {
        let error = text.parse::<Tolerance>().unwrap_err().to_string();
        assert!(error.contains("give an l2-ECE"), "{error}");
    }
}

#[test]
fn the_default_suits_a_coin_a_confidence_and_a_fraud_model() {
    let tau = |rare_mean| Tolerance::default().resolve(rare_mean);
    assert_eq!(tau(0.5), 0.05);
    assert!((tau(0.1) - 0.02).abs() < 1e-12);
    assert!((tau(0.002) - 0.0004).abs() < 1e-12);
    assert_eq!(Tolerance::absolute(0.02).resolve(0.002), 0.02);
}

/// Scores with the outcomes of so many events of each.
fn groups(groups: &[(f64, usize, usize)]) -> Vec<(f64, bool)> {
    let events = |&(z, n, y): &(f64, usize, usize)| (0..n).map(move |i| (z, i < y));
    groups.iter().flat_map(events).collect()
}

/// What is concluded where an error of .05 is tolerated, and the interval.
fn within_a_twentieth(sample: &[(f64, bool)]) -> (Conclusion, Interval) {
    let o = Options {
        tolerance: Tolerance::absolute(0.05),
        ..Options::default()
    };
    let e = evaluate_scores(sample, &o).unwrap();
    (e.tolerance.conclusion, e.interval)
}

/// Errors of ±.1 and .08 cancel in both halves of the axis.
#[test]
fn grades_that_err_are_shown_to() {
    let sample = groups(&[
        (0.1, 10_000, 1_000),
        (0.55, 5_000, 3_250),
        (0.9, 5_000, 4_100),
    ]);
    let (concluded, interval) = within_a_twentieth(&sample);
    assert_eq!(concluded, Conclusion::Miscalibrated, "{interval:?}");
    let truth = (0.25f64 * (0.1 * 0.1 + 0.08 * 0.08)).sqrt();
    assert!((interval.lower..interval.upper).contains(&truth));
    // Events in other cells change nothing, however many cells that are.
    for others in [4usize, 5, 6, 20, 40] {
        let other = (0..others).map(|i| (0.02 + 0.024 * i as f64, i % 2 == 0));
        let sample: Vec<(f64, bool)> = sample.iter().copied().chain(other).collect();
        let (concluded, interval) = within_a_twentieth(&sample);
        assert_eq!(concluded, Conclusion::Miscalibrated, "{interval:?}");
    }
    let right = groups(&[
        (0.1, 10_000, 1_000),
        (0.55, 5_000, 2_750),
        (0.9, 5_000, 4_500),
    ]);
    let (concluded, interval) = within_a_twentieth(&right);
    assert_eq!(concluded, Conclusion::Calibrated, "{interval:?}");
}

/// Half of the scores are .5; the others err by ±.12 in turn, or not at all.
#[test]
fn an_error_beside_a_frequent_score_is_covered() {
    let mut missed = 0;
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let mut sample = |error: f64| -> Vec<(f64, bool)> {
            let one = |_| {
                if rng.uniform() < 0.5 {
                    return (0.5, rng.uniform() < 0.5);
                }
                let z = rng.uniform();
                let sign = [-1.0, 1.0][(16.0 * z) as usize % 2];
                (z, rng.uniform() < z + sign * error)
            };
            (0..20_000).map(one).collect()
        };
        let (concluded, interval) = within_a_twentieth(&sample(0.0));
        assert_eq!((concluded, interval.cells), (Conclusion::Calibrated, 128));
        missed += u32::from(!interval.contains_zero);
        let (concluded, interval) = within_a_twentieth(&sample(0.12));
        assert_eq!(concluded, Conclusion::Miscalibrated);
        // The error is √(.12²/2), less where .12 would leave [0, 1].
        let ends = interval.lower..interval.upper;
        assert!(ends.contains(&0.0797), "{ends:?}");
    }
    // 60 of 90 %: more than 14 have a probability of .001.
    assert!(missed <= 14, "{missed}");
}

#[test]
fn a_ratio_that_is_within_asks_for_no_more_events_where_the_test_rejects() {
    // 2400 expected and observed; both halves are off by .0023, and .0024 is tolerated.
    let sample = groups(&[(0.004, 100_000, 630), (0.02, 100_000, 1_770)]);
    let o = Options {
        interval_cells: Some(256),
        ..Options::default()
    };
    let e = evaluate_scores(&sample, &o).unwrap();
    let c = e.tolerance;
    assert!(e.reject && c.ratio.is_some_and(|r| r.within), "{c:?}");
    assert_eq!(c.conclusion, Conclusion::Inconclusive);
    // (2.706·σ₁²)/(2.3² − 2.4²)²·10¹² of about 2.5·10⁻⁷.
    assert!(c.more_events.is_none_or(|more| more > 1e6), "{c:?}");
}

#[test]
fn an_error_finer_than_the_interval_is_found_and_no_number_of_events_decides() {
    // 81 scores of two decimals, off by .1 in turn.
    let (mut rng, mut sample) = (Rng::new(11), Vec::new());
    for i in 0..5_000u32 {
        let (z, up) = (f64::from(10 + i % 81) / 100.0, i % 81 % 2 == 0);
        let rate = if up { z + 0.1 } else { z - 0.1 };
        sample.push((z, rng.uniform() < rate));
    }
    let o = Options {
        interval_cells: Some(8),
        ..Options::default()
    };
    let e = evaluate_scores(&sample, &o).unwrap();
    let c = e.tolerance;
    assert!(e.reject && e.interval.upper <= c.tolerance, "{c:?}");
    assert_eq!(
        (c.conclusion, c.more_events),
        (Conclusion::Inconclusive, None)
    );
}

#[test]
fn an_error_of_single_leaves_that_looks_like_repeats_is_not_called_calibrated() {
    // Every tenth of 300 leaves is off by .2, up or down in turn: an l2-ECE of .063.
    let mut suspicious = 0;
    for seed in 0..20 {
        let (mut rng, mut sample) = (Rng::new(seed), Vec::new());
        // Other leaves are sampled for every seed.
        let shift = rng.uniform();
        for _ in 0..20_000 {
            let leaf = (rng.uniform() * 300.0) as u32;
            let z = 0.25 + (f64::from(leaf) + shift) / 600.0;
            let off = if leaf % 20 < 10 { 0.2 } else { -0.2 };
            let rate = if leaf % 10 == 3 { z + off } else { z };
            sample.push((z, rng.uniform() < rate));
        }
        let e = evaluate_scores(&sample, &Options::default()).unwrap();
        suspicious += usize::from(e.repeated.is_some_and(|r| r.is_suspicious()));
        assert_ne!(
            e.tolerance.conclusion,
            Conclusion::Calibrated,
            "seed {seed}"
        );
    }
    assert!(suspicious >= 5, "{suspicious}");
}

/// Few events have most of the squared error, so a shift explains little of it.
#[test]
fn where_the_ratio_is_off_the_scores_are_not_right_on_the_whole() {
    let mut rng = Rng::new(66);
    let event = |_| {
        let exponential = -(1.0 - rng.uniform()).ln();
        let z = (0.001 * exponential.powi(3) / 6.0).min(0.9);
        let odds = z / (1.0 - z) * f64::exp(0.7);
        (z, rng.uniform() < odds / (1.0 + odds))
    };
    let sample: Vec<(f64, bool)> = (0..20_000).map(event).collect();
    let e = evaluate_scores(&sample, &Options::default()).unwrap();
    assert!(e.reject && e.tolerance.ratio.is_some_and(|r| r.is_off()));
    assert_eq!(e.direction, Direction::TooLow);
}
