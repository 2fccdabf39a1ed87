//! Judge partitions that could not be taken over, because nobody serves them, or that have to be
//! taken over again, because their topic was cut.
//!
//! Each is waited for within a rebalance, so only few are. They are claimed when the member joins
//! its group again, for which it gives up all others. So it waits with that while it judges others,
//! longer each time.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Judge partitions of a rebalance that are waited for in vain: by default a minute in all, well
/// below the five minutes after which the group throws a member out that does not poll.
const IN_VAIN: usize = 2;
/// How long a member that judges others waits before it joins again, the first time: as long as
/// joining may make the others stand still.
const JOINS_AGAIN: Duration = Duration::from_secs(60);
/// How often it waits twice as long as the time before.
const DOUBLINGS: u32 = 3;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct UnservedPartitions {
    partitions: BTreeSet<i32>,
    /// How many of them are of this rebalance.
    new: usize,
    since: Option<Instant>,
    /// How often in a row the member joined and had some.
    times: u32,
}

impl UnservedPartitions {
    /// A rebalance gives partitions.
    pub fn begin(&mut self) {
        self.new = 0;
    }

    /// Whether no more of this rebalance are waited for.
    pub fn are_many(&self) -> bool {
        self.new >= IN_VAIN
    }

    /// One could not be taken over.
    pub fn add(&mut self, partition: i32, now: Instant) {
        self.partitions.insert(partition);
        self.new += 1;
        if self.since.is_none() {
            self.since = Some(now);
            self.times = self.times.saturating_add(1);
        }
    }

    /// A partition is taken over or another process's.
    pub fn remove(&mut self, partition: i32) {
        self.partitions.remove(&partition);
    }

    /// Whether it is time to join again, if the member judges others or not.
    pub fn is_due(&mut self, judges: bool, now: Instant) -> bool {
        let Some(since) = self.since.filter(|_| !self.partitions.is_empty()) else {
            self.since = None;
            self.times = if judges { 0 } else { self.times };
            return false;
        };
        let wait = JOINS_AGAIN * (1 << self.times.saturating_sub(1).min(DOUBLINGS));
        !judges || now.duration_since(since) >= wait
    }

    /// The member leaves the group.
    pub fn leave(&mut self) {
        self.partitions.clear();
        self.since = None;
    }
}
