//! What maps are fitted to: events that share a score, or the cell around it.

use super::unfit::Unfit;
use crate::fixed::CLIP;
use crate::levels::Level;

/// Events that are taken as one: of one score, or of one cell at its mean score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The score, in [0, 1].
    pub z: f64,
    /// Number of events, above 0.
    pub n: f64,
    /// Σy, at most `n`.
    pub y: f64,
}

impl Point {
    /// The occupied cells of a level at their mean scores, ascending.
    pub fn of_cells(level: &Level) -> Vec<Point> {
        let cells = level.occupied.iter();
        cells
            .map(|c| Point {
                z: (c.z / c.n).clamp(0.0, 1.0),
                n: c.n,
                y: c.y,
            })
            .collect()
    }

    /// Raw scores in [0, 1], ascending; ties are one point.
    pub fn of_scores(sample: &[(f64, bool)]) -> Vec<Point> {
        Point::of_weighted(sample.iter().map(|&(z, y)| (z, y, 1.0)))
    }

    /// Raw scores with weights above 0, ascending; ties are one point: `n` is Σw and `y` Σwy.
    pub(crate) fn of_weighted(sample: impl Iterator<Item = (f64, bool, f64)>) -> Vec<Point> {
        let mut order: Vec<_> = sample.collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut points: Vec<Point> = Vec::new();
        for (z, y, w) in order {
            let y = if y { w } else { 0.0 };
            match points.last_mut() {
                Some(last) if last.z == z => {
                    last.n += w;
                    last.y += y;
                }
                _ => points.push(Point { z, n: w, y }),
            }
        }
        points
    }

    /// ln z and ln(1−z) of the clipped score.
    pub fn logs(&self) -> (f64, f64) {
        logs(self.z)
    }
}

/// ln z and ln(1−z) of a clipped score.
pub fn logs(z: f64) -> (f64, f64) {
    let z = z.clamp(CLIP, 1.0 - CLIP);
    (z.ln(), (-z).ln_1p())
}

/// 1/(1 + e⁻ˣ), no nearer to 0 and 1 than 2⁻³², the unit of scores.
pub(super) fn expit(x: f64) -> f64 {
    (1.0 / (1.0 + (-x).exp())).clamp(CLIP, 1.0 - CLIP)
}

/// Refuses points whose likelihood has no maximum: a threshold separates events from non-events,
/// either way round, so that at most one point has both.
pub(super) fn mixed(points: &[Point]) -> Result<(), Unfit> {
    if points.len() < 2 {
        return Err(Unfit::Alike);
    }
    let first = |f: &dyn Fn(&Point) -> bool| points.iter().position(f);
    let last = |f: &dyn Fn(&Point) -> bool| points.iter().rposition(f);
    let (event, none) = (|p: &Point| p.y > 0.0, |p: &Point| p.y < p.n);
    if last(&none) <= first(&event) || last(&event) <= first(&none) {
        return Err(Unfit::Parted);
    }
    Ok(())
}
