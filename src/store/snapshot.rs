//! The snapshot: sums, judgements and offsets of one engine at one moment.
//!
//! Sums and offsets are one value, written as one file, so a restart that seeks to the offsets goes on
//! exactly where the sums stand: nothing is lost, nothing counts twice. Sums travel packed, as the
//! windows keep them. What can be computed from the panes (evaluations, totals) is not stored.
//!
//! Each model carries its *shape*, the windows, cells and views under which its sums were made; a shape
//! that is no longer the configuration's makes its subjects useless, and the engine drops and counts
//! them rather than mixing two grids.
//!
//! The engine numbers the topics that it reads in the order of the configuration. The snapshot names them,
//! and [`Snapshot::rebind`] gives them the numbers of another configuration, so that a topic that was
//! added, removed or moved in it does not lend its offsets to another.

use super::laid::Mark;
use crate::collect::join::JoinState;
use crate::collect::{Counters, PairingState, Partitions, VectorPanesState};
use crate::judge::{ComparisonState, JudgeState, LedgerState};
use crate::stats::axis::{Axis, Grid};
use crate::window::{Ladder, Unlabelled};
use serde::{Deserialize, Serialize};

/// Everything that an engine needs to go on as if it had never stopped.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// Names of the topics by number; empty where nobody named them, and then the numbers hold.
    pub topics: Vec<String>,
    /// Offsets and event time of each partition.
    pub partitions: Partitions,
    /// Where every record went.
    pub counters: Counters,
    /// Models of the plan.
    pub models: Vec<ModelState>,
    /// Subjects with their open panes, and the judges of their views.
    pub subjects: Vec<SubjectState>,
    /// How much of the join journals is part of this snapshot.
    pub joins: Vec<JoinState>,
    /// What streams that are gone have staked of the budgets of false alarms.
    pub ledger: LedgerState,
    /// Versions against each other, of the models that compare them.
    pub compared: Vec<ComparedState>,
    /// Versions with their vector views.
    pub vectors: Vec<VersionState>,
    /// Of a process that judges what others have counted: how far it has followed them.
    pub followed: Option<FollowedState>,
}

/// How far a process has followed the topic of parcels.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FollowedState {
    /// The next offset of each partition of the topic.
    pub homes: Vec<(i32, i64)>,
    /// Topic and partition of each source partition, and what of it was taken in.
    pub seats: Vec<(String, i32, Mark)>,
}

impl Snapshot {
    /// Numbers the topics as `topics` does. Those that are not in it keep their offsets and counts under
    /// the numbers behind, in case they come back. Returns all names in their new order.
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
    /// Begin of the oldest pane that is not sealed.
    pub closed_ms: i64,
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
        }
    }
}

/// Versions of the models of one plan against each other.
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
pub struct SubjectState {
    /// Index into the snapshot's models.
    pub model: u32,
    /// Name of the model as it came.
    pub name: String,
    /// Version.
    pub version: String,
    /// Segment.
    pub segment: String,
    /// Newest event time.
    pub newest_ms: i64,
    /// Last tick that saw an event.
    pub seen_ms: Option<i64>,
    /// Late events since a pane was last sealed.
    pub late: u64,
    /// Its slot, under which join journals know it.
    pub slot: u32,
    /// Open panes: begin, and packed sums for each view.
    #[serde(with = "crate::window::hex::panes")]
    pub open: Vec<(i64, Vec<Vec<u8>>)>,
    /// Predictions without outcome of each of them, by view: in a union, whose panes wait with theirs.
    pub open_unlabelled: Vec<Vec<Unlabelled>>,
    /// Judges, by view.
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
    pub newest_ms: i64,
    /// Last tick that saw an event.
    pub seen_ms: Option<i64>,
    /// Whether there were cells for it.
    pub cells: bool,
    /// Its vector views.
    pub views: Vec<VectorViewState>,
}

/// A vector view of a version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VectorViewState {
    /// The view, printed.
    pub view: String,
    /// Its open panes.
    pub open: VectorPanesState,
    /// Its judge.
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
        // Back again, the one that was away with its own.
        snapshot.rebind(&names(&["apples", "pears"]));
        assert_eq!(known(&snapshot), before);
        assert_eq!(snapshot.partitions.assign(0, 4), Some(20));
    }

    #[test]
    fn a_topic_that_is_no_longer_read_holds_nobody_back() {
        let mut snapshot = read(&["a", "b"]);
        snapshot.partitions.observe(100);
        snapshot.rebind(&names(&["b"]));
        assert!(!snapshot.partitions.advance(Origin {
            source: 0,
            partition: 4,
            offset: 19
        }));
        snapshot.partitions.observe(200);
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
