//! The Kafka consumer and the dead letters against librdkafka's own mock broker, in this process.
//!
//! The mock speaks the real protocol over real sockets but keeps at most 5 MiB a partition; what
//! only a real broker can show (retention, transactions, credentials) is in the end-to-end suite.

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::{Headers, Message};
use rdkafka::mocking::{MockCluster, MockCoordinator};
use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use trueline::kafka::*;

type Mock = MockCluster<'static, DefaultProducerContext>;

/// Longer than a client waits for the response to a request that an outage has swallowed (60 s).
const PATIENCE: Duration = Duration::from_secs(100);

/// Remembers all it is told.
#[derive(Default)]
struct Log {
    records: BTreeMap<(Partition, i64), String>,
    repeated: usize,
    assigned: BTreeSet<Partition>,
    ended: BTreeSet<Partition>,
    start: BTreeMap<i32, i64>,
    outside: usize,
    errors: Vec<KafkaError>,
    fresh: usize,
    /// Where the log of a partition had ended when it was found too short.
    truncated: BTreeMap<i32, i64>,
    suspended: BTreeMap<Partition, String>,
    rewound: BTreeMap<i32, i64>,
}

impl Handler for Log {
    fn records(&mut self, batch: &[Record<'_>]) {
        for r in batch {
            let p = Partition {
                topic: r.topic,
                partition: r.partition,
            };
            if !self.assigned.contains(&p) {
                self.outside += 1;
            }
            let text = String::from_utf8_lossy(r.payload).into_owned();
            if self.records.insert((p, r.offset), text).is_some() {
                self.repeated += 1;
            }
            self.fresh += 1;
        }
    }
    fn assigned(&mut self, p: Partition) -> Option<i64> {
        self.assigned.insert(p);
        self.start.get(&p.partition).copied()
    }
    fn begins(&mut self, _: Partition, _: Begin) {}
    fn truncated_at(&self, p: Partition) -> Option<i64> {
        self.truncated.get(&p.partition).copied()
    }
    fn revoked(&mut self, p: Partition, _lost: bool) {
        self.assigned.remove(&p);
        self.ended.remove(&p);
    }
    fn end_of_partition(&mut self, p: Partition) {
        self.ended.insert(p);
    }
    fn lost(&mut self, _: Partition, _: std::ops::Range<i64>) {}
    fn rewound(&mut self, p: Partition, offset: i64) {
        self.rewound.insert(p.partition, offset);
    }
    fn suspended(&mut self, p: Partition, why: &str) {
        self.suspended.insert(p, why.to_owned());
    }
    fn error(&mut self, e: KafkaError) {
        self.errors.push(e);
    }
}

fn mock(topics: &[(&str, i32)]) -> Mock {
    let mock = MockCluster::new(1).unwrap();
    for (name, partitions) in topics {
        mock.create_topic(name, *partitions, 1).unwrap();
    }
    mock
}

fn options(mock: &Mock, topics: &[&str]) -> KafkaOptions {
    KafkaOptions {
        brokers: mock.bootstrap_servers(),
        group: "watchers".into(),
        topics: topics.iter().map(ToString::to_string).collect(),
        statistics_ms: 200,
        options: BTreeMap::from([
            ("reconnect.backoff.max.ms".into(), "200".into()),
            ("heartbeat.interval.ms".into(), "200".into()),
            // The mock lets a group that changes wait for the session timeout less a second.
            ("session.timeout.ms".into(), "3000".into()),
        ]),
        ..KafkaOptions::default()
    }
}

/// Writes `n` records, number i to partition i mod `partitions`, each saying its number.
fn produce(mock: &Mock, topic: &str, partitions: i32, from: usize, n: usize) {
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", mock.bootstrap_servers())
        .set("queue.buffering.max.messages", "1000000")
        .create()
        .unwrap();
    for i in from..from + n {
        let text = i.to_string();
        producer
            .send(
                BaseRecord::<str, str>::to(topic)
                    .partition(i as i32 % partitions)
                    .payload(&text)
                    .key(&text),
            )
            .unwrap();
    }
    producer.flush(PATIENCE).unwrap();
}

fn poll_until(c: &mut Consumer, log: &mut Log, mut done: impl FnMut(&Log) -> bool) {
    let start = Instant::now();
    while !done(log) {
        assert!(
            start.elapsed() < PATIENCE,
            "not done: {} records, {:?}, lag {:?}, {:?}",
            log.records.len(),
            log.assigned,
            c.lag(),
            log.errors
        );
        c.poll(Duration::from_millis(50), log);
    }
}

#[test]
fn every_record_of_six_partitions_is_read_once_and_the_ends_are_reported() {
    let mock = mock(&[("events", 6)]);
    produce(&mock, "events", 6, 0, 10_000);
    let mut log = Log::default();
    let mut c = Consumer::new(&options(&mock, &["events"]), &Librdkafka).unwrap();
    poll_until(&mut c, &mut log, |l| {
        l.records.len() == 10_000 && l.ended.len() == 6
    });
    assert_eq!((log.repeated, log.outside), (0, 0));
    let texts: BTreeSet<&String> = log.records.values().collect();
    assert_eq!(texts.len(), 10_000);
    assert_eq!(log.errors, []);
    let lag = wait_for_lag(&mut c, &mut log, 6);
    assert!(lag.iter().all(|(_, lag)| *lag == 0), "{lag:?}");
}

fn wait_for_lag(c: &mut Consumer, log: &mut Log, n: usize) -> Vec<(Partition, i64)> {
    let start = Instant::now();
    while c.lag().len() < n && start.elapsed() < Duration::from_secs(5) {
        c.poll(Duration::from_millis(50), log);
    }
    c.lag()
}

#[test]
fn a_restart_begins_at_the_offset_that_the_snapshot_says_not_at_the_committed_one() {
    let mock = mock(&[("events", 2)]);
    produce(&mock, "events", 2, 0, 200);
    let o = options(&mock, &["events"]);
    let mut log = Log::default();
    let mut c = Consumer::new(&o, &Librdkafka).unwrap();
    poll_until(&mut c, &mut log, |l| l.records.len() == 200);
    let at = |p: i32, o: i64| {
        (
            Partition {
                topic: 0,
                partition: p,
            },
            o,
        )
    };
    c.commit(&[at(0, 50), at(1, 60)]).unwrap();
    drop(c);
    // Partition 0: the snapshot says 90; partition 1: no snapshot, so the commit, 60, as asked for.
    let o = KafkaOptions {
        missing_state: MissingState::Committed,
        ..o
    };
    let mut log = Log {
        start: BTreeMap::from([(0, 90)]),
        ..Log::default()
    };
    let mut c = Consumer::new(&o, &Librdkafka).unwrap();
    poll_until(&mut c, &mut log, |l| l.ended.len() == 2);
    let first = |p: i32| log.records.keys().find(|k| k.0.partition == p).unwrap().1;
    assert_eq!((first(0), first(1)), (90, 60));
    assert_eq!(log.records.len(), 10 + 40);
}

/// Its log is longer now than what was read of the one before.
#[test]
fn a_partition_that_was_found_too_short_is_not_read_on_from_the_old_offset() {
    let mock = mock(&[("events", 2)]);
    produce(&mock, "events", 2, 0, 200);
    let read = |truncated| {
        let o = KafkaOptions {
            truncated,
            ..options(&mock, &["events"])
        };
        let mut log = Log {
            start: BTreeMap::from([(0, 50), (1, 90)]),
            truncated: BTreeMap::from([(0, 30)]),
            ..Log::default()
        };
        let mut c = Consumer::new(&o, &Librdkafka).unwrap();
        let all = 2 - usize::from(truncated == Truncated::Stop);
        poll_until(&mut c, &mut log, |l| l.ended.len() == all);
        poll_until(&mut c, &mut log, {
            let until = Instant::now() + Duration::from_secs(1);
            move |_| Instant::now() > until
        });
        assert_eq!((log.repeated, log.outside), (0, 0));
        let of = |partition| {
            log.records
                .keys()
                .filter(|k| k.0.partition == partition)
                .count()
        };
        assert_eq!(of(1), 10, "{truncated:?}");
        (of(0), log.rewound, log.suspended)
    };
    let (n, rewound, suspended) = read(Truncated::Stop);
    assert_eq!((n, rewound), (0, BTreeMap::new()));
    let why = &suspended[&(0, 0).into()];
    assert!(
        why.contains("ended at offset 30") && why.contains("read up to 50"),
        "{why}"
    );
    assert_eq!(suspended.len(), 1);
    let (n, rewound, suspended) = read(Truncated::Earliest);
    assert_eq!((n, rewound, suspended.len()), (100, [(0, 0)].into(), 0));
    let (n, rewound, suspended) = read(Truncated::Latest);
    assert_eq!((n, rewound, suspended.len()), (0, [(0, 100)].into(), 0));
}

#[test]
fn when_a_second_member_comes_and_goes_nothing_is_read_outside_an_assignment() {
    let mock = mock(&[("events", 6)]);
    produce(&mock, "events", 6, 0, 600);
    let o = options(&mock, &["events"]);
    let (mut la, mut lb) = (Log::default(), Log::default());
    let mut a = Consumer::new(&o, &Librdkafka).unwrap();
    poll_until(&mut a, &mut la, |l| l.records.len() == 600);
    let mut b = Consumer::new(&o, &Librdkafka).unwrap();
    let start = Instant::now();
    while !(la.assigned.len() == 3 && lb.assigned.len() == 3) {
        assert!(
            start.elapsed() < PATIENCE,
            "{:?} {:?}",
            la.assigned,
            lb.assigned
        );
        a.poll(Duration::from_millis(20), &mut la);
        b.poll(Duration::from_millis(20), &mut lb);
    }
    produce(&mock, "events", 6, 600, 600);
    let seen = |l: &Log| -> BTreeSet<String> { l.records.values().cloned().collect() };
    while seen(&la).union(&seen(&lb)).count() < 1200 {
        assert!(
            start.elapsed() < PATIENCE,
            "{:?} {:?} {:?} {:?} {:?} {:?}",
            last(&la),
            last(&lb),
            la.assigned,
            lb.assigned,
            la.errors,
            lb.errors
        );
        a.poll(Duration::from_millis(20), &mut la);
        b.poll(Duration::from_millis(20), &mut lb);
    }
    drop(b);
    poll_until(&mut a, &mut la, |l| l.assigned.len() == 6);
    assert_eq!((la.outside, lb.outside), (0, 0));
}

#[test]
fn a_leader_that_is_away_is_named_while_the_other_broker_answers() {
    let mock: Mock = MockCluster::new(2).unwrap();
    mock.create_topic("events", 2, 1).unwrap();
    for (partition, leader) in [(0, 1), (1, 2)] {
        mock.partition_leader("events", partition, Some(leader))
            .unwrap();
    }
    mock.coordinator(MockCoordinator::Group("watchers".to_owned()), 1)
        .unwrap();
    produce(&mock, "events", 2, 0, 100);
    let mut log = Log::default();
    let mut c = Consumer::new(&options(&mock, &["events"]), &Librdkafka).unwrap();
    poll_until(&mut c, &mut log, |l| l.records.len() == 100);
    let mut wait = |c: &mut Consumer, away: bool| {
        let start = Instant::now();
        while c.leaderless().next().is_some() != away {
            assert!(start.elapsed() < PATIENCE, "not {away}: {:?}", log.errors);
            c.poll(Duration::from_millis(50), &mut log);
        }
    };
    wait(&mut c, false);
    mock.broker_down(2).unwrap();
    wait(&mut c, true);
    let away: Vec<i32> = c.leaderless().map(|(p, _)| p.partition).collect();
    assert_eq!((away, c.cut_off()), (vec![1], None));
    mock.broker_up(2).unwrap();
    wait(&mut c, false);
    produce(&mock, "events", 2, 100, 100);
    poll_until(&mut c, &mut log, |l| l.records.len() == 200);
}

#[test]
fn a_broker_that_is_down_is_reported_once_and_waited_for() {
    let mock = mock(&[("events", 1)]);
    produce(&mock, "events", 1, 0, 10);
    mock.broker_down(1).unwrap();
    let mut log = Log::default();
    let mut c = Consumer::new(&options(&mock, &["events"]), &Librdkafka).unwrap();
    poll_until(&mut c, &mut log, |l| !l.errors.is_empty());
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) {
        c.poll(Duration::from_millis(50), &mut log);
    }
    let down = |l: &Log| {
        l.errors
            .iter()
            .filter(|e| matches!(e, KafkaError::Unreachable { .. }))
            .count()
    };
    assert_eq!(down(&log), 1, "{:?}", log.errors);
    assert!(log.errors[0].to_string().contains("still trying"));
    mock.broker_up(1).unwrap();
    poll_until(&mut c, &mut log, |l| l.records.len() == 10);
    // If the session ends all the same, the partition comes again and begins where it was left.
    log.start.insert(0, 10);
    mock.broker_down(1).unwrap();
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(500) {
        c.poll(Duration::from_millis(50), &mut log);
    }
    mock.broker_up(1).unwrap();
    produce(&mock, "events", 1, 10, 10);
    poll_until(&mut c, &mut log, |l| l.records.len() == 20);
    assert_eq!(log.repeated, 0);
}

