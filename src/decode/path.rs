//! The wanted fields of a record as a tree of keys, so that one scan finds all of them.
//!
//! Each leaf is a *slot*, a small number under which the scanner stores the value's position. Two
//! uses of one path share a slot. The children of a node adapt to the order of keys in the records
//! (a match swaps its child to the place where it was expected). So after the first record most
//! keys match at the first comparison, whatever their order in the configuration.

use super::options::DecodeOptionsError;
use super::words;

/// A child of an object: its key and its target.
pub(super) struct Child {
    /// The key followed by the closing quote, so that one prefix comparison is enough.
    pub quoted: Box<[u8]>,
    /// The first eight bytes as a word, padded with zeros.
    head: u64,
    /// Mask of the bytes of the word that count.
    mask: u64,
    pub target: Target,
}

impl Child {
    fn new(key: &str, target: Target) -> Child {
        let mut quoted = key.as_bytes().to_vec();
        quoted.push(b'"');
        let (head, mask) = words::masked(&quoted);
        Child {
            quoted: quoted.into(),
            head,
            mask,
            target,
        }
    }

    /// Whether `rest` begins with the quoted key. Most keys differ in their first eight bytes,
    /// which is one comparison of words and no call.
    #[inline]
    pub fn begins(&self, rest: &[u8]) -> bool {
        match rest.first_chunk::<8>() {
            Some(word) if (u64::from_le_bytes(*word) ^ self.head) & self.mask != 0 => false,
            Some(_) if self.quoted.len() <= 8 => true,
            _ => rest.starts_with(&self.quoted),
        }
    }
}

/// Target of a wanted key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Slot(usize),
    Node(usize),
}

/// The tree; node 0 is the record.
pub(super) struct Paths {
    pub nodes: Vec<Vec<Child>>,
    /// The path of each slot, as the user wrote it.
    pub names: Vec<String>,
}

/// A u64 has one bit per node and per slot, to mark the keys seen.
const PARTS_MAX: usize = 64;

impl Paths {
    pub fn new() -> Paths {
        Paths {
            nodes: vec![Vec::new()],
            names: Vec::new(),
        }
    }

    /// The same slots under other paths, for a record inside an envelope. `rewrite` returns the new
    /// path of a slot, or `None` if it is not in that part of the record. `names` stay those of the
    /// user.
    pub fn rewritten(
        &self,
        rewrite: impl Fn(&str) -> Option<String>,
    ) -> Result<Paths, DecodeOptionsError> {
        let mut paths = Paths::new();
        for (slot, name) in self.names.iter().enumerate() {
            if let Some(path) = rewrite(name) {
                paths.place(&path, slot)?;
            }
        }
        paths.names.clone_from(&self.names);
        Ok(paths)
    }

    /// The target of the key `name` under `node`.
    pub fn child(&self, node: usize, name: &str) -> Option<Target> {
        let is = |c: &&Child| c.quoted[..c.quoted.len() - 1] == *name.as_bytes();
        self.nodes[node].iter().find(is).map(|c| c.target)
    }

    /// The key of a child.
    pub fn key(child: &Child) -> &str {
        std::str::from_utf8(&child.quoted[..child.quoted.len() - 1]).unwrap_or_default()
    }

    /// The slot of `path`, created if necessary.
    pub fn slot(&mut self, path: &str) -> Result<usize, DecodeOptionsError> {
        if let Some(slot) = self.names.iter().position(|n| n == path) {
            return Ok(slot);
        }
        let slot = self.names.len();
        self.place(path, slot)?;
        self.names.push(path.to_string());
        if self.names.len() > PARTS_MAX {
            return Err(too_many());
        }
        Ok(slot)
    }

