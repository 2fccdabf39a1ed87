//! The evaluation: everything that is said about one sample, in one value.
//!
//! [`evaluate`] reads the integer sums of a window, [`evaluate_scores`] raw scores in double
//! precision; both fill the same [`Evaluation`], so that the daemon, the offline verb and the
//! checks against published values report the same things. They differ only where cells that are
//! not dyadic can be had offline (15 for the ℓ1-ECE, any number for the interval) and in the finest
//! level.
//!
//! Undefined quantities are `None`, never NaN. Every number leaves with its n; the error estimate
//! with its interval, its null spread per level and the smallest error that could have been
//! detected.
//!
//! Cost for a window with 4096 occupied cells: the levels and T-Cal dominate; the classical
//! measures, the interval and the diagram together take some tens of microseconds, one pass over
//! the finest cells and a few hundred coarse ones.

pub use super::classical::{Brier, Cox, InTheLarge, Mce, Recalibration, Spiegelhalter};
pub use super::direction::Direction;
pub use super::discrete::{DiscreteMode, DiscreteTest};
pub use super::distance::{Distances, Extent};
pub use super::interval::{Interval, NullReach};
pub use super::ks::Path;
pub use super::reliability::ReliabilityCell;
pub use super::sampling::Sampling;
pub use super::tcal::{Critical, LevelResult, Sharing, TCal, TCalOptions};

use super::axis::Axis;
use super::classical::{self, Totals};
use super::discrete::{discrete_of_scores, discrete_of_sums};
use super::fixed::Score;
use super::levels::{Level, Levels};
use super::overdispersion::Overdispersion;
use super::sums::Sums;
use super::weighted::WeightedEvent;
use super::{detectable, direction, distance, interval, ks, reliability, tcal};
use std::borrow::Cow;

/// What to compute and how.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Options {
    /// The adaptive test.
    pub tcal: TCalOptions,
    /// Cells of the interval; `None`: the power of two next above 2n^(2/5). Live, any other number
    /// is taken to the next power of two the grid has.
    pub interval_cells: Option<u64>,
    /// Confidence of the interval, in (0, 1).
    pub confidence: f64,
    /// When 0 joins the interval.
    pub null_reach: NullReach,
    /// τ, the ℓ2-ECE that is tolerated, in [0, 1].
    pub tolerance: f64,
    /// When the exact test for discrete scores runs.
    pub discrete: DiscreteMode,
    /// The reliability diagram has 2^this cells; at most 5.
    pub reliability_level: u32,
    /// Which distances from calibration are computed.
    pub distances: Extent,
    /// How negatives were sampled. Raw scores are carried accordingly; those of a window have been.
    pub sampling: Sampling,
    /// How much more outcomes vary than independent ones, where the stream has measured it.
    pub overdispersion: Option<Overdispersion>,
}

impl Default for Options {
    /// The product's defaults: α = 0.05 by moments and joint sharing, a 90 % interval with the
    /// conditional null, no tolerance, 16 cells in the diagram.
    fn default() -> Options {
        Options {
            tcal: TCalOptions {
                alpha: 0.05,
                critical: Critical::Moments,
                sharing: Sharing::Joint,
                seed: 0,
            },
            interval_cells: None,
            confidence: 0.9,
            null_reach: NullReach::Conditional,
            tolerance: 0.0,
            discrete: DiscreteMode::Auto,
            reliability_level: 4,
            distances: Extent::Off,
            sampling: Sampling::default(),
            overdispersion: None,
        }
    }
}

/// Whether the ℓ2-ECE is above what is tolerated.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tolerance {
    /// τ, on the ℓ2-ECE scale.
    pub tolerance: f64,
    /// The interval's lower end is above τ; with τ = 0: the sample rejects calibration.
    pub exceeded: bool,
    /// Some level's debiased estimate is above the Chebyshev bound of T-Cal, Remark 3; always
    /// valid, seldom sharp. `None` for weighted events, where it does not hold.
    pub theorem_exceeded: Option<bool>,
}

