//! One window as HTML: its verdict in words, its diagram, its numbers and its past. The page of a
//! stream and the report of a replay share it.

use std::fmt::{Display, Write};

use super::diagram::{history, reliability};
use super::html::{capital, escape, number, range, significance, thousands};
use super::legend;
use super::moment::clock;
use crate::alert::AlertState;
use crate::judge::{
    Coverage, DecidedError, HistoryPoint, Numbers, Recalibration, Undecided, Verdict, WindowReport,
    shown,
};
use crate::stats::evaluation::Evaluation;
use crate::stats::kernel::window::WindowEvaluation;
use crate::stats::multiclass;
use crate::stats::recalibration::Map;

/// The past of a window.
#[derive(Clone, Copy)]
pub struct Past<'a> {
    /// Its earlier points.
    pub points: &'a [HistoryPoint],
    /// When alerts of its stream began.
    pub alerts_ms: &'a [i64],
}

/// One window: `head` begins its heading, `id` is its anchor, `due_ms` is when the oldest outcomes
/// of its stream are due, and `more` is the HTML after its numbers.
pub fn section(
    head: &str,
    id: &str,
    window: &WindowReport,
    due_ms: Option<i64>,
    past: Past<'_>,
    more: &str,
    body: &mut String,
) {
    let _ = write!(
        body,
        "<section id=\"{id}\"><h2>{head} {}</h2><p class=when>{} · n = {}{}{}</p>",
        badge(window),
        bounds(window),
        thousands(window.n),
        alert(window),
        coverage(window.coverage.as_deref())
    );
    match window.evaluated() {
        Some(numbers @ Numbers::Scores(e)) => {
            let _ = write!(
                body,
                "<p class=words>{}{}</p>",
                escape(&capital(&shown(window.verdict, numbers))),
                events_left(window, e)
            );
            let advised = window
                .recalibration
                .as_deref()
                .and_then(Recalibration::advised);
            drawn(e, advised.map(|(map, _)| map), body);
        }
        Some(numbers @ Numbers::Cells(e)) => {
            let words = vector_sentence(&shown(window.verdict, numbers), e);
            let _ = write!(body, "<p class=words>{words}</p>");
            vector_figures(e, body);
            legend::cells(e, body);
        }
        Some(numbers @ Numbers::Kernel(e)) => {
            let words = kernel_sentence(&shown(window.verdict, numbers), e);
            let _ = write!(body, "<p class=words>{words}</p>");
            kernel_figures(e, body);
            legend::kernel(e, body);
        }
        None => {
            let words = undecided_sentence(window, due_ms);
            let _ = write!(body, "<p class=words>{words}</p>");
        }
    }
    body.push_str(more);
    if let Some(f) = &window.family {
        let _ = write!(
            body,
            "<p>Among {} classes tested together: p {} of this class, {} of all being calibrated (Holm).</p>",
            f.classes,
            significance(f.adjusted_p_value),
            significance(f.p_value)
        );
    }
    over_time(window, past, body);
    body.push_str("</section>");
}

/// Appends the reliability diagram with the advised map, beside the numbers.
pub fn drawn(e: &Evaluation, map: Option<&Map>, body: &mut String) {
    body.push_str("<div class=pair><figure>");
    body.push_str(&reliability::svg(e, map));
    legend::reliability(e, map.is_some(), body);
    body.push_str("</figure>");
    figures(e, body);
    body.push_str("</div>");
}

fn over_time(window: &WindowReport, past: Past<'_>, body: &mut String) {
    let decided = window.evaluated().map(DecidedError::of);
    let Some(drawn) = history::html(past.points, past.alerts_ms, decided.as_ref()) else {
        return;
    };
    let _ = write!(body, "<figure><h3>Over time</h3>{drawn}");
    legend::history(&history::shares(past.points), decided.as_ref(), body);
    body.push_str("</figure>");
}

/// Start and end of a window; a window that was never judged has none.
fn bounds(window: &WindowReport) -> String {
    if window.end_ms == 0 {
        return "not judged yet".to_owned();
    }
    let (start, end) = (clock(window.start_ms), clock(window.end_ms));
    format!("{start} to {end} UTC{}", data_since(window))
}

/// How many predictions have an outcome, if known.
fn coverage(coverage: Option<&Coverage>) -> String {
    coverage.map_or(String::new(), |c| {
        format!(
            " · outcomes of {:.1} % of {} predictions",
            100.0 * c.share(),
            thousands(c.predictions)
        )
    })
}

