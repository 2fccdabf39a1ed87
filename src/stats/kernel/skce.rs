//! Estimators of the squared kernel calibration error, SKCE.
//!
//! With δ = e_y − g the residual vector of a prediction g and outcome y, and independent copies,
//! SKCE = E[φ(g, g′) δ·δ′] (Widmann, Lindsten, Zachariah 2019, section 4): the largest squared
//! correlation of residuals with a function in the unit ball of the kernel's space; 0 exactly for a
//! calibrated model. Written out, h_ij = φ_ij·(1{y_i = y_j} − g_i(y_j) − g_j(y_i) + g_i·g_j), and
//! (Table 1)
//!
//! | estimator | formula | bias | cost |
//! |---|---|---|---|
//! | biased | n⁻² Σ_ij h_ij | upwards, ≥ 0 | n²K |
//! | unbiased quadratic | (n(n−1))⁻¹ Σ_{i≠j} h_ij | none, may be < 0 | n²K |
//! | block | mean over ⌊n/B⌋ blocks of the former | none | nBK |
//! | linear | the same with B = 2: pairs of neighbours | none | nK |
//!
//! One pass over pairs also gives the sums of the null laws, at hardly more cost, since φ is the
//! expensive part: given the predictions and under the null, outcomes are independent with Cov(δ_i)
//! = S_i = diag(g_i) − g_i g_iᵀ, and E h_ij² = φ_ij² tr(S_i S_j).

use super::phi::Kernel;
use super::vectors::Vectors;

/// One pair's h, with φ² tr(S S′), the null variance of h given the predictions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// h = φ·(1{y = y′} − g(y′) − g′(y) + g·g′).
    pub h: f64,
    /// φ² tr(S S′).
    pub null_variance: f64,
}

/// p·q and tr(SS′) = Σ p_c q_c(1 − p_c − q_c) + (p·q)².
#[inline]
pub fn traces(p: &[f64], q: &[f64]) -> (f64, f64) {
    // Four sums side by side, since an addition waits for the one before it.
    let (fours, rest) = p.as_chunks::<4>();
    let (others, last) = q.as_chunks::<4>();
    let mut sums = [[0.0; 2]; 4];
    let add = |sum: &mut [f64; 2], a: f64, b: f64| {
        sum[0] += a * b;
        sum[1] += a * b * (1.0 - a - b);
    };
    for (p, q) in fours.iter().zip(others) {
        for (sum, (a, b)) in sums.iter_mut().zip(p.iter().zip(q)) {
            add(sum, *a, *b);
        }
    }
    let mut of_rest = [0.0; 2];
    for (a, b) in rest.iter().zip(last) {
        add(&mut of_rest, *a, *b);
    }
    let [dot, cross] =
        [0, 1].map(|k| (sums[0][k] + sums[1][k]) + (sums[2][k] + sums[3][k]) + of_rest[k]);
    (dot, (cross + dot * dot).max(0.0))
}

/// E(δ·δ′)³ of outcomes drawn from p and q: the product of their third central moments, whose
/// entries are p_a(1 − p_a)(1 − 2p_a), p_a p_b(2p_a − 1) and 2p_a p_b p_c (derived).
pub fn third_moment(p: &[f64], q: &[f64]) -> f64 {
    let (mut same, mut powers, mut once, mut twice) = (0.0, [0.0; 3], 0.0, 0.0);
    for (p, q) in p.iter().zip(q) {
        let (r, slope) = (p * q, (1.0 - 2.0 * p) * (1.0 - 2.0 * q));
        same += r * (1.0 - p) * (1.0 - q) * slope;
        once += r * slope;
        twice += r * r * slope;
        powers = [powers[0] + r, powers[1] + r * r, powers[2] + r * r * r];
    }
    let [one, two, three] = powers;
    same + 3.0 * (one * once - twice) + 4.0 * (one * one * one - 3.0 * one * two + 2.0 * three)
}

/// The pair of events (p, y) and (q, z).
#[inline]
pub fn pair(kernel: Kernel, (p, y): (&[f64], u32), (q, z): (&[f64], u32)) -> Pair {
    let (dot, trace) = traces(p, q);
    let phi = kernel.value(p, q);
    let same = if y == z { 1.0 } else { 0.0 };
    Pair {
        h: phi * (same - p[z as usize] - q[y as usize] + dot),
        null_variance: phi * phi * trace,
    }
}

