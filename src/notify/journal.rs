//! The journal of alerts: one file of JSON lines beside the snapshots.
//!
//! It records which notifications were sent to which sinks, and the silences and acknowledgements
//! that people entered.
//!
//! ```text
//! {"state":{…}}                                             the whole state, when the file was compacted
//! {"queued":{"notification":{…},"sinks":["oncall","topic"]}}       synced before anything is sent
//! {"done":{"sink":"oncall","key":"…","delivered":true}}
//! {"deployed":{…}}
//! {"silenced":{…}}  {"lifted":{"id":7}}  {"acknowledged":{"fingerprint":"…","ack":{…}}}
//! {"acquired":{"notification":{…},"sinks":["oncall"],"ack":null}}
//! {"released":{"fingerprint":"…"}}  {"closed":{"fingerprint":"…"}}
//! ```
//!
//! The last two lines concern alerts that move between processes with their partitions. An acquired
//! alert was notified by another process; this process refreshes and resolves it. A released alert
//! is left alone, but is recognised if it returns unchanged. A closed alert was resolved by another
//! process.
//!
//! A line is an [`Entry`]; the state is the result of applying all lines in order. A torn last line
//! was not synced, so nothing was sent on its strength, and it is dropped. The file is compacted
//! (written aside and renamed) at each start and every [`COMPACT_AFTER`] entries. A failed write
//! costs a log line and a count; the state in memory stays complete, and the next compaction writes
//! all of it.
//!
//! `done` is not synced. If a power failure loses it, one notification is sent twice with the same
//! `key`.

use super::notification::{Notification, Status};
use crate::alert::{Ack, Deployment, Silence, Silences};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Name of the file.
pub const JOURNAL: &str = "alerts.journal";

/// Entries between two compactions. An entry has about 1 kB, so the file stays within some
/// megabytes.
pub const COMPACT_AFTER: usize = 5_000;

/// Most notifications of resolved alerts to keep; they are recognised after a crash.
pub const RESOLVED_MAX: usize = 1_000;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// The whole state.
    State(State),
    /// A notification is queued for these sinks.
    Queued {
        /// The notification.
        notification: Box<Notification>,
        /// Names of the sinks.
        sinks: Vec<String>,
    },
    /// A sink has finished with a notification.
    Done {
        /// Name of the sink.
        sink: String,
        /// Key of the notification.
        key: String,
        /// Whether it was delivered; otherwise it was given up.
        delivered: bool,
    },
    /// A silence starts.
    Silenced(Silence),
    /// A silence is lifted.
    Lifted {
        /// Its number.
        id: u64,
    },
    /// Someone acknowledges an alert.
    Acknowledged {
        /// The alert.
        fingerprint: String,
        /// The acknowledgement.
        ack: Ack,
    },
    /// Someone says that a model was replaced or fixed.
    Deployed(Deployment),
    /// This process acquires an alert that another process has notified.
    Acquired(Box<TransferredAlert>),
    /// Another process owns the alert now.
    Released {
        /// The alert.
        fingerprint: String,
    },
    /// Another process has resolved the alert.
    Closed {
        /// The alert.
        fingerprint: String,
    },
}

/// A firing alert that moves from one process to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TransferredAlert {
    /// The last notification.
    pub notification: Notification,
    /// Sinks that were notified that it fires.
    pub sinks: BTreeSet<String>,
    /// Its acknowledgement, if any.
    pub ack: Option<Ack>,
}

/// The state that the journal records.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Silences and acknowledgements.
    pub book: Silences,
    /// Undelivered notifications, oldest first, each with the sinks that still need it.
    pub undelivered: VecDeque<(Notification, Vec<String>)>,
    /// The last notification of each alert.
    pub last: BTreeMap<String, Notification>,
    /// Sinks that were notified that an alert fires, by fingerprint. Only they get the resolution.
    pub notified: BTreeMap<String, BTreeSet<String>>,
    /// Firing alerts that another process owns now.
    #[serde(default)]
    pub released: BTreeSet<String>,
}

