//! Reads the file of `evaluate` and takes the requested view of it.

use super::args::{Args, Discrete, FileView, Method};
use crate::cli::exit::{Exit, Failure};
use crate::decode::columns::without_positive;
use crate::decode::scores::{self, Sample};
use crate::decode::vectors::{self, Table};
#[cfg(feature = "columnar")]
use crate::stats::batch::BatchedSums;
use crate::stats::clusters::Bucket;
#[cfg(feature = "columnar")]
use crate::stats::fixed::{Score, Scored};
use crate::stats::kernel::Vectors;
use crate::stats::multiclass::{Events, VectorView};
use crate::stats::sampling::Sampling;
use crate::stats::sums::Sums;
use crate::stats::view::View;
use crate::stats::weighted::WeightedEvent;
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::File;
use std::path::Path;

/// The events to test.
pub enum FileSample {
    /// Single scores, and the view that they belong to.
    Scores(Vec<(f64, bool)>, View),
    /// Single scores with weights.
    Weighted(Vec<WeightedEvent>, View),
    /// Scores of one class, with clusters.
    Clustered(Vec<(f64, bool, Bucket)>),
    /// Vectors of probabilities.
    Vectors(Vectors, FileView),
    /// Vectors with weights, in a view of cells.
    WeightedVectors(Events),
    /// Vectors with weights, for the kernel test.
    WeightedKernel(Vectors, Vec<f64>),
}

/// Reads a file and takes the requested view of it.
pub fn read(args: &Args, path: &Path) -> Result<FileSample, Failure> {
    let table = read_table(args, path)?;
    check_labels(args, path, &table)?;
    let several = matches!(table, Table::Vectors(..));
    if several && args.sampling() != Sampling::default() {
        let name = path.display();
        let text = format!("{name} has several classes; rates of negatives apply to one class");
        return Err((Exit::Usage, text));
    }
    if several && args.columns.names().positive.is_some() {
        let name = path.display();
        let text =
            format!("{name} has several classes; --positive is a label of one class: drop it");
        return Err((Exit::Usage, text));
    }
    view(args, path, table)
}

/// Adds the events of a file of plain columns to sums, batch by batch; `None` for other files.
#[cfg(feature = "columnar")]
pub fn sums(args: &Args, sums: Sums) -> Result<Option<Sums>, Failure> {
    let fault = |e: &dyn std::fmt::Display| (Exit::Data, e.to_string());
    let Some(plain) = vectors::plain_columns(&args.file, &args.columns.names()) else {
        return Ok(None);
    };
    let mut plain = plain.map_err(|e| fault(&e))?;
    let mut sums = BatchedSums::from_sums(vec![sums]).map_err(|_| fault(&FULL))?;
    let (sampling, mut positive) = (args.sampling(), false);
    while let Some((scores, labels)) = plain.advance().map_err(|e| fault(&e))? {
        for (&z, &y) in scores.iter().zip(labels) {
            positive |= y;
            // The reader has checked the scores.
            let score = Score::new(z).map_err(|_| fault(&"not a score"))?;
            let event = Scored::new(sampling.carry(score), y);
            sums.observe_one(event).map_err(|_| fault(&FULL))?;
        }
    }
    let sums = sums.into_sums().pop().filter(|sums| sums.n() > 0);
    let empty = || fault(&format!("{}: no events", args.file.display()));
    let sums = sums.ok_or_else(empty)?;
    match without_positive(&args.columns.names()) {
        Some(why) if !positive => Err(fault(&why)),
        _ => Ok(Some(sums)),
    }
}

#[cfg(not(feature = "columnar"))]
pub fn sums(_: &Args, _: Sums) -> Result<Option<Sums>, Failure> {
    Ok(None)
}

/// The message for sums that would overflow.
#[cfg(feature = "columnar")]
const FULL: &str = "more events than one window can count; split the file";

