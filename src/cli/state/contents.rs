//! Whether the files beside the snapshots can be read. Changes nothing.

use crate::notify::journal;
use crate::store::inspect::{FileReport, FileRole};
use crate::store::{event_log, history};
use std::fs;
use std::path::Path;

/// The part of a file that a start cannot read, if any, in words.
pub(super) fn damage(file: &FileReport) -> Option<String> {
    of(file.role, &file.path)
}

fn of(role: FileRole, path: &Path) -> Option<String> {
    let read = |damage: fn(&[u8]) -> Option<String>| match fs::read(path) {
        Ok(bytes) => damage(&bytes),
        Err(error) => Some(format!("cannot be read: {error}")),
    };
    match role {
        FileRole::Alerts => read(|bytes| {
            // A running trueline may be writing the last line.
            let whole = bytes.iter().rposition(|&b| b == b'\n').unwrap_or(0);
            let (_, lines) = journal::read(&bytes[..whole]);
            (lines > 0).then(|| format!("damaged: lines that a start leaves out: {lines}"))
        }),
        FileRole::History => read(|bytes| {
            let unread = history::unread(bytes);
            (unread > 0).then(|| format!("damaged: bytes that a start leaves out: {unread}"))
        }),
        FileRole::Events => event_log::check(path).err().map(|fault| fault.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_a_start_cannot_read_is_said_to_be_damaged() {
        let folder = tempfile::TempDir::with_prefix("trueline-damage-").unwrap();
        let damage = |role, name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            of(role, &path)
        };
        let alerts = |bytes| damage(FileRole::Alerts, "alerts.journal", bytes);
        assert!(alerts(b"no entry\n").is_some_and(|d| d.contains("leaves out: 1")));
        assert_eq!(alerts(b"begun"), None);
        let history = |bytes| damage(FileRole::History, history::FILE, bytes);
        assert!(history(b"something").is_some_and(|d| d.contains("leaves out: 9")));
        assert_eq!(history(b""), None);
        let events = |name: &str, bytes| damage(FileRole::Events, name, bytes);
        let (first, last) = ("00000000000000000000.events", "00000000000000000005.events");
        assert_eq!(events(last, b"TLEVNT1\nTLEF"), None, "a write broke off");
        assert!(events(first, b"TLEVNT1\nTLEF").is_some());
        assert!(events(last, b"something").is_some());
        assert_eq!(events("consumed", b"?"), None);
    }
}
