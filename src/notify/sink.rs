//! One sink: a bounded queue, and the thread that empties it.
//!
//! The thread takes the oldest notice, tells it until it is taken or refused for good, and only then the next: order is kept by there being
//! never two on their way. Between two tries it waits, first [`PAUSE_MIN`], then twice as long each time up to the sink's
//! `retry_max`, and of that a share between a half and all, by a generator that is seeded from outside: many processes whose
//! receiver came back must not all call at once. It never gives up on a notice that may be taken another time; what bounds the wait is the
//! queue, which refuses the newest when it is full and counts it.

use super::ledger::{Entry, Ledger, State};
use super::notice::{Notice, Status};
use super::options::SinkOptions;
use super::receiver::{Failure, Receiver};
use crate::alert::Matcher;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// First pause after a failure: a receiver that is restarted is back within seconds.
pub const PAUSE_MIN: Duration = Duration::from_millis(500);

/// What a sink has done so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Notices taken.
    pub sent: u64,
    /// Notices refused for good by the receiver.
    pub failed: u64,
    /// Attempts that failed and were, or will be, made again.
    pub retried: u64,
    /// Notices that the full queue refused.
    pub dropped: u64,
    /// Notices that wait.
    pub queued: u64,
    /// When the receiver last took something.
    pub last_success_ms: Option<i64>,
    /// Why the last attempt failed, while none has succeeded since.
    pub trouble: Option<String>,
}

#[derive(Default)]
struct Queue {
    queue: VecDeque<Notice>,
    counts: Counts,
    /// To end once the queue is empty, or at the next failure.
    stop: bool,
    /// To end after the present attempt.
    halt: bool,
}

/// The queue, shared by those who fill it and the thread that empties it.
pub struct Sink {
    /// Its name.
    pub name: String,
    matchers: Vec<Matcher>,
    resolved: bool,
    queue_max: usize,
    state: Mutex<Queue>,
    woken: Condvar,
}

/// What is due.
enum Due {
    Notice(Box<Notice>),
    Reminder,
    End,
}

impl Sink {
    /// A sink that has still to tell these.
    pub fn new(options: &SinkOptions, waiting: Vec<Notice>) -> Sink {
        Sink::after(options, waiting, Counts::default())
    }

    /// The same that goes on with the counts of one before.
    pub fn after(options: &SinkOptions, waiting: Vec<Notice>, counts: Counts) -> Sink {
        let queue: VecDeque<Notice> = waiting.into();
        Sink {
            name: options.name.clone(),
            matchers: options.matchers.clone(),
            resolved: options.resolved,
            queue_max: options.queue_max,
            state: Mutex::new(Queue {
                queue,
                counts,
                ..Queue::default()
            }),
            woken: Condvar::new(),
        }
    }

    /// Whether the notice is for this sink: what fires goes by its labels, or those that it had when it was told before; what ended
    /// goes to those who were told that it fires.
    pub fn wants(&self, notice: &Notice, told: &State) -> bool {
        if notice.status == Status::Resolved {
            return self.resolved && told.was_told(&notice.fingerprint, &self.name);
        }
        self.fits(notice)
    }

    /// Whether a notice that an alert fires is for this sink.
    pub fn fits(&self, notice: &Notice) -> bool {
        let before = notice.was.map(|severity| Notice {
            severity,
            ..notice.clone()
        });
        let fits = |n: &Notice| Matcher::all(&self.matchers, &n.labels());
        fits(notice) || before.as_ref().is_some_and(fits)
    }

    /// Puts a notice behind the others; says whether there was room.
    pub fn push(&self, notice: Notice) -> bool {
        let mut state = self.lock();
        if state.queue.len() >= self.queue_max {
            state.counts.dropped += 1;
            return false;
        }
        state.queue.push_back(notice);
        self.woken.notify_all();
        true
    }

    /// Counts so far.
    pub fn counts(&self) -> Counts {
        let state = self.lock();
        Counts {
            queued: state.queue.len() as u64,
            ..state.counts.clone()
        }
    }

    /// Lets the thread end once its queue is empty, or at its next failure.
    pub fn stop(&self) {
        self.lock().stop = true;
        self.woken.notify_all();
    }

