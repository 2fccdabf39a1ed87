//! Tests and estimators of the papers beside the product's own: `--test`, `--estimators`, and the
//! kernel test of weighted events.

use super::args::{Args, FileView, KERNEL_EVENTS, Method, OtherTest, SMOOTHNESS};
use super::input::FileSample;
use crate::cli::exit::{self, Exit, Failure, print};
use crate::report;
use crate::report::estimators::OfScores;
use crate::stats::comparison::classical;
use crate::stats::distance::binned;
use crate::stats::fixed::Score;
use crate::stats::kernel::binned_tests::{BinnedTests, binned_tests};
use crate::stats::kernel::{Options as KernelOptions, Vectors, weighted};
use crate::stats::levels::Level;
use crate::stats::multiclass::VectorView;
use crate::stats::offline as tests;

/// The scores, adjusted to the sampling of the file's events.
pub fn adjusted(args: &Args, sample: &[(f64, bool)]) -> Vec<(f64, bool)> {
    let sampling = args.sampling();
    // The reader has checked that these are scores.
    let carry = |z: f64| Score::new(z).map_or(z, |score| sampling.carry(score).value());
    sample.iter().map(|&(z, y)| (carry(z), y)).collect()
}

/// Runs the test of `--test` and prints its outcome.
pub fn run(args: &Args, sample: &FileSample) -> Exit {
    let Some(test) = args.test.map(OtherTest::test) else {
        return Exit::Usage;
    };
    let options = tests::Options {
        tcal: args.options().tcal,
        smoothness: args.smoothness,
        tolerance: args.tolerance.absolute.unwrap_or(0.0),
    };
    let outcome = match sample {
        FileSample::Scores(sample, _) => tests::scores(test, &adjusted(args, sample), &options),
        FileSample::Vectors(sample, FileView::Cells(VectorView::Full)) => {
            tests::vectors(test, sample, &options)
        }
        FileSample::Clustered(_) => {
            let why = "takes events as independent: drop the option or the column cluster";
            return usage(test, why);
        }
        FileSample::Weighted(..)
        | FileSample::WeightedVectors(_)
        | FileSample::WeightedKernel(..) => {
            let why = "does not support weights: drop the option or the column weight";
            return usage(test, why);
        }
        FileSample::Vectors(..) => {
            let why = "needs single scores, or of all classes (--view full): choose another --view";
            return usage(test, why);
        }
    };
    let Some(outcome) = outcome else {
        return exit::fail(Exit::Data, "a test needs at least two events");
    };
    let text = if args.json {
        format!("{:#}\n", report::offline::json(&outcome))
    } else {
        report::offline::text(&outcome)
    };
    print(&text);
    args.exit(outcome.reject)
}

fn usage(test: tests::Test, why: &str) -> Exit {
    exit::fail(Exit::Usage, format_args!("--test {} {why}", test.name()))
}

/// Returns an error if an option would be silently ignored, whatever the file contains.
pub fn check_options(args: &Args) -> Result<(), String> {
    let smooth =
        |test: OtherTest| !matches!(test, OtherTest::SplittingAdaptive | OtherTest::Consistency);
    let kernel = args.view == Some(FileView::Kernel) && args.test.is_none();
    let belongs = "belongs to the kernel test: add --view kernel or drop the option";
    let found = [
        (
            args.smoothness != SMOOTHNESS && !args.test.is_some_and(smooth),
            "--smoothness",
            "needs --test known-smoothness, composite, splitting or cross-fitting",
        ),
        (
            args.lower_support != 0.0 && args.method != Method::Paper,
            "--lower-support",
            "needs --method paper",
        ),
        (
            args.kernel_width.is_some() && !kernel,
            "--kernel-width",
            belongs,
        ),
        (
            args.kernel_events != KERNEL_EVENTS && !kernel,
            "--kernel-events",
            belongs,
        ),
        (
            args.kernel_bootstrap != 0 && !kernel,
            "--kernel-bootstrap",
            belongs,
        ),
    ];
    if let Some((_, option, why)) = found.iter().find(|(ignored, ..)| *ignored) {
        return Err(format!("{}: {option} {why}", args.file.display()));
    }
    let unused = OF_SCORES
        .iter()
        .find(|(id, _)| args.is_given(id) && !is_used(args, id));
    if let Some((_, option)) = unused {
        let with = args.test.map_or("this --view".to_owned(), |test| {
            format!("--test {}", test.test().name())
        });
        let file = args.file.display();
        return Err(format!(
            "{file}: {option} has no effect with {with}: drop one of the two"
        ));
    }
    let share = args.tolerance.relative.is_some() && args.is_given("tolerance");
    if share && args.test == Some(OtherTest::Composite) {
        return Err(format!(
            "{}: --test composite tests an ℓ2-ECE: give --tolerance a number alone, such as 0.05",
            args.file.display()
        ));
    }
    Ok(())
}

