//! Reads files of probability vectors for `evaluate`: tables with the columns `p0` … `p{K−1}`,
//! `label` and optionally `weight`, or the names given on the command line.
//!
//! `label` is the true class: its index, from 0, or its name. As for scores, an invalid line ends
//! the reading with file, line and remedy. [`read`] accepts both kinds of files.

use std::io::Read;
use std::path::Path;

#[cfg(feature = "columnar")]
use super::columnar::Opened;
use super::columnar::container::Container;
#[cfg(feature = "columnar")]
use super::columnar::container::shown;
use super::columnar::container_of;
#[cfg(feature = "columnar")]
pub use super::columnar::plain::Plain;
use super::columns::{Columns, Labels};
use super::rows::Rows;
use super::scores::{self, Sample, parse_score, parse_weight};
use super::scores_error::{ScoresError, empty};
use crate::stats::kernel::Vectors;
use crate::stats::view::ViewError;

/// Content of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Table {
    /// Scores of one class.
    Scores(Sample),
    /// Probabilities of all classes with the true class, and the weights if the file has a column
    /// of them.
    Vectors(Vectors, Option<Vec<f64>>),
}

/// Reads a whole sample of either kind; `name` is the name of the file in messages. A table has
/// vectors if the columns of classes are named, its scores are lists, or it has `p0` and no score.
pub fn read(name: &str, input: impl Read, columns: &Columns) -> Result<Table, ScoresError> {
    table(name, Rows::open(name, input)?, columns)
}

/// Reads a file of Parquet or Arrow like [`read`]; `None` if it is of another kind.
pub fn read_columnar(path: &Path, columns: &Columns) -> Option<Result<Table, ScoresError>> {
    let container = container_of(path)?;
    Some(in_columns(path, container, columns))
}

#[cfg(not(feature = "columnar"))]
fn in_columns(path: &Path, _: Container, _: &Columns) -> Result<Table, ScoresError> {
    Err(ScoresError(super::columnar::container::refusal(path)))
}

#[cfg(feature = "columnar")]
fn in_columns(path: &Path, container: Container, columns: &Columns) -> Result<Table, ScoresError> {
    let name = shown(path);
    let file = Opened::new(path, container).map_err(ScoresError)?;
    let mut plain = match Plain::of(&name, file, columns)? {
        Ok(plain) => plain,
        Err(file) => return table(&name, Rows::columnar(&name, file), columns),
    };
    let mut sample = Vec::new();
    while let Some((scores, labels)) = plain.advance()? {
        sample.extend(scores.iter().copied().zip(labels.iter().copied()));
    }
    match sample.is_empty() {
        true => Err(empty(&name)),
        false => Ok(Table::Scores(Sample::Plain(sample))),
    }
}

/// The scores and outcomes of a file of Parquet or Arrow, batch by batch, if they are plain columns
/// of numbers; `None` for other files.
#[cfg(feature = "columnar")]
pub fn plain_columns(path: &Path, columns: &Columns) -> Option<Result<Plain, ScoresError>> {
    let container = container_of(path)?;
    let opened = Opened::new(path, container).map_err(ScoresError);
    let name = shown(path);
    opened
        .and_then(|file| Plain::of(&name, file, columns))
        .map(Result::ok)
        .transpose()
}

fn table(name: &str, mut rows: Rows<'_>, columns: &Columns) -> Result<Table, ScoresError> {
    let names = rows.names();
    let unnamed = names.contains(&"p0") && !names.contains(&columns.score.as_str());
    let listed = rows.is_list(&columns.score);
    if unnamed || listed || !columns.classes.is_empty() {
        return read_vectors(name, &mut rows, columns);
    }
    scores::read_rows(name, &mut rows, columns).map(Table::Scores)
}

/// Most classes of a file. More are probably a mistake.
const CLASSES_MAX: usize = 10_000;

