//! Whether incoming records are usable, by the same conditions as in the shipped rules.
//!
//! | rule of `deploy/prometheus/trueline_service_alerts.yml` | here |
//! |---|---|
//! | `TruelineRecordsRejected` | over 1 % of five minutes' records are rejected, or all that were ever read |
//! | `TruelineOutcomesOrphaned` | over 2 % of half an hour's outcomes find no prediction, or wait on another partition than it |
//! | `TruelineRecordsLate` | over 5 % of five minutes' records came too late, or most of all that were ever read |
//! | `TruelineOutcomesStopped`, by source of predictions | none matched for an hour, though over 100 did within a day and records are read |
//! | the same | none matched for ten minutes in which 100 predictions were given up and the day's share lets expect ten, though over 100 did within a day |
//! | `TruelineOutcomesAbsent`, likewise | none matched ever, and over 1000 predictions were given up |
//!
//! The pages show the same conditions, also without Prometheus. The rules wait before they fire;
//! the pages show the present state. Counters are stored once a minute for a day, 58 kB per source.
//! Until a process has run for a whole span, its counts since the start are used instead.

use std::collections::{BTreeMap, VecDeque};

use self::totals::Totals;
use super::facts::SourceFacts;
use crate::alert::Severity;
use crate::collect::join::WrongPartition;

mod totals;

/// Share of rejected records above which a source is unhealthy.
pub const REJECTED_SHARE: f64 = 0.01;
/// Share of outcomes without a prediction above which a source is unhealthy.
pub const ORPHANED_SHARE: f64 = 0.02;
/// Share of late records above which a source is unhealthy.
pub const LATE_SHARE: f64 = 0.05;
/// Share of rejected records above which hardly any records are left.
const REJECTED_PAGE: f64 = 0.99;
/// Share of late records above which hardly any records are left.
const LATE_PAGE: f64 = 0.5;
/// Predictions given up above which the lack of any outcome is reported.
pub const ABSENT_MIN: u64 = 1000;
/// Predictions given up in ten minutes at which the lack of outcomes is reported.
const GIVEN_UP_MIN: u64 = 100;
/// Outcomes that must have been expected for them: if outcomes are rare, ten minutes without one
/// are common.
pub const EXPECTED_MIN: f64 = 10.0;
/// Outcomes of a day above which their end is reported.
pub const MATCHED_MIN: u64 = 100;

const MINUTE_MS: i64 = 60_000;
const RECENT_MS: i64 = 5 * MINUTE_MS;
const LATELY_MS: i64 = 10 * MINUTE_MS;
const ORPHANED_MS: i64 = 30 * MINUTE_MS;
const STOPPED_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * STOPPED_MS;

/// A problem of a source.
#[derive(Debug, Clone, PartialEq)]
pub struct Concern {
    /// The source; for missing outcomes, the source of their predictions.
    pub source: String,
    /// The rule with the same condition, which also names its runbook.
    pub rule: &'static str,
    /// How urgent it is.
    pub severity: Severity,
    /// The problem in words.
    pub words: String,
}

/// The counts of each source, minute by minute.
#[derive(Debug, Default)]
pub struct CountHistory {
    sources: BTreeMap<String, VecDeque<(i64, Totals)>>,
    /// The concerns at the last call of [`CountHistory::changes`], by source and rule.
    known: BTreeMap<(String, &'static str), Concern>,
}

impl CountHistory {
    /// Stores the counters once a minute, by a clock that never steps back.
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

    /// Given all current concerns, returns those that are new and those that have ended.
    pub fn changes(&mut self, now: Vec<Concern>) -> (Vec<Concern>, Vec<Concern>) {
        let now = now.into_iter().map(|c| ((c.source.clone(), c.rule), c));
        let now: BTreeMap<_, Concern> = now.collect();
        let others = |of: &BTreeMap<_, Concern>, than: &BTreeMap<_, Concern>| {
            let others = of.iter().filter(|(key, _)| !than.contains_key(*key));
            others.map(|(_, c)| c.clone()).collect::<Vec<Concern>>()
        };
        let changes = (others(&now, &self.known), others(&self.known, &now));
        self.known = now;
        changes
    }

