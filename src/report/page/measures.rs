//! AUC, accuracy, log loss and Brier score, because people expect them. None of them alone shows
//! whether scores are true.

use super::table;
use crate::report::html::{number, range};
use crate::stats::discrimination::{Auc, Discrimination, VectorScores};
use crate::stats::evaluation::Evaluation;
use crate::stats::view::View;

/// The table for an evaluation of scores.
pub fn section(e: &Evaluation, d: Option<&Discrimination>, view: View) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |name: &str, value: String, says: &str| {
        rows.push(vec![name.to_owned(), value, says.to_owned()]);
    };
    let top = view == View::TopLabel;
    if let Some(d) = d {
        let says = match top {
            true => "probability that a right answer has a greater score than a wrong one",
            false => {
                "probability that a positive has a greater score than a negative, ties as halves; ½ by chance"
            }
        };
        row("AUC", d.auc.as_ref().map_or("–".to_owned(), area), says);
        match top {
            true => row(
                "accuracy",
                number(e.event_rate),
                "share of events whose likeliest class happened",
            ),
            false => row(
                "accuracy at ½",
                number(d.accuracy),
                &format!(
                    "share of outcomes predicted right at the threshold ½; always the commoner outcome has {}",
                    number(d.commoner)
                ),
            ),
        }
    }
    let b = &e.brier;
    row(
        "log loss",
        number(e.log_loss),
        "mean −ln of the probability that was given to what happened, in nats; 0 is best",
    );
    row(
        "Brier score",
        number(b.score),
        "mean squared difference of score and outcome = reliability − resolution + uncertainty",
    );
    row(
        "· reliability",
        number(b.reliability),
        "what miscalibration costs; 0 is best",
    );
    row(
        "· resolution",
        number(b.resolution),
        "what telling events apart gains; greater is better",
    );
    row(
        "· uncertainty",
        number(b.uncertainty),
        "what always saying the overall rate costs",
    );
    format!(
        "<section><h2>Accuracy, AUC, log loss, Brier score</h2>{}<p class=sub>A model may separate well and still say wrong \
         probabilities, or the reverse: the verdict above rests on none of these. AUC: Hanley and McNeil 1982, its \
         interval (95 %, in log-odds) by the error of DeLong and others 1988, events taken as independent. The parts of the Brier score: Murphy \
         1973, over the cells of the diagram; they add up but for the spread of scores within cells.</p></section>",
        table(&["measure", "value", "what it says"], &rows)
    )
}

/// The table for vectors.
pub fn of_vectors(v: &VectorScores) -> String {
    let row =
        |name: &str, value: f64, says: &str| vec![name.to_owned(), number(value), says.to_owned()];
    let rows = [
        row(
            "accuracy",
            v.accuracy,
            "share of events whose likeliest class happened",
        ),
        row(
            "log loss",
            v.log_loss,
            "mean −ln of the probability of the class that happened, in nats",
        ),
        row(
            "Brier score",
            v.brier,
            "mean squared distance of the vector from what happened, 0 to 2 (Brier 1950)",
        ),
    ];
    format!(
        "<section><h2>Accuracy, log loss, Brier score</h2>{}<p class=sub>The verdict above rests on none of these.</p></section>",
        table(&["measure", "value", "what it says"], &rows)
    )
}

/// Formats an area with its interval, and the uncertainty that cells cause.
pub fn area(a: &Auc) -> String {
    let mut out = number(a.value);
    if let Some((low, high)) = a.interval {
        out += &format!(" <span class=sub>({})</span>", range(low, high));
    }
    if a.unresolved > 0.0 {
        out += &format!(
            " <span class=sub>from cells: that of the scores is within ± {}</span>",
            number(a.unresolved)
        );
    }
    out
}