/// Start of the data, if it is later than the start of the window.
fn data_since(window: &WindowReport) -> String {
    if window.n > 0 && window.since_ms > window.start_ms {
        format!(", data since {}", clock(window.since_ms))
    } else {
        String::new()
    }
}

/// A note with the number of events behind the figures, if it differs from the judged one: after a
/// restart the figures include events that came late since.
fn events_left(window: &WindowReport, e: &Evaluation) -> String {
    if e.n == window.n {
        return String::new();
    }
    let n = thousands(e.n);
    format!(" Restarted since: until the next slide the figures cover the {n} events held now.")
}

/// Appends the numbers of an evaluation as a table of two columns.
fn figures(e: &Evaluation, body: &mut String) {
    let (i, percent) = (&e.interval, e.interval.confidence * 100.0);
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut row = |name: &str, value: String| rows.push((name.to_owned(), value));
    if let Some(r) = &e.tolerance.ratio {
        row("observed/expected", format!("{:.2}", r.estimate()));
        let interval = format!("{:.2} to {:.2}", r.lower, r.upper);
        row(&format!("its {percent:.0} % interval"), interval);
        let tolerated = format!("{:.2} to {:.2}", 1.0 / r.most, r.most);
        row("observed/expected tolerated", tolerated);
    }
    let error = i.estimate_squared.max(0.0).sqrt();
    row("ECE ℓ2, debiased", number(error));
    let its = format!("its {percent:.0} % interval, {} cells", i.cells);
    row(&its, range(i.lower, i.upper));
    let detectable = e.detectable_ece_l2.map_or("–".into(), number);
    row("ECE ℓ2 of a detectable change of odds", detectable);
    row("ECE ℓ2 tolerated", number(e.tolerance.tolerance));
    let its = format!("ECE ℓ1, plug-in, {} cells", e.ece_l1_cells);
    row(&its, number(e.ece_l1));
    let decides = known(e.deciding_p_value(), e.bounded);
    row("p-value of the decision", decides);
    row("T-Cal p-value", known(e.tcal.tested(), false));
    for part in &e.combined.parts {
        let name = format!("{} part p-value", part.part.as_str());
        row(&name, significance(part.p_value));
    }
    if let Some(d) = &e.discrete {
        row("exact discrete test p-value", significance(d.p_value));
    }
    row("event rate", number(e.event_rate));
    row("mean score", number(e.mean_score));
    row("mean residual", number(e.in_the_large.mean_residual));
    row("Brier score", number(e.brier.score));
    row("log loss", number(e.log_loss));
    table(&rows, body);
}

/// Formats a p-value, an upper bound of one, or a dash if nothing was tested.
pub fn known(p: Option<f64>, bounded: bool) -> String {
    match p.map(significance) {
        Some(p) if bounded => format!("at most {p}"),
        p => p.unwrap_or("–".to_owned()),
    }
}

/// Appends the numbers of a vector view as a table.
pub fn vector_figures(e: &multiclass::Evaluation, body: &mut String) {
    let i = &e.interval;
    let error = i.estimate_squared.max(0.0).sqrt();
    let size = format!("{}, {}", e.classes, e.dimension);
    let rows = [
        ("ECE ℓ2, debiased", number(error)),
        ("its interval", range(i.lower, i.upper)),
        ("ECE ℓ1 in total variation", number(e.ece_l1)),
        ("T-Cal p-value", known(Some(e.tcal.p_value), e.tcal.bounded)),
        ("classes, coordinates", size),
    ];
    table(&rows, body);
}

/// Appends the numbers of a kernel view as a table.
fn kernel_figures(e: &WindowEvaluation, body: &mut String) {
    let p = e.p_value.map_or("undefined".to_owned(), significance);
    let rows = [
        ("kernel calibration error", number(e.kce)),
        ("its interval", range(e.lower, e.upper)),
        ("p-value of the decision", p),
        ("classes", thousands(e.classes as u64)),
        ("events in the sample", thousands(e.sample.n as u64)),
    ];
    table(&rows, body);
}

fn table(rows: &[(impl Display, String)], body: &mut String) {
    body.push_str("<table class=figures><tbody>");
    for (name, value) in rows {
        let _ = write!(body, "<tr><td>{name}<td class=num>{value}");
    }
    body.push_str("</table>");
}

