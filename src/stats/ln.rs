//! Natural logarithm with the same bits on every machine.
//!
//! Sums are compared to the last bit after a restart on another machine, so they must not depend on
//! the C library's `ln`, whose rounding is not specified. Two logarithms an event would also be
//! most of the cost of an event. With x = 2ᵉ·m, 1 ≤ m < 2, and c the middle of the 256th of [1, 2)
//! that m lies in,
//!
//! ```text
//! ln x = e·ln 2 + ln c + ln(1 + r),   r = m/c − 1,   |r| ≤ 2⁻⁹
//! ```
//!
//! 1/c and ln c come from a table of four kilobytes, the last term from four terms of its series.
//! Only additions and multiplications of doubles are used, never fused, so IEEE 754 fixes every
//! bit.
//!
//! Always: the error is below 2⁻⁴⁵ for x from 2⁻³² to 2³² (the series leaves r⁵/5 = 2⁻⁴⁷, the
//! product e·ln 2 rounds by 2⁻⁴⁹); sums round what they take to 2⁻³². Source: P. T. P. Tang,
//! "Table-driven implementation of the logarithm function in IEEE floating-point arithmetic"
//! (1990), simplified.

use std::f64::consts::LN_2;

/// Bits of the mantissa that choose the row; with 8 four terms are enough.
const ROW_BITS: u32 = 8;

/// 1/c and ln c.
#[derive(Clone, Copy)]
struct Row {
    inverse: f64,
    ln: f64,
}

static ROWS: [Row; 1 << ROW_BITS] = rows();

/// ln x of a positive, normal x. For 0, subnormal numbers and +∞ it is some number beyond −708 and
/// 709; it is an error to call this with others.
#[inline]
pub fn ln(x: f64) -> f64 {
    by_row::<4>(x, row_of(x))
}

/// Replaces each number by its logarithm, to the bits of [`ln`]: rows are looked up first, so that
/// the rest becomes vector code.
pub fn ln_each<const N: usize>(numbers: &mut [f64; N]) {
    ln_each_by::<4, N>(numbers);
}

/// [`ln_each`] with TERMS terms of the series. Six leave r⁷/7 = 2⁻⁶⁵, so that the error is that of
/// rounding: below 2⁻⁵¹ for x from ½ to 2, else below 2⁻⁵¹ of the logarithm.
#[inline]
pub fn ln_each_by<const TERMS: usize, const N: usize>(numbers: &mut [f64; N]) {
    let mut rows = [Row {
        inverse: 0.0,
        ln: 0.0,
    }; N];
    for (row, x) in rows.iter_mut().zip(&*numbers) {
        *row = row_of(*x);
    }
    for (x, row) in numbers.iter_mut().zip(&rows) {
        *x = by_row::<TERMS>(*x, *row);
    }
}

#[inline]
fn row_of(x: f64) -> Row {
    ROWS[(x.to_bits() >> (52 - ROW_BITS)) as usize % ROWS.len()]
}

#[inline]
fn by_row<const TERMS: usize>(x: f64, row: Row) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    const ONE: u64 = 1023 << 52;
    // The low bits of a double of this size are an integer.
    const INTEGER: f64 = (1u64 << 52) as f64;
    let bits = x.to_bits();
    let e = f64::from_bits(bits >> 52 | INTEGER.to_bits()) - (INTEGER + 1023.0);
    let m = f64::from_bits(bits & MANTISSA | ONE);
    let r = m * row.inverse - 1.0;
    let last = 1.0 / TERMS as f64;
    let tail = (2..TERMS)
        .rev()
        .fold(last, |sum, k| 1.0 / k as f64 - r * sum);
    e * LN_2 + (row.ln + (r - r * r * tail))
}

const fn rows() -> [Row; 1 << ROW_BITS] {
    let mut rows = [Row {
        inverse: 1.0,
        ln: 0.0,
    }; 1 << ROW_BITS];
    let mut i = 0;
    while i < rows.len() {
        let inverse = 1.0 / (1.0 + (i as f64 + 0.5) / rows.len() as f64);
        rows[i] = Row {
            inverse,
            ln: -ln_by_series(inverse),
        };
        i += 1;
    }
    rows
}

/// ln x = 2·artanh((x − 1)/(x + 1)) for x in [½, 1]: terms fall by 9 or more each.
const fn ln_by_series(x: f64) -> f64 {
    let s = (x - 1.0) / (x + 1.0);
    let mut sum = 0.0;
    let mut k = 20;
    while k > 0 {
        k -= 1;
        sum = sum * s * s + 1.0 / (2 * k + 1) as f64;
    }
    2.0 * s * sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn it_agrees_with_the_library_to_forty_five_bits() {
        let mut rng = Rng::new(11);
        let mut off = 0.0f64;
        for i in 0..400_000 {
            let u = rng.uniform();
            let x = match i % 4 {
                0 => u,
                1 => 1.0 - u * u * u * u,
                2 => (44.0 * (u - 0.5)).exp(),
                _ => 1.0 + f64::from(i) / 400_000.0,
            };
            let x = x.max(1.0 / (1u64 << 32) as f64);
            off = off.max((ln(x) - x.ln()).abs());
        }
        assert!(off < (-45.0f64).exp2(), "2^{}", off.log2());
    }

    #[test]
    fn six_terms_agree_with_the_library_but_for_rounding() {
        let mut rng = Rng::new(13);
        let mut off = 0.0f64;
        for i in 0..400_000 {
            let u = rng.uniform();
            let x = match i % 3 {
                0 => 0.5 + 1.5 * u,
                1 => 1.0 + u * u * u * u,
                _ => (1200.0 * (u - 0.5)).exp(),
            };
            let mut one = [x];
            ln_each_by::<6, 1>(&mut one);
            off = off.max((one[0] - x.ln()).abs() / x.ln().abs().max(1.0));
        }
        assert!(off < (-51.0f64).exp2(), "2^{}", off.log2());
    }

    #[test]
    fn its_bits_are_these() {
        let seen = [0.5, 0.1, 0.9, 1.0, 3.0, 1e-9].map(|x| ln(x).to_bits());
        let expected = [
            0xbfe6_2e42_fefa_39bc,
            0xc002_6bb1_bbb5_5515,
            0xbfba_f8e8_210a_4158,
            0x3cf9_6480_0000_0000,
            0x3ff1_93ea_7aad_030e,
            0xc034_b927_f32b_ffb8,
        ];
        assert_eq!(seen, expected, "{seen:#x?}");
    }

    #[test]
    fn zero_and_infinity_lie_beyond_all_others() {
        assert!(ln(0.0) < -708.0 && ln(f64::INFINITY) > 709.0);
    }
}
