//! The kernel test of vectors as text.

use crate::report::text::p;
use crate::stats::kernel::weighted::WeightedEvaluation;
use crate::stats::kernel::{Evaluation, PValues};

/// The verdict in one line, then an estimator a line.
pub fn render(e: &Evaluation) -> String {
    let verdict = if e.reject { "rejected" } else { "not rejected" };
    let values = |v: &PValues| {
        let named = [
            ("given the predictions", v.conditional),
            ("for any law", v.distribution_free),
            ("in the limit", v.asymptotic),
        ];
        let said = named
            .iter()
            .filter_map(|(name, x)| x.map(|x| format!("{} {name}", p(x))));
        said.collect::<Vec<_>>().join(", ")
    };
    let estimate = |x: Option<f64>| x.map_or("undefined".to_owned(), |x| format!("{x:.4e}"));
    let part = if e.quadratic_n < e.n {
        format!(", quadratic forms on {} drawn by seed", e.quadratic_n)
    } else {
        String::new()
    };
    format!(
        "calibration {verdict} at α = {} by the kernel test\n\n\
         {:<22}{} of {} classes{part}\n\
         {:<22}exp(−TV/ν), ν = {:.5}\n\
         {:<22}{:.5}\n\
         {:<22}{:.4e}, under the null {:.4e}; p = {}\n\
         {:<22}{}, null sd {:.2e}; p = {}\n\
         {:<22}{}; p = {}\n\
         {:<22}{} in blocks of {}; p = {}\n",
        e.alpha,
        "events",
        e.n,
        e.classes,
        "kernel",
        e.nu,
        "KCE",
        e.biased.max(0.0).sqrt(),
        "SKCE biased",
        e.biased,
        e.null_mean,
        values(&e.biased_p),
        "SKCE unbiased",
        estimate(e.unbiased),
        e.unbiased_null_sd,
        values(&e.unbiased_p),
        "SKCE linear",
        estimate(e.linear),
        values(&e.linear_p),
        "SKCE block",
        estimate(e.block),
        e.block_size,
        values(&e.block_p),
    )
}

/// The same of weighted events.
pub fn weighted(e: &WeightedEvaluation) -> String {
    let verdict = if e.reject { "rejected" } else { "not rejected" };
    let value = |x: Option<f64>| x.map_or("undefined".to_owned(), p);
    let unbiased = e
        .unbiased
        .map_or("undefined".to_owned(), |x| format!("{x:.4e}"));
    format!(
        "calibration {verdict} at α = {} by the kernel test of weighted events\n\n\
         {:<22}{} of {} classes; quadratic forms on {}, effectively {:.1}\n\
         {:<22}exp(−TV/ν), ν = {:.5}\n\
         {:<22}{:.5}\n\
         {:<22}{:.4e}, under the null {:.4e}; p = {} given the predictions, {} for any n\n\
         {:<22}{unbiased}, null sd {:.2e}\n",
        e.alpha,
        "events",
        e.n,
        e.classes,
        e.quadratic_n,
        e.effective,
        "kernel",
        e.nu,
        "KCE",
        e.biased.max(0.0).sqrt(),
        "SKCE biased",
        e.biased,
        e.null_mean,
        value(e.p_value),
        p(e.bound),
        "SKCE unbiased",
        e.unbiased_null_sd,
    )
}
