//! The activity of a shard's streams: their newest events and pending predictions, without their
//! sums.

use crate::collect::{Key, LastSeen};

/// The unsealed events of a stream that has no judgement yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unjudged {
    /// Name of the model.
    pub model: String,
    /// Version of the model.
    pub version: String,
    /// Segment.
    pub segment: String,
    /// Events in open panes.
    pub events: u64,
    /// An event later than this seals the first of these panes, in ms since 1970; `None` if there
    /// are none.
    pub until_ms: Option<i64>,
    /// Events that came after later ones had sealed their panes.
    pub late: u64,
}

/// Activity of one stream of a shard.
#[derive(Debug, Clone, Copy)]
pub struct Activity<N> {
    /// Names of the stream.
    pub of: N,
    /// Its last event.
    pub last: LastSeen,
    /// Predictions that wait for outcomes.
    pub pending: u64,
    /// Whether the monitor creates the stream if it does not know it yet.
    pub begins: bool,
}

/// Activity of a stream of scores.
pub type StreamActivity<'a> = Activity<&'a Key>;
