//! What is known of schemas, and the thread that finds out the rest.

use super::fetch::{Fetch, FetchError, RegistryOptions, Schema};
use super::{ABSENT_FOR, KNOWN_MAX, PAUSE_MAX, PAUSE_MIN};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What is known of an id.
#[derive(Debug, Clone)]
pub enum Answer {
    /// Its schema.
    Known(Arc<Schema>),
    /// The registry has none, in its words.
    Absent(String),
    /// Not known yet; it is being asked for.
    Waiting,
}

/// How requests ended. References count with the schema that needs them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// A schema came.
    pub found: u64,
    /// The registry has none.
    pub absent: u64,
    /// No answer, or none that could be used.
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
    /// In the order in which they are asked for next.
    wanted: VecDeque<u32>,
    counts: Counts,
    trouble: Option<String>,
    stop: bool,
}

enum Entry {
    Known(Arc<Schema>),
    Absent(String, Instant),
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two statements; a panic elsewhere cannot break it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registry {
    /// Starts the thread; asks nothing yet.
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

    /// What is known of the schema of `id`, at once.
    pub fn ask(&self, id: u32) -> Answer {
        let mut state = self.shared.lock();
        match state.known.get(&id) {
            Some(Entry::Known(schema)) => return Answer::Known(Arc::clone(schema)),
            Some(Entry::Absent(why, told)) if told.elapsed() < ABSENT_FOR => {
                return Answer::Absent(why.clone());
            }
            _ => {}
        }
        if !state.wanted.contains(&id) {
            state.wanted.push_back(id);
            self.shared.woken.notify_all();
        }
        Answer::Waiting
    }

    /// How requests ended so far.
    pub fn counts(&self) -> Counts {
        self.shared.lock().counts
    }

    /// Why the last request failed, while no later one has succeeded.
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
        settle(shared, id, fetched);
        if failed {
            rest(shared, pause);
            pause = (pause * 2).min(PAUSE_MAX);
        } else {
            pause = PAUSE_MIN;
        }
    }
}

/// The next id that is wanted; `None` at the end.
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

fn settle(shared: &Shared, id: u32, fetched: Result<Schema, FetchError>) {
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
            // To the end of the row: one that fails for itself must not hold up the others.
            state.wanted.push_back(id);
        }
    }
}

/// Waits, but not for the end of the pause when all is over.
fn rest(shared: &Shared, pause: Duration) {
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
