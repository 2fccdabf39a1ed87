//! What notifications need of the engine, looked up once per dispatch, and only if something fires.
//!
//! Thousands of alerts may begin together. A search through all streams for each of them would hold
//! up the engine's thread.

use std::cell::OnceCell;
use std::collections::HashMap;

use crate::app::cluster::topology::Topology;
use crate::collect::Counters;
use crate::collect::join::{JoinPlan, WrongPartition};
use crate::judge::{Coverage, StreamId, StreamReport, WindowReport};
use crate::telemetry::Published;
use crate::telemetry::concerns::{ABSENT_MIN, EXPECTED_MIN};

/// Caveat if outcomes may have missed their predictions.
const WRONG_PARTITION: &str = ". Outcomes wait on another partition than their predictions (see \
    trueline_outcomes_wrong_partition_ratio), so these numbers may be wrong: fix that first";

/// Caveat if outcomes are implied and none was matched, ever or recently.
const OUTCOMES_ABSENT: &str = ". No outcome finds its prediction, so these numbers rest on outcomes that are \
    implied: fix that first";

/// The engine as it is during one dispatch.
pub struct Lookup<'e> {
    engine: &'e Topology,
    published: &'e Published,
    reports: OnceCell<HashMap<&'e StreamId, &'e StreamReport>>,
    wrong_partitions: OnceCell<Vec<WrongPartition>>,
    counters: OnceCell<Counters>,
    stopped: OnceCell<Vec<u16>>,
}

