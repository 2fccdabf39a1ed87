//! Schemas and records that ask for far more work than they have bytes.

use crate::formats::{decoder, one, options, raw};
use crate::support::encode::frame;
use trueline::collect::Reason;
use trueline::decode::Format;
#[test]
fn a_schema_that_multiplies_without_bytes_is_rejected_at_once() {
    // Forty records, each with two fields of the next: 2^40 visits, no byte.
    let mut text = r#"{"type":"record","name":"R40","fields":[]}"#.to_owned();
    for i in (0..40).rev() {
        text = format!(
            r#"{{"type":"record","name":"R{i}","fields":[{{"name":"a","type":{text}}},{{"name":"b","type":"R{}"}}]}}"#,
            i + 1
        );
    }
    let field = |name: &str, kind: &str| format!(r#"{{"name":"{name}","type":{kind}}}"#);
    let whole = |kind: &str| {
        format!(
            r#"{{"type":"record","name":"P","fields":[{},{}]}}"#,
            field("bomb", kind),
            field("score", "\"double\"")
        )
    };
    let nulls = r#"{"type":"array","items":"null"}"#;
    let mut blocks = Vec::new();
    for _ in 0..2000 {
        // 3000 items that take no byte, within the bytes that are left.
        blocks.extend([0xf0, 0x2e]);
    }
    for (text, body) in [(whole(&text), vec![0; 8]), (whole(nulls), blocks)] {
        let start = std::time::Instant::now();
        let mut d = decoder(&options(Format::Avro), &text);
        let framed = frame(7, &body);
        let rejection = one(&mut d, &raw(&framed)).unwrap_err();
        assert_eq!(rejection.reason, Reason::Malformed);
        assert!(
            rejection.detail.contains("far more nodes"),
            "{}",
            rejection.detail
        );
        assert!(start.elapsed() < std::time::Duration::from_secs(2));
    }
}

#[test]
fn names_that_are_only_in_the_schema_take_a_bounded_text() {
    let name = |i: usize| format!("f{i}_{}", "n".repeat(1000));
    // Twenty fields of no byte in each of 5000 items.
    let fields: Vec<String> = (0..20)
        .map(|i| format!(r#"{{"name":"{}","type":"null"}}"#, name(i)))
        .collect();
    let wide = format!(
        r#"{{"type":"record","name":"Wide","fields":[{}]}}"#,
        fields.join(",")
    );
    let avro = format!(
        r#"{{"type":"record","name":"P","fields":[{{"name":"score","type":{{"type":"array","items":{wide}}}}}]}}"#
    );
    let mut items = vec![0x90, 0x4e];
    items.resize(5002, 0);
    // Twenty fields with their defaults in each of 100,000 messages of two bytes.
    let fields: Vec<String> = (0..20)
        .map(|i| format!("int32 {} = {};", name(i), i + 1))
        .collect();
    let proto = format!(
        "syntax = \"proto3\"; message P {{ repeated Wide score = 1; }} message Wide {{ {} }}",
        fields.concat()
    );
    let mut messages = vec![0];
    messages.extend([0x0a, 0].repeat(100_000));
    for (format, text, body) in [
        (Format::Avro, avro, items),
        (Format::Protobuf, proto, messages),
    ] {
        let start = std::time::Instant::now();
        let mut d = decoder(&options(format), &text);
        let framed = frame(7, &body);
        let rejection = one(&mut d, &raw(&framed)).unwrap_err();
        assert_eq!(rejection.reason, Reason::Malformed);
        let said = &rejection.detail;
        assert!(said.contains("far longer as text"), "{format:?}: {said}");
        assert!(start.elapsed() < std::time::Duration::from_secs(2));
    }
}
