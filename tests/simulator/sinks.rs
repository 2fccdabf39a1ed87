//! The sinks of the simulated processes: what runs beside an engine to reach them, and who
//! receives.
//!
//! What is run in production by threads ([`Steps`]) is run here step by step, in virtual time; a
//! process can end between any two steps, so also between an answer and its line in the journal.
//! The receivers are the same for all processes. They hold each notification against what is
//! promised when it comes: that it is on disk by then, and that it comes once, unless a crash or a
//! lost answer allows otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use trueline::notify::journal::{Entry, read};
use trueline::notify::{
    Again, Bell, Failure, Host, JOURNAL, Notification, Receiver, Running, SinkOptions, Steps,
    Texts, TopicSink,
};
use trueline::stats::rng::Rng;

use super::client::{Site, lock};
use super::clock;
use super::disk;
use super::scenario::Draw;

/// Names of the sinks; firing alerts are sent again and again to the last one.
pub const SINKS: [&str; 2] = ["hook", "manager"];
/// The part of notifications that writes the journal.
const WRITER: &str = "notifications";

/// How a receiver fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// It takes nothing for now.
    Down,
    /// It takes what it is sent, and its answer is lost.
    Unheard,
    /// Its answers take long.
    Slow,
    /// It will never take what it is sent meanwhile.
    Refuses,
}

/// Something that runs beside the engine of a host.
struct Part {
    name: String,
    bell: Arc<Bell>,
    /// `None` while it does a step.
    steps: Option<Box<dyn Steps>>,
    /// When it does its next step, if the bell does not ring before.
    due: Option<Duration>,
    /// It waits for the bell.
    listens: bool,
    ended: Arc<AtomicBool>,
}

/// What runs beside the engine of a host.
#[derive(Default)]
pub struct Parts {
    all: Vec<Part>,
    /// The disk was full since the process began.
    pub full: bool,
}

impl Parts {
    /// When a part has something to do next.
    fn due(&mut self, now: Duration) -> Option<Duration> {
        let rung = |p: &&mut Part| p.listens && p.bell.take();
        for part in self.all.iter_mut().filter(rung) {
            part.due = Some(part.due.map_or(now, |due| due.min(now)));
        }
        let waiting = self.all.iter().filter(|p| p.steps.is_some());
        waiting.filter_map(|p| p.due).min()
    }
}

/// A notification that came to a receiver.
pub struct Told {
    pub at: Duration,
    /// Who told it.
    pub host: usize,
    pub notification: Notification,
}

/// One receiver.
#[derive(Default)]
struct Inbox {
    trouble: Option<(Trouble, Duration)>,
    told: Vec<Told>,
    /// Keys that may come once more.
    again: BTreeSet<String>,
    /// What a host was answered and has not recorded.
    unrecorded: BTreeMap<usize, String>,
    /// What each host has delivered since its process began.
    delivered: BTreeMap<usize, Vec<String>>,
}

/// All receivers.
pub struct Receivers {
    draw: Draw,
    inboxes: BTreeMap<String, Inbox>,
    /// How long the answer takes that is on its way.
    takes: Option<Duration>,
    /// What is wrong.
    pub wrong: Option<String>,
    /// What came though it had come already: what that was, and both hosts that told it, each with
    /// when.
    pub again: Vec<(String, [(usize, Duration); 2])>,
}

impl Receivers {
    pub fn new(seed: u64) -> Receivers {
        let inboxes = SINKS.map(|name| (name.to_owned(), Inbox::default()));
        Receivers {
            draw: Draw(Rng::new(seed ^ 0x51_4B5)),
            inboxes: inboxes.into(),
            takes: None,
            wrong: None,
            again: Vec::new(),
        }
    }

    /// A receiver fails until then.
    pub fn trouble(&mut self, sink: usize, trouble: Trouble, until: Duration) {
        let inbox = self.inboxes.get_mut(SINKS[sink]);
        inbox.expect("a sink").trouble = Some((trouble, until));
    }

    /// What each receiver was told.
    pub fn told(&self) -> impl Iterator<Item = (&str, &[Told])> {
        let all = self.inboxes.iter();
        all.map(|(name, inbox)| (name.as_str(), inbox.told.as_slice()))
    }

    /// A process has ended. `lost` are the records of deliveries that a power failure took, and
    /// `full` says that some could not be written.
    fn ended(&mut self, host: usize, lost: &[(String, String)], full: bool) {
        for (name, inbox) in &mut self.inboxes {
            inbox.again.extend(inbox.unrecorded.remove(&host));
            let delivered = inbox.delivered.remove(&host).unwrap_or_default();
            inbox.again.extend(delivered.into_iter().filter(|_| full));
            let ours = lost.iter().filter(|(sink, _)| sink == name);
            inbox.again.extend(ours.map(|(_, key)| key.clone()));
        }
    }