/// Sums over all pairs of a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Quadratic {
    /// n, the number of events; Σw of weighted ones.
    pub n: f64,
    /// Σ_{i≠j} h_ij.
    pub off: f64,
    /// Σ h_ii = Σ(1 − 2g_y + ‖g‖²), since φ(g, g) = 1.
    pub diagonal: f64,
    /// Σ_{i≠j} h_ij².
    pub off_squares: f64,
    /// Σ h_ii².
    pub diagonal_squares: f64,
    /// Mean of Σ h_ii given the predictions, under the null: Σ(1 − ‖g‖²).
    pub null_diagonal: f64,
    /// Variance of Σ h_ii, likewise.
    pub null_diagonal_variance: f64,
    /// Σ_{i≠j} φ² tr(S_i S_j).
    pub null_pairs: f64,
}

impl Quadratic {
    /// All pairs of the sample; n(n−1)/2 kernel values.
    pub fn of(sample: &Vectors, kernel: Kernel) -> Quadratic {
        Quadratic::weighted(sample, &vec![1.0; sample.len()], kernel)
    }

    /// All pairs of the sample with `weights` above 0, one an event (see [`super::weighted`]); n is
    /// Σw.
    pub fn weighted(sample: &Vectors, weights: &[f64], kernel: Kernel) -> Quadratic {
        assert_eq!(weights.len(), sample.len(), "one weight an event");
        let mut q = Quadratic::default();
        for (i, &w) in weights.iter().enumerate() {
            let this = (sample.row(i), sample.outcome(i));
            q.add_diagonal(this, w);
            let w2 = w * w;
            // A row's sums apart: the totals then lose no more digits than a row has.
            let (mut h, mut squares, mut null) = (0.0, 0.0, 0.0);
            for (j, &v) in weights[..i].iter().enumerate() {
                let p = pair(kernel, this, (sample.row(j), sample.outcome(j)));
                h += w * v * p.h;
                squares += w2 * v * v * p.h * p.h;
                null += w2 * v * v * p.null_variance;
            }
            q.off += 2.0 * h;
            q.off_squares += 2.0 * squares;
            q.null_pairs += 2.0 * null;
        }
        q
    }

    /// The sums of single events only.
    pub fn diagonal(sample: &Vectors) -> Quadratic {
        let mut q = Quadratic::default();
        sample.events().for_each(|event| q.add_diagonal(event, 1.0));
        q
    }

    fn add_diagonal(&mut self, (p, y): (&[f64], u32), w: f64) {
        let norm: f64 = p.iter().map(|p| p * p).sum();
        let h = |p: f64| 1.0 - 2.0 * p + norm;
        let own = h(p[y as usize]);
        let mean = 1.0 - norm;
        let w2 = w * w;
        self.n += w;
        self.diagonal += w2 * own;
        self.diagonal_squares += w2 * w2 * (own * own);
        self.null_diagonal += w2 * mean;
        let spread = |&p: &f64| p * (h(p) - mean) * (h(p) - mean);
        self.null_diagonal_variance += w2 * w2 * p.iter().map(spread).sum::<f64>();
    }

    /// SKCE_b, the biased estimator: n⁻²Σ h_ij, at least 0 up to rounding. Its mean under the null
    /// is Σ(1 − ‖g‖²)/n².
    pub fn biased(&self) -> f64 {
        (self.off + self.diagonal) / (self.n * self.n)
    }

    /// SKCE_uq, the unbiased quadratic estimator; `None` for one event.
    pub fn unbiased(&self) -> Option<f64> {
        (self.n > 1.0).then(|| self.off / (self.n * (self.n - 1.0)))
    }
}

/// Sums of the unbiased estimates of disjoint blocks of neighbours; of pairs when blocks have two
/// events.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Blocks {
    /// Number of blocks L.
    pub count: f64,
    /// Σ of the blocks' estimates.
    pub sum: f64,
    /// Σ of the squares of the estimates.
    pub squares: f64,
    /// Σ of the null variances of the estimates given the predictions.
    pub null_variance: f64,
    /// Σ of the squares of the null variances.
    pub null_squares: f64,
    /// Σ of what pairs alone add to their third null moments, Σφ³E(δ·δ′)³ over pairs³: all of it in
    /// blocks of two.
    pub null_third: f64,
}

