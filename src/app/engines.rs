//! What the records go to: one engine for all partitions of the process, or lanes that may move.
//!
//! Without a topic for state a process has one [`Engine`], whose snapshots lie in its directory. With one
//! it has a lane for each partition ([`super::lanes`]), whose parcels lie in the topic
//! ([`super::depot`]). A process that judges what others count has the union of their parcels ([`super::fleet`]).
//! The rest of the program does not ask which.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::depot::{Depot, ParcelAge, ParcelCounts, Taken};
use super::engine::{Engine, Plan, Remembered};
use super::fleet::Fleet;
use super::lanes::{Lanes, Moved};
use super::snapshots::Written;
use crate::collect::join::SpillError;
use crate::collect::{
    Counters, Disposition, Event, Label, Origin, Pair, PairCounts, PartitionState, Reason,
};
use crate::judge::{AccountReport, Change, ComparisonReport, Stopwatch, StreamId, StreamReport};
use crate::kafka::KafkaError;
use crate::telemetry::facts::Role;

/// How long the last batch of parcels may take at the end.
const LAST: Duration = Duration::from_secs(20);

/// See the module.
pub enum Engines {
    /// One for all.
    Whole(Box<Engine>),
    /// One a partition.
    Moving(Box<Moving>),
    /// The union of what others count.
    Judging(Box<Fleet>),
}

/// Lanes with the place they come from.
pub struct Moving {
    lanes: Lanes,
    depot: Depot,
    /// Names of the topics by number.
    topics: Vec<String>,
    /// Partitions that are assigned and must not be read, with the reason.
    barred: BTreeMap<(u16, i32), String>,
    trouble: Option<KafkaError>,
    /// Why the store of pending predictions failed while a partition was taken over.
    fault: Option<SpillError>,
    /// What was told of alerts that fire, by fingerprint, to go along with their streams.
    carried: BTreeMap<String, String>,
    /// Streams that came, and streams that may have left, since they were last asked for.
    arrivals: Vec<Remembered>,
    departures: Vec<StreamId>,
}

/// How streams moved.
#[derive(Debug, Default)]
pub struct Moves {
    /// Streams that came with what was known of them, in order.
    pub came: Vec<Remembered>,
    /// Streams of which no partition is left here.
    pub left: Vec<StreamId>,
}

impl Moving {
    /// No lane yet.
    pub fn new(lanes: Lanes, depot: Depot, topics: Vec<String>) -> Moving {
        Moving {
            lanes,
            depot,
            topics,
            barred: BTreeMap::new(),
            trouble: None,
            fault: None,
            carried: BTreeMap::new(),
            arrivals: Vec::new(),
            departures: Vec::new(),
        }
    }

    /// Verdicts and alerts of the streams of a lane with what was told of them, to go with it.
    fn remembered(&mut self, source: u16, partition: i32) -> Vec<Remembered> {
        let mut all = self.lanes.remembered(source, partition);
        if !self.carried.is_empty() {
            for memory in &mut all {
                memory.told = self.carried.get(&memory.stream.fingerprint()).cloned();
            }
        }
        all
    }

    fn assign(&mut self, source: u16, partition: i32) -> Option<i64> {
        let at = (self.lanes.lead(source), partition);
        if at.0 == source {
            // What was ours in an assignment that was lost without a word is not.
            self.lanes.release(source, partition);
            self.barred.remove(&at);
            let plan = self.lanes.plan_of_lane();
            let lanes = self.lanes.lanes().len() + 1;
            self.depot.share(lanes);
            self.lanes.share_memory(lanes);
            match self.depot.take_over(at, &self.topics, plan) {
                Ok(Taken::Lane(lane, memories)) => {
                    self.arrivals.extend(memories.iter().cloned());
                    self.lanes.adopt(*lane, memories);
                }
                Ok(Taken::Barred(why)) => {
                    let topic = self.topics.get(usize::from(source));
                    tracing::error!(topic, partition, why, "partition is not read");
                    self.barred.insert(at, why);
                }
                Ok(Taken::Broken(error)) => {
                    let topic = self.topics.get(usize::from(source));
                    tracing::error!(topic, partition, %error, "partition could not be taken over");
                    self.barred.insert(at, error.to_string());
                    self.fault = Some(error);
                }
                Err(error) => {
                    self.barred.insert(at, error.to_string());
                    self.trouble = Some(error);
                }
            }
        }
        let lane = self.lanes.lane_mut(source, partition)?;
        lane.engine.assign(source, partition)
    }

