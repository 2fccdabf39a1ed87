//! The engines of a process whose partitions may move: one a partition, and a union that judges.
//!
//! A *lane* is one partition of a topic, with the same partition of the topic of outcomes that goes with
//! it, and an engine of its own. What is in the lane depends on the records of the partition alone, to
//! the bit: not on what else the process reads, nor on who read it before. So a lane can be carried to
//! another process, and one that is dropped without a word takes with it exactly what it had contributed.
//!
//! ```text
//!   partition 0 ─► lane ─┐ sealed panes
//!   partition 3 ─► lane ─┼──────────────► union ─► windows, verdicts, alerts
//!   partition 7 ─► lane ─┘
//! ```
//!
//! The union seals at the least line of the lanes that are being read, and is made anew of the lanes'
//! windows when a lane came or went; it then stands at the furthest of their lines and judges on from the
//! next slides. Until then its windows show what was judged last.
//!
//! Each lane's watermark is its own: lateness counts from the newest event of the partition and not of
//! the slowest one. Caps on streams and on what is pending hold for each lane; the memory that pending
//! predictions may take is dealt out to the lanes in equal parts.
//!
//! Where versions are compared, each lane pairs the rows of its partition, and their sums are added when they are asked for.
//!
//! Counters as they are published are of this process: of each lane what it counted since it came. A lane
//! brings and takes along predictions and outcomes that are still open; these are counted as moved.

use super::berth::Berth;
use super::engine::{Engine, Plan, Remembered};
use crate::collect::{Counters, Origin, Pair, PairCounts, PartitionState, SourceCounters};
use crate::judge::{
    Change, CompareOptions, ComparisonReport, Comparisons, Stopwatch, StreamReport,
};
use crate::store::laid::Laid;
use std::collections::BTreeMap;

/// One partition. See the module.
pub struct Lane {
    /// Number of its topic.
    pub source: u16,
    /// Its number in the topic.
    pub partition: i32,
    /// Its state.
    pub engine: Engine,
    /// Names of the topics as the engine numbers them.
    pub topics: Vec<String>,
    /// Where its parcels lie.
    pub berth: Berth,
    /// What it had counted when it came.
    brought: Counters,
    /// And of rows of pairs.
    brought_pairs: Vec<PairCounts>,
}

impl Lane {
    /// A lane that begins here with this engine.
    pub fn new(
        (source, partition): (u16, i32),
        engine: Engine,
        topics: Vec<String>,
        berth: Berth,
    ) -> Lane {
        Lane {
            source,
            partition,
            brought: engine.counters().clone(),
            brought_pairs: engine.pair_counts().into_iter().map(|c| c.1).collect(),
            engine: engine.lane(),
            topics,
            berth,
        }
    }

    /// Keeps what it has laid out for its next parcel, where somebody else judges.
    pub fn log(&mut self) {
        if let Some(log) = &mut self.berth.log {
            log.take(self.engine.take_poured());
        }
    }

    /// What it has laid out since its parcels before, for the next; nothing where this process judges.
    pub fn laid(&mut self) -> Option<Laid> {
        self.log();
        let log = self.berth.log.as_ref();
        log.map(|log| log.laid(&self.engine))
    }

    /// What was laid out before the item `upto` is safe in the topic.
    pub fn is_safe(&mut self, upto: u64) {
        if let Some(log) = &mut self.berth.log {
            log.is_safe(upto);
        }
    }

    /// Where rows of pairs went here, by model that has pairs: its name, the counts, and how many are held.
    fn pair_counts(&self) -> impl Iterator<Item = (String, PairCounts, usize)> {
        let now = self.engine.pair_counts().into_iter();
        let all = now.zip(&self.brought_pairs);
        all.map(|((name, now, held), brought)| (name, now.since(brought), held))
    }
}

/// What moved with partitions while it had no end: records brought here, and taken away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// Brought.
    pub brought: u64,
    /// Taken away.
    pub taken: u64,
}

