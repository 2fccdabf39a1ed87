//! The journal of alerts: one file of JSON lines beside the snapshots.
//!
//! It records which notifications were sent to which sinks, and the silences and acknowledgements
//! that people entered.
//!
//! ```text
//! {"state":{…}}                                             the whole state, when the file was compacted
//! {"queued":{"notification":{…},"sinks":["oncall","topic"]}}       synced before anything is sent
//! {"done":{"sink":"oncall","key":"…","delivered":true}}
//! {"done":{"sink":"oncall","key":"…","delivered":false,"refused_ms":…}}
//! {"deployed":{…}}
//! {"silenced":{…}}  {"lifted":{"id":7}}  {"acknowledged":{"fingerprint":"…","ack":{…}}}
//! {"acquired":{"notification":{…},"sinks":["oncall"],"ack":null}}
//! {"released":{"fingerprint":"…"}}  {"closed":{"fingerprint":"…"}}
//! ```
//!
//! The last two lines concern alerts that move between processes with their partitions. An acquired
//! alert was notified by another process; this process refreshes and resolves it. A released alert
//! is left alone, but is recognised if it returns unchanged. A closed alert was resolved by another
//! process.
//!
//! A line is an [`Entry`]; the state is the result of applying all lines in order. A torn last line
//! was not synced, so nothing was sent because of it, and it is dropped. The file is compacted
//! (written to a new file and renamed) at each start and every [`COMPACT_AFTER`] entries. A failed
//! write costs a log line and a count; the state in memory stays complete, and the next compaction
//! writes all of it.
//!
//! `done` is not synced. If a power failure loses it, one notification is sent twice with the same
//! `key`.

use super::delivered::{DeliveryListener, Listener};
pub use super::entry::{Entry, RESOLVED_MAX, State, TransferredAlert};
use super::journal_updates::{JournalUpdates, Waiting};
use super::missed::Missed;
use super::notification::Notification;
use crate::files;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Name of the file.
pub const JOURNAL: &str = "alerts.journal";

/// Entries between two compactions. An entry has about 1 kB, so the file stays within some
/// megabytes.
pub const COMPACT_AFTER: usize = 5_000;

/// The file and the state that it records.
#[derive(Debug)]
pub struct AlertJournal {
    path: PathBuf,
    file: Option<File>,
    state: State,
    /// Entries since the last compaction.
    entries: usize,
    write_errors: Arc<AtomicU64>,
    updates: Arc<JournalUpdates>,
    listener: Listener,
}

