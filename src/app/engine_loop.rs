//! The engine's thread: poll, tick, publish, snapshot, and end in order.
//!
//! One thread owns what counts and judges, so it needs no lock. The loop itself never sleeps. While
//! there is nothing to read, the polls of the consumers wait, at most [`TICK`] in total; otherwise
//! they do not wait. Ticks, publications and snapshots follow the clock of this machine and happen
//! between polls. What a tick finds was decided by event time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use super::clock;
use super::cluster::topology::Topology;
use super::error::AppError;
use super::events::EventLogs;
use super::ingest::consumer::{self, SourceConsumer};
use super::outputs::alerts::AlertDispatcher;
use super::outputs::audit::AuditLog;
use super::outputs::history::HistoryLog;
use super::outputs::publish;
use super::outputs::snapshots::SnapshotStore;
use super::reload::ReloadRequest;
use super::restore::STATE;
use super::stop::Stop;
use super::timers::Timers;
use crate::collect::Origin;
use crate::judge::{Change, StreamReport};
use crate::registry::Registry;
use crate::store::spill::SpillStore;
use crate::telemetry::Published;
use crate::telemetry::facts::LostAlertWrites;
use crate::telemetry::published::Beat;

mod saving;

/// Least time between two ticks: short compared with any slide. With many streams, ticks are
/// [rarer](super::timers).
const TICK: Duration = Duration::from_millis(100);
/// Least time between two publications of sizes and comparisons, which walk over all state; scrapes
/// come every few seconds.
const SIZES: Duration = Duration::from_secs(1);
/// How long queued dead letters, notifications and audit entries may take at the end. The rest of
/// the notifications is sent after the next start.
const DRAIN_WITHIN: Duration = Duration::from_secs(5);

/// Everything that the thread owns.
pub struct EngineLoop {
    /// What counts and judges here.
    pub topology: Topology,
    /// One per source; none where other processes read the sources.
    pub consumers: Vec<SourceConsumer>,
    /// The logs of posted events, by topic.
    pub logs: EventLogs,
    /// The schema registry, if records need one.
    pub registry: Option<Arc<Registry>>,
    /// Names of the topics by the engine's numbers, followed by those that are no longer read.
    pub topics: Vec<String>,
    /// Writes snapshots.
    pub snapshots: SnapshotStore,
    /// Time between two snapshots.
    pub snapshot_every: Duration,
    /// Where reports and facts are published.
    pub published: Arc<Published>,
    /// Sends notifications; `None` once it has stopped.
    pub alerts: Option<AlertDispatcher>,
    /// Writes changes of alerts to disk.
    pub audit: AuditLog,
    /// Keeps the judgements of windows over time.
    pub history: HistoryLog,
    /// The reports that are published, in the order of the engine.
    pub reports: Vec<Arc<StreamReport>>,
    /// When periodic work was last done.
    pub timers: Timers,
    /// Bytes of journals that were handed over and whose write is not confirmed.
    pub unwritten: usize,
    /// The consumers are paused because the disk is behind.
    pub disk_behind: bool,
    /// The consumers are paused because the start positions of partitions are not stored yet.
    pub start_unsaved: bool,
    /// The state directory was deleted or replaced.
    pub directory_lost: bool,
    /// The parts that were last published as not ready, such as suspended partitions.
    pub suspended: Vec<String>,
    /// Pending predictions that exceed memory.
    pub spill: Arc<SpillStore>,
    /// Receives new configurations, if there is a file to reload.
    pub reloads: Option<Receiver<ReloadRequest>>,
    /// The heartbeat of the thread, once it runs.
    pub beat: Option<Beat>,
}

impl EngineLoop {
    /// Runs until `stop` and then ends in order: when this returns, the last snapshot is on disk
    /// and its offsets are committed. If the store of pending predictions fails, the loop ends at
    /// once and saves nothing: the previous snapshot stays, and the next start reads again from
    /// there.
    pub fn run(mut self, stop: &Stop) -> Result<(), AppError> {
        let beat = self.published.beat("engine");
        self.topology.beat_with(&beat);
        self.beat = Some(beat);
        while !stop.asked() && self.topology.fault().is_none() && self.displaced().is_none() {
            self.step();
            self.beat.iter().for_each(Beat::tick);
        }
        let published = Arc::clone(&self.published);
        let ended = self.end();
        published.end_beat("engine");
        ended
    }

