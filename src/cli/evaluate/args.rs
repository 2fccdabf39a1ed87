//! What `trueline evaluate` is asked.

use std::path::PathBuf;

use crate::cli::exit::{self, Exit};
use crate::cli::recalibrate;
use crate::stats::evaluation::{
    Critical, DiscreteMode, Extent, NullReach, Options, Sampling, Sharing, TCalOptions,
};
use crate::stats::multiclass::VectorView;
use crate::stats::offline as tests;
use crate::stats::view::View;

const EXAMPLES: &str = "\
Examples:
  trueline evaluate scores.csv
  trueline evaluate --json --method paper --interval-cells 50 scores.csv.gz
  trueline evaluate --tolerance 0.02 --fail-on-miscalibrated holdout.csv && deploy
  trueline evaluate --view kernel classes.csv
  trueline evaluate --compare-intervals 500 scores.csv
  trueline evaluate --test splitting-adaptive --seed 7 scores.csv
  trueline evaluate --recalibrate advised --fit january.csv --map mend.csv february.csv

The file is CSV with a header; the columns score (a probability) and label (0 or 1) are read, with weight (an
importance weight above 0) where there is one; or, for several classes, p0, p1, … (a probability a class) and label (the index of the class that happened), likewise with weight.";

/// Replicates of the paper's procedure, the number of its authors' program.
const PAPER_REPLICATES: u32 = 3000;

/// How the adaptive test is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Method {
    /// The product's: p-values from the exact moments of the null, error shared jointly over 12 levels
    Default,
    /// The papers': all B scales, 3000 redrawn samples, Bonferroni; the interval's null by σ₀
    Paper,
}

/// Another test of calibration, in place of the adaptive one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OtherTest {
    /// T-Cal at the one level that `--smoothness` asks for
    KnownSmoothness,
    /// The same against the null that the ℓ2 error is at most `--tolerance`
    Composite,
    /// Sample splitting, then a χ² test of two samples at that level
    Splitting,
    /// Sample splitting, then a permutation test over all levels
    SplittingAdaptive,
    /// Consistency resampling of the ℓ1-ECE of 15 cells
    Consistency,
}

impl OtherTest {
    pub(super) fn test(self) -> tests::Test {
        match self {
            OtherTest::KnownSmoothness => tests::Test::KnownSmoothness,
            OtherTest::Composite => tests::Test::Composite,
            OtherTest::Splitting => tests::Test::Splitting,
            OtherTest::SplittingAdaptive => tests::Test::SplittingAdaptive,
            OtherTest::Consistency => tests::Test::Consistency,
        }
    }
}

/// When the exact test for discrete scores runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Discrete {
    /// With at most 64 distinct scores
    Auto,
    /// Always
    On,
    /// Never
    Off,
}

/// What of the file is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileView {
    /// One score an event.
    Scalar(View),
    /// Whole vectors, by the kernel test.
    Kernel,
    /// Several probabilities at once, by cells.
    Cells(VectorView),
    /// Every class against the rest, with one error for all.
    Classes,
}

fn file_view(text: &str) -> Result<FileView, String> {
    match text {
        "kernel" => return Ok(FileView::Kernel),
        "classes" => return Ok(FileView::Classes),
        "full" => return Ok(FileView::Cells(VectorView::Full)),
        _ => {}
    }
    let count = text.strip_prefix("top_k:").and_then(|k| k.parse().ok());
    if let Some(k) = count.filter(|k| *k >= 1) {
        return Ok(FileView::Cells(VectorView::TopK(k)));
    }
    let view = text.parse().map_err(|_| {
        format!(
            "unknown view {text:?}: use binary, top_label, class:<index>, classes, top_k:<count>, full or kernel"
        )
    })?;
    Ok(FileView::Scalar(view))
}

