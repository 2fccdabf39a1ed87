//! Reads lines that end with `\r\n`, as on Windows, as lines that end with `\n`.
//!
//! The CSV reader ends a row at `\r` and counts `\n` as the start of the next row, so it would
//! report that row one line too early.

use std::io::{self, Read};

/// A reader that drops each `\r` before `\n`.
pub struct LineEnds<R> {
    input: R,
    /// The last byte was `\r`, and the byte after it has not been read yet.
    held: bool,
}

impl<R: Read> LineEnds<R> {
    /// Reads from an input.
    pub fn new(input: R) -> LineEnds<R> {
        LineEnds { input, held: false }
    }
}

impl<R: Read> Read for LineEnds<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some((first, rest)) = buffer.split_first_mut() else {
            return Ok(0);
        };
        if rest.is_empty() {
            // The buffer has no room to look ahead, so the byte passes unchanged.
            return match std::mem::take(&mut self.held) {
                true => {
                    *first = b'\r';
                    Ok(1)
                }
                false => self.input.read(buffer),
            };
        }
        loop {
            let begin = usize::from(self.held);
            let n = self.input.read(&mut buffer[begin..])?;
            if self.held {
                buffer[0] = b'\r';
                self.held = n > 0;
            }
            if n == 0 {
                return Ok(begin);
            }
            let mut len = begin + n;
            self.held = buffer[len - 1] == b'\r';
            len -= usize::from(self.held);
            if buffer[..len].contains(&b'\r') {
                let next = |i: usize| (i + 1 < len).then(|| buffer[i + 1]);
                let kept: Vec<u8> = (0..len)
                    .filter(|&i| buffer[i] != b'\r' || next(i) != Some(b'\n'))
                    .map(|i| buffer[i])
                    .collect();
                buffer[..kept.len()].copy_from_slice(&kept);
                len = kept.len();
            }
            if len > 0 {
                return Ok(len);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::slow::Slow;

    #[test]
    fn only_the_carriage_return_of_a_line_end_is_left_out_however_the_bytes_come() {
        let text = "a,b\r\nc\rd\r\r\n\r\n\n\"x\r\ny\"\r";
        let wanted = "a,b\nc\rd\r\n\n\n\"x\ny\"\r";
        for step in 1..=text.len() {
            let mut read = String::new();
            let mut input = LineEnds::new(Slow(text.as_bytes(), step));
            input.read_to_string(&mut read).expect("text");
            assert_eq!(read, wanted, "{step} bytes at a time");
        }
    }
}