#[test]
fn a_topic_that_is_missing_is_named() {
    let mock = mock(&[("events", 1)]);
    let mut o = options(&mock, &["events"]);
    let found = probe(&o, Duration::from_secs(5));
    assert_eq!(found.problems, []);
    mock.topic_error(
        "evnets",
        rdkafka::types::RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
    )
    .unwrap();
    o.topics = vec!["evnets".into()];
    let problems = probe(&o, Duration::from_secs(5)).problems;
    assert_eq!(problems.len(), 1);
    assert!(problems[0].to_string().contains("`evnets`"), "{problems:?}");
    let mut log = Log::default();
    let mut c = Consumer::new(&o, &Librdkafka).unwrap();
    poll_until(&mut c, &mut log, |l| !l.errors.is_empty());
    assert!(
        matches!(&log.errors[0], KafkaError::Topic { topic, .. } if topic == "evnets"),
        "{:?}",
        log.errors
    );
}

#[test]
fn a_probe_of_a_broker_that_is_not_there_says_so_within_its_time() {
    let o = KafkaOptions {
        brokers: "127.0.0.1:1".into(),
        topics: vec!["events".into()],
        ..KafkaOptions::default()
    };
    let start = Instant::now();
    let problems = probe(&o, Duration::from_millis(800)).problems;
    assert!(
        matches!(&problems[..], [KafkaError::Unreachable { .. }]),
        "{problems:?}"
    );
    assert!(start.elapsed() < Duration::from_secs(4));
}

