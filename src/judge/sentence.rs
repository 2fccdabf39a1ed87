//! Changes in words, with the numbers that make them believable.

use super::decided::DecidedError;
use super::report::WindowReport;
use super::stream::StreamId;
use super::verdict::{Numbers, Undecided, Verdict};
use crate::alert::AlertState;
use crate::stats::clusters::CLUSTERS_MIN;
use crate::stats::evaluation::Evaluation;
use crate::stats::kernel::window::WindowEvaluation;
use crate::stats::multiclass;
use crate::stats::tolerance::{Conclusion, FEW};
use std::borrow::Cow;

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
    match (report.verdict, report.evaluated()) {
        (Verdict::Undecided(why), None) => match why {
            Undecided::Inconclusive | Undecided::FewOutcomes | Undecided::FewClusters => {
                format!("{n} events")
            }
            Undecided::TooFew => format!("only {n} events"),
            Undecided::Immature => "its predictions still wait for their outcomes".to_owned(),
            Undecided::Coverage => {
                let dropped = report.coverage.as_ref().map_or(0, |c| c.dropped);
                format!("{dropped} predictions have no outcome, beside {n} that have one")
            }
            Undecided::Stale => "nothing new has come or was judged for a while".to_owned(),
            Undecided::Stalled => {
                "the watermark stands still: a partition holds all verdicts back".to_owned()
            }
            Undecided::Late => format!("more events came late than the {n} in time"),
            Undecided::Capacity => {
                "its sums are at the end of their range, or events found no cell left".to_owned()
            }
        },
        (_, None) => format!("{n} events"),
        (verdict, Some(numbers)) => {
            let shown = shown(verdict, numbers);
            match numbers {
                Numbers::Scores(e) => format!("{shown}; {}", score_numbers(e)),
                Numbers::Cells(e) => format!("{shown}; {}", vector_numbers(e)),
                Numbers::Kernel(e) => format!("{shown}; {}", kernel_numbers(e)),
            }
        }
    }
}

/// What a window that was evaluated shows, in words: the same on the page, in notifications and in
/// the API.
pub fn shown(verdict: Verdict, numbers: &Numbers) -> String {
    match numbers.scores() {
        Some(e) => shown_of_scores(e),
        None => shown_of_vectors(verdict, numbers),
    }
}

/// What an evaluation of single scores shows, in words.
pub fn shown_of_scores(e: &Evaluation) -> String {
    let more = (e.tolerance.more_events.filter(|&more| more >= 0.5))
        .map_or(String::new(), |more| {
            format!("; about {} more events would decide", rounded(more))
        });
    let more = more + &dependence(e);
    let error = DecidedError::of_scores(e);
    let by_ratio = error.is_ratio().then(|| ratio(&error));
    let tau = error.digits(e.tolerance.tolerance);
    match (e.tolerance.conclusion, by_ratio) {
        (Conclusion::Miscalibrated, ratio) => {
            let ratio = ratio.map(Cow::Owned);
            let part = e.combined.decisive.map(|part| part.words().into());
            let said = [Some(e.direction.words().into()), ratio, part];
            let said: Vec<Cow<'_, str>> = said.into_iter().flatten().collect();
            said.join("; ") + &more
        }
        (Conclusion::Calibrated, Some(ratio)) => format!("{ratio}; shape not shown{more}"),
        (Conclusion::Calibrated, None) => {
            format!(
                "error within {:.4}, of {tau} tolerated{}{}",
                e.interval.upper,
                clusters(e),
                repeats(e)
            )
        }
        (Conclusion::FewOutcomes, _) if e.tolerance.expected >= FEW => {
            "few large weights have most of the information; only gross errors are found".to_owned()
        }
        (Conclusion::FewOutcomes, _) => {
            let rare = e.tolerance.expected;
            let which = if e.mean_score < 0.5 {
                "positives"
            } else {
                "negatives"
            };
            format!("only {rare:.1} {which} are expected by the scores{more}")
        }
        (Conclusion::FewClusters, _) => {
            let found = e.clusters.map_or(0, |c| c.buckets);
            format!(
                "events of only {found} clusters, and tests over clusters need {CLUSTERS_MIN}; name a \
                 finer cluster or take a longer window"
            )
        }
        (Conclusion::Inconclusive, Some(ratio)) if e.reject => format!(
            "the error is significant ({}), but not shown to exceed the tolerance: {ratio}{more}",
            e.direction.words()
        ),
        (Conclusion::Inconclusive, Some(ratio)) => {
            format!("an error above the tolerance is neither shown nor excluded: {ratio}{more}")
        }
        (Conclusion::Inconclusive, None) if e.reject => format!(
            "the error is significant ({}), but not shown to exceed {tau}{more}",
            e.direction.words()
        ),
        (Conclusion::Inconclusive, None) => {
            format!("an error above {tau} is neither shown nor excluded{more}")
        }
    }
}

