//! The state topic: a compacted topic for checkpoints of partitions.
//!
//! It has as many partitions as the topics whose state it contains. [`StateTopic`] creates it if it
//! is missing, and reads one of its partitions from the start up to an offset.
//! [`StateWriter`](super::state_writer::StateWriter) writes records and returns their offsets once
//! all in-sync replicas have them. Both block the thread of their caller, each call with a
//! deadline.
//!
//! The state of partition p of any topic is in partition p (modulo their number). So a process that
//! takes over a partition reads only the state of partitions with this number. The topic is created
//! with small segments, because the newest segment is never compacted, and obsolete records cost
//! reading time.

use super::client::{EachAt, EachRecord, ReadState};
use super::client_callbacks::{ClientCallbacks, create, reader_config, settings};
use super::{KafkaError, KafkaOptions};
use rdkafka::admin::{
    AdminClient, AdminOptions, ConfigResource, NewTopic, ResourceSpecifier, TopicReplication,
};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::Message;
use rdkafka::{Offset, TopicPartitionList};
use std::collections::BTreeMap;
use std::future::Future;
use std::time::{Duration, Instant};

/// Settings of a new topic. A segment of 64 MiB limits the reading of obsolete records to about a
/// second. The topic is cleaned when a tenth of it is obsolete.
const SETTINGS: [(&str, &str); 3] = [
    ("cleanup.policy", "compact"),
    ("segment.bytes", "67108864"),
    ("min.cleanable.dirty.ratio", "0.1"),
];

/// Least time that obsolete records of a topic of judges stay: ten minutes.
const COMPACTED_AFTER: (&str, &str) = (LAG, "600000");

/// Least time that obsolete records of a state topic stay, because one judge may follow it: a
/// minute. A process that takes a partition over also reads them, within `restore_within`.
const FOLLOWED_AFTER: (&str, &str) = (LAG, "60000");

const LAG: &str = "min.compaction.lag.ms";

/// The key of the configuration that names the topic.
const KEY: &str = "[state] topic";

/// The rights that are needed on the topic.
const RIGHTS: &str = "READ, WRITE and, unless it exists, CREATE";

/// The group's name is sent, and the group is not used: a reader needs no right on it.
pub(super) const GROUP_DENIED: RDKafkaErrorCode = RDKafkaErrorCode::GroupAuthorizationFailed;

/// Error codes of brokers that do not reveal topic settings, either at all or to this user.
const UNTOLD: [RDKafkaErrorCode; 4] = [
    RDKafkaErrorCode::TopicAuthorizationFailed,
    RDKafkaErrorCode::ClusterAuthorizationFailed,
    RDKafkaErrorCode::UnsupportedVersion,
    RDKafkaErrorCode::UnsupportedFeature,
];

/// Bytes for the key and the frame of a record, in addition to its value.
const FRAME_BYTES: usize = 4 << 10;

/// Longest duration of a request other than a read.
const REQUEST: Duration = Duration::from_secs(10);

/// Duration of the poll before a request.
const POLL: Duration = Duration::from_millis(5);

/// The state topic, for reading and administration.
pub struct StateTopic {
    options: KafkaOptions,
    topic: String,
    /// Most bytes of the value of a record.
    record_bytes: usize,
    client: BaseConsumer<ClientCallbacks>,
    /// Clients for committed offsets, by group.
    groups: BTreeMap<String, BaseConsumer<ClientCallbacks>>,
    /// Number of partitions, once it is known.
    partitions: Option<i32>,
}

impl StateTopic {
    /// The topic of this name, with values of at most `record_bytes`. Sends no request yet.
    pub fn new(
        options: &KafkaOptions,
        topic: &str,
        record_bytes: usize,
    ) -> Result<StateTopic, KafkaError> {
        Ok(StateTopic {
            client: reader(options, &options.group)?,
            groups: BTreeMap::new(),
            options: options.clone(),
            topic: topic.to_owned(),
            record_bytes,
            partitions: None,
        })
    }

    fn found_or(
        &mut self,
        create: impl FnOnce(&StateTopic) -> Result<i32, KafkaError>,
    ) -> Result<i32, KafkaError> {
        if let Some(n) = self.partitions {
            return Ok(n);
        }
        let n = match self.count(&self.topic)? {
            Some(n) => n,
            None => create(self)?,
        };
        if let Some(error) = self.misconfigured(false)? {
            return Err(error);
        }
        self.partitions = Some(n);
        Ok(n)
    }

    fn count(&self, topic: &str) -> Result<Option<i32>, KafkaError> {
        count(&self.client, topic, &self.topic)
    }

