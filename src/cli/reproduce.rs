//! `trueline reproduce`: runs the papers' experiments through the product's own code.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use clap::ValueEnum;

use super::exit::{self, Exit, print};
use super::progress::ProgressMeter;
use crate::reproduce::{Choice, Effort, Job, Progress, Table, grid, picture};
use crate::reproduce::{distance, interval, kernel, lengths, powers, tcal};

const EXAMPLES: &str = "\
Examples:
  trueline reproduce all --quick
  trueline reproduce all --data published --pages figures
  trueline reproduce kernel --classes 10 --setup sharp-first --estimator skce-uq-median
  trueline reproduce kernel --classes 2 --test c-uniform --data-sets 1000
  trueline reproduce kernel --long --pages figures
  trueline reproduce tests
  trueline reproduce tcal --json > tcal.json";

/// Which paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Which {
    /// Lee, Huang, Hassani, Dobriban 2022: T-Cal
    Tcal,
    /// Sun, Chaudhari, Barnett, Dobriban 2024: a confidence interval for the ℓ2-ECE
    Interval,
    /// Widmann, Lindsten, Zachariah 2019: calibration tests in multi-class classification
    Kernel,
    /// Błasiok, Gopalan, Hu, Nakkiran 2023: a unifying theory of distance from calibration
    Distance,
    /// Level and power of the product's tests beside those that people use elsewhere
    Tests,
    /// All of them
    All,
}

/// Run the papers' experiments and compare with the published numbers.
///
/// Draws the data sets of each paper's experiment, passes them through the functions that a window
/// uses, and prints every number with its Monte Carlo error. The number that the paper prints or
/// draws follows in round brackets; a number from theory or from another program follows in square
/// brackets. ! marks numbers that differ by more than three errors. Seeds are fixed. Figures are
/// drawn on all cores.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub struct Args {
    /// Which paper
    #[arg(value_enum, value_name = "PAPER")]
    pub paper: Which,
    /// Use few data sets
    #[arg(long)]
    pub quick: bool,
    /// Folder of the published model outputs (tcal, cifar10_multiclass), for the papers' tables of
    /// networks
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// Data sets per point of every figure, in each repetition if the figure has repetitions
    /// [default: the number in each figure's note, from 50 to 1000; the papers have 1000 to 10000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub data_sets: Option<u32>,
    /// Draw those of the kernel paper's Figures 3 to 82 that have this many classes
    #[arg(long, value_name = "K", value_parser = classes)]
    pub classes: Option<u32>,
    /// Draw those of this set-up only: predictions flat (α = 1) or sharp (α = 0.1), wrong
    /// outcomes uniform or all of the first class
    #[arg(long, value_name = "SETUP", value_parser = clap::builder::PossibleValuesParser::new(grid::SETUPS))]
    pub setup: Option<String>,
    /// Draw the distribution of this estimator only
    #[arg(long, value_name = "ESTIMATOR", value_parser = clap::builder::PossibleValuesParser::new(grid::ESTIMATORS))]
    pub estimator: Option<String>,
    /// Draw the errors of this test at all levels only, for 2 and 10 classes
    #[arg(long, value_name = "TEST", value_parser = clap::builder::PossibleValuesParser::new(grid::TESTS))]
    pub test: Option<String>,
    /// Draw the kernel paper's Figures 3 to 82 with as many data sets and resamples as the paper,
    /// and with the distribution of every estimator: hours
    #[arg(long, conflicts_with = "quick")]
    pub long: bool,
    /// Print one JSON array instead of the tables
    #[arg(long)]
    pub json: bool,
    /// Also write a picture of all tables
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Also write each figure as a picture and as text into this folder
    #[arg(long, value_name = "FOLDER")]
    pub pages: Option<PathBuf>,
    /// Threads that draw [default: the cores of this machine]
    #[arg(long, value_name = "THREADS", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
    /// Seed of all draws
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Exit with code 1 if a number differs from the published one
    #[arg(long)]
    pub fail_on_difference: bool,
}

fn classes(text: &str) -> Result<u32, String> {
    let known = text.parse().ok().filter(|k| grid::CLASSES.contains(k));
    known.ok_or_else(|| format!("give one of {:?}", grid::CLASSES))
}

impl Args {
    fn effort(&self) -> Effort {
        let effort = if self.quick {
            Effort::quick(self.seed)
        } else {
            Effort::full(self.seed)
        };
        Effort {
            data: self.data.clone(),
            data_sets: self.data_sets,
            grid: Choice {
                classes: self.classes,
                setup: self.setup.clone(),
                estimator: self.estimator.clone(),
                test: self.test.clone(),
                long: self.long,
            },
            ..effort
        }
    }
}

