//! One process judges what many count. It follows the topic of checkpoints and is in no consumer
//! group.
//!
//! Workers (`[state] verdicts = "none"`) share the partitions of a group, write their checkpoints,
//! and judge nothing. This process (`verdicts = "all"`) reads no record of a source. Every new
//! checkpoint goes to its [task](super::judge_task).
//!
//! ```text
//!   workers ─► topic of checkpoints ─► task ─► verdicts, metrics, alerts, records
//!   brokers ─► how long topics are ─────┘ who is waited for
//! ```
//!
//! The judge is a separate process, and not for example the worker that holds the lowest partition,
//! for three reasons. The role, and the directory with the sent notifications, stay where they are
//! when partitions move. The memory of a worker does not depend on the number of other workers. And
//! there is one notifier without an election. The cost is one more process, and a delay of at most
//! `interval` while the worker is healthy.
//!
//! Only one process judges: a process writes a claim into the topic before it judges. A process
//! that reads a later claim than its own stops judging and notifying, and reports this in `/ready`
//! ([`Follower::rival`]) until it is restarted. Its state (judgements, alerts, detectors, and its
//! position in the topic) is in snapshots in its directory, like that of a single process. So keep
//! the directory: a restart then repeats no notification. If the topic was replaced, the process
//! claims again, takes the windows from its checkpoints, and keeps alerts.
//!
//! Cost: each checkpoint's windows are restored once; each broker gets one request a second.

use std::time::{Duration, Instant};

use super::judge_task::JudgeTask;
use super::options::FollowerOptions;
use super::reader::{JudgeLease, lease_key};
use crate::kafka::{FollowState, Followed, KafkaError};
use crate::store::checkpoint::CHUNK_BYTES;
use crate::telemetry::facts::CheckpointCounts;

/// Pause before a request that a broker did not answer is repeated.
pub(super) const AGAIN: Duration = Duration::from_secs(5);

/// Longest time that one turn reads.
pub(super) const TURN: Duration = Duration::from_millis(200);

/// How long the claim may take.
const CLAIM: Duration = Duration::from_secs(10);

/// The open connection to the brokers, and the claim there.
struct Link {
    follower: Box<dyn FollowState>,
    /// Offset of our claim.
    claim: i64,
}

/// Follows the topic of checkpoints for the one judge. See the module.
pub struct Follower {
    options: FollowerOptions,
    topics: Vec<String>,
    link: Option<Link>,
    /// Why there is no link.
    trouble: Option<String>,
    tried: Option<Instant>,
    rival: Option<JudgeLease>,
}

impl Follower {
    /// A follower that has asked the brokers nothing yet.
    pub fn new(topics: Vec<String>, options: FollowerOptions) -> Follower {
        Follower {
            options,
            topics,
            link: None,
            trouble: None,
            tried: None,
            rival: None,
        }
    }

    /// Reads the available records; waits at most `wait` for the first. Returns their number.
    pub(super) fn read(
        &mut self,
        task: &mut JudgeTask,
        counts: &mut CheckpointCounts,
        wait: Duration,
    ) -> usize {
        if self.rival.is_none() && self.link.is_none() {
            self.link = self.connect(task);
        }
        let Some(link) = self.link.as_ref().filter(|_| self.rival.is_none()) else {
            std::thread::sleep(wait);
            return 0;
        };
        let read = read(link, task, counts, wait);
        if task.take_rewound() {
            // Our claim was in the topic that was replaced.
            (self.link, self.tried) = (None, None);
            return read;
        }
        if let Some(lease) = task.lease().filter(|lease| lease.claim > link.claim) {
            let lease = lease.clone();
            self.step_down(lease, task);
        }
        read
    }

    fn connect(&mut self, task: &mut JudgeTask) -> Option<Link> {
        if self.tried.is_some_and(|at| at.elapsed() < AGAIN) {
            return None;
        }
        self.tried = Some(Instant::now());
        match self.try_connect() {
            Ok((link, state_partitions)) => {
                task.begin(state_partitions);
                self.trouble = None;
                tracing::info!(
                    state_partitions,
                    claim = link.claim,
                    "following the state topic"
                );
                Some(link)
            }
            Err(error) => {
                tracing::warn!(%error, "state topic cannot be followed");
                self.trouble = Some(error.to_string());
                None
            }
        }
    }

    /// Finds the topic, creates it if missing, and claims to judge.
    fn try_connect(&self) -> Result<(Link, i32), KafkaError> {
        let checkpoints = &self.options.checkpoints;
        let (brokers, kafka, topic) =
            (&checkpoints.brokers, &checkpoints.kafka, &checkpoints.topic);
        let mut state = brokers.state_reader(kafka, topic, CHUNK_BYTES)?;
        let state_partition = state.state_partition(0, &self.topics)?;
        let follower = brokers.state_follower(kafka, topic)?;
        let state_partitions = follower.partitions(topic)?.unwrap_or(1);
        let key = lease_key(&checkpoints.namespace);
        let writer = brokers.state_writer(kafka, topic)?;
        let claim = checkpoints.put_claim(writer.as_ref(), state_partition, key, CLAIM, &|| {})?;
        follower.begin(state_partitions)?;
        Ok((Link { follower, claim }, state_partitions))
    }

    /// Another process judges from now on: withdraws what was published here.
    fn step_down(&mut self, lease: JudgeLease, task: &mut JudgeTask) {
        let by = &lease.by;
        tracing::error!(
            by,
            "another process has claimed to judge; this one judges no more"
        );
        task.withdraw();
        self.rival = Some(lease);
    }

    /// The claim of the process that judges instead of this one.
    pub(super) fn rival(&self) -> Option<&JudgeLease> {
        self.rival.as_ref()
    }

    /// The client that can ask how long topics are; `None` without a link.
    pub(super) fn link(&self) -> Option<&dyn FollowState> {
        self.link.as_ref().map(|link| link.follower.as_ref())
    }

    /// The part that is not ready because nothing can be read, with the reason.
    pub(super) fn waits_for(&self, task: &JudgeTask) -> Option<(String, String)> {
        let topic = &self.options.checkpoints.topic;
        if let Some(lease) = &self.rival {
            let why = format!(
                "{} claimed to judge at offset {} of {topic}; run one process with [state] verdicts = \"all\", \
                 and restart this one if it is to be the judge, or set `judge_partitions`, with which any \
                 number may judge",
                lease.by, lease.claim
            );
            return Some(("judge".to_owned(), why));
        }
        let reading = || format!("{topic} is being read from its beginning");
        let why = self.trouble.clone().unwrap_or_else(reading);
        (!task.began()).then(|| ("state topic".to_owned(), why))
    }
}

fn read(
    link: &Link,
    task: &mut JudgeTask,
    counts: &mut CheckpointCounts,
    mut wait: Duration,
) -> usize {
    let (begun, mut read) = (Instant::now(), 0);
    loop {
        let polled = link.follower.poll(wait, &mut |followed| match followed {
            Followed::End(state_partition) => task.end(state_partition, counts),
            Followed::Record {
                state_partition,
                offset,
                at_ms,
                key,
                value,
            } => task.take(state_partition, offset, at_ms, key, value, counts),
        });
        match polled {
            Ok(true) => read += 1,
            Ok(false) => break,
            Err(error) => {
                // The client tries again by itself.
                crate::warn_limited!(%error, "state topic");
                break;
            }
        }
        wait = Duration::ZERO;
        if begun.elapsed() >= TURN {
            break;
        }
    }
    read
}
