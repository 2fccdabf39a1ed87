//! Vector views of weighted events: the null is the law of all outcomes, the tests keep their level and have power under
//! uneven weights, and windows, files, joins and restarts give one and the same answer.
//!
//! `TRUELINE_DATA_SETS=4000` runs level and coverage at the size of the bars themselves.

use crate::support::bars::{count, data_sets};
use std::collections::BTreeMap;
use trueline::collect::join::{JoinPlan, Missing, Repeated};
use trueline::collect::{Disposition, Event, Label, Origin};
use trueline::judge::{Change, JudgeOptions, ModelPlan, Plan, Step, Undecided, Verdict};
use trueline::monitor::Engine;
use trueline::report::record::Record;
use trueline::report::vectors;
use trueline::stats::algebra::Merge;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::kernel::Vectors;
use trueline::stats::kernel::conditional::draw;
use trueline::stats::multiclass::level::VectorLevel;
use trueline::stats::multiclass::sums::Shape;
use trueline::stats::multiclass::{
    Evaluation, Events, VectorSums, VectorView, estimate, evaluate, evaluate_events, evaluate_sums,
};
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::stats::weight::Weight;
use trueline::window::SumsState;
use trueline::window::{Ladder, WindowSpec};

/// Events of some classes with weights.
#[derive(Clone)]
struct Sample {
    all: Vectors,
    weights: Vec<f64>,
}

/// The weight of an event that is kept, or `None`: given the prediction it has nothing to do with what happens.
type Law = fn(&mut Rng, &[f64]) -> Option<f64>;

/// Log-normal, coefficient of variation 1.3, whatever the prediction.
fn heavy(rng: &mut Rng, _: &[f64]) -> Option<f64> {
    Some(rng.normal().exp())
}

/// Where class 0 is likely one in ten is kept, and has ten times the weight.
fn tiers(rng: &mut Rng, p: &[f64]) -> Option<f64> {
    let chance = if p[0] > 0.4 { 0.1 } else { 1.0 };
    (rng.uniform() < chance).then_some(0.2 / chance)
}

const LAWS: [(&str, Law); 2] = [("log-normal", heavy), ("tiers", tiers)];

/// Names a class when a prediction was made.
type Truth = fn(&mut Rng, &[f64]) -> u32;

fn calibrated(rng: &mut Rng, p: &[f64]) -> u32 {
    draw(p, rng.uniform())
}

/// Where class 0 is likely a share of what would have been it is class 1.
fn moved(rng: &mut Rng, p: &[f64], share: f64) -> u32 {
    let y = draw(p, rng.uniform());
    let moves = p[0] > 0.4 && y == 0 && rng.uniform() < share;
    if moves { 1 } else { y }
}

fn overdone(rng: &mut Rng, p: &[f64]) -> u32 {
    moved(rng, p, 0.2)
}

fn overdone_by_half(rng: &mut Rng, p: &[f64]) -> u32 {
    moved(rng, p, 0.5)
}

fn sample(classes: usize, n: usize, law: Law, truth: Truth, seed: u64) -> Sample {
    let mut rng = Rng::new(seed);
    let mut out = Sample {
        all: Vectors::new(classes),
        weights: Vec::new(),
    };
    while out.weights.len() < n {
        let mut p: Vec<f64> = (0..classes).map(|_| -(1.0 - rng.uniform()).ln()).collect();
        let sum: f64 = p.iter().sum();
        p.iter_mut().for_each(|p| *p /= sum);
        let Some(w) = law(&mut rng, &p) else { continue };
        let y = truth(&mut rng, &p);
        out.all.push(&p, y).unwrap();
        // On the grid of the window's resolution, so that all forms see the same.
        out.weights.push(Weight::new(w).unwrap().value());
    }
    out
}

fn shape(classes: usize, view: VectorView, weighted: bool) -> Shape {
    Shape {
        view,
        classes,
        cells_max: 4096,
        weighted,
    }
}

fn sums(s: &Sample, view: VectorView, order: impl Iterator<Item = usize>) -> VectorSums {
    let mut sums = VectorSums::new(shape(s.all.classes(), view, true)).unwrap();
    for i in order {
        let weight = Weight::new(s.weights[i]).ok();
        assert!(sums.observe(s.all.row(i), 1.0, s.all.outcome(i), weight));
    }
    sums
}

fn live(s: &Sample, view: VectorView) -> Evaluation {
    evaluate_sums(&sums(s, view, 0..s.weights.len()), 0.05, 0.9).unwrap()
}

/// Share of data sets of which something holds.
fn share(sets: u64, holds: impl Fn(u64) -> bool + Sync) -> f64 {
    count(sets, holds) as f64 / sets as f64
}

