//! Why a record is rejected, as text for the dead letter and the log.
//!
//! The text is built only for a rejected record and contains at most [`SHOWN_CHARS`] characters of
//! it, so that a record of megabytes does not become a log line of megabytes.

use super::value::{Fault, What};
use crate::collect::Reason;

/// A rejected record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {detail}", .reason.as_str())]
pub struct Rejection {
    /// The counter that it adds to.
    pub reason: Reason,
    /// The field, its value and the remedy.
    pub detail: String,
}

/// Characters of a value that are shown.
const SHOWN_CHARS: usize = 64;

impl Rejection {
    #[cold]
    pub(super) fn new(reason: Reason, detail: String) -> Rejection {
        Rejection { reason, detail }
    }

    #[cold]
    pub(super) fn missing(field: &str, what: &str) -> Rejection {
        Rejection::new(
            Reason::MissingField,
            format!("field `{field}` is missing; every record must carry {what}"),
        )
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
