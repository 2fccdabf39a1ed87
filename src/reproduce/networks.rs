//! T-Cal, Tables 1 to 6: networks and recalibration methods, on the published model outputs.
//!
//! * Tables 1 to 3 have an ℓ1-ECE over 15 cells and the decision of each network and method. The
//!   authors' program gives scores of exactly 1 their own cell, while ours closes the last cell;
//!   both errors are shown. Nine printed errors of Tables 1 and 2 are available; the others are
//!   compared with the output of the authors' program. The ImageNet networks of Table 3 are read if
//!   the folder has them (`imagenet_NETWORK.METHOD.csv`); `tests/papers/tcal_outputs.py` writes
//!   them.
//! * Tables 4 to 6 have the debiased ℓ2 error over distinct scores (Kumar, Liang, Ma 2019) of the
//!   methods that give few distinct scores, squared and in per cent. The printed numbers of Table 6
//!   (ImageNet) are available.

use super::{Cell, Effort, Row, Table, published};
use crate::stats::comparison::classical::debiased_l2_distinct;
use crate::stats::estimator::ece_l1;
use crate::stats::evaluation::{
    Critical, DecideBy, DiscreteMode, Options, Sharing, evaluate_scores,
};
use crate::stats::levels::Level;
use std::path::Path;

/// Numbers that the paper prints for a file, or that its program gives: columns of the published
/// table.
#[derive(Clone, Copy)]
enum PublishedColumn {
    Closed,
    Apart,
    Reject,
    Printed,
    Distinct,
}

fn known(name: &str, what: PublishedColumn) -> Option<f64> {
    published::number("networks", name, what as usize)
}

/// The tables; none without the data folder.
pub fn run(effort: &Effort) -> Result<Vec<Table>, String> {
    let Some(data) = &effort.data else {
        return Ok(Vec::new());
    };
    let folder = data.join("tcal");
    let file = |name: &str| folder.join(format!("{name}.csv"));
    let names = published::rows("networks").map(|row| row.name);
    let all: Vec<&str> = names
        .filter(|name| !name.starts_with("imagenet") || file(name).exists())
        .collect();
    let (mut decisions, mut distinct) = (Vec::new(), Vec::new());
    for (at, name) in all.iter().enumerate() {
        effort.progress.of(at, all.len());
        let sample = read(&folder, name)?;
        decisions.push(decision(&sample, name)?);
        if few(name) {
            let value = debiased_l2_distinct(&sample);
            let value = value.ok_or_else(|| format!("{name}.csv has no repeated scores"))?;
            let cell = Cell::plain(100.0 * value);
            let printed = known(name, PublishedColumn::Distinct);
            let cell = printed.map_or(cell, |p| cell.beside(p, 0.005));
            distinct.push(Row::of(name, vec![cell]));
        }
    }
    let columns = [
        "rejects (paper's)",
        "p of the default",
        "ECE %, last cell closed",
        "ECE %, scores of 1 apart",
    ];
    Ok(vec![
        Table {
            title: "T-Cal, Tables 1 to 3: networks".to_owned(),
            note: "nothing is drawn but the critical values; beside, in square brackets: what the authors' program gives for \
                   the same files;\nin round ones: the nine ECEs of Tables 1 and 2 that are at hand in print. The program gives \
                   scores of exactly 1 a cell of\ntheir own, which is the last column; print is of that program. Where ! \
                   stands, the published files do not give the printed number.\nTable 3 has ImageNet, whose outputs the \
                   folder may lack"
                .to_owned(),
            x: "network.method",
            columns: columns.to_vec(),
            rows: decisions,
            ..Table::default()
        },
        Table {
            title: "T-Cal, Tables 4 to 6: debiased ℓ2 error over distinct scores".to_owned(),
            note: "squared, in per cent, of the published files; nothing is drawn; beside: Table 6 in print (ImageNet), whose \
                   outputs the\nfolder may lack. The print of Tables 4 and 5 (CIFAR) is not at hand"
                .to_owned(),
            x: "network.method",
            columns: vec!["debiased ℓ2², %"],
            rows: distinct,
            ..Table::default()
        },
    ])
}

/// Whether a method gives few distinct scores.
fn few(name: &str) -> bool {
    name.ends_with(".histogram") || name.ends_with(".scalebin")
}

/// Reads the plain sample of a file.
pub fn read(folder: &Path, name: &str) -> Result<Vec<(f64, bool)>, String> {
    let path = folder.join(format!("{name}.csv"));
    let place = |e: String| format!("cannot read {} ({e})", path.display());
    let file = std::fs::File::open(&path).map_err(|e| place(e.to_string()))?;
    let sample = crate::decode::scores::read(name, file).map_err(|e| place(e.to_string()))?;
    sample
        .plain()
        .ok_or_else(|| place("it has weights".to_owned()))
}

fn decision(sample: &[(f64, bool)], name: &str) -> Result<Row, String> {
    let mut options = Options {
        decide_by: DecideBy::Paper,
        discrete: if few(name) {
            DiscreteMode::On
        } else {
            DiscreteMode::Off
        },
        ..Options::default()
    };
    let default = evaluate_scores(sample, &options);
    options.tcal.critical = Critical::MonteCarlo { replicates: 3000 };
    options.tcal.sharing = Sharing::Bonferroni;
    let paper = evaluate_scores(sample, &options);
    let (Some(default), Some(paper)) = (default, paper) else {
        return Err(format!("{name}.csv has no events"));
    };
    let p = default
        .discrete
        .as_ref()
        .map_or(default.tcal.p_value, |d| d.p_value);
    let against = |cell: Cell, what, slack| {
        known(name, what).map_or(cell, |value| cell.against(value, slack))
    };
    let closed = against(
        Cell::plain(100.0 * default.ece_l1),
        PublishedColumn::Closed,
        1e-9,
    );
    let apart = Cell::plain(100.0 * ece_ones_apart(sample));
    let apart = match known(name, PublishedColumn::Printed) {
        Some(printed) => apart.beside(printed, 0.005),
        None => against(apart, PublishedColumn::Apart, 5e-5),
    };
    let decided = f64::from(u8::from(paper.reject));
    let decided = against(Cell::plain(decided), PublishedColumn::Reject, 0.0);
    Ok(Row::of(name, vec![decided, Cell::plain(p), closed, apart]))
}

/// ℓ1-ECE over 15 cells, with a separate cell for scores of exactly 1.
fn ece_ones_apart(sample: &[(f64, bool)]) -> f64 {
    let (ones, rest): (Vec<_>, Vec<_>) = sample.iter().copied().partition(|s| s.0 >= 1.0);
    let missed = ones.iter().filter(|s| !s.1).count() as f64;
    let cells = ece_l1(&Level::from_scores(&rest, 15)) * rest.len() as f64;
    (cells + missed) / sample.len() as f64
}
