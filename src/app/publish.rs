//! What the engine knows, put where HTTP can read it; what changed, told in the log.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::clock;
use super::engines::Engines;
use super::intake::Intake;
use super::snapshots::Written;
use crate::alert::AlertState;
use crate::collect::{Counters, Origin, Pair, PartitionState};
use crate::judge::{Change, Step, StreamId};
use crate::kafka::{Consumer, Partition};
use crate::registry::RequestCounts;
use crate::telemetry::Published;
use crate::telemetry::published::{EngineFacts, ParcelFacts, PartitionFacts, SourceFacts};

/// Publishes every stream's report and withdraws those of streams that are gone; and the ledger.
pub fn reports(published: &Published, engine: &Engines) {
    let mut alive: HashSet<&StreamId> = HashSet::new();
    for report in engine.reports() {
        alive.insert(&report.id);
        published.publish(Arc::new(report.clone()));
    }
    published.retain(|id| alive.contains(id));
    let ledger = engine.ledger().into();
    published.update(|facts| facts.ledger = ledger);
}

/// Publishes what is said of versions that score the same ids. Each comparison searches for the ends of its
/// intervals anew, so it is not done at every tick.
pub fn comparisons(published: &Published, engine: &Engines) {
    let (comparisons, counts) = (engine.comparisons().into(), engine.pair_counts());
    published.update(|facts| {
        facts.comparisons = comparisons;
        facts.pair_counts = counts;
    });
}

/// Publishes how long evaluations took since the last time.
pub fn evaluations(published: &Published, engine: &mut Engines) {
    for nanos in engine.take_nanos() {
        published.evaluated(Duration::from_nanos(nanos));
    }
}

/// Publishes counters and positions. Before the reports: whoever sees a verdict also sees the records
/// that it rests on counted.
pub fn facts(
    published: &Published,
    engine: &Engines,
    feeds: &[(&Intake, &Consumer)],
    asked: RequestCounts,
) {
    let counters = engine.counters();
    let sources: Vec<SourceFacts> = feeds
        .iter()
        .flat_map(|(intake, _)| source_facts(engine, &counters, intake))
        .collect();
    let state = engine.barred();
    let state = state.map(|(topic, partition, _)| (topic.to_owned(), partition));
    let stopped = feeds.iter().flat_map(|(intake, _)| intake.stopped());
    let stopped = stopped.map(|(topic, partition, _)| (topic.to_owned(), partition));
    let barred = state.chain(stopped).collect();
    let partitions: Vec<PartitionFacts> = feeds
        .iter()
        .flat_map(|(intake, consumer)| partition_facts(engine, intake, consumer))
        .collect();
    published.update(|facts| {
        facts.sources = sources;
        facts.partitions = partitions;
        facts.parcels = parcels(engine);
        facts.role = engine.role();
        facts.barred = barred;
        facts.registry = [asked.found, asked.absent, asked.failed];
    });
}

/// What happened to parcels, where partitions move with their state.
fn parcels(engine: &Engines) -> Option<ParcelFacts> {
    let (counts, ages) = engine.parcels()?;
    let ages = ages.into_iter();
    Some(ParcelFacts {
        written: counts.written,
        written_bytes: counts.written_bytes,
        read: counts.read,
        read_bytes: counts.read_bytes,
        refused: counts.refused,
        restore_seconds: counts.restore_seconds,
        last_ms: ages.map(|(t, p, ms)| (t.to_owned(), p, ms)).collect(),
    })
}

/// Offers pairs to who listens, a line of JSON each.
pub fn pairs(published: &Published, pairs: &[Pair], passed: u64, seconds: f64) {
    let line = |p: &Pair| {
        let scores: serde_json::Map<String, Value> = p
            .scores
            .iter()
            .map(|(view, score)| (view.to_string(), json!(score)))
            .collect();
        let line = json!({
            "model": p.model,
            "version": p.version,
            "segment": p.segment,
            "id": p.id,
            "time_ms": p.time_ms,
            "outcome_ms": p.outcome_ms,
            "scores": scores,
            "outcome": p.outcome,
            "how": p.how.as_str(),
        });
        (p.model.clone(), format!("{line}\n"))
    };
    let lines: Vec<(String, String)> = pairs.iter().map(line).collect();
    published.taps.offer(&lines, passed, seconds);
}

/// Publishes sizes, for which all state is walked.
pub fn size(published: &Published, engine: &Engines, spill_bytes: u64) {
    let counters = engine.counters();
    let (spilled, pending_bytes) = engine.spilled();
    let size = EngineFacts {
        streams: engine.reports().count() as u64,
        streams_expired: counters.streams_expired,
        streams_dropped: counters.streams_dropped,
        panes: engine.panes() as u64,
        state_bytes: engine.bytes() as u64,
        held: engine.retained() as u64,
        spilled: spilled as u64,
        pending_bytes: pending_bytes as u64,
        spill_bytes,
    };
    published.update(|facts| facts.engine = size);
}

