//! Detects a CSV quote that is still open at the end of the input.
//!
//! The CSV reader takes the end of the input as the end of a quoted cell, so a quote that is never
//! closed silently makes one cell of all following rows. This reader passes the bytes on and
//! follows the quotes by the same rules.

use std::io::{self, Read};

/// The state of the CSV reader after the last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before a cell.
    Start,
    /// In a cell without quotes around it; a quote within it is an ordinary character.
    Plain,
    /// Between quotes.
    Quoted,
    /// After a quote that ends the cell, or is the first of two that stand for one.
    Ended,
}

impl State {
    fn after(self, byte: u8) -> State {
        match (self, byte) {
            (State::Start, b'"') | (State::Ended, b'"') => State::Quoted,
            (State::Quoted, b'"') => State::Ended,
            (State::Quoted, _) => State::Quoted,
            (_, b',' | b'\n' | b'\r') => State::Start,
            _ => State::Plain,
        }
    }
}

/// A reader that follows the quotes in what it passes on.
pub struct Quotes<R> {
    input: R,
    state: State,
    /// Something was already read.
    begun: bool,
    ended: bool,
}

impl<R: Read> Quotes<R> {
    /// Reads from an input.
    pub fn new(input: R) -> Quotes<R> {
        Quotes {
            input,
            state: State::Start,
            begun: false,
            ended: false,
        }
    }

    /// Whether the input has ended within quotes.
    pub fn left_open(&self) -> bool {
        self.ended && self.state == State::Quoted
    }
}

/// The message for a row whose quote is never closed.
pub const LEFT_OPEN: &str = "a quote is opened here and never closed, so the rest of the file is one cell; close it, \
                             or write a quote within a cell twice";

impl<R: Read> Read for Quotes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.input.read(buffer)?;
        let mut read = &buffer[..n];
        self.ended |= n == 0 && !buffer.is_empty();
        if !std::mem::replace(&mut self.begun, true) {
            // The CSV reader skips the mark, so a quote after it opens a cell.
            read = read.strip_prefix(b"\xef\xbb\xbf").unwrap_or(read);
        }
        // Without a quote in these bytes, the last byte determines the state.
        let known = match read.contains(&b'"') {
            true => read,
            false => &read[read.len().saturating_sub(1)..],
        };
        self.state = known.iter().fold(self.state, |state, &b| state.after(b));
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::slow::Slow;

    #[test]
    fn a_quote_is_open_at_the_end_exactly_where_it_opened_a_cell_and_no_other_closed_it() {
        for (text, open) in [
            ("a,b\n1,2\n", false),
            ("a,\"b\n1,2\n", true),
            ("a,\"b\"\n1,2", false),
            ("a,\"b\"\"\n1,2\n", true),
            ("a,\"b\"\"\"\n1,2\n", false),
            ("a,5\" screen\n1,2\n", false),
            ("a,\"b\"c\"\n", false),
            ("a, \"b\n", false),
            ("\"", true),
            ("\"\"", false),
            ("\u{feff}\"a\nb", true),
            ("a\r\"b\n", true),
            ("", false),
        ] {
            for step in 3..=text.len().max(3) {
                let mut input = Quotes::new(Slow(text.as_bytes(), step));
                let mut read = String::new();
                input.read_to_string(&mut read).expect("text");
                assert_eq!((read.as_str(), input.left_open()), (text, open), "{step}");
                // The CSV reader agrees: what follows an open quote is in its last cell.
                let more = format!("{text}\nend\n");
                let mut builder = csv::ReaderBuilder::new();
                let builder = builder.has_headers(false).flexible(true);
                let mut rows = builder.from_reader(more.as_bytes()).into_records();
                let last = rows.by_ref().last().expect("a row").expect("text");
                assert_eq!(last.get(last.len() - 1) != Some("end"), open, "{text:?}");
            }
        }
    }
}
