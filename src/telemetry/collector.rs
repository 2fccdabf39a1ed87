//! From published state to metric families, at the moment of a scrape.
//!
//! No metric object lives between scrapes: the families are built from [`Published`] each time, so a
//! value that was withdrawn is gone from the next scrape instead of frozen at its last state (the
//! complaint about gauges in statsd_exporter #129 and client_python #749). Two withdrawals happen here:
//! a window whose verdict is undecided shows its n, its verdict and its alert but no calibration value,
//! and when a loop is silent beyond its limit no window is shown at all, because nobody stands behind
//! the values.
//!
//! Always: two series never share name and labels, which would make Prometheus refuse the whole
//! scrape; a window is shown whole or not at all; what the cap leaves out is counted, and it is always
//! the same streams, the last in the order of names.
//!
//! Cost: about 4 µs of processor time a series, nearly all of it the strings of names and labels that the
//! `prometheus` crate wants for each; 100,000 series, the default cap, take 0.4 s of one HTTP thread and
//! 12.5 MB (measured by the ignored test in `tests/http.rs`, two busy cores).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{
    Bucket, Counter, Gauge, Histogram, LabelPair, Metric as Sample, MetricFamily, MetricType,
};
use prometheus::{Encoder, TextEncoder};

use super::comparisons;
use super::detectors;
use super::metrics::{Id, Kind, TABLE, metric};
use super::process;
use super::published::{EVALUATION_BUCKETS, ParcelFacts, Published, Role};
use crate::alert::{AlertState, Severity};
use crate::collect::{Reason, Refusal, SourceCounters};
use crate::judge::{Recalibration, StreamReport, Verdict, WindowReport};
use crate::stats::evaluation::{Evaluation, ReliabilityCell};
use crate::stats::kernel::window::WindowEvaluation;
use crate::stats::multiclass;

/// Bytes of one label value; a longer one is cut and its checksum appended, so that two long values
/// stay two.
pub const LABEL_BYTES_MAX: usize = 128;

/// Collects the families of one [`Published`].
#[derive(Debug, Clone)]
pub struct Exposition {
    published: Arc<Published>,
}

impl Exposition {
    /// A collector over this state.
    pub fn new(published: Arc<Published>) -> Exposition {
        Exposition { published }
    }
}

impl Collector for Exposition {
    fn desc(&self) -> Vec<&Desc> {
        // A registry only uses these to refuse a second collector of the same names; the table
        // already holds each name once.
        Vec::new()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        families(&self.published)
    }
}

/// The whole text of `/metrics`.
pub fn text(published: &Published) -> Result<Vec<u8>, prometheus::Error> {
    let mut body = Vec::new();
    TextEncoder::new().encode(&families(published), &mut body)?;
    Ok(body)
}

/// All families with at least one series.
pub fn families(published: &Published) -> Vec<MetricFamily> {
    let mut sink = Sink::new();
    let (shown, refused) = if published.live() {
        windows(published, &mut sink)
    } else {
        (0, 0)
    };
    sink.put(Id::SeriesShown, &[], shown as f64);
    sink.put(Id::SeriesRefused, &[], refused as f64);
    input(published, &mut sink);
    state(published, &mut sink);
    service(published, &mut sink);
    sink.finish()
}

/// Samples by row of the table.
struct Sink {
    samples: Vec<Vec<Sample>>,
}

impl Sink {
    fn new() -> Sink {
        Sink {
            samples: TABLE.iter().map(|_| Vec::new()).collect(),
        }
    }

    /// Adds a series; `values` are those of all the metric's labels in order.
    fn put(&mut self, id: Id, values: &[&str], value: f64) {
        let row = metric(id);
        debug_assert_eq!(row.all_labels().count(), values.len(), "{}", row.name);
        let mut sample = Sample::from_label(labels(id, values));
        match row.kind {
            Kind::Counter => {
                let mut counter = Counter::default();
                counter.set_value(value);
                sample.set_counter(counter);
            }
            Kind::Gauge | Kind::Histogram => {
                let mut gauge = Gauge::default();
                gauge.set_value(value);
                sample.set_gauge(gauge);
            }
        }
        self.samples[id as usize].push(sample);
    }

