//! The JSON Schema of a notification, which `deploy/alert.schema.json` prints.

use serde_json::{Value, json};

use super::notification::STREAMS_MAX;

/// The JSON Schema of a notification as it is sent: its fields and the two configured texts.
pub fn schema() -> Value {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let ms = |about: &str| json!({ "type": "integer", "description": about });
    let number = |about: &str| json!({ "type": ["number", "null"], "description": about });
    let one_of = |words: &[&str], about: &str| json!({ "enum": words, "description": about });
    let object = |properties: Value| {
        let names = properties.as_object().map(|all| all.keys().cloned());
        let required: Vec<String> = names.into_iter().flatten().collect();
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    };
    let stream = object(json!({
        "stream": text("Stream."),
        "severity": one_of(&["warn", "page"], "Its severity."),
        "since_ms": ms("Event time at which it started to fire, in ms since 1970."),
        "what": text("Direction of its error in words."),
        "n": { "type": "integer", "minimum": 0, "description": "Number of events in its window." },
        "ece_lower": number("Lower end of the interval of its l2-ECE."),
        "ece_upper": number("Upper end of the interval of its l2-ECE."),
        "page": text("Address of its page."),
    }));
    let mut deployment = object(json!({
        "model": text("Model."),
        "version": { "type": ["string", "null"], "description": "Version, or null for all." },
        "at_ms": ms("When it was marked, by the clock, in ms since 1970."),
        "by": text("Who marked it."),
        "note": text("What they said."),
    }));
    deployment["type"] = json!(["object", "null"]);
    deployment["description"] = json!("Newest deployment of the model that was marked.");
    let mut schema = object(json!({
        "key": text("Identifies the change. It is the same however often the change is sent."),
        "fingerprint": text("Identifies the alert. It is the same for all changes of one alert."),
        "alert": text("Name of the alert: the model, with version, segment and view where alerts are told apart by them."),
        "status": one_of(&["firing", "resolved"], "Whether the alert fires or is resolved."),
        "severity": one_of(&["warn", "page"], "Severity; of a resolved alert, the last one."),
        "was": { "enum": ["warn", "page", null], "description": "The previous severity, if only the severity changed." },
        "at_ms": ms("Event time of the change, in ms since 1970."),
        "since_ms": ms("Event time at which it started to fire, in ms since 1970."),
        "bad_ms": { "type": ["integer", "null"], "description": "Event time at which a stream of it was last bad, by what had been judged, in ms since 1970." },
        "model": text("Model."),
        "version": text("Version of the model, if alerts are told apart by it; else empty."),
        "segment": text("Segment as k=v,k=v, if alerts are told apart by it; else empty."),
        "view": text("View, if alerts are told apart by it; else empty."),
        "stream": text("Stream that speaks for the alert, the worst one. The numbers are its numbers."),
        "streams_firing": { "type": "integer", "minimum": 0, "description": "Number of streams that fire." },
        "streams": { "type": "array", "items": stream, "maxItems": STREAMS_MAX, "description": "Streams that fire, the worst first." },
        "window": text("Window that speaks for the stream. The numbers are those of this window."),
        "verdict": text("Verdict of the window."),
        "what": text("Direction of the error in words, or why the alert was resolved."),
        "direction": text("Direction as one word."),
        "n": { "type": "integer", "minimum": 0, "description": "Number of events." },
        "ece": number("Debiased l2-ECE; 0 if the estimate of its square is negative."),
        "ece_lower": number("Lower end of its interval."),
        "ece_upper": number("Upper end of its interval."),
        "confidence": number("Confidence of the interval."),
        "detectable": number("Smallest l2-ECE that the test detects with 80 % power at this n."),
        "tolerance": number("Tolerated l2-ECE."),
        "p_value": number("p-value of the test that decided."),
        "mean_score": number("Mean score."),
        "event_rate": number("Share of positive outcomes."),
        "onset_ms": { "type": ["integer", "null"], "description": "Event time at which the error started, as the detector estimates it, in ms since 1970." },
        "log_evidence": number("Log evidence of the detector's alarm."),
        "residual_lower": number("Lower end of the mean residual at the detector's alarm."),
        "residual_upper": number("Upper end of the mean residual at the detector's alarm."),
        "evidence": text("What the alert rests on, in words: the window's numbers, and the detector's."),
        "deployment": deployment,
        "record": text("Name of the record of the change, for `trueline explain`."),
        "page": text("Address of the stream's page."),
        "runbook": text("Address of the runbook."),
        "summary": text("The configured one-line text."),
        "description": text("The configured text."),
    }));
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("A change of a trueline alert");
    schema
}
