//! `trueline evaluate`: a file of scored outcomes as one sample.

use std::fs::File;
use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressStyle};

use super::exit::{self, Exit};
use super::table;
use crate::decode::scores;
use crate::judge::report;
use crate::stats::evaluation::{
    Critical, DiscreteMode, Evaluation, NullReach, Options, Sharing, TCalOptions, evaluate_scores,
};

const EXAMPLES: &str = "\
Examples:
  trueline evaluate scores.csv
  trueline evaluate --json --method paper --interval-cells 50 scores.csv.gz
  trueline evaluate --tolerance 0.02 --fail-on-miscalibrated holdout.csv && deploy

The file is CSV with a header; the columns score (a probability) and label (0 or 1) are read.";

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

/// Evaluate a file of scored outcomes as one sample.
///
/// Tests whether the scores are true probabilities, and says how far off they are: the adaptive T-Cal
/// test, an interval for the ℓ2 calibration error, the classical measures and a reliability diagram. Where
/// the scores are discrete, the exact binomial test of each score decides in place of T-Cal.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub struct Args {
    /// CSV file with the columns score and label, also .gz and .zst
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print one JSON object in place of the table
    #[arg(long)]
    pub json: bool,
    /// How the adaptive test is carried out
    #[arg(long, value_enum, default_value = "default")]
    pub method: Method,
    /// Level of the test: how often a calibrated sample may be rejected
    #[arg(long, default_value_t = 0.05, value_parser = inside)]
    pub alpha: f64,
    /// Cells of the interval; without it the power of two next above 2n^(2/5)
    #[arg(long, value_name = "CELLS", value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    pub interval_cells: Option<u64>,
    /// Confidence of the interval
    #[arg(long, default_value_t = 0.9, value_parser = inside)]
    pub confidence: f64,
    /// Smallest possible score, for the interval of `--method paper`: 1/K for the top label of K classes
    #[arg(long, default_value_t = 0.0, value_name = "SCORE", value_parser = share)]
    pub lower_support: f64,
    /// When the exact test for discrete scores runs
    #[arg(long, value_enum, default_value = "auto")]
    pub discrete: Discrete,
    /// ℓ2 calibration error that is tolerated
    #[arg(long, default_value_t = 0.0, value_name = "ECE", value_parser = share)]
    pub tolerance: f64,
    /// Seed of redrawn samples; the same seed gives the same answer
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// End with code 1 when calibration is rejected and the error exceeds the tolerance
    #[arg(long)]
    pub fail_on_miscalibrated: bool,
}

/// A number above 0 and below 1.
fn inside(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x < 1.0 => Ok(x),
        _ => Err("give a number above 0 and below 1, such as 0.05".to_owned()),
    }
}

/// A number from 0 to 1.
fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if (0.0..=1.0).contains(&x) => Ok(x),
        _ => Err("give a number from 0 to 1".to_owned()),
    }
}

impl Args {
    fn options(&self) -> Options {
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
            ..Options::default()
        }
    }
}

/// Evaluates the file and prints the report.
pub fn run(args: &Args) -> Exit {
    let sample = match read(args) {
        Ok(sample) => sample,
        Err((exit, message)) => {
            eprintln!("trueline evaluate: {message}");
            return exit;
        }
    };
    // A sample that was read has at least one event, so there is always an evaluation.
    let Some(e) = evaluate_scores(&sample, &args.options()) else {
        return Exit::Data;
    };
    let text = if args.json {
        format!("{:#}\n", report::json(&e))
    } else {
        table::render(&e)
    };
    print(&text);
    if args.fail_on_miscalibrated && miscalibrated(&e) {
        Exit::Verdict
    } else {
        Exit::Ok
    }
}

/// Rejected, and beyond the tolerance where one is set.
fn miscalibrated(e: &Evaluation) -> bool {
    e.reject && e.tolerance.exceeded
}

fn read(args: &Args) -> Result<Vec<(f64, bool)>, (Exit, String)> {
    let name = args.file.display().to_string();
    let missing = |e: std::io::Error| {
        let text = format!("cannot open {name} ({e}); check the path and its permissions");
        (Exit::NoInput, text)
    };
    let file = File::open(&args.file).map_err(missing)?;
    if file.metadata().is_ok_and(|m| m.is_dir()) {
        let text = format!("{name} is a directory; name one CSV file in it");
        return Err((Exit::NoInput, text));
    }
    let bytes = file.metadata().map_or(0, |m| m.len());
    let bar = progress(bytes);
    let input = scores::unpack(&args.file, bar.wrap_read(file)).map_err(missing)?;
    let sample = scores::read(&name, input).map_err(|e| (Exit::Data, e.to_string()));
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

/// Prints to stdout; a closed pipe (`| head`) is no failure.
fn print(text: &str) {
    use std::io::Write;
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}
