//! The page of vectors of class probabilities: each class against the rest, or several classes as
//! one vector.

use std::fmt::Write;

use super::{document, measures, table};
use crate::judge::shown_of_scores;
use crate::report::html::{capital, escape, number, range, significance, thousands};
use crate::report::legend;
use crate::report::vectors::class_name;
use crate::report::window::{drawn, known, vector_figures};
use crate::stats::discrimination::{Discrimination, VectorScores};
use crate::stats::evaluation::{Options, evaluate_scores};
use crate::stats::kernel::Vectors;
use crate::stats::multiclass::{self, ClassResult, Classwise, of_class};
use crate::stats::view::View;

/// Most classes in the table.
const ROWS: usize = 200;
/// Most classes with a diagram.
const DRAWN: usize = 6;

/// The page of all classes, each against the rest; `names` are their names, if they have any.
pub fn page(
    name: &str,
    names: &[String],
    sample: &Vectors,
    found: &Classwise,
    o: &Options,
) -> String {
    let class_name = |class| escape(&class_name(names, class));
    let mut worst: Vec<&ClassResult> = found.classes.iter().collect();
    let key = |c: &ClassResult| (c.adjusted, -c.mean_residual.abs());
    worst.sort_by(|a, b| {
        key(a)
            .partial_cmp(&key(b))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let mut body = head(name, found.reject, sample.len());
    let rejected = found.classes.iter().filter(|c| c.reject).count();
    let _ = write!(
        body,
        "<p class=words>{}</p><p>{rejected} of {} classes are rejected at α = {} of all together (Holm); p {} of all classes \
         being calibrated.</p>",
        match found.reject {
            true => "The probabilities of some classes are not true.",
            false => "No class is shown to have wrong probabilities.",
        },
        found.classes.len(),
        o.tcal.alpha,
        significance(found.p_value)
    );
    let shown: Vec<(&ClassResult, Vec<(f64, bool)>)> = worst
        .iter()
        .take(ROWS)
        .filter_map(|c| Some((*c, sample.project(View::Class(c.class)).ok()?)))
        .collect();
    body.push_str("<section><h2>Classes, the worst first</h2>");
    let rows = shown.iter();
    let rows: Vec<_> = rows
        .map(|(c, scores)| row(class_name(c.class), c, scores))
        .collect();
    body += &table(
        &[
            "class",
            "happened",
            "mean score",
            "event rate",
            "p-value",
            "adjusted",
            "AUC",
        ],
        &rows,
    );
    if worst.len() > ROWS {
        let _ = write!(body, "<p>And {} more.</p>", worst.len() - ROWS);
    }
    body.push_str("</section>");
    for (class, scores) in shown.iter().take(DRAWN) {
        if let Some(e) = evaluate_scores(scores, &of_class(sample, o)) {
            let among = match e.reject && !class.reject {
                true => format!(
                    "Not rejected among all classes (p {}); alone: ",
                    significance(class.adjusted)
                ),
                false => String::new(),
            };
            let _ = write!(
                body,
                "<section><h2>Class {} against the rest</h2><p class=words>{among}{}.</p>",
                class_name(class.class),
                escape(&capital(&shown_of_scores(&e)))
            );
            drawn(&e, None, &mut body);
            body.push_str("</section>");
        }
    }
    if let Some(scores) = VectorScores::of(sample) {
        body += &measures::of_vectors(&scores);
    }
    document(name, &body)
}

fn row(name: String, c: &ClassResult, scores: &[(f64, bool)]) -> Vec<String> {
    let n = scores.len().max(1) as f64;
    let happened = scores.iter().filter(|s| s.1).count();
    let auc = Discrimination::of_scores(scores).and_then(|d| d.auc);
    vec![
        name,
        thousands(happened as u64),
        number(scores.iter().map(|s| s.0).sum::<f64>() / n),
        number(happened as f64 / n),
        significance(c.p_value),
        format!(
            "<span class={}>{}</span>",
            if c.reject { "bad" } else { "" },
            significance(c.adjusted)
        ),
        auc.as_ref().map_or("–".to_owned(), measures::area),
    ]
}

/// The page of several classes as one vector.
pub fn of_cells(name: &str, e: &multiclass::Evaluation, sample: Option<&Vectors>) -> String {
    let mut body = head(name, e.tcal.reject, e.n);
    let i = &e.interval;
    let _ = write!(
        body,
        "<p class=words>The error of the view {} is {}, with a {:.0} % interval from {} (p {}).</p><section>",
        e.view,
        number(i.estimate_squared.max(0.0).sqrt()),
        100.0 * i.confidence,
        range(i.lower, i.upper),
        known(Some(e.tcal.p_value), e.tcal.bounded)
    );
    vector_figures(e, &mut body);
    legend::cells(e, &mut body);
    body.push_str("</section>");
    if let Some(scores) = sample.and_then(VectorScores::of) {
        body += &measures::of_vectors(&scores);
    }
    document(name, &body)
}

fn head(name: &str, reject: bool, n: usize) -> String {
    let (class, word) = match reject {
        true => ("full", "rejected"),
        false => ("soft", "not rejected"),
    };
    format!(
        "<h1>Are these probabilities true? <span class=\"badge {class}\">calibration {word}</span></h1>\
         <p class=lead>{} · {} events</p>",
        escape(name),
        thousands(n as u64)
    )
}