    fn place(&mut self, path: &str, slot: usize) -> Result<(), DecodeOptionsError> {
        let keys = split(path)?;
        let mut node = 0;
        for (i, key) in keys.iter().enumerate() {
            let last = i + 1 == keys.len();
            node = match self.child(node, key) {
                Some(Target::Node(n)) if !last => n,
                Some(_) => return Err(clash(path)),
                None if last => {
                    self.add(node, key, Target::Slot(slot));
                    break;
                }
                None => {
                    let child = self.nodes.len();
                    self.nodes.push(Vec::new());
                    self.add(node, key, Target::Node(child));
                    child
                }
            };
        }
        if self.nodes.len() > PARTS_MAX {
            return Err(too_many());
        }
        Ok(())
    }

    fn add(&mut self, node: usize, key: &str, target: Target) {
        self.nodes[node].push(Child::new(key, target));
    }
}

fn too_many() -> DecodeOptionsError {
    DecodeOptionsError(format!(
        "more than {PARTS_MAX} field paths; use fewer segments"
    ))
}

fn clash(path: &str) -> DecodeOptionsError {
    DecodeOptionsError(format!(
        "field path `{path}` goes through another wanted field; a field is either a value or an object of fields"
    ))
}

/// Splits at dots; `\.` is a dot within a key.
pub(super) fn split(path: &str) -> Result<Vec<String>, DecodeOptionsError> {
    let mut keys = vec![String::new()];
    let mut chars = path.chars();
    while let Some(c) = chars.next() {
        let key = keys.last_mut();
        match (c, key) {
            ('.', _) => keys.push(String::new()),
            ('\\', Some(key)) if chars.clone().next() == Some('.') => {
                chars.next();
                key.push('.');
            }
            (c, Some(key)) if c != '"' && c != '\\' && c >= ' ' => key.push(c),
            _ => {
                return Err(DecodeOptionsError(format!(
                    "field path `{path}` holds {c:?}, which a path cannot; rename the field"
                )));
            }
        }
    }
    // Such a path would be valid but never match.
    if let Some(rest) = path.strip_prefix("$.").or(path.strip_prefix('/')) {
        return Err(DecodeOptionsError(format!(
            "field path `{path}` is a JSON path or pointer; write the keys alone, joined by dots: `{}`",
            rest.replace('/', ".")
        )));
    }
    if keys.iter().any(String::is_empty) {
        return Err(DecodeOptionsError(format!(
            "field path `{path}` has an empty part; write keys joined by single dots, `a.b`"
        )));
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_within_a_key_is_written_with_a_backslash() {
        assert_eq!(split("a.b\\.c").unwrap(), ["a", "b.c"]);
        assert!(split("a..b").is_err());
        assert!(split("").is_err());
        assert!(split("a\"b").is_err());
    }

    #[test]
    fn a_json_path_or_pointer_is_refused_with_the_path_that_is_meant() {
        for path in ["$.a.b", "/a/b"] {
            let said = split(path).expect_err("refused").to_string();
            assert!(said.ends_with("joined by dots: `a.b`"), "{said}");
        }
        assert_eq!(split("$a.b").unwrap(), ["$a", "b"]);
    }

    #[test]
    fn a_key_is_told_from_every_other_however_long_it_is() {
        for key in ["a", "sevenby", "eightbyt", "score_of_the_model"] {
            let child = Child::new(key, Target::Slot(0));
            let rest = |tail: &str| format!("{key}{tail}").into_bytes();
            assert!(child.begins(&rest("\"")) && child.begins(&rest("\": 0.25, \"b\": 1")));
            assert!(!child.begins(&rest("s\": 0.25, \"b\": 1")) && !child.begins(&rest("")));
            assert!(!child.begins(&rest("\": 0.25, \"b\": 1")[1..]));
        }
    }

    #[test]
    fn a_field_cannot_be_a_value_and_an_object_at_once() {
        let mut p = Paths::new();
        assert_eq!(p.slot("a.b"), Ok(0));
        assert_eq!(p.slot("a.c"), Ok(1));
        assert_eq!(p.slot("a.b"), Ok(0));
        assert!(p.slot("a").is_err());
        assert!(p.slot("a.b.c").is_err());
    }
}
