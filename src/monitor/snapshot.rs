//! The snapshot: sums, judgements and offsets at one moment.
//!
//! Sums and offsets are one value, written as one file, so a restart that seeks to the offsets
//! continues exactly where the sums stand: nothing is lost, nothing counts twice. Sums travel
//! packed, as the windows keep them. What can be computed from the panes (evaluations, totals) is
//! not stored.
//!
//! A snapshot has two parts. The shard saves positions, counters, open panes and joins. The holder
//! of the windows adds the windows: a process's monitor, with verdicts and alerts, or the windows
//! of one partition, without them. A process that judges what others count has the monitor's part
//! alone.
//!
//! Each model carries its *shape*: the windows, cells and views under which its sums were made. If
//! the shape is no longer that of the configuration, the streams of the model are dropped and
//! counted, rather than mixed with sums of another grid. If only the windows are others,
//! [`Snapshot::carry_over`] keeps the sums of scores as far as the old windows hold them.
//!
//! Topics are numbered in the order of the configuration. The snapshot names them, and
//! [`Snapshot::rebind`] gives them the numbers of another configuration, so that a topic that was
//! added, removed or moved does not lend its offsets to another one.

use super::delta_log::LogPosition;
use super::views::{VersionName, scalars};
use crate::alert::Alert;
use crate::collect::join::JoinState;
use crate::collect::{Counters, Key, PairingState, PaneDelta, Partitions, VectorPanesState};
use crate::judge::{
    ComparisonState, DetectorState, JudgeState, LedgerState, ModelPlan, StreamId, WindowVerdict,
};
use crate::stats::axis::{Axis, Grid};
use crate::stats::stored::{checked, checked_or_min};
use crate::stats::view::View;
use crate::window::{Ladder, LateOutcomes, Packed};
use serde::{Deserialize, Serialize};

/// Everything that is needed to continue as if nothing had stopped.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// Names of the topics by number. If nobody named them, this is empty and the numbers hold.
    pub topics: Vec<String>,
    /// Offsets and event time of each partition.
    pub partitions: Partitions,
    /// Where every record went.
    pub counters: Counters,
    /// Models of the plan.
    pub models: Vec<ModelState>,
    /// Streams with their open panes, and the windows of their views.
    pub streams: Vec<StreamState>,
    /// How much of the join journals is part of this snapshot.
    pub joins: Vec<JoinState>,
    /// What streams that are gone have staked of the budgets of false alarms.
    pub ledger: LedgerState,
    /// Comparisons of versions, for the models that have them.
    pub compared: Vec<ComparedState>,
    /// Versions with their vector views.
    pub vectors: Vec<VersionState>,
    /// How far a process that judges what others count has followed them.
    pub followed: Option<FollowedState>,
}

/// How far a process has followed the topic of checkpoints.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FollowedState {
    /// The next offset of each partition of the topic.
    pub offsets: Vec<(i32, i64)>,
    /// Topic and partition of each source partition, and which of its deltas were applied.
    pub applied: Vec<(String, i32, LogPosition)>,
}

impl Snapshot {
    /// Renumbers the topics as `topics` does. Topics that are not in it get the numbers after these
    /// and keep their offsets and counts, in case they come back. Returns all names in their new
    /// order.
    pub fn rebind(&mut self, topics: &[String]) -> Vec<String> {
        let mut all = topics.to_vec();
        let before = std::mem::take(&mut self.topics);
        let gone = before.iter().filter(|name| !topics.contains(name));
        all.extend(gone.cloned());
        let number = |source: u16| {
            let name = before.get(usize::from(source));
            let now = name.and_then(|name| all.iter().position(|n| n == name));
            now.and_then(|n| u16::try_from(n).ok()).unwrap_or(source)
        };
        let read = |source: u16| before.is_empty() || usize::from(source) < topics.len();
        self.partitions
            .renumber(|source| (number(source), read(number(source))));
        self.counters.renumber(number);
        for join in &mut self.joins {
            (join.predictions, join.outcomes) = (number(join.predictions), number(join.outcomes));
        }
        self.topics = all.clone();
        all
    }
}

