//! The residuals of outcomes in time, fitted by a cubic in the score.
//!
//! Only sums over powers of the score are kept, so a stream of any length takes 13 numbers. A power
//! that is almost a sum of the lower ones over these scores is left out of the fit.

use crate::stats::fixed::{ONE, from_fixed};
use crate::stats::sums::Sums;
use serde::{Deserialize, Serialize};

/// Powers of the score in the fit: 1, z, z², z³.
pub(super) const POWERS: usize = 4;

/// Least share of Σz²ᵏ that the lower powers leave unexplained, of a power k in the fit.
const DISTINCT: f64 = 1e-8;

/// Sums over outcomes in time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct InTime {
    /// Σzᵏ.
    powers: [f64; 2 * POWERS + 1],
    /// Σ(y − z)zᵏ.
    residuals: [f64; POWERS],
}

impl InTime {
    /// Adds the outcomes of a pane.
    pub(super) fn add(&mut self, sums: &Sums) {
        sums.each_occupied(|_, cell| {
            let n = cell.n as f64;
            let z = from_fixed(cell.z.into()) / n;
            let mut power = 1.0;
            let residual = from_fixed(i128::from(cell.y) * i128::from(ONE) - i128::from(cell.z));
            for (k, sum) in self.powers.iter_mut().enumerate() {
                *sum += n * power;
                if let Some(sum) = self.residuals.get_mut(k) {
                    *sum += residual * power;
                }
                power *= z;
            }
        });
    }

    /// Halves all sums.
    pub(super) fn halve(&mut self) {
        let sums = self.powers.iter_mut().chain(&mut self.residuals);
        sums.for_each(|sum| *sum *= 0.5);
    }

    /// Their number N.
    pub(super) fn n(&self) -> f64 {
        self.powers[0]
    }

    /// V = Σz(1 − z).
    pub(super) fn variance(&self) -> f64 {
        self.powers[1] - self.powers[2]
    }

    /// k = Σ(y − z)²/V, at least 1.
    pub(super) fn spread(&self) -> f64 {
        let more = self.residuals[0] - 2.0 * self.residuals[1];
        match self.variance() > 0.0 {
            true => 1.0 + more.max(0.0) / self.variance(),
            false => 1.0,
        }
    }

    /// F and qᵀHq of the module above, for late outcomes whose Σzᵏ are `m`.
    pub(super) fn fit(&self, m: &[f64; POWERS]) -> (f64, f64) {
        let q = self.solve(m);
        let value = q.iter().zip(&self.residuals).map(|(q, r)| q * r).sum();
        let mut variance = 0.0;
        for (i, qi) in q.iter().enumerate() {
            for (j, qj) in q.iter().enumerate() {
                variance += qi * qj * (self.powers[i + j + 1] - self.powers[i + j + 2]);
            }
        }
        (value, variance.max(0.0))
    }

    /// q = G⁻¹m, by Cholesky's G = LDLᵀ. It is 0 for powers that are left out.
    fn solve(&self, m: &[f64; POWERS]) -> [f64; POWERS] {
        let (mut l, mut d) = ([[0.0; POWERS]; POWERS], [0.0; POWERS]);
        let mut q = *m;
        for i in 0..POWERS {
            for j in 0..i {
                let known: f64 = (0..j).map(|k| l[i][k] * l[j][k] * d[k]).sum();
                l[i][j] = match d[j] > 0.0 {
                    true => (self.powers[i + j] - known) / d[j],
                    false => 0.0,
                };
                q[i] -= l[i][j] * q[j];
            }
            let known: f64 = (0..i).map(|k| l[i][k] * l[i][k] * d[k]).sum();
            let left = self.powers[2 * i] - known;
            d[i] = match left > DISTINCT * self.powers[2 * i] {
                true => left,
                false => 0.0,
            };
        }
        for i in (0..POWERS).rev() {
            q[i] = match d[i] > 0.0 {
                true => q[i] / d[i] - (i + 1..POWERS).map(|k| l[k][i] * q[k]).sum::<f64>(),
                false => 0.0,
            };
        }
        q
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fit of these residuals at late outcomes of these scores.
    fn fitted(events: &[(f64, f64)], late: &[f64]) -> f64 {
        let mut in_time = InTime::default();
        for (z, residual) in events {
            for (k, sum) in (0..).zip(&mut in_time.powers) {
                *sum += z.powi(k);
            }
            for (k, sum) in (0..).zip(&mut in_time.residuals) {
                *sum += residual * z.powi(k);
            }
        }
        let m = [0, 1, 2, 3].map(|k| late.iter().map(|z| z.powi(k)).sum());
        in_time.fit(&m).0
    }

    #[test]
    fn a_fit_is_exact_for_cubics_and_leaves_out_what_the_scores_do_not_tell_apart() {
        let cubic = |z: f64| 0.1 - 0.4 * z + 0.9 * z * z - 0.5 * z * z * z;
        let at = |z: f64| (z, cubic(z));
        let late = [0.07, 0.5, 0.93];
        let truth: f64 = late.iter().map(|z| cubic(*z)).sum();
        let many: Vec<_> = (0..100).map(|i| at(f64::from(i) / 100.0)).collect();
        assert!((fitted(&many, &late) - truth).abs() < 1e-9);
        // Rare outcomes.
        let rare = |z: f64| (z / 1000.0, cubic(z));
        let few: Vec<_> = (0..100).map(|i| rare(f64::from(i) / 100.0)).collect();
        assert!((fitted(&few, &late.map(|z| z / 1000.0)) - truth).abs() < 1e-6);
        // A line through two scores, and a mean of one.
        let two = fitted(&[(0.2, 0.1), (0.8, -0.1), (0.8, -0.1)], &[0.2, 0.5]);
        assert!((two - 0.1).abs() < 1e-9, "{two}");
        let one = fitted(&[(0.3, 0.25), (0.3, -0.05)], &[0.3, 0.3]);
        assert!((one - 0.2).abs() < 1e-9, "{one}");
        assert_eq!(fitted(&[], &[0.3]), 0.0);
    }
}
