//! Layouts of records: what the records of one producer have in common.
//!
//! A producer writes the same bytes between the values of its records. A [`Layout`] holds these
//! bytes and the places of the scalar values between them. A record that has the layout is read by
//! comparing the bytes and scanning the values only. Numbers are converted at once, and most names
//! are recognized by comparison. Any other record goes to the scanner, and may teach another
//! layout.
//!
//! A match gives the same result as the scanner, to the last position. A layout comes from a record
//! that the scanner has accepted. A record that matches it differs in scalar values alone. Each is
//! checked in its place by the rules of [`Scanner::value`]. Keys, nesting and duplicates lie in the
//! compared bytes. Records in which a wanted value is an array or an object teach nothing, because
//! their values have no fixed number.
//!
//! Learning a layout costs about two scans, and trying a layout that does not match costs a
//! comparison. So at most [`LAYOUTS_MAX`] are kept, and a new one is learnt only after enough
//! matches. If no record matches for a while, no layout is tried until the next one is learnt.

mod field;

use self::field::{LayoutField, Seen, UNWANTED};
use super::scan::Scanner;
use super::value::{Found, Kind};

/// Most layouts to keep: records of a topic come from a few producers, some with fields that are
/// optional.
const LAYOUTS_MAX: usize = 6;
/// Most values of a record from which a layout is learned.
const VALUES_MAX: usize = 128;
/// Longest record from which a layout is learned.
const BYTES_MAX: usize = 16 << 10;
/// Number of matches that pay for learning one layout.
const LESSON: u32 = 16;
/// Credit in matches at the start, and its maximum.
const CREDIT_MAX: u32 = 8 * LESSON;
/// Number of misses in a row after which no layout is tried.
const MISSES_MAX: u32 = 64;
/// Number of misses in a row after which a layout is learned again.
const MISSES_BEFORE_RETRY: u32 = 2048;
/// One in this many records with other names has its names remembered, beginning with the first.
const NAMES_CHANGED_AFTER: u32 = 16;

/// The bytes that records of one producer have in common, and the values between them.
#[derive(Default)]
struct Layout {
    fields: Vec<LayoutField>,
    /// The bytes after the last value.
    tail: Box<[u8]>,
    /// Wanted values that these records do not have.
    missing: Vec<usize>,
    /// When it last matched, in lookups.
    used: u64,
    /// The slots of names that have a value.
    names: u64,
    /// Model, version and segment of the names last remembered.
    remembered: [String; 3],
    /// The slots of names that have no value, once names are remembered.
    absent: u64,
    /// Number of records with other names.
    others: u32,
}

impl Layout {
    /// The layout of a record that the scanner has accepted, given its findings.
    fn of(record: &[u8], found: &[Found], names: u64) -> Option<Layout> {
        if record.len() > BYTES_MAX {
            return None;
        }
        let mut layout = Layout::default();
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
                // This text is a key.
                continue;
            }
            if layout.fields.len() == VALUES_MAX {
                return None;
            }
            let slot = slots.iter().find(|(at, _)| *at == start);
            let slot = slot.map_or(UNWANTED, |(_, slot)| *slot);
            let field = LayoutField::new(&record[from..start], slot);
            layout.names |= names & field.bit();
            layout.fields.push(field);
            from = end;
        }
        layout.tail = record[from..].into();
        Some(layout)
    }

    /// Finds the values of a record that has this layout, and sets the slots of all. Returns what
    /// else was seen.
    #[inline(always)]
    fn find(&self, record: &[u8], lenient: usize, found: &mut [Found]) -> Option<Seen> {
        let (mut rest, mut seen) = (record, Seen::default());
        for field in &self.fields {
            rest = field.find(record, rest, lenient, found, &mut seen)?;
        }
        if rest.len() != self.tail.len() || rest.iter().ne(&self.tail) {
            return None;
        }
        for &slot in &self.missing {
            found[slot] = Found::MISSING;
        }
        Some(seen)
    }
}

#[derive(Default)]
pub(super) struct Layouts {
    all: Vec<Layout>,
    /// The layout that matched last.
    last: usize,
    lookups: u64,
    credit: u32,
    /// Number of misses in a row.
    misses: u32,
    /// The slots of names.
    names: u64,
}

