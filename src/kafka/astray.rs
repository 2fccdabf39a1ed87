//! Partitions whose next record the broker does not have.
//!
//! Retention may delete records before they are read; a topic may be deleted and made anew under its name; a
//! broker that was elected without the others' consent may have a shorter log. librdkafka would go on at
//! its `auto.offset.reset` and tell nobody: records would be missing without a counter, or, where the log
//! is shorter than what was read of it, everything would be passed over that comes until it is as long
//! again. So that setting is `error` here, and it is decided what to do:
//!
//! ```text
//!   position unknown, nothing committed        go to where the configuration begins
//!   position < first offset of the log         go to the first; what is between was lost, and is told
//!   position > end of the log, or log cut      stop, or go to either end if the configuration says so
//!   otherwise (another replica, a moment ago)  go on at the position
//! ```
//!
//! The broker is asked for the ends of the log on the caller's thread, at most [`ASK`] at a time, and again
//! until it answers. Who has waited longest comes first, so that one whose leader is away keeps none of the others.

use super::options::{StartAt, Truncated};
use super::{KafkaError, Partition};
use rdkafka::Offset;
use rdkafka::types::RDKafkaErrorCode;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Longest wait for the ends of a log.
const ASK: Duration = Duration::from_secs(1);

/// Pause after a broker did not answer, in which none is asked: so the caller waits a third of the time at most.
const AGAIN: Duration = Duration::from_secs(2);

/// What is known of the position that the broker does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// Nothing was read or committed.
    None,
    /// The next offset to read.
    At(i64),
    /// The same, and the log was seen to be cut before it.
    Cut(i64),
}

/// What to do with a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    /// Read on from here; nothing is lost.
    On(Offset),
    /// Read on from the second; what is from the first on was deleted before it was read.
    Skip(i64, i64),
    /// Read from here what has other offsets than what was read.
    Rewind(i64),
    /// Leave it: it ends here, before the position.
    Stop(i64),
}

/// What a partition's error says of its position, if it is about that. `next` is the next offset by our own
/// count, `asked` the one that the broker was asked for, below 0 where there was none.
pub(super) fn position_of(code: i32, next: i64, asked: i64) -> Option<Position> {
    if code != RDKafkaErrorCode::AutoOffsetReset as i32 {
        return None;
    }
    Some(match (next > 0, asked >= 0) {
        (_, true) => Position::At(asked.max(next)),
        (true, false) => Position::Cut(next),
        (false, false) => Position::None,
    })
}

/// See the module. `ends` are the first offset of the log and the one after its last.
fn course(position: Position, (first, end): (i64, i64), truncated: Truncated) -> Course {
    let (at, cut) = match position {
        Position::None => return Course::On(Offset::Offset(first)),
        Position::At(at) => (at, at > end),
        Position::Cut(at) => (at, true),
    };
    match truncated {
        _ if !cut && at < first => Course::Skip(at, first),
        _ if !cut => Course::On(Offset::Offset(at)),
        Truncated::Stop => Course::Stop(end),
        Truncated::Earliest => Course::Rewind(first),
        Truncated::Latest => Course::Rewind(end),
    }
}

/// The partitions that are astray, and when each was last asked for.
#[derive(Debug)]
pub(super) struct Astray {
    start: StartAt,
    truncated: Truncated,
    all: BTreeMap<Partition, (Position, Instant)>,
    /// Nobody is asked before.
    rest: Instant,
}

impl Astray {
    pub fn new(start: StartAt, truncated: Truncated) -> Astray {
        Astray {
            start,
            truncated,
            all: BTreeMap::new(),
            rest: Instant::now(),
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn add(&mut self, partition: Partition, position: Position) {
        self.all.insert(partition, (position, Instant::now()));
    }

    pub fn forget(&mut self, partition: Partition) {
        self.all.remove(&partition);
    }

    /// What to do with the next partition whose turn it is; `ends` asks the broker.
    pub fn next(
        &mut self,
        ends: impl FnOnce(Partition, Duration) -> Result<(i64, i64), KafkaError>,
    ) -> Option<(Partition, Position, Result<Course, KafkaError>)> {
        if Instant::now() < self.rest {
            return None;
        }
        let longest = self.all.iter().min_by_key(|(_, (_, asked))| *asked);
        let (&partition, &(position, _)) = longest?;
        let course = match (position, self.start) {
            (Position::None, StartAt::Earliest) => Ok(Course::On(Offset::Beginning)),
            (Position::None, StartAt::Latest) => Ok(Course::On(Offset::End)),
            _ => ends(partition, ASK).map(|ends| course(position, ends, self.truncated)),
        };
        match &course {
            Ok(_) => self.forget(partition),
            Err(_) => {
                let now = Instant::now();
                self.rest = now + AGAIN;
                self.all.insert(partition, (position, now));
            }
        }
        Some((partition, position, course))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_within_the_log_is_kept_and_one_before_it_skips_what_was_deleted() {
        let of = |at| course(Position::At(at), (100, 200), Truncated::Stop);
        assert_eq!(of(99), Course::Skip(99, 100));
        assert_eq!(of(100), Course::On(Offset::Offset(100)));
        assert_eq!(of(200), Course::On(Offset::Offset(200)));
    }

    #[test]
    fn a_log_that_ends_before_the_position_stops_unless_it_is_said_where_to_go() {
        for position in [Position::At(201), Position::Cut(150)] {
            let of = |truncated| course(position, (100, 200), truncated);
            assert_eq!(of(Truncated::Stop), Course::Stop(200));
            assert_eq!(of(Truncated::Earliest), Course::Rewind(100));
            assert_eq!(of(Truncated::Latest), Course::Rewind(200));
        }
    }

    #[test]
    fn an_error_tells_the_position_by_what_was_asked_for() {
        let code = RDKafkaErrorCode::AutoOffsetReset as i32;
        assert_eq!(position_of(code, 0, -1001), Some(Position::None));
        assert_eq!(position_of(code, 0, 40), Some(Position::At(40)));
        assert_eq!(position_of(code, 50, 40), Some(Position::At(50)));
        assert_eq!(position_of(code, 50, -1001), Some(Position::Cut(50)));
        assert_eq!(position_of(code + 1, 50, 40), None);
    }

    #[test]
    fn a_broker_that_does_not_answer_is_asked_again_later() {
        let mut astray = Astray::new(StartAt::Latest, Truncated::Stop);
        let partition = Partition {
            topic: 0,
            partition: 1,
        };
        astray.add(partition, Position::At(7));
        let away = |_, _| Err(KafkaError::Other("away".into()));
        let (_, _, told) = astray.next(away).expect("its turn");
        assert!(told.is_err() && !astray.is_empty());
        assert!(astray.next(|_, _| Ok((0, 9))).is_none(), "not at once");
        let higher = Partition {
            partition: 2,
            ..partition
        };
        astray.add(higher, Position::At(7));
        astray.rest = Instant::now();
        astray.all.get_mut(&higher).expect("there").1 -= Duration::from_secs(9);
        for turn in [higher, partition] {
            let (whose, _, told) = astray.next(|_, _| Ok((0, 9))).expect("its turn");
            assert_eq!((whose, told), (turn, Ok(Course::On(Offset::Offset(7)))));
        }
        assert!(astray.is_empty());
    }
}
