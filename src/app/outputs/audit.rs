//! The audit log: one file per change of an alert, in `records/` beside the snapshots.
//!
//! A separate thread encodes and writes the entries: encoding evaluations and sums takes
//! milliseconds, and a disk may take longer. The engine's thread hands over data that it has
//! anyway. While [`WAITING_BYTES_MAX`] bytes wait, further entries are dropped, counted and logged.
//! Files are written under a temporary name, synced and renamed, so each is whole. The configured
//! number of files is kept; the oldest are removed first.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::app::error::AppError;
use crate::app::worker::spawn;
use crate::files::replace;
use crate::judge::{Change, Step, StreamId};
use crate::notify::{GroupBy, Running};
use crate::report::record::Record;
use crate::telemetry::control::Explanation;

/// Name of the folder in the state directory.
pub const FOLDER: &str = "records";

/// Bytes that may wait for the disk: a thousand streams may change at once, with tens of kilobytes
/// each.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// Maximum memory of a change besides its sums.
const CHANGE_BYTES: usize = 48 << 10;

/// A topic, a partition of it and its next offset.
type NextOffset = (String, i32, i64);

/// A change that waits for the disk.
struct AuditEntry {
    change: Change,
    configuration: String,
    offsets: Arc<[NextOffset]>,
    bytes: usize,
}