    /// Ends in order, or without saving where the store of pending predictions has failed.
    pub fn end(mut self) -> Result<(), AppError> {
        let mut fault = self.topology.fault().map(ToString::to_string);
        match &fault {
            None => fault = self.finish().err(),
            Some(error) => self.abort(error),
        }
        let displaced = self.displaced().map(str::to_owned);
        let judge = self.topology.take_member();
        consumer::close((std::mem::take(&mut self.consumers), judge));
        self.audit.stop(DRAIN_WITHIN);
        let displaced = displaced.map(AppError::Displaced);
        displaced
            .or(fault.map(AppError::Unavailable))
            .map_or(Ok(()), Err)
    }

    /// Why this process must stop, if another one was first.
    pub fn displaced(&self) -> Option<&str> {
        self.consumers.iter().find_map(SourceConsumer::displaced)
    }

    /// One step: a batch of each consumer, and the periodic work that is due. Returns the number of
    /// records.
    pub fn step(&mut self) -> usize {
        let wait = match self.timers.records {
            0 => TICK / u32::try_from(self.consumers.len()).unwrap_or(1).max(1),
            _ => Duration::ZERO,
        };
        self.timers.records = 0;
        for consumer in &mut self.consumers {
            let unsaved = self.start_unsaved || self.topology.deltas_full();
            consumer.pause_or_resume(self.disk_behind, unsaved);
            self.timers.records += consumer.poll(&mut self.topology, wait);
            self.start_unsaved |= std::mem::take(&mut consumer.source.begun);
            // Each consumer may have waited for brokers.
            self.beat.iter().for_each(Beat::tick);
        }
        if self.start_unsaved {
            self.save_starts();
        }
        self.topology.spill_some();
        self.timers.records += self.topology.follow(wait);
        if self.topology.fault().is_some() {
            return self.timers.records;
        }
        self.topology.advance();
        // If the store of a shard fails here, its results are not shown.
        if self.topology.fault().is_some() {
            return self.timers.records;
        }
        self.publish_readiness();
        self.apply_reloads();
        if let Some(passed) = self.timers.tick.due(TICK) {
            self.tick(passed);
            self.timers.tick.done();
        }
        self.carry_notified();
        if self.timers.sizes.due(SIZES).is_some() {
            self.publish_directory();
            self.publish_sizes();
            self.publish_long_write();
            self.timers.sizes.done();
        }
        if !self.is_writing() && self.timers.save.due(self.snapshot_every).is_some() {
            self.save();
        }
        self.timers.records
    }

    /// Passes on what people were notified of, so that it moves with its streams. It does not wait
    /// for a tick: until it is written, a process that takes over notifies again.
    fn carry_notified(&mut self) {
        if let Some(alerts) = &mut self.alerts
            && alerts.carry(&mut self.topology)
        {
            self.timers.save.bring_forward(self.snapshot_every);
        }
        self.topology.write_notified();
    }

    /// Applies new configurations.
    fn apply_reloads(&mut self) {
        let Some(reloads) = &self.reloads else { return };
        while let Ok(request) = reloads.try_recv() {
            // A process that only counts sends no notifications.
            let alerts = self
                .alerts
                .as_mut()
                .filter(|_| !self.topology.counts_only());
            let result = alerts.map_or(Ok(()), |alerts| {
                alerts.reload(&request.notify, &self.topology)
            });
            if result.is_ok() {
                self.topology.reload(&request.plan);
                publish::alert_rules(&self.published, &request.plan);
                self.snapshot_every = request.snapshot_every;
            }
            request.reply(result);
        }
    }

