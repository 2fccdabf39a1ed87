//! The names of the columns of a table for `evaluate`, and the meaning of its labels.

use super::classes::{are_numbers, index, integer, of_cell};
use super::rejection::shorten;

/// Names of the columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// The score.
    pub score: String,
    /// The outcome.
    pub label: String,
    /// The weight; `None` means `weight`, if that column exists.
    pub weight: Option<String>,
    /// The cluster; `None` means `cluster`, if that column exists.
    pub cluster: Option<String>,
    /// The class and the column of its probability, in the order of the classes; if empty, `p0`,
    /// `p1`, …
    pub classes: Vec<(String, String)>,
    /// The label that counts as positive; `None` means 1 and true.
    pub positive: Option<String>,
}

impl Default for Columns {
    fn default() -> Columns {
        Columns {
            score: "score".to_owned(),
            label: "label".to_owned(),
            weight: None,
            cluster: None,
            classes: Vec::new(),
            positive: None,
        }
    }
}

/// Reads `class=column`, or a name that the class and its column share.
pub fn class_column(text: &str) -> (String, String) {
    let (class, column) = text.split_once('=').unwrap_or((text, text));
    (class.trim().to_owned(), column.trim().to_owned())
}

/// Reads the labels of one sample.
#[derive(Debug, Clone)]
pub struct Labels<'c> {
    columns: &'c Columns,
    /// The names of all classes are whole numbers, so a number is a name and not an index.
    numbers_are_names: bool,
    /// The label other than the positive one, once seen.
    negative: Option<String>,
    positive_seen: bool,
}

