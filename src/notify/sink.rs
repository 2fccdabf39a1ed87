//! One sink: a bounded queue and the thread that empties it, in [`Steps`].
//!
//! The thread sends the oldest notification until it is accepted or rejected permanently, and only
//! then the next one. Two are never in flight, so order is preserved. Between two attempts it
//! pauses: first [`PAUSE_MIN`], then twice as long each time, up to the sink's `retry_max`; a
//! random factor between 0.5 and 1 shortens each pause. The caller seeds the generator, so that
//! many processes do not call a recovered receiver at the same time. A receiver that asks for a
//! longer pause gets it, up to [`ASKED_MAX`]. The thread never gives up on a notification that may
//! be accepted later. The queue bounds the wait: when it is full, it drops the newest notification
//! and counts it. A dropped end is not made again, so ends have as many additional places.
//!
//! A receiver that needs resends of firing alerts gets them before the queue, however long that is,
//! and waits at most two intervals for them: it ends an alert after four.
//!
//! A reload may change options and receiver. The thread takes them after its current attempt; the
//! queue, the counts and the pause that a receiver asked for stay. A removed sink gives up what is
//! left when its thread ends.

use super::journal::{AlertJournal, State};
use super::missed::Missed;
use super::notification::{Notification, Status};
use super::options::SinkOptions;
use super::receiver::{Failure, Receiver};
use super::steps::{Again, Bell, Steps};
use crate::alert::{Labels, Matcher};
use crate::stats::rng::Rng;
use crate::telemetry::facts::SinkFacts;
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// First pause after a failure. A receiver that restarts is back within seconds.
pub const PAUSE_MIN: Duration = Duration::from_millis(500);

/// Longest pause that a receiver can ask for. Rate limits pass within minutes, and a wrong header
/// must not delay an alert.
pub const ASKED_MAX: Duration = Duration::from_secs(300);

struct Queue {
    options: SinkOptions,
    /// The receiver of a reload that the thread has not taken yet.
    receiver: Option<Box<dyn Receiver>>,
    queue: VecDeque<Notification>,
    facts: SinkFacts,
    /// End once the queue is empty, or at the next failure.
    drain: bool,
    /// The sink is no longer configured: what is left at the end is given up.
    removed: bool,
    /// The thread has ended its work.
    ended: bool,
}

/// The queue of a sink, shared by the threads that fill it and the thread that empties it.
pub struct Sink {
    /// Its name.
    pub name: String,
    state: Mutex<Queue>,
    /// Rings when there is something to do.
    pub bell: Arc<Bell>,
}

/// What the thread does next.
enum Next {
    Send(Box<Notification>),
    Resend,
    Wait,
    End,
}

impl Sink {
    /// A sink with these undelivered notifications.
    pub fn new(options: &SinkOptions, undelivered: Vec<Notification>) -> Sink {
        Sink {
            name: options.name.clone(),
            state: Mutex::new(Queue {
                options: options.clone(),
                receiver: None,
                queue: undelivered.into(),
                facts: SinkFacts::default(),
                drain: false,
                removed: false,
                ended: false,
            }),
            bell: Arc::default(),
        }
    }

    /// Keeps a sink that was about to end because it was removed. Returns whether its thread
    /// continues.
    pub fn stay(&self) -> bool {
        let mut state = self.lock();
        if !state.ended && std::mem::take(&mut state.removed) {
            state.drain = false;
        }
        !state.ended
    }

    /// Changes the options at once, and the receiver after the current attempt.
    pub fn change(&self, options: SinkOptions, receiver: Box<dyn Receiver>) {
        let mut state = self.lock();
        (state.options, state.receiver) = (options, Some(receiver));
        drop(state);
        self.bell.ring();
    }

