//! Exact conversion from decimal to binary.
//!
//! A decimal of at most nineteen digits is a fraction m·10⁻ᵏ = (m / 5ᵏ)·2⁻ᵏ of two integers of 64
//! bits. One division with remainder gives more bits of the quotient than a double holds, and the
//! remainder tells whether more bits follow, so the quotient is rounded once and correctly: to the
//! nearest, and to the even one of two. The division is two multiplications by a reciprocal (Möller
//! and Granlund 2011, Improved division by invariant integers, algorithm 4). All other numbers go
//! to the standard library, which is exact too, so both ways yield the same bits.

use super::words;

/// Powers of ten that multiply digits: nineteen digits in all cannot overflow.
const TENS: [u64; 20] = {
    let mut tens = [1; 20];
    let mut k = 1;
    while k < 20 {
        tens[k] = 10 * tens[k - 1];
        k += 1;
    }
    tens
};

/// A power of five as a divisor.
#[derive(Clone, Copy)]
struct Divisor {
    /// The power, shifted until its top bit is set.
    power: u64,
    shift: u32,
    /// ⌊(2¹²⁸ − 1) / power⌋ − 2⁶⁴.
    reciprocal: u64,
}

/// 5⁰ to 5¹⁹.
const FIVES: [Divisor; 20] = {
    let mut all = [Divisor {
        power: 0,
        shift: 0,
        reciprocal: 0,
    }; 20];
    let (mut five, mut k) = (1u64, 0);
    while k < 20 {
        let shift = five.leading_zeros();
        let power = five << shift;
        all[k] = Divisor {
            power,
            shift,
            reciprocal: (u128::MAX / power as u128 - (1 << 64)) as u64,
        };
        five *= 5;
        k += 1;
    }
    all
};

#[derive(Debug, Clone, Copy)]
pub(super) struct Number<'a> {
    /// The text of the number.
    text: &'a [u8],
    /// The value, if already known.
    read: Option<Decimal>,
}

/// `digits`·10^−`decimals`, of at most nineteen digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    pub digits: u64,
    /// At most 19.
    pub decimals: u8,
}

impl<'a> Number<'a> {
    /// A number in the grammar of JSON, and its value, if already known.
    #[inline(always)]
    pub fn new(text: &'a [u8], read: Option<Decimal>) -> Number<'a> {
        Number { text, read }
    }

    /// The number as it is written.
    pub fn text(self) -> &'a str {
        // UTF-8 was checked with the whole record.
        std::str::from_utf8(self.text).unwrap_or_default()
    }

    /// The nearest double; infinity if out of range, NaN if it is not a number.
    #[inline(always)]
    pub fn double(self) -> f64 {
        self.value().unwrap_or(f64::NAN)
    }

    /// The nearest double; `None` if it is not a number, which a cell of a table need not be.
    #[inline(always)]
    pub fn value(self) -> Option<f64> {
        match self.read {
            Some(read) => Some(read.double()),
            None => checked(self.text()),
        }
    }

    /// The number as an integer, if it is written without point or exponent and is in range.
    #[inline(always)]
    pub fn whole(self) -> Option<i64> {
        match self.read {
            Some(Decimal {
                digits,
                decimals: 0,
            }) => i64::try_from(digits).ok(),
            Some(_) => None,
            None => whole(self.text()),
        }
    }
}

impl Decimal {
    /// Reads a number without sign and exponent at the beginning of `bytes`: its value, and its
    /// length. `None` leaves it to the standard library.
    #[inline(always)]
    pub fn read(bytes: &[u8]) -> Option<(Decimal, usize)> {
        let (whole, length) = digits(bytes)?;
        if length == 0 || (length > 1 && bytes.first() == Some(&b'0')) {
            return None;
        }
        if bytes.get(length) != Some(&b'.') {
            let read = Decimal {
                digits: whole,
                decimals: 0,
            };
            return Some((read, length));
        }
        let (part, decimals) = digits(&bytes[length + 1..])?;
        if decimals == 0 || length + decimals > 19 {
            return None;
        }
        let read = Decimal {
            digits: Decimal::joined(whole, part, decimals),
            decimals: decimals as u8,
        };
        Some((read, length + 1 + decimals))
    }

