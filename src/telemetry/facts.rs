//! Facts that the program publishes about itself besides the reports of its streams.
//!
//! They are plain values. Their writers replace them through
//! [`Published::update`](super::Published::update); HTTP and `/metrics` read them.

use std::sync::Arc;

use percent_encoding::percent_decode_str;

use crate::alert::{AlertState, Holds, Severity};
use crate::collect::join::WrongPartition;
use crate::collect::{PairCounts, SourceCounters};
use crate::judge::{AccountReport, ComparisonReport, StreamId};
use crate::monitor::activity::Unjudged;
use crate::monitor::liveness::Freshness;
use crate::report::table::printable;

/// Facts about one source, as of its last batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceFacts {
    /// Name of the source: the topic or the file. It is unique.
    pub name: String,
    /// Its records by disposition, including those of earlier processes.
    pub counters: SourceCounters,
    /// The part of `counters` that earlier processes counted.
    pub brought: SourceCounters,
    /// The source with the outcomes of its predictions; itself if it carries both.
    pub outcomes: Option<String>,
    /// Rejected records that the dead-letter topic acknowledged.
    pub dead_letters_delivered: u64,
    /// Rejected records that could not be written to the dead-letter topic.
    pub dead_letters_failed: u64,
    /// Records in memory that wait for their schema.
    pub awaiting_schema: u64,
    /// Other members of its group although only this process is allowed.
    pub other_members: u64,
    /// Open records that came from a snapshot, or with partitions from other processes.
    pub moved_in: u64,
    /// Open records that left with partitions.
    pub moved_out: u64,
    /// Offsets that the broker deleted before they were read.
    pub lost: u64,
    /// The last record that was rejected since the start.
    pub last_rejection: Option<Arc<LastRejection>>,
}

/// A record that was rejected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastRejection {
    /// When it was read, in ms since 1970; `None` if no clock was read.
    pub at_ms: Option<i64>,
    /// Its partition.
    pub partition: i32,
    /// Its offset.
    pub offset: i64,
    /// The reason by its name.
    pub reason: &'static str,
    /// The reason in words.
    pub detail: String,
}

/// How the alerts of a model's streams begin and end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertRules {
    /// The model's name in the configuration.
    pub model: String,
    /// Hold times.
    pub holds: Holds,
    /// Whether a window alone raises an alert.
    pub window_alerts: bool,
    /// If streams of single scores raise no alert, the reason and the remedy.
    pub no_alert: Option<String>,
}

/// The history of windows and alerts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HistoryFacts {
    /// Points in memory.
    pub points: u64,
    /// Bytes of its file.
    pub bytes: u64,
    /// Points and alerts that were not kept: a cap was reached, or the disk was too slow.
    pub refused: u64,
    /// Failed writes of the file.
    pub errors: u64,
}

/// Reasons to refuse requests with events.
pub const REFUSALS: [&str; 6] = ["busy", "full", "key_reused", "disk", "rejected", "space"];

/// A log of posted events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventLogFacts {
    /// Bytes on disk.
    pub bytes: u64,
    /// Offset of the oldest event.
    pub first: u64,
    /// Offset after the newest event.
    pub end: u64,
    /// Events appended since the start.
    pub appended: u64,
    /// Requests since the start whose key was known.
    pub duplicates: u64,
    /// Keys that are remembered.
    pub keys: u64,
    /// Keys that were forgotten because there were too many.
    pub keys_forgotten: u64,
    /// Requests refused since the start, by [`REFUSALS`].
    pub refused: [u64; REFUSALS.len()],
    /// Why the log accepts no more events, if so.
    pub fault: Option<String>,
    /// Why the last read failed, if it did. Reads are retried.
    pub read_fault: Option<String>,
}

