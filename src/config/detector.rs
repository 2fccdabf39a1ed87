//! The false-alarm budgets, and how models share them.
//!
//! `[detector] budget` is the common budget. A model with its own `budget` in `[model.alert]` has a
//! separate account; all others share the common one by their weights. The clock of a budget of
//! events is the events themselves, so there the share of a model is its weight divided by the
//! largest weight.

use super::document::Record;
use super::problem::Problems;
use crate::judge::DetectorOptions;
use crate::stats::sequential::Budget;

/// The budget of a key.
enum Said {
    Nothing,
    Off,
    Budget(Budget),
}

/// The detector options of each model, in order; `None` for a model without detectors.
pub fn detectors(
    fleet: &Record,
    models: &[Record],
    problems: &mut Problems<'_>,
) -> Vec<Option<DetectorOptions>> {
    let alpha = 1.0 - fleet.number("confidence");
    let shared = said(fleet, problems);
    let own: Vec<Said> = models
        .iter()
        .map(|m| said(m.child("model.alert"), problems))
        .collect();
    let weight = |m: &Record| m.child("model.alert").number("budget_weight");
    let drawing = models.iter().zip(&own);
    let weights = drawing.filter(|(_, said)| matches!(said, Said::Nothing));
    let weights: Vec<f64> = weights.map(|(m, _)| weight(m)).collect();
    let sum: f64 = weights.iter().sum();
    let most = weights.iter().copied().fold(0.0, f64::max);
    let options = |(model, own): (&Record, &Said)| {
        let (account, budget, part) = match (own, &shared) {
            (Said::Budget(budget), _) => {
                let name = model.text("name").unwrap_or_default();
                (format!("model:{name}"), *budget, 1.0)
            }
            (Said::Nothing, Said::Budget(budget)) => {
                let whole = match budget {
                    Budget::RunLength { .. } => most,
                    Budget::PerTime { .. } | Budget::Ever { .. } => sum,
                };
                ("fleet".to_owned(), *budget, weight(model) / whole)
            }
            (Said::Off, _) | (Said::Nothing, Said::Off | Said::Nothing) => return None,
        };
        Some(DetectorOptions {
            account,
            budget,
            part,
            alpha,
            tolerance: model.child("model.alert").number("log_odds_tolerance"),
        })
    };
    models.iter().zip(&own).map(options).collect()
}

fn said(record: &Record, problems: &mut Problems<'_>) -> Said {
    match record.text("budget") {
        None => Said::Nothing,
        Some("none") => Said::Off,
        Some(text) => match text.parse::<Budget>() {
            Ok(budget) => Said::Budget(budget),
            Err(error) => {
                problems.add(record.entry("budget").at, error.what, error.remedy);
                Said::Off
            }
        },
    }
}
