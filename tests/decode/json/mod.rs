//! The decoder of JSON and the file reader from outside: what bad input gets, and agreement with
//! serde_json.

mod fields;
mod files;
mod syntax;

use trueline::collect::{Event, Reason};
use trueline::decode::*;

const NOW: i64 = 1_760_000_000_000;

fn flat() -> DecodeOptions {
    DecodeOptions::default()
}

fn classes(prediction: PredictionField) -> DecodeOptions {
    DecodeOptions {
        prediction,
        classes: ["cat", "dog", "ox"].map(String::from).to_vec(),
        ..flat()
    }
}

fn record(score: &str, outcome: &str) -> String {
    format!(r#"{{"model":"m","time_ms":{NOW},"score":{score},"outcome":{outcome}}}"#)
}

fn reject(options: &DecodeOptions, record: &str) -> Rejection {
    let mut d = Decoder::new(options).unwrap();
    d.decode(record.as_bytes(), None, None)
        .map(|e| panic!("accepted {e:?}"))
        .unwrap_err()
}

fn accept<T>(options: &DecodeOptions, record: &str, f: impl FnOnce(Event<'_>) -> T) -> T {
    let mut d = Decoder::new(options).unwrap();
    let event = d.decode(record.as_bytes(), Some(b"key"), Some(NOW));
    f(event.unwrap_or_else(|r| panic!("{record}: {r}")))
}

/// The reason, and that the words name the field and the value.
fn check(options: &DecodeOptions, record: &str, reason: Reason, words: &[&str]) {
    let r = reject(options, record);
    assert_eq!(r.reason, reason, "{record}: {}", r.detail);
    for w in words {
        assert!(r.detail.contains(w), "{record}: {} lacks {w}", r.detail);
    }
}
