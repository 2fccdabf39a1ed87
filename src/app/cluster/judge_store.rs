//! The checkpoints of judge partitions, in the topic that judges read.
//!
//! Format and protocol are those of the state topic ([`crate::store::checkpoint`]), under an empty
//! source topic, which no source can have. A claim gives the epoch, the newest whole checkpoint
//! before it is restored, and two slots alternate. A checkpoint is the judge's state of its models
//! (windows, alerts, detectors, how far it has followed the workers) and what people were notified
//! of. Later notifications are in records between checkpoints ([`NotifiedWriter`]).

use super::checkpoint_records::{self, CheckpointRecords};
use super::judge_topic::{ensure, judge_topic};
use super::notified_writer::NotifiedWriter;
use super::options::CheckpointOptions;
use super::restored::{in_words, report_refused};
use super::revocation::Revocation;
use crate::app::AppError;
use crate::app::clock;
use crate::app::outputs::snapshots::Written;
use crate::app::worker::Background;
use crate::kafka::{KafkaError, ReadState, WriteState};
use crate::store::checkpoint::{self, CHUNK_BYTES, Notified, PartitionCheckpoint};
use crate::store::reader::FoundCheckpoint;
use crate::telemetry::facts::CheckpointCounts;
use crate::telemetry::published::Beat;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How far a judge partition is stored.
#[derive(Debug, Default)]
struct Cursor {
    epoch: i64,
    /// Number of the last checkpoint that was written.
    number: u64,
    /// Number of the last checkpoint that was begun.
    begun: u64,
    /// An earlier epoch wrote a usable checkpoint.
    continued: bool,
    /// Keys of earlier epochs, to be deleted once superseded.
    old: Vec<String>,
    /// The revision of the task that was written.
    revision: Option<u64>,
    at_ms: Option<i64>,
    /// How often writing a checkpoint has failed since the last one that was written.
    failures: u32,
}

impl Cursor {
    /// Whether there is a checkpoint to which notifications can be added.
    fn has_checkpoint(&self) -> bool {
        self.continued || self.number > 0
    }
}

/// A checkpoint on its way to the topic.
struct Outgoing {
    records: CheckpointRecords,
    revision: u64,
}

/// What became of a batch.
struct Answer {
    /// Checkpoints that were written.
    written: Vec<Outgoing>,
    bytes: u64,
    /// Partitions whose checkpoints were tried and not written.
    failed: Vec<i32>,
    /// Why the others were not written.
    result: Result<(), String>,
    took: Duration,
}

/// After this many failures, writing a failed batch one by one ends: each takes a full wait.
/// The next batch begins with the checkpoints that have failed least, so every one is tried.
const FAILURES_MAX: usize = 2;

impl Answer {
    /// Writes a batch. If that fails, writes one checkpoint after the other: a partition that no
    /// broker serves must not hold back the others.
    fn write(writer: &dyn WriteState, batch: Vec<Outgoing>) -> Answer {
        let begun = Instant::now();
        let write = |some: &[Outgoing]| {
            let records = some.iter().map(|one| &one.records);
            let (mut offsets, known) = (BTreeMap::new(), BTreeMap::new());
            checkpoint_records::write(writer, records, &mut offsets, &known)
        };
        let mut answer = Answer {
            written: Vec::new(),
            bytes: 0,
            failed: Vec::new(),
            result: Ok(()),
            took: Duration::ZERO,
        };
        match write(&batch) {
            Ok(sent) => (answer.bytes, answer.written) = (sent.bytes, batch),
            Err(why) if batch.len() == 1 => answer.result = Err(why),
            Err(_) => {
                for one in batch {
                    match write(std::slice::from_ref(&one)) {
                        Ok(sent) => {
                            answer.bytes += sent.bytes;
                            answer.written.push(one);
                        }
                        Err(why) => {
                            answer.result = Err(why);
                            answer.failed.push(one.records.state_partition);
                            if answer.failed.len() >= FAILURES_MAX {
                                break;
                            }
                        }
                    }
                }
            }
        }
        answer.took = begun.elapsed();
        answer
    }
}

/// A judge partition that was taken over.
pub(super) struct ClaimedPartition {
    /// Offset of our claim.
    pub(super) epoch: i64,
    /// The newest checkpoint, or why none can be used.
    pub(super) found: Result<Option<FoundCheckpoint>, String>,
}

pub(super) struct JudgeStore {
    options: CheckpointOptions,
    partitions: i32,
    reader: Box<dyn ReadState>,
    claims: Arc<dyn WriteState>,
    writer: Arc<dyn WriteState>,
    writing: Background<Answer>,
    notified: Arc<NotifiedWriter>,
    cursors: BTreeMap<i32, Cursor>,
    revocation: Revocation,
    /// The heartbeat of the thread that waits here.
    beat: Option<Beat>,
}

