//! Which of the sampled predictions have an outcome, after how long, and in which partition.

use crate::collect::join::{JoinPlan, Missing};
use crate::collect::{Event, OutcomeRecord};
use std::collections::HashMap;

/// Quantiles of the delay of outcomes that are shown.
pub const SHARES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

#[derive(Debug, Clone, Copy)]
struct Sampled {
    partition: i32,
    time_ms: i64,
    /// Delay of its outcome after its event time, and the outcome's partition.
    outcome: Option<(i64, i32)>,
}

/// Matches outcomes with the sampled predictions.
#[derive(Debug, Default)]
pub(super) struct Joins {
    by_model: bool,
    predictions: HashMap<Vec<u8>, Sampled>,
    matched: usize,
    /// Predictions that share their id with another one.
    repeated: u64,
    oldest_ms: Option<i64>,
}

/// What was seen of outcomes in records of their own.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JoinFacts {
    /// Predictions that waited for an outcome.
    pub predictions: u64,
    /// Predictions whose maturity is over.
    pub due: u64,
    /// Due predictions with an outcome within maturity.
    pub in_time: u64,
    /// Predictions with an outcome, whenever it came.
    pub matched: u64,
    /// Predictions whose outcome came after maturity.
    pub late: u64,
    /// Predictions whose outcome is in a partition with another number.
    pub elsewhere: u64,
    /// Predictions that share their id with another one.
    pub repeated: u64,
    /// Delay of the outcomes after the event time of their predictions, in ms, at the quantiles
    /// [`SHARES`].
    pub delays_ms: Vec<i64>,
    /// The maturity of the configuration, in ms.
    pub maturity_ms: i64,
    /// How the configuration counts a missing outcome.
    pub missing: Missing,
    /// Not all outcomes were read.
    pub cut: bool,
}

impl Joins {
    pub fn new(by_model: bool) -> Joins {
        Joins {
            by_model,
            ..Joins::default()
        }
    }

    fn key(&self, model: Option<&str>, id: &[u8]) -> Vec<u8> {
        let model = model.filter(|_| self.by_model).unwrap_or_default();
        [model.as_bytes(), b"\0", id].concat()
    }

    /// Notes a prediction that waits for its outcome.
    pub fn prediction(&mut self, partition: i32, event: &Event<'_>) {
        let sampled = Sampled {
            partition,
            time_ms: event.time_ms,
            outcome: None,
        };
        let key = self.key(Some(event.model), event.id);
        let before = self.predictions.insert(key, sampled);
        self.repeated += u64::from(before.is_some());
        let at_ms = event.arrival_ms.unwrap_or(event.time_ms).min(event.time_ms);
        self.oldest_ms = Some(self.oldest_ms.map_or(at_ms, |ms| ms.min(at_ms)));
    }

    /// Notes an outcome; the first of a prediction counts.
    pub fn outcome(&mut self, partition: i32, record: &OutcomeRecord<'_>) {
        let key = self.key(record.model, record.id);
        let Some(sampled) = self.predictions.get_mut(&key) else {
            return;
        };
        if sampled.outcome.is_none() {
            let at_ms = record.arrival_ms.unwrap_or(record.time_ms);
            let delay = at_ms.saturating_sub(sampled.time_ms).max(0);
            sampled.outcome = Some((delay, partition));
            self.matched += 1;
        }
    }

    /// Event time or arrival of the oldest prediction.
    pub fn oldest_ms(&self) -> Option<i64> {
        self.oldest_ms
    }

    /// Whether each prediction has its outcome.
    pub fn complete(&self) -> bool {
        !self.predictions.is_empty() && self.matched == self.predictions.len()
    }

    /// The facts, at `now_ms`.
    pub fn facts(&self, plan: &JoinPlan, now_ms: i64, cut: bool) -> JoinFacts {
        let maturity_ms = plan.maturity_ms;
        let all = || self.predictions.values();
        let is_due = |s: &&Sampled| s.time_ms.saturating_add(maturity_ms) <= now_ms;
        let in_time = |s: &&Sampled| s.outcome.is_some_and(|(delay, _)| delay <= maturity_ms);
        let elsewhere = |s: &&Sampled| s.outcome.is_some_and(|(_, at)| at != s.partition);
        let mut delays: Vec<i64> = all().filter_map(|s| s.outcome).map(|o| o.0).collect();
        delays.sort_unstable();
        JoinFacts {
            predictions: self.predictions.len() as u64,
            due: all().filter(is_due).count() as u64,
            in_time: all().filter(is_due).filter(in_time).count() as u64,
            matched: self.matched as u64,
            late: (all().filter(is_due).filter_map(|s| s.outcome))
                .filter(|(delay, _)| *delay > maturity_ms)
                .count() as u64,
            elsewhere: all().filter(elsewhere).count() as u64,
            repeated: self.repeated,
            delays_ms: SHARES
                .iter()
                .filter_map(|p| quantile(&delays, *p))
                .collect(),
            maturity_ms,
            missing: plan.missing,
            cut,
        }
    }
}

/// The smallest of the sorted values that at least the share `p` does not exceed.
pub fn quantile(sorted: &[i64], p: f64) -> Option<i64> {
    let last = sorted.len().checked_sub(1)?;
    let at = (p * sorted.len() as f64).ceil() as usize;
    Some(sorted[at.saturating_sub(1).min(last)])
}
