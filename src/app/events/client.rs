//! The client of a broker that exists on this disk only.
//!
//! Each topic is a log with one partition, and the process is the only member of its group. So the
//! first event is the assignment of all partitions, nothing is ever revoked, and the client always
//! knows the end. Offsets that it reports as committed were stored with a snapshot, by the worker
//! that wrote it.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::error::{KafkaError as Native, KafkaResult};
use rdkafka::types::RDKafkaErrorCode as Code;
use rdkafka::{Offset, TopicPartitionList};

use super::EventLogs;
use crate::kafka::{
    Brokers, Events, Fetched, FollowState, GroupClient, KafkaError, KafkaOptions, PartitionStats,
    ReadState, Rebalance, Record, WriteState,
};
use crate::store::event_log::{LogError, LogReader};

/// Time between two statistics, which give the lag and the end of a partition.
const STATISTICS: Duration = Duration::from_millis(500);

/// Time between a failed read and the next one.
const READ_AGAIN: Duration = Duration::from_secs(5);

/// Makes clients of these logs.
pub struct LogBrokers(pub EventLogs);

impl fmt::Debug for LogBrokers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

/// The error for requests about the state topic, which is always in Kafka.
fn no_state<T>() -> Result<T, KafkaError> {
    Err(KafkaError::Other("event logs hold no state".to_owned()))
}

impl Brokers for LogBrokers {
    fn join(&self, options: &KafkaOptions) -> Result<Box<dyn GroupClient>, KafkaError> {
        let mut topics = Vec::new();
        for name in &options.topics {
            let missing = || KafkaError::Other(format!("there is no event log {name}"));
            let reader = self.0.get(name).ok_or_else(missing)?.reader();
            // Clears the read error of an earlier client.
            reader.report(None);
            topics.push(Topic {
                name: name.clone(),
                reader,
                assigned: false,
                paused: false,
                stopped: false,
                failed: None,
            });
        }
        Ok(Box::new(LogClient {
            state: RefCell::new(State {
                topics,
                first: 0,
                errors: Vec::new(),
            }),
            joined: false,
            statistics: None,
        }))
    }

    fn state_reader(
        &self,
        _: &KafkaOptions,
        _: &str,
        _: usize,
    ) -> Result<Box<dyn ReadState>, KafkaError> {
        no_state()
    }

    fn state_writer(&self, _: &KafkaOptions, _: &str) -> Result<Arc<dyn WriteState>, KafkaError> {
        no_state()
    }

    fn state_follower(
        &self,
        _: &KafkaOptions,
        _: &str,
    ) -> Result<Box<dyn FollowState>, KafkaError> {
        no_state()
    }
}

/// The only member of its group.
struct LogClient {
    state: RefCell<State>,
    joined: bool,
    /// When statistics were last given.
    statistics: Option<Instant>,
}

struct State {
    topics: Vec<Topic>,
    /// The topic to read first next time.
    first: usize,
    errors: Vec<(Code, String)>,
}

/// A log that is read as a topic.
struct Topic {
    name: String,
    reader: LogReader,
    assigned: bool,
    paused: bool,
    /// Its position is unknown, or not in the log.
    stopped: bool,
    /// When the last read failed, if it did.
    failed: Option<Instant>,
}

impl Topic {
    fn is_read(&self) -> bool {
        let waits = self.failed.is_some_and(|at| at.elapsed() < READ_AGAIN);
        self.assigned && !self.paused && !self.stopped && !waits
    }

    /// Continues after a failed read, at the same position.
    fn recover(&mut self) {
        let next = self.reader.position();
        self.reader.seek(next);
    }
}

/// The record of an event, in the topic with this number.
fn fetched(topic: u16, at: u64, timestamp_ms: Option<i64>, payload: &[u8]) -> Fetched<'_> {
    let record = Record {
        topic,
        offset: offset(at),
        timestamp_ms,
        payload,
        ..Record::default()
    };
    Fetched { record, error: 0 }
}

fn offset(offset: u64) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX)
}

impl State {
    fn topic(&mut self, name: &str) -> Option<&mut Topic> {
        self.topics.iter_mut().find(|t| t.name == name)
    }

