//! Negatives that were down-sampled at a known rate: in the stream, in what the model was trained
//! on, or both.
//!
//! The level of the test on calibrated models whose negatives were thrown away, its power, and the
//! same through the engine.

use crate::level;
use crate::support::bars::{Bar, count, data_sets};
use crate::support::records::{EVENT, JOIN, origin, outcome_record};
use trueline::collect::join::JoinPlan;
use trueline::collect::{Event, Segmenting};
use trueline::judge::{JudgeOptions, Verdict};
use trueline::monitor::{Engine, ModelPlan, Plan, RecordSink};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::evaluation::{DiscreteMode, Options, Sampling, evaluate_scores};
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::window::{Ladder, WindowSpec};

fn rates(kept: f64, trained: f64) -> Sampling {
    Sampling::new(kept, trained).expect("rates above 0 and at most 1")
}

/// Rare events: log-odds around −3.
fn truth(rng: &mut Rng) -> f64 {
    1.0 / (1.0 + (3.0 + 1.5 * rng.normal()).exp())
}

/// An event of the stream: what the model says and what happened. `odds` is how far off the model
/// is.
fn event(rng: &mut Rng, s: &Sampling, odds: f64) -> (f64, bool) {
    loop {
        let p = truth(rng);
        let y = rng.uniform() < p;
        if y || rng.uniform() < s.kept() {
            // A model trained on negatives of which a share w was kept says odds(p)/w.
            let said = odds * p / (odds * p + s.trained() * (1.0 - p));
            return (said, y);
        }
    }
}

/// Whether a data set of 5000 events is rejected.
fn rejects(s: Sampling, told: Sampling, odds: f64, seed: u64) -> bool {
    let options = Options {
        discrete: DiscreteMode::Off,
        sampling: told,
        ..Options::default()
    };
    let mut rng = Rng::new(seed);
    let sample: Vec<(f64, bool)> = (0..5000).map(|_| event(&mut rng, &s, odds)).collect();
    evaluate_scores(&sample, &options).is_some_and(|e| e.reject)
}

