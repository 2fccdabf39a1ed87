//! The engine's thread: poll, tick, publish, snapshot, and end in order.
//!
//! One thread owns the engine, so nothing about it is locked. The loop never sleeps by itself: when
//! there is nothing to read, the consumers' polls wait, in all no longer than [`TICK`]; when there is
//! something, they do not wait at all. Ticking, publishing and snapshots go by this machine's clock and
//! happen between polls; what a tick finds has been decided by event time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use super::alarms::Alarms;
use super::engine::Snapshot;
use super::engines::Engines;
use super::fault::Fault;
use super::intake::Intake;
use super::publish;
use super::records::Records;
use super::reload::Letter;
use super::snapshots::{Keeper, Written};
use super::stop::Stop;
use super::{clock, setup::Source};
use crate::collect::Origin;
use crate::judge::Change;
use crate::kafka::{Consumer, Partition};
use crate::registry::Registry;
use crate::store::spill::SpillStore;
use crate::telemetry::Published;

/// Time between two ticks: short against any slide, long against what a tick costs.
const TICK: Duration = Duration::from_millis(100);
/// Time between two publications of sizes and comparisons; scrapes come every few seconds.
const SIZES: Duration = Duration::from_millis(500);
/// Pause before a consumer that could not go on is made anew.
const ANEW: Duration = Duration::from_secs(5);
/// Bytes of join journals that may wait in memory for the disk before no more is read.
const UNWRITTEN_MAX: usize = 256 << 20;
/// How long sinks may take to tell what waits for them; the rest is told after the next start.
const NOTICES: Duration = Duration::from_secs(5);
/// How long leaving the group may take: a client that is closed in the middle of a rebalance was seen to wait for
/// its metadata for good. All is on disk by then, and the group notices by itself, a session later.
const LEAVE: Duration = Duration::from_secs(10);
/// How long the last dead letters may take to leave.
const FLUSH: Duration = Duration::from_secs(5);

/// One consumer and its intake.
pub struct Feed {
    /// What it was made of, to make it again.
    pub source: Source,
    /// The group member.
    pub consumer: Consumer,
    /// The way to the engine.
    pub intake: Intake,
    /// When to make the consumer anew, after a fatal failure.
    anew: Option<Instant>,
    /// The group has taken us in.
    ready: bool,
    /// The consumer is paused.
    paused: bool,
    /// So much waits for schemas that no more is read, until nothing does.
    crowded: bool,
}

impl Feed {
    /// A feed whose consumer has begun to join its group.
    pub fn new(source: Source, consumer: Consumer, intake: Intake) -> Feed {
        Feed {
            source,
            consumer,
            intake,
            anew: None,
            ready: false,
            paused: false,
            crowded: false,
        }
    }

    /// Stops reading while the disk holds us back or too much waits for schemas, and goes on after.
    fn pace(&mut self, held_back: bool) {
        let parked = &self.intake.parked;
        self.crowded = parked.is_full() || (self.crowded && !parked.is_empty());
        let pause = held_back || self.crowded;
        if pause == self.paused || self.anew.is_some() {
            return;
        }
        self.paused = pause;
        let topics = self.intake.topics.join(",");
        let (crowded, paused) = (self.crowded, pause);
        tracing::warn!(topics, held_back, crowded, paused, "consumer");
        let done = if pause {
            self.consumer.pause()
        } else {
            self.consumer.resume()
        };
        if let Err(error) = done {
            tracing::error!(%error, "consumer could not be paused or resumed");
        }
    }

    /// Reads what there is; answers the number of records.
    fn poll(&mut self, engine: &mut Engines, wait: Duration) -> usize {
        self.intake.with(engine).release();
        if let Some(dead) = &self.intake.dead {
            dead.rebootstrap();
        }
        if self.intake.fatal {
            self.intake.fatal = false;
            self.anew = Some(Instant::now() + ANEW);
        }
        match self.anew {
            None => self.consumer.poll(wait, &mut self.intake.with(engine)),
            Some(at) if Instant::now() < at => {
                std::thread::sleep(wait);
                0
            }
            Some(_) => {
                self.remake(engine);
                0
            }
        }
    }

    /// Gives up what the snapshot knows and the group has given to another member: it would hold the
    /// watermark of all others where it was.
    fn let_go(&self, engine: &mut Engines) {
        let assigned = self.consumer.assignment();
        for origin in engine.positions() {
            if let Some(partition) = self.ours(&origin)
                && !assigned.contains(&partition)
            {
                engine.revoke(origin.source, origin.partition, true);
            }
        }
    }

