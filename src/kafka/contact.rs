//! Since when brokers do not answer, by the statistics of the client.
//!
//! The client keeps trying to reach a broker that is away, and a reader only sees that no record
//! comes. So this module measures since when no broker is connected, and since when the leader of a
//! partition is not connected or missing. A group that has lost a member takes its partitions away,
//! so "no broker" is also measured without partitions. Without statistics nothing is known.

use super::Partition;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// See the module.
#[derive(Default)]
pub(super) struct Contact {
    cut_off: Option<Instant>,
    leaderless: BTreeMap<Partition, Instant>,
}

impl Contact {
    /// Takes whether any broker is connected.
    pub fn update(&mut self, connected: bool) {
        self.cut_off = match connected {
            true => None,
            false => self.cut_off.or_else(|| Some(Instant::now())),
        };
    }

    /// Takes whether the leader of a partition is connected.
    pub fn update_leader(&mut self, p: Partition, connected: bool) {
        match connected {
            true => {
                self.leaderless.remove(&p);
            }
            false => {
                self.leaderless.entry(p).or_insert_with(Instant::now);
            }
        }
    }

    /// Removes a revoked partition.
    pub fn remove(&mut self, p: Partition) {
        self.leaderless.remove(&p);
    }

    /// For how long no broker has been connected.
    pub fn cut_off(&self) -> Option<Duration> {
        self.cut_off.map(|since| since.elapsed())
    }

    /// The partitions whose leader is not connected, each with for how long.
    pub fn leaderless(&self) -> impl Iterator<Item = (Partition, Duration)> {
        self.leaderless
            .iter()
            .map(|(p, since)| (*p, since.elapsed()))
    }
}
