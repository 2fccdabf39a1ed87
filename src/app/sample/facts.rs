//! What was seen of a source.

use super::join::{JoinFacts, Joins};
use super::scarce::{Scarce, Times};
use crate::collect::{Disposition, Event, Origin, OutcomeRecord, PartitionId, Reason};
use crate::config::SourceOptions;
use crate::decode::PredictionField;
use crate::judge::ModelPlan;
use crate::monitor::{Engine, PartitionEvent, RecordSink};
use crate::stats::tolerance::Tolerance;
use crate::stats::view::{Outcome, Prediction};
use std::collections::{BTreeMap, BTreeSet};

/// Most streams that are distinguished.
pub const STREAMS_MAX: usize = 10_000;

/// By reason, how many rows were rejected, with place and text of the first.
pub type Reasons = BTreeMap<&'static str, (u64, String)>;

/// What was seen of one topic.
#[derive(Debug, Default)]
pub struct TopicFacts {
    /// Its name.
    pub name: String,
    /// Number of its partitions.
    pub partitions: usize,
    /// Number of records read.
    pub records: u64,
    /// Rows that are predictions, with or without their outcome.
    pub events: u64,
    /// Rows that are outcomes alone.
    pub outcomes: u64,
    /// Rows that are rejected.
    pub rejected: Reasons,
    /// First and last Kafka timestamp.
    pub arrived_ms: Option<(i64, i64)>,
}

impl TopicFacts {
    /// Notes a record that was read, and its rejected rows.
    pub(super) fn record(&mut self, timestamp_ms: Option<i64>, rejected: Reasons) {
        self.records += 1;
        widen(&mut self.arrived_ms, timestamp_ms);
        for (reason, (rows, first)) in rejected {
            self.rejected.entry(reason).or_insert((0, first)).0 += rows;
        }
    }
}

/// One record, field by field.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// Topic, partition and offset.
    pub place: String,
    /// Name and value of each field.
    pub fields: Vec<(&'static str, String)>,
}

/// How scores are written: counts by number of decimals.
#[derive(Debug, Default, Clone, Copy)]
pub struct Decimals {
    /// Exactly 0 or 1.
    pub certain: u64,
    /// Between 0 and 1, with at most three decimals.
    pub few: u64,
    /// Between 0 and 1, with more decimals.
    pub many: u64,
}

impl Decimals {
    fn note(&mut self, score: f64) {
        // Scores in single precision differ this little from what was written.
        let rest = (1e3 * score - (1e3 * score).round()).abs();
        let count = match score {
            s if s <= 0.0 || s >= 1.0 => &mut self.certain,
            _ if rest < 1e-4 => &mut self.few,
            _ => &mut self.many,
        };
        *count += 1;
    }
}

/// A model with an absolute tolerance above the mean score of its rarer outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Lax {
    /// Its name.
    pub model: String,
    /// Its tolerance.
    pub tolerance: f64,
    /// The mean score of the rarer outcome.
    pub rare_mean: f64,
}

/// What was seen of one source.
#[derive(Debug, Default)]
pub struct SourceFacts {
    /// Its name.
    pub name: String,
    /// Its topics; topics of outcomes come last.
    pub topics: Vec<TopicFacts>,
    /// The first prediction, and the first outcome in a record of its own.
    pub examples: [Option<Example>; 2],
    /// Smallest and largest score; for vectors, of their largest entry.
    pub scores: Option<(f64, f64)>,
    /// How the scores are written.
    pub decimals: Decimals,
    /// How many scores each model has, and their sum.
    pub models: BTreeMap<String, (u64, f64)>,
    /// Models whose tolerance is more than the mean score of the rarer outcome.
    pub lax: Vec<Lax>,
    /// The event times of each model.
    pub times: BTreeMap<String, Times>,
    /// Models whose windows hold too little for a verdict.
    pub scarce: Vec<Scarce>,
    /// The smallest share of outcomes that a window of any of its models needs.
    pub coverage_min: f64,
    /// Whether predictions are vectors.
    pub vectors: bool,
    /// Names of the classes, if they have any.
    pub classes: Vec<String>,
    /// Rows with an outcome, by its class; without classes, 1 means that the event happened.
    pub outcomes: BTreeMap<u32, u64>,
    /// First and last event time of predictions.
    pub times_ms: Option<(i64, i64)>,
    /// For each prediction, how long after its event time it arrived, in ms.
    pub delays_ms: Vec<i64>,
    /// Predictions that do not count because an earlier one has the same id and other scores.
    pub conflicts: u64,
    /// The combinations of model, version and segment.
    pub streams: BTreeSet<(String, String, String)>,
    /// What was seen of outcomes in records of their own, if there are predictions that wait for
    /// them.
    pub join: Option<JoinFacts>,
}

