//! Requests to the running program from outside.
//!
//! HTTP and the engine do not know each other, so the application registers here the functions that
//! the server may call.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::alert::{Ack, Deployment, Matcher, Silence, Silences};

/// Result of a reload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Problems of the file, as `check` reports them. If there are any, nothing was changed.
    pub problems: Vec<String>,
    /// Keys whose new values are active.
    pub applied: Vec<String>,
    /// Keys whose new values need a restart; the old values are still active.
    pub needs_restart: Vec<String>,
    /// The engine has not answered: whether it takes the new values is not known yet.
    pub unanswered: bool,
}

/// A request about alerts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlertRequest {
    /// Suppress the matching alerts.
    Silence {
        /// Conditions that an alert must all meet.
        matchers: Vec<Matcher>,
        /// End of the silence.
        until_ms: i64,
        /// Author.
        by: String,
        /// Reason.
        note: String,
    },
    /// Lift the silence with this number.
    Lift(u64),
    /// Acknowledge the alert.
    Acknowledge {
        /// The alert: its fingerprint or name, or those of one of its streams.
        alert: String,
        /// Author.
        by: String,
        /// Comment.
        note: String,
    },
    /// End the alert; from then on it depends on new data only.
    Close {
        /// The alert, as for [`AlertRequest::Acknowledge`].
        alert: String,
        /// Author.
        by: String,
        /// Reason.
        note: String,
    },
    /// A model was replaced or fixed: its alerts depend on new data only.
    Deploy {
        /// The model.
        model: String,
        /// The version; `None` for all versions.
        version: Option<String>,
        /// Author.
        by: String,
        /// Comment.
        note: String,
    },
}

/// The explanation of a change of an alert, from its record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Explanation {
    /// Key of the change.
    pub key: String,
    /// The change in one sentence.
    pub sentence: String,
    /// The data behind the change, in lines.
    pub words: String,
    /// Time of the change, in ms since 1970.
    pub at_ms: i64,
    /// Values that were recomputed and are equal to the bit.
    pub equal: Vec<String>,
    /// Values that were judged earlier and are taken unchanged.
    pub taken: Vec<String>,
    /// Values that were recomputed and differ.
    pub different: Vec<String>,
}

/// Response to an [`AlertRequest`]. Everything but a refusal is on disk by then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlertResponse {
    /// The new silence.
    Silenced(Silence),
    /// The new acknowledgement.
    Acknowledged(Ack),
    /// The new deployment.
    Deployed(Deployment),
    /// Done.
    Done,
    /// There is no such silence, firing alert or model.
    Unknown,
    /// Why the request was refused.
    Refused(String),
    /// Why this process cannot handle the request now, or at all.
    Unavailable(&'static str),
}

/// A request with posted events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPost {
    /// The topic; `None` for the only one.
    pub topic: Option<String>,
    /// The idempotency key.
    pub key: Option<String>,
    /// The body has one event in each line; otherwise it is an event or an array of events.
    pub lines: bool,
    /// Only check the events.
    pub dry_run: bool,
    /// The body.
    pub body: Vec<u8>,
}

/// An event that would be rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFault {
    /// Its place in the request, counted from 0.
    pub event: usize,
    /// The counter that it would add to.
    pub reason: &'static str,
    /// The field, its value and the remedy.
    pub detail: String,
}

/// Answer to an [`EventPost`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventAnswer {
    /// The events are on disk.
    Appended {
        /// The topic.
        topic: String,
        /// Offset of the first event.
        offset: u64,
        /// Number of events.
        events: u64,
        /// An earlier request with the same key appended the events.
        duplicate: bool,
    },
    /// The events are valid; nothing was appended, as requested.
    Checked {
        /// The topic.
        topic: String,
        /// Number of events.
        events: u64,
    },
    /// There is no such topic; these exist.
    NoTopic(Vec<String>),
    /// The body cannot be split into events.
    Malformed(String),
    /// Some events would be rejected, so none was appended.
    Rejected {
        /// Number of events.
        events: usize,
        /// Number of those that would be rejected.
        rejected: usize,
        /// The first rejected events.
        faults: Vec<EventFault>,
    },
    /// The key belongs to a request with other events.
    KeyReused,
    /// The request is too long for the log.
    TooLong,
    /// The log has no room until its events are read.
    Full,
    /// Too many requests wait for the disk.
    Busy,
    /// The disk failed, or has too little room.
    Failed(String),
}

type Reload = Box<dyn Fn() -> Reloaded + Send + Sync>;
type ReadSilences = Box<dyn Fn() -> Arc<Silences> + Send + Sync>;
type Explain = Box<dyn Fn(&[String]) -> Option<Explanation> + Send + Sync>;
type HandleAlert = Box<dyn Fn(AlertRequest) -> AlertResponse + Send + Sync>;
type TakeEvents = Box<dyn Fn(&EventPost) -> EventAnswer + Send + Sync>;

/// The registered functions. Each can be registered once; later registrations are ignored.
#[derive(Default)]
pub struct Control {
    reload: OnceLock<Reload>,
    silences: OnceLock<ReadSilences>,
    alerts: OnceLock<HandleAlert>,
    explain: OnceLock<Explain>,
    events: OnceLock<TakeEvents>,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let can = self.reload.get().is_some();
        f.debug_struct("Control").field("reload", &can).finish()
    }
}

impl Control {
    /// Registers the reload.
    pub fn on_reload(&self, act: impl Fn() -> Reloaded + Send + Sync + 'static) {
        let _ = self.reload.set(Box::new(act));
    }

    /// Reloads the configuration; `None` if nothing is registered. Reads files and waits for the
    /// engine.
    pub fn reload(&self) -> Option<Reloaded> {
        self.reload.get().map(|act| act())
    }

    /// Registers the source of silences and acknowledgements.
    pub fn on_silences(&self, read: impl Fn() -> Arc<Silences> + Send + Sync + 'static) {
        let _ = self.silences.set(Box::new(read));
    }

    /// Silences and acknowledgements; empty if nothing is registered.
    pub fn silences(&self) -> Arc<Silences> {
        self.silences.get().map(|read| read()).unwrap_or_default()
    }

    /// Registers the handler of requests about alerts.
    pub fn on_alert_request(
        &self,
        handle: impl Fn(AlertRequest) -> AlertResponse + Send + Sync + 'static,
    ) {
        let _ = self.alerts.set(Box::new(handle));
    }

    /// Registers the reader of alert records.
    pub fn on_explain(
        &self,
        read: impl Fn(&[String]) -> Option<Explanation> + Send + Sync + 'static,
    ) {
        let _ = self.explain.set(Box::new(read));
    }

    /// Explains the change with one of these keys, or the newest change of a stream with one of
    /// these fingerprints; `None` if there is no record. Reads a file.
    pub fn explain(&self, wanted: &[String]) -> Option<Explanation> {
        self.explain.get().and_then(|read| read(wanted))
    }

    /// Registers the function that takes events.
    pub fn on_events(&self, take: impl Fn(&EventPost) -> EventAnswer + Send + Sync + 'static) {
        let _ = self.events.set(Box::new(take));
    }

    /// Takes events; `None` if nothing is registered. Waits for the disk.
    pub fn post(&self, post: &EventPost) -> Option<EventAnswer> {
        self.events.get().map(|take| take(post))
    }

    /// Handles a request about alerts; `None` if nothing is registered. Waits for the disk.
    pub fn request(&self, request: AlertRequest) -> Option<AlertResponse> {
        self.alerts.get().map(|handle| handle(request))
    }
}
