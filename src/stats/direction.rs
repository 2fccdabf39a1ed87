//! Which way the scores err, in words.
//!
//! Two one-parameter families explain most miscalibration: all log-odds off by a constant (too
//! high, too low), and all log-odds off by a factor (over-confident, under-confident). Their score
//! statistics are S_a = ΣU/√ΣV and S_b = ΣUℓ/√ΣVℓ², each standard normal under the null; the larger
//! decides whether there is a direction at all. The best fit of both together decides which one. If
//! its curve lies on one side of the diagonal for nearly all of the error ([`ONE_SIDED`]), the
//! scores are too low or too high, however their log odds are bent. Otherwise it crosses the
//! diagonal, and the slope says whether they are over- or under-confident. Without a fit (scores of
//! one value, or outcomes of one kind) the sign of the mean residual decides, and so it does if all
//! scores are 0 or 1, because these have no variance.
//!
//! If outcomes become rarer where scores rise, scores or outcomes are inverted. The test for a
//! linear trend shows it (Armitage, Biometrics 11, 1955), over the cells' mean scores z̄:
//!
//! ```text
//! Σ(y − nȳ)z̄ / √(ȳ(1 − ȳ)·(Σnz̄² − (Σnz̄)²/Σn)) < −3.29     a probability of .0005 without a trend
//! ```
//!
//! and inverted outcomes have the smaller Brier score, Σ(n − 2y)(1 − 2z̄) < 0. Otherwise the trend
//! is not the larger part of the error.
//!
//! Where neither is significant, or a fit of both together explains less than a quarter of the
//! squared error, the error is local: the reliability diagram shows where. But if the ratio of
//! observed to expected outcomes is shown to be off, the sum of residuals decides.

use super::classical::{Cox, Recalibration, Totals};
use super::levels::Level;

/// Which way the scores err.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Direction {
    /// Nothing to tell: calibration is not rejected.
    None,
    /// Scores above the event rate all over.
    TooHigh,
    /// Scores below the event rate all over.
    TooLow,
    /// Scores too far from the middle: low ones too low, high ones too high.
    OverConfident,
    /// Scores too near the middle.
    UnderConfident,
    /// Outcomes become rarer where scores rise.
    Inverted,
    /// Wrong in places.
    Local,
}

impl Direction {
    /// The direction in words.
    pub fn words(self) -> &'static str {
        match self {
            Direction::None => "no miscalibration found",
            Direction::TooHigh => "scores are too high",
            Direction::TooLow => "scores are too low",
            Direction::OverConfident => "scores are over-confident",
            Direction::UnderConfident => "scores are under-confident",
            Direction::Inverted => "outcomes become rarer where scores rise: are they inverted?",
            Direction::Local => "scores are wrong in places",
        }
    }

    /// The direction as one lower-case word, for labels and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Direction::None => "none",
            Direction::TooHigh => "too_high",
            Direction::TooLow => "too_low",
            Direction::OverConfident => "over_confident",
            Direction::UnderConfident => "under_confident",
            Direction::Inverted => "inverted",
            Direction::Local => "local",
        }
    }

    /// Replaces a local error if the ratio of observed to expected outcomes is shown to be `off`:
    /// then `residuals`, the sum of outcome minus score, says which way.
    pub(crate) fn or_of_the_whole(self, off: bool, residuals: f64) -> Direction {
        match self {
            Direction::Local if off && residuals > 0.0 => Direction::TooLow,
            Direction::Local if off => Direction::TooHigh,
            found => found,
        }
    }
}

/// A statistic below this is chance (two-sided 5 %).
const SIGNIFICANT: f64 = 1.96;

/// A trend below this is not chance.
const INVERTED: f64 = -3.29;

/// Share of the fitted error on one side of the diagonal from which the scores are too low or too
/// high.
const ONE_SIDED: f64 = 0.85;

/// Least share of the squared error that a direction must explain to be named.
const EXPLAINED_MIN: f64 = 0.25;

/// The direction of a rejected sample. `level` is the interval's, `estimate_squared` its T.
pub fn direction(t: &Totals, cox: Option<&Cox>, level: &Level, estimate_squared: f64) -> Direction {
    // Weighted events carry less information than their sum of weights.
    if trend(level) * (t.n / t.w2).sqrt() < INVERTED && is_better_inverted(level) {
        return Direction::Inverted;
    }
    if t.v <= 0.0 && t.u != 0.0 {
        return Direction::Local.or_of_the_whole(true, t.u);
    }
    let shift = standard(t.u, t.v);
    let factor = if cox.is_some() {
        standard(t.u_logit, t.v_logit2)
    } else {
        0.0
    };
    if shift.abs().max(factor.abs()) < SIGNIFICANT {
        return Direction::Local;
    }
    if let Some(fit) = cox.and_then(|c| c.fit.as_ref())
        && explained(fit, level, t.n) < EXPLAINED_MIN * estimate_squared
    {
        return Direction::Local;
    }
    let sides = cox
        .and_then(|c| c.fit.as_ref())
        .map(|fit| sides(fit, level));
    match sides {
        Some((low, high)) if low < ONE_SIDED * (low + high) && high < ONE_SIDED * (low + high) => {
            if factor < 0.0 {
                Direction::OverConfident
            } else {
                Direction::UnderConfident
            }
        }
        Some((low, high)) if low > high => Direction::TooLow,
        None if shift > 0.0 => Direction::TooLow,
        _ => Direction::TooHigh,
    }
}

