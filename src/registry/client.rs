//! The cache of schemas, and the thread that fills it.

use super::fetch::{Fetch, FetchError, RegistryOptions, Schema};
use super::host::{Fetches, Host, Threads};
use crate::telemetry::facts::SchemaRequests;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// First pause after a failure; a registry that restarts is back within seconds.
pub const PAUSE_MIN: Duration = Duration::from_millis(250);
/// Longest pause between two tries, and so the longest delay after an outage.
pub const PAUSE_MAX: Duration = Duration::from_secs(10);
/// How long an absent schema is not fetched again. A producer registers before it sends, but a
/// replica of the registry may lag.
pub const ABSENT_FOR: Duration = Duration::from_secs(60);
/// How long records of an id wait if the registry answers its request with 403, 5xx or something
/// that is not a schema, while it answers other requests.
pub const DOUBTFUL_FOR: Duration = Duration::from_secs(30);
/// How long records of an id wait if only its request is not answered in time, or is answered with
/// 408 or 429. Most registries that ask for patience have recovered by then.
pub const UNANSWERED_FOR: Duration = Duration::from_secs(600);
/// Most ids that are fetched in advance at a time.
pub const AHEAD_MAX: usize = 256;
/// Most schemas and absent ids to keep; with more, all are dropped and fetched again as needed.
pub const KNOWN_MAX: usize = 10_000;

/// The result of looking up the schema of an id.
#[derive(Debug, Clone)]
pub enum Lookup {
    /// The schema.
    Known(Arc<Schema>),
    /// The registry has none; this is its message.
    Absent(String),
    /// It is being fetched.
    Waiting,
}

/// A handle of the client; the thread ends when the last handle is dropped.
pub struct Registry {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    woken: Condvar,
}

#[derive(Default)]
struct State {
    /// The answer of the registry about each id, and its time.
    known: HashMap<u32, (Lookup, Instant)>,
    /// Ids to fetch, in this order.
    wanted: VecDeque<u32>,
    /// Ids to fetch in advance, while none of `wanted` is due.
    ahead: VecDeque<u32>,
    counts: SchemaRequests,
    stop: bool,
}

impl State {
    /// The known answer about an id, unless it must be fetched.
    fn known(&self, id: u32) -> Option<Lookup> {
        let (known, since) = self.known.get(&id)?;
        let holds = matches!(known, Lookup::Known(_)) || since.elapsed() < ABSENT_FOR;
        holds.then(|| known.clone())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Registry {
    /// Starts the thread. Makes no request yet.
    pub fn new(options: RegistryOptions) -> io::Result<Registry> {
        Registry::on(Arc::new(Threads), options)
    }

    /// Like [`Registry::new`], on this host.
    pub fn on(host: Arc<dyn Host>, options: RegistryOptions) -> io::Result<Registry> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            woken: Condvar::new(),
        });
        let fetcher = Fetcher {
            shared: Arc::clone(&shared),
            host: Arc::clone(&host),
            options,
            retries: HashMap::new(),
        };
        host.run(Box::new(fetcher))?;
        Ok(Registry { shared })
    }

    /// Looks up the schema of `id`, and requests it if it is unknown; never waits.
    pub fn get(&self, id: u32) -> Lookup {
        let mut state = self.shared.lock();
        if let Some(known) = state.known(id) {
            return known;
        }
        if !state.wanted.contains(&id) {
            state.ahead.retain(|ahead| *ahead != id);
            state.wanted.push_back(id);
            self.shared.woken.notify_all();
        }
        Lookup::Waiting
    }

    /// Fetches the schema of `id` in advance, unless [`AHEAD_MAX`] others wait already.
    pub fn fetch_ahead(&self, id: u32) {
        let mut state = self.shared.lock();
        let waits = state.wanted.contains(&id) || state.ahead.contains(&id);
        if state.ahead.len() < AHEAD_MAX && !waits && state.known(id).is_none() {
            state.ahead.push_back(id);
            self.shared.woken.notify_all();
        }
    }

    /// Counts of requests so far.
    pub fn counts(&self) -> SchemaRequests {
        self.shared.lock().counts
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.woken.notify_all();
    }
}

/// A schema or an error, and the time since which the registry answers other requests.
type Settled = (Result<Schema, FetchError>, Option<Instant>);

/// An id whose request failed.
#[derive(Debug, Clone, Copy)]
struct Retry {
    /// Time since which the registry answers other requests.
    others: Option<Instant>,
    /// Time of the next try.
    at: Instant,
    /// The pause between the last try and `at`.
    pause: Duration,
}

/// Fetches the schemas that a [`Registry`] requests, until the registry is dropped.
struct Fetcher {
    shared: Arc<Shared>,
    host: Arc<dyn Host>,
    options: RegistryOptions,
    retries: HashMap<u32, Retry>,
}

