//! Formats, frames, envelopes and rows from outside: whatever a record is written in, it is the same
//! event; and no bytes make a reader panic.

use crate::support::encode;
use crate::support::encode::{
    AVRO, Facts, INDEXES, PROTO, as_avro, as_json, as_protobuf, frame, message, pool,
};
use apache_avro::types::Value as Avro;
use proptest::prelude::*;
use protox::prost_reflect::Value as Proto;
use protox::prost_reflect::prost::Message as _;
use serde_json::json;
use trueline::collect::{Event, Reason};
use trueline::decode::*;
use trueline::stats::clusters::Bucket;
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction};

const NOW: i64 = 1_760_000_000_000;

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

pub(super) fn raw(payload: &[u8]) -> Raw<'_> {
    Raw {
        payload,
        key: Some(b"key"),
        timestamp_ms: Some(NOW),
        headers: &(),
    }
}

fn schema(format: Format, text: &str) -> SchemaText {
    SchemaText {
        format,
        text: text.to_owned(),
        references: Vec::new(),
    }
}

/// The paths of [`Facts`].
pub(super) fn options(format: Format) -> DecodeOptions {
    DecodeOptions {
        version: Some(FieldOrConst::Field("meta.version".into())),
        segments: vec!["meta.country".into()],
        id: Some(IdField::Path("id".into())),
        packing: Packing {
            format,
            ..Packing::default()
        },
        ..DecodeOptions::default()
    }
}

pub(super) fn decoder(options: &DecodeOptions, text: &str) -> Decoder {
    let mut decoder = Decoder::new(options).unwrap();
    decoder.learn(7, &schema(options.packing.format, text));
    decoder
}

/// The one event of a record.
pub(super) fn one<'a>(decoder: &'a mut Decoder, raw: &Raw<'a>) -> Result<Event<'a>, Rejection> {
    assert_eq!(decoder.lacks(raw.payload), None);
    assert_eq!(decoder.open(raw)?, 1);
    decoder.event(raw, 0)
}

fn facts() -> Facts {
    Facts {
        model: "m".into(),
        version: 3,
        country: "de".into(),
        id: "a".into(),
        time_ms: NOW,
        score: 0.25,
        outcome: Some(true),
    }
}

