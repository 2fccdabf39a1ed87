//! Arguments of `trueline evaluate`.

use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, Id};

use crate::cli::exit::{self, Exit};
use crate::cli::recalibrate;
use crate::decode::columns::{Columns, class_column};
use crate::stats::evaluation::{
    Conclusion, Critical, DecideBy, DiscreteMode, Extent, NullReach, Options, Sampling, Sharing,
    TCalOptions, Tolerance,
};
use crate::stats::multiclass::VectorView;
use crate::stats::offline as tests;
use crate::stats::view::View;

const EXAMPLES: &str = "\
Examples:
  trueline evaluate scores.csv
  trueline evaluate --score y_prob --label y_true --positive spam predictions.jsonl
  zcat big.csv.gz | trueline evaluate -
  trueline evaluate --classes cat=p_cat,dog=p_dog --label truth pets.csv
  trueline evaluate --score payload.score --label clicked --as-window clicks.parquet
  trueline evaluate --json --method paper --interval-cells 50 scores.csv.gz
  trueline evaluate --tolerance 0.02 --fail-unless-calibrated holdout.csv && deploy
  trueline evaluate --view kernel classes.csv
  trueline evaluate --view kernel --estimators --estimator-resamples 1000 classes.csv
  trueline evaluate --compare-intervals 500 scores.csv
  trueline evaluate --test splitting-adaptive --seed 7 scores.csv
  trueline evaluate --report holdout.html holdout.csv
  trueline evaluate --recalibrate advised --fit january.csv --map mend.csv february.csv

The file is CSV with a header, JSON lines, Parquet or Arrow. For one class it has the columns
score (a probability) and label (0 or 1, true or false). For several classes it has p0, p1, … (one
probability per class) and label (the index of the class that happened). Options say what the
columns are called otherwise. Both may have the column weight (an importance weight above 0). A
file of one class may instead have the column cluster (the user, session or household of the
event): tests and interval then hold whatever the dependence within clusters.

With --fail-unless-calibrated the exit code is 1 unless the error is shown to be within the
tolerance: a sample that is miscalibrated fails, and one that is undecided, as where events are too
few. With --fail-on-miscalibrated it is 1 if calibration is rejected and the error is shown to
exceed the tolerance; for several classes at once, and with --test, if calibration is rejected. An
undecided sample of single scores then ends with 0.";

/// Replicates of the paper's procedure, as in its authors' program.
const PAPER_REPLICATES: u32 = 3000;

/// Default of `--smoothness`.
pub const SMOOTHNESS: f64 = 1.0;

/// Default of `--kernel-events`.
pub const KERNEL_EVENTS: u32 = 4000;

/// How the adaptive test runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Method {
    /// P-values from the exact moments of the null, with the error shared jointly over 12 levels
    Default,
    /// As in the papers: all B scales, 3000 resamples, Bonferroni; the null of the interval by σ₀
    Paper,
}

/// Another test of calibration, instead of the adaptive one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OtherTest {
    /// T-Cal at the one level that `--smoothness` implies
    KnownSmoothness,
    /// T-Cal at that level, against the null hypothesis that the ℓ2 error is at most `--tolerance`,
    /// a number alone
    Composite,
    /// Sample splitting, then a χ² test of two samples at that level
    Splitting,
    /// Sample splitting, then a permutation test over all levels
    SplittingAdaptive,
    /// Sample splitting in both orders of the halves, at that level; outcomes redrawn
    CrossFitting,
    /// Consistency resampling of the ℓ1-ECE of 15 cells; with `--view full` the binned errors of
    /// vectors, outcomes redrawn given the predictions
    Consistency,
}

impl OtherTest {
    pub(super) fn test(self) -> tests::Test {
        match self {
            OtherTest::KnownSmoothness => tests::Test::KnownSmoothness,
            OtherTest::Composite => tests::Test::Composite,
            OtherTest::Splitting => tests::Test::Splitting,
            OtherTest::SplittingAdaptive => tests::Test::SplittingAdaptive,
            OtherTest::CrossFitting => tests::Test::CrossFitting,
            OtherTest::Consistency => tests::Test::Consistency,
        }
    }
}