    fn take(&mut self, host: usize, sink: &str, n: &Notification) -> Result<String, Failure> {
        let now = clock::now();
        let mut takes = self
            .draw
            .between(Duration::from_millis(3), Duration::from_millis(200));
        let inbox = self.inboxes.get_mut(sink).expect("a sink");
        let trouble = inbox.trouble.filter(|(_, until)| now < *until);
        let trouble = trouble.map(|(trouble, _)| trouble);
        if trouble == Some(Trouble::Slow) {
            takes += Duration::from_secs(3);
        }
        self.takes = Some(takes);
        if trouble == Some(Trouble::Down) {
            return Err(Failure::Temporary("it is down".to_owned()));
        }
        let mut before = inbox.told.iter().rev();
        let came = before.find(|t| t.notification.key == n.key);
        if let Some(first) = came
            && !inbox.again.remove(&n.key)
        {
            let what = format!("{} came twice to {sink}", n.key);
            let both = [(first.host, first.at), (host, now)];
            self.again.push((what.clone(), both));
            self.wrong.get_or_insert(what);
        }
        if came.is_none() {
            let earlier = inbox.told.iter().rev();
            let mut earlier = earlier.filter(|t| t.notification.fingerprint == n.fingerprint);
            let same = |t: &Notification| {
                (t.status, t.since_ms, t.severity) == (n.status, n.since_ms, n.severity)
            };
            let last = earlier.next().map(|t| &t.notification);
            if last.is_some_and(same) && self.wrong.is_none() {
                let last = last.map(|n| n.key.as_str()).unwrap_or_default();
                self.wrong = Some(format!("{} came to {sink} after {last}", n.key));
            }
        }
        inbox.told.push(Told {
            at: now,
            host,
            notification: n.clone(),
        });
        inbox.unrecorded.insert(host, n.key.clone());
        inbox.delivered.entry(host).or_default().push(n.key.clone());
        match trouble {
            Some(Trouble::Unheard) => {
                inbox.again.insert(n.key.clone());
                Err(Failure::Temporary("no answer".to_owned()))
            }
            Some(Trouble::Refuses) => Err(Failure::Permanent("never".to_owned())),
            _ => Ok("taken".to_owned()),
        }
    }
}

/// The end of a part for those who wait for it.
struct Ended {
    site: Site,
    ended: Arc<AtomicBool>,
}

impl Running for Ended {
    fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Time passes, and all parts of the host do what is due.
    fn wait(&self, until: Instant) {
        let until = clock::now() + until.saturating_duration_since(Instant::now());
        while !self.is_ended() && clock::now() < until {
            let due = self.site.notifies(clock::now());
            let next = due.unwrap_or(until).min(until);
            clock::sleep(next.saturating_sub(clock::now()));
            if due.is_some_and(|due| due <= until) {
                self.site.notify(None);
            }
        }
    }
}

/// The connection of a process to a receiver.
struct Connection {
    site: Site,
    sink: String,
}

impl Receiver for Connection {
    fn send(&mut self, n: &Notification, _: i64) -> Result<String, Failure> {
        let durable = lock(&self.site.parts).full || self.site.has_recorded(&self.sink, &n.key);
        let mut receivers = lock(&self.site.receivers);
        if !durable && receivers.wrong.is_none() {
            receivers.wrong = Some(format!("{} was sent and is not on disk", n.key));
        }
        receivers.take(self.site.host, &self.sink, n)
    }

    fn needs_resend(&self) -> bool {
        SINKS.last() == Some(&self.sink.as_str())
    }
}

impl Host for Site {
    fn run(
        &self,
        name: &str,
        bell: &Arc<Bell>,
        steps: Box<dyn Steps>,
    ) -> Result<Arc<dyn Running>, String> {
        let ended = Arc::new(AtomicBool::new(false));
        lock(&self.parts).all.push(Part {
            name: name.to_owned(),
            bell: Arc::clone(bell),
            steps: Some(steps),
            due: Some(clock::now()),
            listens: false,
            ended: Arc::clone(&ended),
        });
        let site = self.clone();
        Ok(Arc::new(Ended { site, ended }))
    }

    fn receiver(
        &self,
        sink: &SinkOptions,
        _: &Texts,
        _: Option<TopicSink>,
    ) -> Result<Box<dyn Receiver>, String> {
        Ok(Box::new(Connection {
            site: self.clone(),
            sink: sink.name.clone(),
        }))
    }
}