    fn create_topic(&self, n: i32, more: &[(&str, &str)]) -> Result<i32, KafkaError> {
        // -1: the default of the broker, which its operator has chosen for important topics.
        let mut topic = NewTopic::new(&self.topic, n, TopicReplication::Fixed(-1));
        for (name, value) in SETTINGS.iter().chain(more) {
            topic = topic.set(name, value);
        }
        let admin: AdminClient<ClientCallbacks> = create(&settings(&self.options), &self.options)?;
        let made = wait(admin.create_topics(
            &[topic],
            &AdminOptions::new().request_timeout(Some(REQUEST)),
        ))?;
        for result in made? {
            match result {
                Ok(_) => tracing::info!(topic = self.topic, partitions = n, "state topic created"),
                // Another process has created it first.
                Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
                Err((topic, code)) => {
                    return Err(KafkaError::Unsuitable {
                        topic,
                        detail: format!(
                            "cannot be created: {code}; create it with cleanup.policy=compact"
                        ),
                    });
                }
            }
        }
        let start = Instant::now();
        while start.elapsed() < REQUEST {
            if let Some(n) = self.count(&self.topic)? {
                return Ok(n);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(KafkaError::Topic {
            topic: self.topic.clone(),
            detail: "was created but does not appear".to_string(),
            key: KEY,
        })
    }

    /// The problem with the settings of the topic, if the broker reveals them; with `followed`,
    /// also a problem that harms only a judge that follows the topic.
    pub fn misconfigured(&self, followed: bool) -> Result<Option<KafkaError>, KafkaError> {
        let admin: AdminClient<ClientCallbacks> = create(&settings(&self.options), &self.options)?;
        let which = [ResourceSpecifier::Topic(&self.topic)];
        let options = AdminOptions::new().request_timeout(Some(REQUEST));
        let described = match wait(admin.describe_configs(&which, &options))? {
            Ok(all) => all.into_iter().collect(),
            Err(error) => Err(error.rdkafka_error_code().ok_or(error)?),
        };
        let configs: Vec<ConfigResource> = match described {
            Ok(configs) => configs,
            Err(code) if UNTOLD.contains(&code) => {
                let topic = &self.topic;
                tracing::warn!(
                    topic,
                    %code,
                    "the settings of the topic are not known; see that it has cleanup.policy=compact"
                );
                return Ok(None);
            }
            Err(code) => {
                let topic = &self.topic;
                let why = format!("the settings of topic `{topic}` could not be read: {code}");
                return Err(KafkaError::Other(why));
            }
        };
        let problem = |detail: String| {
            Ok(Some(KafkaError::Unsuitable {
                topic: self.topic.clone(),
                detail,
            }))
        };
        for resource in configs {
            let value = |name: &str| {
                let entry = resource.entries.iter().find(|e| e.name == name);
                entry.and_then(|e| e.value.clone()).unwrap_or_default()
            };
            let policy = value("cleanup.policy");
            if !policy.is_empty() && policy != "compact" {
                return problem(format!(
                    "contains state but has cleanup.policy={policy}, with which the broker would delete it; \
                     set cleanup.policy=compact"
                ));
            }
            let needs = self.record_bytes + FRAME_BYTES;
            let most = value("max.message.bytes");
            if most.parse::<usize>().is_ok_and(|most| most < needs) {
                return problem(format!(
                    "has max.message.bytes={most}; set it to {needs} or more"
                ));
            }
            let (lag, least) = (value(LAG), FOLLOWED_AFTER.1);
            let known = lag.parse::<u64>().ok().zip(least.parse().ok());
            if followed && known.is_some_and(|(lag, least)| lag < least) {
                return problem(format!(
                    "has {LAG}={lag}: the broker may compact checkpoints away before the judge has read them, and it \
                     then skips slides; set {LAG}={least}"
                ));
            }
        }
        Ok(None)
    }

    /// How many partitions the topic has, if it exists.
    pub fn found(&self) -> Result<Option<i32>, KafkaError> {
        self.count(&self.topic)
    }

    fn read_from(
        &self,
        partition: i32,
        from: Offset,
        until: i64,
        within: Duration,
        alive: &dyn Fn(),
        each: EachAt<'_>,
    ) -> Result<(), KafkaError> {
        let start = Instant::now();
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.topic, partition, from)?;
        self.client.assign(&list)?;
        let mut read = Err(KafkaError::Other(format!(
            "state topic {}: partition {partition} was not read up to offset {until} within {within:?}",
            self.topic
        )));
        while start.elapsed() < within {
            alive();
            ClientCallbacks::rebootstrap(self.client.client());
            match self.client.poll(Duration::from_millis(50)) {
                None => {}
                Some(Err(error)) if error.rdkafka_error_code() == Some(GROUP_DENIED) => {}
                Some(Err(error)) => {
                    // The client retries by itself; the last error is returned.
                    read = Err(error.into());
                }
                Some(Ok(message)) => {
                    let key = message.key().unwrap_or_default();
                    each(message.offset(), key, message.payload());
                    if message.offset() >= until {
                        read = Ok(());
                        break;
                    }
                }
            }
        }
        let _ = self.client.unassign();
        read
    }
}

impl ReadState for StateTopic {
    fn state_partition(&mut self, of: i32, sources: &[String]) -> Result<i32, KafkaError> {
        let partitions = self.found_or(|topic| {
            let counts = sources.iter().map(|t| topic.count(t));
            let counts: Vec<Option<i32>> = counts.collect::<Result<_, _>>()?;
            let n = counts.into_iter().flatten().max().unwrap_or(1);
            topic.create_topic(n, &[FOLLOWED_AFTER])
        })?;
        Ok(of.rem_euclid(partitions.max(1)))
    }

