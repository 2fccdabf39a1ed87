//! A reader for tests of readers.

use std::io::{self, Read};

/// Gives a few bytes at a time.
pub struct Slow<'t>(pub &'t [u8], pub usize);

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.1.min(buffer.len()).min(self.0.len());
        let (now, later) = self.0.split_at(n);
        buffer[..n].copy_from_slice(now);
        self.0 = later;
        Ok(n)
    }
}