    fn revoke(&mut self, source: u16, partition: i32, lost: bool) {
        if self.lanes.lead(source) != source {
            return;
        }
        self.barred.remove(&(source, partition));
        let remembered = self.remembered(source, partition);
        let streams = remembered.iter().map(|m| m.stream.clone());
        self.departures.extend(streams);
        let lane = self.lanes.release(source, partition);
        self.lanes.share_memory(self.lanes.lanes().len());
        if let Some(mut lane) = lane
            && !lost
        {
            self.depot
                .leave(&mut lane, &remembered, self.lanes.lanes_mut());
        }
    }

    /// Hands over all lanes that have changed.
    fn write(&mut self) {
        let at = |l: &super::lanes::Lane| (l.source, l.partition);
        let all: Vec<(u16, i32)> = self.lanes.lanes().iter().map(at).collect();
        let remembered: BTreeMap<(u16, i32), Vec<Remembered>> = all
            .into_iter()
            .map(|(s, p)| ((s, p), self.remembered(s, p)))
            .collect();
        self.depot.write(self.lanes.lanes_mut(), &remembered);
    }

    fn moves(&mut self) -> Moves {
        let mut left = std::mem::take(&mut self.departures);
        let came = std::mem::take(&mut self.arrivals);
        if !left.is_empty() {
            self.lanes.settle();
            let here: BTreeSet<&StreamId> = self.lanes.reports().map(|r| &r.id).collect();
            left.retain(|id| !here.contains(id));
        }
        Moves { came, left }
    }
}

impl Engines {
    #[inline]
    fn engine(&mut self, source: u16, partition: i32) -> Option<&mut Engine> {
        match self {
            Engines::Whole(engine) => Some(engine),
            Engines::Moving(m) => m.lanes.lane_mut(source, partition).map(|l| &mut l.engine),
            Engines::Judging(_) => None,
        }
    }

    /// Takes a decoded record; one of a partition that is not ours is not counted.
    #[inline]
    pub fn observe(&mut self, origin: Origin, event: &Event<'_>) -> Disposition {
        match self.engine(origin.source, origin.partition) {
            Some(engine) => engine.observe(origin, event),
            None => Disposition::Replayed,
        }
    }

    /// Takes an outcome that came apart from its prediction.
    pub fn label(&mut self, origin: Origin, label: &Label<'_>) -> Disposition {
        match self.engine(origin.source, origin.partition) {
            Some(engine) => engine.label(origin, label),
            None => Disposition::Replayed,
        }
    }

    /// Takes a record that could not be decoded.
    pub fn reject(&mut self, origin: Origin, reason: Reason) -> Disposition {
        match self.engine(origin.source, origin.partition) {
            Some(engine) => engine.reject(origin, reason),
            None => Disposition::Replayed,
        }
    }

    /// See [`Engine::next_row`].
    pub fn next_row(&mut self, origin: Origin) {
        if let Some(engine) = self.engine(origin.source, origin.partition) {
            engine.next_row(origin);
        }
    }

    /// See [`Engine::end_of_partition`].
    pub fn end_of_partition(&mut self, source: u16, partition: i32) {
        if let Some(engine) = self.engine(source, partition) {
            engine.end_of_partition(source, partition);
        }
    }

