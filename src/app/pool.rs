//! The threads that decode and judge with the engine's.
//!
//! `threads` in `[limits]` is the number of threads that work at once, with the engine's. They
//! decode the records of a batch ([`super::ingest::decode_threads`]) and judge streams
//! ([`Runtime::map`]), at different times, so one pool serves both. The engine's thread waits
//! during judging, so the pool itself has `threads` threads.

use super::clock;
use super::error::AppError;
use crate::config::bounds::THREADS_USUAL;
use crate::judge::Runtime;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::num::NonZero;
use std::sync::Arc;

/// Threads for decoding and judging. See the module.
#[derive(Debug, Clone, Default)]
pub struct Pool {
    threads: Option<Arc<ThreadPool>>,
    /// Threads that decode beside the engine's.
    decoding: usize,
}

impl Pool {
    /// A pool with this many working threads. 0 means the number of cores, at most
    /// [`THREADS_USUAL`], and one less while a batch is decoded, because the client of the broker
    /// needs a core too.
    pub fn start(threads: usize) -> Result<Pool, AppError> {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let (all, decoding) = match threads {
            0 => {
                let usual = |n: usize| n.clamp(1, THREADS_USUAL);
                (usual(cores), usual(cores - 1))
            }
            n => (n, n),
        };
        if all == 1 {
            return Ok(Pool::default());
        }
        let pool = ThreadPoolBuilder::new()
            .num_threads(all)
            .thread_name(|i| format!("pool-{i}"))
            .build();
        let failed = |e| AppError::Unavailable(format!("no threads to decode and judge: {e}"));
        Ok(Pool {
            threads: Some(Arc::new(pool.map_err(failed)?)),
            decoding: decoding - 1,
        })
    }

    /// The threads, and how many of them decode beside the engine's; `None` if the engine's thread
    /// decodes alone.
    pub fn decoders(&self) -> Option<(&Arc<ThreadPool>, usize)> {
        let pool = self.threads.as_ref().filter(|_| self.decoding > 0);
        pool.map(|pool| (pool, self.decoding))
    }

    /// The runtime on which streams are judged.
    pub fn runtime(&self) -> Runtime {
        Runtime {
            stopwatch: Some(clock::stopwatch),
            threads: self.threads.clone(),
            ..Runtime::default()
        }
    }
}
