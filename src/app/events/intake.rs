//! Splits posted bodies into events, checks these against the fields of the source, and appends
//! them.
//!
//! A request is all or nothing. If one of its events does not fit the fields of the source, nothing
//! is appended and the answer names the events with the reasons. Other faults, such as a model that
//! no `[[model]]` watches, are found only when the engine reads the event; it is then rejected and
//! counted.

use parking_lot::Mutex;
use std::str;
use std::sync::Arc;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::EventLogs;
use crate::app::clock;
use crate::app::error::AppError;
use crate::app::ingest::record::{decoder_of, prepare};
use crate::collect::Reason;
use crate::config::{Config, Input};
use crate::decode::{Content, DecodeOptions, PredictionField, Raw, Rejection, SourceDecoder};
use crate::store::event_log::{EventLog, Refusal};
use crate::telemetry::control::{EventAnswer, EventFault, EventPost};

/// Most faults that an answer names.
const FAULTS_MAX: usize = 20;

/// Takes posts for all sources.
pub struct Intake {
    topics: Vec<Topic>,
}

/// A topic that takes posts.
struct Topic {
    name: String,
    /// Its number within the source.
    number: u16,
    decoder: Arc<Mutex<SourceDecoder>>,
    /// How many classes a prediction of the source has, if the configuration says.
    classes: Option<u32>,
    log: Arc<EventLog>,
}

impl Intake {
    /// An intake for the sources of a configuration, whose logs are open.
    pub fn new(config: &Config, logs: &EventLogs) -> Result<Intake, AppError> {
        let mut topics = Vec::new();
        for source in config.sources.iter().filter(|s| s.input == Input::Http) {
            let decoder = Arc::new(Mutex::new(decoder_of(source)?));
            for (number, name) in (0..).zip(&source.kafka.topics) {
                if let Some(log) = logs.get(name) {
                    topics.push(Topic {
                        name: name.clone(),
                        number,
                        decoder: Arc::clone(&decoder),
                        classes: classes(&source.decode),
                        log: Arc::clone(log),
                    });
                }
            }
        }
        Ok(Intake { topics })
    }

    /// Checks and appends what was posted. Waits for the disk.
    pub fn post(&self, post: &EventPost) -> EventAnswer {
        let Some(topic) = self.topic(post.topic.as_deref()) else {
            let topics = self.topics.iter().map(|t| t.name.clone());
            return EventAnswer::NoTopic(topics.collect());
        };
        let events = match split(post) {
            Ok(events) => events,
            Err(why) => {
                topic.count_rejected(post);
                return EventAnswer::Malformed(why);
            }
        };
        let faults = topic.faults(&events);
        if !faults.is_empty() {
            topic.count_rejected(post);
            return EventAnswer::Rejected {
                events: events.len(),
                rejected: faults.len(),
                faults: faults.into_iter().take(FAULTS_MAX).collect(),
            };
        }
        let (name, count) = (topic.name.clone(), events.len() as u64);
        if post.dry_run {
            return EventAnswer::Checked {
                topic: name,
                events: count,
            };
        }
        let events = events.into_iter().map(str::to_owned).collect();
        match topic
            .log
            .append(post.key.clone(), digest(&post.body), events)
        {
            Ok(receipt) => EventAnswer::Appended {
                topic: name,
                offset: receipt.offset,
                events: receipt.events,
                duplicate: receipt.duplicate,
            },
            Err(Refusal::Busy) => EventAnswer::Busy,
            Err(Refusal::Full) => EventAnswer::Full,
            Err(Refusal::KeyReused) => EventAnswer::KeyReused,
            Err(Refusal::TooLong) => EventAnswer::TooLong,
            Err(Refusal::Disk(why) | Refusal::Space(why)) => EventAnswer::Failed(why),
        }
    }

    /// The topic with this name, or the only topic if there is no name.
    fn topic(&self, name: Option<&str>) -> Option<&Topic> {
        match name {
            Some(name) => self.topics.iter().find(|t| t.name == name),
            None => self.topics.first().filter(|_| self.topics.len() == 1),
        }
    }
}

impl Topic {
    /// Counts a request that is refused, unless it was a trial.
    fn count_rejected(&self, post: &EventPost) {
        if !post.dry_run {
            self.log.count_rejected();
        }
    }

    /// The events that do not fit the fields of the source.
    fn faults(&self, events: &[&str]) -> Vec<EventFault> {
        let mut decoder = self.decoder.lock();
        let mut faults = Vec::new();
        for (i, event) in events.iter().enumerate() {
            let raw = Raw {
                payload: event.as_bytes(),
                key: None,
                timestamp_ms: Some(clock::now_ms()),
                headers: &(),
            };
            if let Err(rejection) = check(&mut decoder, self.number, self.classes, &raw) {
                faults.push(EventFault {
                    event: i,
                    reason: rejection.reason.as_str(),
                    detail: rejection.detail,
                });
            }
        }
        faults
    }
}

