//! Between which bounds the distances lie, from what was measured.
//!
//! All proved, of population and sample alike (Błasiok, Gopalan, Hu, Nakkiran 2023, Theorems 5.2,
//! 6.2, 7.3, 8.5, with the sharper constants derived in [`super::laplace`]):
//!
//! max(½·smCE, kCE²/1.5, ((√(½ + 4kCE) − √½)/2)²) ≤ lower distance ≤ min(2·smCE, √3.5·kCE)
//!
//! lower distance ≤ true distance ≤ upper distance ≤ intCE ≤ SintCE ≤ 6√lower distance.
//!
//! smCE itself is not a lower bound of the distance, although the paper's section 10.3 says so;
//! half of it is (49 events 0.02 that fail and one 0.03 that succeeds have smCE 0.000394 and upper
//! distance 0.000200).

use super::laplace::Laplace;

/// An interval that holds a quantity of the raw scores for certain.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Bounds {
    /// Lower end, at least 0.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// √3.5, the constant of lower distance ≤ √3.5·kCE.
const KERNEL_ABOVE: f64 = 1.870_828_693_386_970_7;

/// Where the lower distance lies, by the smooth and the Laplace kernel error alone: no programme
/// need be solved. Each is given with the error of its cells.
pub fn of_lower(smooth: Bounds, laplace: &Laplace) -> Bounds {
    let (k_low, k_high) = laplace.ends();
    let half = 0.5f64;
    let root = 0.5 * ((half + 4.0 * k_low).sqrt() - half.sqrt());
    Bounds {
        low: (half * smooth.low)
            .max(k_low * k_low / 1.5)
            .max(root * root),
        high: (2.0 * smooth.high).min(KERNEL_ABOVE * k_high),
    }
}

/// Where the true distance lies: at least the lower distance, at most the interval error and at
/// most 6√ of the lower distance. `lower` holds the lower distance of the raw scores; `interval` is
/// any value that is at least their intCE.
pub fn of_true(lower: Bounds, interval: f64) -> Bounds {
    Bounds {
        low: lower.low.max(0.0),
        high: interval.min(6.0 * lower.high.max(0.0).sqrt()),
    }
}

/// How far a measure of n independent events may be from that of their law, with probability 1 − α
/// on each side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Smooth calibration error: (√2 + √(2 ln 1/α))/√n.
    pub smooth: f64,
    /// Lower distance: (2 + √(2 ln 1/α))/√n.
    pub lower: f64,
    /// Laplace kernel error: (1 + √(2 ln 1/α))/√n.
    pub laplace: f64,
}

/// The bars for `n` events and `alpha` in (0, 1), for any law (derived: McDiarmid's inequality on
/// each side and E‖mean − expectation‖ ≤ 1/√n in the kernel's space; the paper's section 9 has the
/// orders without constants). The measures are biased upwards by as much as the first terms, so
/// small values of a few events say nothing.
pub fn sampling(n: f64, alpha: f64) -> Sampling {
    let tail = (-2.0 * alpha.ln()).max(0.0).sqrt();
    let bar = |bias: f64| (bias + tail) / n.sqrt();
    Sampling {
        smooth: bar(std::f64::consts::SQRT_2),
        lower: bar(2.0),
        laplace: bar(1.0),
    }
}
