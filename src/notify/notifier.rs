//! All sinks, behind two handles: one for the engine's thread, which never waits, and one for people.
//!
//! [`Notifier`] belongs to the thread that owns the engine; it asks the desk, and hands what has to be told to the thread "notices", which
//! writes it into the ledger and then into the queues. A [`Clerk`] takes what people say (silences, acknowledgements), and answers when it
//! is on disk.

use super::desk::Desk;
use super::ledger::{Entry, Ledger, State};
use super::notice::{Links, Notice, Status};
use super::options::{NotifyOptions, SinkOptions};
use super::receiver::{Carrier, Receiver};
use super::sink::{Counts, Sink, Worker, lock};
use crate::alert::{Ack, Book, BookError, Matcher, Severity, Silence};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver as Inbox, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Notices between the engine and the ledger; a fleet of a thousand streams may fire at once while a disk stutters.
pub const CHANNEL_MAX: usize = 4_096;

/// Why an alert ended that nobody watches any more.
const ORPHANED: &str = "no longer watched here";

/// A sink's counts with its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SinkCounts {
    /// Its name.
    pub name: String,
    /// What it did.
    pub counts: Counts,
}

/// What both handles share.
struct Shared {
    ledger: Arc<Mutex<Ledger>>,
    /// The ledger's book, to be read without waiting for a disk.
    book: RwLock<Arc<Book>>,
    sinks: Vec<Arc<Sink>>,
    /// Lines that the disk did not take.
    faults: Arc<AtomicU64>,
}

impl Shared {
    fn publish(&self, ledger: &Ledger) {
        let book = Arc::new(ledger.state().book.clone());
        *self.book.write().unwrap_or_else(PoisonError::into_inner) = book;
    }

