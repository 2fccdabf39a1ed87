//! Joins predictions with outcomes that arrive later, earlier, twice or never.
//!
//! In production an outcome arrives minutes to months after its prediction. A window that counts
//! each pair when the outcome arrives is biased: positives tend to arrive before negatives, so the
//! recent end of the window looks miscalibrated when it is only immature. Here a prediction is
//! counted when it is *mature*, a fixed horizon after its event time, whenever its outcome arrived.
//! Every pane is therefore a complete cohort.
//!
//! ```text
//!   prediction ──► pending ──(its pane matures)──► observed        with its outcome, or an implied one
//!                     │                        └─► expired         no outcome, and on_missing = drop
//!                     └─ same id and version again ► duplicate | conflict
//!   outcome ─────► matched          its prediction is pending
//!                  waiting ──► matched (prediction came) | orphaned (all possible predictions are mature)
//!                  duplicate | rejected           a second outcome, as the policy says
//!                  revised          its prediction was mature, and its pane is retained
//! ```
//!
//! * [`joiner`] joins one partition of predictions with one of outcomes; [`joins`] holds all
//!   joiners and their caps.
//! * [`predictions`] retains predictions, in [`cohort`]s of a pane that an [`index`] finds by
//!   [`key`] in a [`key_table`], or [`spilled`] to a [table](spill_backend) when memory is full.
//!   [`waiting`] holds outcomes without prediction.
//! * [`given_up`] remembers some predictions that matured without an outcome.
//! * [`journal`] logs each [`operation`], so that a snapshot costs what happened since the last
//!   one.
//! * [`plan`] says how to join, [`row_layout`] what to keep of a prediction; [`events`] go in and
//!   come out.
//!
//! Two versions that score the same id are two predictions; each gets the same outcome.
//!
//! Arrival order does not matter. Of two predictions of one id and version the earlier in event
//! time stays, of two outcomes the first or the last in event time, as configured. Records may be
//! shuffled at will until the pane matures, and the sums are the same to the bit. The exceptions:
//!
//! * [`Repeated::Reject`] keeps the class that arrives first, as its name says.
//! * [`Repeated::Last`] keeps one outcome of an id. If two arrive before their prediction, and the
//!   later one is late for it, the prediction matures without any. The same happens if an earlier
//!   prediction takes the place of one that has the later outcome. With [`JoinPlan::revise`] the
//!   late one corrects the sums then, and is the last in any order.
//! * Of two predictions of one id, version, time and scores, but of two segments, the one that
//!   arrives first stays.
//! * An outcome that names no model does not wait for a model that another join names, unless a
//!   prediction of that model is retained here.

mod cohort;
mod ended_streams;
mod events;
pub mod full_vector;
mod given_up;
mod index;
mod joiner;
mod joins;
mod journal;
mod key;
mod key_table;
mod matured;
mod operation;
mod plan;
mod predictions;
mod row_layout;
mod spill_backend;
mod spill_batch;
mod spill_record;
mod spilled;
mod waiting;
mod wrong_partition;

pub use events::{
    MaturityEvent, NewPrediction, OutcomeResult, Predicted, Replaced, Retained, Revision,
    SpillBudget,
};
pub use given_up::GivenUp;
pub use joiner::Joiner;
pub use joins::{JoinState, Joins};
pub(super) use journal::{Journal, replay};
pub use journal::{JournalDelta, JournalMark, SEGMENT_BYTES};
pub use key::Key;
pub use matured::Matured;
pub(super) use operation::Op;
pub use operation::{JournalError, SeenId};
pub use plan::{JoinPlan, Missing, Repeated};
pub use row_layout::{RowLayout, attribute_view};
pub use spill_backend::{SpillBackend, SpillEntries, SpillError, SpillTable};
pub use wrong_partition::{WrongPartition, wrong_partitions};