/// Arguments of the evaluation of single scores: id and option.
const OF_SCORES: [(&str, &str); 8] = [
    ("tolerance", "--tolerance"),
    ("decide_by", "--decide-by"),
    ("method", "--method"),
    ("lower_support", "--lower-support"),
    ("axis", "--axis"),
    ("confidence", "--confidence"),
    ("interval_cells", "--interval-cells"),
    ("discrete", "--discrete"),
];

/// Whether the requested test or view uses an argument of single scores.
fn is_used(args: &Args, id: &str) -> bool {
    match (args.test, args.view) {
        (Some(OtherTest::Composite), _) => id == "tolerance",
        (Some(OtherTest::KnownSmoothness), None | Some(FileView::Scalar(_))) => id == "method",
        (Some(_), _) | (None, Some(FileView::Kernel)) => false,
        (None, Some(FileView::Cells(_))) => matches!(id, "confidence" | "interval_cells"),
        // The page evaluates the scores of each class.
        (None, Some(FileView::Classes)) => {
            matches!(id, "method" | "decide_by" | "discrete")
                || (args.report.is_some() && id != "axis")
        }
        (None, None | Some(FileView::Scalar(_))) => true,
    }
}

/// Returns an error if the sample does not support `--estimators` or `--kernel-bootstrap`, which
/// would otherwise be silently ignored.
pub fn check(args: &Args, sample: &FileSample) -> Result<(), Failure> {
    let weights = "does not support weights: drop the option or the column weight";
    let is_weighted = matches!(
        sample,
        FileSample::Weighted(..) | FileSample::WeightedVectors(_) | FileSample::WeightedKernel(..)
    );
    let of_estimators = match sample {
        _ if !args.estimators => None,
        _ if is_weighted => Some(weights),
        FileSample::Clustered(_) => {
            Some("takes events as independent: drop the option or the column cluster")
        }
        FileSample::Vectors(_, FileView::Classes) => {
            Some("has none class by class: choose another --view")
        }
        _ => None,
    };
    // Without the kernel view the option is refused earlier.
    let of_bootstrap = (is_weighted && args.kernel_bootstrap != 0).then_some(weights);
    let found = [
        ("--estimators", of_estimators),
        ("--kernel-bootstrap", of_bootstrap),
    ];
    match found.into_iter().find_map(|(o, why)| Some((o, why?))) {
        Some((option, why)) => Err((
            Exit::Usage,
            format!("{}: {option} {why}", args.file.display()),
        )),
        None => Ok(()),
    }
}

/// The other estimators of single scores; `None` without events.
pub fn estimators(args: &Args, sample: &[(f64, bool)]) -> Option<OfScores> {
    Some(OfScores {
        debiased_l2: classical::debiased_l2(&Level::from_scores(sample, 15)),
        debiased_l2_distinct: classical::debiased_l2_distinct(sample),
        binned: binned::binned(sample, args.seed)?,
    })
}

/// The binned errors of vectors, if they are requested.
pub fn binned(args: &Args, sample: &Vectors) -> Option<BinnedTests> {
    args.estimators
        .then(|| binned_tests(sample, args.estimator_resamples, args.seed))
}

/// The kernel test of weighted vectors.
pub fn weighted_kernel(
    args: &Args,
    sample: &Vectors,
    weights: &[f64],
    options: &KernelOptions,
) -> Exit {
    let Some(e) = weighted::evaluate(sample, weights, options) else {
        return too_few();
    };
    let text = if args.json {
        format!("{:#}\n", report::kernel::weighted_json(&e))
    } else {
        report::kernel::weighted_text(&e)
    };
    print(&text);
    args.exit(e.reject)
}

/// The failure of a kernel test of one event.
pub fn too_few() -> Exit {
    exit::fail(
        Exit::Data,
        "the kernel test compares pairs and needs at least two events",
    )
}
