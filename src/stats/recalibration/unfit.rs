//! Why a map could not be fitted.

/// Why a map could not be fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Unfit {
    /// All outcomes are alike.
    OneOutcome,
    /// The scores vary too little to separate the parameters.
    Alike,
    /// A threshold separates the outcomes: the likelihood has no maximum.
    Parted,
    /// Newton's method did not settle.
    Unsettled,
    /// The best map falls: higher scores have no higher event rates.
    Reversed,
}

impl Unfit {
    /// Its name, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Unfit::OneOutcome => "one_outcome",
            Unfit::Alike => "alike",
            Unfit::Parted => "parted",
            Unfit::Unsettled => "unsettled",
            Unfit::Reversed => "reversed",
        }
    }

    /// The reason in words.
    pub fn words(self) -> &'static str {
        match self {
            Unfit::OneOutcome => "all outcomes are alike",
            Unfit::Alike => "the scores vary too little",
            Unfit::Parted => "a threshold parts the outcomes",
            Unfit::Unsettled => "the likelihood has no maximum that could be found",
            Unfit::Reversed => "higher scores saw no more events",
        }
    }
}