impl AlertJournal {
    /// Opens or creates the journal of a directory. Also returns the number of unreadable lines. A
    /// file with such lines is kept beside the journal, as `alerts.journal.refused`, the next one
    /// as `alerts.journal-2.refused`; the newest [`KEEP_REFUSED`](files::KEEP_REFUSED) files are
    /// kept.
    pub fn open(directory: &Path) -> io::Result<(AlertJournal, usize)> {
        let path = directory.join(JOURNAL);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            bytes => bytes?,
        };
        let (state, unreadable) = read(&bytes);
        // A crash leaves half a last line; anything more is damage that people may repair.
        let damaged = unreadable > usize::from(!bytes.ends_with(b"\n"));
        let mut journal = AlertJournal {
            path,
            file: None,
            state,
            entries: 0,
            write_errors: Arc::default(),
            updates: Arc::default(),
            listener: Listener::default(),
        };
        journal.replace(damaged)?;
        Ok((journal, unreadable))
    }

    /// The current state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The counter of failed writes. It can be read without locking the journal.
    pub fn write_errors(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.write_errors)
    }

    /// News of alerts since it was last read. It can be read without locking the journal.
    pub fn updates(&self) -> Arc<JournalUpdates> {
        Arc::clone(&self.updates)
    }

    /// From now on, passes deliveries to this listener.
    pub fn listen(&self, listener: DeliveryListener) {
        self.listener.set(listener);
    }

    /// Records the result of a notification at a sink: delivered, or `missed`.
    pub(super) fn append_answer(&mut self, sink: &str, of: &Notification, missed: Option<Missed>) {
        let entry = Entry::Done {
            sink: sink.to_owned(),
            key: of.key.clone(),
            delivered: missed.is_none(),
            refused_ms: missed.and_then(|m| m.refused_ms),
        };
        self.apply(&entry);
        // Before the disk: a process that takes over after a crash here cannot read this disk.
        if missed.is_none() {
            self.listener.delivered(&self.state, &of.fingerprint);
        }
        // A failed write is counted and logged.
        let _ = self.write_applied(&entry, false);
    }

    /// Applies an entry, and publishes the news about its alert.
    fn apply(&mut self, entry: &Entry) {
        let alert = match entry {
            Entry::Queued { notification, .. } => Some(&notification.fingerprint),
            Entry::Acquired(alert) => Some(&alert.notification.fingerprint),
            Entry::Closed { fingerprint } => Some(fingerprint),
            Entry::Done { sink, key, .. } => self.state.waiting(sink, key),
            _ => None,
        };
        let alert = alert.cloned();
        self.state.apply(entry);
        if let Some(alert) = alert {
            let update = self.state.update_of(&alert);
            self.updates.push(alert, update);
        }
    }

    /// Ends the waiting notifications of an alert, except those for which `keeps` returns true:
    /// another process owns the alert, or it is over. Returns what is left.
    pub fn withdraw(
        &mut self,
        fingerprint: &str,
        keeps: impl Fn(&Notification, &String) -> bool,
    ) -> Waiting {
        for (notification, sinks) in self.state.waiting_of(fingerprint) {
            for sink in sinks.into_iter().filter(|s| !keeps(&notification, s)) {
                let entry = Entry::Done {
                    sink,
                    key: notification.key.clone(),
                    // Not missed, so that it is not offered again.
                    delivered: true,
                    refused_ms: None,
                };
                // A failed write is counted and logged.
                let _ = self.append(&entry, false);
            }
        }
        self.state.waiting_of(fingerprint)
    }

    /// Applies an entry and writes it. With `sync` it is on disk when this returns. On an error the
    /// entry is applied but not written.
    pub fn append(&mut self, entry: &Entry, sync: bool) -> io::Result<()> {
        self.apply(entry);
        self.write_applied(entry, sync)
    }

    fn write_applied(&mut self, entry: &Entry, sync: bool) -> io::Result<()> {
        let written = self.write(entry, sync);
        if let Err(error) = &written {
            self.write_errors.fetch_add(1, Ordering::Relaxed);
            // The file may end in half a line; the next entry compacts it.
            self.file = None;
            crate::warn_limited!(%error, "alerts journal not written; a restart may send notifications again");
        }
        written
    }

    /// Moves alerts' times after `to_ms` back to it, because event time was reset. Returns how many
    /// alerts changed.
    pub fn cut(&mut self, to_ms: i64) -> io::Result<usize> {
        let cut = self.state.cut(to_ms);
        self.compact()?;
        Ok(cut)
    }

    /// Gives up undelivered notifications of sinks that are no longer configured; `removed` decides
    /// by name.
    pub fn give_up(&mut self, removed: impl Fn(&str) -> bool) {
        let mut left = Vec::new();
        for (notification, sinks) in &self.state.undelivered {
            let done = |sink: &String| Entry::Done {
                sink: sink.clone(),
                key: notification.key.clone(),
                delivered: false,
                refused_ms: None,
            };
            left.extend(sinks.iter().filter(|name| removed(name)).map(done));
        }
        for entry in &left {
            // A failed write is counted and logged.
            let _ = self.append(entry, false);
        }
        if !left.is_empty() {
            let left = left.len();
            tracing::warn!(
                left,
                "alerts not delivered to sinks that are no longer configured"
            );
        }
    }

    fn write(&mut self, entry: &Entry, sync: bool) -> io::Result<()> {
        self.entries += 1;
        if self.entries > COMPACT_AFTER {
            self.file = None;
        }
        let Some(file) = &mut self.file else {
            return self.compact();
        };
        let mut line = serde_json::to_string(entry)?;
        line.push('\n');
        file.write_all(line.as_bytes())?;
        if sync { file.sync_data() } else { Ok(()) }
    }

    /// Writes the state as one line in place of the file.
    fn compact(&mut self) -> io::Result<()> {
        self.replace(false)
    }

    /// Writes the state as one line in place of the file; with `keep`, the old file gets another
    /// name.
    fn replace(&mut self, keep: bool) -> io::Result<()> {
        self.state.prune();
        let mut line = serde_json::to_string(&Entry::State(self.state.clone()))?;
        line.push('\n');
        let aside = self.path.with_extension(files::EXTENSION);
        // Nothing may be appended to the open file after it has lost its name.
        self.file = None;
        files::replace_with(&self.path, &aside, |file| {
            file.write_all(line.as_bytes())?;
            match keep {
                true => file
                    .sync_all()
                    .and_then(|()| files::keep_refused(&self.path, JOURNAL))
                    .map(drop),
                false => Ok(()),
            }
        })?;
        self.file = Some(OpenOptions::new().append(true).open(&self.path)?);
        self.entries = 0;
        Ok(())
    }
}

