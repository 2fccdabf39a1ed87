//! Ranges of topics: from which record to which, partition by partition.
//!
//! What people say is a time or an offset; what is read is a half-open range of offsets of each partition,
//! fixed before the first record. A time is looked up at the brokers: the first record of the partition
//! whose timestamp is not before it. Where the log ends is asked once and kept in [`Watermarks`], so that
//! a second reading of the same range, after more has been written, reads the same.
//!
//! What retention has deleted of a range is told as a [`Gap`]. Of a range by offsets that is a number of
//! records. Of one by time it is known once the oldest record that is left has been read: if the log no
//! longer begins at offset 0 and that record is younger than the range's begin, what was between is gone.

use super::context::Context;
use super::probe::probe;
use super::{KafkaError, KafkaOptions};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::{Offset, TopicPartitionList};
use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

/// How long one question to the brokers may take.
const REQUEST: Duration = Duration::from_secs(15);

/// Where dates of four digits end.
const YEAR_10000_MS: u64 = 253_402_300_800_000;

/// One end of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    /// The oldest record that is left.
    Earliest,
    /// The end of the log as it is now.
    Latest,
    /// The first record whose timestamp is not before this, in milliseconds since 1970.
    Time(i64),
    /// This offset of every partition.
    Offset(i64),
    /// This offset of each partition, by topic and number; others are not read.
    Offsets(BTreeMap<(String, i32), i64>),
}

/// What is read of one partition: offsets from `begin` up to and without `end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Index of the topic in the options.
    pub topic: u16,
    /// Its name.
    pub name: String,
    /// Partition.
    pub partition: i32,
    /// First offset.
    pub begin: i64,
    /// The offset after the last.
    pub end: i64,
    /// What is known to be missing before `begin`, by count.
    pub deleted: i64,
    /// Of a range by time whose begin is the oldest record that is left, though there were older ones: when it
    /// should have begun.
    pub cut_ms: Option<i64>,
}

/// Oldest offset and end of every log that was looked at, by brokers, topic and partition.
pub type Watermarks = BTreeMap<(String, String, i32), (i64, i64)>;

/// Records of a range that are not there any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// Topic.
    pub topic: String,
    /// Partition.
    pub partition: i32,
    /// Offset at which it begins now.
    pub oldest: i64,
    /// How much is gone.
    pub missing: Missing,
}

/// How much of a range is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// So many offsets.
    Records(i64),
    /// What was between the range's begin and the oldest record that is left.
    Until {
        /// The range's begin.
        from_ms: i64,
        /// The oldest record.
        oldest_ms: i64,
    },
    /// All of the partition.
    All,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (topic, partition, oldest) = (&self.topic, self.partition, self.oldest);
        match self.missing {
            Missing::Records(n) => write!(
                f,
                "{topic}/{partition}: {n} records before offset {oldest} are deleted"
            ),
            Missing::Until { from_ms, oldest_ms } => {
                let gap = Duration::from_millis(oldest_ms.abs_diff(from_ms));
                let at = match u64::try_from(oldest_ms)
                    .ok()
                    .filter(|ms| *ms < YEAR_10000_MS)
                {
                    Some(ms) => {
                        humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(ms))
                            .to_string()
                    }
                    None => format!(
                        "{oldest_ms} ms, which is no time of day; the producer may count in other units"
                    ),
                };
                write!(
                    f,
                    "{topic}/{partition}: the oldest record left is offset {oldest} of {at}, {} after the begin",
                    humantime::format_duration(gap)
                )
            }
            Missing::All => write!(
                f,
                "{topic}/{partition}: all its records before offset {oldest} are deleted"
            ),
        }
    }
}

/// A client that reads and never joins. The group's name is sent with nothing but the question who would
/// coordinate it; a client that has none cannot be given partitions.
pub(super) fn client(options: &KafkaOptions) -> Result<BaseConsumer<Context>, KafkaError> {
    let mut config = options.consumer_config();
    config.remove("group.instance.id");
    config
        .set("auto.offset.reset", "error")
        .set("enable.partition.eof", "true")
        .set("statistics.interval.ms", "0");
    config
        .create_with_context(Context::new(options.token(), options.lifeline()))
        .map_err(KafkaError::from_native)
}

/// The ranges of all partitions of the topics, which go from `from` to where `to` says for each topic. Asks
/// the brokers; an error says what is wrong with them or with a topic.
pub fn resolve(
    options: &KafkaOptions,
    from: &Bound,
    to: &[Bound],
    seen: &mut Watermarks,
) -> Result<Vec<Span>, KafkaError> {
    let probed = probe(options, REQUEST);
    if let Some(fault) = probed.faults.into_iter().next() {
        return Err(fault);
    }
    let client = client(options)?;
    // Whatever waits for the caller, as a request for a token.
    let _ = client.poll(Duration::from_millis(10));
    let mut spans = Vec::new();
    for ((topic, name), to) in (0u16..).zip(&options.topics).zip(to) {
        let partitions = probed.partitions.get(name).copied().unwrap_or(0);
        let partitions = i32::try_from(partitions).unwrap_or(i32::MAX);
        let begins = looked_up(&client, name, partitions, from)?;
        let ends = looked_up(&client, name, partitions, to)?;
        for partition in 0..partitions {
            let key = (options.brokers.clone(), name.clone(), partition);
            let marks = match seen.get(&key) {
                Some(marks) => *marks,
                None => {
                    let marks = client.fetch_watermarks(name, partition, REQUEST);
                    let marks = marks.map_err(KafkaError::from_native)?;
                    *seen.entry(key).or_insert(marks)
                }
            };
            let begin = place(from, name, partition, &begins, marks);
            let end = place(to, name, partition, &ends, marks);
            let (Some(begin), Some(end)) = (begin, end) else {
                continue;
            };
            spans.push(span((topic, name, partition), from, (begin, end), marks));
        }
    }
    Ok(spans)
}

