//! A new configuration for a program that runs: what may change live changes, the rest is named.
//!
//! The file is read and checked as a whole first; one that is not sound changes nothing, and its faults
//! are those that `trueline check` prints. Of a sound one the live keys ([`crate::config::live`]) go to the
//! engine's thread, which takes them between two polls; windows are tested by them from their next slide
//! on. Keys that need a restart are compared with the values with which the program started, so that one
//! that was changed back is not named.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::clock;
use super::engine::Plan;
use crate::config::Config;
use crate::config::live::Keys;
use crate::telemetry::control::Reloaded;
use crate::telemetry::{Published, log};

/// How long the engine may take to pick up its mail: longer than any poll, shorter than a client's patience.
const TAKEN_WITHIN: Duration = Duration::from_secs(5);

/// What the engine's thread takes over.
#[derive(Debug)]
pub struct Letter {
    /// Tests, alerts and caps.
    pub plan: Plan,
    /// Time between two snapshots.
    pub snapshot_every: Duration,
    /// Told when it is done.
    taken: SyncSender<()>,
}

impl Letter {
    /// Says that it is in force.
    pub fn taken(&self) {
        // Whoever waited may have given up.
        let _ = self.taken.try_send(());
    }
}

/// See the module.
#[derive(Debug)]
pub struct Reloader {
    file: PathBuf,
    /// The values at work; of keys that are not live those of the start.
    at_work: Mutex<Keys>,
    letters: Mutex<Sender<Letter>>,
    published: Arc<Published>,
}

impl Reloader {
    /// One for this file, whose values are at work.
    pub fn new(
        file: PathBuf,
        keys: Keys,
        published: Arc<Published>,
    ) -> (Reloader, Receiver<Letter>) {
        let (letters, inbox) = channel();
        let reloader = Reloader {
            file,
            at_work: Mutex::new(keys),
            letters: Mutex::new(letters),
            published,
        };
        (reloader, inbox)
    }

    /// Reads the file again and does what can be done. One at a time.
    pub fn reload(&self) -> Reloaded {
        let mut at_work = self.at_work.lock().unwrap_or_else(PoisonError::into_inner);
        let config = match Config::load(&self.file) {
            Ok(config) => config,
            Err(problems) => {
                let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
                for problem in &problems {
                    tracing::error!(%problem, "configuration not reloaded, the old one stays at work");
                }
                self.published.update(|facts| facts.config.loaded = false);
                return Reloaded {
                    problems,
                    ..Reloaded::default()
                };
            }
        };
        let new = config.keys();
        let (applied, needs_restart) = at_work.changes(&new);
        self.apply(config);
        at_work.take_live(&new);
        let hash = at_work.hash();
        tracing::info!(%hash, ?applied, ?needs_restart, "configuration reloaded");
        self.published.update(|facts| {
            facts.config.loaded = true;
            facts.config.loaded_ms = Some(clock::now_ms());
            facts.config.hash = hash;
        });
        Reloaded {
            problems: Vec::new(),
            applied,
            needs_restart,
        }
    }

    fn apply(&self, config: Config) {
        if let Err(error) = log::filter_by(&config.log.filter) {
            tracing::warn!(%error, "log level not changed");
        }
        self.published.series_max(config.http.series_max);
        let (taken, answer) = sync_channel(1);
        let letter = Letter {
            plan: config.plan,
            snapshot_every: Duration::from_millis(config.state.interval_ms.unsigned_abs()),
            taken,
        };
        let letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        if letters.send(letter).is_ok() && answer.recv_timeout(TAKEN_WITHIN).is_err() {
            tracing::warn!("the engine is busy and takes the new configuration later");
        }
    }
}
