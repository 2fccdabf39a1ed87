//! The application: bound first, then run.
//!
//! Shutdown has this order: `/ready` turns 503, reading stops, a last snapshot is written, its
//! offsets are committed, and the consumers leave the group. HTTP stays up for the linger time, so
//! that the last values are scraped, and then closes. If the engine takes longer than
//! `shutdown_within` to end, the process ends with an error instead. The disk then holds a whole
//! snapshot that is at most one interval old. The linger time, and at most ten seconds until open
//! connections have ended, come after that.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::sync::oneshot::error::RecvError;
use tokio::time::{sleep, timeout};

use super::clock;
use super::engine_loop::EngineLoop;
use super::error::AppError;
use super::events::{self, EventLogs, Intake, LogBrokers, read_up_to};
use super::ingest::consumer::SourceConsumer;
use super::outputs::alerts::AlertDispatcher;
use super::outputs::audit::{AuditLog, explanation};
use super::outputs::history::HistoryLog;
use super::outputs::publish;
use super::outputs::snapshots::SnapshotStore;
use super::outputs::state_dir::StateDir;
use super::pool::Pool;
use super::reload::{ReloadRequest, Reloader};
use super::restore::{STATE, restore};
use super::setup::{Setup, part};
use super::stop::Stop;
use super::timers::Timers;
use super::worker::spawn;
use crate::config::{Config, Input, SourceOptions, Verdicts};
use crate::http;
use crate::kafka::Brokers;
use crate::registry::Registry;
use crate::store::spill::SpillStore;
use crate::telemetry::{Limits, Published};

/// An application that holds its address and its state directory, and has loaded nothing yet.
pub struct App {
    setup: Setup,
    dir: StateDir,
    listener: TcpListener,
    published: Arc<Published>,
    reloader: Option<Arc<Reloader>>,
    reloads: Option<Receiver<ReloadRequest>>,
}

impl App {
    /// Takes the port and locks the state directory.
    pub fn bind(mut setup: Setup) -> Result<App, AppError> {
        let config = &setup.config;
        if let Some(fault) = config.unreadable_files().into_iter().next() {
            return Err(AppError::Config(fault));
        }
        let published = unready(config);
        let listener = listen(&setup.listen)?;
        let dir = StateDir::open(&config.state.directory)?;
        let address = address(&listener)?;
        let in_force = config.in_force();
        let hash = in_force.keys().hash();
        setup.config.listens_on(address);
        let reloader = setup.file.take().map(|file| {
            let published = Arc::clone(&published);
            let (reloader, requests) = Reloader::new(file, in_force, address, published);
            (Arc::new(reloader), requests)
        });
        let (reloader, reloads) = reloader.unzip();
        if let Some(reloader) = reloader.clone() {
            published.control.on_reload(move || reloader.reload());
        }
        published.update(|facts| {
            facts.config.loaded = true;
            facts.config.hash = hash;
            facts.config.loaded_ms = Some(clock::now_ms());
        });
        Ok(App {
            setup,
            dir,
            listener,
            published,
            reloader,
            reloads,
        })
    }

    /// The published state, readable before, during and after the run.
    pub fn published(&self) -> Arc<Published> {
        Arc::clone(&self.published)
    }

    /// The reloader of the configuration, if there is a file.
    pub fn reloader(&self) -> Option<Arc<Reloader>> {
        self.reloader.clone()
    }

    /// Address of the HTTP server.
    pub fn address(&self) -> Result<SocketAddr, AppError> {
        address(&self.listener)
    }

    /// The engine's loop without HTTP, for callers that take its steps themselves.
    pub fn engine_loop(setup: Setup) -> Result<EngineLoop, AppError> {
        let published = unready(&setup.config);
        let dir = StateDir::open(&setup.config.state.directory)?;
        load(setup, dir, None, published)
    }

