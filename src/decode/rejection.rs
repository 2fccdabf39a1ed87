//! Why a record is rejected, as text for the dead letter and the log.
//!
//! The text is built only for a rejected record and contains at most [`SHOWN_CHARS`] characters of
//! it, so that a record of megabytes does not become a log line of megabytes.

use super::path::split;
use super::value::{Fault, What};
use crate::collect::Reason;

/// A rejected record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {detail}", .reason.as_str())]
pub struct Rejection {
    /// The reason, which selects the counter.
    pub reason: Reason,
    /// The field, its value and the remedy.
    pub detail: String,
}

/// Most characters of a value to show.
const SHOWN_CHARS: usize = 64;

impl Rejection {
    #[cold]
    pub(super) fn new(reason: Reason, detail: String) -> Rejection {
        Rejection { reason, detail }
    }

    /// For this reason, in its words.
    #[cold]
    pub fn of(reason: Reason) -> Rejection {
        Rejection::new(reason, reason.words().to_owned())
    }

    #[cold]
    pub(super) fn missing(field: &str, what: &str) -> Rejection {
        Rejection::new(
            Reason::MissingField,
            format!("field `{field}` is missing; every record must carry {what}"),
        )
    }

    /// Explains a missing field if a text stands where the JSON record must have an object.
    #[cold]
    pub(super) fn explained(self, record: &[u8]) -> Rejection {
        match text_above(&self, record) {
            Some((field, text)) => Rejection::new(
                self.reason,
                format!(
                    "field `{field}` is missing, because `{text}` is a text and not an object; write its JSON without \
                     quotes around it"
                ),
            ),
            None => self,
        }
    }

    #[cold]
    pub(super) fn value(reason: Reason, field: &str, value: &str, remedy: &str) -> Rejection {
        Rejection::new(
            reason,
            format!("field `{field}` is {}; {remedy}", shorten(value)),
        )
    }

    /// The record is not JSON.
    #[cold]
    pub(super) fn fault(fault: Fault, bytes: &[u8]) -> Rejection {
        let what = match fault.what {
            What::Expected(what) => format!("expected {what}"),
            What::Twice => "a wanted field appears twice; write it once".to_string(),
            What::ControlCharacter => "control character within a string; escape it".to_string(),
            What::BadEscape => "bad escape within a string".to_string(),
            What::TooDeep => "nested too deeply".to_string(),
            What::TrailingBytes => "bytes after the end of the object".to_string(),
        };
        let near = bytes.get(fault.at..).unwrap_or_default();
        let near = if near.is_empty() {
            "at the end of the record".to_string()
        } else {
            format!(
                "near {}",
                shorten(&String::from_utf8_lossy(&near[..near.len().min(24)]))
            )
        };
        Rejection::new(
            Reason::Malformed,
            format!(
                "byte {}: {what}, {near}; a record must be one JSON object",
                fault.at
            ),
        )
    }

    /// The record is not text.
    #[cold]
    pub(super) fn not_utf8(at: usize) -> Rejection {
        Rejection::new(
            Reason::Malformed,
            format!("byte {at}: not UTF-8; a record must be one JSON object, not a binary format"),
        )
    }
}

/// The missing field of a rejection, and the path above it at which the record has a text.
fn text_above(rejection: &Rejection, record: &[u8]) -> Option<(String, String)> {
    let named = rejection.detail.strip_prefix("field `")?;
    let (field, _) = named.split_once("` is missing")?;
    let record: serde_json::Value = serde_json::from_slice(record).ok()?;
    let keys = split(field).ok()?;
    let mut value = &record;
    for (i, key) in keys.iter().enumerate() {
        value = value.get(key)?;
        if value.is_string() {
            return Some((field.to_owned(), keys[..=i].join(".")));
        }
    }
    None
}

/// The remedy for a number outside 0 to 1.
pub(super) fn outside(z: f64) -> &'static str {
    // A 32-bit float near 1 may be off by this much.
    let rounding = f64::from(f32::EPSILON);
    if z > 1.0 && z <= 1.0 + rounding {
        "this is rounding beyond 1, as of 32-bit floats: limit scores to 1 before you write them"
    } else if z < 0.0 && z >= -rounding {
        "this is rounding below 0, as of 32-bit floats: limit scores to 0 before you write them"
    } else {
        "a probability lies between 0 and 1: are these percentages or log-odds?"
    }
}

/// The first characters of a value.
pub(super) fn shorten(value: &str) -> String {
    let mut chars = value.chars();
    let head: String = chars.by_ref().take(SHOWN_CHARS).collect();
    if chars.next().is_some() {
        format!("{head}… ({} bytes)", value.len())
    } else {
        head
    }
}
