//! The end of a window at its last judgement, and how long ago by the clock that was.
//!
//! Judgements come in event time. Event time is behind the clock by the lateness and, if outcomes
//! come late, by the maturity. Ticks continue from the last judgement: they add the time that has
//! passed on the clock since, and never use the clock's absolute time. So ticks hold an alert for
//! as long as judgements do.

#[derive(Debug, Clone, Copy)]
pub(super) struct LastEnd {
    end_ms: i64,
    /// The tick that saw this end first.
    seen_ms: i64,
    ticked_ms: i64,
    /// For how long the watermark has been stalled since.
    stalled_ms: i64,
}

impl LastEnd {
    /// An end that a tick sees first.
    pub(super) fn seen(end_ms: i64, now_ms: i64) -> LastEnd {
        LastEnd {
            end_ms,
            seen_ms: now_ms,
            ticked_ms: now_ms,
            stalled_ms: 0,
        }
    }

    /// Takes the time, and the end of the window.
    pub(super) fn tick(&mut self, end_ms: i64, now_ms: i64, stalled: bool) {
        if self.end_ms != end_ms {
            *self = LastEnd::seen(end_ms, now_ms);
        }
        let passed_ms = now_ms.saturating_sub(self.ticked_ms);
        self.stalled_ms += if stalled { passed_ms } else { 0 };
        self.ticked_ms = now_ms;
    }

    /// For how long nothing was judged, though the watermark moved.
    pub(super) fn age_ms(&self) -> i64 {
        self.passed_ms().saturating_sub(self.stalled_ms)
    }

    /// Event time, as if it had continued with the clock; `None` before the first judgement.
    pub(super) fn event_ms(&self) -> Option<i64> {
        (self.end_ms > 0).then(|| self.end_ms.saturating_add(self.passed_ms()))
    }

    fn passed_ms(&self) -> i64 {
        self.ticked_ms.saturating_sub(self.seen_ms)
    }
}
