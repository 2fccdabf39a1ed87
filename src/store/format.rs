//! The version of the stored format, and why state cannot be read or written.

use std::io;
use std::path::{Path, PathBuf};

/// Version of the snapshot format. Older versions are not read: none was ever released. A directory
/// of this one and of the one before are recorded in `tests/engine/recorded_state`, for a test.
pub const VERSION: u32 = 31;

/// The fault of a stored file or checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// It is shorter or longer than its header says, or a journal is shorter than its mark.
    #[error("torn: its length is not the recorded one")]
    Torn,
    /// It does not exist, but something else needs it.
    #[error("missing")]
    Missing,
    /// The operating system refused to read it.
    #[error("unreadable: {0}")]
    Unreadable(String),
    /// trueline did not write it.
    #[error("foreign: not a snapshot of trueline")]
    Foreign,
    /// A newer version wrote it.
    #[error("from the future: format {0}, this program reads {VERSION}; upgrade it")]
    Future(u32),
    /// An older version wrote it, whose format is no longer read.
    #[error(
        "from the past: format {0}, this program reads {VERSION}; start with an empty directory"
    )]
    Past(u32),
    /// The checksum does not match the body.
    #[error("damaged: the checksum does not match")]
    Checksum,
    /// The body cannot be decoded.
    #[error("undecodable: {0}")]
    Body(String),
    /// It was decoded but cannot be used.
    #[error("unusable: {0}")]
    Unusable(String),
}

/// Why a snapshot was not written or read. The message names the path and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system refused.
    #[error("{doing} {path}: {source}")]
    Io {
        /// The operation.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// There are snapshots, but none is usable. An empty start would silently lose their sums.
    #[error(
        "no usable snapshot: {}to start without state, set it aside with `trueline state reset DIRECTORY`",
        faults(.0)
    )]
    Refused(Vec<(PathBuf, FormatError)>),
}

fn faults(files: &[(PathBuf, FormatError)]) -> String {
    let each = |(path, fault): &(PathBuf, FormatError)| format!("{}: {fault}; ", path.display());
    files.iter().map(each).collect()
}

/// What follows the magic and the version of a file or head that this program reads.
pub(super) fn after_version<'b>(
    bytes: &'b [u8],
    magic: &[u8; 8],
    version: u32,
) -> Result<&'b [u8], FormatError> {
    let (start, rest) = bytes.split_first_chunk::<8>().ok_or(FormatError::Torn)?;
    if start != magic {
        return Err(FormatError::Foreign);
    }
    let (theirs, rest) = rest.split_first_chunk::<4>().ok_or(FormatError::Torn)?;
    match u32::from_le_bytes(*theirs) {
        0 => Err(FormatError::Foreign),
        older if older < version => Err(FormatError::Past(older)),
        newer if newer > version => Err(FormatError::Future(newer)),
        _ => Ok(rest),
    }
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