/// Axis of the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum AxisOption {
    /// Equal cells of [0, 1]
    Linear,
    /// Equal cells of the log odds from 1e-6 to 1 − 1e-6
    Logit,
}

/// Which test decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Deciding {
    /// T-Cal over coarse and over fine cells, a score test against shift, slope and noise, and
    /// Kolmogorov–Smirnov, joined
    Combined,
    /// T-Cal alone
    Tcal,
    /// T-Cal, and the exact binomial tests where scores are discrete
    Paper,
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

/// The probabilities of the file that are tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileView {
    /// One score per event.
    Scalar(View),
    /// Full vectors, by the kernel test.
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
/// Tests whether the scores are calibrated and reports how far off they are: the adaptive T-Cal
/// test and its combination with a score test and Kolmogorov–Smirnov, which decides; an interval
/// for the ℓ2 calibration error, the classical measures, the distances from calibration and a
/// reliability diagram. For discrete scores, tests of each score join them.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub struct Args {
    /// CSV or JSON lines with the columns score and label, which may be compressed (gzip, zstd);
    /// Parquet or Arrow (Feather, stream); `-` for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// What the columns are called
    #[command(flatten)]
    pub columns: ColumnArgs,
    /// Which probabilities are tested: binary; top_label, class:<index>, classes (each against the
    /// rest), top_k:<count> (the largest), full (all, by cells) or kernel (all, by the kernel test)
    /// [default: binary for one class, class:1 for two, top_label for more]
    #[arg(long, value_name = "VIEW", value_parser = file_view)]
    pub view: Option<FileView>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
    /// How the adaptive test runs
    #[arg(long, value_enum, default_value = "default")]
    pub method: Method,
    /// Run another test instead of the adaptive one, and print only its outcome; of scores, or of
    /// all classes with `--view full`
    #[arg(long, value_enum, value_name = "TEST")]
    pub test: Option<OtherTest>,
    /// Hölder smoothness of the calibration curve, for `--test` known-smoothness, composite,
    /// splitting and cross-fitting
    #[arg(long, default_value_t = SMOOTHNESS, value_name = "S", value_parser = width)]
    pub smoothness: f64,
    /// Significance level: the probability that a calibrated sample is rejected
    #[arg(long, default_value_t = 0.05, value_parser = inside)]
    pub alpha: f64,
    /// Cells of the interval [default: the next power of two above 2n^(2/5)]; where events count as
    /// clusters the next power of two, at most 64
    #[arg(long, value_name = "CELLS", value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    pub interval_cells: Option<u64>,
    /// Confidence level of the interval
    #[arg(long, default_value_t = 0.9, value_parser = confidence)]
    pub confidence: f64,
    /// Add the intervals of bootstrap, subsampling and HulC for comparison, with this many
    /// resamples
    #[arg(long, default_value_t = 0, value_name = "REPLICATES", value_parser = clap::value_parser!(u32).range(..=100_000), conflicts_with = "test")]
    pub compare_intervals: u32,
    /// Add the other estimators of the papers: the debiased ℓ2 error over cells and over repeated
    /// scores (one that occurs once is left out), the binned ECE with its width and kernel terms by
    /// sampling; with `--view full` or kernel the binned errors of vectors, over uniform bins and
    /// over bins that depend on the data
    #[arg(long, conflicts_with = "test")]
    pub estimators: bool,
    /// Redrawn samples for p-values of the binned errors of vectors; 0: no p-values
    #[arg(long, default_value_t = 0, value_name = "REPLICATES", value_parser = clap::value_parser!(u32).range(..=100_000), requires = "estimators")]
    pub estimator_resamples: u32,
    /// Smallest possible score, for the interval of `--method paper`: 1/K for the top label of K
    /// classes
    #[arg(long, default_value_t = 0.0, value_name = "SCORE", value_parser = share)]
    pub lower_support: f64,
    /// When the exact test for discrete scores runs
    #[arg(long, value_enum, default_value = "auto")]
    pub discrete: Discrete,
    /// Tolerated calibration error: an ℓ2-ECE (0.02), a share of the rarer outcome's mean score
    /// (10%), or the smaller of both
    #[arg(long, default_value_t = Tolerance::default(), value_name = "TOLERANCE")]
    pub tolerance: Tolerance,
    /// Axis on which scores are cut into cells: linear, or logit for rare outcomes
    #[arg(long, value_enum, default_value = "linear")]
    pub axis: AxisOption,
    /// Evaluate sums over 4096 cells of the axis, as a window does: of plain columns of Parquet or
    /// Arrow in constant memory
    #[arg(long, conflicts_with_all = ["test", "compare_intervals", "estimators", "recalibrate", "view"])]
    pub as_window: bool,
    /// Which test decides [default: combined, or paper with `--method paper`]
    #[arg(long, value_enum, value_name = "TEST")]
    pub decide_by: Option<Deciding>,
    /// Share of the negatives that is in the file, which has all positives: scores of the whole
    /// population are adjusted to the file by s / (s + r(1 − s))
    #[arg(long, default_value_t = 1.0, value_name = "RATE", value_parser = rate)]
    pub negatives_kept: f64,
    /// Share of the negatives that the model was trained on, if its scores were not corrected for
    /// it: they are adjusted by p / (p + (1 − p)/w)
    #[arg(long, default_value_t = 1.0, value_name = "RATE", value_parser = rate)]
    pub negatives_trained: f64,
    /// Seed of resampling; the same seed gives the same result
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Width ν of the kernel [default: the median distance of the predictions]
    #[arg(long, value_name = "NU", value_parser = width)]
    pub kernel_width: Option<f64>,
    /// Largest number of events for the quadratic kernel estimators; more are sampled by the seed
    #[arg(long, default_value_t = KERNEL_EVENTS, value_name = "EVENTS", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub kernel_events: u32,
    /// Bootstrap replicates for the asymptotic test of the unbiased kernel estimator; 0: no such
    /// test
    #[arg(long, default_value_t = 0, value_name = "REPLICATES", value_parser = clap::value_parser!(u32).range(..=100_000))]
    pub kernel_bootstrap: u32,
    /// Exit with code 1 if calibration is rejected and the error exceeds the tolerance; for several
    /// classes at once, and with --test, if calibration is rejected
    #[arg(long)]
    pub fail_on_miscalibrated: bool,
    /// Exit with code 1 unless the error is shown to be within the tolerance, so also if the sample
    /// is undecided; for single scores
    #[arg(long, conflicts_with = "test")]
    pub fail_unless_calibrated: bool,
    /// Write one self-contained HTML page with diagrams, tables and the map that would recalibrate
    #[arg(long, value_name = "FILE", conflicts_with = "test")]
    pub report: Option<PathBuf>,
    /// Recalibration of the scores before the evaluation
    #[command(flatten)]
    pub recalibration: recalibrate::Args,
    /// Ids of the arguments that were given; of the others the defaults hold.
    #[arg(skip)]
    given: Vec<String>,
}

