//! What was told, to whom, and what people said back: one file of JSON lines beside the snapshots.
//!
//! ```text
//! {"state":{…}}                     all that stood when the file was last written anew
//! {"issued":{"notice":{…},"sinks":["oncall","topic"]}}       synced before anything is sent
//! {"done":{"sink":"oncall","key":"…","delivered":true}}
//! {"silenced":{…}}  {"lifted":{"id":7}}  {"acknowledged":{"fingerprint":"…","ack":{…}}}
//! {"came":{"notice":{…},"sinks":["oncall"],"ack":null}}  {"left":{"fingerprint":"…"}}  {"over":{"fingerprint":"…"}}
//! ```
//!
//! The last line is of alerts that move between processes with their partitions: one that came was told by another process, and is ended
//! and reminded of by this one; one that left is neither, but is known again should it come back as it was; one that is over
//! was ended by another process.
//!
//! A line is an [`Entry`]; the state is what all of them, applied in order, leave. A last line that is torn was not synced, so
//! nothing was said on its strength: it is dropped. Every [`ANEW`] entries, and at each start, the file is written anew, aside and
//! renamed. A disk that does not take a line costs a log line and a count; memory goes on, and the next time the file is
//! written anew has it all.
//!
//! `done` is not synced: one that a power failure takes means one notice twice, with the same `key`.

use super::notice::{Notice, Status};
use crate::alert::{Ack, Silence, Silences};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Name of the file.
pub const LEDGER: &str = "alerts.journal";

/// Entries after which the file is written anew; at about 1 kB each, it stays within some megabytes.
pub const ANEW: usize = 5_000;

/// Notices of ended alerts that are remembered, to know them again after a crash.
pub const ENDED_MAX: usize = 1_000;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// All of it.
    State(State),
    /// A notice is to be told to these sinks.
    Issued {
        /// The notice.
        notice: Box<Notice>,
        /// Names of the sinks.
        sinks: Vec<String>,
    },
    /// A sink is done with a notice.
    Done {
        /// Name of the sink.
        sink: String,
        /// The notice.
        key: String,
        /// Whether it was taken, or given up.
        delivered: bool,
    },
    /// A silence begins.
    Silenced(Silence),
    /// A silence is lifted.
    Lifted {
        /// Its number.
        id: u64,
    },
    /// Somebody looks after an alert.
    Acknowledged {
        /// The alert.
        fingerprint: String,
        /// Who.
        ack: Ack,
    },
    /// An alert came that another process has told to fire.
    Came(Box<Carried>),
    /// An alert is another process's now.
    Left {
        /// The alert.
        fingerprint: String,
    },
    /// Another process has ended an alert.
    Over {
        /// The alert.
        fingerprint: String,
    },
}

/// An alert that fires, as it is carried from process to process: what was told, to whom, and who looks after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Carried {
    /// The last notice.
    pub notice: Notice,
    /// Sinks that were told that it fires.
    pub sinks: BTreeSet<String>,
    /// Who looks after it.
    pub ack: Option<Ack>,
}

/// What stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Silences and acknowledgements.
    pub book: Silences,
    /// Notices that some sink has still to take, the oldest first, each with those sinks.
    pub open: VecDeque<(Notice, Vec<String>)>,
    /// The last notice of each alert.
    pub last: BTreeMap<String, Notice>,
    /// Which sinks were told that an alert fires, by its fingerprint: those are told that it ended, and nobody else.
    pub told: BTreeMap<String, BTreeSet<String>>,
    /// Alerts that were told to fire and are another process's now.
    #[serde(default)]
    pub away: BTreeSet<String>,
}

