//! Draws tables as one SVG: a panel for each table, a line for each column. Our numbers are dots,
//! published ones rings.

use super::report::Table;
use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;

/// Colours that colour-blind readers can distinguish (Okabe, Ito 2008).
const COLOURS: [&str; 8] = [
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999",
];

/// Draws all tables, one below the other.
pub fn svg(tables: &[Table]) -> String {
    let height = HEIGHT * tables.len() as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (i, table) in tables.iter().enumerate() {
        let _ = writeln!(out, "<g transform=\"translate(0,{})\">", HEIGHT * i as f64);
        panel(&mut out, table);
        out.push_str("</g>\n");
    }
    out.push_str("</svg>\n");
    out
}

fn panel(out: &mut String, table: &Table) {
    let cells = || table.rows.iter().flat_map(|r| &r.cells);
    let values = cells().flat_map(|c| {
        [
            c.ours - c.error,
            c.ours + c.error,
            c.published.unwrap_or(c.ours),
        ]
    });
    let (low, high) = values.fold((0f64, f64::MIN), |(a, b), v| (a.min(v), b.max(v)));
    let high = if high > low { high } else { low + 1.0 };
    let count = table.rows.len().max(2) as f64 - 1.0;
    let x = |i: usize| LEFT + (WIDTH - LEFT - RIGHT) * i as f64 / count;
    let y = |v: f64| TOP + (HEIGHT - TOP - BOTTOM) * (high - v) / (high - low);
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"20\" font-size=\"13\">{}</text>",
        escape(&table.title)
    );
    for step in 0..=4 {
        let v = low + (high - low) * f64::from(step) / 4.0;
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
        let at = HEIGHT - BOTTOM + 16.0;
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{at}\" text-anchor=\"end\" transform=\"rotate(-25 {:.1} {at})\">{}</text>",
            x(i),
            x(i),
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
        if let Some(p) = cell.published {
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

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