/// Takes the requested view of a table.
fn view(args: &Args, path: &Path, table: Table) -> Result<FileSample, Failure> {
    let name = path.display();
    match (table, args.view) {
        (Table::Scores(Sample::Plain(sample)), None | Some(FileView::Scalar(View::Binary))) => {
            Ok(FileSample::Scores(sample, View::Binary))
        }
        (Table::Scores(Sample::Weighted(_)) | Table::Vectors(_, Some(_)), _)
            if args.method == Method::Paper || args.discrete == Discrete::On =>
        {
            let text = format!(
                "{name} has weights; --method paper and the exact test of discrete scores do not support them: drop the \
                 option or the column"
            );
            Err((Exit::Usage, text))
        }
        (Table::Scores(Sample::Clustered(_)), _)
            if args.method == Method::Paper || args.discrete == Discrete::On =>
        {
            let text = format!(
                "{name} has clusters; --method paper and the exact test of discrete scores take events as independent: \
                 drop the option or the column cluster"
            );
            Err((Exit::Usage, text))
        }
        (Table::Scores(Sample::Clustered(sample)), None | Some(FileView::Scalar(View::Binary))) => {
            Ok(FileSample::Clustered(sample))
        }
        (Table::Scores(Sample::Weighted(sample)), None | Some(FileView::Scalar(View::Binary))) => {
            Ok(FileSample::Weighted(sample, View::Binary))
        }
        (Table::Scores(_), Some(_)) => Err((
            Exit::Usage,
            format!(
                "{name} has scores of one class; this view needs the columns p0, p1, … of all classes"
            ),
        )),
        (Table::Vectors(sample, _), Some(FileView::Cells(VectorView::TopK(k))))
            if k >= sample.classes() =>
        {
            let classes = sample.classes();
            let text = format!(
                "{name} has {classes} classes, and top_k:{k} would be all of them: give a count below {classes}, or \
                 use full"
            );
            Err((Exit::Usage, text))
        }
        (Table::Vectors(mut sample, None), Some(view)) if !matches!(view, FileView::Scalar(_)) => {
            sample.normalise();
            Ok(FileSample::Vectors(sample, view))
        }
        (Table::Vectors(sample, None), view) => {
            let (scores, view) = project(path, &sample, view)?;
            Ok(FileSample::Scores(scores, view))
        }
        (Table::Vectors(mut sample, Some(weights)), Some(FileView::Cells(view))) => {
            sample.normalise();
            let events = Events::weighted(&sample, view, &weights);
            Ok(FileSample::WeightedVectors(events))
        }
        (Table::Vectors(mut sample, Some(weights)), Some(FileView::Kernel)) => {
            sample.normalise();
            Ok(FileSample::WeightedKernel(sample, weights))
        }
        (Table::Vectors(_, Some(_)), Some(FileView::Classes)) => {
            let text = format!(
                "{name} has weights, which this view does not support: use kernel, top_k:<count>, full, top_label or \
                 class:<index>, or drop the column"
            );
            Err((Exit::Usage, text))
        }
        (Table::Vectors(sample, Some(weights)), view) => {
            let (scores, view) = project(path, &sample, view)?;
            let weighted = scores.into_iter().zip(weights);
            let weighted = weighted.map(|((z, y), w)| (z, y, w)).collect();
            Ok(FileSample::Weighted(weighted, view))
        }
    }
}

/// Scores, each with whether its event happened.
type Scores = Vec<(f64, bool)>;

/// The scores of a view of single scores. Without a view, two classes use the probability of the
/// second, as in the columns of `predict_proba`, and more use the top label.
fn project(
    path: &Path,
    sample: &Vectors,
    view: Option<FileView>,
) -> Result<(Scores, View), Failure> {
    let view = match view {
        Some(FileView::Scalar(view)) => view,
        _ if sample.classes() == 2 => View::Class(1),
        _ => View::TopLabel,
    };
    let scores = sample.project(view).map_err(|_| {
        let (name, k) = (path.display(), sample.classes());
        let text = format!("{name} has no view {view}; its classes are 0 to {}", k - 1);
        (Exit::Usage, text)
    })?;
    Ok((scores, view))
}

fn read_table(args: &Args, path: &Path) -> Result<Table, Failure> {
    let columns = args.columns.names();
    if path == Path::new("-") {
        if let Some(table) = vectors::read_columnar(path, &columns) {
            return table.map_err(|e| (Exit::Data, e.to_string()));
        }
        let input = scores::unpack("standard input", std::io::stdin().lock());
        let input = input.map_err(|why| (Exit::Data, why))?;
        let table = vectors::read("standard input", input, &columns);
        return table.map_err(|e| (Exit::Data, e.to_string()));
    }
    let name = path.display().to_string();
    let missing = |e: std::io::Error| {
        let text = format!("cannot open {name} ({e}); check the path and its permissions");
        (Exit::NoInput, text)
    };
    let file = File::open(path).map_err(missing)?;
    if file.metadata().is_ok_and(|m| m.is_dir()) {
        let text = format!("{name} is a directory; name one file in it");
        return Err((Exit::NoInput, text));
    }
    if let Some(table) = vectors::read_columnar(path, &columns) {
        return table.map_err(|e| (Exit::Data, e.to_string()));
    }
    let bytes = file.metadata().map_or(0, |m| m.len());
    let bar = progress(bytes);
    let input = scores::unpack(&name, bar.wrap_read(file)).map_err(|why| (Exit::Data, why))?;
    let table = vectors::read(&name, input, &columns).map_err(|e| (Exit::Data, e.to_string()));
    bar.finish_and_clear();
    table
}

/// Returns an error if the label of `--positive` never occurs.
fn check_labels(args: &Args, path: &Path, table: &Table) -> Result<(), Failure> {
    let positive = match table {
        Table::Scores(Sample::Plain(sample)) => sample.iter().any(|e| e.1),
        Table::Scores(Sample::Weighted(sample)) => sample.iter().any(|e| e.1),
        Table::Scores(Sample::Clustered(sample)) => sample.iter().any(|e| e.1),
        Table::Vectors(..) => true,
    };
    match without_positive(&args.columns.names()) {
        Some(why) if !positive => Err((Exit::Data, format!("{}: {why}", path.display()))),
        _ => Ok(()),
    }
}

/// Size below which a file is read before a bar could be seen.
const SHOWN_FROM_BYTES: u64 = 8 << 20;

/// A progress bar, if standard error is a terminal.
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
