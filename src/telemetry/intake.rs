//! Whether the records that come are of use: the same questions as the shipped rules ask.
//!
//! | rule of `deploy/prometheus/trueline_service_alerts.yml` | here |
//! |---|---|
//! | `TruelineRecordsRejected` | over 1 % of five minutes' records are rejected, or all that were ever read |
//! | `TruelineOutcomesOrphaned` | over 2 % of half an hour's outcomes find no prediction, or wait on another partition than it |
//! | `TruelineOutcomesStopped` | none matched for an hour, though over 100 did within a day and records are read |
//!
//! A process without Prometheus, and anyone who opens its page, should see the same. The rules wait before
//! they fire, this does not: it says what is. Counters are remembered once a minute for a day, 58 kB a
//! source. Before a process has run for a span, what it has counted since its start stands for it.

use std::collections::{BTreeMap, VecDeque};

use super::facts::SourceFacts;
use crate::alert::Severity;
use crate::collect::join::WrongPartition;

/// Share of rejected records beyond which a source is not well.
pub const REJECTED_SHARE: f64 = 0.01;
/// Share of outcomes without a prediction beyond which a source is not well.
pub const ORPHANED_SHARE: f64 = 0.02;
/// Outcomes of a day from which their end is noticed.
pub const MATCHED_MIN: u64 = 100;

const MINUTE_MS: i64 = 60_000;
const REJECTED_MS: i64 = 5 * MINUTE_MS;
const ORPHANED_MS: i64 = 30 * MINUTE_MS;
const STOPPED_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * STOPPED_MS;

/// What is wrong with a source.
#[derive(Debug, Clone, PartialEq)]
pub struct Concern {
    /// The source; `None` of all together.
    pub source: Option<String>,
    /// The rule that says the same, and the name of its runbook.
    pub rule: &'static str,
    /// How urgent it is.
    pub severity: Severity,
    /// What is wrong, in words.
    pub words: String,
}

/// Counts that only grow.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    read: u64,
    rejected: u64,
    matched: u64,
    orphaned: u64,
}

impl Totals {
    fn of(source: &SourceFacts) -> Totals {
        let c = &source.counters;
        Totals {
            read: c.records,
            rejected: c.rejected.iter().sum(),
            matched: c.matched,
            orphaned: c.orphaned,
        }
    }

    /// What was counted since `before`. Partitions that left take their counts along.
    fn since(self, before: Totals) -> Totals {
        Totals {
            read: self.read.saturating_sub(before.read),
            rejected: self.rejected.saturating_sub(before.rejected),
            matched: self.matched.saturating_sub(before.matched),
            orphaned: self.orphaned.saturating_sub(before.orphaned),
        }
    }

    fn plus(self, o: Totals) -> Totals {
        Totals {
            read: self.read + o.read,
            rejected: self.rejected + o.rejected,
            matched: self.matched + o.matched,
            orphaned: self.orphaned + o.orphaned,
        }
    }
}

/// What each source had counted, minute by minute.
#[derive(Debug, Default)]
pub struct Intake {
    sources: BTreeMap<String, VecDeque<(i64, Totals)>>,
}

impl Intake {
    /// Remembers the counters, once a minute.
    pub fn observe(&mut self, now_ms: i64, sources: &[SourceFacts]) {
        for source in sources {
            let past = self.sources.entry(source.name.clone()).or_default();
            let due = past
                .back()
                .is_none_or(|(at_ms, _)| now_ms - at_ms >= MINUTE_MS);
            if due {
                past.push_back((now_ms, Totals::of(source)));
            }
            while past
                .front()
                .is_some_and(|(at_ms, _)| now_ms - at_ms > DAY_MS + MINUTE_MS)
            {
                past.pop_front();
            }
        }
        self.sources
            .retain(|name, _| sources.iter().any(|s| s.name == *name));
    }

    /// What a source counted within a span, or a minute more; or since it was first seen.
    fn within(&self, source: &SourceFacts, now_ms: i64, span_ms: i64) -> Totals {
        let past = self.sources.get(&source.name);
        let before = past.and_then(|past| {
            let mut past_span = past
                .iter()
                .rev()
                .filter(|(at_ms, _)| now_ms - at_ms >= span_ms);
            past_span.next().or(past.front())
        });
        let now = Totals::of(source);
        now.since(before.map_or(now, |(_, totals)| *totals))
    }

    /// What is wrong now.
    pub fn concerns(&self, now_ms: i64, sources: &[SourceFacts]) -> Vec<Concern> {
        let mut all: Vec<Concern> = Vec::new();
        for source in sources {
            let within = |span_ms| self.within(source, now_ms, span_ms);
            all.extend(rejects(source, within(REJECTED_MS)));
            all.extend(orphans(source, within(ORPHANED_MS)));
        }
        let sum = |span_ms| {
            let each = sources.iter().map(|s| self.within(s, now_ms, span_ms));
            each.fold(Totals::default(), Totals::plus)
        };
        let (hour, day) = (sum(STOPPED_MS), sum(DAY_MS));
        if hour.matched == 0 && hour.read > 0 && day.matched > MATCHED_MIN {
            all.push(Concern {
                source: None,
                rule: "TruelineOutcomesStopped",
                severity: Severity::Page,
                words: "no outcome has found its prediction for an hour".to_owned(),
            });
        }
        all
    }
}

