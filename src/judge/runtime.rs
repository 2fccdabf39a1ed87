//! What a process lends to judges: a stopwatch, threads, and a sign of life.
//!
//! The core reads no clock and starts no thread; the process provides both. Each stream is judged
//! separately, from its own panes, so threads divide the streams among themselves without a lock,
//! and the results are put into the order of the streams. Judgements do not depend on the stopwatch
//! or the threads.
//!
//! Judging all streams up to a watermark that has moved far may take minutes. So the process gets a
//! sign of life after each stream.

use rayon::ThreadPool;
use rayon::prelude::*;
use std::fmt;
use std::sync::Arc;

/// Nanoseconds since some moment.
pub type Stopwatch = fn() -> u64;

/// Fewest items that are shared: with less to do, waking a thread costs more than it saves.
const SHARED_MIN: usize = 16;

/// Shows, from any thread, that judging continues.
#[derive(Clone)]
pub struct Alive(Arc<dyn Fn() + Send + Sync>);

impl Alive {
    /// Shows it by calling `show`.
    pub fn new(show: impl Fn() + Send + Sync + 'static) -> Alive {
        Alive(Arc::new(show))
    }
}

impl fmt::Debug for Alive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Alive")
    }
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Runtime {
    /// Times evaluations, if they are to be timed.
    pub stopwatch: Option<Stopwatch>,
    /// Is called after each stream.
    pub alive: Option<Alive>,
    /// Threads that judge in parallel; without them the caller's thread judges.
    pub threads: Option<Arc<ThreadPool>>,
}

impl Runtime {
    /// Applies `f` to each item; the results are in the order of the items.
    pub fn map<T: Send, R: Send>(&self, items: Vec<T>, f: impl Fn(T) -> R + Send + Sync) -> Vec<R> {
        let f = |item: T| {
            let done = f(item);
            self.alive.iter().for_each(|Alive(show)| show());
            done
        };
        match &self.threads {
            Some(pool) if items.len() >= SHARED_MIN => {
                pool.install(|| items.into_par_iter().map(f).collect())
            }
            _ => items.into_iter().map(f).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_sign_of_life_follows_each_item() {
        let shown = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&shown);
        let runtime = Runtime {
            alive: Some(Alive::new(move || {
                count.fetch_add(1, Ordering::Relaxed);
            })),
            ..Runtime::default()
        };
        let before = |_: usize| shown.load(Ordering::Relaxed);
        assert_eq!(runtime.map(vec![7, 8, 9], before), [0, 1, 2]);
        assert_eq!(shown.load(Ordering::Relaxed), 3);
    }
}
