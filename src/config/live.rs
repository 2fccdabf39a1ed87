//! Keys that may change while the program runs, and differences between two configurations.
//!
//! A key is *live* if a new value can replace the old one without recounting a window, recreating a
//! consumer or opening a socket: tests of windows and holds of alerts, caps on streams, the
//! snapshot interval, logging, and sinks, which may be added and removed. The options of a detector
//! are not live, because its stakes were placed under the old ones. All other keys need a restart.
//! Added or removed sections other than sinks need one too, and are named as a whole.
//!
//! A new file is checked as a whole, but only its live keys take effect. So these are checked once
//! more together with the values in force for the other keys ([`take_live`]).

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use siphasher::sip::SipHasher13;

use super::document::Record;
use super::keys;
use super::value::Value;
use super::write::written;

/// Live keys by section; an empty list means the whole section.
const LIVE: &[(&str, &[&str])] = &[
    ("model", &["segments_max", "segments_beyond"]),
    ("model.test", &[]),
    (
        "model.alert",
        &[
            "window_alerts",
            "for",
            "keep_firing_for",
            "flap_within",
            "stale_after",
        ],
    ),
    (
        "limits",
        &[
            "streams_max",
            "stream_expiry",
            "stalled_after",
            "series_max",
            "vector_versions_max",
        ],
    ),
    ("state", &["interval"]),
    ("notify", &[]),
    ("sink", &[]),
    ("log", &["level"]),
];

/// Replaces the live values of a section and of those below it. Sinks are replaced as a whole.
pub(super) fn take_live(ours: &mut Record, theirs: &Record) {
    let section = ours.section;
    for (key, entry) in &mut ours.entries {
        if let Some(new) = theirs.entries.get(key).filter(|_| is_live(section, key)) {
            entry.clone_from(new);
        }
    }
    for (path, records) in &mut ours.children {
        let theirs = theirs.all(path);
        if *path == "sink" {
            *records = theirs.to_vec();
            continue;
        }
        for record in records {
            if let Some(new) = theirs.iter().find(|new| name(new) == name(record)) {
                take_live(record, new);
            }
        }
    }
}

/// The value of one key. It is never shown.
#[derive(Clone, PartialEq, Eq, Hash)]
struct KeyValue {
    value: String,
    live: bool,
    /// The named element of a repeated section that contains the key.
    of: Option<String>,
}

/// Every key of a configuration by its full name, such as `model.fraud.test.alpha`. `Debug` shows
/// no value.
#[derive(Clone, Default)]
pub struct Keys(BTreeMap<String, KeyValue>);

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keys({})", self.0.len())
    }
}

impl Keys {
    pub(super) fn of(root: &Record) -> Keys {
        let mut keys = Keys::default();
        keys.walk(root, "", None);
        keys
    }

    fn walk(&mut self, record: &Record, prefix: &str, of: Option<&str>) {
        for (key, entry) in &record.entries {
            let known = KeyValue {
                value: plain(record.section, key, &entry.value),
                live: is_live(record.section, key),
                of: of.map(str::to_owned),
            };
            self.0.insert(format!("{prefix}{key}"), known);
        }
        for (path, records) in &record.children {
            let last = path.rsplit('.').next().unwrap_or(path);
            for child in records {
                match name(child) {
                    Some(name) => {
                        let whole = format!("{prefix}{last}.{name}");
                        self.walk(child, &format!("{whole}."), Some(&whole));
                    }
                    None => self.walk(child, &format!("{prefix}{last}."), of),
                }
            }
        }
    }

    /// Keys whose values differ: first the live keys, then those that need a restart.
    pub fn changes(&self, new: &Keys) -> (Vec<String>, Vec<String>) {
        let (mut live, mut restart) = (BTreeSet::new(), BTreeSet::new());
        let all: BTreeSet<&String> = self.0.keys().chain(new.0.keys()).collect();
        for key in all {
            match (self.0.get(key), new.0.get(key)) {
                (Some(a), Some(b)) if a.value == b.value => {}
                (Some(a), Some(_)) if a.live => {
                    live.insert(key.clone());
                }
                (Some(_), Some(_)) | (None, None) => {
                    restart.insert(key.clone());
                }
                (Some(k), None) | (None, Some(k)) => {
                    let whole = k.of.clone().unwrap_or_else(|| key.clone());
                    // Sinks are the only named sections that a reload may add or remove.
                    let comes = k.live && key.starts_with("sink.");
                    if comes { &mut live } else { &mut restart }.insert(whole);
                }
            }
        }
        (live.into_iter().collect(), restart.into_iter().collect())
    }

    /// A hash of all values. Equal configurations have equal hashes.
    pub fn hash(&self) -> String {
        let mut hasher = SipHasher13::new();
        for (key, known) in &self.0 {
            (key, &known.value).hash(&mut hasher);
        }
        format!("{:016x}", hasher.finish())
    }
}

fn is_live(section: &str, key: &str) -> bool {
    let of = LIVE.iter().find(|(path, _)| *path == section);
    of.is_some_and(|(_, keys)| keys.is_empty() || keys.contains(&key))
}

/// The name of an element of a repeated section.
fn name(record: &Record) -> Option<String> {
    keys::section(record.section).filter(|s| s.repeated)?;
    let named = record.owned("name");
    let first = || Some(record.list("topics").first()?.value.clone());
    Some(named.or_else(first).unwrap_or_default())
}

/// A value as text, secrets included. It is only compared, never shown, and excludes positions.
fn plain(section: &str, key: &str, value: &Value) -> String {
    match value {
        Value::Text(text) => format!("{text:?}"),
        Value::Map(map) => {
            let pairs = map.iter().map(|(k, v)| format!("{k:?} = {:?}", v.value));
            pairs.collect::<Vec<_>>().join(", ")
        }
        other => {
            let key = keys::section(section).and_then(|s| s.key(key));
            let text = key.and_then(|key| written(key.kind, other));
            text.unwrap_or_default()
        }
    }
}
