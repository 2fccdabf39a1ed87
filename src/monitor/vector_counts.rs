//! Open panes of vector views: the vector part of a shard.
//!
//! For a model with vector views, each event that the collector counts is also counted here as a
//! vector, in panes that seal with the collector's. Predictions that wait for their outcomes are
//! counted when they are mature ([`VectorCounts::mature`]).
//!
//! Caps limit the cells of each pane of a view, and the number of versions with cells. Events that
//! find no cell are counted, and their windows are `undecided(capacity)`. A version beyond the cap
//! gets cells when another version expires.
//!
//! Cost per event: one comparison in a shard without vector views; a look-up by slot for a model
//! without them; else k² additions and a search among the cells, or a hash and a comparison.

use super::activity::Activity;
use super::delta::Delta;
use super::snapshot::{VectorViewState, VersionState};
use super::version::{Version, VersionView};
use super::versions::Versions;
use super::views::{VersionName as Name, vectors};
use crate::collect::{Event, MaturedVector, Origin, rank};
use crate::judge::Plan;
use crate::stats::view::{Checked, Outcome};
use crate::window::{PaneState, VectorEvent};

/// Open panes of all vector views. See the module.
#[derive(Debug, Clone, Default)]
pub struct VectorCounts {
    /// Whether some model has vector views.
    wanted: bool,
    versions: Versions<()>,
    /// Where the versions of the collector's slots are.
    version_slots: Vec<VersionSlot>,
}

/// Where the version of a slot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum VersionSlot {
    #[default]
    Unknown,
    /// Its model has no vector view.
    Nowhere,
    At(usize),
}

impl VectorCounts {
    /// Counts without versions.
    pub fn new(plan: &Plan) -> VectorCounts {
        VectorCounts {
            wanted: plan.models.iter().any(|m| vectors(m).next().is_some()),
            ..VectorCounts::default()
        }
    }

    /// Whether some model has vector views.
    #[inline]
    pub fn wanted(&self) -> bool {
        self.wanted
    }

    /// Takes an event that the collector has counted in the stream of a slot; `at` is where it came
    /// from, and which row of its record it is. Returns how many views had no cell for it.
    #[cold]
    pub fn observe(
        &mut self,
        plan: &Plan,
        slot: usize,
        at: (Origin, u32),
        event: &Event<'_>,
    ) -> u64 {
        let Some(version) = self.version(plan, slot, Name::of_event(event)) else {
            return 0;
        };
        let Some(class) = event.outcome.map(Outcome::class) else {
            return 0;
        };
        let Ok(Checked::Vector { entries, sum }) = Checked::new(event.prediction) else {
            return 0;
        };
        version.last.saw(event.time_ms);
        let of = &plan.models[version.model];
        let rank = if of.samples() {
            rank(of.judge.kernel.seed, at.0, at.1, event)
        } else {
            0
        };
        let seen = VectorEvent {
            entries,
            sum,
            class,
            rank,
            weight: event.weight,
        };
        let views = version.views.iter_mut();
        refused(views.map(|v| v.panes.observe(event.time_ms, seen)))
    }

    /// Notes a prediction that waits for its outcome.
    #[cold]
    pub fn observe_pending(&mut self, plan: &Plan, slot: usize, event: &Event<'_>) {
        if let Some(version) = self.version(plan, slot, Name::of_event(event)) {
            version.last.saw(event.time_ms);
        }
    }

    /// Counts a mature prediction; returns how many views had no cell for it.
    pub fn mature(&mut self, plan: &Plan, r: &MaturedVector<'_>) -> u64 {
        let Some(version) = self.version(plan, r.slot, Name::of_key(r.key)) else {
            return 0;
        };
        version.last.newest_ms = version.last.newest_ms.max(r.time_ms);
        let views = version.views.iter_mut();
        refused(views.map(|v| v.panes.mature(r.time_ms, r.vector, r.class, r.implied)))
    }

    /// Counts an event that came too late for its pane.
    #[cold]
    pub fn miss(&mut self, plan: &Plan, slot: usize, event: &Event<'_>) {
        if let Some(version) = self.version(plan, slot, Name::of_event(event)) {
            version.last.saw(event.time_ms);
            version.views.iter_mut().for_each(|v| v.panes.miss());
        }
    }

