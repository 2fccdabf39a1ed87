//! Detectors that come back: under which number they stake, and what stays of those that do not.

use super::snapshot::StreamState;
use crate::judge::{DetectorOptions, DetectorState, Judge, JudgeOptions, Ledger, ModelPlan};
use crate::window::PackError;

/// The number in the ledger of a stream that comes back.
pub fn number_of(ledger: &mut Ledger, plan: &ModelPlan, model: usize, s: &StreamState) -> u64 {
    let Some(options) = &plan.judge.detector else {
        return 0;
    };
    let Some(before) = s.judges.iter().find_map(|j| j.detector.as_ref()) else {
        return ledger.open(model);
    };
    come_back(ledger, options, model, before)
}

/// The number of detectors that were `before`: their own while it is free and their terms are the same.
pub fn come_back(
    ledger: &mut Ledger,
    options: &DetectorOptions,
    model: usize,
    before: &DetectorState,
) -> u64 {
    let number = ledger.reopen(model, before.number);
    if before.terms == options.terms() {
        number
    } else {
        ledger.renew(model, number)
    }
}

/// What a detector that is no more has staked stays in its account.
pub fn keep(ledger: &mut Ledger, d: &DetectorState) {
    ledger.keep(&d.account, &d.budget, d.staked, d.alarms);
}

/// Puts back a detector; returns a state that was made under other terms, or where none is asked for.
pub fn restore_detector(
    judge: &mut Judge,
    state: Option<DetectorState>,
    options: &JudgeOptions,
) -> Result<Option<DetectorState>, PackError> {
    let terms = options.detector.as_ref().map(|o| o.terms());
    match state {
        Some(d) if terms == Some(d.terms.clone()) => judge.restore_detector(&d).map(|()| None),
        other => Ok(other),
    }
}
