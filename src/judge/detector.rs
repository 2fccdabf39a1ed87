//! The detector of one stream, as the judge keeps it: fed by sealed panes, told in reports, put into snapshots.
//!
//! Windows describe, the detector alarms: its false alarms are bounded over all time by a budget
//! ([`crate::stats::sequential`]). It takes each pane once, when it is sealed, in order of event time. An outcome
//! that comes later corrects windows and never the detector, since no bet may be settled twice; so it is only as
//! good as maturity: outcomes that are missing *because of what they are* bias it like every window.
//!
//! Always: its state is a function of the panes sealed under one budget, share and tolerance; under others the sums staked
//! mean something else, so a snapshot made under others lets it begin anew. Cost: 24 kB and about 0.1 ms a pane for
//! each stream, and 2 MB of bets for each model, when asked for.

use crate::stats::axis::Grid;
use crate::stats::direction::Direction;
use crate::stats::sequential::detector::{Component, Parts, Place};
use crate::stats::sequential::evidence::{Evidence, Leaning, Shares};
use crate::stats::sequential::sequences::{Bin, Bounds, Gain, Sequences};
use crate::stats::sequential::watch::{Alarm, WatchParts};
use crate::stats::sequential::{Odds, Outcome, Rules, Watch, mixture};
use crate::stats::sums::Sums;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// What is asked of the detectors of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DetectorOptions {
    /// Budget, share, confidence.
    pub rules: Rules,
    /// Error in log-odds that is tolerated.
    pub tolerance: f64,
}

impl DetectorOptions {
    /// The bets of a model, shared by its streams.
    pub fn odds(&self, grid: Grid) -> Arc<Odds> {
        Arc::new(Odds::new(grid, self.tolerance))
    }

    /// Under what a state was made.
    fn terms(&self) -> String {
        let Rules { budget, share, .. } = self.rules;
        format!("{budget}, share {share}, tolerance {}", self.tolerance)
    }
}

/// What the detector says.
#[derive(Debug, Clone, PartialEq)]
pub struct DetectorReport {
    /// What the budget promises, in words.
    pub promise: String,
    /// log A.
    pub log_threshold: f64,
    /// Evidence since the last restart.
    pub evidence: Evidence,
    /// The alarm, while the stream is not clear.
    pub alarm: Option<Alarm>,
    /// Alarms since the stream began.
    pub alarms: u64,
    /// False alarms to expect at most, of all panes so far, had the stream been calibrated.
    pub expected_false_alarms: f64,
    /// Confidence of the sequences.
    pub confidence: f64,
    /// Confidence sequences since the last restart.
    pub bounds: Bounds,
    /// End of the newest pane taken.
    pub at_ms: i64,
}

/// The detector of one stream.
#[derive(Debug, Clone)]
pub struct Detector {
    odds: Arc<Odds>,
    options: DetectorOptions,
    watch: Watch,
}

impl Detector {
    /// One that has seen nothing, with the bets of its model.
    pub fn new(odds: Arc<Odds>, options: DetectorOptions) -> Detector {
        Detector {
            odds,
            options,
            watch: Watch::default(),
        }
    }

    /// Takes a sealed pane.
    pub fn observe(&mut self, pane: &Sums, span_ms: (i64, i64)) -> Outcome {
        self.watch
            .observe(&self.odds, &self.options.rules, pane, span_ms)
    }

    /// What it says after the pane that ended at `at_ms`; `None` before the first.
    pub fn report(&self, at_ms: i64) -> Option<DetectorReport> {
        let rules = &self.options.rules;
        let alarm = self.watch.alarm().cloned();
        // Right after an alarm all begins anew: what it rested on is told.
        let evidence = self.watch.evidence();
        let evidence = evidence.or_else(|| alarm.as_ref().map(|a| a.evidence.clone()))?;
        Some(DetectorReport {
            promise: rules.budget.words(),
            log_threshold: rules.budget.log_threshold(),
            evidence,
            alarm,
            alarms: self.watch.alarms(),
            expected_false_alarms: self.watch.expected_false_alarms(rules),
            confidence: 1.0 - rules.alpha,
            bounds: self.watch.bounds(&self.odds, rules),
            at_ms,
        })
    }