impl Which {
    /// The figures and tables of the paper.
    fn jobs(self, effort: &Effort) -> Vec<Job> {
        match self {
            Which::Tcal => tcal::jobs(),
            Which::Interval => {
                let jobs = interval::jobs().into_iter();
                jobs.chain(lengths::jobs()).collect()
            }
            Which::Kernel => kernel::jobs(effort),
            Which::Distance => distance::jobs(),
            Which::Tests => powers::jobs(),
            Which::All => {
                let each = Which::value_variants().iter().filter(|w| **w != Which::All);
                each.flat_map(|w| w.jobs(effort)).collect()
            }
        }
    }
}

/// Runs the experiments and prints their tables.
pub fn run(args: &Args) -> Exit {
    let effort = args.effort();
    let jobs = args.paper.jobs(&effort);
    let mut show = |table: &Table| {
        if !args.json {
            print(&format!("{}\n", table.text()));
        }
    };
    let drawn = draw(&jobs, &effort, threads(args), &mut show);
    let tables = match drawn {
        Ok(tables) => tables,
        Err(why) => return exit::fail(Exit::NoInput, why),
    };
    if args.json {
        let all: Vec<_> = tables.iter().map(Table::json).collect();
        print(&format!("{:#}\n", serde_json::Value::from(all)));
    }
    if let Err(why) = write(args, &tables) {
        return exit::fail(Exit::Unavailable, why);
    }
    let differing: usize = tables.iter().map(Table::far).sum();
    if !args.json {
        print(&format!(
            "{differing} numbers differ from those beside them by more than three errors\n"
        ));
    }
    if args.fail_on_difference && differing > 0 {
        Exit::Verdict
    } else {
        Exit::Ok
    }
}

fn threads(args: &Args) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
    args.threads.map_or_else(cores, usize::from)
}

/// Time between two updates of the progress.
const EVERY: Duration = Duration::from_millis(200);

/// Draws all jobs on several threads, and shows their tables in order as soon as the earlier ones
/// are ready.
fn draw(
    jobs: &[Job],
    effort: &Effort,
    threads: usize,
    show: &mut dyn FnMut(&Table),
) -> Result<Vec<Table>, String> {
    let meter = ProgressMeter::new("parts of all figures");
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|at| !jobs[*at].is_long);
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (send, next, order) = (send.clone(), &next, &order);
            scope.spawn(move || {
                while let Some(&at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // The receiver is gone only after an error.
                    if send.send((at, jobs[at].run(effort))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        let mut waiting: Vec<Option<Vec<Table>>> = jobs.iter().map(|_| None).collect();
        let (mut shown, mut all) = (0, Vec::new());
        loop {
            let (at, result) = match receive.recv_timeout(EVERY) {
                Ok(drawn) => drawn,
                Err(RecvTimeoutError::Timeout) => {
                    let done = jobs.iter().map(|job| job.progress.parts()).sum();
                    meter.set((0, 1), done, Progress::WHOLE * jobs.len() as u64);
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if result.is_err() {
                next.store(jobs.len(), Ordering::Relaxed);
            }
            waiting[at] = Some(result.map_err(|e| format!("{}: {e}", jobs[at].name))?);
            while let Some(tables) = waiting.get_mut(shown).and_then(Option::take) {
                meter.suspend(|| tables.iter().for_each(&mut *show));
                all.extend(tables);
                shown += 1;
            }
        }
        meter.finish();
        Ok(all)
    })
}

/// Writes the requested pictures and pages.
fn write(args: &Args, tables: &[Table]) -> Result<(), String> {
    let put = |path: &Path, text: &str| {
        std::fs::write(path, text).map_err(|e| format!("cannot write {} ({e})", path.display()))
    };
    if let Some(path) = &args.svg {
        put(path, &picture::svg(tables))?;
    }
    let Some(folder) = &args.pages else {
        return Ok(());
    };
    std::fs::create_dir_all(folder)
        .map_err(|e| format!("cannot make {} ({e})", folder.display()))?;
    for table in tables {
        let name = table.file_name();
        put(&folder.join(format!("{name}.txt")), &table.text())?;
        put(
            &folder.join(format!("{name}.svg")),
            &picture::svg(std::slice::from_ref(table)),
        )?;
    }
    Ok(())
}
