//! What may be asked of the running program from outside, handed in by who can do it.
//!
//! HTTP and the engine must not know each other; so the application leaves here what the server may call.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::alert::{Ack, Matcher, Silence, Silences};

/// What became of a reload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// What is wrong with the file, as `check` says it; where this is not empty nothing was changed.
    pub problems: Vec<String>,
    /// Keys whose new values are in force.
    pub applied: Vec<String>,
    /// Keys whose new values need a restart; the old ones are at work.
    pub needs_restart: Vec<String>,
}

/// What people may ask about alerts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// Keep back what these mean.
    Silence {
        /// All of them must fit.
        matchers: Vec<Matcher>,
        /// Until then.
        until_ms: i64,
        /// Who asks.
        by: String,
        /// Why.
        note: String,
    },
    /// Lift the silence of this number.
    Lift(u64),
    /// Somebody looks after the alert.
    Acknowledge {
        /// Which.
        fingerprint: String,
        /// Who.
        by: String,
        /// What they say.
        note: String,
    },
}

/// What became of it; all but refusals are on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// The silence as it was entered.
    Silenced(Silence),
    /// The acknowledgement as it was entered.
    Acknowledged(Ack),
    /// Done.
    Done,
    /// There is no such silence, or no such alert that fires.
    Unknown,
    /// Why it was not done.
    Refused(String),
}

type Act = Box<dyn Fn() -> Reloaded + Send + Sync>;
type Read = Box<dyn Fn() -> Arc<Silences> + Send + Sync>;
type Ask = Box<dyn Fn(Asked) -> Told + Send + Sync>;

/// The acts. See the module.
#[derive(Default)]
pub struct Control {
    reload: OnceLock<Act>,
    book: OnceLock<Read>,
    ask: OnceLock<Ask>,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let can = self.reload.get().is_some();
        f.debug_struct("Control").field("reload", &can).finish()
    }
}

impl Control {
    /// Says how to reload. Only the first says so.
    pub fn on_reload(&self, act: impl Fn() -> Reloaded + Send + Sync + 'static) {
        let _ = self.reload.set(Box::new(act));
    }

    /// Reads the configuration again; `None` where nobody said how. Reads files and waits for the engine.
    pub fn reload(&self) -> Option<Reloaded> {
        self.reload.get().map(|act| act())
    }

    /// Says how to read silences and acknowledgements. Only the first says so.
    pub fn on_book(&self, read: impl Fn() -> Arc<Silences> + Send + Sync + 'static) {
        let _ = self.book.set(Box::new(read));
    }

    /// Silences and acknowledgements; none where nobody said how.
    pub fn book(&self) -> Arc<Silences> {
        self.book.get().map(|read| read()).unwrap_or_default()
    }

    /// Says how to take what people ask. Only the first says so.
    pub fn on_ask(&self, ask: impl Fn(Asked) -> Told + Send + Sync + 'static) {
        let _ = self.ask.set(Box::new(ask));
    }

    /// Asks; `None` where nobody said how. Waits for the disk.
    pub fn ask(&self, asked: Asked) -> Option<Told> {
        self.ask.get().map(|ask| ask(asked))
    }
}
