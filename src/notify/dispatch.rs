//! The thread "notifications": it writes commands to the journal and then feeds the sinks.
//!
//! Sinks can be replaced while it runs. A sink that keeps its name keeps its thread, queue and
//! counts. Its thread takes the new receiver after the current attempt, and no other sink waits for
//! that. A removed sink empties its queue if its receiver responds, and gives up the rest
//! otherwise. When a process stops, the rest stays in the journal for the next start.

mod moves;

use super::host::{Host, Running};
use super::journal::{AlertJournal, Entry};
use super::moved::Move;
use super::notification::Notification;
use super::options::{NotifyOptions, SinkOptions};
use super::receiver::{Receiver, TopicSink};
use super::sink::{Sink, Worker};
use super::steps::{Again, Bell, Steps};
use crate::alert::Silences;
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver as Inbox, SyncSender, TryRecvError};
use std::time::Instant;

/// Commands between the engine and the journal. A thousand streams may start to fire at once while
/// a disk is slow.
pub const CHANNEL_MAX: usize = 4_096;

/// Connects to the topic of a sink, for sinks that need one.
pub type TopicSinks<'a> = &'a dyn Fn(&SinkOptions) -> Result<Option<TopicSink>, String>;

/// A command of the engine's thread.
pub(super) enum Command {
    /// Record the notification and send it to the sinks.
    Notify(Box<Notification>),
    Record(Entry),
    Replace(Vec<SinkChange>),
    Move(Move),
}

/// What a replacement does with a sink.
pub(super) enum SinkChange {
    /// The sink of this name is unchanged.
    Keep(String),
    /// A new or changed sink.
    Start(Box<NewSink>),
}

/// A sink whose thread does not know it yet.
pub(super) struct NewSink {
    options: SinkOptions,
    receiver: Box<dyn Receiver>,
}

impl NewSink {
    /// Builds the receiver of a sink.
    pub(super) fn new(
        sink: &SinkOptions,
        options: &NotifyOptions,
        topic_sinks: TopicSinks<'_>,
        host: &dyn Host,
    ) -> Result<NewSink, String> {
        let receiver = host.receiver(sink, &options.texts, topic_sinks(sink)?);
        Ok(NewSink {
            receiver: receiver.map_err(|e| format!("sink {}: {e}", sink.name))?,
            options: sink.clone(),
        })
    }
}

type SinkThread = (Arc<Sink>, Arc<dyn Running>);

/// Journal and sinks, shared by the handles and the threads.
pub(super) struct Dispatcher {
    pub(super) journal: Arc<Mutex<AlertJournal>>,
    /// A copy of the journal's silences, readable without waiting for the disk.
    silences: RwLock<Arc<Silences>>,
    sinks: RwLock<Vec<Arc<Sink>>>,
    /// Threads of the sinks, including removed sinks that still send.
    threads: Mutex<Vec<SinkThread>>,
    pub(super) host: Arc<dyn Host>,
    clock: fn() -> i64,
    /// Seed of the jitter of the next sink.
    seed: AtomicU64,
    write_errors: Arc<AtomicU64>,
    /// Number of requested replacements of sinks that are not done.
    pub(super) replacing: AtomicU64,
    /// Fingerprints of alerts that are not sent, because another process may own them.
    held: Mutex<BTreeSet<String>>,
}

impl Dispatcher {
    /// Starts these sinks with the undelivered notifications of the journal, except those of `held`
    /// alerts.
    pub(super) fn start(
        journal: AlertJournal,
        sinks: Vec<NewSink>,
        held: BTreeSet<String>,
        host: &Arc<dyn Host>,
        clock: fn() -> i64,
        seed: u64,
    ) -> Result<Arc<Dispatcher>, String> {
        let dispatcher = Dispatcher {
            silences: RwLock::new(Arc::new(journal.state().silences.clone())),
            write_errors: journal.write_errors(),
            journal: Arc::new(Mutex::new(journal)),
            sinks: RwLock::default(),
            threads: Mutex::default(),
            host: Arc::clone(host),
            clock,
            seed: AtomicU64::new(seed),
            replacing: AtomicU64::new(0),
            held: Mutex::new(held),
        };
        for sink in sinks {
            let started = dispatcher.start_sink(sink)?;
            dispatcher.write_sinks(|sinks| sinks.push(started));
        }
        Ok(Arc::new(dispatcher))
    }