    /// See [`Engine::rewind`].
    pub fn rewind(&mut self, source: u16, partition: i32, offset: i64) {
        if let Some(engine) = self.engine(source, partition) {
            engine.rewind(source, partition, offset);
        }
    }

    /// A partition is to be read; answers the offset to seek to, where one is known. Where it may move, it
    /// is taken over here.
    pub fn assign(&mut self, source: u16, partition: i32) -> Option<i64> {
        match self {
            Engines::Whole(engine) => engine.assign(source, partition),
            Engines::Moving(m) => m.assign(source, partition),
            Engines::Judging(_) => None,
        }
    }

    /// Whether a partition that is assigned must not be read.
    pub fn bars(&self, source: u16, partition: i32) -> bool {
        match self {
            Engines::Whole(_) | Engines::Judging(_) => false,
            Engines::Moving(m) => m.barred.contains_key(&(m.lanes.lead(source), partition)),
        }
    }

    /// Partitions that are assigned and are not read for good, by topic, each with the reason.
    pub fn barred(&self) -> impl Iterator<Item = (&str, i32, &str)> {
        let barred = match self {
            Engines::Moving(m) => Some(m.barred.iter().map(|((source, partition), why)| {
                let topic = m
                    .topics
                    .get(usize::from(*source))
                    .map_or("", String::as_str);
                (topic, *partition, why.as_str())
            })),
            Engines::Whole(_) | Engines::Judging(_) => None,
        };
        barred.into_iter().flatten()
    }

    /// Why a partition could not be taken over, for now, once.
    pub fn take_trouble(&mut self) -> Option<KafkaError> {
        match self {
            Engines::Whole(_) | Engines::Judging(_) => None,
            Engines::Moving(m) => m.trouble.take(),
        }
    }

    /// A partition is no longer read here. What is known of it goes along, unless the group has given it
    /// away already.
    pub fn revoke(&mut self, source: u16, partition: i32, lost: bool) {
        match self {
            Engines::Whole(engine) => engine.revoke(source, partition),
            Engines::Moving(m) => m.revoke(source, partition, lost),
            Engines::Judging(_) => {}
        }
    }

    /// Moves some of what memory has no more room for, since a lane came, to the store: a step a call, so that nothing
    /// else waits long.
    pub fn tend(&mut self) {
        match self {
            Engines::Whole(engine) => {
                engine.tend();
            }
            Engines::Moving(m) => m.lanes.tend(),
            Engines::Judging(_) => {}
        }
    }

    /// Brings what is judged up to what was read.
    pub fn settle(&mut self) {
        if let Engines::Moving(m) = self {
            m.lanes.settle();
        }
    }

    /// See [`Engine::tick`].
    pub fn tick(&mut self, now_ms: i64) -> Vec<Change> {
        match self {
            Engines::Whole(engine) => engine.tick(now_ms),
            Engines::Moving(m) => m.lanes.tick(now_ms),
            Engines::Judging(fleet) => fleet.tick(now_ms),
        }
    }

    /// Streams that came or left since the last call.
    pub fn moves(&mut self) -> Moves {
        match self {
            Engines::Whole(_) | Engines::Judging(_) => Moves::default(),
            Engines::Moving(m) => m.moves(),
        }
    }

    /// Whether partitions may move.
    pub fn may_move(&self) -> bool {
        matches!(self, Engines::Moving(_))
    }

    /// What was told of alerts that fire, by fingerprint, to go along when their streams move.
    pub fn carry(&mut self, told: BTreeMap<String, String>) {
        if let Engines::Moving(m) = self {
            m.carried = told;
        }
    }

    /// The engine that judges.
    pub fn judging(&self) -> &Engine {
        match self {
            Engines::Whole(engine) => engine,
            Engines::Moving(m) => m.lanes.union(),
            Engines::Judging(fleet) => fleet.union(),
        }
    }

    /// Whether another process judges what is counted here.
    pub fn counts_only(&self) -> bool {
        matches!(self, Engines::Moving(m) if m.lanes.counts_only())
    }

