//! The handle of the engine's thread. It never waits.
//!
//! A [`Notifier`] decides with the [`Deduplicator`] which notifications must be sent, and passes
//! them to the thread "notifications", which writes them to the journal and feeds the sinks. It
//! also hands over alerts whose partitions move between processes ([`moves`]).

mod moves;

pub use moves::Transfers;

use super::control::AlertControl;
use super::dedup::Deduplicator;
use super::delivered::DeliveryListener;
use super::dispatch::{
    CHANNEL_MAX, Command, CommandSender, Commands, Dispatcher, NewSink, SinkChange, TopicSinks,
};
use super::host::{Host, Running};
use super::journal::{AlertJournal, Entry, TransferredAlert};
use super::journal_updates::{JournalUpdates, Waiting};
use super::moved::Keeps;
use super::notification::{Links, Notification, Status};
use super::options::{NotifyOptions, SinkOptions, Texts};
use super::receivers;
use super::sink::Sink;
use super::steps::Bell;
use crate::alert::{Deployment, Labels, Severity, Silences};
use crate::telemetry::facts::SinkFacts;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

/// Why an orphaned alert was resolved. Ten minutes are [`super::dedup::ORPHAN_MS`].
const ORPHANED: &str = "nothing under this alert has fired here for ten minutes; its streams may \
                        be gone, grouped otherwise, or judged without the state that made it fire";

/// A firing alert of the engine.
pub struct Firing {
    /// Its fingerprint.
    pub fingerprint: String,
    /// When it started to fire.
    pub since_ms: i64,
    /// Its severity.
    pub severity: Severity,
}

/// The alert of a stream that arrived with its partition.
#[derive(Debug, Clone, PartialEq)]
pub struct AlertHandover {
    /// Its fingerprint.
    pub fingerprint: String,
    /// The notified firing, as [`Notifier::transfers`] of the previous owner returned it.
    pub transferred: Option<String>,
    /// When it last stopped firing, as far as the previous owner knew.
    pub ended_ms: Option<i64>,
}

impl AlertHandover {
    /// Adds what one of its streams brought about the notified firing; the newest counts.
    pub fn bring(&mut self, transferred: Option<String>) {
        let at = |text: &String| {
            let alert = serde_json::from_str::<TransferredAlert>(text).ok()?;
            // The process that delivers learns this first, so fewer missed sinks mean newer.
            let waits = Reverse(alert.missed.len());
            Some((alert.notification.since_ms, alert.notification.at_ms, waits))
        };
        let ours = self.transferred.as_ref().and_then(at);
        if transferred.as_ref().and_then(at) > ours {
            self.transferred = transferred;
        }
    }
}

/// Sends notifications of alerts for the engine's thread.
pub struct Notifier {
    dedup: Deduplicator,
    /// By fingerprint, what was notified of each firing alert.
    firing: BTreeMap<String, TransferredAlert>,
    /// By fingerprint, what waits for sinks, as far as this thread knows.
    waiting: BTreeMap<String, Waiting>,
    /// Alerts may move to other processes.
    moving: bool,
    /// If they may: alerts whose end all sinks got since the last [`Notifier::transfers`].
    ended: BTreeMap<String, TransferredAlert>,
    /// Alerts whose waiting notifications are held, because another process may own them.
    held: BTreeSet<String>,
    /// Alerts that came when the channel had no room: the journal does not know yet who was
    /// notified of them.
    untaken: Vec<TransferredAlert>,
    /// News from the journal.
    updates: Arc<JournalUpdates>,
    /// `firing` changed since the last [`Notifier::transfers`], which used `transfers_silences`.
    changed: bool,
    /// `waiting` changed since then, and when it was last returned.
    waiting_changed: bool,
    waiting_said: Instant,
    transfers_silences: Option<Arc<Silences>>,
    commands: Option<CommandSender>,
    dispatcher: Arc<Dispatcher>,
    options: (Vec<SinkOptions>, Texts),
    thread: Arc<dyn Running>,
    /// Commands dropped because the channel was full. Alerts that still fire are sent later.
    dropped: u64,
}

