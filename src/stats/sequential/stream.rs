//! The detector of one stream: mixture, budget, alarm, all-clear and confidence sequences.
//!
//! ```text
//!             M ≥ A                     M ≥ A (a second alarm confirms)
//!   quiet ───────────► alarmed ◄──────────┐
//!     ▲                   │ └─────────────┘
//!     └───────────────────┘
//!       max(2000, 4 × its delay) events since the last alarm, and M at most what was staked since
//! ```
//!
//! M is the sum of stakes that grew, so stakes alone raise it. On scores of 0 where nothing
//! happens, or for bets on ranges without scores, no bet wins or loses, and M is the sum of the
//! stakes. So an alarm also needs evidence: M at least twice what is *at stake*, R ← min(R + a, M),
//! the stakes less what bets have lost since. Where bets lose at first, as they do on calibrated
//! scores that vary, R is soon far below A and the condition has no effect. A condition beyond M ≥
//! A only removes alarms, so the guarantee stays.
//!
//! At an alarm the evidence is recorded and the detector restarts; the guarantee covers any rule of
//! restarting. While the error stays, the next alarm comes after about the same delay, and within
//! four delays the stakes grow much even without one. So a stream is clear once bets have had that
//! time and M is at most what was staked: nothing since the alarm speaks against the scores. An
//! error that shrinks to half its size is found within four delays and keeps the alarm. The rule is
//! a heuristic. Simulated errors that stay (temperature 1.25 to 2) were called clear after 1 of 400
//! alarms at most; calibrated streams are clear within some 3000 events of an alarm that took 500.
//! With rare events the delays of one error differ more, and a short one makes the wait of its
//! alarm short: scores Beta(½, 50) whose odds stayed 1.5 times as high were called clear after 217
//! of 4692 alarms. The wait of the longest delay since the stream was clear would leave 28 of
//! these, but an error of uniform scores that is gone would then be clear after 7400 events instead
//! of 3000 (medians).
//!
//! The sequences restart when an alarm begins and when it ends, not when it is confirmed. During an
//! alarm they cover the time since its first alarm; afterwards they cover the time since its end.
//!
//! It is an error to feed corrections of a pane that was already observed: a late outcome enters
//! reports, never the detector. For clustered events the ratios are tempered by the dispersions of
//! the panes before ([`crate::clusters`]); the confidence sequences are not. Always: state is a
//! function of budget, tolerance and the panes taken, in order; a copy continues with the same
//! bits.

use super::budget::Budget;
use super::detector::Detector;
use super::evidence::Evidence;
use super::odds::Odds;
use super::sequences::{Bounds, Sequences};
use crate::clusters::RunningClusters;
use crate::exp::exp;
#[cfg(feature = "serde")]
use crate::stored::checked;
use crate::sums::Sums;

/// No all-clear before this many events.
const CLEAR_EVENTS_MIN: u64 = 2000;

/// No all-clear before this many times the delay of the alarm.
const CLEAR_DELAYS: f64 = 4.0;

/// An alarm needs bets worth this many times what is at stake.
const EVIDENCE_MIN: f64 = 2.0;

/// Rules of a stream's detector.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Rules {
    /// False alarms that are allowed.
    pub budget: Budget,
    /// Share of the budget, above 0 and at most 1; those of all streams that share a budget sum
    /// to 1.
    pub share: f64,
    /// 1 − confidence of each of the sequences.
    pub alpha: f64,
}

impl Default for Rules {
    /// All of the default budget; confidence 95 %.
    fn default() -> Rules {
        Rules {
            budget: Budget::default(),
            share: 1.0,
            alpha: 0.05,
        }
    }
}

/// The latest alarm, as long as the stream is not clear again.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Alarm {
    /// End of the pane that raised it.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "checked"))]
    pub at_ms: i64,
    /// End of the pane that raised the first one since the stream was clear.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "checked"))]
    pub since_ms: i64,
    /// Estimated onset of the error, by the first alarm since the stream was clear: a later alarm
    /// knows only the events after the one before it.
    pub onset_ms: f64,
    /// Alarms since the stream was clear; a second one confirms.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "checked"))]
    pub times: u64,
    /// Events between onset, as estimated, and alarm.
    pub delay_events: f64,
    /// Mean residual at the alarm: lower and upper end of its confidence sequence over the events
    /// since the sequences last restarted, in [−1, 1].
    pub residual: (f64, f64),
    /// Capital staked by then since the stream began.
    pub staked: f64,
    /// The evidence at the alarm.
    pub evidence: Evidence,
}

impl Alarm {
    /// Events without another alarm after which the stream is clear, if bets have won nothing
    /// since.
    pub fn wait_events(&self) -> f64 {
        (CLEAR_DELAYS * self.delay_events).max(CLEAR_EVENTS_MIN as f64)
    }
}

/// What a pane led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Outcome {
    /// Nothing new.
    Quiet,
    /// An alarm, see [`StreamDetector::alarm`].
    Alarm,
    /// The alarm is over.
    Clear,
}