/// All that is said about one sample.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Evaluation {
    /// Number of events, at least 1.
    pub n: u64,
    /// Number of positive outcomes.
    pub positives: u64,
    /// Mean score.
    pub mean_score: f64,
    /// Share of positive outcomes.
    pub event_rate: f64,
    /// The adaptive test.
    pub tcal: TCal,
    /// The options it ran with.
    pub tcal_options: TCalOptions,
    /// Interval for the ℓ2-ECE.
    pub interval: Interval,
    /// The exact test for discrete scores, where it ran.
    pub discrete: Option<DiscreteTest>,
    /// The decision: of the discrete test where it ran, else of T-Cal.
    pub reject: bool,
    /// The comparison with the tolerance.
    pub tolerance: Tolerance,
    /// ℓ1-ECE: over 15 equal cells offline, over the nearest dyadic level (16) live.
    pub ece_l1: f64,
    /// Largest |mean residual| of a cell, over the cells of `ece_l1` with enough events.
    pub mce: Option<Mce>,
    /// Brier score and its decomposition.
    pub brier: Brier,
    /// Mean log loss in nats, scores clipped at 2⁻³².
    pub log_loss: f64,
    /// Calibration in the large.
    pub in_the_large: InTheLarge,
    /// Spiegelhalter's test; `None` without variance.
    pub spiegelhalter: Option<Spiegelhalter>,
    /// Cox recalibration score test; `None` where the scores do not vary.
    pub cox: Option<Cox>,
    /// Kolmogorov–Smirnov calibration statistic of the cumulative residuals.
    pub ks: Path,
    /// Kuiper calibration statistic of the cumulative residuals.
    pub kuiper: Path,
    /// Smallest ℓ2-ECE that the test detects with 80 % power at this n and these scores.
    pub detectable_ece_l2: Option<f64>,
    /// Which way the scores err.
    pub direction: Direction,
    /// Cells of the reliability diagram.
    pub reliability: Vec<ReliabilityCell>,
    /// Distances from calibration, where wanted.
    pub distances: Option<Distances>,
    /// How negatives were sampled, where they were, with the event rate of the whole population.
    pub sampled: Option<Sampled>,
    /// What is said of weights, where events have them.
    pub weights: Option<Weights>,
}

/// What is said of the weights of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Weights {
    /// Σw.
    pub sum: f64,
    /// Effective number of events, (Σw)²/Σw².
    pub effective: f64,
}

/// What is not said of weighted events, and why.
pub const WITHHELD: [(&str, &str); 4] = [
    (
        "discrete",
        "weighted positives are no binomial count, so the exact test does not hold; T-Cal decides",
    ),
    (
        "reliability.rate_low, rate_high",
        "Clopper–Pearson bars need a binomial count; the consistency bars hold",
    ),
    (
        "tolerance.theorem_exceeded",
        "the bound of the theorem is proven for equal weights",
    ),
    (
        "distances",
        "their sampling errors are known for equal weights only",
    ),
];

/// What is said of a population whose negatives were sampled.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Sampled {
    /// The rates.
    pub sampling: Sampling,
    /// Event rate carried back to the population before the negatives of the stream were sampled.
    pub whole_event_rate: f64,
}

/// Level of the ℓ1-ECE live: 16 cells, the dyadic number nearest to the customary 15.
const ECE_LEVEL: u32 = 4;

/// Cells of the ℓ1-ECE offline, as the literature has it.
const ECE_CELLS: u64 = 15;

/// Finest level offline, unless the paper's procedure is asked for: the daemon's default.
const OFFLINE_LEVEL: u32 = 12;

/// B = ⌈2·log₂(n/√ln n)⌉, the paper's number of scales (T-Cal (7)); 1 to 52, at most as deep as a
/// double tells scores apart.
pub fn paper_scales(n: u64) -> u32 {
    if n < 3 {
        return 1;
    }
    let n = n as f64;
    (2.0 * (n / n.ln().sqrt()).log2()).ceil().clamp(1.0, 52.0) as u32
}

