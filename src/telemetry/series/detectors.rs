//! Series of the detectors and of the accounts of the false-alarm budget.
//!
//! Onset and shares of the evidence are exported only while an alarm stands. Without an alarm there
//! is almost no evidence to share, and an onset would be meaningless.

use super::super::metrics::Id;
use super::{Samples, one_if};
use crate::judge::{AccountReport, DetectorReport};

/// Samples of one stream: row, value of its own label if any, value.
pub(in crate::telemetry) fn of_stream(detector: &DetectorReport, cells: bool) -> Samples {
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
            (detector.evidence.as_ref()).map_or(0.0, |e| e.log_worth / detector.log_threshold),
        ),
        (Id::DetectorIdle, None, one_if(detector.idle().is_some())),
        (Id::AnytimeEvents, None, bounds.n as f64),
    ];
    // Without events the bounds mean nothing; an alarm begins and ends with none.
    if bounds.n > 0 {
        all.push((Id::AnytimeResidualLower, None, bounds.mean.0));
        all.push((Id::AnytimeResidualUpper, None, bounds.mean.1));
        all.push((Id::AnytimeEceLower, None, bounds.ece2_lower.sqrt()));
    }
    let missed = detector.missed;
    for (how, n) in [("added", missed.added), ("revised", missed.revised)] {
        all.push((Id::DetectorMissed, Some(how.into()), n as f64));
    }
    if let Some(alarm) = &detector.alarm {
        all.push((Id::DetectorSince, None, alarm.since_ms as f64 / 1000.0));
        all.push((Id::DetectorOnset, None, alarm.onset_ms / 1000.0));
        for (kind, share) in alarm.evidence.shares.named() {
            all.push((Id::DetectorShare, Some(kind.into()), share));
        }
    }
    if cells && bounds.n > 0 {
        for bin in &bounds.bins {
            let low = bin.low.to_string();
            all.push((Id::AnytimeBinLower, Some(low.clone().into()), bin.lower));
            all.push((Id::AnytimeBinUpper, Some(low.into()), bin.upper));
        }
    }
    all
}

pub(in crate::telemetry) fn of_account(account: &AccountReport) -> [(Id, f64); 7] {
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
