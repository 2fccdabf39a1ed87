//! Recovery from offsets that are out of range.
//!
//! Retention may delete records before they are read. A topic may be deleted and created again
//! under its name. A broker that becomes leader in an unclean election may have a shorter log.
//! librdkafka would silently continue at its `auto.offset.reset`: records would be missing without
//! a counter, or, if the log became shorter, all new records would be skipped until the log is as
//! long again. So that setting is `error` here, and this module decides:
//!
//! ```text
//!   position unknown, nothing committed        start where the configuration says
//!   position < first offset of the log         continue at the first; report the gap as lost
//!   position > end of the log, or log cut      stop, or continue at either end, as configured
//!   otherwise (another replica, a moment ago)  continue at the position
//! ```
//!
//! The ends of the log are requested on the caller's thread, each time for at most [`REQUEST`],
//! until the broker responds. The partition that has waited longest comes first, so that a
//! partition without a leader does not delay the others.

use super::options::Truncated;
use super::{KafkaError, Partition};
use rdkafka::Offset;
use rdkafka::types::RDKafkaErrorCode;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Longest wait for the ends of a log.
const REQUEST: Duration = Duration::from_secs(1);

/// Pause of all requests after one failed. So the caller waits at most a third of the time.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// A position that is out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// Nothing was read or committed.
    None,
    /// The next offset to read.
    At(i64),
    /// The next offset to read; the log was cut before it.
    Cut(i64),
}

impl Position {
    /// The next offset to read; 0 if nothing was read.
    pub fn offset(self) -> i64 {
        match self {
            Position::None => 0,
            Position::At(at) | Position::Cut(at) => at,
        }
    }

    /// The position of a partition that was restarted at this offset and had no record since: an
    /// error without an offset may belong to an earlier request.
    pub fn since_restart(self, restart: Option<&Option<i64>>) -> Position {
        match (self, restart) {
            (Position::None, Some(Some(at))) => Position::At(*at),
            (Position::Cut(next), Some(_)) => Position::At(next),
            (position, _) => position,
        }
    }
}

/// What to do with a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Continue here; nothing is lost.
    Continue(Offset),
    /// Continue at the second offset; the records from the first one on were deleted unread.
    Skip(i64, i64),
    /// Continue here; the records may reuse offsets that were already read.
    Rewind(i64),
    /// Suspend the partition: it ends here, before the position.
    Stop(i64),
}

/// The position behind a partition's error; `None` for other errors. `next` is the next offset by
/// our own count. `requested` is the offset that was requested from the broker, negative if there
/// was none.
pub(super) fn position_of(code: i32, next: i64, requested: i64) -> Option<Position> {
    if code != RDKafkaErrorCode::AutoOffsetReset as i32 {
        return None;
    }
    Some(match (next > 0, requested >= 0) {
        (_, true) => Position::At(requested.max(next)),
        (true, false) => Position::Cut(next),
        (false, false) => Position::None,
    })
}

/// The action for a position, given the first offset of the log and the one after its last.
fn action(position: Position, (first, end): (i64, i64), truncated: Truncated) -> Action {
    let (at, cut) = match position {
        Position::None => return Action::Continue(Offset::Offset(first)),
        Position::At(at) => (at, at > end),
        Position::Cut(at) => (at, true),
    };
    match truncated {
        _ if !cut && at < first => Action::Skip(at, first),
        _ if !cut => Action::Continue(Offset::Offset(at)),
        Truncated::Stop => Action::Stop(end),
        Truncated::Earliest => Action::Rewind(first),
        Truncated::Latest => Action::Rewind(end),
    }
}

/// Partitions whose position is out of range, and the time of the last request for each.
#[derive(Debug)]
pub(super) struct OffsetRecovery {
    truncated: Truncated,
    all: BTreeMap<Partition, (Position, Instant)>,
    /// No request before this time.
    retry_at: Instant,
}

