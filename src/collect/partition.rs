//! What is local to source partitions: how far each was read, and how far event time has come.
//!
//! Event time of a partition is the newest among its accepted events. The *frontier* is the least over
//! the live partitions: below it, less the lateness, nothing more is expected. A partition whose end
//! was reached is idle and holds nobody back until its next record; when all are idle, the frontier is
//! the newest event of any. A partition that was assigned and not yet read holds the frontier where it
//! is, for nothing is known of it. A partition that was revoked holds nobody back from the next event or
//! end on, not from the call: all of them may be revoked, one after the other, and given back (a session
//! that the broker let expire), and the last one revoked must not carry the frontier past the others.
//!
//! Always: the frontier never goes back; a position goes back only where the partition itself did, because its
//! topic was recreated ([`Partitions::rewind`]).
//!
//! Cost: one comparison per event while the partition stays the same; the minimum is taken again only
//! when the partition that held it moves.

use super::event::Origin;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Life {
    /// Being read.
    Live,
    /// Read to its end.
    Idle,
    /// Read elsewhere.
    Revoked,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Partition {
    source: u16,
    partition: i32,
    life: Life,
    /// Newest event time.
    newest_ms: Option<i64>,
    /// Offset after the last record that was counted.
    next: Option<i64>,
}

/// What can be shown of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionState {
    /// Number of its topic.
    pub source: u16,
    /// Its number in the topic.
    pub partition: i32,
    /// Newest event time, where an event was seen.
    pub newest_ms: Option<i64>,
    /// Read to its end: it holds no other back.
    pub idle: bool,
}

/// All partitions. See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partitions {
    all: Vec<Partition>,
    /// Index of the one last used: records come in runs.
    last: usize,
    frontier_ms: Option<i64>,
    /// A partition was revoked since the minimum was last taken.
    #[serde(skip)]
    revoked: bool,
}

impl Partitions {
    /// Moves the position past the record; false when it was passed before.
    #[inline]
    pub fn advance(&mut self, origin: Origin) -> bool {
        let index = self.find(origin.source, origin.partition);
        let p = &mut self.all[index];
        p.life = Life::Live;
        if p.next.is_some_and(|next| origin.offset < next) {
            return false;
        }
        p.next = Some(origin.offset.saturating_add(1));
        true
    }

    /// Moves the position back to the record that was passed last, which has more rows.
    pub fn reopen(&mut self, origin: Origin) {
        let index = self.find(origin.source, origin.partition);
        let p = &mut self.all[index];
        if p.next == Some(origin.offset.saturating_add(1)) {
            p.next = Some(origin.offset);
        }
    }

    /// Takes the event time of the record that was passed last; returns whether the frontier moved.
    #[inline]
    pub fn observe(&mut self, time_ms: i64) -> bool {
        let p = &mut self.all[self.last];
        let before = p.newest_ms;
        if before.is_some_and(|newest| time_ms <= newest) {
            return false;
        }
        p.newest_ms = Some(time_ms);
        // The frontier can only move if this partition held it back.
        let held = before.is_none() || before <= self.frontier_ms || self.frontier_ms.is_none();
        if !held && !self.revoked {
            return false;
        }
        self.settle()
    }

    /// How far event time has come; `None` before every live partition has had an event.
    #[inline]
    pub fn frontier_ms(&self) -> Option<i64> {
        self.frontier_ms
    }

    /// The newest event time of any partition.
    pub fn newest_ms(&self) -> Option<i64> {
        self.all.iter().filter_map(|p| p.newest_ms).max()
    }

    /// The partition is to be read; returns its position, if it has one.
    pub fn assign(&mut self, source: u16, partition: i32) -> Option<i64> {
        let index = self.find(source, partition);
        self.all[index].life = Life::Live;
        self.all[index].next
    }

    /// The partition's records start again with other offsets from here.
    pub fn rewind(&mut self, source: u16, partition: i32, offset: i64) {
        let index = self.find(source, partition);
        self.all[index].next = Some(offset);
    }

    /// The partition is no longer read here.
    pub fn revoke(&mut self, source: u16, partition: i32) {
        let index = self.find(source, partition);
        self.all[index].life = Life::Revoked;
        self.revoked = true;
    }

    /// The partition's end was reached; returns whether the frontier moved.
    pub fn end(&mut self, source: u16, partition: i32) -> bool {
        let index = self.find(source, partition);
        self.all[index].life = Life::Idle;
        self.settle()
    }

    /// Positions of all partitions that were read.
    pub fn positions(&self) -> impl Iterator<Item = Origin> {
        self.all.iter().filter_map(|p| {
            Some(Origin {
                source: p.source,
                partition: p.partition,
                offset: p.next?,
            })
        })
    }

