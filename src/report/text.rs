//! An evaluation as text for people: the verdict, the size and place of the error, and the
//! certainty.
//!
//! The verdict comes first in one line, then the numbers with their intervals, then the levels of
//! the test, and last a reliability diagram: `─` spans where the event rate falls if the scores are
//! true, `●` is the rate, and a rate outside its span is marked.

use std::fmt::Write;

pub use crate::judge::sentence::p_value as p;
use crate::judge::shown_of_scores;
use crate::stats::evaluation::{Conclusion, DecideBy, Ends, Evaluation, ReliabilityCell};

/// Width of the diagram's axis from 0 to 1, in characters.
const AXIS: usize = 50;

/// The whole report, ending in a newline.
pub fn render(e: &Evaluation) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = verdict(&mut out, e);
    let _ = numbers(&mut out, e);
    let _ = levels(&mut out, e);
    let _ = diagram(&mut out, &e.reliability);
    out
}

fn verdict(out: &mut String, e: &Evaluation) -> std::fmt::Result {
    let alpha = e.tcal_options.alpha;
    let not = if e.reject { "" } else { "not " };
    match e.deciding_p_value() {
        Some(x) if e.bounded => writeln!(
            out,
            "calibration {not}rejected at α = {alpha}, p at most {} (a bound for any weights)",
            p(x)
        )?,
        Some(x) => writeln!(
            out,
            "calibration {not}rejected at α = {alpha}, p = {}",
            p(x)
        )?,
        None => writeln!(
            out,
            "calibration not tested: {}",
            match e.tolerance.conclusion {
                Conclusion::FewClusters => "there are too few clusters",
                _ if e.decided_by == DecideBy::Combined => {
                    "no part of the combined test can be computed"
                }
                _ => "no level of T-Cal has enough outcomes",
            }
        )?,
    }
    let conclusion = match e.tolerance.conclusion {
        Conclusion::Miscalibrated => "miscalibrated",
        Conclusion::Calibrated => "calibrated",
        Conclusion::FewOutcomes | Conclusion::FewClusters | Conclusion::Inconclusive => "undecided",
    };
    writeln!(out, "{conclusion}: {}", shown_of_scores(e))?;
    if e.decided_by != DecideBy::Combined && e.tcal.borderline {
        writeln!(
            out,
            "borderline: the decision hangs by less than the noise of redrawing"
        )?;
    }
    if let Some(d) = e.detectable_ece_l2 {
        writeln!(
            out,
            "a change of all odds with an l2-ECE of {d:.4} would have been found with 80 % power"
        )?;
    }
    writeln!(out)
}

fn numbers(out: &mut String, e: &Evaluation) -> std::fmt::Result {
    let mut row = |name: &str, value: String| writeln!(out, "{name:<22}{value}");
    row("events", format!("{} ({} positive)", e.n, e.positives))?;
    row(
        "mean score, rate",
        format!("{:.5}, {:.5}", e.mean_score, e.event_rate),
    )?;
    if let Some(w) = &e.weights {
        let text = format!(
            "sum {:.1}, effective number of events {:.1}; no exact binomial test, no Clopper–Pearson bars",
            w.sum, w.effective
        );
        row("weights", text)?;
    }
    if let Some(c) = &e.clusters {
        let text = format!(
            "{} groups{} ({:.1} effective), outcomes vary {:.2} times as independent ones would, {} sign flips",
            c.buckets,
            if c.by_score { " of whole scores" } else { "" },
            c.effective,
            c.factor,
            c.patterns
        );
        row("clusters", text)?;
    }
    if let Some(s) = &e.sampled {
        let text = format!(
            "negatives kept {}, trained on {}: odds × {}, all on the scale of these events",
            s.sampling.kept(),
            s.sampling.trained(),
            s.sampling.factor()
        );
        row("sampling", text)?;
        let text = format!("{:.5} before negatives were left out", s.whole_event_rate);
        row("event rate", text)?;
    }
    let parts = e.combined.parts.iter();
    let parts: Vec<String> = parts
        .map(|x| format!("{} {}", x.part.as_str(), p(x.p_value)))
        .collect();
    let drawn = (e.combined.replicates).map_or(String::new(), |r| format!(", {r} draws"));
    let parts = match &parts[..] {
        [] => String::new(),
        parts => format!(" ({}{drawn})", parts.join(", ")),
    };
    let sign = if e.bounded { '≤' } else { '=' };
    let text = format!("p {sign} {}{parts}", known(e.combined.tested()));
    row("combined test", text)?;
    row(
        "T-Cal",
        format!(
            "p = {} over {} levels",
            known(e.tcal.tested()),
            e.tcal.scales
        ),
    )?;
    if let Some(d) = &e.discrete {
        let text = format!(
            "p = {} over {} distinct scores, least at {}",
            p(d.p_value),
            d.distinct,
            d.worst_score
        );
        row("exact binomial", text)?;
    }
    row("ℓ2-ECE", interval(e))?;
    if e.interval.median_count < 5.0 {
        let text = format!(
            "median of {} events a cell: too few for the interval; use fewer cells",
            e.interval.median_count
        );
        row("", text)?;
    }
    row("tolerance", format!("{:.5}", e.tolerance.tolerance))?;
    if let Some(r) = &e.tolerance.ratio {
        let text = format!(
            "{:.3} ({:.3} to {:.3}; tolerated {:.3} to {:.3})",
            r.estimate(),
            r.lower,
            r.upper,
            1.0 / r.most,
            r.most
        );
        row("observed/expected", text)?;
    }
    let worst = e.mce.map_or(String::new(), |m| {
        format!(", largest {:.5} in a cell of {}", m.value, m.n)
    });
    let name = format!("ℓ1-ECE, {} cells", e.ece_l1_cells);
    row(&name, format!("{:.5}{worst}", e.ece_l1))?;
    row("mean residual", large(e))?;
    let b = &e.brier;
    row(
        "Brier score",
        format!(
            "{:.5} (reliability {:.5}, resolution {:.5}, uncertainty {:.5})",
            b.score, b.reliability, b.resolution, b.uncertainty
        ),
    )?;
    row("log loss", format!("{:.5}", e.log_loss))?;
    if let Some(s) = e.spiegelhalter {
        row(
            "Spiegelhalter",
            format!("z = {:.3}, p = {}", s.z, known(s.p_value)),
        )?;
    }
    if let Some(c) = e.cox {
        let fit = c.fit.map_or(String::new(), |f| {
            format!("; intercept {:.3}, slope {:.3}", f.intercept, f.slope)
        });
        let text = format!("χ² = {:.3}, p = {}{fit}", c.score, known(c.p_value));
        row("Cox", text)?;
    }
    for (name, path) in [("Kolmogorov–Smirnov", &e.ks), ("Kuiper", &e.kuiper)] {
        let tail = path
            .p_value
            .map_or(String::new(), |x| format!(", p = {}", p(x)));
        row(name, format!("{:.5}{tail}", path.statistic))?;
    }
    Ok(())
}

