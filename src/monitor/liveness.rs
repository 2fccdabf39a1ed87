//! Which partitions verdicts wait for, if one process judges what others count.
//!
//! A partition is *covered* if its checkpoint holds all records that the broker has of it, and says
//! that the worker has read the partition to its end. The worker then has handed over its last
//! panes, and verdicts do not wait for the partition. (A single process likewise does not wait for
//! a partition that it has read to its end.) A partition that is not covered holds back all
//! verdicts at the time that its checkpoint has reached: a worker is reading it, and its next
//! checkpoint is on the way. If none comes for `missing_after`, the partition is *stale*, or
//! *missing* if it never had a checkpoint: its worker is dead, frozen or cannot write. Verdicts
//! then continue without it, and it is named, counted and alerted on. When it comes back, verdicts
//! wait for it again, and its sums are merged into the windows that hold its panes.
//!
//! The length of each topic is asked for after the checkpoints were read and before anything is
//! judged. A record that came before the question is either in a checkpoint or holds back the
//! verdicts.

use crate::collect::PartitionId;
use std::collections::BTreeMap;

/// How up to date the checkpoint of a partition is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Freshness {
    /// Its checkpoint holds all of its records.
    Covered,
    /// Another checkpoint is awaited.
    Behind,
    /// No checkpoint came for too long.
    Stale,
    /// There is no checkpoint, but there are records.
    Missing,
}

/// What is known of a partition.
#[derive(Debug, Clone, Default)]
pub struct PartitionStatus {
    /// When its checkpoint was written, if there is one; milliseconds since 1970.
    pub written_ms: Option<i64>,
    /// Since when another is awaited, by this machine's clock.
    pub since_ms: i64,
    /// Why its newest checkpoint cannot be used.
    pub fault: Option<String>,
    /// Records that no checkpoint in use holds.
    pub uncovered: u64,
    /// Whether its checkpoint does not say that it was read to its end.
    pub unended: bool,
    /// How far checkpoints lag behind its topics, by number.
    lags: BTreeMap<u16, Lag>,
}

impl PartitionStatus {
    /// Upper bound of the age of its records that no checkpoint holds yet, in milliseconds; `None`
    /// while it is not known.
    fn lag_ms(&self, now_ms: i64) -> Option<i64> {
        let lags = self.lags.values();
        let lags: Option<Vec<i64>> = lags.map(|lag| Some(now_ms - lag.held_ms?)).collect();
        lags?.into_iter().max()
    }
}

/// How far the checkpoint of a partition lags behind one topic.
#[derive(Debug, Clone, Copy, Default)]
struct Lag {
    /// An end of the topic that the checkpoint has not reached, and when it was asked for.
    awaited: Option<(i64, i64)>,
    /// When the newest end that the checkpoint has reached was asked for.
    held_ms: Option<i64>,
}

impl Lag {
    /// Takes how far the checkpoint and the topic reach now.
    fn follow(&mut self, position: i64, end: i64, now_ms: i64) {
        if position >= end {
            (self.awaited, self.held_ms) = (None, Some(now_ms));
            return;
        }
        match self.awaited {
            Some((awaited, asked_ms)) if position >= awaited => self.held_ms = Some(asked_ms),
            Some(_) => return,
            None => {}
        }
        self.awaited = Some((end, now_ms));
    }
}

/// How far a partition of one topic reaches, on the broker and in its checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// The oldest offset that is left, if it was asked for.
    pub begin: i64,
    /// Where the log ends.
    pub end: i64,
    /// Up to where the checkpoint goes; `None` if it knows no record.
    pub position: Option<i64>,
    /// Whether the checkpoint says that the partition was read to its end.
    pub idle: bool,
}

impl Reach {
    /// Records that the checkpoint does not hold.
    pub fn uncovered(&self) -> u64 {
        let from = match self.position {
            Some(position) => position.max(self.begin),
            // The reader began where the log ended, and nothing came since.
            None if self.idle => self.end,
            None => self.begin,
        };
        (self.end - from).max(0).unsigned_abs()
    }
}

