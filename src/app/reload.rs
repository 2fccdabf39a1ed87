//! Reloads the configuration of a running program: live keys take effect, the rest is reported.
//!
//! The whole file is read and checked first. An invalid file changes nothing, and the reload
//! reports the problems that `trueline check` prints. The same holds for live keys that contradict
//! the values in force of keys that need a restart. The live keys ([`crate::config::live`]) of a
//! valid file go to the engine's thread, which applies them between two polls: sinks first, because
//! a sink that cannot be created must leave everything unchanged. Windows are tested with the new
//! options from their next slide on. Keys that need a restart are compared with the values of the
//! start, so a key that was changed back is not reported. If the engine does not answer in time, it
//! may apply or refuse the new values later; until a reload is answered, the old values count as
//! those in force.

use parking_lot::Mutex;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use super::clock;
use crate::config::{Config, InForce, Problem};
use crate::monitor::Plan;
use crate::notify::NotifyOptions;
use crate::telemetry::control::Reloaded;
use crate::telemetry::{Published, log};

/// How long the engine may take to reply: longer than any poll, shorter than the timeout of a
/// client.
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
    in_force: Mutex<InForce>,
    /// Address of the HTTP server.
    listens_on: SocketAddr,
    requests: Mutex<Sender<ReloadRequest>>,
    /// How long to wait for a reply: [`REPLY_WITHIN`], except in tests.
    reply_within: Duration,
    published: Arc<Published>,
}

impl Reloader {
    /// A reloader of this file, whose values are in force, for a process whose server has this
    /// address.
    pub fn new(
        file: PathBuf,
        in_force: InForce,
        listens_on: SocketAddr,
        published: Arc<Published>,
    ) -> (Reloader, Receiver<ReloadRequest>) {
        let (requests, inbox) = channel();
        let reloader = Reloader {
            file,
            in_force: Mutex::new(in_force),
            listens_on,
            requests: Mutex::new(requests),
            reply_within: REPLY_WITHIN,
            published,
        };
        (reloader, inbox)
    }