    /// How far each partition was read, and whether it holds others back.
    pub fn states(&self) -> impl Iterator<Item = PartitionState> {
        self.all.iter().map(|p| PartitionState {
            source: p.source,
            partition: p.partition,
            newest_ms: p.newest_ms,
            idle: p.life == Life::Idle,
        })
    }

    /// Gives every source the number that `number` says, for a configuration that lists them otherwise;
    /// where it says `false` with it, the source is no longer read: its partitions keep their positions
    /// and hold nobody back.
    pub fn renumber(&mut self, number: impl Fn(u16) -> (u16, bool)) {
        for p in &mut self.all {
            let (source, read) = number(p.source);
            p.source = source;
            if !read {
                p.life = Life::Revoked;
            }
        }
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        self.all.capacity() * size_of::<Partition>()
    }

    #[inline]
    fn find(&mut self, source: u16, partition: i32) -> usize {
        let is = |p: &Partition| p.source == source && p.partition == partition;
        if !self.all.get(self.last).is_some_and(is) {
            self.last = self.all.iter().position(is).unwrap_or(self.all.len());
            if self.last == self.all.len() {
                self.all.push(Partition {
                    source,
                    partition,
                    life: Life::Live,
                    newest_ms: None,
                    next: None,
                });
            }
        }
        self.last
    }

    fn settle(&mut self) -> bool {
        self.revoked = false;
        let of = |life: Life| {
            let alive = self.all.iter().filter(move |p| p.life == life);
            alive.map(|p| p.newest_ms)
        };
        // `None` is less than any time: one unread live partition holds all.
        let now = match of(Life::Live).min() {
            Some(least) => least,
            None => of(Life::Idle).max().flatten(),
        };
        let moved = now > self.frontier_ms;
        if moved {
            self.frontier_ms = now;
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(partition: i32, offset: i64) -> Origin {
        Origin {
            source: 0,
            partition,
            offset,
        }
    }

    fn event(p: &mut Partitions, partition: i32, offset: i64, time_ms: i64) -> Option<i64> {
        assert!(p.advance(at(partition, offset)));
        p.observe(time_ms);
        p.frontier_ms()
    }

    #[test]
    fn the_slowest_live_partition_holds_the_frontier() {
        let mut p = Partitions::default();
        p.assign(0, 0);
        p.assign(0, 1);
        assert_eq!(event(&mut p, 0, 0, 100), None);
        assert_eq!(event(&mut p, 1, 0, 40), Some(40));
        assert_eq!(event(&mut p, 0, 1, 200), Some(40));
        assert_eq!(event(&mut p, 1, 1, 50), Some(50));
        assert!(p.end(0, 1));
        assert_eq!(p.frontier_ms(), Some(200));
        // Live again and behind: the frontier does not go back.
        assert_eq!(event(&mut p, 1, 2, 60), Some(200));
        assert_eq!(event(&mut p, 1, 3, 250), Some(200));
        assert_eq!(event(&mut p, 0, 2, 220), Some(220));
    }

    #[test]
    fn partitions_that_are_all_revoked_and_given_back_leave_the_frontier_where_it_was() {
        let mut p = Partitions::default();
        p.assign(0, 0);
        p.assign(0, 1);
        event(&mut p, 0, 0, 100);
        event(&mut p, 1, 0, 9000);
        p.revoke(0, 0);
        p.revoke(0, 1);
        p.assign(0, 0);
        p.assign(0, 1);
        assert_eq!(event(&mut p, 1, 1, 9001), Some(100));
        assert_eq!(event(&mut p, 0, 1, 200), Some(200));
        // Taken for good, it holds nobody back from the next event on.
        p.revoke(0, 0);
        assert_eq!(event(&mut p, 1, 2, 9002), Some(9002));
    }

    #[test]
    fn when_all_are_idle_the_newest_event_is_the_frontier() {
        let mut p = Partitions::default();
        event(&mut p, 0, 0, 100);
        p.assign(0, 1);
        event(&mut p, 1, 0, 70);
        p.end(0, 0);
        p.end(0, 1);
        assert_eq!(p.frontier_ms(), Some(100));
    }

    #[test]
    fn an_offset_below_the_position_was_read_before() {
        let mut p = Partitions::default();
        assert!(p.advance(at(3, 10)));
        assert!(!p.advance(at(3, 10)));
        assert!(p.advance(at(3, 12)));
        assert_eq!(p.assign(0, 3), Some(13));
        assert_eq!(p.positions().collect::<Vec<_>>(), [at(3, 13)]);
        p.rewind(0, 3, 0);
        assert!(p.advance(at(3, 0)) && !p.advance(at(3, 0)));
    }
}
