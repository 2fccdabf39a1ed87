//! Series of comparisons between versions.

use super::super::metrics::Id;
use crate::collect::PairCounts;
use crate::judge::ComparisonReport;

/// Samples of one pair of versions.
pub(in crate::telemetry) fn of_pair(report: &ComparisonReport) -> [(Id, f64); 10] {
    let c = &report.compared;
    [
        (Id::ComparisonPairs, c.n as f64),
        (Id::ComparisonBrier, c.brier.difference),
        (Id::ComparisonBrierLower, c.brier.lower),
        (Id::ComparisonBrierUpper, c.brier.upper),
        (Id::ComparisonLarge, c.in_the_large.difference),
        (Id::ComparisonLargeLower, c.in_the_large.lower),
        (Id::ComparisonLargeUpper, c.in_the_large.upper),
        (Id::ComparisonCalibration, c.calibration.difference),
        (Id::ComparisonCalibrationLower, c.calibration.lower),
        (Id::ComparisonCalibrationUpper, c.calibration.upper),
    ]
}

/// Comparison rows by result.
pub(in crate::telemetry) fn ends(c: &PairCounts) -> [(&'static str, u64); 6] {
    [
        ("paired", c.paired),
        ("alone", c.alone),
        ("duplicate", c.duplicate),
        ("contradicted", c.contradicted),
        ("refused", c.refused),
        ("nameless", c.nameless),
    ]
}