impl JudgeStore {
    /// Starts the worker; asks nothing of the broker yet.
    pub(super) fn new(
        options: &CheckpointOptions,
        partitions: i32,
    ) -> Result<JudgeStore, AppError> {
        let (kafka, brokers) = (&options.kafka, &options.brokers);
        let topic = judge_topic(&options.topic);
        let failed = |error: KafkaError| AppError::Config(format!("[state]: {error}"));
        Ok(JudgeStore {
            reader: brokers
                .state_reader(kafka, &topic, CHUNK_BYTES)
                .map_err(failed)?,
            claims: brokers.state_writer(kafka, &topic).map_err(failed)?,
            writer: brokers.state_writer(kafka, &topic).map_err(failed)?,
            writing: Background::new(options.workers.worker("checkpoints")?),
            notified: Arc::new(NotifiedWriter::new(
                partitions,
                brokers.state_writer(kafka, &topic).map_err(failed)?,
                options.workers.worker("notified")?,
            )),
            partitions,
            cursors: BTreeMap::new(),
            revocation: Revocation::default(),
            beat: None,
            options: options.clone(),
        })
    }

    /// Reports this thread as alive, through `beat`, between two waits.
    pub(super) fn beat_with(&mut self, beat: Beat) {
        self.beat = Some(beat);
    }

    fn beat(&self) {
        self.beat.iter().for_each(Beat::tick);
    }

    /// Makes sure that the topic is there.
    pub(super) fn ensure(&mut self) -> Result<(), KafkaError> {
        ensure(self.reader.as_mut(), &self.options.topic, self.partitions)
    }

    /// How many judge partitions there are.
    pub(super) fn partitions(&self) -> i32 {
        self.partitions
    }

    pub(super) fn prefix(&self, partition: i32) -> String {
        checkpoint::prefix(&self.options.namespace, "", partition)
    }

    /// Claims a judge partition and reads its checkpoints.
    pub(super) fn take_over(
        &mut self,
        partition: i32,
        counts: &mut CheckpointCounts,
    ) -> Result<ClaimedPartition, KafkaError> {
        let start = Instant::now();
        let (epoch, reader) = self.options.claim(
            self.claims.as_ref(),
            self.reader.as_ref(),
            partition,
            &self.prefix(partition),
            start,
            &|| self.beat(),
        )?;
        counts.read_bytes += reader.bytes();
        counts.restore_seconds = start.elapsed().as_secs_f64();
        let found = reader.newest().map_err(|faults| in_words(&faults));
        if let Ok(Some(found)) = &found {
            report_refused(found, counts);
            counts.read += 1;
        }
        let cursor = Cursor {
            epoch,
            continued: matches!(found, Ok(Some(_))),
            old: reader.keys_of_other_epochs(epoch),
            ..Cursor::default()
        };
        self.cursors.insert(partition, cursor);
        let prefix = self.prefix(partition);
        self.notified.hold(partition, prefix, epoch);
        Ok(ClaimedPartition { epoch, found })
    }

    /// The partition belongs to another process.
    pub(super) fn forget(&mut self, partition: i32) {
        self.cursors.remove(&partition);
        self.notified.release(partition);
    }

    /// Marks that no checkpoint found can be continued.
    pub(super) fn begin_fresh(&mut self, partition: i32) {
        if let Some(cursor) = self.cursors.get_mut(&partition) {
            cursor.continued = false;
        }
    }

    /// Takes what people were notified of in a judge partition. Returns whether a checkpoint must
    /// be written at once: there is none to which this can be added, or it is too large for a
    /// record.
    pub(super) fn put_notified(&mut self, partition: i32, notified: &Notified) -> bool {
        let cursor = self.cursors.get(&partition);
        self.notified.put(partition, notified) || cursor.is_some_and(|c| !c.has_checkpoint())
    }

    /// The writer of what people were notified of.
    pub(super) fn notified(&self) -> &Arc<NotifiedWriter> {
        &self.notified
    }

    /// Whether a checkpoint of this revision has not been written.
    pub(super) fn is_due(&self, partition: i32, revision: u64) -> bool {
        let cursor = self.cursors.get(&partition);
        cursor.is_some_and(|c| c.revision != Some(revision))
    }

    /// Whether a batch is being written.
    pub(super) fn is_writing(&self) -> bool {
        self.writing.busy()
    }

    /// Judge partitions and when their last checkpoint was written.
    pub(super) fn ages(&self) -> impl Iterator<Item = (i32, Option<i64>)> {
        self.cursors.iter().map(|(p, cursor)| (*p, cursor.at_ms))
    }

