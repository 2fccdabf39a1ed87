//! `trueline state inspect --config`: prints the content of the state topic, partition by
//! partition.
//!
//! The topic is read like a range: the command joins no group, claims nothing and writes nothing,
//! so it is safe while processes run. One partition is in memory at a time.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::exit::{self, Exit};
use crate::alert::AlertState;
use crate::app::clock;
use crate::app::cluster::reader::lease_key;
use crate::collect::Origin;
use crate::config::bounds::human;
use crate::kafka::{self, Bound, KafkaError, KafkaOptions, OffsetBounds, RangeReader, Span, Step};
use crate::monitor::Snapshot;
use crate::report::moment::rfc3339;
use crate::report::stream;
use crate::report::table::printable;
use crate::store::reader::FoundCheckpoint;
use crate::store::topic_report::{Claim, PartitionReport, TopicReport};

/// The contents of one partition of the topic.
#[derive(Default)]
struct StatePartition {
    partition: i32,
    /// The last claim of a judge.
    judge: Option<Claim>,
    reports: Vec<PartitionReport>,
    strange: Vec<String>,
}

/// Prints the content of the state topic of a configuration.
pub fn print_topic(path: &Path, json: bool) -> Exit {
    let config = match exit::load(path) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    let Some((kafka, topic)) = config.moving() else {
        let (path, directory) = (path.display(), config.state.directory.display());
        let why = format_args!(
            "{path} has no [state] topic; its state is in {directory}: name that directory"
        );
        return exit::fail(Exit::Config, why);
    };
    let judge = lease_key(&config.state.namespace);
    let partitions = match read(kafka, &topic, &judge) {
        Ok(partitions) => partitions,
        Err(error) if error.needs_operator() => return exit::fail(Exit::Config, error),
        Err(error) => return exit::fail(Exit::Unavailable, error),
    };
    let now_ms = clock::now_ms();
    if json {
        exit::print_line(format_args!("{:#}", as_json(&topic, &partitions, now_ms)));
    } else {
        exit::print(&as_text(&topic, &partitions, now_ms));
    }
    let broken =
        |h: &StatePartition| !h.strange.is_empty() || h.reports.iter().any(|s| s.found.is_err());
    match partitions.iter().any(broken) {
        true => Exit::Data,
        false => Exit::Ok,
    }
}

fn read(kafka: KafkaOptions, topic: &str, judge: &str) -> Result<Vec<StatePartition>, KafkaError> {
    let options = KafkaOptions {
        topics: vec![topic.to_owned()],
        instance: None,
        dead_letter: None,
        copartitions: 0,
        ..kafka
    };
    let (from, to) = (Bound::Earliest, [Bound::Latest]);
    let spans = kafka::resolve(&options, &from, &to, &mut OffsetBounds::new())?;
    spans
        .into_iter()
        .map(|span| read_partition(&options, span, judge))
        .collect()
}

fn read_partition(
    options: &KafkaOptions,
    span: Span,
    judge_key: &str,
) -> Result<StatePartition, KafkaError> {
    let partition = span.partition;
    let mut reader = RangeReader::new(options, vec![span])?;
    let mut reports = TopicReport::default();
    let mut judge = None;
    while let Some(step) = reader.step()? {
        let Step::Record(owned) = step else { continue };
        let r = owned.record();
        // Values of checkpoints are never empty: an empty value deletes its key.
        let value = (!r.payload.is_empty()).then_some(r.payload);
        let key = r.key.unwrap_or_default();
        if key == judge_key.as_bytes() {
            judge = value.map(|by| Claim {
                epoch: r.offset,
                by: String::from_utf8_lossy(by).into_owned(),
                at_ms: r.timestamp_ms,
            });
            continue;
        }
        reports.take(r.offset, r.timestamp_ms, key, value);
    }
    let (reports, strange) = reports.reports();
    Ok(StatePartition {
        partition,
        judge,
        reports,
        strange,
    })
}

fn as_text(topic: &str, partitions: &[StatePartition], now_ms: i64) -> String {
    let all = || partitions.iter().flat_map(|h| &h.reports);
    let (records, bytes) = all().fold((0, 0), |(r, b), s| (r + s.records, b + s.bytes));
    let mut lines = vec![format!(
        "{topic}: {} partitions, state of {} partitions in {records} records, {}",
        partitions.len(),
        all().count(),
        human(bytes)
    )];
    for partition in partitions {
        if let Some(claim) = &partition.judge {
            lines.push(format!("  judge: {}", claimed(claim, now_ms)));
        }
        for report in &partition.reports {
            lines.push(format!(
                "  {} (in partition {}): {} records, {}",
                report.name,
                partition.partition,
                report.records,
                human(report.bytes)
            ));
            describe(report, now_ms, &mut lines);
        }
        for key in &partition.strange {
            let partition = partition.partition;
            lines.push(format!(
                "  partition {partition}: {key}: not a key of the state topic"
            ));
        }
    }
    let lines: Vec<_> = lines.iter().map(|line| printable(line)).collect();
    lines.join("\n") + "\n"
}

fn describe(report: &PartitionReport, now_ms: i64, lines: &mut Vec<String>) {
    if let Some(claim) = &report.claim {
        lines.push(format!("    {}", claimed(claim, now_ms)));
    }
    match &report.found {
        Ok(None) => lines.push(
            "    no checkpoint: the next owner starts at the committed offsets of the group".into(),
        ),
        Ok(Some(found)) => {
            let by = report
                .writer
                .as_ref()
                .map_or("an earlier claimant".into(), claimant);
            let at = moment(report.written_ms, now_ms);
            lines.push(format!("    {}: written by {by}, {at}", found.head));
            lines.push(format!("    {}", content(found)));
            for (key, fault) in &found.refused {
                lines.push(format!("    refused: {key}: {fault}"));
            }
        }
        Err(faults) => {
            lines.push("    no usable checkpoint:".into());
            lines.extend(
                faults
                    .iter()
                    .map(|(key, fault)| format!("    refused: {key}: {fault}")),
            );
        }
    }
}

