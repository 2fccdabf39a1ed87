//! Series of streams and windows, up to the cap.
//!
//! The cap removes detail, never an alert or a verdict: those are exported whatever their number
//! ([`Rank::Verdict`]). Values come next, with the streams that need attention first, and cells of
//! diagrams last. If there are more than a configured number of streams, no cells are exported. A
//! window that was not evaluated has no calibration value.

use std::borrow::Cow;

use super::super::metrics::{Group, Id};
use super::super::published::Published;
use super::{Families, Samples, SharedLabels, detectors, one_if};
use crate::alert::{AlertState, Severity};
use crate::judge::{Recalibration, StreamReport, Verdict, WindowReport};
use crate::stats::evaluation::{Evaluation, ReliabilityCell};
use crate::stats::kernel::window::WindowEvaluation;
use crate::stats::multiclass;

/// The importance of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Alerts and verdicts: exported whatever their number.
    Verdict,
    Value,
    /// Cells of diagrams and bins.
    Cell,
}

impl Rank {
    const ALL: [Rank; 3] = [Rank::Verdict, Rank::Value, Rank::Cell];

    fn of(id: Id) -> Rank {
        match id {
            Id::StreamAlert
            | Id::StreamSeverity
            | Id::DetectorAlarm
            | Id::Verdict
            | Id::Undecided
            | Id::Alert
            | Id::Events
            | Id::WindowEnd => Rank::Verdict,
            Id::CellEvents
            | Id::CellScoreMean
            | Id::CellEventRate
            | Id::CellNullLower
            | Id::CellNullUpper
            | Id::CoverageCell
            | Id::AnytimeBinLower
            | Id::AnytimeBinUpper => Rank::Cell,
            _ => Rank::Value,
        }
    }
}

/// Exports streams and windows up to the cap. Returns the numbers of series shown and refused.
pub(in crate::telemetry) fn windows(
    published: &Published,
    families: &mut Families,
) -> (usize, usize) {
    let limits = published.limits();
    let mut reports = published.reports();
    // The sort is stable, so equals stay ordered by name.
    reports.sort_by_key(|r| attention(r));
    let cells = reports.len() <= limits.cell_streams_max;
    let mut all = Vec::new();
    for report in &reports {
        let (id, view) = (&report.id, report.id.view.to_string());
        let mut names = vec![id.model.as_str(), &id.version, &id.segment, &view];
        // The labels of a stream are the first of those of a window.
        let labels = |names: &[&str]| SharedLabels::new(Group::Window, names);
        all.push((labels(&names), by_rank(stream_samples(report, cells))));
        for window in &report.windows {
            names.truncate(4);
            names.push(&window.window);
            let samples = window_samples(report, window, cells);
            all.push((labels(&names), by_rank(samples)));
        }
    }
    families.reserve_lines(all.len());
    let (mut shown, mut refused) = (0, 0);
    for rank in Rank::ALL {
        for (shared, samples) in &all {
            let samples = &samples[rank as usize];
            if rank != Rank::Verdict && shown + samples.len() > limits.series_max {
                refused += samples.len();
                continue;
            }
            shown += samples.len();
            for (row, own, value) in samples {
                families.put_line(*row, shared, own.as_deref(), *value);
            }
        }
    }
    (shown, refused)
}

/// The samples of each rank, in order.
fn by_rank(samples: Samples) -> [Samples; Rank::ALL.len()] {
    let mut ranks = [const { Samples::new() }; Rank::ALL.len()];
    for sample in samples {
        ranks[Rank::of(sample.0) as usize].push(sample);
    }
    ranks
}

/// The order in which values are exported if not all fit: firing streams, then miscalibrated ones,
/// then the rest.
fn attention(report: &StreamReport) -> u8 {
    let miscalibrated = |w: &WindowReport| w.verdict == Verdict::Miscalibrated;
    match report.alert.state {
        AlertState::Firing => 0,
        AlertState::Pending => 1,
        _ if report.windows.iter().any(miscalibrated) => 2,
        _ => 3,
    }
}

