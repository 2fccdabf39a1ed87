//! The event log: events that were posted, on disk before they are acknowledged.
//!
//! ```text
//!  POST ─► EventLog::append ─► writer thread: one frame, one sync ─► Receipt
//!                                    │
//!                              segments on disk ─► LogReader ─► engine ─► consumed
//! ```
//!
//! For teams without Kafka the log takes the place of a topic with one partition. Each event has an
//! offset, and the engine reads it like a topic: a snapshot holds sums and offset of one moment, so
//! a restart reads again what the snapshot does not have. Therefore nothing that was acknowledged
//! is lost, and nothing counts twice.
//!
//! * Requests that arrive together share one write and one sync ([`frame`]).
//! * A request may carry an idempotency key. As long as its events are in the log, a second request
//!   with the key appends nothing and is answered like the first ([`keys`]).
//! * Segments that the engine has read, and whose sums are in all snapshots that are kept, are
//!   deleted once they are old. Where the log needs room they go earlier, once the newest snapshot
//!   has their sums. Where all that is left is unread, requests are refused.
//! * So are they while the disk has too little room for snapshots ([`space`]).
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

/// Longest request for which there is room in a frame, with its lengths and the requests before it.
pub const REQUEST_BYTES_MAX: usize = FRAME_BYTES_MAX / 2;

/// Limits of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLimits {
    /// Most bytes on disk.
    pub bytes_max: u64,
    /// How long events that were read are kept, in ms, as long as there is room.
    pub keep_ms: i64,
}

/// What was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// Offset of the first event.
    pub offset: u64,
    /// Number of events.
    pub events: u64,
    /// An earlier request with the same key has appended them.
    pub duplicate: bool,
}

/// Why nothing was appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Other requests wait for the disk.
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
    /// A file is not as it was written.
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

/// Makes an error of what was tried with a file.
fn failed(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> LogError {
    let path = path.to_owned();
    move |error| LogError::Io {
        doing,
        path: path.clone(),
        error,
    }
}
