//! One consumer with its source: poll, pause, recreate, commit, close.

mod unread;

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::contest::{self, Claim, Contest, Decision};
use super::record::RecordReader;
use super::source::{SourceHandler, SourceReader};
use crate::app::clock;
use crate::app::cluster::topology::Topology;
use crate::app::error::AppError;
use crate::app::pool::Pool;
use crate::app::setup::{part, source_error};
use crate::collect::Origin;
use crate::config::SourceOptions;
use crate::kafka::{Brokers, Consumer, DeadLetter, Handler, KafkaError, Partition};
use crate::registry::Registry;
use crate::telemetry::Published;

/// Pause before a failed consumer is recreated.
const RECREATE_AFTER: Duration = Duration::from_secs(5);
/// How long leaving the group may take. A client that was closed during a rebalance was seen to
/// wait for its metadata forever. All state is on disk by then, and the group notices after a
/// session timeout.
const LEAVE_WITHIN: Duration = Duration::from_secs(10);
/// How long the group may take to give this process the partitions of one that has to stop.
const GIVE_BACK: Duration = Duration::from_secs(10);
/// Longest part of the time between two polls that counts towards [`GIVE_BACK`]: a frozen process
/// got no news.
const STEP_MAX: Duration = Duration::from_secs(1);
/// How long the broker may take to name the members of a group.
const MEMBERS_WITHIN: Duration = Duration::from_secs(2);
/// How long the last dead letters may take to leave.
const FLUSH_WITHIN: Duration = Duration::from_secs(5);

/// One consumer and its source.
pub struct SourceConsumer {
    /// Its configuration, from which it can be recreated.
    options: SourceOptions,
    brokers: Arc<dyn Brokers>,
    /// The group member.
    pub consumer: Consumer,
    /// From its records to the engine.
    pub source: SourceReader,
    /// When to recreate the consumer after a fatal error.
    recreate_at: Option<Instant>,
    /// Another process has taken the `instance`.
    fenced: bool,
    /// It takes the `instance` back, and the group has not answered yet.
    returning: bool,
    /// Another process is where there may be one.
    contest: Option<Contest>,
    /// When it was last polled.
    polled: Instant,
    /// Why this process must stop: another one was there first.
    displaced: Option<String>,
    /// The group has accepted the member at least once.
    ready: bool,
    /// The last error since the group threw this process out.
    trouble: Option<String>,
    paused: bool,
    /// Since when the schema queue is behind: it was full and is not empty yet.
    schemas_behind: Option<Instant>,
}

impl SourceConsumer {
    /// Creates the consumer, which begins to join its group. `base` is the number of its first
    /// topic. The threads of `pool` share the decoding.
    pub fn new(
        options: SourceOptions,
        base: u16,
        registry: Option<&Arc<Registry>>,
        brokers: Arc<dyn Brokers>,
        pool: &Pool,
    ) -> Result<SourceConsumer, AppError> {
        let mut records = RecordReader::new(&options, base, registry)?;
        records.share(&options, pool)?;
        let failed = |error: KafkaError| source_error(&options, &error);
        let consumer = Consumer::new(&options.kafka, brokers.as_ref()).map_err(failed)?;
        records.dead_letters = DeadLetter::new(&options.kafka).map_err(failed)?;
        Ok(SourceConsumer {
            options,
            brokers,
            consumer,
            source: SourceReader::new(records),
            recreate_at: None,
            fenced: false,
            returning: false,
            contest: None,
            polled: Instant::now(),
            displaced: None,
            ready: false,
            trouble: None,
            paused: false,
            schemas_behind: None,
        })
    }

    /// See [`SourceOptions::outcomes_of`].
    pub fn outcomes_of(&self, topic: &str) -> Option<&str> {
        self.options.outcomes_of(topic)
    }

    /// Pauses while the disk is behind, starts of partitions are not stored, or the schema queue is
    /// full, and resumes afterwards.
    pub fn pause_or_resume(&mut self, disk_behind: bool, start_unsaved: bool) {
        let queue = &self.source.queue;
        let schemas_behind = match self.schemas_behind {
            Some(_) => !queue.is_empty(),
            None => queue.is_full(),
        };
        self.schemas_behind =
            schemas_behind.then(|| self.schemas_behind.unwrap_or_else(Instant::now));
        let paused = disk_behind || start_unsaved || schemas_behind;
        if paused == self.paused || self.recreate_at.is_some() {
            return;
        }
        self.paused = paused;
        let topics = self.source.records.topics().join(",");
        match paused {
            // A moment at every first start.
            true if !disk_behind && !schemas_behind => {
                tracing::debug!(topics, "reading waits until its start is stored");
            }
            true => tracing::warn!(topics, disk_behind, schemas_behind, "reading is paused"),
            false => tracing::info!(topics, "reading goes on"),
        }
        let done = if paused {
            self.consumer.pause()
        } else {
            self.consumer.resume()
        };
        if let Err(error) = done {
            tracing::error!(%error, "consumer could not be paused or resumed");
        }
    }

