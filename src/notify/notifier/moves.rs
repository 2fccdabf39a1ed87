//! Alerts that move between processes with their partitions.
//!
//! What was notified of an alert moves with its stream, together with the notifications that sinks
//! still need: the new owner queues these under the same keys. The previous owner holds its waiting
//! notifications of an alert that has left. It sends them only if the alert returns and its last
//! owner says that sinks still need them. After a start it holds all waiting notifications until
//! their alerts return.

use super::{AlertHandover, Notifier};
use crate::notify::dispatch::Command;
use crate::notify::journal::{Entry, TransferredAlert};
use crate::notify::moved::{Keeps, Move};
use crate::notify::notification::{Notification, Status};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What other processes need to take alerts over, by key `K`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfers<K> {
    /// Alerts that fire, or whose end sinks still need.
    pub open: BTreeMap<K, String>,
    /// Alerts whose end all sinks got since the last account. A process that continues from an
    /// earlier state needs them; one that continues from this state does not.
    pub ended: BTreeMap<K, String>,
}

impl<K> Default for Transfers<K> {
    fn default() -> Transfers<K> {
        Transfers {
            open: BTreeMap::new(),
            ended: BTreeMap::new(),
        }
    }
}

impl Transfers<String> {
    /// These transfers under the first key of each alert. `keys` has keys with fingerprints; alerts
    /// without a key are left out.
    pub fn under<'k, K: Ord + Clone + 'k>(
        mut self,
        keys: impl Iterator<Item = (&'k K, String)>,
    ) -> Transfers<K> {
        let mut under = Transfers::default();
        for (key, alert) in keys {
            if let Some(text) = self.open.remove(&alert) {
                under.open.insert(key.clone(), text);
            } else if let Some(text) = self.ended.remove(&alert) {
                under.ended.insert(key.clone(), text);
            }
        }
        under
    }
}

impl Notifier {
    /// Passes on alerts for which there was no room. Reads from the journal what sinks missed and
    /// what waits.
    pub(super) fn learn(&mut self) {
        for alert in std::mem::take(&mut self.untaken) {
            self.take_over(alert);
        }
        for (alert, update) in self.updates.drain() {
            // The journal may not have reached the last notification yet, or may have forgotten an
            // old end.
            let sent = self.sent_last(&alert);
            if let (Some(sent), Some(last)) = (sent, &update.last)
                && sent.key != *last
            {
                continue;
            }
            if let Some(notified) = self.firing.get_mut(&alert)
                && notified.missed != update.missed
            {
                notified.missed = update.missed;
                self.changed = true;
            }
            let before = match update.waiting.is_empty() {
                true => self.waiting.remove(&alert),
                false => self.waiting.insert(alert.clone(), update.waiting),
            };
            self.waiting_changed |= self.waiting.get(&alert) != before.as_ref();
            if self.moving
                && !self.firing.contains_key(&alert)
                && !self.waiting.contains_key(&alert)
                && let Some(ended) = before.as_ref().and_then(TransferredAlert::ended)
            {
                self.ended.insert(alert, ended.leaving(None, None));
            }
        }
    }

    /// The last notification of an alert that fires or has waiting notifications.
    fn sent_last(&self, fingerprint: &str) -> Option<&Notification> {
        let firing = self.firing.get(fingerprint).map(|f| &f.notification);
        let waiting = || Some(&self.waiting.get(fingerprint)?.last()?.0);
        firing.or_else(waiting)
    }

    /// What another process needs to take over each alert; `None` if nothing changed since the last
    /// call. If only waiting notifications changed, and some still wait, returns `None` until
    /// `again` has passed: after a storm of alerts a sink takes them one by one.
    pub fn transfers(&mut self, again: Duration) -> Option<Transfers<String>> {
        self.learn();
        let says = self.waiting.is_empty() || self.waiting_said.elapsed() >= again;
        self.changed |= self.waiting_changed && says;
        let silences = self.silences();
        let same = self
            .transfers_silences
            .as_ref()
            .is_some_and(|b| Arc::ptr_eq(b, &silences));
        if same && !self.changed {
            return None;
        }
        (self.changed, self.waiting_changed) = (false, false);
        self.waiting_said = Instant::now();
        let mut all = Transfers::default();
        let gone = self.waiting.iter();
        let gone = gone.filter(|(alert, _)| !self.firing.contains_key(*alert));
        let ending = gone.filter_map(|(alert, w)| Some((alert, TransferredAlert::ending(w)?)));
        let fires = self.firing.iter().map(|(alert, f)| (alert, f.clone()));
        for (alert, notified) in fires.chain(ending) {
            let ack = silences.acks.get(alert).cloned();
            let leaving = notified.leaving(self.waiting.get(alert), ack);
            if let Ok(text) = serde_json::to_string(&leaving) {
                all.open.insert(alert.clone(), text);
            }
        }
        for (alert, ended) in std::mem::take(&mut self.ended) {
            if let (false, Ok(text)) =
                (all.open.contains_key(&alert), serde_json::to_string(&ended))
            {
                all.ended.insert(alert, text);
            }
        }
        self.transfers_silences = Some(silences);
        Some(all)
    }

