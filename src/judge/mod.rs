//! Floor 2: the second stage, from sealed panes to verdicts and alerts.
//!
//! [`plan`] says what is monitored; [`stream`] names what it is; [`judge`](mod@judge) holds the windows
//! of one stream and judges them; [`verdict`] says when a verdict is due and which, [`coverage`]
//! how many outcomes it rests on; [`book`] is what
//! leaves, [`detector`] what alarms with a guarantee, [`ledger`] where its budget is kept, [`alarm`] what windows and
//! detector say together, [`record`] how that can be recomputed, [`sentence`] the same in words, [`report`] its numbers as
//! JSON; [`comparison`] sets versions against each other; [`mending`] keeps what would mend a miscalibration, and [`recalibration`] says it.

pub mod alarm;
pub mod book;
pub mod classes;
pub mod comparison;
pub mod coverage;
pub mod detector;
pub mod detector_report;
pub mod detector_state;
pub mod distances;
pub mod family;
pub mod intervals;
#[expect(clippy::module_inception, reason = "the stage is named after its noun")]
pub mod judge;
pub mod kernel;
pub mod ledger;
pub mod mending;
pub mod numbers;
pub mod offline;
pub mod plan;
pub mod recalibration;
pub mod record;
pub mod report;
pub mod sentence;
pub mod stream;
pub mod verdict;

pub use book::{Change, DetectorStep, Evidence, Facts, Family, Step, StreamReport, WindowReport};
pub use comparison::{
    CompareOptions, ComparisonId, ComparisonReport, ComparisonState, Comparisons,
};
pub use coverage::{Coverage, CoverageCell};
pub use detector::{Detector, DetectorOptions, Missed};
pub use detector_report::DetectorReport;
pub use detector_state::DetectorState;
pub use judge::{Judge, JudgeState, Memory, Stopwatch, pane_of, seed};
pub use ledger::{AccountReport, Ledger, LedgerState};
pub use mending::{Mending, MendingState};
pub use numbers::{Numbers, p_value};
pub use plan::{ANY_MODEL, Caps, ModelPlan, Plan};
pub use stream::StreamId;
pub use verdict::{JudgeOptions, Undecided, Verdict};
