//! Series of the engine, its state on disk and on the state topic, the configuration and the
//! alerts.

use super::super::facts::{
    CheckpointFacts, EngineFacts, EventLogFacts, Facts, REFUSALS, Role, SinkFacts, SnapshotFacts,
};
use super::super::metrics::Id;
use super::super::published::Published;
use super::{Families, comparisons, detectors, one_if};

/// Exports the engine, its state, its role, the configuration and the alerts.
pub(in crate::telemetry) fn state(published: &Published, families: &mut Families) {
    let facts = published.facts();
    engine(&facts.engine, families);
    let asked = facts.registry;
    let results = [
        ("found", asked.found),
        ("absent", asked.absent),
        ("failed", asked.failed),
    ];
    for (result, n) in results {
        families.put(Id::RegistryRequests, &[result], n as f64);
    }
    reports(&facts, families);
    families.put(Id::SpillErrors, &[], facts.spill_errors as f64);
    snapshot(&facts.snapshot, families);
    if let Some(facts) = &facts.checkpoints {
        checkpoints(facts, families);
    }
    role(&facts.role, families);
    families.put(Id::ConfigLoaded, &[], one_if(facts.config.loaded));
    if let Some(ms) = facts.config.loaded_ms {
        families.put_ms(Id::ConfigTime, &[], ms);
    }
    let needs_restart = facts.config.needs_restart as f64;
    families.put(Id::ConfigRestart, &[], needs_restart);
    if !facts.config.hash.is_empty() {
        families.put(Id::ConfigInfo, &[&facts.config.hash], 1.0);
    }
    families.put(Id::HistoryPoints, &[], facts.history.points as f64);
    families.put(Id::HistoryBytes, &[], facts.history.bytes as f64);
    families.put(Id::HistoryRefused, &[], facts.history.refused as f64);
    families.put(Id::HistoryErrors, &[], facts.history.errors as f64);
    for (topic, log) in &facts.event_logs {
        event_log(topic, log, families);
    }
    let lost = facts.alert_writes_lost;
    let writes = [
        ("journal", lost.journal),
        ("notification", lost.notifications),
        ("record", lost.records),
    ];
    for (what, n) in writes {
        families.put(Id::AlertWritesLost, &[what], n as f64);
    }
    for facts in &facts.sinks {
        sink(facts, families);
    }
    families.put(Id::TapListeners, &[], published.taps.listeners() as f64);
    families.put(Id::TapMissed, &[], published.taps.missed() as f64);
    families.put_durations(&published.evaluations());
}

fn event_log(topic: &str, log: &EventLogFacts, families: &mut Families) {
    families.put(Id::EventLogBytes, &[topic], log.bytes as f64);
    families.put(Id::EventLogEvents, &[topic], log.appended as f64);
    families.put(Id::EventLogDuplicates, &[topic], log.duplicates as f64);
    for (reason, n) in REFUSALS.iter().zip(log.refused) {
        families.put(Id::EventLogRefused, &[topic, reason], n as f64);
    }
    families.put(
        Id::EventLogKeysForgotten,
        &[topic],
        log.keys_forgotten as f64,
    );
}

fn engine(facts: &EngineFacts, families: &mut Families) {
    families.put(Id::Streams, &[], facts.streams as f64);
    families.put(Id::StreamsExpired, &[], facts.streams_expired as f64);
    families.put(Id::StreamsDropped, &[], facts.streams_dropped as f64);
    families.put(Id::Panes, &[], facts.panes as f64);
    families.put(Id::StateBytes, &[], facts.state_bytes as f64);
    families.put(Id::Retained, &[], facts.retained as f64);
    families.put(Id::PendingBytes, &[], facts.pending_bytes as f64);
    families.put(Id::Spilled, &[], facts.spilled as f64);
    families.put(Id::SpillBytes, &[], facts.spill_bytes as f64);
}