#[test]
fn an_unknown_option_or_one_that_is_ours_is_named() {
    for (name, word) in [
        ("fetch.wait.maximum", "No such"),
        ("enable.auto.commit", "snapshot"),
    ] {
        let o = KafkaOptions {
            options: BTreeMap::from([(name.into(), "1".into())]),
            ..KafkaOptions::default()
        };
        let text = Consumer::new(&o, &Librdkafka).err().unwrap().to_string();
        assert!(text.contains(name) && text.contains(word), "{text}");
    }
}

#[test]
fn a_dead_letter_is_the_record_as_it_came_with_its_origin_and_reason() {
    let mock = mock(&[("dead", 1)]);
    let o = KafkaOptions {
        dead_letter: Some("dead".into()),
        ..options(&mock, &["events"])
    };
    let dead = DeadLetter::new(&o).unwrap().unwrap();
    let record = Record {
        topic: 0,
        partition: 3,
        offset: 77,
        timestamp_ms: Some(1_700_000_000_000),
        key: Some(b"k\xff"),
        payload: b"{\xffbroken",
        headers: Default::default(),
    };
    dead.send("events", &record, "malformed", "byte 1: not UTF-8");
    assert!(dead.flush(PATIENCE));
    let start = Instant::now();
    while dead.counts().delivered == 0 && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
    }
    let counts = dead.counts();
    assert_eq!((counts.delivered, counts.failed, counts.dropped), (1, 0, 0));

    let c: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", mock.bootstrap_servers())
        .set("group.id", "reader")
        .create()
        .unwrap();
    let mut list = rdkafka::TopicPartitionList::new();
    list.add_partition_offset("dead", 0, rdkafka::Offset::Beginning)
        .unwrap();
    c.assign(&list).unwrap();
    let m = c.poll(PATIENCE).unwrap().unwrap();
    assert_eq!((m.key(), m.payload()), (record.key, Some(record.payload)));
    let headers: BTreeMap<String, String> = m
        .headers()
        .unwrap()
        .iter()
        .map(|h| {
            (
                h.key.to_string(),
                String::from_utf8(h.value.unwrap().to_vec()).unwrap(),
            )
        })
        .collect();
    assert_eq!(headers["trueline.reason"], "malformed");
    assert_eq!(headers["trueline.detail"], "byte 1: not UTF-8");
    assert_eq!(headers["trueline.topic"], "events");
    assert_eq!(headers["trueline.partition"], "3");
    assert_eq!(headers["trueline.offset"], "77");
    assert_eq!(headers["trueline.timestamp_ms"], "1700000000000");
}