/// The audit log and its thread.
#[derive(Default)]
pub struct AuditLog {
    entries: Option<Sender<AuditEntry>>,
    waiting: Arc<AtomicUsize>,
    lost: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl AuditLog {
    /// Starts the thread, which keeps `max` files in the folder of the state directory; 0 turns the
    /// log off.
    pub fn start(directory: &Path, max: usize) -> Result<AuditLog, AppError> {
        if max == 0 {
            return Ok(AuditLog::default());
        }
        let folder = directory.join(FOLDER);
        let cannot = |error: io::Error| {
            AppError::Unavailable(format!("cannot create {}: {error}", folder.display()))
        };
        fs::create_dir_all(&folder).map_err(cannot)?;
        let mut kept = list(&folder).map_err(|error| {
            AppError::Unavailable(format!("cannot list {}: {error}", folder.display()))
        })?;
        let (entries, inbox) = channel::<AuditEntry>();
        let (waiting, lost) = (Arc::<AtomicUsize>::default(), Arc::<AtomicU64>::default());
        let (theirs, unwritten) = (Arc::clone(&waiting), Arc::clone(&lost));
        let thread = spawn("records", move || {
            for entry in inbox {
                if let Err(error) = write(&folder, &entry, &mut kept, max) {
                    unwritten.fetch_add(1, Ordering::Relaxed);
                    crate::warn_limited!(%error, "audit entry of an alert not written; it cannot be explained later");
                }
                theirs.fetch_sub(entry.bytes, Ordering::Relaxed);
            }
        })?;
        Ok(AuditLog {
            entries: Some(entries),
            waiting,
            lost,
            thread: Some(thread),
        })
    }

    /// Queues those of these changes that are changes of alerts; never waits.
    pub fn write(
        &self,
        changes: &[Change],
        configuration: &str,
        offsets: impl FnOnce() -> Vec<NextOffset>,
    ) {
        let Some(entries) = &self.entries else { return };
        let of_alerts = |c: &&Change| matches!(c.step, Step::Stream { .. });
        let changes: Vec<&Change> = changes.iter().filter(of_alerts).collect();
        if changes.is_empty() {
            return;
        }
        let offsets: Arc<[NextOffset]> = offsets().into();
        // All entries hold the same offsets.
        let share = bytes_of_offsets(&offsets).div_ceil(changes.len());
        for change in changes {
            let bytes = bytes_of(change) + share;
            let waiting = self.waiting.fetch_add(bytes, Ordering::Relaxed) + bytes;
            let entry = AuditEntry {
                change: change.clone(),
                configuration: configuration.to_owned(),
                offsets: Arc::clone(&offsets),
                bytes,
            };
            if waiting > WAITING_BYTES_MAX || entries.send(entry).is_err() {
                self.waiting.fetch_sub(bytes, Ordering::Relaxed);
                self.lost.fetch_add(1, Ordering::Relaxed);
                let stream = change.stream.to_string();
                crate::warn_limited!(%stream, "too many audit entries wait for the disk; one is dropped");
            }
        }
    }

    /// Number of entries that were not written.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Writes the queued entries and ends, within the given time.
    pub fn stop(mut self, within: Duration) {
        drop(self.entries.take());
        if let Some(thread) = self.thread.take() {
            thread.wait(Instant::now() + within);
        }
    }
}

/// The approximate memory of a change.
fn bytes_of(change: &Change) -> usize {
    let evidence = change.facts.as_ref().and_then(|f| f.evidence.as_ref());
    let sums = evidence.iter().flat_map(|e| e.sums.iter().flatten());
    CHANGE_BYTES + sums.map(|s| s.bytes()).sum::<usize>()
}

fn bytes_of_offsets(offsets: &[NextOffset]) -> usize {
    let topics = offsets.iter().map(|(topic, ..)| topic.len());
    size_of_val(offsets) + topics.sum::<usize>()
}

fn write(
    folder: &Path,
    entry: &AuditEntry,
    kept: &mut Vec<PathBuf>,
    max: usize,
) -> Result<(), String> {
    let record = Record::of(&entry.change, &entry.configuration, entry.offsets.to_vec());
    let record = record.ok_or("the change is not of an alert")?;
    let text = serde_json::to_string(&record).map_err(|e| e.to_string())?;
    let path = folder.join(format!("{}.json", record.key));
    replace(&path, text.as_bytes()).map_err(|e| format!("{}: {e}", path.display()))?;
    // A change that is repeated after a crash has the same file name.
    kept.retain(|known| *known != path);
    kept.push(path);
    while kept.len() > max {
        let oldest = kept.remove(0);
        // The file may have been removed already.
        let _ = fs::remove_file(oldest);
    }
    Ok(())
}

/// The key of a record, which is the name of its file.
fn key_of(file: &Path) -> Option<&str> {
    file.file_stem()?.to_str()
}

/// The fingerprint in the key of a record, or of a notification, whose key also has a start; and
/// the time of the change.
fn parts(key: &str) -> Option<(&str, i64)> {
    let (fingerprint, rest) = key.split_once('-')?;
    let times = rest.rsplit_once('-')?.0;
    let last = || times.rsplit_once('-')?.1.parse().ok();
    Some((fingerprint, times.parse().ok().or_else(last)?))
}

/// The record with one of these keys, or else the newest record of a stream with one of these
/// fingerprints.
pub fn newest<'f>(files: &'f [PathBuf], wanted: &[String]) -> Option<&'f PathBuf> {
    let keys = files.iter().filter_map(|f| Some((key_of(f)?, f)));
    let exact = keys
        .clone()
        .find(|(key, _)| wanted.iter().any(|w| w == key));
    let of = keys.filter_map(|(key, file)| Some((parts(key)?, file)));
    let newest = || {
        let all = of.filter(|((fingerprint, _), _)| wanted.iter().any(|w| w == fingerprint));
        all.max_by_key(|((_, at_ms), _)| *at_ms)
    };
    exact
        .map(|(_, file)| file)
        .or_else(|| newest().map(|(_, file)| file))
}

/// The newest record whose stream belongs to the alert with this fingerprint, name or key of a
/// notification, however streams are grouped into alerts. Reads records, the newest first.
pub fn newest_of_group(files: &[PathBuf], wanted: &str) -> Option<PathBuf> {
    #[derive(serde::Deserialize)]
    struct Named {
        stream: StreamId,
    }
    let (alert, at) = match parts(wanted) {
        Some((fingerprint, at_ms)) => (fingerprint, Some(at_ms)),
        None => (wanted, None),
    };
    let at_ms = |file: &&PathBuf| key_of(file).and_then(parts).map(|(_, at_ms)| at_ms);
    let mut files: Vec<&PathBuf> = files.iter().collect();
    files.retain(|file| at.is_none() || at_ms(file) == at);
    files.sort_by_key(|file| std::cmp::Reverse(at_ms(file)));
    let is_of = |file: &&PathBuf| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let named = serde_json::from_str::<Named>(&text);
        named.is_ok_and(|record| {
            let mut groups = groupings().map(|by| by.group_of(&record.stream));
            groups.any(|group| group.fingerprint() == alert || group.name() == alert)
        })
    };
    files.into_iter().find(is_of).cloned()
}

