//! The client of the program: librdkafka.

use super::client::{Brokers, FollowState, GroupClient, ReadState, WriteState};
use super::context::{Context, Events};
use super::handler::{Fetched, Record};
use super::native::{BatchQueue, Message};
use super::quiet::Quiet;
use super::state_follower::StateFollower;
use super::state_topic::{StateTopic, create, reader_config};
use super::state_writer::StateWriter;
use super::topics::Topics;
use super::{Headers, KafkaError, KafkaOptions};
use rdkafka::TopicPartitionList;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _, RebalanceProtocol};
use rdkafka::error::KafkaResult;
use rdkafka::message::{BorrowedMessage, Message as _, Timestamp};
use rdkafka::types::RDKafkaErrorCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Most events that one call handles, so that records are read too while a log writes without end.
const EVENTS_MAX: usize = 1000;

/// The client of the program.
#[derive(Debug, Clone, Copy)]
pub struct Librdkafka;

impl Brokers for Librdkafka {
    fn join(&self, options: &KafkaOptions) -> Result<Box<dyn GroupClient>, KafkaError> {
        Ok(Box::new(Member::new(options)?))
    }

    fn state_reader(
        &self,
        options: &KafkaOptions,
        topic: &str,
        record_bytes: usize,
    ) -> Result<Box<dyn ReadState>, KafkaError> {
        Ok(Box::new(StateTopic::new(options, topic, record_bytes)?))
    }

    fn state_writer(
        &self,
        options: &KafkaOptions,
        topic: &str,
    ) -> Result<Arc<dyn WriteState>, KafkaError> {
        Ok(Arc::new(StateWriter::new(options, topic)?))
    }

    fn claim_writer(
        &self,
        options: &KafkaOptions,
        topic: &str,
    ) -> Result<Arc<dyn WriteState>, KafkaError> {
        Ok(Arc::new(StateWriter::of_claims(options, topic)?))
    }

    fn state_follower(
        &self,
        options: &KafkaOptions,
        topic: &str,
    ) -> Result<Box<dyn FollowState>, KafkaError> {
        Ok(Box::new(StateFollower::new(options, topic)?))
    }
}

/// A member of a group.
struct Member {
    // Dropped before the client; see the safety argument in `native`.
    queue: BatchQueue<Context>,
    client: Arc<BaseConsumer<Context>>,
    topics: Topics,
}

impl Member {
    /// Joins the group. Returns at once, whether or not a broker can be reached.
    pub fn new(options: &KafkaOptions) -> Result<Member, KafkaError> {
        let context = Context::new(options.token(), options.rebootstrap());
        let client: BaseConsumer<Context> = options
            .consumer_config()
            .create_with_context(context)
            .map_err(KafkaError::from_native)?;
        let client = Arc::new(client);
        let queue = BatchQueue::new(Arc::clone(&client))
            .ok_or_else(|| KafkaError::Other("no memory for a queue".to_string()))?;
        let subscribed: Vec<&str> = options.subscribed().iter().map(String::as_str).collect();
        client
            .subscribe(&subscribed)
            .map_err(KafkaError::from_native)?;
        Ok(Member {
            queue,
            client,
            topics: Topics::new(options),
        })
    }

    fn early<'m>(&self, m: &'m BorrowedMessage<'_>) -> Option<Record<'m>> {
        Some(Record {
            topic: self.topics.number(m.topic())?,
            partition: m.partition(),
            offset: m.offset(),
            timestamp_ms: match m.timestamp() {
                Timestamp::CreateTime(t) | Timestamp::LogAppendTime(t) => Some(t),
                Timestamp::NotAvailable => None,
            },
            key: m.key(),
            payload: m.payload().unwrap_or_default(),
            headers: Headers::of_message(Message::of(m)),
        })
    }
}