fn bits(p: &Prediction<'_>) -> Vec<u64> {
    match p {
        Prediction::Score(z) => vec![z.to_bits()],
        Prediction::Vector(p) => p.iter().map(|z| z.to_bits()).collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_record_is_the_same_event_to_the_bit_in_every_format(
        model in "\\PC{1,12}",
        version in any::<i64>(),
        country in "[a-z=,%\"\\\\\u{0}-\u{1f}é]{0,6}",
        id in "\\PC{1,12}",
        time_ms in NOW - 1_000_000_000..NOW + 1000,
        score in prop_oneof![
            0.0..=1.0f64,
            Just(0.0), Just(1.0), Just(f64::MIN_POSITIVE), Just(5e-324),
            (0..=0x3ff0_0000_0000_0000u64).prop_map(f64::from_bits),
        ],
        outcome in prop::option::of(any::<bool>()),
    ) {
        let f = Facts { model, version, country, id, time_ms, score, outcome };
        let json = as_json(&f).to_string();
        let framed = frame(7, json.as_bytes());
        let avro = frame(7, &as_avro(&f));
        let protobuf = frame(7, &as_protobuf(&pool(PROTO), &f));
        let mut plain = Decoder::new(&options(Format::Json)).unwrap();
        let expected = plain.decode(json.as_bytes(), Some(b"key"), Some(NOW)).unwrap();
        for (format, text, payload) in [
            (Format::Json, "", &framed),
            (Format::Avro, AVRO, &avro),
            (Format::Protobuf, PROTO, &protobuf),
        ] {
            let mut decoder = decoder(&options(format), text);
            let raw = raw(payload);
            let event = one(&mut decoder, &raw).unwrap();
            prop_assert_eq!(&event, &expected, "{:?}", format);
            prop_assert_eq!(bits(&event.prediction), vec![score.to_bits()]);
            prop_assert_eq!(event.outcome, outcome.map(Outcome::Binary));
        }
    }
}

#[test]
fn the_default_of_a_field_without_presence_is_a_value_and_of_one_with_is_missing() {
    let zero = Facts {
        score: 0.0,
        outcome: Some(false),
        ..facts()
    };
    let bytes = frame(7, &as_protobuf(&pool(PROTO), &zero));
    let mut d = decoder(&options(Format::Protobuf), PROTO);
    let event = one(&mut d, &raw(&bytes))
        .map(|e| (bits(&e.prediction), e.outcome))
        .unwrap();
    assert_eq!(event, (vec![0], Some(Outcome::Binary(false))));
    // No bytes at all: every field has its default, and the message `meta` is not there.
    let empty = frame(7, INDEXES);
    let rejection = one(&mut d, &raw(&empty)).unwrap_err();
    assert_eq!(
        rejection.reason,
        Reason::EmptyKey,
        "the model is the empty text"
    );
}

#[test]
fn a_writer_may_add_move_and_drop_fields_as_avro_allows() {
    let text = AVRO
        .replace(r#"{"name":"features","type":{"type":"array","items":"float"}},"#, "")
        .replace(
            r#"{"name":"score","type":"double"},"#,
            r#"{"name":"reasons","type":{"type":"array","items":{"type":"record","name":"Reason",
               "fields":[{"name":"code","type":"string"},{"name":"weight","type":["double","null"]}]}}},
               {"name":"score","type":["null","double"],"default":null},"#,
        );
    let field = |name: &str, value| (name.to_owned(), value);
    let text_of = |s: &str| Avro::String(s.to_owned());
    let record = |score: Avro| {
        let reason = Avro::Record(vec![
            field("code", text_of("x")),
            field("weight", Avro::Union(0, Box::new(Avro::Double(0.5)))),
        ]);
        let meta = vec![
            field("country", text_of("de")),
            field("tags", Avro::Map(Default::default())),
            field("version", Avro::Long(3)),
        ];
        let record = vec![
            field("model", text_of("m")),
            field("meta", Avro::Record(meta)),
            field("id", text_of("a")),
            field("time_ms", Avro::TimestampMillis(NOW)),
            field("reasons", Avro::Array(vec![reason.clone(), reason])),
            field("score", score),
            field("hash", Avro::Fixed(4, vec![1; 4])),
            field("outcome", Avro::Union(1, Box::new(Avro::Boolean(true)))),
        ];
        frame(8, &encode::avro(&text, Avro::Record(record)))
    };
    let mut d = decoder(&options(Format::Avro), AVRO);
    let old = frame(7, &as_avro(&facts()));
    let new = record(Avro::Union(1, Box::new(Avro::Double(0.25))));
    assert_eq!(d.lacks(&old), None);
    assert_eq!(
        d.lacks(&new),
        Some(8),
        "a schema is asked for once, when it is first met"
    );
    d.learn(8, &schema(Format::Avro, &text));
    let mut other = decoder(&options(Format::Avro), AVRO);
    let (old, new) = (raw(&old), raw(&new));
    assert_eq!(one(&mut d, &new).unwrap(), one(&mut other, &old).unwrap());
    let null = record(Avro::Union(0, Box::new(Avro::Null)));
    let rejection = one(&mut d, &raw(&null)).unwrap_err();
    assert_eq!(rejection.reason, Reason::MissingField);
    assert!(rejection.detail.contains("`score`"), "{}", rejection.detail);
}

#[test]
fn a_message_may_have_fields_that_its_schema_does_not_know() {
    let newer = PROTO.replace(
        "double score = 6;",
        "double score = 6; repeated Meta more = 90;",
    );
    let newer_pool = pool(&newer);
    let mut bytes = as_protobuf(&newer_pool, &facts());
    let meta = message(&newer_pool, "shop.Outer.Prediction.Meta", vec![]);
    let more = message(
        &newer_pool,
        "shop.Outer.Prediction",
        vec![("more", Proto::List(vec![Proto::Message(meta)]))],
    );
    bytes.extend(more.encode_to_vec());
    let framed = frame(7, &bytes);
    let mut d = decoder(&options(Format::Protobuf), PROTO);
    assert_eq!(one(&mut d, &raw(&framed)).unwrap().id, b"a");
}

