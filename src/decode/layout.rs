//! Layouts of records: what the records of one producer have in common.
//!
//! A producer writes the same bytes between the values of its records. A [`Layout`] holds these bytes, and
//! where the scalar values are between them. A record that has the layout is read by comparing the bytes
//! and scanning the values only, about three times as fast as by the scanner. Any other record goes to the
//! scanner, and may teach another layout.
//!
//! A match gives what the scanner gives, to the last position. A layout comes from a record that the scanner
//! has accepted. A record that matches it differs in scalar values alone, each of which the scanner's own
//! [`Scanner::value`] has accepted in its place. Keys, nesting and duplicates are in the bytes that are
//! compared. Records in which a wanted value is an array or an object teach nothing, because their
//! values have no fixed number.
//!
//! Learning costs about two scans, and a layout that does not match costs a comparison. So at most
//! [`LAYOUTS_MAX`] are kept, hits pay for learning, and where records match nothing for a while, none is
//! tried until the next lesson.

use super::found::{Found, Kind};
use super::scan::Scanner;
use super::words;

/// Most layouts to keep: records of a topic come from a few producers, some with fields that are optional.
const LAYOUTS_MAX: usize = 6;
/// Most values of a record that teaches.
const VALUES_MAX: usize = 128;
/// Longest record that teaches.
const BYTES_MAX: usize = 16 << 10;
/// What a lesson costs, in hits.
const LESSON: u32 = 16;
/// Credit at the begin, and at most.
const CREDIT_MAX: u32 = 8 * LESSON;
/// After so many misses in a row no layout is tried.
const TIRED: u32 = 64;
/// After so many misses in a row there is another lesson.
const REST: u32 = 2048;
/// In place of a slot: the value is not wanted.
const UNWANTED: usize = usize::MAX;

const TRUE: u32 = u32::from_le_bytes(*b"true");
const NULL: u32 = u32::from_le_bytes(*b"null");
const FALS: u32 = u32::from_le_bytes(*b"fals");

/// A scalar value and the bytes in front of it.
struct Part {
    /// The first sixteen of these bytes, in two words.
    words: [u64; 2],
    /// The bits of the words that count.
    masks: [u64; 2],
    /// Those that follow.
    more: Box<[u8]>,
    /// Number of all.
    length: usize,
    slot: usize,
}

/// The bytes that records have in common. See the module.
struct Layout {
    parts: Vec<Part>,
    /// The bytes after the last value.
    tail: Box<[u8]>,
    /// Wanted values that these records do not have.
    missing: Vec<usize>,
    /// When it last matched, in lookups.
    used: u64,
}

impl Layout {
    /// The layout of a record that the scanner has accepted, with what it found.
    fn of(record: &[u8], found: &[Found]) -> Option<Layout> {
        if record.len() > BYTES_MAX {
            return None;
        }
        let mut layout = Layout {
            parts: Vec::new(),
            tail: [].into(),
            missing: Vec::new(),
            used: 0,
        };
        let mut slots: Vec<(usize, usize)> = Vec::new();
        for (slot, found) in found.iter().enumerate() {
            match found.kind {
                Kind::Missing => layout.missing.push(slot),
                Kind::Array | Kind::Object => return None,
                // Positions of texts exclude their quotes.
                Kind::Text | Kind::EscapedText => slots.push((found.start - 1, slot)),
                _ => slots.push((found.start, slot)),
            }
        }
        let mut s = Scanner {
            bytes: record,
            at: 0,
        };
        let mut from = 0;
        while let Some(byte) = s.peek() {
            let start = s.at;
            if matches!(
                byte,
                b'{' | b'}' | b'[' | b']' | b':' | b',' | b' ' | b'\n' | b'\r' | b'\t'
            ) {
                s.at += 1;
                continue;
            }
            // NaN is allowed here wherever the scanner has allowed it.
            s.value(true, 0).ok()?;
            let end = s.at;
            s.space();
            if s.peek() == Some(b':') {
                // A key.
                continue;
            }
            if layout.parts.len() == VALUES_MAX {
                return None;
            }
            let slot = slots.iter().find(|(at, _)| *at == start);
            let slot = slot.map_or(UNWANTED, |(_, slot)| *slot);
            layout.parts.push(Part::new(&record[from..start], slot));
            from = end;
        }
        layout.tail = record[from..].into();
        Some(layout)
    }