const VIEWS: [(usize, VectorView); 3] = [
    (3, VectorView::Full),
    (5, VectorView::TopK(2)),
    (4, VectorView::TopK(3)),
];

#[test]
fn moments_given_predictions_and_weights_are_those_of_all_outcomes() {
    for (classes, view) in [(3, VectorView::Full), (3, VectorView::TopK(2))] {
        let s = sample(classes, 5, heavy, calibrated, 2);
        let mut found = [0.0; 4];
        for code in 0..3u32.pow(5) {
            let y: Vec<u32> = (0..5).map(|i| code / 3u32.pow(i) % 3).collect();
            let chance: f64 = (0..5).map(|i| s.all.row(i)[y[i] as usize]).product();
            let events = Events::weighted(&s.all.with_outcomes(y), view, &s.weights);
            let t = estimate::debiased(&VectorLevel::of(&events, 1));
            let powers = [1.0, t, t * t, t * t * t];
            found
                .iter_mut()
                .zip(powers)
                .for_each(|(a, b)| *a += chance * b);
        }
        let events = Events::weighted(&s.all, view, &s.weights);
        let m = estimate::moments_of_debiased(&VectorLevel::of(&events, 1));
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-13, "{view}: {a} {b}");
        near(found[0], 1.0);
        near(found[1], 0.0);
        near(found[2], m.variance);
        near(found[3], m.third);
        // The window's integers give the same variance; its third cumulant is at the cell's mean.
        let levels = sums(&s, view, 0..5).levels(1);
        let [kept, exact] =
            [&levels[0], &VectorLevel::of(&events, 2)].map(estimate::moments_of_debiased);
        assert!((kept.variance - exact.variance).abs() < 1e-8);
    }
}

#[test]
fn calibrated_events_are_rejected_as_often_as_alpha_says_under_uneven_weights() {
    let sets = data_sets(400);
    // Four binomial errors on both sides of 0.05.
    let bar = 4.0 * (0.05 * 0.95 / sets as f64).sqrt();
    for (name, law) in LAWS {
        for (classes, view) in VIEWS {
            let level = share(sets, move |seed| {
                live(&sample(classes, 1000, law, calibrated, seed), view)
                    .tcal
                    .reject
            });
            println!("{name}, {view} of {classes}: level {level:.4} over {sets} data sets of 1000");
            assert!(
                (level - 0.05).abs() < bar,
                "{name} {view}: {level}; seeds 0 to {sets}"
            );
        }
    }
}

#[test]
fn a_class_that_is_overdone_where_few_were_kept_is_found_by_weight() {
    let cases: [(_, _, Truth); 2] = [
        (3, VectorView::Full, overdone),
        // Of four classes sorted, both neighbours lose and win.
        (4, VectorView::TopK(2), overdone_by_half),
    ];
    for (classes, view, truth) in cases {
        let power = share(60, move |seed| {
            live(&sample(classes, 4000, tiers, truth, seed), view)
                .tcal
                .reject
        });
        println!("{view} of {classes}: power {power}");
        assert!(power > 0.75, "{view}: {power}");
    }
}

#[test]
fn the_interval_covers_the_error_of_the_population() {
    // The population's ℓ2-ECE, by the weights themselves: outcomes are moved from 0 to 1 with p₀/5 where p₀ > 0.4.
    let sets = data_sets(300);
    let covered = share(sets, move |seed| {
        let s = sample(3, 3000, tiers, overdone, 7000 + seed);
        let i = live(&s, VectorView::Full).interval;
        let moved = |p: &[f64]| {
            if p[0] > 0.4 {
                2.0 * (p[0] / 5.0).powi(2)
            } else {
                0.0
            }
        };
        let squares = s
            .all
            .events()
            .zip(&s.weights)
            .map(|((p, _), w)| w * moved(p));
        let truth = (squares.sum::<f64>() / s.weights.iter().sum::<f64>()).sqrt();
        i.lower <= truth && truth <= i.upper
    });
    println!("covered {covered} of {sets} data sets at 0.9");
    assert!(
        covered > 0.9 - 4.0 * (0.09 / sets as f64).sqrt(),
        "{covered}"
    );
}

fn close(what: &str, a: f64, b: f64, within: f64) {
    assert!(
        (a - b).abs() <= within * (1e-3 + b.abs()),
        "{what}: {a} {b}"
    );
}

