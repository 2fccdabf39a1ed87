//! Judge partitions that could not be taken over, because no broker serves them, or that must be
//! taken over again, because their topic was truncated.
//!
//! Within a rebalance the member waits for each of them, so it waits for few only. They are claimed
//! when the member joins its group again, which first gives up all others. So a member that judges
//! others delays joining, longer each time.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How many judge partitions of a rebalance may fail after a wait: by default a minute in all, well
/// below the five minutes after which the group removes a member that does not poll.
const IN_VAIN: usize = 2;
/// How long a member that judges others first waits before it joins again: as long as joining may
/// stop the judging of the others.
const JOINS_AGAIN: Duration = Duration::from_secs(60);
/// How many times the wait doubles.
const DOUBLINGS: u32 = 3;

/// Judge partitions that could not be taken over. See the module.
#[derive(Debug, Default)]
pub(super) struct UnservedPartitions {
    partitions: BTreeSet<i32>,
    /// How many of them were added in this rebalance.
    new: usize,
    since: Option<Instant>,
    /// How often in a row joining left some unserved.
    times: u32,
}

impl UnservedPartitions {
    /// Begins a rebalance that assigns partitions.
    pub fn begin(&mut self) {
        self.new = 0;
    }

    /// Whether the other partitions of this rebalance must not be waited for.
    pub fn are_many(&self) -> bool {
        self.new >= IN_VAIN
    }

    /// Adds a partition that could not be taken over.
    pub fn add(&mut self, partition: i32, now: Instant) {
        self.partitions.insert(partition);
        self.new += 1;
        if self.since.is_none() {
            self.since = Some(now);
            self.times = self.times.saturating_add(1);
        }
    }

    /// Removes a partition that was taken over, here or by another process.
    pub fn remove(&mut self, partition: i32) {
        self.partitions.remove(&partition);
    }

    /// Whether it is time to join again; `judges` says whether the member judges other partitions.
    pub fn is_due(&mut self, judges: bool, now: Instant) -> bool {
        let Some(since) = self.since.filter(|_| !self.partitions.is_empty()) else {
            self.since = None;
            self.times = if judges { 0 } else { self.times };
            return false;
        };
        let wait = JOINS_AGAIN * (1 << self.times.saturating_sub(1).min(DOUBLINGS));
        !judges || now.duration_since(since) >= wait
    }

    /// Forgets all, because the member leaves the group.
    pub fn leave(&mut self) {
        self.partitions.clear();
        self.since = None;
    }
}