    /// Finds the values of a record that has this layout, and sets the slots of all.
    #[inline(always)]
    fn find(&self, record: &[u8], lenient: usize, found: &mut [Found]) -> bool {
        let mut at = 0;
        for part in &self.parts {
            if !part.begins(&record[at..]) {
                return false;
            }
            at += part.length;
            let slot = found.get_mut(part.slot);
            at = match usual_value(record, at) {
                Some((value, next)) => {
                    if let Some(slot) = slot {
                        *slot = value;
                    }
                    next
                }
                None => match other_value(record, at, part.slot == lenient, slot) {
                    Some(next) => next,
                    None => return false,
                },
            };
        }
        let rest = &record[at..];
        if rest.len() != self.tail.len() || rest.iter().ne(&self.tail) {
            return false;
        }
        for &slot in &self.missing {
            found[slot] = Found::MISSING;
        }
        true
    }
}

impl Part {
    fn new(before: &[u8], slot: usize) -> Part {
        let mut bytes = [[0; 8]; 2];
        let mut masks = [[0; 8]; 2];
        for (i, &byte) in before.iter().take(16).enumerate() {
            bytes[i / 8][i % 8] = byte;
            masks[i / 8][i % 8] = u8::MAX;
        }
        Part {
            words: bytes.map(u64::from_le_bytes),
            masks: masks.map(u64::from_le_bytes),
            more: before.get(16..).unwrap_or_default().into(),
            length: before.len(),
            slot,
        }
    }

    /// Whether the bytes in front of the value are those that come next.
    #[inline(always)]
    fn begins(&self, next: &[u8]) -> bool {
        let Some((first, more)) = next.split_first_chunk::<16>() else {
            return self.ends(next);
        };
        let (a, b) = (
            u128::from_le_bytes(*first) as u64,
            (u128::from_le_bytes(*first) >> 64) as u64,
        );
        let differ = ((a ^ self.words[0]) & self.masks[0]) | ((b ^ self.words[1]) & self.masks[1]);
        differ == 0 && (self.more.is_empty() || more.starts_with(&self.more))
    }

    /// The same where fewer than sixteen bytes are left.
    #[inline(never)]
    fn ends(&self, next: &[u8]) -> bool {
        let bytes = self.words.iter().flat_map(|word| word.to_le_bytes());
        self.length <= next.len() && bytes.zip(next).take(self.length).all(|(a, b)| a == *b)
    }
}

/// A value as most are, a text without escapes, a number without sign and exponent, or a literal, and where it ends in
/// the record; `None` leaves it to the scanner.
#[inline(always)]
fn usual_value(record: &[u8], at: usize) -> Option<(Found, usize)> {
    let first = *record.get(at)?;
    if first == b'"' {
        let mut end = at + 1;
        loop {
            let marks = words::special(words::word_or_quotes(record, end));
            if marks == 0 {
                end += 8;
                continue;
            }
            end += words::before(marks);
            break;
        }
        let text = Found {
            kind: Kind::Text,
            start: at + 1,
            end,
        };
        return (record.get(end) == Some(&b'"')).then_some((text, end + 1));
    }
    if let Some(word) = words::word_at(record, at) {
        let literal = match word as u32 {
            TRUE => Some((Kind::True, 4)),
            NULL => Some((Kind::Null, 4)),
            FALS if (word >> 32) as u8 == b'e' => Some((Kind::False, 5)),
            _ => None,
        };
        if let Some((kind, length)) = literal {
            let (start, end) = (at, at + length);
            return Some((Found { kind, start, end }, end));
        }
    }
    let digits = words::digits_at(record, at);
    if digits == 0 || (first == b'0' && digits > 1) {
        return None;
    }
    let mut end = at + digits;
    if record.get(end) == Some(&b'.') {
        let decimals = words::digits_at(record, end + 1);
        if decimals == 0 {
            return None;
        }
        end += 1 + decimals;
    }
    let number = Found {
        kind: Kind::Number,
        start: at,
        end,
    };
    let ends = !matches!(record.get(end), Some(b'e' | b'E'));
    ends.then_some((number, end))
}