    /// Joins the digits of `first` and `second`. `second` has `digits` digits; both together have
    /// at most nineteen, so the result fits.
    #[inline(always)]
    pub fn joined(first: u64, second: u64, digits: usize) -> u64 {
        let tens = TENS.get(digits).copied().unwrap_or(0);
        first.wrapping_mul(tens).wrapping_add(second)
    }

    /// The nearest double.
    #[inline(always)]
    pub fn double(self) -> f64 {
        let Decimal { digits, decimals } = self;
        if digits == 0 || decimals == 0 {
            return digits as f64;
        }
        let by = FIVES[usize::from(decimals)];
        // The dividend is 2⁶³ times the digits, shifted until their top bit is set. The quotient
        // lies between 2⁶² and 2⁶⁴.
        let shift = digits.leading_zeros();
        let top = digits << shift;
        let (high, low) = (top >> 1, top << 63);
        let estimate = (u128::from(by.reciprocal) * u128::from(high))
            .wrapping_add(u128::from(high) << 64 | u128::from(low));
        let mut quotient = ((estimate >> 64) as u64).wrapping_add(1);
        let mut rest = low.wrapping_sub(quotient.wrapping_mul(by.power));
        // No branch: the outcome is unpredictable.
        let over = u64::from(rest > estimate as u64);
        quotient = quotient.wrapping_sub(over);
        rest = rest.wrapping_add(over.wrapping_neg() & by.power);
        if rest >= by.power {
            quotient = quotient.wrapping_add(1);
            rest = rest.wrapping_sub(by.power);
        }
        // Rounds to 53 bits: up if the rest exceeds half a unit, or equals half and the mantissa is
        // odd.
        let lead = quotient.leading_zeros();
        let quotient = quotient << lead;
        let (mantissa, below) = (quotient >> 11, quotient & 0x7ff);
        let up = (below | u64::from(rest != 0)) + (mantissa & 1) > 0x400;
        let exponent = (1022 + by.shift).wrapping_sub(shift + lead + u32::from(decimals));
        let bits = (u64::from(exponent) << 52).wrapping_add(mantissa);
        f64::from_bits(bits.wrapping_add(u64::from(up)))
    }
}

/// The number formed by the digits at the start of `bytes`, and how many there are; `None` for more
/// than nineteen.
#[inline(always)]
pub(super) fn digits(bytes: &[u8]) -> Option<(u64, usize)> {
    let (first, n) = words::leading_digits(words::word_or_zeros(bytes, 0));
    if n < 8 {
        return Some((first, n));
    }
    let (second, n) = words::leading_digits(words::word_or_zeros(bytes, 8));
    let both = Decimal::joined(first, second, n);
    if n < 8 {
        return Some((both, 8 + n));
    }
    let (third, n) = words::leading_digits(words::word_or_zeros(bytes, 16));
    (n <= 3).then(|| (Decimal::joined(both, third, n), 16 + n))
}

/// Parses whatever the standard library accepts as a number, with the same bits.
#[inline]
pub(super) fn checked(text: &str) -> Option<f64> {
    match Decimal::read(text.as_bytes()) {
        Some((read, length)) if length == text.len() => Some(read.double()),
        _ => text.parse().ok(),
    }
}

