//! Confidence interval for the ℓ2-ECE.

/// When 0 joins the interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NullReach {
    /// The estimate's p-value under the exact null given the scores exceeds α.
    Conditional,
    /// The paper's σ₀ for scores that fill [`lower_support`, 1].
    Paper {
        /// Smallest possible score: 0 for a binary view, 1/K for the top label of K classes.
        lower_support: f64,
    },
}

/// Interval for the ℓ2-ECE.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// m, the number of cells.
    pub cells: u64,
    /// Confidence asked for.
    pub confidence: f64,
    /// T, the unbiased estimate of the squared ℓ2-ECE; may be negative.
    pub estimate_squared: f64,
    /// σ̂₁², its scaled variance off the null.
    pub sigma1_squared: f64,
    /// Lower end, on the ℓ2-ECE scale (not squared).
    pub lower: f64,
    /// Upper end, on the ℓ2-ECE scale.
    pub upper: f64,
    /// 0 belongs to the interval; (0, x] and [0, x] differ in this alone.
    pub contains_zero: bool,
    /// Median count of the occupied cells; under 5 the interval is not to be trusted.
    pub median_count: f64,
}