    /// Counts of a source within a span or up to a minute more, or since it was first seen.
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

    /// The current concerns.
    pub fn concerns(&self, now_ms: i64, sources: &[SourceFacts]) -> Vec<Concern> {
        let mut all: Vec<Concern> = Vec::new();
        for source in sources {
            let within = |span_ms| self.within(source, now_ms, span_ms);
            all.extend(rejects(source, within(RECENT_MS)));
            all.extend(late(source, within(RECENT_MS)));
            all.extend(orphans(source, within(ORPHANED_MS)));
        }
        for predictions in sources {
            let of = |s: &&SourceFacts| predictions.outcomes.as_ref() == Some(&s.name);
            if let Some(outcomes) = sources.iter().find(of) {
                all.extend(self.outcomes(now_ms, predictions, outcomes));
            }
        }
        all
    }

    /// The concern about missing outcomes of a source's predictions, if any.
    fn outcomes(
        &self,
        now_ms: i64,
        predictions: &SourceFacts,
        outcomes: &SourceFacts,
    ) -> Option<Concern> {
        let concern = |rule, severity, words| {
            Some(Concern {
                source: predictions.name.clone(),
                rule,
                severity,
                words,
            })
        };
        let within = |span_ms| {
            let matched = self.within(outcomes, now_ms, span_ms).matched;
            (matched, self.within(predictions, now_ms, span_ms))
        };
        let (ever, matched_ever) = (Totals::of(predictions), Totals::of(outcomes).matched);
        let given_up = ever.given_up();
        if matched_ever == 0 && given_up > ABSENT_MIN {
            let what = match ever.implied {
                0 => "were given up without one",
                _ => "count as if theirs had not happened",
            };
            let words =
                format!("no outcome has ever found its prediction; {given_up} predictions {what}");
            return concern("TruelineOutcomesAbsent", Severity::Page, words);
        }
        let (matched_in_day, day) = within(DAY_MS);
        let (matched_in_hour, hour) = within(STOPPED_MS);
        let (matched_lately, lately) = within(LATELY_MS);
        if matched_in_day <= MATCHED_MIN {
            return None;
        }
        if matched_in_hour == 0 && hour.read > 0 {
            let words = "no outcome has found its prediction for an hour".to_owned();
            return concern("TruelineOutcomesStopped", Severity::Page, words);
        }
        let n = lately.given_up();
        let expected = n as f64 * matched_in_day as f64 / day.given_up().max(1) as f64;
        if matched_lately == 0 && n >= GIVEN_UP_MIN && expected >= EXPECTED_MIN {
            let words = format!(
                "no outcome has found its prediction for ten minutes; {n} predictions expired or \
                 counted as negative"
            );
            return concern("TruelineOutcomesStopped", Severity::Warn, words);
        }
        None
    }
}

fn rejects(source: &SourceFacts, recent: Totals) -> Option<Concern> {
    let total = Totals::of(source);
    let all = total.read > 0 && total.rejected == total.read;
    let of = if all { total } else { recent };
    let share = of.rejected as f64 / of.read.max(1) as f64;
    (all || share > REJECTED_SHARE).then(|| Concern {
        source: source.name.clone(),
        rule: "TruelineRecordsRejected",
        severity: severity(share > REJECTED_PAGE),
        words: match of.rejected == of.read {
            true => "all records are rejected".to_owned(),
            false => format!("{} of the records are rejected", percent(share)),
        },
    })
}

fn late(source: &SourceFacts, recent: Totals) -> Option<Concern> {
    let total = Totals::of(source);
    let most = 2 * total.late > total.read;
    let of = if most { total } else { recent };
    let share = of.late as f64 / of.read.max(1) as f64;
    (share > LATE_SHARE).then(|| Concern {
        source: source.name.clone(),
        rule: "TruelineRecordsLate",
        severity: severity(share > LATE_PAGE),
        words: format!(
            "{} of the records came too late: their panes were already sealed, so they count in no window",
            percent(share)
        ),
    })
}

fn severity(page: bool) -> Severity {
    match page {
        true => Severity::Page,
        false => Severity::Warn,
    }
}

fn orphans(source: &SourceFacts, recent: Totals) -> Option<Concern> {
    let outcomes = recent.matched + recent.orphaned;
    let share = recent.orphaned as f64 / outcomes.max(1) as f64;
    (share > ORPHANED_SHARE).then(|| Concern {
        source: source.name.clone(),
        rule: "TruelineOutcomesOrphaned",
        severity: Severity::Warn,
        words: format!("{} of the outcomes find no prediction", percent(share)),
    })
}

/// The concern about assigned partitions of a topic that cannot be read.
pub fn unread(topic: &str, partitions: usize) -> Concern {
    Concern {
        source: topic.to_owned(),
        rule: "TruelineNotReady",
        severity: Severity::Page,
        words: match partitions {
            1 => "a partition is not read: see /ready".to_owned(),
            n => format!("{n} partitions are not read: see /ready"),
        },
    }
}

/// The concern about outcomes that wait on another partition than their predictions.
pub fn wrong_partition(topic: &str, sample: &WrongPartition) -> Option<Concern> {
    sample.is_wrong().then(|| Concern {
        source: topic.to_owned(),
        rule: "TruelineOutcomesOrphaned",
        severity: Severity::Warn,
        words: format!(
            "{} of the outcomes that wait are on another partition than their prediction: write both topics \
             with the same partitioner, and give both as many partitions",
            percent(sample.share())
        ),
    })
}

/// Formats a share with two digits.
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
            outcomes: Some("labels".to_owned()),
            ..SourceFacts::default()
        };
        let c = &mut source.counters;
        for _ in 0..rejected {
            c.count(Disposition::Rejected(Reason::BadTime));
        }
        (c.records, c.matched, c.orphaned) = (read, matched, orphaned);
        source
    }

    /// The rules that hold at the end of a story of (minutes since the previous entry, source).
    fn rules(story: &[(i64, SourceFacts)]) -> Vec<&'static str> {
        let mut history = CountHistory::default();
        let (mut now, mut last) = (0, Vec::new());
        for (minutes, source) in story {
            now += minutes * MINUTE_MS;
            last = vec![source.clone()];
            history.observe(now, &last);
        }
        history
            .concerns(now, &last)
            .iter()
            .map(|c| c.rule)
            .collect()
    }

    #[test]
    fn what_begins_and_ends_to_be_wrong_is_a_change_and_what_stays_is_none() {
        let mut history = CountHistory::default();
        let concern = |words: &str| Concern {
            words: words.to_owned(),
            ..unread("labels", 1)
        };
        let mut count = |now: &[Concern]| {
            let (came, went) = history.changes(now.to_vec());
            (came.len(), went.len())
        };
        assert_eq!(count(&[concern("5 %")]), (1, 0));
        assert_eq!(count(&[concern("6 %")]), (0, 0));
        assert_eq!(count(&[]), (0, 1));
        assert_eq!(count(&[]), (0, 0));
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
        // If nothing is read, other rules report it.
        let silent = [begin, sound.clone(), (1, sound.1.clone()), (62, sound.1)];
        assert_eq!(rules(&silent), [""; 0]);
    }

    #[test]
    fn late_records_and_outcomes_that_never_came_are_noticed() {
        let of = |read, late, implied, expired| {
            let mut one = source(read, 0, 0, 0);
            let c = &mut one.counters;
            (c.late, c.implied, c.expired) = (late, implied, expired);
            one
        };
        let begin = (0, of(0, 0, 0, 0));
        let late = |n| [begin.clone(), (4, of(1000, n, 0, 0))];
        assert_eq!(rules(&late(50)), [""; 0]);
        assert_eq!(rules(&late(51)), ["TruelineRecordsLate"]);
        // Even after a good month, five minutes are enough for a page.
        let severity = |n| {
            let (before, now) = (of(1_000_000, 0, 0, 0), of(1_001_000, n, 0, 0));
            let mut history = CountHistory::default();
            history.observe(0, std::slice::from_ref(&before));
            history.concerns(5 * MINUTE_MS, &[now])[0].severity
        };
        assert_eq!([500, 501].map(severity), [Severity::Warn, Severity::Page]);
        // They are long past but nearly all records.
        let batch = [
            (0, of(20_001, 20_000, 0, 0)),
            (600, of(20_001, 20_000, 0, 0)),
        ];
        assert_eq!(rules(&batch), ["TruelineRecordsLate"]);
        assert_eq!(rules(&[(0, of(5000, 0, 600, 400))]), [""; 0]);
        assert_eq!(
            rules(&[(0, of(5000, 0, 600, 401))]),
            ["TruelineOutcomesAbsent"]
        );
    }

    #[test]
    fn outcomes_of_one_source_do_not_hide_that_those_of_another_never_came() {
        let of = |name: &str, outcomes: Option<&str>, matched, implied| {
            let mut one = source(5000, 0, matched, 0);
            one.counters.implied = implied;
            (one.name, one.outcomes) = (name.to_owned(), outcomes.map(str::to_owned));
            one
        };
        let sources = [
            of("credit", Some("repaid"), 0, 0),
            of("fraud", Some("chargebacks"), 0, 2000),
            of("repaid", None, 5000, 0),
            of("chargebacks", None, 0, 0),
        ];
        let found = CountHistory::default().concerns(0, &sources);
        let found: Vec<_> = found.iter().map(|c| (c.rule, c.source.as_str())).collect();
        assert_eq!(found, [("TruelineOutcomesAbsent", "fraud")]);
    }

    #[test]
    fn predictions_given_up_while_no_outcome_comes_are_noticed_within_minutes() {
        let of = |matched, expired, implied| {
            let mut one = source(10_000 + matched + expired + implied, 0, matched, 0);
            (one.counters.expired, one.counters.implied) = (expired, implied);
            one
        };
        let story = |before, expired, implied| {
            let now = of(500, expired, before + implied);
            rules(&[(0, of(0, 0, 0)), (5, of(500, 0, before)), (11, now)])
        };
        let stopped = ["TruelineOutcomesStopped"];
        assert_eq!(story(0, 99, 0), [""; 0]);
        assert_eq!(story(0, 100, 0), stopped);
        assert_eq!(story(0, 0, 100), stopped);
        assert_eq!(story(0, 40, 60), stopped);
        // One in a hundred has an outcome, so of 1000 ten are expected.
        assert_eq!(story(49_000, 0, 999), [""; 0]);
        assert_eq!(story(49_000, 0, 1000), stopped);
    }

    /// The thresholds here equal those of the rules.
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
        let sooner = rules.rsplit_once("alert: TruelineOutcomesStopped\n");
        let (_, sooner) = sooner.expect("the second rule");
        let (sooner, _) = sooner.split_once("annotations:").expect("annotations");
        for part in [
            format!("> {GIVEN_UP_MIN}\n"),
            format!("> {EXPECTED_MIN}\n"),
            format!("[1d])) > {MATCHED_MIN}\n"),
            "[10m])) == 0".to_owned(),
            "severity: warn".to_owned(),
        ] {
            assert!(sooner.contains(&part), "{part}");
        }
        let absent = rule("TruelineOutcomesAbsent");
        assert!(absent.contains(&format!("> {ABSENT_MIN}")) && absent.contains("severity: page"));
        let late = rule("TruelineRecordsLate");
        assert!(late.contains(&format!("ratio_rate5m > {LATE_SHARE} <= {LATE_PAGE}")));
        assert!(rejected.contains(&format!("<= {REJECTED_PAGE}")));
    }
}
