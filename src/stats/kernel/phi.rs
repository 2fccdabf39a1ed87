//! Scalar kernels φ on probability vectors, and their bandwidth.
//!
//! The matrix kernel of a test is φ·I over classes; it is universal, so its calibration error is 0
//! only for a calibrated model, exactly if φ is (Widmann, Lindsten, Zachariah 2019, Lemma D.3). All
//! φ here are: 1 where the vectors are equal, positive, at most 1.
//!
//! The bandwidth by the median heuristic is a function of the predictions alone, so tests that
//! condition on them stay exact with it; the distribution-free and asymptotic ones do not allow for
//! it. A monitor fixes ν from a reference window.

use super::vectors::Vectors;
use statrs::function::beta::ln_beta;

/// A kernel φ(p, q).
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Kernel {
    /// exp(−TV(p, q)/ν), TV = ½Σ|p_c − q_c|: the kernel of the paper's experiments.
    TotalVariation {
        /// ν > 0.
        nu: f64,
    },
    /// exp(−‖p − q‖²/(2ν²)), Euclidean.
    Gaussian {
        /// ν > 0.
        nu: f64,
    },
}

impl Kernel {
    /// φ(p, q), in (0, 1].
    #[inline]
    pub fn value(self, p: &[f64], q: &[f64]) -> f64 {
        match self {
            Kernel::TotalVariation { nu } => (-total_variation(p, q) / nu).exp(),
            Kernel::Gaussian { nu } => {
                let square = |(p, q): (&f64, &f64)| (p - q) * (p - q);
                let distance: f64 = p.iter().zip(q).map(square).sum();
                (-distance / (2.0 * nu * nu)).exp()
            }
        }
    }
}

/// ½Σ|p_c − q_c|, from 0 to 1.
#[inline]
pub fn total_variation(p: &[f64], q: &[f64]) -> f64 {
    // Four sums side by side, since an addition waits for the one before it.
    let (fours, rest) = p.as_chunks::<4>();
    let (others, last) = q.as_chunks::<4>();
    let mut sums = [0.0; 4];
    for (p, q) in fours.iter().zip(others) {
        for (sum, (p, q)) in sums.iter_mut().zip(p.iter().zip(q)) {
            *sum += (p - q).abs();
        }
    }
    let rest = rest.iter().zip(last).map(|(p, q)| (p - q).abs());
    0.5 * ((sums[0] + sums[1]) + (sums[2] + sums[3]) + rest.sum::<f64>())
}

/// The median heuristic of the paper's program: the median of the *full* n×n matrix of distances,
/// its zero diagonal and both triangles included (a little under the usual median over pairs).
/// `None` where it is 0 (no bandwidth then) or without a pair.
///
/// The n² distances are not kept: a first pass counts them in [`BUCKETS`] buckets, a second sorts
/// the one or two that hold the middle. O(n²K) steps, O(n) memory at usual spreads.
pub fn median_bandwidth(sample: &Vectors) -> Option<f64> {
    let n = sample.len();
    if n < 2 {
        return None;
    }
    let cells = n * n;
    // Ranks of the middle one or two of n zeros and every pair's distance twice.
    let ranks = [(cells - 1) / 2, cells / 2].map(|r| r.checked_sub(n).map(|r| r / 2));
    let mut counts = vec![0usize; BUCKETS + 1];
    each_distance(sample, |d| counts[bucket(d)] += 1);
    let find = |rank: usize| {
        let mut before = 0;
        for (at, count) in counts.iter().enumerate() {
            if rank < before + count {
                return (at, rank - before);
            }
            before += count;
        }
        (BUCKETS, 0)
    };
    let wanted = ranks.map(|r| r.map(find));
    let mut held: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    each_distance(sample, |d| {
        for (want, held) in wanted.iter().zip(&mut held) {
            if want.is_some_and(|(at, _)| at == bucket(d)) {
                held.push(d);
            }
        }
    });
    let mut value = |k: usize| match wanted[k] {
        None => 0.0,
        Some((_, rank)) => *held[k].select_nth_unstable_by(rank, f64::total_cmp).1,
    };
    let median = 0.5 * (value(0) + value(1));
    (median > 0.0).then_some(median)
}

/// Mean total variation distance of two vectors from the symmetric Dirichlet(α) distribution over K
/// classes, 2B(Kα, Kα)/(α·B(α, α)·B((K−1)α, (K−1)α)): the kernel paper's other bandwidth (Widmann,
/// Lindsten, Zachariah 2019, appendix J.2.2). K ≥ 2, α > 0.
pub fn mean_distance(classes: usize, alpha: f64) -> f64 {
    let k = classes as f64;
    let rest = (k - 1.0) * alpha;
    let logs = ln_beta(k * alpha, k * alpha) - ln_beta(alpha, alpha) - ln_beta(rest, rest);
    2.0 / alpha * logs.exp()
}

/// Buckets of the first pass: some hundreds of distances a bucket at n = 10⁴.
const BUCKETS: usize = 1 << 16;

fn bucket(d: f64) -> usize {
    ((d * BUCKETS as f64) as usize).min(BUCKETS)
}

fn each_distance(sample: &Vectors, mut f: impl FnMut(f64)) {
    for i in 0..sample.len() {
        let row = sample.row(i);
        for j in 0..i {
            f(total_variation(row, sample.row(j)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_distance_of_sharp_vectors_of_ten_classes_is_the_published_one() {
        assert!((mean_distance(10, 0.1) - 0.82740).abs() < 1e-5);
        // Of two uniform scores it is E|U − V| = 1/3.
        assert!((mean_distance(2, 1.0) - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn the_median_is_that_of_the_whole_matrix() {
        let mut rng = crate::rng::Rng::new(8);
        for n in [2, 3, 4, 7, 30, 31] {
            let mut draw = || ((rng.uniform() * 10.0).floor() / 10.0, true);
            let sample: Vec<_> = (0..n).map(|_| draw()).collect();
            let v = Vectors::of_scores(&sample).unwrap();
            let mut all: Vec<f64> = (0..n * n)
                .map(|k| total_variation(v.row(k / n), v.row(k % n)))
                .collect();
            all.sort_by(f64::total_cmp);
            let want = 0.5 * (all[(n * n - 1) / 2] + all[n * n / 2]);
            assert_eq!(median_bandwidth(&v).unwrap_or(0.0), want, "{n}");
        }
    }
}