fn read_vectors(name: &str, rows: &mut Rows<'_>, columns: &Columns) -> Result<Table, ScoresError> {
    let listed = match columns.classes.is_empty() {
        true => rows.first_items(&columns.score)?,
        false => None,
    };
    let places: Vec<usize> = if let Some(classes) = listed {
        let elements = (0..classes).map(|k| rows.need(&format!("{}.{k}", columns.score)));
        elements.collect::<Result<_, _>>()?
    } else if columns.classes.is_empty() {
        (0..CLASSES_MAX)
            .map_while(|k| rows.find(&format!("p{k}")).transpose())
            .collect::<Result<_, _>>()?
    } else {
        let named = columns.classes.iter().map(|(_, column)| rows.need(column));
        named.collect::<Result<_, _>>()?
    };
    let label = rows.find(&columns.label)?;
    let Some(label) = label.filter(|_| places.len() >= 2) else {
        return Err(ScoresError(format!(
            "{name}:1: the table must have the columns p0, p1, … of at least two classes and label, or say what they \
             are called with --classes and --label"
        )));
    };
    let (weight, cluster) = scores::attributes(rows, columns)?;
    if cluster.is_some() {
        return Err(ScoresError(format!(
            "{name}:1: the column cluster is supported for one class only: give score and label, or drop it"
        )));
    }
    let labels = Labels::new(columns);
    let (mut sample, mut weights) = (Vectors::new(places.len()), Vec::new());
    let mut row = Vec::new();
    while rows.advance()? {
        let place = |what: String| rows.fault(what);
        if let (Some(first), Some(items)) = (listed, rows.items())
            && items != first
        {
            return Err(place(format!(
                "the list has {items} items and the first one {first}; write a probability for each class"
            )));
        }
        row.clear();
        for &c in &places {
            row.push(parse_score(rows.cell(c)).map_err(place)?);
        }
        let class = labels
            .class(rows.cell(label), places.len())
            .map_err(place)?;
        sample
            .push(&row, class)
            .map_err(|e| place(fault(e, &row)))?;
        if let Some(weight) = weight {
            weights.push(parse_weight(rows.cell(weight)).map_err(place)?);
        }
    }
    if sample.is_empty() {
        return Err(empty(name));
    }
    Ok(Table::Vectors(sample, weight.map(|_| weights)))
}

