//! One process judges what many count: it follows the topic of checkpoints, and is in no consumer group.
//!
//! Workers (`[state] verdicts = "none"`) share the partitions of a group, write their checkpoints, and judge
//! nothing. This process (`verdicts = "all"`) reads no record of a source. It hands every checkpoint that
//! comes ([`super::reader`]) to the [`Aggregator`], which judges all partitions slide by slide, for all that
//! are waited for ([`crate::monitor::liveness`]).
//!
//! ```text
//!   workers ─► topic of checkpoints ─► reader ─► aggregator ─► verdicts, metrics, alerts, records
//!   brokers ─► how long topics are ─► liveness ─┘ who is waited for
//! ```
//!
//! Why a process of its own, and not the worker that happens to hold the least partition: the role then
//! stays where it is when partitions move, and with it the directory that says what was notified; the memory
//! of a worker does not depend on how many others there are; and there is one notifier without an election.
//! The price is one more process, and the delay of a checkpoint, `interval` at most while the worker is well.
//!
//! One judge: a process that begins to judge writes a claim into the topic. A process that reads a later
//! claim than its own stops judging, notifies nobody, and says so in `/ready` ([`Follower::rival`]) until it
//! is restarted. Its state (what it judged, alerts, detectors, and how far it has followed the topic) lies in
//! snapshots in its directory, like that of a process by itself; so a restart repeats no notification, and
//! should keep the directory.
//!
//! Cost: for each checkpoint one restoring of its windows; each second one question to each broker.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::checkpoint_store::{CheckpointAge, CheckpointCounts, CheckpointOptions};
use super::reader::{Arrival, JudgeLease, StateTopicReader, lease_key};
use crate::app::clock;
use crate::judge::Change;
use crate::kafka::{FollowState, Followed, KafkaError};
use crate::monitor::aggregator::{Aggregator, At};
use crate::monitor::liveness::{Freshness, PartitionLiveness, Reach};
use crate::monitor::{Monitor, Plan, RestoreError, Snapshot};
use crate::store::checkpoint::{CHUNK_BYTES, KeyedRecord};
use crate::telemetry::facts::{JudgeFacts, Role};

/// Pause before what a broker did not answer is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// How often it is looked who is waited for, at most and at least.
const LOOKS: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(1));

/// How often the partitions of the sources are counted.
const COUNTS: Duration = Duration::from_secs(60);

/// How long one turn reads, where there is much.
const TURN: Duration = Duration::from_millis(200);

/// How long the claim may take.
const CLAIM: Duration = Duration::from_secs(10);

/// What the judge of all workers needs to know.
#[derive(Debug, Clone)]
pub struct FollowerOptions {
    /// Brokers, groups and the topic.
    pub checkpoints: CheckpointOptions,
    /// How long verdicts wait for a partition whose checkpoints stand still.
    pub missing_after: Duration,
    /// By number of the topic, the one with whose partitions its own go.
    pub copartitions: Vec<u16>,
}

/// What is open at the brokers.
struct Link {
    follower: Box<dyn FollowState>,
    /// Offset of our claim.
    claim: i64,
}

/// See the module.
pub struct Follower {
    options: FollowerOptions,
    plan: Plan,
    topics: Vec<String>,
    aggregator: Aggregator,
    reader: StateTopicReader,
    liveness: PartitionLiveness,
    link: Option<Link>,
    /// Why there is no link, or nothing comes over it.
    trouble: Option<String>,
    tried: Option<Instant>,
    looked: Instant,
    /// Checkpoints came since it was looked.
    news: bool,
    counted: Option<Instant>,
    /// All that lay in the topic at the start was read and looked at.
    began: bool,
    rival: Option<JudgeLease>,
    counts: CheckpointCounts,
}

