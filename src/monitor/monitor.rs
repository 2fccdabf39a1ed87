//! The second stage: it judges the sums that the deltas of all shards bring.
//!
//! A monitor holds the windows, judges, detectors and alerts of all streams. It reads no record.
//! Shards hand it [`Delta`]s; sealed panes wait as pending sums until [`Monitor::advance`] says
//! that every shard has sealed them, and are then judged, stream by stream and pane by pane.
//! Roll-ups are made here, of the sealed panes of their segments.
//!
//! ```text
//!   shard ─► deltas ─┐                       ┌─► windows ─► verdicts, alerts, detectors
//!   shard ─► deltas ─┼─► pending ─► advance ─┤
//!   shard ─► deltas ─┘                       └─► roll-ups ─► windows ─► …
//! ```
//!
//! Sums are integers, so the windows over any number of shards are, to the bit, those of one shard
//! that had read all partitions. A shard may be behind, for example one that has just come from
//! another process. Its panes are merged into the panes that the windows already hold
//! ([`crate::window::late_merge`]).
//!
//! Always: every delta was applied once, or is in the windows that [`Monitor::absorb`] added.
//! Everything in a monitor except verdicts, alerts and detectors is also in the windows of the
//! partitions. So where partitions move, the monitor is rebuilt from these windows whenever one
//! comes or goes ([`Monitor::rebuild`]).

use super::activity::{Activity, StreamActivity};
use super::delta::{Delta, PaneWalk, PendingPanes};
use super::shard::{DeltaSink, Shard, complete};
use super::vectors::Vectors;
use super::views::{VersionName, scalars};
use crate::collect::{Key, LastSeen, Named, Names, PaneDelta, ROLL_UP, SegmentKind, Slots};
use crate::judge::{Change, Judge, Ledger, ModelPlan, Plan, Runtime, Stopwatch, WindowJudgement};
use crate::stats::sequential::Odds;
use crate::window::{Correction, PackError, RUNNING_BYTES_MAX};
use std::iter::once;
use std::sync::Arc;

mod expiry;
mod judges;
mod persist;
mod rebuild;
mod settings;
mod steps;
mod together;
mod view;

use judges::{judges_for, odds};
pub use together::comparisons;
pub use view::MonitorView;

/// What a monitor has counted since it began.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    evaluations: u64,
    streams_expired: u64,
}

/// A stream: the panes that wait for its shards, and a judge for each of its views.
#[derive(Debug)]
struct Stream {
    model: usize,
    key: Key,
    kind: SegmentKind,
    last: LastSeen,
    /// Predictions that wait for outcomes, over all shards.
    waiting: u64,
    /// For a roll-up, the number of streams that it counts; known only during a tick.
    segments: u64,
    /// Sealed panes that not all shards have passed.
    pending: PendingPanes,
    judges: Vec<Judge>,
}

/// What sealing a stream yields.
#[derive(Debug, Default)]
struct Sealed {
    /// The panes, in order of time, if the stream has a roll-up.
    panes: Vec<PaneDelta>,
    /// What changed, in order of time.
    changes: Vec<Change>,
}

/// See the module.
#[derive(Debug)]
pub struct Monitor {
    plan: Plan,
    streams: Slots<Stream>,
    /// Up to where the panes of each model are sealed and judged.
    sealed_until_ms: Vec<i64>,
    /// Vector views of versions.
    vectors: Vectors,
    changes: Vec<Change>,
    /// Judgements from before it was rebuilt.
    judgements: Vec<WindowJudgement>,
    /// What the detectors may stake.
    ledger: Ledger,
    /// Bets of the detectors, by model.
    odds: Vec<Option<Arc<Odds>>>,
    runtime: Runtime,
    /// When the oldest predictions of any shard are mature, by model.
    due_ms: Vec<Option<i64>>,
    /// Models that were sealed since the last call of [`Monitor::compare_streams`].
    uncompared: Vec<bool>,
    /// Whether something since that call may change its result.
    moved: bool,
    counts: Counts,
    /// Parts of the snapshot that were dropped, each with the reason.
    dropped: Vec<String>,
}

impl Monitor {
    /// A monitor that has judged nothing.
    pub fn new(mut plan: Plan) -> Monitor {
        complete(&mut plan);
        let models = plan.models.len();
        Monitor {
            ledger: Ledger::new(&plan.models),
            odds: plan.models.iter().map(odds).collect(),
            plan,
            streams: Slots::default(),
            sealed_until_ms: vec![i64::MIN; models],
            vectors: Vectors::default(),
            changes: Vec::new(),
            judgements: Vec::new(),
            runtime: Runtime::default(),
            due_ms: vec![None; models],
            uncompared: vec![false; models],
            moved: true,
            counts: Counts::default(),
            dropped: Vec::new(),
        }
    }