    /// Does the work of a tick, `passed` after the previous one.
    fn tick(&mut self, passed: Duration) {
        if self.topology.stands_by() {
            self.stop_alerts();
        }
        let changes = self
            .topology
            .tick(self.timers.awake.read(clock::steady_ms()));
        publish::log(&changes);
        self.audit(&changes);
        self.history.changed(&self.published, &changes);
        if let Some(alerts) = &mut self.alerts
            && alerts.dispatch(&changes, &mut self.topology, &self.published)
        {
            self.timers.save.bring_forward(self.snapshot_every);
        }
        let alerts = self.alerts.as_ref();
        let (journal, notifications) = alerts.map_or((0, 0), AlertDispatcher::lost);
        let lost = LostAlertWrites {
            journal,
            notifications,
            records: self.audit.lost(),
        };
        self.published
            .update(|facts| facts.alert_writes_lost = lost);
        self.publish_taps(passed);
        self.publish_suspended();
        self.publish_facts();
        publish::reports(&self.published, &self.topology, &mut self.reports);
        let judged = publish::evaluations(&self.published, &mut self.topology);
        self.history.judged(&self.published, judged);
        let written = self.snapshots.result().or_else(|| self.topology.written());
        if let Some(written) = written {
            self.saved(&written);
        }
        self.pause_while_unwritten();
        self.save_early();
    }

    /// Hands the changes of alerts to the audit log.
    fn audit(&self, changes: &[Change]) {
        if changes.is_empty() {
            return;
        }
        let hash = self.published.facts().config.hash.clone();
        self.audit.write(changes, &hash, || {
            let named = |o: Origin| {
                let topic = self.topics.get(usize::from(o.source)).cloned();
                (topic.unwrap_or_default(), o.partition, o.offset)
            };
            self.topology.positions().into_iter().map(named).collect()
        });
    }

    /// Publishes the tapped pairs since the last tick, while a client listens.
    fn publish_taps(&mut self, passed: Duration) {
        let seconds = passed.as_secs_f64();
        let wanted = self.published.taps.wanted(seconds);
        let listens = !wanted.is_empty();
        let (pairs, passed) = self.topology.tap(wanted);
        if listens {
            publish::pairs(&self.published, &pairs, &passed, seconds);
        }
    }

    /// Publishes counters and positions.
    pub(super) fn publish_facts(&self) {
        let asked = self.registry.as_ref().map(|r| r.counts());
        let asked = asked.unwrap_or_default();
        let (topology, consumers) = (&self.topology, &self.consumers);
        publish::facts(&self.published, topology, consumers, &self.topics, asked);
    }

    fn publish_sizes(&self) {
        let spill_bytes = self.spill.bytes();
        publish::size(&self.published, &self.topology, &self.topics, spill_bytes);
        publish::comparisons(&self.published, &self.topology);
        let history = self.history.facts(&self.published);
        let logs = self.logs.iter().map(|(t, log)| (t.clone(), log.facts()));
        let logs: Vec<_> = logs.collect();
        self.published.update(|facts| {
            facts.history = history;
            facts.event_logs = logs;
        });
    }

    fn publish_readiness(&mut self) {
        let mut changed = self.topology.judges_all();
        for consumer in &mut self.consumers {
            changed |= consumer.publish_readiness(&mut self.topology, &self.published);
        }
        if changed {
            self.publish_suspended();
        }
    }

    /// The part and the reason, if verdicts are stalled.
    fn stalled(&self) -> Option<(String, String)> {
        let watchdog = self.topology.watchdog().filter(|w| w.is_stalled())?;
        let id = watchdog.frontier().holder?;
        let topic = self.topics.get(usize::from(id.source));
        let why = format!(
            "it has stood still for {} s and nothing is judged: it waits for partition {}/{}; see \
             trueline_partition_lag_records, trueline_records_awaiting_schema and \
             trueline_partition_transaction_seconds",
            watchdog.stalled_for_ms() / 1000,
            topic.map_or("?", String::as_str),
            id.partition
        );
        Some((publish::WATERMARK.to_owned(), why))
    }

    /// The logs of posted events that accept no more events, or cannot be read, with the reason.
    fn logs_failed(&self) -> impl Iterator<Item = (String, String)> {
        let logs = self.logs.iter().map(|(topic, log)| (topic, log.facts()));
        logs.filter_map(|(topic, facts)| {
            let why = facts.fault.or(facts.read_fault)?;
            Some((format!("event log {topic}"), why))
        })
    }

