//! Exponential with the same bits on every machine.
//!
//! The state of a detector is compared to the last bit after a restart on another machine, so it
//! must not depend on the C library's `exp`, whose last bit depends on the processor. The detector
//! also takes up to three thousand exponentials a pane, which here are a loop of vector code. With
//! k the integer nearest to 64·x/ln 2,
//!
//! ```text
//! eˣ = 2^(⌊k/64⌋) · 2^((k mod 64)/64) · eʳ,   r = x − k·(ln 2)/64,   |r| ≤ 2⁻⁷·ln 2
//! ```
//!
//! The second factor comes from a table of half a kilobyte, the last from five terms of its series.
//! (ln 2)/64 is a sum of two doubles; the first has so few bits that its product with k is exact.
//! Only additions and multiplications of doubles are used, never fused, so IEEE 754 fixes every
//! bit.
//!
//! Always: the relative error is below 2⁻⁵¹ (the series leaves r⁶/720 = 2⁻⁵⁴; the table and the
//! last steps round by 2⁻⁵³ each). Source: P. T. P. Tang, "Table-driven implementation of the
//! exponential function in IEEE floating-point arithmetic" (1989), simplified.

use std::f64::consts::LN_2;

/// Bits of k that choose from the table; with 6 five terms are enough.
const TABLE_BITS: u32 = 6;

/// Powers of 2 by 64ths. The bits that k adds to the exponent's end are taken off beforehand.
static TABLE: [u64; 1 << TABLE_BITS] = table();

/// Least number whose exponential is taken.
const LEAST: f64 = -700.0;

/// Adding this puts the integer nearest to a number into its last bits.
const SHIFT: f64 = 1.5 * (1u64 << 52) as f64;

/// eˣ for x up to 700. Below −700, and for −∞ and NaN, it is e⁻⁷⁰⁰ = 10⁻³⁰⁴; it is an error to call
/// this with others.
#[inline]
pub fn exp(x: f64) -> f64 {
    let mut one = [x];
    exp_each(&mut one);
    one[0]
}

/// Replaces each number by its exponential, to the bits of [`exp`]: the table is looked up by
/// itself, so that the rest becomes vector code.
#[inline]
pub fn exp_each<const N: usize>(numbers: &mut [f64; N]) {
    const PER_STEP: f64 = TABLE.len() as f64 / LN_2;
    let (mut nearest, mut powers) = ([0.0; N], [0; N]);
    for (k, x) in nearest.iter_mut().zip(&mut *numbers) {
        *x = if *x > LEAST { *x } else { LEAST };
        *k = *x * PER_STEP + SHIFT;
    }
    for (power, k) in powers.iter_mut().zip(&nearest) {
        *power = TABLE[k.to_bits() as usize % TABLE.len()];
    }
    for ((x, k), power) in numbers.iter_mut().zip(&nearest).zip(&powers) {
        let power = power.wrapping_add(k.to_bits() << (52 - TABLE_BITS));
        *x = by_power(*x, k - SHIFT, f64::from_bits(power));
    }
}

/// eˣ from k and 2^(k/64).
#[inline]
fn by_power(x: f64, k: f64, power: f64) -> f64 {
    // 21 trailing bits are 0, as in FreeBSD's e_exp.c.
    const LN_2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
    const LN_2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);
    const STEP: f64 = 1.0 / TABLE.len() as f64;
    let r = (x - k * (LN_2_HIGH * STEP)) - k * (LN_2_LOW * STEP);
    let series = r + r * r * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0))));
    power + power * series
}

const fn table() -> [u64; 1 << TABLE_BITS] {
    let mut table = [0; 1 << TABLE_BITS];
    let mut i = 0;
    while i < table.len() {
        let power = exp_by_series(i as f64 / table.len() as f64 * LN_2);
        table[i] = power
            .to_bits()
            .wrapping_sub((i as u64) << (52 - TABLE_BITS));
        i += 1;
    }
    table
}

/// eˣ for x in [0, 1).
const fn exp_by_series(x: f64) -> f64 {
    let mut sum = 1.0;
    let mut k = 20;
    while k > 0 {
        sum = 1.0 + sum * x / k as f64;
        k -= 1;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn it_agrees_with_the_library_to_fifty_one_bits() {
        let mut rng = Rng::new(12);
        let mut off = 0.0f64;
        for i in 0..400_000 {
            let u = rng.uniform();
            let x = match i % 4 {
                0 => -u,
                1 => 1400.0 * (u - 0.5),
                2 => -u * u * u * u,
                _ => 0.5 * f64::from(i % 1000 - 500) / 64.0 * LN_2,
            };
            off = off.max((exp(x) / x.exp() - 1.0).abs());
        }
        assert!(off < (-51.0f64).exp2(), "2^{}", off.log2());
    }

    #[test]
    fn its_bits_are_these() {
        let seen = [0.0, 1.0, -0.1, -1e-9, 10.5, -650.0].map(|x| exp(x).to_bits());
        let expected = [
            0x3ff0_0000_0000_0000,
            0x4005_bf0a_8b14_5769,
            0x3fec_f46d_99d5_2b3a,
            0x3fef_ffff_ff76_8fa1,
            0x40e1_bb70_15e8_4d3b,
            0x0553_00ff_6c7c_2e28,
        ];
        assert_eq!(seen, expected, "{seen:#x?}");
    }

    #[test]
    fn what_lies_beyond_has_an_exponential_too() {
        let least = (-700.0f64).exp();
        let beyond = [-700.1, -1e300, f64::NEG_INFINITY, f64::NAN].map(exp);
        assert!(beyond.iter().all(|e| (e / least - 1.0).abs() < 1e-15));
        assert!(exp(700.0).is_finite());
    }
}
