//! State that the writer, the readers and the requests of a log share.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::keys::Keys;
use super::segment::{self, Segment};
use super::space::Space;
use super::{LogError, LogLimits, Refusal, failed};
use crate::files::replace;
use crate::store::file::KEEP;
use crate::telemetry::facts::REFUSALS;
use crate::telemetry::now_ms;

/// Name of the file with the offset up to which the engine has read.
const CONSUMED: &str = "consumed";

/// Measures the room on the disk of a directory.
pub(super) type SpaceOf = fn(&Path) -> Option<Space>;

/// State that the writer, the readers and the requests share.
#[derive(Debug)]
pub(super) struct Shared {
    pub directory: PathBuf,
    pub limits: LogLimits,
    space_of: SpaceOf,
    state: Mutex<State>,
    /// Notified when events were appended.
    pub grown: Condvar,
    /// Held by the one thread that deletes segments.
    deletes: Mutex<()>,
}

/// The content of the log on disk, and its counters.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Segments, oldest first; the last one grows.
    pub segments: VecDeque<Segment>,
    /// The offset in the file [`CONSUMED`].
    stored: Option<u64>,
    /// Offsets up to which the newest [`KEEP`] snapshots have the sums of all events, as far as
    /// known, the newest last. While none is known nothing is deleted, because the start may have
    /// refused the snapshot that the file describes.
    consumed: VecDeque<u64>,
    pub keys: Keys,
    pub appended: u64,
    pub duplicates: u64,
    pub refused: [u64; REFUSALS.len()],
    /// Why the log accepts no more events, if so.
    pub fault: Option<String>,
    /// Bytes that one save takes.
    saved: u64,
    /// Why the last read failed, if it did.
    pub read_fault: Option<String>,
}