/// Any other scalar value, put into its slot. Answers where it ends; `None` if there is none.
#[inline(never)]
fn other_value(record: &[u8], at: usize, lenient: bool, slot: Option<&mut Found>) -> Option<usize> {
    let mut s = Scanner { bytes: record, at };
    if matches!(s.peek(), Some(b'{' | b'[')) {
        return None;
    }
    let value = s.value(lenient, 0).ok()?;
    if let Some(slot) = slot {
        *slot = value;
    }
    Some(s.at)
}

/// The layouts of a source.
pub(super) struct Layouts {
    all: Vec<Layout>,
    /// The one that matched last.
    last: usize,
    lookups: u64,
    credit: u32,
    /// Misses in a row.
    misses: u32,
}

impl Layouts {
    /// None yet.
    pub fn new() -> Layouts {
        Layouts {
            all: Vec::new(),
            last: 0,
            lookups: 0,
            credit: CREDIT_MAX,
            misses: 0,
        }
    }

    /// Finds the values of a record that has a known layout, and sets the slots of all. `found` may hold
    /// anything after an answer of `false`.
    #[inline]
    pub fn find(&mut self, record: &[u8], lenient: usize, found: &mut [Found]) -> bool {
        self.lookups += 1;
        if self.misses >= TIRED {
            return false;
        }
        if let Some(layout) = self.all.get_mut(self.last)
            && layout.find(record, lenient, found)
        {
            layout.used = self.lookups;
            self.hit();
            return true;
        }
        self.find_other(record, lenient, found)
    }

    fn find_other(&mut self, record: &[u8], lenient: usize, found: &mut [Found]) -> bool {
        for (i, layout) in self.all.iter_mut().enumerate() {
            if i == self.last {
                continue;
            }
            if layout.find(record, lenient, found) {
                layout.used = self.lookups;
                self.last = i;
                self.hit();
                return true;
            }
        }
        false
    }

    #[inline]
    fn hit(&mut self) {
        self.credit = (self.credit + 1).min(CREDIT_MAX);
        self.misses = 0;
    }

    /// A record had no known layout, and the scanner found this.
    #[cold]
    pub fn learn(&mut self, record: &[u8], found: &[Found]) {
        self.misses = self.misses.saturating_add(1);
        if self.misses >= REST {
            (self.misses, self.credit) = (0, self.credit.max(LESSON));
        }
        if self.credit < LESSON || self.misses >= TIRED {
            return;
        }
        self.credit -= LESSON;
        let Some(mut layout) = Layout::of(record, found) else {
            return;
        };
        layout.used = self.lookups;
        if self.all.len() < LAYOUTS_MAX {
            self.last = self.all.len();
            self.all.push(layout);
            return;
        }
        let oldest = self.all.iter().enumerate().min_by_key(|(_, l)| l.used);
        if let Some((i, _)) = oldest {
            self.all[i] = layout;
            self.last = i;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::path::Paths;

    /// A small generator; its numbers need no quality.
    struct Draws(u64);

    impl Draws {
        fn next(&mut self, below: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % below as u64) as usize
        }

        fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
            all[self.next(all.len())]
        }
    }

    const VALUES: [&str; 24] = [
        "0",
        "-0.5",
        "1e-7",
        "0.123456789012345678",
        "17",
        "true",
        "false",
        "null",
        "NaN",
        "-Infinity",
        "Infinity",
        "\"\"",
        "\"a\"",
        "\"with \\\"quotes\\\"\"",
        "\"\\u00e9\\ud83d\\ude00\"",
        "\"ü\"",
        "\"sixteen characters and more\"",
        "[]",
        "[1,2]",
        "{}",
        "{\"p\":1}",
        "\"{\"",
        "01",
        "\"\\ud83d\"",
    ];

    fn paths() -> Paths {
        let mut paths = Paths::new();
        for path in ["p", "y", "user.id", "at", "model"] {
            paths.slot(path).expect("a path");
        }
        paths
    }

