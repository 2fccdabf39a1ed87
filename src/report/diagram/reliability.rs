//! The reliability diagram: cells, the CORP curve and the advised map.
//!
//! The horizontal axis is the score, the vertical axis the event rate, both on the axis of the
//! model ([`super::scale`]). For a calibrated model everything lies on the dashed diagonal, up to
//! chance.
//!
//! * The line is the CORP curve, the rising function that fits the outcomes best. The area around
//!   the diagonal is where it falls by chance if the scores are true ([`crate::stats::corp`]).
//! * A point is a cell at its mean score and event rate, with an area proportional to its events.
//!   The grey bar is the range of the rate if the scores are true (Bröcker and Smith 2007,
//!   "Increasing the reliability of reliability diagrams"). The whisker is the exact interval of
//!   the rate. A point outside its grey bar is red.
//! * Below the square are the events per cell. Empty cells are not drawn.

use std::fmt::Write;

use super::scale::{LEFT, SIDE, Scale, TOP};
use crate::stats::corp;
use crate::stats::evaluation::{Evaluation, ReliabilityCell};
use crate::stats::recalibration::Map;

/// Height of the counts below the square, and the gap between them.
const COUNTS: f64 = 56.0;
const GAP: f64 = 44.0;

/// Draws an evaluation and the recommended recalibration map.
pub fn svg(e: &Evaluation, map: Option<&Map>) -> String {
    let cells: Vec<&ReliabilityCell> = e.reliability.iter().filter(|cell| cell.n > 0).collect();
    let scale = Scale::of(e.axis, &cells);
    let width = LEFT + SIDE + 16.0;
    let height = TOP + SIDE + GAP + COUNTS + 22.0;
    let mut out = format!(
        "<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=img aria-label=\"reliability diagram\">\
         <clipPath id=square><rect x={LEFT} y={TOP} width={SIDE} height={SIDE} /></clipPath>"
    );
    out.push_str("<g clip-path=\"url(#square)\">");
    band(&e.curve, scale, &mut out);
    out.push_str("</g>");
    frame(scale, &mut out);
    out.push_str("<g clip-path=\"url(#square)\">");
    let most = cells.iter().map(|cell| cell.n).max().unwrap_or(1);
    let inside = |cell: &&&ReliabilityCell| scale.holds(cell.mean_score);
    for cell in cells.iter().filter(inside) {
        bars(cell, scale, &mut out);
    }
    curve(&e.curve, scale, &mut out);
    if let Some(map) = map {
        advised(map, scale, &mut out);
    }
    for cell in cells.iter().filter(inside) {
        point(cell, most, scale, &mut out);
    }
    out.push_str("</g>");
    counts(&cells, most, scale, &mut out);
    out.push_str("</svg>");
    out
}

