//! Any bytes: the decoder never panics, and accepts nothing that serde_json takes for broken.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trueline::decode::{Decoder, DecodeOptions, PredictionField};

fuzz_target!(|bytes: &[u8]| {
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
        let Ok(mut decoder) = Decoder::new(&options) else {
            continue;
        };
        if decoder.decode(bytes, Some(b"key"), None).is_ok() {
            assert!(serde_json::from_slice::<serde_json::Value>(bytes).is_ok());
        }
    }
});
