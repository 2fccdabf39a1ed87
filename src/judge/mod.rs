//! Layer 2: the second stage, from sealed panes to verdicts and alerts.
//!
//! [`judge`](mod@judge) holds the windows of one stream and judges them; everything else serves it
//! or adds to what it says.
//!
//! | file | holds |
//! |---|---|
//! | [`plan`], [`options`], [`stream`] | what is monitored and how, and the names of its streams |
//! | [`matchers`] | what matchers of alerts mean to these models |
//! | [`judge`](mod@judge), [`verdict`] | windows, their evaluation, and what follows from it |
//! | [`runtime`] | the threads, the stopwatch and the sign of life that a process lends |
//! | [`decided`] | the error that was compared with the tolerance |
//! | [`coverage`] | how many outcomes a verdict rests on |
//! | [`report`] | the reports and changes that leave |
//! | [`judgement`] | one judgement of a window in short, for histories |
//! | [`alarm`], [`sentence`] | the alert of a stream, and changes in words |
//! | [`detector`], [`ledger`] | alarms with a guarantee, and their budget |
//! | [`detector_report`], [`detector_state`] | what a detector says, and what a snapshot keeps of it |
//! | [`timeliness`] | whether outcomes come too late for the maturity |
//! | [`family`] | class views adjusted for each other |
//! | [`comparison`] | comparisons of versions |
//! | [`recalibration`] | recalibration maps |

pub mod alarm;
pub mod comparison;
pub mod coverage;
pub mod decided;
pub mod detector;
pub mod detector_report;
pub mod detector_state;
pub mod family;
#[expect(clippy::module_inception, reason = "the stage is named after its noun")]
pub mod judge;
pub mod judgement;
pub mod ledger;
pub mod matchers;
pub mod options;
pub mod plan;
pub mod recalibration;
pub mod report;
pub mod runtime;
pub mod sentence;
pub mod stream;
pub mod timeliness;
pub mod verdict;

pub use comparison::{
    CompareOptions, ComparisonId, ComparisonReport, ComparisonState, Comparisons,
};
pub use coverage::{Coverage, CoverageCell};
pub use decided::{DecidedError, Quantity};
pub use detector::{Detector, DetectorOptions, Missed};
pub use detector_report::DetectorReport;
pub use detector_state::DetectorState;
pub use judge::{Judge, JudgeState, WindowVerdict};
pub use judgement::{HistoryError, HistoryPoint, Verdicts, WindowJudgement};
pub use ledger::{AccountReport, Ledger, LedgerState};
pub use options::JudgeOptions;
pub use plan::{ANY_MODEL, ModelPlan, Plan};
pub use recalibration::Recalibration;
pub use report::{
    AlertGround, Change, DetectorStep, Facts, Family, Step, StreamReport, WindowReport,
};
pub use runtime::{Alive, Runtime, Stopwatch};
pub use sentence::{shown, shown_of_scores};
pub use stream::StreamId;
pub use verdict::{Numbers, Undecided, Verdict};
