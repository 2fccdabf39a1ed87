//! The segments of a version: how they are kept, and the segment names that no record has.
//!
//! The segment of a record reads `field=value`, with an empty value if the record has none. So an
//! empty name means that the record's source has no segments, and its events are in no roll-up: a
//! roll-up of a version without segments would only repeat its one stream. Names alone decide this,
//! so it does not depend on the order of events or on the process that counts them.

/// Name of the segment that holds the sums of all others.
pub const ROLL_UP: &str = "*";

/// Name of the segment that takes the events of segments beyond the cap.
pub const OTHER: &str = "other";

/// How the segments of a model are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segmenting {
    /// Whether a version with segments has a roll-up.
    pub rollup: bool,
    /// Most segments of a version, roll-up and other not counted.
    pub max: usize,
    /// Whether segments beyond `max` go to `other`; otherwise they are refused.
    pub other: bool,
}

impl Default for Segmenting {
    /// No roll-up, and no cap except that on streams.
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
pub enum SegmentKind {
    /// A segment.
    Segment,
    /// Events of sources without segments.
    Unsegmented,
    /// Takes the events of segments beyond the cap.
    Other,
    /// The sums of the segments and `Other`.
    RollUp,
}

impl SegmentKind {
    /// The kind of the segment with this name.
    pub fn of(segment: &str) -> SegmentKind {
        match segment {
            "" => SegmentKind::Unsegmented,
            ROLL_UP => SegmentKind::RollUp,
            OTHER => SegmentKind::Other,
            _ => SegmentKind::Segment,
        }
    }

    /// Whether records cannot name it.
    pub fn is_derived(self) -> bool {
        matches!(self, SegmentKind::Other | SegmentKind::RollUp)
    }

    /// Whether a roll-up counts its events.
    pub fn is_rolled_up(self) -> bool {
        matches!(self, SegmentKind::Segment | SegmentKind::Other)
    }
}
