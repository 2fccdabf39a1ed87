//! The error of a window over time, with its interval, the tolerance and the verdicts. The error is
//! the one that decides now: the ℓ2-ECE, or the ratio of observed to expected outcomes.
//!
//! The interval is a band, the estimate a line, and a lone point a dot. A ribbon below has the
//! share of each verdict in each stretch, miscalibrated at the bottom. If a window was not
//! evaluated for longer than usual, line and band have a gap. A vertical line marks the start of an
//! alert.

use std::fmt::Write;

use crate::judge::{DecidedError, HistoryError, HistoryPoint, Verdicts};
use crate::report::html::{number, thousands};
use crate::report::moment::clock;

/// Width of the drawing, which is stretched to that of the page; labels are text beside it.
const WIDTH: f64 = 1000.0;
const TOP: f64 = 2.0;
const HEIGHT: f64 = 120.0;
/// The ribbon of verdicts, and its place below the square.
const RIBBON: f64 = 36.0;
const GAP: f64 = 8.0;
/// Number of stretches of the ribbon: on a phone each has three pixels.
const STRETCHES: i64 = 100;

/// An estimate at the end of a window.
type At = (i64, HistoryError);

/// Draws the points of a window, oldest first, by the kind of error that `decided` its last
/// evaluation, and the times at which alerts began. `None` with fewer than two moments or without
/// an estimate.
pub fn html(
    points: &[HistoryPoint],
    alerts: &[i64],
    decided: Option<&DecidedError>,
) -> Option<String> {
    let (first, last) = (points.first()?.end_ms, points.last()?.end_ms);
    let by_ratio = decided.is_some_and(DecidedError::is_ratio);
    let errors = points.iter().filter_map(|p| {
        let error = if by_ratio { p.ratio } else { p.error };
        Some((p.end_ms, error?))
    });
    // If next to nothing is expected in a window, its ratio has no upper bound.
    let errors: Vec<At> = errors.filter(|(_, e)| e.upper.is_finite()).collect();
    if first >= last || errors.is_empty() {
        return None;
    }
    let most = decided
        .and_then(|d| d.most)
        .filter(|most| *most > 0.0 && (*most as f32).is_finite());
    let limits: Vec<f64> = most
        .into_iter()
        .chain(most.filter(|_| by_ratio).map(f64::recip))
        .collect();
    let scale = Scale {
        first,
        last,
        most: highest(&errors, &limits),
    };
    let height = TOP + HEIGHT + GAP + RIBBON;
    let mut out = String::from("<div class=plot>");
    frame(&scale, height, &shares(points), &mut out);
    for run in runs(errors) {
        area(run, &scale, &mut out);
    }
    for limit in limits {
        let y = scale.y(limit as f32);
        let _ = write!(
            out,
            "<path class=limit fill=none d=\"M0 {y:.1}H{WIDTH}\"><title>tolerance {}</title></path>",
            number(limit)
        );
    }
    ribbon(points, &scale, &mut out);
    for at in alerts.iter().filter(|at| (first..=last).contains(at)) {
        let _ = write!(
            out,
            "<path class=began d=\"M{:.1} 0V{height}\"><title>an alert began at {} UTC</title></path>",
            scale.x(*at),
            clock(*at)
        );
    }
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

/// The greatest error on the axis: a little above all estimates and limits, and above most
/// intervals.
fn highest(errors: &[At], limits: &[f64]) -> f32 {
    let mut uppers: Vec<f32> = errors.iter().map(|(_, e)| e.upper).collect();
    uppers.sort_by(f32::total_cmp);
    let usual = uppers.get(uppers.len() * 9 / 10).copied();
    let others = errors.iter().map(|(_, e)| e.estimate);
    let others = others.chain(limits.iter().map(|limit| *limit as f32));
    1.1 * others.chain(usual).fold(1e-4, f32::max)
}

/// Draws the axis of the error.
fn frame(scale: &Scale, height: f64, shares: &str, out: &mut String) {
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
         aria-label=\"error and verdicts over time; {shares}\">{lines}"
    );
}

