//! What is local to source partitions: how far each was read, and how far event time has come.
//!
//! The event time of a partition is the newest among its accepted events, and never later than the
//! arrival of the record that brought it. The *frontier* is the least event time of the live
//! partitions. Minus the lateness it is the watermark, before which no more events are expected. A
//! partition whose end was reached is idle and holds no other back until its next record, or until
//! its log grows. When all are idle, the frontier is the newest event of any partition. A partition
//! that was assigned and not yet read stops the frontier, as its event time is unknown. A revoked
//! partition stops holding others back at the next event or end, not at the call. A broker that
//! lets a session expire may revoke all partitions, one after the other, and give them back; the
//! last one revoked must then not move the frontier past the others.
//!
//! Uncounted records (unreadable, of a model that is not watched, refused) must advance their
//! partition too. Otherwise a partition with one such record a second would hold the frontier
//! permanently. Their event time is not trusted; each is *heard* at its arrival, less the delay
//! between event and arrival of the partition's newest event. An event before the frontier, such as
//! one of a backfill, does not say how long later ones take: its delay counts as no longer than the
//! longest of the other partitions. Heard times only keep a partition from holding others back: the
//! frontier never passes the newest event of any partition. Heard times, too, depend on the records
//! alone. A single arrival may be wrong by as much as the reader lags, because the time of reading
//! replaces a wrong timestamp. So the heard time is the least of [`CONFIRMATIONS`] different
//! arrivals of such records in a row; a reader that lags takes many records at once, with one
//! arrival.
//!
//! A time that is ahead of its partition's time by more than a bound is *set aside*: otherwise one
//! record with a wrong clock would make all later records late. The partition accepts such a time
//! once another partition has reached it, or once [`CONFIRMATIONS`] records in a row are as far
//! ahead. The first event of a partition is compared with the other partitions only. The very first
//! event of all partitions is accepted, and so are events without arrival, which come from files.
//!
//! A partition that an open transaction has held back for too long is *left out* until its next
//! record.
//!
//! Always: the frontier never goes back; a position goes back only if the offsets of its partition
//! start again because the topic was recreated ([`Partitions::rewind`]).
//!
//! Cost: one comparison per event while the partition stays the same; the minimum is taken again
//! only when the partition that held it moves.

use super::event::{Origin, PartitionId};
use crate::stats::stored::checked;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Life {
    /// Being read.
    #[default]
    Live,
    /// Read to its end.
    Idle,
    /// Held back for too long.
    LeftOut,
    /// Read elsewhere.
    Revoked,
    /// Its topic is no longer configured, or no longer has it.
    Dropped,
}

/// Records in a row that must be far ahead of their partition before it follows them.
pub const CONFIRMATIONS: usize = 3;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Partition {
    source: u16,
    partition: i32,
    life: Life,
    /// Newest event time.
    #[serde(deserialize_with = "checked")]
    newest_ms: Option<i64>,
    /// How long after that time the record arrived.
    #[serde(deserialize_with = "checked")]
    delay_ms: i64,
    /// Newest arrival of a record that was not counted.
    #[serde(deserialize_with = "checked")]
    heard_ms: Option<i64>,
    /// Different arrivals of the last records in a row that were not counted, oldest first.
    #[serde(deserialize_with = "checked")]
    heard: Vec<i64>,
    /// Times set aside of the last records in a row.
    #[serde(deserialize_with = "checked")]
    ahead: Vec<i64>,
    /// Position at the last of these times: several rows of one record confirm it once.
    ahead_next: Option<i64>,
    /// Offset after the last record that was counted.
    next: Option<i64>,
    /// Where its log ended when it was found to end before `next`.
    truncated_at: Option<i64>,
}

impl Partition {
    fn new(at: PartitionId) -> Partition {
        Partition {
            source: at.source,
            partition: at.partition,
            ..Partition::default()
        }
    }

    #[inline]
    fn is(&self, at: PartitionId) -> bool {
        self.source == at.source && self.partition == at.partition
    }

    fn is_read(&self) -> bool {
        !matches!(self.life, Life::Revoked | Life::Dropped)
    }

    /// How far it has come, by its events and by what was heard.
    fn reach_ms(&self) -> Option<i64> {
        let heard = self.heard_ms.map(|ms| ms.saturating_sub(self.delay_ms));
        self.newest_ms.max(heard)
    }
}

