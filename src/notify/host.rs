//! What notifications need from the host: threads, and connections to receivers.

use super::options::{SinkOptions, Texts};
use super::receiver::{Receiver, TopicSink};
use super::receivers;
use super::steps::{Again, Bell, Steps};
use std::fmt::Debug;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle, sleep};
use std::time::{Duration, Instant};

/// Runs the work beside the engine's thread, and connects to the receivers.
pub trait Host: Debug + Send + Sync {
    /// Runs the work to its end, under this name. The work waits for `bell`.
    fn run(
        &self,
        name: &str,
        bell: &Arc<Bell>,
        steps: Box<dyn Steps>,
    ) -> Result<Arc<dyn Running>, String>;

    /// The receiver of a sink. A topic needs a `topic`.
    fn receiver(
        &self,
        sink: &SinkOptions,
        texts: &Texts,
        topic: Option<TopicSink>,
    ) -> Result<Box<dyn Receiver>, String>;
}

/// Work that was started.
pub trait Running: Send + Sync {
    /// Whether the work has ended.
    fn is_ended(&self) -> bool;

    /// Waits for the end of the work, at most until `until`.
    fn wait(&self, until: Instant);
}

/// A host with a thread for each piece of work, and the configured receivers.
#[derive(Debug, Clone, Copy)]
pub struct Threads;

impl Host for Threads {
    fn run(
        &self,
        name: &str,
        bell: &Arc<Bell>,
        mut steps: Box<dyn Steps>,
    ) -> Result<Arc<dyn Running>, String> {
        let bell = Arc::clone(bell);
        let work = move || {
            loop {
                match steps.step() {
                    Again::Now => {}
                    Again::Rung => bell.wait(None),
                    Again::Until(until) => bell.wait(Some(until)),
                    Again::Never => return,
                }
            }
        };
        let thread = Builder::new().name(name.to_owned()).spawn(work);
        let thread = thread.map_err(|e| format!("cannot start a thread: {e}"))?;
        Ok(Arc::new(thread))
    }

    fn receiver(
        &self,
        sink: &SinkOptions,
        texts: &Texts,
        topic: Option<TopicSink>,
    ) -> Result<Box<dyn Receiver>, String> {
        receivers::of(sink, texts, topic)
    }
}

impl Running for JoinHandle<()> {
    fn is_ended(&self) -> bool {
        self.is_finished()
    }

    fn wait(&self, until: Instant) {
        while !self.is_finished() && Instant::now() < until {
            sleep(Duration::from_millis(5));
        }
    }
}
