//! Each field that is wanted: what is understood, and what is refused with its name and value.

use super::{NOW, accept, check, classes, flat, record, reject};
use trueline::collect::Reason;
use trueline::decode::*;
use trueline::stats::view::{Outcome, Prediction};

#[test]
fn a_good_record_becomes_the_event_that_it_says() {
    let o = DecodeOptions {
        version: Some(FieldOrConst::Field("meta.version".into())),
        segments: vec!["meta.country".into(), "tier".into()],
        id: Some(IdField::Path("id".into())),
        ..flat()
    };
    let text = format!(
        r#" {{"x":[1,{{"a":"]}}"}}],"id":17,"outcome":true,"meta":{{"z":null,"country":"d\u0065","version":"v=2"}},
        "score":0.30000000000000004,"tier":"a,b","time_ms":{NOW},"model":"fraud\n" }} "#
    );
    accept(&o, &text, |e| {
        assert_eq!((e.model, e.version), ("fraud\n", "v=2"));
        assert_eq!(e.segment, "meta.country=de,tier=a%2Cb");
        assert_eq!((e.id, e.time_ms), (&b"17"[..], NOW));
        assert_eq!(e.prediction, Prediction::Score(0.30000000000000004));
        assert_eq!(e.outcome, Some(Outcome::Binary(true)));
    });
}

