//! T-Cal, Figure 6: the reliability diagram of a network on CIFAR-10, and the cells that the test
//! uses.
//!
//! The usual diagram has 15 equal cells. The test looks at all scales and rejects at the one with
//! the smallest p-value; the second table has its occupied cells. The columns after the rates have
//! their 95 % Clopper–Pearson bars.

use super::networks::read;
use super::{Cell, Effort, Row, Table};
use crate::stats::evaluation::Options;
use crate::stats::levels::{Level, Levels};
use crate::stats::reliability::reliability;
use crate::stats::tcal::tcal;
use std::path::Path;

/// Cells of the usual diagram.
const CELLS: u64 = 15;

/// Most occupied cells of the test's scale to draw; a picture of more is unreadable.
const MOST: usize = 64;

const NETWORK: &str = "cifar10_vgg19_bn.none";

/// Both diagrams; none without the data folder.
pub fn run(effort: &Effort) -> Result<Vec<Table>, String> {
    match &effort.data {
        Some(data) => diagrams(&data.join("tcal")),
        None => Ok(Vec::new()),
    }
}

fn diagrams(folder: &Path) -> Result<Vec<Table>, String> {
    let sample = read(folder, NETWORK)?;
    let levels = Levels::from_scores(&sample, 12);
    let test = tcal(&levels, &Options::default().tcal);
    let levels = levels.as_slice().iter();
    let drawn = levels.filter(|l| l.occupied.len() <= MOST);
    let p_of = |level: &Level| {
        let found = test.levels.iter().find(|l| l.cells == level.cells);
        found.map_or(1.0, |l| l.p_value)
    };
    let best = drawn.min_by(|a, b| p_of(a).total_cmp(&p_of(b)));
    let fifteen = Level::from_scores(&sample, CELLS);
    let mut tables = vec![table("the usual diagram", &fifteen, sample.len(), None)];
    let what = "as the test sees it";
    tables.extend(best.map(|level| table(what, level, sample.len(), Some(p_of(level)))));
    Ok(tables)
}

fn table(what: &str, level: &Level, n: usize, p: Option<f64>) -> Table {
    let m = level.cells as f64;
    let cells = reliability(level, |i| (i as f64 / m, (i + 1) as f64 / m));
    let row = |c: &crate::stats::reliability::ReliabilityCell| {
        let numbers = [
            c.mean_score,
            c.event_rate,
            c.rate_low.unwrap_or(c.event_rate),
            c.rate_high.unwrap_or(c.event_rate),
            c.n as f64 / n as f64,
        ];
        let label = format!("{:.3} to {:.3}", c.low, c.high);
        Row::of(label, numbers.map(Cell::plain).to_vec())
    };
    let p = p.map_or(String::new(), |p| format!("; p of this scale {p:.1e}"));
    Table {
        title: format!("T-Cal, Figure 6: VGG-19 on CIFAR-10, {what}"),
        note: format!(
            "{n} events of {NETWORK}, nothing is drawn; {} cells, occupied ones shown{p}; the paper's picture has no numbers to \
             read",
            level.cells
        ),
        x: "confidence",
        columns: vec![
            "mean score",
            "event rate",
            "rate from",
            "rate to",
            "share of events",
        ],
        rows: cells.iter().map(row).collect(),
        ..Table::default()
    }
}