/// Parses a whole number, such as milliseconds; `None` if it is not one or out of range.
#[inline]
pub(super) fn whole(text: &str) -> Option<i64> {
    match Decimal::read(text.as_bytes()) {
        Some((read, length)) if length == text.len() && read.decimals == 0 => {
            i64::try_from(read.digits).ok()
        }
        _ => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn same(t: &str) {
        let expected: f64 = t.parse().unwrap();
        let got = checked(t).unwrap();
        assert_eq!(got.to_bits(), expected.to_bits(), "{t}");
        assert_eq!(
            Number::new(t.as_bytes(), None).double().to_bits(),
            expected.to_bits()
        );
    }

    #[test]
    fn the_edges_of_the_fast_way_are_exact() {
        for t in [
            "0",
            "0.0",
            "0.0000000000000000000",
            "1",
            "0.1",
            "0.30000000000000004",
            "9007199254740992",
            "9007199254740993",
            "9007199254740993.0",
            "0.00000000000000001",
            "0.0000000000000000001",
            "1e-7",
            "-0.0",
            "0.9999999999999999",
            "0.99999999999999999",
            "0.9999999999999999999",
            "999999999999999999",
            "18446744073709551615",
            "9999999999999999999",
            "999999999999999999.9",
            "9.999999999999999999",
            "1.8446744073709551616",
        ] {
            same(t);
        }
    }

    #[test]
    fn halves_between_two_doubles_and_their_neighbours_are_rounded_as_the_standard_library_does() {
        // (2⁵³ + 2i + 1) / 2⁵⁴⁻ᵇ lies half way between two doubles, and has few digits where b is
        // small.
        for i in (0..4000u64).map(|i| i * i * 7919) {
            for (bits, ten) in TENS.iter().enumerate().take(11).skip(1) {
                let odd = (1u64 << 53) + 2 * i + 1;
                let (whole, part) = (odd >> bits, odd & ((1 << bits) - 1));
                let decimals = part * ten / (1 << bits);
                let text = format!("{whole}.{decimals:0bits$}");
                if text.len() <= 20 {
                    let read = Decimal::read(text.as_bytes()).expect("short").0;
                    for digits in [read.digits - 1, read.digits, read.digits + 1] {
                        let (whole, part) = (digits / ten, digits % ten);
                        same(&format!("{whole}.{part:0bits$}"));
                    }
                }
            }
        }
    }

    #[test]
    fn no_divisor_is_off_at_the_ends_of_its_quotients() {
        for k in 1..20 {
            let five = 5u64.checked_pow(k).expect("below 2⁶⁴");
            for times in [1, 2, 3, 1 << 20, u64::MAX / five / 2, u64::MAX / five] {
                for near in -2i64..=2 {
                    let digits = five.saturating_mul(times).saturating_add_signed(near);
                    let decimals = k as u8;
                    let text = format!("{digits}e-{k}");
                    let got = Decimal { digits, decimals }.double();
                    let expected: f64 = text.parse().unwrap();
                    assert_eq!(got.to_bits(), expected.to_bits(), "{text}");
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn both_ways_give_the_same_bits(t in "(0|[1-9][0-9]{0,20})(\\.[0-9]{1,22})?(e-?[0-9]{1,3})?") {
            same(&t);
        }

        #[test]
        fn what_is_read_ends_where_the_number_ends(t in "(0|[1-9][0-9]{0,20})(\\.[0-9]{1,20})?", after in "[,} e.x]{0,9}") {
            let all = format!("{t}{after}");
            if let Some((read, length)) = Decimal::read(all.as_bytes()) {
                prop_assert_eq!(length, t.len());
                prop_assert_eq!(read.double().to_bits(), t.parse::<f64>().unwrap().to_bits());
            }
        }

        #[test]
        fn every_decimal_is_divided_exactly(digits: u64, decimals in 0u8..20) {
            let text = format!("{digits}e-{decimals}");
            let got = Decimal { digits, decimals }.double();
            prop_assert_eq!(got.to_bits(), text.parse::<f64>().unwrap().to_bits());
        }

        #[test]
        fn whole_numbers_are_those_of_the_standard_library(t in "-?[0-9]{1,20}(\\.0)?") {
            prop_assert_eq!(whole(&t), t.parse().ok());
        }
    }
}
