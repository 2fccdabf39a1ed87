//! Distances from calibration against the golden values of `kernel_distance.json`.
//!
//! Tolerances are those the file states: 10⁻¹² relative for sums, 10⁻¹² for the smooth error, 10⁻⁹
//! for the lower distance, whose own proved bounds must hold it too. The samples hold ties, scores
//! of exactly 0 and 1 and an impossible outcome.

use crate::support::golden::{json, numbers};
use serde_json::Value;
use trueline::stats::distance::points::{Atom, Points};
use trueline::stats::distance::{
    interval, laplace, lower, program, random_interval, smooth, upper,
};
use trueline::stats::levels::Level;

fn sample(case: &Value) -> Vec<(f64, bool)> {
    let y = numbers(&case["y"]);
    numbers(&case["v"])
        .into_iter()
        .zip(y.into_iter().map(|y| y == 1.0))
        .collect()
}

/// Collects what is off, so that one run shows all of it.
#[derive(Default)]
struct Checks {
    seen: usize,
    bad: Vec<String>,
}

impl Checks {
    fn near(&mut self, place: &str, got: f64, want: &Value, tolerance: f64) {
        let Some(want) = want.as_f64() else {
            self.bad.push(format!("{place}: no golden value"));
            return;
        };
        self.seen += 1;
        let off = (got - want).abs();
        if off.is_nan() || off > tolerance * want.abs().max(1e-3) {
            self.bad
                .push(format!("{place}: {got:e} instead of {want:e}"));
        }
    }

    fn end(self) {
        println!("{} values checked", self.seen);
        assert!(
            self.seen > 0 && self.bad.is_empty(),
            "\n{}",
            self.bad.join("\n")
        );
    }
}

fn check_distances(
    c: &mut Checks,
    name: &str,
    sample: &[(f64, bool)],
    want: &Value,
    surrogate: &str,
) {
    let p = Points::from_scores(sample).unwrap();
    c.near(
        &format!("{name} smce"),
        smooth::smooth(&p),
        &want["smce"],
        1e-12,
    );
    let l = lower::lower(&p, lower::Effort::EXACT);
    let dce = want["dce_lower"].as_f64().unwrap();
    c.seen += 1;
    let gap = want["dce_lower_gap"].as_f64().unwrap_or(1e-10) + 1e-12;
    let proved = l.low <= dce + gap && dce <= l.high + gap;
    let off = (l.value - dce).abs();
    if off.is_nan() || off > 1e-9 || !proved {
        c.bad
            .push(format!("{name} dce_lower: {l:?} instead of {dce:e}"));
    }
    c.near(
        &format!("{name} intce"),
        interval::interval(&p),
        &want["intce"],
        1e-12,
    );
    let terms: Vec<f64> = (0..9)
        .map(|k| random_interval::random_interval(&p, k))
        .collect();
    let place = format!("{name} sintce");
    c.near(
        &place,
        random_interval::surrogate(&terms),
        &want[surrogate],
        1e-12,
    );
}

#[test]
fn distances_of_binary_samples_have_their_golden_values() {
    let golden = json("kernel_distance.json");
    let mut c = Checks::default();
    for (name, case) in golden["datasets"].as_object().unwrap() {
        if case["kind"] != "binary" {
            continue;
        }
        let (sample, out) = (sample(case), &case["out"]);
        check_distances(&mut c, name, &sample, out, "sintce_eps0.01");
        let p = Points::from_scores(&sample).unwrap();
        for (k, want) in out["rintce_2^-k_k0..8"]
            .as_array()
            .unwrap()
            .iter()
            .enumerate()
        {
            let got = random_interval::random_interval(&p, k as u32);
            c.near(&format!("{name} rintce {k}"), got, want, 1e-12);
        }
        if out.get("dce_upper").is_some() && sample.len() <= 8 {
            let got = upper::upper(&p).unwrap();
            c.near(&format!("{name} dce_upper"), got, &out["dce_upper"], 1e-12);
        }
        check_laplace(&mut c, name, &p, out);
        if let Some(windows) = case.get("window").and_then(Value::as_array) {
            check_windows(&mut c, name, &sample, windows);
        }
    }
    c.end();
}

fn check_laplace(c: &mut Checks, name: &str, p: &Points, out: &Value) {
    for (key, nu) in [("laplace_nu1", 1.0), ("laplace_nu0.1", 0.1)] {
        let (l, want) = (laplace::laplace(p, nu), &out["kernel"][key]);
        let mut near = |what: &str, got: f64| {
            c.near(&format!("{name} {key} {what}"), got, &want[what], 1e-12);
        };
        near("skce_b", l.squared);
        near("kce", l.error());
        near("h0_mean_skce_b", l.null_mean);
        near("h0_var_skce_b", l.null_variance);
        near("h0_mcdiarmid_p_kce", l.p_value_bound);
        if let Some(p_value) = l.p_value {
            c.near(
                &format!("{name} {key} gamma p"),
                p_value,
                &want["h0_gamma_p_skce_b"],
                1e-10,
            );
        }
        if let Some(unbiased) = l.unbiased {
            c.near(
                &format!("{name} {key} skce_uq"),
                unbiased,
                &want["skce_uq"],
                1e-12,
            );
        }
    }
}

