//! The structure of the configuration: sections, keys and kinds of values.
//!
//! The keys themselves are data, in [`super::keys`]. That one table yields the validation of a
//! file, its defaults, the hints in messages, the annotated sample `config/everything.toml`, the
//! reference page and the JSON Schema, so that none of them can contradict the parser. A default is
//! stored as the TOML text that a person would write and is read like a file: an invalid default
//! fails a test.

/// A section of the file: `[path]`, or `[[path]]` when repeated. The top of the file has path `""`.
#[derive(Debug)]
pub struct Section {
    /// Dotted path.
    pub path: &'static str,
    /// Whether it is an array of tables. Its child sections belong to one element each.
    pub repeated: bool,
    /// Its content, in one or two sentences.
    pub about: &'static str,
    /// Its keys in the order in which they are documented.
    pub keys: &'static [Key],
}

/// One key of a section.
#[derive(Debug)]
pub struct Key {
    /// Name as written in the file.
    pub name: &'static str,
    /// Kind of its values.
    pub kind: Kind,
    /// Its default.
    pub preset: Preset,
    /// What it does, and the reason for its default.
    pub about: &'static str,
}

/// Default of a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Preset {
    /// The key is required; the text is an example in TOML.
    Required(&'static str),
    /// No value: the feature is off or derived. The text is an example in TOML.
    Unset(&'static str),
    /// This value, in TOML.
    Value(&'static str),
}

/// Bounds of a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Lowest value.
    pub low: f64,
    /// Highest value.
    pub high: f64,
    /// Whether both ends are excluded.
    pub open: bool,
}

impl Bounds {
    /// Whether x lies inside the bounds; NaN never does.
    pub fn contain(&self, x: f64) -> bool {
        if self.open {
            self.low < x && x < self.high
        } else {
            self.low <= x && x <= self.high
        }
    }

    /// The bounds in words.
    pub fn words(&self) -> String {
        if self.open {
            format!("above {} and below {}", self.low, self.high)
        } else {
            format!("between {} and {}", self.low, self.high)
        }
    }
}

/// Kind of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Any string that is not empty.
    Text,
    /// A string that is always masked. `NAME_file` may name a file instead.
    Secret,
    /// A path; relative ones start at the directory of the configuration file.
    Path,
    /// `address:port`.
    Address,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number, both ends included.
    Integer {
        /// Lowest value.
        low: i64,
        /// Highest value.
        high: i64,
    },
    /// A number.
    Number(Bounds),
    /// `true` or `false`.
    Truth,
    /// A length of time with its unit, in a string: `"30s"`, `"1h"`. Whole milliseconds.
    Duration,
    /// A duration above zero.
    Time,
    /// A number of bytes, plain or with its unit in a string: `"64KiB"`.
    Bytes,
    /// A tolerance: a number, a share `"10%"`, or both `"0.05 or 20%"`.
    Tolerance,
    /// Where to start reading: `"earliest"`, `"latest"`, a duration back or a time; or one of these
    /// words.
    Start(&'static [&'static str]),
    /// Strings; a single string is a list of one.
    List,
    /// A table of strings to strings.
    Map,
    /// Window lengths: `"5m"`, `{ width = "5m", slide = "30s" }`, `{ last = 10000 }`.
    Windows,
}

impl Kind {
    /// The kind in a few words, for messages and the reference.
    pub fn words(&self) -> String {
        match self {
            Kind::Text => "text".to_owned(),
            Kind::Secret => "text, masked when shown".to_owned(),
            Kind::Path => "path".to_owned(),
            Kind::Address => "`address:port`".to_owned(),
            Kind::Choice(words) => {
                let quoted: Vec<String> = words.iter().map(|w| format!("`{w}`")).collect();
                quoted.join(", ")
            }
            Kind::Integer {
                low,
                high: i64::MAX,
            } => format!("whole number from {low}"),
            Kind::Integer { low, high } if low == high => format!("{low}"),
            Kind::Integer { low, high } => format!("whole number from {low} to {high}"),
            Kind::Number(bounds) => format!("number {}", bounds.words()),
            Kind::Truth => "`true` or `false`".to_owned(),
            Kind::Duration => "duration".to_owned(),
            Kind::Time => "duration above zero".to_owned(),
            Kind::Bytes => "size".to_owned(),
            Kind::Tolerance => "number from 0 to 1, share `\"10%\"`, or both".to_owned(),
            Kind::Start(words) => {
                let words: Vec<String> = words.iter().map(|w| format!("`{w}`, ")).collect();
                format!(
                    "{}`earliest`, `latest`, duration back, or time",
                    words.concat()
                )
            }
            Kind::List => "list of texts".to_owned(),
            Kind::Map => "table of texts".to_owned(),
            Kind::Windows => "list of windows".to_owned(),
        }
    }

    /// An example of the kind, for the remedy of a wrong type.
    pub fn example(&self) -> String {
        match self {
            Kind::Text | Kind::Secret => "\"text\"".to_owned(),
            Kind::Path => "\"path\"".to_owned(),
            Kind::Address => "\"127.0.0.1:9464\"".to_owned(),
            Kind::Choice(words) => format!("\"{}\"", words.first().unwrap_or(&"")),
            Kind::Integer { low, .. } => format!("{low}"),
            Kind::Number(bounds) => format!("{}", (bounds.low + bounds.high) / 2.0),
            Kind::Truth => "true".to_owned(),
            Kind::Duration | Kind::Time => "\"30s\"".to_owned(),
            Kind::Bytes => "\"64KiB\"".to_owned(),
            Kind::Tolerance => "\"0.05 or 20%\"".to_owned(),
            Kind::Start(_) => "\"24h\"".to_owned(),
            Kind::List => "[\"a\", \"b\"]".to_owned(),
            Kind::Map => "{ name = \"value\" }".to_owned(),
            Kind::Windows => "[\"5m\", \"1h\", { last = 10000 }]".to_owned(),
        }
    }
}

impl Section {
    /// The key with this name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|k| k.name == name)
    }

    /// The section as written: `[kafka]`, `[[source]]`, `the top of the file`.
    pub fn title(&self) -> String {
        match (self.path, self.repeated) {
            ("", _) => "the top of the file".to_owned(),
            (path, true) => format!("[[{path}]]"),
            (path, false) => format!("[{path}]"),
        }
    }

    /// The path of the parent section: `model` for `model.test`, otherwise the top.
    pub fn parent(&self) -> Option<&'static str> {
        match (self.path, self.path.rsplit_once('.')) {
            ("", _) => None,
            (_, Some((parent, _))) => Some(parent),
            (_, None) => Some(""),
        }
    }

    /// The last part of the path.
    pub fn last_name(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or("")
    }
}
