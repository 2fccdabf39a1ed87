//! What a process passes on at once when a sink has taken a notification. The engine's thread
//! learns of it later ([`super::journal_updates`]), because it may first judge thousands of
//! streams.

use super::entry::{State, TransferredAlert};
use super::notification::Notification;
use crate::judge::StreamId;
use crate::stats::view::View;
use std::fmt;
use std::sync::OnceLock;

/// What people were notified of an alert, after a sink has taken a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// Fingerprint of the alert.
    pub fingerprint: String,
    /// A stream that would belong to this alert: the alert moves with its model.
    pub stream: StreamId,
    /// The alert as text, as in [`super::Notifier::transfers`].
    pub text: String,
}

impl Delivered {
    /// What the journal says about an alert; `None` if it has forgotten the alert.
    pub(super) fn of(state: &State, fingerprint: &str) -> Option<Delivered> {
        let last = state.last.get(fingerprint)?;
        let ack = state.silences.acks.get(fingerprint).cloned();
        let waiting = state.waiting_of(fingerprint);
        let alert = TransferredAlert::of(state, last).leaving(Some(&waiting), ack);
        Some(Delivered {
            fingerprint: fingerprint.to_owned(),
            stream: stream_of(last),
            text: serde_json::to_string(&alert).ok()?,
        })
    }
}

/// A stream that belongs to this alert, however alerts are grouped.
fn stream_of(n: &Notification) -> StreamId {
    StreamId {
        model: n.model.clone(),
        version: n.version.clone(),
        segment: n.segment.clone(),
        view: n.view.parse().unwrap_or(View::Binary),
    }
}

/// The fingerprint of the alert in a text of [`super::Notifier::transfers`].
pub fn fingerprint_of(text: &str) -> Option<String> {
    let alert: TransferredAlert = serde_json::from_str(text).ok()?;
    Some(alert.notification.fingerprint)
}

/// Receives what was delivered. It must not wait: a sink's thread calls it.
pub type DeliveryListener = Box<dyn Fn(Delivered) + Send + Sync>;

/// The listener for deliveries, if one is set.
#[derive(Default)]
pub(super) struct Listener(OnceLock<DeliveryListener>);

impl Listener {
    /// Sets the listener; the first one stays.
    pub(super) fn set(&self, listener: DeliveryListener) {
        let _ = self.0.set(listener);
    }

    /// Calls the listener, because a sink has taken a notification of this alert.
    pub(super) fn delivered(&self, state: &State, fingerprint: &str) {
        if let Some(listener) = self.0.get()
            && let Some(delivered) = Delivered::of(state, fingerprint)
        {
            listener(delivered);
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listener")
            .field(&self.0.get().is_some())
            .finish()
    }
}
