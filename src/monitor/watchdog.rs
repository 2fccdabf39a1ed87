//! Watches whether the frontier stops though events after it are counted.
//!
//! The frontier is the least event time of the partitions that hold others back; minus the lateness
//! of a model, it is the model's watermark. While accepted events are after the frontier, some
//! partition *holds* it. This happens all the time, briefly. If it lasts, nothing is judged, and
//! the last judgements would stay on display. So after `stalled_after` verdicts are withdrawn as
//! `stalled`, and the partition is named.
//!
//! Only the time of ticks is compared, and nothing that is counted depends on it.

use crate::collect::{PartitionId, Partitions};

/// The frontier, and who holds it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Frontier {
    /// The event time; `None` until every partition that holds others back has had a record.
    pub time_ms: Option<i64>,
    /// The partition that holds it back while accepted events are after it.
    pub holder: Option<PartitionId>,
}

impl Frontier {
    /// The frontier over the partitions of several shards; the flag of a shard is `false` if nobody
    /// waits for it.
    pub fn of<'p>(shards: impl Iterator<Item = (&'p Partitions, bool)>) -> Frontier {
        let (mut least, mut newest) = (None, None);
        for (partitions, waited) in shards {
            newest = newest.max(partitions.newest_ms());
            if let Some((id, reach)) = partitions.slowest().filter(|_| waited)
                && least.is_none_or(|(_, other)| reach < other)
            {
                least = Some((id, reach));
            }
        }
        let time_ms = least.map_or(newest, |(_, reach)| newest.min(reach));
        Frontier {
            time_ms,
            holder: least.filter(|_| newest > time_ms).map(|(id, _)| id),
        }
    }
}

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub struct Watchdog {
    frontier: Frontier,
    /// The tick since which it has not moved and is held.
    since_ms: Option<i64>,
    now_ms: i64,
    stalled: bool,
}

impl Watchdog {
    /// Takes the clock and the frontier; returns whether the frontier has been held for
    /// `stalled_after_ms`.
    pub fn look(&mut self, now_ms: i64, frontier: Frontier, stalled_after_ms: i64) -> bool {
        if frontier.holder.is_none() || frontier.time_ms > self.frontier.time_ms {
            self.since_ms = Some(now_ms);
        }
        self.frontier = Frontier {
            time_ms: frontier.time_ms.max(self.frontier.time_ms),
            ..frontier
        };
        self.now_ms = now_ms;
        self.since_ms.get_or_insert(now_ms);
        self.stalled = frontier.holder.is_some() && self.stalled_for_ms() >= stalled_after_ms;
        self.stalled
    }

    /// Whether it was held for too long at the last tick.
    pub fn is_stalled(&self) -> bool {
        self.stalled
    }

    /// The frontier at the last tick.
    pub fn frontier(&self) -> Frontier {
        self.frontier
    }

    /// For how long it has not moved and was held.
    pub fn stalled_for_ms(&self) -> i64 {
        let since_ms = self.since_ms.filter(|_| self.frontier.holder.is_some());
        self.now_ms.saturating_sub(since_ms.unwrap_or(self.now_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frontier_is_stalled_once_it_is_held_for_long_and_no_longer_when_it_moves() {
        let at = |time_ms, held: bool| Frontier {
            time_ms: Some(time_ms),
            holder: held.then_some(PartitionId {
                source: 0,
                partition: 1,
            }),
        };
        let mut watchdog = Watchdog::default();
        assert!(!watchdog.look(0, at(10, true), 100));
        assert!(!watchdog.look(99, at(10, true), 100));
        assert!(watchdog.look(100, at(10, true), 100));
        assert_eq!(watchdog.stalled_for_ms(), 100);
        assert!(!watchdog.look(101, at(11, true), 100));
        // Nothing is held back: it may stay there forever.
        assert!(!watchdog.look(500, at(11, false), 100));
        assert!(!watchdog.look(599, at(11, true), 100));
        assert!(watchdog.look(600, at(11, true), 100));
    }
}