    /// Takes the activity of the streams of all shards, in one call; `due_ms` is, for each model,
    /// the time at which the oldest prediction of any shard is mature.
    pub fn observe<'a>(
        &mut self,
        due_ms: Vec<Option<i64>>,
        shards: impl Iterator<
            Item = (
                impl Iterator<Item = StreamActivity<'a>>,
                impl Iterator<Item = Activity<VersionName<'a>>>,
            ),
        >,
    ) {
        self.due_ms = due_ms;
        self.streams.iter_mut().for_each(|(_, s)| s.waiting = 0);
        for (streams, versions) in shards {
            streams.for_each(|a| self.observe_stream(&a));
            versions.for_each(|a| self.vectors.observe(&self.plan, &a));
        }
    }

    fn observe_stream(&mut self, a: &StreamActivity<'_>) {
        let slot = match self.streams.find(&a.of.names()) {
            None if a.begins => self.find_or_begin(a.of),
            known => known,
        };
        if let Some(ours) = slot.and_then(|slot| self.streams.get_mut(slot)) {
            ours.last.merge(a.last);
            ours.waiting += a.pending;
        }
    }

    /// Applies a delta. Returns the number of vector views without a free cell, or `None` if the
    /// delta does not fit the plan.
    pub fn apply(&mut self, delta: Delta) -> Option<u64> {
        match delta {
            Delta::Pane {
                key,
                newest_ms,
                pane,
            } => self.apply_pane(&key, newest_ms, &pane).map(|()| 0),
            Delta::Correction {
                key,
                start_ms,
                views,
            } => {
                let grid = self.plan.serving(key.model())?.grid;
                let unpack = views.iter().map(|c| c.unpack(start_ms, grid));
                let corrections: Result<Vec<Correction>, PackError> = unpack.collect();
                self.apply_corrections(&key, start_ms, &corrections.ok()?);
                Some(0)
            }
            Delta::Vector {
                stream,
                newest_ms,
                pane,
            } => {
                let sealed_until_ms = &self.sealed_until_ms;
                let vectors = &mut self.vectors;
                let fits = vectors.apply(&self.plan, &stream, newest_ms, &pane, sealed_until_ms);
                fits.map(|()| 0)
            }
            Delta::Late { key, late } => {
                let name = VersionName::of_key(&key);
                Some(self.vectors.revise(&self.plan, name, &late))
            }
        }
    }

    fn apply_pane(&mut self, key: &Key, newest_ms: i64, pane: &PaneDelta) -> Option<()> {
        let slot = self.find_or_begin(key)?;
        let stream = self.streams.get_mut(slot)?;
        let model = stream.model;
        if pane.end_ms - pane.start_ms != self.plan.models[model].ladder.pane_ms {
            return None;
        }
        stream.last.newest_ms = stream.last.newest_ms.max(newest_ms);
        if pane.start_ms >= self.sealed_until_ms[model] {
            stream.pending.merge(pane, self.plan.models[model].grid);
        } else {
            self.place(slot, pane);
        }
        Some(())
    }

    /// Merges a pane that the watermark has already passed into the panes that hold its time.
    fn place(&mut self, slot: usize, pane: &PaneDelta) {
        for slot in self.with_rollup(slot) {
            self.make_judges(slot);
            if let Some(stream) = self.streams.get_mut(slot) {
                let sealed_until_ms = self.sealed_until_ms[stream.model];
                for (view, judge) in stream.judges.iter_mut().enumerate() {
                    // Sums that do not fit stay out, like a pane that no window holds.
                    let _ = judge.place(&pane.pane(view), sealed_until_ms);
                }
            }
        }
    }

    fn apply_corrections(&mut self, key: &Key, start_ms: i64, corrections: &[Correction]) {
        let Some(slot) = self.streams.find(&key.names()) else {
            return;
        };
        let Some(stream) = self.streams.get_mut(slot) else {
            return;
        };
        let model = stream.model;
        if start_ms >= self.sealed_until_ms[model] {
            let grid = self.plan.models[model].grid;
            stream.pending.correct(corrections, grid);
            return;
        }
        for slot in self.with_rollup(slot) {
            let judges = self.streams.get_mut(slot).map(|s| s.judges.iter_mut());
            for (judge, correction) in judges.into_iter().flatten().zip(corrections) {
                // A pane that cannot be corrected belongs to no window any more.
                let _ = judge.correct(correction);
            }
        }
    }

    /// Seals and judges the panes of a model up to the watermark, which all shards have passed.
    fn advance(&mut self, model: usize, watermark_ms: i64) {
        let from_ms = self.sealed_until_ms[model];
        let views = scalars(&self.plan.models[model]).count();
        let running_bytes = RUNNING_BYTES_MAX / (self.streams.len() * views).max(1);
        // Roll-ups last: they seal what the others sealed.
        for rollups in [false, true] {
            let sealed = self.each_stream(model, rollups, |stream, plan| {
                stream.seal(plan, from_ms, watermark_ms, running_bytes)
            });
            for (slot, mut sealed) in sealed {
                self.changes.append(&mut sealed.changes);
                self.roll_up(slot, &sealed.panes);
            }
        }
        let changes = &mut self.changes;
        self.vectors
            .seal(&self.plan, model, from_ms, watermark_ms, changes);
        self.sealed_until_ms[model] = from_ms.max(watermark_ms);
        (self.uncompared[model], self.moved) = (true, true);
    }

    /// Runs `f` on each stream of a model, or on each roll-up, in parallel; the results keep the
    /// order of slots.
    fn each_stream<R: Send>(
        &mut self,
        model: usize,
        rollups: bool,
        f: impl Fn(&mut Stream, &ModelPlan) -> R + Send + Sync,
    ) -> Vec<(usize, R)> {
        let (plan, odds) = (&self.plan.models[model], self.odds[model].as_ref());
        let stopwatch = self.runtime.stopwatch;
        let mine = self.streams.iter_mut();
        let mine =
            mine.filter(|(_, s)| s.model == model && (s.kind == SegmentKind::RollUp) == rollups);
        self.runtime.map(mine.collect(), |(slot, stream)| {
            stream.make_judges(plan, odds, stopwatch);
            (slot, f(stream, plan))
        })
    }

    /// Adds panes that a stream sealed to its roll-up.
    fn roll_up(&mut self, slot: usize, panes: &[PaneDelta]) {
        if panes.is_empty() {
            return;
        }
        let newest_ms = self.streams.get(slot).map(|s| s.last.newest_ms);
        if let Some((newest_ms, rollup)) = newest_ms.zip(self.rollup_of(slot))
            && let Some(rollup) = self.streams.get_mut(rollup)
        {
            rollup.last.newest_ms = rollup.last.newest_ms.max(newest_ms);
            let grid = self.plan.models[rollup.model].grid;
            panes.iter().for_each(|p| rollup.pending.merge(p, grid));
        }
    }

    /// Judges every window as it stands when the input has ended at the watermark.
    pub fn finish(&mut self, model: usize, watermark_ms: i64) {
        for rollups in [false, true] {
            let finished = self.each_stream(model, rollups, |stream, plan| {
                let mut changes = Vec::new();
                for judge in &mut stream.judges {
                    judge.finish(watermark_ms, &plan.judge, &mut changes);
                }
                changes
            });
            let changes = finished.into_iter().flat_map(|(_, changes)| changes);
            self.changes.extend(changes);
        }
        self.vectors
            .finish(&self.plan, model, watermark_ms, &mut self.changes);
        (self.uncompared[model], self.moved) = (true, true);
    }

    /// The slot of a stream. A new stream ignores the caps: a shard has already admitted its
    /// events.
    fn find_or_begin(&mut self, key: &Key) -> Option<usize> {
        if let Some(slot) = self.streams.find(&key.names()) {
            return Some(slot);
        }
        let model = self.plan.serves(key.model())?;
        let slot = self.streams.insert(Stream::new(model, key.clone()));
        self.make_rollup(model, key);
        Some(slot)
    }

    /// Begins the roll-up over a stream, if it should have one and has none.
    fn make_rollup(&mut self, model: usize, key: &Key) {
        let wanted = self.plan.models[model].segmenting.rollup;
        let rollup = Key::new(key.model(), key.version(), ROLL_UP);
        if wanted
            && SegmentKind::of(key.segment()).is_rolled_up()
            && self.streams.find(&rollup.names()).is_none()
        {
            self.streams.insert(Stream::new(model, rollup));
        }
    }

    /// The slot of the roll-up that counts a stream's events.
    fn rollup_of(&self, slot: usize) -> Option<usize> {
        let stream = self.streams.get(slot)?;
        if !self.plan.models[stream.model].segmenting.rollup || !stream.kind.is_rolled_up() {
            return None;
        }
        let (model, version) = (stream.key.model(), stream.key.version());
        self.streams.find(&Names::new(model, version, ROLL_UP))
    }

    fn with_rollup(&self, slot: usize) -> impl Iterator<Item = usize> + use<> {
        [Some(slot), self.rollup_of(slot)].into_iter().flatten()
    }

    /// Makes the judges of a stream, on first use.
    fn make_judges(&mut self, slot: usize) {
        if let Some(stream) = self.streams.get_mut(slot) {
            let model = stream.model;
            let (plan, odds) = (&self.plan.models[model], self.odds[model].as_ref());
            let before = stream.judges.len();
            stream.make_judges(plan, odds, self.runtime.stopwatch);
            self.moved |= stream.judges.len() > before;
        }
    }

    fn judges(&self) -> impl Iterator<Item = &Judge> {
        self.streams.iter().flat_map(|(_, s)| &s.judges)
    }

    fn judges_mut(&mut self) -> impl Iterator<Item = &mut Judge> {
        self.streams.iter_mut().flat_map(|(_, s)| &mut s.judges)
    }
}

