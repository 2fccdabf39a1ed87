//! The radius of a confidence sequence: how far a sum may stray from its mean at any time.
//!
//! For x ≥ −c and λ < 1/c, exp(λx − ψ(λ)x²) ≤ 1 + λx with ψ(λ) = (−ln(1 − cλ) − cλ)/c² (Fan, Grama,
//! Liu, 2015), so exp(λ(S − ΣE[x|past]) − ψ(λ)V), with S = Σx and V = Σx², is a supermartingale
//! from 1. A mixture over λ is one too, and by Ville's inequality exceeds 1/α at any time ever with
//! probability at most α. Solving
//!
//! ```text
//!   (1/16) Σ_g exp(λ_g·r − ψ(λ_g)·V) = 1/α,     λ_g = (½/c)·2⁻ᵍ, g = 0 … 15
//! ```
//!
//! for r gives P(S − ΣE[x|past] ≥ r(V, α) at any time) ≤ α. No independence, no common mean;
//! nothing to choose but α. About 1.8 to 2.5 times the radius of the normal law at one fixed n: the
//! price of looking always. Source: Howard, Ramdas, McAuliffe, Sekhon, *Time-uniform,
//! nonparametric, nonasymptotic confidence sequences* (2021).

/// Number of λ in the mixture: down to 2⁻¹⁶/c it serves V up to 10⁹.
const MIXTURE: usize = 16;

/// Most Newton steps; the method converges quadratically from the right of a convex function, in
/// under ten steps.
const STEPS: usize = 60;

/// r(V, α) for increments of at least −`c`.
pub fn radius(v: f64, alpha: f64, c: f64) -> f64 {
    let lambda: [f64; MIXTURE] = std::array::from_fn(|g| 0.5 / c * (-(g as f64)).exp2());
    let penalty = lambda.map(|l| psi(l, c) * v);
    crossing(&lambda, &penalty, alpha)
}

/// ψ(λ) = (−ln(1 − cλ) − cλ)/c².
pub(super) fn psi(lambda: f64, c: f64) -> f64 {
    (-(-c * lambda).ln_1p() - c * lambda) / (c * c)
}

/// The r at which the mean over g of exp(λ_g·r − `penalty`_g) is 1/α.
pub(super) fn crossing(lambda: &[f64], penalty: &[f64], alpha: f64) -> f64 {
    let level = (lambda.len() as f64 / alpha).ln();
    let both = || lambda.iter().zip(penalty);
    let mut r = both()
        .map(|(l, p)| (level + p) / l)
        .fold(f64::INFINITY, f64::min);
    for _ in 0..STEPS {
        let terms = || both().map(|(l, p)| l * r - p);
        let top = terms().fold(f64::NEG_INFINITY, f64::max);
        let (mut sum, mut slope) = (0.0, 0.0);
        for (term, lambda) in terms().zip(lambda) {
            let e = (term - top).exp();
            sum += e;
            slope += e * lambda;
        }
        let step = (top + sum.ln() - level) / (slope / sum);
        r -= step;
        if step.abs() <= 1e-13 * r.abs().max(1.0) {
            break;
        }
    }
    r
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_radius_grows_with_the_variance_and_with_confidence() {
        let mut last = 0.0;
        for v in [0.0, 1.0, 10.0, 1e3, 1e5, 1e9] {
            let r = radius(v, 0.05, 1.0);
            assert!(r > last && radius(v, 0.001, 1.0) > r);
            last = r;
        }
    }
}
