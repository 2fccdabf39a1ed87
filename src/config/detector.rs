//! The false-alarm budgets, and the share of them that each model's streams may stake.
//!
//! `[detector] budget` is the common budget. A budget by time is divided among `streams`, by
//! default as many as the engine holds, so shares follow from the file alone. A model with its own
//! `budget` in `[model.alert]` has a separate account, and each of its streams has all of that
//! budget.

use super::document::Record;
use super::problem::Problems;
use super::value::Value;
use crate::judge::DetectorOptions;
use crate::stats::sequential::Budget;

/// What a key says about the budget.
enum Said {
    Nothing,
    Off,
    Budget(Budget),
}

/// The detector options of each model, in order; `None` for a model without detectors.
pub fn detectors(
    fleet: &Record,
    streams_max: usize,
    models: &[Record],
    problems: &mut Problems<'_>,
) -> Vec<Option<DetectorOptions>> {
    let alpha = 1.0 - fleet.number("confidence");
    let shared = said(fleet, problems);
    let streams = match fleet.entry("streams").value {
        Value::Absent => streams_max,
        _ => fleet.count("streams"),
    };
    if let Said::Budget(Budget::RunLength { .. } | Budget::Ever { .. }) = &shared
        && fleet.entry("streams").given
    {
        let what = "`streams` divides a budget of time, and `budget` is not one";
        let remedy = "remove `streams`, or write a budget such as \"1 per 30d\"";
        problems.add(fleet.entry("streams").at, what, remedy);
    }
    let own: Vec<Said> = models
        .iter()
        .map(|m| said(m.child("model.alert"), problems))
        .collect();
    let weight = |m: &Record| m.child("model.alert").number("budget_weight");
    let drawing = models.iter().zip(&own);
    let weights = drawing.filter(|(_, said)| matches!(said, Said::Nothing));
    let most = weights.map(|(m, _)| weight(m)).fold(0.0, f64::max);
    let options = |(model, own): (&Record, &Said)| {
        let (account, budget, streams, weight) = match (own, &shared) {
            (Said::Budget(budget), _) => {
                let name = model.text("name").unwrap_or_default();
                (format!("model:{name}"), *budget, 1.0, 1.0)
            }
            (Said::Nothing, Said::Budget(budget)) => {
                let share = weight(model) / most;
                ("fleet".to_owned(), *budget, streams as f64, share)
            }
            (Said::Off, _) | (Said::Nothing, Said::Off | Said::Nothing) => return None,
        };
        Some(DetectorOptions {
            account,
            budget,
            streams,
            weight,
            alpha,
            tolerance: model.child("model.alert").number("log_odds_tolerance"),
            maturity_ms: 0,
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
