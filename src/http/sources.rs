//! The sources, for the page and as JSON: what was read, what became of it, and what is wrong.

use crate::report::moment::rfc3339;
use serde_json::{Value, json};

use crate::collect::Reason;
use crate::telemetry::Published;
use crate::telemetry::concerns::Concern;
use crate::telemetry::facts::SourceFacts;

/// Records of a source that are not read yet, and the greatest delay of its partitions in ms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lag {
    /// Number of records; `None` while the broker has not reported it.
    pub records: Option<i64>,
    /// Greatest delay in ms, if known.
    pub ms: Option<i64>,
}

impl Lag {
    /// The lag of the partitions of a topic.
    pub fn of(published: &Published, topic: &str) -> Lag {
        let facts = published.facts();
        let partitions = facts.partitions.iter().filter(|p| p.topic == topic);
        let mut lag = Lag::default();
        for p in partitions {
            lag.records = p.lag.map(|n| n + lag.records.unwrap_or(0)).or(lag.records);
            lag.ms = lag.ms.max(p.lag_ms);
        }
        lag
    }
}

/// Why records of a source were rejected, with counts, the most frequent reason first.
pub fn rejected(source: &SourceFacts) -> Vec<(&'static str, u64)> {
    let each = Reason::ALL.iter().zip(source.counters.rejected);
    let mut reasons: Vec<(&str, u64)> = each.map(|(r, n)| (r.as_str(), n)).collect();
    reasons.retain(|(_, n)| *n > 0);
    reasons.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    reasons
}

/// All sources as JSON.
pub fn json(published: &Published) -> Value {
    let facts = published.facts();
    let concerns = published.concerns();
    let sources: Vec<Value> = facts
        .sources
        .iter()
        .map(|source| entry(source, &concerns, Lag::of(published, &source.name)))
        .collect();
    let all: Vec<Value> = concerns.iter().map(concern).collect();
    json!({ "count": sources.len(), "ok": all.is_empty(), "concerns": all, "sources": sources })
}

fn entry(source: &SourceFacts, concerns: &[Concern], lag: Lag) -> Value {
    let c = &source.counters;
    let reasons = rejected(source).into_iter();
    let reasons: serde_json::Map<String, Value> = reasons
        .map(|(reason, n)| (reason.to_owned(), json!(n)))
        .collect();
    let last = source.last_rejection.as_deref().map(|last| {
        json!({
            "reason": last.reason,
            "detail": last.detail,
            "partition": last.partition,
            "offset": last.offset,
            "at_ms": last.at_ms,
            "at": last.at_ms.map(rfc3339),
        })
    });
    let here = |c: &&Concern| c.source == source.name;
    let here: Vec<Value> = concerns.iter().filter(here).map(concern).collect();
    json!({
        "source": source.name,
        "ok": here.is_empty(),
        "concerns": here,
        "records": c.records,
        "observed": c.observed,
        "rejected": c.rejected.iter().sum::<u64>(),
        "rejected_by_reason": reasons,
        "last_rejection": last,
        "refused": c.refused.iter().sum::<u64>(),
        "pending": c.pending,
        "waiting": c.waiting,
        "matched": c.matched,
        "orphaned": c.orphaned,
        "expired": c.expired,
        "implied": c.implied,
        "late": c.late,
        "duplicate": c.duplicate,
        "conflict": c.conflict,
        "revised": c.revised,
        "replayed": c.replayed,
        "lost": source.lost,
        "lag_records": lag.records,
        "lag_ms": lag.ms,
    })
}

/// What is wrong, as JSON.
pub fn concern(concern: &Concern) -> Value {
    json!({
        "source": concern.source,
        "severity": concern.severity.as_str(),
        "what": concern.words,
        "rule": concern.rule,
        "runbook": format!("/runbooks/{}", concern.rule),
    })
}
