//! A real Kafka broker: ours, started by `tests/kafka/broker`, or that of `KAFKA_BOOTSTRAP`.
//!
//! A broker, the processes that read from it and the producers need a core and a gigabyte, and
//! tests that freeze or kill one depend on sessions that must not expire for want of a core. So
//! however many threads the test runner has, at most [`SEATS`] tests use a broker at the same
//! moment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::producer::{BaseProducer, Producer};
use rdkafka::{Offset, TopicPartitionList};
use serde_json::Value;

use super::sender::Sender;

/// Tests that may use a broker at the same moment.
const SEATS: u32 = 3;

/// Seats that are taken.
static TAKEN: Mutex<u32> = Mutex::new(0);
static LEFT: Condvar = Condvar::new();

/// The right to use a broker, held until dropped.
struct Seat(u32);

impl Seat {
    /// Waits until so many are free.
    fn take(seats: u32) -> Seat {
        let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |taken: &mut u32| *taken + seats > SEATS;
        let taken = LEFT.wait_while(taken, full);
        *taken.unwrap_or_else(PoisonError::into_inner) += seats;
        Seat(seats)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) -= self.0;
        LEFT.notify_all();
    }
}

/// A broker that answers.
pub struct Broker {
    /// `host:port`.
    pub bootstrap: String,
    /// Directory of a broker that is ours to stop; `None` for one that was given.
    dir: Option<PathBuf>,
    /// Of the one test that has it.
    _seat: Option<Seat>,
}

/// A broker that other tests use too.
pub struct Shared {
    broker: Arc<Broker>,
    _seat: Seat,
}

impl std::ops::Deref for Shared {
    type Target = Broker;

    fn deref(&self) -> &Broker {
        &self.broker
    }
}

/// A record read back.
pub struct Read {
    /// Its bytes.
    pub payload: Vec<u8>,
    /// Its headers, values as text.
    pub headers: Vec<(String, String)>,
}

impl Broker {
    /// Any broker, or `None` after saying that `test` is skipped. Tests that run at the same moment
    /// share one; the last to drop it ends it.
    pub fn any(test: &str) -> Option<Shared> {
        Broker::shared(test, 1)
    }

    /// The same for a test beside which no other may use a broker, because it measures.
    pub fn alone(test: &str) -> Option<Shared> {
        Broker::shared(test, SEATS)
    }

    fn shared(test: &str, seats: u32) -> Option<Shared> {
        static SHARED: Mutex<Weak<Broker>> = Mutex::new(Weak::new());
        let seat = Seat::take(seats);
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(broker) = shared.upgrade() {
            return Some(Shared {
                broker,
                _seat: seat,
            });
        }
        let broker = match std::env::var("KAFKA_BOOTSTRAP") {
            Ok(bootstrap) if !bootstrap.is_empty() => Broker {
                bootstrap,
                dir: None,
                _seat: None,
            },
            _ => Broker::fresh(test)?,
        };
        let broker = Arc::new(broker);
        *shared = Arc::downgrade(&broker);
        Some(Shared {
            broker,
            _seat: seat,
        })
    }

    /// A broker that the test may stop, or `None` after saying that it is skipped.
    pub fn own(test: &str) -> Option<Broker> {
        let seat = Seat::take(1);
        let mut broker = Broker::fresh(test)?;
        broker._seat = Some(seat);
        Some(broker)
    }