    /// Whether another process judges in place of this one, which was to do so.
    pub fn stands_by(&self) -> bool {
        matches!(self, Engines::Judging(fleet) if fleet.rival().is_some())
    }

    /// Reads what others have counted, where that is judged here; waits no longer than `wait` for it. Answers the
    /// number of records.
    pub fn follow(&mut self, wait: Duration) -> usize {
        match self {
            Engines::Judging(fleet) => fleet.follow(wait),
            Engines::Whole(_) | Engines::Moving(_) => 0,
        }
    }

    /// What keeps verdicts over all partitions from being given, by part, each with the reason.
    pub fn lacks(&self) -> Vec<(String, String)> {
        match self {
            Engines::Judging(fleet) => fleet.lacks(),
            Engines::Whole(_) | Engines::Moving(_) => Vec::new(),
        }
    }

    /// What this process is among others.
    pub fn role(&self) -> Role {
        match self {
            Engines::Judging(fleet) => fleet.role(),
            _ if self.counts_only() => Role::Worker,
            Engines::Whole(_) | Engines::Moving(_) => Role::Alone,
        }
    }

    /// Whether it judges what others count.
    pub fn judges_all(&self) -> bool {
        matches!(self, Engines::Judging(_))
    }

    /// The latest report of each stream.
    pub fn reports(&self) -> impl Iterator<Item = &StreamReport> {
        self.judging().reports()
    }

    /// The accounts of false alarms.
    pub fn ledger(&self) -> Vec<AccountReport> {
        match self.counts_only() || self.stands_by() {
            true => Vec::new(),
            false => self.judging().ledger(),
        }
    }

    /// Versions that scored the same ids.
    pub fn comparisons(&self) -> Vec<ComparisonReport> {
        match self {
            Engines::Whole(engine) => engine.comparisons(),
            Engines::Moving(m) => m.lanes.comparisons(),
            Engines::Judging(fleet) => fleet.panel().comparisons(),
        }
    }

    /// See [`Engine::pair_counts`].
    pub fn pair_counts(&self) -> Vec<(String, PairCounts, usize)> {
        match self {
            Engines::Whole(engine) => engine.pair_counts(),
            Engines::Moving(m) => m.lanes.pair_counts(),
            // Pairs are counted where they are made.
            Engines::Judging(_) => Vec::new(),
        }
    }

    /// Where every record went; in a process whose partitions move, every record that it has read itself.
    pub fn counters(&self) -> Counters {
        match self {
            Engines::Whole(engine) => engine.counters().clone(),
            Engines::Moving(m) => m.lanes.counters(),
            Engines::Judging(fleet) => fleet.panel().counters(),
        }
    }

    /// Records without an end that moved with their partitions.
    pub fn moved(&self, source: u16) -> Moved {
        match self {
            Engines::Whole(_) | Engines::Judging(_) => Moved::default(),
            Engines::Moving(m) => m.lanes.moved(source),
        }
    }

    /// See [`Engine::live`].
    pub fn live(&mut self, new: &Plan) {
        match self {
            Engines::Whole(engine) => engine.live(new),
            Engines::Moving(m) => m.lanes.live(new),
            Engines::Judging(fleet) => fleet.live(new),
        }
    }

    /// See [`Engine::tap`].
    pub fn tap(&mut self, room: usize) -> (Vec<Pair>, u64) {
        match self {
            Engines::Whole(engine) => engine.tap(room),
            Engines::Moving(m) => m.lanes.tap(room),
            Engines::Judging(_) => (Vec::new(), 0),
        }
    }

    /// See [`Engine::time_by`].
    pub fn time_by(&mut self, stopwatch: Stopwatch) {
        match self {
            Engines::Whole(engine) => engine.time_by(stopwatch),
            Engines::Moving(m) => m.lanes.time_by(stopwatch),
            Engines::Judging(fleet) => fleet.panel_mut().time_by(stopwatch),
        }
    }

