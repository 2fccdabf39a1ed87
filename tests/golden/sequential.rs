//! Against `sequential.json`, whose values agree with a 40-digit evaluation to 1.3e-15.

use crate::support::golden::{json, numbers};
use crate::support::oracle::{Null, likelihoods};
use serde_json::Value;
use trueline::stats::sequential::budget::Budget;
use trueline::stats::sequential::detector::{Component, Detector};
use trueline::stats::sequential::likelihood::Likelihoods;
use trueline::stats::sequential::mixture::{DIRECTED, LEARNT, SCALES, Scale, Z_SCALES};
use trueline::stats::sequential::multiple_testing;
use trueline::stats::sequential::radius::radius;
use trueline::stats::sequential::sequences::{
    Gain, SCALES as ECE_SCALES, correction, ece2_lower, mean,
};

const TOLERANCE: f64 = 1e-11;

#[track_caller]
fn near(got: f64, want: f64, place: &str) {
    let off = (got - want).abs() / want.abs().max(1.0);
    assert!(off <= TOLERANCE, "{place}: {got} for {want}");
}

struct Stream {
    events: Vec<(f64, f64)>,
    null: Null,
    want: Value,
}

fn streams(reference: &Value) -> Vec<Stream> {
    let stream = |s: &Value| Stream {
        events: numbers(&s["z"]).into_iter().zip(numbers(&s["y"])).collect(),
        null: Null {
            tolerance: s["tol"].as_f64().unwrap(),
            delta: s["delta"].as_f64().unwrap(),
        },
        want: s.clone(),
    };
    reference["streams"]
        .as_array()
        .unwrap()
        .iter()
        .map(stream)
        .collect()
}

/// log e of every component of one batch, read off a detector that had stakes of 1 in each.
fn log_e(detector: &Detector, pane: &Likelihoods) -> Vec<f64> {
    let mut after = detector.clone();
    after.observe(pane, 1.0, 0.0);
    let pairs = detector.components.iter().zip(&after.components);
    pairs
        .map(|(a, b)| b.log_worth - a.log_worth.exp().ln_1p())
        .collect()
}

/// The components of the reference program, which come first among ours.
const COMPONENTS: usize = 2 * DIRECTED + SCALES * LEARNT;

/// Their weights there: a quarter for each family.
fn weight(component: usize) -> f64 {
    let of = match component {
        c if c < 2 * DIRECTED => DIRECTED,
        c if c < 2 * DIRECTED + Z_SCALES * LEARNT => Z_SCALES * LEARNT,
        _ => (SCALES - Z_SCALES) * LEARNT,
    };
    0.25 / of as f64
}

/// Weighted worth of each of them.
fn worths(detector: &Detector) -> Vec<f64> {
    let components = detector.components.iter().take(COMPONENTS);
    let worth = |(c, one): (usize, &Component)| weight(c) * one.log_worth.exp();
    components.enumerate().map(worth).collect()
}

fn log_worth(detector: &Detector) -> f64 {
    worths(detector).iter().sum::<f64>().ln()
}

fn onset(detector: &Detector) -> f64 {
    let of = worths(detector);
    let pairs = of.iter().zip(&detector.components);
    pairs.map(|(w, c)| w * c.onset.event).sum::<f64>() / of.iter().sum::<f64>()
}

#[test]
fn every_step_of_the_reference_streams_agrees() {
    let reference = json("sequential.json");
    let ever = Budget::Ever { probability: 0.05 };
    for s in streams(&reference) {
        let (mut arl, mut pfa) = (Detector::default(), Detector::default());
        for (t, event) in s.events.iter().enumerate() {
            let pane = likelihoods(&[*event], s.null);
            let at = |key: &str| numbers(&s.want[key])[t];
            let e = log_e(&arl, &pane);
            for (name, index) in reference["component_index"].as_object().unwrap() {
                let index = index.as_u64().unwrap() as usize;
                near(e[index], at(&format!("log_e_{name}")), name);
            }
            let mix: f64 = (0..COMPONENTS).map(|c| weight(c) * e[c].exp()).sum();
            near(mix.ln(), at("log_e_mix"), "log_e_mix");
            arl.observe(&pane, 1.0, 0.0);
            near(log_worth(&arl), at("log_arl"), "log_arl");
            pfa.observe(&pane, ever.capital(1, t as u64, 0.0), 0.0);
            near(log_worth(&pfa), at("log_pfa"), "log_pfa");
            near(onset(&arl), at("onset"), "onset");
        }
        for (c, want) in arl.components.iter().zip(numbers(&s.want["final_M_arl"])) {
            near(c.log_worth, want.ln(), "final_M_arl");
        }
        final_state(&arl, &s.want);
    }
}