    /// [`Sink::put`] of a moment in milliseconds, in seconds.
    fn put_ms(&mut self, id: Id, values: &[&str], ms: i64) {
        self.put(id, values, ms as f64 / 1000.0);
    }

    fn finish(self) -> Vec<MetricFamily> {
        TABLE
            .iter()
            .zip(self.samples)
            .filter(|(_, samples)| !samples.is_empty())
            .map(|(row, samples)| {
                let mut family = MetricFamily::default();
                family.set_name(row.name.to_owned());
                family.set_help(row.help.to_owned());
                family.set_field_type(match row.kind {
                    Kind::Counter => MetricType::COUNTER,
                    Kind::Gauge => MetricType::GAUGE,
                    Kind::Histogram => MetricType::HISTOGRAM,
                });
                family.set_metric(samples);
                family
            })
            .collect()
    }
}

fn labels(id: Id, values: &[&str]) -> Vec<LabelPair> {
    metric(id)
        .all_labels()
        .zip(values)
        .map(|(name, value)| {
            let mut pair = LabelPair::default();
            pair.set_name(name.to_owned());
            pair.set_value(bounded(value));
            pair
        })
        .collect()
}

/// The value itself, or its beginning and checksum where it is too long.
fn bounded(value: &str) -> String {
    if value.len() <= LABEL_BYTES_MAX {
        return value.to_owned();
    }
    // Room for `~` and eight hexadecimal digits.
    let mut cut = LABEL_BYTES_MAX - 9;
    while !value.is_char_boundary(cut) {
        cut -= 1;
    }
    format!(
        "{}~{:08x}",
        &value[..cut],
        crc32fast::hash(value.as_bytes())
    )
}

/// Series of one stream or window before they are admitted: row, own label value if any, value.
type Draft = Vec<(Id, Option<String>, f64)>;

/// Streams and windows up to the cap; returns the series shown and refused.
fn windows(published: &Published, sink: &mut Sink) -> (usize, usize) {
    let limits = published.limits();
    let (mut shown, mut refused) = (0, 0);
    for report in published.reports() {
        let view = report.id.view.to_string();
        let rows = stream_rows(&report, limits.cells);
        if shown + rows.len() > limits.series_max {
            refused += rows.len();
        } else {
            shown += rows.len();
            let id = &report.id;
            for (row, own, value) in &rows {
                let mut values = vec![id.model.as_str(), &id.version, &id.segment, &view];
                values.extend(own.as_deref());
                sink.put(*row, &values, *value);
            }
        }
        for window in &report.windows {
            let draft = draft(&report, window, limits.cells);
            if shown + draft.len() > limits.series_max {
                refused += draft.len();
                continue;
            }
            shown += draft.len();
            let id = &report.id;
            let common = [
                id.model.as_str(),
                &id.version,
                &id.segment,
                &view,
                &window.window,
            ];
            for (row, own, value) in &draft {
                let mut values = common.to_vec();
                values.extend(own.as_deref());
                sink.put(*row, &values, *value);
            }
        }
    }
    (shown, refused)
}

/// Series of a stream: its alert, and its detector where it has one.
fn stream_rows(report: &StreamReport, cells: bool) -> Draft {
    let alert = &report.alert;
    let mut rows = Vec::with_capacity(8);
    for state in AlertState::ALL {
        let is = one_if(alert.state == state);
        rows.push((Id::StreamAlert, Some(state.as_str().to_owned()), is));
    }
    let fires = alert.state == AlertState::Firing;
    for severity in Severity::ALL {
        let is = one_if(fires && alert.severity == severity);
        rows.push((Id::StreamSeverity, Some(severity.as_str().to_owned()), is));
    }
    if let Some(detector) = &report.detector {
        rows.extend(detectors::of_stream(detector, cells));
    }
    rows
}

/// All series of one window.
fn draft(report: &StreamReport, window: &WindowReport, cells: bool) -> Draft {
    let mut draft = Draft::new();
    status(report, window, &mut draft);
    let undecided = matches!(window.verdict, Verdict::Undecided(_));
    if let Some(evaluation) = window.scores() {
        calibration(evaluation, &mut draft);
        if cells {
            for cell in &evaluation.reliability {
                reliability(cell, &mut draft);
            }
        }
    }
    if let (false, Some(family)) = (undecided, &window.family) {
        draft.push((Id::ClassAdjustedPValue, None, family.adjusted_p_value));
    }
    if let Some(evaluation) = window.cells() {
        vector_calibration(evaluation, &mut draft);
    }
    if let Some(evaluation) = window.kernel() {
        kernel_calibration(evaluation, &mut draft);
    }
    if let (false, Some(found)) = (undecided, &window.recalibration) {
        recalibration_rows(found, &mut draft);
    }
    draft
}

