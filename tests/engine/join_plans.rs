//! Predictions that wait while the configuration changes around them: models that go or change
//! places, sources that begin or cease to be joined, topics in another order.

use crate::support::disk::{Disk, restore_joined};
use crate::support::records::{EVENT, JOIN};
use std::collections::BTreeMap;
use trueline::collect::join::JoinPlan;
use trueline::collect::{Disposition, Event, Origin, OutcomeRecord, Segmenting, SourceCounters};
use trueline::judge::JudgeOptions;
use trueline::monitor::{Engine, ModelPlan, Plan, RecordSink};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::window::{Ladder, WindowSpec};

const BEGIN_MS: i64 = 1_700_000_064_000;
const SECOND: i64 = 1000;

/// A model whose panes are of a second, and its lateness.
fn model(name: &str, lateness_ms: i64) -> ModelPlan {
    let windows = vec![WindowSpec::time("6s", 6 * SECOND)];
    ModelPlan {
        name: name.to_owned(),
        segmenting: Segmenting::default(),
        views: vec![View::Binary],
        classes: Vec::new(),
        ladder: Ladder::new(windows, lateness_ms).expect("a valid ladder"),
        grid: Grid::new(Axis::Linear, 6),
        judge: JudgeOptions::plain(),
    }
}

fn join(predictions: u16, outcomes: u16) -> JoinPlan {
    JoinPlan {
        predictions,
        outcomes,
        maturity_ms: 10 * SECOND,
        pending_max: 1000,
        ..JOIN
    }
}

fn plan(models: &[(&str, i64)], joins: &[(u16, u16)]) -> Plan {
    Plan {
        models: models
            .iter()
            .map(|(name, late)| model(name, *late))
            .collect(),
        joins: joins.iter().map(|(p, o)| join(*p, *o)).collect(),
        ..Plan::default()
    }
}

/// An engine that reads topics of one partition, with a disk for its journals.
struct Feed {
    engine: Engine,
    topics: Vec<String>,
    offsets: BTreeMap<String, i64>,
    disk: Disk,
}

impl Feed {
    fn new(plan: Plan, topics: &[&str]) -> Feed {
        let mut engine = Engine::new(plan);
        (0..topics.len()).for_each(|source| {
            engine.assign((source as u16, 0).into());
        });
        Feed {
            engine,
            topics: topics.iter().map(ToString::to_string).collect(),
            offsets: BTreeMap::new(),
            disk: Disk::default(),
        }
    }

    fn source(&self, topic: &str) -> u16 {
        self.topics
            .iter()
            .position(|t| t == topic)
            .expect("a topic") as u16
    }

    fn origin(&mut self, topic: &str) -> Origin {
        let next = self.offsets.entry(topic.to_owned()).or_default();
        *next += 1;
        let offset = *next - 1;
        Origin {
            source: self.source(topic),
            partition: 0,
            offset,
        }
    }

    fn predict(&mut self, topic: &str, model: &str, id: u32, second: i64) -> Disposition {
        let origin = self.origin(topic);
        let joined = self
            .engine
            .plan()
            .joins
            .iter()
            .any(|j| j.predictions == origin.source);
        let event = Event {
            model,
            id: &id.to_le_bytes(),
            time_ms: BEGIN_MS + second * SECOND,
            prediction: Prediction::Score(0.5),
            outcome: (!joined).then_some(Outcome::Binary(true)),
            ..EVENT
        };
        let end = self.engine.observe(origin, &event);
        self.conserved();
        end
    }

    fn happen(&mut self, topic: &str, model: Option<&str>, id: u32, second: i64) -> Disposition {
        let origin = self.origin(topic);
        let record = OutcomeRecord {
            model,
            id: &id.to_le_bytes(),
            time_ms: BEGIN_MS + second * SECOND,
            arrival_ms: None,
            outcome: Outcome::Binary(true),
        };
        let end = self.engine.observe_outcome(origin, &record);
        self.conserved();
        end
    }

