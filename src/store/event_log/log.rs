//! An open log, and its writer thread.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use super::frame::{Frame, Request};
use super::keys::{KeyedRequest, Keys};
use super::segment::{self, Segment};
use super::shared::{Shared, SpaceOf};
use super::space::Space;
use super::{LogError, LogLimits, LogReader, Receipt, Refusal, failed};
use crate::telemetry::facts::EventLogFacts;
use crate::telemetry::now_ms;

/// Most requests that wait for the writer. Few requests read their bodies at the same time.
const WAITING_MAX: usize = 64;
/// A frame takes further requests until its events have this many bytes.
pub const FRAME_BYTES: usize = 4 << 20;
/// A segment of a large log ends at this size.
const SEGMENT_BYTES: u64 = 64 << 20;
/// A full log has about this many segments, so that deleting a small part of it makes room.
const SEGMENTS: u64 = 16;

/// A log that takes events. Dropping it ends its writer.
#[derive(Debug)]
pub struct EventLog {
    shared: Arc<Shared>,
    requests: SyncSender<Append>,
}

/// A request on its way to the writer.
#[derive(Debug)]
struct Append {
    key: Option<String>,
    digest: u64,
    events: Vec<String>,
    reply: SyncSender<Result<Receipt, Refusal>>,
}

