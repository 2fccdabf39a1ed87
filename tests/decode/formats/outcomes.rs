//! An outcome in a record of its own, or in a row of one, is the same in every format.

use super::{NOW, decoder, facts, one, options, raw, schema};
use crate::support::encode;
use crate::support::encode::{
    AVRO, Facts, PROTO, as_avro, as_json, as_protobuf, frame, message, pool,
};
use apache_avro::types::Value as Avro;
use protox::prost_reflect::Value as Proto;
use protox::prost_reflect::prost::Message as _;
use serde_json::json;
use trueline::collect::Reason;
use trueline::decode::*;
use trueline::stats::view::Outcome;

/// What an outcome of its own says: id, event time and class.
type OutcomeSeen = (Vec<u8>, i64, Outcome);

/// The outcomes of a record, or the reason of each one's rejection.
fn outcomes(d: &mut OutcomeDecoder, payload: &[u8]) -> Vec<Result<OutcomeSeen, Reason>> {
    assert_eq!(d.lacks(payload), None);
    let raw = raw(payload);
    let n = d.open(&raw).unwrap();
    (0..n)
        .map(|row| match d.outcome_record(&raw, row) {
            Ok(l) => Ok((l.id.to_vec(), l.time_ms, l.outcome)),
            Err(rejection) => Err(rejection.reason),
        })
        .collect()
}

/// Flat records `{"id", "time_ms", "outcome"}`.
fn flat() -> OutcomeOptions {
    OutcomeOptions {
        model: None,
        id: IdField::Path("id".into()),
        time: Some(TimeField {
            path: "time_ms".into(),
            unit: TimeUnit::Milliseconds,
            zone_s: None,
        }),
        outcome: "outcome".into(),
        outcome_map: Vec::new(),
        classes: Vec::new(),
        record_bytes_max: 1 << 20,
        ahead_ms_max: Some(86_400_000),
        packing: Packing::default(),
    }
}

fn outcome_decoder(format: Format, text: &str, rows: Option<&str>) -> OutcomeDecoder {
    let path = |name: &str| match rows {
        Some(rows) => format!("{rows}.{name}"),
        None => name.to_owned(),
    };
    let mut d = OutcomeDecoder::new(&OutcomeOptions {
        id: IdField::Path(path("id")),
        outcome: path("outcome"),
        packing: Packing {
            format,
            envelope: Envelope::None,
            rows: rows.map(str::to_owned),
        },
        ..flat()
    })
    .unwrap();
    d.learn(7, &schema(format, text));
    d
}

#[test]
fn an_outcome_alone_is_the_same_in_every_format() {
    let json = as_json(&facts()).to_string();
    let expected = (b"a".to_vec(), NOW, Outcome::Class(1));
    for (format, text, payload) in [
        (Format::Json, "", frame(7, json.as_bytes())),
        (Format::Avro, AVRO, frame(7, &as_avro(&facts()))),
        (
            Format::Protobuf,
            PROTO,
            frame(7, &as_protobuf(&pool(PROTO), &facts())),
        ),
    ] {
        let mut d = outcome_decoder(format, text, None);
        assert_eq!(
            outcomes(&mut d, &payload),
            [Ok(expected.clone())],
            "{format:?}"
        );
    }
    // Framed and plain, without opening first.
    let framed = frame(7, json.as_bytes());
    let mut d = outcome_decoder(Format::Json, "", None);
    for payload in [&framed, json.as_bytes(), &framed] {
        let decoded = d.decode(payload, None, Some(NOW)).unwrap();
        let seen = (decoded.id.to_vec(), decoded.time_ms, decoded.outcome);
        assert_eq!(seen, expected);
    }
    // An outcome that says nothing of what happened is no outcome.
    let silent = Facts {
        outcome: None,
        ..facts()
    };
    let avro = frame(7, &as_avro(&silent));
    let mut d = outcome_decoder(Format::Avro, AVRO, None);
    assert_eq!(outcomes(&mut d, &avro), [Err(Reason::MissingField)]);
    let mut d = OutcomeDecoder::new(&OutcomeOptions {
        packing: options(Format::Avro).packing,
        ..flat()
    })
    .unwrap();
    assert_eq!(
        d.lacks(&avro),
        Some(7),
        "a schema of outcomes is asked for too"
    );
    assert_eq!(
        d.open(&raw(&avro)).unwrap_err().reason,
        Reason::UnknownSchema
    );
}

#[test]
fn a_truth_value_alone_is_an_outcome_of_two_classes_and_of_no_more() {
    let of = |classes: &[&str]| {
        let options = OutcomeOptions {
            id: IdField::Path("id".into()),
            classes: classes.iter().map(|c| (*c).to_owned()).collect(),
            ..flat()
        };
        let mut d = OutcomeDecoder::new(&options).unwrap();
        let record = format!("{{\"id\":\"a\",\"outcome\":true,\"time_ms\":{NOW}}}");
        let decoded = d.decode(record.as_bytes(), None, None);
        decoded.map(|l| l.outcome).map_err(|r| r.reason)
    };
    assert_eq!(of(&["no", "yes"]), Ok(Outcome::Class(1)));
    assert_eq!(of(&[]), Ok(Outcome::Class(1)));
    assert_eq!(of(&["cat", "dog", "ox"]), Err(Reason::BadOutcome));
}