/// Accounts of the false-alarm budget, and comparisons of versions.
fn reports(facts: &Facts, families: &mut Families) {
    for account in facts.ledger.iter() {
        for (row, value) in detectors::of_account(account) {
            families.put(row, &[&account.account], value);
        }
    }
    for report in facts.comparisons.iter() {
        let (id, view) = (&report.id, report.id.view.to_string());
        let labels = [&*id.model, &*view, &*id.champion, &*id.challenger];
        for (row, value) in comparisons::of_pair(report) {
            families.put(row, &labels, value);
        }
    }
    for (plan, counts, retained) in &facts.pair_counts {
        for (end, n) in comparisons::ends(counts) {
            families.put(Id::PairRows, &[plan, end], n as f64);
        }
        families.put(Id::PairUnrevised, &[plan], counts.unrevised as f64);
        families.put(Id::PairRowsRetained, &[plan], *retained as f64);
    }
}

fn snapshot(facts: &SnapshotFacts, families: &mut Families) {
    families.put(Id::SnapshotErrors, &[], facts.errors as f64);
    families.put(Id::SnapshotsRefused, &[], facts.refused as f64);
    if let Some(ms) = facts.last_ms {
        families.put_ms(Id::SnapshotTime, &[], ms);
        families.put(Id::SnapshotDuration, &[], facts.seconds);
        families.put(Id::SnapshotBytes, &[], facts.bytes as f64);
    }
}

fn checkpoints(facts: &CheckpointFacts, families: &mut Families) {
    let counts = &facts.counts;
    let results = [
        ("written", counts.written),
        ("read", counts.read),
        ("refused", counts.refused),
    ];
    for (result, n) in results {
        families.put(Id::Checkpoints, &[result], n as f64);
    }
    families.put(Id::CheckpointBytesWritten, &[], counts.written_bytes as f64);
    families.put(Id::CheckpointBytesRead, &[], counts.read_bytes as f64);
    families.put(Id::ClaimsSuperseded, &[], counts.superseded as f64);
    families.put(Id::CheckpointDeltasCut, &[], counts.deltas_cut as f64);
    families.put(Id::CheckpointRestore, &[], counts.restore_seconds);
    for (topic, partition, at_ms) in &facts.last_ms {
        if let Some(ms) = at_ms {
            families.put_ms(Id::CheckpointTime, &[topic, &partition.to_string()], *ms);
        }
    }
}

/// Role of the process, and the state of the partitions that it judges.
fn role(role: &Role, families: &mut Families) {
    let (name, facts) = match role {
        Role::Alone => return,
        Role::Worker => ("worker", None),
        Role::Judge(facts) => ("judge", Some(facts)),
        Role::Standby => ("standby", None),
    };
    families.put(Id::ProcessRole, &[name], 1.0);
    let Some(facts) = facts else { return };
    let partitions = facts.partitions;
    let states = [
        ("covered", partitions.covered),
        ("behind", partitions.behind),
        ("stale", partitions.stale),
        ("missing", partitions.missing),
    ];
    for (state, n) in states {
        families.put(Id::JudgePartitions, &[state], n as f64);
    }
    families.put(Id::JudgeDelay, &[], facts.delay_ms as f64 / 1000.0);
    families.put(Id::JudgeUncovered, &[], facts.uncovered as f64);
    families.put(Id::JudgePanesSkipped, &[], facts.skipped as f64);
    if let Some(tasks) = facts.tasks {
        families.put(Id::JudgeTasks, &[], tasks as f64);
    }
}

fn sink(facts: &SinkFacts, families: &mut Families) {
    let label = [facts.name.as_str()];
    families.put(Id::NotificationsSent, &label, facts.sent as f64);
    families.put(Id::NotificationsFailed, &label, facts.failed as f64);
    families.put(Id::NotificationsRetried, &label, facts.retried as f64);
    families.put(Id::NotificationsDropped, &label, facts.dropped as f64);
    families.put(Id::NotificationsQueued, &label, facts.queued as f64);
    if let Some(ms) = facts.last_success_ms {
        families.put_ms(Id::NotificationsLastSuccess, &label, ms);
    }
}