impl Notifier {
    /// Opens the journal in `directory` and starts the threads. If partitions move between
    /// processes (`moving`), alerts of an earlier run are released until their streams are assigned
    /// again. `clock` returns ms since 1970, and `seed` is the seed of the jitter.
    pub fn start(
        options: &NotifyOptions,
        directory: &Path,
        moving: bool,
        topic_sinks: TopicSinks<'_>,
        host: &Arc<dyn Host>,
        clock: fn() -> i64,
        seed: u64,
    ) -> Result<Notifier, String> {
        let named = |e: io::Error| format!("{}: {e}", directory.join(super::JOURNAL).display());
        let (mut journal, unreadable) = AlertJournal::open(directory).map_err(named)?;
        if unreadable > 0 {
            tracing::warn!(
                unreadable,
                "lines of the alerts journal could not be read, and what they say of silences, acknowledgements and \
                 notifications is lost; unless a crash cut the last one, the file is kept as alerts.journal.refused, or with a number"
            );
        }
        if moving {
            let firing = journal.state().firing().map(|n| n.fingerprint.clone());
            for fingerprint in firing.collect::<Vec<_>>() {
                let entry = Entry::Released { fingerprint };
                journal.append(&entry, true).map_err(named)?;
            }
        }
        // A process without sinks only counts, and leaves waiting notifications to the next one.
        if !options.sinks.is_empty() {
            journal.give_up(|name| !options.sinks.iter().any(|s| s.name == name));
        }
        let state = journal.state();
        let mut dedup = Deduplicator::after(state.last.values());
        for fingerprint in &state.released {
            dedup.release(fingerprint);
        }
        let (firing, updates) = (TransferredAlert::of_all(state), journal.updates());
        let mut waiting: BTreeMap<String, Waiting> = BTreeMap::new();
        for (notification, sinks) in &state.undelivered {
            let of_alert = waiting.entry(notification.fingerprint.clone()).or_default();
            of_alert.push((notification.clone(), sinks.clone()));
        }
        let alerts = waiting.keys().filter(|_| moving).cloned();
        let held: BTreeSet<String> = alerts.collect();
        let sinks = options.sinks.iter();
        let sinks = sinks.map(|sink| NewSink::new(sink, options, topic_sinks, host.as_ref()));
        let sinks = sinks.collect::<Result<Vec<_>, _>>()?;
        let dispatcher = Dispatcher::start(journal, sinks, held.clone(), host, clock, seed)?;
        let (sender, inbox) = sync_channel(CHANNEL_MAX);
        let bell = Arc::new(Bell::default());
        let commands = Commands {
            dispatcher: Arc::clone(&dispatcher),
            inbox,
        };
        let thread = host.run("notifications", &bell, Box::new(commands))?;
        Ok(Notifier {
            dedup,
            firing,
            waiting,
            moving,
            ended: BTreeMap::new(),
            held,
            untaken: Vec::new(),
            updates,
            changed: true,
            waiting_changed: false,
            waiting_said: Instant::now(),
            transfers_silences: None,
            commands: Some(CommandSender::new(sender, &bell)),
            dispatcher,
            options: (options.sinks.clone(), options.texts.clone()),
            thread,
            dropped: 0,
        })
    }

    /// Replaces sinks and texts. Undelivered notifications of a sink go to the sink of the same
    /// name, in order and once. A removed sink ends when its queue is empty or at its next failure.
    /// An error names the sink that cannot be built, and leaves everything unchanged.
    pub fn replace_sinks(
        &mut self,
        options: &NotifyOptions,
        topic_sinks: TopicSinks<'_>,
    ) -> Result<(), String> {
        let (sinks, texts) = &self.options;
        // A sink whose thread did not start is missing. Like a sink whose thread has ended, it is
        // started again.
        let all = self.dispatcher.sinks().clone();
        let running = all.iter().filter(|s| !self.dispatcher.has_ended(s));
        let running: BTreeSet<String> = running.map(|s| s.name.clone()).collect();
        let mut changes = Vec::new();
        for sink in &options.sinks {
            let same = *texts == options.texts && sinks.contains(sink);
            changes.push(if same && running.contains(&sink.name) {
                SinkChange::Keep(sink.name.clone())
            } else {
                SinkChange::Start(Box::new(NewSink::new(
                    sink,
                    options,
                    topic_sinks,
                    self.dispatcher.host.as_ref(),
                )?))
            });
        }
        let keeps = |change: &SinkChange| matches!(change, SinkChange::Keep(_));
        if sinks.len() == options.sinks.len() && changes.iter().all(keeps) {
            return Ok(());
        }
        self.dispatcher.replacing.fetch_add(1, Ordering::Relaxed);
        if !self.send(Command::Replace(changes)) {
            self.dispatcher.replacing.fetch_sub(1, Ordering::Relaxed);
            return Err("too many alerts are queued to replace sinks now; try again".to_owned());
        }
        self.options = (options.sinks.clone(), options.texts.clone());
        Ok(())
    }

    /// Whether the sinks are not yet those of the last [`Notifier::replace_sinks`].
    pub fn replaces_sinks(&self) -> bool {
        self.dispatcher.replacing.load(Ordering::Acquire) > 0
    }

