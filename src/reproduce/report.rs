//! Tables of reproduced numbers, each with its Monte Carlo error and the published number.

use serde_json::{Value, json};
use std::fmt::Write;

/// A reproduced number, and the one that it is compared with.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cell {
    /// Our number.
    pub ours: f64,
    /// Monte Carlo standard error; 0 if nothing was drawn.
    pub error: f64,
    /// The other number, if any: published, from theory or from another program.
    pub beside: Option<f64>,
    /// Whether `beside` is printed or drawn in the paper, and not from theory or another program.
    pub published: bool,
    /// Standard error of `beside`, from its own draws.
    pub spread: f64,
    /// Allowed difference in addition to errors, mostly the rounding of `beside`; infinite if the
    /// two numbers are not compared.
    pub slack: f64,
}

/// Standard errors beyond which a number counts as different.
const FAR: f64 = 3.0;

impl Cell {
    /// A number without error and without another number.
    pub fn plain(ours: f64) -> Cell {
        Cell {
            ours,
            ..Cell::default()
        }
    }

    /// Sets the standard error.
    pub fn with_error(self, error: f64) -> Cell {
        Cell { error, ..self }
    }

    /// The mean of drawn values, with its standard error.
    pub fn mean(values: &[f64]) -> Cell {
        let n = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / n;
        let square: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        Cell::plain(mean).with_error((square / n / (n - 1.0).max(1.0)).sqrt())
    }

    /// The share of hits among `n` draws. Shares of 0 and 1 have an error above 0, as if half a hit
    /// were added.
    pub fn share(hits: usize, n: usize) -> Cell {
        let (n, hits) = (n.max(1) as f64, hits as f64);
        let near = ((hits + 0.5) / (n + 1.0)).clamp(0.0, 1.0);
        Cell::plain(hits / n).with_error((near * (1.0 - near) / n).sqrt())
    }

    /// Adds the number of the paper, which is known within `slack`.
    pub fn beside(self, published: f64, slack: f64) -> Cell {
        Cell {
            published: true,
            ..self.against(published, slack)
        }
    }

    /// Adds a number from theory or another program, which is known within `slack`.
    pub fn against(self, other: f64, slack: f64) -> Cell {
        Cell {
            beside: Some(other),
            published: false,
            slack,
            ..self
        }
    }

    /// Sets the standard error of the other number.
    pub fn drawn(self, spread: f64) -> Cell {
        Cell { spread, ..self }
    }

    /// The estimate of a `q` quantile of `sorted` values, with its standard error: half the
    /// distance of the values √(nq(1 − q)) ranks above and below.
    pub fn quantile(sorted: &[f64], q: f64) -> Cell {
        let Some(last) = sorted.len().checked_sub(1) else {
            return Cell::plain(f64::NAN);
        };
        let at = |rank: f64| sorted[rank.round().clamp(0.0, last as f64) as usize];
        let rank = q * last as f64;
        let reach = (sorted.len() as f64 * q * (1.0 - q)).sqrt();
        Cell::plain(at(rank)).with_error(0.5 * (at(rank + reach) - at(rank - reach)))
    }

    /// Whether the two numbers are compared.
    fn compared(&self) -> bool {
        self.beside.is_some() && self.slack.is_finite()
    }

    /// Whether the two numbers differ by more than three errors, which are added in quadrature.
    pub fn far(&self) -> bool {
        let error = self.error.hypot(self.spread);
        self.beside
            .is_some_and(|p| (self.ours - p).abs() > FAR * error + self.slack)
    }
}

/// A line of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// First column.
    pub label: String,
    /// The numbers of the further columns.
    pub cells: Vec<Cell>,
}

impl Row {
    /// Makes a line.
    pub fn of(label: impl ToString, cells: Vec<Cell>) -> Row {
        let label = label.to_string();
        Row { label, cells }
    }
}

/// The table of one experiment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// Paper and figure.
    pub title: String,
    /// How it was run, and where the published numbers come from.
    pub note: String,
    /// Heading of the labels.
    pub x: &'static str,
    /// Names of the columns.
    pub columns: Vec<&'static str>,
    /// The lines.
    pub rows: Vec<Row>,
    /// Whether both axes of the picture are logarithmic; labels are then numbers.
    pub logarithmic: bool,
    /// Seed of the draws.
    pub seed: u64,
}

