//! Random Fourier features of the total variation kernel: the streaming form of the kernel error.
//!
//! exp(−TV(g, g′)/ν) is a product over classes of e^{−|g_c − g′_c|/(2ν)}, so its frequencies are
//! independent Cauchy draws of scale 1/(2ν), one a class (Rahimi, Recht 2007; Błasiok et al. 2023,
//! Algorithm 1, for scalars). With D frequencies ω, R_d = Σ δ e^{−iω_d·g} in C^K: the mean of
//! ‖R_d‖²/n² over d is unbiased for SKCE_b, off by about SKCE_b/√D. The diagonal ‖δ‖² is a sum of
//! its own, so the unbiased form follows.
//!
//! The same numbers are exact for another kernel, φ_D(g, g′) = mean over d of cos ω_d·(g − g′):
//! positive, 1 where g = g′. So the null law of SKCE_b given the predictions applies to them
//! unchanged ([`super::window`] uses it).
//!
//! Sums are integers in units of 2⁻³², as all sums of the product are: a merge of panes is exact
//! and has no order. The draws are fixed once for a monitor by their seed. Cost: O(DK) an event,
//! 16·D·K bytes a pane.

use super::vectors::Vectors;
use crate::algebra::{Merge, Overflow, Retract};
use crate::fixed::{from_fixed, to_fixed};
use crate::rng::Rng;
use std::f64::consts::PI;
use std::sync::Arc;

/// Sums of one set of events at fixed frequencies.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    classes: usize,
    /// One set for all panes of a monitor.
    frequencies: Arc<Vec<Vec<f64>>>,
    /// Re and Im of R, frequency by frequency, class by class.
    sums: Vec<(i128, i128)>,
    /// Σ‖δ‖² over events, δ = e_y − g.
    diagonal: i128,
    /// Mean of `diagonal` under the null given the predictions, Σ(1 − ‖g‖²).
    null_diagonal: i128,
    n: u64,
}

/// The sums of [`Features`], for storage.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FeatureParts {
    /// Re and Im of R, frequency by frequency, class by class.
    pub sums: Vec<(i128, i128)>,
    /// Σ‖δ‖².
    pub diagonal: i128,
    /// Σ(1 − ‖g‖²).
    pub null_diagonal: i128,
    /// n, the number of events.
    pub n: u64,
}

impl Features {
    /// No events; `count` frequencies for `classes` classes at scale `nu`, from the seed.
    pub fn new(classes: usize, nu: f64, count: usize, seed: u64) -> Features {
        let mut rng = Rng::new(seed);
        let mut cauchy = || (PI * (rng.uniform() - 0.5)).tan() / (2.0 * nu);
        let mut row = || (0..classes).map(|_| cauchy()).collect();
        Features::at(classes, (0..count).map(|_| row()).collect())
    }

    /// No events, at given frequencies of `classes` entries each.
    pub fn at(classes: usize, frequencies: Vec<Vec<f64>>) -> Features {
        Features {
            classes,
            sums: vec![(0, 0); classes * frequencies.len()],
            frequencies: Arc::new(frequencies),
            diagonal: 0,
            null_diagonal: 0,
            n: 0,
        }
    }

    /// A copy of the sums, for storage.
    pub fn parts(&self) -> FeatureParts {
        FeatureParts {
            sums: self.sums.clone(),
            diagonal: self.diagonal,
            null_diagonal: self.null_diagonal,
            n: self.n,
        }
    }

    /// These frequencies with other sums; `None` where the number of sums differs.
    pub fn with_parts(&self, parts: FeatureParts) -> Option<Features> {
        (parts.sums.len() == self.sums.len()).then(|| Features {
            classes: self.classes,
            frequencies: self.frequencies.clone(),
            sums: parts.sums,
            diagonal: parts.diagonal,
            null_diagonal: parts.null_diagonal,
            n: parts.n,
        })
    }

    /// D, the number of frequencies.
    pub fn count(&self) -> usize {
        self.frequencies.len()
    }

    /// n² times the estimate of SKCE_b, and its mean under the null given the predictions.
    pub fn total(&self) -> (f64, f64) {
        let n = self.n as f64;
        let values = self.values();
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        (n * n * mean, from_fixed(self.null_diagonal))
    }

    /// The vector whose scalar products are φ_D: cosines and sines of the phases, over √D.
    pub fn wave(&self, g: &[f64]) -> Vec<f64> {
        let scale = (self.count().max(1) as f64).sqrt().recip();
        let phase = |omega: &Vec<f64>| -> f64 { omega.iter().zip(g).map(|(w, p)| w * p).sum() };
        let pair = |omega| {
            let (sin, cos) = phase(omega).sin_cos();
            [scale * cos, scale * sin]
        };
        self.frequencies.iter().flat_map(pair).collect()
    }

    /// Heap bytes held, without the frequencies, which panes share.
    pub fn bytes(&self) -> usize {
        self.sums.capacity() * size_of::<(i128, i128)>()
    }

    /// Adds one event: a checked vector of the classes and its outcome.
    pub fn observe(&mut self, g: &[f64], outcome: u32) {
        self.add(g, outcome, 1);
        let norm: f64 = g.iter().map(|p| p * p).sum();
        self.null_diagonal += i128::from(to_fixed(1.0 - norm));
        self.n += 1;
    }

    /// Gives an event, observed before, another outcome; exact.
    pub fn revise(&mut self, g: &[f64], before: u32, now: u32) {
        self.add(g, before, -1);
        self.add(g, now, 1);
    }