/// The detector of one stream. All of its state is public, for a snapshot.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct StreamDetector {
    /// The detector.
    pub detector: Detector,
    /// The sequences.
    pub sequences: Sequences,
    /// Events since the stream began.
    pub events: u64,
    /// Alarms since the stream began.
    pub alarms: u64,
    /// Capital staked since the stream began: divided by A, the false alarms to expect at most.
    pub staked: f64,
    /// Capital at stake since the restart: stakes less what bets have lost since, at least 0.
    pub at_stake: f64,
    /// The latest alarm, until the stream is clear again.
    pub alarm: Option<Alarm>,
    /// Totals by cluster since the stream began, where events are clustered.
    pub clusters: RunningClusters,
}

impl StreamDetector {
    /// Whether a detector can have this state; for one that was stored.
    pub fn is_sound(&self) -> bool {
        self.detector.is_sound()
            && self.sequences.bins.len() == Sequences::default().bins.len()
            && self.sequences.epoch > 0
            && (0.0..f64::INFINITY).contains(&self.at_stake)
    }

    /// Takes the sealed, mature pane from `start_ms` to `end_ms`; panes come in order of time.
    pub fn observe(
        &mut self,
        odds: &Odds,
        rules: &Rules,
        pane: &Sums,
        (start_ms, end_ms): (i64, i64),
    ) -> Outcome {
        if pane.n() == 0 {
            return Outcome::Quiet;
        }
        let before = self.clusters.dispersions();
        self.clusters.add(pane);
        if pane.clusters().is_some() && before.is_none() {
            // How much outcomes depend on each other is not known yet.
            return Outcome::Quiet;
        }
        let seconds = (end_ms - start_ms).max(0) as f64 / 1000.0;
        let capital = rules.share * rules.budget.capital(pane.n(), self.events, seconds);
        let mut likelihoods = odds.likelihoods(pane);
        if let Some(dispersions) = &before {
            likelihoods.temper(dispersions);
        }
        let log_worth = self
            .detector
            .observe(&likelihoods, capital, start_ms as f64);
        self.sequences.observe(pane);
        self.events += pane.n();
        self.staked += capital;
        self.at_stake = (self.at_stake + capital).min(exp(log_worth));
        if log_worth >= rules.budget.log_threshold() && self.is_evidence(log_worth) {
            self.raise(end_ms, rules.alpha);
            Outcome::Alarm
        } else if self.is_over() {
            self.alarm = None;
            self.sequences.restart();
            Outcome::Clear
        } else {
            Outcome::Quiet
        }
    }

    fn raise(&mut self, at_ms: i64, alpha: f64) {
        let Some(evidence) = Evidence::of(&self.detector) else {
            return;
        };
        let before = self.alarm.as_ref();
        let confirms = before.is_some();
        self.alarm = Some(Alarm {
            at_ms,
            since_ms: before.map_or(at_ms, |a| a.since_ms),
            onset_ms: before.map_or(evidence.onset.ms, |a| a.onset_ms),
            times: before.map_or(0, |a| a.times) + 1,
            delay_events: self.detector.events as f64 - evidence.onset.event,
            residual: self.sequences.mean(alpha),
            staked: self.staked,
            evidence,
        });
        self.alarms += 1;
        self.restart();
        if !confirms {
            self.sequences.restart();
        }
    }

    fn is_over(&self) -> bool {
        let waited = |a: &Alarm| self.quiet_events() as f64 >= a.wait_events();
        self.alarm.as_ref().is_some_and(waited) && !self.is_winning()
    }

    /// Events since the detector last restarted: at an alarm, or when what it held was dropped.
    pub fn quiet_events(&self) -> u64 {
        self.detector.events
    }

    /// Whether bets with this log M have won enough for an alarm or a call: they are worth twice
    /// what is at stake.
    pub fn is_evidence(&self, log_worth: f64) -> bool {
        log_worth >= (EVIDENCE_MIN * self.at_stake).ln()
    }

    /// Whether bets placed since the last alarm are worth more than was staked on them.
    pub fn is_winning(&self) -> bool {
        let before = self.alarm.as_ref().map_or(0.0, |a| a.staked);
        self.detector.log_worth() > (self.staked - before).ln()
    }

    /// Drops the evidence and ends an alarm, where what was seen turns out to be no evidence. What
    /// was staked and counted stays.
    pub fn forget(&mut self) {
        self.alarm = None;
        self.restart();
        self.sequences.restart();
    }

    /// Restarts the detector: all bets begin again.
    fn restart(&mut self) {
        self.detector = Detector::default();
        self.at_stake = 0.0;
    }

    /// The evidence since the last restart; `None` before the first pane.
    pub fn evidence(&self) -> Option<Evidence> {
        Evidence::of(&self.detector)
    }

    /// log M.
    pub fn log_worth(&self) -> f64 {
        self.detector.log_worth()
    }

    /// The confidence sequences since they last restarted: when an alarm began or ended.
    pub fn bounds(&self, odds: &Odds, rules: &Rules) -> Bounds {
        self.sequences.bounds(odds.grid(), rules.alpha)
    }

    /// Most false alarms to expect of the events so far: the capital staked over A.
    pub fn expected_false_alarms(&self, rules: &Rules) -> f64 {
        self.staked / rules.budget.log_threshold().exp()
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        size_of_val::<[_]>(&self.detector.components)
            + size_of_val::<[_]>(&self.detector.signs)
            + size_of_val::<[_]>(&self.sequences.bins)
            + self.clusters.bytes()
    }
}