    /// Reads the file again and applies its live keys. One call at a time.
    pub fn reload(&self) -> Reloaded {
        let mut in_force = self.in_force.lock();
        let new = match Config::load(&self.file) {
            Ok(new) => new,
            Err(problems) => {
                return self.refused(problems.iter().map(ToString::to_string).collect());
            }
        };
        let (applied, needs_restart) = in_force.keys().changes(&new.keys());
        let mut config = match in_force.with_live(&new) {
            Ok(config) => config,
            Err(problems) => return self.refused(problems.iter().map(half_applied).collect()),
        };
        config.listens_on(self.listens_on);
        let next = config.in_force();
        if let Err(answer) = self.apply(config) {
            return answer;
        }
        let hash = next.keys().hash();
        *in_force = next;
        tracing::info!(%hash, ?applied, "configuration reloaded");
        if !needs_restart.is_empty() {
            tracing::warn!(
                ?needs_restart,
                "these keys keep their old values until a restart"
            );
        }
        self.published.update(|facts| {
            facts.config.loaded = true;
            facts.config.loaded_ms = Some(clock::now_ms());
            facts.config.hash = hash;
            facts.config.needs_restart = needs_restart.len();
        });
        Reloaded {
            applied,
            needs_restart,
            ..Reloaded::default()
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

    /// Reports that the engine has not yet applied or refused the new values.
    fn unanswered(&self) -> Reloaded {
        let within = self.reply_within;
        tracing::error!(
            ?within,
            "the engine has not answered, and may take the new configuration later; reload again"
        );
        self.published.update(|facts| facts.config.loaded = false);
        Reloaded {
            unanswered: true,
            ..Reloaded::default()
        }
    }

    fn apply(&self, config: Config) -> Result<(), Reloaded> {
        let (reply, result) = sync_channel(1);
        let request = ReloadRequest {
            plan: config.plan,
            snapshot_every: Duration::from_millis(config.state.interval_ms.unsigned_abs()),
            notify: config.notify,
            reply,
        };
        let requests = self.requests.lock();
        let ended = || self.refused(vec!["the engine has ended".to_owned()]);
        requests.send(request).map_err(|_| ended())?;
        match result.recv_timeout(self.reply_within) {
            Ok(result) => result.map_err(|problem| self.refused(vec![problem]))?,
            Err(RecvTimeoutError::Timeout) => return Err(self.unanswered()),
            Err(RecvTimeoutError::Disconnected) => return Err(ended()),
        }
        if let Err(error) = log::set_filter(&config.log.filter) {
            tracing::warn!(%error, "log level not changed");
        }
        self.published.set_series_max(config.http.series_max);
        Ok(())
    }
}

/// The message for new live values that contradict the values in force, in a file that is valid by
/// itself.
fn half_applied(problem: &Problem) -> String {
    format!(
        "{}; the file has other values for keys that need a restart: restart, or {}",
        problem.what, problem.remedy
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};
    use tempfile::{NamedTempFile, TempPath};

    const CONFIG: &str = r#"
version = 1
[[source]]
input = "http"
topics = ["t"]
[source.fields]
score = "p"
[state]
interval = "30s"
[[model]]
name = "*"
windows = [{ last = 1000 }]
test = { min_events = 500 }
"#;

    const LISTENS_ON: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 80);

    fn file() -> TempPath {
        let file = NamedTempFile::with_prefix("trueline-reload-").expect("a file");
        std::fs::write(&file, CONFIG).expect("written");
        file.into_temp_path()
    }

    /// A file with the text above, and a reloader of it. Its engine answers each request and passes
    /// it on.
    fn reloader() -> (TempPath, Reloader, Receiver<ReloadRequest>) {
        let file = file();
        let in_force = Config::load(&file).expect("sound").in_force();
        let published = Arc::new(Published::default());
        let (reloader, inbox) = Reloader::new(file.to_path_buf(), in_force, LISTENS_ON, published);
        let (asked, answered) = channel();
        std::thread::spawn(move || {
            for request in inbox {
                request.reply(Ok(()));
                // The test may have ended.
                let _ = asked.send(request);
            }
        });
        (file, reloader, answered)
    }

    #[test]
    fn live_values_that_contradict_those_in_force_change_nothing() {
        let (file, reloader, asked) = reloader();
        let both = CONFIG
            .replace("last = 1000", "last = 10000")
            .replace("min_events = 500", "min_events = 5000");
        std::fs::write(&file, &both).expect("written");
        let refused = reloader.reload();
        assert_eq!(refused.problems.len(), 1, "{refused:?}");
        let problem = &refused.problems[0];
        assert!(problem.contains("the last 1000 events never"), "{problem}");
        assert!(problem.contains("restart"), "{problem}");
        assert!(refused.applied.is_empty() && asked.try_recv().is_err());
        // Values that fit the windows in force are applied; the new windows wait for a restart.
        let some = both.replace("min_events = 5000", "min_events = 900");
        std::fs::write(&file, &some).expect("written");
        for applied in [&["model.*.test.min_events"][..], &[]] {
            let answer = reloader.reload();
            assert_eq!(answer.applied, applied);
            assert_eq!(answer.needs_restart, ["model.*.windows"]);
            let plan = asked.recv().expect("an engine").plan;
            assert_eq!(plan.models[0].judge.min_events, 900);
        }
    }

    #[test]
    fn links_lead_to_the_address_in_force_unless_the_file_has_one() {
        let (file, reloader, asked) = reloader();
        let links = || {
            reloader.reload();
            let notify = asked.recv().expect("an engine").notify;
            [notify.external_url, notify.runbook_url]
        };
        let ours = ["http://10.0.0.1:80", "http://10.0.0.1:80/runbooks"];
        assert_eq!(links(), ours);
        let named = "[notify]\nexternal_url = \"https://t.example/\"\n";
        std::fs::write(&file, format!("{CONFIG}{named}")).expect("written");
        let theirs = ["https://t.example/", "https://t.example/runbooks"];
        assert_eq!(links(), theirs);
    }

    #[test]
    fn an_engine_that_does_not_answer_leaves_the_old_values_in_force_until_it_does() {
        let file = file();
        let in_force = Config::load(&file).expect("sound").in_force();
        let published = Arc::new(Published::default());
        let (before, theirs) = (in_force.keys().hash(), Arc::clone(&published));
        published.update(|facts| facts.config.hash = before.clone());
        let (mut reloader, inbox) = Reloader::new(file.to_path_buf(), in_force, LISTENS_ON, theirs);
        let now = || {
            let facts = published.facts();
            (facts.config.loaded, facts.config.hash.clone())
        };
        std::fs::write(&file, CONFIG.replace("30s", "7s")).expect("written");
        reloader.reply_within = Duration::from_millis(10);
        let late = Reloaded {
            unanswered: true,
            ..Reloaded::default()
        };
        assert_eq!(reloader.reload(), late);
        assert_eq!(now(), (false, before.clone()));
        // The engine answers both requests; only the second has somebody waiting.
        reloader.reply_within = REPLY_WITHIN;
        let engine = std::thread::spawn(move || {
            let asked: Vec<ReloadRequest> = inbox.iter().take(2).collect();
            asked.iter().for_each(|request| request.reply(Ok(())));
            asked.len()
        });
        assert_eq!(reloader.reload().applied, ["state.interval"]);
        let (loaded, hash) = now();
        assert!(loaded && hash != before);
        assert_eq!(engine.join().expect("no panic"), 2);
        // The engine has ended.
        let ended = reloader.reload();
        assert_eq!(ended.problems, ["the engine has ended"]);
        assert_eq!(now(), (false, hash));
    }
}
