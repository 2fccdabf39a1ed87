//! Replays a range of topics in event time.
//!
//! All sources of the configuration are read as in `run`, with their formats and joins, by a client
//! that joins no group and commits nothing. The records come in one fixed order ([`RangeReader`]),
//! so a range always gives the same result, bit for bit. If the schema of a record is not known
//! yet, the replay waits for it.
//!
//! A range that ends at a time ends there for predictions. Their outcomes are read further, until
//! the last prediction is mature or the topic ends. Predictions that are not mature by then stay
//! pending.

use std::sync::Arc;
use std::time::Duration;

use super::session::{Listeners, Progress, Session, Tally};
use crate::app::error::AppError;
use crate::app::ingest::record::RecordReader;
use crate::app::replay::stats::ReplayStats;
use crate::config::{Config, Input};
use crate::kafka::{self, Bound, Gap, KafkaOptions, OffsetBounds, RangeReader, Record, Span, Step};
use crate::monitor::{Engine, PartitionEvent, Plan, RecordSink};
use crate::registry::Registry;

/// Longest wait for the schema of a record.
const SCHEMA_WITHIN: Duration = Duration::from_secs(60);

/// The range of topics to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The start.
    pub from: Bound,
    /// The end, exclusive.
    pub to: Bound,
    /// Whether to replay the rest if retention has deleted a part of the range.
    pub incomplete: bool,
}

pub(super) fn replay(
    config: Config,
    range: &Range,
    seen: &mut OffsetBounds,
    listeners: Listeners<'_>,
    progress: Progress<'_>,
) -> Result<(Engine, Tally), AppError> {
    let (options, to) = wanted(&config, range)?;
    let spans = kafka::resolve(&options, &range.from, &to, seen).map_err(AppError::of_kafka)?;
    let size = |s: &Span| (s.end - s.begin).unsigned_abs();
    let total = spans.iter().map(size).sum();
    let offsets = spans.iter();
    let offsets = offsets.map(|s| (format!("{}/{}", s.name, s.partition), (s.begin, s.end)));
    let offsets = offsets.collect();
    let mut reader = RangeReader::new(&options, spans.clone()).map_err(AppError::of_kafka)?;
    let gaps: Vec<String> = reader.gaps().iter().map(Gap::to_string).collect();
    if !range.incomplete && !gaps.is_empty() {
        return Err(AppError::Data(format!(
            "the range starts before the remaining records of the topics:\n  {}\nstart later, or give --incomplete \
             to replay what remains",
            gaps.join("\n  ")
        )));
    }
    let mut replay = TopicReplay::new(config, &spans, listeners)?;
    replay.run(&mut reader, &|done| progress(done, total))?;
    let (engine, mut tally) = replay.finish();
    tally.offsets = offsets;
    tally.gaps = gaps;
    Ok((engine, tally))
}

/// The options of one client for the topics of all sources, and the end of each topic.
fn wanted(config: &Config, range: &Range) -> Result<(KafkaOptions, Vec<Bound>), AppError> {
    let Some(first) = config.sources.first() else {
        let why = "the configuration has no [[source]] whose topics could be read";
        return Err(AppError::Config(why.to_owned()));
    };
    if let Some(posted) = config.sources.iter().find(|s| s.input == Input::Http) {
        let name = &posted.name;
        return Err(AppError::Config(format!(
            "the events of source {name} are posted, and no topic has them; `run --from` reads its log again"
        )));
    }
    let topics = config.sources.iter().flat_map(|s| s.kafka.topics.clone());
    let topics: Vec<String> = topics.collect();
    if let Some(unread) = unread(range, &topics) {
        return Err(AppError::Config(format!(
            "topic {unread} of the range is not in the configuration, which has {}",
            topics.join(", ")
        )));
    }
    let longest = config.sources.iter().map(|s| s.kafka.record_bytes_max);
    let options = KafkaOptions {
        record_bytes_max: longest.max().unwrap_or(first.kafka.record_bytes_max),
        instance: None,
        dead_letter: None,
        copartitions: 0,
        topics,
        ..first.kafka.clone()
    };
    let to = (0..options.topics.len()).map(|number| end_of(number as u16, &config.plan, range));
    let to = to.collect();
    Ok((options, to))
}

