//! Companions of the test: the classical measures, each from additive sums.

/// Calibration in the large: the mean residual.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InTheLarge {
    /// (1/n) ΣU; positive: the model says too little.
    pub mean_residual: f64,
    /// ΣU/√ΣV; `None` when every score is 0 or 1.
    pub z: Option<f64>,
    /// Two-sided p-value of `z`.
    pub p_value: Option<f64>,
}

/// Brier score and Murphy's decomposition at the level of the diagram.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Brier {
    /// (1/n) Σ(y−z)².
    pub score: f64,
    /// (1/n) Σ_cells N (mean score − event rate)²; small is good.
    pub reliability: f64,
    /// (1/n) Σ_cells N (event rate − overall rate)²; large is good.
    pub resolution: f64,
    /// Overall rate·(1 − overall rate).
    pub uncertainty: f64,
}

/// Spiegelhalter's test (1986).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spiegelhalter {
    /// Standard normal under the null.
    pub z: f64,
    /// Two-sided p-value.
    pub p_value: f64,
}

/// Score test of intercept 0 and slope 1 in Cox's recalibration model (1958).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cox {
    /// χ² with 2 degrees of freedom under the null.
    pub score: f64,
    /// Upper tail.
    pub p_value: f64,
    /// One-step estimate of the intercept a in logit P(y=1) = a + b·logit z; 0 when calibrated.
    pub intercept: f64,
    /// One-step estimate of the slope b; 1 when calibrated, below 1 when over-confident.
    pub slope: f64,
}

/// Maximum calibration error, with the cell it comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mce {
    /// |mean residual| of the cell.
    pub value: f64,
    /// Events in that cell.
    pub n: u64,
}
