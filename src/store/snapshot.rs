//! The snapshot: sums, judgements and offsets of one engine at one moment.
//!
//! Sums and offsets are one value, written as one file, so a restart that seeks to the offsets goes on
//! exactly where the sums stand: nothing is lost, nothing counts twice. Sums travel packed, as the
//! windows keep them. What can be computed from the panes (evaluations, totals) is not stored.
//!
//! Each model carries its *shape*, the windows, cells and views under which its sums were made; a shape
//! that is no longer the configuration's makes its subjects useless, and the engine drops and counts
//! them rather than mixing two grids.

use crate::collect::{Counters, Partitions};
use crate::judge::Memory;
use crate::stats::axis::{Axis, Grid};
use crate::window::{Ladder, PackError, Packed, Pane, Ring};
use serde::{Deserialize, Serialize};

/// Everything that an engine needs to go on as if it had never stopped.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// Offsets and event time of each partition.
    pub partitions: Partitions,
    /// Where every record went.
    pub counters: Counters,
    /// Models of the plan.
    pub models: Vec<ModelState>,
    /// Subjects with their open panes, and the judges of their views.
    pub subjects: Vec<SubjectState>,
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
}

impl From<Grid> for GridState {
    fn from(grid: Grid) -> GridState {
        GridState {
            level: grid.level(),
            clips: match grid.axis() {
                Axis::Linear => None,
                Axis::Logit { low, high } => Some((low.to_bits(), high.to_bits())),
            },
        }
    }
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
    /// Open panes: begin, and packed sums for each view.
    pub open: Vec<(i64, Vec<Vec<u8>>)>,
    /// Judges, by view.
    pub judges: Vec<JudgeState>,
}

/// The windows of one stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgeState {
    /// Panes of each window.
    pub rings: Vec<RingState>,
    /// Verdict and alert of each window.
    pub memories: Vec<Memory>,
}

/// Panes of one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RingState {
    /// Whole panes, oldest first.
    pub panes: Vec<PaneState>,
    /// The pane that is being gathered.
    pub gathering: Option<PaneState>,
}

/// A sealed pane.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PaneState {
    /// Begin.
    pub start_ms: i64,
    /// End, exclusive.
    pub end_ms: i64,
    /// Late events that go with it.
    pub late: u64,
    /// Packed sums.
    pub sums: Vec<u8>,
}

impl From<&Pane> for PaneState {
    fn from(p: &Pane) -> PaneState {
        PaneState {
            start_ms: p.start_ms,
            end_ms: p.end_ms,
            late: p.late,
            sums: p.packed.as_bytes().to_vec(),
        }
    }
}

impl TryFrom<PaneState> for Pane {
    type Error = PackError;

    fn try_from(p: PaneState) -> Result<Pane, PackError> {
        Ok(Pane {
            start_ms: p.start_ms,
            end_ms: p.end_ms,
            late: p.late,
            packed: Packed::from_bytes(&p.sums)?,
        })
    }
}

impl From<&Ring> for RingState {
    fn from(r: &Ring) -> RingState {
        RingState {
            panes: r.panes.iter().map(PaneState::from).collect(),
            gathering: r.gathering.as_ref().map(PaneState::from),
        }
    }
}

impl TryFrom<RingState> for Ring {
    type Error = PackError;

    fn try_from(r: RingState) -> Result<Ring, PackError> {
        let panes: Result<_, _> = r.panes.into_iter().map(Pane::try_from).collect();
        Ok(Ring {
            panes: panes?,
            gathering: r.gathering.map(Pane::try_from).transpose()?,
        })
    }
}
