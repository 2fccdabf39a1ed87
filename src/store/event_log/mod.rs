//! The event log: posted events, which are on disk before they are acknowledged.
//!
//! ```text
//!  POST ─► EventLog::append ─► writer thread: one frame, one sync ─► Receipt
//!                                    │
//!                              segments on disk ─► LogReader ─► engine ─► consumed
//! ```
//!
//! Without Kafka, the log replaces a topic with one partition. Each event has an offset, and the
//! engine reads it like a topic: a snapshot holds sums and offset of one moment, and a restart
//! reads from that offset. Therefore no acknowledged event is lost or counted twice.
//!
//! * Requests that arrive together share one write and one sync ([`frame`]).
//! * A request may carry an idempotency key. As long as its events are in the log, another request
//!   with the same key appends nothing and gets the same answer ([`keys`]).
//! * Segments are deleted once they are old and their sums are in all kept snapshots. If the log
//!   needs room, they are deleted as soon as the newest snapshot has their sums. If only unread
//!   segments are left, requests are refused.
//! * Requests are also refused while the disk has too little room for snapshots ([`space`]).
//! * After a failed sync the content of the disk is unknown. The log then refuses requests and
//!   reports this.

mod frame;
mod keys;
mod log;
mod reader;
mod segment;
mod shared;
mod space;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use frame::FRAME_BYTES_MAX;
pub use keys::KEYS_MAX;
pub use log::{EventLog, FRAME_BYTES};
pub use reader::LogReader;
pub use segment::check;

/// Folder of all logs in the state directory.
pub const FOLDER: &str = "events";

/// Longest request that fits into a frame, with its lengths and the requests before it.
pub const REQUEST_BYTES_MAX: usize = FRAME_BYTES_MAX / 2;

/// Limits of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLimits {
    /// Most bytes on disk.
    pub bytes_max: u64,
    /// How long read events are kept if there is room, in ms.
    pub keep_ms: i64,
}

/// The result of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// Offset of the first event.
    pub offset: u64,
    /// Number of events.
    pub events: u64,
    /// An earlier request with the same key appended the events.
    pub duplicate: bool,
}

/// Why nothing was appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Too many other requests wait for the disk.
    Busy,
    /// The log has no room, and all its events are unread.
    Full,
    /// The key belongs to a request with other events.
    KeyReused,
    /// A frame with these events could not be read.
    TooLong,
    /// The disk failed.
    Disk(String),
    /// The disk has too little room for snapshots.
    Space(String),
}

/// A failure of a log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file cannot be used.
    #[error("cannot {doing} {path}: {error}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// A file was changed since it was written.
    #[error(
        "{path} is damaged at byte {at}, before events that were acknowledged; bring the file back from a copy, \
         or move it and all later segments away to go on without their events"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the damage begins, in bytes.
        at: u64,
    },
    /// The log has no event with this offset.
    #[error("the log has no offset {0}")]
    OutOfRange(u64),
}

/// Makes errors of one operation on one file.
fn failed(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> LogError {
    let path = path.to_owned();
    move |error| LogError::Io {
        doing,
        path: path.clone(),
        error,
    }
}
