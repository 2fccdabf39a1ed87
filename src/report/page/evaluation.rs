//! The page of one sample of scores.

use std::fmt::Write;

use super::{document, measures, recalibration, table};
use crate::judge::{DecidedError, shown_of_scores};
use crate::report::html::{capital, escape, number, range, significance, thousands};
use crate::report::window::drawn;
use crate::stats::discrimination::Discrimination;
use crate::stats::evaluation::{Conclusion, DecideBy, Ends, Evaluation, ReliabilityCell};
use crate::stats::recalibration::{Fits, Judgement, Map};
use crate::stats::view::View;

/// Number of cells that are named as the worst.
const WORST: usize = 5;

/// Maps that were fitted and judged, with a description of the events.
#[derive(Debug)]
pub struct Maps<'a> {
    /// The maps.
    pub fits: &'a Fits,
    /// The gain of each map.
    pub judgement: &'a Judgement,
    /// Whether the scores of the page were already recalibrated.
    pub applied: bool,
    /// The events on which the maps were fitted and judged, in a sentence.
    pub how: &'a str,
}

/// The contents of the page beside the evaluation.
#[derive(Debug)]
pub struct Sample<'a> {
    /// Name of the sample: the name of the file.
    pub name: &'a str,
    /// The view that the scores belong to.
    pub view: View,
    /// How well the scores separate outcomes.
    pub discrimination: Option<&'a Discrimination>,
    /// The maps, or the reason why there are none.
    pub maps: Result<Maps<'a>, &'a str>,
}

/// The whole page.
pub fn page(e: &Evaluation, sample: &Sample<'_>) -> String {
    let mut body = verdict(e, sample);
    let map = sample.maps.as_ref().ok().and_then(advised);
    body.push_str("<section><h2>Reliability</h2>");
    drawn(e, map, &mut body);
    body.push_str("</section>");
    body += &tests(e);
    body += &cells(e);
    body += &match &sample.maps {
        Ok(maps) => recalibration::section(e, maps.fits, maps.judgement, map, maps.how),
        Err(why) => format!(
            "<section><h2>Recalibration</h2><p>{}</p></section>",
            escape(why)
        ),
    };
    body += &measures::section(e, sample.discrimination, sample.view);
    document(sample.name, &body)
}

/// The map to draw: the advised one, if it is not applied already.
fn advised<'a>(maps: &Maps<'a>) -> Option<&'a Map> {
    let method = maps.judgement.advice.method().filter(|_| !maps.applied)?;
    maps.fits.map(method)
}

fn verdict(e: &Evaluation, sample: &Sample<'_>) -> String {
    let (class, word) = match e.tolerance.conclusion {
        Conclusion::Miscalibrated => ("full", "miscalibrated"),
        Conclusion::Calibrated => ("good", "calibrated"),
        Conclusion::FewOutcomes | Conclusion::FewClusters | Conclusion::Inconclusive => {
            ("wait", "undecided")
        }
    };
    let mut out = format!(
        "<h1>Are these probabilities true? <span class=\"badge {class}\">{word}</span></h1>\
         <p class=lead>{} · view {} · {} events, {} positive</p><p class=words>{}.</p>",
        escape(sample.name),
        sample.view,
        thousands(e.n),
        thousands(e.positives),
        escape(&capital(&shown_of_scores(e)))
    );
    let i = &e.interval;
    let _ = write!(
        out,
        "<p>The mean score is {} and {} of the events happened. Calibration is {} at α = {} (p {}). The calibration error \
         (ℓ2-ECE) is {}, with a {:.0} % interval from {}; {} is tolerated.{}</p>",
        number(e.mean_score),
        number(e.event_rate),
        match (e.deciding_p_value(), e.reject) {
            (None, _) => "not tested",
            (_, true) => "rejected",
            (_, false) => "not rejected",
        },
        e.tcal_options.alpha,
        e.deciding_p_value().map_or("–".to_owned(), significance),
        number(i.estimate_squared.max(0.0).sqrt()),
        100.0 * i.confidence,
        range(i.lower, i.upper),
        number(e.tolerance.tolerance),
        match i.ends {
            Ends::Normal => "",
            Ends::Exact => " The ends of the interval are exact, because outcomes are few.",
        }
    );
    let error = DecidedError::of_scores(e);
    if error.is_ratio() {
        let _ = write!(out, "<p>This ratio decides, not the ℓ2-ECE: {error}.</p>");
    }
    if e.bounded && e.deciding_p_value().is_some() {
        out.push_str(
            "<p class=sub>The p-value is an upper bound, which holds for any weights: only gross errors are found.</p>",
        );
    }
    if let Some(d) = e.detectable_ece_l2 {
        let _ = write!(
            out,
            "<p class=sub>With so many events a change of all odds with an l2-ECE of {} is found with 80 % power.</p>",
            number(d)
        );
    }
    if let Some(w) = &e.weights {
        let _ = write!(
            out,
            "<p class=sub>Events are weighted: sum {}, effective number {}.</p>",
            number(w.sum),
            number(w.effective)
        );
    }
    if let Some(s) = &e.sampled {
        let _ = write!(
            out,
            "<p class=sub>Negatives kept {}, trained on {}: all numbers are on the scale of these events; before \
             negatives were left out the event rate is {}.</p>",
            s.sampling.kept(),
            s.sampling.trained(),
            number(s.whole_event_rate)
        );
    }
    out
}

