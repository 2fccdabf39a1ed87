//! `trueline replay`: files of events through the same engine, in event time.

use std::path::PathBuf;

use super::exit::{self, Exit};

const EXAMPLES: &str = "\
Examples:
  trueline replay events.jsonl.gz
  trueline replay --config trueline.toml --json 2026-11-*.csv > report.json

Without --config the fields are model, score, outcome and time (RFC 3339 or milliseconds), in JSON
lines or under the same names in a CSV header, and every model gets the default windows and options.";

/// Put files of events through the same engine, in event time.
///
/// Prints every change of a verdict as it comes, and at the end the report of every window. What it
/// says is what `run` would have said had the events come from Kafka: the engine has no clock but the
/// events' own.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub struct Args {
    /// Files in JSON lines or CSV, also .gz and .zst, read in the order given
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Configuration whose first source gives the fields, and whose models give windows and options
    #[arg(short, long, env = "TRUELINE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print the final reports as one JSON array in place of the table
    #[arg(long)]
    pub json: bool,
}

/// Replays the files.
pub fn run(_args: &Args) -> Exit {
    eprintln!("trueline replay is not wired yet");
    Exit::Unavailable
}