impl<'c> Labels<'c> {
    /// Reads labels according to these columns.
    pub fn new(columns: &'c Columns) -> Labels<'c> {
        Labels {
            columns,
            numbers_are_names: are_numbers(columns.classes.iter().map(|(class, _)| class)),
            negative: None,
            positive_seen: false,
        }
    }

    /// Whether the label is the positive one.
    pub fn outcome(&mut self, text: &str) -> Result<bool, String> {
        let Some(positive) = &self.columns.positive else {
            return binary(text);
        };
        if same(text, positive) {
            self.positive_seen = true;
            return Ok(true);
        }
        if text.is_empty() {
            return Err(NO_LABEL.to_owned());
        }
        let negative = self.negative.get_or_insert_with(|| text.to_owned());
        if same(text, negative) {
            return Ok(false);
        }
        let (text, negative) = (shorten(text), shorten(negative));
        if !self.positive_seen {
            return Err(format!(
                "no label is `{positive}` up to here; the file has `{negative}`, `{text}`{MORE_CLASSES}"
            ));
        }
        Err(format!(
            "label '{text}' is a third one beside '{positive}' and '{negative}'{MORE_CLASSES}"
        ))
    }

    /// The index of the class that happened, among `classes`.
    pub fn class(&self, text: &str, classes: usize) -> Result<u32, String> {
        if text.is_empty() {
            return Err(NO_LABEL.to_owned());
        }
        let names = &self.columns.classes;
        let called = |name: &str| names.iter().position(|(class, _)| class == name);
        // A class may have the name of another class's column.
        let named = called(text).or_else(|| names.iter().position(|(_, column)| column == text));
        let named = match self.numbers_are_names {
            true => named.or_else(|| called(&integer(text)?)),
            false => named,
        };
        if let Some(class) = named.and_then(|class| u32::try_from(class).ok()) {
            return Ok(class);
        }
        let how = match names.is_empty() {
            true => {
                let list = &self.columns.score;
                format!(
                    "name the classes, of columns with --classes cat=p0,dog=p1 and of a list with \
                     --classes cat={list}.0,dog={list}.1 in place of --score"
                )
            }
            false => "its name as --classes gives it".to_owned(),
        };
        match index(text) {
            Some(class) if (class as usize) < classes && !self.numbers_are_names => Ok(class),
            _ => Err(format!(
                "label '{}' is no class; write the index of the class that happened, 0 to {}, or {how}",
                shorten(text),
                classes - 1
            )),
        }
    }
}

/// The problem with a sample without positive outcomes, if a positive label was named. A binary
/// positive label is compared by value, so a sample of negatives alone is valid.
pub fn without_positive(columns: &Columns) -> Option<String> {
    let positive = columns.positive.as_ref()?;
    binary(positive).is_err().then(|| {
        format!(
            "no label is `{positive}`, so that all events are negative; labels are compared letter by letter, also \
             upper and lower case"
        )
    })
}

/// Message part: what to do if there are more than two labels.
const MORE_CLASSES: &str = "; of more than two classes, give the probability of each with --classes and one of them \
                            with --view class:K, or a label that says whether this class happened";

/// The message for an empty label.
const NO_LABEL: &str = "there is no label; leave out events without an outcome";

/// Whether two labels mean the same, as `true`, `1` and `1.0` do.
fn same(a: &str, b: &str) -> bool {
    let value =
        |text: &str| of_cell(text, true).map_or_else(|| integer(text), |v| Some(v.to_string()));
    a == b || value(a).is_some_and(|a| value(b).is_some_and(|b| a == b))
}

fn binary(text: &str) -> Result<bool, String> {
    match of_cell(text, true) {
        Some(0) => Ok(false),
        Some(1) => Ok(true),
        _ if text.is_empty() => Err(NO_LABEL.to_owned()),
        _ => Err(format!(
            "label '{}' is neither 0 nor 1; say which one is positive with --positive, or, for several classes, \
             give the label of one class against the rest",
            shorten(text)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(positive: &str) -> Columns {
        Columns {
            positive: Some(positive.to_owned()),
            ..Columns::default()
        }
    }

    #[test]
    fn a_positive_label_that_never_occurs_is_told_with_those_that_do() {
        let columns = columns("Yes");
        let mut labels = Labels::new(&columns);
        assert_eq!(labels.outcome("yes"), Ok(false));
        let why = labels.outcome("no").unwrap_err();
        let words = "no label is `Yes` up to here; the file has `yes`, `no`; of more than two";
        assert!(why.starts_with(words), "{why}");
        assert!(
            why.contains("--classes") && why.contains("--view class:K"),
            "{why}"
        );
        let why = without_positive(&columns).unwrap();
        assert!(why.starts_with("no label is `Yes`"), "{why}");
        assert!(labels.outcome("Yes").is_ok());
        assert!(labels.outcome("no").unwrap_err().contains("a third one"));
    }

    #[test]
    fn a_positive_label_that_is_a_number_has_one_other_beside_it() {
        let columns = columns("1");
        let of = |texts: &[&str]| {
            let mut labels = Labels::new(&columns);
            let all = texts.iter().map(|text| labels.outcome(text));
            all.collect::<Result<Vec<bool>, String>>()
        };
        assert_eq!(
            of(&["1", "2", "1.0", "2"]),
            Ok(vec![true, false, true, false])
        );
        assert_eq!(of(&["0", "1", "false"]), Ok(vec![false, true, false]));
        assert!(of(&["0", "1", "2"]).unwrap_err().contains("a third one"));
    }

    #[test]
    fn binary_labels_are_compared_by_their_value() {
        for (positive, text, outcome) in [
            ("1", "true", true),
            ("1", "0", false),
            ("true", "1.0", true),
            ("0", "False", true),
            ("0", "1", false),
            ("1", "1.00", true),
            ("2", "2.0", true),
        ] {
            let columns = columns(positive);
            assert_eq!(
                Labels::new(&columns).outcome(text),
                Ok(outcome),
                "{positive} {text}"
            );
            assert_eq!(without_positive(&columns).is_some(), positive == "2");
        }
    }

    #[test]
    fn a_whole_number_is_its_class_however_it_is_written() {
        let columns = Columns::default();
        let mut labels = Labels::new(&columns);
        assert_eq!(labels.outcome("0.00"), Ok(false));
        assert_eq!(labels.outcome("1.00"), Ok(true));
        assert!(labels.outcome("0.5").is_err());
        assert_eq!(labels.class("1.0", 3), Ok(1));
        assert_eq!(labels.class("2", 3), Ok(2));
        for wrong in ["3.0", "0.5", "-1.0", "true"] {
            assert!(labels.class(wrong, 3).is_err(), "{wrong}");
        }
        // Names that are whole numbers are not indices.
        let stars = Columns {
            classes: ["-1", "1"].map(|s| (s.to_owned(), s.to_owned())).to_vec(),
            ..Columns::default()
        };
        let labels = Labels::new(&stars);
        assert_eq!(labels.class("-1.0", 2), Ok(0));
        assert_eq!(labels.class("1.0", 2), Ok(1));
        assert!(labels.class("0", 2).is_err());
    }

    #[test]
    fn a_label_of_a_list_of_probabilities_is_told_how_to_name_its_classes() {
        let mut columns = Columns {
            score: "probs".to_owned(),
            ..Columns::default()
        };
        let why = Labels::new(&columns).class("dog", 2).unwrap_err();
        assert!(
            why.ends_with("--classes cat=probs.0,dog=probs.1 in place of --score"),
            "{why}"
        );
        columns.classes = vec![class_column("cat=p0"), class_column("dog=p1")];
        let why = Labels::new(&columns).class("cow", 2).unwrap_err();
        assert!(why.ends_with("or its name as --classes gives it"), "{why}");
    }

    #[test]
    fn an_event_without_a_label_is_to_be_left_out() {
        let columns = Columns::default();
        let mut labels = Labels::new(&columns);
        for said in [labels.outcome("").err(), labels.class("", 3).err()] {
            let said = said.expect("no label");
            assert!(
                said.contains("leave out events without an outcome"),
                "{said}"
            );
        }
    }
}
