//! The thread "notifications": it writes commands to the journal and then feeds the sinks.
//!
//! Sinks can be replaced while it runs. A sink that keeps its name starts with the undelivered
//! notifications of its predecessor, after the thread of the predecessor has ended. A removed sink
//! empties its queue if its receiver responds.

use super::journal::{AlertJournal, Entry, State, lock};
use super::notification::Notification;
use super::options::{NotifyOptions, SinkOptions};
use super::receiver::{Receiver, TopicSink};
use super::sink::{Sink, Worker};
use crate::alert::Silences;
use crate::telemetry::facts::SinkFacts;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver as Inbox;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Commands between the engine and the journal. A thousand streams may start to fire at once while
/// a disk is slow.
pub const CHANNEL_MAX: usize = 4_096;

/// Longest wait for the last attempt of a sink that is replaced. Timeouts of attempts are shorter.
const HALT: Duration = Duration::from_secs(60);

/// Connects to the topic of a sink, for sinks that need one.
pub type TopicSinks<'a> = &'a dyn Fn(&SinkOptions) -> Result<Option<Box<dyn TopicSink>>, String>;

/// A command of the engine's thread.
pub(super) enum Command {
    /// Record the notification and send it to the sinks.
    Notify(Box<Notification>),
    /// Record another entry.
    Record(Entry),
    /// Replace the sinks.
    Replace(Vec<SinkChange>),
}

/// A sink after a replacement.
pub(super) enum SinkChange {
    /// The sink of this name is unchanged.
    Keep(String),
    /// A new or changed sink.
    Start(Box<NewSink>),
}

/// A sink whose thread has not started yet.
pub(super) struct NewSink {
    options: SinkOptions,
    receiver: Receiver,
}

impl NewSink {
    /// Builds the receiver of a sink.
    pub(super) fn new(
        sink: &SinkOptions,
        options: &NotifyOptions,
        topic_sinks: TopicSinks<'_>,
    ) -> Result<NewSink, String> {
        let receiver = Receiver::new(sink, &options.texts, topic_sinks(sink)?);
        Ok(NewSink {
            receiver: receiver.map_err(|e| format!("sink {}: {e}", sink.name))?,
            options: sink.clone(),
        })
    }
}

/// Journal and sinks, shared by the handles and the threads.
pub(super) struct Dispatcher {
    pub(super) journal: Arc<Mutex<AlertJournal>>,
    /// A copy of the journal's book, which can be read without waiting for the disk.
    book: RwLock<Arc<Silences>>,
    sinks: RwLock<Vec<Arc<Sink>>>,
    /// Threads of the sinks, and of removed sinks that still send.
    threads: Mutex<Vec<(Arc<Sink>, JoinHandle<()>)>>,
    clock: fn() -> i64,
    /// Seed of the jitter of the next sink.
    seed: AtomicU64,
    write_errors: Arc<AtomicU64>,
}

impl Dispatcher {
    /// Starts these sinks with what the journal says is undelivered.
    pub(super) fn start(
        journal: AlertJournal,
        sinks: Vec<NewSink>,
        clock: fn() -> i64,
        seed: u64,
    ) -> Result<Arc<Dispatcher>, String> {
        let dispatcher = Dispatcher {
            book: RwLock::new(Arc::new(journal.state().book.clone())),
            write_errors: journal.write_errors(),
            journal: Arc::new(Mutex::new(journal)),
            sinks: RwLock::default(),
            threads: Mutex::default(),
            clock,
            seed: AtomicU64::new(seed),
        };
        for sink in sinks {
            let started = dispatcher.start_sink(sink, SinkFacts::default())?;
            dispatcher.write_sinks(|sinks| sinks.push(started));
        }
        Ok(Arc::new(dispatcher))
    }