    /// Takes out all panes of `model` that begin before `watermark_ms`.
    pub fn take_panes(&mut self, model: usize, watermark_ms: i64, deltas: &mut Vec<Delta>) {
        for version in self.versions.iter_mut().filter(|v| v.model == model) {
            for at in 0..version.views.len() {
                let stream = version.name().stream(version.views[at].view);
                while let Some(pane) = version.views[at].panes.seal(watermark_ms) {
                    deltas.push(Delta::Vector {
                        stream: stream.clone(),
                        newest_ms: version.last.newest_ms,
                        pane: PaneState::from(&pane),
                    });
                }
            }
        }
    }

    /// The version of the stream in a slot, begun if it is new.
    fn version(&mut self, plan: &Plan, slot: usize, name: Name<'_>) -> Option<&mut Version<()>> {
        if slot >= self.version_slots.len() {
            self.version_slots.resize(slot + 1, VersionSlot::Unknown);
        }
        if self.version_slots[slot] == VersionSlot::Unknown {
            let known = self.versions.find(name);
            let at = known.or_else(|| self.versions.begin(plan, name, |_, _, _| ()));
            self.version_slots[slot] = at.map_or(VersionSlot::Nowhere, VersionSlot::At);
        }
        match self.version_slots[slot] {
            VersionSlot::At(index) => self.versions.get_mut(index),
            VersionSlot::Unknown | VersionSlot::Nowhere => None,
        }
    }

    /// Forgets a slot of the collector, which is vacant or another stream's from now on.
    pub fn forget(&mut self, slot: usize) {
        if let Some(at) = self.version_slots.get_mut(slot) {
            *at = VersionSlot::Unknown;
        }
    }

    /// Advances the clock and expires versions without recent events: `expired` decides by model
    /// and newest event time. `waits` says whether predictions of a version, by model and version
    /// name, wait for outcomes. Returns whether one has expired.
    pub fn tick(
        &mut self,
        plan: &Plan,
        now_ms: i64,
        expired: impl Fn(usize, i64) -> bool,
        waits: impl Fn(&str, &str) -> bool,
    ) -> bool {
        let left = self.versions.retain(|v| {
            v.last.tick(now_ms);
            !expired(v.model, v.last.newest_ms) || waits(v.name().model, v.name().version)
        });
        if left {
            self.version_slots.clear();
            self.versions.admit(plan, |(), _| ());
        }
        left
    }

    /// What each version has seen.
    pub fn activity(&self) -> impl Iterator<Item = Activity<Name<'_>>> {
        self.versions.iter().map(|v| Activity {
            of: v.name(),
            last: v.last,
            pending: 0,
            begins: v.last.seen,
        })
    }

    /// Open panes.
    pub fn panes(&self) -> usize {
        let views = self.versions.iter().flat_map(|v| &v.views);
        views.map(|v| v.panes.len()).sum()
    }

    /// The versions, for a snapshot; windows are kept elsewhere.
    pub fn state(&self) -> Vec<VersionState> {
        let view = |v: &VersionView<()>| VectorViewState {
            view: v.view.to_string(),
            open: v.panes.state(),
            ..VectorViewState::default()
        };
        let version = |v: &Version<()>| VersionState {
            views: v.views.iter().map(view).collect(),
            ..v.state()
        };
        self.versions.iter().map(version).collect()
    }

    /// Restores a version of a snapshot whose model is `model` of the plan; `None` if its sums are
    /// of another shape.
    pub fn restore(&mut self, plan: &Plan, model: usize, state: &VersionState) -> Option<()> {
        let mut version = Version::of_state(plan, model, state, |_, _, _| ());
        // A view that is no longer configured is dropped.
        for ours in &mut version.views {
            if let Some(theirs) = state.view(ours.view) {
                ours.panes.restore(theirs.open.clone()).ok()?;
            }
        }
        if !version.views.is_empty() {
            self.versions.push(version);
        }
        Some(())
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let views = self.versions.iter().flat_map(|v| &v.views);
        views.map(|v| v.panes.bytes()).sum::<usize>()
            + self.version_slots.capacity() * size_of::<VersionSlot>()
    }
}

/// How many views had no cell.
fn refused(took: impl Iterator<Item = bool>) -> u64 {
    took.map(|took| u64::from(!took)).sum()
}
