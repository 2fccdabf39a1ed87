//! A file of JSON lines.

use super::super::decoder::{Decoder, OutcomeDecoder};
use super::super::headers::JSON_ARRAY;
use super::super::options::{DecodeOptions, OutcomeOptions, RECORD_BYTES_MAX};
use super::super::rejection::Rejection;
use super::row::{Content, FileError, Row, Rows, failed, nothing};
use crate::collect::Reason;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// The byte order mark that some programs write first.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

pub(super) struct Json {
    input: BufReader<Box<dyn Read>>,
    events: Option<Decoder>,
    outcomes: Option<OutcomeDecoder>,
    bytes_max: usize,
    line: Vec<u8>,
    number: u64,
    /// Kept lines, with their numbers.
    kept: Vec<(u64, Vec<u8>)>,
}

impl Json {
    pub(super) fn new(
        input: Box<dyn Read>,
        events: Option<&DecodeOptions>,
        outcomes: Option<&OutcomeOptions>,
    ) -> Result<Json, FileError> {
        let most = events.map(|o| o.record_bytes_max);
        let most = most.max(outcomes.map(|o| o.record_bytes_max));
        Ok(Json {
            input: BufReader::with_capacity(1 << 16, input),
            events: events.map(Decoder::new).transpose()?,
            outcomes: outcomes.map(OutcomeDecoder::new).transpose()?,
            bytes_max: most.unwrap_or(RECORD_BYTES_MAX),
            line: Vec::new(),
            number: 0,
            kept: Vec::new(),
        })
    }

    fn content(&mut self) -> Result<Content<'_>, Rejection> {
        if self.line.len() > self.bytes_max {
            // The rest of the line was skipped.
            let most = self.bytes_max;
            let why = format!(
                "the line has more than `record_bytes_max` = {most} bytes; shorten it or raise the limit"
            );
            return Err(Rejection::new(Reason::TooLarge, why));
        }
        if let Some(events) = &mut self.events {
            // Decoded twice: the borrow of a first result could not be released to try an outcome.
            let joined = self.outcomes.is_some();
            let other = joined
                && events
                    .decode(&self.line, None, None)
                    .err()
                    .is_some_and(|e| e.reason == Reason::MissingField)
                && !events.saw_prediction();
            if !other {
                return events.decode(&self.line, None, None).map(Content::Event);
            }
        }
        match &mut self.outcomes {
            Some(outcomes) => outcomes
                .decode(&self.line, None, None)
                .map(Content::Outcome),
            None => Err(nothing()),
        }
    }
}

impl Rows for Json {
    fn advance(&mut self, path: &Path) -> Result<bool, FileError> {
        loop {
            self.number += 1;
            self.line.clear();
            // One byte above the limit distinguishes a line that is too long from one that just
            // fits.
            let limit = self.bytes_max as u64 + 2;
            let n = (&mut self.input)
                .take(limit)
                .read_until(b'\n', &mut self.line)
                .map_err(|e| failed(path, self.number, &e))?;
            if n == 0 {
                return Ok(false);
            }
            if self.number == 1 && self.line.starts_with(BYTE_ORDER_MARK) {
                self.line.drain(..BYTE_ORDER_MARK.len());
            }
            if self.number == 1 && is_array_of_objects(&self.line) {
                return Err(failed(path, 1, &JSON_ARRAY));
            }
            if self.line.last() == Some(&b'\n') {
                self.line.pop();
            } else if n as u64 == limit {
                skip_line(&mut self.input).map_err(|e| failed(path, self.number, &e))?;
            }
            if !self.line.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    fn row(&mut self) -> Row<'_> {
        Row {
            line: self.number,
            content: self.content(),
        }
    }

    fn keep(&mut self) {
        self.kept
            .push((self.number, std::mem::take(&mut self.line)));
    }

    fn recall(&mut self, kept: usize) {
        (self.number, self.line) = std::mem::take(&mut self.kept[kept]);
    }
}

/// Whether a line begins an array of objects, or consists only of the start of an array.
fn is_array_of_objects(line: &[u8]) -> bool {
    let inside = line.trim_ascii().strip_prefix(b"[");
    inside.is_some_and(|inside| matches!(inside.trim_ascii_start().first(), None | Some(b'{')))
}

fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let chunk = input.fill_buf()?;
        let end = chunk.iter().position(|&b| b == b'\n');
        let n = end.map_or(chunk.len(), |i| i + 1);
        input.consume(n);
        if end.is_some() || n == 0 {
            return Ok(());
        }
    }
}
