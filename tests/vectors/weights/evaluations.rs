//! Equal weights say what none say, their scale says nothing, and a window says what the file of
//! its events says.

use super::{LAWS, VIEWS, calibrated, heavy, live, overdone, sample, shape, sums, tiers};
use trueline::report::vectors;
use trueline::stats::algebra::Merge;
use trueline::stats::multiclass::{
    Evaluation, Events, VectorSums, VectorView, evaluate, evaluate_events, evaluate_sums,
};
use trueline::stats::weight::Weight;

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
