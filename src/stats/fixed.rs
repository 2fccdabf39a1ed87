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

/// Scores enter a logarithm no nearer to 0 and 1 than this: one unit.
pub(crate) const CLIP: f64 = 1.0 / ONE_F;

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
    /// The score 0.
    pub const ZERO: Score = Score(0.0);

    /// Checks `z`; nothing is clamped. −0.0 is 0.
    #[inline]
    pub fn new(z: f64) -> Result<Score, ScoreError> {
        if (0.0..=1.0).contains(&z) {
            Ok(Score(z + 0.0))
        } else if z.is_finite() {
            Err(ScoreError::OutOfRange)
        } else {
            Err(ScoreError::NotFinite)
        }
    }

    /// The score as it came.
    #[inline]
    pub fn value(self) -> f64 {
        self.0
    }

    /// The score in units of 2⁻³², rounded to nearest, half to even; from 0 to [`ONE`].
    #[inline]
    pub fn fixed(self) -> u64 {
        to_fixed(self.0) as u64
    }
}

/// A score and its outcome in eight bytes, as they are buffered: the bits of the score, with the
/// outcome in place of the sign, which is never used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scored(u64);

const SIGN: u64 = 1 << 63;

impl Scored {
    /// The score with its outcome.
    #[inline]
    pub fn new(score: Score, outcome: bool) -> Scored {
        Scored(score.0.to_bits() | u64::from(outcome) << 63)
    }

    /// The score.
    #[inline]
    pub fn score(self) -> Score {
        Score(f64::from_bits(self.0 & !SIGN))
    }

    /// The outcome.
    #[inline]
    pub fn outcome(self) -> bool {
        self.0 & SIGN != 0
    }
}

/// Rounds x, |x| < 2¹⁹, to units of 2⁻³², half to even.
#[inline]
pub fn to_fixed(x: f64) -> i64 {
    to_shifted(x).wrapping_sub(SHIFTED_ZERO)
}

/// 1.5·2²⁰, whose last bit is the unit, 2⁻³².
const SHIFT: f64 = 1.5 * (1u64 << 20) as f64;

/// What [`to_shifted`] makes of 0.
pub(crate) const SHIFTED_ZERO: i64 = SHIFT.to_bits() as i64;

/// [`to_fixed`] plus [`SHIFTED_ZERO`], which a sum of many can take out at once.
///
/// It adds 1.5·2²⁰: a double of that size has no bits left below the unit, so the addition rounds,
/// and the integer stands in the low bits of the sum. `f64::round` is a call into the C library on
/// processors without an instruction for it.
#[inline]
pub(crate) fn to_shifted(x: f64) -> i64 {
    (x + SHIFT).to_bits() as i64
}

/// A fixed-point sum as a float.
#[inline]
pub fn from_fixed(x: i128) -> f64 {
    // The processor converts 64 bits itself, and rounds like the library call that 128 bits need.
    match i64::try_from(x) {
        Ok(x) => x as f64 / ONE_F,
        Err(_) => from_wide(x),
    }
}

/// [`from_fixed`] for any sum. Not inline, else it would be called before it is known to be needed.
#[cold]
#[inline(never)]
fn from_wide(x: i128) -> f64 {
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
            let x = 1000.0 * (z - 0.5);
            assert_eq!(to_fixed(x), (x * ONE_F).round_ties_even() as i64);
        }
        let ties = [0.5, 1.5, -0.5, -1.5].map(|x| to_fixed(x / ONE_F));
        assert_eq!(ties, [0, 2, 0, -2]);
    }
}
