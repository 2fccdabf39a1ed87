//! `POST /v1/events`: events for a source whose `input` is `http`.
//!
//! The answer comes when the events are on disk. It says what became of them in a form that a
//! sender can act on: 200 appended, 400 something is wrong with the events, 422 the idempotency key
//! was used for others, 429 come again later, 503 this process cannot store anything.

use hyper::StatusCode;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::json;

use super::response::{Answer, error, json_answer, later, ok};
use crate::telemetry::Published;
use crate::telemetry::control::{EventAnswer, EventPost};

/// The header with the idempotency key.
const KEY: &str = "idempotency-key";
/// Longest key.
const KEY_MAX: usize = 200;

/// A post without its body, from the request; or why it is refused.
#[expect(clippy::result_large_err, reason = "an answer is made once a request")]
pub fn post(
    topic: Option<String>,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<EventPost, Answer> {
    let text = |name| {
        headers
            .get(name)
            .and_then(|v: &HeaderValue| v.to_str().ok())
    };
    let kind = text(CONTENT_TYPE.as_str()).unwrap_or_default();
    let lines = kind.starts_with("application/x-ndjson");
    if !lines && !kind.starts_with("application/json") {
        let hint = "send `content-type: application/json`, or application/x-ndjson with one event in each line";
        let what = "the body is not said to be JSON";
        return Err(error(StatusCode::UNSUPPORTED_MEDIA_TYPE, what, hint));
    }
    if headers.contains_key(CONTENT_ENCODING) {
        let what = "the body is encoded";
        return Err(error(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            what,
            "send it as it is",
        ));
    }
    let key = headers
        .contains_key(KEY)
        .then(|| text(KEY).unwrap_or_default().trim());
    if key.is_some_and(|key| !(1..=KEY_MAX).contains(&key.len())) {
        let hint = "send 1 to 200 visible characters, such as a UUID, and the same again when you repeat the request";
        let what = "the idempotency key is empty, too long or no text";
        return Err(error(StatusCode::BAD_REQUEST, what, hint));
    }
    let parts = query.unwrap_or_default().split('&');
    Ok(EventPost {
        topic,
        key: key.map(str::to_owned),
        lines,
        dry_run: parts.into_iter().any(|part| part == "dry_run=1"),
        body: Vec::new(),
    })
}

/// Hands a post over and words the answer. Waits for the disk.
pub fn hand_over(post: &EventPost, published: &Published) -> Answer {
    match published.control.post(post) {
        Some(answer) => words(answer),
        None => later(
            StatusCode::SERVICE_UNAVAILABLE,
            "events cannot be stored yet: state is loaded",
            "send the request again in a moment",
        ),
    }
}

/// The answer for too many requests at a time.
pub fn busy() -> Answer {
    words(EventAnswer::Busy)
}

fn words(answer: EventAnswer) -> Answer {
    match answer {
        EventAnswer::Appended {
            topic,
            offset,
            events,
            duplicate,
        } => ok(&json!({
            "topic": topic,
            "events": events,
            "offset": offset,
            "duplicate": duplicate,
        })),
        EventAnswer::Checked { topic, events } => {
            ok(&json!({ "topic": topic, "events": events, "dry_run": true }))
        }
        EventAnswer::NoTopic(topics) if topics.is_empty() => error(
            StatusCode::NOT_FOUND,
            "no source takes posted events",
            "set `input = \"http\"` of a [[source]]",
        ),
        EventAnswer::NoTopic(topics) => {
            let hint = format!(
                "post to /v1/events/TOPIC, where TOPIC is one of: {}",
                topics.join(", ")
            );
            let what = "the request names no topic that takes posted events";
            error(StatusCode::NOT_FOUND, what, &hint)
        }
        EventAnswer::Malformed(why) => {
            let hint =
                "send one object, an array of objects, or lines of objects as application/x-ndjson";
            error(StatusCode::BAD_REQUEST, &why, hint)
        }
        EventAnswer::Rejected {
            events,
            rejected,
            faults,
        } => {
            let faults = faults.iter();
            let faults =
                faults.map(|f| json!({ "event": f.event, "reason": f.reason, "detail": f.detail }));
            json_answer(
                StatusCode::BAD_REQUEST,
                &json!({
                    "error": format!("{rejected} of {events} events would be rejected, so none was appended"),
                    "hint": "correct or leave out the events that `rejected` names, counted from 0, at most 20 at a time, and send the others",
                    "rejected": faults.collect::<Vec<_>>(),
                }),
            )
        }
        EventAnswer::KeyReused => error(
            StatusCode::UNPROCESSABLE_ENTITY,
            "the idempotency key was used for other events",
            "send a new key with new events",
        ),
        EventAnswer::Full => later(
            StatusCode::TOO_MANY_REQUESTS,
            "the event log is full of events that were not read yet",
            "send the request again later; a larger `bytes_max` of [http.events] holds more",
        ),
        EventAnswer::Busy => later(
            StatusCode::TOO_MANY_REQUESTS,
            "too many requests wait for the disk",
            "send the request again later, and more events in each",
        ),
        EventAnswer::Failed(why) => later(
            StatusCode::SERVICE_UNAVAILABLE,
            &why,
            "see the runbook TruelineEventLogRefuses",
        ),
    }
}
