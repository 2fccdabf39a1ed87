//! Discrete scores: the exact binomial test per distinct score.

/// When the test runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscreteMode {
    /// When the window holds at most [`super::sums::DISTINCT_MAX`] distinct scores.
    Auto,
    /// Always (offline: with any number of distinct scores).
    On,
    /// Never.
    Off,
}

/// Outcome of the exact binomial tests over distinct scores.
#[derive(Debug, Clone, PartialEq)]
pub struct DiscreteTest {
    /// Number of distinct scores.
    pub distinct: usize,
    /// Calibration is rejected at α.
    pub reject: bool,
    /// Smallest p-value over the scores, Bonferroni-adjusted.
    pub p_value: f64,
    /// The score with the smallest p-value.
    pub worst_score: f64,
}
