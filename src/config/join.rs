//! `[source.outcomes]`: how predictions of a source are joined with separate outcomes.
//!
//! The section is active if it sets `maturity`. With `topics` the outcomes are read from those
//! topics, the first for the source's first topic and so on. Without `topics`, the topics of the
//! source contain both kinds of records, and a record without a prediction is an outcome.

use crate::collect::join::{JoinPlan, Missing};
use crate::decode::{
    DecodeOptions, IdField, OutcomeDecoder, OutcomeOptions, Packing, PredictionField, are_numbers,
};

use super::document::Record;
use super::fields::{id_field, outcome_map, time_field};
use super::options::{JoinOptions, SourceOptions};
use super::problem::Problems;

impl JoinOptions {
    /// The section of a source, if it is active.
    pub fn of(
        source: &Record,
        decode: &DecodeOptions,
        problems: &mut Problems<'_>,
    ) -> Option<JoinOptions> {
        let record = source.child("source.outcomes");
        if !record.entry("maturity").given {
            // Keys with a default may be written out without being meant.
            let meant = ["topics", "id", "model", "time"].map(|key| record.entry(key));
            if let Some(entry) = meant.into_iter().find(|e| e.given) {
                let what = "[source.outcomes] has no `maturity`, so nothing would be joined";
                let remedy = "add `maturity = \"30m\"`: when outcomes are in";
                problems.add(entry.at, what, remedy);
            }
            return None;
        }
        let id = record
            .owned("id")
            .map(id_field)
            .or_else(|| decode.id.clone());
        if decode.id.is_none() {
            let what = "predictions that are joined need an id, and [source.fields] has none";
            let remedy = "add `id = \"request_id\"` to [source.fields], or `id = \"@key\"`";
            problems.add(record.at, what, remedy);
        }
        let topics = record.strings("topics");
        let theirs = source.list("topics").len();
        if !topics.is_empty() && topics.len() != theirs {
            let what = format!(
                "[source.outcomes] has {} topics and the source has {theirs}",
                topics.len()
            );
            let remedy = "name one topic of outcomes for each of predictions, in the same order";
            problems.add(record.entry("topics").at, what, remedy);
        }
        let shared = decode.packing.rows.clone().filter(|_| topics.is_empty());
        let rows = record.owned("rows").or(shared);
        if topics.is_empty() && rows != decode.packing.rows {
            let what = "the source's topics carry both kinds of records, and `rows` differ";
            let remedy = "remove it here: the source's holds";
            problems.add(record.entry("rows").at, what, remedy);
        }
        let outcomes = OutcomeOptions {
            model: record.owned("model"),
            id: id.unwrap_or(IdField::Key),
            time: time_field(record, problems),
            outcome: record.owned("outcome").unwrap_or_default(),
            outcome_map: match outcome_map(record, problems) {
                map if map.is_empty() => decode.outcome_map.clone(),
                map => map,
            },
            classes: decode.classes.clone(),
            record_bytes_max: decode.record_bytes_max,
            ahead_ms_max: decode.ahead_ms_max,
            packing: Packing {
                rows,
                ..decode.packing.clone()
            },
        };
        if let Err(error) = OutcomeDecoder::new(&outcomes) {
            let text = error.to_string();
            let (what, remedy) = text
                .split_once("; ")
                .unwrap_or((&text, "correct the paths of [source.outcomes]"));
            problems.add(record.at, what, remedy);
        }
        third_class(record, decode, &outcomes, problems);
        Some(JoinOptions {
            plan: plan(record, &outcomes, decode, problems),
            topics,
            outcomes,
        })
    }

    /// The joins of the topics of the source, whose numbers start at `base`; `topics` of them
    /// contain predictions.
    pub fn plans(&self, base: u16, topics: u16) -> impl Iterator<Item = JoinPlan> {
        let apart = if self.topics.is_empty() { 0 } else { topics };
        (base..base + topics).map(move |predictions| JoinPlan {
            predictions,
            outcomes: predictions + apart,
            ..self.plan.clone()
        })
    }
}

/// Rejects an outcome that means a third class if predictions are single scores.
fn third_class(
    record: &Record,
    decode: &DecodeOptions,
    outcomes: &OutcomeOptions,
    problems: &mut Problems<'_>,
) {
    let single = matches!(decode.prediction, PredictionField::Score(_));
    if !single || !outcomes.classes.is_empty() || outcomes.outcome_map == decode.outcome_map {
        return;
    }
    let beyond = |class: &str| class.parse::<u32>().is_ok_and(|class| class > 1);
    let found = outcomes.outcome_map.iter().find(|(_, class)| beyond(class));
    if let Some((text, class)) = found {
        let what = format!(
            "`outcome_map` says that \"{text}\" is `{class}`, and the predictions are single scores"
        );
        let at = record.entry("outcome_map").at;
        problems.add(at, what, "write 0 or 1 after the `=`");
    }
}

/// Least `pending_memory`.
const MEMORY_LEAST: usize = 1 << 20;

fn plan(
    record: &Record,
    outcomes: &OutcomeOptions,
    decode: &DecodeOptions,
    problems: &mut Problems<'_>,
) -> JoinPlan {
    let missing = match record.text("on_missing") {
        None | Some("drop") => Missing::Drop,
        Some("negative") => Missing::Class(0),
        Some(class) => match class_of(class, &decode.classes) {
            Some(k) => Missing::Class(k),
            None => {
                let what = format!("`on_missing` is \"{class}\", which is not a class");
                let remedy = "write \"drop\", \"negative\", or the name or number of a class";
                problems.add(record.entry("on_missing").at, what, remedy);
                Missing::Drop
            }
        },
    };
    let pending_memory = record.bytes("pending_memory");
    if pending_memory < MEMORY_LEAST {
        let what = "`pending_memory` is less than 1 MiB";
        let remedy = "write 1MiB or more; what is less would spill every few predictions";
        problems.add(record.entry("pending_memory").at, what.to_owned(), remedy);
    }
    JoinPlan {
        predictions: 0,
        outcomes: 0,
        maturity_ms: record.milliseconds("maturity"),
        missing,
        repeated: record.word("repeated").unwrap_or_default(),
        revise: record.truth("revise"),
        by_model: outcomes.model.is_some(),
        model: match &decode.model {
            crate::decode::FieldOrConst::Const(name) => Some(name.clone()),
            crate::decode::FieldOrConst::Field(_) => None,
        },
        pending_max: record.count("pending_max"),
        pending_memory,
    }
}

fn class_of(text: &str, classes: &[String]) -> Option<u32> {
    let named = classes.iter().position(|c| c == text);
    let named = named.and_then(|i| u32::try_from(i).ok());
    // If names of classes are numbers, a number is a name and not an index.
    named.or_else(|| text.parse().ok().filter(|_| !are_numbers(classes)))
}

/// The joins of all sources, whose topics are numbered consecutively over all sources.
pub fn plans(sources: &[SourceOptions]) -> Vec<JoinPlan> {
    let (mut base, mut all) = (0u16, Vec::new());
    for source in sources {
        let topics = source.topic_count();
        if let Some(join) = &source.join {
            all.extend(join.plans(base, topics - join.topics.len() as u16));
        }
        base = base.saturating_add(topics);
    }
    all
}
