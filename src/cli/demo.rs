//! `trueline demo`: runs everything in one process, on models whose truth is known.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::exit::{self, Exit};
use crate::demo::{self, Options, config};

const EXAMPLES: &str = "\
Examples:
  trueline demo                       a live table, until Ctrl-C
  trueline demo --for 60s             exits with a summary; code 1 if a verdict is wrong at the end
  trueline demo --show-config         print the configuration of the demo and exit
  curl -s localhost:9464/metrics      while it runs, from another terminal";

/// Run everything on this machine.
///
/// Starts an embedded Kafka broker, producers for models whose truth is known (calibrated,
/// over-confident, drifting, rare events at twice the predicted rate, multi-class by top label),
/// and then exactly what `trueline run` starts, with the configuration that `--show-config` prints.
/// The table shows the truth of each model beside the verdict.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub struct Args {
    /// Exit after this long, with a summary and an exit code (at least 45s, because the drift
    /// starts at 20s)
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration)]
    pub length: Option<Duration>,
    /// Address for /metrics, the API and the pages; 0.0.0.0 in a container
    #[arg(
        long,
        env = "TRUELINE_DEMO_HOST",
        value_name = "IP",
        default_value = "127.0.0.1"
    )]
    pub host: IpAddr,
    /// Port for /metrics, the API and the pages; 0 picks a free one
    #[arg(long, env = "TRUELINE_DEMO_PORT", default_value_t = 9464)]
    pub port: u16,
    /// Events per second of each model
    #[arg(long, default_value_t = 3000, value_parser = clap::value_parser!(u32).range(500..=20_000))]
    pub rate: u32,
    /// Seed of the scores and outcomes; the same seed gives the same events
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print the configuration of the demo and exit
    #[arg(long)]
    pub show_config: bool,
}

/// Time until the demo can judge every model: the start of the drift, and two short windows after
/// it.
const LEAST: Duration = Duration::from_secs(45);

/// Runs the demo to its end.
pub fn run(args: &Args) -> Exit {
    let listen = SocketAddr::new(args.host, args.port);
    if args.show_config {
        let state = std::path::Path::new("trueline-demo-state");
        exit::print(&config::text("localhost:9092", listen, state));
        return Exit::Ok;
    }
    if args.length.is_some_and(|length| length < LEAST) {
        let why = "--for must be at least 45s: one model drifts after 20 s, and its verdict may take two \
                   windows of 10 s";
        return exit::fail(Exit::Usage, why);
    }
    let options = Options {
        length: args.length,
        listen,
        rate: args.rate,
        seed: args.seed,
    };
    match demo::run(&options) {
        Ok(true) => Exit::Ok,
        Ok(false) => Exit::Verdict,
        Err(fault) => Exit::of(&fault),
    }
}