/// A topic of the bounds that is not in `topics`.
fn unread<'r>(range: &'r Range, topics: &[String]) -> Option<&'r str> {
    let named = [&range.from, &range.to]
        .into_iter()
        .filter_map(|b| match b {
            Bound::Offsets(all) => Some(all.keys().map(|(topic, _)| topic.as_str())),
            _ => None,
        });
    let mut named = named.flatten();
    named.find(|name| !topics.iter().any(|t| t == name))
}

/// The end of a topic: outcomes are read until the last prediction is mature.
fn end_of(number: u16, plan: &Plan, range: &Range) -> Bound {
    let apart =
        |j: &&crate::collect::join::JoinPlan| j.outcomes == number && j.predictions != j.outcomes;
    let maturity_ms = plan.joins.iter().find(apart).map(|j| j.maturity_ms);
    match (&range.to, maturity_ms) {
        (Bound::Time(ms), Some(maturity_ms)) => {
            let more = maturity_ms.saturating_add(plan.lateness_ms());
            Bound::Time(ms.saturating_add(more))
        }
        (to, _) => to.clone(),
    }
}

struct TopicReplay<'a> {
    session: Session<'a>,
    sources: Vec<RecordReader>,
}

impl<'a> TopicReplay<'a> {
    fn new(
        config: Config,
        spans: &[Span],
        listeners: Listeners<'a>,
    ) -> Result<TopicReplay<'a>, AppError> {
        let registry = config.registry.map(Registry::new).transpose();
        let registry = registry.map_err(AppError::no_thread)?.map(Arc::new);
        let mut session = Session::new(config.plan, config.threads, listeners)?;
        for span in spans {
            session.engine.assign((span.topic, span.partition).into());
        }
        let (mut base, mut sources) = (0, Vec::new());
        for source in &config.sources {
            let mut records = RecordReader::new(source, base, registry.as_ref())?;
            records.stats = Some(ReplayStats::default());
            sources.push(records);
            base += source.topic_count();
        }
        Ok(TopicReplay { session, sources })
    }

    fn run(&mut self, reader: &mut RangeReader, progress: &dyn Fn(u64)) -> Result<(), AppError> {
        while let Some(step) = reader.step().map_err(AppError::of_kafka)? {
            match step {
                Step::End(p) => {
                    let id = (p.topic, p.partition).into();
                    self.session.engine.on_partition(id, PartitionEvent::Ended);
                }
                Step::Record(record) => self.take(&record.record())?,
            }
            if self.session.due() {
                let stats = self.sources.iter().filter_map(|s| s.stats.as_ref());
                self.session.tick(stats.filter_map(|s| s.newest_ms).max());
                progress(self.session.records);
            }
        }
        Ok(())
    }

    /// Counts one record, after waiting for its schema if necessary.
    fn take(&mut self, record: &Record<'_>) -> Result<(), AppError> {
        self.session.records += 1;
        let id = (record.topic, record.partition).into();
        let local = |records: &RecordReader| records.partition(id).map(|p| p.topic);
        let mut sources = self.sources.iter_mut();
        let Some((topic, source)) = sources.find_map(|s| Some((local(s)?, s))) else {
            return Ok(());
        };
        let record = Record { topic, ..*record };
        let engine = &mut self.session.engine;
        source.read_within(engine, &record, SCHEMA_WITHIN)
    }

    fn finish(self) -> (Engine, Tally) {
        let stats = self.sources.into_iter().filter_map(|s| s.stats);
        let stats = stats.reduce(ReplayStats::merged);
        self.session.finish(stats.unwrap_or_default())
    }
}
