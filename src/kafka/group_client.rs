//! A member of a consumer group: the trait that the program needs, and its implementation with
//! librdkafka.
//!
//! The trait uses the types of rdkafka for lists of partitions and for errors.

use super::client_callbacks::{ClientCallbacks, create, reader_config};
use super::context::{Context, Events};
use super::handler::{Fetched, Record};
use super::native::{BatchQueue, Message};
use super::topics::Topics;
use super::{Headers, KafkaError, KafkaOptions};
use rdkafka::TopicPartitionList;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _, RebalanceProtocol};
use rdkafka::error::KafkaResult;
use rdkafka::types::RDKafkaErrorCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Most events that one call handles, so that records are also read while librdkafka logs without
/// end.
const EVENTS_MAX: usize = 1000;

/// A member of a consumer group that reads committed records.
pub trait GroupClient: Send {
    /// Runs callbacks without waiting, and takes what they stored. Hands over a record that came
    /// before its partition was forwarded.
    fn serve(&mut self, early: &mut dyn FnMut(Record<'_>)) -> Events;

    /// Why the client can no longer be used, if it cannot.
    fn fatal_error(&self) -> Option<KafkaError>;

    /// Address and client id of each member of a group.
    fn members(&self, group: &str, within: Duration) -> KafkaResult<Vec<(String, String)>>;

    /// Hands over at most `max` records of forwarded partitions, in one batch or several, and waits
    /// for `max` of them until the timeout.
    fn fetch(&mut self, max: usize, timeout: Duration, batch: &mut dyn FnMut(&[Fetched<'_>]));

    /// Lets [`fetch`](GroupClient::fetch) hand over the records of a partition.
    fn forward(&self, topic: &str, partition: i32);

    /// Undoes [`forward`](GroupClient::forward).
    fn unforward(&self, topic: &str, partition: i32);

    /// The offset after the newest record, as of the latest fetch response.
    fn end(&self, topic: &str, partition: i32) -> Option<i64>;

    /// Next offsets of the client, which also count records that are not handed over.
    fn position(&self) -> KafkaResult<TopicPartitionList>;

    /// Assigned partitions.
    fn assignment(&self) -> KafkaResult<TopicPartitionList>;

    /// Accepts partitions that the group assigns, from these offsets on.
    fn accept(&self, with_offsets: &TopicPartitionList) -> KafkaResult<()>;

    /// Gives back partitions that the group revokes.
    fn give_back(&self, list: &TopicPartitionList) -> KafkaResult<()>;

    /// Adds partitions to the assignment.
    fn assign(&self, with_offsets: &TopicPartitionList) -> KafkaResult<()>;

    /// Removes partitions from the assignment.
    fn unassign(&self, list: &TopicPartitionList) -> KafkaResult<()>;

    /// Whether the group has given the partitions away already.
    fn assignment_lost(&self) -> bool;

    /// Stops fetching.
    fn pause(&self, list: &TopicPartitionList) -> KafkaResult<()>;

    /// Fetches again.
    fn resume(&self, list: &TopicPartitionList) -> KafkaResult<()>;

    /// Commits offsets, without waiting.
    fn commit(&self, offsets: &TopicPartitionList) -> KafkaResult<()>;

    /// Number of partitions of a topic; 0 if it does not exist.
    fn partitions(&self, topic: &str, within: Duration) -> KafkaResult<usize>;

    /// Committed offsets of these partitions.
    fn committed(
        &self,
        list: TopicPartitionList,
        within: Duration,
    ) -> KafkaResult<TopicPartitionList>;

    /// Committed offsets of these partitions, requested by a new client: brokers refuse the client
    /// of a fenced member.
    fn committed_by_new_client(
        &self,
        options: &KafkaOptions,
        list: TopicPartitionList,
        within: Duration,
    ) -> Result<TopicPartitionList, KafkaError>;

    /// First offsets of these times or later.
    fn offsets_for_times(
        &self,
        times: TopicPartitionList,
        within: Duration,
    ) -> KafkaResult<TopicPartitionList>;

    /// The first offset of a partition, and the offset after its last record.
    fn offset_bounds(
        &self,
        topic: &str,
        partition: i32,
        within: Duration,
    ) -> KafkaResult<(i64, i64)>;

    /// Prepares the client to be dropped: rebalances are no longer reported.
    fn close(&self);
}

/// The group member of the program, with librdkafka.
pub(super) struct GroupMember {
    // Dropped before the client; see the safety argument in `native`.
    queue: BatchQueue<Context>,
    client: Arc<BaseConsumer<Context>>,
    topics: Topics,
}

impl GroupMember {
    /// Joins the group. Returns at once, whether or not a broker can be reached.
    pub fn new(options: &KafkaOptions) -> Result<GroupMember, KafkaError> {
        let context = Context::new(options);
        let client: KafkaResult<BaseConsumer<Context>> =
            options.consumer_config().create_with_context(context);
        let client = client.map_err(|error| KafkaError::of_creation(error, options))?;
        let client = Arc::new(client);
        let queue = BatchQueue::new(Arc::clone(&client))
            .ok_or_else(|| KafkaError::Other("no memory for a queue".to_string()))?;
        let subscribed: Vec<&str> = options.subscribed().iter().map(String::as_str).collect();
        client.subscribe(&subscribed)?;
        Ok(GroupMember {
            queue,
            client,
            topics: Topics::new(options),
        })
    }
}

impl GroupClient for GroupMember {
    fn serve(&mut self, early: &mut dyn FnMut(Record<'_>)) -> Events {
        let context = self.client.context();
        context.rebootstrap.run_due(self.client.client());
        // One poll handles one event. A rebalance must not wait behind the lines of a log or an
        // outage.
        for _ in 0..EVENTS_MAX {
            let before = context.callbacks();
            let polled = self.client.poll(Duration::ZERO);
            // The context has stored errors with their text.
            if let Some(Ok(message)) = &polled {
                let message = Message::of(message);
                if let Some(topic) = self.topics.number(message.topic()) {
                    early(record(topic, message));
                }
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

    fn fetch(&mut self, max: usize, timeout: Duration, batch: &mut dyn FnMut(&[Fetched<'_>])) {
        let messages = self.queue.fetch(max, timeout);
        let mut fetched = Vec::with_capacity(messages.len());
        // Within a batch the handle of a topic identifies it.
        let mut last: Option<(usize, Option<u16>)> = None;
        for m in messages.iter() {
            let topic = match last {
                Some((id, topic)) if id == m.topic_id() => topic,
                _ => {
                    let topic = self.topics.number(m.topic());
                    last = Some((m.topic_id(), topic));
                    topic
                }
            };
            let Some(topic) = topic else { continue };
            let (record, error) = (record(topic, m), m.error());
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

    fn committed_by_new_client(
        &self,
        options: &KafkaOptions,
        list: TopicPartitionList,
        within: Duration,
    ) -> Result<TopicPartitionList, KafkaError> {
        let client: BaseConsumer<ClientCallbacks> =
            create(&reader_config(options, &options.group), options)?;
        Ok(client.committed_offsets(list, within)?)
    }

    fn offsets_for_times(
        &self,
        times: TopicPartitionList,
        within: Duration,
    ) -> KafkaResult<TopicPartitionList> {
        self.client.offsets_for_times(times, within)
    }

    fn offset_bounds(
        &self,
        topic: &str,
        partition: i32,
        within: Duration,
    ) -> KafkaResult<(i64, i64)> {
        self.client.fetch_watermarks(topic, partition, within)
    }

    fn close(&self) {
        self.client.context().closing.store(true, Ordering::Relaxed);
    }
}

/// The record of a message; `topic` is the number of its topic.
#[inline]
pub(super) fn record(topic: u16, m: Message<'_>) -> Record<'_> {
    Record {
        topic,
        partition: m.partition(),
        offset: m.offset(),
        timestamp_ms: m.timestamp_ms(),
        key: m.key(),
        payload: m.payload(),
        headers: Headers::of_message(m),
    }
}