/// All partitions that should exist. See the module.
#[derive(Debug, Default)]
pub struct PartitionLiveness {
    known: BTreeMap<PartitionId, PartitionStatus>,
    /// How long a checkpoint is awaited, in milliseconds.
    missing_after_ms: i64,
}

impl PartitionLiveness {
    /// No partitions.
    pub fn new(missing_after_ms: i64) -> PartitionLiveness {
        PartitionLiveness {
            known: BTreeMap::new(),
            missing_after_ms,
        }
    }

    /// Adds a partition, whose checkpoint is then awaited.
    pub fn await_partition(&mut self, at: PartitionId, now_ms: i64) {
        self.known.entry(at).or_insert_with(|| PartitionStatus {
            since_ms: now_ms,
            ..PartitionStatus::default()
        });
    }

    /// Notes that a checkpoint of a partition came.
    pub fn checkpoint_came(&mut self, at: PartitionId, written_ms: Option<i64>, now_ms: i64) {
        self.await_partition(at, now_ms);
        if let Some(known) = self.known.get_mut(&at) {
            known.written_ms = Some(written_ms.unwrap_or(now_ms));
            known.since_ms = now_ms;
            known.fault = None;
        }
    }

    /// Notes that a checkpoint came that cannot be used.
    pub fn refuse(&mut self, at: PartitionId, why: String, now_ms: i64) {
        self.await_partition(at, now_ms);
        if let Some(known) = self.known.get_mut(&at) {
            known.fault = Some(why);
        }
    }

    /// Sets how many of its records are in no checkpoint; `unended`: its checkpoint does not say
    /// that it was read to its end.
    pub fn set_uncovered(&mut self, at: PartitionId, uncovered: u64, unended: bool, now_ms: i64) {
        if let Some(known) = self.known.get_mut(&at) {
            if uncovered == 0 && !unended {
                // No checkpoint is awaited.
                known.since_ms = now_ms;
            }
            (known.uncovered, known.unended) = (uncovered, unended);
        }
    }

    /// Takes how far its checkpoint reaches in a topic, and where the topic ends.
    pub fn follow(&mut self, at: PartitionId, source: u16, position: i64, end: i64, now_ms: i64) {
        if let Some(known) = self.known.get_mut(&at) {
            let lag = known.lags.entry(source).or_default();
            lag.follow(position, end, now_ms);
        }
    }

    /// Upper bound of the age of records that no checkpoint holds yet, over the partitions whose
    /// next checkpoint is awaited, in milliseconds; `None` while it is not known.
    pub fn lag_ms(&self, now_ms: i64) -> Option<i64> {
        let behind = self.all(now_ms);
        let behind = behind.filter(|(.., freshness)| *freshness == Freshness::Behind);
        let lags: Option<Vec<i64>> = behind.map(|(_, known, _)| known.lag_ms(now_ms)).collect();
        Some(lags?.into_iter().max().unwrap_or(0))
    }

