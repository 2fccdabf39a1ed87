//! Every bad file is refused with exactly the messages beside it, and no text makes the reader
//! panic.

use crate::{parse, root, same_as_file};
use std::fs;
use std::path::PathBuf;

#[test]
fn every_bad_file_gets_exactly_the_messages_beside_it() {
    let directory = root().join("tests/config/bad");
    let mut names: Vec<PathBuf> = fs::read_dir(&directory)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .collect();
    names.sort();
    assert!(names.len() >= 10, "bad files are missing");
    for path in names {
        let text = fs::read_to_string(&path).unwrap();
        let Err(problems) = parse(&text) else {
            panic!("{} was accepted", path.display());
        };
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        same_as_file(&path.with_extension("txt"), &(lines.join("\n") + "\n"));
    }
}

#[test]
fn arbitrary_text_is_refused_or_read_and_never_panics() {
    use proptest::prelude::*;
    let words = prop::sample::select(vec![
        "version = 1\n",
        "[kafka]\n",
        "[[source]]\n",
        "[source.fields]\n",
        "[[model]]\n",
        "name",
        " = ",
        "\"",
        "${",
        "}",
        "[",
        "]",
        "{",
        "windows",
        "last",
        "9223372036854775808",
        "-1",
        "1e999",
        "nan",
        "5m",
        "ä",
        "\n",
        ",",
        "brokers",
        "options",
        "\\u0000",
        "topics",
        "level",
        "'",
    ]);
    let text = prop::collection::vec(words, 0..40).prop_map(|v| v.concat());
    proptest!(ProptestConfig::with_cases(2000), |(text in text)| {
        if let Err(problems) = parse(&text) {
            prop_assert!(!problems.is_empty());
            for p in problems {
                prop_assert!(p.at.line >= 1 && p.at.column >= 1);
                prop_assert!(!p.what.is_empty() && !p.remedy.is_empty());
            }
        }
    });
}
