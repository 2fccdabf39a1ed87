//! Fixed point: the unit in which every sum is kept.
//!
//! A score z in [0, 1] is rounded once to a multiple of 2⁻³², and every sum of scores, squares and
//! products is a sum of such integers. Integer addition is associative and exactly undone by
//! subtraction, so a window's total is the same to the last bit whatever the order of events, the
//! number of workers, the window's history or a restart. Floating accumulators have none of this:
//! they drift, and their drift depends on the order.
//!
//! Rounding costs at most 2⁻³³ an event, some eight orders of magnitude below the sampling noise of
//! one outcome. 1.0 is 2³², so a score needs 33 bits and a sum of n scores 33 + log₂ n bits.

/// One in fixed point: 2³².
pub const ONE: u64 = 1 << 32;

const ONE_F: f64 = ONE as f64;

/// A checked score: a finite number in [0, 1], with the fixed-point value that the sums use.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Score(f64);

/// Why a number is not a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScoreError {
    /// NaN or an infinity.
    NotFinite,
    /// Below 0 or above 1.
    OutOfRange,
}

impl Score {
    /// Checks `z`; nothing is clamped. −0.0 is 0.
    pub fn new(z: f64) -> Result<Score, ScoreError> {
        if !z.is_finite() {
            Err(ScoreError::NotFinite)
        } else if !(0.0..=1.0).contains(&z) {
            Err(ScoreError::OutOfRange)
        } else {
            Ok(Score(z + 0.0))
        }
    }

    /// The score as it came.
    pub fn value(self) -> f64 {
        self.0
    }

    /// The score in units of 2⁻³², rounded to nearest; from 0 to [`ONE`].
    pub fn fixed(self) -> u64 {
        to_fixed(self.0)
    }
}

/// Rounds x in [0, 1] to units of 2⁻³².
pub fn to_fixed(x: f64) -> u64 {
    (x * ONE_F + 0.5) as u64
}

/// Rounds any finite x to units of 2⁻³², half away from zero.
pub fn to_fixed_signed(x: f64) -> i128 {
    (x * ONE_F).round() as i128
}

/// A fixed-point sum as a float.
pub fn from_fixed(x: i128) -> f64 {
    x as f64 / ONE_F
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_checked_and_never_clamped() {
        assert_eq!(Score::new(f64::NAN), Err(ScoreError::NotFinite));
        assert_eq!(Score::new(1.2), Err(ScoreError::OutOfRange));
        assert_eq!(Score::new(-0.1), Err(ScoreError::OutOfRange));
        assert_eq!(Score::new(1.0).unwrap().fixed(), ONE);
        assert_eq!(Score::new(-0.0).unwrap().fixed(), 0);
    }

    #[test]
    fn rounding_costs_at_most_half_a_unit() {
        for i in 0..1000 {
            let z = f64::from(i) / 999.0;
            assert!((from_fixed(i128::from(to_fixed(z))) - z).abs() <= 0.5 / ONE_F);
        }
    }
}
