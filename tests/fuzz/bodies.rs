//! What each fuzz target holds of any input. libFuzzer calls these from `fuzz_targets/` (nightly);
//! `tests/decode/fuzz.rs` calls them with its own mutations, so that `cargo test` runs them too.
#![allow(dead_code)]

use std::path::PathBuf;

use trueline::config::Config;
use trueline::config::value::Outside;
use trueline::decode::{
    DecodeOptions, Decoder, FieldOrConst, IdField, PredictionField, TimeField, TimeUnit,
};

/// Any bytes: the decoder never panics, and accepts nothing that serde_json takes for broken.
pub fn decode(bytes: &[u8]) {
    let vector = DecodeOptions {
        prediction: PredictionField::Vector("p".into()),
        ..DecodeOptions::default()
    };
    let map = DecodeOptions {
        prediction: PredictionField::ClassMap("p".into()),
        classes: vec!["a".into(), "b".into()],
        ..DecodeOptions::default()
    };
    for options in [DecodeOptions::default(), vector, map] {
        let mut decoder = Decoder::new(&options).expect("sound options");
        if decoder.decode(bytes, Some(b"key"), None).is_ok() {
            // A number that no float holds is sound JSON, and is passed over where nobody wants it.
            if let Err(error) = serde_json::from_slice::<serde_json::Value>(bytes) {
                assert!(error.to_string().contains("number out of range"), "{error}");
            }
        }
    }
}

/// Any lines: what a decoder makes of a record does not depend on the records before, whose layouts
/// and names it remembers.
pub fn layouts(bytes: &[u8]) {
    let text = |path: &str| FieldOrConst::Field(path.into());
    let named = DecodeOptions {
        version: Some(text("version")),
        segments: vec!["country".into(), "user.plan".into()],
        id: Some(IdField::Path("id".into())),
        ..DecodeOptions::default()
    };
    let timed = DecodeOptions {
        time: named.time.clone().map(|time| TimeField {
            unit: TimeUnit::Rfc3339,
            path: "at".into(),
            ..time
        }),
        ..named.clone()
    };
    for options in [named, timed] {
        let mut all = Decoder::new(&options).expect("sound options");
        for record in bytes.split(|&b| b == b'\n') {
            let mut one = Decoder::new(&options).expect("sound options");
            let expected = format!("{:?}", one.decode(record, None, Some(1)));
            assert_eq!(format!("{:?}", all.decode(record, None, Some(1))), expected);
        }
    }
}

/// Any text: a configuration is read or refused with at least one problem, each with a place and a
/// remedy; one that is read is read again, the same, from what `check` prints of it.
pub fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let outside = Outside {
        variable: &|name| (name == "SET").then(|| "7".to_owned()),
        directory: PathBuf::from("/nowhere"),
    };
    match Config::parse(text, "fuzz.toml", &outside) {
        Ok(config) => {
            let effective = config.effective();
            let again = Config::parse(&effective, "effective.toml", &outside);
            let again = again.unwrap_or_else(|p| panic!("{effective}\nis refused: {p:?}"));
            assert_eq!(again.plan, config.plan, "{effective}");
            assert_eq!(again.effective(), effective);
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            for p in problems {
                assert!(p.at.line >= 1 && p.at.column >= 1, "{p}");
                assert!(!p.what.is_empty() && !p.remedy.is_empty(), "{p}");
            }
        }
    }
}
