//! `[kafka]` and `[[source]]`: the topics to read.
//!
//! This module checks what one value alone cannot show, such as a duplicate name;
//! [`topics`](super::topics) checks the topics.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::collect::IdPlan;
use crate::decode::Decoder;
use crate::kafka::{KafkaOptions, MissingState, OWNED};

use super::SourceOptions;
use super::document::Record;
use super::fields::decode;
use super::inputs;
use super::options::JoinOptions;
use super::problem::Problems;
use super::security::security;
use super::start::{missing_state, start};
use super::topics;
use super::value::Value;

/// The sources, each with its client options and record shape.
pub fn sources(root: &Record, problems: &mut Problems<'_>) -> Vec<SourceOptions> {
    let records = root.all("source");
    if records.is_empty() {
        let remedy = "add `[[source]]` with `topics = [\"predictions\"]`";
        let what = "there is no [[source]], so nothing would be read";
        problems.add(root.at, what, remedy);
    }
    let shared = kafka(root, problems);
    topics::check(root, problems);
    inputs::check(root, problems);
    let mut out: Vec<SourceOptions> = Vec::with_capacity(records.len());
    for record in records {
        let name = source_name(record);
        if out.iter().any(|s| s.name == name) {
            let what = format!("two sources are called `{name}`");
            problems.add(record.at, what, "give each [[source]] a `name` of its own");
        }
        let mut kafka = shared.clone();
        kafka.group = match record.owned("group") {
            Some(group) => group,
            // Only the first source has the plain group, so adding one later renames no group.
            None if out.is_empty() => shared.group.clone(),
            None => format!("{}.{name}", shared.group),
        };
        kafka.topics = record.strings("topics");
        kafka.dead_letter = record.owned("dead_letter");
        // Both values were checked when they were read.
        kafka.start = record
            .text("start")
            .and_then(|t| start(t).ok())
            .unwrap_or_default();
        let missing = record
            .text("on_missing_state")
            .and_then(|t| missing_state(t).ok());
        kafka.missing_state = missing.unwrap_or_default();
        if kafka.missing_state == MissingState::Stop && begins_fresh(root) {
            kafka.missing_state = MissingState::Committed;
        }
        kafka.truncated = record.word("on_truncated").unwrap_or_default();
        let decode = decode(root, record, problems);
        if let Err(error) = Decoder::new(&decode) {
            let text = error.to_string();
            let (what, remedy) = text
                .split_once("; ")
                .unwrap_or((&text, "correct the paths of [source.fields]"));
            problems.add(record.child("source.fields").at, what, remedy);
        }
        let join = JoinOptions::of(record, &decode, problems);
        if let Some(join) = &join {
            kafka.topics.extend(join.topics.iter().cloned());
        }
        let once = decode.id.is_some() && join.is_none() && record.truth("deduplicate");
        out.push(SourceOptions {
            name,
            input: inputs::input(record),
            models: (root.all("model").iter())
                .filter_map(|m| m.owned("name"))
                .collect(),
            kafka,
            deduplicate_ms: once.then(|| record.milliseconds("deduplicate_within")),
            decode,
            join,
        });
    }
    out
}

/// Whether partitions without usable state in the state topic start without it.
fn begins_fresh(root: &Record) -> bool {
    let state = root.child("state");
    state.text("topic").is_some() && state.text("on_broken") == Some("fresh")
}

/// The sources whose records count once by their ids. Topics are numbered over all sources.
pub fn ids(sources: &[SourceOptions]) -> Vec<IdPlan> {
    let all = sources.iter().flat_map(|s| {
        let topics = s.kafka.topics.iter();
        topics.map(|_| s.deduplicate_ms)
    });
    let numbered = (0..=u16::MAX).zip(all);
    numbered
        .filter_map(|(source, within)| {
            Some(IdPlan {
                source,
                horizon_ms: within?,
            })
        })
        .collect()
}

/// The name of a source: its own, or its first topic.
fn source_name(record: &Record) -> String {
    record
        .owned("name")
        .or_else(|| record.list("topics").first().map(|t| t.value.clone()))
        .unwrap_or_default()
}

/// What is wrong with the text of a broker. Without a port the client takes 9092.
fn broker_fault(broker: &str) -> Option<String> {
    if broker.contains(char::is_whitespace) {
        return Some("`brokers` has a space within a broker".to_owned());
    }
    // An address of version 6 without a port ends in a bracket.
    let (_, port) = broker
        .rsplit_once(':')
        .filter(|(_, port)| !port.ends_with(']'))?;
    let sound = port.parse::<u16>().is_ok();
    (!sound).then(|| format!("`{port}` is no port of a broker"))
}

/// The client options common to all sources.
fn kafka(root: &Record, problems: &mut Problems<'_>) -> KafkaOptions {
    let record = root.child("kafka");
    let mut options = BTreeMap::new();
    if let Value::Map(map) = &record.entry("options").value {
        for (name, given) in map {
            if let Some((_, why)) = OWNED.iter().find(|(owned, _)| owned == name) {
                let what = format!("kafka option `{name}` cannot be set: {why}");
                problems.add(given.at, what, "remove it");
            }
            options.insert(name.clone(), given.value.clone());
        }
    }
    let mut brokers = record.text("brokers").unwrap_or_default().split(',');
    if let Some(what) = brokers.find_map(|broker| broker_fault(broker.trim())) {
        let remedy = "write each as `host:port`, separated by commas";
        problems.add(record.entry("brokers").at, what, remedy);
    }
    let security = security(record, &mut options, problems);
    let queue_kbytes = record.bytes("queue_bytes_max").div_ceil(1024);
    KafkaOptions {
        brokers: record.owned("brokers").unwrap_or_default(),
        group: record.owned("group").unwrap_or_default(),
        instance: record.owned("instance"),
        security,
        record_bytes_max: root.child("limits").bytes("record_bytes_max"),
        queue_kbytes_max: u32::try_from(queue_kbytes).unwrap_or(u32::MAX),
        open_transaction_max: Duration::from_millis(
            u64::try_from(record.milliseconds("open_transaction_max")).unwrap_or(u64::MAX),
        ),
        statistics_ms: u32::try_from(record.milliseconds("statistics_interval"))
            .unwrap_or(u32::MAX),
        options,
        ..KafkaOptions::default()
    }
}
