//! Adaptive T-Cal: the test of calibration over all dyadic levels at once.
//!
//! Each level gives one debiased estimate T_d and one p-value. The p-value of the test is the
//! smallest one, adjusted for the number of levels. Coarse levels find errors of wide ranges of
//! scores, fine ones find local errors; no level has to be chosen. The source of the p-values
//! ([`Critical`]) and the sharing of the error ([`Sharing`]) are options. The default, exact
//! moments and the joint law of the levels, redraws nothing and has a level nearer to α, so more
//! power, than the paper's procedure.
//!
//! Always: `p_value` ≤ α exactly when `reject`; a level with no two events in one cell has p-value
//! 1; the same levels and options give the same result. Cost: one fused pass over each level's
//! occupied cells, about 30 µs at 12 levels of up to 4096 cells, and some 6 µs for the joint law.
//! Source: \[T-Cal\] Lee, Huang, Hassani, Dobriban (2022), §§3–4.

use super::conditional::{Asked, Null};
use super::joint;
use super::levels::{Level, Levels};
use super::monte_carlo::{self, Plan};
pub use result::LevelResult;
use summary::Summary;

mod result;
mod summary;

/// Where the critical values of a level come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Critical {
    /// The bound of T-Cal Theorem 3.1: valid always, conservative.
    Theorem,
    /// Outcomes redrawn from the scores.
    MonteCarlo {
        /// Number of redrawn samples R.
        replicates: u32,
    },
    /// Pearson type III law with the three exact cumulants of the null. Where positives or
    /// negatives are so few that no such law fits, outcomes are drawn from the scores, or levels
    /// are left out.
    Moments,
}

/// How the error α is shared over the levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Sharing {
    /// α/B each, as the paper does.
    Bonferroni,
    /// By the joint law of the levels' smallest p-value.
    Joint,
}

/// Options of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TCalOptions {
    /// Level of the test, in (0, 1).
    pub alpha: f64,
    /// Source of the critical values.
    pub critical: Critical,
    /// Sharing of the error over levels.
    pub sharing: Sharing,
    /// Seed of the redrawn samples; the same seed gives the same result.
    pub seed: u64,
}

impl TCalOptions {
    /// What the null of a single test depends on, with independent outcomes and without an
    /// interval.
    pub(crate) fn asks<'a>(&self, levels: &'a [Level], leaves: &'a Level) -> Asked<'a> {
        Asked {
            levels,
            leaves,
            interval: None,
            alpha: self.alpha,
            seed: self.seed,
            dispersion: 1.0,
            family: 1,
            effective: f64::INFINITY,
        }
    }
}

/// Outcome of the adaptive test.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TCal {
    /// Calibration is rejected at α.
    pub reject: bool,
    /// p-value of the whole test, adjusted for the number of levels.
    pub p_value: f64,
    /// B, the number of levels tested.
    pub scales: u32,
    /// The levels, coarse to fine.
    pub levels: Vec<LevelResult>,
    /// Position in `levels` of the one with the smallest p-value, when the test rejects; of equal
    /// ones that with the largest T_d in null deviations.
    pub rejecting_level: Option<usize>,
    /// Whether the decision was still within the Monte Carlo noise after all rounds, so that the
    /// p-values of the exact moments made it.
    pub borderline: bool,
}

impl TCal {
    /// The p-value of the whole test; `None` where every level with variance is left out.
    pub fn tested(&self) -> Option<f64> {
        let speaks = |l: &LevelResult| !l.left_out && l.null_sd > 0.0;
        let silent = self.levels.iter().any(|l| l.left_out) && !self.levels.iter().any(speaks);
        (self.p_value < 1.0 || !silent).then_some(self.p_value)
    }

    /// Leaves all levels out.
    pub(crate) fn leave_out(&mut self) {
        (self.reject, self.p_value) = (false, 1.0);
        (self.rejecting_level, self.borderline) = (None, false);
        for level in &mut self.levels {
            (level.left_out, level.reject, level.p_value) = (true, false, 1.0);
        }
    }

