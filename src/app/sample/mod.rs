//! A look at the records of the sources, for `trueline check --sample`.
//!
//! The sample joins no group, commits nothing and touches no state. If the records of a source
//! carry their outcomes, the newest records are read. If outcomes have records of their own, a
//! *block* of predictions is read that is old enough for its outcomes to have arrived, if the log
//! reaches back that far. Then outcomes are read from the block's time on, until each prediction
//! has its outcome, the log ends, or [`OUTCOMES_MAX`] outcomes were read. Predictions and outcomes
//! are matched by id over all partitions. So the sample sees outcomes that the service would not:
//! those in another partition and those after maturity.
//!
//! Records pass through the decoder and an engine with the whole configuration, so each ends as it
//! would in `run`: an unknown model or a wrong shape is found too.

mod facts;
mod join;
mod scarce;

pub use facts::{Decimals, Example, Lax, Reasons, SourceFacts, TopicFacts};
pub use join::{JoinFacts, SHARES, quantile};
pub use scarce::Scarce;

use crate::app::clock;
use crate::app::error::AppError;
use crate::app::ingest::record::RecordReader;
use crate::app::replay::stats::ReplayStats;
use crate::collect::join::JoinPlan;
use crate::config::{Config, Input, SourceOptions};
use crate::kafka::{self, Bound, KafkaOptions, OffsetBounds, RangeReader, Record, Span, Step};
use crate::monitor::{Engine, Plan};
use crate::registry::Registry;
use facts::Observer;
use join::Joins;
use std::sync::Arc;
use std::time::Duration;

/// Most records to search for the outcomes of the sampled predictions.
pub const OUTCOMES_MAX: i64 = 500_000;

/// Longest wait for the schema of a record.
const SCHEMA_WITHIN: Duration = Duration::from_secs(10);

/// How long before its prediction an outcome may arrive and still be found.
const EARLY_MS: i64 = 10 * 60 * 1000;

/// Reads about `records` records of each source, and then outcomes for them. Skips sources whose
/// name is `left_out`.
pub fn take(
    config: &Config,
    records: u32,
    left_out: impl Fn(&str) -> bool,
) -> Result<Vec<SourceFacts>, AppError> {
    let registry = config.registry.clone().map(Registry::new).transpose();
    let registry = registry.map_err(AppError::no_thread)?.map(Arc::new);
    let (mut base, mut all) = (0, Vec::new());
    for source in &config.sources {
        if source.input == Input::Http {
            return Err(AppError::Config(format!(
                "the events of source {} are posted, and there is no topic to read; post some with `?dry_run=1`, which \
                 checks them and stores nothing",
                source.name
            )));
        }
        if !left_out(&source.name) {
            let reader = RecordReader::new(source, base, registry.as_ref())?;
            let join = config.plan.joins.iter().find(|j| j.predictions == base);
            let sampler = Sampler::new(source, base, reader, &config.plan, join);
            let mut facts = sampler.run(i64::from(records))?;
            facts.find_lax(|model| Some(config.plan.serving(model)?.judge.evaluation.tolerance));
            facts.find_scarce(|model| config.plan.serving(model));
            facts.find_coverage_min(|model| Some(config.plan.serving(model)?.judge.coverage_min));
            all.push(facts);
        }
        base += source.topic_count();
    }
    Ok(all)
}

/// Reads the sample of one source.
struct Sampler<'a> {
    source: &'a SourceOptions,
    /// Number of the source's first topic over all sources.
    base: u16,
    reader: RecordReader,
    engine: Engine,
    join: Option<&'a JoinPlan>,
    facts: SourceFacts,
    joins: Joins,
}

