//! Records as an engine takes them, and the join of two topics: what a test does not name of them
//! is as here.

use trueline::collect::join::{JoinPlan, Missing, Repeated};
use trueline::collect::{Event, Origin, OutcomeRecord};
use trueline::stats::view::{Outcome, Prediction};

/// Where a record was read.
pub fn origin(source: u16, partition: i32, offset: i64) -> Origin {
    Origin {
        source,
        partition,
        offset,
    }
}

/// An event with nothing but its model and score.
pub const EVENT: Event<'static> = Event {
    model: "m",
    version: "",
    segment: "",
    id: b"",
    time_ms: 0,
    arrival_ms: None,
    prediction: Prediction::Score(0.5),
    outcome: None,
    weight: None,
    cluster: None,
};

/// The outcome of the prediction with this id, whichever model made it.
pub fn outcome_record(id: &[u8], time_ms: i64, outcome: Outcome) -> OutcomeRecord<'_> {
    OutcomeRecord {
        model: None,
        id,
        time_ms,
        arrival_ms: None,
        outcome,
    }
}

/// Predictions of source 0 and outcomes of source 1, which are not waited for.
pub const JOIN: JoinPlan = JoinPlan {
    predictions: 0,
    outcomes: 1,
    maturity_ms: 0,
    missing: Missing::Drop,
    repeated: Repeated::First,
    revise: false,
    by_model: false,
    model: None,
    pending_max: 1_000_000,
    pending_memory: usize::MAX,
};
