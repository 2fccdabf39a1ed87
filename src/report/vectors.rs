//! Several classes at once: `trueline evaluate --view top_k:k`, `full` and `classes`, as JSON and
//! as text.

use super::text::{known, p, span};
use crate::stats::multiclass::{Classwise, Evaluation};
use serde_json::{Value, json};
use std::fmt::Write;

/// A vector view, tested by cells, as JSON.
pub fn json(e: &Evaluation) -> Value {
    // The bound of the theorem is for events of equal weight.
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
        "interval": e.interval,
        "weights": e.weights.map(|w| json!({
            "sum": w.sum,
            "effective_n": w.effective,
            "withheld": {"theorem": "the bound of the theorem is proven for equal weights"},
        })),
    })
}

/// The name of a class; its index if `names` has none.
pub fn class_name(names: &[String], class: u32) -> String {
    let named = names.get(class as usize);
    named.map_or_else(|| class.to_string(), Clone::clone)
}

/// Every class against the rest as JSON; `names` are the classes' names, if they have any, and
/// `alpha` is the level of the family.
pub fn classwise(c: &Classwise, names: &[String], n: usize, alpha: f64) -> Value {
    let class = |c: &crate::stats::multiclass::ClassResult| {
        json!({
            "class": c.class,
            "name": names.get(c.class as usize),
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

/// A vector view as text: verdict, interval, levels.
pub fn text(e: &Evaluation) -> String {
    let (alpha, not) = (e.alpha, if e.tcal.reject { "" } else { "not " });
    let bound = match e.tcal.bounded {
        true => format!(
            ", p at most {} (a bound for any weights),",
            p(e.tcal.p_value)
        ),
        false => String::new(),
    };
    let by_levels = (!e.tcal.bounded).then_some(e.tcal.p_value);
    let i = &e.interval;
    let span = span(i.lower, i.upper, i.contains_zero);
    let weights = e
        .weights
        .map(|w| format!(", effective number of events {:.1}", w.effective));
    let mut out = format!(
        "calibration {not}rejected at α = {alpha}{bound} in the view {}\n\n\
         {:<22}{} of {} classes{}\n\
         {:<22}p = {} over {} levels\n\
         {:<22}{:.5}, {} % interval {span}, {} slices, median of {} events a cell\n\
         {:<22}{:.5} in total variation\n\n\
         {:>9} {:>9} {:>9} {:>12} {:>12} {:>12}\n",
        e.view,
        "events",
        e.n,
        e.classes,
        weights.unwrap_or_default(),
        "T-Cal",
        known(by_levels),
        e.tcal.levels.len(),
        "ℓ2-ECE",
        i.estimate_squared.max(0.0).sqrt(),
        100.0 * i.confidence,
        i.slices,
        i.median_count,
        "ℓ1-ECE",
        e.ece_l1,
        "slices",
        "occupied",
        "shared",
        "debiased",
        "null sd",
        "p",
    );
    for l in &e.tcal.levels {
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:>9} {:>9} {:>9} {:>12.3e} {:>12.3e} {:>12}",
            l.slices,
            l.occupied,
            l.shared,
            l.debiased,
            l.null_sd,
            known((!l.left_out).then_some(l.p_value))
        );
    }
    out
}

/// Every class against the rest as text.
pub fn classwise_text(c: &Classwise, names: &[String], alpha: f64) -> String {
    let widths = names.iter().map(|name| name.chars().count());
    let wide = widths.fold(6, usize::max);
    let verdict = if c.reject { "rejected" } else { "not rejected" };
    let mut out = format!(
        "calibration {verdict} at α = {alpha} over all classes, p = {}\n\n{:>wide$} {:>12} {:>12} {:>14}\n",
        p(c.p_value),
        "class",
        "p",
        "adjusted",
        "mean residual"
    );
    for c in &c.classes {
        let mark = if c.reject { "  rejects" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:>wide$} {:>12} {:>12} {:>+14.5}{mark}",
            class_name(names, c.class),
            p(c.p_value),
            p(c.adjusted),
            c.mean_residual
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{Numbers, Undecided, Verdict, shown};
    use crate::stats::kernel::Vectors;
    use crate::stats::multiclass::{Events, VectorView, evaluate_events};
    use std::sync::Arc;

    /// Ten of 4000 events have the weight 500, so they carry the information of fewer than two
    /// outcomes.
    fn heavy(happens: fn(u32) -> bool) -> Evaluation {
        let (mut all, mut weights) = (Vectors::new(2), Vec::new());
        for i in 0..4000 {
            let z = (f64::from(i) + 0.5) / 4000.0;
            all.push(&[z, 1.0 - z], u32::from(!happens(i))).unwrap();
            weights.push(if i % 400 == 0 { 500.0 } else { 1.0 });
        }
        let events = Events::weighted(&all, VectorView::Full, &weights);
        evaluate_events(&events, 0.05, 0.9, None).unwrap()
    }

    #[test]
    fn where_no_level_has_a_law_the_p_value_is_a_bound_and_says_so() {
        for (happens, not) in [
            ((|i| i < 2000) as fn(u32) -> bool, ""),
            (|i| i * 1777 % 4000 < i, "not "),
        ] {
            let e = heavy(happens);
            let text = super::text(&e);
            let begin = format!("calibration {not}rejected at α = 0.05, p at most ");
            assert!(text.starts_with(&begin), "{text}");
            assert!(text.contains("p = – over "), "{text}");
            let json = super::json(&e);
            assert_eq!(json["tcal"]["bounded"], true);
            assert!(json["tcal"]["p_value"].is_number() && e.tcal.reject == not.is_empty());
            assert!(json["tcal"]["levels"][0]["p_value"].is_null());
            let verdict = Verdict::Undecided(Undecided::FewOutcomes);
            let said = shown(verdict, &Numbers::Cells(Arc::new(e)));
            match not {
                "" => assert!(said.contains("with so few outcomes its size"), "{said}"),
                _ => assert!(
                    said.starts_with("only 1.")
                        && said.contains("of equal weight")
                        && said.ends_with("only gross errors are found"),
                    "{said}"
                ),
            }
        }
    }
}