fn same(a: &Evaluation, b: &Evaluation, within: f64) {
    assert_eq!(a.tcal.levels.len(), b.tcal.levels.len());
    for (a, b) in a.tcal.levels.iter().zip(&b.tcal.levels) {
        assert_eq!(
            (a.slices, a.occupied, a.shared),
            (b.slices, b.occupied, b.shared)
        );
        close("plug-in", a.plug_in, b.plug_in, within);
        close("debiased", a.debiased, b.debiased, within);
        close("null sd", a.null_sd, b.null_sd, within);
        close("p", a.p_value, b.p_value, within);
    }
    close("joint p", a.tcal.p_value, b.tcal.p_value, within);
    let (x, y) = (&a.interval, &b.interval);
    close("estimate", x.estimate_squared, y.estimate_squared, within);
    close("sigma", x.sigma1_squared, y.sigma1_squared, within);
    close("upper", x.upper, y.upper, within);
    assert_eq!(
        (x.slices, x.contains_zero, x.median_count),
        (y.slices, y.contains_zero, y.median_count)
    );
    close("l1", a.ece_l1, b.ece_l1, within);
}

#[test]
fn weights_that_are_all_equal_say_what_no_weights_say() {
    for (classes, view) in VIEWS {
        for (n, w) in [(2, 1.0), (300, 1.0), (3000, 2.5), (3000, 0.125)] {
            let mut s = sample(classes, n, heavy, overdone, 9);
            s.weights = vec![w; n];
            let mut plain = VectorSums::new(shape(classes, view, false)).unwrap();
            for (row, y) in s.all.events() {
                assert!(plain.observe(row, 1.0, y, None));
            }
            let (a, b) = (live(&s, view), evaluate_sums(&plain, 0.05, 0.9).unwrap());
            // Integers are the same; σ̂₁² and third cumulants are put together in another order.
            same(&a, &b, 1e-9);
            assert_eq!(
                a.interval.lower.to_bits() == 0,
                b.interval.lower.to_bits() == 0
            );
            let slices = Some(a.interval.slices);
            let events = Events::weighted(&s.all, view, &s.weights);
            let a = evaluate_events(&events, 0.05, 0.9, slices).unwrap();
            let b = evaluate(&s.all, view, 0.05, 0.9, slices).unwrap();
            same(&a, &b, 1e-9);
            assert_eq!(
                (a.weights.unwrap().effective.round(), b.weights),
                (n as f64, None)
            );
        }
    }
}

#[test]
fn the_scale_of_the_weights_changes_nothing() {
    for (classes, view) in VIEWS {
        let s = sample(classes, 2000, heavy, overdone, 5);
        let mut scaled = s.clone();
        scaled.weights.iter_mut().for_each(|w| *w *= 16.0);
        let (a, b) = (live(&s, view), live(&scaled, view));
        same(&a, &b, 1e-12);
        assert_eq!(16.0 * a.weights.unwrap().sum, b.weights.unwrap().sum);
    }
}

#[test]
fn a_window_says_what_the_file_of_its_events_says() {
    for (name, law) in LAWS {
        for (classes, view) in VIEWS {
            let s = sample(classes, 3000, law, overdone, 11);
            let a = live(&s, view);
            let events = Events::weighted(&s.all, view, &s.weights);
            let b = evaluate_events(&events, 0.05, 0.9, Some(a.interval.slices)).unwrap();
            for (a, b) in a.tcal.levels.iter().zip(&b.tcal.levels) {
                assert_eq!(
                    (a.slices, a.occupied),
                    (b.slices, b.occupied),
                    "{name} {view}"
                );
                close("debiased", a.debiased, b.debiased, 1e-6);
                close("null sd", a.null_sd, b.null_sd, 1e-5);
                // Third cumulants are at the cell's mean.
                assert!(
                    (a.p_value - b.p_value).abs() < 0.02,
                    "{} {}",
                    a.p_value,
                    b.p_value
                );
            }
            close(
                "estimate",
                a.interval.estimate_squared,
                b.interval.estimate_squared,
                1e-6,
            );
            close(
                "sigma",
                a.interval.sigma1_squared,
                b.interval.sigma1_squared,
                1e-6,
            );
            let (x, y) = (a.weights.unwrap(), b.weights.unwrap());
            close("effective", x.effective, y.effective, 1e-12);
            assert!(x.effective < 2500.0);
            let json = vectors::json(&a);
            assert_eq!(json["weights"]["effective_n"], x.effective);
            assert!(json["tcal"]["theorem_reject"].is_null());
        }
    }
}

