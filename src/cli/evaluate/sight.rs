//! The file that `evaluate` reads, and the view of it that was asked for.

use super::args::{Args, Discrete, FileView, Method};
use crate::cli::exit::Exit;
use crate::decode::scores;
use crate::decode::vectors::{self, Table};
use crate::stats::kernel::Vectors;
use crate::stats::multiclass::Events;
use crate::stats::sampling::Sampling;
use crate::stats::view::View;
use crate::stats::weighted::WeightedEvent;
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::File;
use std::path::Path;

/// What is tested of the file.
pub enum Seen {
    /// Scores of one class.
    Scores(Vec<(f64, bool)>),
    /// The same with weights.
    Weighted(Vec<WeightedEvent>),
    /// Vectors.
    Vectors(Vectors, FileView),
    /// The same with weights, in a view of cells.
    WeightedVectors(Events),
}

/// Reads a file and takes the view of it that was asked for.
pub fn sight(args: &Args, path: &Path) -> Result<Seen, (Exit, String)> {
    let table = read(path)?;
    let several = matches!(table, Table::Vectors(_) | Table::WeightedVectors(..));
    if several && args.sampling() != Sampling::default() {
        let name = path.display();
        let text = format!("{name} holds several classes; only of one have negatives a rate");
        return Err((Exit::Usage, text));
    }
    see(args, path, table)
}

/// Takes the view of the table that was asked for.
fn see(args: &Args, path: &Path, table: Table) -> Result<Seen, (Exit, String)> {
    let name = path.display();
    match (table, args.view) {
        (Table::Scores(sample), None | Some(FileView::Scalar(View::Binary))) => {
            Ok(Seen::Scores(sample))
        }
        (Table::Weighted(_) | Table::WeightedVectors(..), _)
            if args.method == Method::Paper || args.discrete == Discrete::On =>
        {
            let text = format!(
                "{name} has weights, for which neither --method paper nor the exact test of discrete scores \
                 holds; leave the option or the column out"
            );
            Err((Exit::Usage, text))
        }
        (Table::Weighted(sample), None | Some(FileView::Scalar(View::Binary))) => {
            Ok(Seen::Weighted(sample))
        }
        (Table::Scores(_) | Table::Weighted(_), Some(_)) => Err((
            Exit::Usage,
            format!(
                "{name} holds scores of one class; this view needs the columns p0, p1, … of all"
            ),
        )),
        (Table::Vectors(mut sample), Some(view)) if !matches!(view, FileView::Scalar(_)) => {
            sample.normalise();
            Ok(Seen::Vectors(sample, view))
        }
        (Table::Vectors(sample), view) => project(path, &sample, view).map(Seen::Scores),
        (Table::WeightedVectors(mut sample, weights), Some(FileView::Cells(view))) => {
            sample.normalise();
            let events = Events::weighted(&sample, view, &weights);
            Ok(Seen::WeightedVectors(events))
        }
        (Table::WeightedVectors(..), Some(FileView::Classes | FileView::Kernel)) => {
            let text = format!(
                "{name} has weights, for which this view has no form; take top_k:<count>, full, top_label or \
                 class:<index>, or leave the column out"
            );
            Err((Exit::Usage, text))
        }
        (Table::WeightedVectors(sample, weights), view) => {
            let scores = project(path, &sample, view)?.into_iter().zip(weights);
            Ok(Seen::Weighted(
                scores.map(|((z, y), w)| (z, y, w)).collect(),
            ))
        }
    }
}

/// What a view of single scores sees of vectors; the largest probability where none was asked for.
fn project(
    path: &Path,
    sample: &Vectors,
    view: Option<FileView>,
) -> Result<Vec<(f64, bool)>, (Exit, String)> {
    let view = match view {
        Some(FileView::Scalar(view)) => view,
        _ => View::TopLabel,
    };
    sample.project(view).map_err(|_| {
        let (name, k) = (path.display(), sample.classes());
        let text = format!("{name} has no view {view}; its classes are 0 to {}", k - 1);
        (Exit::Usage, text)
    })
}

fn read(path: &Path) -> Result<Table, (Exit, String)> {
    let name = path.display().to_string();
    let missing = |e: std::io::Error| {
        let text = format!("cannot open {name} ({e}); check the path and its permissions");
        (Exit::NoInput, text)
    };
    let file = File::open(path).map_err(missing)?;
    if file.metadata().is_ok_and(|m| m.is_dir()) {
        let text = format!("{name} is a directory; name one CSV file in it");
        return Err((Exit::NoInput, text));
    }
    let bytes = file.metadata().map_or(0, |m| m.len());
    let bar = progress(bytes);
    let input = scores::unpack(path, bar.wrap_read(file)).map_err(missing)?;
    let sample = vectors::read(&name, input).map_err(|e| (Exit::Data, e.to_string()));
    bar.finish_and_clear();
    sample
}

/// Under this many bytes the reading is over before a bar could be seen.
const SHOWN_FROM_BYTES: u64 = 8 << 20;

/// A bar on the terminal; indicatif shows none where stderr is not one.
fn progress(bytes: u64) -> ProgressBar {
    if bytes < SHOWN_FROM_BYTES {
        return ProgressBar::hidden();
    }
    let style = "reading {wide_bar} {bytes} of {total_bytes} {eta}";
    let bar = ProgressBar::new(bytes);
    match ProgressStyle::with_template(style) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