    /// Its state, for a snapshot.
    pub fn state(&self, at_ms: i64) -> DetectorState {
        let parts = self.watch.parts();
        let even = [0.5; mixture::LEARNT];
        let signs = (0u16..).zip(&parts.detector.signs);
        DetectorState {
            terms: self.options.terms(),
            at_ms,
            components: parts.detector.components.iter().map(pack).collect(),
            signs: signs
                .filter(|(_, w)| **w != even)
                .map(|(i, w)| (i, *w))
                .collect(),
            since_restart: parts.detector.events,
            bins: parts
                .sequences
                .bins
                .iter()
                .map(|b| (b.n, b.y, b.z, b.u2))
                .collect(),
            gains: parts
                .sequences
                .gains
                .iter()
                .map(|g| (g.sum, g.square))
                .collect(),
            epoch: parts.sequences.epoch,
            events: parts.events,
            alarms: parts.alarms,
            staked: parts.staked,
            alarm: parts.alarm.as_ref().map(AlarmState::from),
        }
    }

    /// Puts back a state; one made under other terms is left, and one that is no state refused.
    pub fn restore(&mut self, state: &DetectorState) -> Result<(), Corrupt> {
        if state.terms != self.options.terms() {
            return Ok(());
        }
        self.watch = Watch::from_parts(state.parts().ok_or(Corrupt)?).map_err(|_| Corrupt)?;
        Ok(())
    }

    /// Heap bytes held, the shared bets left out.
    pub fn bytes(&self) -> usize {
        size_of::<Detector>() + self.watch.bytes()
    }
}

/// A state that contradicts itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Corrupt;

/// A detector in a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DetectorState {
    /// Budget, share and tolerance under which it was made.
    terms: String,
    /// End of the newest pane taken.
    pub at_ms: i64,
    /// Log worth, onset by event and by time.
    components: Vec<(f64, f64, f64)>,
    /// Signs that are not even, by index of the cell.
    signs: Vec<(u16, [f64; mixture::LEARNT])>,
    since_restart: u64,
    bins: Vec<(u64, u64, u128, u128)>,
    gains: Vec<(f64, f64)>,
    epoch: u64,
    events: u64,
    alarms: u64,
    staked: f64,
    alarm: Option<AlarmState>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct AlarmState {
    at_ms: i64,
    since_ms: i64,
    onset_ms: f64,
    times: u64,
    delay_events: f64,
    log_worth: f64,
    directed: [f64; 4],
    scales: [f64; mixture::SCALES],
    cells: Vec<(f64, f64, f64)>,
    onset: (f64, f64),
}

fn pack(c: &Component) -> (f64, f64, f64) {
    (c.log_worth, c.onset.event, c.onset.ms)
}

impl DetectorState {
    fn parts(&self) -> Option<WatchParts> {
        let component = |&(log_worth, event, ms): &(f64, f64, f64)| Component {
            log_worth,
            onset: Place { event, ms },
        };
        let mut signs = vec![[0.5; mixture::LEARNT]; mixture::CELLS];
        for (index, w) in &self.signs {
            *signs.get_mut(usize::from(*index))? = *w;
        }
        let bin = |&(n, y, z, u2): &(u64, u64, u128, u128)| Bin { n, y, z, u2 };
        let gain = |&(sum, square): &(f64, f64)| Gain { sum, square };
        let gains: Vec<Gain> = self.gains.iter().map(gain).collect();
        Some(WatchParts {
            detector: Parts {
                components: self.components.iter().map(component).collect(),
                signs,
                events: self.since_restart,
            },
            sequences: Sequences {
                bins: self.bins.iter().map(bin).collect(),
                gains: gains.try_into().ok()?,
                epoch: self.epoch,
            },
            events: self.events,
            alarms: self.alarms,
            staked: self.staked,
            alarm: self.alarm.as_ref().map(AlarmState::alarm),
        })
    }
}

impl From<&Alarm> for AlarmState {
    fn from(a: &Alarm) -> AlarmState {
        let Evidence {
            log_worth,
            shares,
            cells,
            onset,
            ..
        } = &a.evidence;
        AlarmState {
            at_ms: a.at_ms,
            since_ms: a.since_ms,
            onset_ms: a.onset_ms,
            times: a.times,
            delay_events: a.delay_events,
            log_worth: *log_worth,
            directed: [
                shares.intercept_up,
                shares.intercept_down,
                shares.slope_up,
                shares.slope_down,
            ],
            scales: shares.scales,
            cells: cells.iter().map(|c| (c.low, c.high, c.lean)).collect(),
            onset: (onset.event, onset.ms),
        }
    }
}

