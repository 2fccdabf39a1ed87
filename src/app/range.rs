//! Ranges of topics through the engine, in event time: a replay of what lies in the broker.
//!
//! All sources of the configuration are read as `run` reads them, with their formats and joins, by a client
//! that joins no group and commits nothing. The records come in one order ([`RangeReader`]), so the same
//! range says the same, bit for bit; a record whose schema is not at hand is waited for and not passed.
//!
//! A range that ends at a time ends there for predictions; their outcomes are read on until the last of them
//! is mature, as far as the topic goes. What is not mature by then stays pending.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::engine::{Engine, Plan};
use super::engines::Engines;
use super::fault::Fault;
use super::intake::Intake;
use super::passage::{Progress, STRIDE, conclude};
use super::setup::Source;
use super::witness::{Tally, Witness};
use crate::config::Config;
use crate::judge::Change;
use crate::kafka::{
    self, Bound, Gap, Handler, KafkaError, KafkaOptions, Partition, RangeReader, Record, Span,
    Step, Watermarks,
};
use crate::registry::Registry;

/// How long the schema of a record is waited for.
const SCHEMA: Duration = Duration::from_secs(60);

/// From where to where topics are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The begin.
    pub from: Bound,
    /// The end, which is not read any more.
    pub to: Bound,
    /// Whether to go on where retention has deleted a part of it.
    pub incomplete: bool,
}

/// See [`super::replay::replay`].
pub(super) fn replay(
    config: Config,
    range: &Range,
    seen: &mut Watermarks,
    told: &mut dyn FnMut(&Change),
    progress: Progress<'_>,
) -> Result<(Engine, Tally), Fault> {
    let (options, to) = wanted(&config, range)?;
    let spans = kafka::resolve(&options, &range.from, &to, seen).map_err(fault)?;
    let size = |s: &Span| (s.end - s.begin).unsigned_abs();
    let total = spans.iter().map(size).sum();
    let offsets = spans.iter();
    let offsets = offsets.map(|s| (format!("{}/{}", s.name, s.partition), (s.begin, s.end)));
    let offsets = offsets.collect();
    let mut reader = RangeReader::new(&options, spans.clone()).map_err(fault)?;
    let gaps: Vec<String> = reader.gaps().iter().map(Gap::to_string).collect();
    if !range.incomplete && !gaps.is_empty() {
        return Err(Fault::Data(format!(
            "the range begins before what is left of the topics:\n  {}\nbegin later, or give --incomplete to go \
             on with what is left",
            gaps.join("\n  ")
        )));
    }
    let mut pass = Pass::new(config, &spans)?;
    pass.run(&mut reader, told, &|done| progress(done, total))?;
    let (mut engine, witness) = pass.ended()?;
    conclude(&mut engine, witness.outcomes > 0, told);
    let mut tally = Tally::of(engine.counters(), witness);
    tally.offsets = offsets;
    tally.gaps = gaps;
    Ok((engine, tally))
}

