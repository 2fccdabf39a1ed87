//! Level and power of the product's tests, compared with common other tests.
//!
//! Data sets have n = 2000 events. Scores are uniform, or discrete (ten values), or rare (Beta(½,
//! 50), mean 1 %). The truth is, by row:
//!
//! | row | true probability |
//! |---|---|
//! | calibrated | the score, of each kind of scores |
//! | temperature | log-odds times 0.8: over-confident scores |
//! | shift | 0.03 less, never under 0 |
//! | odds | odds times 1.3, as after a change of the share of positives |
//! | noise | scores whose log-odds have normal noise of deviation 0.6 |
//! | bumps | 40 bumps of the T-Cal paper's curve, up and down by turns, s = 0.6, ρ = 100: 0.2 high |
//! | discrete | of ten values every other is 0.06 too high, the rest too low |
//! | rare | odds times 1.6 |
//!
//! | column | test |
//! |---|---|
//! | default | what decides in the product |
//! | T-Cal | its adaptive test alone |
//! | kernel | the Laplace kernel error given the scores |
//! | Hosmer–Lemeshow | ten groups of equal size, χ² with ten degrees of freedom, since nothing was fitted |
//! | mean residual | z of the mean residual, two-sided |
//! | Spiegelhalter | its z, two-sided |
//! | Cox | score test of intercept 0 and slope 1, χ² with two degrees |
//! | smECE | smooth ECE, outcomes redrawn from the scores |
//! | CORP | miscalibration of the isotonic curve (Brier score lost), outcomes redrawn |
//! | ECE 15 | ℓ1-ECE of 15 cells, consistency resampling: `--test consistency` |

use super::alternatives::Curve;
use super::{Cell, Effort, Job, Row, Table, draw};
use crate::stats::comparison::classical::consistency_p_value;
use crate::stats::distance::{Points, laplace, smooth_ece};
use crate::stats::evaluation::{Extent, Options, evaluate_scores};
use crate::stats::levels::Level;
use crate::stats::recalibration::Point;
use crate::stats::recalibration::isotonic::pool;
use crate::stats::rng::Rng;

const N: usize = 2000;
const ALPHA: f64 = 0.05;

/// Number of redrawn sets of outcomes; with the observed set they are a multiple of 20.
const REDRAWS: u32 = 59;

const COLUMNS: [&str; 10] = [
    "default",
    "T-Cal",
    "kernel",
    "Hosmer–Lemeshow",
    "mean residual",
    "Spiegelhalter",
    "Cox",
    "smECE",
    "CORP",
    "ECE 15",
];

/// A kind of error.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Truth {
    Uniform,
    Discrete,
    Rare,
    Temperature,
    Shift,
    Odds,
    Noise,
    Bumps,
    DiscreteOff,
    RareOdds,
}

const TRUTHS: [(Truth, &str); 10] = [
    (Truth::Uniform, "calibrated, uniform"),
    (Truth::Discrete, "calibrated, discrete"),
    (Truth::Rare, "calibrated, rare"),
    (Truth::Temperature, "temperature"),
    (Truth::Shift, "shift"),
    (Truth::Odds, "odds"),
    (Truth::Noise, "noise"),
    (Truth::Bumps, "bumps"),
    (Truth::DiscreteOff, "discrete"),
    (Truth::RareOdds, "rare"),
];

/// The table.
pub fn jobs() -> Vec<Job> {
    let job = Job::of("tests, level and power", |effort| vec![run(effort)]);
    vec![job.long()]
}

fn run(effort: &Effort) -> Table {
    let sets = effort.sets(100, 10) as usize;
    let mut rows = Vec::new();
    for (at, (truth, label)) in (0..).zip(TRUTHS) {
        let mut rng = Rng::new(effort.seed ^ 0xB000 ^ at);
        let mut hits = [0usize; COLUMNS.len()];
        for set in 0..sets {
            effort
                .progress
                .of(at as usize * sets + set, TRUTHS.len() * sets);
            let sample: Vec<(f64, bool)> = (0..N).map(|_| event(&mut rng, truth)).collect();
            let p = p_values(&sample, effort.seed ^ set as u64);
            for (hit, p) in hits.iter_mut().zip(p) {
                *hit += usize::from(p <= ALPHA);
            }
        }
        let cell = |&k: &usize| {
            let share = Cell::share(k, sets);
            let calibrated = share.with_error((ALPHA * (1.0 - ALPHA) / sets as f64).sqrt());
            // With fewer data sets the share is far from normal.
            match at < 3 && sets >= 100 {
                true => calibrated.against(ALPHA, 0.0),
                false => share,
            }
        };
        rows.push(Row::of(label, hits.iter().map(cell).collect()));
    }
    Table {
        title: "Which test when: level and power at 0.05".to_owned(),
        note: format!(
            "shares of rejections over {sets} data sets of {N} events; the first three rows are calibrated, beside them the level, \
             whose error is theirs; \
             smECE, CORP and\nECE 15 (--test consistency) have {REDRAWS} redrawn samples"
        ),
        x: "what is wrong",
        columns: COLUMNS.to_vec(),
        rows,
        ..Table::default()
    }
}

fn logit(p: f64) -> f64 {
    (p / (1.0 - p)).ln()
}