#[test]
fn calibrated_models_on_sampled_negatives_are_rejected_as_often_as_alpha_says() {
    let sets = data_sets(600);
    let bar = Bar::new(sets, level::RIGHT, &[0.12, 0.002]);
    let mut failures = Vec::new();
    for s in [
        rates(0.1, 1.0),
        rates(0.01, 1.0),
        rates(1.0, 0.05),
        rates(0.2, 0.05),
    ] {
        let rejected = count(sets, |seed| rejects(s, s, 1.0, seed));
        bar.check(&format!("{s:?}"), rejected, &mut failures);
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn a_wrong_model_and_an_untold_rate_are_found() {
    let s = rates(0.1, 1.0);
    let off = count(100, |seed| rejects(s, s, 1.5, seed));
    assert!(off >= 95, "odds half as large again: {off}");
    let untold = count(20, |seed| rejects(s, Sampling::default(), 1.0, seed));
    assert_eq!(untold, 20, "the test bites");
}

#[test]
fn the_event_rate_of_the_whole_population_comes_back() {
    let s = rates(0.05, 1.0);
    let mut rng = Rng::new(3);
    let sample: Vec<(f64, bool)> = (0..200_000).map(|_| event(&mut rng, &s, 1.0)).collect();
    let options = Options {
        sampling: s,
        ..Options::default()
    };
    let e = evaluate_scores(&sample, &options).expect("events");
    let whole = e.sampled.expect("a sampled population").whole_event_rate;
    let mean = (0..200_000).map(|_| truth(&mut rng)).sum::<f64>() / 200_000.0;
    assert!((whole / mean - 1.0).abs() < 0.03, "{whole} {mean}");
    assert!(e.event_rate > 5.0 * whole, "among what was kept");
    let plain = evaluate_scores(&sample, &Options::default()).expect("events");
    assert_eq!(plain.sampled, None);
}

const BEGIN_MS: i64 = 1_700_000_000_000 / 3_600_000 * 3_600_000;

fn plan(sampling: Sampling, joined: bool) -> Plan {
    let mut judge = JudgeOptions {
        stale_after_ms: i64::MAX,
        ..JudgeOptions::plain()
    };
    judge.evaluation.sampling = sampling;
    judge.evaluation.tcal.alpha = 0.001;
    let join = JoinPlan {
        maturity_ms: 60_000,
        pending_max: 100_000,
        ..JOIN
    };
    Plan {
        models: vec![ModelPlan {
            name: "*".to_owned(),
            segmenting: Segmenting::default(),
            views: vec![View::Binary],
            classes: Vec::new(),
            ladder: Ladder::new(vec![WindowSpec::time("1h", 3_600_000)], 10_000).expect("a ladder"),
            grid: Grid::new(Axis::Linear, 10),
            judge,
        }],
        joins: joined.then_some(join).into_iter().collect(),
        ..Plan::default()
    }
}

/// Twenty thousand events of 0.1 s, their outcomes with them or apart.
fn fed(sampling: Sampling, joined: bool) -> Engine {
    let mut engine = Engine::new(plan(sampling, joined));
    let s = rates(0.1, 1.0);
    let mut rng = Rng::new(11);
    for i in 0..20_000i64 {
        let (score, y) = event(&mut rng, &s, 1.0);
        let at = |source: u16| origin(source, 0, i);
        let (id, outcome) = (i.to_le_bytes(), Outcome::Binary(y));
        let time_ms = BEGIN_MS + 100 * i;
        let event = Event {
            model: "m",
            id: &id,
            time_ms,
            prediction: Prediction::Score(score),
            outcome: (!joined).then_some(outcome),
            ..EVENT
        };
        engine.observe(at(0), &event);
        if joined {
            engine.observe_outcome(at(1), &outcome_record(&id, time_ms, outcome));
        }
    }
    engine
}

fn verdict(engine: &mut Engine) -> Verdict {
    engine.finish();
    let report = engine.reports().next().expect("a stream");
    report.windows[0].verdict
}

#[test]
fn a_stream_of_sampled_negatives_is_judged_on_its_own_scale_joined_or_not() {
    let told = rates(0.1, 1.0);
    let (mut whole, mut joined) = (fed(told, false), fed(told, true));
    assert_eq!(verdict(&mut whole), Verdict::Calibrated);
    assert_eq!(verdict(&mut joined), Verdict::Calibrated);
    let sums = |e: &Engine| e.monitor().totals().next().expect("a window").2;
    assert!(sums(&whole) == sums(&joined), "the same sums, to the bit");
    let report = whole.reports().next().expect("a stream");
    let e = report.windows[0].scores().cloned().expect("numbers");
    assert!((e.mean_score - e.event_rate).abs() < 0.02, "{e:?}");
    assert_eq!(e.sampled.expect("a sampled stream").sampling, told);
    let mut untold = fed(Sampling::default(), false);
    assert_eq!(verdict(&mut untold), Verdict::Miscalibrated);
}

#[test]
fn sums_under_other_rates_are_not_gone_on_with_and_a_reload_does_not_change_them() {
    let mut engine = fed(rates(0.1, 1.0), false);
    engine.reload(&plan(rates(0.5, 1.0), false));
    let snapshot = engine.snapshot();
    assert_eq!(verdict(&mut engine), Verdict::Calibrated);
    let same = Engine::restore(plan(rates(0.1, 1.0), false), snapshot.clone());
    assert!(same.expect("a sound snapshot").dropped().is_empty());
    let other = Engine::restore(plan(rates(0.5, 1.0), false), snapshot);
    let other = other.expect("a sound snapshot");
    assert_eq!(other.dropped().len(), 1);
    assert!(
        other.dropped()[0].contains("sampling"),
        "{:?}",
        other.dropped()
    );
    assert_eq!(other.counters().streams_dropped, 1);
}
