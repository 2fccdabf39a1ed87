//! The live tests: their level and power, the record of their alert, and what they say of published
//! networks.

use super::{Row, SPAN_MS, START_MS, VIEWS, feed, plan, plan_of, report, rows, rows_of};
use crate::support::bars::Bar;
use crate::support::golden::published;
use std::path::Path;
use trueline::judge::Step;
use trueline::report::record::Record;
use trueline::stats::kernel::Vectors;
use trueline::stats::multiclass::{self, Events, VectorLevel, tcal};
use trueline::stats::view::View;
use trueline::window::{Ladder, WindowSpec};

#[test]
fn an_alert_of_a_vector_view_is_recomputed_from_its_record_to_the_bit() {
    let mut tight = plan();
    tight.models[0].ladder = Ladder::new(vec![WindowSpec::time("6m", 360_000)], 0).unwrap();
    let mut engine = feed(tight, &rows(3000, 0.3, 12));
    let changes = engine.finish();
    let alerts = changes
        .iter()
        .filter(|c| matches!(c.step, Step::Stream { .. }) && c.stream.view.is_vector());
    let mut seen = 0;
    for change in alerts {
        let text = serde_json::to_string(&Record::of(change, "", Vec::new()).unwrap()).unwrap();
        let record = Record::read(&text).unwrap();
        let checked = record.recompute();
        assert!(checked.different.is_empty(), "{checked:?}");
        assert!(checked.equal.iter().any(|p| p.contains("evaluation")));
        assert!(record.words().contains("l2-ECE"));
        // Another count of one cell is another p-value.
        let broken = text.replacen("\"p_value\":", "\"p_value\":1", 1);
        let broken = Record::read(&broken).unwrap().recompute();
        assert!(!broken.different.is_empty());
        seen += 1;
    }
    assert_eq!(seen, 2);
}

#[test]
fn live_tests_keep_their_level_and_find_a_class_that_is_pushed() {
    let spec = || vec![WindowSpec::time("10m", SPAN_MS)];
    let plan = || {
        plan_of(
            3,
            &[View::TopLabel, View::TopK(2), View::Full],
            spec(),
            SPAN_MS,
        )
    };
    let run = |sets: u64, n: usize, pushed: f64, seed: u64| {
        let mut rejected = [0u64; 2];
        for set in 0..sets {
            let mut engine = feed(plan(), &rows_of(3, n, pushed, seed + set));
            engine.finish();
            for (hits, (view, _)) in rejected.iter_mut().zip(VIEWS) {
                let w = report(&engine, view).windows[0].clone();
                *hits += u64::from(w.numbers.is_some_and(|e| e.reject()));
            }
        }
        rejected
    };
    let mut failures = Vec::new();
    let level = Bar::new(400, 0.03..=0.055, &[0.15, 0.001]);
    for (found, (view, _)) in run(400, 400, 0.0, 20_000).into_iter().zip(VIEWS) {
        level.check(&format!("{view}, level"), found, &mut failures);
    }
    let power = Bar::new(100, 0.97..=1.0, &[0.8]);
    for (found, (view, _)) in run(100, 1000, 0.3, 30_000).into_iter().zip(VIEWS) {
        power.check(&format!("{view}, power"), found, &mut failures);
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Rows of a network on CIFAR-10 as they stand in the files.
fn network(folder: &Path, model: &str) -> Vec<Row> {
    let labels = std::fs::read_to_string(folder.join("labels.csv")).unwrap();
    let rows = std::fs::read_to_string(folder.join(format!("{model}.csv"))).unwrap();
    let row = |(i, (row, label)): (usize, (&str, &str))| Row {
        time_ms: START_MS + i as i64 * 50,
        segment: "",
        p: row.split(',').map(|p| p.parse().unwrap()).collect(),
        y: label.parse::<f64>().unwrap() as u32 - 1,
    };
    rows.lines()
        .zip(labels.lines())
        .enumerate()
        .map(row)
        .collect()
}

#[test]
fn published_networks_in_a_window_say_what_they_say_offline() {
    let name = "published_networks_in_a_window_say_what_they_say_offline";
    let Some(folder) = published(name, "cifar10_multiclass") else {
        return;
    };
    for model in ["densenet121", "resnet18"] {
        let rows = network(&folder, model);
        let views = [View::TopLabel, View::TopK(2), View::Full];
        let windows = vec![WindowSpec::time("1h", 3_600_000)];
        let mut engine = feed(plan_of(10, &views, windows, 3_600_000), &rows);
        engine.finish();
        let mut sample = Vectors::new(10);
        rows.iter().for_each(|r| sample.push(&r.p, r.y).unwrap());
        for (view, vector) in VIEWS {
            let w = report(&engine, view).windows[0].clone();
            let live = w.cells().cloned().unwrap();
            assert_eq!((w.n, live.n), (10_000, 10_000));
            let slices = Some(live.interval.slices);
            let whole = multiclass::evaluate(&sample, vector, 0.05, 0.9, slices).unwrap();
            let near = |what: &str, a: f64, b: f64, bar: f64| {
                assert!((a - b).abs() <= bar, "{model} {view} {what}: {a} {b}");
            };
            let (a, b) = (&live.interval, &whole.interval);
            near("estimate", a.estimate_squared, b.estimate_squared, 1e-6);
            near("lower", a.lower, b.lower, 1e-5);
            near("upper", a.upper, b.upper, 1e-5);
            near("l1", live.ece_l1, whole.ece_l1, 1e-6);
            // The live test has the levels whose cells are kept: the offline form's coarsest ones.
            let kept = &live.tcal.levels;
            let events = Events::of(&sample, vector);
            let levels: Vec<VectorLevel> = (kept.iter())
                .map(|l| VectorLevel::of(&events, l.slices))
                .collect();
            let exact = tcal::of_levels(&levels, &tcal::Shape::of(&events), 0.05);
            assert!(!kept.is_empty() && kept.len() <= whole.tcal.levels.len());
            for ((a, b), c) in kept.iter().zip(&exact.levels).zip(&whole.tcal.levels) {
                assert_eq!(
                    (a.slices, a.occupied, a.shared),
                    (b.slices, b.occupied, b.shared)
                );
                near("plug-in", a.plug_in, b.plug_in, 1e-6);
                near("debiased", a.debiased, c.debiased, 1e-6);
                near("null deviation", a.null_sd / b.null_sd, 1.0, 1e-4);
                near("p of a level", a.p_value, c.p_value, 0.02);
            }
            near("p", live.tcal.p_value, exact.p_value, 0.02);
            println!(
                "{model} {view}: {} of {} levels, p {:.1e} live, {:.1e} offline, ECE {:.4} to {:.4}",
                kept.len(),
                whole.tcal.levels.len(),
                live.tcal.p_value,
                whole.tcal.p_value,
                a.lower,
                a.upper
            );
            assert_eq!(live.tcal.reject, whole.tcal.reject);
        }
    }
}