fn odds(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// A score and its outcome.
fn event(rng: &mut Rng, truth: Truth) -> (f64, bool) {
    let z = match truth {
        Truth::Discrete | Truth::DiscreteOff => (rng.uniform() * 10.0).floor() / 10.0 + 0.05,
        Truth::Rare | Truth::RareOdds => draw::beta(rng, 0.5, 50.0),
        _ => rng.uniform(),
    };
    let z = z.clamp(1e-12, 1.0 - 1e-12);
    let (score, p) = match truth {
        Truth::Uniform | Truth::Discrete | Truth::Rare => (z, z),
        Truth::Temperature => (z, odds(0.8 * logit(z))),
        Truth::Shift => (z, (z - 0.03).max(0.0)),
        Truth::Odds => (z, odds(logit(z) + 1.3f64.ln())),
        Truth::Noise => (odds(logit(z) + 0.6 * rng.normal()), z),
        Truth::Bumps => (z, Curve::new(40.0, 0.6, 100.0).truth(z)),
        Truth::DiscreteOff => {
            let even = ((z * 10.0) as u32).is_multiple_of(2);
            (z, (if even { z - 0.06 } else { z + 0.06 }).clamp(0.0, 1.0))
        }
        Truth::RareOdds => (z, odds(logit(z) + 1.6f64.ln())),
    };
    (score, rng.uniform() < p)
}

/// p-values in the order of the columns.
fn p_values(sample: &[(f64, bool)], seed: u64) -> [f64; COLUMNS.len()] {
    let options = Options {
        distances: Extent::Off,
        ..Options::default()
    };
    let e = evaluate_scores(sample, &options);
    let p = |f: &dyn Fn(&crate::stats::evaluation::Evaluation) -> Option<f64>| {
        e.as_ref().and_then(f).unwrap_or(1.0)
    };
    let kernel =
        Points::from_scores(sample).and_then(|points| laplace::laplace(&points, 1.0).p_value);
    [
        p(&|e| Some(e.p_value)),
        p(&|e| Some(e.tcal.p_value)),
        kernel.unwrap_or(1.0),
        hosmer_lemeshow(sample),
        p(&|e| e.in_the_large.p_value),
        p(&|e| e.spiegelhalter.and_then(|s| s.p_value)),
        p(&|e| e.cox.as_ref().and_then(|c| c.p_value)),
        redrawn(sample, seed, smooth),
        redrawn(sample, seed ^ 1, corp),
        consistency_p_value(sample, 15, REDRAWS, seed).unwrap_or(1.0),
    ]
}

/// Hosmer and Lemeshow (1980): Σ(O − E)²/(E(1 − E/N)) over ten groups of equal size.
fn hosmer_lemeshow(sample: &[(f64, bool)]) -> f64 {
    let mut order = sample.to_vec();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let size = order.len().div_ceil(10);
    let group = |group: &[(f64, bool)]| {
        let n = group.len() as f64;
        let expected: f64 = group.iter().map(|s| s.0).sum();
        let observed = group.iter().filter(|s| s.1).count() as f64;
        (observed - expected).powi(2) / (expected * (1.0 - expected / n))
    };
    let statistic: f64 = order.chunks(size).map(group).sum();
    // The upper tail of χ² with ten degrees of freedom is the probability of a Poisson count below
    // five.
    let x = 0.5 * statistic;
    let mut term = (-x).exp();
    let mut tail = 0.0;
    for k in 1..=5 {
        tail += term;
        term *= x / f64::from(k);
    }
    tail
}

/// The p-value by redrawn outcomes. Drawing stops once it must be above the level; then it is the
/// least possible value.
fn redrawn(sample: &[(f64, bool)], seed: u64, statistic: fn(&[(f64, bool)]) -> f64) -> f64 {
    let observed = statistic(sample);
    let mut rng = Rng::new(seed ^ 0xB007);
    let p_value = |above: u32| (1.0 + f64::from(above)) / (1.0 + f64::from(REDRAWS));
    let mut above = 0;
    for _ in 0..REDRAWS {
        let drawn: Vec<_> = sample
            .iter()
            .map(|&(z, _)| (z, rng.uniform() < z))
            .collect();
        above += u32::from(statistic(&drawn) >= observed);
        if p_value(above) > ALPHA {
            break;
        }
    }
    p_value(above)
}

/// smECE over 512 cells.
fn smooth(sample: &[(f64, bool)]) -> f64 {
    let level = Level::from_scores(sample, 512);
    let points = Points::from_level(&level, |i| (i as f64 / 512.0, (i + 1) as f64 / 512.0));
    points.map_or(0.0, |points| smooth_ece::smooth_ece(&points).value)
}

/// The Brier score that isotonic recalibration gains, times n.
fn corp(sample: &[(f64, bool)]) -> f64 {
    let points = Point::of_scores(sample);
    let raw = |p: &Point| p.y * (1.0 - p.z).powi(2) + (p.n - p.y) * p.z * p.z;
    let pooled: f64 = pool(&points).iter().map(|p| p.y * (1.0 - p.rate())).sum();
    points.iter().map(raw).sum::<f64>() - pooled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_groups_of_a_known_statistic() {
        // Ten groups of ten at 0.5, five positive each: the statistic is 0; all positive: Σ 25/2.5.
        let half: Vec<_> = (0..100).map(|i| (0.5, i % 2 == 0)).collect();
        assert!((hosmer_lemeshow(&half) - 1.0).abs() < 1e-12);
        let all = vec![(0.5, true); 100];
        assert!(hosmer_lemeshow(&all) < 1e-12);
    }

    #[test]
    fn the_isotonic_curve_gains_what_it_corrects() {
        // Score 0.5 with rate 1: the Brier score falls from 0.25 to 0.
        assert!((corp(&[(0.5, true); 8]) - 2.0).abs() < 1e-12);
        assert!(corp(&[(0.5, true), (0.5, false)]).abs() < 1e-12);
    }
}
