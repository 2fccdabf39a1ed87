//! Series of sources and partitions.
//!
//! Counters begin at 0 with the process, as Prometheus expects; counts from a snapshot are not
//! exported. After a crash those counts are lower than the last scraped values, and `increase`
//! would then count all of them as new.

use super::super::facts::SourceFacts;
use super::super::metrics::Id;
use super::super::published::Published;
use super::{Families, one_if};
use crate::collect::{Reason, Refusal, SourceCounters};

/// Exports the counters of all sources and the state of all partitions.
pub(in crate::telemetry) fn input(published: &Published, families: &mut Families) {
    let facts = published.facts();
    for source in &facts.sources {
        let name = source.name.as_str();
        records(name, &counted(source), families);
        let mut others = facts.sources.iter();
        if let Some(outcomes) = others.find(|s| source.outcomes.as_ref() == Some(&s.name)) {
            let matched = counted(outcomes).matched as f64;
            families.put(Id::PredictionsMatched, &[name], matched);
        }
        let delivered = source.dead_letters_delivered as f64;
        let failed = source.dead_letters_failed as f64;
        families.put(Id::DeadLetters, &[name, "delivered"], delivered);
        families.put(Id::DeadLetters, &[name, "failed"], failed);
        families.put(Id::AwaitingSchema, &[name], source.awaiting_schema as f64);
        families.put(Id::GroupRivals, &[name], source.other_members as f64);
        families.put(Id::RecordsLost, &[name], source.lost as f64);
        families.put(Id::RecordsMoved, &[name, "in"], source.moved_in as f64);
        families.put(Id::RecordsMoved, &[name, "out"], source.moved_out as f64);
    }
    for (topic, sample) in &facts.wrong_partitions {
        // The share of only a few waiting outcomes means nothing.
        let share = if sample.is_wrong() {
            sample.share()
        } else {
            0.0
        };
        families.put(Id::WrongPartition, &[topic], share);
    }
    for (topic, partition) in &facts.suspended {
        families.put(
            Id::PartitionSuspended,
            &[topic, &partition.to_string()],
            1.0,
        );
    }
    if let Some(watermark) = &facts.watermark {
        if let Some(ms) = watermark.time_ms {
            families.put_ms(Id::Watermark, &[], ms);
        }
        if let Some((topic, partition, ms)) = &watermark.held {
            families.put_ms(Id::WatermarkHeld, &[topic, &partition.to_string()], *ms);
        }
    }
    for partition in &facts.partitions {
        let number = partition.partition.to_string();
        let values = [partition.topic.as_str(), &number];
        families.put(Id::PartitionPosition, &values, partition.position as f64);
        families.put(Id::PartitionIdle, &values, one_if(partition.idle));
        if let Some(lag) = partition.lag {
            families.put(Id::PartitionLag, &values, lag as f64);
        }
        if let Some(ms) = partition.lag_ms {
            families.put_ms(Id::PartitionLagSeconds, &values, ms);
        }
        if let Some(ms) = partition.hidden_ms {
            families.put_ms(Id::PartitionHidden, &values, ms);
        }
        if let Some(ms) = partition.watermark_ms {
            families.put_ms(Id::PartitionWatermark, &values, ms);
        }
    }
}

/// The counts of a source by this process alone.
fn counted(source: &SourceFacts) -> SourceCounters {
    source.counters.since(&source.brought)
}

/// Exports the records of one source by disposition. All reasons are exported from the start, so
/// that the first rejection is an increase from 0 and not a new series, which `rate` would miss.
fn records(source: &str, counters: &SourceCounters, families: &mut Families) {
    families.put(Id::RecordsRead, &[source], counters.records as f64);
    families.put(
        Id::RecordsRenormalised,
        &[source],
        counters.renormalised as f64,
    );
    let open = [("pending", counters.pending), ("waiting", counters.waiting)];
    for (state, count) in open {
        families.put(Id::RecordsOpen, &[source, state], count as f64);
    }
    families.put(Id::RecordsImplied, &[source], counters.implied as f64);
    families.put(Id::RecordsOther, &[source], counters.other as f64);
    families.put(Id::RecordsAhead, &[source], counters.ahead as f64);
    families.put(Id::IdsEvicted, &[source], counters.ids_evicted as f64);
    families.put(Id::VectorRefused, &[source], counters.no_cell as f64);
    let mut put = |disposition, reason, count: u64| {
        families.put(Id::Records, &[source, disposition, reason], count as f64);
    };
    for (state, count) in counters.states() {
        put(state, "", count);
    }
    for &reason in Reason::ALL {
        put("rejected", reason.as_str(), counters.rejected(reason));
    }
    for &refusal in Refusal::ALL {
        put("refused", refusal.as_str(), counters.refused(refusal));
    }
}
