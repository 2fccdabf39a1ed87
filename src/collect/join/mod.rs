//! Joining predictions with outcomes that come later, earlier, twice or never.
//!
//! In production the outcome comes minutes to months after the prediction. A window that counts each
//! pair when its outcome shows up is biased: positives tend to come before negatives, so the young end of
//! the window looks miscalibrated when it is only immature. So a prediction becomes an observation when it
//! is *mature*, a horizon after its event time, and not before, whatever its outcome did meanwhile; every
//! pane is then a whole cohort.
//!
//! ```text
//!   prediction ──► pending ──(line passes its pane)──► observed        outcome there, or implied
//!                     │                            └─► expired         no outcome, on_missing = drop
//!                     └─ same id and version again ► duplicate | conflict
//!   outcome ─────► matched          its prediction is pending
//!                  waiting ──► matched (prediction came) | orphaned (all it could belong to are mature)
//!                  duplicate | rejected           a second outcome, as the policy says
//!                  revised          its prediction was mature, and its pane is held
//! ```
//!
//! [`key`] names a prediction in 16 bytes; a [`cohort`] holds the pending predictions of one pane in
//! columns; the [`joiner`] of one pair of partitions finds them; its [`journal`] writes down what was
//! done, so that a snapshot costs what happened since the last and not all that is pending. Cohorts that
//! memory has no room for [spill](mod@spill) into a store.
//!
//! Two versions that score the same id are two predictions, each with the same outcome.
//!
//! Order does not matter: of two predictions of one id and version the earlier in event time stays, of two outcomes
//! the first or the last in event time, as configured; so arrival may be shuffled at will until the pane
//! matures, and the sums are the same to the bit.

pub mod cohort;
pub mod full_vector;
mod index;
pub mod joiner;
pub mod joins;
pub mod journal;
pub mod key;
pub mod plan;
mod replay;
pub mod spill_backend;
mod spilled;
mod tombstones;

pub use cohort::{Matured, RowLayout, weight_view};
pub use joiner::{
    Joiner, Labelled, MaturityEvent, NewPrediction, Predicted, Retained, Revision, Room,
};
pub use joins::{JoinState, Joins, Role};
pub use journal::{JournalDelta, JournalError, JournalMark};
pub use key::Key;
pub use plan::{JoinPlan, Missing, Repeated};
pub use spill_backend::{SpillBackend, SpillEntries, SpillError, SpillTable};