/// Samples of a stream: its alert, and its detector if it has one.
fn stream_samples(report: &StreamReport, cells: bool) -> Samples {
    let alert = &report.alert;
    let mut rows = Vec::with_capacity(8);
    for state in AlertState::ALL {
        let is = one_if(alert.state == state);
        rows.push((Id::StreamAlert, Some(state.as_str().into()), is));
    }
    let fires = alert.state == AlertState::Firing;
    for severity in Severity::ALL {
        let is = one_if(fires && alert.severity == severity);
        rows.push((Id::StreamSeverity, Some(severity.as_str().into()), is));
    }
    if let Some(detector) = &report.detector {
        rows.extend(detectors::of_stream(detector, cells));
    }
    rows
}

fn window_samples(report: &StreamReport, window: &WindowReport, cells: bool) -> Samples {
    let mut samples = Samples::new();
    status(report, window, &mut samples);
    let evaluated = window.verdict.is_evaluated();
    if let Some(evaluation) = window.scores() {
        calibration(evaluation, &mut samples);
        if cells {
            for cell in &evaluation.reliability {
                reliability(cell, &mut samples);
            }
        }
    }
    if let (true, Some(family)) = (evaluated, &window.family) {
        samples.push((Id::ClassAdjustedPValue, None, family.adjusted_p_value));
    }
    if let Some(evaluation) = window.cells() {
        vector_calibration(evaluation, &mut samples);
    }
    if let Some(evaluation) = window.kernel() {
        kernel_calibration(evaluation, &mut samples);
    }
    if let (true, Some(found)) = (evaluated, &window.recalibration) {
        recalibration_samples(found, &mut samples);
    }
    samples
}

/// The gain of the recommended recalibration map, if one is recommended.
fn recalibration_samples(found: &Recalibration, samples: &mut Samples) {
    let Some((map, judged)) = found.advised() else {
        return;
    };
    let method = map.method();
    if let Some(trial) = judged.judgement.trial(method) {
        let own = || Some(method.as_str().into());
        samples.push((Id::RecalibrationGain, own(), trial.log_loss.mean));
        samples.push((Id::RecalibrationEce, own(), trial.recalibrated.ece_l2()));
    }
}

/// The samples of every window: count, start and end, verdict, alert, coverage.
fn status(report: &StreamReport, window: &WindowReport, samples: &mut Samples) {
    let seconds = |ms: i64| ms as f64 / 1000.0;
    samples.push((Id::Events, None, window.n as f64));
    // A window that was never judged has no time: 1970 would be taken for the oldest.
    if window.end_ms != 0 {
        samples.push((Id::WindowStart, None, seconds(window.start_ms)));
        samples.push((Id::WindowEnd, None, seconds(window.end_ms)));
        samples.push((Id::WindowEvaluated, None, seconds(window.evaluated_at_ms)));
    }
    if let Some(ms) = report.last_event_ms() {
        samples.push((Id::LastEvent, None, seconds(ms)));
    }
    let now = window.verdict.as_str();
    for state in ["calibrated", "miscalibrated", "undecided"] {
        samples.push((Id::Verdict, Some(state.into()), one_if(state == now)));
    }
    if let Some(reason) = window.verdict.reason() {
        samples.push((Id::Undecided, Some(reason.into()), 1.0));
    }
    for state in AlertState::ALL {
        let name = state.as_str().into();
        samples.push((Id::Alert, Some(name), one_if(state == window.alert)));
    }
    if let Some(coverage) = &window.coverage {
        samples.push((Id::Coverage, None, coverage.share()));
        for (k, cell) in coverage.cells.iter().enumerate() {
            if cell.predictions > 0 {
                let low = (k as f64 / coverage.cells.len() as f64).to_string();
                let share = cell.labelled as f64 / cell.predictions as f64;
                samples.push((Id::CoverageCell, Some(low.into()), share));
            }
        }
    }
    if let Some(since) = window.alert_since_ms {
        samples.push((Id::AlertSince, None, seconds(since)));
    }
}

