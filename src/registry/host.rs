//! What the client needs of the host: a thread, and a registry that can be reached.

use super::fetch::{Connection, FetchError, Http, RegistryOptions};
use std::fmt::Debug;
use std::io;
use std::time::Duration;

/// Runs the work beside the engine's thread, and reaches the registry.
pub trait Host: Debug + Send + Sync {
    /// Runs the fetches to their end.
    fn run(&self, fetches: Box<dyn Fetches>) -> io::Result<()>;

    /// A connection to the registry.
    fn connect(&self, options: &RegistryOptions) -> Result<Box<dyn Connection>, FetchError>;
}

/// Fetches, one at a time. The host that runs them decides on which thread and by which clock.
pub trait Fetches: Send {
    /// Waits until a fetch is due. Returns whether one is; otherwise this is the end.
    fn wait(&self) -> bool;

    /// How long until a fetch is due, unless another one is asked for before; `None` at the end.
    fn due_in(&self) -> Option<Duration>;

    /// Does the fetch that is due, if one is.
    fn step(&mut self);
}

/// A thread, and HTTP.
#[derive(Debug, Clone, Copy)]
pub struct Threads;

impl Host for Threads {
    fn run(&self, mut fetches: Box<dyn Fetches>) -> io::Result<()> {
        let work = move || {
            while fetches.wait() {
                fetches.step();
            }
        };
        let thread = std::thread::Builder::new().name("registry".to_owned());
        thread.spawn(work).map(drop)
    }

    fn connect(&self, options: &RegistryOptions) -> Result<Box<dyn Connection>, FetchError> {
        Ok(Box::new(Http::new(options)?))
    }
}
