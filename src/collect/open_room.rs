//! Room for open panes, so that a partition that is ahead of others cannot take all memory.
//!
//! Open panes of all streams may take so many bytes together. Beyond that a pane is opened only within the
//! lateness and a little more: what the watermark waits for must not find the room taken by what is ahead
//! of it. Where each partition has panes of its own and their sums wait elsewhere for all partitions to
//! come, the caller says when that is full
//! ([`super::collector::Collector::hold_ahead`]).

use super::shape::ModelShape;

/// Panes that are open beyond the lateness while partitions advance together.
pub const IN_STEP_PANES: i64 = 2;

/// Room for one more open pane.
#[derive(Debug, Clone, Copy)]
pub struct OpenRoom {
    /// Most open panes of the stream.
    pub panes_max: usize,
    /// A pane that begins here or later is not opened: those of all streams take as many bytes as they may.
    pub until_ms: i64,
}

impl OpenRoom {
    /// For a model that is sealed up to `sealed_ms`, while there is room for all (`full` is false) or not.
    /// With a time up to which all partitions have come, there is room up to there only.
    pub(super) fn new(
        panes_max: usize,
        shape: &ModelShape,
        (sealed_ms, full): (i64, bool),
        common_ms: Option<i64>,
    ) -> OpenRoom {
        let within_ms = shape.lateness_ms + IN_STEP_PANES * shape.pane_ms;
        let from_ms = common_ms.or_else(|| full.then_some(sealed_ms));
        OpenRoom {
            panes_max,
            until_ms: from_ms.map_or(i64::MAX, |ms| ms.saturating_add(within_ms)),
        }
    }
}