    /// Runs until `stop` is set, and shuts down in order.
    pub async fn run(self, stop: Stop) -> Result<(), AppError> {
        let App {
            setup,
            dir,
            listener,
            published,
            reloads,
            ..
        } = self;
        let (linger, shutdown_within) = (setup.linger, setup.shutdown_within);
        let server = tokio::net::TcpListener::from_std(listener)
            .map_err(|error| AppError::Unavailable(format!("cannot serve http: {error}")))?;
        let closing = Stop::new();
        let close = closing.clone();
        let serving = tokio::spawn(http::serve(
            server,
            Arc::clone(&published),
            setup.config.http.access.clone(),
            async move { close.wait().await },
        ));
        let (done, mut ended) = oneshot::channel();
        let flag = stop.clone();
        let theirs = Arc::clone(&published);
        spawn("engine", move || {
            // HTTP answers while state is loaded.
            let engine = load(setup, dir, reloads, theirs);
            let _ = done.send(engine.and_then(|engine| engine.run(&flag)));
        })?;

        let end = match unasked(&stop, &mut ended).await {
            Some(end) if !stop.asked() => {
                published.drain();
                let error = match end {
                    Ok(Err(error)) => {
                        // So that the last scrape shows the reason.
                        sleep(linger).await;
                        error
                    }
                    _ => AppError::Internal(
                        "the engine ended by itself; its panic is printed above".to_owned(),
                    ),
                };
                closing.now();
                return Err(error);
            }
            end => end,
        };
        published.drain();
        let end = match end {
            Some(end) => Ok(end),
            None => timeout(shutdown_within, &mut ended).await,
        };
        match end {
            Ok(Ok(result)) => {
                sleep(linger).await;
                result?;
            }
            Ok(Err(_)) => {
                return Err(AppError::Internal(
                    "the engine panicked during shutdown".to_owned(),
                ));
            }
            Err(_) => {
                return Err(AppError::Unavailable(format!(
                    "shutdown took longer than {:?}; the last whole snapshot stays valid",
                    shutdown_within
                )));
            }
        }
        closing.now();
        // The timeouts of the server bound its shutdown.
        let _ = serving.await;
        Ok(())
    }
}

/// How the engine ended: with its result, or by a panic.
type End = Result<Result<(), AppError>, RecvError>;

/// Waits until the process is asked to stop, or the engine ends; returns the engine's end if that
/// came first.
async fn unasked(stop: &Stop, ended: &mut oneshot::Receiver<Result<(), AppError>>) -> Option<End> {
    tokio::select! {
        // An engine that is asked to end may have done so already.
        biased;
        () = stop.wait() => None,
        end = ended => Some(end),
    }
}

/// The published state in which nothing is ready.
fn unready(config: &Config) -> Arc<Published> {
    let published = Arc::new(Published::new(Limits {
        series_max: config.http.series_max,
        cell_streams_max: config.http.cell_streams_max,
        ..Limits::default()
    }));
    published.not_ready(STATE, "loading");
    if judges_all(config) {
        published.not_ready("state topic", "not read yet");
    } else {
        for source in &config.sources {
            published.not_ready(&part(source), "joining the group");
        }
    }
    published
}

