//! The topic of checkpoints: shards are restored from it, and a worker writes them to it.
//!
//! The format and the protocol are in [`crate::store::checkpoint`]. Taking a partition over waits
//! on the engine's thread, within the rebalance that assigned it: before that, no record of the
//! partition may be read. Writing runs beside the engine, as with snapshots on disk: a copy of the
//! changed shards is taken at one moment, one batch is under way at a time, and the next one
//! includes what a failed batch did not write. Giving partitions up waits for a last checkpoint of
//! each, for at most half a session ([`super::revocation`]). The next owner reads again what is not
//! written by then; nothing is lost.
//!
//! A partition whose checkpoints cannot be used is *suspended*: it stays assigned and is not read,
//! and `/ready` names it with the reason, until the topic is repaired or the configuration says
//! `on_broken = "fresh"`. The same holds if the group has committed an offset of the partition but
//! the topic has no checkpoint of it: the topic was then replaced or emptied.

use super::checkpoint_batch::{Answer, Batch, BatchWriter, Outgoing, outgoing};
use super::cursor::{CheckpointCursor, Superseded};
use super::foreign::ForeignClaims;
use super::judge_topic::JudgeTopicWriter;
use super::options::CheckpointOptions;
use super::restored::{Room, Unusable, in_words, report_refused, shard_of};
use super::revocation::Revocation;
use crate::app::AppError;
use crate::app::clock;
use crate::app::outputs::snapshots::Written;
use crate::app::worker::Background;
use crate::collect::PartitionId;
use crate::collect::join::{SpillBackend, SpillError};
use crate::kafka::{KafkaError, ReadState, WriteState};
use crate::monitor::{LocalShard, Plan, VerdictState};
use crate::store::checkpoint::{self, CHUNK_BYTES};
use crate::store::reader::CheckpointReader;
use crate::telemetry::facts::CheckpointCounts;
use crate::telemetry::published::Beat;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Topic and partition, and when their checkpoint was last written or read, in milliseconds since
/// 1970.
pub type CheckpointAge<'a> = (&'a str, i32, Option<i64>);

/// The result of taking a partition over.
pub enum TakeOver {
    /// A shard, and the verdicts on its streams.
    Shard(Box<LocalShard>, Vec<VerdictState>),
    /// It is not to be read, for this reason.
    Suspended(String),
    /// The store of pending predictions that exceed memory failed, as it may at any time.
    Broken(SpillError),
}

/// The checkpoints of this process's partitions in their topic. See the module.
pub struct CheckpointStore {
    options: CheckpointOptions,
    state: Box<dyn ReadState>,
    claims: Arc<dyn WriteState>,
    batch_writer: Arc<Mutex<BatchWriter>>,
    writing: Background<Answer>,
    counts: CheckpointCounts,
    /// Where shards that are made here spill predictions, and how many shards share the memory.
    room: Option<Room>,
    /// How far each partition is stored.
    cursors: BTreeMap<PartitionId, CheckpointCursor>,
    revocation: Revocation,
    /// The heartbeat of the thread that waits here.
    beat: Option<Beat>,
}

impl CheckpointStore {
    /// Starts the worker; asks nothing of the broker yet.
    pub fn new(options: CheckpointOptions) -> Result<CheckpointStore, AppError> {
        let (kafka, brokers) = (&options.kafka, &options.brokers);
        let failed = |error: KafkaError| AppError::Config(format!("[state]: {error}"));
        let reader = || brokers.state_reader(kafka, &options.topic, CHUNK_BYTES);
        let state = reader().map_err(failed)?;
        let claims = brokers.state_writer(kafka, &options.topic);
        let claims = claims.map_err(failed)?;
        let writer = brokers.state_writer(kafka, &options.topic);
        let judges = options.judge_partitions.filter(|_| options.counts_only);
        let judges = judges
            .map(|n| JudgeTopicWriter::new(&options, n))
            .transpose();
        let batch_writer = BatchWriter {
            writer: writer.map_err(failed)?,
            foreign: ForeignClaims::new(reader().map_err(failed)?),
            judges: judges.map_err(failed)?,
            known: BTreeMap::new(),
            made_again: false,
        };
        Ok(CheckpointStore {
            state,
            writing: Background::new(options.workers.worker("checkpoints")?),
            options,
            claims,
            batch_writer: Arc::new(Mutex::new(batch_writer)),
            counts: CheckpointCounts::default(),
            room: None,
            cursors: BTreeMap::new(),
            revocation: Revocation::default(),
            beat: None,
        })
    }

