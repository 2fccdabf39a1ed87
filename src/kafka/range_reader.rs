//! Reads ranges of topics in one order, without being a member of any group.
//!
//! Records of all partitions come in the order of their timestamps, those of equal times by topic and
//! partition, those of one partition by offset: an order that depends on the topics alone. So two readings
//! of the same range hand over the same records in the same order, whatever the brokers answered first.
//! A partition whose range ends says so in its place among the records.
//!
//! Each partition has a queue of its own, which librdkafka fills up to a limit and no further. So memory is
//! bounded though one partition may be far ahead of another: all of them together may hold
//! [`QUEUE_KBYTES_MAX`], or one answer to a fetch each if that is more.
//!
//! Nothing is committed and nothing is written. Reading waits for brokers that are away, and gives up after
//! [`PATIENCE`] without a record.

use super::context::Context;
use super::native::BatchQueue;
use super::range::{Gap, Missing, Span, client};
use super::{KafkaError, KafkaOptions, Owned, Partition, QUEUE_KBYTES_MAX, Record};
use crate::kafka::Headers;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{Offset, TopicPartitionList};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long to wait for the next record of a partition.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest wait before errors are looked at again.
const WAIT: Duration = Duration::from_millis(100);
/// Bytes of records that are taken over from a partition's queue at once.
const TAKE_BYTES: usize = 256 << 10;
/// librdkafka's codes for the end of a partition, and for an offset that is not there.
const PARTITION_EOF: i32 = RDKafkaErrorCode::PartitionEOF as i32;
const OFFSET_RESET: i32 = RDKafkaErrorCode::AutoOffsetReset as i32;

/// What comes next in a range.
#[derive(Debug)]
pub enum Step {
    /// A record.
    Record(Owned),
    /// The range of a partition has ended.
    End(Partition),
}

/// One partition.
struct Lane {
    // Dropped before the client; see the safety argument in `native`.
    queue: BatchQueue,
    span: Span,
    /// Taken over and not handed over.
    waiting: VecDeque<Owned>,
    /// Nothing more is to be taken over.
    done: bool,
    /// Its end stands among the steps.
    told: bool,
    /// Records to take over at once.
    take: usize,
}

/// See the module.
pub struct RangeReader {
    lanes: Vec<Lane>,
    client: Arc<BaseConsumer<Context>>,
    options: KafkaOptions,
    /// The next record of each lane: time, topic, partition, lane.
    heads: BinaryHeap<Reverse<(i64, u16, i32, usize)>>,
    ended: VecDeque<Partition>,
    gaps: Vec<Gap>,
}

impl RangeReader {
    /// Begins to read. When it returns the first record of every partition is there, so that
    /// [`RangeReader::gaps`] is known.
    pub fn new(options: &KafkaOptions, spans: Vec<Span>) -> Result<RangeReader, KafkaError> {
        let live = spans.iter().filter(|s| s.begin < s.end).count();
        let share = QUEUE_KBYTES_MAX / u32::try_from(live.max(1)).unwrap_or(u32::MAX);
        let options = KafkaOptions {
            queue_kbytes_max: share.max(512),
            ..options.clone()
        };
        let mut reader = RangeReader {
            lanes: Vec::new(),
            client: Arc::new(client(&options)?),
            options,
            heads: BinaryHeap::new(),
            ended: VecDeque::new(),
            gaps: Vec::new(),
        };
        reader.assign(spans)?;
        for lane in 0..reader.lanes.len() {
            reader.fill(lane)?;
            reader.look_for_gap(lane);
        }
        Ok(reader)
    }

    /// What retention has deleted of the range.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// The next record, or the end of a partition; `None` at the end of all.
    pub fn step(&mut self) -> Result<Option<Step>, KafkaError> {
        if let Some(partition) = self.ended.pop_front() {
            return Ok(Some(Step::End(partition)));
        }
        let Some(Reverse((_, _, _, lane))) = self.heads.pop() else {
            return Ok(None);
        };
        let Some(record) = self.lanes[lane].waiting.pop_front() else {
            return Ok(None);
        };
        self.fill(lane)?;
        Ok(Some(Step::Record(record)))
    }

    fn assign(&mut self, spans: Vec<Span>) -> Result<(), KafkaError> {
        let mut list = TopicPartitionList::new();
        for span in spans {
            self.note_deleted(&span);
            let queue = BatchQueue::new(Arc::clone(&self.client));
            let queue = queue.ok_or_else(|| KafkaError::Other("no memory for a queue".into()))?;
            let done = span.begin >= span.end;
            if !done {
                // Before it is assigned, or records that are fetched at once lie elsewhere.
                queue.forward(&span.name, span.partition);
                let begin = Offset::Offset(span.begin);
                list.add_partition_offset(&span.name, span.partition, begin)
                    .map_err(KafkaError::from_native)?;
            }
            self.lanes.push(Lane {
                queue,
                span,
                waiting: VecDeque::new(),
                done,
                told: false,
                take: 1,
            });
        }
        self.client.assign(&list).map_err(KafkaError::from_native)
    }