/// Evaluates the sums of a window; `None` without events.
pub fn evaluate(sums: &Sums, o: &Options) -> Option<Evaluation> {
    if sums.n() == 0 {
        return None;
    }
    let grid = sums.grid();
    let o = &plain(o, sums.weighted().is_some());
    let levels = Levels::from_sums(sums);
    let at = |level: u32| &levels.as_slice()[level.clamp(1, grid.level()) as usize - 1];
    let cells = o
        .interval_cells
        .unwrap_or(interval::default_cells(levels.n() as u64));
    let sample = Sample {
        totals: match sums.weighted() {
            // Sums that were kept can be added up.
            Some(weighted) => Totals::from_weighted_sums(weighted).ok()?,
            None => Totals::from_sums(sums, at(ECE_LEVEL)),
        },
        weighted: sums.weighted().is_some(),
        interval: at(cells.max(2).next_power_of_two().ilog2()),
        ece: at(ECE_LEVEL),
        levels: &levels,
        discrete: discrete_of_sums(sums, o.discrete, o.tcal.alpha),
        distances: match sums.weighted() {
            Some(_) => None,
            None => distance::of_cells(
                levels.finest(),
                |i| grid.edges(grid.level(), i as u32),
                grid.axis() == Axis::Linear,
                o.distances,
            ),
        },
    };
    let level = o
        .reliability_level
        .clamp(1, reliability::LEVEL_MAX.min(grid.level()));
    Some(sample.judge(o, at(level), |i| grid.edges(level, i as u32)))
}

/// Evaluates raw scores in [0, 1] with their outcomes, in double precision; `None` without events.
///
/// With `MonteCarlo` and `Bonferroni` together, the procedure of the T-Cal paper, all its B scales
/// are tested; otherwise 12 levels, as in a window.
pub fn evaluate_scores(sample: &[(f64, bool)], o: &Options) -> Option<Evaluation> {
    if sample.is_empty() {
        return None;
    }
    let carried = carried(sample, &o.sampling);
    let sample = &carried[..];
    let n = sample.len() as u64;
    let paper = matches!(o.tcal.critical, Critical::MonteCarlo { .. })
        && o.tcal.sharing == Sharing::Bonferroni;
    let scales = paper_scales(n);
    let finest = if paper {
        scales
    } else {
        scales.min(OFFLINE_LEVEL)
    };
    let levels = Levels::from_scores(sample, finest);
    let cells = o
        .interval_cells
        .unwrap_or(interval::default_cells(n))
        .max(1);
    let ece = Level::from_scores(sample, ECE_CELLS);
    let parts = Sample {
        weighted: false,
        totals: Totals::from_scores(sample, &ece),
        interval: &Level::from_scores(sample, cells),
        ece: &ece,
        levels: &levels,
        discrete: discrete_of_scores(sample, o.discrete, o.tcal.alpha),
        distances: distance::of_scores(sample, o.distances),
    };
    let level = o.reliability_level.clamp(1, reliability::LEVEL_MAX);
    let m = f64::from(1u32 << level);
    let diagram = Level::from_scores(sample, 1 << level);
    Some(parts.judge(o, &diagram, |i| (i as f64 / m, (i + 1) as f64 / m)))
}

/// Evaluates raw weighted events, scores in [0, 1] and weights above 0, in double precision; `None`
/// without events. See [`super::weighted`]. What would redraw outcomes or rests on a theorem for
/// equal weights runs by the exact moments instead, and [`WITHHELD`] lists what is left out.
pub fn evaluate_weighted(sample: &[WeightedEvent], o: &Options) -> Option<Evaluation> {
    if sample.is_empty() {
        return None;
    }
    let o = &plain(o, true);
    let carry = |z: f64| Score::new(z).map_or(z, |score| o.sampling.carry(score).value());
    let carried: Vec<WeightedEvent> = sample.iter().map(|&(z, y, w)| (carry(z), y, w)).collect();
    let sample = &carried[..];
    let totals = Totals::from_weighted(sample);
    let n = (totals.n * (totals.n / totals.w2)) as u64;
    let levels = Levels::from_weighted(sample, paper_scales(n).min(OFFLINE_LEVEL));
    let cells = (o.interval_cells).unwrap_or(interval::default_cells(n));
    let level = o.reliability_level.clamp(1, reliability::LEVEL_MAX);
    let m = f64::from(1u32 << level);
    let diagram = Level::from_weighted(sample, 1 << level);
    let parts = Sample {
        weighted: true,
        totals,
        interval: &Level::from_weighted(sample, cells.max(1)),
        ece: &Level::from_weighted(sample, ECE_CELLS),
        levels: &levels,
        discrete: None,
        distances: None,
    };
    Some(parts.judge(o, &diagram, |i| (i as f64 / m, (i + 1) as f64 / m)))
}

/// The options, for weighted events without what does not hold for them.
fn plain(o: &Options, weighted: bool) -> Options {
    let mut o = o.clone();
    if weighted {
        o.tcal.critical = Critical::Moments;
        o.null_reach = NullReach::Conditional;
    }
    o
}

