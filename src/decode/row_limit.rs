//! Limits the length of rows in a CSV table: an open quote would take in the rest of the file.

use super::line_ends::LineEnds;
use super::options::RECORD_BYTES_MAX;
use super::quotes::Quotes;
use std::io::{self, Read};

/// A reader that fails once a row is too long.
pub(super) struct RowLimit<R> {
    input: Quotes<LineEnds<R>>,
    /// Bytes read since the row began. The CSV reader takes blocks of 8 KiB, so this is
    /// approximate.
    taken: usize,
}

impl<R: Read> RowLimit<R> {
    /// Reads from an input.
    pub(super) fn new(input: R) -> RowLimit<R> {
        let input = Quotes::new(LineEnds::new(input));
        RowLimit { input, taken: 0 }
    }

    /// Marks the start of the next row.
    pub(super) fn begin_row(&mut self) {
        self.taken = 0;
    }

    /// Whether the row is too long.
    pub(super) fn is_over(&self) -> bool {
        self.taken > RECORD_BYTES_MAX
    }

    /// Whether the input has ended within quotes.
    pub(super) fn left_open(&self) -> bool {
        self.input.left_open()
    }
}

/// The message for a row that is too long.
pub(super) fn too_long() -> String {
    format!("a row of more than {RECORD_BYTES_MAX} bytes; is a quote open?")
}

impl<R: Read> Read for RowLimit<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_over() {
            return Err(io::Error::other(too_long()));
        }
        let n = self.input.read(buffer)?;
        self.taken += n;
        Ok(n)
    }
}
