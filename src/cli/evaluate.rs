//! `trueline evaluate`: a file of scored outcomes as one sample.

mod args;
mod sight;

pub use args::Args;

use super::exit::Exit;
use super::{classes, distances, intervals as intervals_text, kernel, offline, recalibrate};
use crate::report::{self, text};
use crate::stats::comparison::intervals::{self, Compared};
use crate::stats::evaluation::{Evaluation, Sampling, evaluate_scores, evaluate_weighted};
use crate::stats::fixed::Score;
use crate::stats::kernel::{Options as KernelOptions, Vectors};
use crate::stats::multiclass::{self, Events, VectorView};
use crate::stats::offline as tests;
use args::{FileView, OtherTest};
use sight::{Seen, sight};

/// Evaluates the file and prints the report.
pub fn run(args: &Args) -> Exit {
    let done = sight(args, &args.file).and_then(|seen| match seen {
        seen if args.test.is_some() => Ok(run_other(args, &seen)),
        Seen::Weighted(_) | Seen::Vectors(..) | Seen::WeightedVectors(..)
            if args.compare_intervals > 0 => Err((
            Exit::Usage,
            "--compare-intervals redraws single scores of equal weight; take a view such as top_label or class:0, \
             and leave the column weight out"
                .to_owned(),
        )),
        Seen::Scores(sample) => run_scores(args, sample),
        Seen::Weighted(_) | Seen::Vectors(..) | Seen::WeightedVectors(..)
            if args.mending.recalibrate.is_some() => Err((
            Exit::Usage,
            "maps mend one score an event, without weights; take a view such as top_label or class:0, \
             and leave the column weight out"
                .to_owned(),
        )),
        Seen::Weighted(sample) => Ok(tell(
            args,
            evaluate_weighted(&sample, &args.options()),
            &[],
            None,
        )),
        Seen::Vectors(sample, view) => Ok(run_vectors(args, &sample, view)),
        Seen::WeightedVectors(events) => Ok(run_cells(args, &events)),
    });
    done.unwrap_or_else(|(exit, message)| {
        eprintln!("trueline evaluate: {message}");
        exit
    })
}

fn run_scores(args: &Args, mut sample: Vec<(f64, bool)>) -> Result<Exit, (Exit, String)> {
    let mended = mend(args, &mut sample)?;
    let evaluation = evaluate_scores(&sample, &args.options());
    Ok(tell(args, evaluation, &sample, mended))
}

/// The intervals of others, where they are asked for, at the cells of ours.
fn compared(args: &Args, e: &Evaluation, sample: &[(f64, bool)]) -> Option<Compared> {
    if args.compare_intervals == 0 {
        return None;
    }
    let cells = u32::try_from(e.interval.cells).unwrap_or(u32::MAX);
    let replicates = args.compare_intervals;
    let seen = carried(args, sample);
    intervals::compare(&seen, cells, replicates, args.confidence, args.seed)
}

/// The scores on the scale of the file's events.
fn carried(args: &Args, sample: &[(f64, bool)]) -> Vec<(f64, bool)> {
    let sampling = args.sampling();
    // What was read is a score.
    let carry = |z: f64| Score::new(z).map_or(z, |score| sampling.carry(score).value());
    sample.iter().map(|&(z, y)| (carry(z), y)).collect()
}

fn tell(
    args: &Args,
    evaluation: Option<Evaluation>,
    sample: &[(f64, bool)],
    mended: Option<recalibrate::Mended>,
) -> Exit {
    // A sample that was read has at least one event, so there is always an evaluation.
    let Some(e) = evaluation else {
        return Exit::Data;
    };
    let compared = compared(args, &e, sample);
    let text = if args.json {
        let mut all = report::evaluation::json(&e);
        if let Some(c) = &compared {
            all["intervals"] = report::intervals::json(c);
        }
        if let Some(mended) = &mended {
            all["recalibration"] = recalibrate::json(mended);
        }
        format!("{all:#}\n")
    } else {
        let mended = mended.as_ref().map_or(String::new(), recalibrate::render);
        let distances = e.distances.as_ref();
        let distances = distances.map_or(String::new(), distances::render);
        let compared = compared
            .as_ref()
            .map_or(String::new(), intervals_text::render);
        mended + &text::render(&e) + &distances + &compared
    };
    print(&text);
    args.exit(miscalibrated(&e))
}

