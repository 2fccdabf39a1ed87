//! What becomes of notifications that wait where an alert moves between processes.

use super::journal::TransferredAlert;
use super::journal_updates::Waiting;
use super::notification::{Notification, Status};

/// What is to be done with what waits of an alert.
pub(super) enum Move {
    /// It left: nothing of it is sent unless it returns.
    Hold { alert: String },
    /// It is here again, and what waited is sent.
    Resume { alert: String, keeps: Keeps },
    /// It came from another process, whose last notification is newer than ours.
    TakeOver(Box<TransferredAlert>),
    /// It ended in another process.
    Close { alert: String },
}

/// Which of the waiting notifications are sent.
pub(super) enum Keeps {
    /// All of it.
    All,
    /// What its last owner knows to be needed.
    Needed(Box<TransferredAlert>),
    /// Ends of what sinks got: others may have sent the whole, or nobody a part.
    Ends,
}

impl Keeps {
    /// Whether this one is sent to the sink; `all` wait.
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
