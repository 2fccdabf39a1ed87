//! What an interval needs of a level: the unbiased estimate of the squared error, and its spread.

use super::estimator;
use super::levels::Level;
use super::null::Moments;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Estimate {
    /// T, the unbiased estimate of the squared ℓ2-ECE.
    pub t: f64,
    /// σ̂₁², n times the variance of T off the null; rounding can leave it a hair under 0.
    pub sigma1_squared: f64,
    /// Moments of T under the null given the scores.
    pub null: Moments,
    /// (1/n) Σ_{N≥2} ΣV/(N−1): what T is too large by where whole cells vary twice as much as
    /// independent outcomes.
    pub excess: f64,
}

impl Estimate {
    /// The estimate at a level of a sample of `n` events.
    pub fn of(level: &Level, n: f64) -> Estimate {
        if level.is_weighted() {
            return Estimate::of_weighted(level);
        }
        let (mut t, mut fourth, mut second, mut mixed) = (0.0, 0.0, 0.0, 0.0);
        let mut excess = 0.0;
        for c in level.occupied.iter() {
            let e = c.u / c.n;
            let e2 = e * e;
            second += c.n * e2;
            fourth += c.n * e2 * e2;
            mixed += c.n * e2 * (c.u2 / c.n - e2);
            if c.n >= 2.0 {
                t += (c.u * c.u - c.u2) / (c.n - 1.0);
                excess += c.v / (c.n - 1.0);
            }
        }
        Estimate {
            t: t / n,
            sigma1_squared: fourth / n - (second / n) * (second / n) + 4.0 * mixed / n,
            null: Moments::of_unbiased(level),
            excess: excess / n,
        }
    }

    /// The same of weighted events; σ̂₁² is that of n events, n the effective number. See
    /// [`super::weighted`].
    fn of_weighted(level: &Level) -> Estimate {
        let (mut mass, mut squares, mut second) = (0.0, 0.0, 0.0);
        for (c, moments) in level.squares() {
            mass += c.n;
            squares += moments.w2;
            second += c.u * c.u / c.n;
        }
        let (mut spread, mut excess) = (0.0, 0.0);
        for (c, moments) in level.squares() {
            if c.count >= 2.0 {
                excess += c.v / (c.n - moments.w2 / c.n);
            }
            let e = c.u / c.n;
            let rest = e * e + second / mass;
            spread += 4.0 * e * e * c.u2 - 4.0 * e * rest * moments.w2u + rest * rest * moments.w2;
        }
        Estimate {
            t: estimator::unbiased(level),
            // n/W² with n = W²/Σw².
            sigma1_squared: spread / squares,
            null: Moments::of_unbiased(level),
            excess: excess / mass,
        }
    }

    /// Upper p-value of T under the null given the scores, by the Pearson type III law of its
    /// three cumulants; 1 without null variance unless T is positive.
    pub fn null_p_value(&self) -> f64 {
        self.null.survival(self.t)
    }
}
