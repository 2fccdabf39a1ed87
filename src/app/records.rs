//! Records of changes of alerts, a file each, in `records/` beside the snapshots.
//!
//! A thread of its own makes and writes them: evaluations as JSON and sums as text take milliseconds, and a disk may take longer. The
//! engine's thread hands over what it has anyway; when [`WAITING_BYTES_MAX`] wait, the next is not written, and the log says so. Files are
//! written aside and renamed, so that each is whole. At most so many as are configured are kept, the oldest go first.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::fault::Fault;
use crate::judge::{Change, Step};
use crate::report::record::Record;

/// Name of the folder.
pub const FOLDER: &str = "records";

/// Bytes of sums that may wait for the disk: a thousand streams may change at once, with some tens of kilobytes each.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// What a change takes beside its sums, at most.
const CHANGE_BYTES: usize = 48 << 10;

/// What the thread is given.
struct Letter {
    change: Change,
    configuration: String,
    offsets: Vec<(String, i32, i64)>,
    bytes: usize,
}

/// The thread that writes.
pub struct Records {
    letters: Option<Sender<Letter>>,
    waiting: Arc<AtomicUsize>,
    lost: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Records {
    /// Starts the thread; `max` files are kept in the state directory's folder, none when it is 0.
    pub fn start(directory: &Path, max: usize) -> Result<Records, Fault> {
        if max == 0 {
            return Ok(Records {
                letters: None,
                waiting: Arc::default(),
                lost: Arc::default(),
                thread: None,
            });
        }
        let folder = directory.join(FOLDER);
        let cannot = |error: io::Error| {
            Fault::Unavailable(format!("cannot create {}: {error}", folder.display()))
        };
        fs::create_dir_all(&folder).map_err(cannot)?;
        let (letters, inbox) = channel::<Letter>();
        let waiting = Arc::new(AtomicUsize::new(0));
        let theirs = Arc::clone(&waiting);
        let lost = Arc::new(AtomicU64::new(0));
        let unwritten = Arc::clone(&lost);
        let thread = std::thread::Builder::new().name("records".to_owned());
        let thread = thread.spawn(move || {
            let mut kept = list(&folder).unwrap_or_default();
            for letter in inbox {
                if let Err(error) = write(&folder, &letter, &mut kept, max) {
                    unwritten.fetch_add(1, Ordering::Relaxed);
                    crate::warn_limited!(%error, "record of an alert not written; it cannot be explained later");
                }
                theirs.fetch_sub(letter.bytes, Ordering::Relaxed);
            }
        });
        let thread = thread
            .map_err(|error| Fault::Unavailable(format!("cannot start a thread: {error}")))?;
        Ok(Records {
            letters: Some(letters),
            waiting,
            lost,
            thread: Some(thread),
        })
    }

    /// Takes the changes of alerts among these; never waits.
    pub fn take(
        &self,
        changes: &[Change],
        configuration: &str,
        offsets: impl Fn() -> Vec<(String, i32, i64)>,
    ) {
        let Some(letters) = &self.letters else { return };
        for change in changes {
            if !matches!(change.step, Step::Stream { .. }) {
                continue;
            }
            let bytes = bytes_of(change);
            let waiting = self.waiting.fetch_add(bytes, Ordering::Relaxed) + bytes;
            let letter = Letter {
                change: change.clone(),
                configuration: configuration.to_owned(),
                offsets: offsets(),
                bytes,
            };
            if waiting > WAITING_BYTES_MAX || letters.send(letter).is_err() {
                self.waiting.fetch_sub(bytes, Ordering::Relaxed);
                self.lost.fetch_add(1, Ordering::Relaxed);
                let stream = change.stream.to_string();
                crate::warn_limited!(%stream, "too many records wait for the disk; one is not written");
            }
        }
    }

    /// Records that were not written.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Ends within the time, when all are written.
    pub fn stop(mut self, within: Duration) {
        drop(self.letters.take());
        let until = Instant::now() + within;
        let Some(thread) = self.thread.take() else {
            return;
        };
        while !thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// What a change holds in memory, about.
fn bytes_of(change: &Change) -> usize {
    let evidence = change.facts.as_ref().and_then(|f| f.evidence.as_ref());
    let sums = evidence.iter().flat_map(|e| e.sums.iter().flatten());
    CHANGE_BYTES + sums.map(|s| s.bytes()).sum::<usize>()
}

fn write(
    folder: &Path,
    letter: &Letter,
    kept: &mut Vec<PathBuf>,
    max: usize,
) -> Result<(), String> {
    let record = Record::of(
        &letter.change,
        &letter.configuration,
        letter.offsets.clone(),
    );
    let record = record.ok_or("the change is not of an alert")?;
    let text = serde_json::to_string(&record).map_err(|e| e.to_string())?;
    let path = folder.join(format!("{}.json", record.key));
    let aside = path.with_extension("part");
    let said = |e: io::Error| format!("{}: {e}", path.display());
    fs::write(&aside, text).map_err(said)?;
    fs::rename(&aside, &path).map_err(said)?;
    // The same change, made again after a crash, is the same file.
    kept.retain(|known| *known != path);
    kept.push(path);
    while kept.len() > max {
        let oldest = kept.remove(0);
        // One that is gone already is as good as removed.
        let _ = fs::remove_file(oldest);
    }
    Ok(())
}

/// Records in a folder, the oldest file first.
pub fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "json") {
            files.push((entry.metadata()?.modified()?, path));
        }
    }
    files.sort();
    Ok(files.into_iter().map(|(_, path)| path).collect())
}