    /// Calls `act` with each topic of a list and its offset in the list.
    fn each(&mut self, list: &TopicPartitionList, act: impl Fn(&mut Topic, Offset)) {
        for e in list.elements() {
            if let Some(topic) = self.topic(e.topic()) {
                act(topic, e.offset());
            }
        }
    }

    /// Hands over at most `max` available events. The topics take turns to be first, so that a
    /// backlog in one does not delay the others.
    fn fetch(&mut self, max: usize, batch: &mut dyn FnMut(&[Fetched<'_>])) -> usize {
        let mut count = 0;
        let (before, from) = self.topics.split_at_mut(self.first);
        let numbers = (0u16..).skip(self.first).zip(from);
        for (number, topic) in numbers.chain((0u16..).zip(before)) {
            if !topic.is_read() {
                continue;
            }
            if topic.failed.is_some() {
                topic.recover();
            }
            let read = topic.reader.read(max - count, &mut |at, at_ms, event| {
                batch(&[fetched(number, at, Some(at_ms), event)]);
            });
            let can_be_read = matches!(read, Ok(_) | Err(LogError::OutOfRange(_)));
            if can_be_read && topic.failed.take().is_some() {
                topic.reader.report(None);
            }
            match read {
                Ok(read) => count += read,
                Err(LogError::OutOfRange(at)) => {
                    topic.stopped = true;
                    batch(&[Fetched {
                        error: Code::AutoOffsetReset as i32,
                        ..fetched(number, at, None, b"the event log has no such offset")
                    }]);
                }
                Err(error) => {
                    topic.failed = Some(Instant::now());
                    topic.reader.report(Some(error.to_string()));
                    let text = format!("event log {}: {error}", topic.name);
                    self.errors.push((Code::BadMessage, text));
                }
            }
        }
        if count > 0 {
            self.first = (self.first + 1) % self.topics.len();
        }
        count
    }

    fn list(&self, which: impl Fn(&Topic) -> Option<Offset>) -> KafkaResult<TopicPartitionList> {
        let mut list = TopicPartitionList::new();
        for topic in &self.topics {
            if let Some(offset) = which(topic) {
                list.add_partition_offset(&topic.name, 0, offset)?;
            }
        }
        Ok(list)
    }
}

/// Makes an error of the client of a failure of the log.
fn native(error: &LogError) -> Native {
    tracing::error!(%error, "event log");
    Native::MetadataFetch(Code::Fail)
}

impl GroupClient for LogClient {
    fn serve(&mut self, _: &mut dyn FnMut(Record<'_>)) -> Events {
        let state = self.state.get_mut();
        let mut events = Events {
            errors: std::mem::take(&mut state.errors),
            ..Events::default()
        };
        if !std::mem::replace(&mut self.joined, true)
            && let Ok(all) = state.list(|_| Some(Offset::Invalid))
        {
            events.rebalances.push_back(Rebalance::Assign(all));
        }
        let due = self.statistics.is_none_or(|at| at.elapsed() >= STATISTICS);
        if due {
            self.statistics = Some(Instant::now());
            let assigned = state.topics.iter().filter(|t| t.assigned);
            events.statistics.extend(assigned.map(|topic| {
                let end = offset(topic.reader.range().1);
                let next = offset(topic.reader.position());
                PartitionStats {
                    topic: topic.name.clone(),
                    partition: 0,
                    end: Some(end),
                    stable: Some(end),
                    next: topic.is_read().then_some(next),
                    responded: Some(Instant::now()),
                    unfetched: false,
                }
            }));
        }
        events
    }

    fn fatal_error(&self) -> Option<KafkaError> {
        None
    }

    fn members(&self, _: &str, _: Duration) -> KafkaResult<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    fn fetch(&mut self, max: usize, timeout: Duration, batch: &mut dyn FnMut(&[Fetched<'_>])) {
        let state = self.state.get_mut();
        if state.fetch(max, batch) > 0 || timeout.is_zero() {
            return;
        }
        let reads = state.topics.iter().filter(|t| t.is_read()).count();
        let share = timeout / u32::try_from(reads.max(1)).unwrap_or(1);
        match reads {
            0 => std::thread::sleep(timeout),
            _ => {
                let read = state.topics.iter().filter(|t| t.is_read());
                read.for_each(|topic| topic.reader.wait(share));
            }
        }
        state.fetch(max, batch);
    }

    fn forward(&self, _: &str, _: i32) {}

    fn unforward(&self, _: &str, _: i32) {}

    fn end(&self, topic: &str, _: i32) -> Option<i64> {
        let mut state = self.state.borrow_mut();
        Some(offset(state.topic(topic)?.reader.range().1))
    }

    fn position(&self) -> KafkaResult<TopicPartitionList> {
        let next = |t: &Topic| Offset::Offset(offset(t.reader.position()));
        let state = self.state.borrow();
        state.list(|t| t.is_read().then(|| next(t)))
    }

    fn assignment(&self) -> KafkaResult<TopicPartitionList> {
        let state = self.state.borrow();
        state.list(|t| t.assigned.then_some(Offset::Invalid))
    }

    fn accept(&self, with_offsets: &TopicPartitionList) -> KafkaResult<()> {
        self.assign(with_offsets)
    }

    fn give_back(&self, list: &TopicPartitionList) -> KafkaResult<()> {
        self.unassign(list)
    }

    fn assign(&self, with_offsets: &TopicPartitionList) -> KafkaResult<()> {
        self.state.borrow_mut().each(with_offsets, |topic, from| {
            topic.assigned = true;
            topic.paused = false;
            topic.stopped = true;
            if let Offset::Offset(from) = from
                && let Ok(from) = u64::try_from(from)
            {
                topic.stopped = false;
                topic.reader.seek(from);
            }
        });
        Ok(())
    }

    fn unassign(&self, list: &TopicPartitionList) -> KafkaResult<()> {
        let mut state = self.state.borrow_mut();
        state.each(list, |topic, _| topic.assigned = false);
        Ok(())
    }

    fn assignment_lost(&self) -> bool {
        false
    }

    fn pause(&self, list: &TopicPartitionList) -> KafkaResult<()> {
        let mut state = self.state.borrow_mut();
        state.each(list, |topic, _| topic.paused = true);
        Ok(())
    }

    fn resume(&self, list: &TopicPartitionList) -> KafkaResult<()> {
        let mut state = self.state.borrow_mut();
        state.each(list, |topic, _| topic.paused = false);
        Ok(())
    }

    fn commit(&self, _: &TopicPartitionList) -> KafkaResult<()> {
        Ok(())
    }

    fn partitions(&self, _: &str, _: Duration) -> KafkaResult<usize> {
        Ok(1)
    }

    fn committed(&self, list: TopicPartitionList, _: Duration) -> KafkaResult<TopicPartitionList> {
        let mut state = self.state.borrow_mut();
        let mut found = TopicPartitionList::new();
        for e in list.elements() {
            let consumed = state.topic(e.topic()).and_then(|t| t.reader.consumed());
            let at = consumed.map_or(Offset::Invalid, |at| Offset::Offset(offset(at)));
            found.add_partition_offset(e.topic(), e.partition(), at)?;
        }
        Ok(found)
    }

    fn committed_by_new_client(
        &self,
        _: &KafkaOptions,
        list: TopicPartitionList,
        within: Duration,
    ) -> Result<TopicPartitionList, KafkaError> {
        let found = self.committed(list, within);
        found.map_err(|error| KafkaError::Other(error.to_string()))
    }

    fn offsets_for_times(
        &self,
        times: TopicPartitionList,
        _: Duration,
    ) -> KafkaResult<TopicPartitionList> {
        let mut state = self.state.borrow_mut();
        let mut found = TopicPartitionList::new();
        for e in times.elements() {
            let (Some(topic), Offset::Offset(ms)) = (state.topic(e.topic()), e.offset()) else {
                continue;
            };
            let since = topic.reader.first_since(ms);
            let at = since.map_err(|error| native(&error))?;
            let at = at.map_or(Offset::End, |at| Offset::Offset(offset(at)));
            found.add_partition_offset(e.topic(), e.partition(), at)?;
        }
        Ok(found)
    }

    fn offset_bounds(&self, topic: &str, _: i32, _: Duration) -> KafkaResult<(i64, i64)> {
        let mut state = self.state.borrow_mut();
        let range = state.topic(topic).map(|t| t.reader.range());
        let (first, end) = range.unwrap_or_default();
        Ok((offset(first), offset(end)))
    }

    fn close(&self) {}
}

#[cfg(test)]
mod tests;
