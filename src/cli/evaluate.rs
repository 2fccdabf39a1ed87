//! `trueline evaluate`: evaluates a file of scored outcomes as one sample.

mod args;
mod input;
mod other;
mod page;

pub use args::Args;

use super::exit::{self, Exit, Failure, print};
use super::{recalibrate, report_file};
use crate::report::page::classes as classes_page;
use crate::report::{self, text};
use crate::stats::attribute::Attribute;
use crate::stats::axis::{Axis, Grid};
use crate::stats::clusters::Bucket;
use crate::stats::comparison::intervals::{self, Compared};
use crate::stats::evaluation::{
    Evaluation, Sampling, evaluate, evaluate_scores, evaluate_weighted,
};
use crate::stats::fixed::Score;
use crate::stats::kernel::binned_tests::BinnedTests;
use crate::stats::kernel::{self, Options as KernelOptions, Vectors};
use crate::stats::multiclass::{self, Events};
use crate::stats::sums::Sums;
use crate::stats::view::View;
use crate::stats::weight::{Weight, WeightError};
use crate::stats::weighted::WeightedEvent;
use args::{AxisOption, FileView};
use input::FileSample;
use page::Raw;
use serde_json::{Value, json};

/// Evaluates the file and prints the report.
pub fn run(args: &Args) -> Exit {
    let done = check(args).and_then(|()| match stream(args)? {
        Some(sums) => {
            let evaluation = evaluate(&sums, &args.options());
            report_scores(args, evaluation, Raw::Cells, View::Binary, None)
        }
        None => run_sample(args),
    });
    done.unwrap_or_else(|(exit, why)| exit::fail(exit, why))
}

/// The sums of plain columns, which are read batch by batch; `None` if the whole sample is needed.
fn stream(args: &Args) -> Result<Option<Sums>, Failure> {
    if !args.as_window {
        return Ok(None);
    }
    input::sums(args, Sums::new(grid(args)))
}

fn run_sample(args: &Args) -> Result<Exit, Failure> {
    let sample = input::read(args, &args.file)?;
    if args.test.is_some() {
        return Ok(other::run(args, &sample));
    }
    other::check(args, &sample)?;
    check_sample(args, &sample)?;
    match sample {
        FileSample::Clustered(sample) => {
            let event = |&(z, y, c): &(f64, bool, Bucket)| Some((z, y, Attribute::Cluster(c)));
            let evaluation = as_window(args, sample.iter().map(event));
            let plain: Vec<(f64, bool)> = sample.iter().map(|&(z, y, _)| (z, y)).collect();
            let raw = Raw::Clustered(&plain);
            report_scores(args, evaluation, raw, View::Binary, None)
        }
        FileSample::Scores(sample, view) => run_scores(args, sample, view),
        FileSample::Weighted(sample, view) => {
            let evaluation = match args.is_by_cells() {
                false => evaluate_weighted(&sample, &args.options()),
                true => {
                    let weight = |w: f64| {
                        let why = |e: WeightError| format!("a weight is {w}: {}", e.remedy());
                        Weight::new(w).map_err(|e| (Exit::Data, why(e)))
                    };
                    let event =
                        |&(z, y, w): &WeightedEvent| Ok((z, y, Attribute::Weight(weight(w)?)));
                    let events: Result<Vec<_>, Failure> = sample.iter().map(event).collect();
                    as_window(args, events?.into_iter().map(Some))
                }
            };
            report_scores(args, evaluation, Raw::Weighted(&sample), view, None)
        }
        FileSample::Vectors(sample, view) => run_vectors(args, &sample, view),
        FileSample::WeightedVectors(events) => run_cells(args, &events, None),
        FileSample::WeightedKernel(sample, weights) => {
            let options = kernel_options(args);
            Ok(other::weighted_kernel(args, &sample, &weights, &options))
        }
    }
}

/// Returns an error if an option does not support these events.
fn check_sample(args: &Args, sample: &FileSample) -> Result<(), Failure> {
    let intervals = args.compare_intervals > 0;
    let maps = args.recalibration.recalibrate.is_some();
    let verdict = args.fail_unless_calibrated;
    let why = match sample {
        FileSample::Clustered(_) if intervals || maps => {
            "--compare-intervals and --recalibrate take events as independent: drop the option or the column cluster"
        }
        FileSample::Scores(..) | FileSample::Clustered(_) => return Ok(()),
        FileSample::Vectors(..)
        | FileSample::WeightedVectors(_)
        | FileSample::WeightedKernel(..)
            if verdict =>
        {
            "--fail-unless-calibrated needs the verdict on single scores: use a view such as top_label or class:0"
        }
        _ if intervals => {
            "--compare-intervals resamples single scores of equal weight: use a view such as top_label or class:0, \
             and drop the column weight"
        }
        _ if maps => {
            "maps recalibrate one score per event, without weights: use a view such as top_label or class:0, and \
             drop the column weight"
        }
        _ => return Ok(()),
    };
    Err((Exit::Usage, why.to_owned()))
}