/// What the advised map brought, where one is advised.
fn recalibration_rows(found: &Recalibration, draft: &mut Draft) {
    let Some((map, judged)) = found.advised() else {
        return;
    };
    let method = map.method();
    if let Some(trial) = judged.judgement.trial(method) {
        let own = || Some(method.as_str().to_owned());
        draft.push((Id::RecalibrationGain, own(), trial.log_loss.mean));
        draft.push((Id::RecalibrationEce, own(), trial.mended.ece_l2()));
    }
}

/// What every window shows: how much, from when to when, the verdict, the alert.
fn status(report: &StreamReport, window: &WindowReport, draft: &mut Draft) {
    let seconds = |ms: i64| ms as f64 / 1000.0;
    draft.push((Id::Events, None, window.n as f64));
    draft.push((Id::WindowStart, None, seconds(window.start_ms)));
    draft.push((Id::WindowEnd, None, seconds(window.end_ms)));
    draft.push((Id::WindowEvaluated, None, seconds(window.evaluated_at_ms)));
    draft.push((Id::LastEvent, None, seconds(report.last_event_ms)));
    let (now, reason) = verdict_words(window.verdict);
    for state in ["calibrated", "miscalibrated", "undecided"] {
        draft.push((Id::Verdict, Some(state.to_owned()), one_if(state == now)));
    }
    if let Some(reason) = reason {
        draft.push((Id::Undecided, Some(reason.to_owned()), 1.0));
    }
    for state in AlertState::ALL {
        let name = state.as_str().to_owned();
        draft.push((Id::Alert, Some(name), one_if(state == window.alert)));
    }
    if let Some(coverage) = &window.coverage {
        draft.push((Id::Coverage, None, coverage.share()));
        for (k, cell) in coverage.cells.iter().enumerate() {
            if cell.predictions > 0 {
                let low = (k as f64 / coverage.cells.len() as f64).to_string();
                let share = cell.labelled as f64 / cell.predictions as f64;
                draft.push((Id::CoverageCell, Some(low), share));
            }
        }
    }
    if let Some(since) = window.alert_since_ms {
        draft.push((Id::AlertSince, None, seconds(since)));
    }
}

/// The calibration values of a decided window of a vector view.
fn vector_calibration(e: &multiclass::Evaluation, draft: &mut Draft) {
    let mut put = |id, value| draft.push((id, None, value));
    put(Id::EceL1, e.ece_l1);
    put(Id::EceL2, e.interval.estimate_squared.max(0.0).sqrt());
    put(Id::EceL2Squared, e.interval.estimate_squared);
    put(Id::EceL2Lower, e.interval.lower);
    put(Id::EceL2Upper, e.interval.upper);
    put(Id::EceL2ContainsZero, one_if(e.interval.contains_zero));
    put(Id::TcalPValue, e.tcal.p_value);
    put(Id::TcalReject, one_if(e.tcal.reject));
    put(Id::Reject, one_if(e.tcal.reject));
    if let Some(weights) = &e.weights {
        put(Id::EventsEffective, weights.effective);
    }
}

/// The calibration values of a decided window of a kernel view.
fn kernel_calibration(e: &WindowEvaluation, draft: &mut Draft) {
    let mut put = |id, value| draft.push((id, None, value));
    put(Id::Kce, e.kce);
    put(Id::KceLower, e.lower);
    if let Some(p) = e.p_value {
        put(Id::KernelPValue, p);
    }
    put(Id::KernelSample, e.sample.n as f64);
    put(Id::Reject, one_if(e.reject));
}

