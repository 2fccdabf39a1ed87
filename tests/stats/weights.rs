//! Importance weights: the tests' level, power and coverage under uneven weights, and that windows, joins,
//! restarts and files give one and the same answer.

use crate::level;
use crate::support::bars::{Bar, count, data_sets};
use std::collections::BTreeMap;
use trueline::collect::join::{JoinPlan, Missing, Repeated};
use trueline::collect::{Disposition, Event, Label, Origin, Reason, Segmenting};
use trueline::decode::{DecodeOptions, Decoder};
use trueline::judge::JudgeOptions;
use trueline::monitor::{Engine, ModelPlan, Plan};
use trueline::report::evaluation;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::evaluation::{
    DiscreteMode, Evaluation, Options, Weights, evaluate, evaluate_scores, evaluate_weighted,
};
use trueline::stats::fixed::Score;
use trueline::stats::rng::Rng;
use trueline::stats::sums::Sums;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::stats::weight::Weight;
use trueline::window::{Ladder, WindowSpec};

type Weighted = (f64, bool, f64);

/// How scores and weights are drawn. The weight never depends on the outcome but through the score.
type Law = fn(&mut Rng) -> (f64, f64);

/// Log-normal, coefficient of variation 1.3, whatever the score: half the weight is on an eighth of the events.
fn heavy(rng: &mut Rng) -> (f64, f64) {
    (rng.uniform(), rng.normal().exp())
}

/// Records of high scores kept one in twenty, so twenty times the weight.
fn tiers(rng: &mut Rng) -> (f64, f64) {
    loop {
        let z = rng.uniform();
        let chance = if z < 0.3 { 1.0 } else { 0.05 };
        if rng.uniform() < chance {
            return (z, 0.2 / chance);
        }
    }
}

/// Rare events, kept by a chance that rises with the score and by one that has nothing to do with it.
fn rare(rng: &mut Rng) -> (f64, f64) {
    loop {
        let z = 1.0 / (1.0 + (4.0 + 1.2 * rng.normal()).exp());
        let chance = (0.05 + 5.0 * z).min(1.0) * if rng.uniform() < 0.5 { 1.0 } else { 0.3 };
        if rng.uniform() < chance {
            return (z, 0.3 / chance);
        }
    }
}

const LAWS: [(&str, Law); 3] = [("log-normal", heavy), ("tiers", tiers), ("rare", rare)];

fn sample(rng: &mut Rng, law: Law, truth: fn(f64) -> f64, n: usize) -> Vec<Weighted> {
    let one = |rng: &mut Rng| {
        let (z, w) = law(rng);
        (z, rng.uniform() < truth(z), w)
    };
    (0..n).map(|_| one(rng)).collect()
}

fn sums_of(sample: &[Weighted]) -> Sums {
    let mut sums = Sums::new(Grid::new(Axis::Linear, 12).weighted());
    for &(z, y, w) in sample {
        let (z, w) = (Score::new(z).unwrap(), Weight::new(w).unwrap());
        sums.observe_weighted(z, y, w).unwrap();
    }
    sums
}

