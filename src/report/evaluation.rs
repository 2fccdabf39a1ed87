//! An evaluation as JSON, the same for `trueline evaluate --json` and the HTTP API.
//!
//! `deploy/guide/json.md` describes the keys. Scripts rely on them: their names and meanings do not
//! change, nor do the fields of `Interval` and `DiscreteTest`, which are written unchanged. Every
//! error estimate is on the scale that its key names: `…_squared` is squared, everything else is on
//! the scale of probabilities. Undefined values are null.

use crate::judge::{Numbers, Verdict};
use crate::stats::evaluation::{
    Combined, Critical, Evaluation, LevelResult, Sampled, Sharing, WITHHELD, Weights,
};
use serde_json::{Map, Value, json};

/// The whole evaluation as JSON.
pub fn json(e: &Evaluation) -> Value {
    let mut all = contract(e);
    all.append(&mut further(e));
    Value::Object(all)
}

/// The keys that scripts rely on.
fn contract(e: &Evaluation) -> Map<String, Value> {
    object([
        ("n", json!(e.n)),
        ("ece_l1", json!(e.ece_l1)),
        ("tcal", tcal(e)),
        ("interval", json!(e.interval)),
        ("discrete", json!(e.discrete)),
        ("reject", json!(e.reject)),
        ("p_value", json!(e.deciding_p_value())),
        ("brier", json!(e.brier.score)),
        ("log_loss", json!(e.log_loss)),
        ("spiegelhalter_z", json!(e.spiegelhalter.map(|s| s.z))),
        ("cox_score", json!(e.cox.map(|c| c.score))),
    ])
}

fn further(e: &Evaluation) -> Map<String, Value> {
    let verdict = Verdict::from(e.tolerance.conclusion);
    let cox = e.cox.map(|c| {
        json!({
            "score": c.score,
            "p_value": c.p_value,
            "intercept": c.fit.map(|f| f.intercept),
            "slope": c.fit.map(|f| f.slope),
        })
    });
    let tolerance = json!({
        "tolerance": e.tolerance.tolerance,
        "exceeded": e.tolerance.exceeded,
        "ratio": e.tolerance.ratio,
        "more_events": e.tolerance.more_events,
        "theorem_exceeded": e.tolerance.theorem_exceeded,
    });
    object([
        ("verdict", json!(verdict.as_str())),
        ("reason", json!(verdict.reason())),
        ("positives", json!(e.positives)),
        ("decided_by", json!(e.decided_by)),
        ("combined", combined(&e.combined)),
        ("smooth", json!(e.smooth)),
        ("mean_score", json!(e.mean_score)),
        ("event_rate", json!(e.event_rate)),
        ("direction", json!(e.direction.as_str())),
        ("direction_words", json!(e.direction.words())),
        ("tolerance", tolerance),
        ("detectable_ece_l2", json!(e.detectable_ece_l2)),
        ("mce", json!(e.mce)),
        ("brier_decomposition", json!(e.brier)),
        ("in_the_large", json!(e.in_the_large)),
        ("spiegelhalter", json!(e.spiegelhalter)),
        ("cox", json!(cox)),
        ("ks", json!(e.ks)),
        ("kuiper", json!(e.kuiper)),
        ("reliability", json!(e.reliability)),
        (
            "distances",
            (e.distances.as_ref()).map_or(Value::Null, |d| super::distances::json(d, e.n)),
        ),
        ("sampling", e.sampled.as_ref().map_or(Value::Null, sampled)),
        (
            "weights",
            e.weights.map_or(Value::Null, |w| weights(&w, e.bounded)),
        ),
        (
            "repeated",
            json!(e.repeated.map(|r| json!({
                "share": r.share,
                "repeats": r.repeats,
                "suspicious": r.is_suspicious(),
            }))),
        ),
        (
            "overdispersion",
            json!(e.overdispersion.map(|d| json!({
                "factor": d.factor,
                "low": d.low,
                "high": d.high,
                "panes": d.panes,
                "used": d.gated().is_some() && e.clusters.is_none_or(|c| c.by_score),
            }))),
        ),
        (
            "clusters",
            json!(e.clusters.map(|c| json!({
                "groups": c.buckets,
                "effective": c.effective,
                "factor": c.factor,
                "patterns": c.patterns,
                "by_score": c.by_score,
            }))),
        ),
    ])
}

