//! What documents say about tests: a command or a promise that names a test names one that exists.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All tests of each binary by their paths, such as `alarms::delay::…`.
fn tests() -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(root().join("tests")).expect("a folder of tests") {
        let folder = entry.expect("an entry").path();
        if folder.join("main.rs").exists() {
            let mut found = Vec::new();
            collect(&folder, "", &mut found);
            let name = folder.file_name().expect("a name").to_string_lossy();
            all.insert(name.into_owned(), found);
        }
    }
    all
}

/// Adds the tests of the files of a folder, whose modules are below `prefix`.
fn collect(folder: &Path, prefix: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy();
        if path.is_dir() {
            collect(&path, &format!("{prefix}{name}::"), found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let module = match &*name {
                "main" | "mod" => prefix.to_owned(),
                name => format!("{prefix}{name}::"),
            };
            let text = fs::read_to_string(&path).expect("text");
            found.extend(functions(&text).map(|test| format!("{module}{test}")));
        }
    }
}

/// The names of the functions below `#[test]`.
fn functions(text: &str) -> impl Iterator<Item = &str> {
    text.split("#[test]").skip(1).filter_map(|rest| {
        let (_, rest) = rest.split_once("fn ")?;
        Some(rest.split_once('(')?.0)
    })
}

/// The parts of a page between single backticks, outside of blocks of code.
fn spans(page: &str) -> Vec<&str> {
    let prose = page.split("```").step_by(2);
    prose
        .flat_map(|text| text.split('`').skip(1).step_by(2))
        .collect()
}

#[test]
fn every_test_that_the_readme_of_tests_or_the_numbers_name_exists() {
    let tests = tests();
    let mut seen = 0;
    for page in ["tests/README.md", "deploy/guide/numbers.md"] {
        let text = fs::read_to_string(root().join(page)).expect("a page");
        for span in spans(&text) {
            let (binary, filter) = span.split_once(' ').unwrap_or(("kafka", span));
            // Names without a module, as `simulator fleets_…`, begin with their binary.
            let whole = span.contains("::");
            let begins = span.contains(' ') && tests.contains_key(binary);
            if !(whole || begins) {
                continue;
            }
            let named = |test: &String| match whole {
                true => test.starts_with(filter),
                false => test.contains(filter),
            };
            let known = tests.get(binary).is_some_and(|all| all.iter().any(named));
            assert!(known, "{page} names `{span}`");
            seen += 1;
        }
    }
    assert!(seen > 50, "only {seen} names were found");
}

#[test]
fn every_command_of_a_document_names_a_test_binary_and_a_filter_that_finds_something() {
    let tests = tests();
    let mut seen = 0;
    for page in super::deploy::pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for command in text.split("--test ").skip(1) {
            let end = command.find(['`', '\n', '|']).unwrap_or(command.len());
            let mut words = command[..end].split_whitespace();
            let binary = words.next().unwrap_or_default();
            // Other programs have an option of that name: `trueline evaluate --test splitting`.
            let Some(all) = tests.get(binary) else {
                let ours = text.contains(&format!("cargo test --release --test {binary}"))
                    || text.contains(&format!("tests/run --test {binary}"));
                assert!(!ours, "{}: --test {binary}", page.display());
                continue;
            };
            let filter = words.next().filter(|w| !w.starts_with(['-', '#']));
            let found = filter.is_none_or(|f| all.iter().any(|test| test.contains(f)));
            assert!(found, "{}: --test {binary} {filter:?}", page.display());
            seen += 1;
        }
    }
    assert!(seen > 5, "only {seen} commands were found");
}