impl SourceFacts {
    pub(super) fn new(source: &SourceOptions) -> SourceFacts {
        let topics = source.kafka.topics.iter().map(|name| TopicFacts {
            name: name.clone(),
            ..TopicFacts::default()
        });
        SourceFacts {
            name: source.name.clone(),
            topics: topics.collect(),
            vectors: !matches!(source.decode.prediction, PredictionField::Score(_)),
            classes: source.decode.classes.clone(),
            ..SourceFacts::default()
        }
    }

    fn event(&mut self, partition: PartitionId, place: impl FnOnce() -> String, event: &Event<'_>) {
        if self.examples[0].is_none() {
            self.examples[0] = Some(Example {
                place: place(),
                fields: fields_of(event, self),
            });
        }
        let score = match event.prediction {
            Prediction::Score(score) => {
                self.decimals.note(score);
                if self.models.len() < STREAMS_MAX || self.models.contains_key(event.model) {
                    let (n, sum) = self.models.entry(event.model.to_owned()).or_default();
                    (*n, *sum) = (*n + 1, *sum + score);
                }
                score
            }
            Prediction::Vector(all) => all.iter().copied().fold(0.0, f64::max),
        };
        let (low, high) = self.scores.unwrap_or((score, score));
        self.scores = Some((low.min(score), high.max(score)));
        if let Some(outcome) = event.outcome {
            self.outcome(outcome);
        }
        widen(&mut self.times_ms, Some(event.time_ms));
        if self.times.len() < STREAMS_MAX || self.times.contains_key(event.model) {
            let times = self.times.entry(event.model.to_owned()).or_default();
            times.note(partition, event.time_ms);
        }
        let delay = event.arrival_ms.map(|at| at.saturating_sub(event.time_ms));
        self.delays_ms.extend(delay);
        if self.streams.len() < STREAMS_MAX {
            let stream = [event.model, event.version, event.segment].map(str::to_owned);
            self.streams.insert(stream.into());
        }
    }

    /// Compares the tolerance of each model with its scores.
    pub(super) fn find_lax(&mut self, tolerance: impl Fn(&str) -> Option<Tolerance>) {
        let lax = self.models.iter().filter_map(|(model, (n, sum))| {
            let mean = sum / *n as f64;
            let rare_mean = mean.min(1.0 - mean);
            let tolerance = tolerance(model)?.resolve(rare_mean);
            let model = model.clone();
            (tolerance > rare_mean).then_some(Lax {
                model,
                tolerance,
                rare_mean,
            })
        });
        self.lax = lax.collect();
    }

    /// Compares the windows of each model with its rate and the mean of its scores.
    pub(super) fn find_scarce<'p>(&mut self, plan: impl Fn(&str) -> Option<&'p ModelPlan>) {
        let scarce = self.times.iter().filter_map(|(model, times)| {
            let mean = self.models.get(model).map(|(n, sum)| sum / *n as f64);
            let rare_mean = mean.map(|mean| mean.min(1.0 - mean));
            let rare_mean = rare_mean.filter(|rare| *rare > 0.0).unwrap_or(1.0);
            Scarce::of(model, plan(model)?, times.per_day()?, rare_mean)
        });
        self.scarce = scarce.collect();
    }

    /// Notes what the models of the predictions need.
    pub(super) fn find_coverage_min(&mut self, needs: impl Fn(&str) -> Option<f64>) {
        let needed = self.streams.iter().filter_map(|(model, ..)| needs(model));
        self.coverage_min = needed.reduce(f64::min).unwrap_or(0.0);
    }

    fn outcome(&mut self, outcome: Outcome) {
        *self.outcomes.entry(outcome.class()).or_default() += 1;
    }
}