    fn book(&self) -> Arc<Book> {
        Arc::clone(&self.book.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// An alert that fires, as the engine has it.
pub struct Firing {
    /// Its fingerprint.
    pub fingerprint: String,
    /// Since when.
    pub since_ms: i64,
    /// How much it asks for.
    pub severity: Severity,
}

/// The handle of the engine's thread. See the module.
pub struct Notifier {
    desk: Desk,
    /// Last notices of alerts that fire, to be ended by.
    told: std::collections::BTreeMap<String, Notice>,
    letters: Option<SyncSender<Notice>>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    clerk: Option<JoinHandle<()>>,
    /// Notices that found the way to the ledger full; those that still fire are found missing and told later.
    refused: u64,
}

/// Makes the way to a topic, for sinks that need one.
pub type Carriers<'a> = &'a dyn Fn(&SinkOptions) -> Result<Option<Box<dyn Carrier>>, String>;

impl Notifier {
    /// Opens the ledger in `directory` and starts the threads.
    pub fn start(
        options: &NotifyOptions,
        directory: &Path,
        carriers: Carriers<'_>,
        clock: fn() -> i64,
        seed: u64,
    ) -> Result<Notifier, String> {
        let said = |e: io::Error| format!("{}: {e}", directory.join(super::LEDGER).display());
        let (ledger, unread) = Ledger::open(directory).map_err(said)?;
        if unread > 0 {
            tracing::warn!(unread, "lines of the alerts journal could not be read");
        }
        let state = ledger.state().clone();
        let faults = ledger.faults();
        let ledger = Arc::new(Mutex::new(ledger));
        let mut sinks = Vec::new();
        let mut workers = Vec::new();
        for (number, sink) in (0u64..).zip(&options.sinks) {
            let carrier = carriers(sink)?;
            let receiver = Receiver::new(sink, &options.texts, carrier)
                .map_err(|e| format!("sink {}: {e}", sink.name))?;
            let shared = Arc::new(Sink::new(sink, waiting(&state, &sink.name)));
            workers.push(Worker {
                sink: Arc::clone(&shared),
                receiver,
                ledger: Arc::clone(&ledger),
                retry_max: sink.retry_max,
                resend: sink.resend,
                clock,
                seed: seed.wrapping_add(number),
            });
            sinks.push(shared);
        }
        let shared = Arc::new(Shared {
            book: RwLock::new(Arc::new(state.book.clone())),
            ledger,
            sinks,
            faults,
        });
        let mut threads = Vec::new();
        for worker in workers {
            let name = format!("sink {}", worker.sink.name);
            let thread = Builder::new().name(name).spawn(move || worker.run());
            threads.push(thread.map_err(|e| format!("cannot start a thread: {e}"))?);
        }
        let (letters, inbox) = sync_channel(CHANNEL_MAX);
        let theirs = Arc::clone(&shared);
        let clerk = Builder::new().name("notices".to_owned());
        let clerk = clerk.spawn(move || dispatch(&inbox, &theirs));
        let firing = state.firing().map(|n| (n.fingerprint.clone(), n.clone()));
        Ok(Notifier {
            desk: Desk::after(state.last.values()),
            told: firing.collect(),
            letters: Some(letters),
            shared,
            threads,
            clerk: Some(clerk.map_err(|e| format!("cannot start a thread: {e}"))?),
            refused: 0,
        })
    }

    /// A handle for people.
    pub fn clerk(&self) -> Clerk {
        Clerk {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Silences and acknowledgements.
    pub fn book(&self) -> Arc<Book> {
        self.shared.book()
    }

    /// Takes a notice; tells it, unless it was told or is silenced. Never waits.
    pub fn take(&mut self, mut notice: Notice, now_ms: i64) -> bool {
        let book = self.book();
        if !self.desk.admits(&mut notice, &book, now_ms) {
            return false;
        }
        let sent = self
            .letters
            .as_ref()
            .is_some_and(|l| l.try_send(notice.clone()).is_ok());
        if !sent {
            self.refused += 1;
            return false;
        }
        self.desk.told(&notice);
        match notice.status {
            Status::Firing => self.told.insert(notice.fingerprint.clone(), notice),
            Status::Resolved => self.told.remove(&notice.fingerprint),
        };
        true
    }

    /// Compares what fires with what was told: answers the alerts that have still to be told, and ends those that nobody watches.
    pub fn compare(&mut self, firing: &[Firing], now_ms: i64) -> Vec<String> {
        let mut missing = Vec::new();
        for alert in firing {
            self.desk.seen(&alert.fingerprint, now_ms);
            if self
                .desk
                .missing(&alert.fingerprint, alert.since_ms, alert.severity)
            {
                missing.push(alert.fingerprint.clone());
            }
        }
        for fingerprint in self.desk.orphans(now_ms) {
            if let Some(last) = self.told.get(&fingerprint) {
                let notice = last.ended(now_ms, ORPHANED);
                self.take(notice, now_ms);
            }
        }
        missing
    }

    /// Counts of all sinks.
    pub fn counts(&self) -> Vec<SinkCounts> {
        let of = |sink: &Arc<Sink>| SinkCounts {
            name: sink.name.clone(),
            counts: sink.counts(),
        };
        self.shared.sinks.iter().map(of).collect()
    }

    /// Notices that found the way to the ledger full.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Lines of the ledger that the disk did not take.
    pub fn faults(&self) -> u64 {
        self.shared.faults.load(Ordering::Relaxed)
    }

    /// Ends: what is on its way goes into the ledger, and sinks tell what they can within the time. What is left is told after the
    /// next start.
    pub fn stop(mut self, within: Duration) {
        let until = Instant::now() + within;
        drop(self.letters.take());
        if let Some(clerk) = self.clerk.take() {
            wait(&clerk, until);
        }
        self.shared.sinks.iter().for_each(|s| s.stop());
        self.threads.iter().for_each(|thread| wait(thread, until));
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        self.shared.sinks.iter().for_each(|s| s.stop());
    }
}

fn wait(thread: &JoinHandle<()>, until: Instant) {
    while !thread.is_finished() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What a sink has still to tell.
fn waiting(state: &State, sink: &str) -> Vec<Notice> {
    let open = state.open.iter();
    let ours = open.filter(|(_, sinks)| sinks.iter().any(|s| s == sink));
    ours.map(|(notice, _)| notice.clone()).collect()
}

/// Writes notices into the ledger, and then into the queues.
fn dispatch(inbox: &Inbox<Notice>, shared: &Shared) {
    while let Ok(notice) = inbox.recv() {
        let wanting: Vec<&Arc<Sink>> = {
            let mut ledger = lock(&shared.ledger);
            let wanting = shared.sinks.iter();
            let wanting = wanting.filter(|s| s.wants(&notice, ledger.state()));
            let wanting: Vec<&Arc<Sink>> = wanting.collect();
            let entry = Entry::Issued {
                notice: Box::new(notice.clone()),
                sinks: wanting.iter().map(|s| s.name.clone()).collect(),
            };
            // A fault is counted and logged there; people are told all the same.
            let _ = ledger.enter(&entry, true);
            shared.publish(&ledger);
            wanting
        };
        for sink in wanting {
            if !sink.push(notice.clone()) {
                let (name, key) = (&sink.name, &notice.key);
                crate::warn_limited!(sink = %name, %key, "queue full, alert not delivered");
                let entry = Entry::Done {
                    sink: name.clone(),
                    key: key.clone(),
                    delivered: false,
                };
                let _ = lock(&shared.ledger).enter(&entry, false);
            }
        }
    }
}

/// The handle of people. See the module.
#[derive(Clone)]
pub struct Clerk {
    shared: Arc<Shared>,
}

impl Clerk {
    /// Silences and acknowledgements.
    pub fn book(&self) -> Arc<Book> {
        self.shared.book()
    }

    /// Begins a silence; it is on disk when this returns.
    pub fn silence(
        &self,
        matchers: Vec<Matcher>,
        span_ms: (i64, i64),
        by: &str,
        note: &str,
    ) -> Result<Silence, String> {
        let mut ledger = lock(&self.shared.ledger);
        let draft = ledger.state().book.draft(matchers, span_ms, by, note);
        let silence = draft.map_err(|e: BookError| e.to_string())?;
        self.enter(&mut ledger, &Entry::Silenced(silence.clone()))?;
        Ok(silence)
    }

    /// Lifts a silence; says whether there was one.
    pub fn lift(&self, id: u64) -> Result<bool, String> {
        let mut ledger = lock(&self.shared.ledger);
        let known = ledger.state().book.silences.iter().any(|s| s.id == id);
        if known {
            self.enter(&mut ledger, &Entry::Lifted { id })?;
        }
        Ok(known)
    }

    /// Says who looks after an alert.
    pub fn acknowledge(&self, fingerprint: &str, ack: Ack) -> Result<(), String> {
        let mut ledger = lock(&self.shared.ledger);
        let acceptable = ledger.state().book.acceptable(&ack);
        acceptable.map_err(|e| e.to_string())?;
        let entry = Entry::Acknowledged {
            fingerprint: fingerprint.to_owned(),
            ack,
        };
        self.enter(&mut ledger, &entry)
    }

    fn enter(&self, ledger: &mut Ledger, entry: &Entry) -> Result<(), String> {
        let written = ledger.enter(entry, true);
        self.shared.publish(ledger);
        written.map_err(|e| {
            format!("it holds now, but is not on disk and would be forgotten by a restart: {e}")
        })
    }
}

/// Tells one notice to one sink, at once and without ledger.
pub fn try_once(
    options: &NotifyOptions,
    sink: &SinkOptions,
    carriers: Carriers<'_>,
    notice: &Notice,
    now_ms: i64,
) -> Result<String, String> {
    let mut receiver = Receiver::new(sink, &options.texts, carriers(sink)?)?;
    let told = receiver.tell(&sink.name, notice, now_ms);
    told.map_err(|failure| failure.to_string())
}

/// Links of a stream whose page is at `page`.
pub fn links(options: &NotifyOptions, page: &str) -> Links {
    let base = options.external_url.trim_end_matches('/');
    Links {
        page: format!("{base}{page}"),
        runbook: options.runbook(super::notice::ALERT_NAME),
    }
}
