//! The rows of the table, and the macro that numbers them.

use super::row::{Group, Kind, Metric};

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
        "1 from the first alarm of the detector until the stream is clear again.";
    DetectorCalled Stream Gauge "trueline_detector_called" "0 or 1" []
        "1 while the e-BH procedure flags the stream among the streams of its account. When many streams degrade at once, e-BH flags them before each one alarms.";
    DetectorAlarms Stream Counter "trueline_detector_alarms_total" "alarms" []
        "Alarms since the stream started. A stream that stays miscalibrated raises one confirming alarm after another.";
    DetectorEvidence Stream Gauge "trueline_detector_evidence_ratio" "1" []
        "Log evidence since the detector last restarted, divided by the alarm threshold. The detector raises an alarm at 1, once its bets have doubled what is at stake.";
    DetectorIdle Stream Gauge "trueline_detector_idle" "0 or 1" []
        "1 while the detector bets on nothing and so raises no alarm: it is on hold, or events belong to too few clusters. The page of the stream says why.";
    DetectorSince Stream Gauge "trueline_detector_alarm_since_timestamp_seconds" "seconds" []
        "Event time of the first alarm since the stream was clear. Present while alarmed.";
    DetectorOnset Stream Gauge "trueline_detector_onset_timestamp_seconds" "seconds" []
        "Estimated event time at which the miscalibration started. Present while alarmed.";
    DetectorShare Stream Gauge "trueline_detector_evidence_share" "1" ["kind"]
        "Share of the alarm's evidence by kind of error: intercept_up, intercept_down (odds of all scores), slope_up, slope_down, shift_up, shift_down (probabilities of all scores), noise (flipped outcomes), bump (one range of scores), cells (many ranges). Present while alarmed.";
    DetectorMissed Stream Counter "trueline_detector_outcomes_missed_total" "outcomes" ["how"]
        "Outcomes that arrived (added) or changed (revised) after the detector had consumed their pane. They correct windows, not the detector.";
    AnytimeEvents Stream Gauge "trueline_anytime_events" "events" []
        "Events behind the anytime-valid bounds: since the present alarm began, or since the detector last started over, as it does after an alarm, a hold and a deployment.";
    AnytimeResidualLower Stream Gauge "trueline_anytime_residual_mean_lower" "1" []
        "Lower bound of the mean of outcome minus score, simultaneously valid at all times.";
    AnytimeResidualUpper Stream Gauge "trueline_anytime_residual_mean_upper" "1" []
        "Upper bound of the mean of outcome minus score, simultaneously valid at all times.";
    AnytimeEceLower Stream Gauge "trueline_anytime_ece_l2_lower" "1" []
        "Lower bound of the l2 expected calibration error, simultaneously valid at all times. It needs no bins and no smoothness assumption.";
    AnytimeBinLower Stream Gauge "trueline_anytime_bin_residual_mean_lower" "1" ["cell"]
        "Lower bound of the mean residual of each of 16 bins, simultaneously valid for all bins at all times. The label is the lower edge of the bin.";
    AnytimeBinUpper Stream Gauge "trueline_anytime_bin_residual_mean_upper" "1" ["cell"]
        "Upper bound of the mean residual of each of 16 bins, simultaneously valid for all bins at all times. The label is the lower edge of the bin.";

    LedgerStreams Account Gauge "trueline_ledger_streams" "streams" []
        "Streams that draw on the account.";
    LedgerShare Account Gauge "trueline_ledger_share" "1" []
        "Share of the budget that these streams stake. For a budget of events, the mean share.";
    LedgerThreshold Account Gauge "trueline_ledger_log_threshold" "nats" []
        "Log evidence at which a stream raises an alarm.";
    LedgerExpected Account Counter "trueline_ledger_expected_false_alarms_total" "alarms" []
        "Upper bound of the expected number of false alarms so far if all streams were calibrated. It is also the largest expected share of false discoveries among the streams that e-BH flags.";
    LedgerAlarms Account Counter "trueline_ledger_alarms_total" "alarms" []
        "Alarms of all streams so far, true and false.";
    LedgerAlarmed Account Gauge "trueline_ledger_streams_alarmed" "streams" []
        "Streams that are in alarm.";
    LedgerCalled Account Gauge "trueline_ledger_streams_called" "streams" []
        "Streams that e-BH flags.";

    ComparisonPairs Comparison Counter "trueline_comparison_pairs_total" "pairs" []
        "Ids that both versions scored and whose outcome is the same.";
    ComparisonBrier Comparison Gauge "trueline_comparison_brier_difference" "1" []
        "Brier score of the challenger minus that of the champion. Negative values favour the challenger.";
    ComparisonBrierLower Comparison Gauge "trueline_comparison_brier_difference_lower" "1" []
        "Lower end of the anytime-valid interval of the expected Brier score difference.";
    ComparisonBrierUpper Comparison Gauge "trueline_comparison_brier_difference_upper" "1" []
        "Upper end of the anytime-valid interval of the expected Brier score difference. Below 0 the challenger is better at the configured confidence.";
    ComparisonLarge Comparison Gauge "trueline_comparison_in_the_large_difference" "1" []
        "Absolute mean residual of the challenger minus that of the champion.";
    ComparisonLargeLower Comparison Gauge "trueline_comparison_in_the_large_difference_lower" "1" []
        "Lower end of the anytime-valid interval of the difference in absolute mean residual.";
    ComparisonLargeUpper Comparison Gauge "trueline_comparison_in_the_large_difference_upper" "1" []
        "Upper end of the anytime-valid interval of the difference in absolute mean residual.";
    ComparisonCalibration Comparison Gauge "trueline_comparison_calibration_difference" "1" []
        "Squared calibration error of the challenger minus that of the champion: the Brier score that recalibration in 16 cells would recover from each.";
    ComparisonCalibrationLower Comparison Gauge "trueline_comparison_calibration_difference_lower" "1" []
        "Lower end of the anytime-valid interval of the difference in squared calibration error.";
    ComparisonCalibrationUpper Comparison Gauge "trueline_comparison_calibration_difference_upper" "1" []
        "Upper end of the anytime-valid interval of the difference in squared calibration error. Below 0 the challenger is better calibrated.";

    StreamAlert Stream Gauge "trueline_stream_alert" "0 or 1" ["state"]
        "1 for the current state of the stream's alert, 0 for the other states: inactive, pending, firing, resolved. Notifications follow this alert.";
    StreamSeverity Stream Gauge "trueline_stream_alert_severity" "0 or 1" ["severity"]
        "1 while the alert fires with this severity: warn, page.";

    Events Window Gauge "trueline_window_events" "events" []
        "Events with an outcome in the window (n).";
    WindowStart Window Gauge "trueline_window_start_timestamp_seconds" "seconds" []
        "Event time at which the window starts.";
    WindowEnd Window Gauge "trueline_window_end_timestamp_seconds" "seconds" []
        "Event time at which the window ends. Its distance from now is the age of the verdict's data.";
    WindowEvaluated Window Gauge "trueline_window_evaluated_timestamp_seconds" "seconds" []
        "End of the window that was last evaluated, in event time.";
    LastEvent Window Gauge "trueline_last_event_timestamp_seconds" "seconds" []
        "Event time of the newest event of the stream. All windows of a stream share it.";
    Verdict Window Gauge "trueline_verdict" "0 or 1" ["state"]
        "1 for the current verdict, 0 for the others: calibrated, miscalibrated, undecided.";
    Undecided Window Gauge "trueline_undecided" "1" ["reason"]
        "1 while the verdict is undecided, with the reason: too_few, immature, stale, stalled, late, capacity, coverage, few_outcomes, few_clusters, inconclusive.";
    Alert Window Gauge "trueline_alert" "0 or 1" ["state"]
        "1 for the current state of the window's alert, 0 for the other states: inactive, pending, firing, resolved.";
    Coverage Window Gauge "trueline_coverage" "1" []
        "Share of the window's mature predictions that have an outcome of their own. Absent if none is missing.";
    CoverageCell Window Gauge "trueline_coverage_cell" "1" ["cell"]
        "Share of the mature predictions with a score in the cell that have an outcome of their own. The label is the lower edge of the cell.";
    AlertSince Window Gauge "trueline_alert_since_timestamp_seconds" "seconds" []
        "When the alert entered its current state.";

    Positives Evaluation Gauge "trueline_window_positives" "events" []
        "Events of the window with a positive outcome.";
    EventsEffective Evaluation Gauge "trueline_window_events_effective" "events" []
        "Effective number of events: (sum of weights)^2 / (sum of squared weights). Absent if events are not weighted.";
    EventRate Evaluation Gauge "trueline_event_rate" "1" []
        "Share of positive outcomes in the window.";
    ScoreMean Evaluation Gauge "trueline_score_mean" "1" []
        "Mean score in the window.";
    ResidualMean Evaluation Gauge "trueline_residual_mean" "1" []
        "Calibration in the large: mean of outcome minus score. Positive values mean that the scores are too low.";
    EceL1 Evaluation Gauge "trueline_ece_l1" "1" []
        "Plug-in l1 expected calibration error over 16 equal cells. Biased upwards at small n.";
    EceL2 Evaluation Gauge "trueline_ece_l2" "1" []
        "Debiased estimate of the l2 expected calibration error; 0 if the estimate of its square is negative.";
    EceL2Squared Evaluation Gauge "trueline_ece_l2_squared" "1" []
        "Debiased estimate of the squared l2 expected calibration error. It is unbiased and therefore may be negative.";
    EceL2Lower Evaluation Gauge "trueline_ece_l2_lower" "1" []
        "Lower end of the confidence interval of the l2 expected calibration error.";
    EceL2Upper Evaluation Gauge "trueline_ece_l2_upper" "1" []
        "Upper end of the confidence interval of the l2 expected calibration error.";
    EceL2ContainsZero Evaluation Gauge "trueline_ece_l2_contains_zero" "0 or 1" []
        "1 while the confidence interval contains perfect calibration.";
    EceL2Detectable Evaluation Gauge "trueline_ece_l2_detectable" "1" []
        "l2 expected calibration error of the smallest change of all odds that the test that decides detects with 80 % power at this n and with the measured overdispersion.";
    EceL2Tolerance Evaluation Gauge "trueline_ece_l2_tolerance" "1" []
        "Tolerated l2-ECE; a relative tolerance is resolved by the mean score of the window.";
    ObservedExpected Evaluation Gauge "trueline_observed_expected_ratio" "1" []
        "Observed divided by expected outcomes of the rarer kind. Present only if they are rare and the tolerance is relative: then this ratio decides, not the l2-ECE.";
    ObservedExpectedLower Evaluation Gauge "trueline_observed_expected_lower" "1" []
        "Lower end of the confidence interval of the ratio of observed to expected outcomes.";
    ObservedExpectedUpper Evaluation Gauge "trueline_observed_expected_upper" "1" []
        "Upper end of the confidence interval of the ratio of observed to expected outcomes.";
    ObservedExpectedTolerance Evaluation Gauge "trueline_observed_expected_tolerance" "1" []
        "The ratio of observed to expected outcomes and its inverse may be at most this.";
    Mce Evaluation Gauge "trueline_max_calibration_error" "1" []
        "Largest absolute mean residual among the cells with enough events.";
    PValue Evaluation Gauge "trueline_p_value" "1" []
        "p-value of the test that decides: by default the combination of its parts. Absent if nothing can be tested.";
    PartPValue Evaluation Gauge "trueline_part_p_value" "1" ["part"]
        "p-value of one part of the combined test: coarse, fine, smooth, cumulative, values.";
    MoreEvents Evaluation Gauge "trueline_more_events" "events" []
        "About how many more events would decide an inconclusive window. Absent if it is decided.";
    TcalPValue Evaluation Gauge "trueline_tcal_p_value" "1" []
        "p-value of the adaptive T-Cal test over all its levels. Absent if none can be tested.";
    TcalReject Evaluation Gauge "trueline_tcal_reject" "0 or 1" []
        "1 while T-Cal rejects calibration at the configured level.";
    DiscretePValue Evaluation Gauge "trueline_discrete_p_value" "1" []
        "p-value of the exact test for discrete scores. Absent if that test did not run.";
    ClassAdjustedPValue Evaluation Gauge "trueline_class_adjusted_p_value" "1" []
        "p-value of a class view, adjusted for all class views of its stream by Holm's method. It controls the family-wise error.";
    Kce Evaluation Gauge "trueline_kce" "kernel calibration error" []
        "Kernel calibration error of a kernel view, biased upwards. It is computed from random features if they decide, otherwise from the sample.";
    KceLower Evaluation Gauge "trueline_kce_lower" "kernel calibration error" []
        "Lower bound of the kernel calibration error and of the l2-ECE of the whole vector, which is never smaller.";
    KernelPValue Evaluation Gauge "trueline_kernel_p_value" "1" []
        "p-value of the kernel test, conditional on the predictions.";
    KernelSample Evaluation Gauge "trueline_kernel_sample_events" "events" []
        "Events of the window in the sample whose pairs the kernel test compares.";
    Reject Evaluation Gauge "trueline_reject" "0 or 1" []
        "1 while the test that decides rejects calibration. Miscalibrated also needs an error shown to exceed the tolerance.";
    Direction Evaluation Gauge "trueline_direction" "1" ["direction"]
        "1 for the direction of the error: none, too_high, too_low, over_confident, under_confident, inverted, local.";
    RecalibrationGain Evaluation Gauge "trueline_recalibration_log_loss_gain" "nats" ["method"]
        "Reduction of the log loss per event by the recommended map, on the window after the one it was fitted to. Absent if no map is recommended.";
    RecalibrationEce Evaluation Gauge "trueline_recalibration_ece_l2" "1" ["method"]
        "Debiased l2 expected calibration error that remains after the recommended map, on the same window.";
    Brier Evaluation Gauge "trueline_brier_score" "1" []
        "Mean squared difference between score and outcome.";
    BrierReliability Evaluation Gauge "trueline_brier_reliability" "1" []
        "Part of the Brier score caused by miscalibration.";
    BrierResolution Evaluation Gauge "trueline_brier_resolution" "1" []
        "Part by which the resolution of the scores lowers the Brier score.";
    BrierUncertainty Evaluation Gauge "trueline_brier_uncertainty" "1" []
        "Brier score of a constant prediction of the event rate.";
    LogLoss Evaluation Gauge "trueline_log_loss" "nats" []
        "Mean log loss.";
    SpiegelhalterZ Evaluation Gauge "trueline_spiegelhalter_z" "1" []
        "Spiegelhalter's z statistic.";
    Ks Evaluation Gauge "trueline_ks_statistic" "1" []
        "Kolmogorov-Smirnov statistic of the cumulative residuals.";

    CellEvents Cell Gauge "trueline_cell_events" "events" []
        "Events in the cell. The label is the lower edge of the cell.";
    CellScoreMean Cell Gauge "trueline_cell_score_mean" "1" []
        "Mean score in the cell.";
    CellEventRate Cell Gauge "trueline_cell_event_rate" "1" []
        "Share of positive outcomes in the cell.";
    CellNullLower Cell Gauge "trueline_cell_null_lower" "1" []
        "Lower end of the consistency bar: the range of the event rate if the scores are calibrated.";
    CellNullUpper Cell Gauge "trueline_cell_null_upper" "1" []
        "Upper end of the consistency bar.";

    RecordsRead Input Counter "trueline_records_read_total" "records" ["source"]
        "Records read since the process began. A record that contains several events counts once per event.";
    Records Input Counter "trueline_records_total" "records" ["source", "disposition", "reason"]
        "Records by disposition: observed, expired, matched, orphaned, duplicate, conflict, revised, late, replayed, rejected, refused. Together with trueline_records_open they add up to the records read and those that moved in or out.";
    RecordsOpen Input Gauge "trueline_records_open" "records" ["source", "state"]
        "Records without a final disposition: pending predictions, waiting outcomes.";
    WrongPartition Input Gauge "trueline_outcomes_wrong_partition_ratio" "ratio" ["source"]
        "Share of a sample of waiting outcomes whose prediction waits on another partition. They never meet: both topics need the same partitioner and number of partitions.";
    RecordsLost Input Counter "trueline_records_lost_total" "records" ["source"]
        "Upper bound of the records that the broker deleted before they were read: the offsets between the last record read and the oldest one left.";
    RecordsMoved Input Counter "trueline_records_moved_total" "records" ["source", "direction"]
        "Open records that an earlier process read and this one goes on with (in), or that left with their partitions (out). Records read plus arrivals equal all dispositions, open ones included, plus departures.";
    PredictionsMatched Input Counter "trueline_predictions_matched_total" "records" ["source"]
        "Outcomes that found their prediction, by the source of the predictions.";
    RecordsImplied Input Counter "trueline_records_implied_total" "records" ["source"]
        "Observed predictions without an outcome whose outcome was implied at maturity.";
    VectorRefused Input Counter "trueline_vector_refused_total" "records" ["source"]
        "Observed records for which a vector view (top_k, full, kernel) had no cell or sample row left. The affected windows are undecided (capacity).";
    IdsEvicted Input Counter "trueline_ids_evicted_total" "ids" ["source"]
        "Ids of counted records that were forgotten before their time because there are more than ids_max. A repeat of their records would be counted.";
    RecordsAhead Input Counter "trueline_records_ahead_total" "records" ["source"]
        "Records whose time was set aside because it is further ahead of their partition than future_max. They are counted, and move the watermark only together with others.";
    RecordsOther Input Counter "trueline_records_other_total" "records" ["source"]
        "Observed records counted in the segment `other` because the cap on segments is reached.";
    PairRows Input Counter "trueline_comparison_rows_total" "rows" ["plan", "end"]
        "Observations of models whose versions are compared, by result: paired, alone, duplicate, refused (by rows_max), nameless (no id); and pairs that were not formed because the versions disagree about the outcome (contradicted), whose rows are also alone unless another pair has them. The label plan is the name of the model's section.";
    PairUnrevised Input Counter "trueline_comparison_unrevised_total" "outcomes" ["plan"]
        "Outcomes per compared view that arrived after maturity and would have changed a pair. Pairs keep the outcome they were formed with.";
    PairRowsRetained Input Gauge "trueline_comparison_rows_retained" "rows" ["plan"]
        "Observations in memory that wait for other versions to score the same id.";
    Retained Process Gauge "trueline_predictions_retained" "records" []
        "Predictions retained: pending ones, and mature ones that may still be revised.";
    PendingBytes Process Gauge "trueline_predictions_memory_bytes" "bytes" []
        "Memory used by retained predictions, excluding those on disk. pending_memory caps it.";
    Spilled Process Gauge "trueline_predictions_spilled" "records" []
        "Retained predictions that do not fit in memory and are in the spill store on disk.";
    SpillBytes Process Gauge "trueline_spill_bytes" "bytes" []
        "Size of the spill store on disk.";
    SpillErrors Process Counter "trueline_spill_errors_total" "failures" []
        "Failures of the spill store. The process ends at the first failure, without a snapshot, and can be restarted.";
    RecordsRenormalised Input Counter "trueline_records_renormalised_total" "records" ["source"]
        "Records whose probabilities were divided by their sum because rounding made it differ from 1. Predictions that wait for outcomes count when they are read.";
    DeadLetters Input Counter "trueline_dead_letters_total" "records" ["source", "result"]
        "Rejected records sent to the dead-letter topic: delivered, failed.";
    AwaitingSchema Input Gauge "trueline_records_awaiting_schema" "records" ["source"]
        "Records in memory that wait for their schema. Their partitions are paused.";
    GroupRivals Input Gauge "trueline_group_rivals" "processes" ["source"]
        "Other processes where there may be only this one: under its `instance`, or in its group without a state topic.";
    RegistryRequests Process Counter "trueline_registry_requests_total" "requests" ["result"]
        "Schema requests to the registry by result: found, absent, failed.";
    PartitionPosition Input Gauge "trueline_partition_position_offset" "offset" ["topic", "partition"]
        "Offset of the next record to read.";
    PartitionLag Input Gauge "trueline_partition_lag_records" "records" ["topic", "partition"]
        "Records between the position and the end of the partition.";
    PartitionLagSeconds Input Gauge "trueline_partition_lag_seconds" "seconds" ["topic", "partition"]
        "Time by which the newest event read is behind the clock of this machine while records are unread; 0 at the end of the partition.";
    PartitionWatermark Input Gauge "trueline_partition_watermark_timestamp_seconds" "seconds" ["topic", "partition"]
        "Event time up to which the partition is complete.";
    PartitionHidden Input Gauge "trueline_partition_transaction_seconds" "seconds" ["topic", "partition"]
        "How long an open transaction has hidden the partition's next records. After `open_transaction_max` verdicts go on without them. Absent otherwise.";
    Watermark Input Gauge "trueline_watermark_timestamp_seconds" "seconds" []
        "Event time up to which all partitions are complete and windows are judged.";
    WatermarkHeld Input Gauge "trueline_watermark_held_seconds" "seconds" ["topic", "partition"]
        "How long the watermark has stood still because it waits for this partition, while later events are counted. After `stalled_after` verdicts are withdrawn. Absent where nothing waits.";
    PartitionIdle Input Gauge "trueline_partition_idle" "0 or 1" ["topic", "partition"]
        "1 while the partition has nothing to read and does not delay the others.";

    Streams Process Gauge "trueline_streams" "streams" []
        "Monitored streams.";
    StreamsExpired Process Counter "trueline_streams_expired_total" "streams" []
        "Streams removed because they were unused.";
    StreamsDropped Process Counter "trueline_streams_dropped_total" "streams" []
        "Streams of a snapshot that were removed because the views, cells, windows or lateness of their model changed.";
    Panes Process Gauge "trueline_panes" "panes" []
        "Panes in memory over all streams.";
    StateBytes Process Gauge "trueline_state_bytes" "bytes" []
        "Memory used by the state of all streams.";
    SeriesShown Process Gauge "trueline_series" "series" []
        "Series of streams and windows in this scrape.";
    SeriesRefused Process Gauge "trueline_series_refused" "series" []
        "Series of streams and windows omitted from this scrape because of the cap.";
    SnapshotTime Process Gauge "trueline_snapshot_timestamp_seconds" "seconds" []
        "When the last snapshot was complete on disk.";
    SnapshotDuration Process Gauge "trueline_snapshot_duration_seconds" "seconds" []
        "Time taken by the last snapshot.";
    SnapshotBytes Process Gauge "trueline_snapshot_bytes" "bytes" []
        "Size of the last snapshot.";
    SnapshotErrors Process Counter "trueline_snapshot_errors_total" "snapshots" []
        "Snapshots that failed.";
    SnapshotsRefused Process Counter "trueline_snapshots_refused_total" "files" []
        "Torn, damaged or foreign snapshot files that were skipped in favour of an older one at startup.";
    Checkpoints Process Counter "trueline_checkpoints_total" "checkpoints" ["result"]
        "Partition checkpoints in the state topic: written, read, refused; records of notifications that cannot be read are refused too. Absent without a state topic, like the other checkpoint metrics.";
    CheckpointBytesWritten Process Counter "trueline_checkpoint_written_bytes_total" "bytes" []
        "Bytes written to the state topic.";
    CheckpointBytesRead Process Counter "trueline_checkpoint_read_bytes_total" "bytes" []
        "Bytes of partition state read from the state topic.";
    CheckpointTime Process Gauge "trueline_checkpoint_timestamp_seconds" "seconds" ["topic", "partition"]
        "When the partition's state was last written to or read from the state topic. It is written only after a change.";
    CheckpointRestore Process Gauge "trueline_checkpoint_restore_seconds" "seconds" []
        "Time taken to restore the last partition that was assigned.";
    CheckpointDeltasCut Process Counter "trueline_checkpoint_deltas_cut_total" "deltas" []
        "Sealed panes and corrections that a worker dropped because checkpoints could not be written for too long. The judge skips their slides.";
    ClaimsSuperseded Process Counter "trueline_claims_superseded_total" "claims" []
        "Claims of other processes to a partition that the group has assigned to this one. It claims the partition again after a session.";
    PartitionSuspended Process Gauge "trueline_partition_suspended" "0 or 1" ["topic", "partition"]
        "1 for an assigned partition that is not read, because its state cannot be used or because it is shorter than what was already read. Absent otherwise.";
    ProcessRole Process Gauge "trueline_process_role" "1" ["role"]
        "Always 1, with the role of the process in a group of workers and a judge: worker, judge, or standby (another process has claimed the judge lease).";
    JudgePartitions Process Gauge "trueline_judge_partitions" "partitions" ["state"]
        "Partitions that the judge aggregates: covered (the checkpoint is up to date), behind (waiting for a checkpoint), stale (no checkpoint for `missing_after`; verdicts continue without it), missing (there never was a checkpoint).";
    JudgeDelay Process Gauge "trueline_judge_delay_seconds" "seconds" []
        "Age of the oldest checkpoint among partitions that are not covered; 0 if all are covered.";
    JudgeUncovered Process Gauge "trueline_judge_uncovered_records" "records" []
        "Records on the brokers that no checkpoint in use contains.";
    JudgePanesSkipped Process Counter "trueline_judge_panes_skipped_total" "panes" []
        "Panes without a verdict because the judge did not read all deltas: checkpoints were compacted away before, were written before the judge began, or lacked deltas (`trueline_checkpoint_deltas_cut_total`). Sums are exact again from the next checkpoint.";
    JudgeTasks Process Gauge "trueline_judge_tasks" "judge partitions" []
        "Judge partitions that this process judges, where several processes judge (`judge_partitions`). Their sum over the processes is `judge_partitions` while every model is judged.";
    EvaluationSeconds Process Histogram "trueline_evaluation_seconds" "seconds" []
        "Time to evaluate one window.";
    ConfigLoaded Process Gauge "trueline_config_last_load_success" "0 or 1" []
        "1 if the last attempt to load the configuration succeeded.";
    ConfigTime Process Gauge "trueline_config_loaded_timestamp_seconds" "seconds" []
        "When the active configuration was loaded.";
    ConfigRestart Process Gauge "trueline_config_keys_need_restart" "keys" []
        "Keys whose value in the configuration file, when it was last reloaded, needs a restart to take effect.";
    ConfigInfo Process Gauge "trueline_config_info" "1" ["hash"]
        "Always 1. The label is a hash of the active configuration.";
    NotificationsSent Process Counter "trueline_notifications_sent_total" "notifications" ["sink"]
        "Notifications that the sink accepted.";
    NotificationsFailed Process Counter "trueline_notifications_failed_total" "notifications" ["sink"]
        "Notifications that the sink rejected permanently.";
    NotificationsRetried Process Counter "trueline_notification_retries_total" "attempts" ["sink"]
        "Failed delivery attempts that are retried.";
    NotificationsDropped Process Counter "trueline_notifications_dropped_total" "notifications" ["sink"]
        "Notifications dropped because the queue of the sink was full.";
    NotificationsQueued Process Gauge "trueline_notifications_queued" "notifications" ["sink"]
        "Notifications that wait for the sink.";
    NotificationsLastSuccess Process Gauge "trueline_notification_last_success_timestamp_seconds" "seconds" ["sink"]
        "When the sink last accepted a notification.";
    HistoryPoints Process Gauge "trueline_history_points" "points" []
        "Judgements of windows in the history that pages and the API show.";
    HistoryBytes Process Gauge "trueline_history_bytes" "bytes" []
        "Size of the history in the state directory.";
    HistoryRefused Process Counter "trueline_history_refused_total" "points" []
        "Judgements and alerts that were not kept: of streams beyond 10,000, or because the disk was too slow. No verdict depends on them.";
    HistoryErrors Process Counter "trueline_history_errors_total" "failures" []
        "Failures to read or write the history. After one it continues in memory until the next start.";
    EventLogBytes Input Gauge "trueline_event_log_bytes" "bytes" ["topic"]
        "Size of the log of posted events on disk. Only with a source whose input is http.";
    EventLogEvents Input Counter "trueline_event_log_events_total" "events" ["topic"]
        "Posted events that are on disk.";
    EventLogDuplicates Input Counter "trueline_event_log_duplicates_total" "requests" ["topic"]
        "Requests whose idempotency key was known, so that nothing was appended again.";
    EventLogRefused Input Counter "trueline_event_log_refused_total" "requests" ["topic", "reason"]
        "Requests that appended nothing: events that would be rejected (rejected), a key of other events (key_reused), unread events fill the log (full), too many requests wait (busy), the disk failed (disk), the disk has too little room beside snapshots (space).";
    EventLogKeysForgotten Input Counter "trueline_event_log_keys_forgotten_total" "keys" ["topic"]
        "Idempotency keys that were forgotten early because there were too many. Their requests would append again.";
    AlertWritesLost Process Counter "trueline_alert_writes_lost_total" "writes" ["what"]
        "Alert writes that were lost: journal lines (journal; a restart may notify again), notifications whose queue was full (notification; sent later while the alert fires), audit entries (record).";
    TapListeners Process Gauge "trueline_tap_listeners" "listeners" []
        "Clients that listen to the tap of labelled predictions.";
    TapMissed Process Counter "trueline_tap_missed_total" "pairs" []
        "Labelled predictions that a tap listener missed because of its rate limit or its full buffer.";
    Ready Process Gauge "trueline_ready" "0 or 1" ["part"]
        "1 for each part that is ready.";
    LoopSilence Process Gauge "trueline_loop_silence_seconds" "seconds" ["loop"]
        "Time since the last iteration of the loop.";
    HttpConnections Process Gauge "trueline_http_connections" "connections" []
        "Open HTTP connections.";
    HttpRefused Process Counter "trueline_http_connections_refused_total" "connections" []
        "HTTP connections refused because of the cap, or ended to make room for a new one.";
    HttpResponses Process Counter "trueline_http_responses_total" "responses" ["class"]
        "HTTP responses by status class: 2xx, 4xx, 5xx.";
    LogSuppressed Process Counter "trueline_log_lines_suppressed_total" "lines" []
        "Log lines suppressed by the rate limit per call site, or because nobody reads them.";
    BuildInfo Process Gauge "trueline_build_info" "1" ["version"]
        "Always 1. The label is the version.";
    ProcessStart Process Gauge "process_start_time_seconds" "seconds" []
        "When the process started.";
    ProcessMemory Process Gauge "process_resident_memory_bytes" "bytes" []
        "Resident memory. Absent on systems that do not report it.";
}
