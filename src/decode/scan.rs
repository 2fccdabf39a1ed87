//! A strict JSON scanner that locates the wanted fields in one pass without allocation.
//!
//! For each slot of [`Paths`] it stores the kind of the value and its position in the record. It
//! converts nothing, so of thirty fields only the five wanted ones are converted later. But it
//! checks every byte: a record that is malformed anywhere is rejected, because a decoder that
//! continues after damage may count data that was never written. The grammar is RFC
//! 8259. The caller checks UTF-8 once for the whole record. Nesting is limited to [`DEPTH_MAX`], as
//! in serde_json.
//!
//! The scanner rejects a wanted key that appears twice (readers differ in which one they use) and
//! half of a surrogate pair. It accepts `NaN`, `Infinity` and `-Infinity`, which Python writes,
//! within the prediction, so that the record counts as a score that is not finite.

use super::path::{Child, Paths, Target};
use super::value::{Fault, Found, Kind, What};
use super::words;

/// Deepest nesting of arrays and objects.
pub(super) const DEPTH_MAX: u32 = 127;

/// Stands for the lenient slot: NaN is allowed in every value, for records that were not JSON
/// originally.
pub(super) const ANYWHERE: usize = usize::MAX - 1;

/// A position in a record.
pub(super) struct Scanner<'b> {
    pub bytes: &'b [u8],
    pub at: usize,
}

type Scan<T> = Result<T, Fault>;

impl<'b> Scanner<'b> {
    /// Scans a whole record. `lenient` is the slot in which NaN is allowed; [`ANYWHERE`] means all.
    pub fn record(
        bytes: &'b [u8],
        paths: &mut Paths,
        lenient: usize,
        found: &mut [Found],
    ) -> Scan<()> {
        let mut s = Scanner { bytes, at: 0 };
        let mut walk = Walk {
            paths,
            lenient,
            found,
            seen: 0,
        };
        s.space();
        s.expect(b'{', "an object: `{`")?;
        s.wanted_object(&mut walk, 0, 1)?;
        s.space();
        if s.at < bytes.len() {
            return s.fault(What::TrailingBytes);
        }
        Ok(())
    }

    /// Scans the members of an object with wanted fields, after its opening brace.
    fn wanted_object(&mut self, walk: &mut Walk<'_>, node: usize, depth: u32) -> Scan<()> {
        let mut next = 0;
        self.space();
        if self.eat(b'}') {
            return Ok(());
        }
        loop {
            self.expect(b'"', "a key: `\"`")?;
            let at = self.at;
            let target = match match_child(&mut walk.paths.nodes[node], next, &self.bytes[at..]) {
                Some((target, length)) => {
                    next += 1;
                    self.at += length;
                    Some(target)
                }
                None => self.other_key(&walk.paths.nodes[node])?,
            };
            self.space();
            self.expect(b':', "`:`")?;
            self.space();
            match target {
                None => {
                    self.value(walk.lenient == ANYWHERE, depth)?;
                }
                Some(Target::Slot(slot)) => {
                    if walk.found[slot].kind != Kind::Missing {
                        return Err(twice(at));
                    }
                    walk.found[slot] =
                        self.value(walk.lenient == slot || walk.lenient == ANYWHERE, depth)?;
                }
                Some(Target::Node(child)) => self.wanted_member(walk, child, at, depth)?,
            }
            self.space();
            if self.eat(b',') {
                self.space();
            } else {
                return self.expect(b'}', "`,` or `}`");
            }
        }
    }

    /// Scans the value of a key that contains wanted fields.
    fn wanted_member(
        &mut self,
        walk: &mut Walk<'_>,
        child: usize,
        key: usize,
        depth: u32,
    ) -> Scan<()> {
        let bit = 1u64 << child;
        if walk.seen & bit != 0 {
            return Err(twice(key));
        }
        walk.seen |= bit;
        if depth >= DEPTH_MAX {
            return self.fault(What::TooDeep);
        }
        if self.eat(b'{') {
            self.wanted_object(walk, child, depth + 1)
        } else {
            self.value(walk.lenient == ANYWHERE, depth).map(|_| ())
        }
    }