#[test]
fn a_schema_that_cannot_be_used_rejects_its_records_and_says_why() {
    let avro = frame(9, &as_avro(&facts()));
    for (format, text, why) in [
        (Format::Protobuf, PROTO, "it is of protobuf"),
        (Format::Avro, "{\"type\":\"record\"}", "without `name`"),
    ] {
        let mut d = Decoder::new(&options(Format::Avro)).unwrap();
        assert_eq!(d.lacks(&avro), Some(9));
        let early = d.open(&raw(&avro)).unwrap_err();
        assert_eq!(early.reason, Reason::UnknownSchema, "not learnt");
        d.learn(9, &schema(format, text));
        assert_eq!(d.lacks(&avro), None, "kept as useless, not asked for again");
        let rejection = d.open(&raw(&avro)).unwrap_err();
        assert_eq!(rejection.reason, Reason::UnknownSchema);
        assert!(rejection.detail.contains(why), "{}", rejection.detail);
    }
    let mut d = decoder(&options(Format::Protobuf), "message M { int32 a = 1 }");
    let rejection = d.open(&raw(&frame(7, &[0]))).unwrap_err();
    assert_eq!(
        rejection.reason,
        Reason::UnknownSchema,
        "{}",
        rejection.detail
    );
    let mut d = decoder(&options(Format::Protobuf), PROTO);
    let lost = d.open(&raw(&frame(7, &[2, 18]))).unwrap_err();
    assert!(lost.detail.contains("no message [9]"), "{}", lost.detail);
    let bare = d.open(&raw(b"{\"model\":1}")).unwrap_err();
    assert!(
        bare.detail.contains("0x7b, not the frame"),
        "{}",
        bare.detail
    );
}

#[test]
fn vectors_maps_enums_and_well_known_types_are_what_they_are_in_json() {
    let avro = r#"{"type":"record","name":"R","fields":[
        {"name":"model","type":{"type":"enum","name":"M","symbols":["m","n"]}},
        {"name":"p","type":{"type":"array","items":"double"}},
        {"name":"c","type":{"type":"map","values":"double"}},
        {"name":"t","type":{"type":"bytes","logicalType":"decimal","precision":18,"scale":3}},
        {"name":"outcome","type":"int"}]}"#;
    let field = |name: &str, value| (name.to_owned(), value);
    let classes = [
        ("x".to_owned(), Avro::Double(0.75)),
        ("y".to_owned(), Avro::Double(0.25)),
    ];
    let seconds = (NOW + 5).to_be_bytes().to_vec();
    let record = Avro::Record(vec![
        field("model", Avro::Enum(1, "n".into())),
        field(
            "p",
            Avro::Array(vec![Avro::Double(0.75), Avro::Double(0.25)]),
        ),
        field("c", Avro::Map(classes.into())),
        field("t", Avro::Decimal(seconds.into())),
        field("outcome", Avro::Int(1)),
    ]);
    let proto = r#"syntax = "proto3"; import "google/protobuf/timestamp.proto";
        import "google/protobuf/wrappers.proto";
        enum M { m = 0; n = 1; }
        message R { M model = 1; repeated double p = 2; map<string, double> c = 3;
          google.protobuf.Timestamp t = 4; google.protobuf.UInt32Value outcome = 5; }"#;
    let pool = pool(proto);
    let at = vec![
        ("seconds", Proto::I64((NOW + 5) / 1000)),
        ("nanos", Proto::I32(5_000_000)),
    ];
    let at = message(&pool, "google.protobuf.Timestamp", at);
    let outcome = message(
        &pool,
        "google.protobuf.UInt32Value",
        vec![("value", Proto::U32(1))],
    );
    let map = [("x", 0.75), ("y", 0.25)].map(|(k, p)| {
        (
            protox::prost_reflect::MapKey::String(k.into()),
            Proto::F64(p),
        )
    });
    let fields = vec![
        ("model", Proto::EnumNumber(1)),
        ("p", Proto::List(vec![Proto::F64(0.75), Proto::F64(0.25)])),
        ("c", Proto::Map(map.into())),
        ("t", Proto::Message(at)),
        ("outcome", Proto::Message(outcome)),
    ];
    let bytes = [&[0][..], &message(&pool, "R", fields).encode_to_vec()].concat();
    let records = [
        (
            Format::Avro,
            avro,
            encode::avro(avro, record),
            TimeUnit::Seconds,
        ),
        (Format::Protobuf, proto, bytes, TimeUnit::Rfc3339),
    ];
    for (format, text, bytes, unit) in records {
        for prediction in [
            PredictionField::Vector("p".into()),
            PredictionField::ClassMap("c".into()),
        ] {
            let o = DecodeOptions {
                time: Some(TimeField {
                    path: "t".into(),
                    unit,
                    zone_s: None,
                }),
                prediction,
                classes: vec!["x".into(), "y".into()],
                ..DecodeOptions::default()
            };
            let o = DecodeOptions {
                packing: options(format).packing,
                ..o
            };
            let framed = frame(7, &bytes);
            let mut d = decoder(&o, text);
            let raw = raw(&framed);
            let e = one(&mut d, &raw).unwrap();
            let seen = (e.model, e.time_ms, e.outcome);
            assert_eq!(seen, ("n", NOW + 5, Some(Outcome::Class(1))), "{format:?}");
            assert_eq!(
                bits(&e.prediction),
                vec![0.75f64.to_bits(), 0.25f64.to_bits()]
            );
        }
    }
}