fn check_windows(c: &mut Checks, name: &str, sample: &[(f64, bool)], windows: &[Value]) {
    for w in windows {
        let end = w["t_end"].as_u64().unwrap() as usize;
        let part = &sample[end - w["W"].as_u64().unwrap() as usize..end];
        let place = format!("{name} window to {end}");
        check_distances(c, &place, part, w, "sintce_eps0p01");
        let l = laplace::laplace(&Points::from_scores(part).unwrap(), 1.0);
        c.near(&format!("{place} kce2"), l.squared, &w["kce2"], 1e-12);
        c.near(
            &format!("{place} h0"),
            l.null_mean,
            &w["h0_mean_kce2"],
            1e-12,
        );
    }
}

/// The file's cells stand at their centres, ours at their means; the functions are the same.
#[test]
fn distances_from_cells_have_their_golden_values() {
    let golden = json("kernel_distance.json");
    let mut c = Checks::default();
    for (name, case) in golden["datasets"].as_object().unwrap() {
        if case["kind"] != "binary" {
            continue;
        }
        let sample = sample(case);
        for (m, want) in case["out"]["hist"].as_object().unwrap() {
            let cells: u64 = m.parse().unwrap();
            let (width, place) = (1.0 / cells as f64, format!("{name} {m} cells"));
            let level = Level::from_scores(&sample, cells);
            let centred = level.occupied.iter().map(|a| Atom {
                z: (a.index as f64 + 0.5) * width,
                n: a.n,
                u: a.u,
                u2: a.u2,
                ..Atom::default()
            });
            let centred = Points::new(centred.collect(), 0.0, 0.0).unwrap();
            c.near(
                &format!("{place} smce"),
                smooth::smooth(&centred),
                &want["smce_center"],
                1e-12,
            );
            let squared = laplace::laplace(&centred, 1.0).squared;
            c.near(
                &format!("{place} kce2"),
                squared,
                &want["kce2_center"],
                1e-12,
            );
            let edges = |i: u64| (i as f64 * width, (i + 1) as f64 * width);
            let p = Points::from_level(&level, edges).unwrap();
            let got = interval::interval(&p);
            c.near(
                &format!("{place} intce"),
                got,
                &want["intce_aligned"],
                1e-12,
            );
            let terms = random_interval::aligned(&level);
            for (k, want) in want["rintce_aligned"]
                .as_array()
                .unwrap()
                .iter()
                .enumerate()
            {
                c.near(&format!("{place} rintce {k}"), terms[k], want, 1e-12);
            }
            let got = random_interval::surrogate(&terms);
            c.near(
                &format!("{place} sintce"),
                got,
                &want["sintce_aligned"],
                1e-12,
            );
            let nodes: Vec<f64> = (0..=cells).map(|i| i as f64 * width).collect();
            let mut mass = vec![[0.0; 2]; nodes.len()];
            for &(z, y) in &sample {
                let at = (z * cells as f64).round_ties_even() as usize;
                mass[at][usize::from(y)] += 1.0 / sample.len() as f64;
            }
            let s = program::solve(&nodes, &mass, 1e-10);
            let got = 0.5 * (s.low + s.high);
            c.seen += 1;
            let off = (got - want["dce_lower_grid"].as_f64().unwrap()).abs();
            if off.is_nan() || off > 1e-8 {
                c.bad.push(format!(
                    "{place} dce: {} {} {}",
                    s.low, s.high, want["dce_lower_grid"]
                ));
            }
        }
    }
    c.end();
}

#[test]
fn distances_of_classes_have_their_golden_values() {
    let golden = json("kernel_distance.json");
    let mut c = Checks::default();
    for (name, case) in golden["datasets"].as_object().unwrap() {
        if case["kind"] != "multiclass" {
            continue;
        }
        let top = &case["out"]["top_label"];
        let right = numbers(&top["correct"]).into_iter().map(|y| y == 1.0);
        let sample: Vec<_> = numbers(&top["conf"]).into_iter().zip(right).collect();
        check_distances(&mut c, name, &sample, top, "sintce_eps0p01");
        let p = Points::from_scores(&sample).unwrap();
        let got = laplace::laplace(&p, 1.0).error();
        c.near(&format!("{name} kce"), got, &top["kce_laplace_nu1"], 1e-12);
        let got = laplace::laplace(&p, 0.4).error();
        c.near(
            &format!("{name} mmce"),
            got,
            &top["mmce_laplace_nu0p4"],
            1e-12,
        );
        let rows: Vec<Vec<f64>> = case["p"].as_array().unwrap().iter().map(numbers).collect();
        let y = numbers(&case["y"]);
        for (k, want) in case["out"]["per_class"]["smce"]
            .as_array()
            .unwrap()
            .iter()
            .enumerate()
        {
            let one = rows.iter().zip(&y).map(|(p, &y)| (p[k], y == k as f64));
            let p = Points::from_scores(&one.collect::<Vec<_>>()).unwrap();
            c.near(
                &format!("{name} class {k} smce"),
                smooth::smooth(&p),
                want,
                1e-12,
            );
            let want = &case["out"]["per_class"]["kce2_laplace_nu1"][k];
            c.near(
                &format!("{name} class {k}"),
                laplace::laplace(&p, 1.0).squared,
                want,
                1e-12,
            );
        }
    }
    c.end();
}
