//! `[source.fields]`: paths of the fields of an event.

use crate::decode::{
    self, DecodeOptions, FieldOrConst, IdField, PredictionField, TimeField, TimeUnit,
};
use crate::judge::ANY_MODEL as ANY;

use super::document::{Entry, Record};
use super::problem::Problems;
use super::registry::packing;
use super::value::Value;

/// Unit of event times, unless the file says otherwise.
const DEFAULT_UNIT: &str = "ms";

/// The shape of a source's records.
pub fn decode(root: &Record, source: &Record, problems: &mut Problems<'_>) -> DecodeOptions {
    let fields = source.child("source.fields");
    let limits = root.child("limits");
    let constant = |key: &str| source.owned(key).map(FieldOrConst::Const);
    let prediction = prediction(fields, problems);
    let single = matches!(prediction, PredictionField::Score(_));
    let classes = classes(root, source, single, problems);
    DecodeOptions {
        model: constant("model")
            .or_else(|| fields.owned("model").map(FieldOrConst::Field))
            .unwrap_or(FieldOrConst::Const(String::new())),
        version: constant("model_version")
            .or_else(|| fields.owned("version").map(FieldOrConst::Field)),
        segments: segments(fields, problems),
        id: fields.owned("id").map(id_field),
        time: time_field(fields, problems),
        prediction,
        outcome: fields.owned("outcome").unwrap_or_default(),
        weight: fields.owned("weight"),
        cluster: fields.owned("cluster"),
        outcome_map: outcome_map(fields, problems),
        classes,
        record_bytes_max: limits.bytes("record_bytes_max"),
        ahead_ms_max: Some(limits.milliseconds("future_max")),
        packing: packing(source),
    }
}

/// Paths of the segments, each once.
fn segments(fields: &Record, problems: &mut Problems<'_>) -> Vec<String> {
    let list = fields.list("segments");
    for (i, item) in list.iter().enumerate() {
        if list[..i].iter().any(|before| before.value == item.value) {
            let what = format!("segment `{}` is named twice", item.value);
            problems.add(item.at, what, "remove one");
        }
    }
    fields.strings("segments")
}

/// Path of an id.
pub fn id_field(path: String) -> IdField {
    match path.as_str() {
        "@key" => IdField::Key,
        _ => IdField::Path(path),
    }
}

/// Path and unit of an event time, if the section names one.
pub fn time_field(record: &Record, problems: &mut Problems<'_>) -> Option<TimeField> {
    let path = record.owned("time");
    let (unit, zone) = (record.text("time_unit"), record.text("time_zone"));
    unused_time_keys(record, unit, zone, problems);
    let zone_s = zone.and_then(decode::time_offset);
    if let (Some(text), None) = (zone, zone_s) {
        let what = format!("`time_zone` is \"{text}\", which is no offset");
        let remedy = "write \"UTC\" or an offset such as \"+02:00\"; names of zones are not known";
        problems.add(record.entry("time_zone").at, what, remedy);
    }
    Some(TimeField {
        path: path?,
        unit: match unit {
            Some("s") => TimeUnit::Seconds,
            Some("us") => TimeUnit::Microseconds,
            Some("rfc3339") => TimeUnit::Rfc3339,
            _ => TimeUnit::Milliseconds,
        },
        zone_s,
    })
}

/// Rejects a unit or zone that is not used: without a path of the time, or a zone for times that
/// are numbers.
fn unused_time_keys(
    record: &Record,
    unit: Option<&str>,
    zone: Option<&str>,
    problems: &mut Problems<'_>,
) {
    // The default unit may be written out without being meant.
    let unit = unit.unwrap_or(DEFAULT_UNIT);
    let given = [
        ("time_unit", unit != DEFAULT_UNIT),
        ("time_zone", zone.is_some()),
    ];
    for (key, _) in given.into_iter().filter(|(_, given)| *given) {
        let at = record.entry(key).at;
        if !record.entry("time").given {
            let what = format!(
                "`{key}` is of the event time, and [{}] has no `time`: the record's timestamp would be used",
                record.section
            );
            let remedy =
                format!("add `time = \"time_ms\"`, the path of the event time, or remove `{key}`");
            problems.add(at, what, remedy);
        } else if key == "time_zone" && unit != "rfc3339" {
            let what =
                format!("`time_zone` is of times that are text, and `time_unit` is \"{unit}\"");
            let remedy = "write `time_unit = \"rfc3339\"`, or remove `time_zone`";
            problems.add(at, what, remedy);
        }
    }
}