/// See the module.
pub struct Lanes {
    plan: Plan,
    /// By source the one with whose partitions its own go.
    leads: Vec<u16>,
    lanes: Vec<Lane>,
    /// Index of the lane of the last record.
    last: usize,
    union: Engine,
    /// A lane came or went since the union was made.
    stale: bool,
    /// Verdicts and alerts that came with lanes since.
    memories: Vec<Remembered>,
    changes: Vec<Change>,
    /// By source, what lanes counted here that are gone.
    gone: Vec<SourceCounters>,
    moved: Vec<Moved>,
    /// By name of the model's plan, where rows of pairs went in lanes that are gone.
    gone_pairs: BTreeMap<String, PairCounts>,
    /// What unions counted that are gone.
    before: Counters,
    nanos: Vec<u64>,
    /// Another process judges: what lanes lay out goes into their parcels.
    counts_only: bool,
}

impl Lanes {
    /// No lane; `leads` has for each source the one with whose partitions its own go.
    pub fn new(plan: Plan, leads: Vec<u16>) -> Lanes {
        Lanes {
            union: Engine::union(&plan),
            plan,
            lanes: Vec::new(),
            last: 0,
            stale: false,
            memories: Vec::new(),
            changes: Vec::new(),
            gone: vec![SourceCounters::default(); leads.len()],
            moved: vec![Moved::default(); leads.len()],
            gone_pairs: BTreeMap::new(),
            leads,
            before: Counters::default(),
            nanos: Vec::new(),
            counts_only: false,
        }
    }

    /// Leaves judging to another process.
    pub fn counting(mut self) -> Lanes {
        self.counts_only = true;
        self
    }

    /// Whether another process judges.
    pub fn counts_only(&self) -> bool {
        self.counts_only
    }

    /// The plan of its lanes.
    pub fn plan_of_lane(&self) -> Plan {
        self.plan.of_lane()
    }

    /// How many lanes share the memory that the plan allows pending predictions.
    pub fn share_memory(&mut self, by: usize) {
        for lane in &mut self.lanes {
            lane.engine.share_memory(by);
        }
    }

    /// One step of one lane towards the memory that it has now. See [`Engine::tend`].
    pub fn tend(&mut self) {
        self.lanes.iter_mut().any(|lane| lane.engine.tend());
    }

    /// The source with whose partitions those of `source` go.
    pub fn lead(&self, source: u16) -> u16 {
        self.leads
            .get(usize::from(source))
            .copied()
            .unwrap_or(source)
    }

    /// The lane of a partition of any source.
    #[inline]
    pub fn lane_mut(&mut self, source: u16, partition: i32) -> Option<&mut Lane> {
        let lead = self.lead(source);
        let is = |lane: &Lane| lane.partition == partition && lane.source == lead;
        if !self.lanes.get(self.last).is_some_and(is) {
            self.last = self.lanes.iter().position(is)?;
        }
        self.lanes.get_mut(self.last)
    }

    /// All lanes.
    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// All lanes, to be written.
    pub fn lanes_mut(&mut self) -> &mut [Lane] {
        &mut self.lanes
    }

    /// Takes a lane in, with verdicts and alerts of its streams where they came along.
    pub fn adopt(&mut self, mut lane: Lane, memories: Vec<Remembered>) {
        for (source, counts) in lane.brought.sources() {
            if let Some(moved) = self.moved.get_mut(usize::from(source)) {
                moved.brought += counts.open();
            }
        }
        if self.counts_only {
            lane.berth.keep_log();
            self.lanes.push(lane);
            return;
        }
        self.lanes.push(lane);
        self.memories.extend(memories);
        self.stale = true;
    }

    /// Lets a lane go.
    pub fn release(&mut self, source: u16, partition: i32) -> Option<Lane> {
        self.lane_mut(source, partition)?;
        let lane = self.lanes.remove(self.last);
        self.stale = true;
        for (source, counts) in lane.engine.counters().sources() {
            let index = usize::from(source);
            if let (Some(gone), Some(moved)) = (self.gone.get_mut(index), self.moved.get_mut(index))
            {
                let mut here = counts.since(&lane.brought.source(source));
                (here.pending, here.waiting) = (0, 0);
                gone.add(&here);
                moved.taken += counts.open();
            }
        }
        for (name, counts, _) in lane.pair_counts() {
            self.gone_pairs.entry(name).or_default().add(&counts);
        }
        Some(lane)
    }

