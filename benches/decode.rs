//! Nanoseconds to decode one event of 200 bytes of JSON, beside serde_json into a struct fixed at
//! compile time, in the same run. `cargo bench --bench decode`.
//!
//! The struct is the fastest that serde_json offers (borrowed strings, no allocation), and does
//! less: it checks no range and knows its fields beforehand. Half of the scores have 4 digits, half
//! 16 or 17.

#[path = "../tests/support/encode.rs"]
mod encode;

use serde::Deserialize;
use std::hint::black_box;
use std::time::Instant;
use trueline::decode::{
    DecodeOptions, Decoder, FieldOrConst, Format, IdField, Packing, Raw, SchemaText,
};

#[derive(Deserialize)]
#[allow(dead_code)]
struct Fixed<'a> {
    model: &'a str,
    version: &'a str,
    country: &'a str,
    request_id: &'a str,
    time_ms: i64,
    score: f64,
    outcome: bool,
}

fn records(n: usize) -> Vec<Vec<u8>> {
    let mut x = 0x9E37_79B9_7F4A_7C15u64;
    (0..n)
        .map(|i| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            let z = (x >> 11) as f64 / (1u64 << 53) as f64;
            let score = if i % 2 == 0 { format!("{z:.4}") } else { z.to_string() };
            let mut r = format!(
                r#"{{"model":"fraud","version":"2026-11-03","country":"de","request_id":"{x:016x}","time_ms":{},"score":{score},"outcome":{},"host":"scorer-7","note":""#,
                1_760_000_000_000u64 + i as u64,
                x & 1 == 0,
            );
            while r.len() < 198 {
                r.push('x');
            }
            r.push_str("\"}");
            r.into_bytes()
        })
        .collect()
}

/// The best of many passes over all records, each short enough to fall between two interruptions.
fn best(records: &[Vec<u8>], mut f: impl FnMut(&[u8])) -> f64 {
    (0..500)
        .map(|_| {
            let start = Instant::now();
            for r in records {
                f(r);
            }
            start.elapsed().as_nanos() as f64 / records.len() as f64
        })
        .fold(f64::INFINITY, f64::min)
}

fn main() {
    let records = records(4_000);
    let bytes: usize = records.iter().map(Vec::len).sum();
    let options = DecodeOptions {
        version: Some(FieldOrConst::Field("version".into())),
        segments: vec!["country".into()],
        id: Some(IdField::Path("request_id".into())),
        ..DecodeOptions::default()
    };
    let mut decoder = match Decoder::new(&options) {
        Ok(d) => d,
        Err(e) => return println!("{e}"),
    };
    let ours = best(&records, |r| {
        let e = decoder.decode(r, None, None);
        assert!(black_box(e).is_ok());
    });
    let theirs = best(&records, |r| {
        let e: Result<Fixed<'_>, _> = serde_json::from_slice(r);
        assert!(black_box(e).is_ok());
    });
    println!(
        "decode: {ours:.0} ns an event of {} bytes; serde_json into a struct: {theirs:.0} ns; ratio {:.2}",
        bytes / records.len(),
        ours / theirs
    );
    for (format, text, schema) in [
        (Format::Json, "json", ""),
        (Format::Avro, "avro", encode::AVRO),
        (Format::Protobuf, "protobuf", encode::PROTO),
    ] {
        framed(format, text, schema);
    }
}

/// The same facts in the frame of a registry, by format.
fn framed(format: Format, name: &str, text: &str) {
    let pool = encode::pool(encode::PROTO);
    let records: Vec<Vec<u8>> = (0..4_000)
        .map(|i| {
            let facts = encode::Facts {
                model: format!("model-{}", i % 5),
                version: i % 3,
                country: "de".into(),
                id: format!("request-{i}"),
                time_ms: 1_760_000_000_000 + i,
                score: (i * 7919 % 10_007) as f64 / 10_007.0,
                outcome: Some(i % 3 == 0),
            };
            let data = match format {
                Format::Json => encode::as_json(&facts).to_string().into_bytes(),
                Format::Avro => encode::as_avro(&facts),
                Format::Protobuf => encode::as_protobuf(&pool, &facts),
            };
            encode::frame(1, &data)
        })
        .collect();
    let options = DecodeOptions {
        version: Some(FieldOrConst::Field("meta.version".into())),
        segments: vec!["meta.country".into()],
        id: Some(IdField::Path("id".into())),
        packing: Packing {
            format,
            ..Packing::default()
        },
        ..DecodeOptions::default()
    };
    let Ok(mut decoder) = Decoder::new(&options) else {
        return;
    };
    decoder.learn(
        1,
        &SchemaText {
            format,
            text: text.to_owned(),
            references: Vec::new(),
        },
    );
    let ns = best(&records, |payload| {
        let raw = Raw {
            payload,
            key: None,
            timestamp_ms: None,
            headers: &(),
        };
        assert!(decoder.open(&raw).is_ok());
        assert!(black_box(decoder.event(&raw, 0)).is_ok());
    });
    println!(
        "framed {name}: {ns:.0} ns an event of {} bytes",
        records[0].len()
    );
}
