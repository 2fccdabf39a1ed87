//! Layer 3: files that are written aside and renamed into place, and files that are refused.
//!
//! A power failure leaves the old file or the new one. What could not be written whole is removed,
//! for on a full disk it takes the room of all others; what a process that was killed has left goes
//! with the next start.

use std::fs::{self, File};
use std::io::{self, Write};
use std::iter;
use std::path::{Path, PathBuf};

/// Extension of files that are being written.
pub const EXTENSION: &str = "part";

/// End of the names of refused files that are kept.
pub const REFUSED: &str = ".refused";

/// Refused files of one kind that are kept: the newest ones.
pub const KEEP_REFUSED: usize = 3;

/// Replaces a small file, or makes it. See [`replace_with`].
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let aside = path.with_extension(EXTENSION);
    replace_with(path, &aside, |file| file.write_all(bytes))
}

/// Replaces a file, or makes it: `write` writes it `aside`, the bytes are synced before they have
/// its name, and the directory after. Returns what `write` does.
pub fn replace_with<T>(
    path: &Path,
    aside: &Path,
    write: impl FnOnce(&mut File) -> io::Result<T>,
) -> io::Result<T> {
    let place = || -> io::Result<T> {
        let mut file = File::create(aside)?;
        let written = write(&mut file)?;
        file.sync_all()?;
        fs::rename(aside, path)?;
        Ok(written)
    };
    let written = place().inspect_err(|_| remove(aside))?;
    sync_folder(path)?;
    Ok(written)
}

/// Gives a file another name in its directory, in place of the file that has it.
pub fn rename(path: &Path, to: &Path) -> io::Result<()> {
    fs::rename(path, to)?;
    sync_folder(to)
}

/// Syncs the directory that holds a file, so that a power failure leaves the names in it.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder(path))?.sync_all()
}

/// The directory that holds a file.
pub fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Gives a file that cannot be used a second name, which no file has, so that what takes its place
/// does not replace it. Where the file system has no links, it loses its own. Of the refused files
/// whose names begin with `kind`, the newest [`KEEP_REFUSED`] stay. Returns the new path.
pub fn keep_refused(path: &Path, kind: &str) -> io::Result<PathBuf> {
    File::open(path)?.sync_all()?;
    let named = |end: String| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let further = (2u32..).map(|nth| format!("-{nth}{REFUSED}"));
    let mut names = iter::once(REFUSED.to_owned()).chain(further).map(named);
    let kept = names.find(|kept| !kept.exists());
    let kept = kept.ok_or(io::ErrorKind::AlreadyExists)?;
    fs::hard_link(path, &kept).or_else(|_| fs::rename(path, &kept))?;
    remove_older(&kept, kind);
    Ok(kept)
}

/// Removes refused files of a kind that are older than the one just `kept` and the few before it.
fn remove_older(kept: &Path, kind: &str) {
    let entries = fs::read_dir(folder(kept)).into_iter().flatten().flatten();
    let others = entries.filter(|entry| {
        let name = entry.file_name();
        let text = name.to_string_lossy();
        text.starts_with(kind) && text.ends_with(REFUSED) && kept.file_name() != Some(&name)
    });
    let mut others: Vec<PathBuf> = others.map(|entry| entry.path()).collect();
    let written = |path: &PathBuf| fs::metadata(path).and_then(|m| m.modified()).ok();
    others.sort_by_cached_key(|path| (written(path), path.clone()));
    for old in others.iter().rev().skip(KEEP_REFUSED - 1) {
        // One that cannot be removed does no harm.
        if fs::remove_file(old).is_ok() {
            let file = old.display();
            tracing::info!(%file, kept = KEEP_REFUSED, "refused before others that are kept; deleted");
        }
    }
}

/// Removes a file that could not be written whole.
fn remove(aside: &Path) {
    // Where it cannot be removed, the next start tries again.
    let _ = fs::remove_file(aside);
}

