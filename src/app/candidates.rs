//! Snapshots, newest first, until something can be made of one.
//!
//! Restoring checks what it reads. A fault that gets past these checks panics, and would do so at
//! each start. So a panic refuses the snapshot or checkpoint, as if it were torn, and does not end
//! the program.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use super::error::AppError;
use super::outputs::state_dir::StateDir;
use crate::monitor::{RestoreError, Snapshot};
use crate::store::{self, FormatError, Loaded};
use crate::telemetry::Published;

/// Returns the newest snapshot that `make` accepts, restored, and its file; `None` if there is no
/// file. Newer files that it refuses are logged, counted and kept.
pub fn newest_usable<T>(
    dir: &StateDir,
    published: &Published,
    make: impl Fn(Snapshot) -> Result<Result<T, RestoreError>, AppError>,
) -> Result<Option<(T, PathBuf)>, AppError> {
    let mut refused = Vec::new();
    while let Some(loaded) = dir.load_other(refused)? {
        let Loaded {
            snapshot,
            path,
            refused: newer,
            without_journal,
            ..
        } = loaded;
        refused = newer;
        let why = match caught(|| make(snapshot)) {
            Ok(made) => match made? {
                Ok(made) => {
                    report_refused(&refused, &without_journal, published);
                    return Ok(Some((made, path)));
                }
                Err(RestoreError::Spill(error)) => {
                    return Err(AppError::Unavailable(error.to_string()));
                }
                Err(error) => error.to_string(),
            },
            Err(panic) => panic,
        };
        refused.push((path, FormatError::Unusable(why)));
    }
    Ok(None)
}

/// Runs `make`, which restores stored state. If it panics, returns the message as an error.
pub fn caught<T>(make: impl FnOnce() -> T) -> Result<T, String> {
    // What `make` had partly made is dropped.
    catch_unwind(AssertUnwindSafe(make)).map_err(|panic| {
        let why = message(&*panic);
        format!("restoring it panicked, which is a bug: {why}")
    })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}

/// Logs and counts the files that were refused in favour of an older snapshot. Keeps the snapshots,
/// including those that only lack a journal.
fn report_refused(
    refused: &[(PathBuf, FormatError)],
    without_journal: &[PathBuf],
    published: &Published,
) {
    for (file, fault) in refused {
        tracing::error!(file = %file.display(), %fault, "refused, using an older snapshot");
    }
    for file in without_journal {
        tracing::error!(file = %file.display(), "refused, because it needs a journal that is");
    }
    let files = refused.iter().map(|(file, _)| file);
    for file in files.chain(without_journal) {
        match store::keep_refused(file) {
            Ok(Some(kept)) => tracing::info!(kept = %kept.display(), "refused snapshot"),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "the next snapshots will remove it"),
        }
    }
    published.update(|facts| facts.snapshot.refused = refused.len() as u64);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::join::{JoinState, JournalMark};
    use tempfile::TempDir;

    fn snapshot(topic: &str) -> Snapshot {
        Snapshot {
            topics: vec![topic.to_owned()],
            ..Snapshot::default()
        }
    }

    /// The number of files that were refused and kept.
    fn kept(dir: &StateDir) -> usize {
        let files = std::fs::read_dir(dir.path()).expect("a folder");
        let names = files.map(|f| f.expect("a file").file_name().into_string());
        let refused = names.filter(|name| name.as_ref().is_ok_and(|n| n.ends_with(".refused")));
        refused.count()
    }

    /// Restores a snapshot as the name of its topic; some names panic or fail.
    fn topic_of(snapshot: Snapshot) -> Result<Result<String, RestoreError>, AppError> {
        let topic = snapshot.topics.concat();
        match topic.as_str() {
            "panics" => panic!("attempt to add with overflow"),
            "corrupt" => Ok(Err(RestoreError::Corrupt("sums".to_owned()))),
            _ => Ok(Ok(topic)),
        }
    }

    #[test]
    fn a_snapshot_that_panics_or_is_corrupt_is_kept_and_an_older_one_used() {
        let folder = TempDir::with_prefix("trueline-candidates-").expect("a folder");
        let dir = StateDir::open(folder.path()).expect("it is free");
        let published = Published::default();
        let found = newest_usable(&dir, &published, topic_of).expect("nothing is wrong");
        assert_eq!(found, None);
        for topic in ["corrupt", "panics"] {
            store::save(dir.path(), &snapshot(topic)).expect("saved");
        }
        // No file is usable: all stay, and the error says why.
        for _ in 0..2 {
            let why = newest_usable(&dir, &published, topic_of).expect_err("nothing usable");
            let why = why.to_string();
            let said = why.contains("add with overflow") && why.contains("corrupt: sums");
            assert!(said, "{why}");
        }
        store::save(dir.path(), &snapshot("good")).expect("saved");
        for topic in ["panics", "corrupt"] {
            store::save(dir.path(), &snapshot(topic)).expect("saved");
        }
        let found = newest_usable(&dir, &published, topic_of).expect("one is usable");
        assert_eq!(found.expect("it").0, "good");
        assert_eq!(kept(&dir), 2);
        // The next start uses the same snapshot.
        let again = newest_usable(&dir, &published, topic_of).expect("it is there");
        assert_eq!(again.expect("it").0, "good");
    }

    #[test]
    fn a_snapshot_without_its_journal_outlives_the_saves_that_follow() {
        let folder = TempDir::with_prefix("trueline-candidates-").expect("a folder");
        let dir = StateDir::open(folder.path()).expect("it is free");
        store::save(dir.path(), &snapshot("good")).expect("saved");
        let mark = JournalMark {
            segment: 0,
            len: 3,
            crc: 0,
            until_ms: 0,
        };
        let join = JoinState {
            marks: vec![mark],
            ..JoinState::default()
        };
        let newer = Snapshot {
            joins: vec![join],
            ..snapshot("newer")
        };
        for _ in 0..2 {
            store::save(dir.path(), &newer).expect("saved");
        }
        let found = newest_usable(&dir, &Published::default(), topic_of).expect("one is usable");
        assert_eq!(found.expect("it").0, "good");
        for _ in 0..2 * store::file::KEEP {
            store::save(dir.path(), &snapshot("good")).expect("saved");
        }
        assert_eq!(kept(&dir), 2);
    }
}
