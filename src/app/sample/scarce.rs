//! Which models have too few events, or too few of their rarer outcome, for any of their windows.

use crate::collect::PartitionId;
use crate::judge::ModelPlan;
use crate::stats::tolerance::FEW;
use crate::window::Width;
use std::collections::BTreeMap;

/// Fewer events of a partition do not show its rate.
const EVENTS_MIN: usize = 20;

const DAY_MS: f64 = 86_400_000.0;

/// A model whose longest window holds too little for a verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Scarce {
    /// Its name.
    pub model: String,
    /// Its events a day.
    pub per_day: f64,
    /// Name of the window that holds most events.
    pub window: String,
    /// How many events that window holds.
    pub held: f64,
    /// How many events that window needs at least.
    pub min_events: u64,
    /// The mean score of the rarer outcome; 1 where it is not known.
    pub rare_mean: f64,
}

impl Scarce {
    /// The events that a window needs for both `min_events` and the rarer outcome.
    pub fn needed(&self) -> f64 {
        (self.min_events as f64).max((FEW / self.rare_mean).ceil())
    }

    /// The model, if its windows hold too little at this many events a day.
    pub(super) fn of(
        model: &str,
        plan: &ModelPlan,
        per_day: f64,
        rare_mean: f64,
    ) -> Option<Scarce> {
        let held = |width: &Width| match *width {
            Width::Time { width_ms, .. } => per_day * (width_ms as f64 / DAY_MS),
            Width::Count { last } => last as f64,
        };
        let windows = plan.ladder.windows.iter();
        let windows = windows.map(|w| (held(&w.width), w.name.clone()));
        let (held, window) = windows.max_by(|a, b| a.0.total_cmp(&b.0))?;
        let scarce = Scarce {
            model: model.to_owned(),
            per_day,
            window,
            held,
            min_events: plan.judge.min_events,
            rare_mean,
        };
        (held < scarce.needed()).then_some(scarce)
    }
}

/// Event times of the predictions of one model, by partition.
#[derive(Debug, Default)]
pub struct Times(BTreeMap<PartitionId, Vec<i64>>);

impl Times {
    pub(super) fn note(&mut self, partition: PartitionId, time_ms: i64) {
        self.0.entry(partition).or_default().push(time_ms);
    }

    /// The rate over all partitions; `None` if there are too few events. The sample reaches further
    /// back in partitions with little traffic, so each has its own rate.
    pub(super) fn per_day(&self) -> Option<f64> {
        let (many, few): (Vec<_>, Vec<_>) =
            (self.0.values().cloned()).partition(|times| times.len() >= EVENTS_MIN);
        let groups = many.into_iter().chain([few.concat()]);
        groups.filter_map(rate).reduce(|a, b| a + b)
    }
}

/// Events a day in the newer half of the times, so that a few old events do not count.
fn rate(mut times: Vec<i64>) -> Option<f64> {
    times.sort_unstable();
    let newer = times.split_off(times.len() / 2);
    let (first, last) = (newer.first()?, newer.last()?);
    let days = last.saturating_sub(*first) as f64 / DAY_MS;
    (2 * newer.len() >= EVENTS_MIN).then(|| (newer.len() - 1) as f64 / days)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(partitions: &[(i64, i64)]) -> Option<f64> {
        let mut times = Times::default();
        for (partition, &(n, apart_ms)) in (0..).zip(partitions) {
            let id = PartitionId {
                source: 0,
                partition,
            };
            (0..n).for_each(|i| times.note(id, -i * apart_ms));
        }
        times.per_day()
    }

    #[test]
    fn a_rate_is_that_of_all_partitions_and_of_the_newer_half() {
        let hour = 3_600_000;
        let near = |found: Option<f64>, wanted: f64| {
            let found = found.unwrap();
            assert!((found / wanted - 1.0).abs() < 0.05, "{found} {wanted}");
        };
        near(times(&[(200, hour)]), 24.0);
        near(times(&[(200, hour), (200, hour / 100)]), 2424.0);
        // Partitions of few events count together.
        near(times(&[(15, hour), (15, hour)]), 48.0);
        assert_eq!(times(&[(9, hour), (9, hour)]), None);
        assert_eq!(times(&[(200, 0)]), Some(f64::INFINITY));
        let mut some = Times::default();
        let id = PartitionId {
            source: 0,
            partition: 0,
        };
        (0..100).for_each(|i| some.note(id, i * hour));
        some.note(id, -10_000 * hour);
        near(some.per_day(), 24.0);
    }
}