/// Removes the files that processes before this one have left in `directory`, which only this one
/// uses.
pub fn remove_all(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let aside = paths.filter(|path| path.extension().is_some_and(|e| e == EXTENSION));
    aside.for_each(|path| remove(&path));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};
    use tempfile::TempDir;

    fn folder() -> TempDir {
        TempDir::with_prefix("trueline-aside-").expect("a folder")
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_nothing_is_left_aside() {
        let dir = folder();
        let path = dir.path().join("one.json");
        for text in ["a longer text", "short"] {
            replace(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        }
        // What cannot be written leaves what was there.
        fs::create_dir(path.with_extension(EXTENSION)).unwrap();
        assert!(replace(&path, b"lost").is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "short");
    }

    #[test]
    fn what_fails_while_it_is_written_aside_leaves_the_file_and_nothing_beside_it() {
        let dir = folder();
        let (path, aside) = (dir.path().join("one"), dir.path().join(".one.7"));
        fs::write(&path, "old").unwrap();
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let failed = replace_with(&path, &aside, |file| {
            file.write_all(b"half").and(Err::<(), _>(full))
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert!(!aside.exists());
        let written = replace_with(&path, &aside, |file| file.write_all(b"new").map(|()| 3));
        assert_eq!(written.unwrap(), 3);
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(!aside.exists());
        // A place that cannot be taken.
        let taken = dir.path().join("taken");
        fs::create_dir(&taken).unwrap();
        assert!(replace_with(&taken, &aside, |file| file.write_all(b"new")).is_err());
        assert!(!aside.exists());
    }

    #[test]
    fn refused_files_of_one_name_are_all_kept_and_keep_their_own_name_too() {
        let dir = folder();
        let path = dir.path().join("some.journal");
        let names =
            [".refused", "-2.refused", "-3.refused"].map(|end| format!("some.journal{end}"));
        for name in &names {
            fs::write(dir.path().join("new"), name).unwrap();
            fs::rename(dir.path().join("new"), &path).unwrap();
            let kept = keep_refused(&path, "some").unwrap();
            assert_eq!(kept, dir.path().join(name));
            assert_eq!(fs::read_to_string(&path).unwrap(), *name);
        }
        for name in &names {
            assert_eq!(fs::read_to_string(dir.path().join(name)).unwrap(), *name);
        }
        assert!(keep_refused(&dir.path().join("none"), "some").is_err());
    }

    #[test]
    fn the_newest_refused_files_of_a_kind_stay() {
        let dir = folder();
        let other = dir.path().join("other.journal.refused");
        fs::write(&other, "of another kind").unwrap();
        let path = dir.path().join("some.journal");
        let mut kept = Vec::new();
        for nth in 0..2 * KEEP_REFUSED as u64 {
            fs::write(dir.path().join("new"), nth.to_string()).unwrap();
            fs::rename(dir.path().join("new"), &path).unwrap();
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(nth);
            let file = File::options().write(true).open(&path).unwrap();
            file.set_modified(at).unwrap();
            kept.push(keep_refused(&path, "some").unwrap());
        }
        assert!(other.exists());
        let newest = KEEP_REFUSED as u64..2 * KEEP_REFUSED as u64;
        let texts = kept[KEEP_REFUSED..].iter().map(fs::read_to_string);
        let texts: Vec<String> = texts.map(Result::unwrap).collect();
        assert_eq!(texts, newest.map(|nth| nth.to_string()).collect::<Vec<_>>());
        let all = fs::read_dir(dir.path()).unwrap();
        assert_eq!(all.count(), KEEP_REFUSED + 2);
    }

    #[test]
    fn what_processes_have_left_aside_is_removed_and_nothing_else() {
        let dir = folder();
        for name in ["snapshot-7.part", "alerts.part", "alerts.journal"] {
            fs::write(dir.path().join(name), b"half").unwrap();
        }
        remove_all(dir.path());
        let left = fs::read_dir(dir.path()).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["alerts.journal"]);
    }
}