fn fault(e: ViewError, row: &[f64]) -> String {
    match e {
        ViewError::VectorSum => format!(
            "the probabilities sum to {}; they must sum to 1 within 0.001",
            row.iter().sum::<f64>()
        ),
        other => format!("no vector of probabilities ({other:?}); correct the line"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of a table, and its weights.
    fn vectors(text: &str, columns: &Columns) -> (Vectors, Option<Vec<f64>>) {
        match read("v", text.as_bytes(), columns) {
            Ok(Table::Vectors(vectors, weights)) => (vectors, weights),
            other => panic!("{other:?}"),
        }
    }

    fn fault_of(text: &str) -> String {
        read("v.csv", text.as_bytes(), &Columns::default())
            .map_or_else(|e| e.to_string(), |t| format!("{t:?}"))
    }

    #[test]
    fn a_bad_class_is_named_with_its_line_whatever_ends_the_lines() {
        for end in ["\n", "\r\n"] {
            let text = ["p0,p1,label", "0.5,0.5,1", "0.25,0.75,cat", ""].join(end);
            let told = fault_of(&text);
            assert!(
                told.starts_with("v.csv:3: label 'cat' is no class"),
                "{told}"
            );
        }
    }

    #[test]
    fn the_header_tells_vectors_from_scores() {
        let text = "label,p1,p0,p2\n2,0.3,0.5,0.2\n";
        let (v, weights) = vectors(text, &Columns::default());
        assert_eq!((v.row(0), v.outcome(0)), (&[0.5, 0.3, 0.2][..], 2));
        assert_eq!(weights, None);
        let text = "p0,weight,p1,label\n0.25,2.5,0.75,1\n";
        let (v, weights) = vectors(text, &Columns::default());
        assert_eq!((v.row(0), v.outcome(0)), (&[0.25, 0.75][..], 1));
        assert_eq!(weights, Some(vec![2.5]));
        let told = fault_of("p0,p1,weight,label\n0.25,0.75,0,1\n");
        assert!(
            told.starts_with("v.csv:2: weight 0 is not above 0"),
            "{told}"
        );
        let text = "score,label,p0\n0.5,1,0\n";
        let table = read("v.csv", text.as_bytes(), &Columns::default());
        assert_eq!(table, Ok(Table::Scores(Sample::Plain(vec![(0.5, true)]))));
    }

    #[test]
    fn columns_and_classes_are_what_the_command_line_calls_them() {
        let columns = Columns {
            label: "truth".to_owned(),
            classes: vec![
                ("cat".to_owned(), "p_cat".to_owned()),
                ("dog".to_owned(), "p_dog".to_owned()),
            ],
            ..Columns::default()
        };
        let csv = "p_dog,truth,p_cat\n0.3,dog,0.7\n0.5,0,0.5\n";
        let json = "{\"p_dog\":0.3,\"truth\":\"dog\",\"p_cat\":0.7}\n\n{\"p_dog\":0.5,\"truth\":0,\"p_cat\":0.5}\n";
        for text in [csv, json] {
            let (v, _) = vectors(text, &columns);
            assert_eq!((v.row(0), v.outcome(0)), (&[0.7, 0.3][..], 1));
            assert_eq!(v.outcome(1), 0);
        }
        // Class names that are whole numbers are not indices.
        let stars = Columns {
            classes: ["1", "2"].map(|s| (s.to_owned(), format!("p{s}"))).to_vec(),
            ..Columns::default()
        };
        let text = "p1,p2,label\n0.4,0.6,1\n0.4,0.6,0\n";
        let told = read("v.csv", text.as_bytes(), &stars)
            .expect_err("0 is no name")
            .0;
        assert!(told.starts_with("v.csv:3: label '0' is no class"), "{told}");

        let scores = Columns {
            score: "prediction.p".to_owned(),
            label: "y".to_owned(),
            positive: Some("spam".to_owned()),
            ..Columns::default()
        };
        let text = "{\"prediction\":{\"p\":0.25},\"y\":\"spam\"}\n{\"prediction\":{\"p\":1},\"y\":\"ham\"}\n";
        let table = read("s.jsonl", text.as_bytes(), &scores);
        let plain = Sample::Plain(vec![(0.25, true), (1.0, false)]);
        assert_eq!(table, Ok(Table::Scores(plain)));
        let third = format!("{text}{{\"prediction\":{{\"p\":1}},\"y\":\"eggs\"}}\n");
        let told = read("s.jsonl", third.as_bytes(), &scores)
            .expect_err("a third label")
            .0;
        assert!(
            told.starts_with("s.jsonl:3: label 'eggs' is a third one"),
            "{told}"
        );
    }

    #[test]
    fn a_list_in_json_lines_has_the_probabilities_of_all_classes() {
        let text = "{\"score\":[0.25,0.75],\"label\":1}\n{\"score\":[0.5,0.5],\"label\":0}\n";
        let (v, _) = vectors(text, &Columns::default());
        assert_eq!((v.row(0), v.outcome(0)), (&[0.25, 0.75][..], 1));
        let places = ["score.1", "score.0"].map(|c| (c.to_owned(), c.to_owned()));
        let places = Columns {
            classes: places.to_vec(),
            ..Columns::default()
        };
        let (v, _) = vectors(text, &places);
        assert_eq!((v.row(0), v.outcome(0)), (&[0.75, 0.25][..], 1));
        let one = "{\"pred\":[{\"p\":0.25}],\"label\":1}\n";
        let path = Columns {
            score: "pred.0.p".to_owned(),
            ..Columns::default()
        };
        let table = read("s.jsonl", one.as_bytes(), &path);
        assert_eq!(table, Ok(Table::Scores(Sample::Plain(vec![(0.25, true)]))));
        for (row, said) in [
            ("[0.4,0.3,0.3]", "the list has 3 items and the first one 2"),
            ("[1]", "the list has 1 items and the first one 2"),
            ("null", "there is no score"),
        ] {
            let told = fault_of(&format!("{text}{{\"score\":{row},\"label\":0}}\n"));
            assert!(told.starts_with(&format!("v.csv:3: {said}")), "{told}");
        }
    }

    #[test]
    fn every_fault_of_a_vector_names_its_line() {
        let start = "p0,p1,label\n0.5,0.5,1\n";
        for (line, said) in [
            ("0.5,0.6,1", "v.csv:3: the probabilities sum to 1.1"),
            ("0.5,0.5,2", "v.csv:3: label '2' is no class"),
            ("0.5,x,1", "v.csv:3: score 'x' is not a number"),
        ] {
            let e = fault_of(&format!("{start}{line}\n"));
            assert!(e.starts_with(said), "{e}");
        }
        assert!(fault_of("p0,label\n1,0\n").contains("at least two classes"));
        assert!(fault_of("p0,p1,label\n").contains("no events"));
    }
}