impl Blocks {
    /// The ⌊n/size⌋ whole blocks of `size` ≥ 2 neighbours, in the order of the sample; events left
    /// over are not used.
    pub fn of(sample: &Vectors, kernel: Kernel, size: usize) -> Blocks {
        let mut all = Blocks::default();
        for block in 0..sample.len() / size {
            all.add(sample, kernel, block * size..(block + 1) * size);
        }
        all
    }

    fn add(&mut self, sample: &Vectors, kernel: Kernel, block: std::ops::Range<usize>) {
        let size = block.len() as f64;
        let (mut h, mut null, mut third) = (0.0, 0.0, 0.0);
        for i in block.clone() {
            for j in block.start..i {
                let (this, other) = (sample.row(i), sample.row(j));
                let p = pair(
                    kernel,
                    (this, sample.outcome(i)),
                    (other, sample.outcome(j)),
                );
                h += p.h;
                null += p.null_variance;
                third += kernel.value(this, other).powi(3) * third_moment(this, other);
            }
        }
        let pairs = size * (size - 1.0) / 2.0;
        self.count += 1.0;
        self.sum += h / pairs;
        self.squares += (h / pairs) * (h / pairs);
        let variance = null / (pairs * pairs);
        self.null_variance += variance;
        self.null_squares += variance * variance;
        self.null_third += third / pairs.powi(3);
    }

    /// The blocks of two samples together: sums are additive.
    pub fn merge(&mut self, other: &Blocks) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
        self.null_variance += other.null_variance;
        self.null_squares += other.null_squares;
        self.null_third += other.null_third;
    }

    /// Mean of the blocks' estimates: SKCE_ul for pairs. `None` without a block.
    pub fn estimate(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }

    /// Standard deviation of the blocks' estimates, divided by L − `lost` degrees of freedom;
    /// `None` where that is not positive.
    pub fn deviation(&self, lost: f64) -> Option<f64> {
        let mean = self.estimate()?;
        let freedom = self.count - lost;
        let squares = self.squares - self.count * mean * mean;
        (freedom > 0.0 && squares > f64::EPSILON * self.squares).then(|| (squares / freedom).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two events on the corners of two classes; the constants stand in the unit tests of
    /// `CalibrationErrors.jl`.
    #[test]
    fn two_corners_give_the_numbers_of_the_reference_program() {
        let kernel = Kernel::Gaussian { nu: 1.0 };
        for (y, biased, unbiased) in [
            ([0, 1], 0.0, 0.0),
            ([0, 0], 0.5, 0.0),
            ([1, 0], 1.0 - (-1f64).exp(), -2.0 * (-1f64).exp()),
            ([1, 1], 0.5, 0.0),
        ] {
            let mut v = Vectors::new(2);
            v.push(&[1.0, 0.0], y[0]).unwrap();
            v.push(&[0.0, 1.0], y[1]).unwrap();
            let q = Quadratic::of(&v, kernel);
            assert!((q.biased() - biased).abs() < 1e-15, "{y:?}");
            assert!((q.unbiased().unwrap() - unbiased).abs() < 1e-15, "{y:?}");
            assert_eq!(Blocks::of(&v, kernel, 2).estimate(), q.unbiased());
        }
    }

    #[test]
    fn null_moments_are_the_mean_powers_of_h_over_all_outcomes() {
        let kernel = Kernel::TotalVariation { nu: 0.5 };
        let (p, q) = ([0.2, 0.5, 0.3], [0.6, 0.1, 0.3]);
        let (mut mean, mut square, mut cube) = (0.0, 0.0, 0.0);
        for y in 0..3u32 {
            for z in 0..3u32 {
                let h = pair(kernel, (&p, y), (&q, z)).h;
                let weight = p[y as usize] * q[z as usize];
                mean += weight * h;
                square += weight * h * h;
                cube += weight * h * h * h;
            }
        }
        assert!(mean.abs() < 1e-15);
        assert!((pair(kernel, (&p, 0), (&q, 0)).null_variance - square).abs() < 1e-15);
        let third = kernel.value(&p, &q).powi(3) * third_moment(&p, &q);
        assert!((third - cube).abs() < 1e-15, "{third} {cube}");
    }
}