    /// Takes the p-values of clustered events: of all levels together and of each. Finer levels
    /// than these are left out: φ̂ by itself says too little about their null.
    pub(crate) fn replace(&mut self, p_value: f64, levels: &[f64], alpha: f64) {
        for (at, level) in self.levels.iter_mut().enumerate() {
            level.left_out |= at >= levels.len();
            level.p_value = match level.left_out {
                true => 1.0,
                false => levels[at],
            };
        }
        let kept = (0..self.levels.len()).filter(|at| !self.levels[*at].left_out);
        let p_of = |at: &usize| self.levels[*at].p_value;
        let least = kept.min_by(|a, b| p_of(a).total_cmp(&p_of(b)));
        let bar = level_bar(alpha, p_value, least.as_ref().map_or(1.0, p_of), None);
        for level in &mut self.levels {
            level.reject = !level.left_out && level.p_value <= bar.min(alpha);
        }
        (self.reject, self.p_value) = (p_value <= alpha, p_value);
        (self.rejecting_level, self.borderline) = (least.filter(|_| self.reject), false);
        self.scales = self.scales.min(levels.len() as u32);
    }

    fn silent() -> TCal {
        TCal {
            reject: false,
            p_value: 1.0,
            scales: 0,
            levels: Vec::new(),
            rejecting_level: None,
            borderline: false,
        }
    }
}

/// B = ⌈2·log₂(n/√ln n)⌉, the number of levels that the adaptive test asks for; at least 1.
/// \[T-Cal (7), K = 2\]
pub fn scales(n: f64) -> u32 {
    if n < 2.0 {
        return 1;
    }
    (2.0 * (n / n.ln().sqrt()).log2()).ceil().max(1.0) as u32
}

/// Adaptive T-Cal over levels 1 to min(L, B) of the levels.
///
/// Rejects when the smallest p-value of a level, adjusted for the number of levels, is at most α.
/// Needs two events in one cell to say anything; with fewer than two events nothing is tested
/// (`scales` 0, p-value 1). `Theorem` bounds are not probabilities of a common law, so their error
/// is shared by Bonferroni whatever was asked. \[T-Cal §4\]
pub fn tcal(p: &Levels, o: &TCalOptions) -> TCal {
    tcal_in_family(p, o, 1)
}

/// [`tcal`] as one of `family` tests whose p-values are adjusted for each other.
pub(crate) fn tcal_in_family(p: &Levels, o: &TCalOptions, family: u32) -> TCal {
    tcal_and_null(p, None, 1.0, o, (family, f64::INFINITY)).0
}

/// [`tcal`] with the null of the levels, and of the interval's level where that nests in them; φ,
/// the dispersion, is 1 where outcomes are independent; `family` and `effective` as in [`Asked`].
pub(crate) fn tcal_and_null(
    p: &Levels,
    interval: Option<&Level>,
    dispersion: f64,
    o: &TCalOptions,
    (family, effective): (u32, f64),
) -> (TCal, Null) {
    let depth = (scales(p.n()) as usize).min(p.as_slice().len());
    let asked = Asked {
        interval,
        dispersion,
        family,
        effective,
        ..o.asks(&p.as_slice()[..depth], p.finest())
    };
    if p.n() < 2.0 || depth == 0 {
        return (TCal::silent(), Null::of(Vec::new(), &asked));
    }
    test(&asked, o)
}

/// Non-adaptive T-Cal: one level of m* = ⌊n^{2/(4s+1)}⌋ cells, for a known Hölder smoothness s > 0
/// of the calibration curve. Scores in [0, 1]. \[T-Cal, Algorithm 1, K = 2\]
pub fn tcal_fixed(sample: &[(f64, bool)], smoothness: f64, o: &TCalOptions) -> TCal {
    if sample.len() < 2 {
        return TCal::silent();
    }
    let n = sample.len() as f64;
    let m = n
        .powf(2.0 / (4.0 * smoothness + 1.0))
        .floor()
        .clamp(1.0, 1e9) as u64;
    let level = Level::from_scores(sample, m);
    // Outcomes are redrawn in cells 2²⁰ times finer, where the mean score stands for each score.
    let leaves = Level::from_scores(sample, m << 20);
    test(&o.asks(&[level], &leaves), o).0
}

