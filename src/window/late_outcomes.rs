//! Sums over outcomes that came after their predictions were mature.
//!
//! They show whether late outcomes differ from their scores in another way than outcomes in time
//! do. An outcome is counted in the pane that matures at the outcome's event time, so these sums do
//! not depend on the order of arrival. They are integers and add up like all other sums. A given-up
//! prediction may be one of a sample; it then stands for several.

use crate::stats::fixed::{ONE, Score};
use serde::{Deserialize, Serialize};

/// Late outcomes of one view. See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LateOutcomes {
    /// Number of outcomes seen.
    pub n: u64,
    /// How many of these happened.
    pub y: u64,
    /// Σz of these, in units of 2⁻³².
    pub z: u64,
    /// Σz² of these, in units of 2⁻³².
    pub z2: u64,
    /// Σz³ of these, in units of 2⁻³².
    pub z3: u64,
    /// How many outcomes these stand for.
    pub came: u64,
    /// How many of these outcomes belong to predictions that were not counted.
    pub added: u64,
    /// How much all `came` outcomes would change Σ(y − z), in units of 2⁻³².
    pub shift: i64,
}

impl LateOutcomes {
    /// Counts an outcome of a prediction with this score. The prediction stands for `stands_for`
    /// predictions; `before` is the outcome with which it was counted.
    pub fn count(&mut self, score: Score, before: Option<bool>, now: bool, stands_for: u64) {
        let z = score.fixed();
        self.n = self.n.saturating_add(1);
        self.y = self.y.saturating_add(u64::from(now));
        self.z = self.z.saturating_add(z);
        let times_z = |power: u64| ((u128::from(power) * u128::from(z)) >> 32) as u64;
        let square = times_z(z);
        self.z2 = self.z2.saturating_add(square);
        self.z3 = self.z3.saturating_add(times_z(square));
        self.came = self.came.saturating_add(stands_for);
        let one = |happened: bool| if happened { ONE as i64 } else { 0 };
        let change = match before {
            None => {
                self.added = self.added.saturating_add(stands_for);
                one(now) - z as i64
            }
            Some(before) => one(now) - one(before),
        };
        let change = change.saturating_mul(i64::try_from(stands_for).unwrap_or(i64::MAX));
        self.shift = self.shift.saturating_add(change);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &LateOutcomes) {
        self.n = self.n.saturating_add(other.n);
        self.y = self.y.saturating_add(other.y);
        self.z = self.z.saturating_add(other.z);
        self.z2 = self.z2.saturating_add(other.z2);
        self.z3 = self.z3.saturating_add(other.z3);
        self.came = self.came.saturating_add(other.came);
        self.added = self.added.saturating_add(other.added);
        self.shift = self.shift.saturating_add(other.shift);
    }

    /// Adds the sums of each view; views that `ours` lacks are added.
    pub fn merge_all(ours: &mut Vec<LateOutcomes>, theirs: &[LateOutcomes]) {
        if ours.len() < theirs.len() {
            ours.resize(theirs.len(), LateOutcomes::default());
        }
        ours.iter_mut().zip(theirs).for_each(|(a, b)| a.merge(b));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_add_up_whoever_counted_them() {
        let seen = [
            (0.25, None, true, 1),
            (0.5, Some(false), true, 4),
            (0.75, None, false, 2),
        ];
        let count = |of: &[(f64, Option<bool>, bool, u64)]| {
            let mut sums = LateOutcomes::default();
            for &(z, before, now, stands_for) in of {
                sums.count(Score::new(z).unwrap(), before, now, stands_for);
            }
            sums
        };
        let whole = count(&seen);
        let mut parts = vec![count(&seen[1..])];
        LateOutcomes::merge_all(&mut parts, &[count(&seen[..1])]);
        assert_eq!(parts, [whole]);
        assert_eq!((whole.n, whole.y, whole.came, whole.added), (3, 2, 7, 3));
        let cubes = [1.0, 8.0, 27.0].map(|cube| (cube / 64.0 * ONE as f64) as u64);
        assert_eq!(whole.z3, cubes.iter().sum::<u64>());
        // ¾ + 4·1 − 2·¾.
        assert_eq!(whole.shift, (3.25 * ONE as f64) as i64);
    }
}
