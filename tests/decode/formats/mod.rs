//! Formats, frames, envelopes and rows from outside: whatever a record is written in, it is the
//! same event; and no bytes make a reader panic.

mod envelopes;
mod outcomes;
mod rows;
mod schemas;
mod values;

use crate::support::encode::Facts;
use trueline::collect::Event;
use trueline::decode::*;
use trueline::stats::view::Prediction;

const NOW: i64 = 1_760_000_000_000;

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