impl DeltaSink for Monitor {
    fn begin(&mut self, shard: &Shard) {
        let shard = shard.view();
        let activity = (shard.activity(), shard.vector_activity());
        self.observe(shard.due_ms(), once(activity));
    }

    fn take(&mut self, delta: Delta) -> u64 {
        // What does not fit the plan was never counted.
        self.apply(delta).unwrap_or(0)
    }

    fn advance(&mut self, model: usize, until_ms: i64) {
        Monitor::advance(self, model, until_ms);
    }

    fn end(&mut self) {
        self.compare_streams();
    }
}

impl Named for Stream {
    fn key(&self) -> &Key {
        &self.key
    }
}

impl Stream {
    fn new(model: usize, key: Key) -> Stream {
        Stream {
            model,
            kind: SegmentKind::of(key.segment()),
            key,
            last: LastSeen::before(i64::MIN),
            waiting: 0,
            segments: 0,
            pending: PendingPanes::default(),
            judges: Vec::new(),
        }
    }

    /// Makes the judges on first use, and tells them the newest event time.
    fn make_judges(
        &mut self,
        plan: &ModelPlan,
        odds: Option<&Arc<Odds>>,
        stopwatch: Option<Stopwatch>,
    ) {
        if self.judges.is_empty() {
            self.judges = judges_for(plan, odds, &self.key);
            self.judges.iter_mut().for_each(|j| j.time_by(stopwatch));
        }
        self.judges
            .iter_mut()
            .for_each(|j| j.set_last_event_ms(self.last.newest_ms));
    }

