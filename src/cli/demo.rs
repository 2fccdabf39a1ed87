//! `trueline demo`: everything in one process, on models whose truth is known.

use std::time::Duration;

use super::exit::{self, Exit};

const EXAMPLES: &str = "\
Examples:
  trueline demo                       a live table, until Ctrl-C
  trueline demo --for 60s             ends with a summary; exit code 0 if every verdict was right
  trueline demo --show-config         print the configuration that the demo runs on, and end
  curl -s localhost:9464/metrics      while it runs, from another terminal";

/// Show everything at work on this machine.
///
/// Starts an embedded Kafka-protocol broker, producers for models whose truth is known (calibrated,
/// over-confident, good and then drifting, rare events at twice the predicted rate, multi-class by top
/// label), and then exactly what `trueline run` starts, on a configuration that `--show-config` prints.
/// The table shows each model's truth beside trueline's verdict.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub struct Args {
    /// End after this long, with a summary and an exit code (at least 45s: the drift comes at 20s)
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration)]
    pub length: Option<Duration>,
    /// Port on 127.0.0.1 for /metrics and the API; 0 takes any free one
    #[arg(long, env = "TRUELINE_DEMO_PORT", default_value_t = 9464)]
    pub port: u16,
    /// Events a second of each model
    #[arg(long, default_value_t = 3000, value_parser = clap::value_parser!(u32).range(500..=20_000))]
    pub rate: u32,
    /// Seed of the models' scores and outcomes; the same seed makes the same events
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print the configuration that the demo runs on, and end
    #[arg(long)]
    pub show_config: bool,
}

/// Runs the demo to its end.
pub fn run(_args: &Args) -> Exit {
    eprintln!("trueline demo is not wired yet");
    Exit::Unavailable
}
