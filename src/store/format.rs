//! The version of the stored format, and why state cannot be read or written.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Version of the snapshot format. Older versions are not read: none was ever released. A directory
/// of this one and of the one before are recorded in `tests/engine/recorded_state`, for a test.
pub const VERSION: u32 = 28;

/// What is wrong with a stored file or checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FormatError {
    /// It is shorter or longer than its header says, or a journal is shorter than its mark.
    Torn,
    /// It is not there, and something else needs it.
    Missing,
    /// trueline did not write it.
    Foreign,
    /// A newer version wrote it.
    Future(u32),
    /// An older version wrote it, whose format is no longer read.
    Past(u32),
    /// The checksum does not match the body.
    Checksum,
    /// The body cannot be decoded.
    Body(String),
}

/// Why a snapshot was not written or read. The message names the path and the remedy.
#[derive(Debug)]
pub enum StoreError {
    /// The operating system refused.
    Io {
        /// The operation.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// There are snapshots, and none is usable. An empty start would silently lose their sums.
    Refused(Vec<(PathBuf, FormatError)>),
}

/// Adds the operation and the path to an error of the operating system.
pub(super) fn at<'a>(
    doing: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> StoreError + 'a {
    move |source| StoreError::Io {
        doing,
        path: path.to_owned(),
        source,
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FormatError::Torn => f.write_str("torn: its length is not the recorded one"),
            FormatError::Missing => f.write_str("missing"),
            FormatError::Foreign => f.write_str("foreign: not a snapshot of trueline"),
            FormatError::Future(v) => write!(
                f,
                "from the future: format {v}, this program reads {VERSION}; upgrade it"
            ),
            FormatError::Past(v) => write!(
                f,
                "from the past: format {v}, this program reads {VERSION}; start with an empty directory"
            ),
            FormatError::Checksum => f.write_str("damaged: the checksum does not match"),
            FormatError::Body(why) => write!(f, "undecodable: {why}"),
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Io {
                doing,
                path,
                source,
            } => write!(f, "{doing} {}: {source}", path.display()),
            StoreError::Refused(files) => {
                write!(f, "no usable snapshot: ")?;
                for (path, fault) in files {
                    write!(f, "{}: {fault}; ", path.display())?;
                }
                write!(
                    f,
                    "to start without state, set it aside with `trueline state reset DIRECTORY`"
                )
            }
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StoreError::Io { source, .. } => Some(source),
            StoreError::Refused(_) => None,
        }
    }
}