    /// Snapshot, journals and all, and a new engine from it under another plan, in which the topics
    /// are numbered so.
    fn restart(&mut self, plan: Plan, topics: &[&str]) {
        self.disk.append(self.engine.take_journals());
        let mut snapshot = self.engine.snapshot();
        snapshot.topics.clone_from(&self.topics);
        let topics: Vec<String> = topics.iter().map(ToString::to_string).collect();
        self.topics = snapshot.rebind(&topics);
        let segments = self.disk.segments(&snapshot);
        self.engine = restore_joined(plan, snapshot, &segments);
        (0..topics.len()).for_each(|source| {
            self.engine.assign((source as u16, 0).into());
        });
        self.conserved();
    }

    fn counts(&self, topic: &str) -> SourceCounters {
        self.engine.counters().source(self.source(topic))
    }

    fn conserved(&self) {
        for (source, c) in self.engine.counters().sources() {
            assert_eq!(c.records, c.disposed(), "source {source}: {c:?}");
        }
    }

    /// Moves the watermark of all models far on: whatever waits has its end.
    fn end(&mut self, predictions: &[(&str, &str)]) {
        for (topic, model) in predictions {
            self.predict(topic, model, u32::MAX, 1000);
        }
        self.engine.finish();
        self.conserved();
        let total = self.engine.counters().total();
        assert_eq!((total.pending, total.waiting), (0, 0), "{total:?}");
        assert_eq!(self.engine.shard().retained(), 0);
    }
}

const TWO: [&str; 2] = ["p", "o"];
const PO: [(u16, u16); 1] = [(0, 1)];

#[test]
fn outcomes_wait_on_when_the_model_that_they_name_goes_and_when_others_go_before_it() {
    let before = [("*", 1000), ("a", 1000), ("b", 1000), ("c", 1000)];
    let after: [&[(&str, i64)]; 4] = [
        &before[..1],
        &[before[0], before[2], before[3]],
        &[before[0], before[3], before[2]],
        &[before[3], before[1]],
    ];
    for models in after {
        let mut feed = Feed::new(plan(&before, &PO), &TWO);
        for (id, (name, _)) in (0u32..).zip(before) {
            feed.predict("p", name, 100 + id, 0);
            assert_eq!(feed.happen("o", Some(name), id, 1), Disposition::Waiting);
        }
        feed.restart(plan(models, &PO), &TWO);
        assert_eq!(feed.counts("o").waiting, 4);
        // And again: what the first restart made of them is in the journal.
        feed.restart(plan(models, &PO), &TWO);
        assert_eq!(feed.counts("o").waiting, 4);
        let serves = |name: &str| models.iter().any(|(n, _)| [name, "*"].contains(n));
        for (id, (name, _)) in (0u32..).zip(before).filter(|(_, (n, _))| serves(n)) {
            feed.predict("p", name, id, 1);
        }
        let served = before.iter().filter(|(n, _)| serves(n)).count() as u64;
        assert_eq!(feed.counts("o").matched, served);
        feed.end(&[("p", models[0].0)]);
        assert_eq!(feed.counts("o").orphaned, 4 - served);
    }
}

#[test]
fn predictions_of_a_stream_that_another_model_watches_now_are_dropped_and_count_in_no_other() {
    let (before, after) = ([("*", 1000)], [("*", 1000), ("m", 1000)]);
    let mut feed = Feed::new(plan(&before, &PO), &TWO);
    for id in 0..3 {
        assert_eq!(feed.predict("p", "m", id, 0), Disposition::Pending);
    }
    feed.restart(plan(&after, &PO), &TWO);
    let said = feed.engine.dropped().join("\n");
    assert!(
        said.contains("predictions of *") && said.contains("another [[model]]"),
        "{said}"
    );
    assert_eq!((feed.counts("p").pending, feed.counts("p").expired), (0, 3));
    // A stream begins in the slot that the other had.
    assert_eq!(feed.predict("p", "m", 3, 1), Disposition::Pending);
    feed.restart(plan(&after, &PO), &TWO);
    assert_eq!(feed.counts("p").pending, 1);
    assert_eq!(feed.happen("o", None, 3, 2), Disposition::Matched);
    feed.end(&[("p", "m")]);
    assert_eq!(
        (feed.counts("p").observed, feed.counts("p").expired),
        (1, 4)
    );
}