/// A p-value, or a dash if it is unknown.
pub fn known(x: Option<f64>) -> String {
    x.map_or("–".to_owned(), p)
}

fn interval(e: &Evaluation) -> String {
    let i = &e.interval;
    let span = span(i.lower, i.upper, i.contains_zero);
    let ends = match i.ends {
        Ends::Normal => "",
        Ends::Exact => ", exact ends",
    };
    format!(
        "{:.5}, {} % interval {span}, at a resolution of {} cells{ends}",
        i.estimate_squared.max(0.0).sqrt(),
        100.0 * i.confidence,
        i.cells
    )
}

/// The set that an interval covers: its ends, and 0 if it belongs to it.
pub fn span(lower: f64, upper: f64, contains_zero: bool) -> String {
    // An end that is printed as 0 is 0 to a reader.
    let at_zero = lower < 5e-6;
    match contains_zero {
        true if at_zero => format!("from 0 to {upper:.5}"),
        true => format!("from {lower:.5} to {upper:.5}, and 0"),
        false if at_zero => format!("above 0, to {upper:.5}"),
        false => format!("from {lower:.5} to {upper:.5}"),
    }
}

fn large(e: &Evaluation) -> String {
    let l = &e.in_the_large;
    match (l.z, l.p_value) {
        (Some(z), x) => format!("{:+.5}, z = {z:.3}, p = {}", l.mean_residual, known(x)),
        _ => format!("{:+.5}", l.mean_residual),
    }
}

fn levels(out: &mut String, e: &Evaluation) -> std::fmt::Result {
    writeln!(
        out,
        "\n{:>9} {:>12} {:>12} {:>12}",
        "cells", "debiased", "null sd", "p"
    )?;
    for l in &e.tcal.levels {
        let mark = if l.reject { "  rejects" } else { "" };
        writeln!(
            out,
            "{:>9} {:>12.3e} {:>12.3e} {:>12}{mark}",
            l.cells,
            l.debiased,
            l.null_sd,
            known((!l.left_out).then_some(l.p_value))
        )?;
    }
    Ok(())
}

fn diagram(out: &mut String, cells: &[ReliabilityCell]) -> std::fmt::Result {
    let pad = AXIS - 1;
    writeln!(
        out,
        "\n{:>16} {:>9} {:>8} {:>8}  0{:>pad$}",
        "scores", "events", "score", "rate", 1
    )?;
    for c in cells {
        let outside = c.event_rate < c.null_low || c.event_rate > c.null_high;
        writeln!(
            out,
            "{:>16} {:>9} {:>8} {:>8}  {}{}",
            format!("{}–{}", short(c.low), short(c.high)),
            c.n,
            short(c.mean_score),
            short(c.event_rate),
            bar(c),
            if outside { " !" } else { "" }
        )?;
    }
    writeln!(
        out,
        "\n─ where the rate falls if the scores are true (95 %), ● the rate, ! outside"
    )
}