/// The result of a match beside the values.
#[derive(Default)]
pub(super) struct Match {
    /// By slot, whether the value is that of the names that the layout remembers.
    pub same: u64,
    /// The names of this record should be remembered.
    pub others: bool,
    /// Some value is unusual: it may be a text with escapes.
    pub unusual: bool,
}

impl Layouts {
    /// No layouts yet. `names` has a bit for each slot that holds a name.
    pub fn new(names: u64) -> Layouts {
        Layouts {
            credit: CREDIT_MAX,
            names,
            ..Layouts::default()
        }
    }

    /// Finds the values of a record that has a known layout, and sets the slots of all. After
    /// `None`, the content of `found` is undefined.
    #[inline]
    pub fn find(&mut self, record: &[u8], lenient: usize, found: &mut [Found]) -> Option<Match> {
        self.lookups += 1;
        if self.misses >= MISSES_MAX {
            return None;
        }
        if let Some(layout) = self.all.get(self.last)
            && let Some(seen) = layout.find(record, lenient, found)
        {
            return Some(self.hit(&seen));
        }
        self.find_other(record, lenient, found)
    }

    #[inline(never)]
    fn find_other(&mut self, record: &[u8], lenient: usize, found: &mut [Found]) -> Option<Match> {
        for (i, layout) in self.all.iter().enumerate() {
            if i == self.last {
                continue;
            }
            if let Some(seen) = layout.find(record, lenient, found) {
                self.last = i;
                return Some(self.hit(&seen));
            }
        }
        None
    }

    #[inline(always)]
    fn hit(&mut self, seen: &Seen) -> Match {
        self.credit = (self.credit + 1).min(CREDIT_MAX);
        self.misses = 0;
        let layout = &mut self.all[self.last];
        layout.used = self.lookups;
        let same = seen.same | layout.absent;
        let others = seen.same != layout.names;
        layout.others = layout.others.wrapping_add(u32::from(others));
        Match {
            same,
            others: others && layout.others % NAMES_CHANGED_AFTER == 1,
            unusual: seen.unusual,
        }
    }

    /// Model, version and segment that the layout of the last match remembers.
    #[inline(always)]
    pub fn remembered(&self) -> [&str; 3] {
        let layout = self.all.get(self.last);
        layout.map_or([""; 3], |l| l.remembered.each_ref().map(String::as_str))
    }

    /// Lets the layout that matched last remember the names of its record.
    #[inline(never)]
    pub fn remember(&mut self, record: &[u8], found: &[Found], names: [String; 3]) {
        let Some(layout) = self.all.get_mut(self.last) else {
            return;
        };
        layout.remembered = names;
        layout.absent = self.names & !layout.names;
        for field in &mut layout.fields {
            if layout.names & field.bit() != 0 {
                field.remember(record, found);
            }
        }
    }