    fn partitions(&mut self, at_creation: i32) -> Result<i32, KafkaError> {
        self.found_or(|topic| topic.create_topic(at_creation, &[COMPACTED_AFTER]))
    }

    fn committed(
        &mut self,
        group: &str,
        topic: &str,
        partition: i32,
    ) -> Result<Option<i64>, KafkaError> {
        if !self.groups.contains_key(group) {
            let client = reader(&self.options, group)?;
            self.groups.insert(group.to_owned(), client);
        }
        let client = self.groups.get(group).unwrap_or(&self.client);
        poll_idle(client);
        let mut list = TopicPartitionList::new();
        list.add_partition(topic, partition);
        let offsets = client.committed_offsets(list, REQUEST)?;
        let entry = offsets.find_partition(topic, partition);
        Ok(match entry.map(|e| e.offset()) {
            Some(Offset::Offset(offset)) => Some(offset),
            _ => None,
        })
    }

    fn read(
        &self,
        partition: i32,
        until: i64,
        within: Duration,
        alive: &dyn Fn(),
        each: EachRecord<'_>,
    ) -> Result<(), KafkaError> {
        let all = Offset::Beginning;
        let mut each = |_: i64, key: &[u8], value: Option<&[u8]>| each(key, value);
        self.read_from(partition, all, until, within, alive, &mut each)
    }

    fn read_after(
        &self,
        partition: i32,
        from: i64,
        until: Option<i64>,
        within: Duration,
        each: EachAt<'_>,
    ) -> Result<(), KafkaError> {
        let until = match until {
            Some(until) => until,
            None => {
                poll_idle(&self.client);
                let client = &self.client;
                client.fetch_watermarks(&self.topic, partition, REQUEST)?.1 - 1
            }
        };
        if until < from {
            return Ok(());
        }
        let from = Offset::Offset(from);
        self.read_from(partition, from, until, within, &|| {}, each)
    }
}

/// Number of partitions of a topic; `None` if it does not exist. It is an error if this user has no
/// right on the topic, because its existence is then unknown. The error names the right that is
/// needed, on the `state` topic or on another.
pub(super) fn count(
    client: &BaseConsumer<ClientCallbacks>,
    topic: &str,
    state: &str,
) -> Result<Option<i32>, KafkaError> {
    poll_idle(client);
    let metadata = client.fetch_metadata(Some(topic), REQUEST)?;
    let found = metadata.topics().iter().find(|t| t.name() == topic);
    let error = found.and_then(|t| t.error()).map(RDKafkaErrorCode::from);
    if let Some(error @ RDKafkaErrorCode::TopicAuthorizationFailed) = error {
        let right = if topic == state { RIGHTS } else { "DESCRIBE" };
        return Err(KafkaError::topic_denied(topic, right, error.to_string()));
    }
    let n = found.map_or(0, |t| t.partitions().len());
    Ok((n > 0).then_some(n as i32))
}

/// Lets an idle client run its callbacks.
pub(super) fn poll_idle(client: &BaseConsumer<ClientCallbacks>) {
    let _ = client.poll(POLL);
    ClientCallbacks::rebootstrap(client.client());
}

/// A client that reads assigned partitions. It uses the group only for committed offsets and does
/// not join it.
fn reader(
    options: &KafkaOptions,
    group: &str,
) -> Result<BaseConsumer<ClientCallbacks>, KafkaError> {
    create(&reader_config(options, group), options)
}

/// Blocks this thread until an administration request has ended.
fn wait<T>(request: impl Future<Output = T>) -> Result<T, KafkaError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|e| KafkaError::Other(format!("cannot wait: {e}")))?;
    Ok(runtime.block_on(request))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kafka::mock::broker;
    use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};

    #[test]
    fn a_topic_that_may_not_be_seen_is_not_taken_for_one_that_is_missing() {
        let (mock, options) = broker("state");
        let state = StateTopic::new(&options, "state", 0).expect("a client");
        assert_eq!(state.found(), Ok(Some(1)));
        let denied = RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
        mock.topic_error("state", denied).expect("taken");
        let said = state.found().expect_err("denied").to_string();
        assert!(
            said.contains("`state`") && said.contains("grant READ, WRITE"),
            "{said}"
        );
    }

    #[test]
    fn a_reader_needs_no_right_on_the_group_whose_name_it_sends() {
        let (mock, mut options) = broker("state");
        options.group = "g".to_owned();
        let denied = RDKafkaRespErr::RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED;
        mock.request_errors(RDKafkaApiKey::FindCoordinator, &[denied; 20]);
        let state = StateTopic::new(&options, "state", 0).expect("a client");
        let within = Duration::from_secs(2);
        let said = state.read_after(0, 0, Some(1), within, &mut |_, _, _| {});
        let said = said.expect_err("the topic is empty").to_string();
        assert!(said.contains("was not read up to offset 1"), "{said}");
    }
}