/// Tests nested levels, coarse to fine, of one sample.
fn test(asked: &Asked<'_>, o: &TCalOptions) -> (TCal, Null) {
    let (levels, leaves) = (asked.levels, asked.leaves);
    let mut summaries: Vec<Summary> = Vec::with_capacity(levels.len());
    for (i, level) in levels.iter().enumerate() {
        let parent = i.checked_sub(1).map(|i| (&levels[i], &summaries[i]));
        let summary = Summary::of(level, parent);
        summaries.push(summary);
    }
    let null = Null::of(summaries.iter().map(Summary::terms).collect(), asked);
    let bonferroni = o.sharing == Sharing::Bonferroni || o.critical == Critical::Theorem;
    let (mut drawn_joint, mut borderline) = (None, false);
    let p_values: Vec<f64> = match o.critical {
        Critical::Theorem => summaries.iter().map(Summary::theorem_p_value).collect(),
        Critical::Moments => (0..levels.len()).map(|b| null.level_p_value(b)).collect(),
        Critical::MonteCarlo { replicates } => {
            let plan = Plan {
                replicates,
                seed: o.seed,
                alpha: o.alpha,
                bonferroni,
            };
            let mut drawn = monte_carlo::p_values(levels, leaves, &observed(&summaries), &plan);
            // What the draws cannot settle is not left to the seed, where the law fits.
            for &b in &drawn.doubtful {
                if null.fits(b) {
                    drawn.levels[b] = summaries[b].moments_p_value();
                }
            }
            borderline = !drawn.doubtful.is_empty();
            drawn_joint = drawn.joint.filter(|_| !borderline);
            drawn.levels
        }
    };
    let count = levels.len() as f64;
    let smallest = p_values.iter().copied().fold(1.0, f64::min);
    let p_value = if bonferroni {
        (count * smallest).min(1.0)
    } else if o.critical == Critical::Moments {
        null.joint_p_value(0..levels.len()).unwrap_or(1.0)
    } else {
        drawn_joint.unwrap_or_else(|| joint::min_p_value(smallest, &chain(&summaries)))
    };
    let bar = level_bar(o.alpha, p_value, smallest, bonferroni.then_some(count));
    let mut tcal = verdict(&summaries, &p_values, p_value, bar, o.alpha, borderline);
    for (b, level) in tcal.levels.iter_mut().enumerate() {
        let has_variance = summaries[b].moments.variance > 0.0;
        level.left_out = o.critical == Critical::Moments && has_variance && !null.speaks(b);
    }
    (tcal, null)
}

fn verdict(
    summaries: &[Summary],
    p_values: &[f64],
    p_value: f64,
    bar: f64,
    alpha: f64,
    borderline: bool,
) -> TCal {
    let reject = p_value <= alpha;
    // Drawn p-values are often equal; then the one farther out decides.
    let farness = |b: usize| summaries[b].debiased / summaries[b].moments.sd();
    let least = (0..p_values.len()).min_by(|&a, &b| {
        let by_p = p_values[a].total_cmp(&p_values[b]);
        by_p.then(farness(b).total_cmp(&farness(a)))
    });
    let results = summaries.iter().zip(p_values);
    TCal {
        reject,
        p_value,
        scales: summaries.len() as u32,
        rejecting_level: least.filter(|_| reject),
        levels: results.map(|(s, &p)| s.result(p, p <= bar)).collect(),
        borderline,
    }
}

/// The p-value at or under which a level by itself counts as rejecting. Bonferroni has it in closed
/// form. The joint law does not; where the test rejects, the factor between its p-value and the
/// smallest one is taken for every level's; where it does not, no level does.
pub fn level_bar(alpha: f64, p_value: f64, smallest: f64, bonferroni: Option<f64>) -> f64 {
    match bonferroni {
        Some(count) => alpha / count,
        None if p_value > alpha => -1.0,
        None if p_value > 0.0 => alpha * smallest / p_value,
        None => 0.0,
    }
}

/// T_d and its null deviation, level by level.
fn observed(summaries: &[Summary]) -> Vec<(f64, f64)> {
    let pairs = summaries.iter().map(|s| (s.debiased, s.moments.sd()));
    pairs.collect()
}

/// Correlations of neighbouring levels, levels without variance left out (they say nothing, or have
/// said all by a p-value of 0).
fn chain(summaries: &[Summary]) -> Vec<f64> {
    let moving = summaries.iter().filter(|s| s.moments.variance > 0.0);
    moving.skip(1).map(|s| s.correlation_with_parent).collect()
}

#[cfg(test)]
mod tests {
    use super::super::estimator;
    use super::super::null::{self, Moments};
    use super::super::rng::Rng;
    use super::*;
    use crate::samples;

    fn options(critical: Critical, sharing: Sharing) -> TCalOptions {
        TCalOptions {
            alpha: 0.05,
            critical,
            sharing,
            seed: 1,
        }
    }

    /// Uniform scores; the truth is 1{z < from}·z + 1{z ≥ from}·rate.
    fn sample(seed: u64, n: usize, truth: impl Fn(f64) -> f64) -> Vec<(f64, bool)> {
        samples::events(&mut Rng::new(seed), n, |u| u, truth)
    }