impl Fetches for Fetcher {
    fn wait(&self) -> bool {
        let mut state = self.shared.lock();
        while !state.stop {
            let Err(wait) = self.next(&state) else {
                return true;
            };
            self.shared.woken.wait_for(&mut state, wait);
        }
        false
    }

    fn due_in(&self) -> Option<Duration> {
        let state = self.shared.lock();
        (!state.stop).then(|| self.next(&state).err().unwrap_or_default())
    }

    fn step(&mut self) {
        let next = self.next(&self.shared.lock());
        let Ok(id) = next else {
            return;
        };
        let fetched = self.connect().and_then(|fetch| fetch.schema(id));
        let recent = |r: &&Retry| r.at.elapsed() < ABSENT_FOR * 2;
        let others = (self.retries.get(&id).filter(recent)).and_then(|r| r.others);
        let (fetched, others) = match fetched {
            Ok(schema) => (Ok(schema), None),
            Err(error) => self.settle(error, others),
        };
        let failed = matches!(fetched, Err(FetchError::Failed(_)));
        if failed || others.is_some() {
            if self.retries.len() >= KNOWN_MAX {
                self.retries.clear();
            }
            let before = self.retries.get(&id).filter(|_| failed);
            let pause = before.map_or(PAUSE_MIN, |r| (r.pause * 2).min(PAUSE_MAX));
            let at = Instant::now() + pause;
            self.retries.insert(id, Retry { others, at, pause });
        } else {
            self.retries.remove(&id);
        }
        store(&self.shared, id, fetched);
    }
}

impl Fetcher {
    fn connect(&self) -> Result<Fetch, FetchError> {
        Ok(Fetch::new(&self.options, self.host.connect(&self.options)?))
    }

    /// Decides whether an error concerns only this id; if so, the id counts as absent, and its
    /// records are rejected. This needs a registry that answers other requests, and an error that
    /// repeats or, if it is doubtful, lasts. An earlier outage does not count, because a registry
    /// that comes back may answer other requests first. Once an error concerns the id alone, it
    /// still does at the next fetch, if that comes soon and nothing else has happened.
    fn settle(&self, error: FetchError, others: Option<Instant>) -> Settled {
        let (why, holds) = match error {
            FetchError::Refused(why) => (why, PAUSE_MIN),
            FetchError::Doubtful(why) => (why, DOUBTFUL_FOR),
            FetchError::Unanswered(why) => (why, UNANSWERED_FOR),
            other => return (Err(other), None),
        };
        if self.connect().and_then(|fetch| fetch.probe_all()).is_err() {
            return (Err(FetchError::Failed(why)), None);
        }
        let since = others.unwrap_or_else(Instant::now);
        if since.elapsed() < holds {
            return (Err(FetchError::Failed(why)), Some(since));
        }
        let why = format!("{why}; the registry answers other requests");
        (Err(FetchError::Absent(why)), Some(since))
    }

    /// The next id to fetch: one that has not failed, or is due again. Otherwise the time until one
    /// is due.
    fn next(&self, state: &State) -> Result<u32, Duration> {
        let now = Instant::now();
        let due = |id: &&u32| self.retries.get(*id).is_none_or(|r| r.at <= now);
        let all = || state.wanted.iter().chain(&state.ahead);
        if let Some(id) = all().find(due) {
            return Ok(*id);
        }
        let soonest = all().filter_map(|id| self.retries.get(id));
        let wait = soonest.map(|r| r.at.saturating_duration_since(now)).min();
        Err(wait.unwrap_or(PAUSE_MAX))
    }
}

/// Stores the result of a request.
fn store(shared: &Shared, id: u32, fetched: Result<Schema, FetchError>) {
    let mut state = shared.lock();
    if state.known.len() >= KNOWN_MAX {
        state.known.clear();
    }
    let needed = state.wanted.contains(&id);
    state.wanted.retain(|wanted| *wanted != id);
    state.ahead.retain(|ahead| *ahead != id);
    let now = Instant::now();
    match fetched {
        Ok(schema) => {
            tracing::info!(schema = id, kind = ?schema.kind, "schema fetched");
            state.counts.found += 1;
            let known = Lookup::Known(Arc::new(schema));
            state.known.insert(id, (known, now));
        }
        Err(FetchError::Absent(why)) => {
            crate::warn_limited!(schema = id, why, "schema unknown to the registry");
            state.counts.absent += 1;
            state.known.insert(id, (Lookup::Absent(why), now));
        }
        Err(error) => {
            let why = error.to_string();
            crate::warn_limited!(schema = id, why, "schema not fetched; its records wait");
            state.counts.failed += 1;
            // It goes to the end of the queue, so that a schema that always fails does not block
            // the others.
            match needed {
                true => state.wanted.push_back(id),
                false => state.ahead.push_back(id),
            }
        }
    }
}