#[test]
fn an_outcome_is_not_orphaned_by_the_watermark_of_a_model_that_took_the_place_of_its_own() {
    let (slow, quick) = (("slow", 60_000), ("quick", 1000));
    let mut feed = Feed::new(plan(&[quick, slow], &PO), &TWO);
    feed.predict("p", "slow", 100, 0);
    assert_eq!(feed.happen("o", Some("slow"), 1, 1), Disposition::Waiting);
    // The watermark of the quick one passes, that of the slow one does not.
    feed.predict("p", "quick", 101, 30);
    feed.happen("o", Some("quick"), 101, 30);
    feed.engine.tick(0);
    assert_eq!(feed.counts("o").waiting, 1);
    feed.restart(plan(&[slow, quick], &PO), &TWO);
    feed.restart(plan(&[slow, quick], &PO), &TWO);
    assert_eq!(feed.counts("o").waiting, 1);
    assert_eq!(feed.predict("p", "slow", 1, 1), Disposition::Pending);
    assert_eq!(feed.counts("o").matched, 2);
    feed.end(&[("p", "slow")]);
}

const MODEL: [(&str, i64); 1] = [("*", 1000)];

#[test]
fn a_source_that_begins_to_be_joined_takes_nothing_of_the_one_behind_it() {
    let topics = ["a", "b", "bo"];
    let mut feed = Feed::new(plan(&MODEL, &[(1, 2)]), &topics);
    feed.predict("a", "m", 1, 0);
    for id in 0..5 {
        assert_eq!(feed.predict("b", "m", id, 0), Disposition::Pending);
    }
    assert_eq!(feed.happen("bo", None, 77, 1), Disposition::Waiting);
    // Predictions and outcomes of `a` come in one topic: the topics stay as they are.
    let both = || plan(&MODEL, &[(0, 0), (1, 2)]);
    feed.restart(both(), &topics);
    assert!(
        feed.engine.dropped().is_empty(),
        "{:?}",
        feed.engine.dropped()
    );
    assert_eq!((feed.counts("b").pending, feed.counts("a").pending), (5, 0));
    assert_eq!(feed.predict("a", "m", 50, 1), Disposition::Pending);
    assert_eq!(feed.happen("a", None, 50, 2), Disposition::Matched);
    assert_eq!(feed.happen("bo", None, 3, 2), Disposition::Matched);
    feed.restart(both(), &topics);
    assert_eq!((feed.counts("b").pending, feed.counts("a").pending), (5, 1));
    feed.end(&[("a", "m"), ("b", "m")]);
    let (a, b) = (feed.counts("a"), feed.counts("b"));
    assert_eq!((a.observed, b.observed), (2, 1));
    assert_eq!((a.expired, b.expired), (1, 5), "the last of each, and four");
}

#[test]
fn a_source_that_is_no_longer_joined_loses_what_waited_and_says_so() {
    let topics = ["a", "b", "bo"];
    let mut feed = Feed::new(plan(&MODEL, &[(0, 0), (1, 2)]), &topics);
    for id in 0..3 {
        feed.predict("a", "m", id, 0);
        feed.predict("b", "m", id, 0);
        feed.predict("b", "m", 10 + id, 0);
    }
    feed.happen("a", None, 99, 0);
    feed.restart(plan(&MODEL, &[(1, 2)]), &topics);
    let said = feed.engine.dropped();
    assert!(said.len() == 1 && said[0].contains("a/0"), "{said:?}");
    let (a, b) = (feed.counts("a"), feed.counts("b"));
    assert_eq!((a.pending, a.expired, a.waiting, a.orphaned), (0, 3, 0, 1));
    assert_eq!((b.pending, b.expired), (6, 0));
    // Joined again, it starts empty, and its journals are not those of `b`.
    feed.restart(plan(&MODEL, &[(1, 2)]), &topics);
    assert_eq!(feed.counts("b").pending, 6);
    feed.disk.0.retain(|at, _| at.0 == 1);
    feed.restart(plan(&MODEL, &[(0, 0), (1, 2)]), &topics);
    feed.predict("a", "m", 7, 1);
    feed.restart(plan(&MODEL, &[(0, 0), (1, 2)]), &topics);
    assert_eq!((feed.counts("a").pending, feed.counts("b").pending), (1, 6));
    feed.end(&[("a", "m"), ("b", "m")]);
}

