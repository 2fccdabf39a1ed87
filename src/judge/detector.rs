//! The detector of one stream, as the judge keeps it: fed by sealed panes, drawing its stakes on
//! the ledger.
//!
//! Windows show the size of an error; the detector raises alarms. A budget that it shares with
//! other streams ([`super::ledger`]) bounds its false alarms over all time
//! ([`crate::stats::sequential`]). It takes each pane once, in order of event time, when the pane
//! is sealed: its predictions are then mature and its time is before the watermark.
//!
//! *Later outcomes.* An outcome that comes or changes after its pane was sealed (`revise` in the
//! join) corrects windows and never the detector. A bet must not be settled twice; to undo a bet
//! once its outcome is known would let outcomes choose the bets. So the guarantee is about outcomes
//! *as they stood when the pane was sealed*: if those have the probabilities that the scores say,
//! false alarms are bounded. If all revisions go one way (charge-backs turn "fine" into "fraud"
//! after maturity), outcomes at maturity are rarer than the scores say, and an alarm about them is
//! right; set a longer maturity. [`Detector::missed`] counts the outcomes that the detector did not
//! see. It does not see predictions whose outcome never came, unless the join implies one.
//!
//! *Hold.* If late outcomes differ from their scores in another way than outcomes in time do
//! ([`super::timeliness`]), the maturity is too short, and an alarm would only show that. If too
//! few predictions have outcomes for a verdict ([`Lacking`]), those that came may be of one kind.
//! The detector is then on hold: it drops its evidence, an alarm ends, and it bets on no pane until
//! the reason is gone. An alarm may be due before any late outcome is known, while predictions
//! without an outcome could explain it. Such an alarm *waits* for these outcomes, for at most one
//! more maturity, and the detector does not bet on the panes that call for it. All these rules
//! depend on earlier panes, or only remove alarms, so the guarantee stands.
//!
//! Always: the state is a function of the panes sealed under one budget and tolerance. A snapshot
//! made under others has stakes with another meaning, so the detector then starts over; its past
//! stakes stay in the ledger. [`Detector::report`] computes the bounds of the sequences and the
//! evidence, not each pane. Cost: 29 kB and some 30 to 70 µs a pane for each stream, and 1.6 MB of
//! bets for each model.

use super::coverage::Lacking;
use super::timeliness::Timeliness;
use crate::stats::axis::Grid;
use crate::stats::sequential::stream::Alarm;
use crate::stats::sequential::{Budget, Odds, Outcome, Rules, StreamDetector};
use crate::stats::stored::checked;
use crate::stats::sums::Sums;
use crate::window::{Correction, Pane};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Options of the detectors of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct DetectorOptions {
    /// Name of the account that its streams draw on.
    pub account: String,
    /// The budget of the account.
    pub budget: Budget,
    /// How many streams may draw on the account at once: a budget of time is divided among them. 1
    /// if each stream has all of it.
    pub streams: f64,
    /// The model's weight over the largest of the account, above 0 and at most 1.
    pub weight: f64,
    /// 1 − confidence of each of the sequences.
    pub alpha: f64,
    /// Error in log-odds that is tolerated.
    pub tolerance: f64,
    /// How long predictions wait for their outcomes; 0 if both come together. The monitor sets it.
    pub maturity_ms: i64,
}

impl DetectorOptions {
    /// One model each of whose streams has the whole budget.
    pub fn alone(budget: Budget, tolerance: f64) -> DetectorOptions {
        DetectorOptions {
            account: "fleet".to_owned(),
            budget,
            streams: 1.0,
            weight: 1.0,
            alpha: Rules::default().alpha,
            tolerance,
            maturity_ms: 0,
        }
    }

    /// The bets of a model, shared by its streams.
    pub fn odds(&self, grid: Grid) -> Arc<Odds> {
        Arc::new(Odds::new(grid, self.tolerance))
    }

    /// The terms under which a state is made. They do not include the share: stakes may change as
    /// long as the change does not depend on outcomes.
    pub fn terms(&self) -> String {
        let DetectorOptions {
            account,
            budget,
            tolerance,
            ..
        } = self;
        format!("{budget} of {account}, tolerance {tolerance}")
    }
}

/// Outcomes that came after the detector had taken their pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Missed {
    /// Outcomes of predictions that had none, or that came with them.
    #[serde(deserialize_with = "checked")]
    pub added: u64,
    /// Outcomes in place of one that the detector had taken.
    #[serde(deserialize_with = "checked")]
    pub revised: u64,
}

/// Why a detector is on hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HoldReason {
    /// Outcomes that came too late differ from those in time.
    MaturityTooShort,
    /// Too few predictions have outcomes.
    FewOutcomes,
}

