//! How far a sum of weighted residuals may stray from its mean at any time, when the weights are
//! known beforehand.
//!
//! Let y ∈ {0, 1} be the outcome of an event, and g and m ∈ [0, 1] be known before it (both scores
//! are, and what was learnt from earlier panes). The increment is x = 2g(y − m). A score difference
//! of two versions is of this form ([`super::paired`]), and so is every linear contrast of a binary
//! outcome. Two penalties make exp(λ(x − E[x|past]) − penalty) a supermartingale factor:
//!
//! * λ²g²/2: x takes two values 2g apart (Hoeffding 1963, lemma 1). Right for outcomes near ½, for
//!   every λ;
//! * ψ_c(λ)x², for x ≥ −c and λ < 1/c ([`super::radius`]; Fan, Grama, Liu 2015): learns the
//!   variance from the outcomes themselves, which for events of rate 0.01 is a twenty-fifth of the
//!   first.
//!
//! Versions that agree almost everywhere have tiny g, and a bound that only knew |x| ≤ 1 would wait
//! for n·|difference| of about 13. So Σg² and Σx² are kept apart by size of g: class k holds
//! 2⁻⁽ᵏ⁺¹⁾ < |g| ≤ 2⁻ᵏ, for which c = 2¹⁻ᵏ, and 1 at most. Which penalty a class pays at λ depends
//! on k and λ alone, hence on the past, so the product over events is a supermartingale whatever
//! the order of sizes. The mixture is over λ = 2⁸, 2⁷, …, 2⁻¹⁴ with two ways of paying each: the
//! first throughout; the second in classes with cλ ≤ ½. By Ville's inequality
//!
//! ```text
//!   P(Σx − ΣE[x|past] ≥ r(α) at any time ever) ≤ α,      mean over the 46 of exp(λ·r − Σ penalties) = 1/α.
//! ```
//!
//! This is a confidence sequence of Howard, Ramdas, McAuliffe, Sekhon (2021, discrete mixtures) for
//! the average score difference of Choe, Ramdas, *Comparing sequential forecasters* (2024), with a
//! range that is known event by event. No independence, no constant mean.
//!
//! Always: sums are integers in units of 2⁻⁶⁴; squares are rounded up, so the radius is never too
//! small for it.

use super::radius::{crossing, psi};
use crate::fixed::ONE;

/// Classes of |g|: the last holds all of 2⁻¹⁹ and below.
pub const CLASSES: usize = 20;

/// λ = 2⁸ … 2⁻¹⁴: the best one is √(2·ln(46/α)/V), for V = Σg² from 10⁻⁴ to 10⁹.
const LAMBDAS: usize = 23;

/// Binary logarithm of the largest λ.
const TOP: f64 = 8.0;

/// The second penalty is paid where cλ is at most this: beyond, ψ is more than half again the
/// first.
const REACH: f64 = 0.5;

/// Σg² and Σx² of one class, in units of 2⁻⁶⁴.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Squares {
    /// Σg².
    pub weight: u128,
    /// Σx².
    pub increment: u128,
}

/// Σg² and Σx² of weighted residuals by size of g, from which the radius follows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Drift {
    /// By class of |g|: class k holds 2⁻⁽ᵏ⁺¹⁾ < |g| ≤ 2⁻ᵏ.
    pub classes: [Squares; CLASSES],
}

impl Drift {
    /// Takes an event with `weight` g, |g| ≤ 1, and `residual` 2(y − m), both in units of 2⁻³².
    #[inline]
    pub fn observe(&mut self, weight: i64, residual: i64) {
        let g = weight.unsigned_abs();
        if g == 0 {
            return;
        }
        let class = ((g - 1).leading_zeros() as usize)
            .saturating_sub(32)
            .min(CLASSES - 1);
        let wide = u128::from(g) * u128::from(residual.unsigned_abs());
        let x = wide.div_ceil(u128::from(ONE));
        let squares = &mut self.classes[class];
        squares.weight += u128::from(g) * u128::from(g);
        squares.increment += x * x;
    }

