//! Reads offset ranges in a fixed order, without joining a group.
//!
//! Records of all partitions come in the order of their timestamps; ties are ordered by topic and
//! partition, and records of one partition by offset. This order depends only on the topics, so
//! reading the same range twice yields the same records in the same order, whichever broker
//! responds first. The end of each partition's range is reported in its place among the records.
//!
//! Each partition has its own queue, which librdkafka fills only up to a limit. So memory is
//! bounded even if one partition is far ahead of another: all queues together take
//! [`QUEUE_KBYTES_MAX`], or one fetch response each if that is more.
//!
//! Nothing is committed or written. The reader waits for brokers that are down, and gives up after
//! [`PATIENCE`] without a record.

use super::context::Context;
use super::group_client::record;
use super::native::BatchQueue;
use super::range::{Gap, Missing, Span, client};
use super::{KafkaError, KafkaOptions, OwnedRecord, Partition, QUEUE_KBYTES_MAX};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{Offset, TopicPartitionList};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest wait for the next record of a partition.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest wait before errors are handled again.
const WAIT: Duration = Duration::from_millis(100);
/// Bytes to fetch from the queue of a partition at once.
const FETCH_BYTES: usize = 256 << 10;
/// Codes of librdkafka for the end of a partition and for a missing offset.
const PARTITION_EOF: i32 = RDKafkaErrorCode::PartitionEOF as i32;
const OFFSET_RESET: i32 = RDKafkaErrorCode::AutoOffsetReset as i32;

/// The next event of a range.
#[derive(Debug)]
pub enum Step {
    /// A record.
    Record(OwnedRecord),
    /// The range of a partition has ended.
    End(Partition),
}

struct PartitionReader {
    // Dropped before the client; see the safety argument in `native`.
    queue: BatchQueue<Context>,
    span: Span,
    /// Records fetched from the queue and not handed over.
    waiting: VecDeque<OwnedRecord>,
    /// No further record is needed.
    done: bool,
    /// Its end was queued as a step.
    end_queued: bool,
    /// Records to fetch at once.
    fetch_max: usize,
}

/// Merges the ranges of all partitions.
pub struct RangeReader {
    partitions: Vec<PartitionReader>,
    client: Arc<BaseConsumer<Context>>,
    options: KafkaOptions,
    /// The next record of each partition: time, topic, partition, index of its reader.
    heads: BinaryHeap<Reverse<(i64, u16, i32, usize)>>,
    ended: VecDeque<Partition>,
    gaps: Vec<Gap>,
}

impl RangeReader {
    /// Starts to read. It returns once the first record of every partition is there, so that
    /// [`RangeReader::gaps`] is known.
    pub fn new(options: &KafkaOptions, spans: Vec<Span>) -> Result<RangeReader, KafkaError> {
        let live = spans.iter().filter(|s| s.begin < s.end).count();
        let share = QUEUE_KBYTES_MAX / u32::try_from(live.max(1)).unwrap_or(u32::MAX);
        let options = KafkaOptions {
            queue_kbytes_max: share.max(512),
            ..options.clone()
        };
        let mut reader = RangeReader {
            partitions: Vec::new(),
            client: Arc::new(client(&options)?),
            options,
            heads: BinaryHeap::new(),
            ended: VecDeque::new(),
            gaps: Vec::new(),
        };
        reader.assign(spans)?;
        for index in 0..reader.partitions.len() {
            reader.fill(index)?;
            reader.look_for_gap(index);
        }
        Ok(reader)
    }

