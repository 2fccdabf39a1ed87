//! When a stream, or a version with vector views, was last seen: by event time, which decides when
//! it expires, and by the clock, which decides when it is stale.

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct LastSeen {
    /// Newest event time.
    pub newest_ms: i64,
    /// Whether an event came since the last tick.
    pub seen: bool,
    /// The last tick that saw an event.
    pub seen_ms: Option<i64>,
}

impl LastSeen {
    /// The state before any event of this process; the newest earlier event had this time.
    pub fn before(newest_ms: i64) -> LastSeen {
        LastSeen {
            newest_ms,
            seen: false,
            seen_ms: None,
        }
    }

    /// Notes an event of this time.
    #[inline]
    pub fn saw(&mut self, time_ms: i64) {
        self.seen = true;
        self.newest_ms = self.newest_ms.max(time_ms);
    }

    /// Merges what another holder has seen of the stream.
    pub fn merge(&mut self, other: LastSeen) {
        self.newest_ms = self.newest_ms.max(other.newest_ms);
        self.seen |= other.seen;
        self.seen_ms = self.seen_ms.max(other.seen_ms);
    }

    /// Advances the clock; returns for how long no event has come.
    pub fn tick(&mut self, now_ms: i64) -> i64 {
        if std::mem::take(&mut self.seen) || self.seen_ms.is_none() {
            self.seen_ms = Some(now_ms);
        }
        now_ms.saturating_sub(self.seen_ms.unwrap_or(now_ms))
    }
}