    /// Whether the notification is for this sink. A firing one is selected by the current or
    /// previous labels of its streams; if a stream only joined, by sinks that do not know the alert
    /// or missed it. A resolution goes to the sinks that were notified of the firing.
    pub fn wants(&self, notification: &Notification, state: &State, now_ms: i64) -> bool {
        if notification.status == Status::Resolved {
            return self.lock().options.resolved
                && state.was_notified(&notification.fingerprint, &self.name);
        }
        let knows = state.knows(&notification.fingerprint, &self.name, now_ms);
        (!notification.joined || !knows) && self.matches(notification)
    }

    /// Whether the queue has room for a firing notification.
    pub fn has_room(&self) -> bool {
        let state = self.lock();
        state.queue.len() < state.options.queue_max
    }

    /// Whether the sink takes notifications of this status.
    pub fn takes(&self, status: Status) -> bool {
        self.lock().options.resolved || status == Status::Firing
    }

    /// Whether the matchers of this sink select a firing notification.
    pub fn matches(&self, notification: &Notification) -> bool {
        let (before, state) = (notification.was, self.lock());
        let matchers = &state.options.matchers;
        notification.matches(matchers, None)
            || before.is_some() && notification.matches(matchers, before)
    }

    /// Whether the matchers of this sink select a stream with these labels.
    pub fn selects(&self, labels: &Labels) -> bool {
        Matcher::all(&self.lock().options.matchers, labels)
    }

    /// Appends a notification to the queue. Returns whether there was room.
    pub fn push(&self, notification: Notification) -> bool {
        let mut state = self.lock();
        let queue_max = state.options.queue_max;
        let places = match notification.status {
            Status::Firing => queue_max,
            Status::Resolved => queue_max.saturating_mul(2),
        };
        if state.queue.len() >= places {
            state.facts.dropped += 1;
            return false;
        }
        state.queue.push_back(notification);
        drop(state);
        self.bell.ring();
        true
    }

    /// Removes the notifications of an alert from the queue; one that is being sent is sent once.
    pub fn withdraw(&self, fingerprint: &str) {
        self.lock().queue.retain(|n| n.fingerprint != fingerprint);
    }

    /// The counts of this sink so far.
    pub fn facts(&self) -> SinkFacts {
        let state = self.lock();
        SinkFacts {
            name: self.name.clone(),
            queued: state.queue.len() as u64,
            ..state.facts.clone()
        }
    }

    /// Ends the thread once its queue is empty, or at its next failure.
    pub fn drain(&self) {
        self.lock().drain = true;
        self.bell.ring();
    }

    /// Like [`Sink::drain`], for a sink that is no longer configured; the rest is given up.
    pub fn remove(&self) {
        self.lock().removed = true;
        self.drain();
    }

    /// Takes what a removed sink has not sent.
    fn left(&self) -> VecDeque<Notification> {
        let mut state = self.lock();
        match state.removed {
            true => std::mem::take(&mut state.queue),
            false => VecDeque::new(),
        }
    }

    /// Ends the sink, unless it must stay after all. Returns whether it has ended.
    fn end(&self) -> bool {
        let mut state = self.lock();
        state.ended = state.drain;
        state.ended
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.state.lock()
    }

    /// What to do next. A resend that is due comes before the queue, unless the last attempt was
    /// one (`resent`): if resends keep failing, the queue continues between them.
    fn next(&self, resend_at: Option<Instant>, resent: bool) -> Next {
        let state = self.lock();
        let is_due = !state.drain && resend_at.is_some_and(|at| at <= Instant::now());
        match state.queue.front() {
            Some(first) if resent || !is_due => Next::Send(Box::new(first.clone())),
            _ if is_due => Next::Resend,
            _ if state.drain => Next::End,
            _ => Next::Wait,
        }
    }

    /// Keeps the alerts without notifications in the queue.
    fn keep_current(&self, alerts: &mut Vec<Notification>) {
        let state = self.lock();
        let waiting = state.queue.iter().map(|n| n.fingerprint.as_str());
        let waiting: BTreeSet<&str> = waiting.collect();
        alerts.retain(|n| !waiting.contains(n.fingerprint.as_str()));
    }

