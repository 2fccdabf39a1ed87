//! Exact conversion from decimal to binary.
//!
//! A decimal m·10⁻ᵏ with m ≤ 2⁵³ and k ≤ 22 is one correctly rounded division of two exact doubles,
//! and so is correctly rounded itself (Clinger 1990, How to read floating point numbers
//! accurately). Scores of up to fifteen digits are of this kind. All others go to the standard
//! library, which is exact too, so both ways yield the same bits.

const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// The double nearest to a JSON number; infinity if it is out of range.
#[inline]
pub(super) fn parse(text: &str) -> f64 {
    match short(text.as_bytes()) {
        Some(x) => x,
        None => text.parse().unwrap_or(f64::NAN),
    }
}

/// The fast path; `None` for a sign, an exponent or too many digits.
#[inline]
fn short(text: &[u8]) -> Option<f64> {
    // 18 digits cannot overflow a u64.
    if text.len() > 19 {
        return None;
    }
    let mut m: u64 = 0;
    let mut point = None;
    for (i, &b) in text.iter().enumerate() {
        if b.is_ascii_digit() {
            m = m * 10 + u64::from(b - b'0');
        } else if b == b'.' && point.is_none() {
            point = Some(i);
        } else {
            return None;
        }
    }
    let k = point.map_or(0, |p| text.len() - 1 - p);
    if m > 1 << 53 || text.is_empty() || (point.is_none() && text.len() > 18) {
        return None;
    }
    POWERS.get(k).map(|p| m as f64 / p)
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
