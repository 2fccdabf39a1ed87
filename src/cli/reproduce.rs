//! `trueline reproduce`: runs the papers' experiments through the product's own code.

use std::path::PathBuf;

use super::exit::{self, Exit, print};
use crate::reproduce::{Effort, Paper, Table, picture};

const EXAMPLES: &str = "\
Examples:
  trueline reproduce all --quick
  trueline reproduce kernel --data published --svg kernel.svg
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
    /// All four
    All,
}

/// Run the papers' experiments and compare with the published numbers.
///
/// Draws the data sets of each paper's experiment, passes them through the functions that a window
/// uses, and prints every number with its Monte Carlo error and the published number in brackets. !
/// marks numbers that differ by more than three errors. Seeds are fixed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub struct Args {
    /// Which paper
    #[arg(value_enum, value_name = "PAPER")]
    pub paper: Which,
    /// Use few data sets: under two minutes for all papers
    #[arg(long)]
    pub quick: bool,
    /// Folder of the published model outputs (tcal, cifar10_multiclass), for the papers' tables of
    /// networks
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// Data sets per point [default: about as many as the papers]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub data_sets: Option<u32>,
    /// Print one JSON array instead of the tables
    #[arg(long)]
    pub json: bool,
    /// Also write a picture of all tables
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Seed of all draws
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Exit with code 1 if a number differs from the published one
    #[arg(long)]
    pub fail_on_difference: bool,
}

/// Runs the experiments and prints their tables.
pub fn run(args: &Args) -> Exit {
    let mut effort = if args.quick {
        Effort::quick(args.seed)
    } else {
        Effort::full(args.seed)
    };
    effort.data.clone_from(&args.data);
    effort.data_sets = args.data_sets.unwrap_or(effort.data_sets);
    let one = match args.paper {
        Which::Tcal => Some(Paper::TCal),
        Which::Interval => Some(Paper::Interval),
        Which::Kernel => Some(Paper::Kernel),
        Which::Distance => Some(Paper::Distance),
        Which::All => None,
    };
    let mut tables: Vec<Table> = Vec::new();
    for paper in Paper::ALL
        .into_iter()
        .filter(|p| one.is_none_or(|one| one == *p))
    {
        match paper.run(&effort) {
            Ok(more) => {
                if !args.json {
                    more.iter().for_each(|t| print(&format!("{}\n", t.text())));
                }
                tables.extend(more);
            }
            Err(message) => {
                eprintln!("trueline reproduce: {message}");
                return Exit::NoInput;
            }
        }
    }
    if args.json {
        let all: Vec<_> = tables.iter().map(Table::json).collect();
        print(&format!("{:#}\n", serde_json::Value::from(all)));
    }
    if let Some(path) = &args.svg
        && let Err(e) = std::fs::write(path, picture::svg(&tables))
    {
        eprintln!("trueline reproduce: cannot write {} ({e})", path.display());
        return Exit::Unavailable;
    }
    let differing: usize = tables.iter().map(Table::far).sum();
    if !args.json {
        print(&format!(
            "{differing} numbers differ from the published ones by more than three errors\n"
        ));
    }
    if args.fail_on_difference && differing > 0 {
        Exit::Verdict
    } else {
        Exit::Ok
    }
}
