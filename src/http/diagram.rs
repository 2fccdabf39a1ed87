//! The reliability diagram as inline SVG.
//!
//! The horizontal axis is the mean score of a cell, the vertical axis its event rate. The points of
//! a calibrated model lie on the dashed diagonal, up to chance. The grey consistency bar shows the
//! chance: the range of the rate if the scores are calibrated (Bröcker and Smith 2007, "Increasing
//! the reliability of reliability diagrams"). The whisker is the exact interval of the observed
//! rate. A point outside its grey bar is highlighted. Below the square are the events per cell.
//!
//! Both axes run from 0 to the smallest round number above the values of the cells, so that a model
//! of rare events fills the square instead of a corner. Empty cells are not drawn.

use std::fmt::Write;

use crate::stats::evaluation::ReliabilityCell;
use crate::stats::recalibration::Map;

/// Side of the square, and the margin around it, in SVG units.
const SIDE: f64 = 360.0;
const LEFT: f64 = 68.0;
const TOP: f64 = 10.0;
/// Height of the counts below the square, and the gap between them.
const COUNTS: f64 = 56.0;
const GAP: f64 = 44.0;

/// Draws the cells and the recommended recalibration map.
pub fn svg(cells: &[ReliabilityCell], map: Option<&Map>) -> String {
    let cells: Vec<&ReliabilityCell> = cells.iter().filter(|cell| cell.n > 0).collect();
    let range = range(&cells);
    let scale = Scale { range };
    let width = LEFT + SIDE + 16.0;
    let height = TOP + SIDE + GAP + COUNTS + 22.0;
    let mut out = format!(
        "<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=img aria-label=\"reliability diagram\">\
         <clipPath id=square><rect x={LEFT} y={TOP} width={SIDE} height={SIDE} /></clipPath>"
    );
    frame(&scale, &mut out);
    out.push_str("<g clip-path=\"url(#square)\">");
    let most = cells.iter().map(|cell| cell.n).max().unwrap_or(1);
    for cell in &cells {
        bars(cell, &scale, &mut out);
    }
    if let Some(map) = map {
        curve(map, &scale, &mut out);
    }
    for cell in &cells {
        point(cell, most, &scale, &mut out);
    }
    out.push_str("</g>");
    counts(&cells, most, &scale, &mut out);
    out.push_str("</svg>");
    out
}

/// From probabilities to SVG units.
struct Scale {
    range: f64,
}

impl Scale {
    fn x(&self, score: f64) -> f64 {
        LEFT + SIDE * score / self.range
    }
    fn y(&self, rate: f64) -> f64 {
        TOP + SIDE * (1.0 - rate / self.range)
    }
}

/// The smallest of 1, 0.5, 0.2, 0.1, 0.05, ... that holds all scores, and the rates of the cells
/// that matter: of those with a hundredth of the events or more.
fn range(cells: &[&ReliabilityCell]) -> f64 {
    let total: u64 = cells.iter().map(|cell| cell.n).sum();
    let reach = cells
        .iter()
        .filter(|cell| cell.n * 100 >= total)
        .map(|cell| {
            let rate = cell.rate_high.unwrap_or(cell.event_rate);
            cell.mean_score.max(rate).max(cell.null_high)
        })
        .fold(0.0, f64::max);
    let steps = [1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001];
    let fitting = steps.into_iter().rev().find(|&step| step > reach);
    fitting.unwrap_or(1.0)
}

/// Grid, labels and the diagonal.
fn frame(scale: &Scale, out: &mut String) {
    for i in 0..=5 {
        let value = scale.range * f64::from(i) / 5.0;
        let (x, y) = (scale.x(value), scale.y(value));
        let bottom = TOP + SIDE;
        let right = LEFT + SIDE;
        let label = label(value);
        let _ = write!(
            out,
            "<path class=grid fill=none d=\"M{x:.1} {TOP}V{bottom}M{LEFT} {y:.1}H{right}\" />\
             <text x={x:.1} y={:.1} text-anchor=middle>{label}</text>\
             <text x={:.1} y={:.1} text-anchor=end>{label}</text>",
            bottom + 16.0,
            LEFT - 8.0,
            y + 4.0
        );
    }
    let middle = TOP + SIDE / 2.0;
    let _ = write!(
        out,
        "<path class=true fill=none d=\"M{:.1} {:.1}L{:.1} {:.1}\" />\
         <text x={:.1} y={:.1} text-anchor=middle>mean score</text>\
         <text transform=\"translate(12 {middle:.1}) rotate(-90)\" text-anchor=middle>event rate</text>",
        scale.x(0.0),
        scale.y(0.0),
        scale.x(scale.range),
        scale.y(scale.range),
        LEFT + SIDE / 2.0,
        TOP + SIDE + 34.0
    );
}