#[test]
fn a_weight_that_is_not_finite_is_no_weight() {
    let text = r#"{"type":"record","name":"R","fields":[{"name":"model","type":"string"},
        {"name":"time_ms","type":"long"},{"name":"score","type":"double"},
        {"name":"outcome","type":"boolean"},{"name":"w","type":"double"}]}"#;
    let o = DecodeOptions {
        weight: Some("w".into()),
        packing: options(Format::Avro).packing,
        ..DecodeOptions::default()
    };
    let field = |name: &str, value| (name.to_owned(), value);
    for (w, fixed) in [
        (2.5, Ok(163_840)),
        (f64::NAN, Err(Reason::BadWeight)),
        (f64::INFINITY, Err(Reason::BadWeight)),
        (-0.0, Err(Reason::BadWeight)),
    ] {
        let record = Avro::Record(vec![
            field("model", Avro::String("m".into())),
            field("time_ms", Avro::Long(NOW)),
            field("score", Avro::Double(0.25)),
            field("outcome", Avro::Boolean(true)),
            field("w", Avro::Double(w)),
        ]);
        let framed = frame(7, &encode::avro(text, record));
        let mut d = decoder(&o, text);
        let raw = raw(&framed);
        let got = one(&mut d, &raw).map(|e| e.weight.unwrap().fixed());
        assert_eq!(got.map_err(|r| r.reason), fixed, "{w}");
    }
}