/// Formats with four decimals, or two significant digits for small numbers.
fn short(x: f64) -> String {
    match x > 0.0 && x < 0.001 {
        true => format!("{x:.1e}"),
        false => format!("{x:.4}"),
    }
}

fn bar(c: &ReliabilityCell) -> String {
    let at = |x: f64| ((x * AXIS as f64) as usize).min(AXIS - 1);
    let (low, high, rate) = (at(c.null_low), at(c.null_high), at(c.event_rate));
    let mark = |i: usize| match i {
        i if i == rate => '●',
        i if (low..=high).contains(&i) => '─',
        _ => ' ',
    };
    (0..AXIS).map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::attribute::Attribute;
    use crate::stats::axis::{Axis, Grid};
    use crate::stats::clusters::Bucket;
    use crate::stats::evaluation::{Options, evaluate, evaluate_scores, evaluate_weighted};
    use crate::stats::fixed::Score;
    use crate::stats::sums::Sums;

    #[test]
    fn an_interval_says_once_whether_0_belongs_to_it() {
        assert_eq!(span(1e-7, 0.055_34, true), "from 0 to 0.05534");
        assert_eq!(span(0.0, 0.055_34, true), "from 0 to 0.05534");
        assert_eq!(span(0.0, 0.055_34, false), "above 0, to 0.05534");
        assert_eq!(span(0.01, 0.02, true), "from 0.01000 to 0.02000, and 0");
        assert_eq!(span(0.01, 0.02, false), "from 0.01000 to 0.02000");
    }

    #[test]
    fn what_has_no_law_has_no_p_value() {
        // Ten of 4000 weights are 500. Outcomes occur with probability 1 − z, or about as the
        // scores say.
        let judged = |happens: fn(u32) -> bool| {
            let event = |i: u32| {
                let weight = if i.is_multiple_of(400) { 500.0 } else { 1.0 };
                ((f64::from(i) + 0.5) / 4000.0, happens(i), weight)
            };
            let sample: Vec<(f64, bool, f64)> = (0..4000).map(event).collect();
            evaluate_weighted(&sample, &Options::default()).unwrap()
        };
        let e = judged(|i| i < 2000);
        let text = render(&e);
        assert!(e.bounded && e.reject);
        assert!(text.starts_with("calibration rejected") && text.contains("p at most"));
        assert!(text.contains("p = – over"), "{text}");
        let json = crate::report::evaluation::json(&e);
        for of in ["tcal", "spiegelhalter", "cox", "in_the_large", "ks"] {
            assert!(json[of]["p_value"].is_null(), "{of}: {json}");
        }
        assert!(json["weights"]["bounded"] == true && json["p_value"].is_number());
        let e = judged(|i| i * 1777 % 4000 < i);
        let text = render(&e);
        assert!(e.bounded && !e.reject);
        assert!(text.contains("p at most 1.0000 (a bound for"), "{text}");
        assert!(text.contains("p ≤ 1.0000 (smooth"), "{text}");
        assert!(text.contains("undecided: few large weights have most of the information;"));
        assert!(
            !text.contains("80 % power") && !text.contains("more events"),
            "{text}"
        );
    }

    #[test]
    fn too_few_clusters_test_nothing() {
        let mut sums = Sums::new(Grid::new(Axis::Linear, 8).clustered());
        for i in 0..400 {
            let z = 0.4 + 0.5 * f64::from(i) / 400.0;
            let cluster = Attribute::Cluster(Bucket::from_index(i % 5).unwrap());
            let taken = sums.observe_with(Score::new(z).unwrap(), i % 4 == 0, cluster);
            assert!(taken.is_ok());
        }
        let text = render(&evaluate(&sums, &Options::default()).unwrap());
        assert!(
            text.starts_with("calibration not tested: there are too few clusters\nundecided: "),
            "{text}"
        );
        assert!(text.contains("combined test         p = –\n"), "{text}");
        assert!(text.contains("\nℓ1-ECE, 16 cells"), "{text}");
        assert!(!text.contains("80 % power") && !text.contains("rejects"));
    }

    #[test]
    fn the_table_says_the_verdict_first_and_marks_what_lies_outside() {
        let sample: Vec<(f64, bool)> = (0..2000)
            .map(|i| (0.1 + 0.4 * f64::from(i % 500) / 500.0, i % 3 == 0))
            .collect();
        let text = evaluate_scores(&sample, &Options::default()).map(|e| render(&e));
        let text = text.unwrap_or_default();
        assert!(text.starts_with("calibration rejected"), "{text}");
        assert!(text.contains(" !\n") && text.contains("rejects"), "{text}");
        assert!(text.contains("\nℓ1-ECE, 15 cells"), "{text}");
    }
}
