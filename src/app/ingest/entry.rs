//! The one way of a decoded record into the engine.
//!
//! Kafka, topic ranges and files all end here: the record is observed, joined or counted as rejected, the
//! statistics of a replay are taken, and the caller learns whether the record has to be reported as
//! rejected. A record that holds several events passes once per row.
//!
//! The caller says when the record arrived: where it was read live, no later than that. It has found what counts the record's partition before. A record of a partition that this
//! process does not own never comes here and is not counted: its owner counts it.

use super::stats::ReplayStats;
use crate::collect::{Disposition, Origin};
use crate::decode::{Content, Rejection};
use crate::monitor::RecordSink;

/// How a record, or a row of it, ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// The engine has counted it.
    Counted,
    /// The engine had counted it before a restart.
    Replayed,
    /// It is counted as rejected, for this reason.
    Rejected(Rejection),
}

/// Hands one decoded record, or one row of it, to what counts its partition.
#[inline]
pub fn take(
    sink: &mut (impl RecordSink + ?Sized),
    stats: Option<&mut ReplayStats>,
    (origin, arrival_ms): (Origin, Option<i64>),
    decoded: Result<Content<'_>, Rejection>,
) -> Taken {
    let disposition = match decoded {
        Ok(Content::Event(mut event)) => {
            event.arrival_ms = arrival_ms;
            if let Some(stats) = stats {
                stats.event(event.time_ms);
            }
            sink.observe(origin, &event)
        }
        Ok(Content::Outcome(mut label)) => {
            label.arrival_ms = arrival_ms;
            if let Some(stats) = stats {
                stats.outcome(label.time_ms);
            }
            sink.label(origin, &label)
        }
        Err(rejection) => return reject(sink, (origin, arrival_ms), rejection),
    };
    match disposition {
        Disposition::Replayed => Taken::Replayed,
        Disposition::Rejected(reason) => Taken::Rejected(Rejection {
            reason,
            detail: reason.words().to_owned(),
        }),
        Disposition::Refused(cap) => {
            let cap = cap.as_str();
            crate::warn_limited!(cap, "good record refused by a cap; see [limits]");
            Taken::Counted
        }
        _ => Taken::Counted,
    }
}

/// Counts a record that could not be decoded.
#[cold]
pub fn reject(
    sink: &mut (impl RecordSink + ?Sized),
    (origin, arrival_ms): (Origin, Option<i64>),
    rejection: Rejection,
) -> Taken {
    match sink.reject(origin, arrival_ms, rejection.reason) {
        Disposition::Replayed => Taken::Replayed,
        _ => Taken::Rejected(rejection),
    }
}
