//! The one table of metrics.
//!
//! Every name that leaves over `/metrics` is a row here, with its kind, unit, labels and meaning; the
//! collector can only emit rows ([`Id`] is made from the same rows), the reference page is printed
//! from it ([`markdown`]), and a test holds every expression of the rules and dashboards in `deploy/`
//! against it. So a metric cannot be renamed in one place and forgotten in another.
//!
//! Names are `trueline_<noun>_<unit>[_total]` in base units; what has no unit (a probability, a
//! p-value, an estimate of calibration error, which is a mean difference of probabilities) has none in
//! its name. Labels are bounded: `model`, `version`, `segment`, `view` and `window` by the caps of the
//! engine, `cell` by the level of the reliability diagram, the others by the program itself.

/// What a metric's values do over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only rises, until a restart.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts observations below bounds.
    Histogram,
}

impl Kind {
    /// The word of the exposition format.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// When a metric has values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Per stream.
    Stream,
    /// Per account of the ledger of false alarms.
    Account,
    /// Per pair of versions of a model that scored the same ids.
    Comparison,
    /// Per stream and window, always.
    Window,
    /// Per stream and window while the verdict is `calibrated` or `miscalibrated`; withdrawn when the
    /// window is undecided.
    Evaluation,
    /// Per stream, window and cell of the reliability diagram; withdrawn like `Evaluation`.
    Cell,
    /// Of the input: per source or partition.
    Input,
    /// Of the process.
    Process,
}

impl Group {
    /// All groups in the order of the reference.
    pub const ALL: [Group; 8] = [
        Group::Stream,
        Group::Account,
        Group::Comparison,
        Group::Window,
        Group::Evaluation,
        Group::Cell,
        Group::Input,
        Group::Process,
    ];

    /// Heading in the reference.
    fn heading(self) -> &'static str {
        match self {
            Group::Stream => "Per stream; those of the detector unless its budget is `none`",
            Group::Account => "Per account of the ledger of false alarms",
            Group::Comparison => {
                "Per pair of versions, where `[model.compare]` is enabled; intervals hold at all times"
            }
            Group::Window => "Per stream and window, always present",
            Group::Evaluation => {
                "Per stream and window, withdrawn while the verdict is `undecided`"
            }
            Group::Cell => "Per cell of the reliability diagram, withdrawn likewise",
            Group::Input => "Input",
            Group::Process => "Process",
        }
    }

    /// Labels that every metric of the group carries before its own.
    pub fn labels(self) -> &'static [&'static str] {
        match self {
            Group::Stream => &["model", "version", "segment", "view"],
            Group::Account => &["account"],
            Group::Comparison => &["model", "view", "champion", "challenger"],
            Group::Window | Group::Evaluation => &["model", "version", "segment", "view", "window"],
            Group::Cell => &["model", "version", "segment", "view", "window", "cell"],
            Group::Input | Group::Process => &[],
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Full name.
    pub name: &'static str,
    /// Kind.
    pub kind: Kind,
    /// When it has values, and its common labels.
    pub group: Group,
    /// Unit in words; `1` for what has none.
    pub unit: &'static str,
    /// Labels besides the group's.
    pub labels: &'static [&'static str],
    /// Meaning.
    pub help: &'static str,
}

impl Metric {
    /// All labels in order.
    pub fn all_labels(&self) -> impl Iterator<Item = &'static str> {
        self.group.labels().iter().chain(self.labels).copied()
    }
}

macro_rules! table {
    ($($id:ident $group:ident $kind:ident $name:literal $unit:literal [$($label:literal),*] $help:literal;)+) => {
        /// A row of [`TABLE`]; `id as usize` is its index.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Id { $(#[doc = $help] $id,)+ }

        /// Every metric of the program.
        pub const TABLE: &[Metric] = &[$(Metric {
            name: $name,
            kind: Kind::$kind,
            group: Group::$group,
            unit: $unit,
            labels: &[$($label),*],
            help: $help,
        },)+];
    };
}

