//! The error of a window over time, with its interval, the tolerance and the verdicts.
//!
//! The interval is a band, the estimate a line, and a point by itself a dot. Below lies a ribbon
//! with the verdict of each stretch, low, middle or high as well as in colour. Where a window was
//! not evaluated for longer than usual, line and band have a gap.

use std::fmt::Write;

use crate::judge::{HistoryError, HistoryPoint, Verdict};
use crate::report::html::number;
use crate::report::moment::clock;

/// The drawing is stretched to the width of the page; labels are text beside it.
const WIDTH: f64 = 1000.0;
const TOP: f64 = 2.0;
const HEIGHT: f64 = 120.0;
/// The ribbon of verdicts, and its place below the square.
const RIBBON: f64 = 18.0;
const GAP: f64 = 8.0;

/// Draws the points of a window, the oldest first; nothing with fewer than two moments or without
/// an estimate.
pub fn html(points: &[HistoryPoint], tolerance: Option<f64>) -> Option<String> {
    let (first, last) = (points.first()?.end_ms, points.last()?.end_ms);
    if first >= last || points.iter().all(|p| p.error.is_none()) {
        return None;
    }
    let scale = Scale {
        first,
        last,
        most: most(points, tolerance),
    };
    let height = TOP + HEIGHT + GAP + RIBBON;
    let mut out = String::from("<div class=plot>");
    frame(&scale, height, &mut out);
    for run in runs(points) {
        area(run, &scale, &mut out);
    }
    if let Some(tolerance) = tolerance.filter(|t| *t > 0.0) {
        let y = scale.y(tolerance as f32);
        let _ = write!(
            out,
            "<path class=limit fill=none d=\"M0 {y:.1}H{WIDTH}\"><title>tolerance {}</title></path>",
            number(tolerance)
        );
    }
    ribbon(points, &scale, &mut out);
    let _ = write!(
        out,
        "</svg></div><div class=ends><span>{} UTC</span><span>{} UTC</span></div>",
        clock(first),
        clock(last)
    );
    Some(out)
}

struct Scale {
    first: i64,
    last: i64,
    most: f32,
}

impl Scale {
    fn x(&self, ms: i64) -> f64 {
        WIDTH * (ms - self.first) as f64 / (self.last - self.first) as f64
    }
    fn y(&self, error: f32) -> f64 {
        TOP + HEIGHT * (1.0 - f64::from((error / self.most).min(1.0)))
    }
}

/// The greatest error that is drawn: a little above all estimates, and above most intervals.
fn most(points: &[HistoryPoint], tolerance: Option<f64>) -> f32 {
    let errors = points.iter().filter_map(|p| p.error);
    let mut uppers: Vec<f32> = errors.clone().map(|e| e.upper).collect();
    uppers.sort_by(f32::total_cmp);
    let usual = uppers.get(uppers.len() * 9 / 10).copied().unwrap_or(0.0);
    let estimates = errors.map(|e| e.estimate).fold(0.0, f32::max);
    let limit = tolerance.unwrap_or(0.0) as f32;
    1.1 * usual.max(estimates).max(limit).max(1e-4)
}

/// Axis of the error.
fn frame(scale: &Scale, height: f64, out: &mut String) {
    let mut lines = String::new();
    for share in [0.0, 0.5, 1.0] {
        let error = share * scale.most;
        let y = scale.y(error);
        let _ = write!(
            out,
            "<span style=\"top:{:.1}%\">{error:.3}</span>",
            100.0 * y / height
        );
        let _ = write!(
            lines,
            "<path class=grid fill=none d=\"M0 {y:.1}H{WIDTH}\" />"
        );
    }
    let _ = write!(
        out,
        "<svg viewBox=\"0 0 {WIDTH} {height}\" preserveAspectRatio=none role=img \
         aria-label=\"error and verdict over time\">{lines}"
    );
}

/// Stretches of evaluated points without a gap: one of more than three times the middle distance.
fn runs(points: &[HistoryPoint]) -> Vec<Vec<(i64, HistoryError)>> {
    let known = points.iter().filter_map(|p| Some((p.end_ms, p.error?)));
    let known: Vec<(i64, HistoryError)> = known.collect();
    let mut distances: Vec<i64> = known.windows(2).map(|w| w[1].0 - w[0].0).collect();
    distances.sort_unstable();
    // Old points lie further apart than new ones, so the greater distances count too.
    let usual = distances
        .get(distances.len() * 9 / 10)
        .copied()
        .unwrap_or(0);
    let mut runs: Vec<Vec<(i64, HistoryError)>> = Vec::new();
    for point in known {
        match runs.last_mut() {
            Some(run) if run.last().is_some_and(|p| point.0 - p.0 <= 3 * usual) => run.push(point),
            _ => runs.push(vec![point]),
        }
    }
    runs
}

