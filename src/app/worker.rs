//! Work that runs beside the engine's thread, because a disk or a broker may take longer than a
//! session.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::error::AppError;

/// Starts a thread of this name.
pub(super) fn spawn(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, AppError> {
    let thread = thread::Builder::new().name(name.to_owned());
    thread.spawn(work).map_err(AppError::no_thread)
}

/// One piece of work. It hands over its result itself.
pub type Job = Box<dyn FnOnce() + Send>;

/// Does one job after the other.
pub trait Worker: Send {
    /// Hands a job over; `false` if the worker is gone.
    fn start(&mut self, job: Job) -> bool;

    /// Whether the results of all jobs may be there within this time, so that the caller should
    /// wait for them.
    fn ends_within(&mut self, within: Duration) -> bool;
}

/// Makes workers.
pub trait Workers: Debug + Send + Sync {
    /// A worker of this name. When it is dropped, it first finishes its jobs.
    fn worker(&self, name: &str) -> Result<Box<dyn Worker>, AppError>;
}

/// A worker with at most one job under way, and the result of that job.
///
/// If a job panics, so does the thread that takes its result: what the job had not yet written is
/// lost, so the process ends and restarts from what was written before.
pub struct Background<T> {
    worker: Box<dyn Worker>,
    outbox: Sender<thread::Result<T>>,
    results: Receiver<thread::Result<T>>,
    busy: bool,
}

impl<T: Send + 'static> Background<T> {
    /// Nothing is under way.
    pub fn new(worker: Box<dyn Worker>) -> Background<T> {
        let (outbox, results) = channel();
        Background {
            worker,
            outbox,
            results,
            busy: false,
        }
    }

    /// Whether a job is under way.
    pub fn busy(&self) -> bool {
        self.busy
    }

    /// Hands a job over. It is an error to call this while [`busy`](Background::busy).
    pub fn start(&mut self, job: impl FnOnce() -> T + Send + 'static) {
        let outbox = self.outbox.clone();
        self.busy = self.worker.start(Box::new(move || {
            // At the end of the process nobody receives the result.
            let _ = outbox.send(catch_unwind(AssertUnwindSafe(job)));
        }));
    }

    /// The result of the last job, once, if it is known.
    pub fn result(&mut self) -> Option<T> {
        let result = self.results.try_recv().ok()?;
        Some(self.end(result))
    }

    /// Waits for the job under way.
    pub fn wait(&mut self, within: Duration) -> Option<T> {
        if !self.busy || !self.worker.ends_within(within) {
            return None;
        }
        let result = self.results.recv_timeout(within).ok()?;
        Some(self.end(result))
    }

    fn end(&mut self, result: thread::Result<T>) -> T {
        self.busy = false;
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// A thread for each worker.
#[derive(Debug, Clone, Copy)]
pub struct Threads;

impl Workers for Threads {
    fn worker(&self, name: &str) -> Result<Box<dyn Worker>, AppError> {
        let (jobs, inbox) = channel::<Job>();
        let thread = spawn(name, move || inbox.into_iter().for_each(|job| job()))?;
        Ok(Box::new(WorkerThread {
            jobs: Some(jobs),
            thread: Some(thread),
        }))
    }
}

struct WorkerThread {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker for WorkerThread {
    fn start(&mut self, job: Job) -> bool {
        self.jobs
            .as_ref()
            .is_some_and(|jobs| jobs.send(job).is_ok())
    }

    fn ends_within(&mut self, _: Duration) -> bool {
        // The caller waits this long itself.
        true
    }
}

impl Drop for WorkerThread {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_panics_is_not_waited_for_for_ever() {
        let worker = Threads.worker("test").expect("a thread");
        let mut background = Background::new(worker);
        background.start(|| -> u32 { panic!("a job of the test panics") });
        let waited = catch_unwind(AssertUnwindSafe(|| background.wait(Duration::MAX)));
        assert!(waited.is_err() && !background.busy());
        // The worker continues.
        background.start(|| 7);
        assert_eq!(background.wait(Duration::MAX), Some(7));
    }
}
