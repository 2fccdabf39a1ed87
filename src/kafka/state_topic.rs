//! The topic of parcels: a compacted topic with as many partitions as the topics whose state it holds.
//!
//! [`StateTopic`] knows where it is, makes it where it is missing, and reads a partition of it from its
//! begin up to an offset; [`StateWriter`] writes records and answers where they came to lie, once all
//! in-sync replicas have them. Both wait on their caller's thread, each call with a deadline.
//!
//! State of partition p of any topic lies in partition p (modulo their number), so who takes a partition
//! over reads what was written of it and of its namesakes, and no more. The topic is made with small
//! segments, because the newest is never compacted, and what is not compacted yet is read in vain.

use super::lifeline::Lifeline;
use super::options::is_client_option;
use super::token::TokenFile;
use super::{KafkaError, KafkaOptions};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::{Client, ClientContext, OAuthToken};
use rdkafka::config::{FromClientConfigAndContext, RDKafkaLogLevel};
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError as Native, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::producer::{
    BaseRecord, DeliveryResult, NoCustomPartitioner, Producer, ProducerContext, ThreadedProducer,
};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use std::collections::BTreeMap;
use std::error::Error;
use std::future::Future;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Settings with which the topic is made. 64 MiB a segment: what is read at most beyond what is needed,
/// about a second; cleaned when a tenth is stale.
const SETTINGS: [(&str, &str); 3] = [
    ("cleanup.policy", "compact"),
    ("segment.bytes", "67108864"),
    ("min.cleanable.dirty.ratio", "0.1"),
];

/// Room for the key and the frame of a record beside its value.
const FRAME_BYTES: usize = 4 << 10;

/// How long a request that is no read may take.
const REQUEST: Duration = Duration::from_secs(10);

/// How long a client is listened to before it is asked.
const LISTEN: Duration = Duration::from_millis(5);

/// Pause before what found no room in the queue is tried again.
const FULL: Duration = Duration::from_millis(5);

/// A record of the topic: its key, and its value or `None` to take it away.
type Keyed = (String, Option<Vec<u8>>);

/// The client's side of callbacks: credentials, brokers, and words that the consumer has too.
pub(super) struct Quiet(TokenFile, Lifeline);

impl Quiet {
    /// Brings the brokers back where the client has lost them.
    pub(super) fn tend(client: &Client<Quiet>) {
        client.context().1.hold(client);
    }
}

impl ClientContext for Quiet {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, _: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        self.0.token()
    }

    fn log(&self, _level: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(facility, message, "librdkafka, state topic");
    }

    fn error(&self, error: Native, reason: &str) {
        self.1.note(&error);
        tracing::debug!(%error, reason, "state topic");
    }
}

impl ConsumerContext for Quiet {}

/// Who waits for the answer about one record of a call.
pub(super) struct Ticket {
    index: usize,
    answers: Sender<(usize, Result<i64, String>)>,
}

impl ProducerContext<NoCustomPartitioner> for Quiet {
    type DeliveryOpaque = Box<Ticket>;

    fn delivery(&self, result: &DeliveryResult<'_>, ticket: Box<Ticket>) {
        let answer = match result {
            Ok(message) => Ok(message.offset()),
            Err((error, _)) => Err(error.to_string()),
        };
        // Who asked may have given up waiting.
        let _ = ticket.answers.send((ticket.index, answer));
    }
}

/// See the module.
pub struct StateTopic {
    options: KafkaOptions,
    topic: String,
    /// Most bytes of a record's value.
    record_bytes: usize,
    client: BaseConsumer<Quiet>,
    /// Clients that ask for the offsets that a group has committed, by group.
    groups: BTreeMap<String, BaseConsumer<Quiet>>,
    /// Partitions of the topic, once it was seen.
    partitions: Option<i32>,
}

impl StateTopic {
    /// The topic of this name, whose records have at most `record_bytes`; nothing is asked of the broker
    /// yet.
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

    /// Name of the topic.
    pub fn name(&self) -> &str {
        &self.topic
    }

    /// The partition that holds the state of partition `of` of any topic. Makes the topic where it is
    /// missing, with as many partitions as the largest of `sources`, and refuses one that forgets.
    pub fn home(&mut self, of: i32, sources: &[String]) -> Result<i32, KafkaError> {
        let partitions = match self.partitions {
            Some(n) => n,
            None => {
                let n = match self.count(&self.topic)? {
                    Some(n) => n,
                    None => self.make(sources)?,
                };
                if let Some(fault) = self.unfit()? {
                    return Err(fault);
                }
                self.partitions = Some(n);
                n
            }
        };
        Ok(of.rem_euclid(partitions.max(1)))
    }

