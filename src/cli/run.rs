//! `trueline run`: from a configuration file to a service.

use std::path::PathBuf;
use std::time::Duration;

use super::exit::{self, Exit};

const EXAMPLES: &str = "\
Examples:
  trueline run --config /etc/trueline/trueline.toml
  TRUELINE_CONFIG=trueline.toml TRUELINE_LISTEN=0.0.0.0:9464 trueline run

On SIGTERM or SIGINT it stops consuming, writes a last snapshot, commits its offsets, answers 503 on
/ready, and ends. Started again with the same state directory it goes on where the snapshot stands:
nothing is lost and nothing counted twice.";

/// Consume from Kafka and serve verdicts until stopped.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub struct Args {
    /// The configuration file; `trueline check` tells beforehand whether it is sound
    #[arg(short, long, env = "TRUELINE_CONFIG", value_name = "FILE")]
    pub config: PathBuf,
    /// Address to serve /metrics, /ready and the API on, in place of the configuration's
    #[arg(long, env = "TRUELINE_LISTEN", value_name = "HOST:PORT")]
    pub listen: Option<String>,
    /// How long to keep serving after the last snapshot, so that Prometheus sees the last values
    #[arg(long, env = "TRUELINE_LINGER", value_name = "TIME", default_value = "0s", value_parser = humantime::parse_duration)]
    pub linger: Duration,
    /// Give up on an orderly end after this long
    #[arg(long, env = "TRUELINE_SHUTDOWN_TIMEOUT", value_name = "TIME", default_value = "30s", value_parser = humantime::parse_duration)]
    pub shutdown_timeout: Duration,
}

/// Runs until a signal; a fault of the configuration or the surroundings ends it at once.
pub fn run(_args: &Args) -> Exit {
    eprintln!("trueline run is not wired yet");
    Exit::Unavailable
}
