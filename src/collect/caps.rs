//! Bounds on memory and time.

/// See the module. The collector keeps to those on streams, open panes, event time and ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Most streams; a record that would begin another is refused.
    pub streams_max: usize,
    /// Most open panes of a stream; a record that would open another is refused.
    pub open_panes_max: usize,
    /// Most bytes of open panes of all streams, beyond those within the lateness; a record that
    /// would open another is refused.
    pub open_bytes_max: usize,
    /// A stream without events for this long, by event time, is removed, but not before its longest
    /// window by time is empty.
    pub expire_after_ms: i64,
    /// How long the watermark may stop while events after it are counted.
    pub stalled_after_ms: i64,
    /// An event further ahead of its arrival than this is rejected, because it would push the
    /// watermark.
    pub future_max_ms: i64,
    /// Most cells of a pane of a vector view; an event that would begin another makes its windows
    /// undecided.
    pub vector_cells_max: usize,
    /// Most versions that have cells for vector views; windows of the others are undecided.
    pub vector_versions_max: usize,
    /// Most ids of counted records that are remembered; beyond it the oldest are forgotten.
    pub ids_max: usize,
}

impl Default for Caps {
    /// 10,000 streams; 10,000 open panes (a partition a week ahead of another at panes of a
    /// minute), of 256 MiB in all; a week without events; an hour of clock error; 4096 cells of a
    /// vector view, 64 versions with some; four million ids.
    fn default() -> Caps {
        Caps {
            streams_max: 10_000,
            open_panes_max: 10_000,
            open_bytes_max: 256 << 20,
            expire_after_ms: 7 * 86_400_000,
            stalled_after_ms: 300_000,
            future_max_ms: 3_600_000,
            vector_cells_max: 4096,
            vector_versions_max: 64,
            ids_max: 4_000_000,
        }
    }
}