#[test]
fn any_split_order_and_revision_gives_the_same_integers_and_rows_give_them_back() {
    for (classes, view) in VIEWS {
        let s = sample(classes, 600, heavy, calibrated, 3);
        let whole = sums(&s, view, 0..600);
        let mut back = VectorSums::new(whole.shape()).unwrap();
        back.merge(&sums(&s, view, (250..600).rev())).unwrap();
        back.merge(&sums(&s, view, 0..250)).unwrap();
        assert_eq!((back.rows(), back.n()), (whole.rows(), 600));
        let again = VectorSums::from_rows(whole.shape(), whole.rows(), 0).unwrap();
        assert!(again.rows() == whole.rows() && again.n() == 600);
        assert!(VectorSums::from_rows(shape(classes, view, false), whole.rows(), 0).is_none());
        // Every event with another class at first, or none.
        let mut revised = VectorSums::new(whole.shape()).unwrap();
        let wrong = |i: usize| (s.all.outcome(i) + 1) % classes as u32;
        let weight = |i: usize| Weight::new(s.weights[i]).ok();
        for i in 0..300 {
            assert!(revised.observe(s.all.row(i), 1.0, wrong(i), weight(i)));
        }
        for i in 0..600 {
            let row = s.all.row(i);
            let mut order: Vec<u32> = (0..classes as u32).collect();
            order.sort_by(|&a, &b| row[b as usize].total_cmp(&row[a as usize]));
            let values: Vec<f64> = order.iter().map(|&c| row[c as usize]).collect();
            let ranked = trueline::stats::multiclass::Ranked {
                values: &values,
                classes: &order,
            };
            let before = (i < 300).then_some(wrong(i));
            assert!(revised.revise(ranked, before, s.all.outcome(i), weight(i)));
        }
        assert!(revised.rows() == whole.rows());
        let mut none = VectorSums::new(whole.shape()).unwrap();
        assert!(!none.observe(s.all.row(0), 1.0, 0, None));
        assert_eq!((none.n(), none.refused()), (0, 1));
    }
}

const BEGIN_MS: i64 = 1_760_000_400_000 / 600_000 * 600_000;
const MINUTE: i64 = 60_000;

fn plan(joined: bool) -> Plan {
    let windows = vec![
        WindowSpec::time("6m", 6 * MINUTE),
        WindowSpec::time("30m", 30 * MINUTE),
    ];
    let join = JoinPlan {
        predictions: 0,
        outcomes: 1,
        maturity_ms: 2 * MINUTE,
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
            segmenting: Default::default(),
            views: vec![View::TopLabel, View::TopK(2), View::Full],
            classes: (0..3).map(|k| k.to_string()).collect(),
            ladder: Ladder::new(windows, 10_000).unwrap(),
            grid: Grid::new(Axis::Linear, 6).weighted(),
            judge: JudgeOptions {
                stale_after_ms: i64::MAX,
                min_events: 600,
                ..JudgeOptions::default()
            },
        }],
        joins: joined.then_some(join).into_iter().collect(),
        ..Plan::default()
    }
}

fn observe(engine: &mut Engine, s: &Sample, i: usize, joined: bool) {
    let event = Event {
        model: "m",
        version: "",
        segment: "",
        id: &i.to_le_bytes(),
        time_ms: BEGIN_MS + 400 * i as i64,
        arrival_ms: None,
        prediction: Prediction::Vector(s.all.row(i)),
        outcome: (!joined).then_some(Outcome::Class(s.all.outcome(i))),
        weight: Weight::new(s.weights[i]).ok(),
        cluster: None,
    };
    let origin = Origin {
        source: 0,
        partition: 0,
        offset: i as i64,
    };
    let end = engine.observe(origin, &event);
    let wanted = [Disposition::Observed, Disposition::Pending][usize::from(joined)];
    assert_eq!(end, wanted);
}

/// All that the wide windows of the vector views hold.
fn held(engine: &mut Engine) -> Vec<(String, Vec<(i64, SumsState)>)> {
    engine.finish();
    let mut all = Vec::new();
    for version in engine.snapshot().vectors {
        for view in version.views {
            let panes = view.judge.rings[1].panes.iter();
            let panes = panes.map(|p| (p.start_ms, p.sums.clone()));
            all.push((view.view, panes.collect()));
        }
    }
    assert_eq!(all.len(), 2);
    all
}

