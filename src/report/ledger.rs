//! The budgets of false alarms as JSON.

use crate::judge::{AccountReport, StreamId};
use crate::stats::sequential::Budget;
use serde_json::{Value, json};

/// One account as JSON.
pub fn json(a: &AccountReport) -> Value {
    let names = |ids: &[StreamId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
    json!({
        "account": a.account,
        "budget": a.budget.to_string(),
        "promise": promise(a),
        "log_threshold": a.budget.log_threshold(),
        "streams": a.streams,
        "share": a.share,
        "staked": a.staked,
        "expected_false_alarms_max": a.expected_false_alarms(),
        "false_discoveries_max": a.expected_false_alarms().min(1.0),
        "alarms": a.alarms,
        "alarmed": names(&a.alarmed),
        "called": names(&a.called),
    })
}

/// The promise of the budget, and the streams that it covers. A budget of time is divided among
/// streams; if each stream has a whole budget, nothing is promised for all of them together.
fn promise(a: &AccountReport) -> String {
    let (streams, words) = (a.streams, a.budget.words());
    let whole = a.share >= streams as f64 && streams > 1;
    match a.budget {
        Budget::PerTime { .. } if whole => format!("each of {streams} streams: {words}"),
        Budget::PerTime { .. } if a.share > 1.0 + 1e-9 => format!(
            "all {streams} streams together, which are more than the budget is for: {:.2} times {words}",
            a.share
        ),
        Budget::Ever { .. } => format!("each of {streams} streams: {words}"),
        Budget::PerTime { .. } | Budget::RunLength { .. } => {
            format!("all {streams} streams together: {words}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_names_the_streams_that_it_is_about() {
        let said = |budget: &str, share: f64| {
            promise(&AccountReport {
                account: "fleet".to_owned(),
                budget: budget.parse().expect("a budget"),
                streams: 20,
                share,
                staked: 0.0,
                alarms: 0,
                alarmed: Vec::new(),
                called: Vec::new(),
            })
        };
        let month = "at most 1 false alarm in 30 days of data, on average";
        for (budget, share, expected) in [
            (
                "1 per 30d",
                0.2,
                format!("all 20 streams together: {month}"),
            ),
            (
                "1 per 30d",
                1.25,
                format!(
                    "all 20 streams together, which are more than the budget is for: 1.25 times {month}"
                ),
            ),
            ("1 per 30d", 20.0, format!("each of 20 streams: {month}")),
            (
                "5% ever",
                20.0,
                "each of 20 streams: a probability of at most 5 % of ever raising a false alarm"
                    .into(),
            ),
            (
                "2000000 events",
                0.05,
                "all 20 streams together: at least 2000000 events to a false alarm, on average"
                    .into(),
            ),
        ] {
            assert_eq!(said(budget, share), expected);
        }
    }
}