#[test]
fn predictions_that_wait_follow_their_topics_into_another_order() {
    let mut feed = Feed::new(plan(&MODEL, &[(0, 1), (2, 3)]), &["a", "ao", "b", "bo"]);
    for id in 0..4 {
        feed.predict("a", "m", id, 0);
        feed.predict("b", "m", id, 0);
    }
    feed.happen("ao", None, 20, 1);
    let order = ["c", "b", "bo", "a", "ao"];
    for _ in 0..2 {
        feed.restart(plan(&MODEL, &[(1, 2), (3, 4)]), &order);
        assert!(feed.engine.dropped().is_empty());
        assert_eq!((feed.counts("a").pending, feed.counts("b").pending), (4, 4));
        assert_eq!(feed.counts("ao").waiting, 1);
    }
    assert_eq!(feed.happen("ao", None, 1, 2), Disposition::Matched);
    assert_eq!(feed.happen("bo", None, 2, 2), Disposition::Matched);
    assert_eq!(feed.predict("a", "m", 20, 1), Disposition::Pending);
    feed.end(&[("a", "m"), ("b", "m")]);
    assert_eq!(
        (feed.counts("a").observed, feed.counts("b").observed),
        (2, 1)
    );
}

#[test]
fn a_join_with_another_outcome_topic_starts_over_and_says_so() {
    let topics = ["a", "b", "bo"];
    let mut feed = Feed::new(plan(&MODEL, &[(1, 2)]), &topics);
    feed.predict("b", "m", 1, 0);
    feed.happen("bo", None, 9, 0);
    feed.restart(plan(&MODEL, &[(1, 1)]), &topics);
    assert_eq!(feed.engine.dropped().len(), 1);
    assert_eq!(
        (feed.counts("b").expired, feed.counts("bo").orphaned),
        (1, 1)
    );
    feed.predict("b", "m", 2, 1);
    assert_eq!(feed.happen("b", None, 2, 1), Disposition::Matched);
    feed.restart(plan(&MODEL, &[(1, 1)]), &topics);
    feed.end(&[("b", "m"), ("a", "m")]);
}

/// Predictions of half a minute with their outcomes, and as many outcomes without a prediction, of
/// which some were orphaned.
fn with_orphans() -> Feed {
    let mut feed = Feed::new(plan(&[("m", 0)], &[(0, 1)]), &["a", "ao"]);
    for second in 0..30 {
        feed.predict("a", "m", second as u32, second);
        // Each has a twin without a prediction.
        feed.happen("ao", None, second as u32, second);
        feed.happen("ao", None, 1000 + second as u32, second);
    }
    feed
}

#[test]
fn outcomes_that_were_orphaned_and_come_back_at_a_start_take_no_room_of_others() {
    let mut feed = with_orphans();
    let waiting = feed.counts("ao").waiting;
    let mut after = plan(&[("m", 2 * SECOND)], &[(0, 1)]);
    after.joins[0].pending_max = 40;
    feed.restart(after, &["a", "ao"]);
    for id in 0..40 {
        let waits = feed.happen("ao", None, 2000 + id, 29) == Disposition::Waiting;
        assert_eq!(waits, u64::from(id) + waiting < 40, "{id}");
    }
    feed.end(&[("a", "m")]);
}

#[test]
fn outcomes_that_were_orphaned_stay_so_where_the_panes_of_their_model_are_others() {
    let after = || plan(&[("m", 2 * SECOND)], &[(0, 1)]);
    let (mut feed, topics) = (with_orphans(), ["a", "ao"]);
    let counts = feed.counts("ao");
    assert!(counts.orphaned > 5 && counts.waiting > 5, "{counts:?}");
    // The second start knows no watermark of either plan, and the journals still hold what the
    // first dropped.
    for _ in 0..2 {
        feed.restart(after(), &topics);
        let now = feed.counts("ao");
        assert_eq!(
            (now.orphaned, now.waiting),
            (counts.orphaned, counts.waiting)
        );
    }
    for second in 30..70 {
        feed.predict("a", "m", second as u32, second);
        feed.happen("ao", None, second as u32, second);
    }
    feed.end(&[("a", "m")]);
    let end = feed.counts("ao");
    assert_eq!((end.waiting, end.orphaned), (0, 30));
}

