//! The state of the partitions that a process judges, for metrics and for the decision who
//! notifies.

use super::Judges;
use crate::app::clock;
use crate::collect::PartitionId;
use crate::monitor::Aggregator;
use crate::monitor::liveness::Freshness;
use crate::telemetry::facts::{JudgeFacts, Role};
use std::collections::BTreeMap;

impl Judges {
    /// The state of the partitions, for metrics: for each the worst that a task reports.
    pub fn role(&self) -> Role {
        if self.stands_by() {
            return Role::Standby;
        }
        let (now_ms, steady_ms) = (clock::now_ms(), clock::steady_ms());
        let mut worst: BTreeMap<PartitionId, (u64, Option<i64>, Freshness)> = BTreeMap::new();
        let all = self
            .tasks
            .values()
            .flat_map(|task| task.standing(steady_ms));
        for (at, uncovered, written_ms, freshness) in all {
            let known = worst
                .entry(at)
                .or_insert((uncovered, written_ms, freshness));
            *known = (
                known.0.max(uncovered),
                known.1.min(written_ms),
                known.2.max(freshness),
            );
        }
        let mut facts = JudgeFacts {
            skipped: self.aggregators().map(Aggregator::skipped).sum(),
            backlog: self.tasks.values().any(|t| t.is_behind() || !t.began()),
            lag_ms: self.lag_ms(steady_ms),
            tasks: self.may_move().then(|| {
                let judging = self.tasks.values().filter(|task| task.began());
                judging.count() as u64
            }),
            ..JudgeFacts::default()
        };
        for (uncovered, written_ms, freshness) in worst.into_values() {
            facts.partitions.count(freshness);
            facts.uncovered += uncovered;
            if let (true, Some(written_ms)) = (freshness != Freshness::Covered, written_ms) {
                facts.delay_ms = facts.delay_ms.max(now_ms.saturating_sub(written_ms));
            }
        }
        Role::Judge(facts)
    }

    /// The greatest lag of its tasks; `None` unless all are known.
    fn lag_ms(&self, steady_ms: i64) -> Option<i64> {
        let lags = self.tasks.values().map(|task| task.lag_ms(steady_ms));
        let lags: Option<Vec<i64>> = lags.collect();
        Some(lags?.into_iter().max().unwrap_or(0))
    }
}
