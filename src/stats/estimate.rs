//! What an interval needs of a level: the unbiased estimate of the squared error, and its spread.

use super::estimator;
use super::levels::Level;
use super::null::Moments;

/// The unbiased estimate of the squared error at one level, and its spread.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Estimate {
    /// T, the unbiased estimate of the squared ℓ2-ECE.
    pub t: f64,
    /// σ̂₁², n times the variance of T off the null; rounding can leave it a hair under 0.
    pub sigma1_squared: f64,
    /// Moments of T under the null given the scores.
    pub null: Moments,
    /// (1/n) Σ_{N≥2} ΣV/(N−1): by how much T is too large if the outcomes of whole cells vary twice
    /// as much as independent ones.
    pub excess: f64,
}

impl Estimate {
    /// The estimate at a level of a sample of `n` events.
    pub fn of(level: &Level, n: f64) -> Estimate {
        if level.is_weighted() {
            return Estimate::of_weighted(level);
        }
        let (mut t, mut fourth, mut second, mut mixed) = (0.0, 0.0, 0.0, 0.0);
        let mut excess = 0.0;
        for c in level.occupied.iter() {
            let e = c.u / c.n;
            let e2 = e * e;
            second += c.n * e2;
            fourth += c.n * e2 * e2;
            mixed += c.n * e2 * (c.u2 / c.n - e2);
            if c.n >= 2.0 {
                t += (c.u * c.u - c.u2) / (c.n - 1.0);
                excess += c.v / (c.n - 1.0);
            }
        }
        Estimate {
            t: t / n,
            sigma1_squared: fourth / n - (second / n) * (second / n) + 4.0 * mixed / n,
            null: Moments::of_unbiased(level),
            excess: excess / n,
        }
    }

    /// The estimate with a σ̂₁² that is no smaller where cells have few outcomes.
    ///
    /// A cell without a positive has a variance C of almost 0 just where e² is largest, so that Σ
    /// e²C is too small if scores are too high and a thin tail has much of the error. C is taken to
    /// be at least its unbiased estimate, and p(1−p) with
    ///
    /// ```text
    /// p = (Σy + 2z̄)/(N + 2)
    /// ```
    ///
    /// the rate with two events more at the mean score: Cestnik's m-estimate (1990) with m = 2.
    /// (Agresti and Caffo 2000 add two events, one of each outcome.) Each end of the 90 % interval
    /// then misses the binned error in about 6 % at most, over 110 points; before, in up to 17 %.
    /// The residuals of vectors have such a variance along e ([`super::multiclass::interval()`]).
    pub fn guarded(level: &Level, n: f64) -> Estimate {
        let mut e = Estimate::of(level, n);
        e.sigma1_squared += shortfall_of(level);
        e
    }

    /// [`Estimate::of`] for weighted events; σ̂₁² is that of n events, n the effective number. See
    /// [`super::weighted`].
    fn of_weighted(level: &Level) -> Estimate {
        let (mut mass, mut squares, mut second) = (0.0, 0.0, 0.0);
        for (c, moments) in level.squares() {
            mass += c.n;
            squares += moments.w2;
            second += c.u * c.u / c.n;
        }
        let (mut spread, mut excess) = (0.0, 0.0);
        for (c, moments) in level.squares() {
            if c.count >= 2.0 {
                excess += c.v / (c.n - moments.w2 / c.n);
            }
            let e = c.u / c.n;
            let rest = e * e + second / mass;
            spread += 4.0 * e * e * c.u2 - 4.0 * e * rest * moments.w2u + rest * rest * moments.w2;
        }
        Estimate {
            t: estimator::unbiased(level),
            // n/W² with n = W²/Σw².
            sigma1_squared: spread / squares,
            null: Moments::of_unbiased(level),
            excess: excess / mass,
        }
    }

    /// Upper p-value of T under the null given the scores, by the Pearson type III law of its
    /// three cumulants; 1 without null variance unless T is positive.
    pub fn null_p_value(&self) -> f64 {
        self.null.survival(self.t)
    }
}

/// Events at the mean score that are added to a cell.
const ADDED: f64 = 2.0;

/// The spread of a cell of scores or of vectors, of effectively `n` events.
pub(crate) struct Spread {
    /// N, or (Σw)²/Σw².
    pub n: f64,
    /// ‖e‖².
    pub e2: f64,
    /// Σw²; N without weights.
    pub w2: f64,
    /// C, the plug-in variance of U along e.
    pub plug_in: f64,
    /// The variance along e at the rates that [`smoothed`] gives.
    pub smoothed: f64,
}

/// The rate of a cell with two events more at the mean score: (Σy + 2z̄)/(N + 2).
pub(crate) fn smoothed(n: f64, happened: f64, z: f64) -> f64 {
    (happened + ADDED * z) / (n + ADDED)
}

/// What [`Estimate::guarded`] adds to 4Σ‖e‖²Σw²C.
pub(crate) fn shortfall(cells: impl Iterator<Item = Spread>) -> f64 {
    let more = |c: Spread| {
        let unbiased = c.plug_in * c.n / (c.n - 1.0).max(1.0);
        c.e2 * c.w2 * (unbiased.max(c.smoothed) - c.plug_in).max(0.0)
    };
    4.0 * cells.map(more).sum::<f64>()
}

/// What [`Estimate::guarded`] adds to σ̂₁².
pub(crate) fn shortfall_of(level: &Level) -> f64 {
    let cells = level.squares().map(|(c, moments)| {
        let (e, z, n) = (c.u / c.n, c.z / c.n, c.n * (c.n / moments.w2));
        let p = smoothed(n, n * c.y / c.n, z);
        Spread {
            n,
            e2: e * e,
            w2: moments.w2,
            plug_in: (c.u2 - 2.0 * e * moments.w2u) / moments.w2 + e * e,
            smoothed: p * (1.0 - p),
        }
    });
    shortfall(cells) / level.squares().map(|(_, m)| m.w2).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four events of score ½ in the upper of two cells, none happened: e = −½, C = 0, p = 1/6 and
    /// 4·¼·5/36. In the lower cell two of score ¼, one happened: e = ¼, C = ¼, unbiased ½, p = 3/8.
    #[test]
    fn a_cell_of_few_outcomes_has_the_variance_of_two_events_more() {
        let mut sample = vec![(0.5, false); 4];
        sample.extend([(0.25, true), (0.25, false)]);
        let level = Level::from_scores(&sample, 2);
        let (of, guarded) = (Estimate::of(&level, 6.0), Estimate::guarded(&level, 6.0));
        let more = (4.0 * 4.0 / 4.0 * 5.0 / 36.0 + 4.0 * 2.0 / 16.0 * 0.25) / 6.0;
        assert!((guarded.sigma1_squared - of.sigma1_squared - more).abs() < 1e-15);
        assert_eq!((guarded.t, guarded.null), (of.t, of.null));
        // A weight that all have changes nothing.
        let double: Vec<_> = sample.iter().map(|&(z, y)| (z, y, 2.0)).collect();
        assert!((shortfall_of(&Level::from_weighted(&double, 2)) - more).abs() < 1e-15);
    }
}
