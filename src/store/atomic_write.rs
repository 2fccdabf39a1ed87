//! Files that are written aside and renamed into place.
//!
//! A power failure leaves the old file or the new one. What could not be written whole is removed,
//! for on a full disk it takes the room of all others; what a process that was killed has left goes
//! with the next start.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Extension of files that are being written.
pub const EXTENSION: &str = "part";

/// Replaces a small file, or makes it: the bytes are synced before they have its name, and the
/// directory after.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension(EXTENSION);
    let write = || {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().inspect_err(|_| remove(&temporary))?;
    fs::rename(&temporary, path)?;
    let directory = path.parent().filter(|d| !d.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// Removes a file that could not be written whole.
pub fn remove(temporary: &Path) {
    // Where it cannot be removed, the next start tries again.
    let _ = fs::remove_file(temporary);
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
