//! Several classes at once as JSON: `trueline evaluate --view top_k:k`, `full` and `classes`.

use crate::stats::multiclass::{Classwise, Evaluation};
use serde_json::{Value, json};

/// A vector view, tested by cells.
pub fn json(e: &Evaluation) -> Value {
    // The theorem's bound is of events that count alike.
    let bound = |exceeded: bool| e.weights.is_none().then_some(exceeded);
    let level = |l: &crate::stats::multiclass::tcal::VectorLevelResult| {
        json!({
            "slices": l.slices,
            "occupied": l.occupied,
            "shared": l.shared,
            "plug_in": l.plug_in,
            "debiased": l.debiased,
            "null_sd": l.null_sd,
            "p_value": (!l.left_out).then_some(l.p_value),
            "theorem": bound(l.theorem),
            "left_out": l.left_out,
        })
    };
    let i = &e.interval;
    json!({
        "n": e.n,
        "classes": e.classes,
        "view": e.view.to_string(),
        "dimension": e.dimension,
        "information": e.information,
        "reject": e.tcal.reject,
        "ece_l1": e.ece_l1,
        "tcal": {
            "p_value": e.tcal.p_value,
            "bounded": e.tcal.bounded,
            "reject": e.tcal.reject,
            "theorem_reject": bound(e.tcal.theorem_reject),
            "alpha": e.alpha,
            "replicates": e.tcal.replicates,
            "levels": e.tcal.levels.iter().map(level).collect::<Vec<_>>(),
        },
        "interval": {
            "slices": i.slices,
            "confidence": i.confidence,
            "estimate_squared": i.estimate_squared,
            "sigma1_squared": i.sigma1_squared,
            "lower": i.lower,
            "upper": i.upper,
            "contains_zero": i.contains_zero,
            "median_count": i.median_count,
        },
        "weights": e.weights.map(|w| json!({
            "sum": w.sum,
            "effective_n": w.effective,
            "withheld": {"theorem": "the bound of the theorem is proven for equal weights"},
        })),
    })
}

/// Every class against the rest; `alpha` is that of the family.
pub fn classwise(c: &Classwise, n: usize, alpha: f64) -> Value {
    let class = |c: &crate::stats::multiclass::ClassResult| {
        json!({
            "class": c.class,
            "p_value": c.p_value,
            "adjusted_p_value": c.adjusted,
            "reject": c.reject,
            "mean_residual": c.mean_residual,
        })
    };
    json!({
        "n": n,
        "view": "classes",
        "alpha": alpha,
        "p_value": c.p_value,
        "reject": c.reject,
        "classes": c.classes.iter().map(class).collect::<Vec<_>>(),
    })
}
