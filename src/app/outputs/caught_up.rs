//! Decides whether alerts are based on recent data. If not, old changes wait, and no alert ends for
//! not firing before all partitions are read.

use crate::app::cluster::topology::Topology;
use crate::telemetry::Published;
use crate::telemetry::facts::{PartitionFacts, Role};

/// Whether what is read, and on a judge also judged, is at most this old, or nothing is left to
/// judge.
pub fn caught_up(engine: &Topology, published: &Published, now_ms: i64, max_age_ms: i64) -> bool {
    if let Role::Judge(judge) = engine.role() {
        let judged_ms = engine.judged_ms();
        let recent = judged_ms.is_some_and(|ms| now_ms.saturating_sub(ms) <= max_age_ms);
        // Event time may always trail, for example if scores are delivered once a day.
        let is_near = judge.lag_ms.is_some_and(|ms| ms <= max_age_ms);
        return recent || (is_near && !judge.backlog);
    }
    are_recent(&published.facts().partitions, max_age_ms)
}

/// Whether a partition is not read, or not counted by a worker, so that its unread records may make
/// an alert fire.
fn lacks_some(engine: &Topology, published: &Published) -> bool {
    match engine.role() {
        Role::Judge(judge) => judge.partitions.stale + judge.partitions.missing > 0,
        _ => published.facts().partitions.iter().any(|p| p.unread),
    }
}

/// A clock that runs only while all partitions are read and judged. It measures for how long an
/// alert is known not to fire.
#[derive(Debug, Default)]
pub struct ReadingClock {
    ms: i64,
    /// When all was last read, by a clock that does not step; `None` if not all was read at the
    /// last call.
    read_ms: Option<i64>,
}

impl ReadingClock {
    /// Advances the clock to `steady_ms` if the engine has caught up and reads all partitions.
    pub fn follow(
        &mut self,
        engine: &Topology,
        published: &Published,
        steady_ms: i64,
        caught_up: bool,
    ) {
        self.tick(steady_ms, caught_up && !lacks_some(engine, published));
    }

    fn tick(&mut self, steady_ms: i64, reads_all: bool) {
        if let (true, Some(read_ms)) = (reads_all, self.read_ms) {
            self.ms = self.ms.saturating_add(steady_ms.saturating_sub(read_ms));
        }
        self.read_ms = reads_all.then_some(steady_ms);
    }

    /// The time of this clock, in ms.
    pub fn ms(&self) -> i64 {
        self.ms
    }
}

/// Whether what is read of the partitions is at most this old. Unread partitions do not count,
/// however much they lag: verdicts and notifications continue without them. Partitions that this
/// user may not read do count: verdicts wait for them, and are old once they may be read.
fn are_recent(partitions: &[PartitionFacts], max_age_ms: i64) -> bool {
    let recent = |p: &PartitionFacts| p.lag_ms.is_some_and(|ms| ms <= max_age_ms);
    !partitions.is_empty() && partitions.iter().all(|p| p.unread || recent(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_what_does_not_fire_stands_still_while_a_partition_is_not_read() {
        let published = Published::default();
        let engine = crate::app::testing::plan(crate::judge::JudgeOptions::plain());
        let engine = Topology::Single(Box::new(crate::monitor::Engine::new(engine)));
        let mut clock = ReadingClock::default();
        let mut follow = |steady_ms, unread: &[bool], caught_up| {
            let partition = |unread: &bool| PartitionFacts {
                lag_ms: Some(0),
                unread: *unread,
                ..PartitionFacts::default()
            };
            let partitions: Vec<_> = unread.iter().map(partition).collect();
            published.update(|facts| facts.partitions = partitions.clone());
            clock.follow(&engine, &published, steady_ms, caught_up);
            clock.ms()
        };
        assert_eq!(follow(1_000, &[false, false], true), 0);
        assert_eq!(follow(2_000, &[false, false], true), 1_000);
        // One partition is suspended; reading of the other continues.
        assert_eq!(follow(3_000, &[false, true], true), 1_000);
        assert_eq!(follow(900_000, &[false, true], true), 1_000);
        assert_eq!(follow(901_000, &[false, false], true), 1_000);
        assert_eq!(follow(902_000, &[false, false], true), 2_000);
        // Behind, or without a known offset.
        assert_eq!(follow(903_000, &[false, false], false), 2_000);
        assert_eq!(follow(990_000, &[false, false], true), 2_000);
    }

    #[test]
    fn notifications_do_not_wait_for_a_partition_that_nothing_can_be_read_of() {
        let partition = |lag_ms: Option<i64>, unread: bool| PartitionFacts {
            lag_ms,
            unread,
            ..PartitionFacts::default()
        };
        let recent = |partitions: &[PartitionFacts]| are_recent(partitions, 100);
        let (read, behind) = (partition(Some(100), false), partition(Some(101), false));
        let unknown = partition(None, false);
        assert!(recent(std::slice::from_ref(&read)));
        // For example a partition that this user may not read.
        assert!(!recent(&[]) && !recent(std::slice::from_ref(&unknown)));
        assert!(!recent(&[read.clone(), unknown]));
        // Unread: suspended, or an open transaction hides its records.
        for unread in [partition(None, true), partition(Some(9_999), true)] {
            assert!(recent(std::slice::from_ref(&unread)));
            assert!(recent(&[read.clone(), unread.clone()]));
            assert!(!recent(&[read.clone(), unread, behind.clone()]));
        }
    }
}