/// The recalibrated score over the score: the points lie on it if the map is right.
fn curve(map: &Map, scale: &Scale, out: &mut String) {
    const STEPS: u32 = 120;
    out.push_str("<polyline class=map fill=none points=\"");
    for i in 0..=STEPS {
        let z = scale.range * f64::from(i) / f64::from(STEPS);
        let _ = write!(out, "{:.1},{:.1} ", scale.x(z), scale.y(map.rate(z)));
    }
    out.push_str("\"><title>the map that is advised</title></polyline>");
}

/// The consistency bar of a cell and the interval of its rate.
fn bars(cell: &ReliabilityCell, scale: &Scale, out: &mut String) {
    let x = scale.x(cell.mean_score);
    let (top, bottom) = (scale.y(cell.null_high), scale.y(cell.null_low));
    let _ = write!(
        out,
        "<rect class=null x={:.1} y={top:.1} width=10 height={:.1} />",
        x - 5.0,
        (bottom - top).max(1.0),
    );
    if let (Some(low), Some(high)) = (cell.rate_low, cell.rate_high) {
        let _ = write!(
            out,
            "<path class=\"whisker{}\" d=\"M{x:.1} {:.1}V{:.1}\" />",
            if outside(cell) { " off" } else { "" },
            scale.y(low),
            scale.y(high)
        );
    }
}

/// The point of a cell, its area in proportion to the events.
fn point(cell: &ReliabilityCell, most: u64, scale: &Scale, out: &mut String) {
    let radius = 2.0 + 5.0 * (cell.n as f64 / most as f64).sqrt();
    let _ = write!(
        out,
        "<circle class=\"{}\" cx={:.1} cy={:.1} r={radius:.1}><title>scores {} to {}: n {}, mean score {:.4}, event rate {:.4}</title></circle>",
        if outside(cell) { "out" } else { "point" },
        scale.x(cell.mean_score),
        scale.y(cell.event_rate),
        label(cell.low),
        label(cell.high),
        cell.n,
        cell.mean_score,
        cell.event_rate
    );
}

/// Events per cell, on the same scale across.
fn counts(cells: &[&ReliabilityCell], most: u64, scale: &Scale, out: &mut String) {
    let base = TOP + SIDE + GAP + COUNTS;
    for cell in cells {
        let height = COUNTS * cell.n as f64 / most as f64;
        let (low, high) = (scale.x(cell.low), scale.x(cell.high).min(LEFT + SIDE));
        if high <= low {
            continue;
        }
        let _ = write!(
            out,
            "<rect class=count x={:.1} y={:.1} width={:.1} height={height:.1} />",
            low + 0.5,
            base - height,
            (high - low - 1.0).max(0.5)
        );
    }
    let _ = write!(
        out,
        "<path class=grid fill=none d=\"M{LEFT} {base}H{:.1}\" />\
         <text x={:.1} y={:.1} text-anchor=middle>events per cell, at most {most}</text>",
        LEFT + SIDE,
        LEFT + SIDE / 2.0,
        base + 16.0
    );
}

fn outside(cell: &ReliabilityCell) -> bool {
    cell.event_rate < cell.null_low || cell.event_rate > cell.null_high
}

/// A probability with no more digits than it needs.
fn label(value: f64) -> String {
    let rounded = format!("{value:.4}");
    let short = rounded.trim_end_matches('0').trim_end_matches('.');
    if short.is_empty() {
        "0".to_owned()
    } else {
        short.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(low: f64, n: u64, rate: f64) -> ReliabilityCell {
        ReliabilityCell {
            low,
            high: low + 0.0625,
            n,
            mean_score: low + 0.03,
            event_rate: rate,
            rate_low: Some(rate - 0.01),
            rate_high: Some(rate + 0.01),
            null_low: low,
            null_high: low + 0.06,
        }
    }

    #[test]
    fn a_cell_without_events_draws_nothing() {
        let drawn = svg(&[cell(0.5, 0, 0.0)], None);
        assert!(!drawn.contains("<circle"));
        assert!(svg(&[], None).ends_with("</svg>"));
    }

    #[test]
    fn a_rate_outside_its_consistency_bar_is_marked() {
        assert!(svg(&[cell(0.5, 10, 0.9)], None).contains("class=\"out\""));
        assert!(svg(&[cell(0.5, 10, 0.53)], None).contains("class=\"point\""));
    }

    #[test]
    fn rare_events_fill_the_square() {
        let rare = cell(0.0, 1000, 0.02);
        assert_eq!(range(&[&rare]), 0.1);
        assert_eq!(range(&[&rare, &cell(0.9, 1000, 0.9)]), 1.0);
    }
}
