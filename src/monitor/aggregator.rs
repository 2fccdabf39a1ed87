//! The judge of all workers: it applies the checkpoints of their partitions and judges.
//!
//! Workers count records. Their checkpoints bring the windows and deltas of each partition here. A
//! [`RemoteShard`] is the state of one partition in its newest checkpoint. The aggregator applies
//! the deltas since the previous checkpoint to the monitor, as if the shard were in this process.
//! The monitor then judges slide after slide, up to the time that every partition it waits for has
//! passed. The caller says which partitions these are ([`Aggregator::set_freshness`]), so the
//! aggregator needs no clock and no broker.
//!
//! ```text
//!   checkpoint of partition 0 ─► remote shard ─┐ deltas since the checkpoint before
//!   checkpoint of partition 1 ─► remote shard ─┼────────────────────────────► monitor ─► verdicts, alerts
//!   checkpoint of partition 2 ─► remote shard ─┘
//! ```
//!
//! Deltas are missing if checkpoints were compacted away before they were read, if a process that
//! judged by itself wrote them, or if the topic is another one, in which epochs begin again. The
//! aggregator then rebuilds the monitor from the windows of all partitions. Sums are exact at once.
//! The slides up to the furthest watermark are not judged; they are [counted](Aggregator::skipped).
//!
//! Always: every delta is applied once, or is in the windows from which the monitor was rebuilt.
//! Judgements depend on the checkpoints and on the partitions that were waited for, not on when
//! checkpoints were read. An aggregator restored from its snapshot continues with the next delta of
//! each partition.

use super::activity::Activity;
use super::delta_log::{DeltaBatch, LogPosition};
use super::liveness::Freshness;
use super::monitor::{Monitor, MonitorView, comparisons};
use super::restore::{Fit, RestoreError};
use super::retained::{Contribution, PartitionWindows};
use super::shards::{earliest, fold, judged_until};
use super::snapshot::{FollowedState, ModelState, Snapshot};
use super::watchdog::{Frontier, Watchdog};
use crate::collect::{Counters, Key, Origin, PartitionId};
use crate::judge::{Change, ComparisonReport, Plan, Runtime, StreamId, WindowJudgement};
use std::collections::BTreeMap;

mod remote;

use remote::RemoteState;

#[derive(Debug, Default)]
struct RemoteShard {
    /// Its state in the newest checkpoint; missing between a restart and the first checkpoint.
    state: Option<RemoteState>,
    /// Its windows, while the monitor is rebuilt.
    windows: Option<PartitionWindows>,
    /// Which of its deltas were applied; missing if nothing of it was read.
    applied: Option<LogPosition>,
    /// Whether the monitor lacks something that its windows have.
    lacks: bool,
    /// Whether verdicts do not wait for it.
    not_awaited: bool,
    /// Whether verdicts do not wait for it though it has records that no checkpoint in use holds.
    left_out: bool,
}

impl RemoteShard {
    /// What it contributes to a monitor that is rebuilt.
    fn part(&self) -> Option<Contribution<'_>> {
        Some(self.state.as_ref()?.contribution(self.windows.as_ref()?))
    }
}

/// See the module.
pub struct Aggregator {
    plan: Plan,
    topics: Vec<String>,
    shards: BTreeMap<PartitionId, RemoteShard>,
    monitor: Monitor,
    /// Up to where each model is to be judged before new watermarks are taken.
    until_ms: Vec<i64>,
    watchdog: Watchdog,
    /// Streams of the snapshot that did not fit.
    streams_dropped: u64,
    skipped: u64,
    rebuilt: u64,
}

impl Aggregator {
    /// An aggregator without checkpoints; `topics` are the names of the topics by number.
    pub fn new(plan: Plan, topics: Vec<String>) -> Aggregator {
        Aggregator {
            monitor: Monitor::new(plan.clone()),
            until_ms: vec![i64::MIN; plan.models.len()],
            plan,
            topics,
            shards: BTreeMap::new(),
            watchdog: Watchdog::default(),
            streams_dropped: 0,
            skipped: 0,
            rebuilt: 0,
        }
    }

