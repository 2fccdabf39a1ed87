//! Floor 2: the second stage, from sealed panes to verdicts and alerts.
//!
//! [`plan`] says what is monitored; [`stream`] names what it is; [`verdict`] says when a verdict is due
//! and which; [`book`] is what leaves; [`report`] writes an evaluation as JSON.

pub mod book;
pub mod plan;
pub mod report;
pub mod stream;
pub mod verdict;

pub use book::{Change, Step, StreamReport, WindowReport};
pub use plan::{ANY_MODEL, Caps, ModelPlan, Plan};
pub use stream::StreamId;
pub use verdict::{JudgeOptions, Undecided, Verdict};
