//! From Kafka to pane sums, beside the rate at which bare librdkafka drains the same topic.
//!
//! `KAFKA_BOOTSTRAP=127.0.0.1:19092 cargo bench --bench end_to_end [-- EVENTS]`; without a bootstrap
//! server it runs on the mock broker, in this process, with fewer events, and says so: the mock shares
//! the processor with the consumer and its figure is not the one to quote.
//!
//! The topic is filled once: events of 200 bytes of JSON in 8 partitions. Then, several times in turn,
//! *bare*: an assigned librdkafka consumer, one batch call after the other, each message destroyed
//! unread; *ours*: the consumer of `run`, the decoder, and the sums of the pane of each event. The time
//! of each begins with its first record, so that joining a group is not counted.

#![allow(unsafe_code)]

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::bindings as sys;
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use std::time::{Duration, Instant};
use trueline::decode::{DecodeOptions, Decoder};
use trueline::kafka::{Consumer, Handler, KafkaError, KafkaOptions, Partition, Record};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::fixed::Score;
use trueline::stats::sums::Sums;
use trueline::stats::view::{Outcome, Prediction};

const PARTITIONS: i32 = 8;
const TURNS: usize = 3;

fn main() {
    let real = std::env::var("KAFKA_BOOTSTRAP").ok();
    let wanted = std::env::args().skip(1).find_map(|a| a.parse().ok());
    let n: usize = wanted.unwrap_or(if real.is_some() { 1_000_000 } else { 100_000 });
    let mock = real.is_none().then(|| MockCluster::new(1).ok()).flatten();
    let brokers = match (&real, &mock) {
        (Some(b), _) => b.clone(),
        (None, Some(m)) => {
            println!("KAFKA_BOOTSTRAP is not set: mock broker in this process, {n} events");
            m.bootstrap_servers()
        }
        (None, None) => return println!("no broker"),
    };
    let topic = format!("trueline-bench-{}", std::process::id());
    match &mock {
        Some(m) => m
            .create_topic(&topic, PARTITIONS, 1)
            .unwrap_or_else(|e| println!("{e}")),
        None => create(&brokers, &topic),
    }
    fill(&brokers, &topic, n);
    let mut ratios = Vec::new();
    for turn in 0..TURNS {
        let bare = n as f64 / drain_bare(&brokers, &topic, n);
        let ours = n as f64 / drain_ours(&brokers, &topic, n, turn);
        ratios.push(ours / bare);
        println!(
            "turn {turn}: bare {:.0} k/s, trueline {:.0} k/s, ratio {:.2}",
            bare / 1e3,
            ours / 1e3,
            ours / bare
        );
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "end to end: median ratio to bare librdkafka {:.2} over {n} events of 200 bytes",
        ratios[TURNS / 2]
    );
}

fn client(brokers: &str) -> ClientConfig {
    let mut c = ClientConfig::new();
    c.set("bootstrap.servers", brokers);
    c
}

fn create(brokers: &str, topic: &str) {
    let admin: AdminClient<DefaultClientContext> =
        client(brokers).create().expect("an admin client");
    let new = [NewTopic::new(topic, PARTITIONS, TopicReplication::Fixed(1))];
    let made = admin.create_topics(&new, &AdminOptions::new());
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(made)
        .expect("a topic");
}

fn fill(brokers: &str, topic: &str, n: usize) {
    let producer: BaseProducer = client(brokers)
        .set("linger.ms", "20")
        .set("batch.size", "200000")
        .set("queue.buffering.max.messages", "500000")
        .create()
        .expect("a producer");
    let mut x = 0x9E37_79B9_7F4A_7C15u64;
    for i in 0..n {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        let z = (x >> 11) as f64 / (1u64 << 53) as f64;
        let mut r = format!(
            r#"{{"model":"fraud","version":"2026-11-03","country":"de","request_id":"{x:016x}","time_ms":{},"score":{z},"outcome":{},"note":""#,
            1_760_000_000_000u64 + i as u64,
            x & 1,
        );
        while r.len() < 198 {
            r.push('x');
        }
        r.push_str("\"}");
        let p = i as i32 / 64 % PARTITIONS;
        while producer
            .send(BaseRecord::<(), str>::to(topic).partition(p).payload(&r))
            .is_err()
        {
            producer.poll(Duration::from_millis(10));
        }
    }
    producer
        .flush(Duration::from_secs(120))
        .expect("all is written");
}

