//! The lines of the journal of alerts, and the state that they result in.
//!
//! A sink misses a notification that an alert fires if its queue has no room for it, or if its
//! receiver refuses it permanently. The state keeps this ([`State::missed`]) while the alert fires
//! and nothing newer is queued for the sink, so that the notification is offered again. The sink
//! gets the resolution in any case: a receiver may act on what it refuses.

use super::journal_updates::{AlertUpdate, Waiting};
use super::missed::Missed;
use super::notification::{Notification, Status};
use crate::alert::{Ack, Deployment, Silence, Silences};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Most notifications of resolved alerts to keep; they are recognised after a crash.
pub const RESOLVED_MAX: usize = 1_000;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// The whole state.
    State(State),
    /// A notification is queued for these sinks.
    Queued {
        /// The notification.
        notification: Box<Notification>,
        /// Names of the sinks.
        sinks: Vec<String>,
    },
    /// A sink has finished with a notification.
    Done {
        /// Name of the sink.
        sink: String,
        /// Key of the notification.
        key: String,
        /// Whether it was delivered; otherwise it was given up.
        delivered: bool,
        /// When its receiver refused it permanently, if it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused_ms: Option<i64>,
    },
    /// A silence starts.
    Silenced(Silence),
    /// A silence is lifted.
    Lifted {
        /// Its number.
        id: u64,
    },
    /// Someone acknowledges an alert.
    Acknowledged {
        /// The alert.
        fingerprint: String,
        /// The acknowledgement.
        ack: Ack,
    },
    /// Someone marks that a model was replaced or fixed.
    Deployed(Deployment),
    /// This process acquires an alert that another process has notified.
    Acquired(Box<TransferredAlert>),
    /// Another process owns the alert now.
    Released {
        /// The alert.
        fingerprint: String,
    },
    /// Another process has resolved the alert.
    Closed {
        /// The alert.
        fingerprint: String,
    },
}

/// An alert that moves from one process to another: one that fires, or one whose end some sinks
/// still need.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TransferredAlert {
    /// The last notification.
    pub notification: Notification,
    /// Sinks that were notified that it fires.
    pub sinks: BTreeSet<String>,
    /// Those of `sinks` that missed the last notification. While the alert moves to another
    /// process, sinks for which it still waits are included, as if there had been no room.
    #[serde(default)]
    pub missed: BTreeMap<String, Missed>,
    /// Its acknowledgement, if any.
    pub ack: Option<Ack>,
    /// Earlier notifications that wait; `None` if the text is from a version that did not have
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Waiting>,
}

/// The state that the journal records.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Silences, acknowledgements and deployments.
    #[serde(rename = "book")]
    pub silences: Silences,
    /// Undelivered notifications, oldest first, each with the sinks that still need it.
    pub undelivered: VecDeque<(Notification, Vec<String>)>,
    /// The last notification of each alert.
    pub last: BTreeMap<String, Notification>,
    /// Sinks that were notified that an alert fires, by fingerprint. Only they get the resolution.
    pub notified: BTreeMap<String, BTreeSet<String>>,
    /// By fingerprint, the notified sinks that missed the newest firing notification.
    #[serde(default)]
    pub missed: BTreeMap<String, BTreeMap<String, Missed>>,
    /// Firing alerts that another process owns now.
    #[serde(default)]
    pub released: BTreeSet<String>,
}

impl State {
    /// Applies one entry. An entry about something unknown changes nothing.
    pub fn apply(&mut self, entry: &Entry) {
        match entry {
            Entry::State(state) => self.clone_from(state),
            Entry::Queued {
                notification,
                sinks,
            } => self.queued(notification, sinks),
            Entry::Done {
                sink,
                key,
                delivered,
                refused_ms,
            } => {
                let missed = (!delivered).then_some(Missed {
                    refused_ms: *refused_ms,
                });
                self.done(sink, key, missed);
            }
            Entry::Silenced(silence) => self.silences.enter(silence.clone()),
            Entry::Lifted { id } => {
                self.silences.lift(*id);
            }
            Entry::Acknowledged { fingerprint, ack } => {
                self.silences.acknowledge(fingerprint.clone(), ack.clone());
            }
            Entry::Deployed(deployment) => self.silences.deploy(deployment.clone()),
            Entry::Acquired(alert) => {
                let fingerprint = alert.notification.fingerprint.clone();
                self.released.remove(&fingerprint);
                if let Some(ack) = &alert.ack {
                    self.silences.acknowledge(fingerprint.clone(), ack.clone());
                }
                self.notified
                    .insert(fingerprint.clone(), alert.sinks.clone());
                self.missed.remove(&fingerprint);
                if !alert.missed.is_empty() {
                    self.missed
                        .insert(fingerprint.clone(), alert.missed.clone());
                }
                self.last.insert(fingerprint, alert.notification.clone());
            }
            Entry::Released { fingerprint } => {
                if self.notified.contains_key(fingerprint) {
                    self.released.insert(fingerprint.clone());
                }
            }
            Entry::Closed { fingerprint } => {
                self.released.remove(fingerprint);
                self.notified.remove(fingerprint);
                self.missed.remove(fingerprint);
                self.last.remove(fingerprint);
                self.silences.ended(fingerprint);
            }
        }
    }