/// The state that the lines leave, and the number of unreadable lines.
pub fn read(text: &[u8]) -> (State, usize) {
    let mut state = State::default();
    let mut unreadable = 0;
    let lines = text.split(|&b| b == b'\n').filter(|line| !line.is_empty());
    for line in lines {
        match serde_json::from_slice(line) {
            Ok(entry) => state.apply(&entry),
            Err(_) => unreadable += 1,
        }
    }
    (state, unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::notification::Links;
    use tempfile::TempDir;

    fn queued(at_ms: i64, sinks: &[&str]) -> Entry {
        Entry::Queued {
            notification: Box::new(Notification::trial(at_ms, Links::default())),
            sinks: sinks.iter().map(|s| (*s).to_owned()).collect(),
        }
    }

    fn done(sink: &str, at_ms: i64) -> Entry {
        Entry::Done {
            sink: sink.to_owned(),
            key: format!("0000000000000000-{at_ms}-{at_ms}-warn"),
            delivered: true,
            refused_ms: None,
        }
    }

    fn directory() -> TempDir {
        TempDir::with_prefix("trueline-journal-").expect("a directory")
    }

    #[test]
    fn what_no_sink_has_taken_is_there_after_a_restart_in_order() {
        let dir = directory();
        let (mut journal, _) = AlertJournal::open(dir.path()).expect("a journal");
        for at in 1..=3 {
            journal
                .append(&queued(at, &["a", "b"]), true)
                .expect("written");
        }
        journal.append(&done("a", 1), false).expect("written");
        journal.append(&done("b", 1), false).expect("written");
        journal.append(&done("a", 2), false).expect("written");
        let before = journal.state().clone();
        drop(journal);
        let (journal, unreadable) = AlertJournal::open(dir.path()).expect("a journal");
        assert_eq!((journal.state(), unreadable), (&before, 0));
        let open = journal.state().undelivered.iter();
        let open: Vec<(i64, usize)> = open.map(|(n, s)| (n.at_ms, s.len())).collect();
        assert_eq!(open, [(2, 1), (3, 2)]);
    }

    #[test]
    fn a_torn_last_line_is_dropped_and_the_rest_holds() {
        let dir = directory();
        let (mut journal, _) = AlertJournal::open(dir.path()).expect("a journal");
        journal.append(&queued(1, &["a"]), true).expect("written");
        // With multi-byte characters, so that the line may be torn within one.
        journal
            .append(&queued(2, &["pagér über"]), true)
            .expect("written");
        let path = dir.path().join(JOURNAL);
        let text = fs::read(&path).expect("bytes");
        for cut in 1..200 {
            fs::write(&path, &text[..text.len() - cut]).expect("written");
            let (journal, unreadable) = AlertJournal::open(dir.path()).expect("a journal");
            let whole = cut == 1;
            assert_eq!(journal.state().undelivered.len(), if whole { 2 } else { 1 });
            assert_eq!(unreadable, usize::from(!whole));
        }
        // The torn line of a crash is dropped; a file with more damage is kept.
        let refused = dir.path().join("alerts.journal.refused");
        assert!(!refused.exists());
        let mut damaged = text.clone();
        damaged[0] = b'?';
        fs::write(&path, &damaged).expect("written");
        let (_, unreadable) = AlertJournal::open(dir.path()).expect("a journal");
        assert_eq!(unreadable, 1);
        assert_eq!(fs::read(&refused).expect("bytes"), damaged);
        // A second file does not replace the first, and none is kept if nothing can be written.
        let further = dir.path().join("alerts.journal-2.refused");
        let mut second = text.clone();
        second[0] = b'!';
        fs::write(&path, &second).expect("written");
        let aside = path.with_extension("part");
        fs::create_dir(&aside).expect("a folder");
        assert!(AlertJournal::open(dir.path()).is_err() && !further.exists());
        assert_eq!(fs::read(&path).expect("bytes"), second);
        fs::remove_dir(&aside).expect("removed");
        AlertJournal::open(dir.path()).expect("a journal");
        assert_eq!(fs::read(&refused).expect("bytes"), damaged);
        assert_eq!(fs::read(&further).expect("bytes"), second);
        assert_eq!(read(&fs::read(&path).expect("bytes")).1, 0);
    }

    #[test]
    fn of_many_damaged_journals_the_newest_are_kept() {
        let dir = directory();
        let path = dir.path().join(JOURNAL);
        for nth in 0..3 * files::KEEP_REFUSED {
            fs::write(&path, format!("damaged {nth}\n")).expect("written");
            AlertJournal::open(dir.path()).expect("a journal");
            let files = fs::read_dir(dir.path()).expect("a folder");
            let texts = files.map(|f| fs::read_to_string(f.expect("a file").path()).expect("text"));
            let texts: Vec<String> = texts.filter(|text| text.starts_with("damaged")).collect();
            assert_eq!(texts.len(), files::KEEP_REFUSED.min(nth + 1));
            assert!(texts.contains(&format!("damaged {nth}\n")));
        }
    }

    #[test]
    fn what_was_notified_of_times_after_a_reset_hides_nothing_that_happens_after_it() {
        let dir = directory();
        let (mut journal, _) = AlertJournal::open(dir.path()).expect("a journal");
        journal.append(&queued(9_000, &[]), true).expect("written");
        assert_eq!(journal.cut(10_000).expect("written"), 0);
        assert_eq!(journal.cut(1_000).expect("written"), 1);
        let (journal, _) = AlertJournal::open(dir.path()).expect("a journal");
        let dedup = crate::notify::Deduplicator::after(journal.state().last.values());
        let silences = crate::alert::Silences::default();
        let mut next = Notification::trial(2_000, Links::default());
        next.severity = crate::alert::Severity::Page;
        assert!(dedup.admits(&mut next, &silences, 2_000));
    }

    #[test]
    fn a_journal_of_an_earlier_version_is_read() {
        let dir = directory();
        let (mut journal, _) = AlertJournal::open(dir.path()).expect("a journal");
        journal
            .append(&queued(1, &["a", "b"]), true)
            .expect("written");
        drop(journal);
        let path = dir.path().join(JOURNAL);
        let text = fs::read_to_string(&path).expect("text");
        assert!(text.contains(r#""missed":{},"#), "{text}");
        let key = "0000000000000000-1-1-warn";
        let done = format!(r#"{{"done":{{"sink":"a","key":"{key}","delivered":false}}}}"#);
        let earlier = text.replace(r#""missed":{},"#, "") + &done + "\n";
        fs::write(&path, earlier).expect("written");
        let (journal, unreadable) = AlertJournal::open(dir.path()).expect("a journal");
        assert_eq!(unreadable, 0);
        let waits = |sink| journal.state().waiting(sink, key).is_some();
        assert!(!waits("a") && waits("b"));
        assert!(!journal.state().knows("0000000000000000", "a", 0));
    }

    #[test]
    fn what_is_left_of_removed_sinks_is_given_up_and_nothing_else() {
        let dir = directory();
        let (mut journal, _) = AlertJournal::open(dir.path()).expect("a journal");
        for at in 1..=2 {
            let queued = queued(at, &["gone", "here"]);
            journal.append(&queued, true).expect("written");
        }
        journal.give_up(|sink| sink == "gone");
        drop(journal);
        let (journal, _) = AlertJournal::open(dir.path()).expect("a journal");
        let waiting = journal.state().undelivered.iter();
        let sinks: Vec<&[String]> = waiting.map(|(_, sinks)| sinks.as_slice()).collect();
        assert_eq!(sinks, [["here"], ["here"]]);
    }

    #[test]
    fn the_file_stays_bounded() {
        let dir = directory();
        let (mut journal, _) = AlertJournal::open(dir.path()).expect("a journal");
        for at in 0..(2 * COMPACT_AFTER as i64 + 10) {
            journal.append(&queued(at, &["a"]), false).expect("written");
            journal.append(&done("a", at), false).expect("written");
        }
        let lines = fs::read_to_string(dir.path().join(JOURNAL))
            .expect("text")
            .lines()
            .count();
        assert!(lines <= COMPACT_AFTER + 1, "{lines}");
    }
}
