//! The kernel test of weighted events.
//!
//! Weights w > 0, such as importance weights, are functions of the predictions or of the features,
//! never of the outcomes. The weighted quadratic form and its unbiased part are
//!
//! * SKCE_b = (Σw)⁻² Σ_ij w_i w_j h_ij,
//! * SKCE_uq = Σ_{i≠j} w_i w_j h_ij / ((Σw)² − Σw²),
//!
//! with h of [`super::skce`]. They estimate the kernel calibration error under the law that the
//! weights make. Given predictions and weights, outcomes are independent under the null, exactly as
//! without weights, so every moment of [`super::conditional`] holds with δ_i replaced by w_i δ_i:
//!
//! * E(Σw)²·SKCE_b = Σw²(1 − ‖g‖²),
//! * Var = Σw⁴ Var h_ii + 2Σ_{i≠j} w_i² w_j² φ² tr(S_i S_j).
//!
//! So the sums of a weighted sample are a [`Quadratic`] with n = Σw, and the p-value of SKCE_b is
//! computed as there. McDiarmid's bound has Σw²/(Σw)² for 1/n, the effective number of events. With
//! all weights 1 everything is what [`super::evaluate`] gives of the same events, to the bit.
//! Linear and block estimators pair neighbours and are left out: the weights would pair a heavy
//! event with one other only.

use super::conditional;
use super::phi::{self, Kernel};
use super::skce::Quadratic;
use super::vectors::Vectors;
use crate::rng::Rng;

/// The kernel test of a weighted sample.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WeightedEvaluation {
    /// Events in all.
    pub n: usize,
    /// Effective number of the events used, (Σw)²/Σw².
    pub effective: f64,
    /// K, the number of classes.
    pub classes: usize,
    /// ν, the bandwidth of the kernel.
    pub nu: f64,
    /// Events of the quadratic form.
    pub quadratic_n: usize,
    /// SKCE_b, the biased estimate; at least 0 up to rounding.
    pub biased: f64,
    /// Mean of SKCE_b under the null given the predictions.
    pub null_mean: f64,
    /// p-value of SKCE_b given the predictions; `None` where all predictions are certain.
    pub p_value: Option<f64>,
    /// McDiarmid's p-value of SKCE_b, valid at any n.
    pub bound: f64,
    /// SKCE_uq; `None` for one event.
    pub unbiased: Option<f64>,
    /// Standard deviation of SKCE_uq under the null given the predictions.
    pub unbiased_null_sd: f64,
    /// Whether the test rejects at α.
    pub reject: bool,
    /// α, the level of the test.
    pub alpha: f64,
}

/// The kernel test with the total variation kernel; `None` with fewer than two events. Above
/// `quadratic_max` events a seeded part is used, each event with its weight.
pub fn evaluate(
    sample: &Vectors,
    weights: &[f64],
    o: &super::Options,
) -> Option<WeightedEvaluation> {
    let n = sample.len();
    if n < 2 {
        return None;
    }
    let kept = part(n, o.quadratic_max.max(2), o.seed);
    let rows = sample.pick(kept.iter().copied());
    let weights: Vec<f64> = kept.iter().map(|&i| weights[i]).collect();
    let nu = o.nu.or_else(|| phi::median_bandwidth(&rows)).unwrap_or(1.0);
    let kernel = Kernel::TotalVariation { nu };
    let q = Quadratic::weighted(&rows, &weights, kernel);
    let squares: f64 = weights.iter().map(|w| w * w).sum();
    let pairs = q.n * q.n - squares;
    let p_value = conditional::p_value(&rows, &weights, kernel, &q, (o.alpha, o.seed));
    Some(WeightedEvaluation {
        n,
        effective: q.n * q.n / squares,
        classes: sample.classes(),
        nu,
        quadratic_n: rows.len(),
        biased: q.biased(),
        null_mean: q.null_diagonal / (q.n * q.n),
        p_value,
        bound: conditional::biased_bound(&q, squares),
        unbiased: (pairs > 0.0).then(|| q.off / pairs),
        unbiased_null_sd: if pairs > 0.0 {
            (2.0 * q.null_pairs).sqrt() / pairs
        } else {
            0.0
        },
        reject: p_value.map_or(q.biased() > 0.0, |p| p <= o.alpha),
        alpha: o.alpha,
    })
}

/// Indices of at most `most` events, drawn by the seed, in their order.
fn part(n: usize, most: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    if n > most {
        Rng::new(seed).choose(&mut order, most);
        order.truncate(most);
        order.sort_unstable();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Options;
    use crate::kernel::conditional::draw;
    use crate::samples;

    fn sample(rng: &mut Rng, n: usize, wrong: f64) -> (Vectors, Vec<f64>) {
        let (mut all, mut weights) = (Vectors::new(3), Vec::new());
        while all.len() < n {
            let row = samples::row(rng, 3, |u| u);
            let y = draw(&row, rng.uniform());
            let y = if rng.uniform() < wrong { 2 } else { y };
            weights.push(0.2 + 5.0 * row[0] * row[0]);
            all.push(&row, y).unwrap();
        }
        (all, weights)
    }

    #[test]
    fn a_weight_of_two_is_an_event_twice() {
        let mut rng = Rng::new(3);
        let (v, _) = sample(&mut rng, 40, 0.0);
        let kernel = Kernel::TotalVariation { nu: 0.3 };
        let mut weights = [1.0; 40];
        weights[7] = 2.0;
        let twice = v.pick((0..40).chain([7]));
        let (got, want) = (
            Quadratic::weighted(&v, &weights, kernel),
            Quadratic::of(&twice, kernel),
        );
        assert!((got.biased() - want.biased()).abs() < 1e-14);
    }

    #[test]
    fn the_weighted_test_keeps_its_level_and_finds_a_push() {
        let mut rng = Rng::new(21);
        let (mut level, mut power, sets) = (0, 0, 400);
        for _ in 0..sets {
            for (wrong, hits) in [(0.0, &mut level), (0.4, &mut power)] {
                let (v, w) = sample(&mut rng, 150, wrong);
                let e = evaluate(&v, &w, &Options::default()).unwrap();
                assert!(e.effective < 150.0 && e.bound >= 0.0);
                *hits += u32::from(e.reject);
            }
        }
        // P(Bin(400, 0.05) outside 7..=35) < 0.001.
        assert!((7..=35).contains(&level), "{level}");
        assert!(power > 380, "{power}");
    }

    #[test]
    fn the_part_is_bounded_and_drawn_by_the_seed() {
        assert_eq!(part(5, 9, 1), [0, 1, 2, 3, 4]);
        let drawn = part(100, 10, 1);
        assert_eq!(drawn.len(), 10);
        assert_eq!(drawn, part(100, 10, 1));
        assert_ne!(drawn, part(100, 10, 2));
    }
}