    /// Reads what the broker has, waiting at most `wait` for it. Returns the number of records.
    pub fn poll(&mut self, engines: &mut Topology, wait: Duration) -> usize {
        let source = &mut self.source;
        source.records.reading_ms = Some(clock::reading_ms());
        let passed = std::mem::replace(&mut self.polled, Instant::now()).elapsed();
        if self.contest.as_ref().is_none_or(|c| c.reached) {
            let session = Duration::from_millis(self.options.kafka.session_ms());
            let after = contest::grace(session) + GIVE_BACK;
            source.let_go(engines, passed.min(STEP_MAX), after);
        }
        let mut handler = SourceHandler { source, engines };
        handler.drain_queue();
        if let Some(dead_letters) = &handler.source.records.dead_letters {
            dead_letters.rebootstrap();
        }
        let records = &handler.source.records;
        let ours = |source: u16| records.numbered().any(|(_, number)| number == source);
        if let Some(why) = handler.engines.must_claim_again(ours)
            && self.recreate_at.is_none()
        {
            handler.error(KafkaError::Fatal(why));
        }
        if std::mem::take(&mut handler.source.needs_consumer) {
            self.recreate_at = Some(Instant::now() + RECREATE_AFTER);
        }
        if std::mem::take(&mut handler.source.fenced) {
            self.fenced = true;
            // Who was fenced while it took the `instance` back waits again.
            (self.returning, self.contest) = (false, None);
            self.give_up(engines);
            return 0;
        }
        match self.recreate_at {
            _ if self.fenced => {
                std::thread::sleep(wait);
                0
            }
            None => self.consumer.poll(wait, &mut handler),
            Some(at) if Instant::now() < at => {
                std::thread::sleep(wait);
                0
            }
            Some(_) => {
                self.recreate(engines);
                0
            }
        }
    }

    /// Looks for other processes where there may be only this one: under its `instance`, and in a
    /// group without a state topic (`alone`). Decides which of them goes on.
    pub fn contend(&mut self, alone: bool) {
        if self.returning && (self.recreate_at.is_some() || !self.consumer.joined()) {
            // Until then the partitions are those of the other process.
            return;
        }
        self.returning = false;
        let claim = match self.fenced {
            true => Some(Claim::Instance),
            false if alone && !self.consumer.shared().is_empty() => Some(Claim::Group),
            false => None,
        };
        let kafka = &self.options.kafka;
        let session = Duration::from_millis(kafka.session_ms());
        if self.contest.as_ref().map(|c| c.claim) != claim {
            self.contest = claim.map(|claim| Contest::new(claim, session));
        }
        let Some(contest) = self.contest.as_mut().filter(|_| self.displaced.is_none()) else {
            return;
        };
        if !contest.asks() {
            return;
        }
        let instance = kafka.instance.as_deref();
        let instance = instance.filter(|_| contest.claim == Claim::Instance);
        let group = &kafka.group;
        let others = match contest.claim {
            Claim::Instance => self.consumer.other_committers(kafka, MEMBERS_WITHIN),
            Claim::Group => self.consumer.other_members(group, MEMBERS_WITHIN),
        };
        match others.map(|others| contest.decide(others)) {
            Ok(Decision::Wait) => {}
            Ok(Decision::Return) => {
                tracing::warn!(group, instance, "taking the `instance` back");
                self.returning = true;
                self.fenced = false;
                self.recreate_at = Some(Instant::now());
            }
            Ok(Decision::Stop(first)) => {
                let what = match instance {
                    Some(name) => format!("`instance` {name} of group {group}"),
                    None => format!("group {group} without a state topic"),
                };
                self.displaced = Some(format!(
                    "{what} is in use by {first}, which was there first, so this process stops. Give each process \
                     an `instance` of its own, or set `topic` in [state], with which a group may have any number"
                ));
            }
            Err(error) => {
                contest.reached = false;
                crate::warn_limited!(%error, "the members of the group are not known");
            }
        }
    }

    /// Why this process must stop, if another one was there first.
    pub fn displaced(&self) -> Option<&str> {
        self.displaced.as_deref()
    }

