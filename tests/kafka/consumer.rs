//! Consumer, decoder and dead letters on a real Kafka that freezes and restarts in mid-stream.
//!
//! The mock broker of `mock.rs` can do neither; the whole process on a real broker is the
//! matter of the end-to-end suite.

use crate::support;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::support::broker::{Broker, unique};
use crate::support::events::{BAD, Events, MODELS};
use trueline::decode::{DecodeOptions, Decoder};
use trueline::kafka::{
    Begin, Consumer, DeadLetter, Handler, KafkaError, KafkaOptions, Librdkafka, Partition, Record,
    Truncated,
};

/// Counts what it is handed.
struct Tally {
    decoder: Decoder,
    dead: DeadLetter,
    topic: String,
    seen: BTreeSet<(i32, i64)>,
    repeated: usize,
    models: BTreeMap<String, u64>,
    rejected: u64,
    rewound: BTreeSet<i32>,
    failed: bool,
}

impl Handler for Tally {
    fn records(&mut self, batch: &[Record<'_>]) {
        for record in batch {
            self.repeated += usize::from(!self.seen.insert((record.partition, record.offset)));
            match self
                .decoder
                .decode(record.payload, record.key, record.timestamp_ms)
            {
                Ok(event) => match self.models.get_mut(event.model) {
                    Some(count) => *count += 1,
                    None => drop(self.models.insert(event.model.to_owned(), 1)),
                },
                Err(rejection) => {
                    self.rejected += 1;
                    let reason = rejection.reason.as_str();
                    self.dead
                        .send(&self.topic, record, reason, &rejection.detail);
                }
            }
        }
    }
    fn assigned(&mut self, p: Partition) -> Option<i64> {
        // As the snapshot of an engine says it.
        let of = self.seen.range((p.partition, 0)..(p.partition, i64::MAX));
        of.last().map(|(_, offset)| offset + 1)
    }
    fn begins(&mut self, _: Partition, _: Begin) {}
    fn revoked(&mut self, _: Partition, _: bool) {}
    fn end_of_partition(&mut self, _: Partition) {}
    fn lost(&mut self, _: Partition, _: std::ops::Range<i64>) {}
    fn rewound(&mut self, p: Partition, _: i64) {
        self.rewound.insert(p.partition);
        self.seen.retain(|(partition, _)| *partition != p.partition);
    }
    fn suspended(&mut self, _: Partition, _: &str) {}
    fn error(&mut self, error: KafkaError) {
        self.failed |= error.is_fatal();
    }
}

#[test]
fn every_record_comes_once_through_a_freeze_and_a_restart_of_a_real_broker() {
    let name = "every_record_comes_once_through_a_freeze_and_a_restart_of_a_real_broker";
    let Some(mut broker) = Broker::own(name) else {
        return;
    };
    let topic = format!("trueline-test-{}", unique());
    let dead = format!("{topic}.dead");
    broker.create_topics(&[(&topic, 4), (&dead, 1)]);
    let options = KafkaOptions {
        brokers: broker.bootstrap.clone(),
        group: topic.clone(),
        topics: vec![topic.clone()],
        dead_letter: Some(dead.clone()),
        truncated: Truncated::Earliest,
        statistics_ms: 1_000,
        options: BTreeMap::from([
            ("reconnect.backoff.max.ms".into(), "1000".into()),
            ("topic.metadata.propagation.max.ms".into(), "0".into()),
        ]),
        ..KafkaOptions::default()
    };
    let mut tally = Tally {
        decoder: Decoder::new(&DecodeOptions::default()).expect("the default paths are sound"),
        dead: DeadLetter::new(&options)
            .expect("a producer")
            .expect("a topic is set"),
        topic: topic.clone(),
        seen: BTreeSet::new(),
        repeated: 0,
        models: BTreeMap::new(),
        rejected: 0,
        rewound: BTreeSet::new(),
        failed: false,
    };
    let mut consumer = Consumer::new(&options, &Librdkafka).expect("a consumer");
    let mut events = Events::new(3, now_ms() - 3_600_000, 10);
    let mut sender = broker.producer();
    // What the decoder itself refuses; a score outside [0, 1] is refused by whoever adds it up.
    let refused: Vec<usize> = (0..BAD.len())
        .filter(|&i| BAD[i].1 != "score_out_of_range")
        .collect();
    let mut bad = Vec::new();
    for part in 0..3 {
        for i in 0..22_200 {
            sender.send(&topic, i % 4, events.next_record().as_bytes());
            if i % 600 == 0 {
                bad.push(events.bad_record(refused[bad.len() % refused.len()]));
                sender.send(&topic, i % 4, bad[bad.len() - 1].as_bytes());
            }
        }
        match part {
            0 => {
                broker.signal("STOP");
                poll_for(&mut consumer, &mut tally, Duration::from_secs(10));
                broker.signal("CONT");
            }
            1 => {
                sender.flush();
                broker.stop();
                poll_for(&mut consumer, &mut tally, Duration::from_secs(3));
                broker.start();
            }
            _ => sender.flush(),
        }
    }
    let start = Instant::now();
    while (tally.seen.len() as u64) < sender.sent {
        assert!(
            start.elapsed() < support::service::LIMIT,
            "{} of {}",
            tally.seen.len(),
            sender.sent
        );
        consumer.poll(Duration::from_millis(100), &mut tally);
    }
    poll_for(&mut consumer, &mut tally, Duration::from_secs(1));
    assert_eq!((tally.seen.len() as u64, tally.repeated), (sender.sent, 0));
    assert!(
        MODELS
            .iter()
            .all(|model| tally.models.get(*model) == Some(&22_200)),
        "{:?}",
        tally.models
    );
    assert_eq!(tally.rejected, bad.len() as u64);

    assert!(tally.dead.flush(Duration::from_secs(30)));
    let mut kept: Vec<Vec<u8>> = broker
        .read_all(&dead)
        .into_iter()
        .map(|read| read.payload)
        .collect();
    let mut sent: Vec<Vec<u8>> = bad.into_iter().map(String::into_bytes).collect();
    kept.sort_unstable();
    sent.sort_unstable();
    assert!(kept == sent, "the dead letters are not the bad records");

    // The leader has changed, so the client takes the metadata of a new topic for old, and never
    // fetches it. A new client does.
    drop(sender);
    broker.delete_topic(&topic);
    // The client must see that it is gone.
    poll_for(&mut consumer, &mut tally, Duration::from_secs(5));
    broker.create_topics(&[(&topic, 4)]);
    let mut sender = broker.producer();
    (0..4).for_each(|p| sender.send(&topic, p, events.next_record().as_bytes()));
    sender.flush();
    let start = Instant::now();
    while tally.rewound.len() < 4 || tally.seen.len() < 4 {
        let seen = &tally.seen;
        assert!(start.elapsed() < support::service::LIMIT, "{seen:?}");
        if std::mem::take(&mut tally.failed) {
            consumer = Consumer::new(&options, &Librdkafka).expect("a consumer");
        }
        consumer.poll(Duration::from_millis(100), &mut tally);
    }
}

fn poll_for(consumer: &mut Consumer, tally: &mut Tally, time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        consumer.poll(Duration::from_millis(100), tally);
    }
}

fn now_ms() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.expect("after 1970").as_millis() as i64
}
