//! Which way the scores err, in words.

/// Which way the scores err.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Nothing to tell.
    None,
    /// Scores above the event rate all over.
    TooHigh,
    /// Scores below the event rate all over.
    TooLow,
    /// Scores too far from the middle.
    OverConfident,
    /// Scores too near the middle.
    UnderConfident,
    /// Wrong in places, right on the whole.
    Local,
}

impl Direction {
    /// The direction in words.
    pub fn words(self) -> &'static str {
        match self {
            Direction::None => "no miscalibration found",
            Direction::TooHigh => "scores are too high",
            Direction::TooLow => "scores are too low",
            Direction::OverConfident => "scores are over-confident",
            Direction::UnderConfident => "scores are under-confident",
            Direction::Local => "scores are wrong in places",
        }
    }
}