/// Under what shape a model's sums were made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelState {
    /// Name of the model's plan.
    pub name: String,
    /// Views, printed.
    pub views: Vec<String>,
    /// Windows and lateness.
    pub ladder: Ladder,
    /// Cells.
    pub grid: GridState,
    /// Bits of the rates at which negatives were sampled.
    pub sampling: (u64, u64),
    /// Start of the oldest pane that is not sealed.
    #[serde(deserialize_with = "checked_or_min")]
    pub sealed_until_ms: i64,
}

impl ModelState {
    /// The shape of a model that is sealed up to this moment.
    pub fn new(m: &ModelPlan, sealed_until_ms: i64) -> ModelState {
        ModelState {
            name: m.name.clone(),
            views: scalars(m).map(|v| v.to_string()).collect(),
            ladder: m.ladder.clone(),
            grid: m.grid.into(),
            sampling: m.judge.evaluation.sampling.bits(),
            sealed_until_ms,
        }
    }

    /// Whether sums of the other can be carried over: only the windows differ, not how they are cut
    /// into base panes.
    pub fn fits_other_windows(&self, other: &ModelState) -> bool {
        self.ladder.pane_ms == other.ladder.pane_ms
            && self.ladder.lateness_ms == other.ladder.lateness_ms
            && self.fits(&ModelState {
                ladder: self.ladder.clone(),
                ..other.clone()
            })
    }

    /// The differences that prevent adding the sums of both.
    pub fn differences(&self, other: &ModelState) -> Vec<&'static str> {
        let (ours, theirs) = (&self.ladder, &other.ladder);
        let (a, b) = (self.grid, other.grid);
        let cells = |g: GridState| (g.level, g.clips);
        let parts = [
            ("views", self.views != other.views),
            ("cells (`level`, `axis`)", cells(a) != cells(b)),
            ("weights of the events", a.weighted != b.weighted),
            ("clusters of the events", a.clustered != b.clustered),
            (
                "the shortest slide of `windows`",
                ours.pane_ms != theirs.pane_ms,
            ),
            ("lateness", ours.lateness_ms != theirs.lateness_ms),
            ("sampling", self.sampling != other.sampling),
        ];
        let changed = parts.into_iter().filter(|(_, changed)| *changed);
        let changed: Vec<&str> = changed.map(|(part, _)| part).collect();
        match changed.is_empty() && ours != theirs {
            true => vec!["`windows`"],
            false => changed,
        }
    }

    /// Whether sums of both can be added.
    pub fn fits(&self, other: &ModelState) -> bool {
        ModelState {
            sealed_until_ms: self.sealed_until_ms,
            ..other.clone()
        } == *self
    }
}

impl StreamState {
    /// The state of a stream that holds nothing.
    pub fn new(key: &Key) -> StreamState {
        StreamState {
            model: 0,
            name: key.model().to_owned(),
            version: key.version().to_owned(),
            segment: key.segment().to_owned(),
            newest_ms: i64::MIN,
            late: 0,
            slot: None,
            open: Vec::new(),
            late_outcomes: Vec::new(),
            pending: Vec::new(),
            judges: Vec::new(),
        }
    }

    /// Its names, for people.
    pub fn title(&self) -> String {
        format!("{}/{}/{}", self.name, self.version, self.segment)
    }
}