/// One assigned partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartitionFacts {
    /// Topic.
    pub topic: String,
    /// Number of the partition in its topic.
    pub partition: i32,
    /// Offset of the next record to read.
    pub position: i64,
    /// Records between the position and the end of the partition, if the broker reported the end.
    pub lag: Option<i64>,
    /// Delay in ms of the newest event read behind this machine's clock, while records are unread;
    /// 0 at the end.
    pub lag_ms: Option<i64>,
    /// Highest event time seen minus lateness; `None` before the first event.
    pub watermark_ms: Option<i64>,
    /// The end was reached and confirmed, so the partition does not delay the others.
    pub idle: bool,
    /// Time for which an open transaction has hidden its next records, in ms.
    pub hidden_ms: Option<i64>,
    /// The partition cannot be read for now, and notifications do not wait for it: it is suspended,
    /// an open transaction hides its records, or its broker is away.
    pub unread: bool,
}

/// The watermark over all partitions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatermarkFacts {
    /// Event time up to which all is read and judged. `None` before every partition has had a
    /// record, and while a judge has judged nothing yet.
    pub time_ms: Option<i64>,
    /// The partition that holds the watermark back although later events were counted, and how long
    /// the watermark has stood still, in ms.
    pub held: Option<(String, i32, i64)>,
}

/// Size of the engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineFacts {
    /// Monitored streams.
    pub streams: u64,
    /// Streams removed because they were unused.
    pub streams_expired: u64,
    /// Streams of a snapshot that were dropped because they do not match the configuration.
    pub streams_dropped: u64,
    /// Sealed and open panes over all streams.
    pub panes: u64,
    /// Bytes of the state of all streams.
    pub state_bytes: u64,
    /// Predictions retained for their outcomes.
    pub retained: u64,
    /// Retained predictions that are on disk because memory is full.
    pub spilled: u64,
    /// Bytes of memory of the retained predictions that are not spilled.
    pub pending_bytes: u64,
    /// Bytes on disk of the spilled predictions.
    pub spill_bytes: u64,
}

/// Snapshots on disk.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SnapshotFacts {
    /// When the last good snapshot was complete, in ms since 1970.
    pub last_ms: Option<i64>,
    /// Seconds that the last snapshot took.
    pub seconds: f64,
    /// Bytes of the last snapshot.
    pub bytes: u64,
    /// Failed attempts. They do not affect the state in memory.
    pub errors: u64,
    /// Torn, damaged or foreign files that were skipped in favour of an older one at startup.
    pub refused: u64,
}

/// Counts of checkpoints of partitions on the state topic.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckpointCounts {
    /// Checkpoints written.
    pub written: u64,
    /// Bytes written, of checkpoints and journals.
    pub written_bytes: u64,
    /// Checkpoints read.
    pub read: u64,
    /// Bytes read to find checkpoints.
    pub read_bytes: u64,
    /// Checkpoints skipped in favour of an older one.
    pub refused: u64,
    /// Claims of other processes that followed one of ours while we held the partition.
    pub superseded: u64,
    /// Deltas dropped for lack of memory before a checkpoint contained them.
    pub deltas_cut: u64,
    /// Seconds that the last take-over took.
    pub restore_seconds: f64,
}

/// Checkpoints of partitions on the state topic.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckpointFacts {
    /// Counts of the checkpoints.
    pub counts: CheckpointCounts,
    /// When the last checkpoint of each partition was written or read: topic, partition, ms.
    pub last_ms: Vec<(String, i32, Option<i64>)>,
}

/// Role of a process in its consumer group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    /// It judges what it counts.
    #[default]
    Alone,
    /// It counts; another process judges.
    Worker,
    /// It judges what the workers count.
    Judge(JudgeFacts),
    /// It is configured to judge, but another process has since claimed the lease.
    Standby,
}

impl Role {
    /// Whether it judges and therefore has streams and alerts.
    pub fn judges(&self) -> bool {
        matches!(self, Role::Alone | Role::Judge(_))
    }
}

/// How many partitions of a judge have each [`Freshness`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FreshnessCounts {
    /// Their checkpoint holds all of their records.
    pub covered: u64,
    /// Another checkpoint is awaited.
    pub behind: u64,
    /// No checkpoint came for too long.
    pub stale: u64,
    /// There is no checkpoint, but there are records.
    pub missing: u64,
}