    /// Adds the sums of other events.
    pub fn merge(&mut self, o: &Drift) {
        for (ours, theirs) in self.classes.iter_mut().zip(&o.classes) {
            ours.weight += theirs.weight;
            ours.increment += theirs.increment;
        }
    }

    /// r(α), for one side: at any time Σx exceeds the sum of its conditional means by r(α) with
    /// probability at most α.
    pub fn radius(&self, alpha: f64) -> f64 {
        let unit = (ONE as f64) * (ONE as f64);
        let squares = self.classes.map(|s| {
            let (weight, increment) = (s.weight as f64, s.increment as f64);
            (weight / unit, increment / unit)
        });
        let lambda: [f64; LAMBDAS] = std::array::from_fn(|g| (TOP - g as f64).exp2());
        let (mut all, mut penalties) = (Vec::new(), Vec::new());
        for l in lambda {
            let (mut first, mut second) = (0.0, 0.0);
            for (k, &(weight, increment)) in squares.iter().enumerate() {
                let c = (1.0 - k as f64).exp2().min(1.0);
                let known = 0.5 * l * l * weight;
                first += known;
                second += match c * l <= REACH {
                    true => psi(l, c) * increment,
                    false => known,
                };
            }
            all.extend([l, l]);
            penalties.extend([first, second]);
        }
        crossing(&all, &penalties, alpha)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: i64 = ONE as i64;

    #[test]
    fn each_weight_goes_to_the_class_that_bounds_it() {
        for (weight, class) in [
            (UNIT, 0),
            (UNIT / 2 + 1, 0),
            (UNIT / 2, 1),
            (-UNIT / 4, 2),
            (1, CLASSES - 1),
        ] {
            let mut drift = Drift::default();
            drift.observe(weight, UNIT);
            let held = |s: &Squares| s.weight > 0;
            assert_eq!(drift.classes.iter().position(held), Some(class), "{weight}");
        }
        let mut none = Drift::default();
        none.observe(0, UNIT);
        assert_eq!(none, Drift::default());
    }

    #[test]
    fn the_radius_is_near_the_law_of_the_iterated_logarithm_at_every_scale() {
        // n events of weight g at m = y's mean: between the radius of one look and three times
        // that.
        for shift in [1, 6, 12] {
            for n in [1_000u64, 100_000, 10_000_000] {
                let g = (UNIT >> shift) as u128;
                let mut drift = Drift::default();
                drift.classes[shift] = Squares {
                    weight: g * g * u128::from(n),
                    increment: g * g * u128::from(n),
                };
                let sd = (n as f64).sqrt() * 0.5f64.powi(shift as i32);
                let ratio = drift.radius(0.025) / (1.96 * sd);
                // Few events of great weight: λ is bounded by none of them, of tiny weight by 2⁸.
                assert!(
                    (1.0..3.0).contains(&ratio) || sd < 0.05,
                    "{shift} {n} {ratio}"
                );
            }
        }
    }

    #[test]
    fn rare_events_are_paid_by_their_own_variance() {
        // Outcomes of rate 0.01 and scores about there: x² is small where y = 0.
        let (n, rate, g) = (1_000_000u64, 0.01, UNIT >> 8);
        let mut drift = Drift::default();
        let m = UNIT / 100;
        for i in 0..n / 1000 {
            let y = if i % 100 == 0 { UNIT } else { 0 };
            drift.observe(g, 2 * (y - m));
        }
        let known = Drift {
            classes: drift.classes.map(|s| Squares {
                weight: s.weight,
                increment: s.weight,
            }),
        };
        let ratio = drift.radius(0.025) / known.radius(0.025);
        assert!(ratio < 0.75, "{ratio} at rate {rate}");
    }
}
