//! The segments of a version: how they are kept, and the names of those that are no record's.

/// Name of the segment that holds the sums of all others.
pub const ROLL_UP: &str = "*";

/// Name of the segment that takes the events of segments that are too many.
pub const OTHER: &str = "other";

/// How the segments of a model are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segmenting {
    /// Whether there is a roll-up.
    pub rollup: bool,
    /// Most segments of a version, roll-up and other not counted.
    pub max: usize,
    /// Whether those beyond go to other; otherwise they are refused.
    pub other: bool,
}

impl Default for Segmenting {
    /// No roll-up, and the cap on streams alone.
    fn default() -> Segmenting {
        Segmenting {
            rollup: false,
            max: usize::MAX,
            other: false,
        }
    }
}

/// What a stream is in its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A segment, or all events where there are none.
    Segment,
    /// What takes the events of segments that are too many.
    Other,
    /// The sums of all.
    RollUp,
}

impl Part {
    /// The part of that segment's name.
    pub fn of(segment: &str) -> Part {
        match segment {
            ROLL_UP => Part::RollUp,
            OTHER => Part::Other,
            _ => Part::Segment,
        }
    }
}
