//! Additive estimators of the Laplace kernel error: random Fourier, random binning, cosine series.
//!
//! Each writes kCE² as a sum of squares of linear statistics ΣU·f(z), so the statistic of a union
//! of panes is the sum of theirs. A window computes the exact value from its cells at less cost
//! ([`super::laplace`]). These estimators are for programs that keep only a handful of numbers, and
//! for comparison with the paper's algorithms. All have a general scale ν of the kernel
//! e^{−|z−z′|/ν} and are functions of the points at fixed draws.
//!
//! * Fourier (Błasiok, Gopalan, Hu, Nakkiran 2023, Algorithm 1): ω from the Cauchy law of scale
//!   1/ν, |ΣU e^{−iωz}|²/n², unbiased for the empirical kCE².
//! * Binning (Algorithm 2): width δ from Gamma(2, ν), edge τ uniform on (0, δ), n⁻²Σ_bins(ΣU)²,
//!   unbiased. δ above 1 is harmless.
//! * Cosine series (derived): e^{−x/ν} = Σ c_k cos πkx on [0, 1] with all c_k > 0, so
//!   kCE² = n⁻²Σ c_k[(ΣU cos πkz)² + (ΣU sin πkz)²]; cut off after k = `last` it is low by at most
//!   0.2772/`last`·(mean|U|)² at ν = 1. No randomness at all.

use super::points::Points;
use crate::rng::Rng;
use std::f64::consts::PI;

/// |ΣU e^{−iωz}|²/n² at one frequency.
pub fn fourier(points: &Points, omega: f64) -> f64 {
    let (re, im) = transform(points, omega);
    (re * re + im * im) / (points.n() * points.n())
}

/// ΣU cos ωz and −ΣU sin ωz.
pub fn transform(points: &Points, omega: f64) -> (f64, f64) {
    let add = |(re, im): (f64, f64), (u, x): (f64, f64)| (re + u * x.cos(), im - u * x.sin());
    let terms = points.atoms().iter().map(|a| (a.u, omega * a.z));
    terms.fold((0.0, 0.0), add)
}

/// n⁻²Σ(ΣU)² over bins ⌊(z + τ)/δ⌋.
pub fn binning(points: &Points, delta: f64, tau: f64) -> f64 {
    let (mut at, mut sum, mut total) = (f64::MIN, 0.0, 0.0);
    for a in points.atoms() {
        let bin = ((a.z + tau) / delta).floor();
        if bin > at {
            total += sum * sum;
            (at, sum) = (bin, 0.0);
        }
        sum += a.u;
    }
    (total + sum * sum) / (points.n() * points.n())
}

/// The cosine series to k = `last`, at scale `nu` > 0.
pub fn cosine_series(points: &Points, last: u32, nu: f64) -> f64 {
    let term = |k: u32| cosine_weight(k, nu) * fourier(points, PI * f64::from(k));
    (0..=last).map(term).sum()
}

/// c_k of e^{−x/ν} on [0, 1]: c_0 = ν(1 − e^{−1/ν}), c_k = 2ν(1 − (−1)^k e^{−1/ν})/(1 + π²k²ν²).
pub fn cosine_weight(k: u32, nu: f64) -> f64 {
    let end = (-1.0 / nu).exp();
    if k == 0 {
        return nu * (1.0 - end);
    }
    let sign = if k.is_multiple_of(2) { 1.0 } else { -1.0 };
    2.0 * nu * (1.0 - sign * end) / (1.0 + (PI * f64::from(k) * nu).powi(2))
}

/// A frequency from the Cauchy law of scale 1/ν, the spectral law of e^{−|x|/ν}.
pub fn frequency(rng: &mut Rng, nu: f64) -> f64 {
    (PI * (rng.uniform() - 0.5)).tan() / nu
}

/// A width δ from Gamma(2, ν) and an edge τ uniform on (0, δ).
pub fn bins(rng: &mut Rng, nu: f64) -> (f64, f64) {
    // The sum of two exponentials; 1 − uniform is never 0.
    let delta = -nu * ((1.0 - rng.uniform()).ln() + (1.0 - rng.uniform()).ln());
    let delta = delta.max(f64::MIN_POSITIVE);
    (delta, delta * rng.uniform())
}

#[cfg(test)]
mod tests {
    use super::super::laplace::laplace;
    use super::*;

    fn points() -> Points {
        let mut rng = Rng::new(21);
        let mut draw = || (rng.uniform(), rng.uniform() < 0.6);
        let sample: Vec<_> = (0..60).map(|_| draw()).collect();
        Points::from_scores(&sample).unwrap()
    }

    #[test]
    fn random_features_are_unbiased_and_the_series_converges_from_below() {
        let p = points();
        for nu in [1.0, 0.3] {
            let want = laplace(&p, nu).squared;
            let mut rng = Rng::new(1);
            let (mut f, mut b) = ((0.0, 0.0), (0.0, 0.0));
            let draws = 4000;
            for _ in 0..draws {
                let x = fourier(&p, frequency(&mut rng, nu));
                let (delta, tau) = bins(&mut rng, nu);
                let z = binning(&p, delta, tau);
                f = (f.0 + x, f.1 + x * x);
                b = (b.0 + z, b.1 + z * z);
            }
            let k = f64::from(draws);
            for (sum, squares) in [f, b] {
                let mean = sum / k;
                let error = ((squares / k - mean * mean) / k).sqrt();
                assert!((mean - want).abs() < 4.0 * error, "{mean} {want} {error}");
            }
            let rms = p.residual_rms();
            for last in [10, 100, 400] {
                let low = cosine_series(&p, last, nu);
                let short = want - low;
                assert!(short >= -1e-15 && short <= 0.2772 / f64::from(last) / nu * rms * rms);
            }
        }
    }
}
