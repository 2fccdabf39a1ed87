//! What a detector says: evidence, alarm, confidence sequences; in words.
//!
//! Always: a function of the detector's state, so a restart reports the same.

use super::detector::{Detector, Hold, HoldReason, Missed};
use crate::stats::clusters::GROUPS_MIN;
use crate::stats::sequential::evidence::{Evidence, Leaning};
use crate::stats::sequential::mixture::Bet;
use crate::stats::sequential::sequences::Bounds;
use crate::stats::sequential::stream::Alarm;
use std::borrow::Cow;

/// See the module.
#[derive(Debug, Clone, PartialEq)]
pub struct DetectorReport {
    /// What the budget of its account promises, in words.
    pub promise: String,
    /// The account.
    pub account: String,
    /// Its share of what the budget hands out.
    pub share: f64,
    /// log A.
    pub log_threshold: f64,
    /// Evidence since the last restart; none while it holds.
    pub evidence: Option<Evidence>,
    /// Events since the detector last started over, and so without an alarm.
    pub quiet_events: u64,
    /// Whether bets placed since the last alarm are worth more than was staked on them.
    pub winning: bool,
    /// Since when it is on hold, and why.
    pub hold: Option<Hold>,
    /// How many groups of equal size say as much as the clusters so far, while the detector bets on
    /// nothing because these are too few.
    pub few_groups: Option<f64>,
    /// An alarm that is due and waits for late outcomes.
    pub waiting: Option<WaitingAlarm>,
    /// The alarm, while the stream is not clear.
    pub alarm: Option<Alarm>,
    /// Since when e-BH calls it among the streams of its account.
    pub called_ms: Option<i64>,
    /// Alarms since the stream began.
    pub alarms: u64,
    /// Upper bound on the expected number of false alarms over all panes so far, if the stream is
    /// calibrated.
    pub expected_false_alarms: f64,
    /// Outcomes that it did not see, because they came after their pane.
    pub missed: Missed,
    /// Confidence of the sequences.
    pub confidence: f64,
    /// Confidence sequences. During an alarm they cover the time since its first one; otherwise the
    /// time since the detector last started over: at its start, and after an alarm, a hold and a
    /// deployment.
    pub bounds: Bounds,
    /// End of the newest pane taken.
    pub at_ms: i64,
}

/// An alarm that is due and waits for late outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingAlarm {
    /// End of the first pane that called for it.
    pub since_ms: i64,
    /// Event time until which it waits at most.
    pub until_ms: i64,
}

impl Detector {
    /// Its report; `None` before its first pane.
    pub fn report(&self) -> Option<DetectorReport> {
        let (watch, rules) = (&self.watch, &self.rules);
        let alarm = watch.alarm.clone();
        // After an alarm everything starts over: report what the alarm rested on.
        let evidence = watch.evidence();
        let evidence = evidence.or_else(|| alarm.as_ref().map(|a| a.evidence.clone()));
        Some(DetectorReport {
            promise: rules.budget.words(),
            account: self.options.account.clone(),
            share: rules.share,
            log_threshold: rules.budget.log_threshold(),
            evidence,
            quiet_events: watch.quiet_events(),
            winning: watch.is_winning(),
            hold: self.hold,
            few_groups: watch.clusters.too_few(),
            waiting: self.waits_ms.map(|since_ms| WaitingAlarm {
                since_ms,
                until_ms: since_ms.saturating_add(self.options.maturity_ms),
            }),
            alarm,
            called_ms: self.called_ms,
            alarms: watch.alarms,
            expected_false_alarms: watch.expected_false_alarms(rules),
            missed: self.missed,
            confidence: 1.0 - rules.alpha,
            bounds: watch.bounds(&self.odds, rules),
            at_ms: self.at_ms?,
        })
    }
}