impl VersionState {
    /// Its names.
    pub fn name(&self) -> VersionName<'_> {
        VersionName {
            model: &self.name,
            version: &self.version,
            segmented: self.segmented,
        }
    }

    /// The version without its sums.
    pub fn names_only(&self) -> VersionState {
        VersionState {
            name: self.name.clone(),
            version: self.version.clone(),
            views: Vec::new(),
            ..*self
        }
    }

    /// The state of one view, begun if it is new.
    pub fn view_mut(&mut self, view: View) -> &mut VectorViewState {
        let view = view.to_string();
        let known = self.views.iter().position(|v| v.view == view);
        let at = known.unwrap_or_else(|| {
            self.views.push(VectorViewState {
                view,
                ..VectorViewState::default()
            });
            self.views.len() - 1
        });
        &mut self.views[at]
    }

    /// The state of one view.
    pub fn view(&self, view: View) -> Option<&VectorViewState> {
        let view = view.to_string();
        self.views.iter().find(|v| v.view == view)
    }

    /// Says why it was dropped.
    pub fn of_another_shape(&self) -> String {
        format!(
            "{}/{}: vector views of the model changed, or its classes",
            self.name, self.version
        )
    }
}

/// What is known of the verdicts on one stream, apart from sums: it moves with partitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerdictState {
    /// The stream.
    pub stream: StreamId,
    /// One for each window.
    pub windows: Vec<WindowVerdict>,
    /// The detector, if one watches.
    pub detector: Option<DetectorState>,
    /// The alert of the stream.
    pub alert: Alert,
    /// What people were notified of, while it fires; opaque here, written and read by the notifier.
    pub notified: Option<String>,
}

impl VerdictState {
    /// Its stream with what people were notified of, if they were.
    pub fn notified(&self) -> Option<(StreamId, String)> {
        Some((self.stream.clone(), self.notified.clone()?))
    }

    /// The later judgement of each window and of the detector.
    pub fn later(self, other: VerdictState) -> VerdictState {
        let newest_ms = |m: &VerdictState| m.windows.iter().map(|w| w.end_ms).max();
        let alert = if newest_ms(&other) > newest_ms(&self) {
            other.alert
        } else {
            self.alert
        };
        let later_of =
            |(a, b): (WindowVerdict, WindowVerdict)| if b.end_ms > a.end_ms { b } else { a };
        let windows = if self.windows.len() == other.windows.len() {
            let both = self.windows.into_iter().zip(other.windows);
            both.map(later_of).collect()
        } else {
            self.windows
        };
        let at_ms = |d: &Option<DetectorState>| d.as_ref().map(|d| d.at_ms);
        let detector = if at_ms(&other.detector) > at_ms(&self.detector) {
            other.detector
        } else {
            self.detector
        };
        VerdictState {
            stream: self.stream,
            windows,
            detector,
            alert,
            // The monitor notifies nobody.
            notified: None,
        }
    }
}

/// A grid, exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GridState {
    /// Finest level.
    pub level: u32,
    /// Bits of the clips of a logit axis; `None` for a linear one.
    pub clips: Option<(u64, u64)>,
    /// Whether events are weighted.
    pub weighted: bool,
    /// Whether events are clustered.
    pub clustered: bool,
}

impl From<Grid> for GridState {
    fn from(grid: Grid) -> GridState {
        GridState {
            level: grid.level(),
            clips: match grid.axis() {
                Axis::Linear => None,
                Axis::Logit { low, high } => Some((low.to_bits(), high.to_bits())),
            },
            weighted: grid.is_weighted(),
            clustered: grid.is_clustered(),
        }
    }
}

/// Comparisons of versions of the models of one plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparedState {
    /// Index into the snapshot's models.
    pub model: u32,
    /// Rows that wait for their partners.
    pub pairing: PairingState,
    /// What was learnt of pairs.
    pub comparisons: Vec<ComparisonState>,
}

/// One segment of one version of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamState {
    /// Index into the snapshot's models.
    pub model: u32,
    /// Name of the model as it came.
    pub name: String,
    /// Version.
    pub version: String,
    /// Segment.
    pub segment: String,
    /// Newest event time.
    #[serde(deserialize_with = "checked_or_min")]
    pub newest_ms: i64,
    /// Late events since a pane was last sealed.
    #[serde(deserialize_with = "checked")]
    pub late: u64,
    /// Its slot in the shard, under which join journals know it; `None` for a roll-up, which no
    /// shard counts.
    pub slot: Option<u32>,
    /// Open panes: start, and packed sums for each view.
    pub open: Vec<(i64, Vec<Packed>)>,
    /// Late outcomes that go with panes that are not sealed: start of the pane, and sums for each
    /// view.
    pub late_outcomes: Vec<(i64, Vec<LateOutcomes>)>,
    /// Sealed panes that wait until all shards have passed them.
    pub pending: Vec<PaneDelta>,
    /// Windows and judgements, by view.
    pub judges: Vec<JudgeState>,
}

