//! `POST /v1/events`: events for a source whose `input` is `http`.
//!
//! The answer comes once the events are on disk. Its status tells a sender what to do: 200
//! appended, 400 something is wrong with the events, 422 the idempotency key was used for other
//! events, 429 send again later, 503 this process cannot store anything.

use hyper::StatusCode;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::json;

use super::response::{Answer, error, json_answer, later, ok};
use crate::telemetry::Published;
use crate::telemetry::control::{EventAnswer, EventPost};

/// The header with the idempotency key.
const KEY: &str = "idempotency-key";
const KEY_MAX: usize = 200;

/// A post without its body, from the request; an error is the answer that refuses it.
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
    let dry_run = dry_run(query)?;
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
    Ok(EventPost {
        topic,
        key: key.map(str::to_owned),
        lines,
        dry_run,
        body: Vec::new(),
    })
}

/// Whether the events are only checked. Another spelling is refused, because stored events cannot
/// be taken back.
#[expect(clippy::result_large_err, reason = "an answer is made once a request")]
fn dry_run(query: Option<&str>) -> Result<bool, Answer> {
    let mut dry_run = false;
    let parts = query.unwrap_or_default().split('&');
    for part in parts.filter(|part| !part.is_empty()) {
        dry_run = match part {
            "dry_run" | "dry_run=1" | "dry_run=true" => true,
            "dry_run=0" | "dry_run=false" => false,
            other => {
                let what = format!("`{other}` is no parameter of this address; nothing was stored");
                let hint = "write `?dry_run=1` to check the events without storing them";
                return Err(error(StatusCode::BAD_REQUEST, &what, hint));
            }
        };
    }
    Ok(dry_run)
}

/// Appends the events of a post and words the answer. Waits for the disk.
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
        EventAnswer::TooLong => error(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the events are longer than what the log stores at once, so none was appended",
            "send fewer events in a request",
        ),
        EventAnswer::Full => later(
            StatusCode::TOO_MANY_REQUESTS,
            "the event log is full of events that were not read yet, or that no snapshot holds yet",
            "send the request again later; a larger `bytes_max` of [http.events] holds more",
        ),
        EventAnswer::Busy => later(
            StatusCode::TOO_MANY_REQUESTS,
            "too many requests are received or wait for the disk",
            "send the request again later, and more events in each",
        ),
        EventAnswer::Failed(why) => later(
            StatusCode::SERVICE_UNAVAILABLE,
            &why,
            "see the runbook TruelineEventLogRefuses",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_the_dry_run_as_people_write_it_or_an_error() {
        let of = |query| dry_run(query).map_err(|answer| answer.status().as_u16());
        for query in ["dry_run", "dry_run=1", "dry_run=true", "&dry_run=1"] {
            assert_eq!(of(Some(query)), Ok(true), "{query}");
        }
        for query in [None, Some(""), Some("dry_run=0"), Some("dry_run=false")] {
            assert_eq!(of(query), Ok(false), "{query:?}");
        }
        for query in ["dry_run=yes", "dryrun=1", "dry_run=1&x=2", "Dry_run=1"] {
            assert_eq!(of(Some(query)), Err(400), "{query}");
        }
    }
}
