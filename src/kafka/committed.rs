//! The committed offsets of assigned partitions.
//!
//! They are requested when partitions are assigned. librdkafka itself retries only once: if the
//! broker goes down meanwhile, the partition is never read. So partitions without a response are
//! remembered here and requested again.

use super::Partition;
use super::context::Context;
use super::topics::Topics;
use rdkafka::Offset;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Longest wait for the committed offsets when partitions are assigned.
const FIRST_WAIT: Duration = Duration::from_secs(5);
/// Longest wait of a retry.
const RETRY_WAIT: Duration = Duration::from_secs(1);
/// Pause between two retries.
const RETRY_PAUSE: Duration = Duration::from_secs(3);

/// Requests committed offsets, and remembers the partitions without a response.
pub(super) struct CommittedOffsets {
    /// Where to start a partition without a committed offset.
    start: Offset,
    unknown: BTreeSet<Partition>,
    retry_at: Instant,
}

impl CommittedOffsets {
    /// No partitions; those without a committed offset start at `start`.
    pub fn new(start: Offset) -> CommittedOffsets {
        CommittedOffsets {
            start,
            unknown: BTreeSet::new(),
            retry_at: Instant::now(),
        }
    }

    /// Whether all requested offsets are known.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.unknown.is_empty()
    }

    /// Offsets to start these newly assigned partitions at. A partition without a response is
    /// missing.
    pub fn first(
        &self,
        client: &BaseConsumer<Context>,
        topics: &Topics,
        partitions: &[Partition],
    ) -> BTreeMap<Partition, Offset> {
        self.request(client, topics, partitions, FIRST_WAIT)
    }

    /// Remembers partitions to retry.
    pub fn retry_later(&mut self, partitions: impl Iterator<Item = Partition>) {
        self.unknown.extend(partitions);
        self.retry_at = Instant::now() + RETRY_PAUSE;
    }

    /// Forgets a partition that was revoked or has started.
    pub fn remove(&mut self, p: Partition) {
        self.unknown.remove(&p);
    }

    /// Requests the unknown offsets again if that is due, except those of partitions that have
    /// `started`.
    pub fn retry(
        &mut self,
        client: &BaseConsumer<Context>,
        topics: &Topics,
        started: impl Fn(Partition) -> bool,
    ) -> BTreeMap<Partition, Offset> {
        if Instant::now() < self.retry_at {
            return BTreeMap::new();
        }
        self.unknown.retain(|&p| !started(p));
        let unknown: Vec<Partition> = self.unknown.iter().copied().collect();
        let found = self.request(client, topics, &unknown, RETRY_WAIT);
        self.retry_at = Instant::now() + RETRY_PAUSE;
        found
    }

    fn request(
        &self,
        client: &BaseConsumer<Context>,
        topics: &Topics,
        partitions: &[Partition],
        within: Duration,
    ) -> BTreeMap<Partition, Offset> {
        if partitions.is_empty() {
            return BTreeMap::new();
        }
        let Ok(list) = client.committed_offsets(topics.list(partitions), within) else {
            return BTreeMap::new();
        };
        let known = partitions.iter().filter_map(|&p| {
            let entry = list.find_partition(topics.name(p), p.partition)?;
            // An error does not mean that nothing was committed.
            entry.error().ok()?;
            match entry.offset() {
                Offset::Offset(o) => Some((p, Offset::Offset(o))),
                _ => Some((p, self.start)),
            }
        });
        known.collect()
    }
}