fn grid(args: &Args) -> Grid {
    let axis = match args.axis {
        AxisOption::Linear => Axis::Linear,
        AxisOption::Logit => Axis::Logit {
            low: CLIP,
            high: 1.0 - CLIP,
        },
    };
    Grid::new(axis, LEVEL)
}

/// Checks, before the file is read, that the options fit together and that a report can be written.
fn check(args: &Args) -> Result<(), Failure> {
    let usage = |why: String| (Exit::Usage, why);
    args.columns.check().map_err(usage)?;
    other::check_options(args).map_err(usage)?;
    args.recalibration.check(&args.file).map_err(usage)?;
    let (report, map) = (&args.report, &args.recalibration.map);
    let inputs = || [&args.file].into_iter().chain(&args.recalibration.fit);
    if let Some(path) = map {
        report_file::check("--map", path, inputs()).map_err(usage)?;
    }
    let Some(path) = report else {
        return Ok(());
    };
    if args.view == Some(FileView::Kernel) {
        let text = "--report draws scores, classes and cells; the kernel test has none: choose another --view";
        return Err(usage(text.to_owned()));
    }
    report_file::check("--report", path, inputs()).map_err(usage)?;
    match map {
        Some(map) if report_file::is_same(map, path) => Err(usage(format!(
            "--map and --report both name {}; name two files",
            path.display()
        ))),
        _ => Ok(()),
    }
}

fn run_scores(args: &Args, mut sample: Vec<(f64, bool)>, view: View) -> Result<Exit, Failure> {
    let recalibrated = recalibrate_scores(args, &mut sample)?;
    let evaluation = match args.is_by_cells() {
        false => evaluate_scores(&sample, &args.options()),
        true => {
            let event = |&(z, y): &(f64, bool)| Some((z, y, Attribute::None));
            as_window(args, sample.iter().map(event))
        }
    };
    report_scores(args, evaluation, Raw::Plain(&sample), view, recalibrated)
}

/// Evaluates events by sums over 4096 cells of the axis, as a window does. All events have the same
/// kind of attribute.
fn as_window(
    args: &Args,
    events: impl Iterator<Item = Option<(f64, bool, Attribute)>>,
) -> Option<Evaluation> {
    let (sampling, grid) = (args.sampling(), grid(args));
    let mut sums = None;
    for event in events {
        let (z, y, attribute) = event?;
        let grid = match attribute {
            Attribute::None => grid,
            Attribute::Weight(_) => grid.weighted(),
            Attribute::Cluster(_) => grid.clustered(),
        };
        let score = sampling.carry(Score::new(z).ok()?);
        let sums = sums.get_or_insert_with(|| Sums::new(grid));
        sums.observe_with(score, y, attribute).ok()?;
    }
    evaluate(&sums?, &args.options())
}

/// Clip and finest level of the logit axis: the defaults of a model.
const CLIP: f64 = 1e-6;
const LEVEL: u32 = 12;

/// The intervals of other methods over the same cells, if they are requested.
fn compared(args: &Args, e: &Evaluation, sample: &[(f64, bool)]) -> Option<Compared> {
    if args.compare_intervals == 0 {
        return None;
    }
    let cells = u32::try_from(e.interval.cells).unwrap_or(u32::MAX);
    let replicates = args.compare_intervals;
    let adjusted = other::adjusted(args, sample);
    intervals::compare(&adjusted, cells, replicates, args.confidence, args.seed)
}

/// Prints the evaluation of single scores.
fn report_scores(
    args: &Args,
    evaluation: Option<Evaluation>,
    raw: Raw<'_>,
    view: View,
    recalibrated: Option<recalibrate::Recalibrated>,
) -> Result<Exit, Failure> {
    // A sample has at least one event, so there is always an evaluation.
    let Some(e) = evaluation else {
        let text = "a sum of the events is too large for a window";
        return Err((Exit::Data, text.to_owned()));
    };
    if args.compare_intervals > 0 && e.clusters.is_some() {
        let text = "--compare-intervals takes events as independent, and events of one score count as a cluster in this \
                    file: drop the option, or add --method paper";
        return Err((Exit::Usage, text.to_owned()));
    }
    let compared = match &raw {
        Raw::Plain(sample) => compared(args, &e, sample),
        Raw::Weighted(_) | Raw::Clustered(_) | Raw::Cells => None,
    };
    let others = match &raw {
        Raw::Plain(sample) if args.estimators => {
            other::estimators(args, &other::adjusted(args, sample))
        }
        _ => None,
    };
    page::scores(args, &e, raw, view, recalibrated.as_ref())?;
    let text = if args.json {
        let mut all = report::evaluation::json(&e);
        if let Some(others) = &others {
            all["estimators"] = report::estimators::of_scores(others);
        }
        if let Some(c) = &compared {
            all["intervals"] = json!(c);
        }
        if let Some(recalibrated) = &recalibrated {
            all["recalibration"] = recalibrate::json(recalibrated);
        }
        format!("{all:#}\n")
    } else {
        let recalibrated = recalibrated.as_ref();
        let recalibrated = recalibrated.map_or(String::new(), recalibrate::render);
        let distances = e.distances.as_ref();
        let distances = distances.map_or(String::new(), report::distances::text);
        let compared = compared.as_ref();
        let compared = compared.map_or(String::new(), report::intervals::text);
        let others = others.as_ref();
        let others = others.map_or(String::new(), report::estimators::text_of_scores);
        let view = match (args.view, view) {
            (None, View::Binary) | (Some(_), _) => String::new(),
            (None, view) => format!("view {view}; --view chooses another\n"),
        };
        view + &recalibrated + &text::render(&e) + &distances + &compared + &others
    };
    print(&text);
    Ok(args.exit_after(e.tolerance.conclusion))
}