/// Mends the scores, where that is asked for.
fn mend(
    args: &Args,
    sample: &mut [(f64, bool)],
) -> Result<Option<recalibrate::Mended>, (Exit, String)> {
    let (Some(wanted), Some(path)) = (args.mending.recalibrate, &args.mending.fit) else {
        return Ok(None);
    };
    if args.sampling() != Sampling::default() {
        let text = "a map mends the scores as they come, not those that rates carry elsewhere; \
                    take one of --recalibrate and --negatives-kept or --negatives-trained";
        return Err((Exit::Usage, text.to_owned()));
    }
    let Seen::Scores(fit) = sight(args, path)? else {
        let text = "the files of --fit and of the evaluation are of different kinds".to_owned();
        return Err((Exit::Usage, text));
    };
    recalibrate::mend(&args.mending, wanted, &fit, sample, &args.options()).map(Some)
}

/// `--test`.
fn run_other(args: &Args, seen: &Seen) -> Exit {
    let Some(test) = args.test.map(OtherTest::test) else {
        return Exit::Usage;
    };
    let options = tests::Options {
        tcal: args.options().tcal,
        smoothness: args.smoothness,
        tolerance: args.tolerance,
    };
    let outcome = match seen {
        Seen::Scores(sample) => tests::scores(test, &carried(args, sample), &options),
        Seen::Weighted(_) | Seen::WeightedVectors(_) => {
            eprintln!(
                "trueline evaluate: --test {} has no weighted form; leave the option or the column weight out",
                test.name()
            );
            return Exit::Usage;
        }
        Seen::Vectors(sample, FileView::Cells(VectorView::Full))
            if test != tests::Test::Consistency =>
        {
            tests::vectors(test, sample, &options)
        }
        Seen::Vectors(..) => {
            eprintln!(
                "trueline evaluate: --test {} is of scores{}; choose another --view",
                test.name(),
                if test == tests::Test::Consistency {
                    ""
                } else {
                    ", or of all classes (--view full)"
                }
            );
            return Exit::Usage;
        }
    };
    let Some(outcome) = outcome else {
        eprintln!("trueline evaluate: one event alone cannot be tested; give at least two");
        return Exit::Data;
    };
    let text = if args.json {
        format!("{:#}\n", report::offline::json(&outcome))
    } else {
        offline::render(&outcome)
    };
    print(&text);
    args.exit(outcome.reject)
}

fn run_vectors(args: &Args, sample: &Vectors, view: FileView) -> Exit {
    match view {
        FileView::Cells(view) => run_cells(args, &Events::of(sample, view)),
        FileView::Classes => run_classes(args, sample),
        FileView::Kernel | FileView::Scalar(_) => run_kernel(args, sample),
    }
}

fn run_cells(args: &Args, events: &Events) -> Exit {
    let slices = args
        .interval_cells
        .map(|m| u32::try_from(m).unwrap_or(u32::MAX));
    let e = multiclass::evaluate_events(events, args.alpha, args.confidence, slices);
    // A sample that was read has at least one event, so there is always an evaluation.
    let Some(e) = e else {
        return Exit::Data;
    };
    let text = if args.json {
        format!("{:#}\n", report::vectors::json(&e))
    } else {
        classes::render(&e)
    };
    print(&text);
    args.exit(e.tcal.reject)
}

fn run_classes(args: &Args, sample: &Vectors) -> Exit {
    // The views were checked as the rows were read.
    let Ok(c) = multiclass::classwise(sample, &args.options().tcal) else {
        return Exit::Data;
    };
    let text = if args.json {
        format!(
            "{:#}\n",
            report::vectors::classwise(&c, sample.len(), args.alpha)
        )
    } else {
        classes::classwise(&c, args.alpha)
    };
    print(&text);
    args.exit(c.reject)
}

fn run_kernel(args: &Args, sample: &Vectors) -> Exit {
    let options = KernelOptions {
        alpha: args.alpha,
        nu: args.kernel_width,
        quadratic_max: args.kernel_events as usize,
        replicates: args.kernel_bootstrap,
        seed: args.seed,
    };
    let Some(e) = crate::stats::kernel::evaluate(sample, &options) else {
        eprintln!("trueline evaluate: the kernel test compares pairs; give at least two events");
        return Exit::Data;
    };
    let text = if args.json {
        format!("{:#}\n", report::kernel::json(&e))
    } else {
        kernel::render(&e)
    };
    print(&text);
    args.exit(e.reject)
}

/// Rejected, and beyond the tolerance where one is set.
fn miscalibrated(e: &Evaluation) -> bool {
    e.reject && e.tolerance.exceeded
}

/// Prints to stdout; a closed pipe (`| head`) is no failure.
fn print(text: &str) {
    use std::io::Write;
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}
