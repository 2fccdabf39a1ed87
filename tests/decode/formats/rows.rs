//! Each row of a record is an event, and a broken one costs only itself.

use super::{NOW, decoder, raw};
use crate::support::encode;
use crate::support::encode::frame;
use apache_avro::types::Value as Avro;
use serde_json::json;
use trueline::collect::Reason;
use trueline::decode::*;
use trueline::stats::view::{Outcome, Prediction};

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