    /// Number of partitions of a topic, `None` where there is no such topic.
    fn count(&self, topic: &str) -> Result<Option<i32>, KafkaError> {
        listen(&self.client);
        let metadata = self
            .client
            .fetch_metadata(Some(topic), REQUEST)
            .map_err(KafkaError::from_native)?;
        let found = metadata.topics().iter().find(|t| t.name() == topic);
        let n = found.map_or(0, |t| t.partitions().len());
        Ok((n > 0).then_some(n as i32))
    }

    fn make(&self, sources: &[String]) -> Result<i32, KafkaError> {
        let counts = sources.iter().map(|t| self.count(t));
        let counts: Vec<Option<i32>> = counts.collect::<Result<_, _>>()?;
        let n = counts.into_iter().flatten().max().unwrap_or(1);
        // -1: the broker's default, which who runs it has chosen for topics that matter.
        let mut topic = NewTopic::new(&self.topic, n, TopicReplication::Fixed(-1));
        for (name, value) in SETTINGS {
            topic = topic.set(name, value);
        }
        let admin: AdminClient<Quiet> = create(&settings(&self.options), &self.options)?;
        let made = wait(admin.create_topics(
            &[topic],
            &AdminOptions::new().request_timeout(Some(REQUEST)),
        ))?;
        for result in made.map_err(KafkaError::from_native)? {
            match result {
                Ok(_) => tracing::info!(topic = self.topic, partitions = n, "state topic made"),
                // Another process was faster.
                Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
                Err((topic, code)) => {
                    return Err(KafkaError::Topic {
                        topic,
                        detail: format!(
                            "cannot be made: {code}; make it with cleanup.policy=compact"
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
            detail: "was made and does not show".to_string(),
        })
    }

    /// What is wrong with the topic's settings, as far as the broker tells them.
    pub fn unfit(&self) -> Result<Option<KafkaError>, KafkaError> {
        let admin: AdminClient<Quiet> = create(&settings(&self.options), &self.options)?;
        let which = [ResourceSpecifier::Topic(&self.topic)];
        let options = AdminOptions::new().request_timeout(Some(REQUEST));
        let Ok(told) = wait(admin.describe_configs(&which, &options))? else {
            // It may be forbidden to ask.
            return Ok(None);
        };
        let fault = |detail: String| {
            Ok(Some(KafkaError::Topic {
                topic: self.topic.clone(),
                detail,
            }))
        };
        for resource in told.into_iter().flatten() {
            let value = |name: &str| {
                let entry = resource.entries.iter().find(|e| e.name == name);
                entry.and_then(|e| e.value.clone()).unwrap_or_default()
            };
            let policy = value("cleanup.policy");
            if !policy.is_empty() && policy != "compact" {
                return fault(format!(
                    "holds state and has cleanup.policy={policy}, under which the broker would forget it; \
                     set cleanup.policy=compact"
                ));
            }
            let needs = self.record_bytes + FRAME_BYTES;
            let most = value("max.message.bytes");
            if most.parse::<usize>().is_ok_and(|most| most < needs) {
                return fault(format!(
                    "has max.message.bytes={most}; set it to {needs} or more"
                ));
            }
        }
        Ok(None)
    }

    /// Whether the topic exists.
    pub fn exists(&self) -> Result<bool, KafkaError> {
        Ok(self.count(&self.topic)?.is_some())
    }

    /// The offset that a group has committed of a partition of a source's topic, if any.
    pub fn committed(
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
        listen(client);
        let mut list = TopicPartitionList::new();
        list.add_partition(topic, partition);
        let told = client
            .committed_offsets(list, REQUEST)
            .map_err(KafkaError::from_native)?;
        let entry = told.find_partition(topic, partition);
        Ok(match entry.map(|e| e.offset()) {
            Some(Offset::Offset(offset)) => Some(offset),
            _ => None,
        })
    }

    /// Hands over all records of a partition up to and with `until`, in order: key, and value where it
    /// has one.
    pub fn read(
        &self,
        partition: i32,
        until: i64,
        within: Duration,
        mut each: impl FnMut(&[u8], Option<&[u8]>),
    ) -> Result<(), KafkaError> {
        let start = Instant::now();
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.topic, partition, Offset::Beginning)
            .map_err(KafkaError::from_native)?;
        self.client.assign(&list).map_err(KafkaError::from_native)?;
        let mut read = Err(KafkaError::Other(format!(
            "state topic {}: partition {partition} was not read up to offset {until} within {within:?}",
            self.topic
        )));
        while start.elapsed() < within {
            Quiet::tend(self.client.client());
            match self.client.poll(Duration::from_millis(50)) {
                None => {}
                Some(Err(error)) => {
                    // The client tries again by itself; the last of it is told.
                    read = Err(KafkaError::from_native(error));
                }
                Some(Ok(message)) => {
                    each(message.key().unwrap_or_default(), message.payload());
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

/// Writes to the topic; shared between threads.
pub struct StateWriter {
    options: KafkaOptions,
    topic: String,
    producer: RwLock<ThreadedProducer<Quiet>>,
}

impl StateWriter {
    /// A writer that keeps order and doubles nothing.
    pub fn new(options: &KafkaOptions, topic: &str) -> Result<StateWriter, KafkaError> {
        Ok(StateWriter {
            producer: RwLock::new(producer(options)?),
            options: options.clone(),
            topic: topic.to_owned(),
        })
    }

    /// Writes records to their partitions and waits until the broker has all of them; answers their
    /// offsets. After an error any of them may lie in the topic or not.
    pub fn put(&self, records: &[(i32, &Keyed)], within: Duration) -> Result<Vec<i64>, KafkaError> {
        self.revive()?;
        let start = Instant::now();
        let producer = self.producer.read().unwrap_or_else(PoisonError::into_inner);
        let (answers, told) = channel();
        for (index, (partition, (key, value))) in records.iter().enumerate() {
            let ticket = Ticket {
                index,
                answers: answers.clone(),
            };
            let mut record: BaseRecord<'_, str, [u8], Box<Ticket>> =
                BaseRecord::with_opaque_to(&self.topic, Box::new(ticket))
                    .partition(*partition)
                    .key(key);
            if let Some(value) = value {
                record = record.payload(value);
            }
            loop {
                match producer.send(record) {
                    Ok(()) => break,
                    Err((Native::MessageProduction(RDKafkaErrorCode::QueueFull), back))
                        if start.elapsed() < within =>
                    {
                        record = back;
                        std::thread::sleep(FULL);
                    }
                    Err((error, _)) => return Err(KafkaError::from_native(error)),
                }
            }
        }
        drop(answers);
        let mut offsets = vec![0; records.len()];
        for _ in records {
            match told.recv_timeout(within.saturating_sub(start.elapsed())) {
                Ok((index, Ok(offset))) => offsets[index] = offset,
                Ok((_, Err(error))) => return Err(self.failed(&error)),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(self.failed(&format!("no answer within {within:?}")));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.failed("the client ended")),
            }
        }
        Ok(offsets)
    }

    fn failed(&self, why: &str) -> KafkaError {
        KafkaError::Other(format!("writing to state topic {}: {why}", self.topic))
    }

    /// Makes a producer anew that cannot go on.
    fn revive(&self) -> Result<(), KafkaError> {
        let dead = {
            let now = self.producer.read().unwrap_or_else(PoisonError::into_inner);
            Quiet::tend(now.client());
            now.client().fatal_error().is_some()
        };
        if dead {
            let new = producer(&self.options)?;
            *self
                .producer
                .write()
                .unwrap_or_else(PoisonError::into_inner) = new;
        }
        Ok(())
    }
}

/// Lets a client that reads nothing just now say what befell it.
pub(super) fn listen(client: &BaseConsumer<Quiet>) {
    let _ = client.poll(LISTEN);
    Quiet::tend(client.client());
}

/// A client that reads what it is told to. The group is named for what it has committed; it is not joined.
fn reader(options: &KafkaOptions, group: &str) -> Result<BaseConsumer<Quiet>, KafkaError> {
    create(&reader_config(options, group), options)
}

pub(super) fn reader_config(options: &KafkaOptions, group: &str) -> ClientConfig {
    let mut c = settings(options);
    c.set("group.id", group)
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "earliest")
        .set("fetch.wait.max.ms", "50");
    c
}

fn producer(options: &KafkaOptions) -> Result<ThreadedProducer<Quiet>, KafkaError> {
    let mut c = settings(options);
    c.set("enable.idempotence", "true")
        .set("compression.type", "lz4")
        .set("linger.ms", "2")
        .set("queue.buffering.max.kbytes", "262144");
    create(&c, options)
}

fn settings(options: &KafkaOptions) -> ClientConfig {
    let mut c = options.client_config();
    for (k, v) in options.options.iter().filter(|(k, _)| is_client_option(k)) {
        c.set(k, v);
    }
    c
}

pub(super) fn create<T: FromClientConfigAndContext<Quiet>>(
    config: &ClientConfig,
    options: &KafkaOptions,
) -> Result<T, KafkaError> {
    let context = Quiet(options.token(), options.lifeline());
    let made: Result<T, Native> = config.create_with_context(context);
    made.map_err(KafkaError::from_native)
}

/// The answer to a request of administration, waited for on this thread.
fn wait<T>(request: impl Future<Output = T>) -> Result<T, KafkaError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|e| KafkaError::Other(format!("cannot wait: {e}")))?;
    Ok(runtime.block_on(request))
}
