//! Estimators of the squared ℓ2-ECE of vectors at one level, with their null law given the
//! predictions.
//!
//! As for scalars ([`crate::estimator`]) with ‖·‖² for squares: plug-in T_b = (1/n)Σ‖ΣU‖²/N,
//! debiased T_d = (1/n)Σ[‖ΣU‖² − Σ‖U‖²]/N, unbiased T = (1/n)Σ_{N≥2}[…]/(N − 1). For two classes
//! the `full` view's are twice the scalar ones. Null moments: mean 0, variance (1/n²)Σ
//! 2Σ_{a≠b}tr(S_a S_b)/N², third cumulant (1/n³)Σ{8Σ tr(S_a S_b S_c) + 4ΣE(U_a·U_b)³}/N³; N − 1 for
//! N in the unbiased one. Of weighted events [`super::weighted`] has the same with N = Σw, and N −
//! Σw²/N for N − 1.

use super::level::{VectorCell, VectorLevel};
use crate::null::Moments;

/// Plug-in estimate; biased upwards, never negative.
pub fn plug_in(level: &VectorLevel) -> f64 {
    let cell = level
        .cells
        .iter()
        .map(|c| c.u.iter().map(|u| u * u).sum::<f64>() / c.n);
    cell.sum::<f64>() / level.n
}

/// Debiased plug-in estimate; mean 0 under the null, may be negative.
pub fn debiased(level: &VectorLevel) -> f64 {
    level.cells.iter().map(|c| c.pairs_u() / c.n).sum::<f64>() / level.n
}

/// Unbiased estimate; cells of one event add nothing.
pub fn unbiased(level: &VectorLevel) -> f64 {
    let cells = level.cells.iter().filter(|c| c.count >= 2.0);
    cells.map(|c| c.pairs_u() / rest(c)).sum::<f64>() / level.n
}

/// ℓ1-ECE in total variation: (1/n)Σ½‖ΣU‖₁ (for `top_k` without the outcomes outside the k labels).
pub fn ece_l1(level: &VectorLevel) -> f64 {
    let cell = level
        .cells
        .iter()
        .map(|c| 0.5 * c.u.iter().map(|u| u.abs()).sum::<f64>());
    cell.sum::<f64>() / level.n
}

/// Null moments of [`debiased`].
pub fn moments_of_debiased(level: &VectorLevel) -> Moments {
    moments(level, |c| 1.0 / c.n)
}

/// Null moments of [`unbiased`].
pub fn moments_of_unbiased(level: &VectorLevel) -> Moments {
    moments(level, |c| 1.0 / rest(c))
}

/// N − 1, or of weighted events N − Σw²/N.
fn rest(c: &VectorCell) -> f64 {
    c.n - c.w2 / c.n
}

fn moments(level: &VectorLevel, weight: impl Fn(&VectorCell) -> f64) -> Moments {
    let (mut variance, mut third) = (0.0, 0.0);
    for c in level.cells.iter().filter(|c| c.count >= 2.0) {
        let w = weight(c);
        variance += 2.0 * c.pairs * w * w;
        third += (8.0 * c.triples + 4.0 * c.cubes) * w * w * w;
    }
    Moments {
        variance: variance / (level.n * level.n),
        third: third / level.n.powi(3),
    }
}
