//! Decides which vector views can be maintained, and which options they exclude.
//!
//! A vector view needs named classes, at most [`DIMENSION_MAX`] coordinates (except for the kernel
//! test), and a view of single scores beside it, which counts the events. The null hypothesis of
//! the kernel test assumes equally weighted events, so a model with weighted events cannot have a
//! kernel view.

use super::document::Record;
use super::problem::Problems;
use super::value::Value;
use crate::stats::kernel::window::KernelOptions;
use crate::stats::multiclass::sums::{DIMENSION_MAX, Shape};
use crate::stats::view::View;

/// Reports the problems of the vector views of a model.
pub fn check(record: &Record, views: &[View], weighted: bool, problems: &mut Problems<'_>) {
    if !views.iter().any(|v| v.is_vector()) {
        return;
    }
    let at = record.entry("views").at;
    if weighted && views.contains(&View::Kernel) {
        let what = "`kernel` compares pairs of events that count alike, and events of this model are weighted";
        problems.add(at, what, "use `full`, `top_k:` and `class:` views");
    }
    if views.iter().all(|v| v.is_vector()) {
        let what = "`views` has no view of single scores, by which events are counted";
        problems.add(at, what, "add `\"top_label\"`");
    }
}

/// Rejects vector views of clustered events: their sums are not kept by cluster.
pub fn refuse_clustered(record: &Record, views: &[View], problems: &mut Problems<'_>) {
    if views.iter().any(|v| v.is_vector()) {
        let what = "tests of whole vectors take events as independent, and events of this model are clustered";
        let remedy = "use `top_label` and `class:` views, or remove `cluster`";
        problems.add(record.entry("views").at, what, remedy);
    }
}

/// Options of the kernel view. Features need a fixed bandwidth.
pub fn keeping(record: &Record, problems: &mut Problems<'_>) -> KernelOptions {
    let own = record.child("model.kernel");
    let width = own.entry("bandwidth");
    let keeping = KernelOptions {
        sample: own.count("sample"),
        nu: (!matches!(width.value, Value::Absent)).then(|| own.number("bandwidth")),
        features: own.count("features"),
        seed: own.integer("seed").unwrap_or(0).unsigned_abs(),
    };
    let features = own.entry("features");
    if keeping.features > 0 && keeping.nu.is_none() {
        let what = "`features` are sums over panes, at one width for all, and without `bandwidth` each window has its own";
        let remedy = "write `bandwidth`, such as the `nu` that `trueline evaluate --view kernel` says of a good month";
        problems.add(features.at, what, remedy);
    }
    keeping
}

/// Checks a vector view against the classes of the model and the limits.
pub fn fits(view: View, text: &str, classes: &[String]) -> Result<View, (String, String)> {
    if !view.is_vector() {
        return Ok(view);
    }
    if classes.len() < 2 {
        let remedy = "list the names of all classes in `classes` of this [[model]]".to_owned();
        return Err((format!("view `{text}` needs to know the classes"), remedy));
    }
    let Some(vector) = view.cells() else {
        return Ok(view);
    };
    let shape = Shape {
        view: vector,
        classes: classes.len(),
        cells_max: 1,
        weighted: false,
    };
    match shape.dimension() {
        Some(_) => Ok(view),
        None => Err((
            format!(
                "view `{text}` of {} classes has too many coordinates: at most {DIMENSION_MAX}, and no more than classes",
                classes.len()
            ),
            "write `top_k:` with a smaller number, `kernel`, or `class:` views".to_owned(),
        )),
    }
}