/// What the columns are called.
#[derive(Debug, clap::Args)]
pub struct ColumnArgs {
    /// Column of the score; of JSON lines and of columns with structs also a path such as
    /// prediction.score; a column of lists has the probabilities of all classes
    /// [default: score]
    #[arg(long, value_name = "COLUMN")]
    score: Option<String>,
    /// Column of the outcome
    #[arg(long, value_name = "COLUMN", default_value = "label")]
    label: String,
    /// Column of the weight [default: weight, if there is one]
    #[arg(long, value_name = "COLUMN")]
    weight: Option<String>,
    /// Column of the cluster: a user, session or household [default: cluster, if there is one]
    #[arg(long, value_name = "COLUMN")]
    cluster: Option<String>,
    /// Columns of the probabilities of all classes, as `column` or `class=column`; the label is
    /// then the class or its index [default: p0,p1,…]
    #[arg(long, value_name = "CLASS=COLUMN", value_delimiter = ',')]
    classes: Vec<String>,
    /// The label that counts as positive, beside one other [default: 1 or true]
    #[arg(long, value_name = "LABEL")]
    positive: Option<String>,
}

impl ColumnArgs {
    pub(super) fn names(&self) -> Columns {
        Columns {
            score: self.score().to_owned(),
            label: self.label.clone(),
            weight: self.weight.clone(),
            cluster: self.cluster.clone(),
            classes: self.classes.iter().map(|c| class_column(c)).collect(),
            positive: self.positive.clone(),
        }
    }

