//! The report of a detector as JSON: evidence, alarm and confidence sequences.

use crate::judge::DetectorReport;
use crate::judge::detector_report::{WAITS, bet_words, kind};
use crate::stats::sequential::evidence::Evidence;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The report as JSON. Logarithms are natural; shares sum to 1; times in milliseconds.
pub fn json(r: &DetectorReport) -> Value {
    let bounds = &r.bounds;
    // Without events the bounds mean nothing; an alarm begins and ends with none.
    let seen = (bounds.n > 0).then_some(bounds);
    let bins = bounds.bins.iter().map(|b| {
        json!({
            "low": b.low, "high": b.high, "n": b.n,
            "mean_residual_lower": b.lower, "mean_residual_upper": b.upper,
        })
    });
    json!({
        "promise": r.promise,
        "account": r.account,
        "share": r.share,
        "at_ms": r.at_ms,
        "log_threshold": r.log_threshold,
        "evidence": r.evidence.as_ref().map(evidence_json),
        "few_groups": r.few_groups,
        "idle": r.idle(),
        "held": r.hold.map(|h| json!({ "since_ms": h.since_ms, "why": h.why.words() })),
        "waiting": r.waiting.map(|w| json!({
            "since_ms": w.since_ms, "until_ms": w.until_ms, "why": WAITS,
        })),
        "alarm": r.alarm.as_ref().map(|a| json!({
            "at_ms": a.at_ms,
            "since_ms": a.since_ms,
            "onset_ms": a.onset_ms.round() as i64,
            "times": a.times,
            "delay_events": a.delay_events,
            "residual": { "lower": a.residual.0, "upper": a.residual.1 },
            "evidence": evidence_json(&a.evidence),
        })),
        "called_ms": r.called_ms,
        "alarms": r.alarms,
        "expected_false_alarms_max": r.expected_false_alarms,
        "outcomes_missed": { "added": r.missed.added, "revised": r.missed.revised },
        "always_valid": {
            "confidence": r.confidence,
            "n": bounds.n,
            "mean_residual_lower": seen.map(|b| b.mean.0),
            "mean_residual_upper": seen.map(|b| b.mean.1),
            "ece_l2_lower": seen.map(|b| b.ece2_lower.sqrt()),
            "bins": bins.collect::<Vec<_>>(),
        },
    })
}

fn evidence_json(e: &Evidence) -> Value {
    let shares = &e.shares;
    json!({
        "log": e.log_worth,
        "direction": e.direction.as_str(),
        "words": kind(e),
        "onset_ms": e.onset.ms.round() as i64,
        "shares": shares.named().into_iter().collect::<BTreeMap<_, _>>(),
        "best_bet": e.best.bet().map(|bet| json!({ "words": bet_words(bet), "share": e.best.share })),
        "cells": e.cells,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::coverage::Lacking;
    use crate::judge::{Detector, DetectorOptions};
    use crate::stats::axis::{Axis, Grid};
    use crate::stats::fixed::Score;
    use crate::stats::rng::Rng;
    use crate::stats::sequential::{Budget, Outcome};
    use crate::stats::sums::Sums;
    use crate::window::{LateOutcomes, Packed, Pane, PaneSums, Unlabelled};

    #[test]
    fn an_alarm_that_waits_for_late_outcomes_says_since_when_until_when_and_why() {
        const HOUR_MS: i64 = 3_600_000;
        let grid = Grid::new(Axis::Linear, 8);
        let options = DetectorOptions {
            maturity_ms: HOUR_MS,
            ..DetectorOptions::alone(Budget::Ever { probability: 0.05 }, 0.05)
        };
        let mut detector = Detector::new(options.odds(grid), options, 1.0);
        let mut rng = Rng::new(3);
        let mut said = Vec::new();
        for minute in 0..90 {
            let (mut sums, mut unlabelled) = (Sums::new(grid), Unlabelled::default());
            for _ in 0..200 {
                let z = rng.uniform();
                let happened = rng.uniform() < (z + 0.1).min(1.0);
                sums.observe(Score::new(z).unwrap(), happened).unwrap();
                unlabelled.count(z, false);
            }
            let pane = Pane {
                start_ms: minute * 60_000,
                end_ms: (minute + 1) * 60_000,
                late: 0,
                sums: PaneSums::Scores(Packed::new(&sums).into()),
                unlabelled,
                late_outcomes: LateOutcomes::default(),
            };
            detector.observe_missing(&pane, Lacking::default());
            let outcome = detector.observe(&sums, (pane.start_ms, pane.end_ms));
            let report = detector.report().unwrap();
            said.push((pane.end_ms, outcome, json(&report)["waiting"].clone()));
            if outcome == Outcome::Alarm {
                break;
            }
        }
        let (alarm, quiet) = said.split_last().unwrap();
        assert_eq!((alarm.1, &alarm.2), (Outcome::Alarm, &Value::Null));
        let waiting = quiet.iter().filter(|(.., w)| !w.is_null());
        let (first_ms, _, words) = waiting.clone().next().unwrap();
        assert_eq!(words["since_ms"], *first_ms);
        assert_eq!(words["until_ms"], first_ms + HOUR_MS);
        assert_eq!(words["why"], WAITS);
        // The note appears at every pane from then until the maturity is over.
        assert_eq!(waiting.count() as i64, (alarm.0 - first_ms) / 60_000);
        assert_eq!(alarm.0 - first_ms, HOUR_MS);
    }
}
