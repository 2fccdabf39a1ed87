//! The inequalities between the measures, and windows against raw scores.

use super::*;
use crate::axis::{Axis, Grid};
use crate::levels::Levels;
use crate::rng::Rng;
use crate::samples;

/// Scores and outcomes of several kinds: calibrated, overconfident, rare, few values, constant.
fn samples(n: usize) -> Vec<Vec<(f64, bool)>> {
    let mut rng = Rng::new(77);
    let kinds: [fn(f64) -> (f64, f64); 5] = [
        |f| (f, f),
        |f| (f * f / (f * f + (1.0 - f) * (1.0 - f)), f),
        |f| (0.02 * f * f, 0.04 * f * f),
        |f| {
            (
                (f * 8.0).floor() / 8.0,
                (f * 8.0).floor() / 8.0 * 0.9 + 0.02,
            )
        },
        |_| (0.3, 0.35),
    ];
    let mut draw = |kind: &fn(f64) -> (f64, f64)| {
        let (z, p) = kind(rng.uniform());
        (z, rng.uniform() < p)
    };
    let all = kinds.iter().map(|k| (0..n).map(|_| draw(k)).collect());
    all.collect()
}

/// All distances with nothing left out.
#[derive(Debug)]
struct Whole {
    lower: Lower,
    interval: f64,
    smooth_ece: SmoothEce,
    rest: Distances,
}

impl std::ops::Deref for Whole {
    type Target = Distances;

    fn deref(&self) -> &Distances {
        &self.rest
    }
}

fn whole(d: Option<Distances>) -> Whole {
    let rest = d.unwrap();
    Whole {
        lower: rest.lower.unwrap(),
        interval: rest.interval.unwrap(),
        smooth_ece: rest.smooth_ece.unwrap(),
        rest,
    }
}

fn all(sample: &[(f64, bool)]) -> Whole {
    whole(of_scores(sample, Extent::All))
}

fn window(sample: &[(f64, bool)], axis: Axis) -> Whole {
    let grid = Grid::new(axis, 12);
    let levels = Levels::from_sums(&samples::sums(grid, sample));
    let edges = |i: u64| grid.edges(12, i as u32);
    let linear = axis == Axis::Linear;
    let cheap = of_cells(levels.finest(), edges, linear, Extent::Cheap).unwrap();
    let got = whole(of_cells(levels.finest(), edges, linear, Extent::All));
    // The cheap ones are the same, and their bounds hold the sharper ones.
    assert!(cheap.smooth == got.smooth && cheap.lower.is_none());
    assert!(cheap.distance.low <= got.distance.high && got.distance.low <= cheap.distance.high);
    got
}

#[test]
fn every_proved_inequality_holds_between_the_measured_distances() {
    for sample in samples(400) {
        let d = all(&sample);
        let k = d.laplace.error();
        let (l, t) = (d.lower.value, 1e-9);
        assert!(d.lower.high - d.lower.low < 1e-8, "{:?}", d.lower);
        assert!(0.5 * d.smooth <= l + t && l <= 2.0 * d.smooth + t);
        assert!(k <= (1.5 * l).sqrt() + t && l <= 3.5f64.sqrt() * k + t);
        assert!(d.smooth <= 2f64.sqrt() * k + t);
        assert!(l <= d.interval + t && d.interval <= d.surrogate + t);
        assert!(d.interval <= 4.0 * l.sqrt() + t && d.surrogate <= 6.0 * l.sqrt() + t);
        assert!(d.distance.low <= d.distance.high);
        let smooth = Bounds {
            low: d.smooth,
            high: d.smooth,
        };
        let around = sandwich::of_lower(smooth, &d.laplace);
        assert!(around.low <= l + t && l <= around.high + t);
        if let Some(upper) = d.upper {
            assert!(l <= upper + t && upper <= d.interval + t);
        }
    }
}

#[test]
fn a_window_says_what_raw_scores_say_within_its_errors() {
    let logit = Axis::Logit {
        low: 1e-5,
        high: 0.5,
    };
    for sample in samples(1500) {
        let want = all(&sample);
        for axis in [Axis::Linear, logit] {
            let got = window(&sample, axis);
            assert!(
                (got.smooth - want.smooth).abs() <= got.smooth_error,
                "{got:?} {want:?}"
            );
            let bar = got.lower.error;
            assert!(
                got.lower.low - bar <= want.lower.high && want.lower.low <= got.lower.high + bar
            );
            let off = (got.laplace.squared - want.laplace.squared).abs();
            assert!(off <= got.laplace.squared_error, "{off:e} {got:?}");
            assert!(got.interval >= want.interval - 1e-9 && got.surrogate >= want.interval - 1e-9);
            let bar = got.smooth_ece.error + want.smooth_ece.error;
            assert!((got.smooth_ece.value - want.smooth_ece.value).abs() <= bar);
            assert!(got.distance.high >= want.lower.low);
        }
        // On the linear axis the errors are small enough to be of use.
        let got = window(&sample, Axis::Linear);
        assert!(
            got.smooth_error < 1e-4 && got.lower.error < 1.3e-4,
            "{got:?}"
        );
    }
}

#[test]
fn large_samples_are_measured_from_cells_and_say_so() {
    let sample = &samples(6000)[0];
    let d = all(sample);
    assert!(!d.interval_exact && d.lower.error > 0.0 && d.smooth_error == 0.0);
    let exact = Points::from_scores(sample).unwrap();
    assert!(d.interval >= interval::interval(&exact));
}

#[test]
fn no_events_have_no_distance() {
    assert_eq!(of_scores(&[], Extent::All), None);
    assert_eq!(of_scores(&[(0.5, true)], Extent::Off), None);
}
