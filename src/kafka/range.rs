//! Offset ranges of topics.
//!
//! People give a time or an offset. The reader needs a half-open range of offsets for each
//! partition, fixed before the first record. The brokers resolve a time to the first record whose
//! timestamp is not before it. The ends of the logs are requested once and stored in
//! [`OffsetBounds`], so that reading the same range again returns the same records even if more
//! were written.
//!
//! Records of a range that retention has deleted are reported as a [`Gap`]. For a range by offset
//! the number of records is known. For a range by time the gap is known once the oldest remaining
//! record is read: if the log no longer starts at offset 0 and that record is later than the start
//! of the range, the records between are gone.

use super::context::Context;
use super::probe::probe;
use super::{KafkaError, KafkaOptions};
use crate::report::moment::{YEAR_10000_MS, rfc3339_millis};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::{Offset, TopicPartitionList};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Longest duration of one request.
const REQUEST: Duration = Duration::from_secs(15);

/// One end of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    /// The oldest remaining record.
    Earliest,
    /// The current end of the log.
    Latest,
    /// The first record whose timestamp is not before this time, in ms since 1970.
    Time(i64),
    /// This offset of every partition.
    Offset(i64),
    /// An offset by topic and partition. Other partitions are not read.
    Offsets(BTreeMap<(String, i32), i64>),
}

/// The range of one partition: offsets from `begin` up to but excluding `end`.
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
    /// Number of records known to be missing before `begin`.
    pub deleted: i64,
    /// Requested start of a range by time, if it starts at the oldest remaining record although
    /// there were older ones.
    pub cut_ms: Option<i64>,
}

/// First offset and end of every requested log, by brokers, topic and partition.
pub type OffsetBounds = BTreeMap<(String, String, i32), (i64, i64)>;

/// Records of a range that no longer exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// Topic.
    pub topic: String,
    /// Partition.
    pub partition: i32,
    /// First remaining offset.
    pub oldest: i64,
    /// What is missing.
    pub missing: Missing,
}