    /// Scans a key that equals no child byte for byte: unwanted, or wanted but written with
    /// escapes.
    #[inline]
    fn other_key(&mut self, children: &[Child]) -> Scan<Option<Target>> {
        let key = self.string()?;
        if key.kind == Kind::Text {
            return Ok(None);
        }
        let plain = unescape(&self.bytes[key.start..key.end]);
        Ok(children
            .iter()
            .find(|c| c.quoted[..c.quoted.len() - 1] == *plain.as_bytes())
            .map(|c| c.target))
    }

    /// Scans any value. Returns its kind and position.
    #[inline]
    pub fn value(&mut self, lenient: bool, depth: u32) -> Scan<Found> {
        let start = self.at;
        let kind = match self.peek() {
            Some(b'"') => {
                self.at += 1;
                return self.string();
            }
            Some(b'-' | b'0'..=b'9') => {
                if lenient && self.eat_word(b"-Infinity") {
                    Kind::NotFinite
                } else {
                    self.number()?;
                    Kind::Number
                }
            }
            Some(b't') if self.eat_word(b"true") => Kind::True,
            Some(b'f') if self.eat_word(b"false") => Kind::False,
            Some(b'n') if self.eat_word(b"null") => Kind::Null,
            Some(b'{') => {
                self.object(lenient, depth)?;
                Kind::Object
            }
            Some(b'[') => {
                self.array(lenient, depth)?;
                Kind::Array
            }
            Some(b'N') if lenient && self.eat_word(b"NaN") => Kind::NotFinite,
            Some(b'I') if lenient && self.eat_word(b"Infinity") => Kind::NotFinite,
            _ => return self.fault(What::Expected("a value")),
        };
        Ok(Found::new(kind, start, self.at))
    }

    fn object(&mut self, lenient: bool, depth: u32) -> Scan<()> {
        self.items(depth, (b'}', "`,` or `}`"), |s| {
            s.key()?;
            s.value(lenient, depth + 1)
        })
    }

    /// Scans a key, its colon and the space around them.
    pub fn key(&mut self) -> Scan<Found> {
        self.expect(b'"', "a key: `\"`")?;
        let key = self.string()?;
        self.space();
        self.expect(b':', "`:`")?;
        self.space();
        Ok(key)
    }

    fn array(&mut self, lenient: bool, depth: u32) -> Scan<()> {
        self.items(depth, (b']', "`,` or `]`"), |s| s.value(lenient, depth + 1))
    }

