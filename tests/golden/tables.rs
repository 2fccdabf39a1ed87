//! The decisions of the T-Cal paper's Tables 1 to 3, on the model outputs of its authors.
//!
//! `../shared/reference/tcal_tables.json` holds what the authors' program decides; their files lie in
//! `../shared/data/tcal`. The paper's procedure (all B scales, 3000 redrawn samples, Bonferroni) must
//! decide the same on all 36, with the exact binomial test where a recalibration method yields few
//! scores, and the ECE over 15 cells (last one closed) must agree to 10⁻⁶.

use serde_json::Value;
use std::fs;
use std::path::Path;
use trueline::stats::evaluation::{DiscreteMode, Options, evaluate_scores};
use trueline::stats::tcal::{Critical, Sharing, TCalOptions};

fn paper(discrete: DiscreteMode) -> Options {
    Options {
        tcal: TCalOptions {
            alpha: 0.05,
            critical: Critical::MonteCarlo { replicates: 3000 },
            sharing: Sharing::Bonferroni,
            seed: 0,
        },
        discrete,
        ..Options::default()
    }
}

fn sample(path: &Path) -> Vec<(f64, bool)> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let rows = text.lines().skip(1).filter_map(|row| row.split_once(','));
    rows.map(|(z, y)| (z.parse().unwrap(), y.trim().parse::<f64>().unwrap() == 1.0))
        .collect()
}

#[test]
fn all_decisions_of_the_shared_tables_are_reproduced() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let tables = shared.join("reference/tcal_tables.json");
    let Ok(text) = fs::read_to_string(&tables) else {
        println!("skipped: {} is missing", tables.display());
        return;
    };
    let tables: Value = serde_json::from_str(&text).unwrap();
    let mut bad = 0;
    for (name, case) in tables["cases"].as_object().unwrap() {
        let binned = name.ends_with(".histogram") || name.ends_with(".scalebin");
        let mode = if binned {
            DiscreteMode::On
        } else {
            DiscreteMode::Off
        };
        let sample = sample(&shared.join(format!("data/tcal/{name}.csv")));
        let e = evaluate_scores(&sample, &paper(mode)).unwrap();
        let ece = case["ece15_percent"].as_f64().unwrap() / 100.0;
        let agrees = e.reject == case["reject"].as_bool().unwrap();
        if !agrees || e.tcal.borderline || (e.ece_l1 - ece).abs() > 1e-6 {
            let b = e.tcal.levels.iter().map(|l| l.p_value).fold(1.0, f64::min);
            println!(
                "{name}: reject {}, p {:.4}, smallest {b:.5}, borderline {}, ECE {} for {ece}",
                e.reject, e.tcal.p_value, e.tcal.borderline, e.ece_l1
            );
        }
        bad += u32::from(!agrees || (e.ece_l1 - ece).abs() > 1e-6);
    }
    assert_eq!(bad, 0, "decisions or ECE differ");
}
