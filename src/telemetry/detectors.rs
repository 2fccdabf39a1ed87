//! The series of the detectors and of the ledger.
//!
//! What an alarm rests on (onset, shares of the evidence) is shown while the alarm stands; without one there is next
//! to no evidence to share, and an onset would be a number that means nothing.

use super::metrics::Id;
use crate::judge::{AccountReport, DetectorReport};

/// Series of one stream: row, own label if any, value.
pub(super) fn of_stream(detector: &DetectorReport, cells: bool) -> Vec<(Id, Option<String>, f64)> {
    let one_if = |yes: bool| f64::from(u8::from(yes));
    let bounds = &detector.bounds;
    let mut all = vec![
        (Id::DetectorAlarm, None, one_if(detector.alarm.is_some())),
        (
            Id::DetectorCalled,
            None,
            one_if(detector.called_ms.is_some()),
        ),
        (Id::DetectorAlarms, None, detector.alarms as f64),
        (
            Id::DetectorEvidence,
            None,
            detector.evidence.log_worth / detector.log_threshold,
        ),
        (Id::AlwaysEvents, None, bounds.n as f64),
        (Id::AlwaysResidualLower, None, bounds.mean.0),
        (Id::AlwaysResidualUpper, None, bounds.mean.1),
        (Id::AlwaysEceLower, None, bounds.ece2_lower.sqrt()),
    ];
    let missed = detector.missed;
    for (how, n) in [("added", missed.added), ("revised", missed.revised)] {
        all.push((Id::DetectorMissed, Some(how.to_owned()), n as f64));
    }
    if let Some(alarm) = &detector.alarm {
        all.push((Id::DetectorSince, None, alarm.since_ms as f64 / 1000.0));
        all.push((Id::DetectorOnset, None, alarm.onset_ms / 1000.0));
        let shares = &alarm.evidence.shares;
        for (kind, share) in [
            ("intercept_up", shares.intercept_up),
            ("intercept_down", shares.intercept_down),
            ("slope_up", shares.slope_up),
            ("slope_down", shares.slope_down),
            ("cells", shares.cells()),
        ] {
            all.push((Id::DetectorShare, Some(kind.to_owned()), share));
        }
    }
    if cells {
        for bin in &bounds.bins {
            let low = bin.low.to_string();
            all.push((Id::AlwaysBinLower, Some(low.clone()), bin.lower));
            all.push((Id::AlwaysBinUpper, Some(low), bin.upper));
        }
    }
    all
}

/// Series of one account.
pub(super) fn of_account(account: &AccountReport) -> [(Id, f64); 7] {
    [
        (Id::LedgerStreams, account.streams as f64),
        (Id::LedgerShare, account.share),
        (Id::LedgerThreshold, account.budget.log_threshold()),
        (Id::LedgerExpected, account.expected_false_alarms()),
        (Id::LedgerAlarms, account.alarms as f64),
        (Id::LedgerAlarmed, account.alarmed.len() as f64),
        (Id::LedgerCalled, account.called.len() as f64),
    ]
}
