//! Publishes what HTTP shows, and logs what changed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::snapshots::Written;
use crate::alert::AlertState;
use crate::app::clock;
use crate::app::cluster::topology::Topology;
use crate::app::ingest::consumer::SourceConsumer;
use crate::collect::join::WrongPartition;
use crate::collect::{Counters, Pair, PartitionId, PartitionState, Passed};
use crate::judge::{Change, Plan, Step, StreamId, StreamReport, WindowJudgement};
use crate::kafka::{Hidden, Partition};
use crate::telemetry::Published;
use crate::telemetry::facts::{
    AlertRules, CheckpointFacts, EngineFacts, PartitionFacts, SchemaRequests, SourceFacts,
    WatermarkFacts,
};

/// Publishes the ledger and the reports that changed since `last`, the reports of the last call in
/// order; removes the reports of expired streams.
pub fn reports(published: &Published, engine: &Topology, last: &mut Vec<Arc<StreamReport>>) {
    let mut streams = 0;
    for report in engine.reports() {
        match last.get_mut(streams) {
            Some(same) if Arc::ptr_eq(same, report) => {}
            Some(other) => {
                published.publish(report);
                other.clone_from(report);
            }
            None => {
                published.publish(report);
                last.push(Arc::clone(report));
            }
        }
        streams += 1;
    }
    last.truncate(streams);
    // All live streams are published; if there are more, some have expired.
    if published.streams() > streams {
        let alive: HashSet<&StreamId> = last.iter().map(|r| &r.id).collect();
        published.retain(|id| alive.contains(id));
    }
    let ledger = engine.ledger().into();
    published.update(|facts| facts.ledger = ledger);
}

/// Publishes the comparisons of versions that score the same ids. Each comparison computes its
/// interval again, so this is not done at every tick.
pub fn comparisons(published: &Published, engine: &Topology) {
    let (comparisons, counts) = (engine.comparisons().into(), engine.pair_counts());
    published.update(|facts| {
        facts.comparisons = comparisons;
        facts.pair_counts = counts;
    });
}

/// Publishes how long the evaluations since the last call took, and returns what was judged.
pub fn evaluations(published: &Published, engine: &mut Topology) -> Vec<WindowJudgement> {
    let judgements = engine.take_judgements();
    for nanos in judgements.iter().filter_map(|j| j.nanos) {
        published.record_evaluation(Duration::from_nanos(nanos));
    }
    judgements
}

/// Publishes how alerts begin and end.
pub fn alert_rules(published: &Published, plan: &Plan) {
    let rules = plan.models.iter().map(|m| AlertRules {
        model: m.name.clone(),
        holds: m.judge.holds(),
        window_alerts: m.judge.window_alerts,
        no_alert: m.no_alert(),
    });
    let rules = rules.collect();
    published.update(|facts| facts.alert_rules = rules);
}

/// Publishes counters and positions. This comes before the reports, so that a reader who sees a
/// verdict also sees its records counted.
pub fn facts(
    published: &Published,
    engine: &Topology,
    consumers: &[SourceConsumer],
    topics: &[String],
    asked: SchemaRequests,
) {
    let (counters, brought) = (engine.counters(), engine.brought());
    let sources: Vec<SourceFacts> = consumers
        .iter()
        .flat_map(|c| source_facts(engine, &counters, &brought, c))
        .collect();
    let stopped = consumers.iter().flat_map(|c| c.source.stopped());
    let suspended = engine.suspended().chain(stopped);
    let suspended = suspended.map(|(topic, partition, _)| (topic.to_owned(), partition));
    let suspended: Vec<(String, i32)> = suspended.collect();
    let unread: BTreeSet<(&str, i32)> = suspended.iter().map(|(t, p)| (t.as_str(), *p)).collect();
    let partitions: Vec<PartitionFacts> = consumers
        .iter()
        .flat_map(|c| partition_facts(engine, c, &unread))
        .collect();
    let (watermark, role) = (watermark(engine, topics), engine.role());
    let checkpoints = checkpoints(engine);
    published.update(|facts| {
        facts.sources = sources;
        facts.watermark = watermark;
        facts.partitions = partitions;
        facts.checkpoints = checkpoints;
        facts.role = role;
        facts.suspended = suspended;
        facts.registry = asked;
    });
    let (came, went) = published.observe_counts();
    for concern in came {
        let (source, rule) = (concern.source, concern.rule);
        tracing::warn!(source, rule, "{}", concern.words);
    }
    for concern in went {
        let (source, rule) = (concern.source, concern.rule);
        tracing::info!(source, rule, "no longer: {}", concern.words);
    }
}

