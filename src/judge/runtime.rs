//! What a process lends to those that judge: a stopwatch and threads.
//!
//! The core reads no clock and starts no thread; the process provides both. Each stream is judged
//! separately, from its own panes, so threads divide the streams among themselves without a lock,
//! and the results are put into the order of the streams. Judgements do not depend on the stopwatch
//! or the threads.

use rayon::ThreadPool;
use rayon::prelude::*;
use std::sync::Arc;

/// Nanoseconds since some moment.
pub type Stopwatch = fn() -> u64;

/// Fewest items that are shared: with less to do, waking a thread costs more than it saves.
const SHARED_MIN: usize = 16;

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Runtime {
    /// Times evaluations, if anybody wants to know.
    pub stopwatch: Option<Stopwatch>,
    /// Judge beside each other; the caller's thread does without them.
    pub threads: Option<Arc<ThreadPool>>,
}

impl Runtime {
    /// `f` of each item, in the order of the items.
    pub fn map<T: Send, R: Send>(&self, items: Vec<T>, f: impl Fn(T) -> R + Send + Sync) -> Vec<R> {
        match &self.threads {
            Some(pool) if items.len() >= SHARED_MIN => {
                pool.install(|| items.into_par_iter().map(f).collect())
            }
            _ => items.into_iter().map(f).collect(),
        }
    }
}