table! {
    DetectorAlarm Stream Gauge "trueline_detector_alarm" "0 or 1" []
        "1 from an alarm of the detector until the stream is clear again.";
    DetectorCalled Stream Gauge "trueline_detector_called" "0 or 1" []
        "1 while e-BH calls the stream among those of its account: found sooner than by an alarm when many go bad at once.";
    DetectorAlarms Stream Counter "trueline_detector_alarms_total" "alarms" []
        "Alarms since the stream began; of one that stays bad each confirms the one before.";
    DetectorEvidence Stream Gauge "trueline_detector_evidence_ratio" "1" []
        "Log evidence of the detector since it last began anew, over that at which it raises an alarm; 1 raises one.";
    DetectorSince Stream Gauge "trueline_detector_alarm_since_timestamp_seconds" "seconds" []
        "While alarmed: event time of the first alarm since the stream was clear.";
    DetectorOnset Stream Gauge "trueline_detector_onset_timestamp_seconds" "seconds" []
        "While alarmed: event time at which the miscalibration is estimated to have begun.";
    DetectorShare Stream Gauge "trueline_detector_evidence_share" "1" ["kind"]
        "While alarmed: share of the alarm's evidence by kind of error: intercept_up, intercept_down (log-odds of all scores), slope_up, slope_down, cells (ranges of scores).";
    DetectorMissed Stream Counter "trueline_detector_outcomes_missed_total" "outcomes" ["how"]
        "Outcomes that came (added) or changed (revised) after the detector had taken their pane; they correct windows only.";
    AlwaysEvents Stream Gauge "trueline_always_events" "events" []
        "Events behind the bounds that hold at all times: since the stream began, or its last alarm.";
    AlwaysResidualLower Stream Gauge "trueline_always_residual_mean_lower" "1" []
        "Lower bound of the mean of outcome minus score, valid at all times together.";
    AlwaysResidualUpper Stream Gauge "trueline_always_residual_mean_upper" "1" []
        "Upper bound of it.";
    AlwaysEceLower Stream Gauge "trueline_always_ece_l2_lower" "1" []
        "Lower bound of the l2 expected calibration error, valid at all times together, without bins and without smoothness.";
    AlwaysBinLower Stream Gauge "trueline_always_bin_residual_mean_lower" "1" ["cell"]
        "Lower bound of the mean residual of each of 16 bins, valid at all times and for all bins together; the label is the bin's lower edge.";
    AlwaysBinUpper Stream Gauge "trueline_always_bin_residual_mean_upper" "1" ["cell"]
        "Upper bound of it.";

    LedgerStreams Account Gauge "trueline_ledger_streams" "streams" []
        "Streams that draw on the account.";
    LedgerShare Account Gauge "trueline_ledger_share" "1" []
        "Share of what the budget hands out that these streams stake; of a budget of events, the mean.";
    LedgerThreshold Account Gauge "trueline_ledger_log_threshold" "nats" []
        "Log evidence at which a stream raises an alarm.";
    LedgerExpected Account Counter "trueline_ledger_expected_false_alarms_total" "alarms" []
        "Most false alarms to expect of all that was staked so far, were all streams calibrated; also the largest expected share of false ones among streams that are called.";
    LedgerAlarms Account Counter "trueline_ledger_alarms_total" "alarms" []
        "Alarms of all streams so far, true and false.";
    LedgerAlarmed Account Gauge "trueline_ledger_streams_alarmed" "streams" []
        "Streams whose alarm is not over.";
    LedgerCalled Account Gauge "trueline_ledger_streams_called" "streams" []
        "Streams that e-BH calls.";

    ComparisonPairs Comparison Counter "trueline_comparison_pairs_total" "pairs" []
        "Ids that both versions scored, with the same outcome.";
    ComparisonBrier Comparison Gauge "trueline_comparison_brier_difference" "1" []
        "Brier score of the challenger less that of the champion; below 0 the challenger is better.";
    ComparisonBrierLower Comparison Gauge "trueline_comparison_brier_difference_lower" "1" []
        "Lower end of the interval of its expectation, valid at all times together.";
    ComparisonBrierUpper Comparison Gauge "trueline_comparison_brier_difference_upper" "1" []
        "Upper end of it; below 0 the challenger is better, at the configured confidence.";
    ComparisonLarge Comparison Gauge "trueline_comparison_in_the_large_difference" "1" []
        "Absolute mean residual of the challenger less that of the champion.";
    ComparisonLargeLower Comparison Gauge "trueline_comparison_in_the_large_difference_lower" "1" []
        "Lower end of its interval.";
    ComparisonLargeUpper Comparison Gauge "trueline_comparison_in_the_large_difference_upper" "1" []
        "Upper end of its interval.";
    ComparisonCalibration Comparison Gauge "trueline_comparison_calibration_difference" "1" []
        "Brier score that recalibration in 16 cells would win back from the challenger, less that from the champion: the difference of squared calibration error.";
    ComparisonCalibrationLower Comparison Gauge "trueline_comparison_calibration_difference_lower" "1" []
        "Lower end of its interval.";
    ComparisonCalibrationUpper Comparison Gauge "trueline_comparison_calibration_difference_upper" "1" []
        "Upper end of its interval; below 0 the challenger is calibrated better.";

    StreamAlert Stream Gauge "trueline_stream_alert" "0 or 1" ["state"]
        "1 for the present state of the stream's alert, of which people are told, 0 for the others: inactive, pending, firing, resolved.";
    StreamSeverity Stream Gauge "trueline_stream_alert_severity" "0 or 1" ["severity"]
        "1 while the alert fires with this severity: warn, page.";

    Events Window Gauge "trueline_window_events" "events" []
        "Events with an outcome in the window (n).";
    WindowStart Window Gauge "trueline_window_start_timestamp_seconds" "seconds" []
        "Event time at which the window begins.";
    WindowEnd Window Gauge "trueline_window_end_timestamp_seconds" "seconds" []
        "Event time at which the window ends; its distance from now is how old the verdict's data are.";
    WindowEvaluated Window Gauge "trueline_window_evaluated_timestamp_seconds" "seconds" []
        "When the window was last judged.";
    LastEvent Window Gauge "trueline_last_event_timestamp_seconds" "seconds" []
        "Event time of the newest event of the stream (the same for all its windows).";
    Verdict Window Gauge "trueline_verdict" "0 or 1" ["state"]
        "1 for the present verdict, 0 for the others: calibrated, miscalibrated, undecided.";
    Undecided Window Gauge "trueline_undecided" "1" ["reason"]
        "Present while undecided, with the reason: too_few, immature, stale, late, capacity, coverage.";
    Alert Window Gauge "trueline_alert" "0 or 1" ["state"]
        "1 for the present state of the window's alert (its verdict, held), 0 for the others: inactive, pending, firing, resolved.";
    Coverage Window Gauge "trueline_coverage" "1" []
        "Share of the window's mature predictions that have an outcome of their own; absent where none was missing.";
    CoverageCell Window Gauge "trueline_coverage_cell" "1" ["cell"]
        "The same for predictions whose score lies in the cell; the label is the cell's lower edge.";
    AlertSince Window Gauge "trueline_alert_since_timestamp_seconds" "seconds" []
        "When the alert entered its present state.";

    Positives Evaluation Gauge "trueline_window_positives" "events" []
        "Events of the window whose outcome was positive.";
    EventsEffective Evaluation Gauge "trueline_window_events_effective" "events" []
        "Effective number of events, (sum of weights)^2 / sum of their squares; absent where events are not weighted.";
    EventRate Evaluation Gauge "trueline_event_rate" "1" []
        "Share of positive outcomes in the window.";
    ScoreMean Evaluation Gauge "trueline_score_mean" "1" []
        "Mean score in the window.";
    ResidualMean Evaluation Gauge "trueline_residual_mean" "1" []
        "Calibration in the large: mean of outcome minus score; positive means that the scores are too low.";
    EceL1 Evaluation Gauge "trueline_ece_l1" "1" []
        "Plug-in l1 expected calibration error over 16 equal cells; biased upwards at small n.";
    EceL2 Evaluation Gauge "trueline_ece_l2" "1" []
        "Debiased estimate of the l2 expected calibration error, 0 where its square is estimated below 0.";
    EceL2Squared Evaluation Gauge "trueline_ece_l2_squared" "1" []
        "Debiased estimate of the squared l2 expected calibration error; unbiased, so it may be negative.";
    EceL2Lower Evaluation Gauge "trueline_ece_l2_lower" "1" []
        "Lower end of the confidence interval of the l2 expected calibration error.";
    EceL2Upper Evaluation Gauge "trueline_ece_l2_upper" "1" []
        "Upper end of the confidence interval of the l2 expected calibration error.";
    EceL2ContainsZero Evaluation Gauge "trueline_ece_l2_contains_zero" "0 or 1" []
        "1 while the confidence interval contains perfect calibration.";
    EceL2Detectable Evaluation Gauge "trueline_ece_l2_detectable" "1" []
        "Null floor: the smallest l2 expected calibration error that the test finds with 80 % power at this n.";
    EceL2Tolerance Evaluation Gauge "trueline_ece_l2_tolerance" "1" []
        "Configured tolerance: miscalibration below it is not worth an alert.";
    Mce Evaluation Gauge "trueline_max_calibration_error" "1" []
        "Largest absolute mean residual of a cell with enough events.";
    TcalPValue Evaluation Gauge "trueline_tcal_p_value" "1" []
        "p-value of the adaptive T-Cal test over all its levels.";
    TcalReject Evaluation Gauge "trueline_tcal_reject" "0 or 1" []
        "1 while T-Cal rejects calibration at the configured level.";
    DiscretePValue Evaluation Gauge "trueline_discrete_p_value" "1" []
        "p-value of the exact test for discrete scores, where it ran.";
    ClassAdjustedPValue Evaluation Gauge "trueline_class_adjusted_p_value" "1" []
        "p-value of a class view adjusted for all class views of its stream by Holm's method: at most alpha only if the error of the whole family allows it.";
    Kce Evaluation Gauge "trueline_kce" "kernel calibration error" []
        "Kernel calibration error of a kernel view, biased upwards: of its random features where they decide, else of its sample.";
    KceLower Evaluation Gauge "trueline_kce_lower" "kernel calibration error" []
        "Lower end of it, and of the l2-ECE of the whole vector, which is never less.";
    KernelPValue Evaluation Gauge "trueline_kernel_p_value" "1" []
        "p-value of the kernel test given the predictions.";
    KernelSample Evaluation Gauge "trueline_kernel_sample_events" "events" []
        "Events of the window in the sample whose pairs the kernel test compares.";
    Reject Evaluation Gauge "trueline_reject" "0 or 1" []
        "The decision: of the exact discrete test where it ran, else of T-Cal; of a kernel view, of the kernel test.";
    Direction Evaluation Gauge "trueline_direction" "1" ["direction"]
        "Present with the way the scores err: none, too_high, too_low, over_confident, under_confident, local.";
    RecalibrationGain Evaluation Gauge "trueline_recalibration_log_loss_gain" "nats" ["method"]
        "Log loss that the advised map took off, an event, on the window after that it was fitted to; absent where no map is advised.";
    RecalibrationEce Evaluation Gauge "trueline_recalibration_ece_l2" "1" ["method"]
        "Debiased l2 expected calibration error that the advised map left there.";
    Brier Evaluation Gauge "trueline_brier_score" "1" []
        "Mean squared difference of score and outcome.";
    BrierReliability Evaluation Gauge "trueline_brier_reliability" "1" []
        "Part of the Brier score that miscalibration costs.";
    BrierResolution Evaluation Gauge "trueline_brier_resolution" "1" []
        "Part of the Brier score that the scores' sharpness earns.";
    BrierUncertainty Evaluation Gauge "trueline_brier_uncertainty" "1" []
        "Brier score of always saying the event rate.";
    LogLoss Evaluation Gauge "trueline_log_loss" "nats" []
        "Mean log loss.";
    SpiegelhalterZ Evaluation Gauge "trueline_spiegelhalter_z" "1" []
        "Spiegelhalter's z statistic.";
    Ks Evaluation Gauge "trueline_ks_statistic" "1" []
        "Kolmogorov-Smirnov statistic of the cumulative residuals.";

    CellEvents Cell Gauge "trueline_cell_events" "events" []
        "Events in the cell; the label is the cell's lower edge.";
    CellScoreMean Cell Gauge "trueline_cell_score_mean" "1" []
        "Mean score in the cell.";
    CellEventRate Cell Gauge "trueline_cell_event_rate" "1" []
        "Share of positive outcomes in the cell.";
    CellNullLower Cell Gauge "trueline_cell_null_lower" "1" []
        "Lower end of the consistency bar: where the rate would fall if the scores were true.";
    CellNullUpper Cell Gauge "trueline_cell_null_upper" "1" []
        "Upper end of the consistency bar.";

    RecordsRead Input Counter "trueline_records_read_total" "records" ["source"]
        "Records read; of a record that holds several events, these.";
    Records Input Counter "trueline_records_total" "records" ["source", "disposition", "reason"]
        "Records by where they went: observed, expired, matched, orphaned, duplicate, conflict, revised, late, replayed, rejected, refused; with trueline_records_open this adds up to the records read.";
    RecordsOpen Input Gauge "trueline_records_open" "records" ["source", "state"]
        "Records whose end is not known yet: predictions that are pending, outcomes that are waiting.";
    RecordsLost Input Counter "trueline_records_lost_total" "records" ["source"]
        "Records that the broker deleted before they were read, at most: the offsets between what was read and the oldest that was left.";
    RecordsMoved Input Counter "trueline_records_moved_total" "records" ["source", "direction"]
        "Open records that came (in) or left (out) with partitions that moved between processes; records read and those that came equal all others with those that left.";
    Implied Input Counter "trueline_records_implied_total" "records" ["source"]
        "Observed predictions whose outcome never came and was implied.";
    NoCell Input Counter "trueline_vector_refused_total" "records" ["source"]
        "Vector views (top_k, full, kernel) of observed records that had no cell or sample left for them; their windows are undecided (capacity).";
    Other Input Counter "trueline_records_other_total" "records" ["source"]
        "Observed records of segments that are too many for a stream of their own, counted in segment other.";
    PairRows Input Counter "trueline_comparison_rows_total" "rows" ["plan", "end"]
        "Observations of models whose versions are compared, by what became of them: paired, alone, duplicate, contradicted (pairs that disagree about the outcome), refused by rows_max, nameless (without id); the label plan is the name of the model's section.";
    PairUnrevised Input Counter "trueline_comparison_unrevised_total" "outcomes" ["plan"]
        "Outcomes, one for each compared view, that came after maturity and would have changed a pair: pairs keep the outcome they were made with.";
    PairRowsHeld Input Gauge "trueline_comparison_rows_held" "rows" ["plan"]
        "Observations in memory for other versions of their ids.";
    Held Process Gauge "trueline_predictions_held" "records" []
        "Predictions held: pending ones, and mature ones that are kept for revisions.";
    PendingBytes Process Gauge "trueline_predictions_memory_bytes" "bytes" []
        "Memory that held predictions take, those on disk left out; pending_memory is its cap.";
    Spilled Process Gauge "trueline_predictions_spilled" "records" []
        "Held predictions that memory has no room for, in the store on disk.";
    SpillBytes Process Gauge "trueline_spill_bytes" "bytes" []
        "Size of that store on disk.";
    SpillErrors Process Counter "trueline_spill_errors_total" "failures" []
        "Failures of that store; the process ends at the first, without a snapshot, and can be started again.";
    Renormalised Input Counter "trueline_records_renormalised_total" "records" ["source"]
        "Observed records whose probabilities were divided by their sum, which was off 1 by rounding.";
    DeadLetters Input Counter "trueline_dead_letters_total" "records" ["source", "result"]
        "Rejected records sent to the dead-letter topic: delivered, failed.";
    Parked Input Gauge "trueline_records_parked" "records" ["source"]
        "Records in memory that wait for their schema; their partitions wait with them.";
    RegistryRequests Process Counter "trueline_registry_requests_total" "requests" ["result"]
        "Schemas asked for at the registry: found, absent, failed.";
    PartitionPosition Input Gauge "trueline_partition_position_offset" "offset" ["topic", "partition"]
        "Offset of the next record to read.";
    PartitionLag Input Gauge "trueline_partition_lag_records" "records" ["topic", "partition"]
        "Records between the position and the end of the partition.";
    PartitionLagSeconds Input Gauge "trueline_partition_lag_seconds" "seconds" ["topic", "partition"]
        "How far the newest event time read is behind this machine's clock while records wait; 0 at the end of the partition.";
    PartitionWatermark Input Gauge "trueline_partition_watermark_timestamp_seconds" "seconds" ["topic", "partition"]
        "Event time up to which the partition is complete.";
    PartitionIdle Input Gauge "trueline_partition_idle" "0 or 1" ["topic", "partition"]
        "1 while the partition has nothing to read and holds no other back.";

    Streams Process Gauge "trueline_streams" "streams" []
        "Monitored streams.";
    StreamsExpired Process Counter "trueline_streams_expired_total" "streams" []
        "Streams that went unused and were let go.";
    StreamsDropped Process Counter "trueline_streams_dropped_total" "streams" []
        "Streams of a snapshot that were let go because views, cells, windows or lateness of their model changed.";
    Panes Process Gauge "trueline_panes" "panes" []
        "Panes held over all streams.";
    StateBytes Process Gauge "trueline_state_bytes" "bytes" []
        "Bytes of all streams' state.";
    SeriesShown Process Gauge "trueline_series" "series" []
        "Series of streams and windows in this scrape.";
    SeriesRefused Process Gauge "trueline_series_refused" "series" []
        "Series of streams and windows left out of this scrape because of the cap.";
    SnapshotTime Process Gauge "trueline_snapshot_timestamp_seconds" "seconds" []
        "When the last snapshot was complete on disk.";
    SnapshotDuration Process Gauge "trueline_snapshot_duration_seconds" "seconds" []
        "How long the last snapshot took.";
    SnapshotBytes Process Gauge "trueline_snapshot_bytes" "bytes" []
        "Size of the last snapshot.";
    SnapshotErrors Process Counter "trueline_snapshot_errors_total" "snapshots" []
        "Snapshots that failed.";
    SnapshotsRefused Process Counter "trueline_snapshots_refused_total" "files" []
        "Torn, damaged or foreign snapshot files that were passed over for an older one when the state was restored.";
    Parcels Process Counter "trueline_parcels_total" "parcels" ["result"]
        "Parcels of partitions' state in the state topic: written, read, refused. Absent without a state topic, as all of them.";
    ParcelBytesWritten Process Counter "trueline_parcel_written_bytes_total" "bytes" []
        "Bytes written to the state topic.";
    ParcelBytesRead Process Counter "trueline_parcel_read_bytes_total" "bytes" []
        "Bytes of partitions' state read from the state topic.";
    ParcelTime Process Gauge "trueline_parcel_timestamp_seconds" "seconds" ["topic", "partition"]
        "When the partition's state was last written to the state topic, or read from it; it is written only when it has changed.";
    ParcelRestore Process Gauge "trueline_parcel_restore_seconds" "seconds" []
        "How long it took to take over the last partition that was assigned.";
    PartitionBarred Process Gauge "trueline_partition_barred" "0 or 1" ["topic", "partition"]
        "Present and 1 for a partition that is assigned and not read, because its state cannot be used or because it is shorter than what was read of it.";
    FleetRole Process Gauge "trueline_fleet_role" "1" ["role"]
        "Always 1 where one process judges what others count: worker, judge, or standby, which was to judge until another claimed it.";
    FleetPartitions Process Gauge "trueline_fleet_partitions" "partitions" ["standing"]
        "Partitions that the judge sums up: covered by their parcels, behind (a parcel is waited for), stale (none came for `missing_after`, verdicts go on without), missing (there never was one).";
    FleetDelay Process Gauge "trueline_fleet_delay_seconds" "seconds" []
        "Age of the oldest parcel among partitions that are not covered; 0 while all are.";
    FleetUncovered Process Gauge "trueline_fleet_uncovered_records" "records" []
        "Records that the brokers have and no parcel in use holds.";
    FleetSkipped Process Counter "trueline_fleet_panes_skipped_total" "panes" []
        "Panes at whose ends no verdict was given because parcels were gone before the judge read them; sums were exact from the next on.";
    EvaluationSeconds Process Histogram "trueline_evaluation_seconds" "seconds" []
        "Time to evaluate one window.";
    ConfigLoaded Process Gauge "trueline_config_last_load_success" "0 or 1" []
        "1 if the last attempt to load the configuration succeeded.";
    ConfigTime Process Gauge "trueline_config_loaded_timestamp_seconds" "seconds" []
        "When the configuration at work was loaded.";
    ConfigInfo Process Gauge "trueline_config_info" "1" ["hash"]
        "Always 1; the label is a hash of the configuration at work.";
    NoticesSent Process Counter "trueline_notices_sent_total" "notices" ["sink"]
        "Changes of alerts that the sink took.";
    NoticesFailed Process Counter "trueline_notices_failed_total" "notices" ["sink"]
        "Changes of alerts that the sink refused for good.";
    NoticesRetried Process Counter "trueline_notice_retries_total" "attempts" ["sink"]
        "Attempts to tell the sink that failed and are made again.";
    NoticesDropped Process Counter "trueline_notices_dropped_total" "notices" ["sink"]
        "Changes of alerts that the sink's full queue refused.";
    NoticesQueued Process Gauge "trueline_notices_queued" "notices" ["sink"]
        "Changes of alerts that wait for the sink.";
    NoticesLast Process Gauge "trueline_notice_last_success_timestamp_seconds" "seconds" ["sink"]
        "When the sink last took something.";
    AlertWritesLost Process Counter "trueline_alert_writes_lost_total" "writes" ["what"]
        "What was not written of alerts: lines of the journal (they may be told again after a restart), notices for which the way there was full (told later while they fire), records (not to be explained).";
    TapListeners Process Gauge "trueline_tap_listeners" "listeners" []
        "Who listens to pairs as they form.";
    TapMissed Process Counter "trueline_tap_missed_total" "pairs" []
        "Pairs that a listener did not get, for its rate or its full buffer.";
    Ready Process Gauge "trueline_ready" "0 or 1" ["part"]
        "1 for each part that is ready.";
    LoopSilence Process Gauge "trueline_loop_silence_seconds" "seconds" ["loop"]
        "Time since the loop last went round.";
    HttpConnections Process Gauge "trueline_http_connections" "connections" []
        "Open HTTP connections.";
    HttpRefused Process Counter "trueline_http_connections_refused_total" "connections" []
        "HTTP connections refused because of the cap.";
    HttpAnswers Process Counter "trueline_http_answers_total" "answers" ["class"]
        "HTTP answers by status class: 2xx, 4xx, 5xx.";
    LogSuppressed Process Counter "trueline_log_lines_suppressed_total" "lines" []
        "Log lines held back by the limit per site.";
    BuildInfo Process Gauge "trueline_build_info" "1" ["version"]
        "Always 1; the version is a label.";
    ProcessStart Process Gauge "process_start_time_seconds" "seconds" []
        "When the process started.";
    ProcessMemory Process Gauge "process_resident_memory_bytes" "bytes" []
        "Resident memory, where the system tells it.";
}