/// The part that is not ready while verdicts are stalled.
pub const WATERMARK: &str = "watermark";

/// Publishes the parts that are not ready, replacing those of the last call. Logs when the
/// watermark stalls and when that ends; other parts are logged where they arise.
pub fn unready(published: &Published, last: &mut Vec<String>, now: BTreeMap<String, String>) {
    let rule = "TruelineWatermarkStalled";
    for part in last.iter().filter(|part| !now.contains_key(*part)) {
        if part == WATERMARK {
            tracing::info!(rule, "the watermark moves again");
        }
        published.ready(part);
    }
    for (part, why) in &now {
        if part == WATERMARK && !last.contains(part) {
            tracing::warn!(rule, "{part}: {why}");
        }
        published.not_ready(part, why);
    }
    *last = now.into_keys().collect();
}

/// The watermark, and the partition that holds it, where this process judges.
fn watermark(engine: &Topology, topics: &[String]) -> Option<WatermarkFacts> {
    let watchdog = engine.watchdog()?;
    let now = watchdog.frontier();
    let stalled_for_ms = watchdog.stalled_for_ms();
    let held = now.holder.map(|id| {
        let topic = topics.get(usize::from(id.source)).cloned();
        (topic.unwrap_or_default(), id.partition, stalled_for_ms)
    });
    Some(WatermarkFacts {
        time_ms: engine
            .judged_ms()
            .map(|ms| ms.saturating_sub(engine.plan().lateness_ms())),
        held,
    })
}

/// Facts about checkpoints, if partitions move with their state.
fn checkpoints(engine: &Topology) -> Option<CheckpointFacts> {
    let (counts, ages) = engine.checkpoints()?;
    let ages = ages.into_iter();
    Some(CheckpointFacts {
        counts: counts.clone(),
        last_ms: ages.map(|(t, p, ms)| (t.to_owned(), p, ms)).collect(),
    })
}

/// Offers pairs to the clients of the tap, as JSON lines.
pub fn pairs(published: &Published, pairs: &[Pair], passed: &Passed, seconds: f64) {
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
            "how": p.how.as_ref(),
        });
        (p.model.clone(), format!("{line}\n"))
    };
    let lines: Vec<(String, String)> = pairs.iter().map(line).collect();
    published.taps.offer(&lines, passed, seconds);
}

/// Publishes sizes; this walks over all state.
pub fn size(published: &Published, engine: &Topology, topics: &[String], spill_bytes: u64) {
    let (counters, brought) = (engine.counters(), engine.brought());
    let size = EngineFacts {
        streams: engine.reports().count() as u64,
        streams_expired: counters.streams_expired - brought.streams_expired,
        streams_dropped: counters.streams_dropped - brought.streams_dropped,
        spill_bytes,
        ..engine.usage()
    };
    let unjudged = engine.unjudged();
    let wrong_partitions = wrong_partitions(engine, topics);
    published.update(|facts| {
        facts.engine = size;
        facts.unjudged = unjudged;
        facts.wrong_partitions = wrong_partitions;
    });
}

/// By topic, a sample of its outcomes: how many wait on another partition than their predictions.
fn wrong_partitions(engine: &Topology, topics: &[String]) -> Vec<(String, WrongPartition)> {
    let samples = engine.wrong_partitions().into_iter();
    let named = samples.filter_map(|s| Some((topics.get(usize::from(s.source))?.clone(), s)));
    named.collect()
}

/// One entry per topic. Dead letters and records that await a schema are counted per source and
/// shown with its first topic.
fn source_facts(
    engine: &Topology,
    counters: &Counters,
    brought: &Counters,
    consumer: &SourceConsumer,
) -> Vec<SourceFacts> {
    let source = &consumer.source;
    let dead = source.records.dead_letters.as_ref();
    let dead = dead.map(|d| d.counts()).unwrap_or_default();
    let mut facts: Vec<SourceFacts> = source
        .records
        .numbered()
        .zip(&source.lost)
        .zip(&source.records.last_rejections)
        .map(|(((name, number), &lost), last)| SourceFacts {
            name: name.to_owned(),
            outcomes: consumer.outcomes_of(name).map(str::to_owned),
            counters: counters.source(number),
            brought: brought.source(number),
            moved_in: engine.moved(number).brought + brought.source(number).open(),
            moved_out: engine.moved(number).taken,
            lost,
            last_rejection: last.clone(),
            ..SourceFacts::default()
        })
        .collect();
    if let Some(first) = facts.first_mut() {
        first.dead_letters_delivered = dead.delivered;
        first.awaiting_schema = source.queue.records();
        first.other_members = consumer.other_members() as u64;
        first.dead_letters_failed = dead.failed + dead.dropped;
    }
    facts
}

