//! Keeps the history: in memory for requests, and on disk for the next start.
//!
//! The engine's thread puts judgements into [`History`](crate::telemetry::history::History) and
//! hands new entries to a thread that appends them to the file every [`FLUSH`]. At most
//! [`WAITING_MAX`] entries wait; more are dropped and counted. A file that cannot be read or
//! written costs the history and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use super::state_dir::DirWatch;
use crate::app::clock;
use crate::app::error::AppError;
use crate::app::worker::spawn;
use crate::judge::alarm::notifies;
use crate::judge::detector_report::kind;
use crate::judge::sentence::because;
use crate::judge::{Change, Step, WindowJudgement};
use crate::store::history::{HistoryEntry, HistoryFile};
use crate::telemetry::Published;
use crate::telemetry::facts::HistoryFacts;
use crate::telemetry::history::HistoryAlert;

/// Time between two writes.
const FLUSH: Duration = Duration::from_secs(2);
/// Pause after a write that failed: the next write is the whole history.
const RETRY: Duration = Duration::from_secs(60);
/// Entries that may wait for the thread: ten thousand streams with all their windows.
const WAITING_MAX: usize = 50_000;
/// Time between two searches for expired streams.
const FORGET: Duration = Duration::from_secs(3600);

/// The history and its thread.
pub struct HistoryLog {
    entries: Option<SyncSender<HistoryEntry>>,
    shared: Arc<Shared>,
    /// Disconnected once the thread has ended. Waiting for it reads no clock, which a simulated run
    /// needs.
    ended: Receiver<()>,
}

#[derive(Default)]
struct Shared {
    bytes: AtomicU64,
    dropped: AtomicU64,
    errors: AtomicU64,
}

impl HistoryLog {
    /// Reads the file of the state directory and starts the thread.
    pub fn start(directory: DirWatch, published: &Arc<Published>) -> Result<HistoryLog, AppError> {
        let shared = Arc::new(Shared::default());
        let file = HistoryFile::open(directory.path(), &published.history);
        let file = file.map_err(|error| {
            shared.errors.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(%error, "the history cannot be read or written; it begins now and ends with the process");
        });
        let unread = file.as_ref().map_or(0, HistoryFile::unread);
        if unread > 0 {
            shared.errors.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(
                bytes = unread,
                "parts of the history are torn, damaged or of another format; they are left out"
            );
        }
        let (entries, inbox) = sync_channel(WAITING_MAX);
        let (theirs, published) = (Arc::clone(&shared), Arc::clone(published));
        let (ends, ended) = channel::<()>();
        spawn("history", move || {
            let _ends = ends;
            write(inbox, file.ok(), &directory, &published, &theirs);
        })?;
        Ok(HistoryLog {
            entries: Some(entries),
            shared,
            ended,
        })
    }

    /// Adds judgements; never waits.
    pub fn judged(&self, published: &Published, judgements: Vec<WindowJudgement>) {
        for judged in judgements {
            let (stream, window, point) = (judged.stream, judged.window, judged.point);
            if published.history.observe(&stream, &window, point) {
                let points = vec![(window, point)];
                self.queue(HistoryEntry {
                    stream,
                    points,
                    alerts: Vec::new(),
                });
            }
        }
    }

    /// Adds those of these changes that are changes of alerts; never waits.
    pub fn changed(&self, published: &Published, changes: &[Change]) {
        for change in changes {
            let Some(alert) = alert(change) else { continue };
            if published.history.alert(&change.stream, alert.clone()) {
                self.queue(HistoryEntry {
                    stream: change.stream.clone(),
                    points: Vec::new(),
                    alerts: vec![alert],
                });
            }
        }
    }