impl DetectorReport {
    /// Why it bets on nothing, in words; `None` while it bets.
    pub fn idle(&self) -> Option<Cow<'static, str>> {
        let few = |groups: f64| {
            format!(
                "events belong to too few clusters: those so far say as much as {groups:.1} groups of equal size, and \
                 it takes {GROUPS_MIN} to know how much outcomes vary between them; windows are judged, and no alarm \
                 can come; name finer clusters"
            )
        };
        let hold = self.hold.map(|hold| hold.why.words().into());
        hold.or_else(|| self.few_groups.map(|groups| few(groups).into()))
    }
}

impl HoldReason {
    /// The reason in words.
    pub fn words(self) -> &'static str {
        match self {
            HoldReason::MaturityTooShort => {
                "the maturity is too short: outcomes that came too late depart from their scores \
                 otherwise than those in time, so an alarm could be about that alone"
            }
            HoldReason::FewOutcomes => {
                "too few predictions have outcomes (`coverage_min`): those that came may be of one \
                 kind, so an alarm could be about that alone"
            }
        }
    }
}

/// Why an alarm waits.
pub const WAITS: &str = "an alarm is due, but predictions still lack their outcomes, and these could \
                         explain it if they differ from those in time; it waits for them, for one \
                         maturity at most";

/// An alarm, its end, or a hold and its end, in words; `was` is the hold before.
pub fn sentence(stream: &str, report: &DetectorReport, was: Option<Hold>) -> String {
    if let Some(hold) = report.hold {
        return format!("the detector of {stream} is on hold: {}", hold.why.words());
    }
    let Some(alarm) = &report.alarm else {
        if let Some(hold) = was {
            let gone = match hold.why {
                HoldReason::MaturityTooShort => "late outcomes do not differ",
                HoldReason::FewOutcomes => "enough predictions have outcomes",
            };
            return format!("the detector of {stream} watches again: {gone}");
        }
        return format!(
            "{stream} is clear: {} events since the last alarm, and nothing in them speaks against the scores",
            report.quiet_events
        );
    };
    let evidence = &alarm.evidence;
    let again = match alarm.times {
        1 => String::new(),
        n => format!(" (alarm number {n} since it was clear)"),
    };
    format!(
        "{stream} is miscalibrated{again}: {}; {}; {}",
        kind(evidence),
        alarm_numbers(alarm, report.log_threshold),
        report.promise
    )
}

/// The numbers of an alarm in words.
pub fn alarm_numbers(alarm: &Alarm, log_threshold: f64) -> String {
    let (lower, upper) = alarm.residual;
    format!(
        "evidence e^{:.1}, alarm at e^{log_threshold:.1}; it began about {:.0} events, {} before; mean residual \
         between {lower:+.4} and {upper:+.4}",
        alarm.evidence.log_worth,
        alarm.delay_events,
        span(alarm.at_ms as f64 - alarm.evidence.onset.ms),
    )
}

/// The kind of miscalibration in words: the direction, the bet with the largest share of the
/// evidence, and which scores.
pub fn kind(evidence: &Evidence) -> String {
    let mut words = evidence.direction.words().to_owned();
    if let Some(bet) = evidence.best.bet() {
        let share = 100.0 * evidence.best.share;
        words.push_str(&format!(
            " (best bet: {}, {share:.0} % of the evidence)",
            bet_words(bet)
        ));
    }
    for (i, cell) in evidence.cells.iter().enumerate() {
        let begin = if i == 0 { "; outcomes are " } else { ", " };
        words.push_str(begin);
        words.push_str(&leaning(cell));
    }
    words
}

/// What outcomes are like according to a bet, in words.
pub fn bet_words(bet: Bet) -> String {
    match bet {
        Bet::Intercept(b) => format!("odds {:.2} times those of all scores", b.exp()),
        Bet::Slope(b) if b < 0.0 => {
            format!(
                "log-odds {:.2} times those of the scores, nearer to even",
                1.0 + b
            )
        }
        Bet::Slope(b) => {
            format!(
                "log-odds {:.2} times those of the scores, further from even",
                1.0 + b
            )
        }
        Bet::Shift(d) => {
            let way = if d > 0.0 { "above" } else { "below" };
            format!("probabilities {:.2} {way} all scores", d.abs())
        }
        Bet::Noise(e) => format!("{} % of the outcomes flipped", 100.0 * e),
        Bet::Bump { low, high, beta } => format!(
            "odds {:.2} times those of scores from {low:.4} to {high:.4}",
            beta.exp()
        ),
        Bet::Cells(scale) => {
            let axis = if scale.warped { "log-odds" } else { "scores" };
            format!("each of {} ranges of {axis} off by itself", scale.cells)
        }
    }
}