impl Follower {
    /// One without state, or with that of its snapshot.
    pub fn new(
        plan: Plan,
        topics: Vec<String>,
        options: FollowerOptions,
        snapshot: Option<Snapshot>,
    ) -> Result<Follower, RestoreError> {
        let followed = snapshot.as_ref().and_then(|s| s.followed.clone());
        let mut aggregator = match snapshot {
            None => Aggregator::new(plan.clone(), topics.clone()),
            Some(snapshot) => Aggregator::restore(plan.clone(), topics.clone(), snapshot)?,
        };
        aggregator.time_by(clock::stopwatch);
        let lead = |source: &u16| options.copartitions.get(usize::from(*source)) == Some(source);
        let namespace = &options.checkpoints.namespace;
        let keyed = (0u16..).zip(&topics).filter(|(source, _)| lead(source));
        let keyed = keyed.map(|(source, topic)| (source, namespace.clone(), topic.clone()));
        let reader = StateTopicReader::new(keyed.collect(), &followed.unwrap_or_default().offsets);
        let missing_after_ms = i64::try_from(options.missing_after.as_millis());
        Ok(Follower {
            liveness: PartitionLiveness::new(missing_after_ms.unwrap_or(i64::MAX)),
            options,
            plan,
            topics,
            aggregator,
            reader,
            link: None,
            trouble: None,
            tried: None,
            looked: Instant::now(),
            news: false,
            counted: None,
            began: false,
            rival: None,
            counts: CheckpointCounts::default(),
        })
    }

    /// Reads what there is, and judges what can be judged; waits for the first no longer than `wait`. Answers
    /// how many records there were.
    pub fn follow(&mut self, wait: Duration) -> usize {
        let link = match self.link.take() {
            _ if self.rival.is_some() => None,
            Some(link) => Some(link),
            None => self.connect(),
        };
        let Some(link) = link else {
            std::thread::sleep(wait);
            return 0;
        };
        let read = self.read(&link, wait);
        let (often, seldom) = LOOKS;
        let since = self.looked.elapsed();
        if self.reader.are_read() && (since >= seldom || (self.news && since >= often)) {
            self.looked = Instant::now();
            self.look(&link);
        }
        self.link = Some(link);
        read
    }

    fn connect(&mut self) -> Option<Link> {
        if self.tried.is_some_and(|at| at.elapsed() < AGAIN) {
            return None;
        }
        self.tried = Some(Instant::now());
        match self.try_connect() {
            Ok((link, homes)) => {
                self.reader.begin(homes);
                self.trouble = None;
                tracing::info!(homes, claim = link.claim, "following the state topic");
                Some(link)
            }
            Err(error) => {
                tracing::warn!(%error, "state topic cannot be followed");
                self.trouble = Some(error.to_string());
                None
            }
        }
    }

    /// Finds the topic, makes it where it is missing, and claims to judge.
    fn try_connect(&self) -> Result<(Link, i32), KafkaError> {
        let (kafka, topic) = (
            &self.options.checkpoints.kafka,
            &self.options.checkpoints.topic,
        );
        let brokers = &self.options.checkpoints.brokers;
        let mut state = brokers.state_reader(kafka, topic, CHUNK_BYTES)?;
        let home = state.state_partition(0, &self.topics)?;
        let follower = brokers.state_follower(kafka, topic)?;
        let homes = follower.partitions(topic)?.unwrap_or(1);
        let key = lease_key(&self.options.checkpoints.namespace);
        let name = kafka.instance.as_deref().unwrap_or("-");
        let by = format!("{name} {} {}", std::process::id(), clock::now_ms());
        let claim: KeyedRecord = (key, Some(by.into_bytes()));
        let writer = brokers.state_writer(kafka, topic)?;
        let claim = writer.put(&[(home, &claim)], CLAIM)?;
        follower.begin(homes)?;
        let claim = claim.first().copied().unwrap_or_default();
        Ok((Link { follower, claim }, homes))
    }

