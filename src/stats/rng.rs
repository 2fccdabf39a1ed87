//! A small generator of uniform bits: xoshiro256++ (Blackman, Vigna 2019), seeded by SplitMix64.
//!
//! The redrawn samples of a test must be the same at every rerun of the same window, on every
//! machine, so the generator is part of the product and its seed an argument; there is no global
//! one. It is fast (under a nanosecond a draw) and has period 2²⁵⁶ − 1; it is not for secrets.

/// State of the generator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng {
    s: [u64; 4],
}

impl Rng {
    /// A generator whose whole sequence follows from `seed`; any value will do.
    pub fn new(seed: u64) -> Rng {
        let mut x = seed;
        let s = std::array::from_fn(|_| {
            x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = x;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        });
        Rng { s }
    }

    /// 64 uniform bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.s;
        let out = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        out
    }

    /// Uniform on [0, 1), a multiple of 2⁻⁵³.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform on 0, …, n − 1, for n of at least 1.
    pub fn below(&mut self, n: usize) -> usize {
        ((self.uniform() * n as f64) as usize).min(n - 1)
    }

    /// Puts a random choice of `count` elements first: the first steps of a shuffle.
    pub fn choose<T>(&mut self, elements: &mut [T], count: usize) {
        for i in 0..count {
            let j = i + self.below(elements.len() - i);
            elements.swap(i, j);
        }
    }

    /// Standard normal, by Marsaglia's polar method (one of the pair is thrown away: no state is
    /// kept).
    pub fn normal(&mut self) -> f64 {
        loop {
            let (a, b) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let s = a * a + b * b;
            if s > 0.0 && s < 1.0 {
                return a * (-2.0 * s.ln() / s).sqrt();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_follows_from_the_seed_and_its_moments_are_right() {
        let mut a = Rng::new(1);
        assert_eq!(a, Rng::new(1));
        let (mut u, mut u2, mut z2) = (0.0, 0.0, 0.0);
        for _ in 0..100_000 {
            let x = a.uniform();
            let z = a.normal();
            u += x;
            u2 += x * x;
            z2 += z * z;
        }
        // Four standard errors of each mean.
        assert!((u / 1e5 - 0.5).abs() < 4.0 * (1.0f64 / 12.0 / 1e5).sqrt());
        assert!((u2 / 1e5 - 1.0 / 3.0).abs() < 4.0 * (4.0f64 / 45.0 / 1e5).sqrt());
        assert!((z2 / 1e5 - 1.0).abs() < 4.0 * (2.0f64 / 1e5).sqrt());
    }
}