    #[test]
    fn the_number_of_scales_is_the_papers() {
        assert_eq!([8.0, 8000.0, 10000.0].map(scales), [5, 23, 24]);
        assert_eq!([0.0, 1.0].map(scales), [1, 1]);
    }

    #[test]
    fn the_fused_pass_equals_the_separate_functions() {
        let p = Levels::from_scores(&sample(3, 2000, |z| z), 12);
        let t = tcal(&p, &options(Critical::Moments, Sharing::Joint));
        for (b, (level, got)) in p.as_slice().iter().zip(&t.levels).enumerate() {
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * got.plug_in;
            assert!(near(got.plug_in, estimator::plug_in(level)));
            assert!(near(got.debiased, estimator::debiased(level)));
            let sd = Moments::of_debiased(level).sd();
            assert!((got.null_sd - sd).abs() <= 1e-12 * sd);
            if b > 0 {
                let parent = &p.as_slice()[b - 1];
                let above = Summary::of(parent, None);
                let fused = Summary::of(level, Some((parent, &above))).correlation_with_parent;
                assert!((fused - null::correlation(parent, level)).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_bump_in_one_place_is_found_with_its_cell_under_every_critical_value() {
        let data = sample(
            4,
            20_000,
            |z| if (0.5..0.6).contains(&z) { 0.95 } else { z },
        );
        let p = Levels::from_scores(&data, 12);
        for critical in [
            Critical::Theorem,
            Critical::Moments,
            Critical::MonteCarlo { replicates: 999 },
        ] {
            for sharing in [Sharing::Bonferroni, Sharing::Joint] {
                let t = tcal(&p, &options(critical, sharing));
                assert!(t.reject && t.p_value <= 0.05, "{critical:?} {sharing:?}");
                let level = &t.levels[t.rejecting_level.unwrap()];
                let at = (level.worst_cell as f64 + 0.5) / level.cells as f64;
                assert!((0.48..0.62).contains(&at), "{critical:?} {sharing:?} {at}");
                assert!(level.reject);
            }
        }
    }

    #[test]
    fn calibrated_scores_are_accepted_and_nothing_is_said_of_too_little() {
        let p = Levels::from_scores(&sample(5, 3000, |z| z), 12);
        for critical in [Critical::Theorem, Critical::Moments] {
            let t = tcal(&p, &options(critical, Sharing::Joint));
            assert!(!t.reject && t.rejecting_level.is_none());
            assert!(t.levels.iter().all(|l| !l.reject));
        }
        for data in [vec![], vec![(0.5, true)]] {
            let t = tcal(
                &Levels::from_scores(&data, 3),
                &options(Critical::Moments, Sharing::Joint),
            );
            assert!(!t.reject && t.p_value == 1.0);
        }
    }

    #[test]
    fn a_certain_score_that_fails_is_rejected_without_any_variance() {
        let data = vec![(1.0, false); 20];
        let p = Levels::from_scores(&data, 4);
        let t = tcal(&p, &options(Critical::Moments, Sharing::Joint));
        assert!(t.reject && t.p_value == 0.0 && t.rejecting_level.is_some());
        let held = Levels::from_scores(&[(1.0, true); 20], 4);
        assert!(!tcal(&held, &options(Critical::Moments, Sharing::Joint)).reject);
    }

    #[test]
    fn one_level_of_a_known_smoothness_finds_a_shift() {
        let data = sample(6, 4000, |z| (z + 0.1).min(1.0));
        for critical in [Critical::Moments, Critical::MonteCarlo { replicates: 499 }] {
            let t = tcal_fixed(&data, 0.6, &options(critical, Sharing::Joint));
            assert_eq!((t.levels.len(), t.levels[0].cells), (1, 131));
            assert!(t.reject);
        }
    }

    #[test]
    fn moments_and_redrawn_outcomes_give_the_same_p_values() {
        for (seed, n) in [(7, 300), (8, 5000)] {
            let p = Levels::from_scores(&sample(seed, n, |z| z), 12);
            let a = tcal(&p, &options(Critical::Moments, Sharing::Joint));
            let drawn = Critical::MonteCarlo { replicates: 20_000 };
            let b = tcal(&p, &options(drawn, Sharing::Joint));
            for (x, y) in a.levels.iter().zip(&b.levels) {
                if x.null_sd > 0.0 {
                    assert!((x.p_value - y.p_value).abs() < 0.04, "{x:?} {y:?}");
                }
            }
            let (a, b) = (a.p_value, b.p_value);
            assert!((a - b).abs() < 0.06, "{a} {b}");
        }
    }
}