    fn fresh(test: &str) -> Option<Broker> {
        let wanted = |name| std::env::var(name).is_ok_and(|v| v == "1");
        if !wanted("TRUELINE_TEST_KAFKA") && !wanted("TRUELINE_TEST_ALL") {
            super::skip(
                test,
                "needs a Kafka broker of its own; `tests/run` starts one given java and mvn",
            );
            return None;
        }
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("broker-{}", unique()));
        let mut broker = Broker {
            bootstrap: String::new(),
            dir: Some(dir),
            _seat: None,
        };
        broker.start();
        Some(broker)
    }

    /// Starts it, again on the same port and data when it ran before.
    pub fn start(&mut self) {
        self.bootstrap = self.script("start").trim().to_owned();
    }

    /// Stops it in an orderly way; the data stay.
    pub fn stop(&self) {
        self.script("stop");
    }

    /// Sends it a signal, as `STOP` or `CONT`.
    pub fn signal(&self, signal: &str) {
        send_signal(self.script("pid").trim(), signal);
    }

    /// The address at which it asks for credentials: SASL PLAIN, user `trueline`, password `right`.
    pub fn sasl(&self) -> String {
        self.script("sasl").trim().to_owned()
    }

    /// The address that speaks TLS, the one that also asks for SCRAM-SHA-512 credentials or a
    /// token, and the certificate of the authority that signed theirs.
    pub fn tls(&self) -> (String, String, PathBuf) {
        let addresses = self.script("tls");
        let (tls, scram) = addresses.trim().split_once(' ').expect("two addresses");
        let dir = self.dir.as_ref().expect("a broker of one's own");
        (tls.to_owned(), scram.to_owned(), dir.join("tls/ca.pem"))
    }

    fn script(&self, command: &str) -> String {
        let dir = self
            .dir
            .as_ref()
            .expect("only a broker of one's own is started and stopped");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kafka/broker");
        let output = Command::new(script)
            .args([command.as_ref(), dir.as_os_str()])
            .stderr(Stdio::inherit())
            .output()
            .expect("tests/kafka/broker can be run");
        assert!(output.status.success(), "broker {command} failed");
        String::from_utf8(output.stdout).expect("an address is text")
    }

    /// Creates topics of these names and partitions and waits until the broker lists them.
    pub fn create_topics(&self, topics: &[(&str, i32)]) {
        self.create_topics_for(topics, 1 << 20);
    }

    /// The same for records of up to so many bytes.
    pub fn create_topics_for(&self, topics: &[(&str, i32)], record_bytes: usize) {
        let record_bytes = record_bytes.to_string();
        let new = topics
            .iter()
            .map(|t| NewTopic::new(t.0, t.1, TopicReplication::Fixed(1)))
            .map(|t| t.set("max.message.bytes", &record_bytes))
            // A long run of a fast test must not fill the disk.
            .map(|t| t.set("retention.bytes", "536870912"))
            .map(|t| t.set("segment.bytes", "67108864"));
        let new: Vec<NewTopic<'_>> = new.collect();
        let results = runtime().block_on(self.admin().create_topics(&new, &options()));
        for result in results.expect("the broker creates topics") {
            result.expect("the topic is new");
        }
    }

    /// Gives a topic so many partitions, more than it has.
    pub fn add_partitions(&self, topic: &str, count: usize) {
        let more = NewPartitions::new(topic, count);
        let results = runtime().block_on(self.admin().create_partitions(&[more], &options()));
        for result in results.expect("the broker adds partitions") {
            result.expect("the topic has fewer");
        }
    }

    /// Deletes a topic.
    pub fn delete_topic(&self, topic: &str) {
        let results = runtime().block_on(self.admin().delete_topics(&[topic], &options()));
        for result in results.expect("the broker deletes topics") {
            result.expect("the topic was there");
        }
    }

    /// Deletes all records of a partition before an offset, as retention does.
    pub fn delete_records(&self, topic: &str, partition: i32, before: i64) {
        let mut list = TopicPartitionList::new();
        let offset = Offset::Offset(before);
        list.add_partition_offset(topic, partition, offset)
            .expect("an offset");
        let result = runtime().block_on(self.admin().delete_records(&list, &options()));
        let result = result.expect("the broker deletes records");
        assert!(result.elements().iter().all(|e| e.error().is_ok()));
    }

    /// Names of the consumer groups that the broker knows.
    pub fn groups(&self) -> Vec<String> {
        let consumer: BaseConsumer = self.client().create().expect("a client");
        let groups = consumer.fetch_group_list(None, Duration::from_secs(20));
        let groups = groups.expect("a list of groups");
        groups
            .groups()
            .iter()
            .map(|g| g.name().to_owned())
            .collect()
    }

    /// A producer that keeps order and loses nothing.
    pub fn producer(&self) -> Sender {
        let mut client = self.client();
        client
            .set("enable.idempotence", "true")
            .set("linger.ms", "20");
        client.set("message.timeout.ms", "120000");
        client.set("message.max.bytes", "16777216");
        Sender::new(client.create().expect("a producer"))
    }

    /// A producer whose records come in transactions.
    pub fn transactional(&self, id: &str) -> Sender {
        let mut client = self.client();
        client
            .set("transactional.id", id)
            .set("transaction.timeout.ms", "60000")
            .set("linger.ms", "5");
        let producer: BaseProducer = client.create().expect("a producer");
        let begun = producer.init_transactions(Duration::from_secs(60));
        begun.expect("the broker knows transactions");
        Sender::new(producer)
    }

    /// Creates a topic whose producers may set any timestamp, as brokers before 4.0 let them.
    pub fn create_topic_of_any_time(&self, topic: &str, partitions: i32) {
        let new = NewTopic::new(topic, partitions, TopicReplication::Fixed(1))
            .set("message.timestamp.after.max.ms", "9223372036854775807");
        let results = runtime().block_on(self.admin().create_topics([&new], &options()));
        for result in results.expect("the broker creates topics") {
            result.expect("the topic is new");
        }
    }

    /// Two fields of every notification in the topic of a sink, in order, by model and fingerprint.
    pub fn notices(&self, fields: [&str; 2], topic: &str) -> BTreeMap<String, Vec<[String; 2]>> {
        let mut all = BTreeMap::<String, Vec<[String; 2]>>::new();
        for read in self.read_all(topic) {
            let notice: Value = serde_json::from_slice(&read.payload).expect("json");
            let text = |key: &str| notice[key].as_str().unwrap_or_default().to_owned();
            let of = format!("{} {}", text("model"), text("fingerprint"));
            all.entry(of).or_default().push(fields.map(text));
        }
        all
    }

    /// Reads partition 0 of a topic from its start to its present end.
    pub fn read_all(&self, topic: &str) -> Vec<Read> {
        let mut client = self.client();
        client
            .set("group.id", format!("reader-{}", unique()))
            .set("enable.auto.commit", "false");
        let consumer: BaseConsumer = client.create().expect("a consumer");
        let (low, high) = consumer
            .fetch_watermarks(topic, 0, Duration::from_secs(20))
            .expect("the topic has watermarks");
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, 0, Offset::Beginning)
            .expect("a valid offset");
        consumer.assign(&list).expect("an assignment");
        let (mut read, start) = (Vec::new(), Instant::now());
        while (read.len() as i64) < high - low {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "{topic} does not end"
            );
            if let Some(message) = consumer.poll(Duration::from_millis(100)) {
                read.push(Read::new(&message.expect("a message")));
            }
        }
        read
    }

    /// Keys and values of a partition from its start to its present end.
    pub fn read_keyed(&self, topic: &str, partition: i32) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        self.read(topic, partition, |message| {
            let key = message.key().unwrap_or_default().to_vec();
            (key, message.payload().map(<[u8]>::to_vec))
        })
    }

    fn admin(&self) -> AdminClient<DefaultClientContext> {
        self.client().create().expect("an admin client")
    }

    /// A consumer that begins at the start of a partition and tells its end.
    fn reader(&self, topic: &str, partition: i32) -> BaseConsumer {
        let mut client = self.client();
        client
            .set("group.id", format!("reader-{}", unique()))
            .set("enable.auto.commit", "false")
            .set("enable.partition.eof", "true");
        let consumer: BaseConsumer = client.create().expect("a consumer");
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition, Offset::Beginning)
            .expect("a valid offset");
        consumer.assign(&list).expect("an assignment");
        consumer
    }

    /// What `of` makes of each record of a partition, from its start to its present end.
    fn read<T>(
        &self,
        topic: &str,
        partition: i32,
        of: impl Fn(&BorrowedMessage<'_>) -> T,
    ) -> Vec<T> {
        let consumer = self.reader(topic, partition);
        let (mut read, start) = (Vec::new(), Instant::now());
        loop {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "{topic} does not end"
            );
            match consumer.poll(Duration::from_millis(100)) {
                None => {}
                Some(Err(KafkaError::PartitionEOF(_))) => return read,
                Some(message) => read.push(of(&message.expect("a message"))),
            }
        }
    }

    fn client(&self) -> ClientConfig {
        let mut client = ClientConfig::new();
        client.set("bootstrap.servers", &self.bootstrap);
        client
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Some(dir) = &self.dir {
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kafka/broker");
            let _ = Command::new(script).arg("stop").arg(dir).status();
            if !std::thread::panicking() {
                let _ = std::fs::remove_dir_all(dir);
            }
        }
    }
}

impl Read {
    fn new(message: &BorrowedMessage<'_>) -> Read {
        let text =
            |value: Option<&[u8]>| String::from_utf8_lossy(value.unwrap_or_default()).into_owned();
        let headers = message.headers().into_iter().flat_map(|h| h.iter());
        Read {
            payload: message.payload().unwrap_or_default().to_vec(),
            headers: headers.map(|h| (h.key.to_owned(), text(h.value))).collect(),
        }
    }
}

fn options() -> AdminOptions {
    AdminOptions::new().operation_timeout(Some(Duration::from_secs(20)))
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime")
}

/// A name no other test run on the same broker has used.
pub fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("after 1970");
    format!(
        "{}-{}-{}",
        now.as_millis(),
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// Sends a signal to a process by its id.
pub fn send_signal(pid: &str, signal: &str) {
    let status = Command::new("kill")
        .args([&format!("-{signal}"), pid])
        .status();
    assert!(
        status.expect("kill can be run").success(),
        "signal {signal} to {pid}"
    );
}