    /// Verdicts and alerts of the streams of a lane, to go with it.
    pub fn remembered(&mut self, source: u16, partition: i32) -> Vec<Remembered> {
        self.settle();
        match self.lane_mut(source, partition) {
            Some(_) => self.union.remembered(Some(&self.lanes[self.last].engine)),
            None => Vec::new(),
        }
    }

    /// Brings the union up to what the lanes have sealed.
    pub fn settle(&mut self) {
        if self.counts_only {
            self.lanes.iter_mut().for_each(Lane::log);
            return;
        }
        if self.stale {
            self.make_union();
        } else {
            for lane in &mut self.lanes {
                for poured in lane.engine.take_poured() {
                    self.union.pour(poured);
                }
            }
        }
        self.union.advance(&self.lines());
    }

    /// Up to where each model can be judged: the least line of the lanes that are being read; where all
    /// are read to their ends, the furthest.
    fn lines(&self) -> Vec<i64> {
        let all = || self.lanes.iter().map(|lane| &lane.engine);
        let live: Vec<Vec<i64>> = all().filter(|e| !e.is_idle()).map(Engine::lines).collect();
        match live.is_empty() {
            true => fold(
                all().map(Engine::lines),
                self.plan.models.len(),
                i64::MIN,
                i64::max,
            ),
            false => fold(live.into_iter(), self.plan.models.len(), i64::MAX, i64::min),
        }
    }

    fn make_union(&mut self) {
        self.stale = false;
        let mut memories = self.union.remembered(None);
        memories.append(&mut self.memories);
        for lane in &mut self.lanes {
            // It is in the windows too.
            lane.engine.take_poured();
        }
        let lanes = self.lanes.iter().map(|lane| &lane.engine);
        let union = Engine::union_of(&self.plan, &self.union, lanes, &memories);
        let old = std::mem::replace(&mut self.union, union);
        self.retire(old);
    }

    /// Keeps what a union counted and told.
    fn retire(&mut self, mut union: Engine) {
        self.before.evaluations += union.counters().evaluations;
        self.before.streams_expired += union.counters().streams_expired;
        self.changes.extend(union.take_changes());
        self.nanos.extend(union.take_nanos());
    }

    /// See [`Engine::tick`].
    pub fn tick(&mut self, now_ms: i64) -> Vec<Change> {
        self.settle();
        if self.counts_only {
            self.lanes
                .iter_mut()
                .for_each(|lane| drop(lane.engine.tick(now_ms)));
            return Vec::new();
        }
        let dues = self.lanes.iter().map(|lane| lane.engine.dues_ms());
        let least = dues.reduce(|a, b| {
            let earlier = |(a, b): (Option<i64>, Option<i64>)| a.into_iter().chain(b).min();
            a.into_iter().zip(b).map(earlier).collect()
        });
        let none = || vec![None; self.plan.models.len()];
        self.union.listen(least.unwrap_or_else(none));
        for lane in &mut self.lanes {
            self.union.hear(&lane.engine);
            // Lanes judge nothing.
            lane.engine.tick(now_ms);
        }
        self.changes.extend(self.union.tick(now_ms));
        std::mem::take(&mut self.changes)
    }

    /// The latest report of each stream.
    pub fn reports(&self) -> impl Iterator<Item = &StreamReport> {
        self.union.reports()
    }

    /// What was counted in this process; what is open is what its lanes hold now.
    pub fn counters(&self) -> Counters {
        let mut counters = self.before.clone();
        for (source, gone) in (0..).zip(&self.gone) {
            let ours = counters.source_mut(source);
            ours.add(gone);
            for lane in &self.lanes {
                let now = lane.engine.counters().source(source);
                ours.add(&now.since(&lane.brought.source(source)));
            }
        }
        let union = self.union.counters();
        counters.evaluations += union.evaluations;
        counters.streams_expired += union.streams_expired;
        let dropped = self
            .lanes
            .iter()
            .map(|l| l.engine.counters().streams_dropped);
        counters.streams_dropped += dropped.sum::<u64>();
        counters
    }