/// By how much, over all events, the fit lies above the scores and below them.
fn sides(fit: &Recalibration, level: &Level) -> (f64, f64) {
    let (mut low, mut high) = (0.0, 0.0);
    for c in level.occupied.iter() {
        let z = c.z / c.n;
        if z > 0.0 && z < 1.0 {
            let off = c.n * (fit.rate(z) - z);
            low += off.max(0.0);
            high += (-off).max(0.0);
        }
    }
    (low, high)
}

/// Squared error of the scores if the fit were the truth: (1/n) Σ N (fitted rate − z)² at the
/// cells' mean scores.
fn explained(fit: &Recalibration, level: &Level, n: f64) -> f64 {
    let mut sum = 0.0;
    for c in level.occupied.iter() {
        let z = c.z / c.n;
        if z > 0.0 && z < 1.0 {
            let off = fit.rate(z) - z;
            sum += c.n * off * off;
        }
    }
    sum / n
}

/// Whether the scores have a smaller Brier score for inverted outcomes.
fn is_better_inverted(level: &Level) -> bool {
    let cells = level.occupied.iter();
    let gain = cells.map(|c| (c.n - 2.0 * c.y) * (1.0 - 2.0 * c.z / c.n));
    gain.sum::<f64>() < 0.0
}

/// The test statistic of a trend of outcomes over scores, standard normal without a trend.
fn trend(level: &Level) -> f64 {
    let (mut n, mut y, mut z, mut yz, mut zz) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for c in level.occupied.iter() {
        let mean = c.z / c.n;
        n += c.n;
        y += c.y;
        z += c.z;
        yz += c.y * mean;
        zz += c.z * mean;
    }
    standard(yz - y / n * z, y / n * (1.0 - y / n) * (zz - z * z / n))
}

fn standard(sum: f64, variance: f64) -> f64 {
    if variance > 0.0 {
        sum / variance.sqrt()
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::classical;
    use super::*;

    /// 20,000 scores on a grid of [low, high], with outcomes whose rate is exactly `truth(z)`.
    fn of(low: f64, high: f64, truth: fn(f64) -> f64) -> Direction {
        let mut sample = Vec::new();
        let mut owed = [0.0f64; 20];
        for i in 0..20_000usize {
            let z = low + (high - low) * (i as f64 + 0.5) / 20_000.0;
            let due = &mut owed[i / 1000];
            *due += truth(z);
            let y = *due >= 0.5;
            *due -= f64::from(u8::from(y));
            sample.push((z, y));
        }
        let level = Level::from_scores(&sample, 64);
        let t = Totals::from_scores(&sample, &level);
        let e = super::super::estimate::Estimate::of(&level, t.n);
        direction(&t, classical::cox(&t, &level).as_ref(), &level, e.t)
    }

    #[test]
    fn scores_that_are_all_0_or_1_err_as_their_sum_does() {
        for (ones, positives, apart, expected) in [
            (0, 8_000, false, Direction::TooLow),
            (12_000, 8_000, false, Direction::TooHigh),
            (6_000, 8_000, false, Direction::TooLow),
            (12_000, 8_000, true, Direction::Inverted),
        ] {
            // The positives are those of score 0, or one of each so many.
            let event = |i: u32| {
                let place = if apart { i } else { i * 7919 % 20_000 };
                (f64::from(u8::from(i < ones)), place >= 20_000 - positives)
            };
            let sample: Vec<(f64, bool)> = (0..20_000).map(event).collect();
            let level = Level::from_scores(&sample, 64);
            let t = Totals::from_scores(&sample, &level);
            let cox = classical::cox(&t, &level);
            assert_eq!(direction(&t, cox.as_ref(), &level, 0.1), expected);
        }
    }

    fn sigmoid(x: f64) -> f64 {
        1.0 / (1.0 + (-x).exp())
    }

    fn logit(z: f64) -> f64 {
        (z / (1.0 - z)).ln()
    }

    #[test]
    fn each_named_miscalibration_gets_its_name() {
        assert_eq!(
            of(0.0, 1.0, |z| sigmoid(0.6 * logit(z))),
            Direction::OverConfident
        );
        assert_eq!(
            of(0.5, 1.0, |z| sigmoid(0.6 * logit(z))),
            Direction::TooHigh
        );
        assert_eq!(of(0.15, 0.25, |_| 0.4), Direction::TooLow);
        assert_eq!(of(0.15, 0.25, |_| 1.0), Direction::TooLow);
        assert_eq!(of(0.75, 0.85, |_| 0.6), Direction::TooHigh);
        assert_eq!(
            of(0.0, 1.0, |z| sigmoid(1.5 * logit(z))),
            Direction::UnderConfident
        );
        assert_eq!(of(0.0, 1.0, |z| z * 0.8), Direction::TooHigh);
        assert_eq!(of(0.0, 1.0, |z| 1.0 - z), Direction::Inverted);
        assert_eq!(of(0.9, 1.0, |z| 1.0 - z), Direction::Inverted);
        // Not the larger part of the error.
        assert_eq!(of(0.2, 0.7, |z| 0.12 - 0.04 * z), Direction::TooHigh);
        assert_eq!(of(0.0, 0.02, |z| z * 2.0), Direction::TooLow);
        let wave = |z: f64| z + 0.1 * (40.0 * z).sin() * (4.0 * z * (1.0 - z));
        assert_eq!(of(0.05, 0.95, wave), Direction::Local);
    }
}