/// By partition, the offset that the brokers say for a time; nothing for other bounds.
fn looked_up(
    client: &BaseConsumer<Context>,
    topic: &str,
    partitions: i32,
    bound: &Bound,
) -> Result<Vec<Option<i64>>, KafkaError> {
    let Bound::Time(ms) = bound else {
        return Ok(Vec::new());
    };
    let mut list = TopicPartitionList::new();
    for partition in 0..partitions {
        list.add_partition_offset(topic, partition, Offset::Offset(*ms))
            .map_err(KafkaError::from_native)?;
    }
    let answer = client
        .offsets_for_times(list, REQUEST)
        .map_err(KafkaError::from_native)?;
    let mut all = vec![None; partitions.unsigned_abs() as usize];
    for entry in answer.elements() {
        entry.error().map_err(KafkaError::from_native)?;
        let at = usize::try_from(entry.partition()).ok();
        if let (Some(slot), Offset::Offset(offset)) =
            (at.and_then(|at| all.get_mut(at)), entry.offset())
        {
            *slot = Some(offset);
        }
    }
    Ok(all)
}

/// Where a bound is in a partition; `None` where it leaves the partition out.
fn place(
    bound: &Bound,
    topic: &str,
    partition: i32,
    looked_up: &[Option<i64>],
    (low, high): (i64, i64),
) -> Option<i64> {
    match bound {
        Bound::Earliest => Some(low),
        Bound::Latest => Some(high),
        Bound::Offset(offset) => Some(*offset),
        Bound::Offsets(offsets) => offsets.get(&(topic.to_owned(), partition)).copied(),
        Bound::Time(_) => {
            let at = usize::try_from(partition).ok();
            let found = at.and_then(|at| looked_up.get(at).copied().flatten());
            // No record is as young: behind all there are.
            Some(found.unwrap_or(high))
        }
    }
}

fn span(
    (topic, name, partition): (u16, &str, i32),
    from: &Bound,
    (begin, end): (i64, i64),
    (low, high): (i64, i64),
) -> Span {
    let end = end.clamp(low, high);
    let by_offset = matches!(from, Bound::Offset(_) | Bound::Offsets(_));
    let cut_ms = match from {
        Bound::Time(ms) if low > 0 && begin <= low => Some(*ms),
        _ => None,
    };
    Span {
        topic,
        name: name.to_owned(),
        partition,
        begin: begin.clamp(low, end),
        end,
        deleted: if by_offset { (low - begin).max(0) } else { 0 },
        cut_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(from: Bound, begin: i64, end: i64, low: i64) -> (i64, i64, i64, Option<i64>) {
        let s = span(("t".len() as u16, "t", 0), &from, (begin, end), (low, 100));
        (s.begin, s.end, s.deleted, s.cut_ms)
    }

    #[test]
    fn a_range_ends_with_the_log_and_what_lies_before_it_is_counted() {
        assert_eq!(of(Bound::Offset(5), 5, 300, 20), (20, 100, 15, None));
        assert_eq!(of(Bound::Offset(30), 30, 40, 20), (30, 40, 0, None));
        assert_eq!(of(Bound::Earliest, 20, 100, 20), (20, 100, 0, None));
        // A begin behind the end is an empty range.
        assert_eq!(of(Bound::Offset(70), 70, 60, 0), (60, 60, 0, None));
    }

    #[test]
    fn a_range_by_time_may_be_cut_only_where_the_log_has_lost_its_first_records() {
        assert_eq!(of(Bound::Time(7), 20, 100, 20), (20, 100, 0, Some(7)));
        assert_eq!(of(Bound::Time(7), 21, 100, 20), (21, 100, 0, None));
        assert_eq!(of(Bound::Time(7), 0, 100, 0), (0, 100, 0, None));
    }

    #[test]
    fn a_gap_says_how_much_is_missing() {
        let gap = |oldest_ms| Gap {
            topic: "t".into(),
            partition: 3,
            oldest: 40,
            missing: Missing::Until {
                from_ms: 1_760_000_000_000,
                oldest_ms,
            },
        };
        let text = gap(1_760_007_200_000).to_string();
        assert!(
            text.contains("t/3") && text.contains("2h after the begin"),
            "{text}"
        );
        // Stamped in microseconds, and before 1970.
        for strange in [1_760_007_200_000_000, -1] {
            let text = gap(strange).to_string();
            assert!(
                text.contains(&format!("{strange} ms, which is no")),
                "{text}"
            );
        }
    }
}
