//! What the engine's thread knows of the notifications of one alert that fires.

use super::entry::{State, TransferredAlert};
use super::missed::Missed;
use super::notification::{Notification, Status};
use super::sink::Sink;
use crate::alert::Ack;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What was notified of a firing alert.
pub(super) struct Notified {
    /// The last notification.
    pub last: Notification,
    /// The sinks that got one, or were to get it.
    sinks: BTreeSet<String>,
    /// Those of them that missed the last one.
    pub missed: BTreeMap<String, Missed>,
}

impl Notified {
    /// The firing alerts of a journal, by fingerprint.
    pub fn of_all(state: &State) -> BTreeMap<String, Notified> {
        let firing = state.last.values().filter(|n| n.status == Status::Firing);
        let all = firing.map(|last| {
            let fingerprint = &last.fingerprint;
            let notified = Notified {
                last: last.clone(),
                sinks: state.notified.get(fingerprint).cloned().unwrap_or_default(),
                missed: state.missed.get(fingerprint).cloned().unwrap_or_default(),
            };
            (fingerprint.clone(), notified)
        });
        all.collect()
    }

    /// An alert that begins, with the sinks that are to get its first notification.
    pub fn first(last: Notification, sinks: &[Arc<Sink>]) -> Notified {
        let matching = sinks.iter().filter(|s| s.matches(&last));
        Notified {
            sinks: matching.map(|s| s.name.clone()).collect(),
            missed: BTreeMap::new(),
            last,
        }
    }

    /// An alert that another process has notified.
    pub fn taken_over(alert: &TransferredAlert) -> Notified {
        Notified {
            last: alert.notification.clone(),
            sinks: alert.sinks.clone(),
            missed: alert.missed.clone(),
        }
    }

    /// The alert after its next notification, with the sinks that are to get it.
    pub fn then(mut self, next: Notification, sinks: &[Arc<Sink>], now_ms: i64) -> Notified {
        let wants = |s: &Sink| s.matches(&next) && (!next.joined || self.is_lacked_by(s, now_ms));
        let wanting = sinks.iter().filter(|s| wants(s));
        let wanting: Vec<String> = wanting.map(|s| s.name.clone()).collect();
        self.missed.retain(|sink, _| !wanting.contains(sink));
        self.sinks.extend(wanting);
        self.last = next;
        self
    }

    /// Whether the alert is to be offered to the sink, which did not get it.
    pub fn is_lacked_by(&self, sink: &Sink, now_ms: i64) -> bool {
        match self.missed.get(&sink.name) {
            Some(missed) => missed.is_due(now_ms) && sink.has_room(),
            None => !self.sinks.contains(&sink.name),
        }
    }

    /// What another process needs to take over.
    pub fn transferred(&self, ack: Option<Ack>) -> TransferredAlert {
        TransferredAlert {
            notification: self.last.clone(),
            sinks: self.sinks.clone(),
            missed: self.missed.clone(),
            ack,
        }
    }
}
