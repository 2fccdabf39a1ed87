//! Results of the JSON scanner: the located values, and the reason why a record is not JSON.

/// Kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Missing,
    Null,
    True,
    False,
    Number,
    /// `NaN`, `Infinity` or `-Infinity`, only within the prediction.
    NotFinite,
    /// The span excludes the quotes.
    Text,
    /// Text with escapes. The span excludes the quotes.
    EscapedText,
    Array,
    Object,
}

/// Kind and position of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

impl Found {
    pub const MISSING: Found = Found {
        kind: Kind::Missing,
        start: 0,
        end: 0,
    };
}

/// Where and why a record is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault {
    pub at: usize,
    pub what: What,
}

/// Why a record is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Expected(&'static str),
    /// A wanted field, or the object that contains it, appears a second time.
    Twice,
    ControlCharacter,
    BadEscape,
    TooDeep,
    TrailingBytes,
}