impl<'e> Lookup<'e> {
    /// A lookup that has read nothing yet.
    pub fn of(engine: &'e Topology, published: &'e Published) -> Lookup<'e> {
        Lookup {
            engine,
            published,
            reports: OnceCell::new(),
            wrong_partitions: OnceCell::new(),
            counters: OnceCell::new(),
            stopped: OnceCell::new(),
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

    /// The reasons to doubt the numbers of a stream, because outcomes do not find their
    /// predictions.
    pub fn caveats(&self, report: &StreamReport) -> String {
        let wrong = self
            .wrong_partitions
            .get_or_init(|| self.engine.wrong_partitions());
        let counters = self.counters.get_or_init(|| self.engine.counters());
        let stopped = self.stopped.get_or_init(|| stopped(self.published));
        let joins = self.engine.joins();
        caveats(
            &report.id.model,
            &report.windows,
            wrong,
            joins,
            counters,
            stopped,
        )
    }
}

/// Numbers of the sources of predictions whose outcomes have stopped.
fn stopped(published: &Published) -> Vec<u16> {
    let mut concerns = published.concerns();
    concerns.retain(|c| c.rule == "TruelineOutcomesStopped");
    let facts = published.facts();
    // Sources are published in the order of their numbers.
    let sources = (0..).zip(&facts.sources);
    let stopped = sources.filter(|(_, s)| concerns.iter().any(|c| c.source == s.name));
    stopped.map(|(number, _)| number).collect()
}

/// The reasons to doubt the numbers of a stream of `model`; empty if there are none. Only joins
/// that may serve the model count, and a join whose outcomes arrive gives no reason.
fn caveats(
    model: &str,
    windows: &[WindowReport],
    wrong: &[WrongPartition],
    joins: &[JoinPlan],
    counters: &Counters,
    stopped: &[u16],
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
    let never = matched == 0 && implied > ABSENT_MIN;
    let has_stopped =
        |j: &JoinPlan| j.missing.class().is_some() && stopped.contains(&j.predictions);
    if never || joins().any(has_stopped) || newest_is_implied(windows) {
        text.push_str(OUTCOMES_ABSENT);
    }
    text
}

/// Whether all outcomes of the shortest window are implied, although the longest window suggests
/// that some are not. A judge reads no outcomes, so this is its only sign.
fn newest_is_implied(windows: &[WindowReport]) -> bool {
    let mut covered = windows.iter().map(|w| w.coverage.as_deref());
    let Some(newest) = covered.next().flatten() else {
        return false;
    };
    let longest = covered.flatten().max_by_key(|c| c.predictions);
    let all = longest.unwrap_or(newest);
    let own = |c: &Coverage| c.predictions.saturating_sub(c.dropped + c.implied);
    let expected = newest.implied as f64 * own(all) as f64 / all.implied.max(1) as f64;
    let absent = own(all) == 0 && all.implied > ABSENT_MIN;
    own(newest) == 0 && (absent || expected >= EXPECTED_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::SourceCounters;
    use crate::collect::join::{Missing, Repeated};
    use crate::telemetry::facts::SourceFacts;
    use std::time::Duration;

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

    fn of_fraud(joins: &[JoinPlan], counters: &Counters) -> String {
        caveats("fraud", &[], &[], joins, counters, &[])
    }

    #[test]
    fn absent_outcomes_are_named_for_the_models_that_lack_them() {
        let (joins, mut counters) = two();
        counters.source_mut(0).implied = ABSENT_MIN + 1;
        counters.source_mut(2).implied = ABSENT_MIN + 1;
        counters.source_mut(3).matched = 1;
        let of = |model| caveats(model, &[], &[], &joins, &counters, &[]);
        assert_eq!(of("fraud"), OUTCOMES_ABSENT);
        assert_eq!(of("credit"), "");
        // No join serves this model, so its records carry their outcomes.
        assert_eq!(of("ads"), "");
    }

    #[test]
    fn outcomes_of_a_few_predictions_may_still_come() {
        let (joins, mut counters) = two();
        counters.source_mut(0).implied = ABSENT_MIN;
        assert_eq!(of_fraud(&joins, &counters), "");
    }

    #[test]
    fn a_join_of_any_model_may_serve_each() {
        let (mut joins, mut counters) = two();
        counters.source_mut(0).implied = ABSENT_MIN + 1;
        joins.push(join(4, 5, None));
        assert_eq!(of_fraud(&joins, &counters), OUTCOMES_ABSENT);
        counters.source_mut(5).matched = 1;
        assert_eq!(of_fraud(&joins, &counters), "");
    }

    #[test]
    fn outcomes_that_stop_are_named_where_they_are_implied() {
        let (mut joins, mut counters) = two();
        counters.source_mut(1).matched = 5000;
        let of = |joins: &[JoinPlan], stopped: &[u16]| {
            caveats("fraud", &[], &[], joins, &counters, stopped)
        };
        assert_eq!(of(&joins, &[0]), OUTCOMES_ABSENT);
        assert_eq!(of(&joins, &[2]), "");
        joins[0].missing = Missing::Drop;
        assert_eq!(of(&joins, &[0]), "");
    }

    #[test]
    fn a_source_whose_outcomes_stop_is_known_by_its_number() {
        let mut published = Published::default();
        let source = |name: &str, matched, implied| SourceFacts {
            name: name.to_owned(),
            outcomes: (name == "clicks").then(|| "labels".to_owned()),
            counters: SourceCounters {
                matched,
                implied,
                ..SourceCounters::default()
            },
            ..SourceFacts::default()
        };
        let publish = |published: &Published, matched, implied| {
            let all = ["other", "clicks", "labels"].map(|n| source(n, matched, implied));
            published.update(|facts| facts.sources = all.into());
        };
        for (minutes_later, matched) in [(0, 0), (5, 500), (4, 500)] {
            published.grow_older(Duration::from_secs(60 * minutes_later));
            publish(&published, matched, 0);
            published.observe_counts();
        }
        published.grow_older(Duration::from_secs(11 * 60));
        assert_eq!(stopped(&published), [0; 0]);
        publish(&published, 500, 100);
        assert_eq!(stopped(&published), [1]);
    }

    #[test]
    fn the_newest_data_are_implied_where_outcomes_would_be_expected() {
        let window = |labelled, implied| {
            let mut window = WindowReport::blank("5m");
            window.coverage = Some(Box::new(Coverage {
                predictions: labelled + implied,
                labelled,
                dropped: 0,
                implied,
                cells: Default::default(),
            }));
            window
        };
        let of = |all: &[(u64, u64)]| {
            let windows: Vec<_> = all.iter().map(|&(l, i)| window(l, i)).collect();
            newest_is_implied(&windows)
        };
        // One in a hundred has an outcome.
        assert!(of(&[(0, 1000), (500, 50_000)]));
        assert!(!of(&[(0, 999), (500, 50_000)]));
        assert!(!of(&[(1, 1000), (500, 50_000)]));
        // No prediction in any window has an outcome.
        assert!(of(&[(0, 100), (0, ABSENT_MIN + 1)]));
        assert!(!of(&[(0, ABSENT_MIN)]));
        assert!(!newest_is_implied(&[WindowReport::blank("5m")]));
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
        let of = |model| caveats(model, &[], &wrong, &joins, &counters, &[]);
        assert_eq!(of("fraud"), WRONG_PARTITION);
        assert_eq!(of("credit"), "");
    }
}