    /// The partition of this feed that has the position, if it is one of its topics.
    fn ours(&self, origin: &Origin) -> Option<Partition> {
        let topic = origin.source.checked_sub(self.intake.base)?;
        (usize::from(topic) < self.intake.topics.len()).then_some(Partition {
            topic,
            partition: origin.partition,
        })
    }

    fn remake(&mut self, engine: &mut Engines) {
        for partition in self.consumer.assignment() {
            engine.revoke(
                self.intake.base + partition.topic,
                partition.partition,
                true,
            );
            self.intake.parked.forget(partition);
        }
        // Whoever has them next says so again.
        self.intake.stopped.clear();
        self.intake.moved = true;
        match Consumer::new(&self.source.kafka) {
            Ok(consumer) => {
                let old = std::mem::replace(&mut self.consumer, consumer);
                aside("consumer", move || drop(old));
                self.paused = false;
                self.anew = None;
            }
            Err(error) => {
                tracing::error!(%error, "kafka consumer could not be made");
                self.anew = Some(Instant::now() + ANEW);
            }
        }
    }

    /// Commits those of the positions that are this feed's.
    fn commit(&self, positions: &[Origin]) {
        let assigned = self.consumer.assignment();
        let ours: Vec<(Partition, i64)> = positions
            .iter()
            .filter_map(|origin| Some((self.ours(origin)?, origin.offset)))
            .filter(|(partition, _)| assigned.contains(partition))
            .collect();
        if ours.is_empty() {
            return;
        }
        if let Err(error) = self.consumer.commit(&ours) {
            crate::warn_limited!(%error, "offsets not committed; restarts do not need them");
        }
    }
}

/// Does what may wait for good on a thread of its own; says whether there is one.
fn aside(name: &str, work: impl FnOnce() + Send + 'static) -> bool {
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(work).is_ok()
}

/// Closes the consumers, for a bounded time.
fn leave(feeds: Vec<Feed>) {
    let (done, closed) = std::sync::mpsc::channel();
    let begun = aside("leave", move || {
        drop(feeds);
        let _ = done.send(());
    });
    if begun && closed.recv_timeout(LEAVE).is_err() {
        tracing::warn!(
            "the group did not let us go in time; it gives the partitions to others after a session"
        );
    }
}

/// Everything the thread owns.
pub struct Work {
    /// The engine.
    pub engine: Engines,
    /// Its feeds, at least one.
    pub feeds: Vec<Feed>,
    /// Where schemas are asked for, if anywhere.
    pub registry: Option<Arc<Registry>>,
    /// Names of the topics by the engine's numbers, and behind them those that are no longer read.
    pub topics: Vec<String>,
    /// Where snapshots go.
    pub keeper: Keeper,
    /// How often they go there.
    pub snapshot_every: Duration,
    /// Where reports and facts go.
    pub published: Arc<Published>,
    /// Who is told of alerts.
    pub alarms: Option<Alarms>,
    /// Where changes of alerts are kept.
    pub records: Records,
    /// When what was done last.
    pub pace: Pace,
    /// Whether the consumers are paused because the disk does not take what they bring.
    pub held_back: bool,
    /// Parts that are not ready since a partition's state cannot be used.
    pub barred: Vec<String>,
    /// Where predictions go that memory has no room for.
    pub spill: Arc<SpillStore>,
    /// New configurations.
    pub letters: Option<Receiver<Letter>>,
}

/// When the things that are done by the clock were last done.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    ticked: Instant,
    sized: Instant,
    kept: Instant,
    /// Records of the last turn.
    records: usize,
}

impl Default for Pace {
    fn default() -> Pace {
        let now = Instant::now();
        Pace {
            ticked: now,
            sized: now,
            kept: now,
            records: 0,
        }
    }
}

impl Work {
    /// Works until told to stop, then ends in order: the last snapshot is on disk and committed when
    /// this returns. Where the store of pending predictions fails it ends at once and keeps nothing: the snapshot
    /// before stands, and the next start reads again from there.
    pub fn until(mut self, stop: &Stop) -> Result<(), Fault> {
        let beat = self.published.beat("engine");
        while !stop.asked() && self.engine.fault().is_none() {
            self.turn();
            beat.tick();
        }
        let fault = self.engine.fault().map(ToString::to_string);
        match &fault {
            None => self.end(),
            Some(error) => self.break_off(error),
        }
        leave(std::mem::take(&mut self.feeds));
        self.records.stop(NOTICES);
        self.published.end_beat("engine");
        fault.map_or(Ok(()), |error| Err(Fault::Unavailable(error)))
    }