fn widen(range: &mut Option<(i64, i64)>, ms: Option<i64>) {
    if let Some(ms) = ms {
        let (first, last) = range.unwrap_or((ms, ms));
        *range = Some((first.min(ms), last.max(ms)));
    }
}

fn fields_of(e: &Event<'_>, facts: &SourceFacts) -> Vec<(&'static str, String)> {
    let mut fields = vec![("model", e.model.to_owned())];
    let mut more = |name, value: String| {
        if !value.is_empty() {
            fields.push((name, value));
        }
    };
    more("version", e.version.to_owned());
    more("segment", e.segment.to_owned());
    more("id", String::from_utf8_lossy(e.id).into_owned());
    more("time", crate::report::moment::rfc3339(e.time_ms));
    match e.prediction {
        Prediction::Score(score) => more("score", score.to_string()),
        Prediction::Vector(all) => more("probabilities", format!("{all:?}")),
    }
    let outcome = e.outcome.map(|outcome| text_of(outcome, facts));
    more("outcome", outcome.unwrap_or_default());
    more(
        "weight",
        e.weight.map_or(String::new(), |w| w.value().to_string()),
    );
    if e.cluster.is_some() {
        more("cluster", "given".to_owned());
    }
    fields
}

fn text_of(outcome: Outcome, facts: &SourceFacts) -> String {
    match outcome {
        Outcome::Binary(true) => "1 (happened)".to_owned(),
        Outcome::Binary(false) => "0 (did not happen)".to_owned(),
        // An outcome in a record of its own does not say whether there are classes.
        Outcome::Class(class @ 0..=1) if !facts.vectors => {
            text_of(Outcome::Binary(class == 1), facts)
        }
        Outcome::Class(class) => match facts.classes.get(class as usize) {
            Some(name) => format!("class `{name}`"),
            None => format!("class number {class}, counted from 0"),
        },
    }
}

/// Notes decoded events and passes them to the engine.
pub(super) struct Observer<'a> {
    pub engine: &'a mut Engine,
    pub facts: &'a mut SourceFacts,
    pub joins: &'a mut Joins,
    /// Number of the record's topic in the source.
    pub topic: usize,
    /// The record was read before: only its outcomes are used.
    pub again: bool,
}

impl Observer<'_> {
    fn place(topic: &TopicFacts, origin: Origin) -> String {
        format!(
            "{}/{} offset {}",
            topic.name, origin.partition, origin.offset
        )
    }
}