    fn score(&self) -> &str {
        self.score.as_deref().unwrap_or("score")
    }

    /// Returns an error if one column is named for two purposes, or if scores are named twice.
    pub(super) fn check(&self) -> Result<(), String> {
        let classes: Vec<(String, String)> = self.classes.iter().map(|c| class_column(c)).collect();
        if let (Some(list), false) = (&self.score, classes.is_empty()) {
            let items = classes.iter().enumerate();
            let items = items.map(|(i, (class, _))| format!("{class}={list}.{i}"));
            let items: Vec<String> = items.collect();
            return Err(format!(
                "--score and --classes both name probabilities: use one of them; of a list, --classes {}",
                items.join(",")
            ));
        }
        let mut named: Vec<(&str, &str)> = match classes.is_empty() {
            true => vec![("--score", self.score())],
            false => classes
                .iter()
                .map(|(_, c)| ("--classes", c.as_str()))
                .collect(),
        };
        named.extend([
            ("--label", self.label.as_str()),
            ("--weight", self.weight.as_deref().unwrap_or("weight")),
            ("--cluster", self.cluster.as_deref().unwrap_or("cluster")),
        ]);
        for (at, (option, column)) in named.iter().enumerate() {
            let same = |(_, other): &&(&str, &str)| other == column;
            if let Some((other, _)) = named[..at].iter().find(same) {
                return Err(format!(
                    "{other} and {option} both name the column `{column}`; a column is one of them"
                ));
            }
        }
        Ok(())
    }
}

/// Parses a number and checks it; `what` describes valid ones in the error.
fn number(text: &str, fits: impl Fn(f64) -> bool, what: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|x| fits(*x));
    number.ok_or_else(|| format!("give a number {what}"))
}

fn inside(text: &str) -> Result<f64, String> {
    let what = "above 0 and below 1, such as 0.05";
    number(text, |x| x > 0.0 && x < 1.0, what)
}

fn confidence(text: &str) -> Result<f64, String> {
    let what = "above 0 and below 1, such as 0.9";
    number(text, |x| x > 0.0 && x < 1.0, what)
}

fn width(text: &str) -> Result<f64, String> {
    let what = "above 0, such as 0.5";
    number(text, |x| x > 0.0 && x.is_finite(), what)
}

fn share(text: &str) -> Result<f64, String> {
    number(text, |x| (0.0..=1.0).contains(&x), "from 0 to 1")
}

fn rate(text: &str) -> Result<f64, String> {
    let what = "above 0 and at most 1, such as 0.1";
    number(text, |x| x > 0.0 && x <= 1.0, what)
}

impl Args {
    /// Notes which arguments were given.
    pub fn note_given(&mut self, matches: &ArgMatches) {
        let given = |id: &&Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        self.given = matches.ids().filter(given).map(Id::to_string).collect();
    }

    /// Whether an argument was given, by its id.
    pub(super) fn is_given(&self, id: &str) -> bool {
        self.given.iter().any(|given| given == id)
    }

    /// The sampling rates, already checked by the parser.
    pub(super) fn sampling(&self) -> Sampling {
        Sampling::new(self.negatives_kept, self.negatives_trained).unwrap_or_default()
    }

    /// Whether sums over cells are evaluated rather than the scores.
    pub(super) fn is_by_cells(&self) -> bool {
        self.as_window || self.axis == AxisOption::Logit
    }

    /// The exit code after a test.
    pub(super) fn exit(&self, rejected: bool) -> Exit {
        if self.fail_on_miscalibrated && rejected {
            Exit::Verdict
        } else {
            Exit::Ok
        }
    }

    /// The exit code after a verdict on single scores.
    pub(super) fn exit_after(&self, conclusion: Conclusion) -> Exit {
        match self.fail_unless_calibrated && conclusion != Conclusion::Calibrated {
            true => Exit::Verdict,
            false => self.exit(conclusion == Conclusion::Miscalibrated),
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
            decide_by: match self.decide_by {
                Some(Deciding::Combined) => DecideBy::Combined,
                Some(Deciding::Tcal) => DecideBy::Tcal,
                Some(Deciding::Paper) => DecideBy::Paper,
                None if paper => DecideBy::Paper,
                None => DecideBy::Combined,
            },
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