impl<'a> Sampler<'a> {
    fn new(
        source: &'a SourceOptions,
        base: u16,
        reader: RecordReader,
        plan: &Plan,
        join: Option<&'a JoinPlan>,
    ) -> Sampler<'a> {
        Sampler {
            facts: SourceFacts::new(source),
            joins: Joins::new(join.is_some_and(|j| j.by_model)),
            engine: Engine::new(plan.clone()),
            source,
            base,
            reader,
            join,
        }
    }

    fn run(mut self, records: i64) -> Result<SourceFacts, AppError> {
        let apart = self.source.join.as_ref().map_or(0, |j| j.topics.len());
        let predictions = (self.source.kafka.topics.len() - apart) as u16;
        let now_ms = clock::now_ms();
        let of_predictions = self.topics(0..predictions);
        let Some(join) = self.join else {
            let spans = newest(&spans(&of_predictions, &Bound::Latest)?, records);
            self.read(&of_predictions, 0, spans, false)?;
            return Ok(self.facts);
        };
        // After twice the maturity, all outcomes that will come have come.
        let from_ms = now_ms.saturating_sub(join.maturity_ms.saturating_mul(2));
        let whole = newest(&spans(&of_predictions, &Bound::Latest)?, records);
        let block = spans(&of_predictions, &Bound::Time(from_ms))?;
        let block = block.into_iter().zip(whole).map(|(old, new)| Span {
            begin: old.begin.min(new.begin),
            ..old
        });
        let block: Vec<Span> = block.collect();
        let share = share_of_each(records, &block);
        self.read(&of_predictions, 0, oldest(block, share), false)?;
        if let Some(oldest_ms) = self.joins.oldest_ms() {
            let first = if apart > 0 { predictions } else { 0 };
            let of_outcomes = self.topics(first..self.source.topic_count());
            let scan = spans(&of_outcomes, &Bound::Time(oldest_ms - EARLY_MS))?;
            let share = share_of_each(OUTCOMES_MAX, &scan);
            let cut = scan.iter().any(|s| s.end - s.begin > share);
            let complete = self.read(&of_outcomes, first, oldest(scan, share), apart == 0)?;
            self.facts.join = Some(self.joins.facts(join, now_ms, cut && !complete));
        }
        Ok(self.facts)
    }

    /// The options of a client for some topics of the source.
    fn topics(&self, numbers: std::ops::Range<u16>) -> KafkaOptions {
        let range = usize::from(numbers.start)..usize::from(numbers.end);
        KafkaOptions {
            instance: None,
            dead_letter: None,
            copartitions: 0,
            topics: self.source.kafka.topics[range].to_vec(),
            ..self.source.kafka.clone()
        }
    }

    /// Reads the spans of topics. `first` is the number of the first topic in the source. With
    /// `again`, the records were read before and only their outcomes are used. Returns whether each
    /// prediction has its outcome at the end.
    fn read(
        &mut self,
        options: &KafkaOptions,
        first: u16,
        spans: Vec<Span>,
        again: bool,
    ) -> Result<bool, AppError> {
        for span in &spans {
            let topic = first + span.topic;
            self.facts.topics[usize::from(topic)].partitions += 1;
            self.engine
                .assign((self.base + topic, span.partition).into());
        }
        let mut reader = RangeReader::new(options, spans).map_err(AppError::of_kafka)?;
        while let Some(step) = reader.step().map_err(AppError::of_kafka)? {
            let Step::Record(owned) = step else {
                continue;
            };
            let record = owned.record();
            let topic = first + record.topic;
            self.record(&Record { topic, ..record }, again)?;
            if self.joins.complete() {
                return Ok(true);
            }
        }
        Ok(self.joins.complete())
    }

    fn record(&mut self, record: &Record<'_>, again: bool) -> Result<(), AppError> {
        self.reader.stats = Some(ReplayStats::default());
        let mut observer = Observer {
            engine: &mut self.engine,
            facts: &mut self.facts,
            joins: &mut self.joins,
            topic: usize::from(record.topic),
            again,
        };
        self.reader
            .read_within(&mut observer, record, SCHEMA_WITHIN)?;
        if !again {
            let rejected = self.reader.stats.take().map(|s| s.reasons);
            let facts = &mut self.facts.topics[usize::from(record.topic)];
            facts.record(record.timestamp_ms, rejected.unwrap_or_default());
        }
        Ok(())
    }
}

/// The span of every partition from `from` to its end; for [`Bound::Latest`], the whole partition.
fn spans(options: &KafkaOptions, from: &Bound) -> Result<Vec<Span>, AppError> {
    let to = vec![Bound::Latest; options.topics.len()];
    let from = if *from == Bound::Latest {
        &Bound::Earliest
    } else {
        from
    };
    kafka::resolve(options, from, &to, &mut OffsetBounds::new()).map_err(AppError::of_kafka)
}

/// The share of each partition that is not empty in this many records.
fn share_of_each(records: i64, spans: &[Span]) -> i64 {
    let filled = spans.iter().filter(|s| s.begin < s.end).count().max(1);
    (records / i64::try_from(filled).unwrap_or(1)).max(1)
}

/// The first `share` records of each span.
fn oldest(spans: Vec<Span>, share: i64) -> Vec<Span> {
    let first = |s: Span| Span {
        end: s.end.min(s.begin + share),
        ..s
    };
    spans.into_iter().map(first).collect()
}

/// The last records of each span.
fn newest(spans: &[Span], records: i64) -> Vec<Span> {
    let share = share_of_each(records, spans);
    let last = |s: &Span| Span {
        begin: s.begin.max(s.end - share),
        ..s.clone()
    };
    spans.iter().map(last).collect()
}
