//! Exact conversion from decimal to binary.
//!
//! A decimal m·10⁻ᵏ with m ≤ 2⁵³ and k ≤ 22 is one correctly rounded division of two exact doubles,
//! and so is correctly rounded itself (Clinger 1990, How to read floating point numbers
//! accurately). Scores of up to fifteen digits are of this kind. All others go to the standard
//! library, which is exact too, so both ways yield the same bits.

use super::words;

const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Powers of ten that multiply digits: nineteen digits in all cannot overflow.
const TENS: [u64; 19] = {
    let mut tens = [1; 19];
    let mut k = 1;
    while k < 19 {
        tens[k] = 10 * tens[k - 1];
        k += 1;
    }
    tens
};

/// The double nearest to a JSON number; infinity if it is out of range.
#[inline]
pub(super) fn parse(text: &str) -> f64 {
    checked(text).unwrap_or(f64::NAN)
}

/// What the standard library takes for a number, by the same bits.
#[inline]
pub(super) fn checked(text: &str) -> Option<f64> {
    short(text.as_bytes()).or_else(|| text.parse().ok())
}

/// The fast path; `None` for a sign, an exponent or too many digits.
#[inline]
fn short(text: &[u8]) -> Option<f64> {
    let whole = words::digits_at(text, 0);
    let (whole, rest) = text.split_at(whole);
    let m = words::number(whole)?;
    let (m, k) = match rest {
        [] => (m, 0),
        [b'.', decimals @ ..] if whole.len() + decimals.len() <= 19 => {
            let shift = TENS.get(decimals.len())?;
            (m * shift + words::number(decimals)?, decimals.len())
        }
        _ => return None,
    };
    if m > 1 << 53 {
        return None;
    }
    POWERS.get(k).map(|p| m as f64 / p)
}

/// A whole number of milliseconds or the like; `None` if it is none or out of range.
#[inline]
pub(super) fn whole(text: &str) -> Option<i64> {
    match words::number(text.as_bytes()) {
        Some(n) => i64::try_from(n).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_edges_of_the_fast_way_are_exact() {
        for t in [
            "0",
            "1",
            "0.1",
            "0.30000000000000004",
            "9007199254740992",
            "9007199254740993",
            "0.00000000000000001",
            "1e-7",
            "-0.0",
            "0.9999999999999999",
            "999999999999999999",
            "18446744073709551615",
            "9999999999999999999",
        ] {
            assert_eq!(
                parse(t).to_bits(),
                t.parse::<f64>().unwrap().to_bits(),
                "{t}"
            );
        }
    }

    proptest! {
        #[test]
        fn both_ways_give_the_same_bits(t in "(0|[1-9][0-9]{0,20})(\\.[0-9]{1,22})?(e-?[0-9]{1,3})?") {
            prop_assert_eq!(parse(&t).to_bits(), t.parse::<f64>().unwrap().to_bits());
        }
    }
}
