//! Importance weights of records, and integers wide enough for their powers.
//!
//! Where records were sampled with unequal chances, a weight w > 0 proportional to the inverse of a
//! record's chance makes the sample speak for the population that it was drawn from (Horvitz and
//! Thompson, JASA 47, 1952). Sums of weighted events must be as exact as all others, so a weight is
//! fixed point: rounded once to a multiple of 2⁻¹⁶, below 2¹⁶. A weight of 1 is then 1 to the bit,
//! weights around 1 are off by at most 10⁻⁵ of themselves, and only their ratios matter: weights
//! that lie far from 1 should be divided by their mean. A weight that rounds to 0 or is too large
//! is refused; nothing is clamped.
//!
//! The null's third cumulant needs Σw⁶, 2²²³ at the bound on events: [`Wide`] has 256 bits.

/// One, in units of 2⁻¹⁶.
pub const WEIGHT_ONE: u64 = 1 << 16;

/// Units of sums of weights and of their products with scores, as floats.
pub(crate) const UNIT_16: f64 = 1.0 / (1u64 << 16) as f64;
pub(crate) const UNIT_32: f64 = UNIT_16 * UNIT_16;
pub(crate) const UNIT_48: f64 = UNIT_32 * UNIT_16;
pub(crate) const UNIT_64: f64 = UNIT_32 * UNIT_32;
pub(crate) const UNIT_96: f64 = UNIT_64 * UNIT_32;

/// Weights are below this, also once they are rounded.
pub const WEIGHT_LIMIT: f64 = 65536.0;

/// A checked weight: a multiple of 2⁻¹⁶, above 0 and below [`WEIGHT_LIMIT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight(u32);

/// Why a number is not a weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightError {
    /// NaN or an infinity.
    NotFinite,
    /// Zero or below.
    NotPositive,
    /// Above 0 and rounded to it: under 2⁻¹⁷.
    TooSmall,
    /// [`WEIGHT_LIMIT`] or more.
    TooLarge,
}

impl WeightError {
    /// What to do about it.
    pub fn remedy(self) -> &'static str {
        match self {
            WeightError::NotFinite => "a weight is a finite number above 0",
            WeightError::NotPositive => {
                "a weight is above 0; leave out records that stand for nothing"
            }
            WeightError::TooSmall => {
                "under half of the resolution of 1/65536; divide all weights by their mean"
            }
            WeightError::TooLarge => "not below 65536; divide all weights by their mean",
        }
    }
}

impl Weight {
    /// Checks `w` and rounds it to a multiple of 2⁻¹⁶, half to even.
    pub fn new(w: f64) -> Result<Weight, WeightError> {
        if !w.is_finite() {
            return Err(WeightError::NotFinite);
        }
        if w <= 0.0 {
            return Err(WeightError::NotPositive);
        }
        let fixed = (w * WEIGHT_ONE as f64).round_ties_even();
        if fixed < 1.0 {
            return Err(WeightError::TooSmall);
        }
        if fixed >= WEIGHT_LIMIT * WEIGHT_ONE as f64 {
            return Err(WeightError::TooLarge);
        }
        // An integer from 1 to 2³² − 1.
        Ok(Weight(fixed as u32))
    }

    /// In units of 2⁻¹⁶, at least 1.
    #[inline]
    pub fn fixed(self) -> u32 {
        self.0
    }

    /// The weight of these units; `None` for 0.
    pub fn from_fixed(fixed: u32) -> Option<Weight> {
        (fixed > 0).then_some(Weight(fixed))
    }

    /// The weight as a float, exactly.
    pub fn value(self) -> f64 {
        f64::from(self.0) / WEIGHT_ONE as f64
    }
}

/// An unsigned integer of 256 bits, in limbs of 64, the low one first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Wide(pub [u64; 4]);

impl Wide {
    /// The product a·b.
    pub fn product(a: u128, b: u128) -> Wide {
        let (a, b) = (halves(a), halves(b));
        let mut out = [0u64; 4];
        for (i, &x) in a.iter().enumerate() {
            let mut carry = 0u128;
            for (j, &y) in b.iter().enumerate() {
                // (2⁶⁴ − 1)² + 2(2⁶⁴ − 1) is 2¹²⁸ − 1.
                let sum = u128::from(x) * u128::from(y) + u128::from(out[i + j]) + carry;
                out[i + j] = sum as u64;
                carry = sum >> 64;
            }
            out[i + 2] = carry as u64;
        }
        Wide(out)
    }

