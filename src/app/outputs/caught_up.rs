//! Whether alerts are judged on what is new: changes of long ago wait until they are.

use crate::app::cluster::topology::Topology;
use crate::telemetry::Published;
use crate::telemetry::facts::{PartitionFacts, Role};

/// Whether what is read, and on a judge also judged, is at most this old, or nothing is left.
pub fn caught_up(
    engine: &Topology,
    published: &Published,
    (now_ms, max_age_ms): (i64, i64),
) -> bool {
    if let Role::Judge(judge) = engine.role() {
        let judged_ms = engine.judged_ms();
        let recent = judged_ms.is_some_and(|ms| now_ms.saturating_sub(ms) <= max_age_ms);
        let [_, behind, ..] = judge.partitions;
        return recent || (behind == 0 && !judge.backlog);
    }
    are_recent(&published.facts().partitions, max_age_ms)
}

/// Whether what is read of the partitions is at most this old. One that nothing can be read of has
/// no part in that, however much it lags: verdicts, and so notifications, go on without it.
fn are_recent(partitions: &[PartitionFacts], max_age_ms: i64) -> bool {
    let recent = |p: &PartitionFacts| p.lag_ms.is_some_and(|ms| ms <= max_age_ms);
    !partitions.is_empty() && partitions.iter().all(|p| p.unread || recent(p))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(!recent(&[]) && !recent(&[unknown]));
        // It is suspended, or an open transaction hides its records.
        for unread in [partition(None, true), partition(Some(9_999), true)] {
            assert!(recent(std::slice::from_ref(&unread)));
            assert!(recent(&[read.clone(), unread.clone()]));
            assert!(!recent(&[read.clone(), unread, behind.clone()]));
        }
    }
}
