//! Legends below drawings and numbers.

use std::fmt::Write;

use crate::judge::DecidedError;
use crate::stats::axis::Axis;
use crate::stats::evaluation::Evaluation;
use crate::stats::kernel::window::WindowEvaluation;
use crate::stats::multiclass;

/// Appends the legend of a reliability diagram.
pub fn reliability(e: &Evaluation, map: bool, body: &mut String) {
    body.push_str(
        "<figcaption><i class=corp></i>CORP curve: event rate by score \
         <i class=band></i>where it falls in 95 % if the scores are true \
         <i class=null></i>the same of a cell; a red cell is outside. \
         Whiskers: exact 95 % interval of the rate. Area of a point: its events.",
    );
    if map {
        body.push_str(" <i class=map></i>the recalibration map that is advised.");
    }
    if matches!(e.axis, Axis::Logit { .. }) {
        body.push_str(" Both axes are log-odds, as this model's cells are.");
    }
    let factor = e
        .overdispersion
        .and_then(|d| d.gated())
        .map(|(factor, _)| factor);
    if let Some(factor) = e.clusters.map(|c| c.factor).or(factor) {
        let _ = write!(
            body,
            " Outcomes vary {factor:.1} times as independent ones would; bars and band do not take that into account."
        );
    }
    body.push_str("</figcaption>");
}

/// Appends the legend of a history; `shares` are those of the verdicts, in words.
pub fn history(shares: &str, decided: Option<&DecidedError>, body: &mut String) {
    let what = match decided.is_some_and(DecidedError::is_ratio) {
        true => "Observed divided by expected outcomes, which decides here,",
        false => "Estimated error",
    };
    let limit = match decided.and_then(|d| d.most) {
        Some(most) if most > 0.0 => ", and the tolerance (dashed)",
        _ => "",
    };
    let _ = write!(
        body,
        "<figcaption>{what} (line) with its interval (area){limit}, by the end of the window; of older \
         judgements the worst of each step. Ribbon: shares of the verdicts, from its foot miscalibrated (red), undecided \
         (grey) and calibrated (green); {shares}. Vertical lines: an alert began.</figcaption>",
    );
}

/// Appends the legend of a vector view's numbers.
pub fn cells(e: &multiclass::Evaluation, body: &mut String) {
    let _ = write!(
        body,
        "<p class=foot>A vector of {} probabilities is tested as one, over cells of its {} coordinates. A vector \
         has no single score, so there is no diagram, direction, detector or recalibration; the views \
         <code>top_label</code> and <code>class:</code><i>k</i> of this model have them.</p>",
        e.classes, e.dimension
    );
}

/// Appends the legend of a kernel view's numbers.
pub fn kernel(e: &WindowEvaluation, body: &mut String) {
    let _ = write!(
        body,
        "<p class=foot>The kernel calibration error compares the vectors of {} probabilities with the outcomes over \
         pairs of events that resemble each other. Its interval is wide, because it holds without any assumption; \
         a small p with a small lower end means that an error is there and may be harmless. A vector has no single \
         score, so there is no diagram, direction, detector or recalibration.</p>",
        e.classes
    );
}
