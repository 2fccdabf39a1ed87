//! The schema registry from outside: what the client makes of its answers, and records that wait
//! for it.

use crate::support::encode;
use std::time::{Duration, Instant};

use crate::support::encode::{AVRO, Facts, PROTO, as_avro, as_protobuf, frame, pool};
use crate::support::registry::TestRegistry;
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;
use apache_avro::types::Value as Avro;
use rdkafka::ClientConfig;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use trueline::registry::{
    DOUBTFUL_FOR, Lookup, PAUSE_MAX, Registry, RegistryOptions, Schema, SchemaKind, probe,
};

fn options(url: &str) -> RegistryOptions {
    RegistryOptions {
        url: url.to_owned(),
        user: None,
        password: None,
        ca_file: None,
        timeout: Duration::from_secs(2),
    }
}

/// The answer once it is no longer being asked for.
fn settled(registry: &Registry, id: u32) -> Result<Schema, String> {
    wait_for("an answer", LIMIT, || match registry.get(id) {
        Lookup::Waiting => None,
        Lookup::Known(schema) => Some(Ok(Schema::clone(&schema))),
        Lookup::Absent(why) => Some(Err(why)),
    })
}

#[test]
fn schemas_are_fetched_once_with_what_they_refer_to() {
    let server = TestRegistry::start();
    server.put(1, "AVRO", "\"string\"", &[]);
    let references = [("a.proto", "a/x", 1), ("b.proto", "b", 3)];
    server.put(2, "PROTOBUF", "root", &references);
    server.put_subject("a%2Fx", 1, "PROTOBUF", "of a");
    server.put_subject("b", 3, "PROTOBUF", "of b");
    let registry = Registry::new(options(&server.url)).unwrap();
    let avro = settled(&registry, 1).unwrap();
    assert_eq!(
        (avro.kind, avro.text.as_str()),
        (SchemaKind::Avro, "\"string\"")
    );
    let proto = settled(&registry, 2).unwrap();
    assert_eq!(proto.kind, SchemaKind::Protobuf);
    let names: Vec<&str> = proto.references.iter().map(|(n, _)| n.as_str()).collect();
    assert_eq!(names, ["a.proto", "b.proto"]);
    assert_eq!(proto.references[1].1, "of b");
    let asked = server.requests();
    for _ in 0..100 {
        assert!(matches!(registry.get(1), Lookup::Known(_)));
        assert!(
            settled(&registry, 9)
                .unwrap_err()
                .contains("Schema not found")
        );
    }
    assert_eq!(
        server.requests(),
        asked + 1,
        "an absent one is asked for once, too"
    );
    let counts = registry.counts();
    assert_eq!((counts.found, counts.absent, counts.failed), (2, 1, 0));
}

#[test]
fn only_the_registry_itself_can_call_a_schema_unknown() {
    let server = TestRegistry::start();
    server.put(1, "AVRO", "\"string\"", &[]);
    server.break_down(true);
    let registry = Registry::new(options(&server.url)).unwrap();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) {
        assert!(matches!(registry.get(1), Lookup::Waiting));
        assert!(matches!(registry.get(9), Lookup::Waiting));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(
        (1..=16).contains(&server.requests()),
        "tries are spaced out, each with a probe: {}",
        server.requests()
    );
    assert!(registry.counts().failed > 0);
    server.break_down(false);
    assert!(settled(&registry, 1).is_ok());
    assert!(settled(&registry, 9).is_err());
    // What answers 404 and is no registry: a wrong path.
    let elsewhere = Registry::new(options(&format!("{}/api", server.url))).unwrap();
    assert!(matches!(elsewhere.get(1), Lookup::Waiting));
    wait_for("a failure", LIMIT, || {
        (elsewhere.counts().failed > 0).then_some(())
    });
    assert!(matches!(elsewhere.get(1), Lookup::Waiting));
}