/// The row of a metric.
pub fn metric(id: Id) -> &'static Metric {
    &TABLE[id as usize]
}

/// The reference page of the table, as `deploy/prometheus/README.md` carries it.
pub fn markdown() -> String {
    let mut page = String::new();
    for group in Group::ALL {
        let common = group.labels();
        page.push_str(&format!("**{}**", group.heading()));
        if !common.is_empty() {
            page.push_str(&format!(" (labels `{}`)", common.join("`, `")));
        }
        page.push_str("\n\n| metric | kind | unit | meaning |\n|---|---|---|---|\n");
        for row in TABLE.iter().filter(|row| row.group == group) {
            let own = match row.labels {
                [] => String::new(),
                labels => format!(" `{{{}}}`", labels.join(", ")),
            };
            page.push_str(&format!(
                "| `{}`{own} | {} | {} | {} |\n",
                row.name,
                row.kind.as_str(),
                row.unit,
                row.help
            ));
        }
        page.push('\n');
    }
    page.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_distinct_and_follow_the_rules() {
        let mut seen = BTreeSet::new();
        for row in TABLE {
            assert!(seen.insert(row.name), "{} twice", row.name);
            assert!(
                row.name.starts_with("trueline_") || row.name.starts_with("process_"),
                "{}",
                row.name
            );
            let counter = row.kind == Kind::Counter;
            assert_eq!(counter, row.name.ends_with("_total"), "{}", row.name);
            for unit in ["seconds", "bytes"] {
                let named = row.name.trim_end_matches("_total").ends_with(unit);
                assert_eq!(row.unit == unit, named, "{}", row.name);
            }
            assert!(row.help.ends_with('.'), "{}", row.name);
        }
    }

    #[test]
    fn the_reference_names_every_metric_once() {
        let page = markdown();
        for row in TABLE {
            let cell = format!("| `{}`", row.name);
            assert_eq!(page.matches(&cell).count(), 1, "{}", row.name);
        }
    }
}
