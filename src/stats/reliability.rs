//! The reliability diagram.

/// One occupied cell of the reliability diagram.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReliabilityCell {
    /// Scores from here.
    pub low: f64,
    /// Scores below here (the last cell is closed).
    pub high: f64,
    /// Events, at least 1.
    pub n: u64,
    /// Mean score.
    pub mean_score: f64,
    /// Share of positive outcomes.
    pub event_rate: f64,
    /// Lower end of the Clopper–Pearson bar of the event rate.
    pub rate_low: f64,
    /// Upper end of it.
    pub rate_high: f64,
    /// Lower end of the consistency bar: where the event rate falls under the null.
    pub null_low: f64,
    /// Upper end of it.
    pub null_high: f64,
}
