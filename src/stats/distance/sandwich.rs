//! Between which bounds the distances lie, from what was measured.
//!
//! All proved, of population and sample alike (Błasiok, Gopalan, Hu, Nakkiran 2023, Theorems 5.2, 6.2, 7.3,
//! 8.5, with the sharper constants derived in [`super::laplace`]):
//!
//! max(½·smCE, kCE²/1.5, ((√(½ + 4kCE) − √½)/2)²) ≤ lower distance ≤ min(2·smCE, √3.5·kCE)
//!
//! lower distance ≤ true distance ≤ upper distance ≤ intCE ≤ SintCE ≤ 6√lower distance.
//!
//! smCE itself is no lower bound of the distance, as the paper's section 10.3 has it; half of it is (49 events
//! 0.02 that fail and one 0.03 that succeeds have smCE 0.000394 and upper distance 0.000200).

use super::laplace::Laplace;
use super::lower::Lower;

/// An interval that holds a quantity of the raw scores for certain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Lower end, at least 0.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// √3.5, the constant of lower distance ≤ √3.5·kCE.
const KERNEL_ABOVE: f64 = 1.870_828_693_386_970_7;

/// Where the lower distance lies, by the smooth and the Laplace kernel error alone: no programme need be
/// solved. Each is given with the error of its cells.
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

/// Where the true distance lies: at least the lower distance, at most the interval error and at most 6√ of the
/// lower distance. `interval` is any value that is at least intCE of the raw scores.
pub fn of_true(lower: &Lower, interval: f64) -> Bounds {
    let high = lower.high + lower.error;
    Bounds {
        low: (lower.low - lower.error).max(0.0),
        high: interval.min(6.0 * high.sqrt()),
    }
}