    /// From now on, new shards spill pending predictions that exceed memory to `spills`.
    pub fn spill_to(&mut self, spills: Arc<dyn SpillBackend>) {
        self.room = Some((spills, 1));
    }

    /// Reports this thread as alive, through `beat`, between two waits.
    pub fn beat_with(&mut self, beat: Beat) {
        self.beat = Some(beat);
    }

    fn beat(&self) {
        self.beat.iter().for_each(Beat::tick);
    }

    /// Sets how many shards share the memory, including the next one.
    pub fn share(&mut self, shards: usize) {
        if let Some((_, by)) = &mut self.room {
            *by = shards;
        }
    }

    /// Counts of what happened so far.
    pub fn counts(&self) -> &CheckpointCounts {
        &self.counts
    }

    /// Takes a partition over: claims it, reads what was written of it, and makes its shard. An
    /// error is temporary: a broker is away or slow.
    pub fn take_over(
        &mut self,
        at: PartitionId,
        topics: &[String],
        plan: &Plan,
    ) -> Result<TakeOver, KafkaError> {
        self.beat();
        let start = Instant::now();
        let of_source = |all: &[String]| all.get(usize::from(at.source)).cloned();
        let topic = of_source(topics).unwrap_or_default();
        let group = of_source(&self.options.groups).unwrap_or_default();
        let prefix = checkpoint::prefix(&self.options.namespace, &topic, at.partition);
        let state_partition = self.state.state_partition(at.partition, topics)?;
        let (epoch, reader) = self.options.claim(
            self.claims.as_ref(),
            self.state.as_ref(),
            state_partition,
            &prefix,
            start,
            &|| self.beat(),
        )?;
        let mut cursor = CheckpointCursor {
            group,
            topic,
            state_partition,
            prefix,
            epoch,
            old: reader.keys_of_other_epochs(epoch),
            pieces: reader.journal_chunks().collect(),
            ..CheckpointCursor::default()
        };
        cursor.begin_journal();
        self.counts.read_bytes += reader.bytes();
        let taken = self.open(at, topics, plan, &reader, cursor);
        self.counts.restore_seconds = start.elapsed().as_secs_f64();
        taken
    }