#[test]
fn an_error_about_one_id_is_about_that_id_alone() {
    let server = TestRegistry::start();
    server.put(1, "AVRO", "\"string\"", &[]);
    for (id, status) in [(2, 400), (3, 404), (4, 422)] {
        server.refuse(id, status);
    }
    for (id, status) in [(5, 401), (6, 408), (7, 429), (8, 403), (9, 500)] {
        server.refuse(id, status);
    }
    let registry = Registry::new(options(&server.url)).unwrap();
    for id in [2, 3, 4] {
        let why = settled(&registry, id).unwrap_err();
        assert!(why.contains("answers other requests"), "{why}");
    }
    // About credentials or the registry as a whole, or doubtful: their records wait, for a while.
    for id in 5..=9 {
        assert!(matches!(registry.get(id), Lookup::Waiting));
    }
    assert!(settled(&registry, 1).is_ok(), "they do not hold the others");
    for id in 5..=9 {
        assert!(matches!(registry.get(id), Lookup::Waiting));
    }
    // Of the doubtful ones only until that has lasted.
    let ends = Instant::now() + DOUBTFUL_FOR + 3 * PAUSE_MAX;
    for id in [8, 9] {
        while matches!(registry.get(id), Lookup::Waiting) {
            assert!(Instant::now() < ends, "id {id} still waits");
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(matches!(registry.get(id), Lookup::Absent(_)));
    }
    for id in 5..=7 {
        assert!(matches!(registry.get(id), Lookup::Waiting));
    }
}

#[test]
fn credentials_are_sent_and_their_refusal_is_told() {
    let right = "Basic dXNlcjpyaWdodA==";
    let server = TestRegistry::at("127.0.0.1:0", Some(right));
    let with = |password: &str| RegistryOptions {
        user: Some("user".into()),
        password: Some(password.into()),
        ..options(&server.url)
    };
    assert_eq!(probe(&with("right")), Ok(()));
    let refused = probe(&with("wrong")).unwrap_err().to_string();
    assert!(
        refused.contains("credentials refused") && refused.contains("[registry]"),
        "{refused}"
    );
    assert!(!format!("{:?}", with("wrong")).contains("wrong"));
}

const BEGIN: i64 = 1_790_000_000_000;

fn config(brokers: &str, url: &str, format: &str) -> String {
    format!(
        r#"
version = 1
[kafka]
brokers = "{brokers}"
group = "formats"
[kafka.options]
"session.timeout.ms" = "6000"
[registry]
url = "{url}"
timeout = "1s"
[[source]]
topics = ["events"]
dead_letter = "dead"
format = "{format}"
[source.fields]
id = "id"
version = "meta.version"
score = "score"
time = "time_ms"
[[source]]
topics = ["batches"]
envelope = "cloudevents"
rows = "rows"
[source.fields]
version = "ce_type"
score = "rows.score"
outcome = "rows.outcome"
time = "time_ms"
[[model]]
name = "*"
windows = [{{ width = "1h", slide = "1h" }}]
[model.alert]
stale_after = "3000d"
"#
    )
}

fn facts(i: i64) -> Facts {
    Facts {
        model: "m".into(),
        version: 1,
        country: "de".into(),
        id: format!("e{i}"),
        time_ms: BEGIN + i,
        score: (i % 100) as f64 / 128.0 + 0.1,
        outcome: Some(i % 3 == 0),
    }
}

/// Of the records of `events`: observed, and rejected for want of a schema.
fn counted(service: &Service) -> (f64, f64) {
    let of = |labels: &[&str]| service.metric("trueline_records_total", labels);
    (
        of(&["source=\"events\"", "disposition=\"observed\""]),
        of(&["source=\"events\"", "reason=\"unknown_schema\""]),
    )
}

/// A registry that is not there when records come: they wait, through a restart too, and each is
/// counted once when it is.
fn records_wait(format: &str, kind: &str, schema: &str, encode: impl Fn(&Facts) -> Vec<u8>) {
    let cluster = MockCluster::new(1).expect("a mock cluster");
    for (topic, partitions) in [("events", 2), ("batches", 1), ("dead", 1)] {
        cluster.create_topic(topic, partitions, 1).expect("a topic");
    }
    let brokers = cluster.bootstrap_servers();
    let mut client = ClientConfig::new();
    let producer: BaseProducer = client.set("bootstrap.servers", &brokers).create().unwrap();
    let send = |partition: i32, payload: &[u8]| {
        let record = BaseRecord::<(), [u8]>::to("events").payload(payload);
        producer
            .send(record.partition(partition))
            .expect("room in the queue");
    };
    let newer = schema.replace("Meta", "Metadata");
    for i in 0..300 {
        let id = match i {
            // Nobody has registered it.
            i if i % 100 == 50 => 99,
            i if i < 150 => 1,
            _ => 2,
        };
        send((i % 2) as i32, &frame(id, &encode(&facts(i))));
    }
    send(0, b"no frame");
    // What needs no schema goes on meanwhile: three events in one record.
    let rows = br#"{"model":"batch","time_ms":1790000000000,"rows":[{"score":0.5,"outcome":1},
        {"score":2,"outcome":1},{"score":0.25,"outcome":0}]}"#;
    let headers = OwnedHeaders::new();
    let header = |key, value| Header {
        key,
        value: Some(value),
    };
    let headers = headers.insert(header("ce_specversion", "1.0"));
    let headers = headers.insert(header("ce_type", "v7"));
    let record = BaseRecord::<(), [u8]>::to("batches")
        .payload(rows)
        .headers(headers);
    producer.send(record).expect("room in the queue");
    producer.flush(LIMIT).expect("the mock takes them");

    let place = TestRegistry::start();
    let url = place.url.clone();
    drop(place);
    let mut service = Service::start(&config(&brokers, &url, format));
    let parked = |service: &Service| {
        service.metric("trueline_records_awaiting_schema", &["source=\"events\""])
    };
    let tried = |service: &Service| {
        service.metric("trueline_registry_requests_total", &["result=\"failed\""])
    };
    wait_for("records to wait", LIMIT, || {
        (parked(&service) == 301.0 && tried(&service) > 0.0).then_some(())
    });
    assert_eq!(counted(&service), (0.0, 0.0));
    wait_for("the batch", LIMIT, || {
        let of = |labels: &[&str]| service.metric("trueline_records_total", labels);
        let observed = of(&["source=\"batches\"", "disposition=\"observed\""]);
        let rejected = of(&["source=\"batches\"", "reason=\"score_out_of_range\""]);
        (observed == 2.0 && rejected == 1.0).then_some(())
    });
    let read =
        |service: &Service, source: &str| service.metric("trueline_records_read_total", &[source]);
    assert_eq!(
        read(&service, "source=\"batches\""),
        3.0,
        "rows are counted as records"
    );
    assert_eq!(service.end("TERM"), Some(0));
    service.start_again();
    wait_for("records to wait again", LIMIT, || {
        (parked(&service) == 301.0).then_some(())
    });

    let address = url.trim_start_matches("http://");
    let server = TestRegistry::at(address, None);
    server.put(1, kind, schema, &[]);
    server.put(2, kind, &newer, &[]);
    wait_for("every record to be counted", LIMIT, || {
        (counted(&service) == (297.0, 3.0)).then_some(())
    });
    assert_eq!(parked(&service), 0.0);
    assert_eq!(read(&service, "source=\"events\""), 301.0);
    wait_for("dead letters", LIMIT, || {
        let result = ["source=\"events\"", "result=\"delivered\""];
        (service.metric("trueline_dead_letters_total", &result) == 4.0).then_some(())
    });
    let (code, said) = service.check();
    assert!(!said.contains("[registry]"), "{code:?} {said}");
    assert_eq!(service.end("TERM"), Some(0));
}

