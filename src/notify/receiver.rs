//! What a receiver of notifications is: all kinds are behind one trait.

use super::notification::Notification;
use std::fmt;
use std::time::Duration;

/// Writes records to a topic. The application provides it, because the edges for Kafka and for
/// alerts do not know each other.
pub trait TopicSink: Send {
    /// Writes one record and waits for the brokers. Returns its position, or why it was not
    /// written.
    fn write(&mut self, key: &str, body: &str, timeout: Duration) -> Result<String, String>;
}

/// Who gets the notifications of a sink.
pub trait Receiver: Send {
    /// Sends one notification. Returns the response in one line.
    fn send(
        &mut self,
        sink: &str,
        notification: &Notification,
        now_ms: i64,
    ) -> Result<String, Failure>;

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