#[test]
fn a_cluster_is_a_name_or_a_number_and_is_needed_where_it_is_configured() {
    let text = r#"{"type":"record","name":"R","fields":[{"name":"model","type":"string"},
        {"name":"time_ms","type":"long"},{"name":"score","type":"double"},
        {"name":"outcome","type":"boolean"},{"name":"user","type":["null","string","long"]}]}"#;
    let o = DecodeOptions {
        cluster: Some("user".into()),
        packing: options(Format::Avro).packing,
        ..DecodeOptions::default()
    };
    let field = |name: &str, value| (name.to_owned(), value);
    for (user, name) in [
        (
            Avro::Union(1, Box::new(Avro::String("anna".into()))),
            Ok("anna"),
        ),
        (
            Avro::Union(1, Box::new(Avro::String("17".into()))),
            Ok("17"),
        ),
        (Avro::Union(2, Box::new(Avro::Long(17))), Ok("17")),
        (
            Avro::Union(0, Box::new(Avro::Null)),
            Err(Reason::MissingField),
        ),
        (
            Avro::Union(1, Box::new(Avro::String(String::new()))),
            Err(Reason::EmptyKey),
        ),
    ] {
        let record = Avro::Record(vec![
            field("model", Avro::String("m".into())),
            field("time_ms", Avro::Long(NOW)),
            field("score", Avro::Double(0.25)),
            field("outcome", Avro::Boolean(true)),
            field("user", user),
        ]);
        let framed = frame(7, &encode::avro(text, record));
        let mut d = decoder(&o, text);
        let raw = raw(&framed);
        let got = one(&mut d, &raw).map(|e| e.cluster);
        let bucket = name.map(|name| Some(Bucket::of(name.as_bytes())));
        assert_eq!(got.map_err(|r| r.reason), bucket);
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

fn batch(format: Format) -> DecodeOptions {
    DecodeOptions {
        prediction: PredictionField::Score("rows.s.score".into()),
        outcome: "rows.outcome".into(),
        id: Some(IdField::Path("rows.id".into())),
        packing: Packing {
            format,
            envelope: Envelope::None,
            rows: Some("rows".into()),
        },
        ..DecodeOptions::default()
    }
}

/// Id, score and outcome of a row.
type RowSeen = (String, f64, Option<Outcome>);

/// What each row says, or the reason of its rejection.
fn rows(d: &mut Decoder, payload: &[u8]) -> Vec<Result<RowSeen, Reason>> {
    let raw = raw(payload);
    let n = d.open(&raw).unwrap();
    (0..n)
        .map(|row| match d.event(&raw, row) {
            Err(rejection) => Err(rejection.reason),
            Ok(e) => {
                assert_eq!((e.model, e.time_ms), ("m", NOW));
                let Prediction::Score(z) = e.prediction else {
                    panic!()
                };
                Ok((String::from_utf8_lossy(e.id).into_owned(), z, e.outcome))
            }
        })
        .collect()
}

#[test]
fn each_row_of_a_record_is_an_event_and_a_broken_one_costs_only_itself() {
    let text = json!({
        "rows": [
            {"id": "a\n", "s": {"score": 0.25, "x": [1]}, "outcome": 1, "model": "not this"},
            {"id": "b", "s": {"score": 1.5}, "outcome": 0},
            {"id": "c", "s": {}, "outcome": 0},
            7,
            {"outcome": null, "s": {"score": 1}, "id": "d"},
        ],
        "model": "m", "time_ms": NOW,
    });
    let seen = rows(
        &mut Decoder::new(&batch(Format::Json)).unwrap(),
        text.to_string().as_bytes(),
    );
    let one = Some(Outcome::Binary(true));
    assert_eq!(
        seen,
        [
            Ok(("a\n".into(), 0.25, one)),
            Err(Reason::ScoreOutOfRange),
            Err(Reason::MissingField),
            Err(Reason::Malformed),
            Ok(("d".into(), 1.0, None)),
        ]
    );
    let avro = r#"{"type":"record","name":"B","fields":[{"name":"model","type":"string"},
        {"name":"rows","type":{"type":"array","items":{"type":"record","name":"Row","fields":[
          {"name":"id","type":"string"},{"name":"x","type":"double"},
          {"name":"s","type":{"type":"record","name":"S","fields":[{"name":"score","type":"double"}]}},
          {"name":"outcome","type":["null","int"]}]}}},
        {"name":"time_ms","type":"long"}]}"#;
    let field = |name: &str, value| (name.to_owned(), value);
    let row = |id: &str, score: f64| {
        Avro::Record(vec![
            field("id", Avro::String(id.into())),
            field("x", Avro::Double(f64::NAN)),
            field("s", Avro::Record(vec![field("score", Avro::Double(score))])),
            field("outcome", Avro::Union(1, Box::new(Avro::Int(1)))),
        ])
    };
    let record = Avro::Record(vec![
        field("model", Avro::String("m".into())),
        field(
            "rows",
            Avro::Array(vec![row("a\n", 0.25), row("b", f64::NAN)]),
        ),
        field("time_ms", Avro::Long(NOW)),
    ]);
    let framed = frame(7, &encode::avro(avro, record));
    let seen = rows(&mut decoder(&batch(Format::Avro), avro), &framed);
    assert_eq!(
        seen,
        [Ok(("a\n".into(), 0.25, one)), Err(Reason::ScoreNotFinite)]
    );

    let mut d = Decoder::new(&batch(Format::Json)).unwrap();
    for (text, reason) in [
        (r#"{"rows":[],"model":"m"}"#, Reason::MissingField),
        (r#"{"model":"m"}"#, Reason::MissingField),
        (r#"{"rows":{"a":1},"model":"m"}"#, Reason::WrongShape),
        (r#"{"rows":[{"id":"a",]}"#, Reason::Malformed),
    ] {
        assert_eq!(
            d.open(&raw(text.as_bytes())).unwrap_err().reason,
            reason,
            "{text}"
        );
    }
}

/// What an outcome of its own says: id, event time and class.
type LabelSeen = (Vec<u8>, i64, Outcome);

/// The outcomes of a record, or the reason of each one's rejection.
fn labels(d: &mut LabelDecoder, payload: &[u8]) -> Vec<Result<LabelSeen, Reason>> {
    assert_eq!(d.lacks(payload), None);
    let raw = raw(payload);
    let n = d.open(&raw).unwrap();
    (0..n)
        .map(|row| match d.label(&raw, row) {
            Ok(l) => Ok((l.id.to_vec(), l.time_ms, l.outcome)),
            Err(rejection) => Err(rejection.reason),
        })
        .collect()
}

fn label_decoder(format: Format, text: &str, rows: Option<&str>) -> LabelDecoder {
    let path = |name: &str| match rows {
        Some(rows) => format!("{rows}.{name}"),
        None => name.to_owned(),
    };
    let mut d = LabelDecoder::new(&LabelOptions {
        id: IdField::Path(path("id")),
        outcome: path("outcome"),
        packing: Packing {
            format,
            envelope: Envelope::None,
            rows: rows.map(str::to_owned),
        },
        ..LabelOptions::default()
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
        let mut d = label_decoder(format, text, None);
        assert_eq!(
            labels(&mut d, &payload),
            [Ok(expected.clone())],
            "{format:?}"
        );
    }
    // An outcome that says nothing of what happened is no outcome.
    let silent = Facts {
        outcome: None,
        ..facts()
    };
    let avro = frame(7, &as_avro(&silent));
    let mut d = label_decoder(Format::Avro, AVRO, None);
    assert_eq!(labels(&mut d, &avro), [Err(Reason::MissingField)]);
    let mut d = LabelDecoder::new(&LabelOptions {
        packing: options(Format::Avro).packing,
        ..LabelOptions::default()
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
        let mut d = label_decoder(format, text, Some("settled"));
        let seen = labels(&mut d, &payload);
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

#[test]
fn paths_that_cannot_be_packed_are_refused() {
    let o = DecodeOptions {
        packing: Packing {
            rows: Some("rows".into()),
            ..Packing::default()
        },
        ..DecodeOptions::default()
    };
    let error = Decoder::new(&o).err().unwrap().to_string();
    assert!(error.contains("`rows.score`"), "{error}");
}

#[test]
fn no_bytes_make_a_reader_panic() {
    let pool = pool(PROTO);
    let mut rng = Rng::new(5);
    let mut draw = |n: usize| ((rng.uniform() * n as f64) as usize).min(n - 1);
    for (format, text, good) in [
        (Format::Avro, AVRO, frame(7, &as_avro(&facts()))),
        (
            Format::Protobuf,
            PROTO,
            frame(7, &as_protobuf(&pool, &facts())),
        ),
    ] {
        let mut d = decoder(&options(format), text);
        for end in 0..good.len() {
            let cut = &good[..end];
            if one(&mut d, &raw(cut)).is_ok() {
                assert!(
                    format == Format::Protobuf,
                    "an Avro record cut at {end} was accepted"
                );
            }
        }
        for _ in 0..30_000 {
            let mut bytes = good.clone();
            for _ in 0..=draw(4) {
                let at = 5 + draw(bytes.len() - 5);
                match draw(3) {
                    0 => bytes[at] = draw(256) as u8,
                    1 => bytes[at] ^= 1 << draw(8),
                    _ => drop(bytes.splice(at..at, (0..draw(9)).map(|_| 0xff))),
                }
            }
            let raw = raw(&bytes);
            if d.lacks(&bytes).is_none() && d.open(&raw).is_ok() {
                let _ = d.event(&raw, 0);
            }
        }
        for n in 0..20_000usize {
            let bytes: Vec<u8> = (0..n % 200).map(|_| draw(256) as u8).collect();
            let framed = frame(7, &bytes);
            let _ = d.open(&raw(&framed));
        }
    }
}