impl Table {
    fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.rows.iter().flat_map(|r| &r.cells)
    }

    /// How many numbers differ from the other one by more than three errors.
    pub fn far(&self) -> usize {
        self.cells().filter(|c| c.far()).count()
    }

    /// Name of its files: the title in lower case, with any other characters as one underscore.
    pub fn file_name(&self) -> String {
        let lower = self.title.to_lowercase();
        let words = lower.split(|c: char| !c.is_ascii_alphanumeric());
        let words: Vec<&str> = words.filter(|w| !w.is_empty()).collect();
        words.join("_")
    }

    /// The seed, the meaning of the errors, and how many numbers differ.
    pub fn footing(&self) -> String {
        let of = |published: bool| {
            let is_of = |c: &&Cell| c.compared() && c.published == published;
            let far = self.cells().filter(is_of).filter(|c| c.far());
            (self.cells().filter(is_of).count(), far.count())
        };
        let ((printed, differ), (others, off)) = (of(true), of(false));
        let mut text = format!("Seed {}; ± is one Monte Carlo standard error. ", self.seed);
        let compared = || self.cells().filter(|c| c.compared());
        if compared().any(|c| c.spread > 0.0) {
            text += "An error here is √(ours² + that of the number beside²), which has draws of its own. ";
        }
        if compared().any(|c| c.slack > 0.0) {
            text += "The rounding of the number beside, or what the note allows, comes on top. ";
        }
        if printed > 0 {
            text += &format!(
                "{differ} of {printed} numbers differ from the paper's (in brackets) by more than three errors. "
            );
        }
        if others > 0 {
            text += &format!(
                "{off} of {others} numbers differ from those of theory or another program (in square brackets) by more than \
                 three errors. "
            );
        }
        let shown = self.cells().filter(|c| c.beside.is_some() && !c.compared());
        match shown.count() {
            0 if printed + others == 0 => text += "No number stands beside, so none differs.",
            0 => {}
            shown => text += &format!("{shown} numbers stand beside without a comparison."),
        }
        text.trim_end().to_owned()
    }

    /// The table as text: each number ± its error, the paper's number in round or another in square
    /// brackets, and ! if they differ.
    pub fn text(&self) -> String {
        let labels = self.rows.iter().map(|r| r.label.chars().count());
        let width = labels.max().unwrap_or(0).max(28);
        let mut out = format!("{}\n{}\n\n{:<width$}", self.title, self.note, self.x);
        // Writing to a string cannot fail.
        for name in &self.columns {
            let _ = write!(out, " {name:>26}");
        }
        out.push('\n');
        for row in &self.rows {
            let _ = write!(out, "{:<width$}", row.label);
            for cell in &row.cells {
                let _ = write!(out, " {:>26}", cell_text(cell));
            }
            out.push('\n');
        }
        out += &format!("\n{}\n", self.footing().replace(". ", ".\n"));
        out
    }

    /// The table as JSON.
    pub fn json(&self) -> Value {
        let cell = |c: &Cell| {
            json!({
                "ours": c.ours,
                "standard_error": c.error,
                "published": c.beside.filter(|_| c.published),
                "other": c.beside.filter(|_| !c.published),
                "standard_error_beside": c.spread,
                "differs": c.far(),
            })
        };
        let row = |r: &Row| json!({"label": r.label, "cells": r.cells.iter().map(cell).collect::<Vec<_>>()});
        json!({
            "title": self.title,
            "note": self.note,
            "x": self.x,
            "columns": self.columns,
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "seed": self.seed,
            "differing": self.far(),
        })
    }
}

fn number(x: f64) -> String {
    if x != 0.0 && x.abs() < 0.01 {
        format!("{x:.2e}")
    } else {
        format!("{x:.4}")
    }
}

fn cell_text(c: &Cell) -> String {
    let mut text = number(c.ours);
    if c.error > 0.0 {
        text += &format!("±{}", number(c.error));
    }
    if let Some(beside) = c.beside.map(number) {
        text += &match c.published {
            true => format!(" ({beside})"),
            false => format!(" [{beside}]"),
        };
    }
    if c.far() {
        text += "!";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_marked_beyond_three_errors_of_the_published_one() {
        let c = Cell::share(50, 100);
        assert!((c.error - 0.05).abs() < 1e-3);
        assert!(!c.beside(0.6, 0.0).far() && c.beside(0.7, 0.0).far());
        assert!(!c.beside(0.7, 0.1).far());
        // Errors of 0.05 and 0.06 combine to 0.078, and three times that is less than 0.25.
        assert!(!c.beside(0.7, 0.0).drawn(0.06).far() && c.beside(0.75, 0.0).drawn(0.06).far());
        assert!(!c.beside(9.0, f64::INFINITY).far());
        assert!(Cell::share(0, 100).error > 0.0);
        let table = Table {
            title: "t".into(),
            note: "n".into(),
            x: "x",
            columns: vec!["a"],
            rows: vec![Row::of(1, vec![c.beside(0.7, 0.0), c.against(0.5, 0.0)])],
            ..Table::default()
        };
        assert_eq!(table.far(), 1);
        let text = table.text();
        assert!(text.contains("(0.7000)!") && text.contains("[0.5000]"));
        assert!(text.contains("1 of 1 numbers differ") && text.contains("0 of 1 numbers differ"));
        let named = Table {
            title: "A, b 3: x".into(),
            ..Table::default()
        };
        assert_eq!(named.file_name(), "a_b_3_x");
        assert_eq!(table.json()["rows"][0]["cells"][0]["differs"], true);
        let shown = Table {
            rows: vec![Row::of(1, vec![c.beside(0.7, f64::INFINITY)])],
            ..table
        };
        let said = "1 numbers stand beside without a comparison";
        assert!(shown.footing().contains(said));
    }

    #[test]
    fn a_quantile_has_the_error_of_its_rank() {
        // Of the 101 values 0, 1, … 100 the median is 50, and √(101/4) is five ranks.
        let sorted: Vec<f64> = (0..=100).map(f64::from).collect();
        let median = Cell::quantile(&sorted, 0.5);
        assert_eq!((median.ours, median.error), (50.0, 5.0));
        assert!(Cell::quantile(&[], 0.5).ours.is_nan());
    }
}