    fn note_deleted(&mut self, span: &Span) {
        let missing = match span.cut_ms {
            _ if span.deleted > 0 => Missing::Records(span.deleted),
            Some(_) if span.begin >= span.end => Missing::All,
            _ => return,
        };
        self.gaps.push(gap(span, missing));
    }

    /// After the oldest record that is left has come: whether the range begins before it.
    fn look_for_gap(&mut self, lane: usize) {
        let lane = &self.lanes[lane];
        let oldest = lane.waiting.front().and_then(|r| r.record().timestamp_ms);
        if let (Some(from_ms), Some(oldest_ms)) = (lane.span.cut_ms, oldest)
            && oldest_ms > from_ms
        {
            let missing = Missing::Until { from_ms, oldest_ms };
            self.gaps.push(gap(&lane.span, missing));
        }
    }

    /// Sees to it that the lane has a head, unless it has ended.
    fn fill(&mut self, lane: usize) -> Result<(), KafkaError> {
        let mut since = Instant::now();
        while self.lanes[lane].waiting.is_empty() && !self.lanes[lane].done {
            let taken = self.take(lane, Duration::ZERO)?;
            if taken > 0 || self.lanes[lane].done || self.take(lane, WAIT)? > 0 {
                since = Instant::now();
                continue;
            }
            self.tend()?;
            if since.elapsed() >= PATIENCE {
                let span = &self.lanes[lane].span;
                return Err(KafkaError::Unreachable {
                    brokers: self.options.brokers.clone(),
                    detail: format!(
                        "no record of {}/{} came within {PATIENCE:?}",
                        span.name, span.partition
                    ),
                });
            }
        }
        let (index, lane) = (lane, &mut self.lanes[lane]);
        let (topic, partition) = (lane.span.topic, lane.span.partition);
        if let Some(head) = lane.waiting.front() {
            let time = head.record().timestamp_ms.unwrap_or(i64::MIN);
            self.heads.push(Reverse((time, topic, partition, index)));
        } else if !std::mem::replace(&mut lane.told, true) {
            self.ended.push_back(Partition { topic, partition });
        }
        Ok(())
    }

    /// Takes over what the lane's queue has; answers the number of messages, be they of use or not.
    fn take(&mut self, lane: usize, wait: Duration) -> Result<usize, KafkaError> {
        let lane = &mut self.lanes[lane];
        let max = if wait.is_zero() { lane.take } else { 1 };
        let batch = lane.queue.take(max, wait);
        let (mut n, mut bytes, mut failed) = (0, 0, None);
        for message in batch.iter() {
            n += 1;
            match message.error() {
                0 if message.offset() >= lane.span.end => lane.done = true,
                0 => {
                    bytes += message.payload().len() + 64;
                    lane.waiting.push_back(Owned::of(&Record {
                        topic: lane.span.topic,
                        partition: lane.span.partition,
                        offset: message.offset(),
                        timestamp_ms: message.timestamp_ms(),
                        key: message.key(),
                        payload: message.payload(),
                        headers: Headers::of_message(message),
                    }));
                    lane.done |= message.offset() + 1 >= lane.span.end;
                }
                PARTITION_EOF => lane.done = true,
                code => failed = Some((code, message.error_text())),
            }
            if lane.done {
                break;
            }
        }
        drop(batch);
        if n > 0 && bytes > 0 {
            lane.take = (TAKE_BYTES / (bytes / n).max(1)).clamp(1, super::native::BATCH);
        }
        let span = &lane.span;
        if let Some((code, text)) = failed {
            return Err(broken(span, code, &text));
        }
        if lane.done {
            let mut list = TopicPartitionList::new();
            list.add_partition(&span.name, span.partition);
            // What is fetched beyond the range would only take room.
            let _ = self.client.pause(&list);
        }
        Ok(n)
    }

    /// Lets the client say what befell it; credentials that are refused end the reading.
    fn tend(&self) -> Result<(), KafkaError> {
        self.client.context().lifeline.hold(self.client.client());
        let _ = self.client.poll(Duration::ZERO);
        let notes = std::mem::take(&mut *self.client.context().notes());
        for (code, text) in notes.errors {
            let (brokers, topics) = (&self.options.brokers, &self.options.topics);
            let error = KafkaError::from_code(code, text, brokers, topics);
            if error.needs_hand() || error.is_fatal() {
                return Err(error);
            }
            tracing::warn!(%error, "kafka");
        }
        Ok(())
    }
}

fn gap(span: &Span, missing: Missing) -> Gap {
    Gap {
        topic: span.name.clone(),
        partition: span.partition,
        oldest: span.begin,
        missing,
    }
}

fn broken(span: &Span, code: i32, text: &str) -> KafkaError {
    let (name, partition) = (&span.name, span.partition);
    match code {
        OFFSET_RESET => KafkaError::Other(format!(
            "{name}/{partition}: records of the range were deleted while it was read ({text}); begin later"
        )),
        _ => KafkaError::Other(format!("{name}/{partition}: {text} (code {code})")),
    }
}