/// The calibration values of a decided window of a vector view.
fn vector_calibration(e: &multiclass::Evaluation, samples: &mut Samples) {
    let mut put = |id, value| samples.push((id, None, value));
    put(Id::EceL1, e.ece_l1);
    put(Id::EceL2, e.interval.estimate_squared.max(0.0).sqrt());
    put(Id::EceL2Squared, e.interval.estimate_squared);
    put(Id::EceL2Lower, e.interval.lower);
    put(Id::EceL2Upper, e.interval.upper);
    put(Id::EceL2ContainsZero, one_if(e.interval.contains_zero));
    put(Id::PValue, e.tcal.p_value);
    if !e.tcal.bounded {
        put(Id::TcalPValue, e.tcal.p_value);
    }
    put(Id::TcalReject, one_if(e.tcal.reject));
    put(Id::Reject, one_if(e.tcal.reject));
    if let Some(weights) = &e.weights {
        put(Id::EventsEffective, weights.effective);
    }
}

/// The calibration values of a decided window of a kernel view.
fn kernel_calibration(e: &WindowEvaluation, samples: &mut Samples) {
    let mut put = |id, value| samples.push((id, None, value));
    put(Id::Kce, e.kce);
    put(Id::KceLower, e.lower);
    if let Some(p) = e.p_value {
        put(Id::PValue, p);
        put(Id::KernelPValue, p);
    }
    put(Id::KernelSample, e.sample.n as f64);
    put(Id::Reject, one_if(e.reject));
}

/// The calibration values of a decided window.
fn calibration(e: &Evaluation, samples: &mut Samples) {
    let mut put = |id, value| samples.push((id, None, value));
    put(Id::Positives, e.positives as f64);
    put(Id::EventRate, e.event_rate);
    put(Id::ScoreMean, e.mean_score);
    put(Id::ResidualMean, e.in_the_large.mean_residual);
    put(Id::EceL1, e.ece_l1);
    put(Id::EceL2, e.interval.estimate_squared.max(0.0).sqrt());
    put(Id::EceL2Squared, e.interval.estimate_squared);
    put(Id::EceL2Lower, e.interval.lower);
    put(Id::EceL2Upper, e.interval.upper);
    put(Id::EceL2ContainsZero, one_if(e.interval.contains_zero));
    put(Id::EceL2Tolerance, e.tolerance.tolerance);
    put(Id::TcalReject, one_if(e.tcal.reject));
    put(Id::Reject, one_if(e.reject));
    put(Id::Brier, e.brier.score);
    put(Id::BrierReliability, e.brier.reliability);
    put(Id::BrierResolution, e.brier.resolution);
    put(Id::BrierUncertainty, e.brier.uncertainty);
    put(Id::LogLoss, e.log_loss);
    put(Id::Ks, e.ks.statistic);
    let optional = [
        (Id::PValue, e.deciding_p_value()),
        (Id::TcalPValue, e.tcal.tested()),
        (Id::EceL2Detectable, e.detectable_ece_l2),
        (Id::Mce, e.mce.as_ref().map(|mce| mce.value)),
        (Id::DiscretePValue, e.discrete.as_ref().map(|d| d.p_value)),
        (Id::MoreEvents, e.tolerance.more_events),
        (Id::EventsEffective, e.weights.map(|w| w.effective)),
        (Id::SpiegelhalterZ, e.spiegelhalter.as_ref().map(|s| s.z)),
    ];
    for (id, value) in optional {
        if let Some(value) = value {
            put(id, value);
        }
    }
    if let Some(r) = &e.tolerance.ratio {
        put(Id::ObservedExpected, r.estimate());
        put(Id::ObservedExpectedLower, r.lower);
        put(Id::ObservedExpectedUpper, r.upper);
        put(Id::ObservedExpectedTolerance, r.most);
    }
    for part in &e.combined.parts {
        let label = part.part.as_str().to_owned();
        samples.push((Id::PartPValue, Some(label.into()), part.p_value));
    }
    let direction = e.direction.as_str().to_owned();
    samples.push((Id::Direction, Some(direction.into()), 1.0));
}

/// Samples of one cell of the reliability diagram; none for an empty cell.
fn reliability(cell: &ReliabilityCell, samples: &mut Samples) {
    if cell.n == 0 {
        return;
    }
    let label: Cow<'static, str> = cell.low.to_string().into();
    for (id, value) in [
        (Id::CellEvents, cell.n as f64),
        (Id::CellScoreMean, cell.mean_score),
        (Id::CellEventRate, cell.event_rate),
        (Id::CellNullLower, cell.null_low),
        (Id::CellNullUpper, cell.null_high),
    ] {
        samples.push((id, Some(label.clone()), value));
    }
}
