//! A CloudEvent is the same structured and binary.

use super::{decoder, facts, one, raw};
use crate::support::encode::{AVRO, as_avro, frame};
use serde_json::json;
use trueline::decode::*;

/// The headers of a binary CloudEvent.
struct Cloud;

impl HeaderMap for Cloud {
    fn header(&self, name: &str) -> Option<&[u8]> {
        match name {
            "ce_specversion" => Some(b"1.0"),
            "ce_id" => Some(b"e\"1"),
            "ce_type" => Some(b"scored"),
            "ce_time" => Some(b"2026-11-21T14:30:00Z"),
            _ => None,
        }
    }
}

fn cloud(format: Format) -> DecodeOptions {
    DecodeOptions {
        id: Some(IdField::Path("ce_id".into())),
        version: Some(FieldOrConst::Field("ce_type".into())),
        time: Some(TimeField {
            path: "ce_time".into(),
            unit: TimeUnit::Rfc3339,
            zone_s: None,
        }),
        packing: Packing {
            format,
            envelope: Envelope::CloudEvents,
            rows: None,
        },
        ..DecodeOptions::default()
    }
}

#[test]
fn a_cloud_event_is_the_same_structured_and_binary() {
    let data = json!({"model": "m", "score": 0.25, "outcome": 1, "id": "not this"});
    let structured = json!({
        "specversion": "1.0", "id": "e\"1", "source": "/s", "type": "scored",
        "time": "2026-11-21T14:30:00Z", "datacontenttype": "application/json", "data": data,
    });
    let (structured, data) = (structured.to_string(), data.to_string());
    let far = Some(4_000_000_000_000);
    let in_body = Raw {
        timestamp_ms: far,
        ..raw(structured.as_bytes())
    };
    let in_headers = Raw {
        headers: &Cloud,
        timestamp_ms: far,
        ..raw(data.as_bytes())
    };
    let (mut a, mut b) = (
        Decoder::new(&cloud(Format::Json)).unwrap(),
        Decoder::new(&cloud(Format::Json)).unwrap(),
    );
    let (a, b) = (
        one(&mut a, &in_body).unwrap(),
        one(&mut b, &in_headers).unwrap(),
    );
    assert_eq!(a, b);
    assert_eq!(
        (a.id, a.version, a.time_ms),
        (&b"e\"1"[..], "scored", 1_795_271_400_000)
    );

    let avro = frame(7, &as_avro(&facts()));
    let mut d = decoder(&cloud(Format::Avro), AVRO);
    let in_headers = Raw {
        headers: &Cloud,
        timestamp_ms: far,
        ..raw(&avro)
    };
    assert_eq!(one(&mut d, &in_headers).unwrap().version, "scored");
    let bare = d.open(&raw(&avro)).unwrap_err();
    assert!(bare.detail.contains("ce_specversion"), "{}", bare.detail);
}