#[test]
fn dead_letters_never_wait_for_a_broker_that_is_away() {
    let o = KafkaOptions {
        brokers: "127.0.0.1:1".into(),
        dead_letter: Some("dead".into()),
        ..KafkaOptions::default()
    };
    let dead = DeadLetter::new(&o).unwrap().unwrap();
    let record = Record {
        topic: 0,
        partition: 0,
        offset: 0,
        timestamp_ms: None,
        key: None,
        payload: &[b'x'; 1000],
        headers: Default::default(),
    };
    let start = Instant::now();
    for _ in 0..20_000 {
        dead.send("events", &record, "malformed", "");
    }
    assert!(start.elapsed() < Duration::from_secs(5));
    assert!(dead.counts().dropped >= 10_000);
}

#[test]
fn a_paused_consumer_reads_nothing_until_it_is_resumed() {
    let mock = mock(&[("events", 2)]);
    let mut log = Log::default();
    let mut c = Consumer::new(&options(&mock, &["events"]), &Librdkafka).unwrap();
    poll_until(&mut c, &mut log, |l| l.assigned.len() == 2);
    c.pause().unwrap();
    produce(&mock, "events", 2, 0, 100);
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(500) {
        c.poll(Duration::from_millis(50), &mut log);
    }
    assert_eq!(log.records.len(), 0);
    c.resume().unwrap();
    poll_until(&mut c, &mut log, |l| l.records.len() == 100);
}

