//! What notifications need of the engine, looked up once a dispatch, where something fires.
//!
//! Thousands of alerts may begin together, and a search through all streams for each of them would
//! hold up the engine's thread.

use std::cell::OnceCell;
use std::collections::HashMap;

use crate::app::cluster::topology::Topology;
use crate::collect::Counters;
use crate::collect::join::{JoinPlan, WrongPartition};
use crate::judge::{StreamId, StreamReport};
use crate::telemetry::concerns::ABSENT_MIN;

/// Where outcomes may have missed their predictions.
const WRONG_PARTITION: &str = ". Outcomes wait on another partition than their predictions (see \
    trueline_outcomes_wrong_partition_ratio), so these numbers may be wrong: mend that first";

/// Where predictions were given up and no outcome was ever matched.
const OUTCOMES_ABSENT: &str = ". No outcome has ever found its prediction, so these numbers rest on outcomes \
    that are implied: mend that first";

/// The engine as it is during one dispatch.
pub struct Lookup<'e> {
    engine: &'e Topology,
    reports: OnceCell<HashMap<&'e StreamId, &'e StreamReport>>,
    wrong_partitions: OnceCell<Vec<WrongPartition>>,
    counters: OnceCell<Counters>,
}

impl<'e> Lookup<'e> {
    /// Nothing is looked up yet.
    pub fn of(engine: &'e Topology) -> Lookup<'e> {
        Lookup {
            engine,
            reports: OnceCell::new(),
            wrong_partitions: OnceCell::new(),
            counters: OnceCell::new(),
        }
    }

    /// The report of a stream.
    pub fn report(&self, id: &StreamId) -> Option<&'e StreamReport> {
        let all = self.reports.get_or_init(|| {
            let all = self.engine.reports();
            all.map(|r| (&r.id, r.as_ref())).collect()
        });
        all.get(id).copied()
    }

    /// The reasons to doubt the numbers of a model, because outcomes do not find their predictions.
    pub fn caveats(&self, model: &str) -> String {
        let wrong = self
            .wrong_partitions
            .get_or_init(|| self.engine.wrong_partitions());
        let counters = self.counters.get_or_init(|| self.engine.counters());
        caveats(model, wrong, (self.engine.joins(), counters))
    }
}

/// The reasons to doubt the numbers of `model`; empty if there are none. Only joins that may serve
/// the model count, and a join whose outcomes arrive gives no reason.
fn caveats(
    model: &str,
    wrong: &[WrongPartition],
    (joins, counters): (&[JoinPlan], &Counters),
) -> String {
    let serves = |of: &Option<String>| of.as_ref().is_none_or(|of| of == model);
    let mut text = String::new();
    if wrong.iter().any(|w| serves(&w.model) && w.is_wrong()) {
        text.push_str(WRONG_PARTITION);
    }
    let joins = || joins.iter().filter(|join| serves(&join.model));
    let matched: u64 = joins().map(|j| counters.source(j.outcomes).matched).sum();
    let implied: u64 = joins()
        .map(|j| counters.source(j.predictions).implied)
        .sum();
    if matched == 0 && implied > ABSENT_MIN {
        text.push_str(OUTCOMES_ABSENT);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::join::{Missing, Repeated};

    fn join(predictions: u16, outcomes: u16, model: Option<&str>) -> JoinPlan {
        JoinPlan {
            predictions,
            outcomes,
            maturity_ms: 60_000,
            missing: Missing::Class(0),
            repeated: Repeated::First,
            revise: false,
            by_model: false,
            model: model.map(str::to_owned),
            pending_max: 1000,
            pending_memory: 1 << 20,
        }
    }

    /// Predictions of "fraud" in source 0 with outcomes in 1, of "credit" in 2 with outcomes in 3.
    fn two() -> (Vec<JoinPlan>, Counters) {
        let joins = vec![join(0, 1, Some("fraud")), join(2, 3, Some("credit"))];
        (joins, Counters::default())
    }

    #[test]
    fn absent_outcomes_are_named_for_the_models_that_lack_them() {
        let (joins, mut counters) = two();
        counters.source_mut(0).implied = ABSENT_MIN + 1;
        counters.source_mut(2).implied = ABSENT_MIN + 1;
        counters.source_mut(3).matched = 1;
        let of = |model| caveats(model, &[], (&joins, &counters));
        assert_eq!(of("fraud"), OUTCOMES_ABSENT);
        assert_eq!(of("credit"), "");
        // No join serves it, so its records carry their outcomes.
        assert_eq!(of("ads"), "");
    }

    #[test]
    fn outcomes_of_a_few_predictions_may_still_come() {
        let (joins, mut counters) = two();
        counters.source_mut(0).implied = ABSENT_MIN;
        assert_eq!(caveats("fraud", &[], (&joins, &counters)), "");
    }

    #[test]
    fn a_join_of_any_model_may_serve_each() {
        let (mut joins, mut counters) = two();
        counters.source_mut(0).implied = ABSENT_MIN + 1;
        joins.push(join(4, 5, None));
        assert_eq!(caveats("fraud", &[], (&joins, &counters)), OUTCOMES_ABSENT);
        counters.source_mut(5).matched = 1;
        assert_eq!(caveats("fraud", &[], (&joins, &counters)), "");
    }

    #[test]
    fn outcomes_on_a_wrong_partition_are_named_for_their_model() {
        let (joins, counters) = two();
        let wrong = [WrongPartition {
            source: 1,
            model: Some("fraud".to_owned()),
            waiting: 100,
            found: 100,
        }];
        let of = |model| caveats(model, &wrong, (&joins, &counters));
        assert_eq!(of("fraud"), WRONG_PARTITION);
        assert_eq!(of("credit"), "");
    }
}
