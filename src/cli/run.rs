//! `trueline run`: runs the service from a configuration file.

use std::sync::Arc;
use std::time::Duration;

use super::config_file::ConfigFile;
use super::exit::{self, Exit};
use crate::app::{App, AppError, Reloader, Setup, Stop};
use crate::config::{Config, start_at};
use crate::kafka::StartAt;
use crate::telemetry;

const EXAMPLES: &str = "\
Examples:
  trueline run --config /etc/trueline/trueline.toml
  TRUELINE_CONFIG=trueline.toml TRUELINE_LISTEN=0.0.0.0:9464 trueline run
  trueline run --config trueline.toml --from 24h      start over with the records of the last day

On SIGTERM or SIGINT the process stops consuming, writes a last snapshot, commits its offsets,
responds with 503 on /ready, and exits. When it starts again with the same state directory it
continues from the snapshot: nothing is lost and nothing is counted twice.

On SIGHUP or POST /-/reload it reads the configuration again. It applies the keys that can change
at runtime and logs those that need a restart. An invalid file changes nothing.";

/// Consume from Kafka and serve verdicts until stopped.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub struct Args {
    #[command(flatten)]
    pub file: ConfigFile,
    /// Address of /metrics, /ready and the API, instead of the configured one
    #[arg(long, env = "TRUELINE_LISTEN", value_name = "HOST:PORT")]
    pub listen: Option<String>,
    /// Set the state aside at this start and read the sources again from this point: earliest,
    /// latest, a duration back (24h), or a time (2026-11-21T14:30:00Z)
    #[arg(long, value_name = "START", value_parser = start_at)]
    pub from: Option<StartAt>,
    /// How long to keep serving after the last snapshot, so that Prometheus scrapes the last values
    #[arg(long, env = "TRUELINE_LINGER", value_name = "TIME", default_value = "0s", value_parser = humantime::parse_duration)]
    pub linger: Duration,
    /// How long the last snapshot and the commit of its offsets may take at the end. The time of
    /// --linger and up to 10 s for open connections come after that
    #[arg(long, env = "TRUELINE_SHUTDOWN_TIMEOUT", value_name = "TIME", default_value = "30s", value_parser = humantime::parse_duration)]
    pub shutdown_timeout: Duration,
}

/// Runs until a signal, or until a fault of the configuration or the environment.
pub fn run(args: &Args) -> Exit {
    let started = exit::load(&args.file.config).and_then(|config| {
        let ended = start(args, config);
        telemetry::log::finish();
        ended.map_err(|fault| Exit::of(&fault))
    });
    started.err().unwrap_or(Exit::Ok)
}

/// Ignores the signal of a limit on the size of files (`ulimit -f`), which would silently end the
/// process: writes then fail, and `/ready` says so.
#[cfg(unix)]
fn outlive_file_limits() {
    use tokio::signal::unix::{SignalKind, signal};
    // The handler stays installed after its stream is dropped.
    drop(signal(SignalKind::from_raw(SIGXFSZ)));
}

/// The number of the signal on all systems but MIPS.
#[cfg(unix)]
const SIGXFSZ: i32 = 25;

#[cfg(not(unix))]
fn outlive_file_limits() {}

/// Reloads the configuration at each SIGHUP; the log has the result.
#[cfg(unix)]
async fn reload_on_hangup(reloader: Arc<Reloader>) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut hangup) = signal(SignalKind::hangup()) else {
        tracing::warn!("SIGHUP cannot be handled; use POST /-/reload");
        return;
    };
    while hangup.recv().await.is_some() {
        let reloader = Arc::clone(&reloader);
        // A panic is printed, and the old configuration stays in use.
        let _ = tokio::task::spawn_blocking(move || reloader.reload()).await;
    }
}

#[cfg(not(unix))]
async fn reload_on_hangup(_: Arc<Reloader>) {}

fn start(args: &Args, config: Config) -> Result<(), AppError> {
    telemetry::log::start(&config.log).map_err(AppError::Config)?;
    let mut setup = Setup::of(config);
    setup.file = Some(args.file.config.clone());
    setup.linger = args.linger;
    setup.shutdown_within = args.shutdown_timeout;
    if let Some(listen) = &args.listen {
        setup.listen.clone_from(listen);
    }
    setup.start_over = args.from;
    // One thread is enough for requests and signals: slow or blocking work has its own threads.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("http")
        .enable_all()
        .build()
        .map_err(|error| AppError::Unavailable(format!("cannot start the runtime: {error}")))?;
    runtime.block_on(async { outlive_file_limits() });
    let app = App::bind(setup)?;
    tracing::info!("listens on {}", app.address()?);
    let stop = Stop::new();
    runtime.spawn(stop.clone().on_signals());
    if let Some(reloader) = app.reloader() {
        runtime.spawn(reload_on_hangup(reloader));
    }
    let ended = runtime.block_on(app.run(stop));
    // After the timeout the engine thread may still hang on a disk; it is abandoned.
    runtime.shutdown_background();
    tracing::info!("stopped");
    ended
}