/// Restores the state and creates the consumers. A broker that does not answer is no error: the
/// clients keep trying, and `/ready` shows the reason.
fn load(
    mut setup: Setup,
    dir: StateDir,
    reloads: Option<Receiver<ReloadRequest>>,
    published: Arc<Published>,
) -> Result<EngineLoop, AppError> {
    setup.start_over(&dir)?;
    let spill = SpillStore::new(&setup.config.state.directory);
    let spill = Arc::new(spill.map_err(|error| AppError::Unavailable(error.to_string()))?);
    let pool = Pool::start(setup.config.threads)?;
    let (topology, topics) = restore(&setup, &dir, &spill, &pool, &published)?;
    let logs = events::open(&setup.config, dir.path())?;
    for shard in topology.shards() {
        for (log, offset) in read_up_to(&logs, &topics, shard.partitions()) {
            log.restored(offset);
        }
    }
    let intake = Intake::new(&setup.config, &logs)?;
    published.control.on_events(move |post| intake.post(post));
    published.ready(STATE);
    publish::alert_rules(&published, &setup.config.plan);
    let config = setup.config;
    let judges_all = judges_all(&config);
    let registry = config.registry.map(|o| Registry::on(setup.registry, o));
    let registry = registry.transpose();
    let registry = registry.map_err(AppError::no_thread)?.map(Arc::new);
    let kafka = config.sources.first().map(|s| &s.kafka);
    let mut notify = config.notify;
    if topology.counts_only() {
        // The process that judges sends the notifications.
        notify.sinks.clear();
    } else {
        for model in &config.plan.models {
            if let Some(why) = model.no_alert() {
                tracing::warn!(model = model.name, "{why}");
            }
        }
    }
    // Before the alerts, because these are shown with their streams.
    let mut reports = Vec::new();
    publish::reports(&published, &topology, &mut reports);
    let alerts = AlertDispatcher::start(
        notify,
        &config.state.directory,
        &topology,
        kafka,
        &setup.sinks,
        &published,
    )?;
    let history = HistoryLog::start(dir.watch().clone(), &published)?;
    let directory = config.state.directory.clone();
    published
        .control
        .on_explain(move |wanted| explanation(&directory, wanted));
    let audit = AuditLog::start(&config.state.directory, config.state.records_max)?;
    let (sources, suspended) = match judges_all {
        true => (Vec::new(), vec!["state topic".to_owned()]),
        false => (config.sources, Vec::new()),
    };
    let engine = EngineLoop {
        audit,
        history,
        alerts: Some(alerts),
        topology,
        consumers: consumers(sources, registry.as_ref(), &setup.brokers, &logs, &pool)?,
        snapshots: SnapshotStore::start(dir, logs.clone(), setup.workers.as_ref())?,
        logs,
        registry,
        topics,
        snapshot_every: Duration::from_millis(config.state.interval_ms.unsigned_abs()),
        published,
        reports,
        timers: Timers::default(),
        unwritten: 0,
        disk_behind: false,
        start_unsaved: false,
        directory_lost: false,
        suspended,
        spill,
        reloads,
        beat: None,
    };
    // Before the first record, so that concerns count everything that is read from now on.
    engine.publish_facts();
    Ok(engine)
}

/// Whether this process judges what others count, and reads no source.
fn judges_all(config: &Config) -> bool {
    config.state.topic.is_some() && config.state.verdicts == Verdicts::All
}

fn address(listener: &TcpListener) -> Result<SocketAddr, AppError> {
    listener.local_addr().map_err(|error| {
        AppError::Unavailable(format!("the listening socket has no address: {error}"))
    })
}

/// Takes the port, so that a port in use is found before anything starts.
fn listen(address: &str) -> Result<TcpListener, AppError> {
    let listener = TcpListener::bind(address).map_err(|error| {
        AppError::Unavailable(format!(
            "cannot listen on {address}: {error}; choose another with [http] listen or --listen"
        ))
    })?;
    listener
        .set_nonblocking(true)
        .map_err(|error| AppError::Unavailable(format!("cannot listen on {address}: {error}")))?;
    Ok(listener)
}

fn consumers(
    sources: Vec<SourceOptions>,
    registry: Option<&Arc<Registry>>,
    brokers: &Arc<dyn Brokers>,
    logs: &EventLogs,
    pool: &Pool,
) -> Result<Vec<SourceConsumer>, AppError> {
    let posted: Arc<dyn Brokers> = Arc::new(LogBrokers(logs.clone()));
    let mut base = 0;
    let mut consumers = Vec::new();
    for source in sources {
        let topics = source.topic_count();
        let brokers = match source.input {
            Input::Kafka => brokers,
            Input::Http => &posted,
        };
        consumers.push(SourceConsumer::new(
            source,
            base,
            registry,
            Arc::clone(brokers),
            pool,
        )?);
        base += topics;
    }
    Ok(consumers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_engine_that_was_asked_to_end_has_not_ended_by_itself() {
        for _ in 0..50 {
            let (stop, (done, mut ended)) = (Stop::new(), oneshot::channel());
            stop.now();
            done.send(Ok(())).expect("somebody waits");
            assert!(unasked(&stop, &mut ended).await.is_none());
        }
        let (done, mut ended) = oneshot::channel();
        done.send(Ok(())).expect("somebody waits");
        assert!(unasked(&Stop::new(), &mut ended).await.is_some());
    }
}
