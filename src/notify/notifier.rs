//! All sinks, behind two handles: one for the engine's thread, which never waits, and one for people.
//!
//! [`Notifier`] belongs to the thread that owns the engine; it asks the desk, and hands what has to be told to the thread "notices", which
//! writes it into the ledger and then into the queues. Sinks may be exchanged meanwhile ([`Notifier::renew`]), by the same thread: a sink that is made anew
//! begins, after the old one's thread has ended, with what the ledger says that is undelivered; one that is gone empties its queue, if its receiver
//! lets it. A [`Clerk`] takes what people say (silences, acknowledgements), and answers when it
//! is on disk.

use super::desk::Desk;
use super::ledger::{Carried, Entry, Ledger, State};
use super::notice::{Links, Notice, Status};
use super::options::{NotifyOptions, SinkOptions, Texts};
use super::receiver::{Carrier, Receiver};
use super::sink::{Counts, Sink, Worker, lock};
use crate::alert::{Ack, Matcher, Severity, Silence, SilenceError, Silences};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver as Inbox, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Notices between the engine and the ledger; a fleet of a thousand streams may fire at once while a disk stutters.
pub const CHANNEL_MAX: usize = 4_096;

/// How long an attempt may take to end before its sink is exchanged; timeouts are shorter.
const HALT: Duration = Duration::from_secs(60);

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
    book: RwLock<Arc<Silences>>,
    sinks: RwLock<Vec<Arc<Sink>>>,
    /// Their threads, and those of sinks that are gone and still tell something.
    threads: Mutex<Vec<(Arc<Sink>, JoinHandle<()>)>>,
    clock: fn() -> i64,
    /// Of the jitter of the next sink.
    seed: AtomicU64,
    /// Lines that the disk did not take.
    faults: Arc<AtomicU64>,
}

impl Shared {
    fn publish(&self, ledger: &Ledger) {
        let book = Arc::new(ledger.state().book.clone());
        *self.book.write().unwrap_or_else(PoisonError::into_inner) = book;
    }