    /// Learns from a record that had no known layout, given the findings of the scanner.
    #[cold]
    pub fn learn(&mut self, record: &[u8], found: &[Found]) {
        self.misses = self.misses.saturating_add(1);
        if self.misses >= MISSES_BEFORE_RETRY {
            (self.misses, self.credit) = (0, self.credit.max(LESSON));
        }
        if self.credit < LESSON || self.misses >= MISSES_MAX {
            return;
        }
        self.credit -= LESSON;
        let Some(mut layout) = Layout::of(record, found, self.names) else {
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
    use crate::stats::rng::Rng;

    fn below(rng: &mut Rng, n: usize) -> usize {
        (rng.bits() % n as u64) as usize
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

    const USER: usize = 2;
    const MODEL: usize = 4;

    fn paths() -> Paths {
        let mut paths = Paths::new();
        for path in ["p", "y", "user.id", "at", "model"] {
            paths.slot(path).expect("a path");
        }
        paths
    }

    /// The findings of the scanner alone.
    fn scanned(record: &[u8]) -> Option<Vec<Found>> {
        let mut found = vec![Found::MISSING; 5];
        let done = Scanner::record(record, &mut paths(), 0, &mut found);
        done.is_ok().then_some(found)
    }

    /// A record of one of several producers, with valid and invalid values.
    fn record(rng: &mut Rng) -> String {
        let [a, b, c, d] = [(); 4].map(|()| match below(rng, 4) {
            0 => VALUES[below(rng, VALUES.len())].to_owned(),
            _ => format!("0.{}", below(rng, 1000)),
        });
        match below(rng, 5) {
            0 => format!("{{\"p\":{a},\"y\":{b},\"model\":\"m\",\"at\":{c}}}"),
            1 => format!(
                "{{ \"model\" : {a}, \"user\" : {{\"id\": {b}, \"x\": [{c}, 2]}} , \"p\":{d} }}\n"
            ),
            2 => format!("{{\"other\":{{\"p\":{a}}},\"p\":{b},\"user\":{c},\"\\u0079\":{d}}}"),
            3 => format!("{{\"p\":{a},\"p\":{b}}}"),
            _ => format!("[{a}]"),
        }
    }

    /// Kinds and places of the values. Checks the numbers that were converted.
    fn places(record: &[u8], found: &[Found]) -> Vec<(Kind, usize, usize)> {
        let place = |f: &Found| {
            let text = String::from_utf8_lossy(&record[f.start..f.end]).into_owned();
            if let Some(read) = f.read() {
                let parsed: f64 = text.parse().expect("a number");
                assert_eq!(read.double().to_bits(), parsed.to_bits(), "{text}");
                assert_eq!(read.decimals == 0, !text.contains('.'), "{text}");
            }
            (f.kind, f.start, f.end)
        };
        found.iter().map(place).collect()
    }

    #[test]
    fn layouts_find_what_the_scanner_finds_in_whole_torn_and_damaged_records() {
        let mut rng = Rng::new(7);
        let (mut hits, mut refused, mut same) = (0, 0, 0);
        for _ in 0..40 {
            let (mut layouts, mut ours) = (Layouts::new(1 << MODEL | 1 << USER), paths());
            for i in 0..5000 {
                let mut bytes = record(&mut rng).into_bytes();
                match below(&mut rng, 8) {
                    0 => bytes.truncate(below(&mut rng, bytes.len() + 1)),
                    1 if !bytes.is_empty() => {
                        let at = below(&mut rng, bytes.len());
                        bytes[at] = below(&mut rng, 256) as u8;
                    }
                    2 => bytes.push(b" }1\n"[below(&mut rng, 4)]),
                    _ => {}
                }
                let expected = scanned(&bytes);
                let mut found = vec![Found::MISSING; 5];
                let matched = layouts.find(&bytes, 0, &mut found);
                let known = matched.is_some();
                if let Some(matched) = matched {
                    let name = |slot: usize| match found[slot] {
                        f if f.kind == Kind::Text => {
                            String::from_utf8_lossy(&bytes[f.start..f.end]).into_owned()
                        }
                        f => format!("{:?}", f.kind),
                    };
                    let names = [MODEL, USER];
                    if matched.others {
                        layouts.remember(&bytes, &found, [name(MODEL), name(USER), "".into()]);
                    }
                    for (of, slot) in names.into_iter().enumerate() {
                        if matched.same >> slot & 1 == 1 {
                            assert_eq!(layouts.remembered()[of], name(slot));
                            same += 1;
                        }
                    }
                    let escaped = found.iter().any(|f| f.kind == Kind::EscapedText);
                    assert!(matched.unusual || !escaped);
                } else {
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
                    Some(expected) => {
                        let (ours, theirs) = (places(&bytes, &found), places(&bytes, &expected));
                        assert_eq!(ours, theirs, "{shown}");
                    }
                    None => assert!(!known, "{shown} is no record"),
                }
            }
        }
        assert!(
            hits > 20_000 && refused > 20_000 && same > 2_000,
            "{hits} {refused} {same}"
        );
    }

    #[test]
    fn records_that_never_repeat_cost_few_lessons_and_one_producer_none() {
        let mut layouts = Layouts::new(1 << MODEL | 1 << USER);
        let mut found = vec![Found::MISSING; 5];
        let mut lessons = 0;
        for i in 0..10_000 {
            let record = format!("{{\"key{i}\":1,\"p\":0.5}}");
            assert!(layouts.find(record.as_bytes(), 0, &mut found).is_none());
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
            if layouts.find(record.as_bytes(), 0, &mut found).is_none() {
                missed += 1;
                let found = scanned(record.as_bytes()).expect("a record");
                layouts.learn(record.as_bytes(), &found);
            }
        }
        assert!(missed <= MISSES_BEFORE_RETRY as usize, "{missed}");
    }
}
