//! The application, bound and then run.
//!
//! The end goes in this order: `/ready` turns 503, records are no longer read, a last snapshot goes to
//! disk, its offsets are committed, the consumers leave the group, HTTP goes on for the linger time so
//! that the last values are scraped, and closes. If all that takes longer than `shutdown_within`, the
//! process ends anyway, saying so: what is on disk is a whole snapshot, older by one interval at most.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::outputs::alerts::Alarms;

use super::restore::begin;

use super::fault::Fault;
use super::ingest::source::{Intake, wrong};

use super::clock;
use super::engine_loop::{Feed, Pace, Work, part};
use super::outputs::audit::Records;
use super::outputs::snapshots::{Keeper, StateDir};
use super::reload::Reloader;
use super::setup::{Setup, Source};
use super::stop::Stop;
use crate::config::Verdicts;
use crate::http;
use crate::kafka::{Consumer, DeadLetter, KafkaError};
use crate::registry::Registry;
use crate::store::spill::SpillStore;
use crate::telemetry::Published;

/// An application that holds all it needs and does nothing yet.
pub struct App {
    work: Work,
    listener: TcpListener,
    published: Arc<Published>,
    reloader: Option<Arc<Reloader>>,
    linger: Duration,
    shutdown_within: Duration,
}

impl App {
    /// Locks the state directory, restores its snapshot, takes the port, and makes the consumers.
    /// A broker that does not answer is no fault: the clients go on trying, and `/ready` says so.
    pub fn bind(setup: Setup) -> Result<App, Fault> {
        let published = Arc::new(Published::new(setup.limits));
        published.not_ready("state", "restoring");
        let judges_all = setup.moving.is_some() && setup.verdicts == Verdicts::All;
        match judges_all {
            true => published.not_ready("state topic", "not read yet"),
            false => setup.sources.iter().for_each(|source| {
                published.not_ready(&part(source), "joining the group");
            }),
        }
        let listener = listen(&setup.listen)?;
        let dir = StateDir::open(&setup.state)?;
        let spill = SpillStore::new(&setup.state);
        let spill = Arc::new(spill.map_err(|error| Fault::Unavailable(error.to_string()))?);
        let (engine, topics) = begin(&setup, &dir, &spill, &published)?;
        published.ready("state");
        let hash = setup.keys.hash();
        let (reloader, letters) = match setup.file {
            Some(file) => {
                let made = Reloader::new(file, setup.keys, Arc::clone(&published));
                (Some(Arc::new(made.0)), Some(made.1))
            }
            None => (None, None),
        };
        if let Some(reloader) = reloader.clone() {
            published.control.on_reload(move || reloader.reload());
        }
        published.update(|facts| {
            facts.config.loaded = true;
            facts.config.hash = hash;
            facts.config.loaded_ms = Some(clock::now_ms());
        });
        let registry = match setup.registry {
            None => None,
            Some(options) => Some(Arc::new(Registry::new(options).map_err(|error| {
                Fault::Unavailable(format!("cannot start a thread: {error}"))
            })?)),
        };
        let kafka = setup.sources.first().map(|s| &s.kafka);
        let moving = engine.may_move();
        let mut notify = setup.notify;
        if engine.counts_only() {
            // Who judges tells.
            notify.sinks.clear();
        }
        let alarms = Alarms::start(notify, (&setup.state, moving), kafka, &published)?;
        let records = Records::start(&setup.state, setup.records_max)?;
        let work = Work {
            records,
            alarms: Some(alarms),
            engine,
            feeds: match judges_all {
                true => Vec::new(),
                false => feeds(setup.sources, registry.as_ref())?,
            },
            registry,
            topics,
            keeper: Keeper::start(dir)?,
            snapshot_every: setup.snapshot_every,
            published: Arc::clone(&published),
            pace: Pace::default(),
            held_back: false,
            // Ready once nothing is said against it.
            barred: match judges_all {
                true => vec!["state topic".to_owned()],
                false => Vec::new(),
            },
            spill,
            letters,
        };
        Ok(App {
            work,
            listener,
            reloader,
            published,
            linger: setup.linger,
            shutdown_within: setup.shutdown_within,
        })
    }

