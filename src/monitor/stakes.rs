//! Detectors that come back: under which number they stake, and what stays of those that do not.

use super::snapshot::StreamState;
use crate::judge::{DetectorOptions, DetectorState, Ledger, ModelPlan};

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