impl State {
    /// Applies one entry. An entry about something unknown changes nothing.
    pub fn apply(&mut self, entry: &Entry) {
        match entry {
            Entry::State(state) => self.clone_from(state),
            Entry::Queued {
                notification,
                sinks,
            } => self.queued(notification, sinks),
            Entry::Done { sink, key, .. } => {
                let mut of_sink = self.undelivered.iter_mut();
                if let Some((_, sinks)) = of_sink.find(|(n, s)| n.key == *key && s.contains(sink)) {
                    sinks.retain(|s| s != sink);
                }
                self.undelivered.retain(|(_, sinks)| !sinks.is_empty());
            }
            Entry::Silenced(silence) => self.book.enter(silence.clone()),
            Entry::Lifted { id } => {
                self.book.lift(*id);
            }
            Entry::Acknowledged { fingerprint, ack } => {
                self.book.acknowledge(fingerprint.clone(), ack.clone());
            }
            Entry::Deployed(deployment) => self.book.deploy(deployment.clone()),
            Entry::Acquired(alert) => {
                let fingerprint = alert.notification.fingerprint.clone();
                self.released.remove(&fingerprint);
                if let Some(ack) = &alert.ack {
                    self.book.acknowledge(fingerprint.clone(), ack.clone());
                }
                self.notified
                    .insert(fingerprint.clone(), alert.sinks.clone());
                self.last.insert(fingerprint, alert.notification.clone());
            }
            Entry::Released { fingerprint } => {
                if self.notified.contains_key(fingerprint) {
                    self.released.insert(fingerprint.clone());
                }
            }
            Entry::Closed { fingerprint } => {
                self.released.remove(fingerprint);
                self.notified.remove(fingerprint);
                self.last.remove(fingerprint);
                self.book.ended(fingerprint);
            }
        }
    }

    fn queued(&mut self, notification: &Notification, sinks: &[String]) {
        let fingerprint = notification.fingerprint.clone();
        self.released.remove(&fingerprint);
        if notification.status == Status::Resolved {
            self.book.ended(&fingerprint);
            self.notified.remove(&fingerprint);
        } else {
            let notified = self.notified.entry(fingerprint.clone()).or_default();
            notified.extend(sinks.iter().cloned());
        }
        self.last.insert(fingerprint, notification.clone());
        if !sinks.is_empty() {
            self.undelivered
                .push_back((notification.clone(), sinks.to_vec()));
        }
    }

    /// Whether the sink was notified that the alert fires.
    pub fn was_notified(&self, fingerprint: &str, sink: &str) -> bool {
        self.notified
            .get(fingerprint)
            .is_some_and(|s| s.contains(sink))
    }

    /// Notified firing alerts that this process owns.
    pub fn firing(&self) -> impl Iterator<Item = &Notification> {
        let firing = self.last.values().filter(|n| n.status == Status::Firing);
        firing.filter(|n| !self.released.contains(&n.fingerprint))
    }

    /// Removes the oldest resolved alerts above [`RESOLVED_MAX`].
    fn prune(&mut self) {
        let resolved = self.last.values().filter(|n| n.status == Status::Resolved);
        let mut times: Vec<i64> = resolved.map(|n| n.at_ms).collect();
        times.sort_unstable();
        let first = times.len().checked_sub(RESOLVED_MAX);
        if let Some(&oldest) = first.and_then(|k| times.get(k)) {
            let keep = |n: &Notification| n.status == Status::Firing || n.at_ms >= oldest;
            self.last.retain(|_, n| keep(n));
        }
    }
}

/// The file and the state that it records.
#[derive(Debug)]
pub struct AlertJournal {
    path: PathBuf,
    file: Option<File>,
    state: State,
    /// Entries since the last compaction.
    entries: usize,
    write_errors: Arc<AtomicU64>,
}

impl AlertJournal {
    /// Opens or creates the journal of a directory. Also returns the number of unreadable lines.
    pub fn open(directory: &Path) -> io::Result<(AlertJournal, usize)> {
        let path = directory.join(JOURNAL);
        let (state, unreadable) = match fs::read(&path) {
            Ok(bytes) => read(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (State::default(), 0),
            Err(error) => return Err(error),
        };
        let mut journal = AlertJournal {
            path,
            file: None,
            state,
            entries: 0,
            write_errors: Arc::default(),
        };
        journal.compact()?;
        Ok((journal, unreadable))
    }

    /// The current state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The counter of failed writes. It can be read without locking the journal.
    pub fn write_errors(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.write_errors)
    }

    /// Applies an entry and writes it. With `sync` it is on disk when this returns. On an error the
    /// entry is applied but not written.
    pub fn append(&mut self, entry: &Entry, sync: bool) -> io::Result<()> {
        self.state.apply(entry);
        let written = self.write(entry, sync);
        if let Err(error) = &written {
            self.write_errors.fetch_add(1, Ordering::Relaxed);
            // The file may end in half a line; the next entry compacts it.
            self.file = None;
            crate::warn_limited!(%error, "alerts journal not written; a restart may send notifications again");
        }
        written
    }

    fn write(&mut self, entry: &Entry, sync: bool) -> io::Result<()> {
        self.entries += 1;
        if self.entries > COMPACT_AFTER {
            self.file = None;
        }
        let Some(file) = &mut self.file else {
            return self.compact();
        };
        let mut line = serde_json::to_string(entry)?;
        line.push('\n');
        file.write_all(line.as_bytes())?;
        if sync { file.sync_data() } else { Ok(()) }
    }