/// Evaluate a file of scored outcomes as one sample.
///
/// Tests whether the scores are true probabilities, and says how far off they are: the adaptive T-Cal
/// test, an interval for the ℓ2 calibration error, the classical measures, the distances from calibration and
/// a reliability diagram. Where the scores are discrete, the exact binomial test of each score decides in
/// place of T-Cal.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub struct Args {
    /// CSV file with the columns score and label, also .gz and .zst
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// What of the file is tested: binary; top_label, class:<index>, classes (each against the rest), top_k:<count>
    /// (the largest probabilities), full (all of them) or kernel; without it binary for scores, top_label for
    /// vectors
    #[arg(long, value_name = "VIEW", value_parser = file_view)]
    pub view: Option<FileView>,
    /// Print one JSON object in place of the table
    #[arg(long)]
    pub json: bool,
    /// How the adaptive test is carried out
    #[arg(long, value_enum, default_value = "default")]
    pub method: Method,
    /// Another test in place of the adaptive one: of scores, or of all classes with `--view full`; prints its
    /// outcome only
    #[arg(long, value_enum, value_name = "TEST")]
    pub test: Option<OtherTest>,
    /// Hölder smoothness of the calibration curve, for `--test` known-smoothness, composite and splitting
    #[arg(long, default_value_t = 1.0, value_name = "S", value_parser = width)]
    pub smoothness: f64,
    /// Level of the test: how often a calibrated sample may be rejected
    #[arg(long, default_value_t = 0.05, value_parser = inside)]
    pub alpha: f64,
    /// Cells of the interval; without it the power of two next above 2n^(2/5)
    #[arg(long, value_name = "CELLS", value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    pub interval_cells: Option<u64>,
    /// Confidence of the interval
    #[arg(long, default_value_t = 0.9, value_parser = inside)]
    pub confidence: f64,
    /// Intervals of bootstrap, subsampling and HulC beside, for comparison, with so many redrawn samples; of scores
    #[arg(long, default_value_t = 0, value_name = "REPLICATES", value_parser = clap::value_parser!(u32).range(..=100_000), conflicts_with = "test")]
    pub compare_intervals: u32,
    /// Smallest possible score, for the interval of `--method paper`: 1/K for the top label of K classes
    #[arg(long, default_value_t = 0.0, value_name = "SCORE", value_parser = share)]
    pub lower_support: f64,
    /// When the exact test for discrete scores runs
    #[arg(long, value_enum, default_value = "auto")]
    pub discrete: Discrete,
    /// ℓ2 calibration error that is tolerated
    #[arg(long, default_value_t = 0.0, value_name = "ECE", value_parser = share)]
    pub tolerance: f64,
    /// Share of the negatives that is in the file, where all positives are: scores of the whole population are
    /// carried to that of the file, s / (s + r(1 − s))
    #[arg(long, default_value_t = 1.0, value_name = "RATE", value_parser = rate)]
    pub negatives_kept: f64,
    /// Share of the negatives that the model was trained on, where its scores were not corrected for it:
    /// p / (p + (1 − p)/w)
    #[arg(long, default_value_t = 1.0, value_name = "RATE", value_parser = rate)]
    pub negatives_trained: f64,
    /// Seed of redrawn samples; the same seed gives the same answer
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Width ν of the kernel; without it the median distance of the predictions
    #[arg(long, value_name = "NU", value_parser = width)]
    pub kernel_width: Option<f64>,
    /// Events of the quadratic kernel estimators at most, drawn by the seed
    #[arg(long, default_value_t = 4000, value_name = "EVENTS", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub kernel_events: u32,
    /// Bootstrap replicates of the unbiased kernel estimator; 0 leaves its limit law out
    #[arg(long, default_value_t = 0, value_name = "REPLICATES", value_parser = clap::value_parser!(u32).range(..=100_000))]
    pub kernel_bootstrap: u32,
    /// End with code 1 when calibration is rejected and the error exceeds the tolerance
    #[arg(long)]
    pub fail_on_miscalibrated: bool,
    /// How scores are mended before they are evaluated
    #[command(flatten)]
    pub mending: recalibrate::Args,
}

/// A number above 0 and below 1.
fn inside(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x < 1.0 => Ok(x),
        _ => Err("give a number above 0 and below 1, such as 0.05".to_owned()),
    }
}

/// A finite number above 0.
fn width(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x.is_finite() => Ok(x),
        _ => Err("give a number above 0, such as 0.5".to_owned()),
    }
}

/// A number from 0 to 1.
fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if (0.0..=1.0).contains(&x) => Ok(x),
        _ => Err("give a number from 0 to 1".to_owned()),
    }
}

/// A number above 0 and at most 1.
fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x <= 1.0 => Ok(x),
        _ => Err("give a number above 0 and at most 1, such as 0.1".to_owned()),
    }
}

impl Args {
    /// The rates, which were checked as they were read.
    pub(super) fn sampling(&self) -> Sampling {
        Sampling::new(self.negatives_kept, self.negatives_trained).unwrap_or_default()
    }

    /// How to end after a verdict.
    pub(super) fn exit(&self, miscalibrated: bool) -> Exit {
        if self.fail_on_miscalibrated && miscalibrated {
            Exit::Verdict
        } else {
            Exit::Ok
        }
    }

    pub(super) fn options(&self) -> Options {
        let paper = self.method == Method::Paper;
        let (critical, sharing) = if paper {
            let replicates = PAPER_REPLICATES;
            (Critical::MonteCarlo { replicates }, Sharing::Bonferroni)
        } else {
            (Critical::Moments, Sharing::Joint)
        };
        Options {
            tcal: TCalOptions {
                alpha: self.alpha,
                critical,
                sharing,
                seed: self.seed,
            },
            interval_cells: self.interval_cells,
            confidence: self.confidence,
            null_reach: if paper {
                NullReach::Paper {
                    lower_support: self.lower_support,
                }
            } else {
                NullReach::Conditional
            },
            tolerance: self.tolerance,
            discrete: match self.discrete {
                Discrete::Auto => DiscreteMode::Auto,
                Discrete::On => DiscreteMode::On,
                Discrete::Off => DiscreteMode::Off,
            },
            distances: Extent::All,
            sampling: self.sampling(),
            ..Options::default()
        }
    }
}