    /// See [`Engine::take_nanos`].
    pub fn take_nanos(&mut self) -> Vec<u64> {
        match self {
            Engines::Whole(engine) => engine.take_nanos(),
            Engines::Moving(m) => m.lanes.take_nanos(),
            Engines::Judging(fleet) => fleet.panel_mut().take_nanos(),
        }
    }

    /// How far each partition was read.
    pub fn partitions(&self) -> Vec<PartitionState> {
        match self {
            Engines::Whole(engine) => engine.partitions().collect(),
            Engines::Moving(m) => m.lanes.partitions(),
            Engines::Judging(_) => Vec::new(),
        }
    }

    /// See [`Engine::lateness_ms`].
    pub fn lateness_ms(&self) -> i64 {
        self.judging().lateness_ms()
    }

    /// The next offset of each partition that was read.
    pub fn positions(&self) -> Vec<Origin> {
        match self {
            Engines::Whole(engine) => engine.positions(),
            Engines::Moving(m) => m.lanes.positions(),
            Engines::Judging(fleet) => fleet.panel().positions(),
        }
    }

    fn sum(&self, of: impl Fn(&Engine) -> usize) -> usize {
        match self {
            Engines::Whole(engine) => of(engine),
            Engines::Moving(m) => m.lanes.engines().map(of).sum(),
            Engines::Judging(fleet) => fleet.panel().engines().map(of).sum(),
        }
    }

    /// Panes held, those of lanes and of the windows over them alike.
    pub fn panes(&self) -> usize {
        self.sum(Engine::panes)
    }

    /// Heap bytes of all state.
    pub fn bytes(&self) -> usize {
        self.sum(Engine::bytes)
    }

    /// Predictions that are held for their outcomes, or for revisions.
    pub fn held(&self) -> usize {
        self.sum(Engine::held)
    }

    /// Held predictions that are not in memory, and bytes that those take which are.
    pub fn spilled(&self) -> (usize, usize) {
        (self.sum(|e| e.spilled().0), self.sum(|e| e.spilled().1))
    }

    /// See [`Engine::fault`].
    pub fn fault(&self) -> Option<&SpillError> {
        match self {
            Engines::Whole(engine) => engine.fault(),
            Engines::Moving(m) => {
                let lanes = || m.lanes.engines().find_map(Engine::fault);
                m.fault.as_ref().or_else(lanes)
            }
            Engines::Judging(_) => None,
        }
    }

    /// Whether parcels are being written.
    pub fn writing(&self) -> bool {
        match self {
            Engines::Whole(_) | Engines::Judging(_) => false,
            Engines::Moving(m) => m.depot.busy(),
        }
    }

    /// Hands the lanes that have changed to the depot, where there is one.
    pub fn write(&mut self) {
        if let Engines::Moving(m) = self {
            m.write();
        }
    }

    /// What became of the parcels handed over last, once, if it is known.
    pub fn written(&mut self) -> Option<Written> {
        match self {
            Engines::Whole(_) | Engines::Judging(_) => None,
            Engines::Moving(m) => m.depot.answer(m.lanes.lanes_mut()),
        }
    }

    /// Waits for the parcels under way, for the end.
    pub fn wait_written(&mut self) -> Option<Written> {
        match self {
            Engines::Whole(_) | Engines::Judging(_) => None,
            Engines::Moving(m) => m.depot.wait(m.lanes.lanes_mut(), LAST),
        }
    }

    /// What happened to parcels, where there are any.
    pub fn parcels(&self) -> Option<(&ParcelCounts, Vec<ParcelAge<'_>>)> {
        match self {
            Engines::Whole(_) => None,
            Engines::Moving(m) => {
                let ages = m.lanes.lanes().iter().map(|lane| lane.parcel_age());
                Some((m.depot.counts(), ages.collect()))
            }
            Engines::Judging(fleet) => Some(fleet.parcels()),
        }
    }
}