fn claimed(claim: &Claim, now_ms: i64) -> String {
    let (at, by) = (moment(claim.at_ms, now_ms), claimant(claim));
    format!("claimed last by {by}, {at}, epoch {}", claim.epoch)
}

/// Instance and process id of a claimant.
fn claimant(claim: &Claim) -> String {
    let mut words = claim.by.split(' ');
    match (words.next(), words.next()) {
        (Some("-"), Some(pid)) => format!("process {pid}"),
        (Some(instance), Some(pid)) => format!("{instance} (process {pid})"),
        _ => claim.by.clone(),
    }
}

fn moment(ms: Option<i64>, now_ms: i64) -> String {
    let Some(ms) = ms else {
        return "at an unknown time".to_owned();
    };
    let ago = Duration::from_secs((now_ms - ms).max(0).unsigned_abs() / 1000);
    format!("{} ({} ago)", rfc3339(ms), humantime::format_duration(ago))
}

/// The content of a checkpoint in one line.
fn content(found: &FoundCheckpoint) -> String {
    let (s, memories) = (&found.checkpoint.snapshot, &found.checkpoint.verdicts);
    let next = positions(s).map(|(topic, at)| {
        let truncated = s.partitions.truncated_at(at.partition_id());
        let unread = truncated.map_or(String::new(), unread);
        format!("{topic}[{}] {}{unread}", at.partition, at.offset)
    });
    let next: Vec<String> = next.collect();
    let total = s.counters.total();
    let journal: usize = found.segments.iter().map(Vec::len).sum();
    format!(
        "next offsets {}; {} records, {} pending, {} of journal; {} streams, {} alerts fire",
        if next.is_empty() {
            "none".to_owned()
        } else {
            next.join(", ")
        },
        total.records,
        total.pending,
        human(journal as u64),
        memories.len(),
        memories
            .iter()
            .filter(|m| m.alert.state == AlertState::Firing)
            .count(),
    )
}

/// A note for a partition whose log ended at `end`, before the offset up to which it was read.
pub(super) fn unread(end: i64) -> String {
    format!(" (not read: its log ended at {end}; see `on_truncated`)")
}

fn positions(s: &Snapshot) -> impl Iterator<Item = (&str, Origin)> {
    s.partitions.positions().map(|at| {
        let topic = s.topics.get(usize::from(at.source));
        (topic.map_or("?", String::as_str), at)
    })
}

fn as_json(topic: &str, partitions: &[StatePartition], now_ms: i64) -> Value {
    let claim = |c: &Option<Claim>| {
        c.as_ref()
            .map(|c| json!({ "epoch": c.epoch, "by": claimant(c), "at_ms": c.at_ms }))
    };
    let faults = |all: &[(String, crate::store::FormatError)]| {
        let one = |(key, fault): &(String, crate::store::FormatError)| json!({ "key": key, "fault": fault.to_string() });
        all.iter().map(one).collect::<Value>()
    };
    let checkpoint = |found: &FoundCheckpoint| {
        let s = &found.checkpoint.snapshot;
        let next = positions(s).map(|(topic, at)| {
            let truncated = s.partitions.truncated_at(at.partition_id());
            json!({ "topic": topic, "partition": at.partition, "offset": at.offset, "truncated_at": truncated })
        });
        let streams =
            found.checkpoint.verdicts.iter().map(
                |m| json!({ "stream": m.stream.to_string(), "alert": stream::alert(&m.alert) }),
            );
        let total = s.counters.total();
        json!({
            "head": found.head,
            "partitions": next.collect::<Value>(),
            "records": total.records,
            "pending": total.pending,
            "journal_bytes": found.segments.iter().map(Vec::len).sum::<usize>(),
            "streams": streams.collect::<Value>(),
        })
    };
    let report = |state_partition: i32, s: &PartitionReport| {
        let refused = match &s.found {
            Ok(Some(found)) => faults(&found.refused),
            Ok(None) => json!([]),
            Err(all) => faults(all),
        };
        let found = s.found.as_ref().ok().and_then(Option::as_ref);
        json!({
            "partition": s.name, "state_partition": state_partition, "records": s.records, "bytes": s.bytes,
            "claim": claim(&s.claim), "writer": claim(&s.writer),
            "written_ms": s.written_ms,
            "age_seconds": s.written_ms.map(|ms| (now_ms - ms) as f64 / 1000.0),
            "usable": s.found.is_ok(),
            "checkpoint": found.map(checkpoint),
            "refused": refused,
        })
    };
    let all = partitions
        .iter()
        .flat_map(|h| h.reports.iter().map(|s| report(h.partition, s)));
    let strange: Vec<&String> = partitions.iter().flat_map(|h| &h.strange).collect();
    let judge = partitions.iter().find_map(|h| h.judge.clone());
    json!({
        "topic": topic, "partitions": partitions.len(), "judge": claim(&judge),
        "state": all.collect::<Value>(), "strange": strange,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_claim_to_judge_is_shown_as_a_claim() {
        let judge = Claim {
            epoch: 7,
            by: "one 11 5".to_owned(),
            at_ms: Some(0),
        };
        let partition = StatePartition {
            judge: Some(judge),
            ..StatePartition::default()
        };
        let text = as_text("state", &[partition], 0);
        let said = "  judge: claimed last by one (process 11), ";
        assert!(text.contains(said) && text.contains("epoch 7"), "{text}");
    }
}
