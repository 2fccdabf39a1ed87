//! Saving: what is written and when, and what pauses reading until then.
//!
//! A save comes early if much waits for it in memory: journals of joins and ids, or deltas for a
//! judge in another process. If a write is slow or fails, reading pauses before these exceed their
//! memory.

use super::EngineLoop;
use crate::app::cluster::topology::Topology;
use crate::app::outputs::publish;
use crate::app::outputs::snapshots::Written;
use crate::app::restore::STATE;
use crate::monitor::Snapshot;
use crate::telemetry::published::Beat;
use std::time::{Duration, Instant};

/// Bytes of journals that may wait for the disk in memory before the consumers pause.
pub(super) const UNWRITTEN_MAX: usize = 256 << 20;
/// Bytes of journals above which a save comes early.
const JOURNALS_MAX: usize = 64 << 20;
/// Least time between two early saves, and pause before another attempt to store the starts of
/// partitions, as each failure is logged.
const SAVE_PAUSE: Duration = Duration::from_secs(1);
/// The published part that is not ready while the starts of partitions are not stored.
const STARTS: &str = "start offsets";

/// How long the last batch of checkpoints may take at the end. A snapshot has no limit.
const LAST: Duration = Duration::from_secs(20);
/// How often a thread that waits for a write reports itself as alive.
const BEAT: Duration = Duration::from_secs(1);

/// A write that takes longer than this, and than two intervals, makes /ready fail: ordinary writes
/// take seconds.
const LONG_WRITE: Duration = Duration::from_secs(60);

impl EngineLoop {
    /// Starts writing the state: shards to the state topic, or a snapshot to the disk with the new
    /// bytes of the journals and the names of the topics that it numbers.
    pub(super) fn save(&mut self) {
        if self.topology.fault().is_some() {
            return;
        }
        self.unwritten += self.topology.journal_bytes();
        self.timers.save_began = Instant::now();
        let engine = match &mut self.topology {
            Topology::Single(engine) => engine,
            moving if moving.may_move() => return moving.write(),
            judge => {
                if let Some(snapshot) = judge.snapshot() {
                    self.snapshots.write(snapshot, Vec::new(), Vec::new());
                }
                return;
            }
        };
        let deltas = engine.take_journals();
        let snapshot = Snapshot {
            topics: self.topics.clone(),
            ..engine.snapshot()
        };
        let positions = engine.shard().partitions().positions();
        self.snapshots.write(snapshot, positions.collect(), deltas);
    }

    /// Publishes the result of a write, and commits its offsets.
    pub(super) fn saved(&mut self, written: &Written) {
        self.unwritten = written.unwritten;
        self.pause_while_unwritten();
        publish::snapshot(&self.published, written);
        let (part, what) = self.saved_part();
        match &written.result {
            Err(why) => {
                let why = format!("{what} cannot be written: {why}");
                self.published.not_ready(part, &why);
            }
            Ok(positions) => {
                // A lost directory does not come back.
                if part != STATE || !self.directory_lost {
                    self.published.ready(part);
                }
                let consumers = self.consumers.iter_mut();
                consumers.for_each(|consumer| consumer.commit(positions));
            }
        }
    }

    /// The published part about saving, and what is saved, as text.
    fn saved_part(&self) -> (&'static str, &'static str) {
        match self.topology.may_move() {
            true => ("state topic", "checkpoints"),
            false => (STATE, "snapshots"),
        }
    }

    /// Publishes that a write hangs, because its disk or broker neither accepts it nor fails.
    pub(super) fn publish_long_write(&self) {
        let under_way = self.timers.save_began.elapsed();
        if self.is_writing() && under_way > LONG_WRITE.max(2 * self.snapshot_every) {
            let (part, what) = self.saved_part();
            let seconds = under_way.as_secs();
            let why = format!("{what}: a write has been under way for {seconds} s");
            self.published.not_ready(part, &why);
        }
    }

    /// Pauses reading while too much of the journals is only in memory: bytes whose write is not
    /// confirmed, and those that came since.
    pub(super) fn pause_while_unwritten(&mut self) {
        let unwritten = self.unwritten + self.topology.journal_bytes();
        let behind = unwritten > UNWRITTEN_MAX;
        if behind != self.disk_behind {
            self.disk_behind = behind;
            tracing::warn!(unwritten, paused = behind, "state is not on disk");
        }
    }

    /// Brings the next save forward if much waits for it. Not during a save, because what it writes
    /// still counts as waiting.
    pub(super) fn save_early(&mut self) {
        let waiting = self.topology.journal_bytes() > JOURNALS_MAX || self.topology.deltas_due();
        if waiting && !self.is_writing() && self.timers.hurry.due(SAVE_PAUSE).is_some() {
            self.timers.save.bring_forward(self.snapshot_every);
        }
    }

    /// Stores the start positions of new partitions before their first record is read. Until that
    /// succeeds nothing is read.
    pub(super) fn save_starts(&mut self) {
        let saved = self.save_and_wait();
        self.start_unsaved = saved.is_err();
        match saved {
            Ok(()) => self.published.ready(STARTS),
            Err(why) => {
                let why = format!("where new partitions begin could not be stored: {why}");
                self.published.not_ready(STARTS, &why);
                std::thread::sleep(SAVE_PAUSE);
            }
        }
    }

    /// Writes all state as it is now; returns the outcome.
    pub(super) fn save_and_wait(&mut self) -> Result<(), String> {
        self.wait_saved();
        if self.is_writing() {
            return Err("the write before it has not ended".to_owned());
        }
        self.save();
        self.wait_saved().unwrap_or(Ok(()))
    }

    /// Whether state is being written.
    pub(super) fn is_writing(&self) -> bool {
        self.snapshots.is_writing() || self.topology.is_writing()
    }

    /// Waits for the write under way; returns its outcome, or `None` if there was none.
    pub(super) fn wait_saved(&mut self) -> Option<Result<(), String>> {
        let (mut written, until) = (None, Instant::now() + LAST);
        while written.is_none()
            && (self.snapshots.is_writing() || self.topology.is_writing() && Instant::now() < until)
        {
            written = self.snapshots.wait(BEAT);
            written = written.or_else(|| self.topology.wait_written(BEAT));
            self.beat.iter().for_each(Beat::tick);
            self.publish_long_write();
        }
        if let Some(written) = &written {
            self.saved(written);
        }
        match written {
            Some(written) => Some(written.result.map(drop)),
            None if self.topology.is_writing() => {
                Some(Err("the broker did not answer in time".to_owned()))
            }
            None => None,
        }
    }

    /// The part and the reason while reading pauses because too much of the journals is only in
    /// memory.
    pub(super) fn journals_unwritten() -> (String, String) {
        let mib = UNWRITTEN_MAX >> 20;
        let why = format!(
            "more than {mib} MiB of journals are not written, and nothing is read until they are; check where the \
             state is written"
        );
        ("state journals".to_owned(), why)
    }
}