#[test]
fn outcomes_that_name_no_model_do_not_wait_for_a_model_with_a_source_of_its_own() {
    let topics = ["p", "o", "sp", "so"];
    let beside = || {
        let mut plan = plan(&[("m", 1000), ("slow", 1000)], &[(0, 1), (2, 3)]);
        plan.joins[1].model = Some("slow".to_owned());
        plan.joins[1].maturity_ms = 3600 * SECOND;
        plan
    };
    let mut feed = Feed::new(beside(), &topics);
    let second = |feed: &mut Feed, second: i64| {
        let id = second as u32;
        feed.predict("p", "m", id, second);
        feed.happen("o", None, 1000 + id, second);
        feed.predict("sp", "slow", id, second);
        feed.happen("so", None, id, second);
    };
    (0..60).for_each(|s| second(&mut feed, s));
    // The watermark of `m` is a second of lateness and ten of maturity behind: at 48 s.
    for _ in 0..2 {
        let counts = feed.counts("o");
        assert_eq!((counts.orphaned, counts.waiting), (48, 12));
        feed.restart(beside(), &topics);
    }
    // Predictions of the slow one may come here too: while they wait, outcomes wait for them.
    feed.predict("p", "slow", 7000, 60);
    (60..120).for_each(|s| second(&mut feed, s));
    for _ in 0..2 {
        let counts = feed.counts("o");
        assert_eq!((counts.orphaned, counts.waiting), (48, 72));
        feed.restart(beside(), &topics);
    }
    feed.end(&[("p", "m")]);
}

#[test]
fn the_journal_of_a_join_is_not_kept_for_models_that_come_from_elsewhere() {
    const DAY: i64 = 86_400 * SECOND;
    const CLASSES: u32 = 100;
    let mut plan = plan(&[("m", 1000), ("slow", 1000)], &[(0, 1), (2, 3)]);
    plan.models[0].views = (0..CLASSES).map(View::Class).collect();
    plan.models[0].classes = (0..CLASSES).map(|k| k.to_string()).collect();
    let wide = vec![WindowSpec::time("6d", 6 * DAY)];
    plan.models[1].ladder = Ladder::new(wide, 1000).expect("a valid ladder");
    for (join, name) in plan.joins.iter_mut().zip(["m", "slow"]) {
        join.model = Some(name.to_owned());
        join.pending_max = 100_000;
    }
    plan.joins[1].maturity_ms = 45 * DAY;
    let mut engine = Engine::new(plan.clone());
    let p = [1.0 / f64::from(CLASSES); CLASSES as usize];
    for i in 0..60_000 {
        let origin = Origin {
            source: 0,
            partition: 0,
            offset: i,
        };
        let event = Event {
            id: &i.to_le_bytes(),
            time_ms: BEGIN_MS + i,
            prediction: Prediction::Vector(&p),
            ..EVENT
        };
        assert_eq!(engine.observe(origin, &event), Disposition::Pending);
    }
    assert_eq!(engine.shard().retained(), 12_000, "from 48 s on");
    let mut disk = Disk::default();
    disk.append(engine.take_journals());
    let snapshot = engine.snapshot();
    // 1237 bytes each, 27,126 in a segment of 32 MiB: the first one ends at 27 s, the next at 54 s.
    let marks = snapshot.joins[0].marks.iter().map(|m| m.segment);
    assert_eq!(marks.collect::<Vec<_>>(), [1, 2]);
    let segments = disk.segments(&snapshot);
    let back = restore_joined(plan, snapshot, &segments);
    assert_eq!(back.shard().retained(), engine.shard().retained());
    assert_eq!(back.counters(), engine.counters());
}