/// The table of all tests with their p-values.
fn tests(e: &Evaluation) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |name: &str, p: Option<f64>, finds: String| {
        let p = p.map_or("–".to_owned(), significance);
        rows.push(vec![name.to_owned(), p, finds]);
    };
    row(
        "combined",
        e.combined.tested(),
        format!("these parts, joined{}", decides(e, DecideBy::Combined)),
    );
    for part in &e.combined.parts {
        row(
            &format!("· {}", part.part.as_str().replace('_', " ")),
            Some(part.p_value),
            part.part.words().to_owned(),
        );
    }
    row(
        "T-Cal",
        e.tcal.tested(),
        format!(
            "an error of any shape, over {} levels of cells{}",
            e.tcal.scales,
            decides(e, DecideBy::Tcal)
        ),
    );
    if let Some(d) = &e.discrete {
        row(
            "exact binomial",
            Some(d.p_value),
            format!("{} distinct scores, least at {}", d.distinct, d.worst_score),
        );
    }
    row(
        "mean residual",
        e.in_the_large.p_value,
        format!(
            "scores too high or too low in all: {:+.5}",
            e.in_the_large.mean_residual
        ),
    );
    row(
        "Cox",
        e.cox.and_then(|c| c.p_value),
        match e.cox.and_then(|c| c.fit) {
            Some(f) => format!(
                "intercept {:.3} and slope {:.3} of the log-odds, 0 and 1 if true",
                f.intercept, f.slope
            ),
            None => "intercept and slope of the log-odds".to_owned(),
        },
    );
    row(
        "Spiegelhalter",
        e.spiegelhalter.and_then(|s| s.p_value),
        "a Brier score that differs from what the scores promise".to_owned(),
    );
    row(
        "Kolmogorov–Smirnov",
        e.ks.p_value,
        format!("cumulative residuals, at most {:.5}", e.ks.statistic),
    );
    row(
        "Kuiper",
        e.kuiper.p_value,
        format!("cumulative residuals, range {:.5}", e.kuiper.statistic),
    );
    let levels: Vec<Vec<String>> = e
        .tcal
        .levels
        .iter()
        .map(|l| {
            vec![
                l.cells.to_string(),
                format!("{:.3e}", l.debiased),
                format!("{:.3e}", l.null_sd),
                (!l.left_out)
                    .then_some(l.p_value)
                    .map_or("–".to_owned(), significance),
                if l.reject { "rejects" } else { "" }.to_owned(),
            ]
        })
        .collect();
    format!(
        "<section><h2>Tests</h2>{}<details><summary>Levels of T-Cal</summary>{}</details></section>",
        table(&["test", "p-value", "what it finds"], &rows),
        table(
            &[
                "cells",
                "squared error, debiased",
                "its spread if true",
                "p-value",
                ""
            ],
            &levels
        )
    )
}

/// A note if this test decides.
fn decides(e: &Evaluation, by: DecideBy) -> &'static str {
    let decides = e.decided_by == by || (by == DecideBy::Tcal && e.decided_by == DecideBy::Paper);
    if decides { "; it decides" } else { "" }
}

/// The worst cells, and the table of all.
fn cells(e: &Evaluation) -> String {
    let mut worst: Vec<&ReliabilityCell> = e.reliability.iter().filter(|c| off(c) > 1.0).collect();
    worst.sort_by(|a, b| off(b).total_cmp(&off(a)));
    let mut out = String::from("<section><h2>Cells</h2>");
    if worst.is_empty() {
        out.push_str("<p>No cell has an event rate outside the range where it falls in 95 % if the scores are true.</p>");
    } else {
        let _ = write!(
            out,
            "<p>{} of {} cells have an event rate outside the range where it falls in 95 % if the scores are true; the \
             worst first:</p><ul class=plain>",
            worst.len(),
            e.reliability.len()
        );
        for c in worst.iter().take(WORST) {
            let _ = write!(
                out,
                "<li>scores {}: {} events with a mean score of {}, of which {} happened",
                range(c.low, c.high),
                thousands(c.n),
                number(c.mean_score),
                number(c.event_rate)
            );
        }
        out.push_str("</ul>");
    }
    let row = |c: &ReliabilityCell| {
        let interval = match (c.rate_low, c.rate_high) {
            (Some(low), Some(high)) => range(low, high),
            _ => "–".to_owned(),
        };
        vec![
            range(c.low, c.high),
            thousands(c.n),
            number(c.mean_score),
            format!(
                "<span class={}>{}</span>",
                if off(c) > 1.0 { "bad" } else { "" },
                number(c.event_rate)
            ),
            interval,
            range(c.null_low, c.null_high),
        ]
    };
    let rows: Vec<_> = e.reliability.iter().map(row).collect();
    out += &table(
        &[
            "scores",
            "events",
            "mean score",
            "event rate",
            "its 95 % interval",
            "where it falls if the scores are true",
        ],
        &rows,
    );
    out + "</section>"
}

/// Distance of the rate from the middle of its bar, in half-lengths of the bar: above 1 it is
/// outside.
fn off(c: &ReliabilityCell) -> f64 {
    let (middle, half) = (
        0.5 * (c.null_low + c.null_high),
        0.5 * (c.null_high - c.null_low),
    );
    match half > 0.0 {
        true => (c.event_rate - middle).abs() / half,
        false if c.event_rate == middle => 0.0,
        false => f64::MAX,
    }
}
