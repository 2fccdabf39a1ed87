//! A new configuration for a program that runs: what may change live changes, the rest is named.
//!
//! The file is read and checked as a whole first; one that is not sound changes nothing, and its faults
//! are those that `trueline check` prints. Of a sound one the live keys ([`crate::config::live`]) go to the
//! engine's thread, sinks first, since one that cannot be made must change nothing either, which takes them between two polls; windows are tested by them from their next slide
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
use crate::notify::NotifyOptions;
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
    /// Who is told of alerts.
    pub notify: NotifyOptions,
    /// Told when it is done, or why nothing was.
    taken: SyncSender<Result<(), String>>,
}

impl Letter {
    /// Says that it is in force, or why nothing of it is.
    pub fn taken(&self, result: Result<(), String>) {
        // Whoever waited may have given up.
        let _ = self.taken.try_send(result);
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
                return self.refused(problems.iter().map(ToString::to_string).collect());
            }
        };
        let new = config.keys();
        let (applied, needs_restart) = at_work.changes(&new);
        if let Err(problem) = self.apply(config) {
            return self.refused(vec![problem]);
        }
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

    /// Nothing changes.
    fn refused(&self, problems: Vec<String>) -> Reloaded {
        for problem in &problems {
            tracing::error!(%problem, "configuration not reloaded, the old one stays at work");
        }
        self.published.update(|facts| facts.config.loaded = false);
        Reloaded {
            problems,
            ..Reloaded::default()
        }
    }

    fn apply(&self, config: Config) -> Result<(), String> {
        let (taken, answer) = sync_channel(1);
        let letter = Letter {
            plan: config.plan,
            snapshot_every: Duration::from_millis(config.state.interval_ms.unsigned_abs()),
            notify: config.notify,
            taken,
        };
        let letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        if letters.send(letter).is_ok() {
            match answer.recv_timeout(TAKEN_WITHIN) {
                Ok(result) => result?,
                Err(_) => {
                    tracing::warn!("the engine is busy and takes the new configuration later");
                }
            }
        }
        if let Err(error) = log::set_filter(&config.log.filter) {
            tracing::warn!(%error, "log level not changed");
        }
        self.published.set_series_max(config.http.series_max);
        Ok(())
    }
}