    /// Whether the thread must end, so that it does not pause.
    fn is_ending(&self) -> bool {
        self.lock().drain
    }

    /// Counts an attempt; returns whether it needs no other attempt. `key` is the key of the
    /// notification, `None` for a resend. A finished notification leaves the queue.
    fn finish(&self, key: Option<&str>, result: &Result<String, Failure>, now_ms: i64) -> bool {
        let mut state = self.lock();
        let facts = &mut state.facts;
        match result {
            Ok(_) => {
                facts.sent += u64::from(key.is_some());
                facts.last_success_ms = Some(now_ms);
                facts.trouble = None;
            }
            Err(Failure::Permanent(why)) => {
                facts.failed += 1;
                facts.trouble = Some(why.clone());
            }
            Err(later) => {
                facts.retried += 1;
                facts.trouble = Some(later.to_string());
                return false;
            }
        }
        // The notification may have been withdrawn meanwhile.
        let first = state.queue.front().map(|n| n.key.as_str());
        if key.is_some() && first == key {
            state.queue.pop_front();
        }
        true
    }
}

/// The thread of a sink.
pub struct Worker {
    sink: Arc<Sink>,
    receiver: Box<dyn Receiver>,
    /// Records deliveries.
    journal: Arc<Mutex<AlertJournal>>,
    /// Longest pause between two attempts.
    retry_max: Duration,
    /// Time between two resends of firing alerts.
    resend: Duration,
    /// The current time in ms since 1970.
    clock: fn() -> i64,
    /// Jitters pauses.
    rng: Rng,
    /// The next pause, before jitter.
    pause: Duration,
    /// No attempt before this.
    paused_until: Option<Instant>,
    /// The receiver asked for no attempt before this.
    asked_until: Option<Instant>,
    /// When firing alerts are sent again, if the receiver needs that.
    resend_at: Option<Instant>,
    /// The last attempt was a resend.
    resent: bool,
    /// The answer to the last attempt, which is not recorded yet.
    answered: Option<Answer>,
}

/// The answer to a notification, or to firing alerts that were sent again.
struct Answer {
    notification: Option<Box<Notification>>,
    result: Result<String, Failure>,
}

impl Worker {
    /// The thread of this sink, which sends to the receiver and records deliveries in the journal.
    /// `clock` returns ms since 1970, and `seed` is the seed of the jitter.
    pub fn new(
        sink: Arc<Sink>,
        options: &SinkOptions,
        receiver: Box<dyn Receiver>,
        journal: Arc<Mutex<AlertJournal>>,
        clock: fn() -> i64,
        seed: u64,
    ) -> Worker {
        Worker {
            sink,
            journal,
            retry_max: options.retry_max,
            resend: options.resend,
            clock,
            rng: Rng::new(seed),
            pause: PAUSE_MIN.min(options.retry_max),
            paused_until: None,
            asked_until: None,
            resend_at: receiver.needs_resend().then(Instant::now),
            resent: false,
            receiver,
            answered: None,
        }
    }

    /// Takes the options and the receiver of a reload. A pause is cut to the part that the previous
    /// receiver asked for.
    fn change(&mut self) {
        let mut state = self.sink.lock();
        let Some(receiver) = state.receiver.take() else {
            return;
        };
        (self.retry_max, self.resend) = (state.options.retry_max, state.options.resend);
        drop(state);
        self.pause = PAUSE_MIN.min(self.retry_max);
        self.paused_until = self.asked_until;
        self.resend_at = receiver.needs_resend().then(Instant::now);
        self.receiver = receiver;
    }

