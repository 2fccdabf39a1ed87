//! Reloads the configuration of a running program: live keys take effect, the rest is reported.
//!
//! The whole file is read and checked first. An invalid file changes nothing and reports the problems
//! that `trueline check` prints. The live keys ([`crate::config::live`]) of a valid file go to the engine's
//! thread, which applies them between two polls: sinks first, because a sink that cannot be created must
//! leave everything unchanged. Windows are tested with the new options from their next slide on. Keys
//! that need a restart are compared with the values of the start, so a key that was changed back is not
//! reported.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::clock;
use crate::config::Config;
use crate::config::live::Keys;
use crate::monitor::Plan;
use crate::notify::NotifyOptions;
use crate::telemetry::control::Reloaded;
use crate::telemetry::{Published, log};

/// How long the engine may take to reply: longer than any poll, shorter than the timeout of a client.
const REPLY_WITHIN: Duration = Duration::from_secs(5);

/// New live options for the engine's thread.
#[derive(Debug)]
pub struct ReloadRequest {
    /// Tests, alerts and caps.
    pub plan: Plan,
    /// Time between two snapshots.
    pub snapshot_every: Duration,
    /// Sinks and texts of notifications.
    pub notify: NotifyOptions,
    /// Receives the result.
    reply: SyncSender<Result<(), String>>,
}

impl ReloadRequest {
    /// Reports that the options are in force, or why none of them is.
    pub fn reply(&self, result: Result<(), String>) {
        // The caller may have stopped waiting.
        let _ = self.reply.try_send(result);
    }
}

/// Reloads the configuration file. See the module.
#[derive(Debug)]
pub struct Reloader {
    file: PathBuf,
    /// The values in force; for keys that are not live, those of the start.
    in_force: Mutex<Keys>,
    requests: Mutex<Sender<ReloadRequest>>,
    published: Arc<Published>,
}

impl Reloader {
    /// A reloader of this file, whose values are in force.
    pub fn new(
        file: PathBuf,
        keys: Keys,
        published: Arc<Published>,
    ) -> (Reloader, Receiver<ReloadRequest>) {
        let (requests, inbox) = channel();
        let reloader = Reloader {
            file,
            in_force: Mutex::new(keys),
            requests: Mutex::new(requests),
            published,
        };
        (reloader, inbox)
    }

    /// Reads the file again and applies its live keys. One call at a time.
    pub fn reload(&self) -> Reloaded {
        let mut in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        let config = match Config::load(&self.file) {
            Ok(config) => config,
            Err(problems) => {
                return self.refused(problems.iter().map(ToString::to_string).collect());
            }
        };
        let new = config.keys();
        let (applied, needs_restart) = in_force.changes(&new);
        if let Err(problem) = self.apply(config) {
            return self.refused(vec![problem]);
        }
        in_force.take_live(&new);
        let hash = in_force.hash();
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

    /// Reports the problems and changes nothing.
    fn refused(&self, problems: Vec<String>) -> Reloaded {
        for problem in &problems {
            tracing::error!(%problem, "configuration not reloaded, the old one stays in force");
        }
        self.published.update(|facts| facts.config.loaded = false);
        Reloaded {
            problems,
            ..Reloaded::default()
        }
    }

    fn apply(&self, config: Config) -> Result<(), String> {
        let (reply, result) = sync_channel(1);
        let request = ReloadRequest {
            plan: config.plan,
            snapshot_every: Duration::from_millis(config.state.interval_ms.unsigned_abs()),
            notify: config.notify,
            reply,
        };
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if requests.send(request).is_ok() {
            match result.recv_timeout(REPLY_WITHIN) {
                Ok(result) => result?,
                Err(_) => {
                    tracing::warn!("the engine is busy and applies the new configuration later");
                }
            }
        }
        if let Err(error) = log::filter_by(&config.log.filter) {
            tracing::warn!(%error, "log level not changed");
        }
        self.published.series_max(config.http.series_max);
        Ok(())
    }
}
