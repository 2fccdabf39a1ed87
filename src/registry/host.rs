//! Requirements of the client on its host: a thread, and a connection to the registry.

use super::fetch::{Connection, FetchError, Http, RegistryOptions};
use std::fmt::Debug;
use std::io;
use std::time::Duration;

/// Runs the fetches beside the engine's thread, and connects to the registry.
pub trait Host: Debug + Send + Sync {
    /// Runs the fetches until they end.
    fn run(&self, fetches: Box<dyn Fetches>) -> io::Result<()>;

    /// A connection to the registry.
    fn connect(&self, options: &RegistryOptions) -> Result<Box<dyn Connection>, FetchError>;
}

/// Pending fetches, done one at a time. The host that runs them decides on which thread and by
/// which clock.
pub trait Fetches: Send {
    /// Waits until a fetch is due and returns true; returns false at the end.
    fn wait(&self) -> bool;

    /// Time until a fetch is due, unless another is requested earlier; `None` at the end.
    fn due_in(&self) -> Option<Duration>;

    /// Does the fetch that is due, if any.
    fn step(&mut self);
}

/// A host with a thread and HTTP.
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