fn tcal(e: &Evaluation) -> Value {
    let (t, o) = (&e.tcal, &e.tcal_options);
    let (critical, replicates) = match o.critical {
        Critical::Theorem => ("theorem", None),
        Critical::MonteCarlo { replicates } => ("monte_carlo", Some(replicates)),
        Critical::Moments => ("moments", None),
    };
    let sharing = match o.sharing {
        Sharing::Bonferroni => "bonferroni",
        Sharing::Joint => "joint",
    };
    let method = match (o.critical, o.sharing) {
        (Critical::MonteCarlo { .. }, Sharing::Bonferroni) => "paper".to_owned(),
        (Critical::Moments, Sharing::Joint) => "default".to_owned(),
        _ => format!("{critical}_{sharing}"),
    };
    json!({
        "method": method,
        "reject": t.reject,
        "p_value": t.tested(),
        "scales": t.scales,
        "levels": t.levels.iter().map(level).collect::<Vec<_>>(),
        "rejecting_level": t.rejecting_level,
        "borderline": t.borderline,
        "alpha": o.alpha,
        "critical": critical,
        "replicates": replicates,
        "sharing": sharing,
        "seed": o.seed,
    })
}

fn combined(c: &Combined) -> Value {
    let parts = c
        .parts
        .iter()
        .map(|p| (p.part.as_str().to_owned(), json!(p.p_value)));
    json!({
        "reject": c.reject,
        "p_value": c.tested(),
        "parts": Map::from_iter(parts),
        "decisive": c.decisive.map(|p| p.as_str()),
        "words": c.decisive.map(|p| p.words()),
        "replicates": c.replicates,
    })
}

fn weights(w: &Weights, bounded: bool) -> Value {
    let why = WITHHELD.map(|(what, why)| (what.to_owned(), json!(why)));
    json!({
        "sum": w.sum,
        "effective_n": w.effective,
        "bounded": bounded,
        "withheld": Map::from_iter(why),
    })
}

fn sampled(s: &Sampled) -> Value {
    json!({
        "negatives_kept": s.sampling.kept(),
        "negatives_trained": s.sampling.trained(),
        "odds_factor": s.sampling.factor(),
        "whole_event_rate": s.whole_event_rate,
    })
}

fn level(l: &LevelResult) -> Value {
    json!({
        "cells": l.cells,
        "plug_in": l.plug_in,
        "debiased": l.debiased,
        "p_value": (!l.left_out).then_some(l.p_value),
        "null_sd": l.null_sd,
        "reject": l.reject,
        "worst_cell": l.worst_cell,
        "left_out": l.left_out,
    })
}

/// The numbers of a window as JSON, by the kind of its view.
pub fn numbers_json(numbers: &Numbers) -> Value {
    match numbers {
        Numbers::Scores(e) => json(e),
        Numbers::Cells(e) => super::vectors::json(e),
        Numbers::Kernel(e) => super::kernel::window_json(e),
    }
}

fn object<const N: usize>(entries: [(&str, Value); N]) -> Map<String, Value> {
    entries
        .into_iter()
        .map(|(k, v)| (k.to_owned(), v))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::evaluation::{Options, evaluate_scores};

    #[test]
    fn the_report_has_every_key_of_the_contract_and_null_for_the_undefined() {
        let sample = [(0.5, true), (0.5, false), (0.5, true)];
        let report = evaluate_scores(&sample, &Options::default()).map(|e| json(&e));
        let report = report.unwrap_or_default();
        for key in [
            "n",
            "ece_l1",
            "tcal",
            "interval",
            "discrete",
            "reject",
            "brier",
            "log_loss",
            "spiegelhalter_z",
            "cox_score",
        ] {
            assert!(report.get(key).is_some(), "{key} is missing");
        }
        for key in ["method", "reject", "p_value", "scales", "levels"] {
            assert!(report["tcal"].get(key).is_some(), "tcal.{key} is missing");
        }
        assert_eq!(report["n"], 3);
        assert_eq!(report["spiegelhalter_z"], Value::Null);
        assert_eq!(report["tcal"]["method"], "default");
    }
}
