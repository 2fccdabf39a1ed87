//! Bad data goes through decoder, engine and exposition: the message names the field and the
//! remedy, one counter rises by one on `/metrics`, and the good record behind it counts as if
//! nothing had been. Bad surroundings and configurations need a process, a broker or a file each
//! and are tested where those are.

use crate::support::records::origin;

use trueline::collect::{Disposition, Reason, Segmenting};
use trueline::decode::{DecodeOptions, Decoder, IdField, PredictionField};
use trueline::judge::JudgeOptions;
use trueline::monitor::{Engine, ModelPlan, Plan, RecordSink};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::view::View;
use trueline::telemetry::facts::SourceFacts;
use trueline::telemetry::published::Published;
use trueline::window::{Ladder, WindowSpec};

const NOW_MS: i64 = 1_760_000_000_000;

fn engine(views: Vec<View>, classes: &[&str], name: &str) -> Engine {
    Engine::new(Plan {
        models: vec![ModelPlan {
            name: name.to_owned(),
            segmenting: Segmenting::default(),
            views,
            classes: classes.iter().map(|&c| c.to_owned()).collect(),
            ladder: Ladder::new(vec![WindowSpec::time("5m", 300_000)], 10_000).expect("a ladder"),
            grid: Grid::new(Axis::Linear, 12),
            judge: JudgeOptions::plain(),
        }],
        ..Plan::default()
    })
}

/// Feeds the bad record and a good one behind it; returns the reason and the words of the first.
fn feed(options: &DecodeOptions, engine: &mut Engine, bad: &[u8], good: &str) -> (Reason, String) {
    let mut decoder = Decoder::new(options).expect("sound options");
    let origin = |offset| origin(0, 0, offset);
    let key = (options.id.is_none()).then_some(&b"k"[..]);
    let (reason, words) = match decoder.decode(bad, key, Some(NOW_MS)) {
        Ok(event) => match engine.observe(origin(0), &event) {
            Disposition::Rejected(reason) => (reason, reason.words().to_owned()),
            other => panic!("{other:?}: {}", String::from_utf8_lossy(bad)),
        },
        Err(rejection) => {
            engine.reject(origin(0), None, rejection.reason);
            (rejection.reason, rejection.detail)
        }
    };
    let event = decoder.decode(good.as_bytes(), Some(b"k"), Some(NOW_MS));
    let end = engine.observe(origin(1), &event.expect("a good record"));
    assert_eq!(end, Disposition::Observed);
    (reason, words)
}

/// The counters of the first source as `/metrics` shows them, those above 0.
fn shown(engine: &Engine) -> Vec<String> {
    let published = Published::default();
    let all = engine.counters();
    let (_, counters) = all.sources().next().expect("a source");
    published.update(|facts| {
        facts.sources = vec![SourceFacts {
            name: "topic".to_owned(),
            counters: counters.clone(),
            ..SourceFacts::default()
        }];
    });
    let text = trueline::telemetry::scrape::text(&published).expect("an exposition");
    let text = String::from_utf8(text).expect("text");
    let above = |line: &&str| line.starts_with("trueline_records_total") && !line.ends_with(" 0");
    text.lines().filter(above).map(str::to_owned).collect()
}

fn check(options: &DecodeOptions, mut engine: Engine, bad: &[u8], reason: Reason, words: &[&str]) {
    let good = match &options.prediction {
        PredictionField::Score(_) => record("0.25", NOW_MS),
        _ => record("[0.5,0.25,0.25]", NOW_MS),
    };
    let (found, said) = feed(options, &mut engine, bad, &good);
    let shows = String::from_utf8_lossy(&bad[..bad.len().min(100)]).into_owned();
    assert_eq!(found, reason, "{shows}: {said}");
    for word in words {
        assert!(said.contains(word), "{shows}: `{word}` not in: {said}");
    }
    let rejected = format!(
        "trueline_records_total{{source=\"topic\",disposition=\"rejected\",reason=\"{}\"}} 1",
        reason.as_str()
    );
    let observed =
        "trueline_records_total{source=\"topic\",disposition=\"observed\",reason=\"\"} 1";
    let mut expected = [observed.to_owned(), rejected];
    let mut lines = shown(&engine);
    expected.sort();
    lines.sort();
    assert_eq!(lines, expected, "{shows}");
}