/// Seconds from the first to the last of `n` messages.
fn drain_bare(brokers: &str, topic: &str, n: usize) -> f64 {
    let c: BaseConsumer = client(brokers)
        .set("group.id", "bare")
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("fetch.queue.backoff.ms", "1")
        .create()
        .expect("a consumer");
    let mut list = TopicPartitionList::new();
    for p in 0..PARTITIONS {
        list.add_partition_offset(topic, p, Offset::Beginning)
            .expect("an offset");
    }
    c.assign(&list).expect("an assignment");
    let mut messages = vec![std::ptr::null_mut(); 1024];
    let (mut seen, mut start) = (0, None);
    // SAFETY: the client outlives the queue; each message is destroyed once, at once.
    unsafe {
        let q = sys::rd_kafka_queue_get_consumer(c.client().native_ptr());
        while seen < n {
            let k = sys::rd_kafka_consume_batch_queue(q, 5, messages.as_mut_ptr(), messages.len());
            for &m in &messages[..k.max(0) as usize] {
                seen += usize::from((*m).err as i32 == 0);
                sys::rd_kafka_message_destroy(m);
            }
            if seen > 0 {
                start.get_or_insert_with(Instant::now);
            }
        }
        sys::rd_kafka_queue_destroy(q);
    }
    start.map_or(0.0, |s| s.elapsed().as_secs_f64())
}

/// The same through the consumer, the decoder and the sums.
fn drain_ours(brokers: &str, topic: &str, n: usize, turn: usize) -> f64 {
    let options = KafkaOptions {
        brokers: brokers.to_string(),
        group: format!("{topic}-{turn}"),
        topics: vec![topic.to_string()],
        ..KafkaOptions::default()
    };
    let decoder = Decoder::new(&DecodeOptions::default()).expect("options");
    let mut c = Consumer::new(&options).expect("a consumer");
    let mut sink = Sink {
        decoder,
        sums: Sums::new(Grid::new(Axis::Linear, 12)),
        seen: 0,
        errors: 0,
    };
    let mut start = None;
    while sink.seen < n {
        c.poll(Duration::from_millis(100), &mut sink);
        if sink.seen > 0 {
            start.get_or_insert_with(Instant::now);
        }
    }
    let seconds = start.map_or(0.0, |s: Instant| s.elapsed().as_secs_f64());
    assert_eq!((sink.sums.n(), sink.errors), (n as u64, 0));
    seconds
}

struct Sink {
    decoder: Decoder,
    sums: Sums,
    seen: usize,
    errors: usize,
}

impl Handler for Sink {
    fn record(&mut self, r: Record<'_>) {
        self.seen += 1;
        match self.decoder.decode(r.payload, r.key, r.timestamp_ms) {
            Ok(event) => match (event.prediction, event.outcome) {
                (Prediction::Score(z), Some(Outcome::Binary(y))) => {
                    let added = Score::new(z).ok().map(|z| self.sums.observe(z, y).is_ok());
                    self.errors += usize::from(added != Some(true));
                }
                _ => self.errors += 1,
            },
            Err(_) => self.errors += 1,
        }
    }
    fn assigned(&mut self, _: Partition) -> Option<i64> {
        Some(0)
    }
    fn revoked(&mut self, _: Partition, _: bool) {}
    fn end_of_partition(&mut self, _: Partition) {}
    fn error(&mut self, e: KafkaError) {
        println!("{e}");
    }
}
