//! Detects that a partition has been read to its end.
//!
//! The end of a partition is the end offset that comes with every fetch response. It is reported
//! once the leader of the partition has responded again a while after the end was reached
//! ([`QUIET`]); the time of its last response is part of librdkafka's statistics. Both conditions
//! matter, because a partition at its end does not delay the others. A partition whose broker is
//! frozen or down only seems to have ended. After an outage, the backlog of one partition arrives a
//! moment before that of the next.
//!
//! The last records of a log may never be handed over: control records, and records of aborted
//! transactions. Once no fetched record waits, the position moves to the end itself. Otherwise the
//! partition would lag forever, and these records would count as lost once the broker deletes them.
//!
//! A reported end holds until the log grows. Every fetch response shows growth, including records
//! that an open transaction hides. From then on the partition is watched again.
//!
//! An open transaction hides all records after its start in the partition. It is detected if the
//! next offset to fetch has reached the last stable one, there are records beyond it, and the
//! leader responds. [`Hidden`] measures how long this lasts.
//!
//! librdkafka's own event (`enable.partition.eof`) must not be used with batches.
//! `rd_kafka_q_serve_rkmessages` treats the offset of the event, which is the next one to read, as
//! the offset of a record and moves the position past it. The next resume (after each cooperative
//! rebalance) then skips one record per partition. A test with two members showed this.

use super::Partition;
use super::context::PartitionStats;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Time after reaching the end at which the leader must respond without new records. Fetch
/// responses come within `fetch.wait.max.ms`, half a second.
const QUIET: Duration = Duration::from_secs(1);

/// A leader that has not responded for this long may be away.
const SILENT: Duration = Duration::from_secs(10);

/// How far a watched partition was read, and since when.
struct Open {
    position: i64,
    since: Instant,
    /// The end was reported; fetched records before it may still wait.
    reported: bool,
}

/// A partition that has reached its end.
pub(super) struct Reached {
    pub partition: Partition,
    /// The end was not reported before.
    pub is_news: bool,
    /// The end, if no record waits before it. Between the last record and the end are only records
    /// that are not handed over: control records and records of aborted transactions.
    pub passed: Option<i64>,
}

/// How far a partition was read.
pub(super) struct Progress {
    /// End of its log.
    pub end: i64,
    /// The next record to hand over.
    pub next: Option<i64>,
    /// The client's own position.
    pub position: Option<i64>,
}

/// A partition whose next records an open transaction hides.
#[derive(Debug, Clone, Copy)]
pub struct Hidden {
    /// Where the oldest open transaction begins.
    pub offset: i64,
    /// Since when nothing was read in the partition.
    pub since: Instant,
    /// It was reported as lasting too long.
    pub reported: bool,
    /// The next offset to hand over when this began.
    next: Option<i64>,
}

#[derive(Default)]
pub(super) struct PartitionEnds {
    /// Watched partitions: no end was reported since the last record or the assignment, or fetched
    /// records before the end may still wait.
    open: BTreeMap<Partition, Open>,
    /// End offsets of the partitions whose end was reported, at that time.
    ended: BTreeMap<Partition, i64>,
    hidden: BTreeMap<Partition, Hidden>,
    /// The latest statistics.
    stats: BTreeMap<Partition, PartitionStats>,
}

impl PartitionEnds {
    /// Watches for the next end of a partition, starting now.
    pub fn watch(&mut self, p: Partition) {
        self.open.insert(p, Open::at(-1));
    }

    /// Watches a partition that is not watched yet.
    pub fn watch_again(&mut self, p: Partition) {
        if !self.open.contains_key(&p) {
            self.watch(p);
        }
    }

    /// Stops watching a partition.
    pub fn ignore(&mut self, p: Partition) {
        self.open.remove(&p);
        self.ended.remove(&p);
        self.hidden.remove(&p);
    }

    /// Removes a revoked partition.
    pub fn remove(&mut self, p: Partition) {
        self.ignore(p);
        self.stats.remove(&p);
    }

    /// Forgets the end of a partition until the next statistics.
    pub fn forget(&mut self, p: Partition) {
        self.stats.remove(&p);
    }

