//! A bound on the p-value of weighted events whose few largest weights have most of the variance.
//!
//! No formula holds for such sums, and weighted events cannot be drawn. Given scores and weights,
//! S = Σ w·f(z)·U is still a sum of independent terms of mean 0. Its variance v = Σ(wf)²V is known,
//! and no term exceeds b = max w|f|. Whatever the weights, by Bennett (*Probability inequalities
//! for the sum of independent random variables*, 1962),
//!
//! ```text
//! P(S ≥ s) ≤ exp(−(v/b²)·h(sb/v))        h(x) = (1 + x)·ln(1 + x) − x
//! ```
//!
//! f is 1, and the score less its mean by variance: a shift and a slope. Both signs of both make
//! four bounds. The p-value is four times the smallest (Bonferroni), so the level is at most α. It
//! is far below α in fact: only gross errors are found.

use super::levels::Level;

/// The bound for the events of these cells, with S times `share`; `None` without variance. The
/// largest weight of a cell is at most √Σw².
pub(super) fn p_value(finest: &Level, share: f64) -> Option<f64> {
    let (mut v, mut vz) = (0.0, 0.0);
    for c in finest.occupied.iter() {
        v += c.v;
        vz += c.v * c.z / c.n;
    }
    let centre = vz / v;
    let of = |f: &dyn Fn(f64) -> f64| {
        let (mut s, mut v, mut b) = (0.0, 0.0, 0f64);
        for (c, moments) in finest.squares() {
            let f = f(c.z / c.n);
            s += f * c.u;
            v += f * f * c.v;
            b = b.max(f.abs() * moments.w2.sqrt());
        }
        (v > 0.0).then(|| tail(share * s.abs(), v, b))
    };
    let bounds = [of(&|_| 1.0), of(&|z| z - centre)];
    let least = bounds.into_iter().flatten().reduce(f64::min)?;
    Some((4.0 * least).min(1.0))
}

/// Bennett's bound.
fn tail(s: f64, v: f64, b: f64) -> f64 {
    let x = s * b / v;
    (-(v / (b * b)) * ((1.0 + x) * x.ln_1p() - x)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::{DecideBy, Evaluation, Options, Part, evaluate_weighted};
    use crate::rng::Rng;
    use crate::tolerance::Conclusion;

    /// Events of scores `score(u)`, with log-normal weights, that happen with probability
    /// `truth(z)`.
    fn judged(
        (seed, n, sigma): (u64, usize, f64),
        score: fn(f64) -> f64,
        truth: fn(f64) -> f64,
        o: &Options,
    ) -> Evaluation {
        let mut rng = Rng::new(seed);
        let one = |_| {
            let z = score(rng.uniform());
            let w = (sigma * rng.normal()).exp();
            (z, rng.uniform() < truth(z), w)
        };
        let all: Vec<(f64, bool, f64)> = (0..n).map(one).collect();
        evaluate_weighted(&all, o).unwrap()
    }

    #[test]
    fn the_bound_is_bennetts() {
        // One event of score ½ and weight 2 that happened: S = 1, v = 1, b = 2, and h(2) =
        // 3 ln 3 − 2; the slope has no variance.
        let level = Level::from_weighted(&[(0.5, true, 2.0)], 2);
        let one = (-(3.0 * 3f64.ln() - 2.0) / 4.0).exp();
        assert!((tail(1.0, 1.0, 2.0) - one).abs() < 1e-15);
        assert_eq!(p_value(&level, 1.0), Some(1.0));
        let certain = Level::from_weighted(&[(0.0, false, 2.0), (1.0, true, 2.0)], 2);
        assert_eq!(p_value(&certain, 1.0), None);
    }

    #[test]
    fn few_large_weights_do_not_hide_a_gross_error() {
        let o = Options::default();
        for seed in 0..20 {
            let e = judged((seed, 1000, 1.5), |u| u, |z| 1.0 - z, &o);
            assert!(e.bounded && e.reject, "{seed}: {:?}", e.combined);
            assert_eq!(e.combined.decisive, Some(Part::Smooth));
            assert_eq!(e.tolerance.conclusion, Conclusion::Miscalibrated);
            // No other test has a law.
            assert_eq!((e.tcal.tested(), e.cox.unwrap().p_value), (None, None));
            assert_eq!(e.spiegelhalter.and_then(|s| s.p_value), None);
        }
    }

    #[test]
    fn calibrated_events_of_few_large_weights_are_undecided_without_promises() {
        let rare = |u: f64| 0.02 * u;
        for (score, n) in [(|u| u) as fn(f64) -> f64, rare]
            .into_iter()
            .zip([500, 5000])
        {
            let (mut bounded, mut rejected) = (0, 0);
            for seed in 0..300 {
                let e = judged((seed, n, 1.6), score, |z| z, &Options::default());
                rejected += u32::from(e.bounded && e.reject);
                if e.bounded && !e.reject {
                    bounded += 1;
                    assert_eq!((e.detectable_ece_l2, e.tolerance.more_events), (None, None));
                    let decided = e.tolerance.conclusion;
                    assert!(decided != Conclusion::Inconclusive, "{decided:?}");
                }
            }
            assert!(bounded > 200 && rejected <= 4, "{rejected} of {bounded}");
        }
    }

    #[test]
    fn few_outcomes_of_one_weight_are_said_to_be_few_and_promise_no_power() {
        // Four of 4000 are expected.
        let all: Vec<_> = (0..4000).map(|i| (0.001, i % 1000 == 0, 2.0)).collect();
        let e = evaluate_weighted(&all, &Options::default()).unwrap();
        assert!(e.combined.parts.iter().any(|p| p.part == Part::Smooth));
        assert!(!e.bounded && e.detectable_ece_l2.is_none());
        assert_eq!(e.tolerance.conclusion, Conclusion::FewOutcomes);
    }

    #[test]
    fn tcal_alone_has_no_p_value_there() {
        let o = Options {
            decide_by: DecideBy::Tcal,
            ..Options::default()
        };
        let e = judged((1, 1000, 1.5), |u| u, |z| 1.0 - z, &o);
        assert!(e.bounded && !e.reject);
        assert_eq!((e.deciding_p_value(), e.detectable_ece_l2), (None, None));
    }
}