    /// What can be said of versions that scored the same ids, over all lanes.
    pub fn comparisons(&self) -> Vec<ComparisonReport> {
        match self.counts_only {
            true => Vec::new(),
            false => compared(&self.plan, self.lanes.iter().map(|lane| &lane.engine)),
        }
    }

    /// Where rows of pairs went in this process, by name of the model's plan, with how many its lanes hold now.
    pub fn pair_counts(&self) -> Vec<(String, PairCounts, usize)> {
        let gone = self.gone_pairs.iter();
        let mut all: BTreeMap<String, (PairCounts, usize)> =
            gone.map(|(name, c)| (name.clone(), (*c, 0))).collect();
        for (name, counts, held) in self.lanes.iter().flat_map(Lane::pair_counts) {
            let ours = all.entry(name).or_default();
            ours.0.add(&counts);
            ours.1 += held;
        }
        let all = all.into_iter();
        all.map(|(name, (counts, held))| (name, counts, held))
            .collect()
    }

    /// What moved of a source.
    pub fn moved(&self, source: u16) -> Moved {
        let moved = self.moved.get(usize::from(source));
        moved.copied().unwrap_or_default()
    }

    /// See [`Engine::live`].
    pub fn live(&mut self, new: &Plan) {
        self.union.live(new);
        let now = self.union.plan();
        self.plan.models.clone_from(&now.models);
        self.plan.caps = now.caps.clone();
        let plan = new.of_lane();
        for lane in &mut self.lanes {
            lane.engine.live(&plan);
        }
    }

    /// See [`Engine::tap`].
    pub fn tap(&mut self, room: usize) -> (Vec<Pair>, u64) {
        let each = room.div_ceil(self.lanes.len().max(1));
        let (mut pairs, mut passed) = (Vec::new(), 0);
        for lane in &mut self.lanes {
            let (theirs, more) = lane.engine.tap(each);
            pairs.extend(theirs);
            passed += more;
        }
        (pairs, passed)
    }

    /// See [`Engine::time_by`].
    pub fn time_by(&mut self, stopwatch: Stopwatch) {
        self.union.time_by(stopwatch);
    }

    /// See [`Engine::take_nanos`].
    pub fn take_nanos(&mut self) -> Vec<u64> {
        let mut all = std::mem::take(&mut self.nanos);
        all.extend(self.union.take_nanos());
        all
    }

    /// How far each partition was read.
    pub fn partitions(&self) -> Vec<PartitionState> {
        let lanes = self.lanes.iter();
        lanes.flat_map(|lane| lane.engine.partitions()).collect()
    }

    /// The next offset of each partition that was read.
    pub fn positions(&self) -> Vec<Origin> {
        let lanes = self.lanes.iter();
        lanes.flat_map(|lane| lane.engine.positions()).collect()
    }

    /// All engines.
    pub fn engines(&self) -> impl Iterator<Item = &Engine> {
        let lanes = self.lanes.iter().map(|lane| &lane.engine);
        lanes.chain([&self.union])
    }

    /// The union, over whose windows verdicts are.
    pub fn union(&self) -> &Engine {
        &self.union
    }
}

/// What can be said of versions that scored the same ids, over all these engines.
pub(super) fn compared<'e>(
    plan: &Plan,
    engines: impl Iterator<Item = &'e Engine> + Clone,
) -> Vec<ComparisonReport> {
    let models = plan.models.iter().enumerate();
    let compared = models.filter_map(|(i, m)| Some((i, m.judge.compare.as_ref()?)));
    let of = |(i, options): (usize, &CompareOptions)| {
        let mut all = Comparisons::default();
        let theirs = engines.clone().filter_map(|e| e.compared_by_model().get(i));
        theirs.for_each(|theirs| all.merge(theirs));
        all.reports(options.alpha).collect::<Vec<_>>()
    };
    compared.flat_map(of).collect()
}

/// By model, what the lines come to.
pub(super) fn fold(
    lines: impl Iterator<Item = Vec<i64>>,
    models: usize,
    first: i64,
    f: impl Fn(i64, i64) -> i64,
) -> Vec<i64> {
    lines.fold(vec![first; models], |all, one| {
        all.into_iter().zip(one).map(|(a, b)| f(a, b)).collect()
    })
}