    /// What the scanner alone finds.
    fn scanned(record: &[u8]) -> Option<Vec<Found>> {
        let mut found = vec![Found::MISSING; 5];
        let done = Scanner::record(record, &mut paths(), 0, &mut found);
        done.is_ok().then_some(found)
    }

    /// A record of one of several producers, with values that fit or do not.
    fn record(draws: &mut Draws) -> String {
        let v = |draws: &mut Draws| match draws.next(4) {
            0 => draws.of(&VALUES).to_owned(),
            _ => format!("0.{}", draws.next(1000)),
        };
        let (a, b, c, d) = (v(draws), v(draws), v(draws), v(draws));
        match draws.next(5) {
            0 => format!("{{\"p\":{a},\"y\":{b},\"model\":\"m\",\"at\":{c}}}"),
            1 => format!(
                "{{ \"model\" : {a}, \"user\" : {{\"id\": {b}, \"x\": [{c}, 2]}} , \"p\":{d} }}\n"
            ),
            2 => format!("{{\"other\":{{\"p\":{a}}},\"p\":{b},\"user\":{c},\"\\u0079\":{d}}}"),
            3 => format!("{{\"p\":{a},\"p\":{b}}}"),
            _ => format!("[{a}]"),
        }
    }

    #[test]
    fn layouts_find_what_the_scanner_finds_in_whole_torn_and_damaged_records() {
        let mut draws = Draws(0x9e37_79b9_7f4a_7c15);
        let (mut hits, mut refused) = (0, 0);
        for _ in 0..40 {
            let (mut layouts, mut ours) = (Layouts::new(), paths());
            for i in 0..5000 {
                let mut bytes = record(&mut draws).into_bytes();
                match draws.next(8) {
                    0 => bytes.truncate(draws.next(bytes.len() + 1)),
                    1 if !bytes.is_empty() => {
                        let at = draws.next(bytes.len());
                        bytes[at] = draws.next(256) as u8;
                    }
                    2 => bytes.push(b" }1\n"[draws.next(4)]),
                    _ => {}
                }
                let expected = scanned(&bytes);
                let mut found = vec![Found::MISSING; 5];
                let known = layouts.find(&bytes, 0, &mut found);
                if !known {
                    found.fill(Found::MISSING);
                    let done = Scanner::record(&bytes, &mut ours, 0, &mut found);
                    if done.is_ok() {
                        layouts.learn(&bytes, &found);
                    }
                    assert_eq!(done.is_ok(), expected.is_some(), "record {i}");
                }
                hits += usize::from(known);
                refused += usize::from(expected.is_none());
                let shown = String::from_utf8_lossy(&bytes).into_owned();
                match expected {
                    Some(expected) => assert_eq!(found, expected, "{shown}"),
                    None => assert!(!known, "{shown} is no record"),
                }
            }
        }
        assert!(hits > 20_000 && refused > 20_000, "{hits} {refused}");
    }

    #[test]
    fn records_that_never_repeat_cost_few_lessons_and_one_producer_none() {
        let mut layouts = Layouts::new();
        let mut found = vec![Found::MISSING; 5];
        let mut lessons = 0;
        for i in 0..10_000 {
            let record = format!("{{\"key{i}\":1,\"p\":0.5}}");
            assert!(!layouts.find(record.as_bytes(), 0, &mut found));
            let before = layouts.credit;
            let found = scanned(record.as_bytes()).expect("a record");
            layouts.learn(record.as_bytes(), &found);
            lessons += usize::from(layouts.credit < before);
        }
        assert!((8..=13).contains(&lessons), "{lessons}");
        assert_eq!(layouts.all.len(), LAYOUTS_MAX);
        let same = |i: usize| format!("{{\"at\":{i},\"p\":0.5}}");
        let mut missed = 0;
        for i in 0..10_000 {
            let record = same(i);
            if !layouts.find(record.as_bytes(), 0, &mut found) {
                missed += 1;
                let found = scanned(record.as_bytes()).expect("a record");
                layouts.learn(record.as_bytes(), &found);
            }
        }
        assert!(missed <= REST as usize, "{missed}");
    }
}