    /// One turn: a batch of each feed, and what is due by the clock. Answers the number of records.
    pub fn turn(&mut self) -> usize {
        let wait = match self.pace.records {
            0 => TICK / u32::try_from(self.feeds.len()).unwrap_or(1).max(1),
            _ => Duration::ZERO,
        };
        self.pace.records = 0;
        for feed in &mut self.feeds {
            feed.pace(self.held_back);
            self.pace.records += feed.poll(&mut self.engine, wait);
        }
        self.engine.tend();
        self.pace.records += self.engine.follow(wait);
        if self.engine.fault().is_some() {
            return self.pace.records;
        }
        self.engine.settle();
        self.ready();
        self.read_letters();
        if self.pace.ticked.elapsed() >= TICK {
            self.pace.ticked = Instant::now();
            self.tick();
        }
        if self.pace.sized.elapsed() >= SIZES {
            self.pace.sized = Instant::now();
            publish::size(&self.published, &self.engine, self.spill.bytes());
            publish::comparisons(&self.published, &self.engine);
        }
        let busy = self.keeper.busy() || self.engine.writing();
        if self.pace.kept.elapsed() >= self.snapshot_every && !busy {
            self.pace.kept = Instant::now();
            self.keep();
        }
        self.pace.records
    }

    /// Takes over new configurations.
    fn read_letters(&mut self) {
        let Some(letters) = &self.letters else { return };
        while let Ok(letter) = letters.try_recv() {
            // Who only counts tells nobody.
            let alarms = self.alarms.as_mut().filter(|_| !self.engine.counts_only());
            let renewed = alarms.map_or(Ok(()), |alarms| alarms.renew(&letter.notify));
            if renewed.is_ok() {
                self.engine.live(&letter.plan);
                self.snapshot_every = letter.snapshot_every;
            }
            letter.taken(renewed);
        }
    }

    /// Offers what was tapped since the last tick to who listens, and taps on while somebody does.
    fn tap(&mut self) {
        let seconds = TICK.as_secs_f64();
        let wanted = self.published.taps.wanted(seconds);
        let (pairs, passed) = self.engine.tap(wanted);
        if !pairs.is_empty() || passed > 0 {
            publish::pairs(&self.published, &pairs, passed, seconds);
        }
    }

    fn tick(&mut self) {
        if self.engine.stands_by()
            && let Some(alarms) = self.alarms.take()
        {
            alarms.stop(NOTICES);
        }
        let changes = self.engine.tick(clock::now_ms());
        publish::log(&changes);
        self.record(&changes);
        if let Some(alarms) = &mut self.alarms {
            alarms.tell(&changes, &mut self.engine, &self.published);
        }
        let (journal, notices) = self.alarms.as_ref().map_or((0, 0), Alarms::lost);
        let lost = [journal, notices, self.records.lost()];
        self.published
            .update(|facts| facts.alert_writes_lost = lost);
        self.tap();
        self.tell();
        publish::reports(&self.published, &self.engine);
        publish::evaluations(&self.published, &mut self.engine);
        if let Some(written) = self.keeper.answer().or_else(|| self.engine.written()) {
            self.kept(&written);
        }
    }

    /// Hands over the records of what changed.
    fn record(&self, changes: &[Change]) {
        if changes.is_empty() {
            return;
        }
        let hash = self.published.facts().config.hash.clone();
        self.records.take(changes, &hash, || {
            let named = |o: Origin| {
                let topic = self.topics.get(usize::from(o.source)).cloned();
                (topic.unwrap_or_default(), o.partition, o.offset)
            };
            self.engine.positions().into_iter().map(named).collect()
        });
    }

    fn tell(&self) {
        let feeds: Vec<_> = self
            .feeds
            .iter()
            .map(|f| (&f.intake, &f.consumer))
            .collect();
        let asked = self.registry.as_ref().map(|r| r.counts());
        publish::facts(
            &self.published,
            &self.engine,
            &feeds,
            asked.unwrap_or_default(),
        );
    }