impl AlarmState {
    fn alarm(&self) -> Alarm {
        let [intercept_up, intercept_down, slope_up, slope_down] = self.directed;
        let shares = Shares {
            intercept_up,
            intercept_down,
            slope_up,
            slope_down,
            scales: self.scales,
        };
        let cell = |&(low, high, lean): &(f64, f64, f64)| Leaning { low, high, lean };
        let (event, ms) = self.onset;
        Alarm {
            at_ms: self.at_ms,
            since_ms: self.since_ms,
            onset_ms: self.onset_ms,
            times: self.times,
            delay_events: self.delay_events,
            evidence: Evidence {
                log_worth: self.log_worth,
                direction: shares.direction(),
                shares,
                cells: self.cells.iter().map(cell).collect(),
                onset: Place { event, ms },
            },
        }
    }
}

/// An alarm or its end, in words.
pub fn sentence(stream: &str, report: &DetectorReport) -> String {
    let Some(alarm) = &report.alarm else {
        return format!(
            "{stream} is clear: {} events without another alarm",
            report.bounds.n
        );
    };
    let evidence = &alarm.evidence;
    format!(
        "{stream} is miscalibrated: {}; {} of the evidence, e^{:.1} (alarm at e^{:.1}), says so; it began about {:.0} events \
         before; {}",
        evidence.direction.words(),
        share(evidence),
        evidence.log_worth,
        report.log_threshold,
        alarm.delay_events,
        report.promise
    )
}

fn share(evidence: &Evidence) -> String {
    let shares = &evidence.shares;
    let of = match evidence.direction {
        Direction::TooLow => shares.intercept_up,
        Direction::TooHigh => shares.intercept_down,
        Direction::UnderConfident => shares.slope_up,
        Direction::OverConfident => shares.slope_down,
        Direction::Local | Direction::None => shares.cells(),
    };
    format!("{:.0} %", 100.0 * of)
}

/// The report as JSON. Logarithms are natural; shares sum to 1; times in milliseconds.
pub fn json(r: &DetectorReport) -> Value {
    let bounds = &r.bounds;
    let bins = bounds.bins.iter().map(|b| {
        json!({
            "low": b.low, "high": b.high, "n": b.n,
            "mean_residual_lower": b.lower, "mean_residual_upper": b.upper,
        })
    });
    json!({
        "promise": r.promise,
        "at_ms": r.at_ms,
        "log_threshold": r.log_threshold,
        "evidence": evidence_json(&r.evidence),
        "alarm": r.alarm.as_ref().map(|a| json!({
            "at_ms": a.at_ms,
            "since_ms": a.since_ms,
            "onset_ms": a.onset_ms.round() as i64,
            "times": a.times,
            "delay_events": a.delay_events,
            "evidence": evidence_json(&a.evidence),
        })),
        "alarms": r.alarms,
        "expected_false_alarms_max": r.expected_false_alarms,
        "always_valid": {
            "confidence": r.confidence,
            "n": bounds.n,
            "mean_residual_lower": bounds.mean.0,
            "mean_residual_upper": bounds.mean.1,
            "ece_l2_lower": bounds.ece2_lower.sqrt(),
            "bins": bins.collect::<Vec<_>>(),
        },
    })
}

fn evidence_json(e: &Evidence) -> Value {
    let shares = &e.shares;
    let cells = e.cells.iter();
    let cells = cells.map(|c| json!({ "low": c.low, "high": c.high, "lean": c.lean }));
    json!({
        "log": e.log_worth,
        "direction": e.direction.as_str(),
        "words": e.direction.words(),
        "onset_ms": e.onset.ms.round() as i64,
        "shares": {
            "intercept_up": shares.intercept_up,
            "intercept_down": shares.intercept_down,
            "slope_up": shares.slope_up,
            "slope_down": shares.slope_down,
            "cells": shares.cells(),
        },
        "cells": cells.collect::<Vec<_>>(),
    })
}