impl Site {
    /// When something beside the engine is to be done next.
    pub fn notifies(&self, now: Duration) -> Option<Duration> {
        lock(&self.parts).due(now)
    }

    /// Whether nothing waits but the time until firing alerts are sent again.
    pub fn has_notified(&self) -> bool {
        let mut parts = lock(&self.parts);
        let soon = clock::now() + Duration::from_secs(1);
        parts.due(clock::now()).is_none_or(|due| due > soon)
    }

    /// The first part that is due does a step; or the one of this name, if it is due.
    pub fn notify(&self, only: Option<&str>) {
        let now = clock::now();
        let mut parts = lock(&self.parts);
        parts.due(now);
        let due = (0..).zip(&parts.all).filter(|(_, p)| {
            let named = only.is_none_or(|name| p.name == name);
            named && p.steps.is_some() && p.due.is_some_and(|due| due <= now)
        });
        let first = due.min_by_key(|(_, p)| p.due).map(|(n, _): (usize, _)| n);
        let Some(part) = first.map(|n| &mut parts.all[n]) else {
            return;
        };
        let (name, ended) = (part.name.clone(), Arc::clone(&part.ended));
        let mut steps = part.steps.take().expect("it was there");
        drop(parts);
        if let Some(sink) = name.strip_prefix("sink ") {
            let mut receivers = lock(&self.receivers);
            let inbox = receivers.inboxes.get_mut(sink);
            inbox.and_then(|inbox| inbox.unrecorded.remove(&self.host));
        }
        let again = steps.step();
        let mut receivers = lock(&self.receivers);
        let takes = receivers.takes.take();
        let takes = takes.unwrap_or_else(|| {
            receivers
                .draw
                .between(Duration::from_micros(100), Duration::from_millis(20))
        });
        drop(receivers);
        let slow = match name.as_str() {
            WRITER => lock(&self.jobs).slow,
            _ => Duration::ZERO,
        };
        let now = clock::now();
        let due = match again {
            Again::Now => Some(now + takes + slow),
            Again::Until(at) => Some(now + at.saturating_duration_since(Instant::now())),
            Again::Rung | Again::Never => None,
        };
        let mut parts = lock(&self.parts);
        if again == Again::Never {
            ended.store(true, Ordering::Relaxed);
            parts.all.retain(|p| !Arc::ptr_eq(&p.ended, &ended));
        }
        let mut ours = parts.all.iter_mut();
        if let Some(part) = ours.find(|p| Arc::ptr_eq(&p.ended, &ended)) {
            (part.steps, part.due) = (Some(steps), due);
            part.listens = again != Again::Now;
        }
    }

    /// What runs beside the engine is gone; with `power` so is what it has not synced.
    pub fn forget(&self, power: bool) {
        lock(&self.fetching).take();
        if power {
            // In the middle of what is being written.
            self.notify(Some(WRITER));
        }
        let parts = std::mem::take(&mut *lock(&self.parts));
        let lost = if power { self.unsynced() } else { Vec::new() };
        lock(&self.receivers).ended(self.host, &lost, parts.full);
    }

    fn journals(&self) -> impl Iterator<Item = PathBuf> {
        let folders = [self.folder.clone(), self.folder.with_extension("aside")];
        folders.into_iter().map(|folder| folder.join(JOURNAL))
    }

    /// The deliveries that a power failure may take: sink and key.
    fn unsynced(&self) -> Vec<(String, String)> {
        let mut lost = Vec::new();
        for path in self.journals() {
            let (Some(synced), Ok(bytes)) = (disk::synced(&path), fs::read(&path)) else {
                continue;
            };
            let rest = bytes.get(synced as usize..).unwrap_or_default();
            for line in rest.split(|b| *b == b'\n') {
                if let Ok(Entry::Done { sink, key, .. }) = serde_json::from_slice(line) {
                    lost.push((sink, key));
                }
            }
        }
        lost
    }

    /// Whether the journal says, on disk, that the notification is for the sink.
    fn has_recorded(&self, sink: &str, key: &str) -> bool {
        self.journals().any(|path| {
            let Ok(mut bytes) = fs::read(&path) else {
                return false;
            };
            bytes.truncate(disk::synced(&path).map_or(usize::MAX, |n| n as usize));
            let (state, _) = read(&bytes);
            let mut waits = state.undelivered.iter();
            waits.any(|(n, sinks)| n.key == key && sinks.iter().any(|s| s == sink))
        })
    }
}
