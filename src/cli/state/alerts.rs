//! Silences, acknowledgements and past notifications in an exported file.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::value::RawValue;

use crate::notify::journal::{Entry, State};
use crate::notify::{AlertJournal, JOURNAL, journal};

/// The alert data of a directory, if it has any. Like a start, this leaves out lines that cannot be
/// read; `state inspect` counts them.
pub(super) fn export(directory: &Path) -> io::Result<Option<Box<RawValue>>> {
    let bytes = match fs::read(directory.join(JOURNAL)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes?,
    };
    let (state, _) = journal::read(&bytes);
    Ok(Some(serde_json::value::to_raw_value(&state)?))
}

/// Writes the exported alert data to a directory that has none. A directory that has some keeps it,
/// because it is newer: `state reset` leaves it there.
pub(super) fn import(directory: &Path, exported: &RawValue) -> Result<(), String> {
    let state: State = serde_json::from_str(exported.get()).map_err(|e| e.to_string())?;
    if directory.join(JOURNAL).exists() {
        return Ok(());
    }
    let written = AlertJournal::open(directory)
        .and_then(|(mut journal, _)| journal.append(&Entry::State(state), true));
    written.map_err(|e| format!("cannot write {JOURNAL}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alert::{Ack, Silence};
    use crate::notify::Notification;
    use crate::notify::notification::Links;

    #[test]
    fn silences_acknowledgements_and_what_was_notified_go_elsewhere_and_replace_nothing() {
        let folder = || tempfile::TempDir::with_prefix("trueline-alerts-").unwrap();
        let (here, there) = (folder(), folder());
        assert!(export(here.path()).unwrap().is_none());
        let (mut journal, _) = AlertJournal::open(here.path()).unwrap();
        let silence = |id| {
            Entry::Silenced(Silence {
                id,
                matchers: Vec::new(),
                from_ms: 1,
                until_ms: 2,
                by: "ann".to_owned(),
                note: "ü".to_owned(),
            })
        };
        let notification = Notification::trial(3, Links::default());
        let ack = Ack {
            by: "bob".to_owned(),
            note: String::new(),
            at_ms: 4,
            since_ms: 3,
        };
        let fingerprint = notification.fingerprint.clone();
        let queued = Entry::Queued {
            notification: Box::new(notification),
            sinks: vec!["pager".to_owned(), "chat".to_owned()],
        };
        let entries = [silence(1), queued, Entry::Acknowledged { fingerprint, ack }];
        for entry in &entries {
            journal.append(entry, true).unwrap();
        }
        let exported = export(here.path()).unwrap().expect("it has some");
        import(there.path(), &exported).unwrap();
        let (copy, unreadable) = AlertJournal::open(there.path()).unwrap();
        assert_eq!((copy.state(), unreadable), (journal.state(), 0));
        assert_eq!(copy.state().undelivered.len(), 1);
        let again = export(there.path()).unwrap().expect("it has some");
        assert_eq!(again.get(), exported.get());
        // The directory's own data stay.
        journal.append(&silence(2), true).unwrap();
        import(here.path(), &exported).unwrap();
        let (kept, _) = AlertJournal::open(here.path()).unwrap();
        assert_eq!(kept.state(), journal.state());
        let foreign = serde_json::value::to_raw_value("alerts").unwrap();
        assert!(import(folder().path(), &foreign).is_err());
    }
}
