//! Files of events for `replay`: JSON lines or CSV, plain, gzip or zstd.

use super::decoder::Rejection;
use super::event::Event;
use super::options::{DecodeOptions, DecodeOptionsError};
use std::path::{Path, PathBuf};

/// Reads a file of events, one after the other.
pub struct FileReader {
    path: PathBuf,
}

/// Why a file cannot be read; the text names the file and, where there is one, the line.
#[derive(Debug)]
pub enum FileError {
    /// Opening or reading failed, or the compression is damaged.
    Io(String),
    /// The options do not fit the file: a column is missing.
    Options(DecodeOptionsError),
}

impl std::fmt::Display for FileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FileError::Io(e) => f.write_str(e),
            FileError::Options(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for FileError {}

impl FileReader {
    /// Opens `path`: `.csv` is CSV with a header, all else JSON lines; `.gz` and `.zst` are unpacked.
    pub fn open(path: &Path, _options: &DecodeOptions) -> Result<FileReader, FileError> {
        Ok(FileReader { path: path.into() })
    }

    /// The next record: its line number (from 1) and the event, or why it is none; `None` at the end.
    /// An error of the file itself ends the reading.
    #[allow(clippy::type_complexity)]
    pub fn read(&mut self) -> Result<Option<(u64, Result<Event<'_>, Rejection>)>, FileError> {
        Err(FileError::Io(self.path.display().to_string()))
    }

    /// Bytes of the file (as stored, compressed or not) read so far, for a progress bar.
    pub fn bytes_read(&self) -> u64 {
        0
    }
}