/// A hold: the detector bets on no pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Event time at which the hold began.
    #[serde(deserialize_with = "checked")]
    pub since_ms: i64,
    /// Why.
    pub why: HoldReason,
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Detector {
    pub(super) odds: Arc<Odds>,
    pub(super) options: DetectorOptions,
    pub(super) rules: Rules,
    pub(super) watch: StreamDetector,
    /// log M after the newest pane.
    pub(super) log_worth: f64,
    /// End of the newest pane taken.
    pub(super) at_ms: Option<i64>,
    pub(super) missed: Missed,
    pub(super) timeliness: Timeliness,
    pub(super) hold: Option<Hold>,
    /// What the next pane lacks.
    pub(super) lacking: Lacking,
    /// Since when an alarm that is due waits for late outcomes.
    pub(super) waits_ms: Option<i64>,
    /// Since when it is called among its fleet.
    pub(super) called_ms: Option<i64>,
}

impl Detector {
    /// A detector that has seen no pane. It uses the bets of its model and stakes `share`.
    pub fn new(odds: Arc<Odds>, options: DetectorOptions, share: f64) -> Detector {
        Detector {
            rules: Rules {
                budget: options.budget,
                share,
                alpha: options.alpha,
            },
            odds,
            options,
            watch: StreamDetector::default(),
            log_worth: f64::NEG_INFINITY,
            at_ms: None,
            missed: Missed::default(),
            timeliness: Timeliness::default(),
            hold: None,
            lacking: Lacking::default(),
            waits_ms: None,
            called_ms: None,
        }
    }

    /// Takes the counts of missing and late outcomes, before the pane itself.
    pub fn observe_missing(&mut self, pane: &Pane, lacking: Lacking) {
        self.lacking = lacking;
        let given_up = pane.unlabelled.dropped().into_iter();
        let given_up = given_up.chain(pane.unlabelled.implied()).sum();
        self.timeliness.miss(&pane.late_outcomes);
        self.timeliness
            .give_up(pane.end_ms, given_up, self.options.maturity_ms);
    }

    /// Takes a sealed pane.
    pub fn observe(&mut self, pane: &Sums, span_ms: (i64, i64)) -> Outcome {
        self.begin_or_end_hold(span_ms.0);
        let outcome = match self.hold {
            Some(_) => Outcome::Quiet,
            None => self.bet(pane, span_ms),
        };
        // Late outcomes of this pane come later, so it is compared with them from now on.
        self.timeliness.observe(pane);
        if pane.n() > 0 {
            self.at_ms = Some(span_ms.1);
            self.log_worth = self.watch.log_worth();
        }
        outcome
    }

    /// Bets on the pane. If late outcomes explain an alarm that is due, or most predictions lack
    /// their outcomes, the detector goes on hold; if outcomes that may come can explain it, the
    /// alarm waits.
    fn bet(&mut self, pane: &Sums, span_ms: (i64, i64)) -> Outcome {
        let tolerance = self.options.tolerance;
        let reason = match self.timeliness.explains_alarm(tolerance) {
            true => Some(HoldReason::MaturityTooShort),
            false => (self.lacking.with_pane).then_some(HoldReason::FewOutcomes),
        };
        let may = reason.is_some() || self.timeliness.may_explain_alarm(tolerance);
        let before = may.then(|| self.watch.clone());
        let outcome = self.watch.observe(&self.odds, &self.rules, pane, span_ms);
        // An alarm keeps waiting although a pane does not call for it.
        let over = |since_ms: i64| span_ms.1 - since_ms >= self.options.maturity_ms;
        self.waits_ms = (self.waits_ms).filter(|ms| outcome != Outcome::Alarm && !over(*ms));
        let Some(before) = before.filter(|_| outcome == Outcome::Alarm) else {
            return outcome;
        };
        if let Some(why) = reason {
            self.watch = before;
            self.begin_hold(span_ms.1, why);
            return Outcome::Quiet;
        }
        self.waits_ms = self.timeliness.wait(span_ms.1);
        if self.waits_ms.is_none() {
            return outcome;
        }
        self.watch = before;
        Outcome::Quiet
    }