    /// All partitions, and how up to date each is.
    pub fn all(
        &self,
        now_ms: i64,
    ) -> impl Iterator<Item = (PartitionId, &PartitionStatus, Freshness)> {
        self.known.iter().map(move |(at, known)| {
            let late = now_ms.saturating_sub(known.since_ms) >= self.missing_after_ms;
            let awaited = known.uncovered > 0 || known.unended;
            let freshness = match (awaited, late, known.written_ms) {
                (false, ..) => Freshness::Covered,
                (_, true, None) => Freshness::Missing,
                (_, true, Some(_)) => Freshness::Stale,
                (_, false, _) => Freshness::Behind,
            };
            (*at, known, freshness)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(position: Option<i64>, idle: bool) -> u64 {
        let (begin, end) = (10, 30);
        Reach {
            begin,
            end,
            position,
            idle,
        }
        .uncovered()
    }

    #[test]
    fn records_between_checkpoint_and_end_are_uncovered() {
        assert_eq!(reach(Some(30), true), 0);
        // A partition that was read to its earlier end is not read to its end now.
        assert_eq!(reach(Some(25), true), 5);
        assert_eq!(reach(Some(5), false), 20);
        assert_eq!(reach(None, false), 20);
        assert_eq!(reach(None, true), 0);
        // A topic that was cut is the worker's business.
        assert_eq!(reach(Some(40), false), 0);
    }

    #[test]
    fn a_partition_that_never_ends_lags_as_long_as_an_end_of_it_is_awaited() {
        let (mut liveness, at) = (PartitionLiveness::new(1_000_000), PartitionId::from((0, 3)));
        liveness.await_partition(at, 0);
        assert_eq!(liveness.lag_ms(0), Some(0), "none is awaited");
        let mut follow = |position: i64, end: i64, now_ms| {
            let uncovered = (end - position).max(0).unsigned_abs();
            liveness.set_uncovered(at, uncovered, true, now_ms);
            liveness.follow(at, 0, position, end, now_ms);
            liveness.lag_ms(now_ms)
        };
        // Records come all the time, and a checkpoint each second.
        assert_eq!(follow(0, 1000, 1000), None);
        assert_eq!(follow(500, 1200, 1250), None);
        assert_eq!(follow(1000, 2000, 2000), Some(1000));
        assert_eq!(follow(1900, 2800, 2800), Some(1800));
        assert_eq!(follow(2000, 3000, 3000), Some(1000));
        // Its worker stops, and continues.
        assert_eq!(follow(2000, 9000, 9000), Some(7000));
        assert_eq!(follow(3000, 9500, 9500), Some(6500));
        assert_eq!(follow(9500, 9500, 9600), Some(0));
        // The lag in another topic of the partition is not known.
        liveness.follow(at, 1, 0, 10, 9700);
        assert_eq!(liveness.lag_ms(9700), None);
    }

    fn freshness(liveness: &PartitionLiveness, now_ms: i64) -> Freshness {
        let mut all = liveness.all(now_ms);
        all.next().expect("one").2
    }

    #[test]
    fn a_partition_is_waited_for_until_no_checkpoint_came_for_too_long_and_again_when_one_comes() {
        let (mut liveness, at) = (PartitionLiveness::new(1000), (0, 3).into());
        liveness.await_partition(at, 0);
        // An empty partition is not missing, however long it is empty.
        liveness.set_uncovered(at, 0, false, 50_000);
        assert_eq!(freshness(&liveness, 50_000), Freshness::Covered);
        liveness.set_uncovered(at, 7, false, 50_500);
        assert_eq!(freshness(&liveness, 50_900), Freshness::Behind);
        assert_eq!(freshness(&liveness, 51_000), Freshness::Missing);
        liveness.checkpoint_came(at, Some(51_100), 51_200);
        liveness.set_uncovered(at, 2, false, 51_200);
        assert_eq!(freshness(&liveness, 52_199), Freshness::Behind);
        assert_eq!(freshness(&liveness, 52_200), Freshness::Stale);
        liveness.set_uncovered(at, 0, false, 52_300);
        assert_eq!(freshness(&liveness, 52_300), Freshness::Covered);
        // A partition that was quiet for long is awaited like any other.
        liveness.set_uncovered(at, 0, false, 99_000);
        liveness.set_uncovered(at, 1, false, 99_100);
        assert_eq!(freshness(&liveness, 99_900), Freshness::Behind);
        // Its last panes are on their way.
        liveness.set_uncovered(at, 0, true, 99_950);
        assert_eq!(freshness(&liveness, 99_950), Freshness::Behind);
        liveness.set_uncovered(at, 0, false, 99_990);
        assert_eq!(freshness(&liveness, 99_990), Freshness::Covered);
    }
}