    /// From now on, passes deliveries to this listener, on the threads of the sinks.
    pub fn listen(&self, listener: DeliveryListener) {
        self.dispatcher.journal.lock().listen(listener);
    }

    /// The handle for requests of people.
    pub fn control(&self) -> AlertControl {
        AlertControl(Arc::clone(&self.dispatcher))
    }

    /// Silences and acknowledgements.
    pub fn silences(&self) -> Arc<Silences> {
        self.dispatcher.silences()
    }

    /// Queues a notification unless it was already sent or is silenced. Returns whether it was
    /// queued.
    pub fn notify(&mut self, mut notification: Notification, now_ms: i64) -> bool {
        self.learn();
        let silences = self.silences();
        // The change of severity may have been silenced or too old to send: all must learn of it.
        let (fingerprint, severity) = (&notification.fingerprint, notification.severity);
        notification.joined &= !self.dedup.has_other_severity(fingerprint, severity);
        let admitted = match notification.joined {
            true => {
                self.dedup.follow(&mut notification);
                self.has_news(&notification, now_ms) && !notification.is_silenced(&silences, now_ms)
            }
            false => self.dedup.admits(&mut notification, &silences, now_ms),
        };
        // The alert changes here, so this process owns it.
        self.resume(&notification.fingerprint, Keeps::All);
        if !admitted {
            return false;
        }
        if !self.send(Command::Notify(Box::new(notification.clone()))) {
            self.dropped += 1;
            return false;
        }
        self.dedup.record(&notification);
        self.changed = true;
        match notification.status {
            Status::Firing => self.notified(notification, now_ms),
            Status::Resolved => {
                let before = self.firing.remove(&notification.fingerprint);
                let sinks = before.map(|b| b.sinks).unwrap_or_default();
                self.waits(notification, sinks.into_iter().collect());
            }
        }
        true
    }

    /// Remembers that a notification waits for these sinks.
    fn waits(&mut self, notification: Notification, sinks: Vec<String>) {
        let of_alert = self.waiting.entry(notification.fingerprint.clone());
        of_alert.or_default().push((notification, sinks));
    }

    /// Remembers the notification of a firing alert, and the sinks that must get it.
    fn notified(&mut self, notification: Notification, now_ms: i64) {
        let sinks: Vec<Arc<Sink>> = self.dispatcher.sinks().clone();
        let before = self.firing.remove(&notification.fingerprint);
        let (notified, wanting) =
            TransferredAlert::after(before, notification.clone(), &sinks, now_ms);
        self.firing
            .insert(notification.fingerprint.clone(), notified);
        self.waits(notification, wanting);
    }

    /// Whether a sink that did not get the firing alert wants this notification.
    fn has_news(&self, notification: &Notification, now_ms: i64) -> bool {
        let wants = |s: &Sink| s.matches(notification);
        self.is_lacked(&notification.fingerprint, now_ms, wants)
    }

    /// Whether the alert was notified, and a sink that did not get it must be offered it now.
    pub fn lacks_sink(&self, fingerprint: &str, now_ms: i64) -> bool {
        self.is_lacked(fingerprint, now_ms, |_| true)
    }

    /// Whether people must be notified that a stream with these labels has joined the alert, which
    /// now has this severity: a sink that wants the stream did not get the alert, or people know
    /// another severity and the stream is not silenced. If it is, others may be too: once a second
    /// [`Notifier::compare`] checks all.
    pub fn wants_joined(
        &self,
        fingerprint: &str,
        severity: Severity,
        labels: &Labels,
        now_ms: i64,
    ) -> bool {
        if self.dedup.has_other_severity(fingerprint, severity) {
            return self.silences().silence_of(labels, now_ms).is_none();
        }
        self.is_lacked(fingerprint, now_ms, |s| s.selects(labels))
    }

    /// Whether a sink that `of` selects did not get the firing alert.
    fn is_lacked(&self, fingerprint: &str, now_ms: i64, of: impl Fn(&Sink) -> bool) -> bool {
        let lacks = |notified: &TransferredAlert| {
            let sinks = self.dispatcher.sinks();
            let mut lacking = sinks.iter().filter(|s| notified.is_lacked_by(s, now_ms));
            lacking.any(|s| of(s))
        };
        self.firing.get(fingerprint).is_some_and(lacks)
    }

    /// The notified alerts of this process that fire, with the time of the last notified change.
    pub fn firing(&self) -> impl Iterator<Item = (&str, i64)> {
        self.dedup.firing()
    }

    /// The start of the notified firing; `None` if the alert does not fire or another process owns
    /// it.
    pub fn firing_since(&self, fingerprint: &str) -> Option<i64> {
        self.dedup.firing_since(fingerprint)
    }

