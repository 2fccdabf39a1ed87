//! Calibration statistics of the cumulative residuals.

/// A statistic of the path of cumulative residuals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Path {
    /// On the scale of probabilities: divided by n.
    pub statistic: f64,
    /// Asymptotic p-value given the scores; `None` without variance.
    pub p_value: Option<f64>,
}