impl State {
    /// The state after one more entry. An entry of something unknown changes nothing.
    pub fn apply(&mut self, entry: &Entry) {
        match entry {
            Entry::State(state) => self.clone_from(state),
            Entry::Issued { notice, sinks } => {
                let fingerprint = notice.fingerprint.clone();
                self.away.remove(&fingerprint);
                if notice.status == Status::Resolved {
                    self.book.ended(&fingerprint);
                    self.told.remove(&fingerprint);
                } else {
                    let told = self.told.entry(fingerprint.clone()).or_default();
                    told.extend(sinks.iter().cloned());
                }
                self.last.insert(fingerprint, (**notice).clone());
                if !sinks.is_empty() {
                    self.open.push_back(((**notice).clone(), sinks.clone()));
                }
            }
            Entry::Done { sink, key, .. } => {
                let mut of_sink = self.open.iter_mut();
                if let Some((_, sinks)) = of_sink.find(|(n, s)| n.key == *key && s.contains(sink)) {
                    sinks.retain(|s| s != sink);
                }
                self.open.retain(|(_, sinks)| !sinks.is_empty());
            }
            Entry::Silenced(silence) => self.book.enter(silence.clone()),
            Entry::Lifted { id } => {
                self.book.lift(*id);
            }
            Entry::Acknowledged { fingerprint, ack } => {
                self.book.acknowledge(fingerprint.clone(), ack.clone());
            }
            Entry::Came(carried) => {
                let fingerprint = carried.notice.fingerprint.clone();
                self.away.remove(&fingerprint);
                if let Some(ack) = &carried.ack {
                    self.book.acknowledge(fingerprint.clone(), ack.clone());
                }
                self.told.insert(fingerprint.clone(), carried.sinks.clone());
                self.last.insert(fingerprint, carried.notice.clone());
            }
            Entry::Left { fingerprint } => {
                if self.told.contains_key(fingerprint) {
                    self.away.insert(fingerprint.clone());
                }
            }
            Entry::Over { fingerprint } => {
                self.away.remove(fingerprint);
                self.told.remove(fingerprint);
                self.last.remove(fingerprint);
                self.book.ended(fingerprint);
            }
        }
    }

    /// Whether the sink was told that the alert fires.
    pub fn was_told(&self, fingerprint: &str, sink: &str) -> bool {
        self.told.get(fingerprint).is_some_and(|s| s.contains(sink))
    }

    /// Alerts that were told to fire and are this process's.
    pub fn firing(&self) -> impl Iterator<Item = &Notice> {
        let firing = self.last.values().filter(|n| n.status == Status::Firing);
        firing.filter(|n| !self.away.contains(&n.fingerprint))
    }

    /// Forgets the oldest of the ended alerts.
    fn forget(&mut self) {
        let ended = self.last.values().filter(|n| n.status == Status::Resolved);
        let mut times: Vec<i64> = ended.map(|n| n.at_ms).collect();
        times.sort_unstable();
        if let Some(line) = times
            .len()
            .checked_sub(ENDED_MAX)
            .map(|k| times[k.min(times.len() - 1)])
        {
            let keep = |n: &Notice| n.status == Status::Firing || n.at_ms >= line;
            self.last.retain(|_, n| keep(n));
        }
    }
}

/// The file and what stands in it.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    file: Option<File>,
    state: State,
    /// Entries since the file was written anew.
    entries: usize,
    faults: Arc<AtomicU64>,
}

impl Ledger {
    /// Opens the ledger of a directory, or begins one. Says how many lines could not be read.
    pub fn open(directory: &Path) -> io::Result<(Ledger, usize)> {
        let path = directory.join(LEDGER);
        let (state, unread) = match fs::read(&path) {
            Ok(bytes) => read(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (State::default(), 0),
            Err(error) => return Err(error),
        };
        let mut ledger = Ledger {
            path,
            file: None,
            state,
            entries: 0,
            faults: Arc::default(),
        };
        ledger.write_anew()?;
        Ok((ledger, unread))
    }

    /// What stands.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Counts the lines that the disk did not take; to be read without waiting for it.
    pub fn faults(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.faults)
    }

    /// Applies an entry and writes it down; with `sync` it is on disk when this returns. An error leaves it applied.
    pub fn enter(&mut self, entry: &Entry, sync: bool) -> io::Result<()> {
        self.state.apply(entry);
        let written = self.append(entry, sync);
        if let Err(error) = &written {
            self.faults.fetch_add(1, Ordering::Relaxed);
            // Half a line may stand there; the next entry begins the file anew.
            self.file = None;
            crate::warn_limited!(%error, "alerts journal not written; what is told now may be told again after a restart");
        }
        written
    }

    fn append(&mut self, entry: &Entry, sync: bool) -> io::Result<()> {
        self.entries += 1;
        if self.entries > ANEW {
            self.file = None;
        }
        let Some(file) = &mut self.file else {
            return self.write_anew();
        };
        let mut line = serde_json::to_string(entry)?;
        line.push('\n');
        file.write_all(line.as_bytes())?;
        match sync {
            true => file.sync_data(),
            false => Ok(()),
        }
    }

