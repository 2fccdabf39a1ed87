//! Schemas change as their formats allow; one that cannot be used rejects its records and says why;
//! no bytes make a reader panic.

use super::{NOW, decoder, facts, one, options, raw, schema};
use crate::support::encode;
use crate::support::encode::{AVRO, PROTO, as_avro, as_protobuf, frame, message, pool};
use apache_avro::types::Value as Avro;
use protox::prost_reflect::Value as Proto;
use protox::prost_reflect::prost::Message as _;
use trueline::collect::Reason;
use trueline::decode::*;
use trueline::stats::rng::Rng;

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