impl GroupClient for Member {
    fn serve(&mut self, early: &mut dyn FnMut(Record<'_>)) -> Events {
        let context = self.client.context();
        context.rebootstrap.run_due(self.client.client());
        // One poll handles one event. A rebalance must not wait behind the lines of a log or an
        // outage.
        for _ in 0..EVENTS_MAX {
            let before = context.callbacks();
            let polled = self.client.poll(Duration::ZERO);
            // The context has stored errors with their text.
            if let Some(Ok(message)) = &polled
                && let Some(record) = self.early(message)
            {
                early(record);
            }
            let empty = polled.is_none() && context.callbacks() == before;
            if empty || !context.events().rebalances.is_empty() {
                break;
            }
        }
        context.take_events()
    }

    fn fatal_error(&self) -> Option<KafkaError> {
        let (code, reason) = self.client.client().fatal_error()?;
        Some(match code {
            RDKafkaErrorCode::FencedInstanceId => KafkaError::Fenced(reason),
            _ => KafkaError::Fatal(reason),
        })
    }

    fn members(&self, group: &str, within: Duration) -> KafkaResult<Vec<(String, String)>> {
        let groups = self.client.fetch_group_list(Some(group), within)?;
        let groups = groups.groups().iter().filter(|g| g.name() == group);
        let members = groups.flat_map(|g| g.members()).map(|m| {
            let host = m.client_host().trim_start_matches('/');
            (host.to_owned(), m.client_id().to_owned())
        });
        Ok(members.collect())
    }

    fn take(&mut self, max: usize, timeout: Duration, batch: &mut dyn FnMut(&[Fetched<'_>])) {
        let taken = self.queue.take(max, timeout);
        let mut fetched = Vec::with_capacity(taken.len());
        // Within a batch the handle of a topic identifies it.
        let mut last: Option<(usize, Option<u16>)> = None;
        for m in taken.iter() {
            let topic = match last {
                Some((id, topic)) if id == m.topic_id() => topic,
                _ => {
                    let topic = self.topics.number(m.topic());
                    last = Some((m.topic_id(), topic));
                    topic
                }
            };
            let Some(topic) = topic else { continue };
            let record = Record {
                topic,
                partition: m.partition(),
                offset: m.offset(),
                timestamp_ms: m.timestamp_ms(),
                key: m.key(),
                payload: m.payload(),
                headers: Headers::of_message(m),
            };
            let error = m.error();
            fetched.push(Fetched { record, error });
        }
        batch(&fetched);
    }

    fn forward(&self, topic: &str, partition: i32) {
        self.queue.forward(topic, partition);
    }

    fn unforward(&self, topic: &str, partition: i32) {
        self.queue.unforward(topic, partition);
    }

    fn end(&self, topic: &str, partition: i32) -> Option<i64> {
        self.queue.end(topic, partition)
    }

    fn position(&self) -> KafkaResult<TopicPartitionList> {
        self.client.position()
    }

    fn assignment(&self) -> KafkaResult<TopicPartitionList> {
        self.client.assignment()
    }

    fn accept(&self, with_offsets: &TopicPartitionList) -> KafkaResult<()> {
        match self.client.rebalance_protocol() {
            RebalanceProtocol::Cooperative => self.client.incremental_assign(with_offsets),
            _ => self.client.assign(with_offsets),
        }
    }

    fn give_back(&self, list: &TopicPartitionList) -> KafkaResult<()> {
        match self.client.rebalance_protocol() {
            RebalanceProtocol::Cooperative => self.client.incremental_unassign(list),
            _ => self.client.unassign(),
        }
    }

    fn assign(&self, with_offsets: &TopicPartitionList) -> KafkaResult<()> {
        self.client.incremental_assign(with_offsets)
    }

    fn unassign(&self, list: &TopicPartitionList) -> KafkaResult<()> {
        self.client.incremental_unassign(list)
    }

    fn assignment_lost(&self) -> bool {
        self.client.assignment_lost()
    }

    fn pause(&self, list: &TopicPartitionList) -> KafkaResult<()> {
        self.client.pause(list)
    }

    fn resume(&self, list: &TopicPartitionList) -> KafkaResult<()> {
        self.client.resume(list)
    }

    fn commit(&self, offsets: &TopicPartitionList) -> KafkaResult<()> {
        self.client.commit(offsets, CommitMode::Async)
    }

    fn partitions(&self, topic: &str, within: Duration) -> KafkaResult<usize> {
        let metadata = self.client.fetch_metadata(Some(topic), within)?;
        let entry = metadata.topics().iter().find(|t| t.name() == topic);
        Ok(entry.map_or(0, |entry| entry.partitions().len()))
    }

    fn committed(
        &self,
        list: TopicPartitionList,
        within: Duration,
    ) -> KafkaResult<TopicPartitionList> {
        self.client.committed_offsets(list, within)
    }

    fn committed_afresh(
        &self,
        options: &KafkaOptions,
        list: TopicPartitionList,
        within: Duration,
    ) -> Result<TopicPartitionList, KafkaError> {
        let client: BaseConsumer<Quiet> = create(&reader_config(options, &options.group), options)?;
        let offsets = client.committed_offsets(list, within);
        offsets.map_err(KafkaError::from_native)
    }

    fn offsets_for_times(
        &self,
        times: TopicPartitionList,
        within: Duration,
    ) -> KafkaResult<TopicPartitionList> {
        self.client.offsets_for_times(times, within)
    }

    fn watermarks(&self, topic: &str, partition: i32, within: Duration) -> KafkaResult<(i64, i64)> {
        self.client.fetch_watermarks(topic, partition, within)
    }

    fn close(&self) {
        self.client.context().closing.store(true, Ordering::Relaxed);
    }
}