    fn queued(&mut self, notification: &Notification, sinks: &[String]) {
        let fingerprint = notification.fingerprint.clone();
        self.released.remove(&fingerprint);
        if notification.status == Status::Resolved {
            self.silences.ended(&fingerprint);
            self.notified.remove(&fingerprint);
            self.missed.remove(&fingerprint);
        } else {
            let notified = self.notified.entry(fingerprint.clone()).or_default();
            notified.extend(sinks.iter().cloned());
            if let Some(missed) = self.missed.get_mut(&fingerprint) {
                missed.retain(|sink, _| !sinks.contains(sink));
            }
            self.missed.retain(|_, sinks| !sinks.is_empty());
        }
        self.last.insert(fingerprint, notification.clone());
        if !sinks.is_empty() {
            self.undelivered
                .push_back((notification.clone(), sinks.to_vec()));
        }
    }

    /// A sink has finished with a notification. If the sink missed it, that is kept while the alert
    /// fires and the sink has no newer notification of it in its queue.
    fn done(&mut self, sink: &str, key: &str, missed: Option<Missed>) {
        let waits = |(n, sinks): &(Notification, Vec<String>)| n.key == key && has(sinks, sink);
        let Some(place) = self.undelivered.iter().position(waits) else {
            return;
        };
        let (notification, sinks) = &mut self.undelivered[place];
        sinks.retain(|s| s != sink);
        let fingerprint = notification.fingerprint.clone();
        let fired = notification.status == Status::Firing;
        let last = self.last.get(&fingerprint);
        let fires = fired && last.is_some_and(|n| n.status == Status::Firing);
        let mut rest = self.undelivered.iter().skip(place + 1);
        if let Some(missed) = missed.filter(|_| fires)
            && !rest.any(|(n, sinks)| n.fingerprint == fingerprint && has(sinks, sink))
        {
            let of_alert = self.missed.entry(fingerprint).or_default();
            of_alert.insert(sink.to_owned(), missed);
        }
        self.undelivered.retain(|(_, sinks)| !sinks.is_empty());
    }

    /// The waiting notifications of an alert.
    pub fn waiting_of(&self, fingerprint: &str) -> Waiting {
        let all = self.undelivered.iter();
        let ours = all.filter(|(n, _)| n.fingerprint == fingerprint);
        ours.cloned().collect()
    }

    /// What this state says about an alert, for the engine's thread.
    pub fn update_of(&self, fingerprint: &str) -> AlertUpdate {
        AlertUpdate {
            last: self.last.get(fingerprint).map(|n| n.key.clone()),
            missed: self.missed.get(fingerprint).cloned().unwrap_or_default(),
            waiting: self.waiting_of(fingerprint),
        }
    }

    /// The fingerprint of the alert of a notification, if that waits for the sink.
    pub fn waiting(&self, sink: &str, key: &str) -> Option<&String> {
        let mut waiting = self.undelivered.iter();
        let (notification, _) = waiting.find(|(n, sinks)| n.key == key && has(sinks, sink))?;
        Some(&notification.fingerprint)
    }

    /// Whether the sink need not be sent that the alert fires: it was notified and missed nothing,
    /// or it missed something too recently to be offered it again.
    pub fn knows(&self, fingerprint: &str, sink: &str, now_ms: i64) -> bool {
        let missed = self.missed.get(fingerprint).and_then(|m| m.get(sink));
        self.was_notified(fingerprint, sink) && missed.is_none_or(|m| !m.is_due(now_ms))
    }

    /// Whether a notification that the alert fires was queued for the sink.
    pub fn was_notified(&self, fingerprint: &str, sink: &str) -> bool {
        self.notified
            .get(fingerprint)
            .is_some_and(|s| s.contains(sink))
    }