/// Of each partition: the first, the last and the number of its offsets.
fn last(l: &Log) -> BTreeMap<i32, (i64, i64, i64)> {
    let mut all = BTreeMap::new();
    for (p, o) in l.records.keys() {
        let e = all.entry(p.partition).or_insert((*o, *o, 0));
        *e = (e.0, *o, e.2 + 1);
    }
    all
}

/// With `debug` an outage writes many thousand lines, and each is an event of the client.
#[test]
fn outages_longer_than_the_session_are_survived_while_the_client_logs_everything() {
    let mock = mock(&[("events", 1)]);
    produce(&mock, "events", 1, 0, 10);
    let mut log = Log::default();
    let mut o = options(&mock, &["events"]);
    o.options.insert("debug".into(), "all".into());
    let mut c = Consumer::new(&o, &Librdkafka).unwrap();
    poll_until(&mut c, &mut log, |l| l.records.len() == 10);
    for outage_ms in [2_500, 3_000, 4_000] {
        let n = log.records.len();
        log.start.insert(0, n as i64);
        mock.broker_down(1).unwrap();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(outage_ms) {
            c.poll(Duration::from_millis(50), &mut log);
        }
        mock.broker_up(1).unwrap();
        produce(&mock, "events", 1, n, 10);
        poll_until(&mut c, &mut log, |l| l.records.len() == n + 10);
        assert_eq!(log.repeated, 0);
    }
}
