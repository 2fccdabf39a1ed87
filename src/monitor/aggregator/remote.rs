//! The state of a partition in its newest checkpoint.

use crate::collect::{Key, LastSeen, Partitions, VectorPanesState};
use crate::judge::{Comparisons, JudgeState, Plan};
use crate::monitor::activity::Activity;
use crate::monitor::delta_log::DeltaBatch;
use crate::monitor::restore::{Fit, RestoreError};
use crate::monitor::retained::{Contribution, PartitionWindows};
use crate::monitor::shard::model_shape;
use crate::monitor::snapshot::{Snapshot, StreamState, VersionState};
use crate::monitor::views::VersionName;
use std::collections::BTreeMap;

/// What a checkpoint says about a partition.
#[derive(Debug)]
pub(super) struct RemoteState {
    pub(super) sealed_until_ms: Vec<i64>,
    /// Up to where event time has come, uncounted records included.
    pub(super) reached_ms: Vec<i64>,
    pub(super) partitions: Partitions,
    pub(super) streams: Vec<RemoteStream>,
    /// Versions with vector views, and whether an event of theirs came since the previous
    /// checkpoint.
    pub(super) versions: Vec<(VersionState, bool)>,
    /// Its windows, packed: deltas bring all that they gain, so they are unpacked only if deltas
    /// are missing.
    packed: Snapshot,
    pub(super) comparisons: Vec<Comparisons>,
    /// When the oldest waiting prediction is mature, by model.
    pub(super) due_ms: Vec<Option<i64>>,
}

#[derive(Debug)]
pub(super) struct RemoteStream {
    pub(super) key: Key,
    pub(super) newest_ms: i64,
    /// Events that came too late since a pane was sealed.
    pub(super) late: u64,
    /// Whether an event came since the previous checkpoint, as far as this checkpoint shows.
    pub(super) seen: bool,
    pub(super) pending: u64,
}

impl RemoteState {
    pub(super) fn new(
        plan: &Plan,
        mut s: Snapshot,
        deltas: Option<&DeltaBatch>,
    ) -> Result<RemoteState, RestoreError> {
        let fit = Fit::new(plan, &s)?;
        let due = |name: &str| {
            let theirs = s.models.iter().position(|m| m.name == name)?;
            deltas?.due_ms.get(theirs).copied().flatten()
        };
        let pending: BTreeMap<u32, u64> = deltas.iter().flat_map(|d| &d.pending).copied().collect();
        let stream = |state: &StreamState| RemoteStream {
            key: Key::new(&state.name, &state.version, &state.segment),
            newest_ms: state.newest_ms,
            late: state.late,
            seen: true,
            pending: state
                .slot
                .and_then(|slot| pending.get(&slot).copied())
                .unwrap_or(0),
        };
        let fits = s.streams.iter();
        let fits = fits.filter(|state| fit.model_of(plan, state).is_some());
        let mut sealed_until_ms = vec![i64::MIN; plan.models.len()];
        for (model, until_ms) in fit.sealed_until_ms(&s) {
            sealed_until_ms[model] = until_ms;
        }
        let reach_ms = s.partitions.reach_ms();
        let reached = plan
            .models
            .iter()
            .zip(&sealed_until_ms)
            .map(|(m, &sealed)| {
                let watermark_ms = reach_ms.map(|ms| model_shape(m, plan).watermark_at(ms));
                sealed.max(watermark_ms.unwrap_or(i64::MIN))
            });
        Ok(RemoteState {
            reached_ms: reached.collect(),
            sealed_until_ms,
            streams: fits.map(stream).collect(),
            versions: s.vectors.iter().map(|v| (v.names_only(), true)).collect(),
            comparisons: compared(plan, &s, &fit)?,
            due_ms: plan.models.iter().map(|m| due(&m.name)).collect(),
            partitions: std::mem::take(&mut s.partitions),
            packed: windows_only(s),
        })
    }

    pub(super) fn windows(&self, plan: &Plan) -> Result<PartitionWindows, RestoreError> {
        let fit = Fit::new(plan, &self.packed)?;
        PartitionWindows::restore(plan.clone(), &self.packed, &fit)
    }