/// The missing part of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// This number of offsets.
    Records(i64),
    /// Everything from the start of the range to the oldest remaining record.
    Until {
        /// Start of the range.
        from_ms: i64,
        /// Time of the oldest remaining record.
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
                let at = match oldest_ms {
                    0..YEAR_10000_MS => rfc3339_millis(oldest_ms),
                    _ => format!(
                        "{oldest_ms} ms, which is not a valid time; the producer may use another unit"
                    ),
                };
                write!(
                    f,
                    "{topic}/{partition}: the oldest remaining record is offset {oldest} at {at}, {} after the start of the range",
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

/// A client that never joins its group. librdkafka sends the group's name only to look up its
/// coordinator, but does not accept assigned partitions without a group.
pub(super) fn client(options: &KafkaOptions) -> Result<BaseConsumer<Context>, KafkaError> {
    let mut config = options.consumer_config();
    config.remove("group.instance.id");
    config
        .set("auto.offset.reset", "error")
        .set("enable.partition.eof", "true")
        .set("statistics.interval.ms", "0");
    let context = Context::new(options);
    let client = config.create_with_context(context);
    client.map_err(|error| KafkaError::of_creation(error, options))
}

/// The ranges of all partitions, from `from` to the bound of each topic in `to`. Requests offsets
/// from the brokers. An error names the problem with a broker or a topic.
pub fn resolve(
    options: &KafkaOptions,
    from: &Bound,
    to: &[Bound],
    seen: &mut OffsetBounds,
) -> Result<Vec<Span>, KafkaError> {
    let probed = probe(options, REQUEST);
    // The ranges are read without the group.
    if let Some(problem) = probed.problems.into_iter().find(|p| !p.is_of_group()) {
        return Err(problem);
    }
    let client = client(options)?;
    // Runs pending callbacks, such as a request for a token.
    let _ = client.poll(Duration::from_millis(10));
    let mut spans = Vec::new();
    for ((topic, name), to) in (0u16..).zip(&options.topics).zip(to) {
        let partitions = probed.partitions.get(name).copied().unwrap_or(0);
        let partitions = i32::try_from(partitions).unwrap_or(i32::MAX);
        let begins = offsets_of_time(&client, name, partitions, from)?;
        let ends = offsets_of_time(&client, name, partitions, to)?;
        for partition in 0..partitions {
            let key = (options.brokers.clone(), name.clone(), partition);
            let bounds = match seen.get(&key) {
                Some(bounds) => *bounds,
                None => {
                    let bounds = client.fetch_watermarks(name, partition, REQUEST)?;
                    *seen.entry(key).or_insert(bounds)
                }
            };
            let begin = offset_of(from, name, partition, &begins, bounds);
            let end = offset_of(to, name, partition, &ends, bounds);
            let (Some(begin), Some(end)) = (begin, end) else {
                continue;
            };
            spans.push(span(topic, name, partition, from, begin, end, bounds));
        }
    }
    Ok(spans)
}

/// The offset of a time in each partition, from the brokers; empty for other bounds.
fn offsets_of_time(
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
        list.add_partition_offset(topic, partition, Offset::Offset(*ms))?;
    }
    let found = client.offsets_for_times(list, REQUEST)?;
    let mut all = vec![None; partitions.unsigned_abs() as usize];
    for entry in found.elements() {
        entry.error()?;
        let at = usize::try_from(entry.partition()).ok();
        if let (Some(slot), Offset::Offset(offset)) =
            (at.and_then(|at| all.get_mut(at)), entry.offset())
        {
            *slot = Some(offset);
        }
    }
    Ok(all)
}

/// The offset of a bound in a partition; `None` if the bound excludes the partition.
fn offset_of(
    bound: &Bound,
    topic: &str,
    partition: i32,
    of_time: &[Option<i64>],
    (low, high): (i64, i64),
) -> Option<i64> {
    match bound {
        Bound::Earliest => Some(low),
        Bound::Latest => Some(high),
        Bound::Offset(offset) => Some(*offset),
        Bound::Offsets(offsets) => offsets.get(&(topic.to_owned(), partition)).copied(),
        Bound::Time(_) => {
            let at = usize::try_from(partition).ok();
            let found = at.and_then(|at| of_time.get(at).copied().flatten());
            // No record is late enough: the end of the log.
            Some(found.unwrap_or(high))
        }
    }
}

fn span(
    topic: u16,
    name: &str,
    partition: i32,
    from: &Bound,
    begin: i64,
    end: i64,
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
        let s = span(1, "t", 0, &from, begin, end, (low, 100));
        (s.begin, s.end, s.deleted, s.cut_ms)
    }

    #[test]
    fn a_range_ends_with_the_log_and_missing_records_are_counted() {
        assert_eq!(of(Bound::Offset(5), 5, 300, 20), (20, 100, 15, None));
        assert_eq!(of(Bound::Offset(30), 30, 40, 20), (30, 40, 0, None));
        assert_eq!(of(Bound::Earliest, 20, 100, 20), (20, 100, 0, None));
        // A start after the end is an empty range.
        assert_eq!(of(Bound::Offset(70), 70, 60, 0), (60, 60, 0, None));
    }

    #[test]
    fn a_range_by_time_may_be_cut_only_where_the_log_has_lost_its_first_records() {
        assert_eq!(of(Bound::Time(7), 20, 100, 20), (20, 100, 0, Some(7)));
        assert_eq!(of(Bound::Time(7), 21, 100, 20), (21, 100, 0, None));
        assert_eq!(of(Bound::Time(7), 0, 100, 0), (0, 100, 0, None));
    }

    #[test]
    fn a_gap_names_what_is_missing() {
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
            text.contains("t/3") && text.contains("2h after the start"),
            "{text}"
        );
        // A timestamp in microseconds, and one before 1970.
        for strange in [1_760_007_200_000_000, -1] {
            let text = gap(strange).to_string();
            assert!(
                text.contains(&format!("{strange} ms, which is not")),
                "{text}"
            );
        }
    }
}