/// A version in a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VersionState {
    /// Index into the snapshot's models.
    pub model: u32,
    /// Name of the model as it came.
    pub name: String,
    /// Version.
    pub version: String,
    /// Whether its events had segments.
    pub segmented: bool,
    /// Newest event time.
    #[serde(deserialize_with = "checked_or_min")]
    pub newest_ms: i64,
    /// Whether it has cells.
    pub cells: bool,
    /// Its vector views.
    pub views: Vec<VectorViewState>,
}

/// A vector view of a version.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VectorViewState {
    /// The view, printed.
    pub view: String,
    /// Open panes of the shard.
    pub open: VectorPanesState,
    /// Sealed panes that wait until all shards have passed them.
    pub pending: VectorPanesState,
    /// Windows and judgements.
    pub judge: JudgeState,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::{Disposition, Origin};

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&n| n.to_owned()).collect()
    }

    /// A snapshot whose topics were read up to 10, 20, 30 …
    fn read(topics: &[&str]) -> Snapshot {
        let mut snapshot = Snapshot {
            topics: names(topics),
            ..Snapshot::default()
        };
        for (source, _) in (0..).zip(topics) {
            snapshot.partitions.advance(Origin {
                source,
                partition: 4,
                offset: i64::from(source) * 10 + 9,
            });
            let counts = snapshot.counters.source_mut(source);
            (0..=source).for_each(|_| counts.count(Disposition::Observed));
        }
        snapshot
    }

    /// Topic by name, with its next offset and its records.
    fn known(s: &Snapshot) -> Vec<(String, i64, u64)> {
        let records = |source: u16| {
            let mut all = s.counters.sources();
            all.find(|(n, _)| *n == source)
                .map_or(0, |(_, c)| c.records)
        };
        let name = |o: Origin| {
            let source = o.source;
            (
                s.topics[usize::from(source)].clone(),
                o.offset,
                records(source),
            )
        };
        let mut all: Vec<_> = s.partitions.positions().map(name).collect();
        all.sort();
        all
    }

    #[test]
    fn offsets_and_counts_follow_their_topics_into_another_order() {
        let mut snapshot = read(&["pears", "apples", "plums"]);
        let before = known(&snapshot);
        let order = names(&["figs", "plums", "pears"]);
        let all = snapshot.rebind(&order);
        assert_eq!(all, names(&["figs", "plums", "pears", "apples"]));
        assert_eq!(known(&snapshot), before);
        // The topic that was away is back, with its own offset.
        snapshot.rebind(&names(&["apples", "pears"]));
        assert_eq!(known(&snapshot), before);
        assert_eq!(snapshot.partitions.assign((0, 4).into()), Some(20));
    }

    #[test]
    fn a_topic_that_is_no_longer_read_holds_nobody_back() {
        let mut snapshot = read(&["a", "b"]);
        snapshot.partitions.observe(100, None, 0);
        snapshot.rebind(&names(&["b"]));
        assert!(!snapshot.partitions.advance(Origin {
            source: 0,
            partition: 4,
            offset: 19
        }));
        snapshot.partitions.observe(200, None, 0);
        assert_eq!(snapshot.partitions.frontier_ms(), Some(200));
    }

    #[test]
    fn where_nobody_named_the_topics_the_numbers_hold() {
        let mut snapshot = read(&["a", "b"]);
        snapshot.topics.clear();
        snapshot.rebind(&names(&["x", "y"]));
        let offsets: Vec<i64> = snapshot.partitions.positions().map(|o| o.offset).collect();
        assert_eq!(offsets, [10, 20]);
    }
}