    /// Scans the items of an array or object from its opening bracket on.
    #[inline]
    fn items(
        &mut self,
        depth: u32,
        (end, expected): (u8, &'static str),
        mut item: impl FnMut(&mut Self) -> Scan<Found>,
    ) -> Scan<()> {
        if depth >= DEPTH_MAX {
            return self.fault(What::TooDeep);
        }
        self.at += 1;
        self.space();
        if self.eat(end) {
            return Ok(());
        }
        loop {
            item(self)?;
            self.space();
            if self.eat(b',') {
                self.space();
            } else {
                return self.expect(end, expected);
            }
        }
    }

    /// Scans a string after its opening quote.
    #[inline]
    fn string(&mut self) -> Scan<Found> {
        let start = self.at;
        let mut kind = Kind::Text;
        loop {
            while let Some(word) = words::word_at(self.bytes, self.at) {
                let marks = words::special(word);
                if marks != 0 {
                    self.at += words::before(marks);
                    break;
                }
                self.at += 8;
            }
            match self.peek() {
                Some(b'"') => {
                    let end = self.at;
                    self.at += 1;
                    return Ok(Found::new(kind, start, end));
                }
                Some(b'\\') => {
                    kind = Kind::EscapedText;
                    self.escape()?;
                }
                Some(b) if b < 0x20 => return self.fault(What::ControlCharacter),
                Some(_) => self.at += 1,
                None => return self.fault(What::Expected("the end of a string: `\"`")),
            }
        }
    }

    /// Scans one escape from its backslash on.
    #[cold]
    fn escape(&mut self) -> Scan<()> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                Ok(())
            }
            Some(b'u') => match self.unit() {
                Some(0xD800..=0xDBFF) => {
                    self.at += 6;
                    match self.unit() {
                        Some(0xDC00..=0xDFFF) => {
                            self.at += 6;
                            Ok(())
                        }
                        _ => self.fault(What::BadEscape),
                    }
                }
                Some(0xDC00..=0xDFFF) | None => self.fault(What::BadEscape),
                Some(_) => {
                    self.at += 6;
                    Ok(())
                }
            },
            _ => self.fault(What::BadEscape),
        }
    }

    /// The UTF-16 unit of the `\uXXXX` at the current position.
    fn unit(&self) -> Option<u32> {
        let b = self.bytes.get(self.at..self.at + 6)?;
        if b[0] != b'\\' || b[1] != b'u' {
            return None;
        }
        b[2..]
            .iter()
            .try_fold(0, |u, &d| Some(u * 16 + (d as char).to_digit(16)?))
    }

    #[inline]
    fn number(&mut self) -> Scan<()> {
        self.eat(b'-');
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return self.fault(What::Expected("a digit")),
        }
        if self.eat(b'.') {
            self.some_digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits()?;
        }
        Ok(())
    }

    #[inline]
    fn some_digits(&mut self) -> Scan<()> {
        let start = self.at;
        self.digits();
        if self.at == start {
            return self.fault(What::Expected("a digit"));
        }
        Ok(())
    }

    #[inline]
    fn digits(&mut self) {
        self.at += words::digits_at(self.bytes, self.at);
    }

    /// Visits the items of an array or object that was scanned before, from after its bracket to
    /// `end`.
    #[inline]
    pub fn each<E>(
        &mut self,
        end: u8,
        mut item: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.space();
        while self.peek() != Some(end) {
            item(self)?;
            self.space();
            self.eat(b',');
            self.space();
        }
        Ok(())
    }

    #[inline]
    pub fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    pub fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    #[inline]
    fn eat_word(&mut self, word: &[u8]) -> bool {
        let there = self.bytes[self.at..].starts_with(word);
        if there {
            self.at += word.len();
        }
        there
    }

    #[inline]
    fn expect(&mut self, byte: u8, what: &'static str) -> Scan<()> {
        if self.eat(byte) {
            Ok(())
        } else {
            self.fault(What::Expected(what))
        }
    }

    #[cold]
    fn fault<T>(&self, what: What) -> Scan<T> {
        Err(Fault { at: self.at, what })
    }
}

#[cold]
fn twice(at: usize) -> Fault {
    let what = What::Twice;
    Fault { at, what }
}

/// Input and output of the scan of a record.
struct Walk<'w> {
    paths: &'w mut Paths,
    lenient: usize,
    found: &'w mut [Found],
    /// One bit per node, set if its key was seen.
    seen: u64,
}

/// The child whose key (with its closing quote) `rest` begins with, and the length of the key. The
/// child is moved to index `next`, because keys usually come in the same order.
#[inline]
fn match_child(children: &mut [Child], next: usize, rest: &[u8]) -> Option<(Target, usize)> {
    if let Some(c) = children.get(next)
        && c.begins(rest)
    {
        return Some((c.target, c.quoted.len()));
    }
    let i = children.iter().position(|c| c.begins(rest))?;
    let answer = (children[i].target, children[i].quoted.len());
    if next < children.len() {
        children.swap(i, next);
    }
    Some(answer)
}

/// Resolves the escapes in the inside of a string that [`Scanner`] has checked.
pub(super) fn unescape(inside: &[u8]) -> String {
    let mut quoted = Vec::with_capacity(inside.len() + 2);
    quoted.push(b'"');
    quoted.extend_from_slice(inside);
    quoted.push(b'"');
    serde_json::from_slice(&quoted).unwrap_or_default()
}