    /// Number of watched partitions.
    pub fn watched(&self) -> usize {
        self.open.len()
    }

    /// Stores the latest statistics of a partition.
    pub fn update(&mut self, p: Partition, stats: PartitionStats, next: Option<i64>) {
        let hides = |stable: i64| {
            stats.next.is_some_and(|at| at >= stable) && stats.end.is_some_and(|end| stable < end)
        };
        match stats.stable.filter(|stable| hides(*stable)) {
            None => {
                self.hidden.remove(&p);
            }
            // While the leader is away, it is not known whether more has come: the time starts
            // again.
            Some(offset) if stats.responded.is_some_and(|at| at.elapsed() < SILENT) => {
                let hidden = Hidden {
                    offset,
                    since: Instant::now(),
                    reported: false,
                    next,
                };
                let known = self.hidden.entry(p).or_insert(hidden);
                if known.next != next || known.offset != offset {
                    *known = hidden;
                }
            }
            Some(_) => {
                if let Some(known) = self.hidden.get_mut(&p).filter(|known| !known.reported) {
                    known.since = Instant::now();
                }
            }
        }
        self.stats.insert(p, stats);
    }

    /// The partitions whose next records an open transaction hides.
    pub fn hidden(&self) -> impl Iterator<Item = (Partition, Hidden)> {
        self.hidden.iter().map(|(p, hidden)| (*p, *hidden))
    }

    /// The partitions whose next records have been hidden for at least `after`, once each.
    pub fn take_hidden(&mut self, after: Duration) -> Vec<(Partition, Hidden)> {
        let due = |h: &Hidden| !h.reported && h.since.elapsed() >= after;
        let due = self.hidden.iter_mut().filter(|(_, h)| due(h));
        due.map(|(p, hidden)| {
            hidden.reported = true;
            (*p, *hidden)
        })
        .collect()
    }

    /// Takes out the partitions whose log has grown since their end was reported; `end` returns the
    /// end of a partition.
    pub fn take_grown(&mut self, end: impl Fn(Partition) -> Option<i64>) -> Vec<Partition> {
        let mut grown = Vec::new();
        self.ended.retain(|&p, was| {
            let more = end(p).is_some_and(|end| end > *was);
            if more {
                grown.push(p);
            }
            !more
        });
        grown
    }

    /// End offset of each partition, as of the latest statistics.
    pub fn end_offsets(&self) -> impl Iterator<Item = (Partition, i64)> {
        let all = self.stats.iter();
        all.filter_map(|(&p, stats)| Some((p, stats.end?)))
    }

    /// The partitions that have reached their end. `drained` says that no fetched record waits to
    /// be handed over. `progress` returns how far a partition was read.
    pub fn take_reached(
        &mut self,
        drained: bool,
        progress: impl Fn(Partition) -> Option<Progress>,
    ) -> Vec<Reached> {
        let mut reached = Vec::new();
        self.open.retain(|&p, open| {
            let Some(Progress {
                end,
                next,
                position,
            }) = progress(p)
            else {
                return true;
            };
            let stats = self.stats.get(&p);
            // After a start at a committed offset, only the fetcher knows the position until a
            // record comes.
            let fetched = stats.and_then(|s| s.next).filter(|_| drained);
            let position = next.max(position).max(fetched).unwrap_or(0);
            if position != open.position {
                *open = Open::at(position);
            }
            let responded = stats.and_then(|s| s.responded);
            if position < end || responded.is_none_or(|at| at < open.since + QUIET) {
                return true;
            }
            self.ended.insert(p, end);
            let is_news = !std::mem::replace(&mut open.reported, true);
            let passed = (next.max(fetched) >= Some(end)).then_some(end);
            if is_news || passed.is_some() {
                reached.push(Reached {
                    partition: p,
                    is_news,
                    passed,
                });
            }
            passed.is_none()
        });
        reached
    }
}

impl Open {
    fn at(position: i64) -> Open {
        Open {
            position,
            since: Instant::now(),
            reported: false,
        }
    }
}