/// Recalibrates the scores if `--recalibrate` is given.
fn recalibrate_scores(
    args: &Args,
    sample: &mut [(f64, bool)],
) -> Result<Option<recalibrate::Recalibrated>, Failure> {
    let (Some(wanted), Some(path)) = (args.recalibration.recalibrate, &args.recalibration.fit)
    else {
        return Ok(None);
    };
    if args.sampling() != Sampling::default() {
        let text = "--recalibrate applies to raw scores and cannot be combined with --negatives-kept or \
                    --negatives-trained";
        return Err((Exit::Usage, text.to_owned()));
    }
    let FileSample::Scores(fit, _) = input::read(args, path)? else {
        let text = "the file of --fit and FILE have different columns".to_owned();
        return Err((Exit::Usage, text));
    };
    recalibrate::apply(&args.recalibration, wanted, &fit, sample, &args.options()).map(Some)
}

fn run_vectors(args: &Args, sample: &Vectors, view: FileView) -> Result<Exit, Failure> {
    match view {
        FileView::Cells(view) => run_cells(args, &Events::of(sample, view), Some(sample)),
        FileView::Classes => run_classes(args, sample),
        FileView::Kernel | FileView::Scalar(_) => Ok(run_kernel(args, sample)),
    }
}

fn run_cells(args: &Args, events: &Events, sample: Option<&Vectors>) -> Result<Exit, Failure> {
    let slices = args.interval_cells;
    let slices = slices.map(|m| u32::try_from(m).unwrap_or(u32::MAX));
    let e = multiclass::evaluate_events(events, args.alpha, args.confidence, slices);
    // A sample has at least one event, so there is always an evaluation.
    let Some(e) = e else {
        return Ok(Exit::Data);
    };
    let name = args.file.display().to_string();
    page::write(args, || classes_page::of_cells(&name, &e, sample))?;
    let binned = sample.and_then(|sample| other::binned(args, sample));
    let (json, text) = (report::vectors::json(&e), report::vectors::text(&e));
    print_vectors(args, binned.as_ref(), json, text);
    Ok(args.exit(e.tcal.reject))
}

fn run_classes(args: &Args, sample: &Vectors) -> Result<Exit, Failure> {
    // The views were checked when the file was read.
    let Ok(c) = multiclass::classwise(sample, &args.options()) else {
        return Ok(Exit::Data);
    };
    let (name, options) = (args.file.display().to_string(), args.options());
    let classes = args.columns.names().classes.into_iter();
    let names: Vec<String> = classes.map(|(class, _)| class).collect();
    page::write(args, || {
        classes_page::page(&name, &names, sample, &c, &options)
    })?;
    let text = match args.json {
        true => {
            let json = report::vectors::classwise(&c, &names, sample.len(), args.alpha);
            format!("{json:#}\n")
        }
        false => report::vectors::classwise_text(&c, &names, args.alpha),
    };
    print(&text);
    Ok(args.exit(c.reject))
}

fn kernel_options(args: &Args) -> KernelOptions {
    KernelOptions {
        alpha: args.alpha,
        nu: args.kernel_width,
        quadratic_max: args.kernel_events as usize,
        replicates: args.kernel_bootstrap,
        seed: args.seed,
    }
}

fn run_kernel(args: &Args, sample: &Vectors) -> Exit {
    let Some(e) = kernel::evaluate(sample, &kernel_options(args)) else {
        return other::too_few();
    };
    let binned = other::binned(args, sample);
    let (json, text) = (report::kernel::json(&e), report::kernel::text(&e));
    print_vectors(args, binned.as_ref(), json, text);
    args.exit(e.reject)
}

/// Prints an evaluation of vectors, with the binned errors if they are requested.
fn print_vectors(args: &Args, binned: Option<&BinnedTests>, mut json: Value, mut text: String) {
    if let Some(binned) = binned {
        json["estimators"] = report::estimators::of_vectors(binned);
        text += &report::estimators::text_of_vectors(binned);
    }
    match args.json {
        true => print(&format!("{json:#}\n")),
        false => print(&text),
    }
}