    /// Begins or ends a hold, by what came before the pane that begins at `at_ms`.
    fn begin_or_end_hold(&mut self, at_ms: i64) {
        let (tolerance, why) = (self.options.tolerance, self.hold.map(|hold| hold.why));
        let too_short = match why {
            Some(HoldReason::MaturityTooShort) => self.timeliness.explains_alarm(tolerance),
            _ => self.timeliness.is_too_short(tolerance),
        };
        let reason = match too_short {
            true => Some(HoldReason::MaturityTooShort),
            false => {
                // A hold begins with enough predictions, or if an alarm is due.
                let known = self.lacking.enough || why == Some(HoldReason::FewOutcomes);
                (self.lacking.before && known).then_some(HoldReason::FewOutcomes)
            }
        };
        match reason {
            None => self.hold = None,
            Some(reason) if why == Some(reason) => {}
            Some(reason) => self.begin_hold(at_ms, reason),
        }
    }

    fn begin_hold(&mut self, since_ms: i64, why: HoldReason) {
        (self.hold, self.waits_ms) = (Some(Hold { since_ms, why }), None);
        self.watch.forget();
    }

    /// Drops the evidence, and ends an alarm. What was staked and counted stays.
    pub fn forget(&mut self) {
        self.watch.forget();
        self.log_worth = f64::NEG_INFINITY;
        (self.waits_ms, self.called_ms) = (None, None);
    }

    /// Counts the outcomes that a correction brings too late.
    pub fn miss(&mut self, c: &Correction) {
        self.missed.revised += c.minus.n();
        self.missed.added += c.plus.n().saturating_sub(c.minus.n());
    }

    /// Counts the events of a pane that comes too late.
    pub fn miss_pane(&mut self, n: u64) {
        self.missed.added += n;
    }

    /// Sets whether its fleet calls it at `at_ms`.
    pub fn call(&mut self, called: bool, at_ms: i64) {
        self.called_ms = called.then(|| self.called_ms.unwrap_or(at_ms));
    }

    /// Its options.
    pub fn options(&self) -> &DetectorOptions {
        &self.options
    }

    /// Its share of what the budget hands out.
    pub fn share(&self) -> f64 {
        self.rules.share
    }

    /// The alarm, while the stream is not clear.
    pub fn alarm(&self) -> Option<&Alarm> {
        self.watch.alarm.as_ref()
    }

    /// Alarms since the stream began.
    pub fn alarms(&self) -> u64 {
        self.watch.alarms
    }

    /// Capital staked since the stream began.
    pub fn staked(&self) -> f64 {
        self.watch.staked
    }

    /// log M, −∞ before the first pane and right after an alarm.
    pub fn log_worth(&self) -> f64 {
        self.log_worth
    }

    /// Whether its bets have won enough for a call.
    pub fn has_evidence(&self) -> bool {
        self.watch.is_evidence(self.log_worth)
    }

    /// End of the newest pane taken.
    pub fn at_ms(&self) -> Option<i64> {
        self.at_ms
    }

    /// Outcomes that it did not see.
    pub fn missed(&self) -> Missed {
        self.missed
    }

    /// Since when it is on hold, and why.
    pub fn hold(&self) -> Option<Hold> {
        self.hold
    }

    /// Since when its fleet calls it.
    pub fn called_ms(&self) -> Option<i64> {
        self.called_ms
    }

    /// Heap bytes held, without the shared bets.
    pub fn bytes(&self) -> usize {
        size_of::<Detector>() + self.options.account.len() + self.watch.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::axis::Axis;
    use crate::window::sums_of;

    #[test]
    fn few_outcomes_hold_the_detector_until_there_are_enough() {
        let grid = Grid::new(Axis::Linear, 4);
        let options = DetectorOptions::alone(Budget::default(), 0.05);
        let mut detector = Detector::new(options.odds(grid), options, 1.0);
        // All of a thousand predictions of 0.5 happened.
        let sums = sums_of(grid, vec![(0.5, true); 1000]);
        let mut show = |minute: i64, before, with_pane| {
            let span_ms = (minute * 60_000, (minute + 1) * 60_000);
            let pane = Pane::of_scores(span_ms.0, span_ms.1, &sums);
            let lacking = Lacking {
                before,
                enough: minute > 2,
                with_pane,
            };
            detector.observe_missing(&pane, lacking);
            let outcome = detector.observe(&sums, span_ms);
            (outcome, detector.hold())
        };
        let why = HoldReason::FewOutcomes;
        let since = |since_ms| Some(Hold { since_ms, why });
        // The first pane calls for an alarm, which the missing outcomes explain.
        assert_eq!(show(0, false, true), (Outcome::Quiet, since(60_000)));
        assert_eq!(show(1, true, true), (Outcome::Quiet, since(60_000)));
        assert_eq!(show(2, false, false), (Outcome::Alarm, None));
        // An alarm ends when outcomes begin to be missing.
        assert_eq!(show(3, true, true), (Outcome::Quiet, since(180_000)));
        assert_eq!(detector.alarm(), None);
    }
}
