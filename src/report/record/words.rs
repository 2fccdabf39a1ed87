//! A record in words and numbers.

use super::Record;
use crate::report::table::printable;
use std::fmt::Write;

impl Record {
    /// What happened, in words and numbers.
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
                let _ = match e.get("kce") {
                    Some(kce) => write!(
                        out,
                        ", KCE {kce}, at least {} ({} confidence), p = {}",
                        e["kce_lower"], e["confidence"], e["p_value"]
                    ),
                    None => write!(
                        out,
                        ", l2-ECE {} to {} ({} confidence), p = {}",
                        interval["lower"],
                        interval["upper"],
                        interval["confidence"],
                        e.get("p_value").unwrap_or(&e["tcal"]["p_value"])
                    ),
                };
                if let Some(direction) = e.get("direction") {
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
                let says = if w.alarm { "alarms" } else { "is quiet" };
                let evidence = &w.report["evidence"]["log"];
                let _ = writeln!(
                    out,
                    "detector ({}): {says}, log evidence {evidence}, alarm at {}",
                    w.budget, w.report["log_threshold"]
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