#[test]
fn calibrated_data_are_rejected_as_often_as_alpha_says_under_uneven_weights() {
    let sets = data_sets(600);
    let bar = Bar::new(sets, level::RIGHT, &[0.12, 0.002]);
    let mut failures = Vec::new();
    for (name, law) in LAWS {
        let rejected = count(sets, |seed| {
            let sample = sample(&mut Rng::new(seed), law, |z| z, 5000);
            evaluate(&sums_of(&sample), &Options::default())
                .unwrap()
                .reject
        });
        bar.check(name, rejected, &mut failures);
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn a_rejection_by_weights_is_of_the_population_and_not_of_the_sample() {
    // High scores are too high, and are one in twenty of what was kept.
    let wrong = |z: f64| if z < 0.3 { z } else { z - 0.06 };
    let found = count(100, |seed| {
        let sample = sample(&mut Rng::new(seed), tiers, wrong, 5000);
        evaluate(&sums_of(&sample), &Options::default())
            .unwrap()
            .reject
    });
    assert!(found >= 50, "{found} of 100");
    // Half of the scores are right on the whole and wrong by group; weights say how large each group is.
    let mut rng = Rng::new(7);
    let mut all: Vec<Weighted> = Vec::new();
    for i in 0..40_000u32 {
        let z = 0.2 + 0.6 * rng.uniform();
        // A third of the population, of which one in five is kept: two times too low against one time too high.
        let third = i % 3 == 0;
        if third && rng.uniform() >= 0.2 {
            continue;
        }
        let off = if third { -0.1 } else { 0.05 };
        all.push((z, rng.uniform() < z + off, if third { 5.0 } else { 1.0 }));
    }
    let o = Options::default();
    let weighted = evaluate_weighted(&all, &o).unwrap();
    let bare: Vec<(f64, bool)> = all.iter().map(|&(z, y, _)| (z, y)).collect();
    let bare = evaluate_scores(&bare, &o).unwrap();
    assert!(bare.reject, "the sample is off");
    assert!(
        weighted.in_the_large.mean_residual.abs() < 0.01 && !weighted.reject,
        "the population is not: {:?}",
        weighted.in_the_large
    );
}

#[test]
fn the_interval_covers_the_error_of_the_population() {
    let sets = data_sets(300);
    let bar = Bar::new(sets, 0.89..=1.0, &[0.75]);
    let mut failures = Vec::new();
    for beta in [0.05, 0.1, 0.2] {
        // Scores uniform in the population; kept by a chance that falls with the score, and one by lot.
        let covered = count(sets, |seed| {
            let mut rng = Rng::new(seed);
            let mut all = Vec::new();
            while all.len() < 5000 {
                let z = rng.uniform();
                let chance = (1.0 - 0.8 * z) * if rng.uniform() < 0.5 { 1.0 } else { 0.25 };
                if rng.uniform() < chance {
                    let p = z + beta * (1.0 - 2.0 * z);
                    all.push((z, rng.uniform() < p, 0.4 / chance));
                }
            }
            let i = evaluate(&sums_of(&all), &Options::default())
                .unwrap()
                .interval;
            let truth = beta / 3f64.sqrt();
            i.lower <= truth && truth <= i.upper
        });
        bar.check(&format!("error {beta}/√3"), covered, &mut failures);
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Without what says that there are weights, and what is withheld because of them.
fn bare(e: Evaluation) -> Evaluation {
    let cells = e.reliability.into_iter().map(|mut c| {
        (c.rate_low, c.rate_high) = (None, None);
        c
    });
    let mut tolerance = e.tolerance;
    tolerance.theorem_exceeded = None;
    Evaluation {
        reliability: cells.collect(),
        tolerance,
        weights: None,
        repeated: None,
        ..e
    }
}

#[test]
fn weights_of_one_give_what_no_weights_give_to_the_bit() {
    let o = Options {
        discrete: DiscreteMode::Off,
        ..Options::default()
    };
    for (seed, n) in [(1, 3), (2, 700), (3, 30_000)] {
        let scores: Vec<Weighted> = sample(&mut Rng::new(seed), heavy, |z| 0.9 * z, n)
            .into_iter()
            .map(|(z, y, _)| (z, y, 1.0))
            .collect();
        let plain: Vec<(f64, bool)> = scores.iter().map(|&(z, y, _)| (z, y)).collect();
        let mut sums = Sums::new(Grid::new(Axis::Linear, 12));
        for &(z, y) in &plain {
            sums.observe(Score::new(z).unwrap(), y).unwrap();
        }
        let (a, b) = (evaluate(&sums_of(&scores), &o), evaluate(&sums, &o));
        let (a, b) = (a.unwrap(), b.unwrap());
        let weights = Weights {
            sum: n as f64,
            effective: n as f64,
        };
        assert_eq!(a.weights, Some(weights));
        assert_eq!(bare(a), bare(b), "window, n = {n}");
        let (a, b) = (evaluate_weighted(&scores, &o), evaluate_scores(&plain, &o));
        let (a, b) = (bare(a.unwrap()), bare(b.unwrap()));
        assert_eq!(
            (a.tcal, a.interval, a.reliability),
            (b.tcal, b.interval, b.reliability)
        );
        assert_eq!(
            (a.ece_l1, a.mce, a.ks),
            (b.ece_l1, b.mce, b.ks),
            "file, n = {n}"
        );
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * (1.0 + b.abs());
        assert!(near(a.brier.score, b.brier.score) && near(a.log_loss, b.log_loss));
        assert!(near(a.cox.unwrap().score, b.cox.unwrap().score));
    }
}

#[test]
fn the_scale_of_weights_changes_nothing_and_a_weight_of_two_is_two_events() {
    let o = Options::default();
    let all = sample(&mut Rng::new(5), heavy, |z| 0.8 * z, 4000);
    let scaled: Vec<Weighted> = all.iter().map(|&(z, y, w)| (z, y, 64.0 * w)).collect();
    let (a, b) = (evaluate_weighted(&all, &o), evaluate_weighted(&scaled, &o));
    let (a, b) = (a.unwrap(), b.unwrap());
    assert_eq!((a.tcal.p_value, a.interval), (b.tcal.p_value, b.interval));
    assert_eq!(
        (a.ece_l1, a.brier.score, a.cox),
        (b.ece_l1, b.brier.score, b.cox)
    );
    assert_eq!(64.0 * a.weights.unwrap().sum, b.weights.unwrap().sum);
    // Two copies of an event have the rates of one of weight 2, and other spreads.
    let twice: Vec<(f64, bool)> = all[..500].iter().map(|&(z, y, _)| (z, y)).collect();
    let double: Vec<(f64, bool)> = twice
        .iter()
        .flat_map(|&e| [e, e])
        .chain(twice.clone())
        .collect();
    let heavy: Vec<Weighted> = twice.iter().map(|&(z, y)| (z, y, 3.0)).collect();
    let (a, b) = (
        evaluate_scores(&double, &o).unwrap(),
        evaluate_weighted(&heavy, &o).unwrap(),
    );
    assert!((a.ece_l1 - b.ece_l1).abs() < 1e-12 && (a.event_rate - b.event_rate).abs() < 1e-12);
    assert_eq!(
        (a.n, b.n, b.weights.unwrap().effective.round()),
        (1500, 500, 500.0)
    );
}

#[test]
fn a_window_says_what_the_file_of_its_events_says() {
    let o = Options {
        interval_cells: Some(64),
        ..Options::default()
    };
    for (name, law) in LAWS {
        // Weights on the grid of the window's resolution, so that both see the same.
        let all: Vec<Weighted> = sample(&mut Rng::new(9), law, |z| z.powf(0.9), 6000)
            .into_iter()
            .map(|(z, y, w)| (z, y, Weight::new(w).unwrap().value()))
            .collect();
        let live = evaluate(&sums_of(&all), &o).unwrap();
        let file = evaluate_weighted(&all, &o).unwrap();
        let close = |what: &str, a: f64, b: f64| {
            assert!(
                (a - b).abs() <= 1e-6 * (1e-3 + b.abs()),
                "{name} {what}: {a} {b}"
            );
        };
        for (a, b) in live.tcal.levels.iter().zip(&file.tcal.levels) {
            close("debiased", a.debiased, b.debiased);
            close("null sd", a.null_sd, b.null_sd);
        }
        assert_eq!(live.tcal.levels.len(), file.tcal.levels.len());
        close("interval", live.interval.upper, file.interval.upper);
        close(
            "sigma",
            live.interval.sigma1_squared,
            file.interval.sigma1_squared,
        );
        close("brier", live.brier.score, file.brier.score);
        close("loss", live.log_loss, file.log_loss);
        close("rate", live.event_rate, file.event_rate);
        close(
            "large",
            live.in_the_large.z.unwrap(),
            file.in_the_large.z.unwrap(),
        );
        close(
            "spiegelhalter",
            live.spiegelhalter.unwrap().z,
            file.spiegelhalter.unwrap().z,
        );
        close("cox", live.cox.unwrap().score, file.cox.unwrap().score);
        close(
            "effective",
            live.weights.unwrap().effective,
            file.weights.unwrap().effective,
        );
        assert_eq!((live.n, live.positives), (file.n, file.positives));
        let json = evaluation::json(&live);
        assert_eq!(
            json["weights"]["effective_n"],
            live.weights.unwrap().effective
        );
        assert!(json["weights"]["withheld"]["discrete"].is_string());
        assert!(json["discrete"].is_null() && json["tolerance"]["theorem_exceeded"].is_null());
        assert!(json["reliability"][0]["rate_low"].is_null());
        assert!(json["reliability"][0]["null_low"].is_number());
    }
}

#[test]
fn spiegelhalter_cox_and_the_large_keep_their_level_under_weights() {
    let sets = data_sets(600);
    let bar = Bar::new(sets, level::RIGHT, &[0.12, 0.002]);
    let mut failures = Vec::new();
    for (what, name) in ["in the large", "Spiegelhalter", "Cox"]
        .into_iter()
        .enumerate()
    {
        let rejected = count(sets, |seed| {
            let all = sample(&mut Rng::new(seed), tiers, |z| z, 3000);
            let e = evaluate_weighted(&all, &Options::default()).unwrap();
            let p = [
                e.in_the_large.p_value.unwrap(),
                e.spiegelhalter.unwrap().p_value,
                e.cox.unwrap().p_value,
            ];
            p[what] <= 0.05
        });
        bar.check(name, rejected, &mut failures);
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

const BEGIN_MS: i64 = 1_700_000_000_000 / 3_600_000 * 3_600_000;
const MINUTE: i64 = 60_000;

fn plan(joined: bool) -> Plan {
    let windows = vec![
        WindowSpec::time("10m", 10 * MINUTE),
        WindowSpec::time("1h", 60 * MINUTE),
    ];
    let join = JoinPlan {
        predictions: 0,
        outcomes: 1,
        maturity_ms: MINUTE,
        missing: Missing::Class(0),
        repeated: Repeated::First,
        revise: true,
        by_model: false,
        model: None,
        pending_max: 100_000,
        pending_memory: usize::MAX,
    };
    Plan {
        models: vec![ModelPlan {
            name: "*".to_owned(),
            segmenting: Segmenting {
                rollup: true,
                ..Segmenting::default()
            },
            views: vec![View::Binary],
            classes: Vec::new(),
            ladder: Ladder::new(windows, 10_000).expect("a ladder"),
            grid: Grid::new(Axis::Linear, 8).weighted(),
            judge: JudgeOptions {
                stale_after_ms: i64::MAX,
                ..JudgeOptions::default()
            },
        }],
        joins: joined.then_some(join).into_iter().collect(),
        ..Plan::default()
    }
}

/// An event every 50 ms in one of two segments; where outcomes come apart, positives come up to three minutes
/// later, after a minute as revisions, and negatives never.
fn events() -> Vec<(i64, Weighted, i64)> {
    let mut rng = Rng::new(3);
    let all = sample(&mut rng, heavy, |z| z, 20_000);
    let timed = (0i64..).zip(all).map(|(i, e)| {
        let delay = (rng.uniform() * 3.0 * MINUTE as f64) as i64;
        (i, e, delay)
    });
    timed.collect()
}

fn at(source: u16, offset: i64) -> Origin {
    Origin {
        source,
        partition: 0,
        offset,
    }
}

fn take(engine: &mut Engine, offset: i64, &(i, (z, y, w), _): &(i64, Weighted, i64), joined: bool) {
    let id = i.to_le_bytes();
    let event = Event {
        model: "m",
        version: "",
        segment: if i % 3 == 0 { "c=a" } else { "c=b" },
        id: &id,
        time_ms: BEGIN_MS + 50 * i,
        arrival_ms: None,
        prediction: Prediction::Score(z),
        outcome: (!joined).then_some(Outcome::Binary(y)),
        weight: Some(Weight::new(w).unwrap()),
        cluster: None,
    };
    let end = engine.observe(at(0, offset), &event);
    assert!(
        matches!(end, Disposition::Observed | Disposition::Pending),
        "{end:?}"
    );
}

fn totals(engine: &mut Engine) -> BTreeMap<(String, String), Sums> {
    engine.finish();
    for (source, c) in engine.counters().sources() {
        assert_eq!(c.records, c.disposed(), "source {source}");
    }
    let all = engine.totals();
    all.map(|(id, w, s)| ((id.segment.clone(), w.window.clone()), s))
        .collect()
}

#[test]
fn weighted_windows_are_the_same_to_the_bit_in_any_order_and_after_restarts() {
    let all = events();
    let mut straight = Engine::new(plan(false));
    for (offset, event) in (0..).zip(&all) {
        take(&mut straight, offset, event, false);
    }
    let expected = totals(&mut straight);
    let whole = &expected[&("*".to_owned(), "1h".to_owned())];
    assert_eq!(whole.n(), 20_000, "the roll-up holds all");
    let weighted: Vec<Weighted> = all.iter().map(|(_, e, _)| *e).collect();
    let mut direct = Sums::new(Grid::new(Axis::Linear, 8).weighted());
    for &(z, y, w) in &weighted {
        let (z, w) = (Score::new(z).unwrap(), Weight::new(w).unwrap());
        direct.observe_weighted(z, y, w).unwrap();
    }
    assert!(*whole == direct, "and is the sums of its events");
    let report = straight.reports().find(|r| r.id.segment == "*").unwrap();
    let e = report.windows[1].scores().cloned().expect("numbers");
    assert!(
        !e.reject && e.weights.unwrap().effective < 15_000.0,
        "{e:?}"
    );

    // Shuffled within the lateness, restarted every 3001 records.
    let mut rng = Rng::new(4);
    let mut shuffled: Vec<(i64, &(i64, Weighted, i64))> = all
        .iter()
        .map(|e| (50 * e.0 + (9000.0 * rng.uniform()) as i64, e))
        .collect();
    shuffled.sort_by_key(|(key, _)| *key);
    let mut engine = Engine::new(plan(false));
    for (offset, (_, event)) in (0i64..).zip(&shuffled) {
        take(&mut engine, offset, event, false);
        if offset % 3001 == 3000 {
            let snapshot = engine.snapshot();
            engine = Engine::restore(plan(false), snapshot).expect("a sound snapshot");
            assert!(engine.dropped().is_empty());
        }
    }
    assert!(totals(&mut engine) == expected, "another order, other bits");

    // Outcomes apart: in time, late as revisions, or never.
    let mut records: Vec<(i64, bool, &(i64, Weighted, i64))> = Vec::new();
    for event in &all {
        let time = 50 * event.0;
        records.push((time, false, event));
        if event.1.1 {
            records.push((time + event.2, true, event));
        }
    }
    records.sort_by_key(|(time, outcome, _)| (*time, *outcome));
    let mut joined = Engine::new(plan(true));
    let mut offsets = [0i64; 2];
    let mut disk: BTreeMap<(u16, i32, u64), Vec<u8>> = BTreeMap::new();
    for (n, (time, outcome, event)) in records.iter().enumerate() {
        if *outcome {
            let label = Label {
                model: None,
                id: &event.0.to_le_bytes(),
                time_ms: BEGIN_MS + time,
                arrival_ms: None,
                outcome: Outcome::Binary(true),
            };
            joined.label(at(1, offsets[1]), &label);
            offsets[1] += 1;
        } else {
            take(&mut joined, offsets[0], event, true);
            offsets[0] += 1;
        }
        if n % 7001 == 7000 {
            for d in joined.take_journals() {
                let key = (d.join, d.partition, d.segment);
                disk.entry(key).or_default().extend(d.bytes);
            }
            let snapshot = joined.snapshot();
            let segments = snapshot.joins.iter().map(|j| {
                let marks = j.marks.iter();
                marks
                    .map(|m| disk[&(j.join, j.partition, m.segment)].clone())
                    .collect()
            });
            let segments: Vec<Vec<Vec<u8>>> = segments.collect();
            let again = Engine::restore_joined(plan(true), snapshot, &segments);
            joined = again.expect("a sound snapshot");
        }
    }
    let got = totals(&mut joined);
    let revised: u64 = joined.counters().sources().map(|(_, c)| c.revised).sum();
    assert!(revised > 1000, "the test bites: {revised}");
    let keys = |all: &BTreeMap<(String, String), Sums>| {
        let ns = all.iter().map(|(k, s)| (k.clone(), s.n()));
        ns.collect::<Vec<_>>()
    };
    assert_eq!(keys(&got), keys(&expected));
    assert!(
        got == expected,
        "joined: same numbers of events, other sums"
    );
}

#[test]
fn sums_of_weighted_events_are_not_gone_on_with_without_weights() {
    let mut engine = Engine::new(plan(false));
    for (offset, event) in (0..).zip(&events()[..2000]) {
        take(&mut engine, offset, event, false);
    }
    let mut other = plan(false);
    other.models[0].grid = Grid::new(Axis::Linear, 8);
    let restored = Engine::restore(other, engine.snapshot()).expect("a sound snapshot");
    assert_eq!(
        restored.dropped().len(),
        3,
        "two segments and their roll-up"
    );
}

#[test]
fn a_weight_that_is_none_is_rejected_by_name_and_counted() {
    let options = DecodeOptions {
        weight: Some("w".into()),
        ..DecodeOptions::default()
    };
    let mut decoder = Decoder::new(&options).unwrap();
    let mut engine = Engine::new(plan(false));
    let mut weigh = |offset: i64, w: &str| {
        let time_ms = BEGIN_MS + offset;
        let text = format!(r#"{{"model":"m","time_ms":{time_ms},"score":0.5,"outcome":1{w}}}"#);
        match decoder.decode(text.as_bytes(), None, None) {
            Ok(event) => engine.observe(at(0, offset), &event),
            Err(rejection) => {
                assert!(rejection.detail.contains("`w`"), "{}", rejection.detail);
                engine.reject(at(0, offset), None, rejection.reason)
            }
        }
    };
    let bad = Disposition::Rejected(Reason::BadWeight);
    for (offset, w, end) in [
        (0, ",\"w\":2.5", Disposition::Observed),
        (1, ",\"w\":0", bad),
        (2, ",\"w\":-1", bad),
        // A broken number is bad JSON before it is a bad weight; other formats can write it (tests/decode/formats.rs).
        (3, ",\"w\":1e999", bad),
        (4, ",\"w\":65536", bad),
        (5, ",\"w\":1e-6", bad),
        (6, ",\"w\":\"1\"", bad),
        (7, ",\"w\":[1]", bad),
        (8, "", Disposition::Rejected(Reason::MissingField)),
        (
            9,
            ",\"w\":null",
            Disposition::Rejected(Reason::MissingField),
        ),
    ] {
        assert_eq!(weigh(offset, w), end, "{w}");
    }
    let counters = engine.counters();
    let (_, c) = counters.sources().next().unwrap();
    assert_eq!((c.records, c.observed), (10, 1));
    assert_eq!(c.records, c.disposed());
    // An event without weight, of a model that needs one, from whom has no decoder.
    let event = Event {
        model: "m",
        version: "",
        segment: "",
        id: b"",
        time_ms: BEGIN_MS,
        arrival_ms: None,
        prediction: Prediction::Score(0.5),
        outcome: Some(Outcome::Binary(true)),
        weight: None,
        cluster: None,
    };
    let end = engine.observe(at(0, 10), &event);
    assert_eq!(end, Disposition::Rejected(Reason::MissingField));
}

#[test]
fn a_file_with_a_column_of_weights_is_evaluated_by_them() {
    let all = sample(&mut Rng::new(12), tiers, |z| 0.7 * z, 3000);
    let mut text = String::from("score,weight,label\n");
    for (z, y, w) in &all {
        text += &format!("{z},{w},{}\n", u8::from(*y));
    }
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("weights.csv");
    std::fs::write(&path, text).unwrap();
    let run = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_trueline"));
        let out = command.arg("evaluate").args(args).arg(&path).output();
        out.unwrap()
    };
    let out = run(&["--json", "--fail-on-miscalibrated"]);
    assert_eq!(
        out.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let e = evaluate_weighted(&all, &Options::default()).unwrap();
    assert_eq!(json["tcal"]["p_value"], e.tcal.p_value);
    assert_eq!(json["weights"]["effective_n"], e.weights.unwrap().effective);
    assert_eq!(json["n"], 3000);
    let table = String::from_utf8(run(&[]).stdout).unwrap();
    assert!(table.contains("effective number of events"), "{table}");
    let refused = run(&["--method", "paper"]);
    assert_eq!(refused.status.code(), Some(64));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("has weights"), "{said}");
}
