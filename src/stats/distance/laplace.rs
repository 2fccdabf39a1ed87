//! The Laplace kernel calibration error and its exact null moments.
//!
//! kCE² = E[U U′ e^{−|z−z′|/ν}] over two independent copies (Kumar, Sarawagi, Jain 2018; Błasiok et
//! al. 2023, section 8, ν = 1); its empirical form n⁻² ΣΣ U_i U_j e^{−|z_i−z_j|/ν}, diagonal
//! included, is the scalar SKCE_b of Widmann, Lindsten, Zachariah (2019). The Laplace kernel is
//! sound, ⅓·smCE ≤ kCE (Theorem 8.5); the Gaussian one is not (Theorem 8.6) and is not offered as a
//! distance.
//!
//! The double sum costs O(n²) as written. On sorted scores it is a recursion, because the
//! exponential of a sum of gaps is a product: A ← (A + ΣU_prev)·e^{−gap/ν}, total = Σ(ΣU)² +
//! 2ΣΣU·A. Every exponent is at most 0, so nothing overflows. O(m) after sorting. The paper has
//! O(n²).
//!
//! Given the scores, under the null the U are independent with variance V = z(1−z), so n²·kCE² has
//! mean ΣV and variance Σ V(1−2z)² + 2ΣΣ_{i≠j} e^{−2|z−z′|/ν} V V′: the same recursion at ν/2. A
//! gamma law with these two moments gives p-values where ΣV is at least 10; McDiarmid's inequality
//! gives one that holds at any n.
//!
//! Constants that the paper leaves out or has looser (derived): smCE ≤ √2·kCE and lower distance ≤
//! √3.5·kCE, because the norm of the kernel's space is ½[w(0)² + w(1)² + ∫(w² + w′²)]; the paper's
//! Fact 8.4 omits the ½. Its proof of kCE ≤ √lower (Lemma 8.7) gives √lower times 2√2; what is
//! proved is kCE ≤ √(1.5·lower).

use super::points::Points;
use crate::null::gamma_upper;
use crate::smooth::chi_squared_tail;

/// Σ x_i x_j e^{−|z_i−z_j|/ν} over all pairs, the diagonal included; `z` ascending, `nu` positive.
pub fn exponential_sum(z: impl Iterator<Item = (f64, f64)>, nu: f64) -> f64 {
    let (mut total, mut tail, mut before) = (0.0, 0.0, f64::NAN);
    for (at, x) in z {
        if before < at {
            tail *= ((before - at) / nu).exp();
        }
        before = at;
        total += x * x + 2.0 * x * tail;
        tail += x;
    }
    total
}

/// The Laplace kernel calibration error with its null law.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Laplace {
    /// ν, the kernel's scale, on the scale of scores.
    pub nu: f64,
    /// kCE², biased upwards by about ΣV/n² when calibrated; at least 0.
    pub squared: f64,
    /// kCE² without the diagonal (SKCE_uq): mean 0 when calibrated, may be negative. `None` for one
    /// event.
    pub unbiased: Option<f64>,
    /// How far `squared` may be off that of the raw scores; 0 from raw scores.
    pub squared_error: f64,
    /// Mean of `squared` under the null given the scores.
    pub null_mean: f64,
    /// Variance of `squared` under the null given the scores.
    pub null_variance: f64,
    /// P(kCE² ≥ observed) under the null given the scores, by the gamma law of its two moments;
    /// `None` where ΣV is below [`GAMMA_MIN`], since the law of rare outcomes has steps, and where
    /// outcomes depend on each other in clusters.
    pub p_value: Option<f64>,
    /// An upper bound on the p-value by McDiarmid's inequality: exp(−2n t²), t = kCE − √ΣV/n where
    /// positive. Valid at any n; 1 where outcomes depend on each other in clusters.
    pub p_value_bound: f64,
}

impl Laplace {
    /// kCE, the Laplace kernel calibration error.
    pub fn error(&self) -> f64 {
        self.squared.sqrt()
    }

    /// The interval in which the kCE of the raw scores lies.
    pub fn ends(&self) -> (f64, f64) {
        let low = (self.squared - self.squared_error).max(0.0);
        (low.sqrt(), (self.squared + self.squared_error).sqrt())
    }
}

