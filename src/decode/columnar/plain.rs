//! Scores and labels as slices, for `evaluate`, when they need no conversion to text.
//!
//! A column of floats, and one of booleans or of the numbers 0 and 1, are read from their buffers.
//! Everything else (text, decimals, dictionaries, weights, clusters, vectors) is read row by row,
//! like CSV, with the same results.

use super::super::columns::{Columns, Labels};
use super::super::scores::parse_score;
use super::super::scores_error::ScoresError;
use super::column::Column;
use super::{Batches, Opened};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int8Type, Int32Type, Int64Type, UInt8Type};
use arrow_schema::DataType;

/// Scores and labels of some rows.
pub type Batch<'a> = (&'a [f64], &'a [bool]);

/// Batches of scores and labels.
pub struct Plain {
    batches: Batches,
    name: String,
    columns: Columns,
    scores: Vec<f64>,
    labels: Vec<bool>,
}

impl Plain {
    /// The two columns, if no others are wanted and both are plain.
    pub(in super::super) fn of(
        name: &str,
        file: Opened,
        columns: &Columns,
    ) -> Result<Result<Plain, Opened>, ScoresError> {
        let named = [
            (columns.weight.as_deref(), "weight"),
            (columns.cluster.as_deref(), "cluster"),
        ];
        let more = named
            .iter()
            .any(|(named, usual)| named.is_some() || file.has(usual));
        let score = file.type_of(&columns.score);
        let label = file.type_of(&columns.label);
        let plain = matches!(score, Some(DataType::Float32 | DataType::Float64))
            && matches!(
                label,
                Some(
                    DataType::Boolean
                        | DataType::Int8
                        | DataType::Int32
                        | DataType::Int64
                        | DataType::UInt8
                        | DataType::Float32
                        | DataType::Float64
                )
            );
        if more || !plain || columns.positive.is_some() || !columns.classes.is_empty() {
            return Ok(Err(file));
        }
        let wanted = [columns.score.clone(), columns.label.clone()];
        Ok(Ok(Plain {
            batches: file.read(&wanted).map_err(ScoresError)?,
            name: name.to_owned(),
            columns: columns.clone(),
            scores: Vec::new(),
            labels: Vec::new(),
        }))
    }

    /// The scores and labels of the next batch; `None` at the end.
    pub fn advance(&mut self) -> Result<Option<Batch<'_>>, ScoresError> {
        let Some(columns) = self.batches.advance().map_err(ScoresError)? else {
            return Ok(None);
        };
        let [score, label] = &columns[..] else {
            return Ok(None);
        };
        self.scores.clear();
        self.labels.clear();
        if floats(score, &mut self.scores) && truths(label, &mut self.labels) {
            return Ok(Some((&self.scores, &self.labels)));
        }
        self.by_row(score, label)?;
        Ok(Some((&self.scores, &self.labels)))
    }

    /// Reads a batch with the checks of every format, which find the first invalid row and its
    /// message.
    fn by_row(&mut self, score: &Column, label: &Column) -> Result<(), ScoresError> {
        self.scores.clear();
        self.labels.clear();
        let mut labels = Labels::new(&self.columns);
        let mut text = String::new();
        for row in 0..self.batches.rows() {
            let fault = |what: String| {
                let number = self.batches.number(row);
                ScoresError(format!("{}: row {number}: {what}", self.name))
            };
            score.cell(row, &mut text);
            self.scores.push(parse_score(&text).map_err(fault)?);
            label.cell(row, &mut text);
            self.labels.push(labels.outcome(&text).map_err(fault)?);
        }
        Ok(())
    }
}

/// Appends the scores; `false` if one is missing or not a number.
fn floats(column: &Column, out: &mut Vec<f64>) -> bool {
    let (Some(values), None) = (column.in_order(), &column.nulls) else {
        return false;
    };
    match values.data_type() {
        // Adding 0 turns -0 into 0.
        DataType::Float64 => {
            out.extend(
                values
                    .as_primitive::<Float64Type>()
                    .values()
                    .iter()
                    .map(|z| z + 0.0),
            );
        }
        DataType::Float32 => {
            let all = values.as_primitive::<Float32Type>().values().iter();
            out.extend(all.map(|z| f64::from(*z) + 0.0));
        }
        _ => return false,
    }
    out.iter().all(|z| (0.0..=1.0).contains(z))
}

/// Appends the outcomes; `false` if one is missing, or is neither 0 nor 1.
fn truths(column: &Column, out: &mut Vec<bool>) -> bool {
    let (Some(values), None) = (column.in_order(), &column.nulls) else {
        return false;
    };
    macro_rules! numbers {
        ($kind:ty, $zero:expr, $one:expr) => {{
            let all = values.as_primitive::<$kind>().values();
            out.extend(all.iter().map(|y| *y == $one));
            all.iter().all(|y| *y == $zero || *y == $one)
        }};
    }
    match values.data_type() {
        DataType::Boolean => {
            out.extend(values.as_boolean().values().iter());
            true
        }
        DataType::Int8 => numbers!(Int8Type, 0, 1),
        DataType::UInt8 => numbers!(UInt8Type, 0, 1),
        DataType::Int32 => numbers!(Int32Type, 0, 1),
        DataType::Int64 => numbers!(Int64Type, 0, 1),
        DataType::Float32 => numbers!(Float32Type, 0.0, 1.0),
        DataType::Float64 => numbers!(Float64Type, 0.0, 1.0),
        _ => false,
    }
}
