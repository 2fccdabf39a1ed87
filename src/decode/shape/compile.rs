//! Compiles the options of a source into a [`Shape`].

use super::super::options::{
    DecodeOptions, DecodeOptionsError, FieldOrConst, IdField, LabelOptions, PredictionField,
    TimeField,
};
use super::super::path::Paths;
use super::{Form, Id, Shape, Source, TimeSlot, push_escaped};
use std::collections::HashMap;

impl Shape {
    /// The shape of predictions. Adds the wanted paths to `paths`.
    pub fn new(o: &DecodeOptions, paths: &mut Paths) -> Result<Shape, DecodeOptionsError> {
        let model = source(&o.model, paths)?;
        let version = match &o.version {
            Some(v) => source(v, paths)?,
            None => Source::Const(String::new()),
        };
        let mut segments = Vec::new();
        for s in &o.segments {
            let mut key = String::new();
            push_escaped(&mut key, s);
            segments.push((key + "=", paths.slot(s)?));
        }
        let id = match &o.id {
            None => Id::None,
            Some(IdField::Key) => Id::Key,
            Some(IdField::Path(p)) => Id::Slot(paths.slot(p)?),
        };
        let time = time(&o.time, paths)?;
        let (form, path) = match &o.prediction {
            PredictionField::Score(p) => (Form::Score, p),
            PredictionField::Vector(p) => (Form::Vector, p),
            PredictionField::ClassMap(p) => (Form::ClassMap, p),
        };
        let prediction = paths.slot(path)?;
        let outcome = paths.slot(&o.outcome)?;
        let weight = o.weight.as_ref().map(|p| paths.slot(p)).transpose()?;
        let cluster = o.cluster.as_ref().map(|p| paths.slot(p)).transpose()?;
        if outcome == prediction {
            return Err(DecodeOptionsError(format!(
                "prediction and outcome are both `{path}`; they must be two fields"
            )));
        }
        Ok(Shape {
            model,
            version,
            segment_bits: segments
                .iter()
                .fold(0, |bits, (_, slot)| bits | 1 << (slot & 63)),
            segments,
            id,
            time,
            form,
            prediction,
            outcome,
            weight,
            cluster,
            names: paths.names.clone(),
            meanings: meanings(&o.outcome_map, &o.classes, form)?,
            classes: classes(&o.classes, form)?,
            numbers_are_names: are_numbers(&o.classes),
            ahead_ms_max: o.ahead_ms_max,
        })
    }

    /// The shape of records that are only outcomes. Adds the wanted paths to `paths`.
    pub fn of_labels(o: &LabelOptions, paths: &mut Paths) -> Result<Shape, DecodeOptionsError> {
        let id = match &o.id {
            IdField::Key => Id::Key,
            IdField::Path(p) => Id::Slot(paths.slot(p)?),
        };
        let time = time(&o.time, paths)?;
        let model = match &o.model {
            None => Source::Const(String::new()),
            Some(p) => Source::Slot(paths.slot(p)?),
        };
        let outcome = paths.slot(&o.outcome)?;
        Ok(Shape {
            model,
            version: Source::Const(String::new()),
            segments: Vec::new(),
            segment_bits: 0,
            id,
            time,
            form: Form::Absent,
            prediction: usize::MAX,
            outcome,
            weight: None,
            cluster: None,
            names: paths.names.clone(),
            meanings: meanings(&o.outcome_map, &o.classes, Form::Absent)?,
            classes: classes(&o.classes, Form::Absent)?,
            numbers_are_names: are_numbers(&o.classes),
            ahead_ms_max: o.ahead_ms_max,
        })
    }
}

fn time(
    field: &Option<TimeField>,
    paths: &mut Paths,
) -> Result<Option<TimeSlot>, DecodeOptionsError> {
    Ok(match field {
        None => None,
        Some(t) => Some(TimeSlot {
            slot: paths.slot(&t.path)?,
            unit: t.unit,
            zone_s: t.zone_s,
        }),
    })
}

/// What outcomes mean that are neither names nor indices of classes.
fn meanings(
    map: &[(String, String)],
    classes: &[String],
    form: Form,
) -> Result<HashMap<String, u32>, DecodeOptionsError> {
    // How many classes there are, where that is known.
    let most = match (form, classes.len()) {
        (Form::Score, 0) => 2,
        (_, 0) => usize::MAX,
        (_, listed) => listed,
    };
    let mut meanings = HashMap::new();
    for (text, class) in map {
        let named = classes.iter().position(|c| c == class);
        let index = named.and_then(|k| u32::try_from(k).ok());
        let index = index.or_else(|| class.parse().ok().filter(|_| !are_numbers(classes)));
        let Some(index) = index.filter(|k| (*k as usize) < most) else {
            return Err(DecodeOptionsError(format!(
                "`outcome_map` says that \"{text}\" is `{class}`, which is no class; write its name as in `classes`, or \
                 its index"
            )));
        };
        if meanings.insert(text.clone(), index).is_some() {
            return Err(DecodeOptionsError(format!(
                "`outcome_map` has \"{text}\" twice; keep one"
            )));
        }
    }
    Ok(meanings)
}

fn source(f: &FieldOrConst, paths: &mut Paths) -> Result<Source, DecodeOptionsError> {
    Ok(match f {
        FieldOrConst::Const(c) => Source::Const(c.clone()),
        FieldOrConst::Field(p) => Source::Slot(paths.slot(p)?),
    })
}

/// Whether there are names and all of them are whole numbers as `1` or `-1` is written.
pub(crate) fn are_numbers(names: &[String]) -> bool {
    let is_number = |name: &String| name.parse::<i64>().is_ok_and(|n| n.to_string() == *name);
    !names.is_empty() && names.iter().all(is_number)
}

fn classes(names: &[String], form: Form) -> Result<HashMap<String, u32>, DecodeOptionsError> {
    let mut map = HashMap::new();
    for (k, name) in (0u32..).zip(names) {
        if map.insert(name.clone(), k).is_some() {
            return Err(DecodeOptionsError(format!(
                "class `{name}` appears twice in `classes`; name each class once"
            )));
        }
    }
    match (form, map.len()) {
        (Form::ClassMap, 0 | 1) => Err(DecodeOptionsError(
            "a class map needs class names; list at least two in `classes` of the [[model]]".into(),
        )),
        (Form::Score, n) if n != 0 && n != 2 => Err(DecodeOptionsError(format!(
            "a single score goes with two classes, not {n}; list the negative and the positive one in `classes`"
        ))),
        (Form::Vector, 1) => Err(DecodeOptionsError(
            "one class is no choice; list at least two in `classes`, or none".into(),
        )),
        _ => Ok(map),
    }
}
