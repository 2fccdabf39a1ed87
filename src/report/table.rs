//! Reports as lines of text, for the demo's screen and for the end of a replay.
//!
//! A table has cells of text, each with a colour. Widths are counted before colours are added, so
//! that columns align with and without them. Every calibration number is next to its interval and
//! its n. An unknown value of an undecided window is a dash, never a zero.

use crate::judge::{DecidedError, Numbers, Quantity, Verdict, WindowReport};
use std::borrow::Cow;

/// The colour of a cell, by the basic codes that every terminal knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Paint {
    /// The terminal's own colour.
    #[default]
    Plain,
    /// Good results.
    Green,
    /// Bad results.
    Red,
    /// Undecided results.
    Yellow,
    /// Headings and asides.
    Dim,
}

impl Paint {
    fn code(self) -> &'static str {
        match self {
            Paint::Plain => "0",
            Paint::Green => "32",
            Paint::Red => "31",
            Paint::Yellow => "33",
            Paint::Dim => "2",
        }
    }
}

/// One cell of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The text.
    pub text: String,
    /// The colour.
    pub paint: Paint,
}

impl Cell {
    /// A cell in the terminal's own colour.
    pub fn plain(text: impl Into<String>) -> Cell {
        Cell::painted(text, Paint::Plain)
    }

    /// A cell in this colour.
    pub fn painted(text: impl Into<String>, paint: Paint) -> Cell {
        Cell {
            text: printable(&text.into()).into_owned(),
            paint,
        }
    }
}

/// Writes out control characters: names come from records, and a terminal obeys them.
pub fn printable(text: &str) -> Cow<'_, str> {
    without(text, char::is_control)
}

/// Writes out control characters of a text of several lines, except line feeds and tabs.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    without(text, |c| c.is_control() && !matches!(c, '\n' | '\t'))
}

/// Writes out the characters of one kind.
fn without(text: &str, kind: fn(char) -> bool) -> Cow<'_, str> {
    match text.contains(kind) {
        false => Cow::Borrowed(text),
        true => text
            .chars()
            .flat_map(|c| match kind(c) {
                true => c.escape_default().collect::<Vec<char>>(),
                false => vec![c],
            })
            .collect(),
    }
}

/// The headings of [`judgement`].
pub const JUDGEMENT: [&str; 7] = [
    "window",
    "verdict",
    "n",
    "ECE",
    "interval",
    "p-value",
    "direction",
];

/// The cells of one window: verdict, n, the error that decided, its interval, the p-value of the
/// test, and the direction of the error if there is one.
pub fn judgement(report: &WindowReport) -> Vec<Cell> {
    let paint = match report.verdict {
        Verdict::Calibrated => Paint::Green,
        Verdict::Miscalibrated => Paint::Red,
        Verdict::Undecided(_) => Paint::Yellow,
    };
    let mut cells = vec![
        Cell::plain(&report.window),
        Cell::painted(report.verdict.to_string(), paint),
        Cell::plain(report.n.to_string()),
    ];
    match report.evaluated() {
        None => cells.extend((0..4).map(|_| Cell::plain("-"))),
        Some(found) => cells.extend(numbers(found, report.verdict)),
    }
    cells
}

/// ECE, interval, p-value and direction of a window. Vectors have no direction.
fn numbers(found: &Numbers, verdict: Verdict) -> [Cell; 4] {
    let direction = match (verdict, found.scores()) {
        (Verdict::Miscalibrated, Some(e)) => e.direction.words(),
        _ => "-",
    };
    let error = DecidedError::of(found);
    [
        Cell::plain(estimate(&error)),
        Cell::plain(error.brief()),
        Cell::plain(found.p_value().map_or("-".to_owned(), short)),
        Cell::plain(direction),
    ]
}

/// The estimate of an error, with its name unless it is the ℓ2-ECE.
pub fn estimate(e: &DecidedError) -> String {
    let digits = e.digits(e.estimate);
    match e.quantity {
        Quantity::EceL2 => digits,
        other => format!("{} {digits}", other.short()),
    }
}

/// Formats a p-value with few digits.
pub fn short(p: f64) -> String {
    if p >= 0.001 {
        format!("{p:.3}")
    } else if p >= 1e-99 {
        format!("{p:.0e}")
    } else {
        "<1e-99".to_owned()
    }
}

/// Writes the rows under the heading, with aligned columns two spaces apart, and painted if
/// `colour`.
pub fn lines(heading: &[&str], rows: &[Vec<Cell>], colour: bool) -> Vec<String> {
    let head: Vec<Cell> = heading
        .iter()
        .map(|&text| Cell::painted(text, Paint::Dim))
        .collect();
    let mut widths: Vec<usize> = heading.iter().map(|text| width(text)).collect();
    for row in rows {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = (*widest).max(width(&cell.text));
        }
    }
    std::iter::once(&head)
        .chain(rows)
        .map(|row| line(row, &widths, colour))
        .collect()
}

fn line(row: &[Cell], widths: &[usize], colour: bool) -> String {
    let mut out = String::new();
    for (index, (cell, &wide)) in row.iter().zip(widths).enumerate() {
        let last = index + 1 == row.len();
        let padding = if last {
            0
        } else {
            wide - width(&cell.text) + 2
        };
        if colour && cell.paint != Paint::Plain {
            out.push_str(&format!("\x1b[{}m{}\x1b[0m", cell.paint.code(), cell.text));
        } else {
            out.push_str(&cell.text);
        }
        out.extend(std::iter::repeat_n(' ', padding));
    }
    out.truncate(out.trim_end().len());
    out
}

/// Number of columns of a text. All that is printed here has one column per character.
fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_written_out_and_lines_stay_where_there_are_several() {
        let text = "a\x1b]0;b\x07\n\tc\u{9b}ü";
        assert_eq!(printable(text), r"a\u{1b}]0;b\u{7}\n\tc\u{9b}ü");
        let lines = "a\\u{1b}]0;b\\u{7}\n\tc\\u{9b}ü";
        assert_eq!(printable_lines(text), lines);
    }

    #[test]
    fn columns_stand_straight_with_and_without_colours() {
        let rows = vec![
            vec![Cell::painted("a", Paint::Red), Cell::plain("x")],
            vec![Cell::plain("longer"), Cell::plain("y")],
        ];
        let plain = lines(&["one", "two"], &rows, false);
        assert_eq!(plain, ["one     two", "a       x", "longer  y"]);
        let painted = lines(&["one", "two"], &rows, true);
        assert_eq!(painted[1], "\x1b[31ma\x1b[0m       x");
    }
}
