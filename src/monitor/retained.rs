//! The windows of one partition, if partitions move between processes.
//!
//! A partition's checkpoint must carry the partition's part of the windows, so that the process
//! that takes it over has complete windows at once. So where partitions move, each shard has
//! retained windows beside it, fed by the shard's own deltas. Retained windows are never judged; a
//! monitor adds up those of all partitions ([`Monitor::absorb`](super::Monitor::absorb)). A single
//! process has none: only its monitor has windows.

use super::activity::{Activity, StreamActivity};
use super::delta::{Delta, PaneWalk, PendingPanes};
use super::restore::{Fit, RestoreError};
use super::snapshot::{Snapshot, StreamState, VersionState};
use super::version::Version;
use super::versions::Versions;
use super::views::{VersionName, scalars};
use crate::collect::{Key, Named, PaneDelta, Slots};
use crate::judge::{JudgeState, Plan};
use crate::window::{EmptySums, PackError, Pane, Windows};

/// The windows of one stream, by view.
#[derive(Debug, Clone)]
struct Retained {
    key: Key,
    model: usize,
    pending: PendingPanes,
    windows: Vec<Windows>,
}

impl Named for Retained {
    fn key(&self) -> &Key {
        &self.key
    }
}

/// The windows of a partition. See the module.
#[derive(Debug, Clone)]
pub struct PartitionWindows {
    plan: Plan,
    streams: Slots<Retained>,
    versions: Versions<Windows>,
    sealed_until_ms: Vec<i64>,
    /// Parts of the snapshot that were dropped, each with the reason.
    dropped: Vec<String>,
}

/// What one partition contributes to a monitor that is rebuilt.
pub struct Contribution<'a> {
    /// Up to where its models are sealed.
    pub sealed_until_ms: Vec<i64>,
    /// Its streams.
    pub streams: Vec<StreamActivity<'a>>,
    /// Its versions with vector views.
    pub versions: Vec<Activity<VersionName<'a>>>,
    /// Its windows.
    pub windows: &'a PartitionWindows,
}

impl PartitionWindows {
    /// Windows without panes.
    pub fn new(plan: Plan) -> PartitionWindows {
        PartitionWindows {
            sealed_until_ms: vec![i64::MIN; plan.models.len()],
            plan,
            streams: Slots::default(),
            versions: Versions::default(),
            dropped: Vec::new(),
        }
    }

    /// Takes a delta of the shard; returns how many vector views had no cell.
    pub fn apply(&mut self, delta: &Delta) -> u64 {
        match delta {
            Delta::Pane { key, pane, .. } => {
                if let Some(slot) = self.slot(key)
                    && let Some(stream) = self.streams.get_mut(slot)
                {
                    let grid = self.plan.models[stream.model].grid;
                    stream.pending.merge(pane, grid);
                }
                0
            }
            Delta::Correction {
                key,
                start_ms,
                views,
            } => {
                let Some(slot) = self.streams.find(&key.names()) else {
                    return 0;
                };
                if let Some(stream) = self.streams.get_mut(slot) {
                    let grid = self.plan.models[stream.model].grid;
                    for (windows, c) in stream.windows.iter_mut().zip(views) {
                        // A pane that cannot be corrected belongs to no window any more.
                        let _ = c.unpack(*start_ms, grid).and_then(|c| windows.correct(&c));
                    }
                }
                0
            }
            Delta::Vector { stream, pane, .. } => {
                let name = VersionName::of_stream(stream);
                if let Some(at) = self.version(name) {
                    let version = &mut self.versions[at];
                    let sealed_until_ms = self.sealed_until_ms[version.model];
                    // A pane of another shape stays out.
                    version.apply(stream.view, pane, sealed_until_ms, Windows::place);
                }
                0
            }
            Delta::Late { key, late } => match self.version(VersionName::of_key(key)) {
                Some(at) => self.versions[at].revise(late, Windows::revise),
                None => 0,
            },
        }
    }

    /// The slot of a stream, begun if it is new.
    fn slot(&mut self, key: &Key) -> Option<usize> {
        if let Some(slot) = self.streams.find(&key.names()) {
            return Some(slot);
        }
        let model = self.plan.serves(key.model())?;
        let blank = self.blank(model, key.clone());
        Some(self.streams.insert(blank))
    }

    fn blank(&self, model: usize, key: Key) -> Retained {
        let plan = &self.plan.models[model];
        Retained {
            key,
            model,
            pending: PendingPanes::default(),
            windows: scalars(plan)
                .map(|_| Windows::new(&plan.ladder, EmptySums::Scores(plan.grid)))
                .collect(),
        }
    }