#[test]
fn avro_records_wait_for_a_registry_that_is_down_and_none_is_lost() {
    records_wait("avro", "AVRO", AVRO, as_avro);
}

#[test]
fn protobuf_records_wait_for_a_registry_that_is_down_and_none_is_lost() {
    let pool = pool(PROTO);
    records_wait("protobuf", "PROTOBUF", PROTO, |f| as_protobuf(&pool, f));
}

/// Predictions one a record on one topic, their outcomes many a record on another, both in Avro:
/// joined through the whole service, every row counted.
#[test]
fn outcomes_in_avro_with_many_in_a_record_meet_their_predictions() {
    const OUTCOMES: &str = r#"{"type":"record","name":"Settled","fields":[
        {"name":"at","type":"long"},
        {"name":"rows","type":{"type":"array","items":{"type":"record","name":"Row","fields":[
          {"name":"ref","type":"string"},{"name":"won","type":"boolean"}]}}}]}"#;
    let cluster = MockCluster::new(1).expect("a mock cluster");
    for topic in ["events", "settled"] {
        cluster.create_topic(topic, 1, 1).expect("a topic");
    }
    let brokers = cluster.bootstrap_servers();
    let mut client = ClientConfig::new();
    let producer: BaseProducer = client.set("bootstrap.servers", &brokers).create().unwrap();
    let send = |topic: &str, payload: &[u8]| {
        let record = BaseRecord::<(), [u8]>::to(topic).payload(payload);
        producer
            .send(record.partition(0))
            .expect("room in the queue");
    };
    let server = TestRegistry::start();
    server.put(1, "AVRO", AVRO, &[]);
    server.put(2, "AVRO", OUTCOMES, &[]);
    let field = |name: &str, value| (name.to_owned(), value);
    for i in 0..1000 {
        let silent = Facts {
            outcome: None,
            time_ms: BEGIN + 1000 * i,
            ..facts(i)
        };
        send("events", &frame(1, &as_avro(&silent)));
    }
    // Ten a record; every tenth prediction has none, and ten are of predictions that never were.
    for batch in 0..100i64 {
        let rows = (0..10i64).filter(|row| *row > 0 || batch < 10).map(|row| {
            let id = if row == 0 {
                -1 - batch
            } else {
                10 * batch + row
            };
            Avro::Record(vec![
                field("ref", Avro::String(format!("e{id}"))),
                field("won", Avro::Boolean(id % 2 == 0)),
            ])
        });
        let record = Avro::Record(vec![
            field("at", Avro::Long(BEGIN + 10_000 * batch + 9000)),
            field("rows", Avro::Array(rows.collect())),
        ]);
        send("settled", &frame(2, &encode::avro(OUTCOMES, record)));
    }
    // Time goes on, so that all of the above is mature.
    let last = Facts {
        id: "last".into(),
        time_ms: BEGIN + 3_600_000,
        ..facts(0)
    };
    send("events", &frame(1, &as_avro(&last)));
    let end = Avro::Record(vec![
        field("at", Avro::Long(BEGIN + 3_600_000)),
        field(
            "rows",
            Avro::Array(vec![Avro::Record(vec![
                field("ref", Avro::String("last".into())),
                field("won", Avro::Boolean(true)),
            ])]),
        ),
    ]);
    send("settled", &frame(2, &encode::avro(OUTCOMES, end)));
    producer.flush(LIMIT).expect("the mock takes them");
    let mut service = Service::start(&format!(
        r#"
version = 1
[kafka]
brokers = "{brokers}"
group = "avro-outcomes"
[registry]
url = "{}"
[[source]]
topics = ["events"]
format = "avro"
[source.fields]
id = "id"
score = "score"
time = "time_ms"
[source.outcomes]
topics = ["settled"]
rows = "rows"
id = "rows.ref"
outcome = "rows.won"
time = "at"
maturity = "5m"
[[model]]
name = "*"
windows = [{{ width = "1h", slide = "10m" }}]
[model.alert]
stale_after = "3000d"
"#,
        server.url
    ));
    let records = |labels: &[&str]| service.metric("trueline_records_total", labels);
    wait_for("all to be joined", LIMIT, || {
        let observed = records(&["source=\"events\"", "disposition=\"observed\""]);
        let expired = records(&["source=\"events\"", "disposition=\"expired\""]);
        ((observed, expired) == (900.0, 100.0)).then_some(())
    });
    wait_for("outcomes of nothing to be let go", LIMIT, || {
        let orphaned = records(&["source=\"settled\"", "disposition=\"orphaned\""]);
        (orphaned == 10.0).then_some(())
    });
    let read = |source: &str| service.metric("trueline_records_read_total", &[source]);
    assert_eq!(read("source=\"events\""), 1001.0);
    assert_eq!(read("source=\"settled\""), 911.0, "rows are counted");
    assert_eq!(records(&["disposition=\"rejected\""]), 0.0);
    assert_eq!(service.end("TERM"), Some(0));
}