    fn open(
        &mut self,
        at: PartitionId,
        topics: &[String],
        plan: &Plan,
        reader: &CheckpointReader,
        mut cursor: CheckpointCursor,
    ) -> Result<TakeOver, KafkaError> {
        let why = match reader.newest() {
            Ok(Some(found)) => {
                report_refused(&found, &mut self.counts);
                cursor.resume(&found);
                match shard_of(at, found, topics, plan, &mut cursor, self.room.clone()) {
                    Ok((shard, verdicts)) => {
                        if self.options.counts_only {
                            // A judge has skipped what was written after the claim of another
                            // process, and waits for a checkpoint of this claim.
                            cursor.written = None;
                        }
                        self.counts.read += 1;
                        self.cursors.insert(at, cursor);
                        return Ok(TakeOver::Shard(Box::new(shard), verdicts));
                    }
                    Err(Unusable::Checkpoint(why)) => Some(why),
                    // Starting without state would not fix this.
                    Err(Unusable::Store(error)) => return Ok(TakeOver::Broken(error)),
                }
            }
            Ok(None) => {
                let (group, topic) = (&cursor.group, &self.options.topic);
                let committed = self.state.committed(group, &cursor.topic, at.partition)?;
                committed.map(|offset| {
                    format!(
                        "the group has committed offset {offset} and topic {topic} holds no checkpoint of it: it was \
                         emptied, or is another"
                    )
                })
            }
            Err(faults) => {
                self.counts.refused += faults.len() as u64;
                let topic = &self.options.topic;
                let why = format!("no usable checkpoint in {topic}: {}", in_words(&faults));
                Some(why)
            }
        };
        if let Some(why) = why {
            if !self.options.fresh {
                return Ok(TakeOver::Suspended(format!(
                    "{why}; mend the topic, or set [state] on_broken = \"fresh\" to begin without the state"
                )));
            }
            tracing::error!(
                topic = cursor.topic,
                partition = at.partition,
                why,
                "partition begins without its state"
            );
            // The journal in the topic does not belong to the new state.
            cursor.begin_journal();
        }
        self.cursors.insert(at, cursor);
        let shard = LocalShard::new(at, plan, topics.to_vec(), self.room.clone());
        Ok(TakeOver::Shard(Box::new(shard), Vec::new()))
    }

    /// The partition belongs to another process: how far it is stored is no longer known here.
    pub fn forget(&mut self, at: PartitionId) {
        self.cursors.remove(&at);
    }

