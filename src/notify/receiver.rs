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

impl Failure {
    /// The same of a request to close an incident. One that is not found (404) is not found later
    /// either, and must not delay what is behind it.
    fn of_closing(self) -> Failure {
        match self {
            Failure::Temporary(why) if why.starts_with("404") => Failure::Permanent(why),
            failure => failure,
        }
    }
}

/// Sends the requests about one notification in order. The first one is about the incident of its
/// own severity, which it closes if the alert `ends`. The others close incidents of severities from
/// before, which the receiver may not have: it does not matter if it refuses them, nor to them if
/// it refuses to close the first one.
pub(super) fn send_in_order<R>(
    ends: bool,
    (own, others): (R, Vec<R>),
    send: impl Fn(R) -> Result<String, Failure>,
) -> Result<String, Failure> {
    let close = |request: R| send(request).map_err(Failure::of_closing);
    let sent = if ends { close(own) } else { send(own) };
    let goes_on = match &sent {
        Ok(_) => true,
        Err(Failure::Permanent(_)) => ends,
        Err(Failure::Temporary(_)) => false,
    };
    for other in others.into_iter().filter(|_| goes_on) {
        if let Err(later @ Failure::Temporary(_)) = close(other) {
            return Err(later);
        }
    }
    sent
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::Temporary(why) | Failure::Permanent(why)) = self;
        f.write_str(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// What is sent of requests 0, 1 and 2, which are answered so, and what comes of it.
    fn sent(ends: bool, answers: [&str; 3]) -> (Vec<usize>, Result<String, Failure>) {
        let tried = RefCell::new(Vec::new());
        let result = send_in_order(ends, (0, vec![1, 2]), |i: usize| {
            tried.borrow_mut().push(i);
            let answer = answers[i].to_owned();
            match answers[i] {
                "202" => Ok(answer),
                "400" => Err(Failure::Permanent(answer)),
                _ => Err(Failure::Temporary(answer)),
            }
        });
        (tried.into_inner(), result)
    }

    #[test]
    fn what_cannot_be_closed_stops_nothing_else() {
        let ok = Ok("202".to_owned());
        let refused = |why: &str| Err(Failure::Permanent(why.to_owned()));
        let later = |why: &str| Err(Failure::Temporary(why.to_owned()));
        for ends in [false, true] {
            for unknown in ["400", "404"] {
                let answers = ["202", unknown, "202"];
                assert_eq!(sent(ends, answers), (vec![0, 1, 2], ok.clone()));
            }
            // All is sent again.
            assert_eq!(
                sent(ends, ["202", "503", "202"]),
                (vec![0, 1], later("503"))
            );
            assert_eq!(sent(ends, ["503", "202", "202"]), (vec![0], later("503")));
        }
        for unknown in ["400", "404"] {
            let answers = [unknown, "202", "202"];
            assert_eq!(sent(true, answers), (vec![0, 1, 2], refused(unknown)));
        }
        // What was open before stays open until something else is.
        assert_eq!(
            sent(false, ["400", "202", "202"]),
            (vec![0], refused("400"))
        );
        assert_eq!(sent(false, ["404", "202", "202"]), (vec![0], later("404")));
    }
}
