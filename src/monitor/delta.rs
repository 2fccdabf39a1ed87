//! What the first stage hands to the second: sealed panes, and corrections of sealed panes.
//!
//! A delta names its stream and carries packed integer sums, so deltas of any number of shards add
//! up to the deltas of one shard that had read all their partitions, to the bit. It is the only
//! form in which sums travel: within a process, and between processes as part of a partition's
//! checkpoint.

use crate::collect::{Key, LateVector, PaneDelta};
use crate::judge::StreamId;
use crate::stats::axis::Grid;
use crate::window::{Correction, PackError, Packed, PaneState, hex};
use serde::{Deserialize, Serialize};

/// One change of sealed sums. See the module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Delta {
    /// A sealed pane.
    Pane {
        /// The stream.
        key: Key,
        /// Newest event time of the stream.
        newest_ms: i64,
        /// The sums.
        pane: PaneDelta,
    },
    /// A correction of a pane that was sealed before.
    Correction {
        /// The stream.
        key: Key,
        /// Begin of the pane.
        start_ms: i64,
        /// What changes, by view.
        views: Vec<PackedCorrection>,
    },
    /// A sealed pane of a vector view.
    Vector {
        /// The stream, of a whole version.
        stream: StreamId,
        /// Newest event time of the version.
        newest_ms: i64,
        /// The sums.
        pane: PaneState,
    },
    /// A late outcome, for the vector views of a version.
    Late {
        /// The stream of the prediction.
        key: Key,
        /// What changes.
        late: LateVector,
    },
}

/// What changes in the sums of one view, packed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PackedCorrection {
    /// Sums that are taken out.
    #[serde(with = "hex::packed")]
    minus: Packed,
    /// Sums that are put in.
    #[serde(with = "hex::packed")]
    plus: Packed,
    /// Scores whose outcome has come, and whether one had been implied.
    labelled: Vec<(f64, bool)>,
}

impl PackedCorrection {
    /// Packs a correction.
    pub fn new(c: &Correction) -> PackedCorrection {
        PackedCorrection {
            minus: Packed::new(&c.minus),
            plus: Packed::new(&c.plus),
            labelled: c.labelled.clone(),
        }
    }

    /// The correction of the pane that begins at `start_ms`.
    pub fn unpack(&self, start_ms: i64, grid: Grid) -> Result<Correction, PackError> {
        Ok(Correction {
            start_ms,
            minus: self.minus.unpack(grid)?,
            plus: self.plus.unpack(grid)?,
            labelled: self.labelled.clone(),
        })
    }

    fn bytes(&self) -> usize {
        self.minus.bytes() + self.plus.bytes() + 9 * self.labelled.len()
    }
}

impl Delta {
    /// Name of the model.
    pub fn model(&self) -> &str {
        match self {
            Delta::Pane { key, .. } | Delta::Correction { key, .. } | Delta::Late { key, .. } => {
                key.model()
            }
            Delta::Vector { stream, .. } => &stream.model,
        }
    }

    /// Source of the prediction, of a late outcome.
    pub fn source(&self) -> Option<u16> {
        match self {
            Delta::Late { late, .. } => Some(late.source),
            _ => None,
        }
    }

    /// Bytes held, approximately.
    pub fn bytes(&self) -> usize {
        let sums = match self {
            Delta::Pane { pane, .. } => pane.views.iter().map(Packed::bytes).sum(),
            Delta::Correction { views, .. } => views.iter().map(PackedCorrection::bytes).sum(),
            Delta::Vector { pane, .. } => pane.bytes(),
            Delta::Late { late, .. } => late.bytes(),
        };
        sums + 128
    }
}