    /// Nothing is to be written: all that is judged here is stored. [`answer`](JudgeStore::answer)
    /// reports this once.
    pub(super) fn nothing_due(&mut self) {
        self.revocation.keep(Some(Written {
            result: Ok(Vec::new()),
            took: Duration::ZERO,
            at_ms: clock::now_ms(),
            bytes: 0,
            unwritten: 0,
        }));
    }

    /// Hands over checkpoints of these revisions. It is an error to do so while
    /// [`is_writing`](JudgeStore::is_writing).
    pub(super) fn write(&mut self, mut all: Vec<(i32, u64, PartitionCheckpoint)>) {
        all.sort_by_key(|(partition, ..)| self.cursors.get(partition).map_or(0, |c| c.failures));
        let mut sent = Vec::new();
        for (state_partition, revision, checkpoint) in all {
            let prefix = self.prefix(state_partition);
            let Some(cursor) = self.cursors.get_mut(&state_partition) else {
                continue;
            };
            // The other slot than the last whole checkpoint's. After a failure the number changes:
            // otherwise notifications after the attempt would count as later than this checkpoint.
            cursor.begun = match cursor.begun > cursor.number {
                true => cursor.begun + 2,
                false => cursor.number + 1,
            };
            // The previous checkpoint must stay whole: older records are deleted with the second
            // checkpoint.
            let drops = match cursor.number {
                0 => Vec::new(),
                number => {
                    let notified = self.notified.keys_before(state_partition, number);
                    cursor.old.iter().cloned().chain(notified).collect()
                }
            };
            self.notified
                .begin_checkpoint(state_partition, cursor.begun);
            let records = CheckpointRecords {
                state_partition,
                prefix,
                epoch: cursor.epoch,
                number: cursor.begun,
                checkpoint,
                pieces: Vec::new(),
                drops,
            };
            sent.push(Outgoing { records, revision });
        }
        let writer = Arc::clone(&self.writer);
        self.writing
            .start(move || Answer::write(writer.as_ref(), sent));
    }

    /// Returns once what became of the last batch, if known.
    pub(super) fn answer(&mut self, counts: &mut CheckpointCounts) -> Option<Written> {
        if let Some(written) = self.revocation.take() {
            return Some(written);
        }
        let answer = self.writing.result()?;
        Some(self.settle(answer, counts))
    }

    /// Waits for the batch under way.
    pub(super) fn wait(
        &mut self,
        within: Duration,
        counts: &mut CheckpointCounts,
    ) -> Option<Written> {
        let answer = self.writing.wait(within)?;
        Some(self.settle(answer, counts))
    }

    /// Begins a rebalance that revokes judge partitions.
    pub(super) fn begin_revocation(&mut self) {
        let session = Duration::from_millis(self.options.kafka.session_ms());
        self.revocation.begin(session);
    }

    /// Waits for the batch under way before a judge partition is given up.
    pub(super) fn wait_to_leave(&mut self, counts: &mut CheckpointCounts) {
        self.beat();
        let before = self.wait(self.revocation.left(), counts);
        self.revocation.keep(before);
    }

    /// Writes the last checkpoint of a judge partition; an error says why it may not be written.
    pub(super) fn write_last(
        &mut self,
        last: (i32, u64, PartitionCheckpoint),
        counts: &mut CheckpointCounts,
    ) -> Result<(), String> {
        self.write(vec![last]);
        let written = self.wait(self.revocation.left(), counts);
        let written = written.ok_or("the group does not wait so long")?;
        written.result.map(drop)
    }

    fn settle(&mut self, answer: Answer, counts: &mut CheckpointCounts) -> Written {
        let at_ms = clock::now_ms();
        counts.written += answer.written.len() as u64;
        counts.written_bytes += answer.bytes;
        for written in answer.written {
            let records = written.records;
            let cursor = self.cursors.get_mut(&records.state_partition);
            let Some(cursor) = cursor.filter(|c| c.epoch == records.epoch) else {
                continue;
            };
            let before = std::mem::replace(&mut cursor.number, records.number);
            cursor.revision = Some(written.revision);
            cursor.at_ms = Some(at_ms);
            cursor.failures = 0;
            // Notifications from before the last but one checkpoint was begun are superseded.
            self.notified.drop_before(records.state_partition, before);
            if !records.drops.is_empty() {
                cursor.old.clear();
            }
        }
        for partition in answer.failed {
            if let Some(cursor) = self.cursors.get_mut(&partition) {
                cursor.failures = cursor.failures.saturating_add(1);
            }
        }
        Written {
            result: answer.result.map(|_| Vec::new()),
            took: answer.took,
            at_ms,
            bytes: answer.bytes,
            unwritten: 0,
        }
    }
}
