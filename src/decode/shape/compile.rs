//! Compiles the options of a source into a [`Shape`].

use super::super::classes::are_numbers;
use super::super::options::{
    DecodeOptions, DecodeOptionsError, FieldOrConst, IdField, OutcomeOptions, PredictionField,
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
    pub fn of_outcomes(o: &OutcomeOptions, paths: &mut Paths) -> Result<Shape, DecodeOptionsError> {
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

/// The class of each outcome in `outcome_map`.
fn meanings(
    map: &[(String, String)],
    classes: &[String],
    form: Form,
) -> Result<HashMap<String, u32>, DecodeOptionsError> {
    // The number of classes, if known.
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
    // With two classes 1 and true are the same outcome, and so are 0 and false, so mapping one maps
    // both.
    let unlisted = classes.is_empty() && matches!(form, Form::Score | Form::Absent);
    for (text, same) in [("1", "true"), ("true", "1"), ("0", "false"), ("false", "0")] {
        let is_free = !meanings.contains_key(same) && classes.iter().all(|c| c != same);
        if let Some(&class) = meanings.get(text)
            && is_free
            && (unlisted || classes.len() == 2)
        {
            meanings.insert(same.to_owned(), class);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The class that a map gives each of the four texts.
    fn meant(map: &[(&str, &str)], names: &[&str], form: Form) -> [Option<u32>; 4] {
        let map = map
            .iter()
            .map(|(text, class)| (text.to_string(), class.to_string()));
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let found = meanings(&map.collect::<Vec<_>>(), &names, form).expect("sound");
        ["1", "true", "0", "false"].map(|text| found.get(text).copied())
    }

    #[test]
    fn of_two_classes_a_map_of_numbers_is_one_of_truth_values_and_the_other_way_round() {
        let turned = [Some(0), Some(0), Some(1), Some(1)];
        for form in [Form::Score, Form::Absent] {
            assert_eq!(meant(&[("1", "0"), ("0", "1")], &[], form), turned);
            assert_eq!(meant(&[("true", "0"), ("false", "1")], &[], form), turned);
        }
        let half = [Some(0), Some(0), None, None];
        assert_eq!(meant(&[("1", "no")], &["no", "yes"], Form::Vector), half);
        // The map and the class names both hold.
        let both = [Some(0), Some(1), None, None];
        assert_eq!(meant(&[("1", "0"), ("true", "1")], &[], Form::Score), both);
        let named = [None, Some(0), None, None];
        assert_eq!(meant(&[("true", "0")], &["0", "1"], Form::Score), named);
        // With more than two classes a truth value is not a class.
        let many = [Some(2), None, None, None];
        assert_eq!(meant(&[("1", "2")], &[], Form::Vector), many);
        assert_eq!(meant(&[("1", "c")], &["a", "b", "c"], Form::Vector), many);
    }
}
