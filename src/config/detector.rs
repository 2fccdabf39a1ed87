//! The budgets of false alarms, and how the models divide them.
//!
//! `[detector] budget` is that of the fleet. A model with a `budget` of its own in `[model.alert]` has an
//! account of its own beside it; all others divide the fleet's by their weights. A budget of events has a
//! clock that runs with the events themselves, so there a model's part is its weight over the largest.

use super::document::Record;
use super::problem::Problems;
use crate::judge::DetectorOptions;
use crate::stats::sequential::Budget;

/// What a key that holds a budget says.
enum Said {
    Nothing,
    Off,
    Budget(Budget),
}

/// The detectors of each model, in their order; `None` where there is none.
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
