//! Sums over a whole sample, from which the classical measures come.
//!
//! They need no level of their own. Two identities save sums: (y−z)(1−2z) = U² − V and (1−2z)² = 1
//! − 4V, so Spiegelhalter's statistic comes from ΣU², ΣV, ΣV².
//!
//! The log sums use scores clipped to [2⁻³², 1−2⁻³²]; the offline totals clip every sum that meets
//! a logarithm, the window's totals the log sums alone (ΣU and ΣV then differ by 2⁻³² an event at
//! most).

use super::algebra::{Merge, Overflow};
use super::fixed::{CLIP, from_fixed};
use super::level::{Level, LevelCell};
use super::logs::LogSums;
use super::sums::Sums;
use super::weight::{UNIT_48, UNIT_64};
use super::weighted::{WeightedCell, WeightedEvent, WeightedSums};

/// Sums over a whole sample. Brackets say how weights enter; see [`super::weighted`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Totals {
    /// Number of events (Σw).
    pub n: f64,
    /// Number of events, weighted or not.
    pub count: f64,
    /// Number of positive outcomes, weighted or not.
    pub positives: f64,
    /// Number of events (Σw²).
    pub w2: f64,
    /// Σy (times w).
    pub y: f64,
    /// Σz (times w).
    pub z: f64,
    /// ΣU, U = y − z (times w).
    pub u: f64,
    /// ΣU² (times w).
    pub u2: f64,
    /// ΣV, V = z(1−z) (times w).
    pub v_mean: f64,
    /// ΣV (times w²: the variance of `u` under the null).
    pub v: f64,
    /// ΣV² (times w²).
    pub v2: f64,
    /// Log loss, summed, in nats (times w).
    pub loss: f64,
    /// ΣU of clipped scores (times w).
    pub u_clipped: f64,
    /// ΣV of clipped scores (times w²).
    pub v_clipped: f64,
    /// ΣUℓ, ℓ the log-odds of the clipped score (times w).
    pub u_logit: f64,
    /// ΣVℓ (times w²).
    pub v_logit: f64,
    /// ΣVℓ² (times w²).
    pub v_logit2: f64,
}

impl Totals {
    /// The totals of a window, from the cells of any of its levels and its log sums.
    pub fn from_sums(sums: &Sums, level: &Level) -> Totals {
        let mut t = Totals::of_cells(level);
        let LogSums {
            loss,
            u_logit,
            v_logit,
            v_logit2,
        } = *sums.logs();
        t.u_clipped = t.u;
        t.v_clipped = t.v;
        t.loss = from_fixed(loss);
        t.u_logit = from_fixed(u_logit);
        t.v_logit = from_fixed(v_logit);
        t.v_logit2 = from_fixed(v_logit2);
        t
    }

    /// The totals of raw scores in [0, 1].
    pub fn from_scores(sample: &[(f64, bool)], level: &Level) -> Totals {
        let mut t = Totals::of_cells(level);
        for &(z, y) in sample {
            t.add_logs(z, y, 1.0);
        }
        t
    }

    /// The totals of the sums of weighted events.
    pub fn from_weighted_sums(sums: &WeightedSums) -> Result<Totals, Overflow> {
        let mut all = WeightedCell::default();
        for (_, cell) in sums.cells() {
            all.merge(cell)?;
        }
        let (one, weights) = LevelCell::of_weighted(0, &all);
        let wu2 = (u128::from(all.wy) << 32)
            .wrapping_sub(all.wyz << 1)
            .wrapping_add(all.wz2) as i128;
        let logs = sums.logs();
        Ok(Totals {
            n: one.n,
            count: one.count,
            positives: all.y as f64,
            w2: weights.w2,
            y: one.y,
            z: one.z,
            u: one.u,
            u2: wu2 as f64 * UNIT_48,
            v_mean: all.wz.wrapping_sub(all.wz2) as i128 as f64 * UNIT_48,
            v: one.v,
            v2: all.w2v2 as f64 * UNIT_64,
            loss: logs.loss as f64 * UNIT_48,
            u_clipped: one.u,
            v_clipped: one.v,
            u_logit: logs.u_logit as f64 * UNIT_48,
            v_logit: logs.v_logit as f64 * UNIT_64,
            v_logit2: logs.v_logit2 as f64 * UNIT_64,
        })
    }

    /// The totals of raw weighted events.
    pub fn from_weighted(sample: &[WeightedEvent]) -> Totals {
        let mut t = Totals::default();
        for &(z, y, w) in sample {
            let w2 = w * w;
            let (u, v) = (f64::from(u8::from(y)) - z, z * (1.0 - z));
            t.n += w;
            t.count += 1.0;
            t.w2 += w2;
            t.z += w * z;
            t.u += w * u;
            t.u2 += w * u * u;
            t.v_mean += w * v;
            t.v += w2 * v;
            t.v2 += w2 * v * v;
            if y {
                t.y += w;
                t.positives += 1.0;
            }
            t.add_logs(z, y, w);
        }
        t
    }

    /// Adds what an event brings to the sums of clipped scores.
    fn add_logs(&mut self, z: f64, y: bool, w: f64) {
        let z = z.clamp(CLIP, 1.0 - CLIP);
        let (a, b) = (z.ln(), (1.0 - z).ln());
        let (l, v) = ((z / (1.0 - z)).ln(), z * (1.0 - z));
        let u = if y { 1.0 - z } else { -z };
        let w2 = w * w;
        self.loss -= w * if y { a } else { b };
        self.u_clipped += w * u;
        self.v_clipped += w2 * v;
        self.u_logit += w * u * l;
        self.v_logit += w2 * v * l;
        self.v_logit2 += w2 * v * l * l;
    }

    fn of_cells(level: &Level) -> Totals {
        let mut t = Totals::default();
        for c in level.occupied.iter() {
            t.n += c.n;
            t.y += c.y;
            t.z += c.z;
            t.u += c.u;
            t.u2 += c.u2;
            t.v += c.v;
            t.v2 += c.v2;
        }
        (t.count, t.positives, t.w2, t.v_mean) = (t.n, t.y, t.n, t.v);
        t
    }
}