fn record(score: &str, time_ms: i64) -> String {
    format!(r#"{{"model":"m","time_ms":{time_ms},"score":{score},"outcome":1}}"#)
}

#[test]
fn each_bad_record_gets_its_message_one_counter_and_costs_nothing_else() {
    let flat = DecodeOptions::default();
    let check_flat = |bad: &str, reason, words: &[&str]| {
        let engine = engine(vec![View::Binary], &[], "*");
        check(&flat, engine, bad.as_bytes(), reason, words);
    };
    check_flat(
        "{\"model\":",
        Reason::Malformed,
        &["byte 9", "one JSON object"],
    );
    let missing = r#"{"model":"m","time_ms":1760000000000,"outcome":1}"#;
    check_flat(missing, Reason::MissingField, &["`score`", "must carry"]);
    for (score, reason) in [
        ("NaN", Reason::ScoreNotFinite),
        ("-0.1", Reason::ScoreOutOfRange),
        ("1.2", Reason::ScoreOutOfRange),
        ("\"0.7\"", Reason::ScoreNotNumber),
    ] {
        check_flat(&record(score, NOW_MS), reason, &["`score`", score]);
    }
    check_flat(
        &record("0.5", 0),
        Reason::TimeOutOfRange,
        &["`time_ms`", "0"],
    );
    check_flat(
        &record("0.5", 7_258_118_400_000),
        Reason::TimeOutOfRange,
        &["`time_ms`", "7258118400000"],
    );
    let nameless = record("0.5", NOW_MS).replace("\"m\"", "\"\"");
    check_flat(&nameless, Reason::EmptyKey, &["model"]);
    let huge = format!("{{\"x\":\"{}\"}}", "x".repeat(10 << 20));
    check_flat(&huge, Reason::TooLarge, &["`record_bytes_max`"]);
}

#[test]
fn each_bad_vector_and_an_empty_key_get_theirs_too() {
    let vector = DecodeOptions {
        prediction: PredictionField::Vector("score".into()),
        classes: ["cat", "dog", "ox"].map(String::from).to_vec(),
        ..DecodeOptions::default()
    };
    let classes = || engine(vec![View::TopLabel], &["cat", "dog", "ox"], "*");
    let bad = record("[0.5,0.5,0.5]", NOW_MS);
    check(
        &vector,
        classes(),
        bad.as_bytes(),
        Reason::VectorSum,
        &["`score`", "1.5"],
    );
    let unknown = record("[0.5,0.25,0.25]", NOW_MS).replace("\"outcome\":1", "\"outcome\":\"cow\"");
    check(
        &vector,
        classes(),
        unknown.as_bytes(),
        Reason::UnknownClass,
        &["cow", "classes"],
    );
    let keyed = DecodeOptions {
        id: Some(IdField::Key),
        ..DecodeOptions::default()
    };
    let good = record("0.5", NOW_MS);
    check(
        &keyed,
        engine(vec![View::Binary], &[], "*"),
        good.as_bytes(),
        Reason::EmptyKey,
        &["key"],
    );
}

#[test]
fn what_only_the_engine_can_refuse_has_words_too() {
    let flat = DecodeOptions::default();
    let mut elsewhere = engine(vec![View::Binary], &[], "another");
    let mut decoder = Decoder::new(&flat).expect("sound options");
    let good = record("0.5", NOW_MS);
    let event = decoder.decode(good.as_bytes(), None, None).expect("good");
    let origin = origin(0, 0, 0);
    let end = elsewhere.observe(origin, &event);
    assert_eq!(end, Disposition::Rejected(Reason::UnknownModel));
    assert!(Reason::UnknownModel.words().contains("[[model]]"));
    for reason in Reason::ALL {
        assert!(reason.words().len() > 20, "{reason:?}");
    }
}
