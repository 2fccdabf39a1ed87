//! From Kafka to verdicts, beside the rate at which bare librdkafka drains the same topic.
//!
//! `KAFKA_BOOTSTRAP=127.0.0.1:19092 cargo bench --bench end_to_end [-- [joined] [threads=N] [EVENTS
//! [TURNS [RATE]]]]`; without a bootstrap server it runs on the mock broker, in this process, with
//! fewer events, and says so: the mock shares the processor with the consumer and its figure is not
//! the one to quote.
//!
//! The topic is filled once: events of 200 bytes of JSON in 8 partitions, RATE of them in a second
//! of event time, by which it is decided how often windows slide while they are drained. Then,
//! several times in turn, *bare*: an assigned librdkafka consumer, one batch call after the other,
//! each message destroyed unread; *ours*: what `run` does, less the HTTP server: an application
//! bound to a configuration of three windows, its turns taken one after the other, with decoder,
//! engine, verdicts, publication and snapshots. Both clients have the same fetch settings and the
//! same allocator. The time of each begins with its first record, so that joining a group is not
//! counted, and each turn says how much processor time the whole process took for an event,
//! librdkafka's threads included, and how much of it the thread of the engine. With `threads=N` so
//! many threads decode, that of the engine among them.
//!
//! With `joined` half of the records are predictions and half their outcomes, a second of event
//! time later and on a topic of their own, with a maturity of a minute.

#![allow(unsafe_code)]

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::bindings as sys;
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use std::time::{Duration, Instant};
use trueline::app::{App, Setup};
use trueline::config::Config;
use trueline::config::value::Outside;

// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const PARTITIONS: i32 = 8;
const TURNS: usize = 5;
/// Events in a second of event time.
const RATE: usize = 10_000;

fn main() {
    let real = std::env::var("KAFKA_BOOTSTRAP").ok();
    let mut wanted = std::env::args().skip(1).filter_map(|a| a.parse().ok());
    let usual = if real.is_some() { 1_000_000 } else { 100_000 };
    let n: usize = wanted.next().unwrap_or(usual);
    let joined = std::env::args().any(|a| a == "joined");
    let threads = std::env::args().find_map(|a| a.strip_prefix("threads=")?.parse().ok());
    let threads: usize = threads.unwrap_or(0);
    let turns: usize = wanted.next().unwrap_or(TURNS);
    let rate: usize = wanted.next().unwrap_or(RATE).max(1);
    let mock = real.is_none().then(|| MockCluster::new(1).ok()).flatten();
    let brokers = match (&real, &mock) {
        (Some(b), _) => b.clone(),
        (None, Some(m)) => {
            println!("KAFKA_BOOTSTRAP is not set: mock broker in this process, {n} events");
            m.bootstrap_servers()
        }
        (None, None) => return println!("no broker"),
    };
    let mut topics = vec![format!("trueline-bench-{}", std::process::id())];
    if joined {
        topics.push(format!("{}-outcomes", topics[0]));
    }
    for topic in &topics {
        match &mock {
            Some(m) => m
                .create_topic(topic, PARTITIONS, 1)
                .unwrap_or_else(|e| println!("{e}")),
            None => create(&brokers, topic),
        }
    }
    let start = Instant::now();
    fill(&brokers, &topics, n, rate);
    println!(
        "{n} events written in {:.1} s",
        start.elapsed().as_secs_f64()
    );
    let mut ratios = Vec::new();
    for turn in 0..turns {
        // Whoever comes second finds a broker that has just read the topic.
        let (bare, ours) = if turn % 2 == 0 {
            let bare = drain_bare(&brokers, &topics, n);
            (bare, drain_ours(&brokers, &topics, n, turn, threads))
        } else {
            let ours = drain_ours(&brokers, &topics, n, turn, threads);
            (drain_bare(&brokers, &topics, n), ours)
        };
        let speed = |cost: &Cost| n as f64 / cost.seconds;
        ratios.push(speed(&ours) / speed(&bare));
        println!(
            "turn {turn}: bare {:.0} k/s ({:.0} ns of processor an event), trueline {:.0} k/s ({:.0} ns, {:.0} of the engine), ratio {:.2}",
            speed(&bare) / 1e3,
            bare.cpu / n as f64 * 1e9,
            speed(&ours) / 1e3,
            ours.cpu / n as f64 * 1e9,
            ours.thread / n as f64 * 1e9,
            ratios[turn]
        );
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "end to end: median ratio to bare librdkafka {:.2} over {n} events of 200 bytes, {rate} a second, {turns} turns, load {}",
        ratios[turns / 2],
        std::fs::read_to_string("/proc/loadavg")
            .unwrap_or_default()
            .trim()
    );
}

/// What a drain took, from its first record to its last.
struct Cost {
    seconds: f64,
    /// Processor time of the process, all threads, in seconds.
    cpu: f64,
    /// That of the calling thread.
    thread: f64,
}

/// Begins at the first record.
#[derive(Default)]
struct Clock(Option<(Instant, f64, f64)>);

impl Clock {
    fn saw(&mut self, records: usize) {
        if records > 0 {
            self.0
                .get_or_insert_with(|| (Instant::now(), cpu("self"), cpu("thread-self")));
        }
    }

    fn cost(self) -> Cost {
        let (start, before, thread) = self.0.expect("a record came");
        Cost {
            seconds: start.elapsed().as_secs_f64(),
            cpu: cpu("self") - before,
            thread: cpu("thread-self") - thread,
        }
    }
}