impl FreshnessCounts {
    /// Counts a partition.
    pub fn count(&mut self, freshness: Freshness) {
        let n = match freshness {
            Freshness::Covered => &mut self.covered,
            Freshness::Behind => &mut self.behind,
            Freshness::Stale => &mut self.stale,
            Freshness::Missing => &mut self.missing,
        };
        *n += 1;
    }
}

/// The partitions that a judge aggregates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JudgeFacts {
    /// Numbers of partitions by the age of their checkpoints.
    pub partitions: FreshnessCounts,
    /// Age in ms of the oldest checkpoint that still has to be replaced by a newer one.
    pub delay_ms: i64,
    /// Records that no checkpoint in use contains.
    pub uncovered: u64,
    /// Panes that ended without a verdict.
    pub skipped: u64,
    /// Some records are read but not judged, or not read for the first time.
    pub backlog: bool,
    /// Upper bound of the age of records that no checkpoint holds yet, in ms; `None` while unknown.
    pub lag_ms: Option<i64>,
    /// Number of judge partitions that it judges, if several processes judge.
    pub tasks: Option<u64>,
}

/// One alert, for all streams that share it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AlertFacts {
    /// Its fingerprint.
    pub fingerprint: String,
    /// Its name: the model, with version, segment and view if alerts are grouped by them.
    pub name: String,
    /// The model.
    pub model: String,
    /// The version, if alerts are grouped by it; otherwise "".
    pub version: String,
    /// The segment, if alerts are grouped by it; otherwise "".
    pub segment: String,
    /// The view, if alerts are grouped by it; otherwise "".
    pub view: String,
    /// The most urgent state of its streams.
    pub state: AlertState,
    /// Their greatest severity.
    pub severity: Severity,
    /// When the state began.
    pub since_ms: Option<i64>,
    /// Its streams, the most urgent first.
    pub streams: Vec<StreamId>,
}

impl AlertFacts {
    /// Whether `wanted` may refer to this alert: its fingerprint or name, those of one of its
    /// streams, or the key of a record, which begins with a fingerprint.
    pub fn is_called(&self, wanted: &str) -> bool {
        self.is_named(wanted) || self.has_fingerprint(wanted)
    }

    /// Whether `wanted` is the name of the alert or of one of its streams: as it is,
    /// percent-encoded like the ids of the API, or with control characters written out, as it is
    /// shown.
    pub fn is_named(&self, wanted: &str) -> bool {
        let decoded = percent_decode_str(wanted).decode_utf8();
        let same = |name: &str| {
            name == wanted || decoded.as_deref() == Ok(name) || printable(name) == wanted
        };
        same(&self.name) || self.streams.iter().any(|id| same(&id.to_string()))
    }

    fn has_fingerprint(&self, wanted: &str) -> bool {
        let begins = |fingerprint: &str| {
            let rest = wanted.strip_prefix(fingerprint);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let stream = |id: &StreamId| begins(&id.fingerprint());
        begins(&self.fingerprint) || self.streams.iter().any(stream)
    }
}

/// One sink of alerts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SinkFacts {
    /// Its name.
    pub name: String,
    /// Notifications accepted.
    pub sent: u64,
    /// Notifications rejected permanently by the receiver.
    pub failed: u64,
    /// Failed attempts that were, or will be, retried.
    pub retried: u64,
    /// Notifications dropped because the queue was full.
    pub dropped: u64,
    /// Notifications in the queue.
    pub queued: u64,
    /// When the receiver last accepted a notification, in ms since 1970.
    pub last_success_ms: Option<i64>,
    /// Why the last attempt failed; `None` after a success.
    pub trouble: Option<String>,
}

/// The last attempt to load the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigFacts {
    /// Whether it succeeded. A failed reload leaves the old configuration active.
    pub loaded: bool,
    /// When the active configuration was loaded, in ms since 1970.
    pub loaded_ms: Option<i64>,
    /// Hash of the active configuration; empty before the first load.
    pub hash: String,
    /// How many keys have another value in the file, and need a restart.
    pub needs_restart: usize,
}