#[test]
fn a_whole_double_is_mapped_as_the_integer_that_it_is() {
    let avro = r#"{"type":"record","name":"P","fields":[{"name":"model","type":"string"},
        {"name":"time_ms","type":"long"},{"name":"score","type":"double"},
        {"name":"outcome","type":"double"}]}"#;
    let options = |format| DecodeOptions {
        outcome_map: vec![("0".into(), "1".into()), ("1".into(), "0".into())],
        packing: options(format).packing,
        ..DecodeOptions::default()
    };
    for (outcome, expected) in [(1.0, false), (0.0, true)] {
        let field = |name: &str, value| (name.to_owned(), value);
        let record = Avro::Record(vec![
            field("model", Avro::String("m".into())),
            field("time_ms", Avro::Long(NOW)),
            field("score", Avro::Double(0.5)),
            field("outcome", Avro::Double(outcome)),
        ]);
        let binary = frame(7, &encode::avro(avro, record));
        let json =
            format!("{{\"model\":\"m\",\"time_ms\":{NOW},\"score\":0.5,\"outcome\":{outcome:?}}}");
        for (format, text, payload) in [
            (Format::Avro, avro, &binary[..]),
            (Format::Json, "", json.as_bytes()),
        ] {
            let mut d = decoder(&options(format), text);
            let event = one(&mut d, &raw(payload)).unwrap();
            assert_eq!(event.outcome, Some(Outcome::Binary(expected)), "{format:?}");
        }
    }
}

/// What a decoder has read before changes nothing, though it remembers how records look.
#[test]
fn a_value_that_nobody_wants_is_checked_the_same_whatever_was_read_before() {
    let good = br#"{"id":"a","outcome":1,"time_ms":1760000000000,"x":0.5}"#;
    let bad = br#"{"id":"b","outcome":1,"time_ms":1760000000000,"x":NaN}"#;
    let mut fresh = outcome_decoder(Format::Json, "", None);
    let expected = fresh.open(&raw(bad)).map(|_| ()).map_err(|r| r.reason);
    let mut d = outcome_decoder(Format::Json, "", None);
    for _ in 0..100 {
        assert_eq!(d.open(&raw(good)).map_err(|r| r.reason), Ok(1));
        let found = d.open(&raw(bad)).map(|_| ()).map_err(|r| r.reason);
        assert_eq!(found, expected);
    }
    assert_eq!(expected, Err(Reason::Malformed));
}

#[test]
fn each_row_of_a_record_of_outcomes_is_an_outcome_in_every_format() {
    let json = json!({
        "time_ms": NOW,
        "settled": [{"id": "a", "outcome": true}, {"id": "b"}, {"id": "", "outcome": 0},
            {"id": "c", "outcome": 0}],
    });
    let avro = r#"{"type":"record","name":"B","fields":[{"name":"time_ms","type":"long"},
        {"name":"settled","type":{"type":"array","items":{"type":"record","name":"Row","fields":[
          {"name":"id","type":"string"},{"name":"outcome","type":["null","int"]}]}}}]}"#;
    let field = |name: &str, value| (name.to_owned(), value);
    let row = |id: &str, outcome: Option<i32>| {
        let outcome = match outcome {
            None => Avro::Union(0, Box::new(Avro::Null)),
            Some(y) => Avro::Union(1, Box::new(Avro::Int(y))),
        };
        Avro::Record(vec![
            field("id", Avro::String(id.into())),
            field("outcome", outcome),
        ])
    };
    let settled = [("a", Some(1)), ("b", None), ("", Some(0)), ("c", Some(0))];
    let record = Avro::Record(vec![
        field("time_ms", Avro::Long(NOW)),
        field(
            "settled",
            Avro::Array(settled.map(|(id, y)| row(id, y)).into()),
        ),
    ]);
    let proto = r#"syntax = "proto3"; message B { message Row { string id = 1; optional bool outcome = 2; }
        int64 time_ms = 1; repeated Row settled = 2; }"#;
    let pool = pool(proto);
    let messages = settled.map(|(id, y)| {
        let mut fields = vec![("id", Proto::String(id.into()))];
        fields.extend(y.map(|y| ("outcome", Proto::Bool(y == 1))));
        Proto::Message(message(&pool, "B.Row", fields))
    });
    let fields = vec![
        ("time_ms", Proto::I64(NOW)),
        ("settled", Proto::List(messages.into())),
    ];
    let protobuf = [&[0][..], &message(&pool, "B", fields).encode_to_vec()].concat();
    for (format, text, payload) in [
        (Format::Json, "", json.to_string().into_bytes()),
        (Format::Avro, avro, frame(7, &encode::avro(avro, record))),
        (Format::Protobuf, proto, frame(7, &protobuf)),
    ] {
        let mut d = outcome_decoder(format, text, Some("settled"));
        let seen = outcomes(&mut d, &payload);
        let of = |id: &str, class| Ok((id.as_bytes().to_vec(), NOW, Outcome::Class(class)));
        assert_eq!(
            seen,
            [
                of("a", 1),
                Err(Reason::MissingField),
                Err(Reason::EmptyKey),
                of("c", 0)
            ],
            "{format:?}"
        );
    }
}