/// The scores on the scale of the events that are there.
fn carried<'a>(sample: &'a [(f64, bool)], sampling: &Sampling) -> Cow<'a, [(f64, bool)]> {
    if sampling.is_none() {
        return Cow::Borrowed(sample);
    }
    // What is no score stays as it is.
    let carry = |z: f64| Score::new(z).map_or(z, |score| sampling.carry(score).value());
    Cow::Owned(sample.iter().map(|&(z, y)| (carry(z), y)).collect())
}

/// One sample at the levels that are read.
struct Sample<'a> {
    totals: Totals,
    weighted: bool,
    levels: &'a Levels,
    interval: &'a Level,
    ece: &'a Level,
    discrete: Option<DiscreteTest>,
    distances: Option<Distances>,
}

impl Sample<'_> {
    fn judge(self, o: &Options, diagram: &Level, edges: impl Fn(u64) -> (f64, f64)) -> Evaluation {
        let (t, n) = (&self.totals, self.totals.n);
        let tcal = tcal::tcal(self.levels, &o.tcal);
        let effective = self.levels.n();
        let interval = interval::interval(self.interval, effective, o.confidence, o.null_reach);
        let reject = self.discrete.as_ref().map_or(tcal.reject, |d| d.reject);
        let cox = classical::cox(t, self.interval);
        let (ks, kuiper) = ks::ks_and_kuiper(self.levels.finest(), n);
        let coarsest = &self.levels.as_slice()[0];
        Evaluation {
            n: t.count as u64,
            positives: t.positives as u64,
            mean_score: t.z / n,
            event_rate: t.y / n,
            tolerance: tolerance(o, &tcal, &interval, (!self.weighted).then_some(n), reject),
            ece_l1: classical::ece_l1(self.ece, n),
            mce: classical::mce(self.ece),
            brier: classical::brier(t, diagram),
            log_loss: t.loss / n,
            in_the_large: classical::in_the_large(t),
            spiegelhalter: classical::spiegelhalter(t),
            cox,
            ks,
            kuiper,
            detectable_ece_l2: detectable::detectable_ece_l2(
                coarsest,
                n,
                o.tcal.alpha,
                tcal.scales,
            ),
            direction: if reject {
                direction::direction(t, cox.as_ref(), self.interval, interval.estimate_squared)
            } else {
                Direction::None
            },
            reliability: reliability::reliability(diagram, edges),
            discrete: self.discrete,
            distances: self.distances,
            sampled: sampled(&o.sampling, t.y / n),
            weights: self.weighted.then_some(Weights { sum: n, effective }),
            tcal,
            tcal_options: o.tcal,
            interval,
            reject,
        }
    }
}

fn sampled(sampling: &Sampling, rate: f64) -> Option<Sampled> {
    let plain = *sampling == Sampling::default();
    (!plain).then(|| Sampled {
        sampling: *sampling,
        whole_event_rate: sampling.whole(rate),
    })
}

/// The composite null: an ℓ2-ECE of at most τ.
///
/// By the interval (default): its lower end is above τ and 0 is not in it. By T-Cal, Remark 3: some
/// level has T_d − τ² ≥ √(K²/α′ · (2·min(m/n², 1/m) + 5τ²·min(1/n, 1/m))), K = 2, α′ = α/B. The
/// remark writes the tolerance as c₀n^(−2s/(4s+1)); here that is τ, and its square, the most that E
/// T_d can be under the composite null, is taken off first, so that Chebyshev's bound holds at any
/// τ.
fn tolerance(o: &Options, tcal: &TCal, i: &Interval, n: Option<f64>, reject: bool) -> Tolerance {
    let tau = o.tolerance;
    let shared = 4.0 * f64::from(tcal.scales.max(1)) / o.tcal.alpha;
    let above = |l: &LevelResult, n: f64| {
        let m = l.cells as f64;
        let noise = 2.0 * (m / (n * n)).min(1.0 / m) + 5.0 * tau * tau * (1.0 / n).min(1.0 / m);
        l.debiased - tau * tau >= (shared * noise).sqrt()
    };
    Tolerance {
        tolerance: tau,
        exceeded: if tau > 0.0 {
            !i.contains_zero && i.lower > tau
        } else {
            reject
        },
        theorem_exceeded: n.map(|n| tcal.levels.iter().any(|l| above(l, n))),
    }
}