    fn send(&self, command: Command) -> bool {
        let commands = self.commands.as_ref();
        commands.is_some_and(|c| c.send(command))
    }

    /// Records an entry that is not a notification. A full channel drops it; at worst, a
    /// notification is sent again after a restart.
    fn record(&mut self, entry: Entry) {
        if !self.send(Command::Record(entry)) {
            self.dropped += 1;
        }
    }

    /// Records a marked deployment, without waiting for the disk.
    pub fn record_deployment(&mut self, deployment: Deployment) {
        let version = deployment.version.as_deref().unwrap_or("");
        let (model, by) = (&deployment.model, &deployment.by);
        tracing::info!(
            model,
            version,
            by,
            "deployment marked after its request had ended"
        );
        self.record(Entry::Deployed(deployment));
    }

    /// Compares the firing alerts with the notified ones. Returns the alerts that still need a
    /// notification, and resolves those that are no longer watched. The latter uses `reading_ms`, a
    /// clock that runs only while all is read.
    pub fn compare(&mut self, firing: &[Firing], now_ms: i64, reading_ms: i64) -> BTreeSet<String> {
        self.learn();
        let mut unsent = BTreeSet::new();
        for alert in firing {
            let fingerprint = &alert.fingerprint;
            self.return_alert(fingerprint, Keeps::All);
            self.dedup.saw_firing(fingerprint, reading_ms);
            let (since_ms, severity) = (alert.since_ms, alert.severity);
            if self.dedup.is_unsent(fingerprint, since_ms, severity) {
                unsent.insert(fingerprint.clone());
            }
        }
        for fingerprint in self.dedup.orphans(reading_ms) {
            self.withdraw(&fingerprint, ORPHANED, now_ms);
        }
        unsent
    }

    /// Notifies the end of a notified alert, at this time and for this reason.
    pub fn resolve(&mut self, fingerprint: &str, at_ms: i64, why: &str, now_ms: i64) {
        if let Some(notified) = self.firing.get(fingerprint) {
            let notification = notified.notification.resolved(at_ms, why);
            self.notify(notification, now_ms);
        }
    }

    /// Notifies the administrative end of a notified alert, for this reason and whatever its data
    /// are.
    pub fn withdraw(&mut self, fingerprint: &str, why: &str, now_ms: i64) {
        if let Some(notified) = self.firing.get(fingerprint) {
            let notification = Notification {
                administrative: true,
                ..notified.notification.resolved(now_ms, why)
            };
            self.notify(notification, now_ms);
        }
    }

    /// Counts of all sinks.
    pub fn sinks(&self) -> Vec<SinkFacts> {
        let facts = |sink: &Arc<Sink>| {
            let mut facts = sink.facts();
            if self.dispatcher.has_ended(sink) {
                facts.trouble = Some("its thread has ended; reload the configuration".to_owned());
            }
            facts
        };
        self.dispatcher.sinks().iter().map(facts).collect()
    }

    /// Whether the thread that writes to the journal has ended, so that nothing more is sent.
    pub fn has_ended(&self) -> bool {
        self.thread.is_ended()
    }

    /// Commands dropped because the channel to the journal was full.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Journal lines that could not be written.
    pub fn write_errors(&self) -> u64 {
        self.dispatcher.write_errors()
    }

    /// Stops: nothing more is queued. Queued commands go to the journal, and sinks send what they
    /// can within the time. The rest is sent after the next start.
    pub fn stop(&mut self, within: Duration) {
        let until = Instant::now() + within;
        drop(self.commands.take());
        self.thread.wait(until);
        self.dispatcher.drain();
        self.dispatcher.wait(until);
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        self.dispatcher.drain();
    }
}

/// Sends one notification to one sink at once, without the journal.
pub fn try_once(
    options: &NotifyOptions,
    sink: &SinkOptions,
    topic_sinks: TopicSinks<'_>,
    notification: &Notification,
    now_ms: i64,
) -> Result<String, String> {
    let mut receiver = receivers::of(sink, &options.texts, topic_sinks(sink)?)?;
    let sent = receiver.send(notification, now_ms);
    sent.map_err(|failure| failure.to_string())
}

/// Links of a stream whose page has the path `page`.
pub fn links(options: &NotifyOptions, page: &str) -> Links {
    let base = options.external_url.trim_end_matches('/');
    let runbooks = options.runbook_url.trim_end_matches('/');
    Links {
        page: format!("{base}{page}"),
        runbook: format!("{runbooks}/{}.md", super::notification::ALERT_NAME),
    }
}