    pub(super) fn panes(&self) -> usize {
        self.judges().map(JudgeState::panes).sum()
    }

    /// Bytes of its packed windows.
    pub(super) fn bytes(&self) -> usize {
        self.judges().map(JudgeState::pane_bytes).sum()
    }

    fn judges(&self) -> impl Iterator<Item = &JudgeState> {
        let streams = self.packed.streams.iter().flat_map(|s| &s.judges);
        let vectors = self.packed.vectors.iter().flat_map(|v| &v.views);
        streams.chain(vectors.map(|v| &v.judge))
    }

    /// Marks the streams and versions that have something new since the previous checkpoint.
    pub(super) fn compare(&mut self, before: &RemoteState) {
        fn names(key: &Key) -> (&str, &str, &str) {
            (key.model(), key.version(), key.segment())
        }
        let known = before.streams.iter();
        let known: BTreeMap<_, _> = known.map(|s| (names(&s.key), s)).collect();
        for ours in &mut self.streams {
            // A seal leaves fewer late events and fewer predictions.
            let nothing_came = |s: &&RemoteStream| {
                !s.seen
                    && s.newest_ms == ours.newest_ms
                    && ours.late <= s.late
                    && ours.pending <= s.pending
            };
            ours.seen = !known.get(&names(&ours.key)).is_some_and(nothing_came);
        }
        let known = before.versions.iter();
        let known: BTreeMap<_, _> = known.map(|(v, seen)| (v.name(), (v, seen))).collect();
        for (ours, seen) in &mut self.versions {
            let theirs = known.get(&ours.name());
            *seen = !theirs.is_some_and(|(v, seen)| !**seen && v.newest_ms == ours.newest_ms);
        }
    }

    /// Clears the marks once the monitor has observed them.
    pub(super) fn forget_seen(&mut self) {
        self.streams.iter_mut().for_each(|s| s.seen = false);
        self.versions.iter_mut().for_each(|v| v.1 = false);
    }

    pub(super) fn streams(&self) -> impl Iterator<Item = Activity<&Key>> {
        self.streams.iter().map(|s| Activity {
            of: &s.key,
            last: LastSeen {
                seen: s.seen,
                ..LastSeen::before(s.newest_ms)
            },
            pending: s.pending,
            begins: false,
        })
    }

    pub(super) fn versions(&self) -> impl Iterator<Item = Activity<VersionName<'_>>> {
        self.versions.iter().map(|(v, seen)| Activity {
            of: v.name(),
            last: LastSeen {
                seen: *seen,
                ..LastSeen::before(v.newest_ms)
            },
            pending: 0,
            begins: false,
        })
    }

    pub(super) fn contribution<'a>(&'a self, windows: &'a PartitionWindows) -> Contribution<'a> {
        Contribution {
            sealed_until_ms: self.sealed_until_ms.clone(),
            streams: self.streams().collect(),
            versions: self.versions().collect(),
            windows,
        }
    }
}

/// A snapshot reduced to what windows are made of.
fn windows_only(mut s: Snapshot) -> Snapshot {
    for stream in &mut s.streams {
        stream.open = Vec::new();
        stream.late_outcomes = Vec::new();
    }
    for view in s.vectors.iter_mut().flat_map(|v| &mut v.views) {
        view.open = VectorPanesState::default();
    }
    Snapshot {
        models: s.models,
        streams: s.streams,
        vectors: s.vectors,
        ..Snapshot::default()
    }
}

/// The comparisons of versions in a checkpoint, by model of the plan.
fn compared(plan: &Plan, s: &Snapshot, fit: &Fit) -> Result<Vec<Comparisons>, RestoreError> {
    let mut all = vec![Comparisons::default(); plan.models.len()];
    for state in &s.compared {
        let model = fit.model(state.model);
        if let Some(model) = model.filter(|&m| plan.models[m].judge.compare.is_some())
            && !all[model].restore(state.comparisons.clone())
        {
            let name = &plan.models[model].name;
            return Err(RestoreError::Corrupt(format!("comparison of {name}")));
        }
    }
    Ok(all)
}
