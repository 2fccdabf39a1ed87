//! The decisions of the T-Cal paper's Tables 1 to 3, on the model outputs of its authors.
//!
//! `tcal_tables.json` holds what the authors' program decides; their files are published model
//! outputs. The paper's procedure (all B scales, 3000 redrawn samples, Bonferroni) must decide the
//! same on all 36, with the exact binomial test where a recalibration method yields few scores, and
//! the ECE over 15 cells (last one closed) must agree to 10⁻⁶.

use crate::support::golden::{json, numbers, published, scores, seeded_cases};
use trueline::stats::evaluation::{DecideBy, DiscreteMode, Options, evaluate_scores};
use trueline::stats::tcal::{Critical, Sharing, TCalOptions};

fn paper(discrete: DiscreteMode) -> Options {
    Options {
        decide_by: DecideBy::Paper,
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

#[test]
fn all_decisions_of_the_published_tables_are_reproduced() {
    let name = "all_decisions_of_the_published_tables_are_reproduced";
    let Some(folder) = published(name, "tcal") else {
        return;
    };
    let tables = json("tcal_tables.json");
    let mut bad = 0;
    for (name, case) in tables["cases"].as_object().unwrap() {
        let binned = name.ends_with(".histogram") || name.ends_with(".scalebin");
        let mode = if binned {
            DiscreteMode::On
        } else {
            DiscreteMode::Off
        };
        let sample = scores(&folder.join(format!("{name}.csv")));
        assert_eq!(sample.len() as u64, case["n"].as_u64().unwrap(), "{name}");
        let e = evaluate_scores(&sample, &paper(mode)).unwrap();
        let ece = case["ece15_percent"].as_f64().unwrap() / 100.0;
        let decides = e.reject == case["reject"].as_bool().unwrap();
        let agrees = decides && (e.ece_l1 - ece).abs() <= 1e-6;
        if !agrees || e.tcal.borderline {
            let b = e.tcal.levels.iter().map(|l| l.p_value).fold(1.0, f64::min);
            println!(
                "{name}: reject {}, p {:.4}, smallest {b:.5}, borderline {}, ECE {} for {ece}",
                e.reject, e.tcal.p_value, e.tcal.borderline, e.ece_l1
            );
        }
        bad += u32::from(!agrees);
    }
    assert_eq!(bad, 0, "decisions or ECE differ");
}

/// Of samples that everybody can draw, against a plain numpy program: the decision, and each
/// level's p-value within five deviations of two Monte Carlo estimates.
#[test]
fn decisions_on_seeded_samples_are_those_of_the_reference_program() {
    let mut rejected = 0;
    for (name, sample, case) in seeded_cases() {
        let wanted = &case["t_cal"];
        let test = evaluate_scores(&sample, &paper(DiscreteMode::Off))
            .expect("events")
            .tcal;
        assert_eq!(Some(test.reject), wanted["reject"].as_bool(), "{name}");
        assert!(!test.borderline, "{name}: draw another sample");
        let replicates = wanted["replicates"].as_f64().expect("a number");
        let p_values = numbers(&wanted["p_values"]);
        assert_eq!(test.levels.len(), p_values.len(), "{name}");
        for (level, &wanted) in test.levels.iter().zip(&p_values) {
            let off = (level.p_value - wanted).abs();
            let deviation = (2.0 * wanted * (1.0 - wanted) / replicates).sqrt();
            assert!(
                off <= 5.0 * deviation + 2.0 / replicates,
                "{name}, {} cells: p {} for {wanted}",
                level.cells,
                level.p_value
            );
        }
        rejected += u32::from(test.reject);
    }
    assert_eq!(rejected, 4, "of eight samples, half of them calibrated");
}