    /// Silences and acknowledgements.
    pub(super) fn silences(&self) -> Arc<Silences> {
        Arc::clone(&self.silences.read())
    }

    pub(super) fn publish(&self, journal: &AlertJournal) {
        let silences = Arc::new(journal.state().silences.clone());
        *self.silences.write() = silences;
    }

    pub(super) fn sinks(&self) -> RwLockReadGuard<'_, Vec<Arc<Sink>>> {
        self.sinks.read()
    }

    /// Whether the thread of this sink has ended; without a request it ends only by a panic.
    pub(super) fn has_ended(&self, sink: &Arc<Sink>) -> bool {
        let ended = |(s, thread): &SinkThread| Arc::ptr_eq(s, sink) && thread.is_ended();
        self.threads().iter().any(ended)
    }

    /// Journal lines that could not be written.
    pub(super) fn write_errors(&self) -> u64 {
        self.write_errors.load(Ordering::Relaxed)
    }

    fn execute(&self, command: Command) {
        match command {
            Command::Notify(notification) => self.notify(*notification),
            Command::Record(entry) => {
                let mut journal = self.journal.lock();
                let _ = journal.append(&entry, true);
                self.publish(&journal);
            }
            Command::Replace(sinks) => {
                self.replace(sinks);
                self.replacing.fetch_sub(1, Ordering::Release);
            }
            Command::Move(moved) => self.follow(moved),
        }
    }

    /// Tells all sinks to end once their queues are empty.
    pub(super) fn drain(&self) {
        self.threads().iter().for_each(|(sink, _)| sink.drain());
    }

    /// Waits for the threads of the sinks.
    pub(super) fn wait(&self, until: Instant) {
        self.threads().iter().for_each(|(_, t)| t.wait(until));
    }

    /// Writes a notification to the journal and queues it for the sinks that want it.
    fn notify(&self, notification: Notification) {
        if self.is_held(&notification.fingerprint) {
            self.forget(&notification.fingerprint);
        }
        let sinks: Vec<Arc<Sink>> = self.sinks().clone();
        let wanting: Vec<String> = {
            let journal = self.journal.lock();
            let now_ms = (self.clock)();
            let wanting = sinks.iter();
            let wanting = wanting.filter(|s| s.wants(&notification, journal.state(), now_ms));
            wanting.map(|s| s.name.clone()).collect()
        };
        self.queue(notification, wanting);
    }

    /// Writes a notification to the journal and queues it for these sinks.
    fn queue(&self, notification: Notification, sinks: Vec<String>) {
        let entry = Entry::Queued {
            notification: Box::new(notification.clone()),
            sinks: sinks.clone(),
        };
        {
            let mut journal = self.journal.lock();
            // The journal counts and logs a failed write; the notification is sent all the same.
            let _ = journal.append(&entry, true);
            self.publish(&journal);
        }
        self.push(&notification, &sinks);
    }

    /// Queues a notification, which is in the journal, for these sinks.
    fn push(&self, notification: &Notification, names: &[String]) {
        let sinks: Vec<Arc<Sink>> = self.sinks().clone();
        for sink in sinks.iter().filter(|s| names.contains(&s.name)) {
            if !sink.push(notification.clone()) {
                let (name, key) = (&sink.name, &notification.key);
                crate::warn_limited!(sink = %name, %key, "queue full, alert not delivered");
                let entry = Entry::Done {
                    sink: name.clone(),
                    key: key.clone(),
                    delivered: false,
                    refused_ms: None,
                };
                let _ = self.journal.lock().append(&entry, false);
            }
        }
    }

    /// Starts the thread of a sink with its undelivered notifications.
    fn start_sink(&self, new: NewSink) -> Result<Arc<Sink>, String> {
        let options = &new.options;
        let undelivered = self.undelivered(self.journal.lock().state(), &options.name);
        let sink = Arc::new(Sink::new(options, undelivered));
        let seed = self.seed.fetch_add(1, Ordering::Relaxed);
        let worker = Worker::new(
            Arc::clone(&sink),
            options,
            new.receiver,
            Arc::clone(&self.journal),
            self.clock,
            seed,
        );
        let name = format!("sink {}", options.name);
        let thread = self.host.run(&name, &sink.bell, Box::new(worker))?;
        self.threads().push((Arc::clone(&sink), thread));
        Ok(sink)
    }

    /// Replaces the sinks. Waits for no attempt in progress.
    fn replace(&self, changes: Vec<SinkChange>) {
        let before: Vec<Arc<Sink>> = self.sinks().clone();
        let mut now = Vec::new();
        for change in changes {
            match change {
                SinkChange::Keep(name) => {
                    now.extend(before.iter().find(|s| s.name == name).cloned());
                }
                SinkChange::Start(new) => now.extend(self.change_sink(*new)),
            }
        }
        for removed in before
            .iter()
            .filter(|b| !now.iter().any(|n| n.name == b.name))
        {
            removed.remove();
        }
        self.write_sinks(|sinks| *sinks = now);
        self.threads().retain(|(_, thread)| !thread.is_ended());
    }

    /// Changes the sink of this name, or starts it if there is none. A removed sink that still
    /// empties its queue is kept.
    fn change_sink(&self, new: NewSink) -> Option<Arc<Sink>> {
        let name = new.options.name.clone();
        let runs =
            |(sink, thread): &&SinkThread| sink.name == name && !thread.is_ended() && sink.stay();
        let running = self.threads().iter().find(runs).cloned();
        if let Some((sink, _)) = running {
            sink.change(new.options, new.receiver);
            return Some(sink);
        }
        let started = self.start_sink(new);
        started
            .inspect_err(|error| tracing::error!(sink = %name, error, "sink not started"))
            .ok()
    }

    fn write_sinks(&self, change: impl FnOnce(&mut Vec<Arc<Sink>>)) {
        change(&mut self.sinks.write());
    }

    fn threads(&self) -> MutexGuard<'_, Vec<SinkThread>> {
        self.threads.lock()
    }
}

