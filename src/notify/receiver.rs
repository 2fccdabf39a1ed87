//! The trait of all kinds of receivers of notifications.

use super::notification::Notification;
use std::time::Duration;

/// Writes one record, of a key and a value, to a topic and waits for the brokers. Returns its
/// position, or why it was not written. The application provides it, because the modules for Kafka
/// and for notifications do not import each other.
pub type TopicSink = Box<dyn FnMut(&str, &str) -> Result<String, String> + Send>;

/// What receives the notifications of a sink.
pub trait Receiver: Send {
    /// Sends one notification. Returns the response in one line.
    fn send(&mut self, notification: &Notification, now_ms: i64) -> Result<String, Failure>;

    /// Whether firing alerts must be sent again and again.
    fn needs_resend(&self) -> bool {
        false
    }

    /// Sends these firing alerts again.
    fn resend(&mut self, _firing: &[Notification], _now_ms: i64) -> Result<String, Failure> {
        Ok(String::new())
    }
}

/// Why a notification was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub enum Failure {
    /// It may be accepted later.
    Temporary(String),
    /// It may be accepted later, and the receiver asks for a pause before that.
    Busy(String, Duration),
    /// The receiver does not find what the notification is about (404), or its address is wrong. It
    /// may be accepted later.
    NotFound(String),
    /// It will never be accepted.
    Permanent(String),
}

impl Failure {
    /// Whether it will never be accepted.
    pub fn is_permanent(&self) -> bool {
        matches!(self, Failure::Permanent(_))
    }
}

/// Sends the requests about one notification in order. The first one, if there is one, is about the
/// incident of its own severity, which it closes if the alert `ends`. The others close incidents of
/// other severities, which the receiver may not have: permanent refusals of these are ignored. If
/// closing the first one is permanently refused, the others are still sent. `send` sends the first
/// one, `close` the others.
pub(super) fn send_in_order<R>(
    ends: bool,
    (own, others): (Option<R>, Vec<R>),
    send: impl Fn(R) -> Result<String, Failure>,
    close: impl Fn(R) -> Result<String, Failure>,
) -> Result<String, Failure> {
    let mut sent = own.map(send);
    let goes_on = match &sent {
        None | Some(Ok(_)) => true,
        Some(Err(failure)) => ends && failure.is_permanent(),
    };
    for other in others.into_iter().filter(|_| goes_on) {
        let closed = close(other);
        if closed
            .as_ref()
            .is_err_and(|failure| !failure.is_permanent())
        {
            return closed;
        }
        sent.get_or_insert(closed);
    }
    sent.unwrap_or_else(|| Ok(String::new()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn answer(of: &str) -> Result<String, Failure> {
        let said = of.to_owned();
        match of {
            "202" => Ok(said),
            "400" => Err(Failure::Permanent(said)),
            "404" => Err(Failure::NotFound(said)),
            _ => Err(Failure::Temporary(said)),
        }
    }

    /// Which of the requests 0, 1 and 2 are sent, if they get these answers, and the result.
    fn sent(ends: bool, answers: [&str; 3]) -> (Vec<usize>, Result<String, Failure>) {
        let tried = RefCell::new(Vec::new());
        let send = |i: usize| {
            tried.borrow_mut().push(i);
            answer(answers[i])
        };
        let result = send_in_order(ends, (Some(0), vec![1, 2]), send, send);
        (tried.into_inner(), result)
    }

    #[test]
    fn what_cannot_be_closed_stops_nothing_else() {
        for ends in [false, true] {
            let refused = sent(ends, ["202", "400", "202"]);
            assert_eq!(refused, (vec![0, 1, 2], answer("202")));
            // The whole notification is tried again.
            for later in ["404", "503"] {
                let sent = |answers| sent(ends, answers);
                assert_eq!(sent(["202", later, "202"]), (vec![0, 1], answer(later)));
                assert_eq!(sent([later, "202", "202"]), (vec![0], answer(later)));
            }
        }
        let end = sent(true, ["400", "202", "202"]);
        assert_eq!(end, (vec![0, 1, 2], answer("400")));
        // The old incident stays open until a new one is open.
        let opening = sent(false, ["400", "202", "202"]);
        assert_eq!(opening, (vec![0], answer("400")));
    }

    #[test]
    fn closing_the_others_is_all_where_there_is_nothing_of_its_own() {
        let of = |answers: [&str; 2]| {
            let send = |_: usize| answer("400");
            let close = |i: usize| answer(answers[i]);
            send_in_order(false, (None, vec![0, 1]), send, close)
        };
        assert_eq!(of(["202", "202"]), answer("202"));
        assert_eq!(of(["202", "503"]), answer("503"));
    }
}