/// All ways to group streams into alerts.
fn groupings() -> impl Iterator<Item = GroupBy> {
    (0..8).map(|i| GroupBy {
        version: i & 1 != 0,
        segment: i & 2 != 0,
        view: i & 4 != 0,
    })
}

/// The text of the record with one of these keys, found by the name of its file. Keys are untrusted
/// input.
fn named(folder: &Path, wanted: &[String]) -> Option<String> {
    let keys = wanted.iter().filter(|key| parts(key).is_some());
    let mut files = keys.filter_map(|key| {
        let name = format!("{key}.json");
        // A key with folders in it would have another file name.
        let is_file = Path::new(&name).file_name() == Some(OsStr::new(&name));
        is_file.then(|| folder.join(name))
    });
    files.find_map(|file| fs::read_to_string(file).ok())
}

/// The text of the record with one of these keys, or else of the newest record of a stream with one
/// of these fingerprints. Lists the folder only in the second case.
fn text(folder: &Path, wanted: &[String]) -> Option<String> {
    named(folder, wanted).or_else(|| {
        let files = list(folder).ok()?;
        fs::read_to_string(newest(&files, wanted)?).ok()
    })
}

/// Explains the change with one of these keys, or else the newest change of a stream with one of
/// these fingerprints, from its record in the state directory.
pub fn explanation(directory: &Path, wanted: &[String]) -> Option<Explanation> {
    let text = text(&directory.join(FOLDER), wanted)?;
    let record = Record::read(&text).ok()?;
    let checked = record.recompute();
    Some(Explanation {
        words: record.words(),
        key: record.key,
        sentence: record.sentence,
        at_ms: record.at_ms,
        equal: checked.equal,
        taken: checked.taken,
        different: checked.different,
    })
}

/// The entries in a folder, the oldest file first.
pub fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    oldest_first(fs::read_dir(folder)?)
}

