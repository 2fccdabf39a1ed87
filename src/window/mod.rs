//! Layer 1: event time. Which panes exist, and what each window keeps of them.
//!
//! | file | holds |
//! |---|---|
//! | [`width`] | which windows a stream has, and how they are cut into panes |
//! | [`pane`] | sealed sums of a stretch of event time, and late corrections of them |
//! | [`pack`], [`bits`] | sums of scores in few bytes; of weighted events in `weighted`, by cluster in `clustered` |
//! | `score_sums` | sums of scores of a pane: packed, unpacked, or both |
//! | `running` | sums of panes added up, and kept from slide to slide |
//! | [`hex`] | packed sums in snapshots and in text |
//! | [`view_sums`] | sums of vectors |
//! | [`unlabelled`] | predictions that had no outcome |
//! | [`late_outcomes`] | outcomes that came after maturity |
//! | [`ring`] | the panes of one window |
//! | [`windows`] | all windows of one stream |
//! | `series` | the base panes by which dispersion is measured |
//! | [`late_merge`] | panes and outcomes that come after their time |
//! | [`carry_over`] | the panes of windows that were replaced by others |

pub mod bits;
pub mod carry_over;
mod clustered;
pub mod hex;
pub mod late_merge;
pub mod late_outcomes;
pub mod pack;
mod pack_error;
pub mod pane;
pub mod ring;
mod running;
mod score_sums;
mod series;
pub mod unlabelled;
pub mod view_sums;
mod weighted;
pub mod width;
pub mod windows;

pub use late_outcomes::LateOutcomes;
pub use pack::Packed;
pub use pack_error::PackError;
#[cfg(test)]
pub(crate) use pane::sums_of;
pub use pane::{
    Correction, EmptySums, Pane, PaneState, PaneSums, SumsState, Total, VectorCorrection,
};
pub use ring::{Ring, RingState};
pub use score_sums::ScoreSums;
pub use unlabelled::{COVERAGE_CELLS, Unlabelled};
pub use view_sums::{FullVector, RetainedVector, VectorEvent, ViewShape, ViewSums, ViewSumsState};
pub use width::{Ladder, LadderError, Width, WindowSpec};
pub use windows::{RUNNING_BYTES_MAX, Windows};
