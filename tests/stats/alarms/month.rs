//! Thirty days of traffic as it is: more by day than by night, outcomes two hours and more after
//! their predictions, a score law that drifts and swings while the model stays calibrated. Not one
//! alarm. Then a temperature of 1.25 comes in: an alarm, with windows that agree, dated within the
//! hour.
//!
//! CI takes four days of one event a second; `TRUELINE_DATA_SETS` takes thirty of two.

use super::feed::{Truth, alarms};
use crate::support::records::{EVENT, JOIN, origin, outcome_record};
use crate::support::streams::expit;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::f64::consts::TAU;
use trueline::collect::join::JoinPlan;
use trueline::collect::{Event, Segmenting};
use trueline::judge::{Change, DetectorOptions, JudgeOptions, Step, Verdict};
use trueline::monitor::{Engine, ModelPlan, Plan, RecordSink};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::direction::Direction;
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::window::{Ladder, WindowSpec};

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
/// Midnight.
const BEGIN_MS: i64 = 19_675 * DAY_MS;

fn plan() -> Plan {
    Plan {
        models: vec![ModelPlan {
            name: "*".to_owned(),
            views: vec![View::Binary],
            classes: Vec::new(),
            ladder: Ladder::new(vec![WindowSpec::time("1h", HOUR_MS)], 60_000).unwrap(),
            grid: Grid::new(Axis::Linear, 12),
            segmenting: Segmenting::default(),
            judge: JudgeOptions {
                // As a configuration without a word about it.
                detector: Some(DetectorOptions::alone("1 per 30d".parse().unwrap(), 0.05)),
                stale_after_ms: i64::MAX,
                ..JudgeOptions::plain()
            },
        }],
        joins: vec![JoinPlan {
            maturity_ms: 3 * HOUR_MS,
            ..JOIN
        }],
        ..Plan::default()
    }
}

struct Traffic {
    engine: Engine,
    rng: Rng,
    /// Events a millisecond, on average over a day.
    rate: f64,
    now_ms: f64,
    predictions: i64,
    labels: i64,
    /// Outcomes on their way: when they come, id, what they say.
    coming: BinaryHeap<Reverse<(i64, i64, bool)>>,
}

impl Traffic {
    fn new(rate: f64) -> Traffic {
        let mut engine = Engine::new(plan());
        engine.assign((0, 0).into());
        engine.assign((1, 0).into());
        Traffic {
            engine,
            rng: Rng::new(31),
            rate,
            now_ms: BEGIN_MS as f64,
            predictions: 0,
            labels: 0,
            coming: BinaryHeap::new(),
        }
    }

    /// Traffic up to a moment.
    fn until(&mut self, end_ms: i64, truth: Truth) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut hour = self.now_ms as i64 / HOUR_MS;
        while (self.now_ms as i64) < end_ms {
            let day = (self.now_ms - BEGIN_MS as f64) / DAY_MS as f64;
            // Five times as many at noon as at midnight.
            let rate = self.rate * (1.0 - 2.0 / 3.0 * (TAU * day).cos());
            self.now_ms += -(1.0 - self.rng.uniform()).ln() / rate;
            // A swing of a week, and an ever more sceptical model.
            let centre = -0.5 + (TAU * day / 7.0).sin() - day / 15.0;
            let z = expit(centre + 1.5 * self.rng.normal()).clamp(1e-6, 1.0 - 1e-6);
            let happened = self.rng.uniform() < truth.of(z);
            self.deliver(self.now_ms as i64);
            self.predict(z, happened);
            if self.now_ms as i64 / HOUR_MS > hour {
                hour = self.now_ms as i64 / HOUR_MS;
                changes.extend(self.engine.tick(self.now_ms as i64));
                // What a disk would keep.
                self.engine.take_journals();
            }
        }
        changes
    }

    fn predict(&mut self, z: f64, happened: bool) {
        let (id, time_ms) = (self.predictions, self.now_ms as i64);
        self.predictions += 1;
        let event = Event {
            model: "net",
            version: "1",
            id: &id.to_le_bytes(),
            time_ms,
            prediction: Prediction::Score(z),
            ..EVENT
        };
        let origin = origin(0, 0, id);
        self.engine.observe(origin, &event);
        let delay = 2 * HOUR_MS + (self.rng.uniform() * HOUR_MS as f64 / 2.0) as i64;
        self.coming.push(Reverse((time_ms + delay, id, happened)));
    }

    /// Lets the outcomes come that are due.
    fn deliver(&mut self, now_ms: i64) {
        while let Some(&Reverse((time_ms, id, happened))) = self.coming.peek() {
            if time_ms > now_ms {
                break;
            }
            self.coming.pop();
            let origin = origin(1, 0, self.labels);
            self.labels += 1;
            let id = id.to_le_bytes();
            self.engine.observe_outcome(
                origin,
                &outcome_record(&id, time_ms, Outcome::Binary(happened)),
            );
        }
    }
}

fn verdicts(changes: &[Change]) -> usize {
    let bad = |c: &&Change| {
        matches!(
            c.step,
            Step::Verdict {
                to: Verdict::Miscalibrated,
                ..
            }
        )
    };
    changes.iter().filter(bad).count()
}

#[test]
fn a_calibrated_month_of_seasons_and_late_labels_raises_no_alarm_and_a_fault_does() {
    let full = std::env::var("TRUELINE_DATA_SETS").is_ok();
    let (days, rate) = if full { (30, 2.0) } else { (4, 1.0) };
    let mut traffic = Traffic::new(rate / 1000.0);
    let fault_ms = BEGIN_MS + days * DAY_MS + 10 * HOUR_MS;
    let quiet = traffic.until(fault_ms, Truth::Calibrated);
    let staked = traffic.engine.ledger()[0].expected_false_alarms();
    println!(
        "{days} days, {} predictions: {} alarms ({staked:.3} to expect at most), {} windows called miscalibrated",
        traffic.predictions,
        alarms(&quiet).count(),
        verdicts(&quiet)
    );
    assert_eq!(alarms(&quiet).count(), 0, "{quiet:?}");

    let changes = traffic.until(fault_ms + DAY_MS, Truth::Temperature(1.25));
    let first = alarms(&changes).next().expect("an alarm within a day");
    let report = traffic.engine.reports().next().unwrap();
    let alarm = report.detector.as_ref().unwrap().alarm.clone().unwrap();
    let hours = |ms: f64| (ms - fault_ms as f64) / HOUR_MS as f64;
    println!(
        "temperature 1.25: alarm after {:.2} h of event time, dated {:+.2} h; {}",
        hours(first.at_ms as f64),
        hours(alarm.onset_ms),
        first.sentence
    );
    assert!(hours(alarm.onset_ms).abs() <= 1.0);
    assert_eq!(alarm.evidence.direction, Direction::OverConfident);
    let agree = changes.iter().any(|c| {
        matches!(
            c.step,
            Step::Verdict {
                to: Verdict::Miscalibrated,
                ..
            }
        ) && c.at_ms >= fault_ms
    });
    assert!(agree, "no window says the same");
    let lower = report.windows[0].scores().unwrap().interval.lower;
    assert!(lower > 0.0, "severity needs an effect");
}