    /// An aggregator that resumes from its snapshot.
    pub fn restore(
        plan: Plan,
        topics: Vec<String>,
        mut snapshot: Snapshot,
    ) -> Result<Aggregator, RestoreError> {
        snapshot.carry_over(&plan).map_err(RestoreError::windows)?;
        let followed = snapshot.followed.clone().unwrap_or_default();
        let shard = |(topic, partition, applied): (String, i32, LogPosition)| {
            let source = topics.iter().position(|t| *t == topic)?;
            let shard = RemoteShard {
                applied: Some(applied),
                ..RemoteShard::default()
            };
            let source = u16::try_from(source).ok()?;
            Some((PartitionId { source, partition }, shard))
        };
        let shards = followed.applied.into_iter().filter_map(shard).collect();
        let fit = Fit::new(&plan, &snapshot)?;
        let monitor = Monitor::restore(plan.clone(), &snapshot, &fit)?;
        Ok(Aggregator {
            monitor,
            shards,
            // Counted here, not by the writer of the snapshot.
            streams_dropped: fit.streams_dropped,
            ..Aggregator::new(plan, topics)
        })
    }

    /// The monitor, and which deltas were applied. The reader of the topic adds its offsets.
    /// It marks each partition whose sums the monitor lacks: a judge that continues from it takes
    /// the windows of that partition.
    pub fn snapshot(&self) -> Snapshot {
        let applied = |(at, shard): (&PartitionId, &RemoteShard)| {
            let topic = self.topics.get(usize::from(at.source))?.clone();
            let lacking = shard.lacks.then_some(LogPosition::NOWHERE);
            Some((topic, at.partition, lacking.or(shard.applied)?))
        };
        let mut snapshot = Snapshot {
            followed: Some(FollowedState {
                offsets: Vec::new(),
                applied: self.shards.iter().filter_map(applied).collect(),
            }),
            topics: self.topics.clone(),
            ..Snapshot::default()
        };
        snapshot.counters.streams_dropped = self.streams_dropped;
        self.monitor.view().save_to(&mut snapshot);
        snapshot
    }

    /// Takes the newest checkpoint of a partition, of this epoch, with its deltas. An error says
    /// why it cannot be used.
    pub fn take(
        &mut self,
        at: PartitionId,
        epoch: i64,
        mut snapshot: Snapshot,
        deltas: Option<DeltaBatch>,
    ) -> Result<(), String> {
        self.fits(&snapshot.models)?;
        snapshot.rebind(&self.topics);
        let state = RemoteState::new(&self.plan, snapshot, deltas.as_ref());
        let mut state = state.map_err(|error| error.to_string())?;
        let shard = self.shards.entry(at).or_default();
        if let Some(before) = &shard.state {
            state.compare(before);
        }
        let next = deltas.as_ref().map(|deltas| deltas.next);
        let now = next.map_or(LogPosition::NOWHERE, |next| LogPosition { epoch, next });
        let resumes = deltas.as_ref();
        let resumes = resumes.and_then(|d| d.resumes(epoch, shard.applied));
        (shard.state, shard.applied) = (Some(state), Some(now));
        let (Some(resumes), Some(deltas)) = (resumes, deltas) else {
            shard.lacks = true;
            return Ok(());
        };
        let unread = deltas.deltas.into_iter().filter(|(n, _)| *n >= resumes);
        for (_, delta) in unread {
            let ours = self.plan.serves(delta.model()).is_some();
            if self.monitor.apply(delta).is_none() {
                // The windows of the partition contain this delta too.
                shard.lacks |= ours;
            }
        }
        Ok(())
    }

    /// Call this when the next checkpoints are of another topic than those that were taken: the
    /// sums of each partition are then those of its windows.
    pub fn forget_positions(&mut self) {
        for shard in self.shards.values_mut() {
            (shard.applied, shard.lacks) = (Some(LogPosition::NOWHERE), true);
        }
    }

    /// Whether sums under these shapes can be added to ours.
    fn fits(&self, theirs: &[ModelState]) -> Result<(), String> {
        let ours = self.plan.models.iter().map(|m| ModelState::new(m, 0));
        let missing = |m: &ModelState| {
            let other = theirs.iter().find(|t| t.name == m.name);
            !other.is_some_and(|t| m.fits(t))
        };
        match ours.into_iter().find(missing) {
            None => Ok(()),
            Some(model) => Err(format!(
                "it was counted under another configuration of model {}: its views, cells, windows, lateness or \
                 sampling differ from this process'; give both the same file",
                model.name
            )),
        }
    }

    /// Sets how up to date the checkpoint of a partition is: verdicts wait for partitions that are
    /// behind.
    pub fn set_freshness(&mut self, at: PartitionId, freshness: Freshness) {
        let shard = self.shards.entry(at).or_default();
        shard.not_awaited = freshness != Freshness::Behind;
        shard.left_out = matches!(freshness, Freshness::Stale | Freshness::Missing);
    }