    fn queue(&self, entry: HistoryEntry) {
        let entries = self.entries.as_ref();
        if entries.is_none_or(|entries| entries.try_send(entry).is_err()) {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sizes and losses of the history.
    pub fn facts(&self, published: &Published) -> HistoryFacts {
        let load = |n: &AtomicU64| n.load(Ordering::Relaxed);
        HistoryFacts {
            points: published.history.points() as u64,
            bytes: load(&self.shared.bytes),
            refused: published.history.refused() + load(&self.shared.dropped),
            errors: load(&self.shared.errors),
        }
    }

    /// Writes waiting entries and ends, within the given time.
    pub fn stop(&mut self, within: Duration) {
        drop(self.entries.take());
        // The thread sends nothing: its end drops the sender.
        let _ = self.ended.recv_timeout(within);
    }
}

/// The entry of a change, if people are notified of it.
fn alert(change: &Change) -> Option<HistoryAlert> {
    let Step::Stream { from, to } = change.step else {
        return None;
    };
    let notified = notifies(&from, &to);
    notified.then(|| HistoryAlert {
        at_ms: change.at_ms,
        state: to.state.as_str().to_owned(),
        severity: to.severity.as_str().to_owned(),
        sentence: words(change),
    })
}

/// What was known at a change, as text.
fn words(change: &Change) -> String {
    let Some(facts) = &change.facts else {
        return change.sentence.clone();
    };
    let alarm = facts.detector.as_ref().and_then(|d| d.alarm.as_ref());
    let detector = alarm.map_or(String::new(), |a| {
        format!("detector: {}; ", kind(&a.evidence))
    });
    let window = &facts.window;
    format!("{detector}{}: {}", window.window, because(window))
}

/// Writes entries until the channel closes.
fn write(
    inbox: Receiver<HistoryEntry>,
    mut file: Option<HistoryFile>,
    directory: &DirWatch,
    published: &Published,
    shared: &Shared,
) {
    let (mut flushed, mut forgot) = (Instant::now(), Instant::now());
    let mut waiting = BTreeMap::new();
    // When a write failed. The next one is the whole history, after a pause.
    let mut failed: Option<Instant> = None;
    loop {
        let ended = match inbox.recv_timeout(FLUSH) {
            Ok(entry) => {
                gather(&mut waiting, entry);
                false
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        };
        if ended || flushed.elapsed() >= FLUSH {
            flushed = Instant::now();
            let gained: Vec<HistoryEntry> = std::mem::take(&mut waiting).into_values().collect();
            let pauses = failed.is_some_and(|at| at.elapsed() < RETRY) && !ended;
            if let Some(file) = file.as_mut().filter(|_| !pauses) {
                let written = flush(file, &gained, directory, published);
                shared.bytes.store(file.bytes(), Ordering::Relaxed);
                failed = written.is_err().then(Instant::now);
                if let Err(error) = written {
                    file.require_rewrite();
                    shared.errors.fetch_add(1, Ordering::Relaxed);
                    crate::warn_limited!(%error, "history not written; it is kept in memory, and written as a whole later");
                }
            }
        }
        if forgot.elapsed() >= FORGET {
            forgot = Instant::now();
            let alive = |id: &_| published.report(id).is_some();
            published.history.forget(clock::now_ms(), alive);
        }
        if ended {
            return;
        }
    }
}

/// Appends to the file, or writes it again as a whole.
fn flush(
    file: &mut HistoryFile,
    gained: &[HistoryEntry],
    directory: &DirWatch,
    published: &Published,
) -> std::io::Result<()> {
    if let Some(why) = directory.fault() {
        return Err(std::io::Error::other(why));
    }
    match file.needs_rewrite() {
        true => file.rewrite(&published.history),
        false => file.append(gained),
    }
}

/// Merges an entry into the one that waits for its stream.
fn gather(waiting: &mut BTreeMap<crate::judge::StreamId, HistoryEntry>, entry: HistoryEntry) {
    match waiting.get_mut(&entry.stream) {
        Some(known) => {
            known.points.extend(entry.points);
            known.alerts.extend(entry.alerts);
        }
        None => {
            waiting.insert(entry.stream.clone(), entry);
        }
    }
}