/// Processor time so far of this process (`self`) or thread (`thread-self`), in seconds; 0 where
/// /proc does not tell.
fn cpu(of: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{of}/stat")).unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let fields = after_name.split(' ').skip(11).take(2);
    // Hundredths of a second: the unit of /proc on every Linux of today.
    fields.filter_map(|f| f.parse::<f64>().ok()).sum::<f64>() / 100.0
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

/// The `i`th record, of 200 bytes, and the number of its topic and of its event.
fn record(i: usize, joined: bool, x: u64, rate: usize) -> (String, usize, usize) {
    let event = if joined { i / 2 } else { i };
    let time_ms = 1_760_000_000_000 + event * 1000 / rate;
    let z = (x >> 11) as f64 / (1u64 << 53) as f64;
    let outcome = x & 1;
    let (mut r, topic) = match (joined, i % 2) {
        (true, 1) => {
            let later = time_ms + 1000;
            let r = format!(
                r#"{{"request_id":"{event:016x}","time_ms":{later},"outcome":{outcome},"note":""#
            );
            (r, 1)
        }
        (true, _) => (
            format!(
                r#"{{"model":"fraud","version":"2026-11-03","country":"de","request_id":"{event:016x}","time_ms":{time_ms},"score":{z},"note":""#
            ),
            0,
        ),
        (false, _) => (
            format!(
                r#"{{"model":"fraud","version":"2026-11-03","country":"de","request_id":"{x:016x}","time_ms":{time_ms},"score":{z},"outcome":{outcome},"note":""#
            ),
            0,
        ),
    };
    while r.len() < 198 {
        r.push('x');
    }
    r.push_str("\"}");
    (r, topic, event)
}

fn fill(brokers: &str, topics: &[String], n: usize, rate: usize) {
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
        let (r, topic, event) = record(i, topics.len() > 1, x, rate);
        let p = event as i32 / 64 % PARTITIONS;
        let to = &topics[topic];
        while producer
            .send(BaseRecord::<(), str>::to(to).partition(p).payload(&r))
            .is_err()
        {
            producer.poll(Duration::from_millis(10));
        }
    }
    producer
        .flush(Duration::from_secs(120))
        .expect("all is written");
}

/// Takes all messages and looks at none.
fn drain_bare(brokers: &str, topics: &[String], n: usize) -> Cost {
    // The fetch settings are those of `KafkaOptions`.
    let c: BaseConsumer = client(brokers)
        .set("group.id", "bare")
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("fetch.queue.backoff.ms", "1")
        .set("queued.min.messages", "100000")
        .set("queued.max.messages.kbytes", "65536")
        .create()
        .expect("a consumer");
    let mut list = TopicPartitionList::new();
    for topic in topics {
        for p in 0..PARTITIONS {
            list.add_partition_offset(topic, p, Offset::Beginning)
                .expect("an offset");
        }
    }
    c.assign(&list).expect("an assignment");
    let mut messages = vec![std::ptr::null_mut(); 1024];
    let (mut seen, mut clock) = (0, Clock::default());
    // SAFETY: the client outlives the queue; each message is destroyed once, at once.
    unsafe {
        let q = sys::rd_kafka_queue_get_consumer(c.client().native_ptr());
        while seen < n {
            let k = sys::rd_kafka_consume_batch_queue(q, 5, messages.as_mut_ptr(), messages.len());
            for &m in &messages[..k.max(0) as usize] {
                seen += usize::from((*m).err as i32 == 0);
                sys::rd_kafka_message_destroy(m);
            }
            clock.saw(seen);
        }
        let cost = clock.cost();
        sys::rd_kafka_queue_destroy(q);
        cost
    }
}

/// The same by what `run` does, each record decoded, counted and judged.
fn drain_ours(brokers: &str, topics: &[String], n: usize, turn: usize, threads: usize) -> Cost {
    let topic = &topics[0];
    let outcomes = topics.get(1).map_or(String::new(), |outcomes| {
        format!(
            "id = \"request_id\"\n[source.outcomes]\ntopics = [\"{outcomes}\"]\nmaturity = \"1m\"\n\
             time = \"time_ms\"\n"
        )
    });
    let state = tempfile::TempDir::with_prefix("trueline-bench-").expect("a folder");
    let text = format!(
        r#"
version = 1
[kafka]
brokers = "{brokers}"
group = "{topic}-{turn}"
[[source]]
topics = ["{topic}"]
[source.fields]
score = "score"
version = "version"
time = "time_ms"
{outcomes}
[[model]]
name = "*"
[limits]
threads = {threads}
[http]
listen = "127.0.0.1:0"
[state]
directory = "{}"
"#,
        state.path().display()
    );
    let outside = Outside {
        variable: &|_| None,
        directory: ".".into(),
    };
    let config = Config::parse(&text, "the configuration of the bench", &outside);
    let engine = App::engine_loop(Setup::of(config.expect("a sound configuration")));
    let mut engine = engine.expect("a new state");
    let (mut seen, mut clock) = (0, Clock::default());
    while seen < n {
        seen += engine.step();
        clock.saw(seen);
    }
    let cost = clock.cost();
    let counted = engine.topology.counters().total();
    let landed = counted.observed + counted.pending + counted.matched + counted.waiting;
    assert_eq!(
        (counted.records, landed),
        (n as u64, n as u64),
        "{counted:?}"
    );
    cost
}