    /// Forgets the partitions that only a snapshot knows, unless they are known to exist: verdicts
    /// would wait for their checkpoints forever.
    pub fn drop_gone(&mut self, exists: impl Fn(&PartitionId) -> bool) {
        self.shards.retain(|at, s| s.state.is_some() || exists(at));
    }

    /// Judges up to the time that all partitions that are waited for have passed.
    pub fn advance(&mut self) {
        while !self.advance_some(usize::MAX) {}
    }

    /// [`Aggregator::advance`] in steps: judges about `most` panes of views in a call. Returns
    /// whether it is done. Until then it takes no new watermarks, and windows do not replace panes
    /// that are to be judged.
    pub fn advance_some(&mut self, most: usize) -> bool {
        let sealed_until_ms = self.monitor.view().sealed_until_ms().iter();
        if sealed_until_ms.zip(&self.until_ms).all(|(is, to)| is >= to) {
            if self.shards.values().any(|s| s.lacks) {
                self.rebuild();
            }
            self.until_ms = self.watermarks_ms();
        }
        self.monitor.advance_to(&self.until_ms, most)
    }

    /// Event time up to which each model is judged, before its lateness; `None` if one is not.
    pub fn judged_ms(&self) -> Option<i64> {
        let sealed_until_ms = self.monitor.view().sealed_until_ms().iter();
        let both = sealed_until_ms.zip(&self.plan.models);
        let judged = both.map(|(ms, model)| {
            let judged_ms = ms.saturating_add(model.ladder.lateness_ms);
            (*ms > i64::MIN).then_some(judged_ms)
        });
        judged.min().flatten()
    }

    /// Time up to which each model can be judged: the least event time reached by a partition that
    /// is waited for, but at most the latest time that any partition has sealed. If none is waited
    /// for, that latest time.
    fn watermarks_ms(&self) -> Vec<i64> {
        let n = self.plan.models.len();
        let reached = |s: &RemoteShard| match &s.state {
            Some(state) => state.reached_ms.clone(),
            // Its progress is unknown.
            None => vec![i64::MIN; n],
        };
        let waited = self.shards.values().filter(|s| !s.not_awaited);
        let sealed = self.states().map(|s| s.sealed_until_ms.clone());
        judged_until(sealed, waited.map(reached), n)
    }

    /// How far event time has come over all partitions, and which partition holds it.
    pub fn frontier(&self) -> Frontier {
        let known = self.shards.values();
        let known = known.filter_map(|s| Some((&s.state.as_ref()?.partitions, !s.not_awaited)));
        let all = Frontier::of(known);
        let unknown = self
            .shards
            .iter()
            .find(|(_, s)| !s.not_awaited && s.state.is_none());
        match unknown {
            None => all,
            Some((at, _)) => Frontier {
                time_ms: None,
                holder: all.time_ms.map(|_| *at),
            },
        }
    }

    fn states(&self) -> impl Iterator<Item = &RemoteState> + Clone {
        self.shards.values().filter_map(|s| s.state.as_ref())
    }

    /// Rebuilds the monitor from the windows of all partitions.
    fn rebuild(&mut self) {
        self.rebuilt += 1;
        let verdicts = self.monitor.view().verdicts(|_, _| true);
        for shard in self.shards.values_mut() {
            let windows = shard.state.as_ref().map(|s| s.windows(&self.plan));
            shard.windows = windows.and_then(Result::ok);
            if shard.windows.is_none() {
                // Its state is unknown: verdicts wait for its next checkpoint.
                (shard.state, shard.applied) = (None, None);
            }
        }
        let parts: Vec<_> = self.shards.values().filter_map(RemoteShard::part).collect();
        let sealed_until_ms = |of: &Monitor| of.view().sealed_until_ms().to_vec();
        let was_ms = sealed_until_ms(&self.monitor);
        self.monitor.rebuild(&parts, verdicts);
        let oldest_ms = parts.iter().map(|part| part.windows.oldest_ms());
        let oldest_ms = fold(oldest_ms, self.plan.models.len(), i64::MAX, i64::min);
        drop(parts);
        for shard in self.shards.values_mut() {
            (shard.windows, shard.lacks) = (None, false);
        }
        for (i, is_ms) in sealed_until_ms(&self.monitor).into_iter().enumerate() {
            // A model that was never judged misses what its windows hold.
            let was_ms = match was_ms[i] {
                i64::MIN => oldest_ms[i].min(is_ms),
                was_ms => was_ms,
            };
            let panes = (is_ms - was_ms) / self.plan.models[i].ladder.pane_ms;
            self.skipped += panes.unsigned_abs();
        }
    }