#[test]
fn an_object_that_is_written_as_a_text_is_named() {
    let o = DecodeOptions {
        prediction: PredictionField::Score("body.payload.score".into()),
        ..flat()
    };
    let record = |payload: &str| {
        format!(r#"{{"model":"m","time_ms":{NOW},"outcome":1,"body":{{"payload":{payload}}}}}"#)
    };
    let said = [
        "field `body.payload.score` is missing",
        "`body.payload` is a text and not an object",
    ];
    let text = record(r#""{\"score\":0.5}""#);
    check(&o, &text, Reason::MissingField, &said);
    let plain = reject(&o, &record(r#"{"other":0.5}"#));
    assert!(!plain.detail.contains("a text"), "{}", plain.detail);
}

#[test]
fn a_segment_without_a_value_is_a_segment() {
    let o = DecodeOptions {
        segments: vec!["meta.country".into(), "tier".into()],
        ..flat()
    };
    for meta in [
        r#""meta":{"country":null},"#,
        r#""meta":{},"#,
        "",
        r#""meta":{"country":""},"#,
    ] {
        let text = format!(
            r#"{{{meta}"tier":"a","outcome":true,"score":0.5,"time_ms":{NOW},"model":"m"}}"#
        );
        accept(&o, &text, |e| assert_eq!(e.segment, "meta.country=,tier=a"));
    }
    let list = format!(
        r#"{{"meta":{{"country":[1]}},"tier":"a","outcome":true,"score":0.5,"time_ms":{NOW},"model":"m"}}"#
    );
    check(&o, &list, Reason::Malformed, &["`meta.country`", "[1]"]);
}

#[test]
fn a_number_names_a_class_where_all_names_are_numbers() {
    let named = |names: [&str; 3]| DecodeOptions {
        classes: names.map(str::to_owned).into(),
        ..classes(PredictionField::Vector("score".into()))
    };
    let stars = named(["1", "2", "-3"]);
    for (text, k) in [("1", 0), ("2", 1), ("2.0", 1), ("-3", 2), ("\"2\"", 1)] {
        accept(&stars, &record("[0.25,0.5,0.25]", text), |e| {
            assert_eq!(e.outcome, Some(Outcome::Class(k)), "{text}");
        });
    }
    for unknown in ["0", "3", "2.5"] {
        let record = record("[0.25,0.5,0.25]", unknown);
        check(
            &stars,
            &record,
            Reason::UnknownClass,
            &[unknown, "`classes`"],
        );
    }
    // Of names that are no numbers, or not all, a number is the index.
    for names in [["a", "b", "c"], ["a", "2", "1"], ["0", "1", "2"]] {
        accept(&named(names), &record("[0.25,0.5,0.25]", "2"), |e| {
            assert_eq!(e.outcome, Some(Outcome::Class(2)), "{names:?}");
        });
    }
}

#[test]
fn each_way_to_write_an_outcome_is_understood() {
    for (text, outcome) in [
        ("true", true),
        ("1", true),
        ("0", false),
        ("false", false),
        ("1.0", true),
    ] {
        accept(&flat(), &record("0.5", text), |e| {
            assert_eq!(e.outcome, Some(Outcome::Binary(outcome)));
        });
    }
    let o = classes(PredictionField::Vector("score".into()));
    for (text, k) in [("\"ox\"", 2), ("1", 1), ("\"c\\u0061t\"", 0)] {
        accept(&o, &record("[0.25, 0.5 ,0.25]", text), |e| {
            assert_eq!(e.outcome, Some(Outcome::Class(k)));
            assert_eq!(e.prediction, Prediction::Vector(&[0.25, 0.5, 0.25]));
        });
    }
    accept(&flat(), &record("0.5", "null"), |e| {
        assert_eq!(e.outcome, None)
    });
    for bad in ["2", "-1", "0.5", "[]", "{}"] {
        check(
            &flat(),
            &record("0.5", bad),
            Reason::BadOutcome,
            &["`outcome`", bad],
        );
    }
    check(
        &o,
        &record("[0.25,0.5,0.25]", "\"cow\""),
        Reason::UnknownClass,
        &["cow", "`classes`"],
    );
    check(
        &o,
        &record("[0.25,0.5,0.25]", "3"),
        Reason::UnknownClass,
        &["3"],
    );
    check(
        &o,
        &record("[0.25,0.5,0.25]", "true"),
        Reason::BadOutcome,
        &["true"],
    );
}

#[test]
fn a_score_that_is_no_probability_is_refused_with_its_value() {
    for (score, reason) in [
        ("NaN", Reason::ScoreNotFinite),
        ("-Infinity", Reason::ScoreNotFinite),
        ("1e999", Reason::ScoreNotFinite),
        ("-0.1", Reason::ScoreOutOfRange),
        ("1.2", Reason::ScoreOutOfRange),
        ("\"0.7\"", Reason::ScoreNotNumber),
        ("true", Reason::ScoreNotNumber),
        ("[0.5]", Reason::ScoreNotNumber),
        ("null", Reason::MissingField),
    ] {
        let words: &[&str] = if score == "null" {
            &["`score`"]
        } else {
            &["`score`", score]
        };
        check(&flat(), &record(score, "1"), reason, words);
    }
    accept(&flat(), &record("-0.0", "1"), |e| {
        assert_eq!(e.prediction, Prediction::Score(0.0))
    });
}

#[test]
fn a_vector_is_refused_for_its_sum_its_length_or_an_entry() {
    let o = classes(PredictionField::Vector("score".into()));
    check(
        &o,
        &record("[0.5,0.5,0.5]", "1"),
        Reason::VectorSum,
        &["1.5"],
    );
    check(
        &o,
        &record("[0.5,0.5]", "1"),
        Reason::VectorLength,
        &["2", "3"],
    );
    check(&o, &record("[]", "1"), Reason::VectorLength, &["0"]);
    check(
        &o,
        &record("[0.5,NaN,0.5]", "1"),
        Reason::ScoreNotFinite,
        &["NaN"],
    );
    check(
        &o,
        &record("[0.5,\"0.5\",0]", "1"),
        Reason::ScoreNotNumber,
        &["0.5"],
    );
    check(&o, &record("0.5", "1"), Reason::WrongShape, &["array"]);
    // f32 leaves such a sum.
    accept(&o, &record("[0.3333,0.3333,0.3333]", "1"), |_| ());
    let o = classes(PredictionField::ClassMap("score".into()));
    accept(
        &o,
        &record(r#"{"dog":0.5,"ox":0.25,"c\u0061t":0.25}"#, "1"),
        |e| {
            assert_eq!(e.prediction, Prediction::Vector(&[0.25, 0.5, 0.25]));
        },
    );
    check(
        &o,
        &record(r#"{"dog":0.5,"cow":0.5}"#, "1"),
        Reason::UnknownClass,
        &["cow"],
    );
    check(
        &o,
        &record(r#"{"dog":0.5,"cat":0.5}"#, "1"),
        Reason::VectorLength,
        &["class"],
    );
    check(
        &o,
        &record(r#"{"dog":0.5,"dog":0.5}"#, "1"),
        Reason::Malformed,
        &["twice"],
    );
}

#[test]
fn a_time_that_cannot_be_is_refused() {
    let at = |t: &str| record("0.5", "1").replace(&NOW.to_string(), t);
    for t in ["0", "-1", "1760000000", "7258118400000", "1760000000000000"] {
        check(&flat(), &at(t), Reason::TimeOutOfRange, &["`time_ms`", t]);
    }
    for t in ["\"2026-01-01T00:00:00Z\"", "true", "[1]"] {
        check(&flat(), &at(t), Reason::BadTime, &["`time_ms`"]);
    }
    let quoted = format!("\"{NOW}\"");
    let words = [&*quoted, "write the number without quotes"];
    check(&flat(), &at(&quoted), Reason::BadTime, &words);
    check(&flat(), &at("null"), Reason::MissingField, &["`time_ms`"]);
    let mut d = Decoder::new(&flat()).unwrap();
    let late = at(&(NOW + 2 * 86_400_000).to_string());
    let r = d.decode(late.as_bytes(), None, Some(NOW)).unwrap_err();
    assert_eq!(r.reason, Reason::TimeOutOfRange);
    let o = DecodeOptions {
        time: Some(TimeField {
            path: "time_ms".into(),
            unit: TimeUnit::Rfc3339,
            zone_s: None,
        }),
        ..flat()
    };
    accept(&o, &at("\"2025-10-09T08:53:20.000Z\""), |e| {
        assert_eq!(e.time_ms, NOW)
    });
}

#[test]
fn a_missing_field_an_empty_key_and_a_long_record_are_named() {
    check(&flat(), "{}", Reason::MissingField, &["`model`"]);
    check(
        &flat(),
        r#"{"model":"m"}"#,
        Reason::MissingField,
        &["`time_ms`"],
    );
    check(&flat(), r#"{"model":""}"#, Reason::EmptyKey, &["model"]);
    let o = DecodeOptions {
        id: Some(IdField::Key),
        ..flat()
    };
    let text = record("0.5", "1");
    let mut d = Decoder::new(&o).unwrap();
    for key in [None, Some(&b""[..])] {
        let r = d.decode(text.as_bytes(), key, None).unwrap_err();
        assert_eq!(r.reason, Reason::EmptyKey);
    }
    assert_eq!(
        d.decode(text.as_bytes(), Some(b"k"), None).unwrap().id,
        b"k"
    );
    let long = format!("{{\"x\":\"{}\"}}", "x".repeat(10 << 20));
    check(
        &flat(),
        &long,
        Reason::TooLarge,
        &["10485768", "`record_bytes_max`"],
    );
    assert!(
        reject(
            &flat(),
            &record(&format!("\"{}\"", "é".repeat(10_000)), "1")
        )
        .detail
        .len()
            < 400
    );
}

#[test]
fn options_that_cannot_work_are_refused_with_the_remedy() {
    for (o, word) in [
        (
            DecodeOptions {
                outcome: "score".into(),
                ..flat()
            },
            "two fields",
        ),
        (
            DecodeOptions {
                outcome: "score.x".into(),
                ..flat()
            },
            "another wanted field",
        ),
        (
            DecodeOptions {
                outcome: String::new(),
                ..flat()
            },
            "empty part",
        ),
        (
            DecodeOptions {
                prediction: PredictionField::ClassMap("p".into()),
                ..flat()
            },
            "`classes`",
        ),
        (
            DecodeOptions {
                classes: vec!["a".into(), "a".into()],
                ..flat()
            },
            "twice",
        ),
    ] {
        let text = Decoder::new(&o).err().unwrap().to_string();
        assert!(text.contains(word), "{text}");
    }
}