/// The error of the points at scale `nu` > 0; the distance of the paper has ν = 1.
///
/// From cells: pairs move by |z − z̄| + |z′ − z̄′| at most and e^{−x/ν} is 1/ν-Lipschitz, so kCE²
/// is off by at most 2·mean|U|·[`Points::spread`]/ν.
///
/// Two events, 0.3 with y = 1 and 0.5 with y = 0: (0.49 + 0.25 − 2·0.35·e^{−0.2})/4.
pub fn laplace(points: &Points, nu: f64) -> Laplace {
    let (n, atoms) = (points.n(), points.atoms());
    let total = exponential_sum(atoms.iter().map(|a| (a.z, a.u)), nu).max(0.0);
    let diagonal: f64 = atoms.iter().map(|a| a.u2).sum();
    let mean: f64 = atoms.iter().map(|a| a.v).sum();
    // V(1−2z)² = V − 4V².
    let fourth: f64 = atoms.iter().map(|a| (a.v - 4.0 * a.v2).max(0.0)).sum();
    let squares: f64 = atoms.iter().map(|a| a.v2).sum();
    let pairs = exponential_sum(atoms.iter().map(|a| (a.z, a.v)), nu / 2.0) - squares;
    let variance = fourth + 2.0 * pairs.max(0.0);
    let excess = (total.sqrt() - mean.sqrt()).max(0.0) / n;
    Laplace {
        nu,
        squared: total / (n * n),
        unbiased: (n > 1.0).then(|| (total - diagonal) / (n * (n - 1.0))),
        squared_error: 2.0 * points.residual_rms() * points.spread() / nu,
        null_mean: mean / (n * n),
        null_variance: variance / (n * n * n * n),
        p_value: gamma_p_value(total, mean, variance).filter(|_| mean >= GAMMA_MIN),
        p_value_bound: (-2.0 * n * excess * excess).exp(),
    }
}

/// ΣV of the outcomes, ½Σ(1 − ‖g‖²) of vectors, below which no gamma law fits: a law of rare
/// outcomes has steps.
pub const GAMMA_MIN: f64 = 10.0;

/// P(G ≥ x) of a gamma law with the given mean and variance; `None` without a mean. Where the
/// variance is within rounding of none the law is its mean: 0 beyond it, 1 up to it.
pub fn gamma_p_value(x: f64, mean: f64, variance: f64) -> Option<f64> {
    if !(mean > 0.0 && variance >= 0.0) {
        return None;
    }
    if x <= 0.0 {
        return Some(1.0);
    }
    if variance <= ROUNDING * mean * mean {
        let beyond = x > mean * (1.0 + ROUNDING.sqrt());
        return Some(if beyond { 0.0 } else { 1.0 });
    }
    gamma_upper(mean * mean / variance, x * mean / variance)
}

/// P(Q ≥ x) of a positive quadratic form of the given mean μ and variance σ², the larger of two: by
/// the gamma law of both, and by one χ² with one degree, μ + σ(χ²₁ − 1)/√2. The gamma law is that
/// of a form whose many weights differ little; for one large weight beside many small ones, as
/// where one frequent class dominates, its far tail is too thin. One χ² alone has the largest
/// skewness of all forms of that variance, √8.
pub fn form_p_value(x: f64, mean: f64, variance: f64) -> Option<f64> {
    let gamma = gamma_p_value(x, mean, variance)?;
    if variance <= ROUNDING * mean * mean {
        return Some(gamma);
    }
    let single = 1.0 + std::f64::consts::SQRT_2 * (x - mean) / variance.sqrt();
    Some(gamma.max(chi_squared_tail(single, 1)))
}

/// Share of the squared mean up to which a variance counts as rounding. If one event has all of the
/// uncertainty and z = ½, the variance is 0.
const ROUNDING: f64 = 1e-12;

/// Block of an ordered sample from which the kernel sum of any union of neighbouring blocks
/// follows: the exact, mergeable form for a sliding window kept as a balanced tree over scores.
///
/// With lo, hi the block's outermost scores: M = ΣU e^{−(z−lo)/ν}, P = ΣU e^{−(hi−z)/ν} and
/// Q = ΣΣ U U′ e^{−|z−z′|/ν}. All exponents are at most 0. Joining is associative up to rounding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    low: f64,
    high: f64,
    from_low: f64,
    to_high: f64,
    total: f64,
}