    /// What the application shows, readable before, while and after it runs.
    pub fn published(&self) -> Arc<Published> {
        Arc::clone(&self.published)
    }

    /// Who reads the configuration again, where there is a file.
    pub fn reloader(&self) -> Option<Arc<Reloader>> {
        self.reloader.clone()
    }

    /// Address of the HTTP server.
    pub fn address(&self) -> Result<SocketAddr, Fault> {
        self.listener.local_addr().map_err(|error| {
            Fault::Unavailable(format!("the listening socket has no address: {error}"))
        })
    }

    /// The engine's work without HTTP around it, for those who take its turns themselves.
    pub fn into_work(self) -> Work {
        self.work
    }

    /// Runs until the flag goes up, and ends in order.
    pub async fn run(self, stop: Stop) -> Result<(), Fault> {
        let server = tokio::net::TcpListener::from_std(self.listener)
            .map_err(|error| Fault::Unavailable(format!("cannot serve http: {error}")))?;
        let closing = Stop::new();
        let close = closing.clone();
        let serving = tokio::spawn(http::serve(
            server,
            Arc::clone(&self.published),
            async move {
                close.wait().await;
            },
        ));
        let (done, mut ended) = oneshot::channel();
        let flag = stop.clone();
        let work = self.work;
        thread::Builder::new()
            .name("engine".to_owned())
            .spawn(move || {
                let _ = done.send(work.until(&flag));
            })
            .map_err(|error| Fault::Unavailable(format!("cannot start a thread: {error}")))?;

        tokio::select! {
            () = stop.wait() => {}
            end = &mut ended => {
                self.published.drain();
                let fault = match end {
                    Ok(Err(fault)) => {
                        // The last scrape tells why.
                        sleep(self.linger).await;
                        fault
                    }
                    _ => Fault::Broken("the engine ended by itself; its panic is printed above".to_owned()),
                };
                closing.now();
                return Err(fault);
            }
        }
        self.published.drain();
        match timeout(self.shutdown_within, &mut ended).await {
            Ok(Ok(result)) => {
                sleep(self.linger).await;
                result?;
            }
            Ok(Err(_)) => {
                return Err(Fault::Broken(
                    "the engine broke while it was stopping".to_owned(),
                ));
            }
            Err(_) => {
                return Err(Fault::Unavailable(format!(
                    "no orderly end within {:?}; the last whole snapshot stands",
                    self.shutdown_within
                )));
            }
        }
        closing.now();
        // The server's own end is bounded by its timeouts.
        let _ = serving.await;
        Ok(())
    }
}

/// Takes the port, so that one in use is found before anything starts.
fn listen(address: &str) -> Result<TcpListener, Fault> {
    let listener = TcpListener::bind(address).map_err(|error| {
        Fault::Unavailable(format!(
            "cannot listen on {address}: {error}; choose another with [http] listen or --listen"
        ))
    })?;
    listener
        .set_nonblocking(true)
        .map_err(|error| Fault::Unavailable(format!("cannot listen on {address}: {error}")))?;
    Ok(listener)
}

fn feeds(sources: Vec<Source>, registry: Option<&Arc<Registry>>) -> Result<Vec<Feed>, Fault> {
    let mut base = 0;
    let mut feeds = Vec::new();
    for source in sources {
        let mut intake = Intake::of(&source, base, registry)?;
        let wrong = |error: KafkaError| wrong(&source, &error);
        let consumer = Consumer::new(&source.kafka).map_err(wrong)?;
        intake.dead = DeadLetter::new(&source.kafka).map_err(wrong)?;
        base += source.kafka.topics.len() as u16;
        feeds.push(Feed::new(source, consumer, intake));
    }
    Ok(feeds)
}
