//! Which vector views can be kept live, and beside what.
//!
//! A vector view needs its classes named, at most [`DIMENSION_MAX`] coordinates, and a view of single scores beside it, by
//! which events are counted. It counts events alike: the null variance of a cell, by which its test keeps its level, is of
//! sums without weights; so it cannot be of a model whose events are weighted.

use super::document::Record;
use super::problem::Problems;
use crate::stats::multiclass::sums::{DIMENSION_MAX, Shape};
use crate::stats::view::View;

/// Names what stands against the vector views of a model, if it has any.
pub fn check(record: &Record, views: &[View], weighted: bool, problems: &mut Problems<'_>) {
    if !views.iter().any(|v| v.vector().is_some()) {
        return;
    }
    let at = record.entry("views").at;
    let remedy = "use `top_label` and `class:` views";
    if weighted {
        let what = "`top_k` and `full` count events alike, and events of this model are weighted";
        problems.add(at, what, remedy);
    }
    if views.iter().all(|v| v.vector().is_some()) {
        let what = "`views` has no view of single scores, by which events are counted";
        problems.add(at, what, "add `\"top_label\"`");
    }
}

/// A vector view fits the model's classes and what is kept live.
pub fn fits(view: View, text: &str, classes: &[String]) -> Result<View, (String, String)> {
    let Some(vector) = view.vector() else {
        return Ok(view);
    };
    let shape = Shape {
        view: vector,
        classes: classes.len(),
        cells_max: 1,
    };
    if classes.len() < 2 {
        let remedy = "list the names of all classes in `classes`".to_owned();
        return Err((format!("view `{text}` needs to know the classes"), remedy));
    }
    match shape.dimension() {
        Some(_) => Ok(view),
        None => Err((
            format!(
                "view `{text}` of {} classes has too many coordinates: at most {DIMENSION_MAX}, and no more than classes",
                classes.len()
            ),
            "write `top_k:` with a smaller number, or `class:` views".to_owned(),
        )),
    }
}
