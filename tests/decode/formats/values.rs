//! A value is the same in every format: scores to the bit, defaults, vectors, maps, weights and
//! clusters.

use super::{NOW, bits, decoder, facts, one, options, raw};
use crate::support::encode;
use crate::support::encode::{
    AVRO, Facts, INDEXES, PROTO, as_avro, as_json, as_protobuf, frame, message, pool,
};
use apache_avro::types::Value as Avro;
use proptest::prelude::*;
use protox::prost_reflect::Value as Proto;
use protox::prost_reflect::prost::Message as _;
use trueline::collect::Reason;
use trueline::decode::*;
use trueline::stats::clusters::Bucket;
use trueline::stats::view::Outcome;

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
        // Framed and plain records may be mixed, also where each is one plain event.
        let mut mixed = Decoder::new(&options(Format::Json)).unwrap();
        for payload in [&framed, json.as_bytes(), &framed, &framed, json.as_bytes()] {
            let event = mixed.decode(payload, Some(b"key"), Some(NOW)).unwrap();
            prop_assert_eq!(&event, &expected);
        }
    }
}

#[test]
fn a_fault_of_framed_json_has_the_same_place_in_the_record_however_it_is_read() {
    let good = as_json(&facts()).to_string();
    let good = frame(7, good.as_bytes());
    for (bad, place) in [
        (&b"{\"score\":x}"[..], "byte 14: "),
        (b"{\"a\":\"\xff\"}", "byte 11: "),
    ] {
        let bad = frame(7, bad);
        let mut d = decoder(&options(Format::Json), "");
        for _ in 0..2 {
            let opened = one(&mut d, &raw(&bad)).unwrap_err();
            assert!(opened.detail.starts_with(place), "{opened}");
            assert_eq!(d.decode(&bad, None, None).unwrap_err(), opened);
            assert_eq!(d.decode(&good, None, None).unwrap().id, b"a");
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