    /// Writes the state as one line, aside, and renames it into place.
    fn write_anew(&mut self) -> io::Result<()> {
        self.state.forget();
        let aside = self.path.with_extension("part");
        let mut file = File::create(&aside)?;
        let mut line = serde_json::to_string(&Entry::State(self.state.clone()))?;
        line.push('\n');
        file.write_all(line.as_bytes())?;
        file.sync_all()?;
        fs::rename(&aside, &self.path)?;
        // Until the directory is on disk, a power failure may bring the file before this one back.
        if let Some(directory) = self.path.parent() {
            File::open(directory)?.sync_all()?;
        }
        self.file = Some(OpenOptions::new().append(true).open(&self.path)?);
        self.entries = 0;
        Ok(())
    }
}

/// The state that the lines leave, and how many could not be read.
pub fn read(text: &[u8]) -> (State, usize) {
    let mut state = State::default();
    let mut unread = 0;
    let lines = text.split(|&b| b == b'\n').filter(|line| !line.is_empty());
    for line in lines {
        match serde_json::from_slice(line) {
            Ok(entry) => state.apply(&entry),
            Err(_) => unread += 1,
        }
    }
    (state, unread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::notice::Links;

    fn issued(at_ms: i64, sinks: &[&str]) -> Entry {
        let links = Links {
            page: String::new(),
            runbook: String::new(),
        };
        Entry::Issued {
            notice: Box::new(Notice::trial(at_ms, links)),
            sinks: sinks.iter().map(|s| (*s).to_owned()).collect(),
        }
    }

    fn done(sink: &str, at_ms: i64) -> Entry {
        Entry::Done {
            sink: sink.to_owned(),
            key: format!("0000000000000000-{at_ms}-warn"),
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
        let dir = directory("ledger-order");
        let (mut ledger, _) = Ledger::open(&dir).expect("a ledger");
        for at in 1..=3 {
            ledger
                .enter(&issued(at, &["a", "b"]), true)
                .expect("written");
        }
        ledger.enter(&done("a", 1), false).expect("written");
        ledger.enter(&done("b", 1), false).expect("written");
        ledger.enter(&done("a", 2), false).expect("written");
        let before = ledger.state().clone();
        drop(ledger);
        let (ledger, unread) = Ledger::open(&dir).expect("a ledger");
        assert_eq!((ledger.state(), unread), (&before, 0));
        let open = ledger.state().open.iter();
        let open: Vec<(i64, usize)> = open.map(|(n, s)| (n.at_ms, s.len())).collect();
        assert_eq!(open, [(2, 1), (3, 2)]);
        let _ = fs::remove_dir_all(dir);
    }

    #[test]
    fn a_torn_last_line_is_dropped_and_the_rest_holds() {
        let dir = directory("ledger-torn");
        let (mut ledger, _) = Ledger::open(&dir).expect("a ledger");
        ledger.enter(&issued(1, &["a"]), true).expect("written");
        // Characters of more than one byte: the line may be torn within one.
        ledger
            .enter(&issued(2, &["pagér über"]), true)
            .expect("written");
        let path = dir.join(LEDGER);
        let text = fs::read(&path).expect("bytes");
        for cut in 1..200 {
            fs::write(&path, &text[..text.len() - cut]).expect("written");
            let (ledger, unread) = Ledger::open(&dir).expect("a ledger");
            let whole = cut == 1;
            assert_eq!(ledger.state().open.len(), if whole { 2 } else { 1 });
            assert_eq!(unread, usize::from(!whole));
        }
        let _ = fs::remove_dir_all(dir);
    }

    #[test]
    fn the_file_stays_bounded() {
        let dir = directory("ledger-bounded");
        let (mut ledger, _) = Ledger::open(&dir).expect("a ledger");
        for at in 0..(2 * ANEW as i64 + 10) {
            ledger.enter(&issued(at, &["a"]), false).expect("written");
            ledger.enter(&done("a", at), false).expect("written");
        }
        let lines = fs::read_to_string(dir.join(LEDGER))
            .expect("text")
            .lines()
            .count();
        assert!(lines <= ANEW + 1, "{lines}");
        let _ = fs::remove_dir_all(dir);
    }
}