    /// Lets the thread end after the attempt that it makes, and leave the rest in the queue.
    pub fn halt(&self) {
        self.lock().halt = true;
        self.woken.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // The state is whole between any two statements; a panic elsewhere cannot break it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for something to do.
    fn due(&self, remind_at: Option<Instant>) -> Due {
        let mut state = self.lock();
        loop {
            if state.halt {
                return Due::End;
            }
            if let Some(notice) = state.queue.front() {
                return Due::Notice(Box::new(notice.clone()));
            }
            if state.stop {
                return Due::End;
            }
            let left = remind_at.map(|at| at.saturating_duration_since(Instant::now()));
            let woken = match left {
                Some(left) if left.is_zero() => return Due::Reminder,
                Some(left) => {
                    let woken = self.woken.wait_timeout(state, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let woken = self.woken.wait(state);
                    woken.unwrap_or_else(PoisonError::into_inner)
                }
            };
            state = woken;
        }
    }

    /// Waits, but not for the end of the pause when all is over; says whether to go on.
    fn rest(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        let mut state = self.lock();
        while !state.stop && !state.halt {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            let woken = self.woken.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }

    /// Counts an attempt; a notice that is done with leaves the queue. Says whether it is.
    fn settle(&self, notice: bool, result: &Result<String, Failure>, now_ms: i64) -> bool {
        let mut state = self.lock();
        let counts = &mut state.counts;
        match result {
            Ok(_) => {
                counts.sent += u64::from(notice);
                counts.last_success_ms = Some(now_ms);
                counts.trouble = None;
            }
            Err(Failure::Never(why)) => {
                counts.failed += 1;
                counts.trouble = Some(why.clone());
            }
            Err(Failure::Later(why)) => {
                counts.retried += 1;
                counts.trouble = Some(why.clone());
                return false;
            }
        }
        if notice {
            state.queue.pop_front();
        }
        true
    }
}

/// What the thread of a sink works with.
pub struct Worker {
    /// Its sink.
    pub sink: Arc<Sink>,
    /// Who is told.
    pub receiver: Receiver,
    /// Where it is written down.
    pub ledger: Arc<Mutex<Ledger>>,
    /// Longest pause between two attempts.
    pub retry_max: Duration,
    /// How often to remind.
    pub resend: Duration,
    /// Milliseconds since 1970, now.
    pub clock: fn() -> i64,
    /// State of the generator of the jitter.
    pub seed: u64,
}

impl Worker {
    /// Works until the sink is stopped.
    pub fn run(mut self) {
        let mut pause = PAUSE_MIN.min(self.retry_max);
        let reminds = self.receiver.forgets();
        let mut remind_at = reminds.then(Instant::now);
        loop {
            let now_ms = (self.clock)();
            let (notice, result) = match self.sink.due(remind_at) {
                Due::End => return,
                Due::Notice(notice) => {
                    let result = self.receiver.tell(&self.sink.name, &notice, now_ms);
                    (Some(notice), result)
                }
                Due::Reminder => match self.remind(now_ms) {
                    Some(result) => (None, result),
                    None => {
                        remind_at = Some(Instant::now() + self.resend);
                        continue;
                    }
                },
            };
            let name = &self.sink.name;
            if let Err(error) = &result {
                let key = notice.as_ref().map_or("", |n| n.key.as_str());
                crate::warn_limited!(sink = %name, key, %error, "alert not delivered");
            }
            let done = self.sink.settle(notice.is_some(), &result, (self.clock)());
            match (&notice, done) {
                (Some(notice), true) => self.write_down(notice, result.is_ok()),
                (None, true) => remind_at = Some(Instant::now() + self.resend),
                (_, false) => {
                    let rest = self.jittered(pause);
                    if !self.sink.rest(rest) {
                        return;
                    }
                    pause = (pause * 2).min(self.retry_max);
                    continue;
                }
            }
            pause = PAUSE_MIN.min(self.retry_max);
        }
    }

    fn write_down(&self, notice: &Notice, delivered: bool) {
        let entry = Entry::Done {
            sink: self.sink.name.clone(),
            key: notice.key.clone(),
            delivered,
        };
        // A fault is counted and logged there.
        let _ = lock(&self.ledger).enter(&entry, false);
    }

    /// Says again what fires and was told to this sink, if anything does.
    fn remind(&mut self, now_ms: i64) -> Option<Result<String, Failure>> {
        let firing: Vec<Notice> = {
            let ledger = lock(&self.ledger);
            let state = ledger.state();
            let ours = |n: &&Notice| state.was_told(&n.fingerprint, &self.sink.name);
            state.firing().filter(ours).cloned().collect()
        };
        (!firing.is_empty()).then(|| self.receiver.remind(&firing, now_ms))
    }

    /// From a half of the pause to all of it (splitmix64).
    fn jittered(&mut self, pause: Duration) -> Duration {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.seed;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let share = ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64;
        pause.mul_f64(0.5 + 0.5 * share)
    }
}

/// The ledger is whole between any two calls.
pub(super) fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alert::Severity;
    use crate::notify::notice::Links;
    use crate::notify::options::Kind;

    fn options(name: &str, matchers: &[&str], queue_max: usize) -> SinkOptions {
        SinkOptions {
            name: name.to_owned(),
            kind: Kind::Webhook,
            address: String::new(),
            secret: None,
            authorization: None,
            ca_file: None,
            matchers: matchers
                .iter()
                .map(|m| m.parse().expect("a matcher"))
                .collect(),
            resolved: true,
            timeout: Duration::from_secs(1),
            retry_max: Duration::from_secs(1),
            resend: Duration::from_secs(1),
            queue_max,
            dry_run: false,
        }
    }

    fn notice(at_ms: i64, severity: Severity, was: Option<Severity>) -> Notice {
        let links = Links {
            page: String::new(),
            runbook: String::new(),
        };
        Notice {
            severity,
            was,
            ..Notice::trial(at_ms, links)
        }
    }

    #[test]
    fn what_ended_goes_to_those_who_were_told_that_it_fires_and_to_nobody_else() {
        let pager = Sink::new(&options("pager", &["severity=page"], 9), Vec::new());
        let all = Sink::new(&options("all", &[], 9), Vec::new());
        let mut state = State::default();
        let mut told = Vec::new();
        let warned = notice(1, Severity::Warn, None);
        let paged = notice(2, Severity::Page, Some(Severity::Warn));
        let calmer = notice(3, Severity::Warn, Some(Severity::Page));
        let stories = [
            vec![warned.clone(), warned.ended(4, "well")],
            vec![
                warned.clone(),
                paged,
                calmer.clone(),
                calmer.ended(5, "well"),
            ],
        ];
        for notice in stories.iter().flatten() {
            let wanting: Vec<&Sink> = [&pager, &all]
                .into_iter()
                .filter(|s| s.wants(notice, &state))
                .collect();
            told.push(
                wanting
                    .iter()
                    .map(|s| s.name.as_str())
                    .collect::<Vec<_>>()
                    .join(" "),
            );
            state.apply(&Entry::Issued {
                notice: Box::new(notice.clone()),
                sinks: wanting.iter().map(|s| s.name.clone()).collect(),
            });
        }
        let both = "pager all";
        assert_eq!(told, ["all", "all", "all", both, both, both]);
    }

    #[test]
    fn a_full_queue_refuses_the_newest_and_counts_it() {
        let sink = Sink::new(&options("s", &[], 2), vec![notice(1, Severity::Warn, None)]);
        assert!(sink.push(notice(2, Severity::Warn, None)));
        assert!(!sink.push(notice(3, Severity::Warn, None)));
        let counts = sink.counts();
        assert_eq!((counts.queued, counts.dropped), (2, 1));
        let Due::Notice(first) = sink.due(None) else {
            panic!("a notice is due");
        };
        assert_eq!(first.at_ms, 1);
        assert!(!sink.settle(true, &Err(Failure::Later("away".to_owned())), 5));
        assert_eq!(sink.counts().queued, 2, "what may be taken later stays");
        assert!(sink.settle(true, &Err(Failure::Never("no".to_owned())), 6));
        assert!(sink.settle(true, &Ok("200".to_owned()), 7));
        let counts = sink.counts();
        let seen = (counts.sent, counts.failed, counts.retried, counts.queued);
        assert_eq!(seen, (1, 1, 1, 0));
        assert_eq!((counts.last_success_ms, counts.trouble), (Some(7), None));
    }
}