fn leaning(cell: &Leaning) -> String {
    let way = if cell.lean > 0.0 { "more" } else { "less" };
    format!(
        "{way} frequent than scores of {:.4} to {:.4} say",
        cell.low, cell.high
    )
}

/// A time in the unit that keeps the number short.
fn span(ms: f64) -> String {
    let seconds = ms.max(0.0) / 1000.0;
    let units = [("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0)];
    let fits = units.into_iter().find(|(_, size)| seconds >= 2.0 * size);
    let (unit, size) = fits.unwrap_or(("seconds", 1.0));
    format!("{:.0} {unit}", seconds / size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::DetectorOptions;
    use crate::stats::attribute::Attribute;
    use crate::stats::axis::{Axis, Grid};
    use crate::stats::clusters::Bucket;
    use crate::stats::fixed::Score;
    use crate::stats::sequential::Budget;
    use crate::stats::sums::Sums;
    use crate::window::sums_of;

    #[test]
    fn the_end_of_a_hold_is_not_the_end_of_an_alarm() {
        let grid = Grid::new(Axis::Linear, 4);
        let options = DetectorOptions::alone(Budget::default(), 0.05);
        let mut detector = Detector::new(options.odds(grid), options, 1.0);
        detector.observe(&sums_of(grid, [(0.5, true)]), (0, 60_000));
        let mut report = detector.report().expect("a pane was shown");
        // The pane that ends a hold counts already.
        assert_eq!(report.quiet_events, 1);
        for (why, gone) in [
            (HoldReason::MaturityTooShort, "late outcomes do not differ"),
            (HoldReason::FewOutcomes, "enough predictions have outcomes"),
        ] {
            let hold = Some(Hold { since_ms: 0, why });
            report.hold = None;
            assert!(sentence("m", &report, hold).contains(gone));
            assert!(sentence("m", &report, None).contains("is clear"));
            report.hold = hold;
            assert!(sentence("m", &report, None).contains(why.words()));
            assert_eq!(report.idle().as_deref(), Some(why.words()));
        }
        report.hold = None;
        assert_eq!(report.idle(), None);
    }

    #[test]
    fn a_detector_says_that_it_bets_on_nothing_while_clusters_are_few() {
        let grid = Grid::new(Axis::Linear, 4).clustered();
        let options = DetectorOptions::alone(Budget::default(), 0.05);
        let mut detector = Detector::new(options.odds(grid), options, 1.0);
        let mut said = Vec::new();
        for pane in 0..3 {
            let mut sums = Sums::new(grid);
            let names = 9 * (pane + 1);
            for i in 0..90 * (pane + 1) {
                let cluster = Attribute::Cluster(Bucket::of((i % names).to_string().as_bytes()));
                let score = Score::new(0.5).expect("a score");
                sums.observe_with(score, i % 2 == 0, cluster).expect("room");
            }
            detector.observe(&sums, (60_000 * pane, 60_000 * (pane + 1)));
            said.push(detector.report().expect("a pane was shown"));
        }
        let idle = said[0].idle().expect("nine clusters are few");
        assert!(
            idle.contains("too few clusters") && idle.contains("it takes 12"),
            "{idle}"
        );
        assert!(said[0].few_groups.is_some_and(|groups| groups <= 9.0));
        assert_eq!((said[0].bounds.n, said[2].idle()), (0, None));
        // The pane that makes them enough is not bet on: its dispersion is part of what is known.
        assert!(said[2].bounds.n > 0);
    }
}
