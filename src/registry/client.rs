//! The cache of schemas, and the thread that fills it.

use super::fetch::{Fetch, FetchError, RegistryOptions, Schema};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// First pause after a failure; a registry that restarts is back within seconds.
pub const PAUSE_MIN: Duration = Duration::from_millis(250);
/// Longest pause between two tries; the longest delay after an outage ends.
pub const PAUSE_MAX: Duration = Duration::from_secs(10);
/// How long an absent schema is not fetched again. A producer registers before it sends, but a
/// replica of the registry may lag.
pub const ABSENT_FOR: Duration = Duration::from_secs(60);
/// Most schemas and absent ids that are kept; beyond, all are dropped and fetched again as needed.
pub const KNOWN_MAX: usize = 10_000;

/// What is known of the schema of an id.
#[derive(Debug, Clone)]
pub enum Lookup {
    /// The schema.
    Known(Arc<Schema>),
    /// The registry has none; its message.
    Absent(String),
    /// It is being fetched.
    Waiting,
}

/// Requests by result. References count with the schema that needs them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// The schema was returned.
    pub found: u64,
    /// The registry has none.
    pub absent: u64,
    /// There was no response, or an unusable one.
    pub failed: u64,
}

/// A handle; the thread ends when the last one is dropped.
pub struct Registry {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    woken: Condvar,
}

#[derive(Default)]
struct State {
    known: HashMap<u32, Entry>,
    /// Ids to fetch, in this order.
    wanted: VecDeque<u32>,
    counts: RequestCounts,
    trouble: Option<String>,
    stop: bool,
}

enum Entry {
    Known(Arc<Schema>),
    Absent(String, Instant),
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent between any two statements; a panic elsewhere cannot break it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registry {
    /// Starts the thread, without any request.
    pub fn new(options: RegistryOptions) -> io::Result<Registry> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            woken: Condvar::new(),
        });
        let theirs = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("registry".to_owned())
            .spawn(move || work(&theirs, &options))?;
        Ok(Registry { shared })
    }

    /// What is known of the schema of `id`; never waits.
    pub fn get(&self, id: u32) -> Lookup {
        let mut state = self.shared.lock();
        match state.known.get(&id) {
            Some(Entry::Known(schema)) => return Lookup::Known(Arc::clone(schema)),
            Some(Entry::Absent(why, since)) if since.elapsed() < ABSENT_FOR => {
                return Lookup::Absent(why.clone());
            }
            _ => {}
        }
        if !state.wanted.contains(&id) {
            state.wanted.push_back(id);
            self.shared.woken.notify_all();
        }
        Lookup::Waiting
    }

    /// Requests so far.
    pub fn counts(&self) -> RequestCounts {
        self.shared.lock().counts
    }

    /// Why the last request failed, until a later one succeeds.
    pub fn trouble(&self) -> Option<String> {
        self.shared.lock().trouble.clone()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.woken.notify_all();
    }
}

fn work(shared: &Shared, options: &RegistryOptions) {
    let mut pause = PAUSE_MIN;
    while let Some(id) = next(shared) {
        let fetched = Fetch::new(options).and_then(|fetch| fetch.schema(id));
        let failed = matches!(fetched, Err(FetchError::Failed(_)));
        store(shared, id, fetched);
        if failed {
            sleep(shared, pause);
            pause = (pause * 2).min(PAUSE_MAX);
        } else {
            pause = PAUSE_MIN;
        }
    }
}

/// The next id to fetch; `None` at the end.
fn next(shared: &Shared) -> Option<u32> {
    let mut state = shared.lock();
    loop {
        if state.stop {
            return None;
        }
        if let Some(id) = state.wanted.front() {
            return Some(*id);
        }
        let woken = shared.woken.wait(state);
        state = woken.unwrap_or_else(PoisonError::into_inner);
    }
}

/// Stores the result of a request.
fn store(shared: &Shared, id: u32, fetched: Result<Schema, FetchError>) {
    let mut state = shared.lock();
    if state.known.len() >= KNOWN_MAX {
        state.known.clear();
    }
    state.wanted.retain(|wanted| *wanted != id);
    match fetched {
        Ok(schema) => {
            tracing::info!(schema = id, kind = ?schema.kind, "schema fetched");
            state.counts.found += 1;
            state.trouble = None;
            state.known.insert(id, Entry::Known(Arc::new(schema)));
        }
        Err(FetchError::Absent(why)) => {
            crate::warn_limited!(schema = id, why, "schema unknown to the registry");
            state.counts.absent += 1;
            state.trouble = None;
            state.known.insert(id, Entry::Absent(why, Instant::now()));
        }
        Err(FetchError::Failed(why)) => {
            crate::warn_limited!(schema = id, why, "schema not fetched; its records wait");
            state.counts.failed += 1;
            state.trouble = Some(why);
            // To the end of the queue: a schema that always fails must not block the others.
            state.wanted.push_back(id);
        }
    }
}

/// Sleeps until the pause or the registry ends.
fn sleep(shared: &Shared, pause: Duration) {
    let until = Instant::now() + pause;
    let mut state = shared.lock();
    while !state.stop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        let woken = shared.woken.wait_timeout(state, left);
        state = woken.unwrap_or_else(PoisonError::into_inner).0;
    }
}