/// The state of the window's alert, if it raises one; the stream's alert is shown above.
fn alert(window: &WindowReport) -> String {
    let class = match window.alert {
        AlertState::Firing => "bad",
        AlertState::Pending => "wait",
        AlertState::Inactive | AlertState::Resolved => return String::new(),
    };
    format!(
        " · alert <span class=\"{class}\">{}</span>",
        window.alert.as_str()
    )
}

/// The coloured verdict. A significant error within the tolerance is not green.
pub fn badge(window: &WindowReport) -> String {
    let (verdict, reason) = match window.verdict {
        Verdict::Undecided(why) => ("undecided", format!(": {}", why.as_str().replace('_', " "))),
        decided => (decided.as_str(), String::new()),
    };
    let within = match is_within(window) {
        true => ": within tolerance",
        false => "",
    };
    let class = verdict_class(window);
    format!("<span class=\"badge {class}\">{verdict}{reason}{within}</span>")
}

/// The CSS class of a verdict.
pub fn verdict_class(window: &WindowReport) -> &'static str {
    match window.verdict {
        Verdict::Calibrated if is_within(window) => "soft",
        Verdict::Calibrated => "good",
        Verdict::Miscalibrated => "bad",
        Verdict::Undecided(_) => "wait",
    }
}

/// Whether a significant error was found that is shown to be tolerable.
fn is_within(window: &WindowReport) -> bool {
    let rejected = window.evaluated().is_some_and(Numbers::reject);
    window.verdict == Verdict::Calibrated && rejected
}

/// The verdict of a vector view in words.
fn vector_sentence(shown: &str, e: &multiclass::Evaluation) -> String {
    format!(
        "{}: ℓ2-ECE over {} coordinates, p {}.",
        escape(&capital(shown)),
        e.dimension,
        known(Some(e.tcal.p_value), e.tcal.bounded)
    )
}

/// The verdict of a kernel view in words.
fn kernel_sentence(shown: &str, e: &WindowEvaluation) -> String {
    let by = match &e.features {
        Some(f) if e.by_features => format!("by {} random features of all events", f.count),
        _ => format!(
            "by {} of {} events",
            thousands(e.sample.n as u64),
            thousands(e.n)
        ),
    };
    let p = e.p_value.map_or("undefined".to_owned(), significance);
    format!(
        "{}: kernel calibration error, p {p}, {by}.",
        escape(&capital(shown))
    )
}

fn undecided_sentence(window: &WindowReport, due_ms: Option<i64>) -> String {
    let Verdict::Undecided(why) = window.verdict else {
        return "No verdict.".to_owned();
    };
    let words = match why {
        Undecided::TooFew if window.end_ms == 0 => "No window of this length has ended yet.",
        Undecided::TooFew => {
            "Too few events for a verdict: fewer than <code>min_events</code> of [model.test]."
        }
        Undecided::FewOutcomes => "Too few positives, or negatives, for a verdict.",
        Undecided::FewClusters => "Too few clusters for a verdict.",
        Undecided::Immature => {
            let due = due_ms.map_or(String::new(), |ms| {
                format!(", at {} UTC of event time", clock(ms))
            });
            return format!(
                "Outcomes are still expected; there is no verdict before they are due{due}."
            );
        }
        Undecided::Coverage => {
            "Too many predictions have no outcome: those that have one may not stand for the others."
        }
        Undecided::Stale => "No new data; the last values were withdrawn.",
        Undecided::Stalled => {
            "A partition holds the watermark back; the last values were withdrawn."
        }
        Undecided::Late => "Too many events arrived late to judge this window.",
        Undecided::Capacity => "A limit was reached; not all events of this window were kept.",
        Undecided::Inconclusive => "An error above the tolerance is neither shown nor excluded.",
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_whose_outcomes_are_expected_says_when_they_are_due() {
        let mut window = WindowReport::blank("5m");
        window.verdict = Verdict::Undecided(Undecided::Immature);
        assert_eq!(
            undecided_sentence(&window, Some(1_700_000_000_000)),
            "Outcomes are still expected; there is no verdict before they are due, \
             at 2023-11-14 22:13:20 UTC of event time."
        );
        assert!(undecided_sentence(&window, None).ends_with("before they are due."));
    }
}
