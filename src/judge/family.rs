//! Every class against the rest, with one error rate for all classes.
//!
//! A stream with several `class:k` views has a test for each class. One of K calibrated classes is
//! rejected more often than α, so the p-values are adjusted by Holm's step-down (1979), which keeps
//! the chance of any false rejection at α whatever the dependence between classes. The smallest
//! adjusted p-value tests all classes at once. A class without a p-value (undecided) is not part of
//! the family; `classes` says how many are.
//!
//! Verdicts and alerts still use each class alone; the adjusted p-value is shown beside them. It is
//! recomputed from windows with the same end whenever windows of the model are judged, and
//! withdrawn with them.

use super::judge::Judge;
use super::report::Family;
use crate::stats::multiclass::classwise::adjust;
use crate::stats::view::View;

/// Adjusts the class views among the judges of one stream for each other, window by window.
pub fn adjust_all(judges: &mut [Judge], alpha: f64) {
    let is_class = |j: &Judge| matches!(j.report().id.view, View::Class(_));
    let classes: Vec<usize> = (0..judges.len())
        .filter(|i| is_class(&judges[*i]))
        .collect();
    if classes.len() < 2 {
        return;
    }
    for window in 0..judges[classes[0]].report().windows.len() {
        let decided = |i: &usize| {
            let numbers = judges[*i].report().windows[window].numbers.as_ref()?;
            Some((*i, numbers.p_value()?))
        };
        let (at, p): (Vec<usize>, Vec<f64>) = classes.iter().filter_map(decided).unzip();
        let adjusted = adjust(&p);
        let smallest = adjusted.iter().copied().fold(1.0, f64::min);
        for (i, adjusted) in at.into_iter().zip(adjusted) {
            let family = Family {
                classes: p.len() as u32,
                adjusted_p_value: adjusted,
                p_value: smallest,
                reject: adjusted <= alpha,
            };
            judges[i].set_family(window, family);
        }
    }
}
