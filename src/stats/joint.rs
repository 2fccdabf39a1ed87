//! The law of the smallest p-value over the levels: how the error α is shared without waste.
//!
//! The levels of one sample are correlated, so giving each α/B (Bonferroni) spends too little. Each
//! level's p-value is turned into a normal score; the scores are taken as jointly normal with the
//! exact null correlation of neighbouring levels, and as a Markov chain along the levels, which
//! they nearly are: T of a finer level is T of the coarser one plus a nearly independent increment.
//! Then P(max Z > t) needs only one-dimensional integrals, one after another:
//!
//! ```text
//! f₁ = φ on (−∞, t],   f_{b+1}(y) = ∫ f_b(x) φ((y − ρx)/s)/s dx,   s² = 1 − ρ²
//! P(max Z > t) = P(Z₁ > t) + Σ_b ∫ f_b(x) P(N > (t − ρx)/s) dx
//! ```
//!
//! The second line adds what crosses t at each step instead of taking what stays from one, so small
//! probabilities keep their digits. Integrals are Gauss–Legendre sums on [−7, t]; of the 10⁻¹²
//! below −7 hardly any ever crosses t.
//!
//! A level whose correlation with the last level that stays exceeds 0.999 is one statistic with it
//! and is merged: the kernel would be narrower than the nodes are apart. Rare-event scores on a
//! linear axis do this.
//!
//! Always: the result lies between the smallest p-value and B times it, and is the same for the
//! same input. Cost: nodes × neighbours × levels exponentials, about 15 µs at 12 levels of
//! continuous scores and ten times that where all correlations are near 1; nodes are worked out
//! once per process, and the exponential is a short one of our own. The recursion is the classical
//! one for first passage of a Gaussian Markov sequence.

use super::null::{normal_survival, normal_upper_quantile};
use std::f64::consts::PI;
use std::sync::OnceLock;

/// Levels with a correlation above this are one statistic.
pub const CORRELATION_ONE: f64 = 0.999;

/// Left end of the integrals: the normal law has 10⁻¹² below it.
const LEFT: f64 = -7.0;

/// P(min over levels of the p-value ≤ `smallest`) under the null, given the correlations of
/// neighbouring levels (one fewer than levels), each in [0, 1].
pub fn min_p_value(smallest: f64, correlations: &[f64]) -> f64 {
    let chain = merged(correlations);
    let bound = (smallest * (chain.len() + 1) as f64).min(1.0);
    let t = normal_upper_quantile(smallest);
    // Beyond ±6.5 bounds and truth agree to 10⁻⁹, or to a factor that decides nothing.
    if !(-6.5..=6.5).contains(&t) {
        return bound.max(smallest);
    }
    crossing(t, &chain).clamp(smallest, bound)
}

/// The correlations of the levels that stay: a level is merged into the last one that stays while
/// its correlation with that one, the product along the chain, exceeds [`CORRELATION_ONE`].
fn merged(correlations: &[f64]) -> Vec<f64> {
    let (mut chain, mut product) = (Vec::with_capacity(correlations.len()), 1.0);
    for r in correlations {
        product *= r;
        if product <= CORRELATION_ONE {
            chain.push(std::mem::replace(&mut product, 1.0));
        }
    }
    chain
}

/// P(max Z > t) of a Gaussian Markov chain with these adjacent correlations.
fn crossing(t: f64, correlations: &[f64]) -> f64 {
    let narrowest = correlations
        .iter()
        .map(|r| (1.0 - r * r).sqrt())
        .fold(1.0, f64::min);
    let rule = rule_for((t - LEFT) / narrowest);
    let half = 0.5 * (t - LEFT);
    let x: Vec<f64> = rule.iter().map(|(u, _)| LEFT + half * (u + 1.0)).collect();
    let w: Vec<f64> = rule.iter().map(|(_, w)| w * half).collect();
    let mut f: Vec<f64> = x.iter().zip(&w).map(|(&x, &w)| w * density(x)).collect();
    let mut out = normal_survival(t);
    let mut next = vec![0.0; f.len()];
    for (step, &r) in correlations.iter().enumerate() {
        let s = (1.0 - r * r).sqrt();
        for (&mass, &from) in f.iter().zip(&x) {
            let far = (t - r * from) / s;
            // P(N > d) ≤ ½·exp(−d²/2) for d ≥ 0; the survival function is dear.
            if far < 0.0 || far < REACH && mass * exp(-0.5 * far * far) > SLIGHT * out {
                out += mass * normal_survival(far);
            }
        }
        if step + 1 < correlations.len() {
            spread(&f, &x, &w, r, s, &mut next);
            std::mem::swap(&mut f, &mut next);
        }
    }
    out
}

/// Share of the result below which a node's part of it is left out: of some thousand nodes all
/// together 10⁻⁷.
const SLIGHT: f64 = 1e-10;

/// Mass at a node below which it changes no digit that is reported.
const NEGLIGIBLE: f64 = 1e-16;

/// Deviations beyond which a step is not taken: φ is below 10⁻¹³ there.
const REACH: f64 = 7.5;

/// Mass of each node after one step of the chain.
fn spread(f: &[f64], x: &[f64], w: &[f64], r: f64, s: f64, next: &mut [f64]) {
    let (inverse, scale) = (1.0 / s, 1.0 / (s * (2.0 * PI).sqrt()));
    next.fill(0.0);
    // Nodes that the kernel reaches; both ends only go up.
    let (mut first, mut last) = (0, 0);
    for (&mass, &from) in f.iter().zip(x) {
        let centre = r * from;
        let (low, high) = (centre - REACH * s, centre + REACH * s);
        first += x[first..].iter().take_while(|&&y| y < low).count();
        last += x[last..].iter().take_while(|&&y| y <= high).count();
        if mass <= NEGLIGIBLE {
            continue;
        }
        for (y, out) in x[first..last].iter().zip(&mut next[first..last]) {
            let d = (y - centre) * inverse;
            *out += mass * exp(-0.5 * d * d);
        }
    }
    next.iter_mut().zip(w).for_each(|(n, w)| *n *= w * scale);
}

fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / (2.0 * PI).sqrt()
}

/// eˣ for x in [−32, 0] as the 256th power of e^(x/256), which five terms of its series give: to
/// 10⁻⁹ of itself from −10 on and 10⁻⁶ at the end. Of additions and multiplications alone, so that
/// a loop over nodes becomes vector code; the library's is a call.
#[inline]
fn exp(x: f64) -> f64 {
    let y = x * (1.0 / 256.0);
    let tail = 1.0 / 6.0 + y * (1.0 / 24.0 + y * (1.0 / 120.0));
    let mut e = 1.0 + y * (1.0 + y * (0.5 + y * tail));
    for _ in 0..8 {
        e *= e;
    }
    e
}

type Rule = Vec<(f64, f64)>;

/// Sizes of the quadrature rules; the work goes with the square.
const SIZES: [usize; 15] = [
    24, 28, 32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 232, 288, 384,
];

/// The smallest rule that resolves `widths` kernel widths. In the middle of the range its nodes are
/// π/2 times farther apart than on average; a Gaussian sum with nodes 1.2 widths apart is good to
/// 10⁻⁵, so 1.3 nodes a width are enough.
fn rule_for(widths: f64) -> &'static Rule {
    static RULES: [OnceLock<Rule>; SIZES.len()] = [const { OnceLock::new() }; SIZES.len()];
    let wanted = 1.3 * widths;
    let at = SIZES.partition_point(|&size| (size as f64) < wanted);
    let at = at.min(SIZES.len() - 1);
    RULES[at].get_or_init(|| gauss_legendre(SIZES[at]))
}

/// Nodes and weights of Gauss–Legendre quadrature on [−1, 1], ascending, by Newton's method.
fn gauss_legendre(n: usize) -> Rule {
    let size = n as f64;
    let mut rule: Rule = (0..n)
        .map(|i| {
            let mut x = (PI * (i as f64 + 0.75) / (size + 0.5)).cos();
            let mut slope = 1.0;
            for _ in 0..12 {
                let (mut before, mut now) = (1.0, x);
                for k in 2..=n {
                    let k = k as f64;
                    (before, now) = (now, ((2.0 * k - 1.0) * x * now - (k - 1.0) * before) / k);
                }
                slope = size * (x * now - before) / (x * x - 1.0);
                x -= now / slope;
            }
            (x, 2.0 / ((1.0 - x * x) * slope * slope))
        })
        .collect();
    rule.reverse();
    rule
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn quadrature_integrates_polynomials_exactly() {
        let rule = gauss_legendre(24);
        let sum: f64 = rule.iter().map(|(x, w)| w * x.powi(6)).sum();
        assert!((sum - 2.0 / 7.0).abs() < 1e-13);
        assert!((rule.iter().map(|(_, w)| w).sum::<f64>() - 2.0).abs() < 1e-13);
    }

    #[test]
    fn the_short_exponential_agrees_with_the_library() {
        for i in 0..=30_000 {
            let x = -f64::from(i) * 1e-3;
            let bound = if x < -10.0 { 2e-6 } else { 2e-9 };
            assert!((exp(x) / x.exp() - 1.0).abs() < bound, "{x}");
        }
    }

    #[test]
    fn one_level_and_equal_levels_give_the_p_value_back() {
        for p in [1e-12, 1e-4, 0.03, 0.5, 0.99] {
            assert!((min_p_value(p, &[]) / p - 1.0).abs() < 1e-6, "{p}");
            assert!((min_p_value(p, &[0.9995, 1.0]) / p - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn independent_levels_give_the_product_law() {
        for p in [1e-6, 1e-3, 0.02, 0.3] {
            let expected = 1.0 - (1.0f64 - p).powi(5);
            assert!(
                (min_p_value(p, &[0.0; 4]) / expected - 1.0).abs() < 1e-6,
                "{p}"
            );
        }
    }

    #[test]
    fn the_recursion_agrees_with_simulated_chains() {
        let chains: [&[f64]; 5] = [
            &[0.9992; 11],
            &[0.9999; 11],
            &[0.7; 11],
            &[0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7],
            &[0.998, 0.99, 0.5, 0.2],
        ];
        let draws = 200_000;
        for (seed, chain) in chains.iter().enumerate() {
            let mut rng = Rng::new(seed as u64);
            let mut counts = [0u32; 3];
            let ts = [1.5, 2.3, 2.9];
            for _ in 0..draws {
                let mut z = rng.normal();
                let mut top = z;
                for r in *chain {
                    z = r * z + (1.0 - r * r).sqrt() * rng.normal();
                    top = top.max(z);
                }
                (0..3).for_each(|i| counts[i] += u32::from(top > ts[i]));
            }
            for (t, count) in ts.iter().zip(counts) {
                let (got, p) = (
                    min_p_value(normal_survival(*t), chain),
                    f64::from(count) / f64::from(draws),
                );
                let noise = 4.0 * (p / f64::from(draws)).sqrt();
                assert!(
                    (got - p).abs() < noise,
                    "chain {seed} t {t}: {got} against {p}"
                );
            }
        }
    }
}