impl RecordSink for Observer<'_> {
    fn observe(&mut self, origin: Origin, event: &Event<'_>) -> Disposition {
        if self.again {
            return Disposition::Replayed;
        }
        let disposition = self.engine.observe(origin, event);
        if matches!(disposition, Disposition::Rejected(_)) {
            return disposition;
        }
        self.facts.conflicts += u64::from(disposition == Disposition::Conflict);
        let topic = &mut self.facts.topics[self.topic];
        topic.events += 1;
        let place = Observer::place(topic, origin);
        self.facts.event(origin.partition_id(), || place, event);
        if event.outcome.is_none() {
            self.joins.prediction(origin.partition, event);
        }
        disposition
    }

    fn observe_outcome(&mut self, origin: Origin, record: &OutcomeRecord<'_>) -> Disposition {
        self.joins.outcome(origin.partition, record);
        if self.again {
            return Disposition::Replayed;
        }
        let topic = &mut self.facts.topics[self.topic];
        topic.outcomes += 1;
        if self.facts.examples[1].is_none() {
            self.facts.examples[1] = Some(Example {
                place: Observer::place(topic, origin),
                fields: vec![
                    ("id", String::from_utf8_lossy(record.id).into_owned()),
                    ("time", crate::report::moment::rfc3339(record.time_ms)),
                    ("outcome", text_of(record.outcome, self.facts)),
                ],
            });
        }
        self.facts.outcome(record.outcome);
        self.engine.observe_outcome(origin, record)
    }

    fn reject(&mut self, _: Origin, _: Option<i64>, reason: Reason) -> Disposition {
        Disposition::Rejected(reason)
    }

    fn next_row(&mut self, origin: Origin) {
        self.engine.next_row(origin);
    }

    fn on_partition(&mut self, _: PartitionId, _: PartitionEvent) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::JudgeOptions;
    use crate::window::{Ladder, WindowSpec};

    #[test]
    fn only_an_absolute_tolerance_above_the_rarer_outcome_is_lax() {
        let lax = |tolerance: &str, n, sum| {
            let mut facts = SourceFacts::default();
            facts.models.insert("m".to_owned(), (n, sum));
            facts.find_lax(|_| tolerance.parse().ok());
            facts.lax.len()
        };
        assert_eq!(lax("0.002", 1000, 1.0), 1);
        // The rarer outcome is the negative one.
        assert_eq!(lax("0.002", 1000, 999.0), 1);
        assert_eq!(lax("0.002", 1000, 3.0), 0);
        assert_eq!(lax("0.002 or 100%", 1000, 1.0), 0);
    }

    #[test]
    fn a_model_whose_windows_hold_too_little_is_scarce() {
        let mut plan = crate::app::testing::plan(JudgeOptions::plain()).models;
        let day = WindowSpec::time("24h", 86_400_000);
        plan[0].ladder = Ladder::new(vec![day.clone()], 0).unwrap();
        let by_count = [day, WindowSpec::last(20_000)];
        let of = |plan: &ModelPlan, per_day: i64, mean: f64| {
            let mut facts = SourceFacts::default();
            facts.models.insert("m".to_owned(), (1000, 1000.0 * mean));
            let times = facts.times.entry("m".to_owned()).or_default();
            let partition = PartitionId {
                source: 0,
                partition: 0,
            };
            (0..1000).for_each(|i| times.note(partition, i * (86_400_000 / per_day)));
            facts.find_scarce(|_| Some(plan));
            facts.scarce.pop()
        };
        let few = of(&plan[0], 40, 0.3).unwrap();
        assert!(
            (few.held - 40.0).abs() < 1.0 && few.needed() == 500.0,
            "{few:?}"
        );
        let rare = of(&plan[0], 4000, 0.999).unwrap();
        assert!((rare.needed() - 10_000.0).abs() < 2.0, "{rare:?}");
        assert_eq!(of(&plan[0], 4000, 0.01), None);
        plan[0].ladder = Ladder::new(by_count.to_vec(), 0).unwrap();
        assert_eq!(of(&plan[0], 40, 0.001), None);
    }

    #[test]
    fn an_outcome_of_its_own_is_of_the_kind_of_its_predictions() {
        let mut facts = SourceFacts::default();
        let text = |class, facts: &SourceFacts| text_of(Outcome::Class(class), facts);
        assert_eq!(text(0, &facts), "0 (did not happen)");
        assert_eq!(text(1, &facts), "1 (happened)");
        facts.vectors = true;
        assert_eq!(text(0, &facts), "class number 0, counted from 0");
        facts.classes = vec!["cat".to_owned()];
        assert_eq!(text(0, &facts), "class `cat`");
    }

    #[test]
    fn scores_are_told_apart_by_what_was_written() {
        let mut d = Decimals::default();
        for score in [0.0, 1.0, 0.29, f64::from(0.29f32), 0.999, 0.0015, 1.0 / 3.0] {
            d.note(score);
        }
        assert_eq!((d.certain, d.few, d.many), (2, 3, 2));
    }
}