/// The thread "notifications": executes commands until the channel closes.
pub(super) struct Commands {
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) inbox: Inbox<Command>,
}

impl Steps for Commands {
    fn step(&mut self) -> Again {
        match self.inbox.try_recv() {
            Ok(command) => {
                self.dispatcher.execute(command);
                Again::Now
            }
            Err(TryRecvError::Empty) => Again::Rung,
            Err(TryRecvError::Disconnected) => Again::Never,
        }
    }
}

/// Sends commands. Wakes the thread after each, and when this is dropped.
pub(super) struct CommandSender {
    sender: Option<SyncSender<Command>>,
    bell: Arc<Bell>,
}

impl CommandSender {
    /// A sender through this channel, whose receiver waits for this bell.
    pub(super) fn new(sender: SyncSender<Command>, bell: &Arc<Bell>) -> CommandSender {
        CommandSender {
            sender: Some(sender),
            bell: Arc::clone(bell),
        }
    }

    /// Sends a command. Returns whether there was room.
    pub(super) fn send(&self, command: Command) -> bool {
        let sender = self.sender.as_ref();
        let sent = sender.is_some_and(|s| s.try_send(command).is_ok());
        self.bell.ring();
        sent
    }
}

impl Drop for CommandSender {
    fn drop(&mut self) {
        self.sender = None;
        self.bell.ring();
    }
}