impl OffsetRecovery {
    pub fn new(truncated: Truncated) -> OffsetRecovery {
        OffsetRecovery {
            truncated,
            all: BTreeMap::new(),
            retry_at: Instant::now(),
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn contains(&self, partition: Partition) -> bool {
        self.all.contains_key(&partition)
    }

    pub fn add(&mut self, partition: Partition, position: Position) {
        self.all.insert(partition, (position, Instant::now()));
    }

    pub fn remove(&mut self, partition: Partition) {
        self.all.remove(&partition);
    }

    /// The action for the next partition. `ends` requests the ends of its log from the broker.
    pub fn next(
        &mut self,
        ends: impl FnOnce(Partition, Duration) -> Result<(i64, i64), KafkaError>,
    ) -> Option<(Partition, Position, Result<Action, KafkaError>)> {
        if Instant::now() < self.retry_at {
            return None;
        }
        let longest = self.all.iter().min_by_key(|(_, (_, requested))| *requested);
        let (&partition, &(position, _)) = longest?;
        let action = ends(partition, REQUEST).map(|ends| action(position, ends, self.truncated));
        match &action {
            Ok(_) => self.remove(partition),
            Err(_) => {
                let now = Instant::now();
                self.retry_at = now + RETRY_AFTER;
                self.all.insert(partition, (position, now));
            }
        }
        Some((partition, position, action))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_within_the_log_is_kept_and_one_before_it_skips_what_was_deleted() {
        let of = |at| action(Position::At(at), (100, 200), Truncated::Stop);
        assert_eq!(of(99), Action::Skip(99, 100));
        assert_eq!(of(100), Action::Continue(Offset::Offset(100)));
        assert_eq!(of(200), Action::Continue(Offset::Offset(200)));
    }

    #[test]
    fn a_log_that_ends_before_the_position_stops_unless_configured_otherwise() {
        for position in [Position::At(201), Position::Cut(150)] {
            let of = |truncated| action(position, (100, 200), truncated);
            assert_eq!(of(Truncated::Stop), Action::Stop(200));
            assert_eq!(of(Truncated::Earliest), Action::Rewind(100));
            assert_eq!(of(Truncated::Latest), Action::Rewind(200));
        }
    }

    #[test]
    fn an_error_yields_the_position_that_was_requested() {
        let code = RDKafkaErrorCode::AutoOffsetReset as i32;
        assert_eq!(position_of(code, 0, -1001), Some(Position::None));
        assert_eq!(position_of(code, 0, 40), Some(Position::At(40)));
        assert_eq!(position_of(code, 50, 40), Some(Position::At(50)));
        assert_eq!(position_of(code, 50, -1001), Some(Position::Cut(50)));
        assert_eq!(position_of(code + 1, 50, 40), None);
    }

    #[test]
    fn an_error_from_before_a_restart_moves_nothing() {
        let restart = Some(40);
        let since = |position: Position| position.since_restart(Some(&restart));
        assert_eq!(since(Position::None), Position::At(40));
        assert_eq!(since(Position::Cut(40)), Position::At(40));
        assert_eq!(since(Position::At(9)), Position::At(9));
        assert_eq!(Position::Cut(40).since_restart(None), Position::Cut(40));
    }

    #[test]
    fn a_request_that_fails_is_repeated_later() {
        let mut recovery = OffsetRecovery::new(Truncated::Stop);
        let partition = (0, 1).into();
        recovery.add(partition, Position::At(7));
        let away = |_, _| Err(KafkaError::Other("away".into()));
        let (_, _, result) = recovery.next(away).expect("its turn");
        assert!(result.is_err() && !recovery.is_empty());
        assert!(recovery.next(|_, _| Ok((0, 9))).is_none(), "not at once");
        let higher = (0, 2).into();
        recovery.add(higher, Position::At(7));
        recovery.retry_at = Instant::now();
        recovery.all.get_mut(&higher).expect("there").1 -= Duration::from_secs(9);
        for turn in [higher, partition] {
            let (whose, _, result) = recovery.next(|_, _| Ok((0, 9))).expect("its turn");
            let goes_on = Ok(Action::Continue(Offset::Offset(7)));
            assert_eq!((whose, result), (turn, goes_on));
        }
        assert!(recovery.is_empty());
    }
}