/// How many classes a prediction has, if the fields of its source say.
fn classes(fields: &DecodeOptions) -> Option<u32> {
    match (&fields.prediction, fields.classes.len()) {
        (PredictionField::Score(_), _) => Some(2),
        (_, 0) => None,
        (_, n) => u32::try_from(n).ok(),
    }
}

/// The rejection of an outcome that fits no prediction with this many classes.
fn foreign(content: &Content<'_>, classes: Option<u32>) -> Option<Rejection> {
    let (Content::Outcome(record), Some(classes)) = (content, classes) else {
        return None;
    };
    let class = record.outcome.class();
    (class >= classes).then(|| Rejection {
        reason: Reason::UnknownClass,
        detail: format!(
            "the outcome is class {class}, and predictions of this source have the classes 0 to {}; correct the \
             outcome, or say what it means in `outcome_map`",
            classes.saturating_sub(1)
        ),
    })
}

/// Decodes a record and returns its first rejection, if any.
fn check(
    decoder: &mut SourceDecoder,
    topic: u16,
    classes: Option<u32>,
    raw: &Raw<'_>,
) -> Result<(), Rejection> {
    prepare(decoder, topic, raw.payload, None, |_, _| {})?;
    let mut first = Ok(());
    decoder.decode(topic, raw, |_, decoded| {
        let fault = match decoded {
            Ok(content) => foreign(content, classes),
            Err(rejection) => Some(rejection.clone()),
        };
        if let (Ok(()), Some(rejection)) = (&first, fault) {
            first = Err(rejection);
        }
    });
    first
}

/// The events of a body: its lines, the elements of its array, or the body itself.
fn split(post: &EventPost) -> Result<Vec<&str>, String> {
    let text = str::from_utf8(&post.body).map_err(|error| {
        let at = error.valid_up_to();
        format!("the body is not UTF-8 from byte {at} on")
    })?;
    let events: Vec<&str> = match (post.lines, text.trim_start().starts_with('[')) {
        (true, _) => text
            .lines()
            .map(str::trim)
            .filter(|l| !l.is_empty())
            .collect(),
        (false, true) => {
            let all: Result<Vec<&RawValue>, _> = serde_json::from_str(text);
            let all =
                all.map_err(|error| format!("the body is no array of JSON objects: {error}"))?;
            all.into_iter().map(RawValue::get).collect()
        }
        (false, false) => {
            let one: Result<&RawValue, _> = serde_json::from_str(text);
            let one = one.map_err(|error| {
                format!(
                    "the body is no JSON: {error}; lines of JSON are of type application/x-ndjson"
                )
            })?;
            vec![one.get()]
        }
    };
    if events.is_empty() {
        return Err("the body has no event".to_owned());
    }
    Ok(events)
}

/// The first eight bytes of a SHA-256.
fn digest(body: &[u8]) -> u64 {
    let hash = Sha256::digest(body);
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    u64::from_le_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::OutcomeRecord;
    use crate::stats::view::Outcome;

    fn events(body: &str, lines: bool) -> Result<Vec<String>, String> {
        let post = EventPost {
            topic: None,
            key: None,
            lines,
            dry_run: false,
            body: body.as_bytes().to_vec(),
        };
        split(&post).map(|all| all.into_iter().map(str::to_owned).collect())
    }

    #[test]
    fn an_outcome_of_a_class_that_no_prediction_has_is_rejected() {
        let outcome = |class| {
            Content::Outcome(OutcomeRecord {
                model: None,
                id: b"a",
                time_ms: 0,
                arrival_ms: None,
                outcome: Outcome::Class(class),
            })
        };
        let two = classes(&DecodeOptions::default());
        let rejected = foreign(&outcome(7), two).expect("there is no such class");
        assert_eq!(rejected.reason, Reason::UnknownClass);
        assert!(foreign(&outcome(1), two).is_none() && foreign(&outcome(7), None).is_none());
    }

    #[test]
    fn a_body_is_an_object_an_array_or_lines() {
        let one = r#"{"a": [1, 2]}"#;
        assert_eq!(events(one, false).expect("sound"), [one]);
        let two = events(" [ {\"a\": 1} ,\n{\"b\":\"]\"} ]", false);
        assert_eq!(two.expect("sound"), ["{\"a\": 1}", "{\"b\":\"]\"}"]);
        let lines = events("{\"a\":1}\r\n\n{\"b\":2}", true);
        assert_eq!(lines.expect("sound"), ["{\"a\":1}", "{\"b\":2}"]);
        for (body, lines, why) in [
            ("", false, "no JSON"),
            ("{\"a\":1}\n{\"b\":2}", false, "x-ndjson"),
            ("[{\"a\":1}, {]", false, "line 1 column 12"),
            ("[]", false, "no event"),
            ("\n\n", true, "no event"),
        ] {
            let error = events(body, lines).expect_err(body);
            assert!(error.contains(why), "{body}: {error}");
        }
    }
}
