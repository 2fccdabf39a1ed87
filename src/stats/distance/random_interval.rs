//! Random-interval calibration error, and the surrogate interval error made of it.
//!
//! RintCE(ε) = E over a shift t uniform on [0, ε) of Σ_j |E[(y−z)1(z ∈ [t+jε, t+(j+1)ε))]|: the
//! binned error averaged over where the edges fall (Błasiok, Gopalan, Hu, Nakkiran 2023, section
//! 6). SintCE = inf over k ≥ 0 of RintCE(2^−k) + 2^−k; lower distance ≤ intCE ≤ SintCE ≤ 6√lower
//! distance (Theorems 6.2, 6.5), and unlike intCE it can be estimated from a sample.
//!
//! The paper draws shifts. It need not: the integrand is piecewise constant in t and changes only
//! where an edge passes a score, so one sweep over the fractional parts of z/ε in sorted order
//! gives the expectation exactly, O(m log m) (derived). For ε = 2^−k fractions are exact in binary.
//!
//! From dyadic cells of width h ≤ ε the same expectation over the ε/h shifts that keep edges on
//! cells is O(m) by prefix sums ([`aligned`]). It is within 2^(k+1)·mean|U||z − centre| of RintCE,
//! and since each aligned partition is a real one, its surrogate is at least intCE of the raw
//! scores without any error term.
//!
//! RintCE(2ε) ≤ RintCE(ε) (Claim B.1), so the infimum over k is settled at the first k with
//! RintCE(2^−k) above the best so far; as k → ∞ it tends to the error of the level sets.

use super::points::Points;
use crate::levels::Level;

/// RintCE(2^−k) of the points, exactly; `k` at most 52.
///
/// One event z = 0.3, y = 1: every partition has error 0.7.
pub fn random_interval(points: &Points, k: u32) -> f64 {
    let scale = (1u64 << k) as f64;
    let n = points.n();
    // Bin of each point at shift 0, and the shift at which its bin's lower edge passes it.
    let place = |z: f64| ((z * scale).floor(), z * scale - (z * scale).floor());
    let mut bins: Vec<f64> = Vec::new();
    for a in points.atoms() {
        let (bin, _) = place(a.z);
        for b in [bin - 1.0, bin] {
            if bins.last().is_none_or(|&last| last < b) {
                bins.push(b);
            }
        }
    }
    let mut sums = vec![0.0; bins.len()];
    let mut moves: Vec<(f64, usize, f64)> = Vec::with_capacity(points.atoms().len());
    let mut at = 0;
    for a in points.atoms() {
        let (bin, fraction) = place(a.z);
        while bins[at] < bin {
            at += 1;
        }
        sums[at] += a.u / n;
        moves.push((fraction, at, a.u / n));
    }
    moves.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut total: f64 = sums.iter().map(|s| s.abs()).sum();
    let (mut before, mut area) = (0.0, 0.0);
    for (fraction, at, u) in moves {
        area += total * (fraction - before);
        before = fraction;
        // `at` is never 0: the bin below a point's own is in the list.
        for (bin, change) in [(at, -u), (at - 1, u)] {
            let old = sums[bin];
            sums[bin] += change;
            total += sums[bin].abs() - old.abs();
        }
    }
    area + total * (1.0 - before)
}

/// RintCE(2^−k) over shifts that keep edges on cells, for k = 0, 1, … to the level's own; `level`
/// must have 2^b equal cells of [0, 1].
pub fn aligned(level: &Level) -> Vec<f64> {
    let m = level.cells as usize;
    let n: f64 = level.occupied.iter().map(|c| c.n).sum();
    let mut prefix = vec![0.0; m + 1];
    for c in level.occupied.iter() {
        prefix[c.index as usize + 1] = c.u / n;
    }
    for i in 0..m {
        prefix[i + 1] += prefix[i];
    }
    let mut errors = Vec::new();
    for k in 0..=m.ilog2() {
        let step = m >> k;
        // Over all shifts, every window of `step` cells that meets [0, m) is seen once.
        let whole = (step..=m).map(|end| (prefix[end] - prefix[end - step]).abs());
        let first = (1..step).map(|end| prefix[end].abs());
        let last = (1..step).map(|start| (prefix[m] - prefix[m - start]).abs());
        let sum: f64 = whole.sum::<f64>() + first.sum::<f64>() + last.sum::<f64>();
        errors.push(sum / step as f64);
    }
    errors
}

/// SintCE from RintCE(2^−k), k = 0, 1, …: the least of RintCE(2^−k) + 2^−k.
pub fn surrogate(errors: &[f64]) -> f64 {
    let terms = errors.iter().zip(0..);
    terms.fold(f64::MAX, |best, (e, k)| best.min(e + 0.5f64.powi(k)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::samples;

    fn sample(n: usize, seed: u64) -> Vec<(f64, bool)> {
        samples::events(&mut Rng::new(seed), n, |u| u, |_| 0.3)
    }

    #[test]
    fn the_sweep_is_the_average_over_shifts_between_the_breakpoints() {
        let p = Points::from_scores(&sample(40, 4)).unwrap();
        for k in 0..8 {
            let e = 0.5f64.powi(k);
            let mut edges: Vec<f64> = p.atoms().iter().map(|a| a.z.rem_euclid(e)).collect();
            edges.extend([0.0, e]);
            edges.sort_by(f64::total_cmp);
            let mut want = 0.0;
            for w in edges.windows(2) {
                let t = 0.5 * (w[0] + w[1]);
                let bin = |z: f64| ((z - t) / e).floor();
                let (mut sum, mut at, mut error) = (0.0, f64::MIN, 0.0);
                for a in p.atoms() {
                    if bin(a.z) > at {
                        error += f64::abs(sum);
                        (sum, at) = (0.0, bin(a.z));
                    }
                    sum += a.u / p.n();
                }
                want += (w[1] - w[0]) / e * (error + f64::abs(sum));
            }
            assert!((random_interval(&p, k as u32) - want).abs() < 1e-13);
        }
    }

    #[test]
    fn aligned_shifts_stay_within_the_stated_error_and_above_intce() {
        let sample = sample(500, 8);
        let level = Level::from_scores(&sample, 64);
        let p = Points::from_scores(&sample).unwrap();
        let errors = aligned(&level);
        let mut moved = 0.0;
        for &(z, y) in &sample {
            let centre = ((z * 64.0).floor() + 0.5) / 64.0;
            moved += (f64::from(u8::from(y)) - z).abs() * (z - centre).abs() / 500.0;
        }
        for (k, e) in errors.iter().enumerate() {
            let exact = random_interval(&p, k as u32);
            let bar = f64::from(2u32 << k) * moved;
            assert!((e - exact).abs() <= bar, "{k} {e} {exact} {bar}");
        }
        assert!(surrogate(&errors) >= super::super::interval::interval(&p));
    }
}