/// What can be shown of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionState {
    /// Number of its topic.
    pub source: u16,
    /// Its number in the topic.
    pub partition: i32,
    /// Newest event time, if an event was seen.
    pub newest_ms: Option<i64>,
    /// How far event time has come there, by records that are not counted too.
    pub reach_ms: Option<i64>,
    /// Read to its end: it holds no other back.
    pub idle: bool,
    /// Held back for too long: it holds no other back.
    pub left_out: bool,
    /// See [`Partitions::truncated_at`].
    pub truncated_at: Option<i64>,
}

/// All partitions. See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partitions {
    all: Vec<Partition>,
    /// Index of the one last used: records come in runs.
    last: usize,
    #[serde(deserialize_with = "checked")]
    frontier_ms: Option<i64>,
    /// Whether a partition was revoked since the minimum was last taken.
    #[serde(skip)]
    revoked: bool,
}

impl Partitions {
    /// Moves the position past the record; false when it was passed before.
    #[inline]
    pub fn advance(&mut self, origin: Origin) -> bool {
        let p = self.at_mut(origin.partition_id());
        p.life = Life::Live;
        if p.next.is_some_and(|next| origin.offset < next) {
            return false;
        }
        p.next = Some(origin.offset.saturating_add(1));
        true
    }

    /// Moves the position back to the record that was passed last, which has more rows.
    pub fn reopen(&mut self, origin: Origin) {
        let p = self.at_mut(origin.partition_id());
        if p.next == Some(origin.offset.saturating_add(1)) {
            p.next = Some(origin.offset);
        }
    }

    /// Takes the event time of the record that was passed last, no later than its arrival. A time
    /// that is further ahead than `ahead_max_ms` is set aside; returns whether it was. See the
    /// module.
    #[inline]
    pub fn observe(&mut self, time_ms: i64, arrival_ms: Option<i64>, ahead_max_ms: i64) -> bool {
        self.follow(time_ms, arrival_ms, ahead_max_ms, true)
    }

    /// [`Partitions::observe`] for a record that is in no sum but whose event time is trusted, such
    /// as a late one. What was [heard](Partitions::hear) stays.
    pub fn observe_uncounted(
        &mut self,
        time_ms: i64,
        arrival_ms: Option<i64>,
        ahead_max_ms: i64,
    ) -> bool {
        self.follow(time_ms, arrival_ms, ahead_max_ms, false)
    }

    #[inline]
    fn follow(
        &mut self,
        time_ms: i64,
        arrival_ms: Option<i64>,
        ahead_max_ms: i64,
        counted: bool,
    ) -> bool {
        let p = &mut self.all[self.last];
        if counted {
            p.heard.clear();
        }
        let (before, at_ms) = (p.newest_ms, arrival_ms.map_or(time_ms, |a| a.min(time_ms)));
        if before.is_some_and(|newest| at_ms <= newest) {
            p.ahead.clear();
            return false;
        }
        let ahead = |newest: i64| at_ms > newest.saturating_add(ahead_max_ms);
        if arrival_ms.is_some() && before.is_none_or(ahead) {
            return self.set_aside(at_ms, arrival_ms, ahead_max_ms);
        }
        p.ahead.clear();
        self.reach(at_ms, arrival_ms);
        false
    }

    /// Advances the partition of the last record to `time_ms`.
    #[inline]
    fn reach(&mut self, time_ms: i64, arrival_ms: Option<i64>) {
        let own_ms = arrival_ms.map_or(0, |a| a.saturating_sub(time_ms));
        let delay_ms = match Some(time_ms) < self.frontier_ms {
            true => own_ms.min(self.longest_delay_of_others().unwrap_or(own_ms)),
            false => own_ms,
        };
        let p = &mut self.all[self.last];
        let before = p.newest_ms;
        p.newest_ms = Some(time_ms);
        p.delay_ms = delay_ms;
        // The frontier can only move if this partition held it back.
        let held = before.is_none() || before <= self.frontier_ms || self.frontier_ms.is_none();
        if held || self.revoked {
            self.update_frontier();
        }
    }

    /// The longest delay of the partitions that are read, except that of the last record.
    #[cold]
    fn longest_delay_of_others(&self) -> Option<i64> {
        let others = self.all.iter().enumerate();
        let others = others.filter(|(i, p)| *i != self.last && p.is_read());
        let delays = others.filter(|(_, p)| p.newest_ms.is_some());
        delays.map(|(_, p)| p.delay_ms).max()
    }