    /// Seals and judges the panes from `from_ms` to the watermark. Each judge's windows may
    /// keep `running_bytes` of sums.
    fn seal(
        &mut self,
        plan: &ModelPlan,
        from_ms: i64,
        watermark_ms: i64,
        running_bytes: usize,
    ) -> Sealed {
        let rolls_up = plan.segmenting.rollup && self.kind.is_rolled_up();
        let mut sealed = Sealed::default();
        self.judges
            .iter_mut()
            .for_each(|j| j.set_running_bytes_max(running_bytes));
        let mut walk = PaneWalk::new(from_ms, watermark_ms, plan.ladder.pane_ms);
        while let Some(end_ms) = walk.next_end_ms(self.pending.oldest_ms(), |after, until| {
            let judges = self.judges.iter();
            (judges.filter_map(|j| j.next_end_ms(after, until, &plan.judge))).min()
        }) {
            let mut pane = self.pending.take(end_ms);
            if let Some(pane) = &mut pane {
                // The judge reports a pane that does not unpack.
                let _ = pane.unpack_beside(plan.grid);
            }
            for (view, judge) in self.judges.iter_mut().enumerate() {
                let pane = pane.as_ref().map(|d| d.pane(view));
                judge.seal(pane.as_ref(), end_ms, &plan.judge, &mut sealed.changes);
            }
            if let Some(mut pane) = pane.filter(|_| rolls_up) {
                pane.pack();
                sealed.panes.push(pane);
            }
        }
        sealed
    }
}

#[cfg(test)]
mod tests;