/// Creates a directory and its missing parents, and syncs all of them: a power failure must not
/// lose a new log with acknowledged events.
fn create_synced(directory: &Path) -> io::Result<()> {
    let missing = directory.ancestors().take_while(|path| !path.exists());
    let missing: Vec<&Path> = missing.collect();
    fs::create_dir_all(directory)?;
    let above = missing.into_iter().filter_map(Path::parent);
    for parent in above.filter(|path| !path.as_os_str().is_empty()) {
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}

impl EventLog {
    /// Opens the log of a directory, or begins one. Reads and checks all of it, and starts the
    /// writer.
    pub fn open(directory: &Path, limits: LogLimits) -> Result<EventLog, LogError> {
        EventLog::open_on(directory, limits, Space::of)
    }

    /// Like [`EventLog::open`], on a disk whose room `space` returns.
    pub(super) fn open_on(
        directory: &Path,
        limits: LogLimits,
        space: SpaceOf,
    ) -> Result<EventLog, LogError> {
        create_synced(directory).map_err(failed("create", directory))?;
        let mut keys = Keys::default();
        let mut segments: VecDeque<Segment> = VecDeque::new();
        let bases = segment::bases(directory)?;
        for (i, &base) in bases.iter().enumerate() {
            if segments.back().is_some_and(|before| before.end != base) {
                let path = segment::path(directory, base);
                return Err(LogError::Damaged { path, at: 0 });
            }
            let last = i + 1 == bases.len();
            segments.push_back(Segment::read(directory, base, last, &mut |frame| {
                remember(&mut keys, frame);
            })?);
        }
        if segments.is_empty() {
            segments.push_back(Segment::create(directory, 0)?.0);
        }
        let shared = Arc::new(Shared::new(directory, space, limits, segments, keys));
        let (requests, inbox) = sync_channel(WAITING_MAX);
        let writer = Writer::new(Arc::clone(&shared))?;
        let thread = std::thread::Builder::new().name("event log".to_owned());
        let ours = Arc::clone(&shared);
        let thread = thread.spawn(move || {
            if catch_unwind(AssertUnwindSafe(|| writer.run(&inbox))).is_err() {
                // The panic message was already printed.
                let why = "its writer has ended, which is a bug: restart".to_owned();
                ours.lock().fault.get_or_insert(why);
            }
        });
        thread.map_err(failed("start the writer of", directory))?;
        Ok(EventLog { shared, requests })
    }

    /// Appends events, each one JSON object, and returns when they are on disk. `key` names the
    /// request, and `digest` is a hash of its events.
    pub fn append(
        &self,
        key: Option<String>,
        digest: u64,
        events: Vec<String>,
    ) -> Result<Receipt, Refusal> {
        let (reply, answer) = sync_channel(1);
        let append = Append {
            key,
            digest,
            events,
            reply,
        };
        let ended = || Refusal::Disk("the writer of the event log has ended".to_owned());
        let result = match self.requests.try_send(append) {
            Ok(()) => answer.recv().unwrap_or_else(|_| Err(ended())),
            Err(TrySendError::Full(_)) => Err(Refusal::Busy),
            Err(TrySendError::Disconnected(_)) => Err(ended()),
        };
        let mut state = self.shared.lock();
        match &result {
            Ok(receipt) if receipt.duplicate => state.duplicates += 1,
            Ok(receipt) => state.appended += receipt.events,
            Err(refusal) => state.refused[place(refusal)] += 1,
        }
        result
    }

    /// Counts a request whose events would be rejected.
    pub fn count_rejected(&self) {
        self.shared.lock().refused[4] += 1;
    }

    /// A reader of the log, which begins at its first event.
    pub fn reader(&self) -> LogReader {
        LogReader::new(Arc::clone(&self.shared))
    }

    /// See [`Shared::restored`].
    pub fn restored(&self, offset: u64) {
        self.shared.restored(offset);
    }

    /// See [`Shared::consume`]. Waits for the disk.
    pub fn consume(&self, offset: u64) -> Result<(), LogError> {
        self.shared.consume(offset)
    }

    /// See [`Shared::leave_room`]. Waits for the disk.
    pub fn leave_room(&self, saved: u64) -> Result<(), LogError> {
        self.shared.leave_room(saved)
    }

    /// Figures of the log for metrics.
    pub fn facts(&self) -> EventLogFacts {
        let state = self.shared.lock();
        EventLogFacts {
            bytes: state.bytes(),
            first: state.first(),
            end: state.end(),
            appended: state.appended,
            duplicates: state.duplicates,
            keys: state.keys.len() as u64,
            keys_forgotten: state.keys.forgotten,
            refused: state.refused,
            fault: state.fault.clone(),
            read_fault: state.read_fault.clone(),
        }
    }
}

/// The index of a refusal in [`REFUSALS`](crate::telemetry::facts::REFUSALS).
fn place(refusal: &Refusal) -> usize {
    match refusal {
        Refusal::Busy => 0,
        Refusal::Full => 1,
        Refusal::KeyReused => 2,
        Refusal::Disk(_) => 3,
        Refusal::TooLong => 4,
        Refusal::Space(_) => 5,
    }
}

fn remember(keys: &mut Keys, frame: &Frame<'_>) {
    let mut base = frame.base;
    for request in &frame.requests {
        let events = request.events.len() as u64;
        if let Some(key) = request.key {
            let digest = request.digest;
            let known = KeyedRequest {
                base,
                events,
                digest,
            };
            keys.insert(key, known);
        }
        base += events;
    }
}

/// The thread that appends.
struct Writer {
    shared: Arc<Shared>,
    file: File,
}

/// When and how a request of a group is answered.
enum Outcome {
    /// At once.
    Answer(Result<Receipt, Refusal>),
    /// Once the frame is on disk.
    Appended(Receipt),
}

impl Writer {
    fn new(shared: Arc<Shared>) -> Result<Writer, LogError> {
        let base = shared.lock().segments.back().map_or(0, |s| s.base);
        let path = segment::path(&shared.directory, base);
        let file = File::options().write(true).open(&path);
        let file = file.map_err(failed("open", &path))?;
        Ok(Writer { shared, file })
    }

    fn run(mut self, inbox: &Receiver<Append>) {
        while let Ok(first) = inbox.recv() {
            let size = |append: &Append| append.events.iter().map(String::len).sum::<usize>();
            let mut bytes = size(&first);
            let mut group = vec![first];
            while bytes < FRAME_BYTES
                && let Ok(next) = inbox.try_recv()
            {
                bytes += size(&next);
                group.push(next);
            }
            let answers = self.append(&group);
            for (append, answer) in group.iter().zip(answers) {
                // The requester may no longer wait.
                let _ = append.reply.send(answer);
            }
        }
    }

    /// Appends the requests of a group as one frame, and returns the answer to each.
    fn append(&mut self, group: &[Append]) -> Vec<Result<Receipt, Refusal>> {
        if let Some(fault) = &self.shared.lock().fault {
            let refused = Err(Refusal::Disk(fault.clone()));
            return vec![refused; group.len()];
        }
        let (outcomes, frame) = self.plan(group);
        let written = match frame.requests.is_empty() {
            true => Ok(()),
            false => self.write(&frame),
        };
        let answer = |outcome| match outcome {
            Outcome::Answer(answer) => answer,
            Outcome::Appended(receipt) => written.clone().map(|()| receipt),
        };
        outcomes.into_iter().map(answer).collect()
    }

    /// Decides which requests of a group are appended, and makes the frame with them.
    fn plan<'a>(&self, group: &'a [Append]) -> (Vec<Outcome>, Frame<'a>) {
        let state = self.shared.lock();
        let mut frame = Frame {
            base: state.end(),
            // Taken here and not later: a clock that was once ahead would otherwise set the time of
            // all that follows.
            at_ms: now_ms(),
            requests: Vec::new(),
        };
        let mut outcomes = Vec::new();
        // Keys of requests in this frame.
        let mut fresh = Keys::default();
        let mut next = frame.base;
        for append in group {
            let (digest, events) = (append.digest, append.events.len() as u64);
            let key = append.key.as_deref();
            let stored = key.and_then(|key| state.keys.get(key));
            if let Some(earlier) = stored.or_else(|| fresh.get(key?)) {
                let receipt = Receipt {
                    offset: earlier.base,
                    events: earlier.events,
                    duplicate: true,
                };
                outcomes.push(match earlier.digest == digest {
                    true if stored.is_some() => Outcome::Answer(Ok(receipt)),
                    // The earlier request is in this frame, so this one waits for it to be on disk.
                    true => Outcome::Appended(receipt),
                    false => Outcome::Answer(Err(Refusal::KeyReused)),
                });
                continue;
            }
            if let Some(key) = key {
                let base = next;
                let known = KeyedRequest {
                    base,
                    events,
                    digest,
                };
                fresh.insert(key, known);
            }
            outcomes.push(Outcome::Appended(Receipt {
                offset: next,
                events,
                duplicate: false,
            }));
            let events = append.events.iter().map(String::as_str).collect();
            frame.requests.push(Request {
                key,
                digest,
                events,
            });
            next += append.events.len() as u64;
        }
        (outcomes, frame)
    }

    /// Writes and syncs a frame.
    fn write(&mut self, frame: &Frame<'_>) -> Result<(), Refusal> {
        let disk = |error: &dyn std::fmt::Display| Refusal::Disk(error.to_string());
        let bytes = frame.write().map_err(|_| Refusal::TooLong)?;
        let length = bytes.len() as u64;
        let space = self.shared.space();
        // First: a segment that grows makes no room. A disk without any has no room for a new one.
        let rolled = self.roll(frame.at_ms, space);
        let room = self.shared.make_room(length, space);
        room.map_err(|error| disk(&error))??;
        let rolled = rolled.or_else(|_| self.roll(frame.at_ms, space));
        rolled.map_err(|error| disk(&error))?;
        let at = self.shared.lock().segments.back().map_or(0, |s| s.bytes);
        if let Err(error) = self.file.write_all_at(&bytes, at) {
            // A partial write is cut off, so that the log ends where it did before.
            if let Err(error) = self.file.set_len(at) {
                self.fail(&error);
            }
            return Err(disk(&error));
        }
        self.sync().map_err(|error| {
            self.fail(&error);
            disk(&error)
        })?;
        let mut state = self.shared.lock();
        remember(&mut state.keys, frame);
        if let Some(last) = state.segments.back_mut() {
            last.add(frame, length);
        }
        self.shared.grown.notify_all();
        Ok(())
    }

    /// Begins a new segment if the last one is long or old.
    fn roll(&mut self, now_ms: i64, space: Option<Space>) -> Result<(), LogError> {
        let limits = self.shared.limits;
        // The disk may be smaller than the limit of the log.
        let most = space.map_or(limits.bytes_max, |s| s.total.min(limits.bytes_max));
        let is_due = |last: &Segment| {
            let long = last.bytes >= SEGMENT_BYTES.min(most / SEGMENTS);
            let old = now_ms.saturating_sub(last.first_ms) > limits.keep_ms;
            last.end > last.base && (long || old)
        };
        let due = {
            let state = self.shared.lock();
            let last = state.segments.back().filter(|last| is_due(last));
            last.map(|last| last.end)
        };
        // Created without the lock, because readers take it and must not wait for the disk. Nobody
        // else adds segments.
        if let Some(begin) = due {
            let (segment, file) = Segment::create(&self.shared.directory, begin)?;
            self.shared.lock().segments.push_back(segment);
            self.file = file;
        }
        Ok(())
    }

    /// Syncs, and fails if the file was deleted meanwhile.
    fn sync(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.sync_data()?;
        match self.file.metadata()?.nlink() {
            0 => Err(io::Error::other("the file was deleted under this process")),
            _ => Ok(()),
        }
    }

    /// Stops the log, because the content of the disk is no longer known.
    fn fail(&self, error: &io::Error) {
        let directory = self.shared.directory.display();
        let fault =
            format!("the disk of {directory} failed: {error}; restart on a disk that works");
        tracing::error!(fault, "the event log accepts no more events");
        self.shared.lock().fault = Some(fault);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_of_what_is_on_disk_is_acknowledged_though_the_rest_of_its_frame_is_refused() {
        let directory = tempfile::TempDir::with_prefix("trueline-retry-").expect("a folder");
        let limits = LogLimits {
            bytes_max: 64 << 10,
            keep_ms: 1 << 40,
        };
        let log = EventLog::open(directory.path(), limits).expect("it opens");
        let first = log.append(Some("a".to_owned()), 7, vec!["{}".to_owned()]);
        let first = first.expect("there is room");
        let large = || vec!["1".repeat(8 << 10)];
        while log.append(None, 0, large()).is_ok() {}
        let request = |key: Option<&str>, digest, events| Append {
            key: key.map(str::to_owned),
            digest,
            events,
            reply: sync_channel(1).0,
        };
        let group = [
            request(Some("a"), 7, vec!["{}".to_owned()]),
            request(None, 0, large()),
        ];
        let mut writer = Writer::new(Arc::clone(&log.shared)).expect("a writer");
        let receipt = Receipt {
            duplicate: true,
            ..first
        };
        assert_eq!(writer.append(&group), [Ok(receipt), Err(Refusal::Full)]);
    }
}