    /// Hands lanes to the depot, or the engine's state to the keeper: what the journals have since the last time, and the
    /// snapshot that builds on it, with the names of the topics that it numbers.
    fn keep(&mut self) {
        if self.engine.fault().is_some() {
            return;
        }
        let engine = match &mut self.engine {
            Engines::Whole(engine) => engine,
            moving @ Engines::Moving(_) => return moving.write(),
            Engines::Judging(fleet) => {
                if let Some(snapshot) = fleet.snapshot() {
                    self.keeper.write(snapshot, Vec::new(), Vec::new());
                }
                return;
            }
        };
        let deltas = engine.take_journals();
        let snapshot = Snapshot {
            topics: self.topics.clone(),
            ..engine.snapshot()
        };
        self.keeper.write(snapshot, engine.positions(), deltas);
    }

    /// Stops reading while journals pile up in memory because the disk does not take them.
    fn hold_back(&mut self, unwritten: usize) {
        let full = unwritten > UNWRITTEN_MAX;
        if full == self.held_back {
            return;
        }
        self.held_back = full;
        tracing::warn!(unwritten, paused = full, "state that is not on disk");
    }

    /// A source is ready once the group has given it partitions, or told it that there are none. Until
    /// then `/ready` says what stands in the way.
    fn ready(&mut self) {
        let mut any = false;
        for feed in &mut self.feeds {
            let moved = std::mem::take(&mut feed.intake.moved);
            any |= moved;
            let trouble = feed.intake.trouble.take();
            if moved || (!feed.ready && trouble.is_none() && feed.consumer.joined()) {
                feed.ready = true;
                if moved {
                    feed.let_go(&mut self.engine);
                }
                self.published.ready(&part(&feed.source));
            } else if let Some(error) = trouble.filter(|_| !feed.ready) {
                self.published
                    .not_ready(&part(&feed.source), &error.to_string());
            }
        }
        if any || self.engine.judges_all() {
            self.show_barred();
        }
    }

    fn kept(&mut self, written: &Written) {
        self.hold_back(written.unwritten);
        publish::snapshot(&self.published, written);
        if let Ok(positions) = &written.result {
            for feed in &self.feeds {
                feed.commit(positions);
            }
        }
    }

    fn wait_kept(&mut self) {
        let written = self.keeper.wait().or_else(|| self.engine.wait_written());
        if let Some(written) = written {
            self.kept(&written);
        }
    }

    /// Shows which partitions are not read because their state cannot be used, or the broker has less of them.
    fn show_barred(&mut self) {
        let barred = self.engine.barred();
        let state = barred.map(|(topic, partition, why)| ("state of", topic, partition, why));
        let stopped = self.feeds.iter().flat_map(|feed| feed.intake.stopped());
        let stopped = stopped.map(|(topic, partition, why)| ("partition", topic, partition, why));
        let now: BTreeMap<String, String> = state
            .chain(stopped)
            .map(|(what, topic, n, why)| (format!("{what} {topic}/{n}"), why.to_owned()))
            .chain(self.engine.lacks())
            .collect();
        for gone in self.barred.iter().filter(|p| !now.contains_key(*p)) {
            self.published.ready(gone);
        }
        for (part, why) in &now {
            self.published.not_ready(part, why);
        }
        self.barred = now.into_keys().collect();
    }

    fn end(&mut self) {
        tracing::info!("stopping: no more records are read");
        self.tick();
        self.wait_kept();
        self.keep();
        self.wait_kept();
        for feed in &self.feeds {
            if let Some(dead) = &feed.intake.dead
                && !dead.flush(FLUSH)
            {
                tracing::error!("some dead letters did not leave in time");
            }
        }
        if let Some(alarms) = self.alarms.take() {
            alarms.stop(NOTICES);
        }
        self.tell();
        publish::size(&self.published, &self.engine, self.spill.bytes());
        publish::comparisons(&self.published, &self.engine);
        tracing::info!("last snapshot taken");
    }

    /// The end when what the engine knows can no longer be trusted: nothing of it is kept or shown.
    fn break_off(&mut self, error: &str) {
        tracing::error!(%error, "stopping without a snapshot; the last whole one stands");
        self.published.not_ready("pending predictions", error);
        self.published.update(|facts| facts.spill_errors += 1);
        self.wait_kept();
        if let Some(alarms) = self.alarms.take() {
            alarms.stop(NOTICES);
        }
    }
}

/// The name under which a source's readiness is shown.
pub fn part(source: &Source) -> String {
    format!("kafka {}", source.kafka.topics.join(","))
}
