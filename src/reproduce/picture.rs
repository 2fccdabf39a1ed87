//! Draws tables as SVG: a panel for each table, and a line for each column. Our numbers are dots
//! with bars of one standard error; the numbers compared with them are rings. The note of the table
//! is below.

use super::report::Table;
use crate::report::html::escape;
use std::fmt::Write;

const WIDTH: f64 = 800.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 40.0;
const PLOT: f64 = 230.0;

/// Colours that colour-blind readers can distinguish (Okabe, Ito 2008; Tol 2021), enough for the
/// columns of any table.
const COLOURS: [&str; 12] = [
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999",
    "#882255", "#999933", "#332288", "#44AA99",
];

/// Draws all tables, one below the other.
pub fn svg(tables: &[Table]) -> String {
    let words: Vec<Vec<String>> = tables.iter().map(words).collect();
    let tall =
        |(table, words): (&Table, &Vec<String>)| height(table) + LINE * (words.len() + 1) as f64;
    let height_of_all: f64 = tables.iter().zip(&words).map(tall).sum();
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height_of_all:.0}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let mut top = 0.0;
    for (table, words) in tables.iter().zip(&words) {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "<g transform=\"translate(0,{top})\">");
        panel(&mut out, table);
        for (i, line) in words.iter().enumerate() {
            let at = height(table) + LINE * i as f64;
            let _ = writeln!(
                out,
                "<text x=\"10\" y=\"{at}\" font-size=\"9\">{}</text>",
                escape(line)
            );
        }
        out.push_str("</g>\n");
        top += tall((table, words));
    }
    out.push_str("</svg>\n");
    out
}

/// Number of letters of the longest label.
fn letters(table: &Table) -> usize {
    let labels = table.rows.iter().map(|r| r.label.chars().count());
    labels.max().unwrap_or(0)
}

/// Degrees by which labels are rotated: many or long labels are steeper.
fn turned(table: &Table) -> f64 {
    if table.rows.len() > 12 || letters(table) > 14 {
        60.0
    } else {
        25.0
    }
}

/// Height of a panel with the labels of its rows, a letter being about 5.8 wide.
fn height(table: &Table) -> f64 {
    let down = 5.8 * letters(table) as f64 * turned(table).to_radians().sin();
    TOP + PLOT + 36.0 + down
}

/// Height of a line of words.
const LINE: f64 = 12.0;

/// The note and the footing, broken into lines that fit.
fn words(table: &Table) -> Vec<String> {
    let text = format!("{}. {}", table.note, table.footing()).replace('\n', " ");
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        if lines[last].chars().count() + word.chars().count() > 150 {
            lines.push(word.to_owned());
        } else {
            lines[last] += &format!(" {word}");
        }
    }
    lines
}

/// The position of values on a panel.
struct Axes {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Axes {
    fn of(table: &Table) -> Axes {
        let cells = table.rows.iter().flat_map(|r| &r.cells);
        let values = cells.flat_map(|c| {
            [
                c.ours - c.error,
                c.ours + c.error,
                c.beside.unwrap_or(c.ours),
            ]
        });
        let (low, high) = if table.logarithmic {
            let positive = values.filter(|v| *v > 0.0);
            positive.fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)))
        } else {
            values.fold((0f64, f64::MIN), |(a, b), v| (a.min(v), b.max(v)))
        };
        Axes {
            low,
            high: if high > low { high } else { low + 1.0 },
            logarithmic: table.logarithmic,
        }
    }

    fn share(&self, v: f64) -> f64 {
        match self.logarithmic {
            true => (v.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            false => (v - self.low) / (self.high - self.low),
        }
    }

    fn value(&self, share: f64) -> f64 {
        match self.logarithmic {
            true => self.low * (self.high / self.low).powf(share),
            false => self.low + (self.high - self.low) * share,
        }
    }
}

/// Positions of the rows from left to right, as shares of the width; on a logarithmic axis by their
/// labels.
fn places(table: &Table) -> Vec<f64> {
    let logs: Option<Vec<f64>> = (table.rows.iter())
        .map(|r| {
            r.label
                .parse::<f64>()
                .ok()
                .filter(|v| *v > 0.0)
                .map(f64::ln)
        })
        .collect();
    match logs {
        Some(logs) if table.logarithmic && logs.len() > 1 => {
            let (first, last) = (logs[0], logs[logs.len() - 1]);
            logs.iter().map(|l| (l - first) / (last - first)).collect()
        }
        _ => {
            let count = table.rows.len().max(2) as f64 - 1.0;
            (0..table.rows.len()).map(|i| i as f64 / count).collect()
        }
    }
}

fn panel(out: &mut String, table: &Table) {
    let (axes, places) = (Axes::of(table), places(table));
    let x = |i: usize| LEFT + (WIDTH - LEFT - RIGHT) * places[i];
    let y = |v: f64| TOP + PLOT * (1.0 - axes.share(v));
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"20\" font-size=\"13\">{}</text>",
        escape(&table.title)
    );
    for step in 0..=4 {
        let v = axes.value(f64::from(step) / 4.0);
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{1:.1}\" y2=\"{1:.1}\" stroke=\"#dddddd\"/>\
             <text x=\"{2}\" y=\"{3:.1}\" text-anchor=\"end\">{v:.3}</text>",
            WIDTH - RIGHT,
            y(v),
            LEFT - 6.0,
            y(v) + 4.0
        );
    }
    for (i, row) in table.rows.iter().enumerate() {
        let at = TOP + PLOT + 16.0;
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{at}\" text-anchor=\"end\" transform=\"rotate(-{} {0:.1} {at})\">{}</text>",
            x(i),
            turned(table),
            escape(&row.label)
        );
    }
    for (c, name) in table.columns.iter().enumerate() {
        series(out, table, c, &x, &y);
        let colour = COLOURS[c % COLOURS.len()];
        let at = TOP + 14.0 * c as f64;
        let left = WIDTH - RIGHT + 14.0;
        let _ = writeln!(
            out,
            "<text x=\"{left}\" y=\"{at}\" fill=\"{colour}\">{}</text>",
            escape(name)
        );
    }
}

fn series(
    out: &mut String,
    table: &Table,
    c: usize,
    x: &impl Fn(usize) -> f64,
    y: &impl Fn(f64) -> f64,
) {
    let colour = COLOURS[c % COLOURS.len()];
    let mut line = String::new();
    for (i, row) in table.rows.iter().enumerate() {
        let Some(cell) = row.cells.get(c) else {
            continue;
        };
        let _ = write!(line, "{:.1},{:.1} ", x(i), y(cell.ours));
        let _ = writeln!(
            out,
            "<line x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{1:.1}\" y2=\"{2:.1}\" stroke=\"{colour}\"/>\
             <circle cx=\"{0:.1}\" cy=\"{3:.1}\" r=\"2.5\" fill=\"{colour}\"/>",
            x(i),
            y(cell.ours - cell.error),
            y(cell.ours + cell.error),
            y(cell.ours)
        );
        if let Some(p) = cell.beside {
            let _ = writeln!(
                out,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"5\" fill=\"none\" stroke=\"{colour}\"/>",
                x(i),
                y(p)
            );
        }
    }
    let _ = writeln!(
        out,
        "<polyline points=\"{line}\" fill=\"none\" stroke=\"{colour}\" stroke-opacity=\"0.6\"/>"
    );
}