/// The paths of these entries, the oldest file first. Files that were removed meanwhile are left
/// out.
fn oldest_first(
    entries: impl Iterator<Item = io::Result<fs::DirEntry>>,
) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "json") {
            match entry.metadata() {
                Ok(found) => files.push((found.modified()?, path)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    files.sort();
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alert::Alert;
    use crate::notify::tests::stream;
    use tempfile::TempDir;

    #[test]
    fn what_is_removed_while_the_entries_are_listed_is_left_out() {
        let folder = TempDir::with_prefix("trueline-audit-").expect("a folder");
        let path = |name: &str| folder.path().join(name);
        for name in ["a.json", "b.json"] {
            fs::write(path(name), "{}").expect("written");
        }
        let entries: Vec<_> = fs::read_dir(folder.path()).expect("a folder").collect();
        fs::remove_file(path("a.json")).expect("it is there");
        let listed = oldest_first(entries.into_iter()).expect("nothing is wrong");
        assert_eq!(listed, [path("b.json")]);
    }

    #[test]
    fn the_offsets_of_a_call_are_made_once_and_count_as_what_waits() {
        let (entries, inbox) = channel();
        let log = AuditLog {
            entries: Some(entries),
            ..AuditLog::default()
        };
        let (from, to) = (Alert::default(), Alert::default());
        let alert = Change {
            stream: stream("fraud", "3", ""),
            window: "5m".to_owned(),
            at_ms: 1000,
            step: Step::Stream { from, to },
            sentence: String::new(),
            facts: None,
        };
        let topic = "t".repeat(1000);
        let offset = |partition| (topic.clone(), partition, 7);
        let offsets = |n: i32| (0..n).map(offset).collect();
        log.write(&[alert.clone(), alert.clone()], "", || offsets(100));
        let queued: Vec<AuditEntry> = inbox.try_iter().collect();
        assert!(Arc::ptr_eq(&queued[0].offsets, &queued[1].offsets));
        assert_eq!(queued[1].offsets.len(), 100);
        let waiting = log.waiting.load(Ordering::Relaxed);
        assert_eq!(waiting, queued[0].bytes + queued[1].bytes);
        let own = waiting - 2 * CHANGE_BYTES;
        assert!((100_000..200_000).contains(&own), "{own}");
        // There is room for the change, but not for its offset.
        let room = WAITING_BYTES_MAX - CHANGE_BYTES;
        for (n, lost) in [(0, 0), (1, 1)] {
            log.waiting.store(room, Ordering::Relaxed);
            log.write(std::slice::from_ref(&alert), "", || offsets(n));
            assert_eq!(log.lost(), lost);
        }
        assert_eq!(log.waiting.load(Ordering::Relaxed), room);
        log.write(&[], "", || unreachable!("no alert changes"));
    }

    #[test]
    fn a_record_is_found_by_the_name_of_its_file_and_no_other_file_is() {
        let directory = TempDir::with_prefix("trueline-audit-").unwrap();
        let folder = directory.path().join(FOLDER);
        fs::create_dir_all(&folder).unwrap();
        let write = |file: &str, text: &str| fs::write(folder.join(file), text).unwrap();
        write("ab-1000-page.json", "old");
        write("ab-2000-page.json", "new");
        write("ab-3000-page.part", "half");
        write("../cd-1000-page.json", "outside");
        let outside = directory.path().join("cd-1000-page");
        let found = |wanted: &[&str]| {
            let wanted: Vec<String> = wanted.iter().map(|w| (*w).to_owned()).collect();
            (named(&folder, &wanted), text(&folder, &wanted))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(found(&["ab-1000-page"]), (some("old"), some("old")));
        assert_eq!(found(&["ab", "ab-1000-page"]), (some("old"), some("old")));
        assert_eq!(
            found(&["ab"]),
            (None, some("new")),
            "the newest of a stream"
        );
        let outside = outside.to_str().unwrap();
        for key in [
            "../cd-1000-page",
            outside,
            "ab-3000-page",
            "ab-1000-page/",
            "",
            "..",
        ] {
            assert_eq!(found(&[key]), (None, None), "{key}");
        }
    }

    #[test]
    fn a_record_is_found_by_its_key_its_stream_and_its_alert() {
        let folder = TempDir::with_prefix("trueline-audit-").unwrap();
        let id = |model: &str, segment: &str| stream(model, "3", segment);
        let (de, fr, other) = (id("fraud", "c=de"), id("fraud", "c=fr"), id("churn", ""));
        let record = |id: &StreamId, at_ms: i64| {
            let file = format!("{}-{at_ms}-page.json", id.fingerprint());
            let file = folder.path().join(file);
            let text = serde_json::json!({ "stream": id, "at_ms": at_ms }).to_string();
            fs::write(&file, text).unwrap();
            file
        };
        let old = record(&de, 1000);
        let files = [
            record(&fr, 3000),
            old.clone(),
            record(&de, 2000),
            record(&other, 9000),
        ];
        let named = |wanted: &str| newest(&files, &[wanted.to_owned()]).cloned();
        assert_eq!(named(&de.fingerprint()), Some(files[2].clone()));
        assert_eq!(named(key_of(&old).unwrap()), Some(old.clone()));
        let both = [de.fingerprint(), fr.fingerprint()];
        assert_eq!(newest(&files, &both), Some(&files[0]));
        let group = GroupBy::default().group_of(&de).fingerprint();
        assert_eq!(named(&group), None);
        for wanted in [group.as_str(), "fraud"] {
            let found = newest_of_group(&files, wanted);
            assert_eq!(found, Some(files[0].clone()), "{wanted}");
        }
        let version = GroupBy {
            version: true,
            ..GroupBy::default()
        };
        let version = version.group_of(&other).fingerprint();
        assert_eq!(newest_of_group(&files, &version), Some(files[3].clone()));
        let key = format!("{group}-1000-warn");
        assert_eq!(newest_of_group(&files, &key), Some(old));
        assert_eq!(newest_of_group(&files, &format!("{group}-1-warn")), None);
    }
}