/// Draws grid, labels and the diagonal.
fn frame(scale: Scale, out: &mut String) {
    for value in scale.ticks() {
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
    let log = match scale {
        Scale::Linear(_) => "",
        Scale::Logit(..) => ", by log-odds",
    };
    let _ = write!(
        out,
        "<path class=true fill=none d=\"M{LEFT} {:.1}L{:.1} {TOP}\" />\
         <text x={:.1} y={:.1} text-anchor=middle>score{log}</text>\
         <text transform=\"translate(12 {middle:.1}) rotate(-90)\" text-anchor=middle>event rate{log}</text>",
        TOP + SIDE,
        LEFT + SIDE,
        LEFT + SIDE / 2.0,
        TOP + SIDE + 34.0
    );
}

/// Draws the area of the curve if the scores are true.
fn band(cells: &[corp::CurveCell], scale: Scale, out: &mut String) {
    let band = corp::band(cells);
    if band.len() < 2 {
        return;
    }
    out.push_str("<polygon class=band points=\"");
    let upper = band.iter().map(|b| (b.z, b.high));
    let lower = band.iter().rev().map(|b| (b.z, b.low));
    for (z, rate) in upper.chain(lower) {
        let _ = write!(out, "{:.1},{:.1} ", scale.x(z), scale.y(rate));
    }
    out.push_str("\" />");
}

fn curve(cells: &[corp::CurveCell], scale: Scale, out: &mut String) {
    out.push_str("<polyline class=corp fill=none points=\"");
    for pool in corp::curve(cells) {
        let y = scale.y(pool.rate());
        let _ = write!(
            out,
            "{:.1},{y:.1} {:.1},{y:.1} ",
            scale.x(pool.low),
            scale.x(pool.high)
        );
    }
    out.push_str(
        "\"><title>CORP curve: the rising function that fits the outcomes best</title></polyline>",
    );
}

/// Draws the recalibrated score over the score: the points lie on it if the map is right.
fn advised(map: &Map, scale: Scale, out: &mut String) {
    const STEPS: u32 = 120;
    out.push_str("<polyline class=map fill=none points=\"");
    for i in 0..=STEPS {
        let z = scale.at(f64::from(i) / f64::from(STEPS));
        let _ = write!(out, "{:.1},{:.1} ", scale.x(z), scale.y(map.rate(z)));
    }
    out.push_str("\"><title>the map that is advised</title></polyline>");
}

/// Draws the consistency bar of a cell and the interval of its rate.
fn bars(cell: &ReliabilityCell, scale: Scale, out: &mut String) {
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

/// Draws the point of a cell, with an area proportional to its events.
fn point(cell: &ReliabilityCell, most: u64, scale: Scale, out: &mut String) {
    let radius = 2.0 + 5.0 * (cell.n as f64 / most as f64).sqrt();
    let _ = write!(
        out,
        "<circle class=\"{}\" cx={:.1} cy={:.1} r={radius:.1}><title>scores {} to {}: n {}, mean score {}, event rate {}</title></circle>",
        if outside(cell) { "out" } else { "point" },
        scale.x(cell.mean_score),
        scale.y(cell.event_rate),
        label(cell.low),
        label(cell.high),
        cell.n,
        label(cell.mean_score),
        label(cell.event_rate)
    );
}

/// Draws the events per cell, on the same horizontal axis.
fn counts(cells: &[&ReliabilityCell], most: u64, scale: Scale, out: &mut String) {
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

/// Formats a probability with no more digits than it needs.
fn label(value: f64) -> String {
    let rounded = match value < 0.01 {
        true => format!("{value:.6}"),
        false => format!("{value:.4}"),
    };
    // Log-odds near 1 need all their nines.
    let rounded = match value > 0.9995 && value < 1.0 {
        true => format!("{value:.6}"),
        false => rounded,
    };
    let short = rounded.trim_end_matches('0').trim_end_matches('.');
    match short {
        "" => "0".to_owned(),
        short => short.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::axis::{Axis, Grid};
    use crate::stats::evaluation::{Options, evaluate};
    use crate::stats::fixed::Score;
    use crate::stats::sums::Sums;

    /// Scores spread over log-odds from -9 to -2, whose outcomes are twice as frequent.
    fn rare(axis: Axis) -> Evaluation {
        let mut sums = Sums::new(Grid::new(axis, 12));
        for i in 0..20_000_u32 {
            let x = -9.0 + 7.0 * f64::from(i % 1000) / 1000.0;
            let z = 1.0 / (1.0 + f64::exp(-x));
            let y = f64::from(i.wrapping_mul(2_654_435_761) >> 8) / f64::from(1 << 24) < 2.0 * z;
            sums.observe(Score::new(z).expect("a score"), y)
                .expect("room");
        }
        evaluate(&sums, &Options::default()).expect("events")
    }

    fn circles(drawn: &str) -> Vec<f64> {
        let parts = drawn.split("<circle").skip(1);
        let x = parts.filter_map(|p| p.split_once("cx=")?.1.split_once(' ')?.0.parse().ok());
        x.collect()
    }

    #[test]
    fn a_model_of_rare_events_is_spread_over_its_own_axis() {
        let axis = Axis::Logit {
            low: 1e-5,
            high: 0.5,
        };
        let spread = |axis| {
            let x = circles(&svg(&rare(axis), None));
            x.iter().fold(f64::MIN, |a, b| a.max(*b)) - x.iter().fold(f64::MAX, |a, b| a.min(*b))
        };
        assert!(spread(axis) > 0.7 * SIDE, "{}", spread(axis));
        let drawn = svg(&rare(axis), None);
        assert!(
            drawn.contains("by log-odds")
                && drawn.contains("class=corp")
                && drawn.contains("class=band")
        );
        assert!(drawn.contains(">0.001</text>"), "{drawn}");
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"));
        // Cells whose events are twice as frequent as the scores say leave their bars.
        assert!(drawn.contains("class=\"out\""));
        assert!(!svg(&rare(Axis::Linear), None).contains("log-odds"));
    }

    #[test]
    fn labels_have_no_more_digits_than_they_need() {
        let labels = [0.0, 0.5, 0.25, 0.001, 0.00005, 0.99999, 1.0].map(label);
        assert_eq!(
            labels,
            ["0", "0.5", "0.25", "0.001", "0.00005", "0.99999", "1"]
        );
    }
}