/// The band of the interval and the line of the estimate.
fn area(run: Vec<(i64, HistoryError)>, scale: &Scale, out: &mut String) {
    let title = |(ms, e): &(i64, HistoryError)| {
        format!(
            "{} UTC: {:.4} ({:.4} to {:.4})",
            clock(*ms),
            e.estimate,
            e.lower,
            e.upper
        )
    };
    if let [only] = &run[..] {
        let x = scale.x(only.0);
        let _ = write!(
            out,
            "<path class=error d=\"M{x:.1} {:.1}V{:.1}\"><title>{}</title></path>",
            scale.y(only.1.lower),
            scale.y(only.1.upper),
            title(only)
        );
        return;
    }
    out.push_str("<polygon class=band points=\"");
    let ends = run.iter().map(|(ms, e)| (*ms, e.upper));
    let back = run.iter().rev().map(|(ms, e)| (*ms, e.lower));
    for (ms, error) in ends.chain(back) {
        let _ = write!(out, "{:.1},{:.1} ", scale.x(ms), scale.y(error));
    }
    out.push_str("\" /><polyline class=error fill=none points=\"");
    for (ms, e) in &run {
        let _ = write!(out, "{:.1},{:.1} ", scale.x(*ms), scale.y(e.estimate));
    }
    let last = run.last().map(title).unwrap_or_default();
    let _ = write!(out, "\"><title>last {last}</title></polyline>");
}

/// The verdict of each stretch.
fn ribbon(points: &[HistoryPoint], scale: &Scale, out: &mut String) {
    let top = TOP + HEIGHT + GAP;
    let mut begin = 0;
    for i in 1..=points.len() {
        let same = |p: &HistoryPoint| p.verdict == points[begin].verdict;
        if points.get(i).is_some_and(same) {
            continue;
        }
        let from = scale.x(points[begin].end_ms);
        let to = points.get(i).map_or(WIDTH, |p| scale.x(p.end_ms));
        let verdict = points[begin].verdict;
        let (class, share) = match verdict {
            Verdict::Miscalibrated => ("v-bad", 1.0),
            Verdict::Undecided(_) => ("v-wait", 0.35),
            Verdict::Calibrated => ("v-good", 0.6),
        };
        let height = RIBBON * share;
        let _ = write!(
            out,
            "<rect class={class} x={from:.1} y={:.1} width={:.1} height={height:.1}><title>{verdict} from {} UTC</title></rect>",
            top + RIBBON - height,
            (to - from).max(1.5),
            clock(points[begin].end_ms)
        );
        begin = i;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(end_ms: i64, estimate: Option<f32>) -> HistoryPoint {
        HistoryPoint {
            end_ms,
            n: 10,
            verdict: match estimate {
                Some(e) if e > 0.05 => Verdict::Miscalibrated,
                Some(_) => Verdict::Calibrated,
                None => Verdict::Undecided(crate::judge::Undecided::TooFew),
            },
            error: estimate.map(|estimate| HistoryError {
                estimate,
                lower: 0.5 * estimate,
                upper: 2.0 * estimate,
            }),
        }
    }

    #[test]
    fn nothing_is_drawn_of_less_than_two_moments() {
        assert_eq!(html(&[], None), None);
        assert_eq!(html(&[point(5, Some(0.1))], None), None);
    }

    #[test]
    fn each_stretch_has_its_verdict_and_gaps_stay_open() {
        let mut points: Vec<HistoryPoint> = (0..20).map(|i| point(i * 1000, Some(0.01))).collect();
        points.push(point(20_000, None));
        points.extend((200..220).map(|i| point(i * 1000, Some(0.09))));
        let drawn = html(&points, Some(0.02)).expect("more than two");
        assert_eq!(drawn.matches("<polyline").count(), 2);
        assert_eq!(drawn.matches("<rect").count(), 3);
        assert!(drawn.contains("v-bad") && drawn.contains("tolerance 0.0200"));
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"));
    }
}
