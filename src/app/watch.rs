//! Which partitions verdicts wait for, where one process judges what others count.
//!
//! A partition is *covered* when its parcel holds all of its records that the broker has: it is passed over, as one process
//! passes over a partition that it has read to its end. One that is not covered holds all verdicts where its parcel is; a worker reads it, and
//! its next parcel is on the way. If none comes for `missing_after`, the partition is *stale*, or *missing* where there never was a
//! parcel: its worker is dead, frozen or cannot write. Verdicts then go on without it, and it is named, counted and alerted; when it comes
//! back, it is waited for again, and what it brings is merged into the windows that hold it.
//!
//! How long topics are is asked after the parcels were read and before anything is judged: what came before the question is
//! either in a parcel or holds the verdicts.

use super::panel::At;
use std::collections::BTreeMap;

/// How a partition stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Standing {
    /// Its parcel holds all of its records.
    Covered,
    /// A parcel is waited for.
    Behind,
    /// None came for too long.
    Stale,
    /// There is none, and there are records.
    Missing,
}

/// What is known of a partition.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// When its parcel was written, where there is one; milliseconds since 1970.
    pub written_ms: Option<i64>,
    /// Since when another is waited for, by this machine's clock.
    pub since_ms: i64,
    /// Why its newest parcel cannot be used.
    pub fault: Option<String>,
    /// Records that no parcel in use holds.
    pub uncovered: u64,
}

/// What a broker says of a partition of one topic, and its parcel of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// The oldest offset that is left, where it was asked.
    pub begin: i64,
    /// Where the log ends.
    pub end: i64,
    /// Up to where the parcel goes; `None` where it knows no record.
    pub position: Option<i64>,
    /// The parcel says that it was read to its end.
    pub idle: bool,
}

impl Reach {
    /// Records that the parcel does not hold.
    pub fn uncovered(&self) -> u64 {
        let from = match self.position {
            Some(position) => position.max(self.begin),
            // Somebody begins where the log ended, and nothing came since.
            None if self.idle => self.end,
            None => self.begin,
        };
        (self.end - from).max(0).unsigned_abs()
    }
}

/// All partitions that there should be. See the module.
#[derive(Debug, Default)]
pub struct Watch {
    known: BTreeMap<At, Known>,
    /// How long a parcel is waited for, milliseconds.
    missing_after_ms: i64,
}

impl Watch {
    /// Knows of none yet.
    pub fn new(missing_after_ms: i64) -> Watch {
        Watch {
            known: BTreeMap::new(),
            missing_after_ms,
        }
    }

    /// There is such a partition.
    pub fn expect(&mut self, at: At, now_ms: i64) {
        self.known.entry(at).or_insert_with(|| Known {
            since_ms: now_ms,
            ..Known::default()
        });
    }

    /// A parcel of it came.
    pub fn came(&mut self, at: At, written_ms: Option<i64>, now_ms: i64) {
        self.expect(at, now_ms);
        if let Some(known) = self.known.get_mut(&at) {
            known.written_ms = Some(written_ms.unwrap_or(now_ms));
            known.since_ms = now_ms;
            known.fault = None;
        }
    }

    /// One came that cannot be used.
    pub fn refuse(&mut self, at: At, why: String, now_ms: i64) {
        self.expect(at, now_ms);
        if let Some(known) = self.known.get_mut(&at) {
            known.fault = Some(why);
        }
    }

    /// So many of its records are in no parcel.
    pub fn lacks(&mut self, at: At, uncovered: u64, now_ms: i64) {
        if let Some(known) = self.known.get_mut(&at) {
            if uncovered == 0 {
                // No parcel is waited for.
                known.since_ms = now_ms;
            }
            known.uncovered = uncovered;
        }
    }

    /// How each partition stands.
    pub fn standings(&self, now_ms: i64) -> impl Iterator<Item = (At, &Known, Standing)> {
        self.known.iter().map(move |(at, known)| {
            let late = now_ms.saturating_sub(known.since_ms) >= self.missing_after_ms;
            let standing = match (known.uncovered, late, known.written_ms) {
                (0, ..) => Standing::Covered,
                (_, true, None) => Standing::Missing,
                (_, true, Some(_)) => Standing::Stale,
                (_, false, _) => Standing::Behind,
            };
            (*at, known, standing)
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
    fn records_between_parcel_and_end_are_uncovered() {
        assert_eq!(reach(Some(30), true), 0);
        // Read to its end as it was then is not read to its end.
        assert_eq!(reach(Some(25), true), 5);
        assert_eq!(reach(Some(5), false), 20);
        assert_eq!(reach(None, false), 20);
        assert_eq!(reach(None, true), 0);
        // A topic that was cut is the worker's business.
        assert_eq!(reach(Some(40), false), 0);
    }

    fn standing(watch: &Watch, now_ms: i64) -> Standing {
        let mut all = watch.standings(now_ms);
        all.next().expect("one").2
    }

    #[test]
    fn a_partition_is_waited_for_until_no_parcel_came_for_too_long_and_again_when_one_comes() {
        let mut watch = Watch::new(1000);
        watch.expect((0, 3), 0);
        // An empty partition is not missing, however long it is empty.
        watch.lacks((0, 3), 0, 50_000);
        assert_eq!(standing(&watch, 50_000), Standing::Covered);
        watch.lacks((0, 3), 7, 50_500);
        assert_eq!(standing(&watch, 50_900), Standing::Behind);
        assert_eq!(standing(&watch, 51_000), Standing::Missing);
        watch.came((0, 3), Some(51_100), 51_200);
        watch.lacks((0, 3), 2, 51_200);
        assert_eq!(standing(&watch, 52_199), Standing::Behind);
        assert_eq!(standing(&watch, 52_200), Standing::Stale);
        watch.lacks((0, 3), 0, 52_300);
        assert_eq!(standing(&watch, 52_300), Standing::Covered);
        // What was quiet for long is waited for as any other.
        watch.lacks((0, 3), 0, 99_000);
        watch.lacks((0, 3), 1, 99_100);
        assert_eq!(standing(&watch, 99_900), Standing::Behind);
    }
}
