//! What a receiver of notifications is: all kinds are behind one trait.

use super::notification::Notification;
use std::fmt;

/// Writes one record, of a key and a value, to a topic and waits for the brokers. Returns its
/// position, or why it was not written. The application provides it, because the edges for Kafka
/// and for alerts do not know each other.
pub type TopicSink = Box<dyn FnMut(&str, &str) -> Result<String, String> + Send>;

/// Who gets the notifications of a sink.
pub trait Receiver: Send {
    /// Sends one notification. Returns the response in one line.
    fn send(&mut self, notification: &Notification, now_ms: i64) -> Result<String, Failure>;

    /// Whether firing alerts must be sent again and again.
    fn needs_resend(&self) -> bool {
        false
    }

    /// Sends the firing alerts again.
    fn resend(&mut self, _firing: &[Notification], _now_ms: i64) -> Result<String, Failure> {
        Ok(String::new())
    }
}

/// Why a notification was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It may be accepted later.
    Temporary(String),
    /// It will never be accepted.
    Permanent(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::Temporary(why) | Failure::Permanent(why)) = self;
        f.write_str(why)
    }
}