impl Block {
    /// The block of one score with residual (or any weight) `u`.
    pub fn of(z: f64, u: f64) -> Block {
        Block {
            low: z,
            high: z,
            from_low: u,
            to_high: u,
            total: u * u,
        }
    }

    /// Joins `after`, whose scores are all at least this block's, at scale `nu`.
    pub fn join(&self, after: &Block, nu: f64) -> Block {
        let e = |gap: f64| (-gap / nu).exp();
        let bridge = e(after.low - self.high);
        Block {
            low: self.low,
            high: after.high,
            from_low: self.from_low + after.from_low * e(after.low - self.low),
            to_high: after.to_high + self.to_high * e(after.high - self.high),
            total: self.total + after.total + 2.0 * self.to_high * bridge * after.from_low,
        }
    }

    /// Q, the kernel sum over all pairs of the block; n²·kCE².
    pub fn total(&self) -> f64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::samples;

    fn sample(n: usize, seed: u64) -> Vec<(f64, bool)> {
        let score = |u: f64| (u * 64.0).floor() / 64.0;
        samples::events(&mut Rng::new(seed), n, score, |_| 0.4)
    }

    #[test]
    fn the_recursion_is_the_double_sum_and_blocks_join_to_it() {
        let sample = sample(200, 3);
        let p = Points::from_scores(&sample).unwrap();
        for nu in [1.0, 0.1, 0.003] {
            let mut want = 0.0;
            for &(z, y) in &sample {
                for &(x, o) in &sample {
                    let u = |z: f64, y: bool| f64::from(u8::from(y)) - z;
                    want += u(z, y) * u(x, o) * (-(z - x).abs() / nu).exp();
                }
            }
            let got = laplace(&p, nu);
            assert!((got.squared - want / 4e4).abs() < 1e-13);
            let mut blocks: Vec<Block> = p.atoms().iter().map(|a| Block::of(a.z, a.u)).collect();
            while blocks.len() > 1 {
                let join = |pair: &[Block]| pair.iter().skip(1).fold(pair[0], |a, b| a.join(b, nu));
                blocks = blocks.chunks(2).map(join).collect();
            }
            assert!((blocks[0].total() - want).abs() < 1e-9);
        }
    }

    /// The variance is rounding, and the shape of a gamma law of such moments 10¹⁸ and more.
    #[test]
    fn one_event_with_all_of_the_uncertainty_has_no_gamma_law() {
        for certain in [1e-20, 1e-18, 1e-40, 1.0 - 1e-16] {
            let sample: Vec<(f64, bool)> = (0..100).map(|_| (certain, certain > 0.5)).collect();
            let sample = [sample, vec![(0.5, false)]].concat();
            let l = laplace(&Points::from_scores(&sample).unwrap(), 1.0);
            assert_eq!(l.p_value, None, "{l:?}");
        }
        for shape in [1e12, 1e17, 1e30, f64::INFINITY] {
            let p = |x| gamma_p_value(x, 1.0, 1.0 / shape);
            assert_eq!((p(1.0), p(1.001)), (Some(1.0), Some(0.0)));
        }
        assert_eq!(gamma_p_value(1.0, 0.0, 0.0), None);
        // A large shape is nearly normal: one deviation above the mean.
        let p = gamma_p_value(1.001, 1.0, 1e-6).unwrap();
        assert!((p - 0.158_655).abs() < 1e-4, "{p}");
    }

    #[test]
    fn two_events_give_the_number_of_the_documentation() {
        let p = Points::from_scores(&[(0.3, true), (0.5, false)]).unwrap();
        let want = (0.49 + 0.25 - 0.7 * (-0.2f64).exp()) / 4.0;
        assert!((laplace(&p, 1.0).squared - want).abs() < 1e-15);
    }

    #[test]
    fn p_values_are_uniform_enough_when_calibrated() {
        let mut rng = Rng::new(11);
        let mut below = 0;
        for _ in 0..400 {
            let sample = samples::events(&mut rng, 200, |u| u, |z| z);
            let l = laplace(&Points::from_scores(&sample).unwrap(), 1.0);
            let p = l.p_value.unwrap();
            assert!(l.p_value_bound >= p * 0.5);
            below += u32::from(p < 0.1);
        }
        // 40 expected, standard deviation 6.
        assert!((20..=62).contains(&below), "{below} of 400 below 0.1");
    }
}