    fn book(&self) -> Arc<Silences> {
        Arc::clone(&self.book.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn sinks(&self) -> RwLockReadGuard<'_, Vec<Arc<Sink>>> {
        self.sinks.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn threads(&self) -> MutexGuard<'_, Vec<(Arc<Sink>, JoinHandle<()>)>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a sink with what it has still to tell.
    fn begin(&self, made: Made, counts: Counts) -> Result<Arc<Sink>, String> {
        let options = &made.options;
        let waiting = waiting(lock(&self.ledger).state(), &options.name);
        let sink = Arc::new(Sink::after(options, waiting, counts));
        let worker = Worker {
            sink: Arc::clone(&sink),
            receiver: made.receiver,
            ledger: Arc::clone(&self.ledger),
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

    /// Exchanges the sinks. Waits for attempts under way.
    fn exchange(&self, next: Vec<Next>) {
        let before: Vec<Arc<Sink>> = self.sinks().clone();
        let mut now = Vec::new();
        for next in next {
            match next {
                Next::Kept(name) => now.extend(before.iter().find(|s| s.name == name).cloned()),
                Next::Made(made) => {
                    let name = made.options.name.clone();
                    let old = before.iter().find(|s| s.name == name);
                    // Also one that went, tells on, and comes back.
                    if !self.ended(&name) {
                        tracing::error!(sink = %name, "its attempt does not end; the sink is gone until the next reload");
                        continue;
                    }
                    let counts = old.map(|old| old.counts()).unwrap_or_default();
                    match self.begin(*made, counts) {
                        Ok(sink) => now.push(sink),
                        Err(error) => tracing::error!(sink = %name, error, "sink not begun"),
                    }
                }
            }
        }
        for gone in before
            .iter()
            .filter(|b| !now.iter().any(|n| n.name == b.name))
        {
            gone.stop();
        }
        *self.sinks.write().unwrap_or_else(PoisonError::into_inner) = now;
        self.threads().retain(|(_, thread)| !thread.is_finished());
    }

    /// Ends the threads of a sink of this name after their present attempts, and says whether they did.
    fn ended(&self, name: &str) -> bool {
        let until = Instant::now() + HALT;
        loop {
            let threads = self.threads();
            let mine = || threads.iter().filter(|(sink, _)| sink.name == name);
            mine().for_each(|(sink, _)| sink.halt());
            if mine().all(|(_, thread)| thread.is_finished()) {
                return true;
            }
            drop(threads);
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A sink that is ready to begin.
struct Made {
    options: SinkOptions,
    receiver: Receiver,
}

/// A sink after an exchange.
enum Next {
    /// As it was.
    Kept(String),
    /// Another.
    Made(Box<Made>),
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

/// What goes to the ledger.
enum Letter {
    /// A notice, which then goes to the sinks.
    Notice(Box<Notice>),
    /// Anything else that is written down.
    Entry(Entry),
    /// Other sinks from now on.
    Sinks(Vec<Next>),
}

/// An alert that came with a partition, or did not.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrival {
    /// Its fingerprint.
    pub fingerprint: String,
    /// What was told of it, where it fires and somebody was told, as [`Notifier::carried`] gave it out.
    pub carried: Option<String>,
    /// When it last stopped firing, as far as who had it before knew.
    pub ended_ms: Option<i64>,
}

/// The handle of the engine's thread. See the module.
pub struct Notifier {
    desk: Desk,
    /// Last notices of alerts that fire, to be ended by, and which sinks were told.
    told: BTreeMap<String, (Notice, BTreeSet<String>)>,
    /// It changed since it was last given out, with this book.
    changed: bool,
    carried_of: Option<Arc<Silences>>,
    letters: Option<SyncSender<Letter>>,
    shared: Arc<Shared>,
    /// Of what the sinks are made.
    made_of: (Vec<SinkOptions>, Texts),
    clerk: Option<JoinHandle<()>>,
    /// Notices that found the way to the ledger full; those that still fire are found missing and told later.
    refused: u64,
}

/// Makes the way to a topic, for sinks that need one.
pub type Carriers<'a> = &'a dyn Fn(&SinkOptions) -> Result<Option<Box<dyn Carrier>>, String>;

impl Notifier {
    /// Opens the ledger in `directory` and starts the threads. Where partitions move between processes, alerts of an
    /// earlier run are `away` until their streams are given to this process again.
    pub fn start(
        options: &NotifyOptions,
        (directory, away): (&Path, bool),
        carriers: Carriers<'_>,
        clock: fn() -> i64,
        seed: u64,
    ) -> Result<Notifier, String> {
        let said = |e: io::Error| format!("{}: {e}", directory.join(super::LEDGER).display());
        let (ledger, unread) = Ledger::open(directory).map_err(said)?;
        if unread > 0 {
            tracing::warn!(unread, "lines of the alerts journal could not be read");
        }
        let mut ledger = ledger;
        let mut desk = Desk::after(ledger.state().last.values());
        if away {
            let firing: Vec<String> = ledger
                .state()
                .firing()
                .map(|n| n.fingerprint.clone())
                .collect();
            for fingerprint in firing {
                desk.left(&fingerprint);
                ledger
                    .enter(&Entry::Left { fingerprint }, true)
                    .map_err(said)?;
            }
        }
        let state = ledger.state().clone();
        for fingerprint in &state.away {
            desk.left(fingerprint);
        }
        let faults = ledger.faults();
        let ledger = Arc::new(Mutex::new(ledger));
        let made = options
            .sinks
            .iter()
            .map(|sink| make(sink, options, carriers));
        let made: Vec<Made> = made.collect::<Result<_, _>>()?;
        let shared = Arc::new(Shared {
            book: RwLock::new(Arc::new(state.book.clone())),
            ledger,
            sinks: RwLock::default(),
            threads: Mutex::default(),
            clock,
            seed: AtomicU64::new(seed),
            faults,
        });
        let sinks = made
            .into_iter()
            .map(|made| shared.begin(made, Counts::default()));
        let sinks = sinks.collect::<Result<Vec<_>, _>>()?;
        *shared.sinks.write().unwrap_or_else(PoisonError::into_inner) = sinks;
        let (letters, inbox) = sync_channel(CHANNEL_MAX);
        let theirs = Arc::clone(&shared);
        let clerk = Builder::new().name("notices".to_owned());
        let clerk = clerk.spawn(move || dispatch(&inbox, &theirs));
        let firing = state.last.values().filter(|n| n.status == Status::Firing);
        let firing = firing.map(|n| {
            let sinks = state.told.get(&n.fingerprint).cloned().unwrap_or_default();
            (n.fingerprint.clone(), (n.clone(), sinks))
        });
        Ok(Notifier {
            desk,
            told: firing.collect(),
            changed: true,
            carried_of: None,
            letters: Some(letters),
            shared,
            made_of: (options.sinks.clone(), options.texts.clone()),
            clerk: Some(clerk.map_err(|e| format!("cannot start a thread: {e}"))?),
            refused: 0,
        })
    }

    /// Goes on with other sinks and texts. Of one that was there under its name what is undelivered goes to the new one, in order and
    /// once; one that is gone ends when its queue is empty, or at its next failure; one that is new hears of what begins from
    /// then on. An error names the sink that cannot be made, and changes nothing.
    pub fn renew(&mut self, options: &NotifyOptions, carriers: Carriers<'_>) -> Result<(), String> {
        let (sinks, texts) = &self.made_of;
        // One whose last attempt did not end when it was to be exchanged is gone, and is made anew.
        let live: BTreeSet<String> = self.shared.sinks().iter().map(|s| s.name.clone()).collect();
        let mut next = Vec::new();
        for sink in &options.sinks {
            let same = *texts == options.texts && sinks.contains(sink);
            next.push(if same && live.contains(&sink.name) {
                Next::Kept(sink.name.clone())
            } else {
                Next::Made(Box::new(make(sink, options, carriers)?))
            });
        }
        let kept = |next: &Next| matches!(next, Next::Kept(_));
        if sinks.len() == options.sinks.len() && next.iter().all(kept) {
            return Ok(());
        }
        if !self.send(Letter::Sinks(next)) {
            return Err(
                "too many alerts are on their way to exchange sinks now; try again".to_owned(),
            );
        }
        self.made_of = (options.sinks.clone(), options.texts.clone());
        Ok(())
    }

    /// A handle for people.
    pub fn clerk(&self) -> Clerk {
        Clerk {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Silences and acknowledgements.
    pub fn book(&self) -> Arc<Silences> {
        self.shared.book()
    }

    /// Takes a notice; tells it, unless it was told or is silenced. Never waits.
    pub fn take(&mut self, mut notice: Notice, now_ms: i64) -> bool {
        let book = self.book();
        if !self.desk.admits(&mut notice, &book, now_ms) {
            return false;
        }
        if !self.send(Letter::Notice(Box::new(notice.clone()))) {
            self.refused += 1;
            return false;
        }
        self.desk.told(&notice);
        self.changed = true;
        let fingerprint = notice.fingerprint.clone();
        match notice.status {
            Status::Firing => {
                let sinks = self.shared.sinks();
                let fits = sinks.iter().filter(|s| s.fits(&notice));
                let fits: Vec<String> = fits.map(|s| s.name.clone()).collect();
                drop(sinks);
                let told = self.told.entry(fingerprint);
                let (last, sinks) = told.or_insert_with(|| (notice.clone(), BTreeSet::new()));
                *last = notice;
                sinks.extend(fits);
            }
            Status::Resolved => drop(self.told.remove(&fingerprint)),
        }
        true
    }

    fn send(&self, letter: Letter) -> bool {
        let letters = self.letters.as_ref();
        letters.is_some_and(|l| l.try_send(letter).is_ok())
    }

    /// What another process would need to go on with each alert that fires, by fingerprint; `None` where that is what it was at
    /// the last call.
    pub fn carried(&mut self) -> Option<BTreeMap<String, String>> {
        let book = self.book();
        let same = self
            .carried_of
            .as_ref()
            .is_some_and(|b| Arc::ptr_eq(b, &book));
        if same && !std::mem::take(&mut self.changed) {
            return None;
        }
        let one = |(fingerprint, (notice, sinks)): (&String, &(Notice, BTreeSet<String>))| {
            let carried = Carried {
                notice: notice.clone(),
                sinks: sinks.clone(),
                ack: book.acks.get(fingerprint).cloned(),
            };
            let text = serde_json::to_string(&carried).ok()?;
            Some((fingerprint.clone(), text))
        };
        let all = self.told.iter().filter_map(one).collect();
        self.carried_of = Some(book);
        Some(all)
    }

    /// A stream has come with its partition. What was told of its alert is known from now on, and its end is told
    /// by this process.
    pub fn came(&mut self, arrival: &Arrival) {
        let fingerprint = &arrival.fingerprint;
        let carried = arrival.carried.as_deref();
        match carried.and_then(|text| serde_json::from_str::<Carried>(text).ok()) {
            Some(carried) if carried.notice.fingerprint == *fingerprint => self.take_over(carried),
            _ => self.come_back(arrival),
        }
    }

    fn take_over(&mut self, carried: Carried) {
        let fingerprint = carried.notice.fingerprint.clone();
        // Where a parcel is older than what we told, it was read again from there.
        if self.desk.knows(&carried.notice) {
            self.is_back(fingerprint);
            return;
        }
        self.desk.told(&carried.notice);
        self.changed = true;
        let told = (carried.notice.clone(), carried.sinks.clone());
        self.told.insert(fingerprint, told);
        self.note(Entry::Came(Box::new(carried)));
    }

    /// One of whose firing nobody was told: where we told of one, it may be over since.
    fn come_back(&mut self, arrival: &Arrival) {
        let fingerprint = &arrival.fingerprint;
        let Some(since_ms) = self.desk.fires_since(fingerprint) else {
            return;
        };
        if arrival.ended_ms.is_some_and(|ended| ended >= since_ms) {
            self.desk.over(fingerprint);
            self.told.remove(fingerprint);
            self.changed = true;
            let fingerprint = fingerprint.clone();
            self.note(Entry::Over { fingerprint });
        } else {
            self.is_back(fingerprint.clone());
        }
    }

    fn is_back(&mut self, fingerprint: String) {
        if self.desk.back(&fingerprint)
            && let Some((notice, sinks)) = self.told.get(&fingerprint)
        {
            let carried = Carried {
                notice: notice.clone(),
                sinks: sinks.clone(),
                ack: None,
            };
            self.note(Entry::Came(Box::new(carried)));
        }
    }

    /// A stream has left with its last partition: its alert is another process's now.
    pub fn left(&mut self, fingerprint: &str) {
        if self.desk.left(fingerprint) {
            let fingerprint = fingerprint.to_owned();
            self.note(Entry::Left { fingerprint });
        }
        if let Some(fingerprint) = self.desk.longest_away() {
            self.desk.over(&fingerprint);
            self.told.remove(&fingerprint);
            self.note(Entry::Over { fingerprint });
        }
    }

    /// Writes down what is no notice. Where the way is full it is lost, and a restart knows less: at worst people are
    /// told again.
    fn note(&mut self, entry: Entry) {
        if !self.send(Letter::Entry(entry)) {
            self.refused += 1;
        }
    }

    /// Compares what fires with what was told: answers the alerts that have still to be told, and ends those that nobody watches.
    pub fn compare(&mut self, firing: &[Firing], now_ms: i64) -> Vec<String> {
        let mut missing = Vec::new();
        for alert in firing {
            self.is_back(alert.fingerprint.clone());
            self.desk.seen(&alert.fingerprint, now_ms);
            if self
                .desk
                .missing(&alert.fingerprint, alert.since_ms, alert.severity)
            {
                missing.push(alert.fingerprint.clone());
            }
        }
        for fingerprint in self.desk.orphans(now_ms) {
            if let Some((last, _)) = self.told.get(&fingerprint) {
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
        self.shared.sinks().iter().map(of).collect()
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
        let threads = self.shared.threads();
        threads.iter().for_each(|(sink, _)| sink.stop());
        threads.iter().for_each(|(_, thread)| wait(thread, until));
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        self.shared
            .threads()
            .iter()
            .for_each(|(sink, _)| sink.stop());
    }
}

/// Makes a sink ready to begin.
fn make(
    sink: &SinkOptions,
    options: &NotifyOptions,
    carriers: Carriers<'_>,
) -> Result<Made, String> {
    let receiver = Receiver::new(sink, &options.texts, carriers(sink)?);
    let receiver = receiver.map_err(|e| format!("sink {}: {e}", sink.name))?;
    let options = sink.clone();
    Ok(Made { options, receiver })
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
fn dispatch(inbox: &Inbox<Letter>, shared: &Shared) {
    while let Ok(letter) = inbox.recv() {
        let notice = match letter {
            Letter::Notice(notice) => *notice,
            Letter::Entry(entry) => {
                let mut ledger = lock(&shared.ledger);
                let _ = ledger.enter(&entry, true);
                shared.publish(&ledger);
                continue;
            }
            Letter::Sinks(next) => {
                shared.exchange(next);
                continue;
            }
        };
        let sinks: Vec<Arc<Sink>> = shared.sinks().clone();
        let wanting: Vec<&Arc<Sink>> = {
            let mut ledger = lock(&shared.ledger);
            let wanting = sinks.iter();
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
    pub fn book(&self) -> Arc<Silences> {
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
        let silence = draft.map_err(|e: SilenceError| e.to_string())?;
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