#[test]
fn weighted_windows_are_the_same_to_the_bit_joined_revised_and_through_restarts() {
    let s = sample(3, 2400, heavy, overdone, 21);
    let mut straight = Engine::new(plan(false));
    (0..2400).for_each(|i| observe(&mut straight, &s, i, false));
    let expected = held(&mut straight);
    for view in [View::TopK(2), View::Full] {
        let report = straight.reports().find(|r| r.id.view == view).unwrap();
        let [narrow, wide] = &report.windows[..] else {
            panic!()
        };
        let e = wide.cells().cloned().unwrap();
        assert!(e.n == 2400 && e.weights.unwrap().effective < 2000.0);
        // Nine hundred events, and half as many by weight.
        assert_eq!(narrow.verdict, Verdict::Undecided(Undecided::TooFew));
        assert!(narrow.n >= 600);
    }
    // Outcomes come up to six minutes later, after two as revisions of class 0.
    let mut rng = Rng::new(4);
    let mut records: Vec<(i64, bool, usize)> = Vec::new();
    for i in 0..2400 {
        let at = 400 * i as i64;
        records.push((at, false, i));
        records.push((at + (rng.uniform() * 6.0 * MINUTE as f64) as i64, true, i));
    }
    records.sort_unstable();
    let mut joined = Engine::new(plan(true));
    let mut disk: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    let mut outcomes = 0;
    for (n, &(at, outcome, i)) in records.iter().enumerate() {
        if outcome {
            let label = Label {
                model: None,
                id: &i.to_le_bytes(),
                time_ms: BEGIN_MS + at,
                arrival_ms: None,
                outcome: Outcome::Class(s.all.outcome(i)),
            };
            let origin = Origin {
                source: 1,
                partition: 0,
                offset: outcomes,
            };
            joined.label(origin, &label);
            outcomes += 1;
        } else {
            observe(&mut joined, &s, i, true);
        }
        if n % 701 == 700 {
            for d in joined.take_journals() {
                disk.entry(d.segment).or_default().extend(d.bytes);
            }
            let snapshot = joined.snapshot();
            let marks = snapshot.joins.iter().map(|j| &j.marks);
            let of = |m: &trueline::collect::join::JournalMark| disk[&m.segment].clone();
            let segments: Vec<Vec<Vec<u8>>> = marks.map(|m| m.iter().map(of).collect()).collect();
            joined = Engine::restore_joined(plan(true), snapshot, &segments).unwrap();
        }
    }
    let got = held(&mut joined);
    assert!(joined.counters().total().revised > 500);
    assert!(got == expected, "joined: other sums");
}

#[test]
fn a_file_of_vectors_with_a_column_of_weights_is_evaluated_by_them() {
    let s = sample(3, 2000, tiers, overdone, 12);
    let mut text = String::from("p0,p1,p2,weight,label\n");
    for ((p, y), w) in s.all.events().zip(&s.weights) {
        text += &format!("{},{},{},{w},{y}\n", p[0], p[1], p[2]);
    }
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("vector_weights.csv");
    std::fs::write(&path, text).unwrap();
    let run = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_trueline"));
        command
            .arg("evaluate")
            .args(args)
            .arg(&path)
            .output()
            .unwrap()
    };
    let out = run(&["--json", "--view", "full"]);
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let events = Events::weighted(&s.all, VectorView::Full, &s.weights);
    let e = evaluate_events(&events, 0.05, 0.9, None).unwrap();
    assert_eq!(json["tcal"]["p_value"], e.tcal.p_value);
    assert_eq!(json["weights"]["effective_n"], e.weights.unwrap().effective);
    let table = String::from_utf8(run(&["--view", "top_k:2"]).stdout).unwrap();
    assert!(table.contains("effective number of events"), "{table}");
    // A single score of them is weighted too.
    let out = run(&["--json", "--view", "class:1"]);
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(json["weights"]["effective_n"], e.weights.unwrap().effective);
    let out = run(&["--json", "--view", "kernel"]);
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(out.status.code(), Some(0), "{json:#}");
    assert!(json["n"].as_u64() == Some(2000), "{json:#}");
    for args in [["--view", "classes"], ["--method", "paper"]] {
        let refused = run(&args);
        assert_eq!(refused.status.code(), Some(64));
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains("has weights"), "{said}");
    }
}

#[test]
fn an_alert_by_weight_is_recomputed_from_its_record_to_the_bit() {
    let s = sample(3, 2400, tiers, overdone_by_half, 22);
    let mut engine = Engine::new(plan(false));
    (0..2400).for_each(|i| observe(&mut engine, &s, i, false));
    let changes = engine.finish();
    let mine = |c: &&Change| matches!(c.step, Step::Stream { .. }) && c.stream.view == View::Full;
    let change = changes.iter().find(mine).expect("an alert");
    let record = Record::of(change, "", Vec::new()).expect("its facts");
    let text = serde_json::to_string(&record).unwrap();
    let checked = Record::read(&text).unwrap().recompute();
    assert!(checked.different.is_empty(), "{checked:?}");
    assert!(
        checked.equal.iter().any(|p| p.contains("evaluation")),
        "{checked:?}"
    );
}