/// The ratio that decides, with its limits.
fn ratio(error: &DecidedError) -> String {
    let (name, interval) = (error.quantity.name(), error.interval());
    let tolerated = error.tolerated().unwrap_or_default();
    format!("{name} within {interval}, tolerated {tolerated}")
}

/// What is known of dependence between events, if there is any.
fn dependence(e: &Evaluation) -> String {
    let mut said = clusters(e);
    if let (None, Some((factor, _))) = (e.clusters, e.overdispersion.and_then(|d| d.gated())) {
        said += &format!("; outcomes vary {factor:.1} times as independent ones would");
    }
    said + &repeats(e)
}

/// Says that scores repeat as if records had come twice.
fn repeats(e: &Evaluation) -> String {
    // If all outcomes are equal, those of repeated scores agree in any case.
    let varied = e.positives > 0 && e.positives < e.n;
    let suspicious = e.repeated.filter(|r| varied && r.is_suspicious());
    suspicious.map_or(String::new(), |r| {
        format!(
            "; {:.1} % of scores between 0 and 1 repeat exactly: records delivered, or cases scored, \
             twice, or single scores that are off?",
            100.0 * r.share
        )
    })
}

/// Says that clusters are taken into account, if events have them.
fn clusters(e: &Evaluation) -> String {
    e.clusters.map_or(String::new(), |c| {
        let of = match c.by_score {
            true => "scores, events of one score as a cluster",
            false => "clusters",
        };
        format!(
            "; shown over {} groups of {of}, whose outcomes vary {:.1} times as independent ones would",
            c.buckets, c.factor
        )
    })
}

fn shown_of_vectors(verdict: Verdict, numbers: &Numbers) -> String {
    match verdict {
        Verdict::Calibrated => format!("error within {:.4}", numbers.upper()),
        Verdict::Miscalibrated => format!("error above {:.4}", numbers.lower()),
        Verdict::Undecided(Undecided::FewOutcomes) if numbers.reject() => {
            "the error is significant; with so few outcomes its size is not known".to_owned()
        }
        Verdict::Undecided(_) if numbers.reject() => {
            "the error is significant, but not shown to exceed the tolerance".to_owned()
        }
        Verdict::Undecided(Undecided::FewOutcomes) => {
            numbers.cells().map_or(String::new(), few_outcomes)
        }
        Verdict::Undecided(_) => {
            "an error above the tolerance is neither shown nor excluded".to_owned()
        }
    }
}

/// Says that a vector view has few outcomes to learn from.
fn few_outcomes(e: &multiclass::Evaluation) -> String {
    let rare = e.information;
    let of_equal_weight = e.weights.map_or("", |_| " of equal weight");
    let gross = if e.tcal.bounded {
        "; only gross errors are found"
    } else {
        ""
    };
    format!("only {rare:.1} outcomes{of_equal_weight} other than the likeliest are expected{gross}")
}

/// Two digits of a large number.
fn rounded(x: f64) -> String {
    let unit = 10f64.powf(x.max(1.0).log10().floor() - 1.0).max(1.0);
    format!("{:.0}", (x / unit).round() * unit)
}

fn score_numbers(e: &Evaluation) -> String {
    format!(
        "mean score {:.4}, event rate {:.4}, l2-ECE {:.4} ({:.0} % interval {:.4} to {:.4}{} at {} cells), p {}, n = {}",
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
        e.interval.cells,
        known(e.deciding_p_value(), e.bounded),
        e.n
    )
}

fn known(p: Option<f64>, bounded: bool) -> String {
    let sign = if bounded && p.is_some() { '≤' } else { '=' };
    format!("{sign} {}", p.map_or("undefined".to_owned(), p_value))
}

fn vector_numbers(e: &multiclass::Evaluation) -> String {
    let i = &e.interval;
    format!(
        "l2-ECE {:.4} ({:.0} % interval {:.4} to {:.4}{}) over {} coordinates, p {}, n = {}",
        i.estimate_squared.max(0.0).sqrt(),
        100.0 * i.confidence,
        i.lower,
        i.upper,
        if i.contains_zero { " with 0" } else { "" },
        e.dimension,
        known(Some(e.tcal.p_value), e.tcal.bounded),
        e.n
    )
}

