//! What the engine's thread knows about the notifications of one firing alert. It is what another
//! process needs to take the alert over.

use super::entry::{State, TransferredAlert};
use super::journal_updates::Waiting;
use super::missed::Missed;
use super::notification::{Notification, Status};
use super::sink::Sink;
use crate::alert::Ack;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most earlier notifications that move with an alert. Only an alert that starts and ends often
/// while a sink is away has more, and the oldest matter least.
const EARLIER_MAX: usize = 8;

impl TransferredAlert {
    /// The firing alerts of a journal, by fingerprint.
    pub(super) fn of_all(state: &State) -> BTreeMap<String, TransferredAlert> {
        let firing = state.last.values().filter(|n| n.status == Status::Firing);
        let all = firing.map(|last| (last.fingerprint.clone(), Self::of(state, last)));
        all.collect()
    }

    /// The alert with this last notification, from a journal.
    pub(super) fn of(state: &State, last: &Notification) -> TransferredAlert {
        let fingerprint = &last.fingerprint;
        TransferredAlert {
            notification: last.clone(),
            sinks: state.notified.get(fingerprint).cloned().unwrap_or_default(),
            missed: state.missed.get(fingerprint).cloned().unwrap_or_default(),
            ack: None,
            earlier: None,
        }
    }

    /// The alert after its next notification, given its state `before`. Also returns the sinks that
    /// must get the notification.
    pub(super) fn after(
        before: Option<TransferredAlert>,
        next: Notification,
        sinks: &[Arc<Sink>],
        now_ms: i64,
    ) -> (TransferredAlert, Vec<String>) {
        let lacks = |s: &Sink| before.as_ref().is_none_or(|b| b.is_lacked_by(s, now_ms));
        let wants = |s: &Sink| s.matches(&next) && (!next.joined || lacks(s));
        let wanting = sinks.iter().filter(|s| wants(s));
        let wanting: Vec<String> = wanting.map(|s| s.name.clone()).collect();
        let (mut sinks, mut missed) = before.map(|b| (b.sinks, b.missed)).unwrap_or_default();
        missed.retain(|sink, _| !wanting.contains(sink));
        sinks.extend(wanting.iter().cloned());
        let alert = TransferredAlert {
            notification: next,
            sinks,
            missed,
            ack: None,
            earlier: None,
        };
        (alert, wanting)
    }

    /// The alert that ends with these notifications, if a sink still needs one of them.
    pub(super) fn ending(waiting: &Waiting) -> Option<TransferredAlert> {
        let needed = waiting.iter().any(|(_, sinks)| !sinks.is_empty());
        needed.then(|| Self::ended(waiting))?
    }

    /// The alert that ends with these notifications; `None` if the last one is not an end.
    pub(super) fn ended(waiting: &Waiting) -> Option<TransferredAlert> {
        let (end, _) = waiting.last()?;
        (end.status == Status::Resolved).then(|| TransferredAlert {
            notification: end.clone(),
            sinks: BTreeSet::new(),
            missed: BTreeMap::new(),
            ack: None,
            earlier: None,
        })
    }

    /// The alert as it moves to another process, with its waiting notifications.
    pub(super) fn leaving(mut self, waiting: Option<&Waiting>, ack: Option<Ack>) -> Self {
        let mut earlier = Waiting::new();
        for (notification, sinks) in waiting.into_iter().flatten() {
            if notification.key == self.notification.key {
                let sinks = sinks.iter().map(|s| (s.clone(), Missed::default()));
                self.missed.extend(sinks);
            } else if !sinks.is_empty() {
                earlier.push((notification.clone(), sinks.clone()));
            }
        }
        earlier.drain(..earlier.len().saturating_sub(EARLIER_MAX));
        (self.ack, self.earlier) = (ack, Some(earlier));
        self
    }

    /// What the next owner must send, oldest first, to those of its sinks that take it.
    pub(super) fn to_send(&self, sinks: &[Arc<Sink>]) -> Waiting {
        let room = self.missed.iter().filter(|(_, m)| m.refused_ms.is_none());
        let lacking: Vec<String> = room.map(|(sink, _)| sink.clone()).collect();
        let last = (self.notification.clone(), lacking);
        let mut all: Waiting = self
            .earlier
            .iter()
            .flatten()
            .cloned()
            .chain([last])
            .collect();
        for (notification, names) in &mut all {
            names.retain(|name| {
                let mut takes = sinks.iter().filter(|s| s.takes(notification.status));
                takes.any(|s| s.name == *name)
            });
        }
        all.retain(|(_, names)| !names.is_empty());
        all
    }

    /// Whether the sink still needs this notification, which waited here before the alert left,
    /// according to the last owner that the alert came back from.
    pub(super) fn leaves(&self, notification: &Notification, sink: &String) -> bool {
        let Some(earlier) = &self.earlier else {
            return true;
        };
        if notification.key != self.notification.key {
            let mut same = earlier.iter().filter(|(n, _)| n.key == notification.key);
            return same.any(|(_, sinks)| sinks.contains(sink));
        }
        match self.missed.get(sink) {
            Some(missed) => missed.refused_ms.is_none(),
            None => notification.status == Status::Firing && !self.sinks.contains(sink),
        }
    }

    /// Whether the sink did not get the alert and must be offered it now.
    pub(super) fn is_lacked_by(&self, sink: &Sink, now_ms: i64) -> bool {
        match self.missed.get(&sink.name) {
            Some(missed) => missed.is_due(now_ms) && sink.has_room(),
            None => !self.sinks.contains(&sink.name),
        }
    }
}