    /// Accepts a time that is far ahead of its partition's only if it is confirmed; returns whether
    /// it was set aside.
    #[cold]
    fn set_aside(&mut self, time_ms: i64, arrival_ms: Option<i64>, ahead_max_ms: i64) -> bool {
        let others = self.all.iter().enumerate();
        let others = others.filter(|(i, p)| *i != self.last && p.is_read());
        let newest = others.filter_map(|(_, p)| p.newest_ms).max();
        let p = &mut self.all[self.last];
        let first = newest.is_none() && p.newest_ms.is_none();
        if first || newest.is_some_and(|newest| time_ms <= newest.saturating_add(ahead_max_ms)) {
            p.ahead.clear();
            self.reach(time_ms, arrival_ms);
            return false;
        }
        if p.ahead_next == p.next && !p.ahead.is_empty() {
            return true;
        }
        p.ahead_next = p.next;
        p.ahead.push(time_ms);
        if p.ahead.len() < CONFIRMATIONS {
            return true;
        }
        let least = p.ahead.iter().copied().min().unwrap_or(time_ms);
        p.ahead.clear();
        self.reach(least, arrival_ms);
        false
    }

    /// Notes that the record that was passed last arrived then and is not counted. See the module.
    pub fn hear(&mut self, arrival_ms: i64) {
        let p = &mut self.all[self.last];
        if p.heard.last() == Some(&arrival_ms) {
            // Another row of this record, or a record with a wrong timestamp from the same read.
            return;
        }
        p.heard.push(arrival_ms);
        if p.heard.len() < CONFIRMATIONS {
            return;
        }
        let (before, least) = (p.reach_ms(), p.heard.iter().copied().min());
        p.heard_ms = p.heard_ms.max(least);
        p.heard.remove(0);
        if p.reach_ms() > before && (before <= self.frontier_ms || self.revoked) {
            self.update_frontier();
        }
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

    /// The least time reached by the partitions that hold others back, with uncounted records;
    /// `None` if the time of one of them is unknown, or if none holds others back.
    pub fn reach_ms(&self) -> Option<i64> {
        self.slowest()?.1
    }

    /// The partition that is furthest behind of those that hold others back, and how far it is.
    pub fn slowest(&self) -> Option<(PartitionId, Option<i64>)> {
        let live = self.all.iter().filter(|p| p.life == Life::Live);
        let least = live.min_by_key(|p| p.reach_ms())?;
        let id = PartitionId {
            source: least.source,
            partition: least.partition,
        };
        Some((id, least.reach_ms()))
    }

    /// Whether every existing partition of a configured topic is read here, and none is left out.
    /// If not, nothing can be said about the streams of the others.
    pub fn are_read(&self) -> bool {
        let mut configured = self.all.iter().filter(|p| p.life != Life::Dropped);
        configured.all(|p| matches!(p.life, Life::Live | Life::Idle))
    }

    /// Whether none of the partitions holds others back: each is read to its end, left out, or not
    /// read here.
    pub fn are_idle(&self) -> bool {
        self.all.iter().all(|p| p.life != Life::Live)
    }

    /// Assigns a partition for reading; returns its position, if it has one.
    pub fn assign(&mut self, at: PartitionId) -> Option<i64> {
        let p = self.at_mut(at);
        p.life = Life::Live;
        p.next
    }

    /// Forgets which partitions are idle, left out or revoked: each holds others back until it is
    /// read again or revoked.
    pub fn resume(&mut self) {
        let kept = self.all.iter_mut().filter(|p| p.life != Life::Dropped);
        kept.for_each(|p| p.life = Life::Live);
        // A dropped partition may still hold the frontier.
        self.revoked = true;
    }

    /// Skips to this offset, before which the partition has no more records. Does nothing if no
    /// record was passed yet.
    pub fn skip_to(&mut self, at: PartitionId, offset: i64) {
        let p = self.at_mut(at);
        p.next = p.next.map(|next| next.max(offset));
    }

    /// Moves the position here, where the partition's records start again with other offsets.
    pub fn rewind(&mut self, at: PartitionId, offset: i64) {
        let p = self.at_mut(at);
        (p.next, p.truncated_at) = (Some(offset), None);
    }

    /// Notes that the partition's log ends here, before its position: the records that follow are
    /// not those that the position is about.
    pub fn truncate(&mut self, at: PartitionId, end: i64) {
        self.at_mut(at).truncated_at = Some(end);
    }

    /// Where the partition's log ended when it was found to end before its position, until it is
    /// [rewound](Partitions::rewind). It is stored with the position: the log may have grown past
    /// the position since, and nothing else shows that it is another log.
    pub fn truncated_at(&self, at: PartitionId) -> Option<i64> {
        self.all.iter().find(|p| p.is(at))?.truncated_at
    }

    /// Revokes a partition: it is no longer read here.
    pub fn revoke(&mut self, at: PartitionId) {
        self.at_mut(at).life = Life::Revoked;
        self.revoked = true;
    }

    /// Drops a partition that no longer exists. Its position stays, in case it comes back.
    pub fn drop(&mut self, at: PartitionId) {
        self.at_mut(at).life = Life::Dropped;
        self.revoked = true;
    }

    /// Notes that a partition's end was reached; returns whether the frontier moved.
    pub fn end(&mut self, at: PartitionId) -> bool {
        self.at_mut(at).life = Life::Idle;
        self.update_frontier()
    }

    /// Wakes an idle partition, whose log has grown: it holds others back until it is read.
    pub fn wake(&mut self, at: PartitionId) {
        let p = self.at_mut(at);
        if p.life == Life::Idle {
            p.life = Life::Live;
        }
    }

    /// Leaves out a partition that was not read to its end: it holds nobody back until its next
    /// record.
    pub fn leave_out(&mut self, at: PartitionId) -> bool {
        self.at_mut(at).life = Life::LeftOut;
        self.update_frontier()
    }

    /// Takes back every event time after `to_ms`, as if no such event had come.
    pub fn reset(&mut self, to_ms: i64) {
        for p in &mut self.all {
            p.newest_ms = p.newest_ms.map(|ms| ms.min(to_ms));
            p.heard_ms = p.heard_ms.map(|ms| ms.min(to_ms));
            p.delay_ms = 0;
            p.heard.clear();
            p.ahead.clear();
        }
        self.frontier_ms = self.frontier_ms.map(|ms| ms.min(to_ms));
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
            reach_ms: p.reach_ms(),
            idle: p.life == Life::Idle,
            left_out: p.life == Life::LeftOut,
            truncated_at: p.truncated_at,
        })
    }

    /// Renumbers every source by `number`, for a configuration with another order. If `number`
    /// returns `false` for a source, it is no longer read: its partitions keep their positions and
    /// hold no other back.
    pub fn renumber(&mut self, number: impl Fn(u16) -> (u16, bool)) {
        for p in &mut self.all {
            let (source, read) = number(p.source);
            p.source = source;
            if !read {
                p.life = Life::Dropped;
            }
        }
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        self.all.capacity() * size_of::<Partition>()
    }

    /// The partition, which becomes the one last used.
    #[inline]
    fn at_mut(&mut self, at: PartitionId) -> &mut Partition {
        if !self.all.get(self.last).is_some_and(|p| p.is(at)) {
            return self.other_mut(at);
        }
        &mut self.all[self.last]
    }

    /// [`Partitions::at_mut`] for a partition that was not last used.
    #[cold]
    fn other_mut(&mut self, at: PartitionId) -> &mut Partition {
        let found = self.all.iter().position(|p| p.is(at));
        self.last = found.unwrap_or(self.all.len());
        if found.is_none() {
            self.all.push(Partition::new(at));
        }
        &mut self.all[self.last]
    }

    fn update_frontier(&mut self) -> bool {
        self.revoked = false;
        let (mut least, mut newest) = (None, None);
        for p in self.all.iter().filter(|p| p.is_read()) {
            newest = newest.max(p.newest_ms);
            if p.life == Life::Live {
                // `None` is less than any time: one unread live partition holds all.
                let reach = p.reach_ms();
                least = Some(least.map_or(reach, |least: Option<i64>| least.min(reach)));
            }
        }
        let now = least.map_or(newest, |least| least.min(newest));
        let moved = now > self.frontier_ms;
        if moved {
            self.frontier_ms = now;
        }
        moved
    }
}

#[cfg(test)]
mod tests;