fn rejects(source: &SourceFacts, recent: Totals) -> Option<Concern> {
    let total = Totals::of(source);
    let all = total.read > 0 && total.rejected == total.read;
    let of = if all { total } else { recent };
    let share = of.rejected as f64 / of.read.max(1) as f64;
    (all || share > REJECTED_SHARE).then(|| Concern {
        source: Some(source.name.clone()),
        rule: "TruelineRecordsRejected",
        severity: Severity::Warn,
        words: match of.rejected == of.read {
            true => "all records are rejected".to_owned(),
            false => format!("{} of the records are rejected", percent(share)),
        },
    })
}

fn orphans(source: &SourceFacts, recent: Totals) -> Option<Concern> {
    let outcomes = recent.matched + recent.orphaned;
    let share = recent.orphaned as f64 / outcomes.max(1) as f64;
    (share > ORPHANED_SHARE).then(|| Concern {
        source: Some(source.name.clone()),
        rule: "TruelineOutcomesOrphaned",
        severity: Severity::Warn,
        words: format!("{} of the outcomes find no prediction", percent(share)),
    })
}

/// Outcomes of the topic that wait on another partition than their predictions.
pub fn wrong_partition(topic: &str, sample: &WrongPartition) -> Option<Concern> {
    sample.is_wrong().then(|| Concern {
        source: Some(topic.to_owned()),
        rule: "TruelineOutcomesOrphaned",
        severity: Severity::Page,
        words: format!(
            "{} of the outcomes that wait are on another partition than their prediction: write both topics \
             with the same partitioner",
            percent(sample.share())
        ),
    })
}

/// Two digits.
fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent < 10.0 {
        true => format!("{percent:.1} %"),
        false => format!("{percent:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::{Disposition, Reason};

    fn source(read: u64, rejected: u64, matched: u64, orphaned: u64) -> SourceFacts {
        let mut source = SourceFacts {
            name: "labels".to_owned(),
            ..SourceFacts::default()
        };
        let c = &mut source.counters;
        for _ in 0..rejected {
            c.count(Disposition::Rejected(Reason::BadTime));
        }
        (c.records, c.matched, c.orphaned) = (read, matched, orphaned);
        source
    }

    /// The rules that hold after the last of these, which are some minutes apart.
    fn rules(story: &[(i64, SourceFacts)]) -> Vec<&'static str> {
        let mut intake = Intake::default();
        let (mut now, mut last) = (0, Vec::new());
        for (minutes, source) in story {
            now += minutes * MINUTE_MS;
            last = vec![source.clone()];
            intake.observe(now, &last);
        }
        intake.concerns(now, &last).iter().map(|c| c.rule).collect()
    }

    #[test]
    fn a_source_that_is_wholly_rejected_is_not_well_however_long_ago() {
        let all = || source(500, 500, 0, 0);
        assert_eq!(rules(&[(0, all())]), ["TruelineRecordsRejected"]);
        assert_eq!(
            rules(&[(0, all()), (600, all())]),
            ["TruelineRecordsRejected"]
        );
        assert_eq!(rules(&[(0, source(0, 0, 0, 0))]), [""; 0]);
    }

    #[test]
    fn a_share_of_rejected_records_counts_for_five_minutes() {
        let begin = (0, source(1000, 0, 0, 0));
        let few = (4, source(2000, 9, 0, 0));
        let many = (4, source(2000, 12, 0, 0));
        assert_eq!(rules(&[begin.clone(), few]), [""; 0]);
        assert_eq!(
            rules(&[begin.clone(), many.clone()]),
            ["TruelineRecordsRejected"]
        );
        let later = [(1, source(3000, 12, 0, 0)), (6, source(9000, 12, 0, 0))];
        assert_eq!(rules(&[&[begin, many][..], &later[..]].concat()), [""; 0]);
    }

    #[test]
    fn orphans_beyond_the_share_and_outcomes_that_stop_are_noticed() {
        let begin = (0, source(0, 0, 0, 0));
        let orphans = (5, source(1000, 0, 900, 19));
        assert_eq!(
            rules(&[begin.clone(), orphans]),
            ["TruelineOutcomesOrphaned"]
        );
        let sound = (5, source(1000, 0, 900, 18));
        assert_eq!(rules(&[begin.clone(), sound.clone()]), [""; 0]);
        let read_on = [
            (1, source(1100, 0, 900, 18)),
            (62, source(2000, 0, 900, 18)),
        ];
        let stopped = [&[begin.clone(), sound.clone()][..], &read_on[..]].concat();
        assert_eq!(rules(&stopped), ["TruelineOutcomesStopped"]);
        // Nothing is read: that is the business of other rules.
        let silent = [begin, sound.clone(), (1, sound.1.clone()), (62, sound.1)];
        assert_eq!(rules(&silent), [""; 0]);
    }

    /// The numbers are those of the rules.
    #[test]
    fn the_shipped_rules_ask_the_same() {
        let rules = include_str!("../../deploy/prometheus/trueline_service_alerts.yml");
        let rule = |name: &str| {
            let at = rules.find(&format!("alert: {name}\n")).expect("the rule");
            let rest = &rules[at..];
            rest.split_once("annotations:")
                .expect("annotations")
                .0
                .to_owned()
        };
        let rejected = rule("TruelineRecordsRejected");
        assert!(rejected.contains(&format!("ratio_rate5m > {REJECTED_SHARE}")));
        let orphaned = rule("TruelineOutcomesOrphaned");
        assert!(orphaned.contains(&format!("> {ORPHANED_SHARE}")) && orphaned.contains("[30m]"));
        let stopped = rule("TruelineOutcomesStopped");
        assert!(
            stopped.contains(&format!("[1d])) > {MATCHED_MIN}")) && stopped.contains("[1h])) == 0")
        );
        assert!(stopped.contains("severity: page"));
    }
}
