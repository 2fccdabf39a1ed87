//! Stand-ins for the types of `collect` and `stats::view`, until those are here.
#![allow(missing_docs)]

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Prediction<'a> {
    Score(f64),
    Vector(&'a [f64]),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Binary(bool),
    Class(u32),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event<'a> {
    pub model: &'a str,
    pub version: &'a str,
    pub segment: &'a str,
    pub id: &'a [u8],
    pub time_ms: i64,
    pub prediction: Prediction<'a>,
    pub outcome: Option<Outcome>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    Malformed,
    MissingField,
    ScoreNotFinite,
    ScoreOutOfRange,
    ScoreNotNumber,
    VectorSum,
    VectorLength,
    UnknownClass,
    BadOutcome,
    EmptyKey,
    TooLarge,
    TimeOutOfRange,
    BadTime,
    UnknownModel,
}