    /// Parts of the range that retention has deleted.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// The next record or the end of a partition; `None` after the end of all.
    pub fn step(&mut self) -> Result<Option<Step>, KafkaError> {
        if let Some(partition) = self.ended.pop_front() {
            return Ok(Some(Step::End(partition)));
        }
        let Some(Reverse((_, _, _, index))) = self.heads.pop() else {
            return Ok(None);
        };
        let Some(record) = self.partitions[index].waiting.pop_front() else {
            return Ok(None);
        };
        self.fill(index)?;
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
                // Before the assignment, or the first records go to another queue.
                queue.forward(&span.name, span.partition);
                let begin = Offset::Offset(span.begin);
                list.add_partition_offset(&span.name, span.partition, begin)?;
            }
            self.partitions.push(PartitionReader {
                queue,
                span,
                waiting: VecDeque::new(),
                done,
                end_queued: false,
                fetch_max: 1,
            });
        }
        Ok(self.client.assign(&list)?)
    }

    fn note_deleted(&mut self, span: &Span) {
        let missing = match span.cut_ms {
            _ if span.deleted > 0 => Missing::Records(span.deleted),
            Some(_) if span.begin >= span.end => Missing::All,
            _ => return,
        };
        self.gaps.push(gap(span, missing));
    }

    /// Records a gap if the range starts before the oldest remaining record, which has been read.
    fn look_for_gap(&mut self, index: usize) {
        let reader = &self.partitions[index];
        let oldest = reader.waiting.front().and_then(|r| r.record().timestamp_ms);
        if let (Some(from_ms), Some(oldest_ms)) = (reader.span.cut_ms, oldest)
            && oldest_ms > from_ms
        {
            let missing = Missing::Until { from_ms, oldest_ms };
            self.gaps.push(gap(&reader.span, missing));
        }
    }

    /// Ensures that the partition has a head, unless it has ended.
    fn fill(&mut self, index: usize) -> Result<(), KafkaError> {
        let mut since = Instant::now();
        while self.partitions[index].waiting.is_empty() && !self.partitions[index].done {
            let fetched = self.fetch(index, Duration::ZERO)?;
            if fetched > 0 || self.partitions[index].done || self.fetch(index, WAIT)? > 0 {
                since = Instant::now();
                continue;
            }
            self.serve()?;
            if since.elapsed() >= PATIENCE {
                let span = &self.partitions[index].span;
                return Err(KafkaError::Unreachable {
                    brokers: self.options.brokers.clone(),
                    detail: format!(
                        "no record of {}/{} came within {PATIENCE:?}",
                        span.name, span.partition
                    ),
                });
            }
        }
        let reader = &mut self.partitions[index];
        let (topic, partition) = (reader.span.topic, reader.span.partition);
        if let Some(head) = reader.waiting.front() {
            let time = head.record().timestamp_ms.unwrap_or(i64::MIN);
            self.heads.push(Reverse((time, topic, partition, index)));
        } else if !std::mem::replace(&mut reader.end_queued, true) {
            self.ended.push_back(Partition { topic, partition });
        }
        Ok(())
    }

    /// Fetches records from the queue of a partition. Returns the number of messages, used or not.
    fn fetch(&mut self, index: usize, wait: Duration) -> Result<usize, KafkaError> {
        let reader = &mut self.partitions[index];
        let max = if wait.is_zero() { reader.fetch_max } else { 1 };
        let batch = reader.queue.fetch(max, wait);
        let (mut n, mut bytes, mut failed) = (0, 0, None);
        for message in batch.iter() {
            n += 1;
            match message.error() {
                0 if message.offset() >= reader.span.end => reader.done = true,
                0 => {
                    bytes += message.payload().len() + 64;
                    let record = record(reader.span.topic, message);
                    reader.waiting.push_back(OwnedRecord::of(&record));
                    reader.done |= message.offset() + 1 >= reader.span.end;
                }
                PARTITION_EOF => reader.done = true,
                code => failed = Some((code, message.error_text())),
            }
            if reader.done {
                break;
            }
        }
        drop(batch);
        if n > 0 && bytes > 0 {
            reader.fetch_max = (FETCH_BYTES / (bytes / n).max(1)).clamp(1, super::native::BATCH);
        }
        let span = &reader.span;
        if let Some((code, text)) = failed {
            return Err(broken(span, code, &text));
        }
        if reader.done {
            let mut list = TopicPartitionList::new();
            list.add_partition(&span.name, span.partition);
            // Records beyond the range would only use memory.
            let _ = self.client.pause(&list);
        }
        Ok(n)
    }

    /// Runs the callbacks of the client. Refused credentials end the reading.
    fn serve(&self) -> Result<(), KafkaError> {
        let context = self.client.context();
        context.rebootstrap.run_due(self.client.client());
        let _ = self.client.poll(Duration::ZERO);
        let events = context.take_events();
        for (code, text) in events.errors {
            // The group's name is sent, and the group is not used.
            if code == RDKafkaErrorCode::GroupAuthorizationFailed {
                continue;
            }
            let error = KafkaError::from_code(code, text, &self.options);
            if error.needs_operator() || error.is_fatal() {
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
            "{name}/{partition}: records of the range were deleted while it was read ({text}); start later"
        )),
        _ => KafkaError::Other(format!("{name}/{partition}: {text} (code {code})")),
    }
}
