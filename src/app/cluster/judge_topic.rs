//! The topic between workers and judges that share the models: `TOPIC-judges`, beside the state
//! topic.
//!
//! Each of its partitions is a *judge partition*. It has the part of every checkpoint that concerns
//! its models ([`crate::monitor::repartition`]), under the checkpoint's keys in the state topic.
//! The judge of the partition keeps its own checkpoints there too ([`super::judge_store`]).
//!
//! A worker writes the shares after the checkpoint itself. So a process that takes a partition over
//! always knows at least as much as the judges. If a worker dies between the two writes, the next
//! owner sends the deltas of the last checkpoint again.

use super::checkpoint_records::{self, CheckpointRecords};
use super::options::CheckpointOptions;
use crate::kafka::{KafkaError, ReadState, WriteState};
use crate::monitor::repartition::shares;
use crate::store::checkpoint::{CHUNK_BYTES, PartitionCheckpoint};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The name of the topic beside this state topic.
pub fn judge_topic(state_topic: &str) -> String {
    format!("{state_topic}-judges")
}

/// Makes sure that the topic exists and has this many partitions.
pub(super) fn ensure(
    reader: &mut dyn ReadState,
    state_topic: &str,
    partitions: i32,
) -> Result<(), KafkaError> {
    let found = reader.partitions(partitions)?;
    unsuitable(state_topic, partitions, found).map_or(Ok(()), Err)
}

/// The error if the topic has a number of partitions other than `partitions`.
pub fn unsuitable(state_topic: &str, partitions: i32, found: i32) -> Option<KafkaError> {
    (found != partitions).then(|| KafkaError::Unsuitable {
        topic: judge_topic(state_topic),
        detail: format!(
            "has {found} partitions and `judge_partitions` in [state] is {partitions}; write {found} there, the \
             same for all processes, or name another state topic"
        ),
    })
}

/// Writes the shares of checkpoints.
pub(super) struct JudgeTopicWriter {
    state_topic: String,
    partitions: i32,
    reader: Box<dyn ReadState>,
    writer: Arc<dyn WriteState>,
    /// The topic was found with all its partitions.
    found: bool,
}

impl JudgeTopicWriter {
    /// A writer that has asked the broker nothing yet.
    pub(super) fn new(
        options: &CheckpointOptions,
        partitions: i32,
    ) -> Result<JudgeTopicWriter, KafkaError> {
        let (brokers, kafka) = (&options.brokers, &options.kafka);
        let topic = judge_topic(&options.topic);
        Ok(JudgeTopicWriter {
            reader: brokers.state_reader(kafka, &topic, CHUNK_BYTES)?,
            writer: brokers.state_writer(kafka, &topic)?,
            state_topic: options.topic.clone(),
            partitions,
            found: false,
        })
    }

    /// Writes the shares of these checkpoints, under these numbers; returns their bytes.
    pub(super) fn write<'c>(
        &mut self,
        checkpoints: impl Iterator<Item = (&'c CheckpointRecords, u64)>,
    ) -> Result<u64, String> {
        if !self.found {
            ensure(self.reader.as_mut(), &self.state_topic, self.partitions)
                .map_err(|error| error.to_string())?;
            self.found = true;
        }
        let all: Vec<CheckpointRecords> = checkpoints
            .flat_map(|(c, number)| self.shares(c, number))
            .collect();
        let (mut offsets, known) = (BTreeMap::new(), BTreeMap::new());
        let writer = self.writer.as_ref();
        let sent = checkpoint_records::write(writer, all.iter(), &mut offsets, &known);
        Ok(sent?.bytes)
    }

    fn shares(
        &self,
        c: &CheckpointRecords,
        number: u64,
    ) -> impl Iterator<Item = CheckpointRecords> {
        let whole = &c.checkpoint;
        let shares = shares(&whole.snapshot, whole.deltas.as_ref(), self.partitions);
        // No share has more keys than the whole, and none has a journal.
        let drops = c.drops.iter().filter(|key| !key.contains("/journal/"));
        let drops: Vec<String> = drops.cloned().collect();
        (0..).zip(shares).map(
            move |(state_partition, (snapshot, deltas))| CheckpointRecords {
                state_partition,
                prefix: c.prefix.clone(),
                epoch: c.epoch,
                number,
                checkpoint: PartitionCheckpoint {
                    snapshot,
                    deltas,
                    ..PartitionCheckpoint::default()
                },
                pieces: Vec::new(),
                drops: drops.clone(),
            },
        )
    }
}
