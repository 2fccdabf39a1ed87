//! Reads a log from a given offset.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::frame::{self, Frame, HEAD};
use super::segment::{self, FIRST, Segment};
use super::shared::Shared;
use super::{LogError, failed};

/// A position in a log. It reads only synced events.
#[derive(Debug)]
pub struct LogReader {
    shared: Arc<Shared>,
    /// Offset of the next event.
    next: u64,
    /// The segment being read: its base, its file, and the position of the next frame.
    open: Option<(u64, File, u64)>,
    /// The bytes of the current frame, and in `events` the positions of its remaining events.
    bytes: Vec<u8>,
    events: std::vec::IntoIter<Range<usize>>,
    /// When the frame was written.
    at_ms: i64,
}

impl LogReader {
    pub(super) fn new(shared: Arc<Shared>) -> LogReader {
        let next = shared.lock().first();
        LogReader {
            shared,
            next,
            open: None,
            bytes: Vec::new(),
            events: Vec::new().into_iter(),
            at_ms: 0,
        }
    }

    /// Offset of the next event.
    pub fn position(&self) -> u64 {
        self.next
    }

    /// Continues reading at this offset.
    pub fn seek(&mut self, offset: u64) {
        self.next = offset;
        self.open = None;
        self.events = Vec::new().into_iter();
    }

    /// Offset of the oldest event, and the one after the newest.
    pub fn range(&self) -> (u64, u64) {
        let state = self.shared.lock();
        (state.first(), state.end())
    }

    /// The offset up to which the engine has read, if stored.
    pub fn consumed(&self) -> Option<u64> {
        self.shared.consumed()
    }

    /// Publishes why a read failed, or that reads succeed again.
    pub fn report(&self, fault: Option<String>) {
        self.shared.lock().read_fault = fault;
    }

    /// Waits until there are new events, at most this long.
    pub fn wait(&self, within: Duration) {
        let mut state = self.shared.lock();
        let grown = &self.shared.grown;
        grown.wait_while_for(&mut state, |state| state.end() <= self.next, within);
    }

    /// Passes at most `max` events to `each`: offset, time of writing in ms since 1970, and text.
    /// Returns their number. If it fails it has passed none; then call [`seek`](LogReader::seek)
    /// before the next read.
    pub fn read(
        &mut self,
        max: usize,
        each: &mut dyn FnMut(u64, i64, &[u8]),
    ) -> Result<usize, LogError> {
        let mut count = 0;
        while count < max {
            let Some(range) = self.events.next() else {
                if count > 0 || !self.load()? {
                    break;
                }
                continue;
            };
            each(self.next, self.at_ms, &self.bytes[HEAD..][range]);
            self.next += 1;
            count += 1;
        }
        Ok(count)
    }

    /// Loads the frame with the next event. Returns whether there is one.
    fn load(&mut self) -> Result<bool, LogError> {
        let segment = {
            let state = self.shared.lock();
            if self.next == state.end() {
                return Ok(false);
            }
            let mut holding = state.segments.iter();
            holding
                .find(|s| (s.base..s.end).contains(&self.next))
                .copied()
        };
        let segment = segment.ok_or(LogError::OutOfRange(self.next))?;
        loop {
            let (sum, at) = self.next_frame(&segment)?;
            let Some(frame) = frame::body(&self.bytes[HEAD..], sum) else {
                let path = segment::path(&self.shared.directory, segment.base);
                return Err(LogError::Damaged { path, at });
            };
            if frame.base + frame.events() <= self.next {
                continue;
            }
            let skipped = self.next.saturating_sub(frame.base) as usize;
            self.at_ms = frame.at_ms;
            self.events = places(&frame, &self.bytes[HEAD..])[skipped..]
                .to_vec()
                .into_iter();
            return Ok(true);
        }
    }

    /// Reads the next frame of a segment into `bytes`. Returns the checksum of its body, and its
    /// position.
    fn next_frame(&mut self, segment: &Segment) -> Result<(u32, u64), LogError> {
        let path = segment::path(&self.shared.directory, segment.base);
        let (file, at) = match self.open.take() {
            Some((base, file, at)) if base == segment.base => (file, at),
            _ => (File::open(&path).map_err(failed("open", &path))?, FIRST),
        };
        let read = segment::frame_at(&file, at, &mut self.bytes);
        let (sum, next) = read.map_err(failed("read", &path))?;
        self.open = Some((segment.base, file, next));
        Ok((sum, at))
    }

    /// Offset of the first event that was written at this time or later, in ms since 1970; `None`
    /// if all are older.
    pub fn first_since(&self, ms: i64) -> Result<Option<u64>, LogError> {
        let segments = self.shared.lock().segments.clone();
        let holds = |s: &&Segment| s.end > s.base && s.last_ms >= ms;
        let Some(segment) = segments.iter().find(holds) else {
            return Ok(None);
        };
        let mut reader = LogReader::new(Arc::clone(&self.shared));
        reader.seek(segment.base);
        while reader.load()? {
            if reader.at_ms >= ms {
                return Ok(Some(reader.next));
            }
            reader.next += reader.events.len() as u64;
        }
        Ok(None)
    }
}

/// The positions of the events of a frame in the bytes that it borrows.
fn places(frame: &Frame<'_>, bytes: &[u8]) -> Vec<Range<usize>> {
    let start = bytes.as_ptr() as usize;
    let events = frame.requests.iter().flat_map(|r| &r.events);
    let place = |event: &&str| {
        let from = event.as_ptr() as usize - start;
        from..from + event.len()
    };
    events.map(place).collect()
}