/// One client's options for the topics of all sources, and where each topic ends.
fn wanted(config: &Config, range: &Range) -> Result<(KafkaOptions, Vec<Bound>), Fault> {
    let Some(first) = config.sources.first() else {
        let why = "the configuration has no [[source]] whose topics could be read";
        return Err(Fault::Config(why.to_owned()));
    };
    let topics = config.sources.iter().flat_map(|s| s.kafka.topics.clone());
    let topics: Vec<String> = topics.collect();
    if let Some(unread) = unread(range, &topics) {
        return Err(Fault::Config(format!(
            "topic {unread} of the range is none of the configuration's: {}",
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

/// A topic of the bounds that is not one of `topics`.
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

/// Where the range of a topic ends: outcomes are read on until the last prediction is mature.
fn end_of(number: u16, plan: &Plan, range: &Range) -> Bound {
    let apart =
        |j: &&crate::collect::join::JoinPlan| j.outcomes == number && j.predictions != j.outcomes;
    let maturity_ms = plan.joins.iter().find(apart).map(|j| j.maturity_ms);
    match (&range.to, maturity_ms) {
        (Bound::Time(ms), Some(maturity_ms)) => {
            let lateness = plan.models.iter().map(|m| m.ladder.lateness_ms);
            let more = maturity_ms.saturating_add(lateness.max().unwrap_or(0));
            Bound::Time(ms.saturating_add(more))
        }
        (to, _) => to.clone(),
    }
}

fn fault(error: KafkaError) -> Fault {
    match error {
        KafkaError::Unreachable { brokers, detail } => Fault::Unavailable(format!(
            "no kafka broker answers at `{brokers}` ({detail}); check `brokers` and the network"
        )),
        KafkaError::Option { .. } | KafkaError::Topic { .. } => Fault::Config(error.to_string()),
        _ => Fault::Unavailable(error.to_string()),
    }
}

/// A replay of topics on its way.
struct Pass {
    engines: Engines,
    intakes: Vec<Intake>,
    records: u64,
}

impl Pass {
    fn new(config: Config, spans: &[Span]) -> Result<Pass, Fault> {
        let registry = match config.registry {
            None => None,
            Some(options) => Some(Arc::new(Registry::new(options).map_err(|error| {
                Fault::Unavailable(format!("cannot start a thread: {error}"))
            })?)),
        };
        let mut engine = Engine::new(config.plan);
        for span in spans {
            engine.assign(span.topic, span.partition);
        }
        let (mut base, mut intakes) = (0, Vec::new());
        for source in config.sources.into_iter().map(Source::from) {
            let mut intake = Intake::of(&source, base, registry.as_ref())?;
            intake.witness = Some(Witness::default());
            base += source.kafka.topics.len() as u16;
            intakes.push(intake);
        }
        Ok(Pass {
            engines: Engines::Whole(Box::new(engine)),
            intakes,
            records: 0,
        })
    }

    fn run(
        &mut self,
        reader: &mut RangeReader,
        told: &mut dyn FnMut(&Change),
        progress: &dyn Fn(u64),
    ) -> Result<(), Fault> {
        while let Some(step) = reader.step().map_err(fault)? {
            match step {
                Step::End(partition) => self.end(partition),
                Step::Record(record) => self.take(&record.record())?,
            }
            if self.records.is_multiple_of(STRIDE) && self.records > 0 {
                let newest_ms = self.intakes.iter().filter_map(|i| i.newest_ms()).max();
                let changes = self.engines.tick(newest_ms.unwrap_or(i64::MIN));
                changes.iter().for_each(&mut *told);
                progress(self.records);
            }
        }
        Ok(())
    }

    /// The intake of a topic, and the topic's number there.
    fn intake_of(&mut self, topic: u16) -> Option<(&mut Intake, &mut Engines, u16)> {
        let mut intakes = self.intakes.iter_mut();
        let of = intakes.rfind(|intake| intake.base <= topic)?;
        let local = topic - of.base;
        Some((of, &mut self.engines, local))
    }

    fn end(&mut self, partition: Partition) {
        if let Some((intake, engines, topic)) = self.intake_of(partition.topic) {
            let partition = partition.partition;
            let handler = &mut intake.with(engines);
            handler.end_of_partition(Partition { topic, partition });
        }
    }

    fn take(&mut self, record: &Record<'_>) -> Result<(), Fault> {
        self.records += 1;
        let Some((intake, engines, topic)) = self.intake_of(record.topic) else {
            return Ok(());
        };
        intake.with(engines).record(Record { topic, ..*record });
        let since = Instant::now();
        while !intake.parked.is_empty() {
            if since.elapsed() >= SCHEMA {
                let (partition, offset) = (record.partition, record.offset);
                return Err(Fault::Unavailable(format!(
                    "the schema of the record at {}/{partition} offset {offset} did not come within {SCHEMA:?}; \
                     check [registry]",
                    intake.topics[usize::from(topic)]
                )));
            }
            std::thread::sleep(Duration::from_millis(5));
            intake.with(engines).release();
        }
        Ok(())
    }

    fn ended(self) -> Result<(Engine, Witness), Fault> {
        let seen = self.intakes.into_iter().filter_map(|i| i.witness);
        let all = seen.reduce(Witness::with).unwrap_or_default();
        match self.engines {
            Engines::Whole(engine) => Ok((*engine, all)),
            Engines::Moving(_) | Engines::Judging(_) => {
                Err(Fault::Broken("a replay has one engine".to_owned()))
            }
        }
    }
}