fn final_state(arl: &Detector, want: &Value) {
    let z8 = Scale::of(2).first;
    for (cell, row) in want["final_W_z8"].as_array().unwrap().iter().enumerate() {
        for (got, want) in arl.signs[z8 + cell].iter().zip(numbers(row)) {
            near(*got, want, "final_W_z8");
        }
    }
    let of = worths(arl);
    let whole: f64 = of.iter().sum();
    let every_other = |first: usize| of[first..first + DIRECTED].iter().step_by(2).sum::<f64>();
    for (name, want) in want["final_share"].as_object().unwrap() {
        let got: f64 = match name.as_str() {
            "intercept_up" => every_other(0),
            "intercept_down" => of[1..DIRECTED].iter().step_by(2).sum(),
            "slope_up" => every_other(DIRECTED),
            "slope_down" => of[DIRECTED + 1..2 * DIRECTED].iter().step_by(2).sum(),
            scale => {
                let cells: usize = scale[1..].parse().unwrap();
                let warped = scale.starts_with('l');
                let is = |&k: &usize| (Scale::of(k).cells, Scale::of(k).warped) == (cells, warped);
                let first = 2 * DIRECTED + (0..).find(is).unwrap() * LEARNT;
                of[first..first + LEARNT].iter().sum()
            }
        };
        let got = got / whole;
        near(got, want.as_f64().unwrap(), name);
    }
}

#[test]
fn batches_of_ten_agree_whatever_their_order() {
    let reference = json("sequential.json");
    for s in streams(&reference) {
        let (mut forward, mut backward) = (Detector::default(), Detector::default());
        let wanted = numbers(&s.want["batch10_log_arl"]);
        for (batch, want) in s.events.chunks(10).zip(wanted) {
            let capital = batch.len() as f64;
            forward.observe(&likelihoods(batch, s.null), capital, 0.0);
            near(log_worth(&forward), want, "batch10_log_arl");
            let mut turned = batch.to_vec();
            turned.reverse();
            backward.observe(&likelihoods(&turned, s.null), capital, 0.0);
            near(log_worth(&backward), want, "turned");
        }
    }
}

#[test]
fn confidence_sequences_agree() {
    let reference = json("sequential.json");
    for r in reference["cs_radius"].as_array().unwrap() {
        let of = |key: &str| r[key].as_f64().unwrap();
        near(
            radius(of("V"), of("alpha"), of("c")) / of("r"),
            1.0,
            "cs_radius",
        );
    }
    for s in streams(&reference) {
        let mut known = vec![vec![(0.0, 0.0); 64]; ECE_SCALES];
        let mut gains = [Gain::default(); ECE_SCALES];
        let mut bins = [(0.0, 0.0, 0u64); 8];
        let mut wanted = s.want["cs"].as_array().unwrap().iter();
        for (i, &(z, y)) in s.events.iter().enumerate() {
            let u = y - z;
            for (k, gain) in gains.iter_mut().enumerate() {
                let m = 1usize << k;
                let (sum, n) = &mut known[k][((z * m as f64) as usize).min(m - 1)];
                gain.add(correction(*sum, *n, z, z), 1.0, u, u * u);
                *sum += u;
                *n += 1.0;
            }
            let bin = &mut bins[((z * 8.0) as usize).min(7)];
            *bin = (bin.0 + u, bin.1 + u * u, bin.2 + 1);
            if (i + 1) % 50 == 0 {
                sequences(wanted.next().unwrap(), &gains, &bins, i as u64 + 1);
            }
        }
    }
}

fn sequences(want: &Value, gains: &[Gain; ECE_SCALES], bins: &[(f64, f64, u64)], n: u64) {
    assert_eq!(want["n"].as_u64(), Some(n));
    let (s, v) = bins.iter().fold((0.0, 0.0), |(s, v), b| (s + b.0, v + b.1));
    near(s, want["S"].as_f64().unwrap(), "S");
    near(v, want["V"].as_f64().unwrap(), "V");
    let (low, high) = mean(s, v, n, 0.05);
    let mean95 = numbers(&want["mean95"]);
    near(low, mean95[0], "mean95");
    near(high, mean95[1], "mean95");
    let sums = numbers(&want["ece2_lower_SW"]);
    let squares = numbers(&want["ece2_lower_VW"]);
    for ((gain, sum), square) in gains.iter().zip(sums).zip(squares) {
        near(gain.sum, sum, "ece2_lower_SW");
        near(gain.square, square, "ece2_lower_VW");
    }
    near(
        ece2_lower(gains, n, 0.05),
        want["ece2_lower95"].as_f64().unwrap(),
        "ece2_lower95",
    );
}

#[test]
fn streams_of_a_group_are_called_alike() {
    let reference = json("sequential.json");
    let logs = |v: &Value| -> Vec<f64> { numbers(v).into_iter().map(f64::ln).collect() };
    let indices =
        |v: &Value| -> Vec<usize> { numbers(v).into_iter().map(|x| x as usize).collect() };
    for case in reference["e_bh"].as_array().unwrap() {
        let log_a = case["A"].as_f64().unwrap().ln();
        assert_eq!(
            multiple_testing::called(&logs(&case["M"]), log_a),
            indices(&case["rejected"])
        );
    }
}
