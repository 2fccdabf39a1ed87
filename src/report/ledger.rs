//! The budgets of false alarms as JSON.

use crate::judge::{AccountReport, StreamId};
use serde_json::{Value, json};

/// One account.
pub fn json(a: &AccountReport) -> Value {
    let names = |ids: &[StreamId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
    json!({
        "account": a.account,
        "budget": a.budget.to_string(),
        "promise": format!("all {} streams together: {}", a.streams, a.budget.words()),
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
