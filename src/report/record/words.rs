//! A record in words and numbers.

use super::Record;
use crate::judge::sentence::p_value;
use crate::report::table::printable;
use serde_json::Value;
use std::fmt::Write;

impl Record {
    /// The change in words and numbers.
    pub fn words(&self) -> String {
        let mut out = format!("{}\n", printable(&self.sentence));
        let _ = writeln!(
            out,
            "held {} s before it fires, {} s before it ends; flaps so far {}",
            self.holds.pending_ms / 1000,
            self.holds.keep_firing_ms / 1000,
            self.to.flaps
        );
        for window in &self.windows {
            let (name, verdict, n) = (&window.name, window.verdict, window.n);
            let _ = write!(out, "window {name}: {verdict}, n = {n}");
            if let Some(e) = &window.evaluation {
                let interval = &e["interval"];
                out += &ratio(&e["tolerance"]["ratio"]).unwrap_or_default();
                let _ = match e.get("kce") {
                    Some(kce) => write!(
                        out,
                        ", KCE {}, at least {} ({} confidence), p = {}",
                        digits(kce),
                        digits(&e["kce_lower"]),
                        percent(&e["confidence"]),
                        p(&e["p_value"])
                    ),
                    None => write!(
                        out,
                        ", l2-ECE {} to {} ({} interval), p = {}",
                        digits(&interval["lower"]),
                        digits(&interval["upper"]),
                        percent(&interval["confidence"]),
                        p(e.get("p_value").unwrap_or(&e["tcal"]["p_value"]))
                    ),
                };
                let direction = e.get("direction_words").or_else(|| e.get("direction"));
                if let Some(direction) = direction.and_then(Value::as_str) {
                    let _ = write!(out, ", {direction}");
                }
            }
            let kept = window.sums.is_some() || window.vector.is_some();
            if !kept && window.evaluation.is_some() {
                let _ = write!(out, " (judged earlier)");
            }
            out.push('\n');
        }
        match &self.detector {
            Some(w) => {
                let says = match w.alarm {
                    true => "alarms; log evidence since then",
                    false => "is quiet; log evidence",
                };
                let evidence = &w.report["evidence"]["log"];
                let _ = writeln!(
                    out,
                    "detector ({}): {says} {}, alarm at {}",
                    w.budget,
                    digits(evidence),
                    digits(&w.report["log_threshold"])
                );
            }
            None => out.push_str("no detector watches the stream\n"),
        }
        let _ = writeln!(
            out,
            "tolerance {}, alpha {}, seed {}, configuration {}, program {}",
            self.options.tolerance,
            self.options.tcal.alpha,
            self.options.tcal.seed,
            self.configuration,
            self.program
        );
        for (topic, partition, offset) in &self.offsets {
            let _ = writeln!(out, "read up to {topic}/{partition} at {offset}");
        }
        out
    }
}

/// The ratio of observed to expected outcomes in words; it decides for rare events.
fn ratio(ratio: &Value) -> Option<String> {
    let number = |name: &str| ratio[name].as_f64();
    let (lower, upper, most) = (number("lower")?, number("upper")?, number("most")?);
    let least = 1.0 / most;
    Some(format!(
        ", observed/expected {lower:.2} to {upper:.2}, tolerated {least:.2} to {most:.2}"
    ))
}

/// Formats a number with four decimals; other values, such as an infinity, stay unchanged.
fn digits(value: &Value) -> String {
    match value.as_f64() {
        Some(x) => format!("{x:.4}"),
        None => value.to_string(),
    }
}

fn percent(value: &Value) -> String {
    match value.as_f64() {
        Some(x) => format!("{:.0} %", 100.0 * x),
        None => value.to_string(),
    }
}

fn p(value: &Value) -> String {
    value.as_f64().map_or(value.to_string(), p_value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_ratio_that_decides_is_said_where_there_is_one() {
        let found = json!({ "lower": 1.789, "upper": 2.181, "most": 1.2 });
        let said = ratio(&found).unwrap_or_default();
        let expected = ", observed/expected 1.79 to 2.18, tolerated 0.83 to 1.20";
        assert_eq!(said, expected);
        assert_eq!(ratio(&Value::Null), None);
    }
}