/// Maps outcomes to classes, from entries `text=class`.
pub fn outcome_map(record: &Record, problems: &mut Problems<'_>) -> Vec<(String, String)> {
    let mut map = Vec::new();
    for item in record.list("outcome_map") {
        match item.value.rsplit_once('=') {
            Some((text, class)) => map.push((text.to_owned(), class.to_owned())),
            None => {
                let what = format!("`{}` says nothing of its meaning", item.value);
                problems.add(item.at, what, "write \"yes=1\", an outcome and its class");
            }
        }
    }
    map
}

/// Exactly one of the three forms of a prediction.
fn prediction(fields: &Record, problems: &mut Problems<'_>) -> PredictionField {
    type Form = fn(String) -> PredictionField;
    let forms: [(&str, Form); 3] = [
        ("score", PredictionField::Score),
        ("probabilities", PredictionField::Vector),
        ("class_probabilities", PredictionField::ClassMap),
    ];
    let mut found = None;
    for (key, form) in forms {
        let Some(path) = fields.owned(key) else {
            continue;
        };
        if found.is_some() {
            let what = format!("`{key}` is a second form of the prediction");
            let remedy = "keep one of `score`, `probabilities` and `class_probabilities`";
            problems.add(fields.entry(key).at, what, remedy);
        }
        found = found.or(Some(form(path)));
    }
    let given = forms.iter().any(|(key, _)| fields.entry(key).given);
    found.unwrap_or_else(|| {
        if given {
            // A form was given but could not be read, which has been reported.
            return PredictionField::Score("score".to_owned());
        }
        let what = "[source.fields] does not say where the prediction lies";
        let remedy = "add `score = \"score\"`, `probabilities` or `class_probabilities`";
        problems.add(fields.at, what, remedy);
        PredictionField::Score("score".to_owned())
    })
}

/// The classes of a source: its own, those of its one model, or those common to all models that it
/// can feed. If it sends `single` scores, only models of two classes count.
fn classes(
    root: &Record,
    source: &Record,
    single: bool,
    problems: &mut Problems<'_>,
) -> Vec<String> {
    if source.entry("classes").given {
        return source.strings("classes");
    }
    let models = root.all("model");
    if let Some(fixed) = source.text("model") {
        let named = |name: &str| models.iter().find(|m| m.text("name") == Some(name));
        let model = named(fixed).or_else(|| named(ANY));
        return model.map(|m| m.strings("classes")).unwrap_or_default();
    }
    let fits = |list: &&Entry| match texts(list).len() {
        0 => false,
        // A single class is refused with any prediction.
        1 | 2 => true,
        _ => !single,
    };
    let mut lists = models.iter().map(|m| m.entry("classes")).filter(fits);
    let Some(first) = lists.next() else {
        return Vec::new();
    };
    if lists.any(|l| texts(l) != texts(first)) {
        let what = "the models have different `classes` and this source reads them all";
        let remedy = "write the `classes` of its records in this [[source]]; models with other classes need a topic \
                      and a [[source]] of their own";
        problems.add(source.at, what, remedy);
    }
    texts(first).into_iter().map(str::to_owned).collect()
}

/// The strings of a list without their positions.
fn texts(entry: &Entry) -> Vec<&str> {
    match &entry.value {
        Value::List(items) => items.iter().map(|p| p.value.as_str()).collect(),
        _ => Vec::new(),
    }
}