    /// Writes the state as one line to a new file and renames it into place.
    fn compact(&mut self) -> io::Result<()> {
        self.state.prune();
        let aside = self.path.with_extension("part");
        let mut file = File::create(&aside)?;
        let mut line = serde_json::to_string(&Entry::State(self.state.clone()))?;
        line.push('\n');
        file.write_all(line.as_bytes())?;
        file.sync_all()?;
        fs::rename(&aside, &self.path)?;
        // Until the directory is synced, a power failure may restore the previous file.
        if let Some(directory) = self.path.parent() {
            File::open(directory)?.sync_all()?;
        }
        self.file = Some(OpenOptions::new().append(true).open(&self.path)?);
        self.entries = 0;
        Ok(())
    }
}

/// Locks the journal, ignoring poison: it is consistent between any two calls.
pub(super) fn lock(journal: &Mutex<AlertJournal>) -> MutexGuard<'_, AlertJournal> {
    journal.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state that the lines leave, and the number of unreadable lines.
pub fn read(text: &[u8]) -> (State, usize) {
    let mut state = State::default();
    let mut unreadable = 0;
    let lines = text.split(|&b| b == b'\n').filter(|line| !line.is_empty());
    for line in lines {
        match serde_json::from_slice(line) {
            Ok(entry) => state.apply(&entry),
            Err(_) => unreadable += 1,
        }
    }
    (state, unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::notification::Links;

    fn queued(at_ms: i64, sinks: &[&str]) -> Entry {
        let links = Links {
            page: String::new(),
            runbook: String::new(),
        };
        Entry::Queued {
            notification: Box::new(Notification::trial(at_ms, links)),
            sinks: sinks.iter().map(|s| (*s).to_owned()).collect(),
        }
    }

    fn done(sink: &str, at_ms: i64) -> Entry {
        Entry::Done {
            sink: sink.to_owned(),
            key: format!("0000000000000000-{at_ms}-{at_ms}-warn"),
            delivered: true,
        }
    }

    fn directory(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("trueline-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a directory");
        dir
    }

    #[test]
    fn what_no_sink_has_taken_is_there_after_a_restart_in_order() {
        let dir = directory("journal-order");
        let (mut journal, _) = AlertJournal::open(&dir).expect("a journal");
        for at in 1..=3 {
            journal
                .append(&queued(at, &["a", "b"]), true)
                .expect("written");
        }
        journal.append(&done("a", 1), false).expect("written");
        journal.append(&done("b", 1), false).expect("written");
        journal.append(&done("a", 2), false).expect("written");
        let before = journal.state().clone();
        drop(journal);
        let (journal, unreadable) = AlertJournal::open(&dir).expect("a journal");
        assert_eq!((journal.state(), unreadable), (&before, 0));
        let open = journal.state().undelivered.iter();
        let open: Vec<(i64, usize)> = open.map(|(n, s)| (n.at_ms, s.len())).collect();
        assert_eq!(open, [(2, 1), (3, 2)]);
        let _ = fs::remove_dir_all(dir);
    }

    #[test]
    fn a_torn_last_line_is_dropped_and_the_rest_holds() {
        let dir = directory("journal-torn");
        let (mut journal, _) = AlertJournal::open(&dir).expect("a journal");
        journal.append(&queued(1, &["a"]), true).expect("written");
        // Characters of more than one byte: the line may be torn within one.
        journal
            .append(&queued(2, &["pagér über"]), true)
            .expect("written");
        let path = dir.join(JOURNAL);
        let text = fs::read(&path).expect("bytes");
        for cut in 1..200 {
            fs::write(&path, &text[..text.len() - cut]).expect("written");
            let (journal, unreadable) = AlertJournal::open(&dir).expect("a journal");
            let whole = cut == 1;
            assert_eq!(journal.state().undelivered.len(), if whole { 2 } else { 1 });
            assert_eq!(unreadable, usize::from(!whole));
        }
        let _ = fs::remove_dir_all(dir);
    }

    #[test]
    fn the_file_stays_bounded() {
        let dir = directory("journal-bounded");
        let (mut journal, _) = AlertJournal::open(&dir).expect("a journal");
        for at in 0..(2 * COMPACT_AFTER as i64 + 10) {
            journal.append(&queued(at, &["a"]), false).expect("written");
            journal.append(&done("a", at), false).expect("written");
        }
        let lines = fs::read_to_string(dir.join(JOURNAL))
            .expect("text")
            .lines()
            .count();
        assert!(lines <= COMPACT_AFTER + 1, "{lines}");
        let _ = fs::remove_dir_all(dir);
    }
}