/// The watermark of a partition is that of the model with the longest lateness: older data is
/// complete for every model.
fn partition_facts(
    engine: &Topology,
    of: &SourceConsumer,
    suspended: &BTreeSet<(&str, i32)>,
) -> Vec<PartitionFacts> {
    let (source, consumer, unreachable) = (&of.source, &of.consumer, of.unreachable());
    let now_ms = clock::now_ms();
    // Looked up, not searched: a topic may have thousands of partitions.
    let lag: BTreeMap<Partition, i64> = consumer.lag().into_iter().collect();
    let hidden: BTreeMap<Partition, Hidden> = consumer.hidden().collect();
    let unreachable: BTreeSet<Partition> = unreachable.into_iter().collect();
    let positions = engine.positions().into_iter();
    let positions: BTreeMap<PartitionId, i64> =
        positions.map(|o| (o.partition_id(), o.offset)).collect();
    let states = engine.partitions().into_iter();
    let states: BTreeMap<PartitionId, PartitionState> = states
        .map(|s| ((s.source, s.partition).into(), s))
        .collect();
    let one = |partition: Partition| {
        let id = source.records.partition_id(partition);
        let state = states.get(&id);
        let reach_ms = state.and_then(|s| s.reach_ms);
        let records = lag.get(&partition).copied();
        // Records that wait for a schema were handed over, but are not counted yet.
        let waiting = i64::try_from(source.queue.records_of(partition)).unwrap_or(i64::MAX);
        let records = records.map(|n| n.saturating_add(waiting));
        let hidden = hidden.get(&partition);
        let topic = source.records.topic(partition.topic);
        let is_left_out =
            state.is_some_and(|s| s.left_out) || suspended.contains(&(topic, partition.partition));
        PartitionFacts {
            topic: topic.to_owned(),
            partition: partition.partition,
            position: positions.get(&id).copied().unwrap_or(0),
            lag: records,
            lag_ms: match (records, reach_ms) {
                (Some(0), _) => Some(0),
                (Some(_), Some(reach_ms)) => Some(now_ms.saturating_sub(reach_ms).max(0)),
                _ => None,
            },
            watermark_ms: reach_ms.map(|ms| ms.saturating_sub(engine.plan().lateness_ms())),
            idle: state.is_some_and(|s| s.idle),
            hidden_ms: hidden.map(|h| h.since.elapsed().as_millis() as i64),
            unread: is_left_out || unreachable.contains(&partition),
        }
    };
    consumer.assignment().into_iter().map(one).collect()
}

/// Publishes the result of a snapshot, and logs an error.
pub fn snapshot(published: &Published, written: &Written) {
    if let Err(error) = &written.result {
        tracing::error!(%error, "snapshot not written; counting continues in memory");
    }
    published.update(|facts| {
        let shown = &mut facts.snapshot;
        if written.result.is_ok() {
            shown.last_ms = Some(written.at_ms);
            // If nothing has changed, the last write is up to date.
            if written.bytes > 0 {
                shown.seconds = written.took.as_secs_f64();
                shown.bytes = written.bytes;
            }
        } else {
            shown.errors += 1;
        }
    });
}

/// Writes one log line per change. A firing alert is a `warn`: it needs action, but this program is
/// not at fault.
pub fn log(changes: &[Change]) {
    for change in changes {
        let (stream, window) = (change.stream.to_string(), &change.window);
        let (at_ms, sentence) = (change.at_ms, &change.sentence);
        match change.step {
            Step::Verdict { from, to } => {
                tracing::info!(%stream, %window, at_ms, %from, %to, %sentence, "verdict changed");
            }
            Step::Detector { again: true, .. } => {
                tracing::debug!(%stream, at_ms, %sentence, "detector confirms its alarm");
            }
            Step::Detector { alarm: true, .. } => {
                tracing::warn!(%stream, at_ms, %sentence, "detector raised an alarm");
            }
            Step::Detector { alarm: false, .. } => {
                tracing::info!(%stream, at_ms, %sentence, "detector has no alarm");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_of_nothing_keeps_the_size_of_the_last_one_and_is_as_recent() {
        let published = Published::default();
        for (at_ms, seconds, bytes) in [(10, 2, 700), (20, 0, 0)] {
            let written = Written {
                result: Ok(Vec::new()),
                took: Duration::from_secs(seconds),
                at_ms,
                bytes,
                unwritten: 0,
            };
            snapshot(&published, &written);
            let shown = published.facts().snapshot.clone();
            assert_eq!(
                (shown.last_ms, shown.seconds, shown.bytes),
                (Some(at_ms), 2.0, 700)
            );
        }
    }
}
