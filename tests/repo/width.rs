//! Prose is at most 100 columns wide, in documents and in comments, so that it can be read beside
//! code.
//!
//! Not counted: tables, blocks of code, and a line that cannot be broken before its 100th column.

use std::fs;
use std::path::{Path, PathBuf};

const COLUMNS: usize = 100;

/// Whether a line is too long and has a place where it could be broken.
fn is_wide(line: &str) -> bool {
    let text = line.trim_start_matches(['/', '!', ' ', '*', '-']);
    let mark = line.chars().count() - text.chars().count();
    // A span of code or a link stays on one line.
    let breaks = text.chars().take(COLUMNS - mark).scan(false, |code, c| {
        *code ^= c == '`';
        Some(c == ' ' && !*code)
    });
    line.chars().count() > COLUMNS && breaks.clone().any(|at| at)
}

/// The numbers of the lines of prose that are too wide.
fn wide(lines: impl Iterator<Item = (usize, String)>) -> Vec<usize> {
    let mut code = false;
    let prose = lines.filter(|(_, line)| {
        let text = line.trim_start_matches(['/', '!', ' ']);
        let fence = text.starts_with("```");
        code ^= fence;
        !code && !fence && !text.starts_with('|')
    });
    let wide = prose.filter(|(_, line)| is_wide(line));
    wide.map(|(number, _)| number).collect()
}

/// The lines of a document, or the comments of a source file that stand on lines of their own.
fn prose(path: &Path) -> impl Iterator<Item = (usize, String)> {
    let text = fs::read_to_string(path).expect("text");
    let source = path.extension().is_some_and(|e| e == "rs");
    let lines: Vec<(usize, String)> = (1..)
        .zip(text.lines().map(str::to_owned))
        .filter(|(_, line)| !source || line.trim_start().starts_with("//"))
        .collect();
    lines.into_iter()
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs" || e == "md") {
            found.push(path);
        }
    }
}

#[test]
fn prose_is_at_most_100_columns_wide() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = vec![root.join("README.md"), root.join("CHANGELOG.md")];
    for folder in ["src", "tests", "benches", "deploy"] {
        files(&root.join(folder), &mut all);
    }
    // Each paragraph of a page that the tables of keys and metrics make is one line.
    all.retain(|path| !path.ends_with("deploy/prometheus/README.md"));
    assert!(all.len() > 500, "only {} files were found", all.len());
    let faults = all.iter().flat_map(|path| {
        let name = path
            .strip_prefix(root)
            .unwrap_or(path)
            .display()
            .to_string();
        let lines = wide(prose(path)).into_iter();
        lines.map(move |line| format!("{name}:{line}"))
    });
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "too wide:\n{}", faults.join("\n"));
}

#[test]
fn a_wide_line_is_found_and_a_table_or_a_link_is_not() {
    let words = "word ".repeat(30);
    let of = |text: &str| wide((1..).zip(text.lines().map(str::to_owned))).len();
    assert_eq!(of(&words), 1);
    assert_eq!(of(&format!("//! {words}")), 1);
    assert_eq!(of(&format!("* {words}")), 1);
    assert_eq!(of(&format!("| {words} |")), 0);
    assert_eq!(of(&format!("```text\n{words}\n```\n{words}")), 1);
    assert_eq!(of(&format!("  [x]({})", "y".repeat(120))), 0);
    assert_eq!(of(&format!("`{words}`")), 0);
}