    /// Topic and partition of each shard, and when its last checkpoint was written or read.
    pub fn ages(&self) -> impl Iterator<Item = CheckpointAge<'_>> {
        let all = self.cursors.iter();
        all.map(|(at, cursor)| (cursor.topic.as_str(), at.partition, cursor.at_ms))
    }

    /// Whether a batch is being written.
    pub fn is_writing(&self) -> bool {
        self.writing.busy()
    }

    /// Hands over the shards that have changed since they were last written. It is an error to do
    /// so while [`is_writing`](CheckpointStore::is_writing).
    pub fn write(
        &mut self,
        shards: &mut [LocalShard],
        verdicts: &BTreeMap<PartitionId, Vec<VerdictState>>,
    ) {
        let mut changed = Vec::new();
        for shard in shards {
            let verdicts = verdicts.get(&shard.at).map_or(&[][..], Vec::as_slice);
            changed.extend(self.outgoing(shard, verdicts));
        }
        self.send(changed);
    }

    /// A shard as it is now; `None` if there is nothing to write. Counts deltas that were cut.
    fn outgoing(&mut self, shard: &mut LocalShard, verdicts: &[VerdictState]) -> Option<Outgoing> {
        let cursor = self.cursors.get_mut(&shard.at)?;
        let cut = shard.take_cut();
        if cut > 0 {
            tracing::error!(
                topic = cursor.topic,
                partition = shard.at.partition,
                deltas = cut,
                "no checkpoint could be written for too long; the judge skips slides of the partition"
            );
            self.counts.deltas_cut += cut;
        }
        outgoing(shard, cursor, verdicts)
    }

    fn send(&mut self, shards: Vec<Outgoing>) {
        let mut epochs = BTreeMap::new();
        for cursor in self.cursors.values() {
            let first = epochs.entry(cursor.state_partition).or_insert(cursor.epoch);
            *first = cursor.epoch.min(*first);
        }
        let batch = Batch { shards, epochs };
        let writer = Arc::clone(&self.batch_writer);
        self.writing.start(move || {
            let mut writer = writer.lock();
            writer.write(batch)
        });
    }

    /// Partitions that another process has claimed while they are held here.
    pub fn superseded(&self) -> impl Iterator<Item = (PartitionId, &str, &Superseded)> {
        let all = self.cursors.iter();
        all.filter_map(|(at, cursor)| {
            Some((*at, cursor.topic.as_str(), cursor.superseded.as_ref()?))
        })
    }

    /// How long such a partition is held before it is claimed again. If the group has assigned it
    /// to the other process, the group revokes it here within a session.
    pub fn claims_again_after(&self) -> Duration {
        Duration::from_millis(self.options.kafka.session_ms())
    }

    /// Returns once what became of the last batch, if known.
    pub fn answer(&mut self, shards: &mut [LocalShard]) -> Option<Written> {
        if let Some(written) = self.revocation.take() {
            return Some(written);
        }
        let answer = self.writing.result()?;
        Some(self.settle(answer, shards))
    }

    /// Waits for the batch under way.
    pub fn wait(&mut self, shards: &mut [LocalShard], within: Duration) -> Option<Written> {
        let answer = self.writing.wait(within)?;
        Some(self.settle(answer, shards))
    }

    fn settle(&mut self, answer: Answer, shards: &mut [LocalShard]) -> Written {
        let at_ms = clock::now_ms();
        let mut positions = Vec::new();
        for claim in &answer.claims {
            let here = |c: &&mut CheckpointCursor| c.state_partition == claim.state_partition;
            for cursor in self.cursors.values_mut().filter(here) {
                if cursor.claimed(&claim.key, claim.offset, &claim.by) {
                    self.counts.superseded += 1;
                }
            }
        }
        if answer.result.is_ok() {
            self.counts.written += answer.sent.len() as u64;
            self.counts.written_bytes += answer.bytes;
        }
        for sent in answer.sent {
            let shard = shards.iter_mut().find(|s| s.at == sent.at);
            let cursor = self.cursors.get_mut(&sent.at);
            let Some(cursor) = cursor.filter(|c| c.epoch == sent.records.epoch) else {
                continue;
            };
            if answer.stored {
                sent.stored(cursor, at_ms);
            }
            if answer.result.is_ok() {
                cursor.written = Some(sent.progress);
                cursor.judges_number = sent.judges_number;
                if let Some(shard) = shard {
                    shard.deltas_stored(sent.deltas_until);
                }
                positions.extend(sent.positions);
                continue;
            }
            if !answer.stored {
                let newer = std::mem::take(&mut cursor.unwritten);
                cursor.unwritten = sent.records.pieces.into_iter().chain(newer).collect();
            }
            // They may include keys of parts for judges.
            cursor.old.extend(sent.records.drops);
            shard.into_iter().for_each(LocalShard::deltas_not_stored);
        }
        Written {
            result: answer.result.map(|()| positions),
            took: answer.took,
            at_ms,
            bytes: answer.bytes,
            unwritten: self.cursors.values().map(CheckpointCursor::unwritten).sum(),
        }
    }

    /// Begins a rebalance that revokes partitions: [`leave`](CheckpointStore::leave) follows for
    /// each shard.
    pub fn begin_revocation(&mut self) {
        let session = Duration::from_millis(self.options.kafka.session_ms());
        self.revocation.begin(session);
    }

    /// Writes the last checkpoint of a shard before it is given up, as far as the group leaves time
    /// for it.
    pub fn leave(
        &mut self,
        shard: &mut LocalShard,
        verdicts: &[VerdictState],
        others: &mut [LocalShard],
    ) {
        self.beat();
        // The batch under way may include this shard; its cursor is still here.
        let before = self.wait(others, self.revocation.left());
        self.revocation.keep(before);
        let at = shard.at;
        let topic = self.cursors.get(&at).map(|c| c.topic.clone());
        let late = |why: &str| {
            tracing::warn!(
                topic,
                partition = at.partition,
                why,
                "last checkpoint not written; the taker reads more again"
            );
        };
        if self.writing.busy() {
            return late("the batch before takes too long");
        }
        let Some(last) = self.outgoing(shard, verdicts) else {
            return;
        };
        self.send(vec![last]);
        match self.wait(others, self.revocation.left()) {
            Some(Written { result: Ok(_), .. }) => {}
            Some(Written {
                result: Err(why), ..
            }) => late(&why),
            None => late("the broker did not answer in time"),
        }
    }
}