    /// Publishes the partitions that are not read because their state is unusable, because the
    /// broker has fewer records than were read, or because a transaction hides their records. Also
    /// publishes what is not read because this process waits for brokers, the group, the registry
    /// or the disk, and the watermark if it is stalled.
    fn publish_suspended(&mut self) {
        let contested = self.contested();
        let state = self.topology.suspended();
        let state = state.map(|(topic, partition, why)| ("state of", topic, partition, why));
        let stopped = self.consumers.iter().flat_map(|c| c.source.stopped());
        let stopped = stopped.map(|(topic, partition, why)| ("partition", topic, partition, why));
        let now: BTreeMap<String, String> = state
            .chain(stopped)
            .map(|(what, topic, n, why)| (format!("{what} {topic}/{n}"), why.to_owned()))
            .chain(self.topology.waits_for())
            .chain(self.consumers.iter().flat_map(|c| c.unread()))
            .chain(contested)
            .chain(self.disk_behind.then(EngineLoop::journals_unwritten))
            .chain(self.logs_failed())
            .chain(self.stalled())
            .collect();
        // After the process is ready again, a scrape must not show the old reasons.
        if self.suspended.iter().any(|part| !now.contains_key(part)) {
            self.publish_facts();
        }
        publish::unready(&self.published, &mut self.suspended, now);
    }

    /// What another process claims too: the `instance`, or a group that may have only one process,
    /// because each process judges what it reads as if it were everything.
    fn contested(&mut self) -> Vec<(String, String)> {
        let alone = matches!(self.topology, Topology::Single(_));
        self.consumers.iter_mut().for_each(|c| c.contend(alone));
        let all = self.consumers.iter().flat_map(SourceConsumer::contested);
        let all: Vec<(String, String)> = all.collect();
        for (part, why) in all
            .iter()
            .filter(|(part, _)| !self.suspended.contains(part))
        {
            tracing::error!(part, why, "two processes where there may be one");
        }
        all
    }

    /// Publishes that the state directory can no longer be used. It does not recover without a
    /// restart.
    fn publish_directory(&mut self) {
        if self.directory_lost {
            return;
        }
        if let Some(why) = self.snapshots.directory_fault() {
            self.directory_lost = true;
            tracing::error!(why, "state directory");
            self.published.not_ready(STATE, &why);
        }
    }

    fn stop_alerts(&mut self) {
        if let Some(alerts) = self.alerts.take() {
            alerts.stop(DRAIN_WITHIN, &mut self.topology);
            let stands_by = self.topology.stands_by();
            self.published.update(|facts| {
                facts.sinks.clear();
                if stands_by {
                    facts.alerts = Arc::default();
                }
            });
        }
    }

    /// Ends in order. An error means that the last snapshot was not written.
    fn finish(&mut self) -> Result<(), String> {
        tracing::info!("stopping: no more records are read");
        self.tick(TICK);
        if let Some(error) = self.topology.fault().map(ToString::to_string) {
            self.abort(&error);
            return Err(error);
        }
        // One deadline for all, so that time is left for the last save.
        let until = Instant::now() + DRAIN_WITHIN;
        for consumer in &self.consumers {
            consumer.flush(until.saturating_duration_since(Instant::now()));
        }
        // So that what is delivered at the end is saved too.
        self.stop_alerts();
        let saved = self.save_and_wait();
        self.history.stop(DRAIN_WITHIN);
        self.publish_facts();
        self.publish_sizes();
        saved.map_err(|why| {
            format!(
                "the last snapshot could not be written, and the next start reads again from the one before: {why}"
            )
        })?;
        if self.topology.is_without_shards() {
            tracing::info!(
                "no last snapshot: this process no longer holds a partition; the next owner continues from its last \
                 checkpoint"
            );
        } else {
            tracing::info!("last snapshot written");
        }
        Ok(())
    }

    /// Ends without saving: the state in memory is no longer trustworthy.
    fn abort(&mut self, error: &str) {
        tracing::error!(%error, "stopping without a snapshot; the last whole one stays valid");
        self.published.not_ready("pending predictions", error);
        self.published.update(|facts| facts.spill_errors += 1);
        self.wait_saved();
        self.stop_alerts();
    }
}

#[cfg(test)]
mod tests;