    /// The sum, if it fits.
    pub fn checked_add(self, o: Wide) -> Option<Wide> {
        self.limbs(o, u64::overflowing_add)
    }

    /// The difference, if it is not below 0.
    pub fn checked_sub(self, o: Wide) -> Option<Wide> {
        self.limbs(o, u64::overflowing_sub)
    }

    fn limbs(self, o: Wide, f: fn(u64, u64) -> (u64, bool)) -> Option<Wide> {
        let (mut out, mut carry) = ([0u64; 4], false);
        for (k, limb) in out.iter_mut().enumerate() {
            let (part, first) = f(self.0[k], o.0[k]);
            let (part, second) = f(part, u64::from(carry));
            *limb = part;
            carry = first || second;
        }
        (!carry).then_some(Wide(out))
    }

    /// The integer as a float, rounded.
    pub fn value(self) -> f64 {
        const LIMB: f64 = 18_446_744_073_709_551_616.0;
        let limbs = self.0.iter().rev();
        limbs.fold(0.0, |sum, &limb| sum * LIMB + limb as f64)
    }

    /// Its two halves, the low one first.
    pub fn halves(self) -> [u128; 2] {
        let half = |low: u64, high: u64| u128::from(low) | u128::from(high) << 64;
        let [a, b, c, d] = self.0;
        [half(a, b), half(c, d)]
    }

    /// The number with these two halves.
    pub fn from_halves([low, high]: [u128; 2]) -> Wide {
        let ([a, b], [c, d]) = (halves(low), halves(high));
        Wide([a, b, c, d])
    }
}

/// Two limbs, the low one first.
#[inline]
pub(crate) fn halves(x: u128) -> [u64; 2] {
    [x as u64, (x >> 64) as u64]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_is_checked_and_never_clamped() {
        assert_eq!(Weight::new(1.0).map(Weight::fixed), Ok(65536));
        assert_eq!(Weight::new(2.5).map(Weight::value), Ok(2.5));
        for (w, error) in [
            (0.0, WeightError::NotPositive),
            (-0.0, WeightError::NotPositive),
            (-1.0, WeightError::NotPositive),
            (f64::NAN, WeightError::NotFinite),
            (f64::INFINITY, WeightError::NotFinite),
            (f64::NEG_INFINITY, WeightError::NotFinite),
            (7e-6, WeightError::TooSmall),
            (65536.0, WeightError::TooLarge),
            (1e300, WeightError::TooLarge),
        ] {
            assert_eq!(Weight::new(w), Err(error), "{w}");
            assert!(!error.remedy().is_empty());
        }
        assert_eq!(Weight::new(8e-6).map(Weight::fixed), Ok(1));
        assert!(Weight::new(65535.99).is_ok());
        assert_eq!(Weight::from_fixed(0), None);
    }

    #[test]
    fn wide_integers_multiply_add_and_subtract_exactly() {
        let most = Wide::product(u128::MAX, u128::MAX);
        // (2¹²⁸ − 1)² = 2²⁵⁶ − 2¹²⁹ + 1.
        assert_eq!(most, Wide([1, 0, u64::MAX - 1, u64::MAX]));
        assert_eq!(most.checked_add(most), None);
        assert_eq!(Wide::default().checked_sub(most), None);
        let (a, b) = (Wide::product(1 << 100, 1 << 60), Wide::product(7, 9));
        let sum = a.checked_add(b).unwrap();
        assert_eq!(sum.checked_sub(a), Some(b));
        assert_eq!(b.value(), 63.0);
        assert_eq!(a.value(), 2f64.powi(160));
        assert_eq!(Wide::from_halves(most.halves()), most);
        let carried = Wide([u64::MAX; 4])
            .checked_sub(Wide::product(1, 1))
            .unwrap();
        assert_eq!(carried, Wide([u64::MAX - 1, u64::MAX, u64::MAX, u64::MAX]));
    }
}