    fn read(&mut self, link: &Link, wait: Duration) -> usize {
        let (begun, mut wait, mut read) = (Instant::now(), wait, 0);
        loop {
            let (reader, counts) = (&mut self.reader, &mut self.counts);
            let mut came = Vec::new();
            let polled = link.follower.poll(wait, &mut |followed| match followed {
                Followed::End(home) => came = reader.end(home),
                Followed::Record {
                    home,
                    offset,
                    at_ms,
                    key,
                    value,
                } => {
                    counts.read_bytes += (key.len() + value.map_or(0, <[u8]>::len)) as u64;
                    came = reader.take(home, offset, at_ms, (key, value));
                }
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
            came.into_iter().for_each(|arrival| self.arrive(arrival));
            wait = Duration::ZERO;
            if begun.elapsed() >= TURN {
                break;
            }
        }
        if let Some(lease) = self.reader.lease().filter(|g| g.claim > link.claim) {
            self.step_down(lease.clone());
        }
        read
    }

    fn arrive(&mut self, arrival: Arrival) {
        let now_ms = clock::steady_ms();
        let (at, at_ms) = (arrival.at, arrival.at_ms);
        self.news = true;
        let taken = arrival.found.and_then(|found| {
            let (epoch, checkpoint) = (found.epoch, found.checkpoint);
            self.aggregator
                .take(at, epoch, checkpoint.snapshot, checkpoint.deltas)
        });
        match taken {
            Ok(()) => {
                self.counts.read += 1;
                self.liveness.checkpoint_came(at, at_ms, now_ms);
            }
            Err(why) => {
                self.counts.refused += 1;
                let topic = self.name(at.0);
                crate::warn_limited!(topic, partition = at.1, why, "checkpoint cannot be used");
                self.liveness.refuse(at, why, now_ms);
            }
        }
    }

    fn name(&self, source: u16) -> &str {
        let topic = self.topics.get(usize::from(source));
        topic.map_or("", String::as_str)
    }

    /// Another judges from now on: what was said here is withdrawn.
    fn step_down(&mut self, lease: JudgeLease) {
        let by = &lease.by;
        tracing::error!(
            by,
            "another process has claimed to judge; this one judges no more"
        );
        self.aggregator = Aggregator::new(self.plan.clone(), self.topics.clone());
        self.rival = Some(lease);
    }

    /// Looks who is waited for, and judges.
    fn look(&mut self, link: &Link) {
        if self.rival.is_some() {
            return;
        }
        self.news = false;
        match self.ask(link.follower.as_ref()) {
            Ok(()) => self.trouble = None,
            Err(error) => {
                crate::warn_limited!(%error, "how long the topics are is not known; no verdicts");
                self.trouble = Some(error.to_string());
                return;
            }
        }
        let all: Vec<_> = self.liveness.all(clock::steady_ms()).collect();
        for (at, _, freshness) in all {
            self.aggregator.set_freshness(at, freshness);
        }
        self.aggregator.settle();
        self.began = true;
    }

    /// Asks how long the topics are, and how many partitions they have.
    fn ask(&mut self, follower: &dyn FollowState) -> Result<(), KafkaError> {
        let now_ms = clock::steady_ms();
        if self.counted.is_none_or(|at| at.elapsed() >= COUNTS) {
            for (source, lead) in (0u16..).zip(&self.options.copartitions) {
                let partitions = match source == *lead {
                    true => follower.partitions(self.name(source))?,
                    false => None,
                };
                (0..partitions.unwrap_or(0))
                    .for_each(|p| self.liveness.expect((source, p), now_ms));
            }
            self.counted = Some(Instant::now());
        }
        let all: Vec<At> = self.liveness.all(now_ms).map(|(at, ..)| at).collect();
        let parts: Vec<(At, u16, (String, i32))> = all
            .iter()
            .flat_map(|at| {
                let group = (0u16..).zip(&self.options.copartitions);
                let group = group.filter(|(_, lead)| **lead == at.0);
                group.map(|(source, _)| (*at, source, (self.name(source).to_owned(), at.1)))
            })
            .collect();
        let of: Vec<(String, i32)> = parts.iter().map(|(.., part)| part.clone()).collect();
        let ends = follower.ends(&of)?;
        let positions = self.aggregator.positions().into_iter();
        let positions = positions.map(|o| ((o.source, o.partition), o.offset));
        let positions: BTreeMap<At, i64> = positions.collect();
        let position = |source: u16, partition: i32| positions.get(&(source, partition)).copied();
        // Where a checkpoint goes on from is past the begin.
        let unread = |(at, source, _): &&(At, u16, _)| position(*source, at.1).is_none();
        let unread = parts.iter().filter(unread).map(|(.., part)| part.clone());
        let begins = follower.begins(&unread.collect::<Vec<_>>())?;
        for at in all {
            let idle = self.aggregator.idle(at);
            let unended = idle == Some(false);
            let idle = idle.unwrap_or(false);
            let reach = |(_, source, part): &(At, u16, (String, i32))| Reach {
                begin: begins.get(part).copied().unwrap_or(0),
                end: ends.get(part).copied().unwrap_or(0),
                position: position(*source, part.1),
                idle,
            };
            let mine = parts.iter().filter(|(of, ..)| *of == at);
            let uncovered = mine.map(|part| reach(part).uncovered()).sum();
            self.liveness.set_uncovered(at, uncovered, unended, now_ms);
        }
        Ok(())
    }

    /// Takes the time; returns all changes since the last call.
    pub fn tick(&mut self, now_ms: i64) -> Vec<Change> {
        match self.began && self.rival.is_none() {
            true => self.aggregator.tick(now_ms),
            false => Vec::new(),
        }
    }

    /// The partitions, and what judges them.
    pub fn aggregator(&self) -> &Aggregator {
        &self.aggregator
    }

    /// The same, to be changed.
    pub fn aggregator_mut(&mut self) -> &mut Aggregator {
        &mut self.aggregator
    }

    /// Who judges instead of this process.
    pub fn rival(&self) -> Option<&JudgeLease> {
        self.rival.as_ref()
    }

    /// What a restart goes on from; nothing while the topic is read for the first time, or another judges.
    pub fn snapshot(&self) -> Option<Snapshot> {
        if !self.began || self.rival.is_some() {
            return None;
        }
        let mut snapshot = self.aggregator.snapshot();
        if let Some(followed) = &mut snapshot.followed {
            followed.offsets = self.reader.next();
        }
        Some(snapshot)
    }

    /// What keeps verdicts over all partitions from being given, by part, each with the reason.
    pub fn lacks(&self) -> Vec<(String, String)> {
        let topic = &self.options.checkpoints.topic;
        if let Some(lease) = &self.rival {
            let why = format!(
                "{} claimed to judge at offset {} of {topic}; run one process with [state] verdicts = \"all\", \
                 and restart this one if it is to be the judge",
                lease.by, lease.claim
            );
            return vec![("judge".to_owned(), why)];
        }
        let mut all = Vec::new();
        if !self.began {
            let reading = format!("{topic} is read from its begin");
            let why = self.trouble.clone().unwrap_or(reading);
            all.push(("state topic".to_owned(), why));
        }
        for (at, known, freshness) in self.liveness.all(clock::steady_ms()) {
            let part = format!("partition {}/{}", self.name(at.0), at.1);
            let n = known.uncovered;
            let why = match (freshness, known.written_ms, &known.fault) {
                (Freshness::Covered, ..) => continue,
                (_, _, Some(fault)) => format!("its newest checkpoint cannot be used: {fault}"),
                (_, None, None) => {
                    format!("no worker has written a checkpoint of its {n} records into {topic}")
                }
                (Freshness::Behind, ..) => continue,
                (_, Some(_), None) if n == 0 => format!(
                    "no checkpoint came for {:?} or more, and the last one does not say that the partition was read \
                     to its end: verdicts go on without it",
                    self.options.missing_after
                ),
                (_, Some(_), None) => format!(
                    "no checkpoint came for {:?} or more, and {n} of its records are in none: verdicts go on without it",
                    self.options.missing_after
                ),
            };
            all.push((part, why));
        }
        all
    }

    /// How partitions stand, for metrics.
    pub fn role(&self) -> Role {
        if self.rival.is_some() {
            return Role::Standby;
        }
        let now_ms = clock::now_ms();
        let mut facts = JudgeFacts {
            skipped: self.aggregator.skipped(),
            ..JudgeFacts::default()
        };
        for (_, known, freshness) in self.liveness.all(now_ms) {
            facts.partitions[freshness as usize] += 1;
            facts.uncovered += known.uncovered;
            if let (true, Some(written_ms)) = (freshness != Freshness::Covered, known.written_ms) {
                facts.delay_ms = facts.delay_ms.max(now_ms.saturating_sub(written_ms));
            }
        }
        Role::Judge(facts)
    }

    /// What happened to checkpoints, and how old each is.
    pub fn checkpoints(&self) -> (&CheckpointCounts, Vec<CheckpointAge<'_>>) {
        let now_ms = clock::now_ms();
        let ages = self.liveness.all(now_ms);
        let ages = ages.map(|(at, known, _)| (self.name(at.0), at.1, known.written_ms));
        (&self.counts, ages.collect())
    }

    /// Takes over what may change in a plan at run time.
    pub fn reload(&mut self, new: &Plan) {
        self.aggregator.reload(new);
    }

    /// What judges.
    pub fn monitor(&self) -> &Monitor {
        self.aggregator.monitor()
    }
}