    /// Takes over the alert of a stream that arrived with its partition. From now on this process
    /// resolves it.
    pub fn acquire(&mut self, handover: &AlertHandover) {
        let fingerprint = &handover.fingerprint;
        let transferred = handover.transferred.as_deref();
        match transferred.and_then(|text| serde_json::from_str::<TransferredAlert>(text).ok()) {
            Some(alert) if alert.notification.fingerprint == *fingerprint => {
                self.acquire_notified(alert);
            }
            _ => self.acquire_quiet(handover),
        }
    }

    fn acquire_notified(&mut self, alert: TransferredAlert) {
        let fingerprint = alert.notification.fingerprint.clone();
        // The checkpoint from which this process resumed may be older than its last notification.
        if self.dedup.is_recorded(&alert.notification) {
            let ours = self.sent_last(&fingerprint);
            let keeps = match ours.is_some_and(|n| n.key == alert.notification.key) {
                true => Keeps::Needed(Box::new(alert)),
                false => Keeps::All,
            };
            self.return_alert(&fingerprint, keeps);
            return;
        }
        self.dedup.record(&alert.notification);
        self.changed = true;
        self.held.remove(&fingerprint);
        self.waiting.remove(&fingerprint);
        let ours = TransferredAlert {
            ack: None,
            earlier: None,
            ..alert.clone()
        };
        match ours.notification.status {
            Status::Firing => drop(self.firing.insert(fingerprint, ours)),
            Status::Resolved => drop(self.firing.remove(&fingerprint)),
        }
        self.dropped += u64::from(!self.take_over(alert));
    }

    /// Records in the journal who was notified, and queues what sinks still need. Returns whether
    /// there was room; if not, it is tried again.
    fn take_over(&mut self, alert: TransferredAlert) -> bool {
        let waiting = alert.to_send(&self.dispatcher.sinks());
        let moved = Move::TakeOver(Box::new(alert.clone()));
        if !self.send(Command::Move(moved)) {
            self.untaken.push(alert);
            return false;
        }
        for (notification, sinks) in waiting {
            if let Some(ours) = self.firing.get_mut(&notification.fingerprint)
                && notification.key == ours.notification.key
            {
                ours.missed.retain(|sink, _| !sinks.contains(sink));
            }
            self.waits(notification, sinks);
        }
        true
    }

    /// Takes over an alert without a notification of its last owner that still matters. A firing
    /// that this process notified may have ended since.
    fn acquire_quiet(&mut self, handover: &AlertHandover) {
        let fingerprint = &handover.fingerprint;
        let fired_ms = self.dedup.fired_since(fingerprint);
        let since_ms = fired_ms.or_else(|| Some(self.sent_last(fingerprint)?.since_ms));
        let ended = |since_ms| handover.ended_ms.is_some_and(|ended| ended >= since_ms);
        if !since_ms.is_some_and(ended) {
            self.return_alert(fingerprint, Keeps::All);
        } else if fired_ms.is_some() {
            self.changed = true;
            self.close(fingerprint.clone());
        } else {
            self.return_alert(fingerprint, Keeps::Ends);
        }
    }

    /// Marks an alert as owned by this process, and sends those of its held notifications that
    /// `keeps` selects.
    pub(super) fn return_alert(&mut self, fingerprint: &str, keeps: Keeps) {
        if self.dedup.reacquire(fingerprint)
            && let Some(notified) = self.firing.get(fingerprint)
        {
            let entry = Entry::Acquired(Box::new(notified.clone()));
            self.record(entry);
        }
        self.resume(fingerprint, keeps);
    }

    /// Sends those held notifications of an alert that `keeps` selects, because this process owns
    /// it.
    pub(super) fn resume(&mut self, fingerprint: &str, keeps: Keeps) {
        if !self.held.contains(fingerprint) {
            return;
        }
        let alert = fingerprint.to_owned();
        if self.passes(Move::Resume { alert, keeps }) {
            self.held.remove(fingerprint);
        }
    }

    /// Releases the alert of a stream that left with its last partition.
    pub fn release(&mut self, fingerprint: &str) {
        let alert = fingerprint.to_owned();
        self.untaken
            .retain(|untaken| untaken.notification.fingerprint != alert);
        if self.waiting.contains_key(fingerprint) && self.held.insert(alert.clone()) {
            let alert = alert.clone();
            self.passes(Move::Hold { alert });
        }
        if self.dedup.release(fingerprint) {
            self.record(Entry::Released { fingerprint: alert });
        }
        if let Some(fingerprint) = self.dedup.oldest_released() {
            self.close(fingerprint);
        }
    }

    fn close(&mut self, alert: String) {
        self.untaken
            .retain(|untaken| untaken.notification.fingerprint != alert);
        self.dedup.remove(&alert);
        self.firing.remove(&alert);
        self.waiting.remove(&alert);
        self.held.remove(&alert);
        self.passes(Move::Close { alert });
    }

    /// Passes a move to the thread "notifications"; without room it counts as dropped.
    fn passes(&mut self, moved: Move) -> bool {
        let sent = self.send(Command::Move(moved));
        self.dropped += u64::from(!sent);
        sent
    }
}