/// The calibration values of a decided window.
fn calibration(e: &Evaluation, draft: &mut Draft) {
    let mut put = |id, value| draft.push((id, None, value));
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
    put(Id::TcalPValue, e.tcal.p_value);
    put(Id::TcalReject, one_if(e.tcal.reject));
    put(Id::Reject, one_if(e.reject));
    put(Id::Brier, e.brier.score);
    put(Id::BrierReliability, e.brier.reliability);
    put(Id::BrierResolution, e.brier.resolution);
    put(Id::BrierUncertainty, e.brier.uncertainty);
    put(Id::LogLoss, e.log_loss);
    put(Id::Ks, e.ks.statistic);
    let optional = [
        (Id::EceL2Detectable, e.detectable_ece_l2),
        (Id::Mce, e.mce.as_ref().map(|mce| mce.value)),
        (Id::DiscretePValue, e.discrete.as_ref().map(|d| d.p_value)),
        (Id::EventsEffective, e.weights.map(|w| w.effective)),
        (Id::SpiegelhalterZ, e.spiegelhalter.as_ref().map(|s| s.z)),
    ];
    for (id, value) in optional {
        if let Some(value) = value {
            put(id, value);
        }
    }
    let direction = e.direction.as_str().to_owned();
    draft.push((Id::Direction, Some(direction), 1.0));
}

/// One cell of the reliability diagram; empty cells say nothing.
fn reliability(cell: &ReliabilityCell, draft: &mut Draft) {
    if cell.n == 0 {
        return;
    }
    let label = cell.low.to_string();
    for (id, value) in [
        (Id::CellEvents, cell.n as f64),
        (Id::CellScoreMean, cell.mean_score),
        (Id::CellEventRate, cell.event_rate),
        (Id::CellNullLower, cell.null_low),
        (Id::CellNullUpper, cell.null_high),
    ] {
        draft.push((id, Some(label.clone()), value));
    }
}

/// Records and partitions.
fn input(published: &Published, sink: &mut Sink) {
    let facts = published.facts();
    for source in &facts.sources {
        records(&source.name, &source.counters, sink);
        let delivered = source.dead_letters_delivered as f64;
        let failed = source.dead_letters_failed as f64;
        sink.put(Id::DeadLetters, &[&source.name, "delivered"], delivered);
        sink.put(Id::DeadLetters, &[&source.name, "failed"], failed);
        sink.put(Id::Parked, &[&source.name], source.parked as f64);
        sink.put(Id::RecordsLost, &[&source.name], source.lost as f64);
        if facts.parcels.is_some() {
            let name = source.name.as_str();
            sink.put(Id::RecordsMoved, &[name, "in"], source.brought as f64);
            sink.put(Id::RecordsMoved, &[name, "out"], source.taken as f64);
        }
    }
    for (topic, partition) in &facts.barred {
        sink.put(Id::PartitionBarred, &[topic, &partition.to_string()], 1.0);
    }
    for partition in &facts.partitions {
        let number = partition.partition.to_string();
        let values = [partition.topic.as_str(), &number];
        sink.put(Id::PartitionPosition, &values, partition.position as f64);
        sink.put(Id::PartitionIdle, &values, one_if(partition.idle));
        if let Some(lag) = partition.lag {
            sink.put(Id::PartitionLag, &values, lag as f64);
        }
        if let Some(ms) = partition.lag_ms {
            sink.put_ms(Id::PartitionLagSeconds, &values, ms);
        }
        if let Some(ms) = partition.watermark_ms {
            sink.put_ms(Id::PartitionWatermark, &values, ms);
        }
    }
}

/// Where the records of one source went. All reasons are shown from the start, so that the first
/// rejection is a rise from 0 and not a new series, which `rate` would miss.
fn records(source: &str, counters: &SourceCounters, sink: &mut Sink) {
    sink.put(Id::RecordsRead, &[source], counters.records as f64);
    sink.put(Id::Renormalised, &[source], counters.renormalised as f64);
    let open = [("pending", counters.pending), ("waiting", counters.waiting)];
    for (state, count) in open {
        sink.put(Id::RecordsOpen, &[source, state], count as f64);
    }
    sink.put(Id::Implied, &[source], counters.implied as f64);
    sink.put(Id::Other, &[source], counters.other as f64);
    sink.put(Id::NoCell, &[source], counters.no_cell as f64);
    let mut put = |disposition, reason, count: u64| {
        sink.put(Id::Records, &[source, disposition, reason], count as f64);
    };
    for (state, count) in counters.states() {
        put(state, "", count);
    }
    for reason in Reason::ALL {
        put("rejected", reason.as_str(), counters.rejected(reason));
    }
    for refusal in Refusal::ALL {
        put("refused", refusal.as_str(), counters.refused(refusal));
    }
}

