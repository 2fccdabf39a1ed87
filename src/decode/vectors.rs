//! Reads files of probability vectors for `evaluate`: CSV with the columns `p0` … `p{K−1}`, `label`
//! and optionally `weight`.
//!
//! `label` is the index of the true class, from 0. As for scores, an invalid line ends the reading
//! with file, line and remedy. [`read`] accepts both kinds of files and distinguishes them by the
//! header: a header with `p0` and without `score` is one of vectors.

use std::io::{BufRead, BufReader, Read};

use super::scores::{self, Sample, ScoresError, broken, empty, parse_score, parse_weight};
use crate::stats::clusters::Bucket;
use crate::stats::kernel::Vectors;
use crate::stats::view::ViewError;
use crate::stats::weighted::WeightedEvent;

/// Content of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Table {
    /// Scores of one class with their outcomes.
    Scores(Vec<(f64, bool)>),
    /// Scores, outcomes and weights.
    Weighted(Vec<WeightedEvent>),
    /// Scores, outcomes and clusters.
    Clustered(Vec<(f64, bool, Bucket)>),
    /// Probabilities of all classes, with the true class.
    Vectors(Vectors),
    /// Probabilities of all classes, with the true class and the weight.
    WeightedVectors(Vectors, Vec<f64>),
}

/// Reads a whole sample of either kind; `name` is the name of the file in messages.
pub fn read(name: &str, input: impl Read) -> Result<Table, ScoresError> {
    let mut input = BufReader::with_capacity(HEADER_BYTES, input);
    // A file that cannot be read says so when its lines are.
    let start = input.fill_buf().unwrap_or_default();
    let line = start.split(|b| *b == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut names = line
        .split(',')
        .map(|n| n.trim_matches(['\u{feff}', '"', ' ', '\r']));
    if names.clone().any(|n| n == "p0") && !names.any(|n| n == "score") {
        read_vectors(name, input)
    } else {
        Ok(match scores::read(name, input)? {
            Sample::Plain(sample) => Table::Scores(sample),
            Sample::Weighted(sample) => Table::Weighted(sample),
            Sample::Clustered(sample) => Table::Clustered(sample),
        })
    }
}

/// Enough for the header of ten thousand classes.
const HEADER_BYTES: usize = 1 << 17;

/// Most classes of a file. A row with more is more likely a mistake.
const CLASSES_MAX: usize = 10_000;

fn read_vectors(name: &str, input: impl Read) -> Result<Table, ScoresError> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(input);
    let header = reader.headers().map_err(|e| broken(name, &e))?.clone();
    let column = |wanted: &str| {
        let mut names = header.iter().map(|h| h.trim_start_matches('\u{feff}'));
        names.position(|h| h == wanted)
    };
    let columns: Vec<usize> = (0..CLASSES_MAX)
        .map_while(|k| column(&format!("p{k}")))
        .collect();
    let Some(label) = column("label").filter(|_| columns.len() >= 2) else {
        return Err(ScoresError(format!(
            "{name}:1: the first line must name the columns p0, p1, … of at least two classes and label"
        )));
    };
    let weight = column("weight");
    if column("cluster").is_some() {
        return Err(ScoresError(format!(
            "{name}:1: the column cluster is supported for one class only: give score and label, or drop it"
        )));
    }
    let (mut sample, mut weights) = (Vectors::new(columns.len()), Vec::new());
    let (mut record, mut row) = (csv::StringRecord::new(), Vec::new());
    while reader
        .read_record(&mut record)
        .map_err(|e| broken(name, &e))?
    {
        let line = record.position().map_or(0, csv::Position::line);
        let place = |what: String| ScoresError(format!("{name}:{line}: {what}"));
        row.clear();
        for &c in &columns {
            row.push(parse_score(record.get(c).unwrap_or_default()).map_err(place)?);
        }
        let text = record.get(label).unwrap_or_default();
        let class = parse_class(text, columns.len()).map_err(place)?;
        sample
            .push(&row, class)
            .map_err(|e| place(fault(e, &row)))?;
        if let Some(weight) = weight {
            let text = record.get(weight).unwrap_or_default();
            weights.push(parse_weight(text).map_err(place)?);
        }
    }
    if sample.is_empty() {
        return Err(empty(name));
    }
    Ok(match weight {
        None => Table::Vectors(sample),
        Some(_) => Table::WeightedVectors(sample, weights),
    })
}

fn parse_class(text: &str, classes: usize) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(class) if (class as usize) < classes => Ok(class),
        _ => Err(format!(
            "label '{text}' is no class; write the index of the class that happened, 0 to {}",
            classes - 1
        )),
    }
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

    fn fault_of(text: &str) -> String {
        read("v.csv", text.as_bytes()).map_or_else(|e| e.to_string(), |t| format!("{t:?}"))
    }

    #[test]
    fn the_header_tells_vectors_from_scores() {
        let text = "label,p1,p0,p2\n2,0.3,0.5,0.2\n";
        let Ok(Table::Vectors(v)) = read("v.csv", text.as_bytes()) else {
            panic!("read as scores");
        };
        assert_eq!((v.row(0), v.outcome(0)), (&[0.5, 0.3, 0.2][..], 2));
        let text = "p0,weight,p1,label\n0.25,2.5,0.75,1\n";
        let Ok(Table::WeightedVectors(v, w)) = read("v.csv", text.as_bytes()) else {
            panic!("read without weights");
        };
        assert_eq!(
            (v.row(0), v.outcome(0), w),
            (&[0.25, 0.75][..], 1, vec![2.5])
        );
        let told = fault_of("p0,p1,weight,label\n0.25,0.75,0,1\n");
        assert!(
            told.starts_with("v.csv:2: weight 0 is not above 0"),
            "{told}"
        );
        let text = "score,label,p0\n0.5,1,0\n";
        let table = read("v.csv", text.as_bytes());
        assert_eq!(table, Ok(Table::Scores(vec![(0.5, true)])));
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