/// One entry a topic. Dead letters and what is parked are counted for the source, and shown with its first topic.
fn source_facts(engine: &Engines, counters: &Counters, intake: &Intake) -> Vec<SourceFacts> {
    let dead = intake.dead.as_ref().map(|d| d.counts()).unwrap_or_default();
    let mut facts: Vec<SourceFacts> = intake
        .topics
        .iter()
        .zip(intake.base..)
        .map(|(name, number)| SourceFacts {
            name: name.clone(),
            counters: counters.source(number),
            brought: engine.moved(number).brought,
            taken: engine.moved(number).taken,
            lost: intake.lost[usize::from(number - intake.base)],
            ..SourceFacts::default()
        })
        .collect();
    if let Some(first) = facts.first_mut() {
        first.dead_letters_delivered = dead.delivered;
        first.parked = intake.parked.records();
        first.dead_letters_failed = dead.failed + dead.dropped;
    }
    facts
}

/// A partition's watermark is that of the model with the most lateness: what is older is complete for all.
fn partition_facts(engine: &Engines, intake: &Intake, consumer: &Consumer) -> Vec<PartitionFacts> {
    let (lag, positions, now_ms) = (consumer.lag(), engine.positions(), clock::now_ms());
    let states: Vec<PartitionState> = engine.partitions();
    let one = |partition: Partition| {
        let number = intake.base + partition.topic;
        let here = |o: &&Origin| o.source == number && o.partition == partition.partition;
        let state = states
            .iter()
            .find(|s| s.source == number && s.partition == partition.partition);
        let newest_ms = state.and_then(|s| s.newest_ms);
        let mut all = lag.iter();
        let records = all.find(|(p, _)| *p == partition).map(|(_, lag)| *lag);
        PartitionFacts {
            topic: intake
                .topics
                .get(usize::from(partition.topic))
                .cloned()
                .unwrap_or_default(),
            partition: partition.partition,
            position: positions.iter().find(here).map_or(0, |o| o.offset),
            lag: records,
            lag_ms: match (records, newest_ms) {
                (Some(0), _) => Some(0),
                (Some(_), Some(newest_ms)) => Some(now_ms.saturating_sub(newest_ms).max(0)),
                _ => None,
            },
            watermark_ms: newest_ms.map(|ms| ms.saturating_sub(engine.lateness_ms())),
            idle: state.is_some_and(|s| s.idle),
        }
    };
    consumer.assignment().into_iter().map(one).collect()
}

/// Publishes what became of a snapshot, and says so when it failed.
pub fn snapshot(published: &Published, written: &Written) {
    if let Err(error) = &written.result {
        tracing::error!(%error, "snapshot not written; the state in memory goes on");
    }
    published.update(|facts| {
        let shown = &mut facts.snapshot;
        if written.result.is_ok() {
            shown.last_ms = Some(written.at_ms);
            shown.seconds = written.took.as_secs_f64();
            shown.bytes = written.bytes;
        } else {
            shown.errors += 1;
        }
    });
}

/// One log line for each change. A firing alert asks someone to act, but not on this program: `warn`.
pub fn log(changes: &[Change]) {
    for change in changes {
        let (stream, window) = (change.stream.to_string(), &change.window);
        let (at_ms, sentence) = (change.at_ms, &change.sentence);
        match change.step {
            Step::Verdict { from, to } => {
                tracing::info!(%stream, %window, at_ms, %from, %to, %sentence, "verdict changed");
            }
            Step::Detector { alarm: true } => {
                tracing::warn!(%stream, at_ms, %sentence, "detector raised an alarm");
            }
            Step::Detector { alarm: false } => {
                tracing::info!(%stream, at_ms, %sentence, "detector is clear");
            }
            Step::Stream { to, .. } if to.state == AlertState::Firing => {
                let severity = to.severity.as_str();
                tracing::warn!(%stream, %window, at_ms, severity, %sentence, "alert fires");
            }
            Step::Stream { from, to } => {
                tracing::info!(%stream, %window, at_ms, from = from.state.as_str(), to = to.state.as_str(), %sentence, "alert of a stream changed");
            }
            Step::Alert {
                from,
                to: AlertState::Firing,
            } => {
                tracing::warn!(%stream, %window, at_ms, from = from.as_str(), to = "firing", %sentence, "alert changed");
            }
            Step::Alert { from, to } => {
                tracing::info!(%stream, %window, at_ms, from = from.as_str(), to = to.as_str(), %sentence, "alert changed");
            }
        }
    }
}