/// Requests for schemas by result. References count with the schema that needs them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SchemaRequests {
    /// The schema was returned.
    pub found: u64,
    /// The registry has no such schema.
    pub absent: u64,
    /// There was no response, or an unusable one.
    pub failed: u64,
}

/// Writes about alerts that were lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LostAlertWrites {
    /// Lines of the journal.
    pub journal: u64,
    /// Notifications whose queue was full.
    pub notifications: u64,
    /// Records of the audit log.
    pub records: u64,
}

/// All facts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// One entry per source.
    pub sources: Vec<SourceFacts>,
    /// The watermark; `None` in a process that does not judge.
    pub watermark: Option<WatermarkFacts>,
    /// One entry per assigned partition.
    pub partitions: Vec<PartitionFacts>,
    /// Schema requests to the registry.
    pub registry: SchemaRequests,
    /// Accounts of the false-alarm budget.
    pub ledger: Arc<[AccountReport]>,
    /// Pairs of versions that scored the same ids.
    pub comparisons: Arc<[ComparisonReport]>,
    /// Per model section: results of its comparison rows, and rows retained.
    pub pair_counts: Vec<(String, PairCounts, usize)>,
    /// All alerts, including inactive ones.
    pub alerts: Arc<[AlertFacts]>,
    /// One entry per sink of alerts.
    pub sinks: Vec<SinkFacts>,
    /// Alert writes that were lost.
    pub alert_writes_lost: LostAlertWrites,
    /// Size of the engine.
    pub engine: EngineFacts,
    /// Failures of the spill store.
    pub spill_errors: u64,
    /// Snapshots.
    pub snapshot: SnapshotFacts,
    /// Checkpoints; `None` without a state topic.
    pub checkpoints: Option<CheckpointFacts>,
    /// Role of the process in its group.
    pub role: Role,
    /// Topics and partitions that are assigned but cannot be read.
    pub suspended: Vec<(String, i32)>,
    /// Waiting data of streams that were not judged yet.
    pub unjudged: Vec<Unjudged>,
    /// By source, whether outcomes wait on another partition than their predictions.
    pub wrong_partitions: Vec<(String, WrongPartition)>,
    /// The history.
    pub history: HistoryFacts,
    /// Logs of posted events by topic.
    pub event_logs: Vec<(String, EventLogFacts)>,
    /// How alerts begin and end, by model.
    pub alert_rules: Arc<[AlertRules]>,
    /// Configuration.
    pub config: ConfigFacts,
}

impl Facts {
    /// The waiting data of a stream, if none of it was judged yet.
    pub fn unjudged(&self, id: &StreamId) -> Option<&Unjudged> {
        let named = |u: &&Unjudged| {
            (&u.model, &u.version, &u.segment) == (&id.model, &id.version, &id.segment)
        };
        self.unjudged.iter().find(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::view::View;

    #[test]
    fn an_alert_is_called_by_its_names_as_they_are_and_as_they_are_shown() {
        let stream = StreamId {
            model: "team/a\u{7}%".to_owned(),
            version: "1".to_owned(),
            segment: String::new(),
            view: View::Binary,
        };
        let alert = AlertFacts {
            fingerprint: "00ff".to_owned(),
            name: stream.model.clone(),
            streams: vec![stream.clone()],
            ..AlertFacts::default()
        };
        let key = format!("{}-7-page", stream.fingerprint());
        for wanted in [
            "00ff",
            &key,
            "team/a\u{7}%",
            "team/a\\u{7}%",
            "team%2Fa%07%25",
            "team/a\u{7}%/1//binary",
            "team/a\\u{7}%/1//binary",
            "team%2Fa%07%25/1//binary",
            "team%2fa%07%25%2f1%2f%2fbinary",
        ] {
            assert!(alert.is_called(wanted), "{wanted}");
            assert_eq!(
                alert.is_named(wanted),
                wanted.starts_with("team"),
                "{wanted}"
            );
        }
        for wanted in ["", "00f", "team", "team%2Fa%07", "team/a\\u{8}%", "%ff"] {
            assert!(!alert.is_called(wanted), "{wanted}");
        }
    }
}
