//! Detectors that do not come back: what they staked stays in the ledger.

use crate::judge::{DetectorState, Ledger};

/// What a detector that is no more has staked stays in its account.
pub fn keep(ledger: &mut Ledger, d: &DetectorState) {
    ledger.keep(&d.account, &d.budget, d.staked, d.alarms);
}