    /// Adds what depends on an event's outcome, or takes it out.
    fn add(&mut self, g: &[f64], outcome: u32, sign: i128) {
        let residual = |c: usize| f64::from(u8::from(c == outcome as usize)) - g[c];
        for (omega, sums) in self
            .frequencies
            .iter()
            .zip(self.sums.chunks_exact_mut(self.classes))
        {
            let phase: f64 = omega.iter().zip(g).map(|(w, p)| w * p).sum();
            let (sin, cos) = phase.sin_cos();
            for (c, sum) in sums.iter_mut().enumerate() {
                sum.0 += sign * i128::from(to_fixed(residual(c) * cos));
                sum.1 -= sign * i128::from(to_fixed(residual(c) * sin));
            }
        }
        let own: f64 = (0..g.len()).map(|c| residual(c) * residual(c)).sum();
        self.diagonal += sign * i128::from(to_fixed(own));
    }

    fn combine(&mut self, other: &Features, sign: i128) {
        assert!(
            Arc::ptr_eq(&self.frequencies, &other.frequencies)
                || self.frequencies == other.frequencies,
            "sums of other frequencies never meet"
        );
        for (a, b) in self.sums.iter_mut().zip(&other.sums) {
            a.0 += sign * b.0;
            a.1 += sign * b.1;
        }
        self.diagonal += sign * other.diagonal;
        self.null_diagonal += sign * other.null_diagonal;
    }

    /// ‖R_d‖²/n² of every frequency; empty without events.
    pub fn values(&self) -> Vec<f64> {
        if self.n == 0 {
            return Vec::new();
        }
        let n = self.n as f64;
        let square = |&(a, b): &(i128, i128)| from_fixed(a).powi(2) + from_fixed(b).powi(2);
        let value = |sums: &[(i128, i128)]| sums.iter().map(square).sum::<f64>() / (n * n);
        self.sums.chunks_exact(self.classes).map(value).collect()
    }

    /// Estimates of SKCE_b and SKCE_uq; `None` with fewer than two events or no frequency.
    pub fn estimates(&self) -> Option<(f64, f64)> {
        let values = self.values();
        if self.n < 2 || values.is_empty() {
            return None;
        }
        let (n, biased) = (
            self.n as f64,
            values.iter().sum::<f64>() / values.len() as f64,
        );
        let unbiased = (n * n * biased - from_fixed(self.diagonal)) / (n * (n - 1.0));
        Some((biased, unbiased))
    }
}

impl Merge for Features {
    fn empty(&self) -> Features {
        Features {
            classes: self.classes,
            frequencies: self.frequencies.clone(),
            sums: vec![(0, 0); self.sums.len()],
            diagonal: 0,
            null_diagonal: 0,
            n: 0,
        }
    }

    /// Adds the sums of `other`, which must be of the same frequencies.
    fn merge(&mut self, other: &Features) -> Result<(), Overflow> {
        self.n = self.n.checked_add(other.n).ok_or(Overflow)?;
        self.combine(other, 1);
        Ok(())
    }
}

impl Retract for Features {
    fn retract(&mut self, other: &Features) -> Result<(), Overflow> {
        self.n = self.n.checked_sub(other.n).ok_or(Overflow)?;
        self.combine(other, -1);
        Ok(())
    }
}

/// Sums of the unbiased estimates of disjoint blocks, their squares and known null variances, in
/// units of 2⁻³²: what a window adds up over its panes, exactly and in any order. The blocks of a
/// pane are of neighbours in an order that does not depend on arrival; events left over at its end
/// are not used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BlockSums {
    /// Number of blocks.
    pub count: u64,
    /// Σ of the estimates.
    pub sum: i128,
    /// Σ of the squares of the estimates.
    pub squares: i128,
    /// Σ of the null variances of the estimates given the predictions.
    pub null_variance: i128,
}

impl BlockSums {
    /// Adds the whole blocks of `size` neighbours of a pane.
    pub fn observe(&mut self, pane: &Vectors, kernel: super::phi::Kernel, size: usize) {
        for block in 0..pane.len() / size {
            let part = pane.pick(block * size..(block + 1) * size);
            let one = super::skce::Blocks::of(&part, kernel, size);
            self.count += 1;
            self.sum += i128::from(to_fixed(one.sum));
            self.squares += i128::from(to_fixed(one.squares));
            self.null_variance += i128::from(to_fixed(one.null_variance));
        }
    }

    /// The sums as the tests of blocks read them, without those that say whether the mean has a
    /// law.
    pub fn blocks(&self) -> super::skce::Blocks {
        super::skce::Blocks {
            count: self.count as f64,
            sum: from_fixed(self.sum),
            squares: from_fixed(self.squares),
            null_variance: from_fixed(self.null_variance),
            ..super::skce::Blocks::default()
        }
    }
}

impl Merge for BlockSums {
    fn empty(&self) -> BlockSums {
        BlockSums::default()
    }

    fn merge(&mut self, other: &BlockSums) -> Result<(), Overflow> {
        self.count = self.count.checked_add(other.count).ok_or(Overflow)?;
        self.sum += other.sum;
        self.squares += other.squares;
        self.null_variance += other.null_variance;
        Ok(())
    }
}

/// `count` of n indices without repetition, ascending, from the seed: the bounded part of a window
/// on which the quadratic form is computed. All of them where `count` ≥ n. (Floyd's algorithm,
/// Bentley 1987.)
pub fn bounded(n: usize, count: usize, seed: u64) -> Vec<usize> {
    if count >= n {
        return (0..n).collect();
    }
    let mut rng = Rng::new(seed);
    let mut chosen = std::collections::BTreeSet::new();
    for last in n - count..n {
        if !chosen.insert(rng.below(last + 1)) {
            chosen.insert(last);
        }
    }
    chosen.into_iter().collect()
}

/// A bounded part of a sample: see [`bounded`].
pub fn bounded_part(sample: &Vectors, count: usize, seed: u64) -> Vectors {
    sample.pick(bounded(sample.len(), count, seed))
}