    /// Advances the clock to `now_ms`: withdraws stale values and expires unused streams. Returns
    /// all changes since the last call.
    pub fn tick(&mut self, now_ms: i64) -> Vec<Change> {
        let models = self.plan.models.len();
        let due_ms = self.states().map(|s| s.due_ms.clone());
        let due_ms = earliest(due_ms, models);
        let expire_after_ms = self.plan.caps.expire_after_ms;
        let sealed_until_ms = self.monitor.view().sealed_until_ms().to_vec();
        let plan = &self.plan;
        // A stream that is past its expiry does not begin again.
        let recent = |a: &Activity<&Key>| {
            plan.serves(a.of.model()).is_some_and(|model| {
                let ladder = &plan.models[model].ladder;
                let past =
                    ladder.is_past(a.last.newest_ms, sealed_until_ms[model], expire_after_ms);
                a.last.newest_ms > i64::MIN && !past
            })
        };
        let recent = &recent;
        let states = self.shards.values().filter_map(|s| s.state.as_ref());
        let shards = states.map(|state| {
            let streams = state.streams().map(move |a| Activity {
                begins: recent(&a),
                ..a
            });
            (streams, state.versions())
        });
        self.monitor.observe(due_ms, shards);
        let states = self.shards.values_mut();
        let states = states.filter_map(|s| s.state.as_mut());
        states.for_each(RemoteState::forget_seen);
        let frontier = self.frontier();
        let stalled_after_ms = self.plan.caps.stalled_after_ms;
        let stalled = self.watchdog.look(now_ms, frontier, stalled_after_ms);
        let whole = self
            .shards
            .values()
            .all(|s| s.state.is_some() && !s.left_out);
        self.monitor.tick(now_ms, stalled, whole)
    }

    /// The frontier, and for how long it has not moved.
    pub fn watchdog(&self) -> &Watchdog {
        &self.watchdog
    }

    /// The monitor, to read.
    pub fn monitor(&self) -> MonitorView<'_> {
        self.monitor.view()
    }

    /// Counts of what was judged here; records are counted where they are read.
    pub fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        counters.streams_dropped = self.streams_dropped;
        self.monitor.view().add_counts_to(&mut counters);
        counters
    }

    /// Base panes of models at whose ends nothing was judged, because deltas were missing.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// How often the monitor was rebuilt because deltas were missing.
    pub fn rebuilt(&self) -> u64 {
        self.rebuilt
    }

    /// Versions that scored the same ids, over all partitions.
    pub fn comparisons(&self) -> Vec<ComparisonReport> {
        comparisons(&self.plan, self.states().map(|s| s.comparisons.as_slice()))
    }

    /// The next offset of each partition in the checkpoints in use.
    pub fn positions(&self) -> Vec<Origin> {
        self.states()
            .flat_map(|s| s.partitions.positions())
            .collect()
    }

    /// Whether a partition's checkpoint says that it was read to its end, or as far as open
    /// transactions let it; `None` if there is none.
    pub fn idle(&self, at: PartitionId) -> Option<bool> {
        let state = self.shards.get(&at)?.state.as_ref()?;
        Some(state.partitions.are_idle())
    }

    /// Whether a partition's checkpoint says that its worker no longer waits for an open
    /// transaction.
    pub fn leaves_out(&self, at: PartitionId) -> bool {
        let state = self.shards.get(&at).and_then(|s| s.state.as_ref());
        state.is_some_and(|s| s.partitions.states().any(|p| p.left_out))
    }

    /// Panes held.
    pub fn panes(&self) -> usize {
        let shards = self.states().map(RemoteState::panes);
        shards.sum::<usize>() + self.monitor.view().panes()
    }

    /// Heap bytes of all state.
    pub fn bytes(&self) -> usize {
        let shards = self.states().map(RemoteState::bytes);
        shards.sum::<usize>() + self.monitor.view().bytes()
    }

    /// Takes over what may change in a plan at run time. See
    /// [`Engine::reload`](super::Engine::reload).
    pub fn reload(&mut self, new: &Plan) {
        self.monitor.reload(new);
        self.plan.reload(new);
    }

    /// See [`Monitor::start_over`].
    pub fn start_over(&mut self, of: impl Fn(&StreamId) -> bool, close: Option<&str>) -> usize {
        self.monitor.start_over(of, close)
    }

    /// See [`Monitor::run_on`].
    pub fn run_on(&mut self, runtime: Runtime) {
        self.monitor.run_on(runtime);
    }

    /// The changes since the last call and the last tick.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.monitor.take_changes()
    }

    /// The judgements since the last call.
    pub fn take_judgements(&mut self) -> Vec<WindowJudgement> {
        self.monitor.take_judgements()
    }
}