    /// The contest with another process. Who has lost all partitions may share them with nobody,
    /// because a broker that does not answer takes them away too: then the group has to name one.
    fn rivalry(&self) -> Option<&Contest> {
        let lost = self.source.lost_since.is_some();
        let is_known = |c: &&Contest| {
            !lost || c.claim == Claim::Instance || (c.reached && !c.others.is_empty())
        };
        self.contest.as_ref().filter(is_known)
    }

    /// How many other processes are where there may be one.
    pub fn other_members(&self) -> usize {
        self.rivalry().map_or(0, |c| c.others.len().max(1))
    }

    /// Publishes whether it is ready: the group has assigned partitions, or none, to it. Until then
    /// `/ready` has the last error. Returns whether the assignment changed.
    pub fn publish_readiness(&mut self, engines: &mut Topology, published: &Published) -> bool {
        let changed = std::mem::take(&mut self.source.assignment_changed);
        let error = self.source.last_error.take().map(|e| e.to_string());
        if changed {
            self.release_unassigned(engines);
        }
        let lost = self.source.lost_since.is_some();
        let joined = self.consumer.joined() && !lost;
        if joined && (changed || (!self.ready && error.is_none())) {
            self.ready = true;
            published.ready(&part(&self.options));
        } else if let Some(error) = error.as_ref().filter(|_| !self.ready) {
            published.not_ready(&part(&self.options), error);
        }
        self.trouble = error.or(self.trouble.take()).filter(|_| lost);
        changed
    }

    /// Releases partitions that the snapshot has and the group assigned to another member. They
    /// would hold the watermark back.
    fn release_unassigned(&mut self, engines: &mut Topology) {
        let assigned = self.consumer.assignment();
        for origin in engines.positions() {
            let id = origin.partition_id();
            if let Some(partition) = self.source.records.partition(id)
                && !assigned.contains(&partition)
            {
                self.source.release(partition, engines, true);
            }
        }
    }

    /// Gives up all partitions of a consumer that cannot continue.
    fn give_up(&mut self, engines: &mut Topology) {
        let all = self.consumer.assignment();
        self.source.releasing(&all, engines);
        for partition in all {
            self.source.release(partition, engines, true);
            self.source.queue.clear(partition);
        }
        // The next owner finds out for itself.
        self.source.stopped.clear();
        self.source.lose();
        self.source.assignment_changed = true;
    }

    fn recreate(&mut self, engines: &mut Topology) {
        self.give_up(engines);
        match Consumer::new(&self.options.kafka, self.brokers.as_ref()) {
            Ok(consumer) => {
                let old = std::mem::replace(&mut self.consumer, consumer);
                spawn_detached("consumer", move || drop(old));
                self.paused = false;
                self.recreate_at = None;
            }
            Err(error) => {
                tracing::error!(%error, "kafka consumer could not be created");
                self.trouble = Some(error.to_string());
                self.recreate_at = Some(Instant::now() + RECREATE_AFTER);
            }
        }
    }

    /// Commits these positions, up to which records are stored, of its assigned partitions.
    pub fn commit(&mut self, positions: &[Origin]) {
        let assigned = self.consumer.assignment();
        let records = &self.source.records;
        let stored: Vec<(Partition, i64)> = positions
            .iter()
            .filter_map(|origin| Some((records.partition(origin.partition_id())?, origin.offset)))
            .collect();
        self.source.stored.extend(stored.iter().copied());
        let own = stored.into_iter();
        let own = own.filter(|(partition, _)| assigned.contains(partition));
        let own: Vec<(Partition, i64)> = own.collect();
        if own.is_empty() {
            return;
        }
        if let Err(error) = self.consumer.commit(&own) {
            crate::warn_limited!(%error, "offsets not committed; restarts do not need them");
        }
    }

    /// Sends the last dead letters.
    pub fn flush(&self) {
        if let Some(dead_letters) = &self.source.records.dead_letters
            && !dead_letters.flush(FLUSH_WITHIN)
        {
            tracing::error!("some dead letters could not be sent in time");
        }
    }
}

/// Runs work that may never end on its own thread; returns whether the thread was started.
fn spawn_detached(name: &str, work: impl FnOnce() + Send + 'static) -> bool {
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(work).is_ok()
}

/// Closes the members of groups, within a bounded time.
pub fn close(members: impl Send + 'static) {
    let (done, closed) = std::sync::mpsc::channel();
    let started = spawn_detached("leave", move || {
        drop(members);
        let _ = done.send(());
    });
    if started && closed.recv_timeout(LEAVE_WITHIN).is_err() {
        tracing::warn!(
            "leaving the group took too long; it reassigns the partitions after a session timeout"
        );
    }
}
