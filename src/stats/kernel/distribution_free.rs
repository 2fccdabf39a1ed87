//! Tests of calibration that hold for every law and every n: the price is power.
//!
//! Widmann, Lindsten, Zachariah (2019), Lemma H.1 and Theorems H.1 to H.4. For the kernel φ·I with
//! φ ≤ 1 the bound on |h| is B = 2. They need no null variance and no asymptotics, and at the sizes
//! at which they were published (n = 250) the quadratic and linear ones never rejected anything;
//! [`super::conditional`] is as valid and far sharper. They are here because papers report them.
//!
//! Where the programs differ from the paper: `CalibrationTests.jl` evaluates the exponential also
//! for a negative estimate and so reports p < 1 where the theorem says nothing; here p = 1 then.
//! Its stored values can be had from [`tail`]. Lemma 2 of the paper lists H.2, H.4, H.3 in the
//! order of H.2 biased, H.3 quadratic, H.4 linear. For blocks of b events the number of independent
//! pairs in a Hoeffding average is ⌊n/b⌋⌊b/2⌋; the program takes ⌊n/2⌋ for every b, a little too
//! many for odd b.

/// B, the bound of |h| for φ·I, φ ≤ 1, of K classes. Scalar residuals have 1.
pub const BOUND: f64 = 2.0;

/// P(KCE ≥ observed) under the null, at most: exp(−½ max(0, √(n·SKCE_b/B) − 1)²). \[H.2\]
pub fn biased_p_value(biased: f64, n: f64) -> f64 {
    let excess = ((n * biased.max(0.0) / BOUND).sqrt() - 1.0).max(0.0);
    (-0.5 * excess * excess).exp()
}

/// An upper p-value of the unbiased quadratic (H.3) or linear (H.4) estimate T:
/// exp(−⌊n/2⌋T²/(2B²)), and 1 for T ≤ 0.
pub fn unbiased_p_value(estimate: f64, n: usize) -> f64 {
    if estimate > 0.0 {
        tail(estimate, (n / 2) as f64)
    } else {
        1.0
    }
}

/// An upper p-value of the mean of blocks of `size` of n events; 1 for an estimate of at most 0.
pub fn block_p_value(estimate: f64, n: usize, size: usize) -> f64 {
    if estimate > 0.0 {
        tail(estimate, ((n / size) * (size / 2)) as f64)
    } else {
        1.0
    }
}

/// exp(−pairs·t²/(2B²)): bounds P(T − SKCE ≥ t) without any null, for t ≥ 0; hence also an
/// interval.
pub fn tail(t: f64, pairs: f64) -> f64 {
    (-pairs * t * t / (2.0 * BOUND * BOUND)).exp()
}
