//! What the client needs of the host: a thread, and a registry that can be reached.

use super::client::Fetcher;
use super::fetch::{FetchError, Http, RegistryOptions};
use std::fmt::Debug;
use std::io;

/// Runs the work beside the engine's thread, and reaches the registry.
pub trait Host: Debug + Send + Sync {
    /// Runs this to its end.
    fn run(&self, fetcher: Fetcher) -> io::Result<()>;

    /// A connection to the registry.
    fn connect(&self, options: &RegistryOptions) -> Result<Box<dyn Connection>, FetchError>;
}

/// A connection to a registry.
pub trait Connection {
    /// Status and body of the answer to a GET, or why there is none.
    fn get(&self, url: &str) -> Result<(u16, String), String>;
}

/// A thread, and HTTP.
#[derive(Debug, Clone, Copy)]
pub struct Threads;

impl Host for Threads {
    fn run(&self, mut fetcher: Fetcher) -> io::Result<()> {
        let work = move || {
            while fetcher.wait() {
                fetcher.step();
            }
        };
        let thread = std::thread::Builder::new().name("registry".to_owned());
        thread.spawn(work).map(drop)
    }

    fn connect(&self, options: &RegistryOptions) -> Result<Box<dyn Connection>, FetchError> {
        Ok(Box::new(Http::new(options)?))
    }
}