    /// Silences and acknowledgements.
    pub(super) fn book(&self) -> Arc<Silences> {
        Arc::clone(&self.book.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Publishes the book of the journal.
    pub(super) fn publish(&self, journal: &AlertJournal) {
        let book = Arc::new(journal.state().book.clone());
        *self.book.write().unwrap_or_else(PoisonError::into_inner) = book;
    }

    /// The current sinks.
    pub(super) fn sinks(&self) -> RwLockReadGuard<'_, Vec<Arc<Sink>>> {
        self.sinks.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Journal lines that could not be written.
    pub(super) fn write_errors(&self) -> u64 {
        self.write_errors.load(Ordering::Relaxed)
    }

    /// Executes commands until the channel closes.
    pub(super) fn run(&self, commands: &Inbox<Command>) {
        while let Ok(command) = commands.recv() {
            match command {
                Command::Notify(notification) => self.notify(*notification),
                Command::Record(entry) => {
                    let mut journal = lock(&self.journal);
                    let _ = journal.append(&entry, true);
                    self.publish(&journal);
                }
                Command::Replace(sinks) => self.replace(sinks),
            }
        }
    }

    /// Tells all sinks to end once their queues are empty.
    pub(super) fn drain(&self) {
        self.threads().iter().for_each(|(sink, _)| sink.drain());
    }

    /// Waits for the threads of the sinks.
    pub(super) fn wait(&self, until: Instant) {
        self.threads().iter().for_each(|(_, t)| wait(t, until));
    }

    /// Writes a notification to the journal and queues it for the sinks that want it.
    fn notify(&self, notification: Notification) {
        let sinks: Vec<Arc<Sink>> = self.sinks().clone();
        let wanting: Vec<&Arc<Sink>> = {
            let mut journal = lock(&self.journal);
            let wanting = sinks.iter();
            let wanting = wanting.filter(|s| s.wants(&notification, journal.state()));
            let wanting: Vec<&Arc<Sink>> = wanting.collect();
            let entry = Entry::Queued {
                notification: Box::new(notification.clone()),
                sinks: wanting.iter().map(|s| s.name.clone()).collect(),
            };
            // The journal counts and logs a failed write; the notification is sent all the same.
            let _ = journal.append(&entry, true);
            self.publish(&journal);
            wanting
        };
        for sink in wanting {
            if !sink.push(notification.clone()) {
                let (name, key) = (&sink.name, &notification.key);
                crate::warn_limited!(sink = %name, %key, "queue full, alert not delivered");
                let entry = Entry::Done {
                    sink: name.clone(),
                    key: key.clone(),
                    delivered: false,
                };
                let _ = lock(&self.journal).append(&entry, false);
            }
        }
    }

    /// Starts the thread of a sink with its undelivered notifications.
    fn start_sink(&self, new: NewSink, before: SinkFacts) -> Result<Arc<Sink>, String> {
        let options = &new.options;
        let undelivered = undelivered(lock(&self.journal).state(), &options.name);
        let sink = Arc::new(Sink::new(options, undelivered, before));
        let worker = Worker {
            sink: Arc::clone(&sink),
            receiver: new.receiver,
            journal: Arc::clone(&self.journal),
            retry_max: options.retry_max,
            resend: options.resend,
            clock: self.clock,
            seed: self.seed.fetch_add(1, Ordering::Relaxed),
        };
        let thread = Builder::new().name(format!("sink {}", options.name));
        let thread = thread.spawn(move || worker.run());
        let thread = thread.map_err(|e| format!("cannot start a thread: {e}"))?;
        self.threads().push((Arc::clone(&sink), thread));
        Ok(sink)
    }

    /// Replaces the sinks. Waits for attempts in progress.
    fn replace(&self, changes: Vec<SinkChange>) {
        let before: Vec<Arc<Sink>> = self.sinks().clone();
        let mut now = Vec::new();
        for change in changes {
            match change {
                SinkChange::Keep(name) => {
                    now.extend(before.iter().find(|s| s.name == name).cloned());
                }
                SinkChange::Start(new) => now.extend(self.restart_sink(*new, &before)),
            }
        }
        for removed in before
            .iter()
            .filter(|b| !now.iter().any(|n| n.name == b.name))
        {
            removed.drain();
        }
        self.write_sinks(|sinks| *sinks = now);
        self.threads().retain(|(_, thread)| !thread.is_finished());
    }

    /// Ends the sink of this name, if there is one, and starts the new one.
    fn restart_sink(&self, new: NewSink, before: &[Arc<Sink>]) -> Option<Arc<Sink>> {
        let name = new.options.name.clone();
        let old = before.iter().find(|s| s.name == name);
        // The name may also be that of a removed sink which still empties its queue.
        if !self.halt(&name) {
            tracing::error!(sink = %name, "its attempt does not end; the sink is off until the next reload");
            return None;
        }
        let facts = old.map(|old| old.facts()).unwrap_or_default();
        let started = self.start_sink(new, facts);
        started
            .inspect_err(|error| tracing::error!(sink = %name, error, "sink not started"))
            .ok()
    }

    /// Ends the threads of the sinks of this name after their current attempts. Returns whether
    /// they have ended.
    fn halt(&self, name: &str) -> bool {
        let until = Instant::now() + HALT;
        loop {
            let threads = self.threads();
            let named = || threads.iter().filter(|(sink, _)| sink.name == name);
            named().for_each(|(sink, _)| sink.halt());
            if named().all(|(_, thread)| thread.is_finished()) {
                return true;
            }
            drop(threads);
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn write_sinks(&self, change: impl FnOnce(&mut Vec<Arc<Sink>>)) {
        change(&mut self.sinks.write().unwrap_or_else(PoisonError::into_inner));
    }

    fn threads(&self) -> MutexGuard<'_, Vec<(Arc<Sink>, JoinHandle<()>)>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for the end of a thread, but no longer than `until`.
pub(super) fn wait(thread: &JoinHandle<()>, until: Instant) {
    while !thread.is_finished() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Notifications that a sink still has to send.
fn undelivered(state: &State, sink: &str) -> Vec<Notification> {
    let all = state.undelivered.iter();
    let ours = all.filter(|(_, sinks)| sinks.iter().any(|s| s == sink));
    ours.map(|(notification, _)| notification.clone()).collect()
}