    /// Notified firing alerts that this process owns.
    pub fn firing(&self) -> impl Iterator<Item = &Notification> {
        let firing = self.last.values().filter(|n| n.status == Status::Firing);
        firing.filter(|n| !self.released.contains(&n.fingerprint))
    }

    /// Moves times after `to_ms` back to it, because event time was reset: later changes count as
    /// news. Returns how many alerts changed.
    pub(super) fn cut(&mut self, to_ms: i64) -> usize {
        let mut cut = 0;
        for n in self.last.values_mut() {
            let before = (n.since_ms, n.at_ms, n.bad_ms);
            n.since_ms = n.since_ms.min(to_ms);
            n.at_ms = n.at_ms.min(to_ms);
            n.bad_ms = n.bad_ms.map(|ms| ms.min(to_ms));
            cut += usize::from(before != (n.since_ms, n.at_ms, n.bad_ms));
        }
        cut
    }

    /// Removes the oldest resolved alerts above [`RESOLVED_MAX`].
    pub(super) fn prune(&mut self) {
        let resolved = self.last.values().filter(|n| n.status == Status::Resolved);
        let mut times: Vec<i64> = resolved.map(|n| n.at_ms).collect();
        times.sort_unstable();
        let first = times.len().checked_sub(RESOLVED_MAX);
        if let Some(&oldest) = first.and_then(|k| times.get(k)) {
            let keep = |n: &Notification| n.status == Status::Firing || n.at_ms >= oldest;
            self.last.retain(|_, n| keep(n));
        }
    }
}

fn has(sinks: &[String], sink: &str) -> bool {
    sinks.iter().any(|s| s == sink)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::notification::Links;

    const ALERT: &str = "0000000000000000";
    const HOUR_MS: i64 = 3_600_000;

    fn firing(at_ms: i64) -> Notification {
        Notification::trial(at_ms, Links::default())
    }

    fn queue(state: &mut State, notification: &Notification) {
        state.apply(&Entry::Queued {
            notification: Box::new(notification.clone()),
            sinks: vec!["s".to_owned()],
        });
    }

    fn done(state: &mut State, of: &Notification, delivered: bool, refused_ms: Option<i64>) {
        state.apply(&Entry::Done {
            sink: "s".to_owned(),
            key: of.key.clone(),
            delivered,
            refused_ms,
        });
    }

    #[test]
    fn a_sink_lacks_what_it_missed_until_something_newer_is_queued_or_the_alert_ends() {
        let (first, second) = (firing(1), firing(2));
        let knows = |state: &State, now_ms| state.knows(ALERT, "s", now_ms);
        let mut state = State::default();
        assert!(!knows(&state, 0));
        queue(&mut state, &first);
        assert!(knows(&state, 0), "it waits");
        done(&mut state, &first, false, None);
        assert!(!knows(&state, 0), "there was no room");
        queue(&mut state, &second);
        assert!(knows(&state, 0));
        done(&mut state, &second, false, Some(5));
        assert!(knows(&state, 5) && !knows(&state, 5 + HOUR_MS));
        // A copy of the state keeps all of it.
        let text = serde_json::to_string(&Entry::State(state.clone())).expect("JSON");
        assert!(text.contains(r#""book":{"#), "earlier journals say so");
        let copy: Entry = serde_json::from_str(&text).expect("an entry");
        assert_eq!(copy, Entry::State(state.clone()));
        let ended = second.resolved(3, "well");
        queue(&mut state, &ended);
        done(&mut state, &ended, false, Some(6));
        assert!(state.missed.is_empty(), "an end is not offered again");
    }

    #[test]
    fn an_older_notification_that_fails_does_not_matter_while_a_newer_one_waits() {
        let (first, second) = (firing(1), firing(2));
        let mut state = State::default();
        queue(&mut state, &first);
        queue(&mut state, &second);
        done(&mut state, &first, false, Some(5));
        assert!(state.missed.is_empty());
        done(&mut state, &second, true, None);
        assert!(state.missed.is_empty());
        // There was no room for the newer one: delivery of the older one does not help.
        queue(&mut state, &first);
        queue(&mut state, &second);
        done(&mut state, &second, false, None);
        done(&mut state, &first, true, None);
        assert!(!state.knows(ALERT, "s", 0));
        // After the end of the alert, a missed older one does not matter.
        queue(&mut state, &first);
        queue(&mut state, &second.resolved(3, "well"));
        done(&mut state, &first, false, None);
        assert!(state.missed.is_empty());
    }
}