/// Engine, snapshots, configuration.
fn state(published: &Published, sink: &mut Sink) {
    let facts = published.facts();
    sink.put(Id::Streams, &[], facts.engine.streams as f64);
    sink.put(Id::StreamsExpired, &[], facts.engine.streams_expired as f64);
    sink.put(Id::StreamsDropped, &[], facts.engine.streams_dropped as f64);
    sink.put(Id::Panes, &[], facts.engine.panes as f64);
    sink.put(Id::StateBytes, &[], facts.engine.state_bytes as f64);
    for (result, n) in ["found", "absent", "failed"].iter().zip(facts.registry) {
        sink.put(Id::RegistryRequests, &[result], n as f64);
    }
    for account in facts.ledger.iter() {
        for (row, value) in detectors::of_account(account) {
            sink.put(row, &[&account.account], value);
        }
    }
    for report in facts.comparisons.iter() {
        let (id, view) = (&report.id, report.id.view.to_string());
        let of = [&*id.model, &*view, &*id.champion, &*id.challenger];
        for (row, value) in comparisons::of_pair(report) {
            sink.put(row, &of, value);
        }
    }
    for (plan, counts, held) in &facts.pair_counts {
        for (end, n) in comparisons::ends(counts) {
            sink.put(Id::PairRows, &[plan, end], n as f64);
        }
        sink.put(Id::PairUnrevised, &[plan], counts.unrevised as f64);
        sink.put(Id::PairRowsHeld, &[plan], *held as f64);
    }
    sink.put(Id::Held, &[], facts.engine.held as f64);
    sink.put(Id::PendingBytes, &[], facts.engine.pending_bytes as f64);
    sink.put(Id::Spilled, &[], facts.engine.spilled as f64);
    sink.put(Id::SpillBytes, &[], facts.engine.spill_bytes as f64);
    sink.put(Id::SpillErrors, &[], facts.spill_errors as f64);
    sink.put(Id::SnapshotErrors, &[], facts.snapshot.errors as f64);
    sink.put(Id::SnapshotsRefused, &[], facts.snapshot.refused as f64);
    if let Some(ms) = facts.snapshot.last_ms {
        sink.put_ms(Id::SnapshotTime, &[], ms);
        sink.put(Id::SnapshotDuration, &[], facts.snapshot.seconds);
        sink.put(Id::SnapshotBytes, &[], facts.snapshot.bytes as f64);
    }
    if let Some(parcels) = &facts.parcels {
        state_topic(parcels, sink);
    }
    role(&facts.role, sink);
    sink.put(Id::ConfigLoaded, &[], one_if(facts.config.loaded));
    if let Some(ms) = facts.config.loaded_ms {
        sink.put_ms(Id::ConfigTime, &[], ms);
    }
    if !facts.config.hash.is_empty() {
        sink.put(Id::ConfigInfo, &[&facts.config.hash], 1.0);
    }
    let lost = ["journal", "notice", "record"]
        .iter()
        .zip(facts.alert_writes_lost);
    for (what, n) in lost {
        sink.put(Id::AlertWritesLost, &[what], n as f64);
    }
    for told in &facts.sinks {
        let of = [told.name.as_str()];
        sink.put(Id::NoticesSent, &of, told.sent as f64);
        sink.put(Id::NoticesFailed, &of, told.failed as f64);
        sink.put(Id::NoticesRetried, &of, told.retried as f64);
        sink.put(Id::NoticesDropped, &of, told.dropped as f64);
        sink.put(Id::NoticesQueued, &of, told.queued as f64);
        if let Some(ms) = told.last_success_ms {
            sink.put_ms(Id::NoticesLast, &of, ms);
        }
    }
    sink.put(Id::TapListeners, &[], published.taps.listeners() as f64);
    sink.put(Id::TapMissed, &[], published.taps.missed() as f64);
    evaluations(published, sink);
}