impl Shared {
    /// The shared state of a log with these segments and keys, before any append.
    pub fn new(
        directory: &Path,
        space_of: SpaceOf,
        limits: LogLimits,
        segments: VecDeque<Segment>,
        keys: Keys,
    ) -> Shared {
        let first = segments.front().map_or(0, |s| s.base);
        Shared {
            directory: directory.to_owned(),
            limits,
            space_of,
            state: Mutex::new(State {
                segments,
                stored: stored(&directory.join(CONSUMED), first),
                keys,
                ..State::default()
            }),
            grown: Condvar::new(),
            deletes: Mutex::new(()),
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The offset up to which the engine has read, if stored.
    pub fn consumed(&self) -> Option<u64> {
        self.lock().stored
    }

    /// Sets the offset of the snapshot that the start uses. The file may have a lower one if the
    /// process was killed before it was written, and a higher one if a newer snapshot was refused.
    pub fn restored(&self, offset: u64) {
        let mut state = self.lock();
        let least = state.stored.map(|stored| stored.min(offset));
        // As in `consume`, an offset after the end belongs to another log.
        let least = least.filter(|_| offset <= state.end());
        state.consumed.extend(least);
    }

    /// Stores that the sums of all events before this offset are in a snapshot, and deletes old
    /// segments that no kept snapshot needs.
    pub fn consume(&self, offset: u64) -> Result<(), LogError> {
        if offset > self.lock().end() {
            // The offset belongs to another log that had the same name.
            return Ok(());
        }
        let path = self.directory.join(CONSUMED);
        replace(&path, offset.to_string().as_bytes()).map_err(failed("write", &path))?;
        {
            let mut state = self.lock();
            state.stored = Some(offset);
            state.consumed.push_back(offset);
            if state.consumed.len() > KEEP {
                state.consumed.pop_front();
            }
        }
        let old = now_ms().saturating_sub(self.limits.keep_ms);
        // All before an old segment is old, even if a clock that was ahead dated it later. An empty
        // segment has no date.
        let dated = |s: &&Segment| s.end > s.base;
        let is_old = |state: &State| {
            let mut dated = state.segments.iter().filter(dated);
            dated.any(|s| s.last_ms < old)
        };
        self.delete_while(|state| state.oldest_is_before(state.read_by_all()) && is_old(state))
    }

    /// The room on its disk, if known. Waits for the disk.
    pub fn space(&self) -> Option<Space> {
        (self.space_of)(&self.directory)
    }

    /// Makes room for a frame, within the limits of the log and on a disk with this `space`.
    /// Deletes all that the newest snapshot does not need, even if an older one may: otherwise new
    /// events would be refused. Returns a refusal if that is not enough.
    pub fn make_room(
        &self,
        bytes: u64,
        space: Option<Space>,
    ) -> Result<Result<(), Refusal>, LogError> {
        let held = self.lock().bytes();
        let is_full = |state: &State| state.bytes() + bytes > self.limits.bytes_max;
        // Deleted bytes count as free, even if the file system reports them later.
        let free = |state: &State, space: Space| space.free + held.saturating_sub(state.bytes());
        let lacks = |state: &State| {
            let reserve = |space: &Space| bytes.saturating_add(space.reserve(state.saved));
            space.filter(|space| free(state, *space) < reserve(space))
        };
        let needs_room = |state: &State| is_full(state) || lacks(state).is_some();
        self.delete_while(|s| needs_room(s) && s.oldest_is_before(s.read_by_newest()))?;
        let state = self.lock();
        Ok(match lacks(&state) {
            _ if is_full(&state) => Err(Refusal::Full),
            Some(space) => Err(Refusal::Space(format!(
                "the disk of {} has {} left, and {} are kept free for snapshots",
                self.directory.display(),
                mebibytes(free(&state, space)),
                mebibytes(space.reserve(state.saved)),
            ))),
            None => Ok(()),
        })
    }

    /// Sets the bytes that a save takes. While the disk has too little room for the next saves,
    /// because others may have filled it, deletes segments that the newest snapshot does not need.
    pub fn leave_room(&self, saved: u64) -> Result<(), LogError> {
        self.lock().saved = saved;
        self.make_room(0, self.space()).map(drop)
    }

    /// Deletes the oldest segment as long as `is_due`. The state is unlocked while a file is
    /// deleted, because readers lock it and must not wait for the disk.
    fn delete_while(&self, is_due: impl Fn(&State) -> bool) -> Result<(), LogError> {
        let _alone = self.deletes.lock();
        loop {
            let oldest = {
                let mut state = self.lock();
                let due = is_due(&state);
                due.then(|| state.segments.pop_front()).flatten()
            };
            let Some(oldest) = oldest else { return Ok(()) };
            let path = segment::path(&self.directory, oldest.base);
            let removed = fs::remove_file(&path);
            let mut state = self.lock();
            if let Err(error) = removed {
                state.segments.push_front(oldest);
                return Err(failed("delete", &path)(error));
            }
            let first = state.first();
            state.keys.forget_before(first);
        }
    }
}

impl State {
    /// Offset of the oldest event.
    pub fn first(&self) -> u64 {
        self.segments.front().map_or(0, |s| s.base)
    }

    /// Offset after the newest event.
    pub fn end(&self) -> u64 {
        self.segments.back().map_or(0, |s| s.end)
    }

    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|s| s.bytes).sum()
    }

    /// Offset before which no kept snapshot needs an event: if the newest is unusable at the next
    /// start, an older one is used. 0 until [`KEEP`] snapshots are known.
    fn read_by_all(&self) -> u64 {
        let all = Some(&self.consumed).filter(|c| c.len() == KEEP);
        all.and_then(|c| c.iter().min().copied()).unwrap_or(0)
    }

    /// Offset before which the newest snapshot needs no event.
    fn read_by_newest(&self) -> u64 {
        self.consumed.back().copied().unwrap_or(0)
    }

    /// Whether the oldest segment ends at or before `read`, and is not the one that grows.
    fn oldest_is_before(&self, read: u64) -> bool {
        let oldest = self.segments.front().filter(|s| s.end <= read);
        oldest.is_some() && self.segments.len() > 1
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// The offset in the file; `None` if there is no file. If it is unreadable, because a power failure
/// has emptied the file of an earlier version, `first` is returned: deleted events were read in any
/// case.
fn stored(path: &Path, first: u64) -> Option<u64> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        text => text.unwrap_or_default(),
    };
    let offset = text.trim().parse().ok();
    if offset.is_none() {
        let file = path.display();
        tracing::warn!(%file, first, "unreadable; the log counts as read up to its first event");
    }
    offset.or(Some(first))
}