fn kernel_numbers(e: &WindowEvaluation) -> String {
    let p = e.p_value.map_or("undefined".to_owned(), p_value);
    let events = match e.by_features {
        true => format!("n = {}", e.n),
        false => format!("{} of n = {}", e.sample.n, e.n),
    };
    format!(
        "KCE {:.4} ({:.4} to {:.4}) over {} classes, p = {p}, {events}",
        e.kce, e.lower, e.upper, e.classes
    )
}

/// A p-value for people: four digits, a power of ten if it is small, and a bound if it is below all
/// that matters, because no p-value is 0.
pub fn p_value(p: f64) -> String {
    match p {
        p if p >= 0.001 => format!("{p:.4}"),
        p if p >= 1e-99 => format!("{p:.1e}"),
        p if p >= 0.0 => "<1e-99".to_owned(),
        _ => "undefined".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::evaluation::{Options, evaluate_scores, evaluate_weighted};

    #[test]
    fn a_p_value_reads_alike_at_every_size() {
        for (p, said) in [
            (1.0, "1.0000"),
            (0.0498, "0.0498"),
            (1.23e-5, "1.2e-5"),
            (1e-120, "<1e-99"),
            (0.0, "<1e-99"),
        ] {
            assert_eq!(p_value(p), said);
        }
    }

    /// Four of 4000 outcomes are expected: few, whatever the weights.
    #[test]
    fn a_p_value_that_is_a_bound_says_so_where_outcomes_are_few() {
        // Of one weight, p-values would be drawn.
        let weight = |i: i32| if i % 2 == 0 { 2.0 } else { 2.5 };
        let all: Vec<_> = (0..4000)
            .map(|i| (0.001, i % 1000 == 0, weight(i)))
            .collect();
        let e = evaluate_weighted(&all, &Options::default()).unwrap();
        assert!(score_numbers(&e).contains(", p ≤ "));
        // .001·(Σw)²/Σw² = .001 · 9000²/20,500 is 3.95.
        assert!(shown_of_scores(&e).starts_with("only 4.0 positives"));
        let all: Vec<_> = all.iter().map(|&(z, y, _)| (z, y)).collect();
        let e = evaluate_scores(&all, &Options::default()).unwrap();
        assert!(score_numbers(&e).contains(", p = "));
    }

    /// Scores of 0.5 to 1.5 %, whose outcomes happen a given number of times as often.
    #[test]
    fn of_rare_events_the_ratio_is_said_that_decided() {
        let said = |n: u32, times: f64| {
            let mut due = 0.5;
            let event = |i: u32| {
                let z = 0.005 + 0.01 * f64::from(i) / f64::from(n);
                due += times * z;
                let happens = due >= 1.0;
                due -= f64::from(u8::from(happens));
                (z, happens)
            };
            let sample: Vec<(f64, bool)> = (0..n).map(event).collect();
            shown_of_scores(&evaluate_scores(&sample, &Options::default()).unwrap())
        };
        let low =
            "scores are too low; observed/expected within [1.93, 2.07], tolerated 0.83 to 1.20; ";
        let high =
            "scores are too high; observed/expected within [0.46, 0.54], tolerated 0.83 to 1.20; ";
        let near = "the error is significant (scores are too low), but not shown to exceed the \
                    tolerance: observed/expected within [1.14, 1.26], tolerated 0.83 to 1.20";
        let good = "observed/expected within [0.84, 1.18], tolerated 0.83 to 1.20; shape not shown";
        for (n, times, begin) in [
            (100_000, 2.0, low),
            (100_000, 0.5, high),
            (100_000, 1.2, near),
            (10_000, 1.0, good),
        ] {
            let said = said(n, times);
            assert!(said.starts_with(begin), "{said}");
        }
    }

    #[test]
    fn what_decides_nothing_is_left_out() {
        let sample: Vec<(f64, bool)> = (0..4_000)
            .map(|i| (0.01 + f64::from(i % 1_000) * 1.37e-5, i % 97 == 0))
            .collect();
        let mut e = evaluate_scores(&sample, &Options::default()).unwrap();
        e.tolerance.more_events = Some(1_234.0);
        assert!(shown_of_scores(&e).contains("about 1200 more events"));
        e.tolerance.more_events = Some(0.3);
        assert!(!shown_of_scores(&e).contains("more events"));
        // Each score comes four times.
        let agree = |y: fn(usize) -> bool| {
            let events = sample.iter().enumerate();
            let all: Vec<(f64, bool)> = events.map(|(i, &(z, _))| (z, y(i % 1_000))).collect();
            shown_of_scores(&evaluate_scores(&all, &Options::default()).unwrap())
        };
        assert!(agree(|i| i % 50 == 0).contains("repeat exactly"));
        assert!(!agree(|_| false).contains("repeat exactly"));
    }
}
