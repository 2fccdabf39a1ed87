//! The source of the crate as text: files, and code without comments, strings and tests.

use std::path::{Path, PathBuf};

/// A file that a `#[cfg(test)] mod tests;` elsewhere brings in.
pub fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

pub fn identifier(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

/// Occurrences of `word` that are not part of a longer identifier.
pub fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).filter(move |(at, w)| {
        let before = code[..*at].chars().next_back();
        let after = code[at + w.len()..].chars().next();
        let free_before = !w.starts_with(part) || !before.is_some_and(part);
        let free_after = !w.ends_with(part) || !after.is_some_and(part);
        free_before && free_after
    })
}

pub fn line_of(code: &str, at: usize) -> usize {
    code[..at].matches('\n').count() + 1
}

/// Blanks every item under `#[cfg(test)]`, to its closing brace or semicolon, keeping lines.
pub fn blank_tests(code: &str) -> String {
    let mut out = code.to_string();
    while let Some(start) = out.find("#[cfg(test)]") {
        let mut depth = 0;
        let mut end = out.len();
        for (i, c) in out[start..].char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 && (c == '}' || c == ';') {
                end = start + i + 1;
                break;
            }
        }
        let blank: String = out[start..end]
            .chars()
            .map(|c| if c == '\n' { c } else { ' ' })
            .collect();
        out.replace_range(start..end, &blank);
    }
    out
}

/// Replaces comments and the insides of string and character literals by spaces, keeping lines.
pub fn blank_comments_and_strings(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = literal_or_comment_end(&chars, at);
        if end > at {
            out.extend(
                chars[at..end]
                    .iter()
                    .map(|&c| if c == '\n' { c } else { ' ' }),
            );
            at = end;
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}

/// Where the comment or literal that begins at `at` ends, or `at` when none begins there.
fn literal_or_comment_end(chars: &[char], at: usize) -> usize {
    let is = |i: usize, c: char| chars.get(i) == Some(&c);
    match chars[at] {
        '/' if is(at + 1, '/') => skip_until(chars, at, |i| chars[i] == '\n'),
        '/' if is(at + 1, '*') => block_comment_end(chars, at),
        '"' => quoted_end(chars, at, '"'),
        'r' if raw_string_hashes(chars, at).is_some() => raw_string_end(chars, at),
        // A lifetime has no closing quote two characters on; a character literal has, or an escape.
        '\'' if is(at + 1, '\\') || is(at + 2, '\'') => quoted_end(chars, at, '\''),
        _ => at,
    }
}

fn skip_until(chars: &[char], from: usize, stop: impl Fn(usize) -> bool) -> usize {
    (from..chars.len())
        .find(|&i| stop(i))
        .unwrap_or(chars.len())
}

fn block_comment_end(chars: &[char], at: usize) -> usize {
    let (mut depth, mut i) = (0, at);
    while i + 1 < chars.len() {
        match (chars[i], chars[i + 1]) {
            ('/', '*') => (depth, i) = (depth + 1, i + 2),
            ('*', '/') => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            return i;
        }
    }
    chars.len()
}

fn quoted_end(chars: &[char], at: usize, quote: char) -> usize {
    let mut i = at + 1;
    while i < chars.len() && chars[i] != quote {
        i += if chars[i] == '\\' { 2 } else { 1 };
    }
    (i + 1).min(chars.len())
}

/// Number of `#` of a raw string that begins at `at`, or None when none does.
fn raw_string_hashes(chars: &[char], at: usize) -> Option<usize> {
    if at > 0 && (chars[at - 1].is_alphanumeric() && chars[at - 1] != 'b' || chars[at - 1] == '_') {
        return None;
    }
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    (chars.get(at + 1 + hashes) == Some(&'"')).then_some(hashes)
}

fn raw_string_end(chars: &[char], at: usize) -> usize {
    let hashes = raw_string_hashes(chars, at).unwrap_or(0);
    let closes = |i: usize| {
        chars[i] == '"'
            && chars[i + 1..]
                .iter()
                .take(hashes)
                .filter(|c| **c == '#')
                .count()
                == hashes
    };
    (skip_until(chars, at + 2 + hashes, closes) + 1 + hashes).min(chars.len())
}

/// All files under `src`, as (path relative to `src`, text).
pub fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("src can be listed") {
            let path = entry.expect("src can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let name = path
                    .strip_prefix(&root)
                    .expect("under src")
                    .to_string_lossy()
                    .into_owned();
                found.push((
                    name,
                    std::fs::read_to_string(&path).expect("source can be read"),
                ));
            }
        }
    }
    found
}
