//! Interval calibration error: the binned error of the best partition, widths included.
//!
//! intCE = min over partitions of [0, 1] into intervals I of Σ_I |E[(y−z)1(z∈I)]| + P(z∈I)·width(I)
//! (Błasiok, Gopalan, Hu, Nakkiran 2023, Definition 6.1; their section 2.3 has the largest width in
//! place of the average one, and Theorem 6.2's first sentence leaves the width out). The width is
//! what makes a binned error honest: without it finer cells always look worse and coarser ones
//! always better. It bounds the distance of any calibrated map of the scores from above: upper
//! distance ≤ intCE ≤ 4√lower distance.
//!
//! Exact (derived; the paper only estimates it): an interval may be shrunk to its data and empty
//! ones are free, so over sorted points F_j = min_{i≤j} F_{i−1} + |R_{i..j}| + p_{i..j}·(high_j −
//! low_i), R residual mass, p mass. From cells, low and high are the cell's edges, so that each
//! partition considered is one of [0, 1] with its full widths: the result is at least intCE of the
//! raw scores, a certificate with no error term. There is no bound the other way (Lemma 6.9: intCE
//! jumps when scores are rounded).
//!
//! Cost: m²/2 terms at worst. F_{i−1} + |R_{i..j}| ≥ |R_{1..j}|, and p·width grows as i falls, so a
//! row ends as soon as |R_{1..j}| + p·width exceeds the best so far; that leaves a fifth or less of
//! the terms.

use super::points::Points;

/// intCE of raw scores; from cells, an upper bound of it.
///
/// Two events, 0.3 with y = 1 and 0.5 with y = 0: one interval costs |0.1| + 0.2 = 0.3, two cost
/// 0.6.
pub fn interval(points: &Points) -> f64 {
    let (atoms, n) = (points.atoms(), points.n());
    let m = atoms.len();
    // Prefix sums before each point, and the lower edge of an interval that begins at it.
    let (mut mass, mut residual) = (vec![0.0; m + 1], vec![0.0; m + 1]);
    for (i, a) in atoms.iter().enumerate() {
        mass[i + 1] = mass[i] + a.n / n;
        residual[i + 1] = residual[i] + a.u / n;
    }
    let low: Vec<f64> = atoms.iter().map(|a| a.low).collect();
    let mut best = vec![0.0; m + 1];
    for (j, a) in atoms.iter().enumerate() {
        let (p, r) = (mass[j + 1], residual[j + 1]);
        let mut least = f64::MAX;
        let mut end = j + 1;
        while end > 0 {
            let start = end.saturating_sub(STRIDE);
            let span = start..end;
            let row = Row { p, r, high: a.high };
            let least_here = row.least(
                &best[span.clone()],
                &residual[span.clone()],
                &mass[span.clone()],
                &low[span],
            );
            least = least.min(least_here);
            if r.abs() + (p - mass[start]) * (a.high - low[start]) >= least {
                break;
            }
            end = start;
        }
        best[j + 1] = least;
    }
    best[m]
}

/// One row of the recursion: intervals that end at one point.
struct Row {
    p: f64,
    r: f64,
    high: f64,
}

/// Terms that are computed side by side.
const LANES: usize = 4;

impl Row {
    /// min of F + |r − s| + (p − q)·(high − l) over equally long columns; in lanes, because a
    /// minimum over floats in order is not vectorised.
    fn least(&self, f: &[f64], s: &[f64], q: &[f64], l: &[f64]) -> f64 {
        let cost = |f: f64, s: f64, q: f64, l: f64| {
            f + (self.r - s).abs() + (self.p - q) * (self.high - l)
        };
        let mut lanes = [f64::MAX; LANES];
        let whole = f.len() - f.len() % LANES;
        let chunks = (f.chunks_exact(LANES).zip(s.chunks_exact(LANES)))
            .zip(q.chunks_exact(LANES).zip(l.chunks_exact(LANES)));
        for ((f, s), (q, l)) in chunks {
            for (k, lane) in lanes.iter_mut().enumerate() {
                let cost = cost(f[k], s[k], q[k], l[k]);
                *lane = if cost < *lane { cost } else { *lane };
            }
        }
        let rest = (whole..f.len()).map(|i| cost(f[i], s[i], q[i], l[i]));
        rest.chain(lanes).fold(f64::MAX, f64::min)
    }
}

/// Terms between two checks whether a row may end: enough for a vectorised loop.
const STRIDE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_events_give_the_number_of_the_documentation() {
        let p = Points::from_scores(&[(0.3, true), (0.5, false)]).unwrap();
        assert!((interval(&p) - 0.3).abs() < 1e-15);
    }

    #[test]
    fn no_partition_of_a_small_sample_is_better() {
        let mut rng = crate::rng::Rng::new(2);
        for _ in 0..50 {
            let sample = crate::samples::events(&mut rng, 9, |u| u, |_| 0.5);
            let p = Points::from_scores(&sample).unwrap();
            let (a, n) = (p.atoms(), p.n());
            let mut want = f64::MAX;
            for cuts in 0u32..1 << (a.len() - 1) {
                let (mut cost, mut from) = (0.0, 0);
                for i in 0..a.len() {
                    if i + 1 == a.len() || cuts >> i & 1 == 1 {
                        let part = &a[from..=i];
                        let u: f64 = part.iter().map(|a| a.u).sum();
                        let k: f64 = part.iter().map(|a| a.n).sum();
                        cost += u.abs() / n + k / n * (a[i].z - a[from].z);
                        from = i + 1;
                    }
                }
                want = want.min(cost);
            }
            assert!((interval(&p) - want).abs() < 1e-14);
        }
    }
}
