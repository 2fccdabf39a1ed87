//! What becomes of waiting notifications when an alert moves between processes.

use super::journal::TransferredAlert;
use super::journal_updates::Waiting;
use super::notification::{Notification, Status};

/// What to do with the waiting notifications of an alert that moves.
pub(super) enum Move {
    /// The alert left: none of them is sent unless it returns.
    Hold { alert: String },
    /// The alert is here again: those that `keeps` selects are sent.
    Resume { alert: String, keeps: Keeps },
    /// The alert came from another process, whose last notification is newer than ours.
    TakeOver(Box<TransferredAlert>),
    /// The alert ended in another process.
    Close { alert: String },
}

/// Which of the waiting notifications are sent.
pub(super) enum Keeps {
    /// All of them.
    All,
    /// Those that sinks still need, according to its last owner.
    Needed(Box<TransferredAlert>),
    /// Only ends, to sinks that got all firing notifications. If a firing notification waits too,
    /// another process may have sent both, or nobody.
    Ends,
}

impl Keeps {
    /// Whether this notification is sent to the sink; `all` has those that wait.
    pub fn keeps(&self, all: &Waiting, notification: &Notification, sink: &String) -> bool {
        let begins = |(n, sinks): &(Notification, Vec<String>)| {
            n.status == Status::Firing && sinks.contains(sink)
        };
        match self {
            Keeps::All => true,
            Keeps::Needed(alert) => alert.leaves(notification, sink),
            Keeps::Ends => !all.iter().any(begins),
        }
    }
}
