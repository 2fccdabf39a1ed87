//! Changes in words, with the numbers that make them believable.

use super::numbers::{Numbers, p_value};
use super::report::WindowReport;
use super::stream::StreamId;
use super::verdict::{Undecided, Verdict};
use crate::alert::AlertState;
use crate::stats::evaluation::Evaluation;
use crate::stats::kernel::window::WindowEvaluation;
use crate::stats::multiclass;

/// "fraud/3//binary over 5m is miscalibrated (was calibrated): …".
pub fn verdict_sentence(id: &StreamId, report: &WindowReport, from: Verdict) -> String {
    let verdict = report.verdict;
    let (window, why) = (&report.window, because(report));
    format!("{id} over {window} is {verdict} (was {from}): {why}")
}

/// "alert of fraud/3//binary over 5m is firing (was pending): …".
pub fn alert_sentence(id: &StreamId, report: &WindowReport, from: AlertState) -> String {
    let (window, why) = (&report.window, because(report));
    let (to, from) = (report.alert.as_str(), from.as_str());
    format!("alert of {id} over {window} is {to} (was {from}): {why}")
}

/// The numbers of a window, or why it has no verdict.
pub fn because(report: &WindowReport) -> String {
    let n = report.n;
    match (report.verdict, &report.numbers) {
        (Verdict::Undecided(why), _) => match why {
            Undecided::TooFew => format!("only {n} events"),
            Undecided::Immature => "its predictions still wait for their outcomes".to_owned(),
            Undecided::Coverage => {
                let dropped = report.coverage.as_ref().map_or(0, |c| c.dropped);
                format!("{dropped} predictions have no outcome, beside {n} that have one")
            }
            Undecided::Stale => "no events have come for a while".to_owned(),
            Undecided::Late => format!("more events came late than the {n} in time"),
            Undecided::Capacity => {
                "its sums are at the end of their range, or events found no cell left".to_owned()
            }
        },
        (_, None) => format!("{n} events"),
        (verdict, Some(Numbers::Scores(e))) => score_numbers(verdict, e),
        (verdict, Some(Numbers::Cells(e))) => vector_numbers(verdict, e),
        (verdict, Some(Numbers::Kernel(e))) => kernel_numbers(verdict, e),
    }
}

fn score_numbers(verdict: Verdict, e: &Evaluation) -> String {
    let said = match verdict {
        Verdict::Miscalibrated => format!("{}; ", e.direction.words()),
        // Say so, or a p-value of 0.001 seems to be overlooked.
        _ if e.reject => "significant but within the tolerance; ".to_owned(),
        _ => String::new(),
    };
    format!(
        "{said}mean score {:.4}, event rate {:.4}, l2-ECE {:.4} ({:.0} % interval {:.4} to {:.4}{}), p = {}, n = {}",
        e.mean_score,
        e.event_rate,
        e.interval.estimate_squared.max(0.0).sqrt(),
        100.0 * e.interval.confidence,
        e.interval.lower,
        e.interval.upper,
        if e.interval.contains_zero {
            " with 0"
        } else {
            ""
        },
        probability(p_value(e)),
        e.n
    )
}

fn vector_numbers(verdict: Verdict, e: &multiclass::Evaluation) -> String {
    let within = match verdict {
        Verdict::Calibrated if e.tcal.reject => "significant but within the tolerance; ",
        _ => "",
    };
    let i = &e.interval;
    format!(
        "{within}l2-ECE {:.4} ({:.0} % interval {:.4} to {:.4}{}) over {} coordinates, p = {}, n = {}",
        i.estimate_squared.max(0.0).sqrt(),
        100.0 * i.confidence,
        i.lower,
        i.upper,
        if i.contains_zero { " with 0" } else { "" },
        e.dimension,
        probability(e.tcal.p_value),
        e.n
    )
}

fn kernel_numbers(verdict: Verdict, e: &WindowEvaluation) -> String {
    let within = match verdict {
        Verdict::Calibrated if e.reject => "significant but within the tolerance; ",
        _ => "",
    };
    let p = e.p_value.map_or("undefined".to_owned(), probability);
    let events = match e.by_features {
        true => format!("n = {}", e.n),
        false => format!("{} of n = {}", e.sample.n, e.n),
    };
    format!(
        "{within}KCE {:.4} (at least {:.4}) over {} classes, p = {p}, {events}",
        e.kce, e.lower, e.classes
    )
}

/// Two digits, small ones as powers of ten.
fn probability(p: f64) -> String {
    if p >= 0.001 || p == 0.0 {
        format!("{p:.3}")
    } else {
        format!("{p:.1e}")
    }
}