    fn version(&mut self, name: VersionName<'_>) -> Option<usize> {
        let known = self.versions.find(name);
        known.or_else(|| Some(self.versions.push(windows_of(&self.plan, name)?)))
    }

    /// Moves the windows of a model up to the watermark.
    pub fn advance(&mut self, model: usize, watermark_ms: i64) {
        let from_ms = self.sealed_until_ms[model];
        let pane_ms = self.plan.models[model].ladder.pane_ms;
        for (_, stream) in self.streams.iter_mut().filter(|(_, s)| s.model == model) {
            stream.advance(PaneWalk::new(from_ms, watermark_ms, pane_ms));
        }
        for version in self.versions.iter_mut().filter(|v| v.model == model) {
            let walk = PaneWalk::new(from_ms, watermark_ms, pane_ms);
            version.seal(walk, |windows, after, _| windows.next_end_ms(after), take);
        }
        self.sealed_until_ms[model] = from_ms.max(watermark_ms);
    }

    /// Drops the windows of streams that the shard no longer has.
    pub fn retain(
        &mut self,
        stream: impl Fn(&Key) -> bool,
        version: impl Fn(VersionName<'_>) -> bool,
    ) {
        let gone = self.streams.iter().filter(|(_, s)| !stream(&s.key));
        let gone: Vec<usize> = gone.map(|(slot, _)| slot).collect();
        for slot in gone {
            self.streams.remove(slot);
        }
        self.versions.retain(|v| version(v.name()));
    }

    /// The windows of a stream, by view.
    pub fn of(&self, key: &Key) -> Option<&[Windows]> {
        let slot = self.streams.find(&key.names())?;
        Some(&self.streams.get(slot)?.windows)
    }

    /// Panes of a stream that its windows have not passed.
    pub fn pending(&self, key: &Key) -> Vec<PaneDelta> {
        let slot = self.streams.find(&key.names());
        let stream = slot.and_then(|slot| self.streams.get(slot));
        stream.map_or(Vec::new(), |s| s.pending.state())
    }

    /// The windows of all versions with vector views.
    pub fn versions(&self) -> &[Version<Windows>] {
        &self.versions
    }

    /// Parts of the snapshot that no longer fit the plan, each with the reason.
    pub fn dropped(&self) -> &[String] {
        &self.dropped
    }

    /// By model, the start of the oldest pane in a window.
    pub fn oldest_ms(&self) -> Vec<i64> {
        let mut oldest_ms = vec![i64::MAX; self.plan.models.len()];
        let streams = self.streams.iter();
        let scores = streams.flat_map(|(_, s)| s.windows.iter().map(|w| (s.model, w)));
        let versions = self.versions.iter();
        let vectors = versions.flat_map(|v| v.views.iter().map(|view| (v.model, &view.sink)));
        for (model, windows) in scores.chain(vectors) {
            let oldest = windows.rings().iter().filter_map(|ring| ring.all().next());
            let ms = oldest.map(|pane| pane.start_ms).min();
            oldest_ms[model] = oldest_ms[model].min(ms.unwrap_or(i64::MAX));
        }
        oldest_ms
    }

    /// Panes held, over all windows.
    pub fn panes(&self) -> usize {
        let windows = self.streams.iter().flat_map(|(_, s)| &s.windows);
        let panes = windows.map(Windows::panes);
        let views = self.versions.iter().flat_map(|v| &v.views);
        let vectors = views.map(|v| v.panes.len() + v.sink.panes());
        panes.sum::<usize>() + vectors.sum::<usize>()
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let stream = |s: &Retained| {
            let windows = s.windows.iter().map(Windows::bytes);
            s.key.bytes() + s.pending.bytes() + windows.sum::<usize>()
        };
        let streams = self.streams.iter().map(|(_, s)| stream(s));
        let views = self.versions.iter().flat_map(|v| &v.views);
        let vectors = views.map(|v| v.panes.bytes() + v.sink.bytes());
        self.streams.bytes() + streams.sum::<usize>() + vectors.sum::<usize>()
    }

    /// Adds the windows to the snapshot of the shard.
    pub fn save_to(&self, snapshot: &mut Snapshot) {
        for state in &mut snapshot.streams {
            let key = Key::new(&state.name, &state.version, &state.segment);
            let slot = self.streams.find(&key.names());
            if let Some(stream) = slot.and_then(|slot| self.streams.get(slot)) {
                state.judges = stream.windows.iter().map(judge_state).collect();
                state.pending = stream.pending.state();
            }
        }
        for state in &mut snapshot.vectors {
            let at = self.versions.find(state.name());
            for ours in at.iter().flat_map(|at| &self.versions[*at].views) {
                let theirs = state.view_mut(ours.view);
                theirs.pending = ours.panes.state();
                theirs.judge.rings = ours.sink.state();
            }
        }
    }

    /// The windows of a snapshot.
    pub fn restore(plan: Plan, s: &Snapshot, fit: &Fit) -> Result<PartitionWindows, RestoreError> {
        let mut all = PartitionWindows::new(plan);
        all.dropped.clone_from(&fit.dropped);
        for (model, until_ms) in fit.sealed_until_ms(s) {
            all.sealed_until_ms[model] = until_ms;
        }
        for state in s.streams.iter().filter(|s| !s.judges.is_empty()) {
            if let Some(model) = fit.model_of(&all.plan, state) {
                all.restore_stream(model, state)?;
            }
        }
        for state in &s.vectors {
            if fit.model_of_version(&all.plan, state).is_none() {
                continue;
            }
            match all.restore_version(state) {
                Some(()) => {}
                None => all.dropped.push(state.of_another_shape()),
            }
        }
        Ok(all)
    }

    fn restore_stream(&mut self, model: usize, s: &StreamState) -> Result<(), RestoreError> {
        let corrupt = |_: PackError| RestoreError::Corrupt(format!("sums of {}", s.title()));
        let key = Key::new(&s.name, &s.version, &s.segment);
        let mut stream = self.blank(model, key);
        if s.judges.len() != stream.windows.len() {
            return Err(RestoreError::Corrupt(format!("views of {}", s.title())));
        }
        for (windows, state) in stream.windows.iter_mut().zip(&s.judges) {
            windows.restore(state.rings.clone()).map_err(corrupt)?;
            windows.restore_dispersion(state.dispersion.clone());
        }
        let views = stream.windows.len();
        let grid = self.plan.models[model].grid;
        stream
            .pending
            .restore(s.pending.clone(), views, grid)
            .map_err(corrupt)?;
        self.streams.insert(stream);
        Ok(())
    }

    fn restore_version(&mut self, state: &VersionState) -> Option<()> {
        let Some(mut version) = windows_of(&self.plan, state.name()) else {
            return Some(());
        };
        for ours in &mut version.views {
            let Some(theirs) = state.view(ours.view) else {
                continue;
            };
            ours.panes.restore(theirs.pending.clone()).ok()?;
            if !theirs.judge.rings.is_empty() {
                ours.sink.restore(theirs.judge.rings.clone()).ok()?;
            }
        }
        self.versions.push(version);
        Some(())
    }
}

impl Retained {
    /// Moves the windows over the panes of the walk.
    fn advance(&mut self, mut walk: PaneWalk) {
        while let Some(end_ms) = walk.next_end_ms(self.pending.oldest_ms(), |after, _| {
            (self.windows.iter().filter_map(|w| w.next_end_ms(after))).min()
        }) {
            let delta = self.pending.take(end_ms);
            for (view, windows) in self.windows.iter_mut().enumerate() {
                let pane = delta.as_ref().map(|d| d.pane(view));
                take(windows, pane.as_ref(), end_ms);
            }
        }
    }
}

/// Moves windows over the pane that ends at `end_ms`.
fn take(windows: &mut Windows, pane: Option<&Pane>, end_ms: i64) {
    // Sums at the end of their range stay out, and the judge says so.
    let _ = windows.seal(pane, end_ms);
    windows.drop_unpacked();
}

/// The windows of a version, without panes; `None` if the model has no vector view. The shard
/// limits the number of versions with cells.
fn windows_of(plan: &Plan, name: VersionName<'_>) -> Option<Version<Windows>> {
    let (model, cells_max) = (plan.serves(name.model)?, plan.caps.vector_cells_max);
    let version = Version::new(plan, model, name, cells_max, |of, _, empty| {
        Windows::new(&of.ladder, empty)
    });
    (!version.views.is_empty()).then_some(version)
}

fn judge_state(windows: &Windows) -> JudgeState {
    JudgeState {
        rings: windows.state(),
        dispersion: windows.dispersion().clone(),
        ..JudgeState::default()
    }
}
