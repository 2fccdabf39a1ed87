//! What the processes of a group need to know about the topic of checkpoints and about each other.

use crate::app::{Workers, clock};
use crate::judge::{Alive, Runtime};
use crate::kafka::{Brokers, KafkaError, KafkaOptions, ReadState, WriteState};
use crate::store::checkpoint::{KeyedRecord, claim_key};
use crate::store::reader::CheckpointReader;
use crate::telemetry::published::Beat;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Options of the checkpoint store.
#[derive(Debug, Clone)]
pub struct CheckpointOptions {
    /// Brokers and credentials.
    pub kafka: KafkaOptions,
    /// `group` of `[kafka]`, the first part of all keys: a source that is added, renamed or given a
    /// group of its own leaves the keys of the others as they are.
    pub namespace: String,
    /// The group that reads each topic, by number.
    pub groups: Vec<String>,
    /// Name of the topic.
    pub topic: String,
    /// Number of judge partitions that share the models; `None` if one process judges all.
    pub judge_partitions: Option<i32>,
    /// Whether another process judges what this one counts.
    pub counts_only: bool,
    /// How long taking one partition over may take.
    pub restore_within: Duration,
    /// Whether a partition whose checkpoints cannot be used starts without state; otherwise it is
    /// suspended.
    pub fresh: bool,
    /// The client of the brokers.
    pub brokers: Arc<dyn Brokers>,
    /// Makes the workers that write.
    pub workers: Arc<dyn Workers>,
}

impl CheckpointOptions {
    /// The value of a claim, for people who look into the topic: `instance`, process id and time.
    pub(super) fn claimant(&self) -> Vec<u8> {
        let name = self.kafka.instance.as_deref().unwrap_or("-");
        format!("{name} {} {}", std::process::id(), clock::now_ms()).into_bytes()
    }

    /// Writes a claim with this key; returns its offset.
    pub(super) fn put_claim(
        &self,
        claims: &dyn WriteState,
        state_partition: i32,
        key: String,
        within: Duration,
        beat: &dyn Fn(),
    ) -> Result<i64, KafkaError> {
        let claim: KeyedRecord = (key, Some(self.claimant()));
        let offsets = claims.put(&[(state_partition, &claim)], within, beat)?;
        // The client returns -1 for a record that it had to send twice.
        let offset = offsets.first().copied().filter(|offset| *offset >= 0);
        let unknown = || "the offset of a claim is not known; it is made again".to_owned();
        offset.ok_or_else(|| KafkaError::Other(unknown()))
    }

    /// Claims the keys with this prefix in a partition of the topic and reads what was written of
    /// them, within the time that is left since `start`. Returns the offset of the claim, and what
    /// was read.
    pub(super) fn claim(
        &self,
        claims: &dyn WriteState,
        state: &dyn ReadState,
        state_partition: i32,
        prefix: &str,
        start: Instant,
        beat: &dyn Fn(),
    ) -> Result<(i64, CheckpointReader), KafkaError> {
        let within = self.restore_within;
        beat();
        let key = claim_key(prefix);
        let epoch = self.put_claim(claims, state_partition, key, within, beat)?;
        beat();
        let mut reader = CheckpointReader::new(prefix.to_owned());
        let left = within.saturating_sub(start.elapsed());
        state.read(state_partition, epoch, left, beat, &mut |key, value| {
            reader.read(key, value);
        })?;
        Ok((epoch, reader))
    }
}

/// What a judge of workers needs to know.
#[derive(Debug, Clone)]
pub struct FollowerOptions {
    /// Brokers, groups and the topic.
    pub checkpoints: CheckpointOptions,
    /// How long verdicts wait for a partition whose checkpoints have stopped.
    pub missing_after: Duration,
    /// By number of the topic, the topic whose partitions its own partitions follow.
    pub copartitions: Vec<u16>,
    /// The runtime of judges.
    pub runtime: Runtime,
}

/// A runtime that also reports the thread as alive, through `beat`, after each stream.
pub(super) fn with_beat(runtime: &Runtime, beat: &Beat) -> Runtime {
    let beat = beat.clone();
    Runtime {
        alive: Some(Alive::new(move || beat.tick())),
        ..runtime.clone()
    }
}