/// Parcels.
fn state_topic(parcels: &ParcelFacts, sink: &mut Sink) {
    let results = [
        ("written", parcels.written),
        ("read", parcels.read),
        ("refused", parcels.refused),
    ];
    for (result, n) in results {
        sink.put(Id::Parcels, &[result], n as f64);
    }
    sink.put(Id::ParcelBytesWritten, &[], parcels.written_bytes as f64);
    sink.put(Id::ParcelBytesRead, &[], parcels.read_bytes as f64);
    sink.put(Id::ParcelRestore, &[], parcels.restore_seconds);
    for (topic, partition, at_ms) in &parcels.last_ms {
        if let Some(ms) = at_ms {
            sink.put_ms(Id::ParcelTime, &[topic, &partition.to_string()], *ms);
        }
    }
}

/// What the process is among others, and how partitions stand that it judges.
fn role(role: &Role, sink: &mut Sink) {
    let (name, facts) = match role {
        Role::Alone => return,
        Role::Worker => ("worker", None),
        Role::Judge(facts) => ("judge", Some(facts)),
        Role::Standby => ("standby", None),
    };
    sink.put(Id::FleetRole, &[name], 1.0);
    let Some(facts) = facts else { return };
    let standings = ["covered", "behind", "stale", "missing"];
    for (standing, n) in standings.iter().zip(facts.partitions) {
        sink.put(Id::FleetPartitions, &[standing], n as f64);
    }
    sink.put(Id::FleetDelay, &[], facts.delay_ms as f64 / 1000.0);
    sink.put(Id::FleetUncovered, &[], facts.uncovered as f64);
    sink.put(Id::FleetSkipped, &[], facts.skipped as f64);
}

/// The histogram of evaluation times.
fn evaluations(published: &Published, sink: &mut Sink) {
    let durations = published.evaluations();
    let mut below = 0;
    let buckets = EVALUATION_BUCKETS
        .iter()
        .zip(durations.counts)
        .map(|(&bound, count)| {
            below += count;
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(bound);
            bucket.set_cumulative_count(below);
            bucket
        })
        .collect();
    let mut histogram = Histogram::default();
    histogram.set_bucket(buckets);
    histogram.set_sample_count(durations.counts.iter().sum());
    histogram.set_sample_sum(durations.sum);
    let mut sample = Sample::default();
    sample.set_histogram(histogram);
    sink.samples[Id::EvaluationSeconds as usize].push(sample);
}

/// Health, the HTTP server, the process.
fn service(published: &Published, sink: &mut Sink) {
    for (part, why) in published.parts() {
        sink.put(Id::Ready, &[&part], one_if(why.is_none()));
    }
    for (name, silence) in published.silences() {
        sink.put(Id::LoopSilence, &[&name], silence.as_secs_f64());
    }
    let http = &published.http;
    let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed) as f64;
    sink.put(Id::HttpConnections, &[], load(&http.open));
    sink.put(Id::HttpRefused, &[], load(&http.refused));
    for (class, counter) in ["2xx", "4xx", "5xx"].iter().zip(&http.answers) {
        sink.put(Id::HttpAnswers, &[class], load(counter));
    }
    sink.put(Id::LogSuppressed, &[], super::log::suppressed() as f64);
    sink.put(Id::BuildInfo, &[env!("CARGO_PKG_VERSION")], 1.0);
    sink.put(Id::ProcessStart, &[], published.started_seconds());
    if let Some(bytes) = process::resident_bytes() {
        sink.put(Id::ProcessMemory, &[], bytes as f64);
    }
}

/// A verdict's state, and the reason where it is undecided.
pub fn verdict_words(verdict: Verdict) -> (&'static str, Option<&'static str>) {
    match verdict {
        Verdict::Undecided(reason) => (verdict.as_str(), Some(reason.as_str())),
        Verdict::Calibrated | Verdict::Miscalibrated => (verdict.as_str(), None),
    }
}

fn one_if(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_label_values_are_cut_and_stay_distinct() {
        let (a, b) = ("é".repeat(200) + "a", "é".repeat(200) + "b");
        let (a, b) = (bounded(&a), bounded(&b));
        assert!(a.len() <= LABEL_BYTES_MAX && b.len() <= LABEL_BYTES_MAX);
        assert_ne!(a, b);
        assert_eq!(bounded("short"), "short");
    }
}