    /// Sends what is due.
    fn send(&mut self) -> Again {
        let now_ms = (self.clock)();
        let (notification, result) = match self.sink.next(self.resend_at, self.resent) {
            Next::End => return self.end(),
            Next::Wait => return self.resend_at.map_or(Again::Rung, Again::Until),
            Next::Send(notification) => {
                let result = self.receiver.send(&notification, now_ms);
                (Some(notification), result)
            }
            Next::Resend => match self.resend(now_ms) {
                Some(result) => (None, result),
                None => {
                    self.resend_at = Some(Instant::now() + self.resend);
                    return Again::Now;
                }
            },
        };
        self.answered = Some(Answer {
            notification,
            result,
        });
        Again::Now
    }

    /// Records an answer, and pauses after a failure.
    fn take(&mut self, answer: Answer) -> Again {
        let Answer {
            notification,
            result,
        } = answer;
        let name = &self.sink.name;
        if let Err(error) = &result {
            let key = notification.as_ref().map_or("", |n| n.key.as_str());
            crate::warn_limited!(sink = %name, key, %error, "alert not delivered");
        }
        let key = notification.as_ref().map(|n| n.key.as_str());
        self.resent = key.is_none();
        let done = self.sink.finish(key, &result, (self.clock)());
        match (&notification, done) {
            (Some(notification), true) => {
                let missed = result.is_err().then(|| Missed {
                    refused_ms: Some((self.clock)()),
                });
                self.record(notification, missed);
            }
            (None, true) => self.resend_at = Some(Instant::now() + self.resend),
            (_, false) => {
                let now = Instant::now();
                let asked = match &result {
                    Err(Failure::Busy(_, pause)) => (*pause).min(self.asked_max()),
                    _ => Duration::ZERO,
                };
                self.asked_until = Some(now + asked);
                let jittered = self.pause.mul_f64(0.5 + 0.5 * self.rng.uniform());
                let pause = jittered.max(asked);
                self.pause = (self.pause * 2).min(self.retry_max);
                self.paused_until = Some(now + pause);
                return Again::Now;
            }
        }
        self.pause = PAUSE_MIN.min(self.retry_max);
        Again::Now
    }

    /// Longest pause that the receiver can ask for.
    fn asked_max(&self) -> Duration {
        match self.resend_at {
            Some(_) => ASKED_MAX.min(2 * self.resend),
            None => ASKED_MAX,
        }
    }

    /// Ends the thread. Notifications left in a removed sink are given up.
    fn end(&self) -> Again {
        let left = self.sink.left();
        if !left.is_empty() {
            let (sink, left) = (&self.sink.name, left.len());
            tracing::warn!(%sink, left, "sink removed, alerts not delivered to it");
        }
        for notification in left {
            self.record(&notification, Some(Missed::default()));
        }
        match self.sink.end() {
            true => Again::Never,
            false => Again::Now,
        }
    }

    fn record(&self, notification: &Notification, missed: Option<Missed>) {
        let mut journal = self.journal.lock();
        journal.append_answer(&self.sink.name, notification, missed);
    }

    /// Sends the firing alerts of this sink again; `None` if there are none. Alerts that wait in
    /// the queue are left out: the receiver would learn of their newest change before the others.
    fn resend(&mut self, now_ms: i64) -> Option<Result<String, Failure>> {
        let mut firing: Vec<Notification> = {
            let journal = self.journal.lock();
            let state = journal.state();
            let ours = |n: &&Notification| state.was_notified(&n.fingerprint, &self.sink.name);
            state.firing().filter(ours).cloned().collect()
        };
        self.sink.keep_current(&mut firing);
        (!firing.is_empty()).then(|| self.receiver.resend(&firing, now_ms))
    }
}

impl Steps for Worker {
    /// Makes an attempt or records its answer, as two steps.
    fn step(&mut self) -> Again {
        if let Some(answer) = self.answered.take() {
            return self.take(answer);
        }
        self.change();
        if let Some(until) = self.paused_until {
            if self.sink.is_ending() {
                return self.end();
            }
            if Instant::now() < until {
                return Again::Until(until);
            }
            self.paused_until = None;
        }
        self.send()
    }
}

#[cfg(test)]
mod tests;
