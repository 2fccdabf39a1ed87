//! Tests of reading records: what is decoded, counted and reported.

use super::*;
use crate::app::ingest::kafka_config;
use crate::monitor::Engine;

const CONFIG: &str = r#"
[[source]]
topics = ["scores"]
rows = "rows"
fields = { time = "time_ms", score = "rows.z", outcome = "rows.y" }
[[model]]
name = "*"
windows = ["5m"]
"#;

#[test]
fn framed_and_plain_json_are_read_from_topics_of_predictions_and_of_outcomes() {
    let text = CONFIG
        .replace("rows = \"rows\"\n", "")
        .replace("rows.", "")
        .replace("time =", "id = \"id\", time =")
        + "[source.outcomes]\ntopics = [\"outcomes\"]\nmaturity = \"5m\"\noutcome = \"y\"\n";
    let config = kafka_config(&text);
    let mut reader = RecordReader::new(&config.sources[0], 0, None).expect("valid");
    let json = br#"{"model":"m","time_ms":1760000000000,"id":"a","z":0.5,"y":1}"#;
    let framed = [&[0, 0, 0, 0, 7][..], json].concat();
    for topic in 0..2 {
        let mut engine = Engine::new(config.plan.clone());
        for (offset, payload) in (0..).zip([&json[..], &framed, &framed]) {
            let record = Record {
                topic,
                offset,
                timestamp_ms: Some(1_760_000_000_000),
                payload,
                ..Record::default()
            };
            assert_eq!(reader.read(&mut engine, &record), Reading::Done);
        }
        assert!(reader.last_rejections.iter().all(Option::is_none));
        let total = engine.counters().total();
        assert!(total.rejected.iter().all(|n| *n == 0), "{total:?}");
        // All three were accepted: they share an id, so two are repeats of the first.
        assert_eq!((total.records, total.duplicate), (3, 2), "{total:?}");
    }
}

#[test]
fn a_record_that_is_read_again_is_not_counted_again_though_its_first_row_is_rejected() {
    let config = kafka_config(CONFIG);
    let mut engine = Engine::new(config.plan.clone());
    let mut reader = RecordReader::new(&config.sources[0], 0, None).expect("valid");
    reader.stats = Some(ReplayStats::default());
    let payload =
        br#"{"model":"m","time_ms":1760000000000,"rows":[{"z":7,"y":1},{"z":0.5,"y":1}]}"#;
    let record = Record {
        offset: 5,
        payload,
        ..Record::default()
    };
    for _ in 0..2 {
        assert_eq!(reader.read(&mut engine, &record), Reading::Done);
    }
    let total = engine.counters().total();
    assert_eq!((total.observed, total.replayed), (1, 2));
    let first = reader
        .stats
        .and_then(|s| s.first_rejected)
        .expect("a rejection");
    assert!(first.starts_with("scores/0 offset 5: "), "{first}");
    assert!(first.contains("row 1 of 2, 1 of them rejected"), "{first}");
}

/// A topic with both predictions and outcomes.
const BOTH: &str = r#"
[[source]]
topics = ["both"]
envelope = "cloudevents"
fields = { id = "id", score = "score", outcome = "y" }
outcomes = { maturity = "5m", outcome = "label" }
"#;

#[test]
fn an_outcome_among_predictions_is_checked_as_a_whole() {
    let config = kafka_config(BOTH);
    let mut decoder = decoder_of(&config.sources[0]).expect("valid");
    let mut decode = |data: &str| {
        let payload = format!("{{\"specversion\":\"1.0\",\"data\":{data}}}");
        let record = Record {
            timestamp_ms: Some(1_760_000_000_000),
            payload: payload.as_bytes(),
            ..Record::default()
        };
        let mut read = Vec::new();
        decoder.decode(0, &raw(&record), |_, decoded| {
            read.push(match decoded {
                Ok(Content::Event(_)) => Ok("a prediction"),
                Ok(Content::Outcome(_)) => Ok("an outcome"),
                Err(rejection) => Err(rejection.reason),
            });
        });
        read
    };
    let good = r#"{"id":"a","label":1}"#;
    assert_eq!(decode(good), [Ok("an outcome")]);
    let twice = r#"{"id":"a","label":0,"label":1}"#;
    assert_eq!(decode(twice), [Err(Reason::Malformed)]);
    assert_eq!(decode(good), [Ok("an outcome")]);
    // A prediction needs no such field.
    let event = r#"{"model":"m","id":"a","score":0.5,"label":0,"label":1}"#;
    assert_eq!(decode(event), [Ok("a prediction")]);
}

#[test]
fn an_event_of_another_model_is_told_with_its_name_and_the_one_that_may_be_meant() {
    let config = kafka_config(&CONFIG.replace("\"*\"", "\"Fraud\""));
    let mut engine = Engine::new(config.plan.clone());
    let mut reader = RecordReader::new(&config.sources[0], 0, None).expect("valid");
    let mut said = |offset, model: &str| {
        let payload =
            format!(r#"{{"model":"{model}","time_ms":1760000000000,"rows":[{{"z":0.5,"y":1}}]}}"#);
        let record = Record {
            offset,
            payload: payload.as_bytes(),
            ..Record::default()
        };
        assert_eq!(reader.read(&mut engine, &record), Reading::Done);
        let last = reader.last_rejections[0].clone().expect("a rejection");
        assert_eq!(last.reason, "unknown_model");
        last.detail.clone()
    };
    let near = said(0, "fraud");
    assert!(
        near.starts_with("model `fraud` (did you mean `Fraud`?): no [[model]] has this name"),
        "{near}"
    );
    let far = said(1, "churn");
    assert!(far.starts_with("model `churn`: no [[model]]"), "{far}");
}

/// Captures what is logged.
#[derive(Clone, Default)]
struct Log(Arc<parking_lot::Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_record_that_a_cap_refuses_is_logged_with_its_place_and_its_model() {
    let mut plan = kafka_config(CONFIG).plan;
    plan.caps.streams_max = 1;
    let mut engine = Engine::new(plan);
    let config = kafka_config(CONFIG);
    let mut reader = RecordReader::new(&config.sources[0], 0, None).expect("valid");
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let beyond = format!("b\\u001b{}", "x".repeat(200));
    tracing::subscriber::with_default(subscriber, || {
        for (offset, model) in [(6, "a"), (7, beyond.as_str())] {
            let payload = format!(
                r#"{{"model":"{model}","time_ms":1760000000000,"rows":[{{"z":0.5,"y":1}}]}}"#
            );
            let record = Record {
                partition: 3,
                offset,
                payload: payload.as_bytes(),
                ..Record::default()
            };
            assert_eq!(reader.read(&mut engine, &record), Reading::Done);
        }
    });
    let log = log.0.lock().clone();
    let log = String::from_utf8(log).expect("text");
    let place = "topic=scores partition=3 offset=7 model=b\\u{1b}";
    assert!(
        log.contains(place) && log.contains(r#"cap="streams""#),
        "{log}"
    );
    assert!(
        !log.contains("offset=6") && !log.contains(&"x".repeat(80)),
        "{log}"
    );
    assert_eq!(engine.counters().total().observed, 1);
}