/// Splits evaluated points at gaps: distances of more than three times the usual one.
fn runs(known: Vec<At>) -> Vec<Vec<At>> {
    let mut distances: Vec<i64> = known.windows(2).map(|w| w[1].0 - w[0].0).collect();
    distances.sort_unstable();
    // Old points are further apart than new ones, so the usual distance is one of the greater.
    let usual = distances
        .get(distances.len() * 9 / 10)
        .copied()
        .unwrap_or(0);
    let mut runs: Vec<Vec<At>> = Vec::new();
    for point in known {
        match runs.last_mut() {
            Some(run) if run.last().is_some_and(|p| point.0 - p.0 <= 3 * usual) => run.push(point),
            _ => runs.push(vec![point]),
        }
    }
    runs
}

/// Draws the band of the interval and the line of the estimate.
fn area(run: Vec<At>, scale: &Scale, out: &mut String) {
    let title = |(ms, e): &At| {
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

/// Draws the share of each verdict in each stretch. Neighbours with the same shares are joined.
fn ribbon(points: &[HistoryPoint], scale: &Scale, out: &mut String) {
    let stretch = |p: &HistoryPoint| {
        let at = STRETCHES * (p.end_ms - scale.first) / (scale.last - scale.first);
        at.min(STRETCHES - 1)
    };
    let mut stretches: Vec<(f64, i64, Verdicts)> = Vec::new();
    for of_one in points.chunk_by(|a, b| stretch(a) == stretch(b)) {
        let all = total(of_one);
        let same = |known: &Verdicts| heights(known) == heights(&all);
        match stretches.last_mut() {
            Some((_, _, known)) if same(known) => *known += all,
            _ => {
                let from = WIDTH * stretch(&of_one[0]) as f64 / STRETCHES as f64;
                stretches.push((from, of_one[0].end_ms, all));
            }
        }
    }
    for (i, (from, begin_ms, all)) in stretches.iter().enumerate() {
        let to = stretches.get(i + 1).map_or(WIDTH, |next| next.0);
        let _ = write!(
            out,
            "<g><title>from {} UTC: {}</title>",
            clock(*begin_ms),
            words(all)
        );
        let mut bottom = TOP + HEIGHT + GAP + RIBBON;
        for (class, height) in heights(all) {
            bottom -= height;
            if height > 0.0 {
                let _ = write!(
                    out,
                    "<rect class={class} x={from:.1} y={bottom:.1} width={:.1} height={height:.1} />",
                    (to - from).max(1.5),
                );
            }
        }
        out.push_str("</g>");
    }
}

/// The parts of a stretch from bottom to top, with their heights.
fn heights(all: &Verdicts) -> [(&'static str, f64); 3] {
    let share = |n: u32| RIBBON * f64::from(n) / all.total().max(1) as f64;
    [
        ("v-bad", share(all.miscalibrated)),
        ("v-wait", share(all.undecided)),
        ("v-good", share(all.calibrated)),
    ]
}

fn total(points: &[HistoryPoint]) -> Verdicts {
    let mut all = Verdicts::default();
    points.iter().for_each(|p| all += p.verdicts());
    all
}

/// The share of each verdict over all points, in words.
pub fn shares(points: &[HistoryPoint]) -> String {
    words(&total(points))
}

fn words(all: &Verdicts) -> String {
    let of = |n: u32| {
        let share = 100.0 * f64::from(n) / all.total().max(1) as f64;
        format!("{} ({share:.1} %)", thousands(n.into()))
    };
    format!(
        "{} judgements: miscalibrated {}, undecided {}, calibrated {}",
        thousands(all.total()),
        of(all.miscalibrated),
        of(all.undecided),
        of(all.calibrated)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{Quantity, Verdict};

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
            ratio: estimate.map(|estimate| HistoryError {
                estimate: 100.0 * estimate,
                lower: 50.0 * estimate,
                upper: 200.0 * estimate,
            }),
            besides: Verdicts::default(),
        }
    }

    fn decided(quantity: Quantity, most: f64) -> DecidedError {
        DecidedError {
            quantity,
            estimate: 0.0,
            lower: 0.0,
            upper: 0.0,
            contains_zero: true,
            confidence: 0.9,
            most: Some(most),
        }
    }

    #[test]
    fn nothing_is_drawn_of_less_than_two_moments() {
        assert_eq!(html(&[], &[], None), None);
        assert_eq!(html(&[point(5, Some(0.1))], &[], None), None);
    }

    #[test]
    fn each_stretch_has_its_verdict_and_gaps_stay_open() {
        let mut points: Vec<HistoryPoint> = (0..20).map(|i| point(i * 1000, Some(0.01))).collect();
        points.push(point(20_000, None));
        points.extend((200..220).map(|i| point(i * 1000, Some(0.09))));
        let decided_by = decided(Quantity::EceL2, 0.02);
        let drawn = html(&points, &[], Some(&decided_by)).expect("more than two");
        assert_eq!(drawn.matches("<polyline").count(), 2);
        assert_eq!(drawn.matches("<rect").count(), 3);
        assert!(drawn.contains("v-bad") && drawn.contains("tolerance 0.0200"));
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"));
    }

    #[test]
    fn a_stretch_shows_the_share_of_each_verdict_and_alerts_are_marked() {
        let mut points: Vec<HistoryPoint> =
            (0..1000).map(|i| point(i * 1000, Some(0.01))).collect();
        for p in &mut points {
            p.besides.calibrated = 18;
        }
        // Each ten points are a stretch, and one of them had a rejection among its verdicts.
        for p in points.iter_mut().step_by(10) {
            p.verdict = Verdict::Miscalibrated;
        }
        let decided_by = decided(Quantity::EceL2, 0.02);
        let drawn = html(&points, &[500_000, 2_000_000], Some(&decided_by)).expect("a drawing");
        // All stretches are equal, so they are joined: 1 of 190 verdicts is red, not all of them.
        assert_eq!(drawn.matches("<rect").count(), 2);
        assert!(
            drawn.contains(&format!("height={:.1} /", RIBBON / 190.0)),
            "{drawn}"
        );
        let said = "19,000 judgements: miscalibrated 100 (0.5 %), undecided 0 (0.0 %), calibrated 18,900 (99.5 %)";
        assert_eq!(drawn.matches(said).count(), 2, "{drawn}");
        assert_eq!(drawn.matches("an alert began").count(), 1);
    }

    #[test]
    fn a_ratio_that_decides_is_drawn_between_its_limits() {
        let points: Vec<HistoryPoint> = (0..20).map(|i| point(i * 1000, Some(0.009))).collect();
        let by_ratio = decided(Quantity::ObservedExpected, 1.25);
        let drawn = html(&points, &[], Some(&by_ratio)).expect("more than two");
        assert!(drawn.contains("tolerance 1.25") && drawn.contains("tolerance 0.8"));
        assert!(drawn.contains("0.9000 (0.4500 to 1.8000)"), "{drawn}");
        // The axis ends a little above the intervals.
        assert!(drawn.contains(">1.980<"), "{drawn}");
        let mut boundless = points.clone();
        boundless[9].ratio = Some(HistoryError {
            estimate: 0.0,
            lower: 0.0,
            upper: f32::INFINITY,
        });
        let drawn = html(
            &boundless,
            &[],
            Some(&decided(Quantity::ObservedExpected, 1e300)),
        );
        let drawn = drawn.expect("more than two");
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        let none: Vec<HistoryPoint> = (points.into_iter())
            .map(|p| HistoryPoint { ratio: None, ..p })
            .collect();
        assert_eq!(html(&none, &[], Some(&by_ratio)), None);
    }
}
