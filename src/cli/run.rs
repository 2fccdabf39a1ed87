//! `trueline run`: from a configuration file to a service.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::exit::{self, Exit};
use crate::app::{App, AppError, Reloader, Setup, Stop};
use crate::config::Config;
use crate::telemetry;

const EXAMPLES: &str = "\
Examples:
  trueline run --config /etc/trueline/trueline.toml
  TRUELINE_CONFIG=trueline.toml TRUELINE_LISTEN=0.0.0.0:9464 trueline run

On SIGTERM or SIGINT it stops consuming, writes a last snapshot, commits its offsets, answers 503 on
/ready, and ends. Started again with the same state directory it goes on where the snapshot stands:
nothing is lost and nothing counted twice.

On SIGHUP or POST /-/reload it reads the configuration again: what may change while it runs changes,
what needs a restart is named, and a file that is not sound changes nothing.";

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
pub fn run(args: &Args) -> Exit {
    let config = match Config::load(&args.config) {
        Ok(config) => config,
        Err(problems) => {
            for problem in problems {
                eprintln!("{problem}");
            }
            return Exit::Config;
        }
    };
    match start(args, config) {
        Ok(()) => Exit::Ok,
        Err(fault) => Exit::of(&fault),
    }
}

/// Reads the configuration again at each SIGHUP; what became of it stands in the log.
#[cfg(unix)]
async fn reload_on_hangup(reloader: Arc<Reloader>) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut hangup) = signal(SignalKind::hangup()) else {
        tracing::warn!("SIGHUP cannot be handled; use POST /-/reload");
        return;
    };
    while hangup.recv().await.is_some() {
        let reloader = Arc::clone(&reloader);
        // A panic there is printed; the old configuration goes on.
        let _ = tokio::task::spawn_blocking(move || reloader.reload()).await;
    }
}

#[cfg(not(unix))]
async fn reload_on_hangup(_: Arc<Reloader>) {}

fn start(args: &Args, config: Config) -> Result<(), AppError> {
    telemetry::log::start(&config.log).map_err(AppError::Config)?;
    let mut setup = Setup::of(config);
    setup.file = Some(args.config.clone());
    setup.linger = args.linger;
    setup.shutdown_within = args.shutdown_timeout;
    if let Some(listen) = &args.listen {
        setup.listen.clone_from(listen);
    }
    let app = App::bind(setup)?;
    tracing::info!(address = %app.address()?, "bound; metrics on /metrics");
    // HTTP answers from published values and never blocks: one thread is enough for it and the signals.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("http")
        .enable_all()
        .build()
        .map_err(|error| AppError::Unavailable(format!("cannot start the runtime: {error}")))?;
    let stop = Stop::new();
    runtime.spawn(stop.clone().on_signals());
    if let Some(reloader) = app.reloader() {
        runtime.spawn(reload_on_hangup(reloader));
    }
    let ended = runtime.block_on(app.run(stop));
    // After the hard timeout the engine's thread may still hang on a disk; it is left behind.
    runtime.shutdown_background();
    tracing::info!("stopped");
    ended
}
