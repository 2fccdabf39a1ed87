//! The recalibration of a window as JSON and in words.

use crate::judge::recalibration::{Fitted, Judged, Recalibration};
use crate::stats::recalibration::advice::{EACH_MIN, ERRORS_MIN, ISOTONIC_MIN};
use crate::stats::recalibration::{Advice, Fits, Judgement, Map, Measures, Method};
use serde_json::{Map as Object, Value, json};

/// Everything known: the advice with its trial, and the maps that await a trial.
pub fn json(recalibration: &Recalibration) -> Value {
    let judged = recalibration.judged.as_deref();
    json!({
        "advice": advice(judged.map(|j| (&j.judgement, &j.fitted.fits))),
        "judged": judged.map(trial),
        "awaiting_trial": fitted(&recalibration.fitted),
    })
}

/// The map to apply, or the reason for none, by its name and in words; before a trial it is
/// `await_trial`.
pub fn advice(judged: Option<(&Judgement, &Fits)>) -> Value {
    let Some((judgement, fits)) = judged else {
        return json!({
            "apply": Value::Null, "reason": "await_trial",
            "words": "no map has been tried yet; maps are tried on the first miscalibrated window that begins after the end of theirs",
        });
    };
    let found = judgement.advice;
    json!({
        "apply": found.method().map(Method::as_str),
        "reason": if found.method().is_some() { "gain" } else { found.as_str() },
        "words": words(judgement, fits),
    })
}

/// The advice as a sentence, with its numbers.
pub fn words(judgement: &Judgement, fits: &Fits) -> String {
    let few = |n: u64, positives: u64| {
        let (least, which) = if positives * 2 <= n {
            (positives, "positive")
        } else {
            (n - positives, "negative")
        };
        format!("{least} {which} outcomes, under the {EACH_MIN} that are asked for")
    };
    match judgement.advice {
        Advice::Apply(method) => apply(method, judgement),
        Advice::TooFewToFit => {
            format!(
                "no map is advised: it would rest on {}",
                few(fits.n, fits.positives)
            )
        }
        Advice::TooFewToJudge => {
            let few = few(judgement.n, judgement.positives);
            format!("no map is advised: the events to try one on have only {few}")
        }
        Advice::Unfitted => {
            let why = fits.maps.iter().find_map(|m| m.as_ref().err());
            format!(
                "no map is advised: none could be fitted{}; an isotonic one needs {ISOTONIC_MIN} events",
                why.map_or(String::new(), |why| format!(" ({})", why.words()))
            )
        }
        Advice::NoGain => format!(
            "no map is advised: on {} other events none lowered log loss by more than {ERRORS_MIN} standard errors",
            judgement.n
        ),
    }
}

fn apply(method: Method, judgement: &Judgement) -> String {
    let name = method.as_str();
    let Some(t) = judgement.trial(method) else {
        return format!("apply the {name} map");
    };
    let best = Method::ALL
        .into_iter()
        .filter_map(|m| Some((m, judgement.trial(m)?.log_loss.mean)));
    let best = best.max_by(|a, b| a.1.total_cmp(&b.1)).map(|b| b.0);
    let why = if best == Some(method) {
        "no other map brought more"
    } else {
        "no freer map brought more by above an error"
    };
    format!(
        "apply the {name} map: on {} other events it lowered log loss by {:.5} (standard error {:.5}), from {:.4} to {:.4}, and the l2-ECE from {:.4} to {:.4}; {why}",
        judgement.n,
        t.log_loss.mean,
        t.log_loss.standard_error,
        judgement.original.log_loss,
        t.recalibrated.log_loss,
        judgement.original.ece_l2(),
        t.recalibrated.ece_l2(),
    )
}

fn trial(j: &Judged) -> Value {
    let mut all =
        json!({ "fitted": fitted(&j.fitted), "on": {"start_ms": j.start_ms, "end_ms": j.end_ms} });
    for (key, value) in judgement(&j.judgement) {
        all["on"][key] = value;
    }
    all
}

/// The gain of the maps: the scores unchanged, and recalibrated by each map.
pub fn judgement(j: &Judgement) -> Object<String, Value> {
    let recalibrated: Object<String, Value> = Method::ALL
        .into_iter()
        .filter_map(|m| {
            let t = j.trial(m)?;
            let mut entry = measures(&t.recalibrated);
            entry["log_loss_gain"] = json!(t.log_loss);
            entry["brier_gain"] = json!(t.brier);
            Some((m.as_str().to_owned(), entry))
        })
        .collect();
    let mut all = Object::new();
    all.insert("n".into(), json!(j.n));
    all.insert("positives".into(), json!(j.positives));
    all.insert("original".into(), measures(&j.original));
    all.insert("recalibrated".into(), Value::Object(recalibrated));
    all
}

fn measures(m: &Measures) -> Value {
    json!({
        "log_loss": m.log_loss, "brier": m.brier, "ece_l1": m.ece_l1,
        "ece_l2": { "estimate_squared": m.ece_l2_squared, "lower": m.lower, "upper": m.upper },
        "tcal_p_value": m.p_value,
    })
}

fn fitted(f: &Fitted) -> Value {
    let mut all = fits(&f.fits);
    all["start_ms"] = json!(f.start_ms);
    all["end_ms"] = json!(f.end_ms);
    all
}

/// The maps of one window with their parameters, or why there are none.
pub fn fits(f: &Fits) -> Value {
    let map = |method: Method| {
        let map = match &f.maps[method as usize] {
            Ok(map) => parameters(map),
            Err(why) => json!({ "unfit": why.as_str(), "words": why.words() }),
        };
        (method.as_str().to_owned(), map)
    };
    let maps: Object<String, Value> = Method::ALL.into_iter().map(map).collect();
    json!({ "n": f.n, "positives": f.positives, "maps": maps })
}

/// Parameters of a map; an isotonic map is linear between its points.
pub fn parameters(map: &Map) -> Value {
    match map {
        Map::Logistic(m) => json!(m),
        Map::Beta(m) => json!(m),
        Map::Isotonic(m) => {
            let mut points: Vec<[f64; 2]> = Vec::new();
            for b in &m.blocks {
                points.push([b.low, b.rate]);
                if b.high > b.low {
                    points.push([b.high, b.rate]);
                }
            }
            json!({ "blocks": m.blocks.len(), "points": points })
        }
    }
}
