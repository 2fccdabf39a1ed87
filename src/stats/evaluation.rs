//! The evaluation: everything that is said about one sample, in one value.
//!
//! [`evaluate`] reads the integer sums of a window, [`evaluate_scores`] raw scores in double
//! precision; both fill the same [`Evaluation`], so that the daemon, the offline command and the
//! checks against published values report the same things. They differ only in the finest level,
//! and in cells that need not be dyadic offline (15 for the ℓ1-ECE, any number for the interval).
//!
//! Undefined quantities are `None`, never NaN. Every number comes with its n; the error estimate
//! with its interval, its null spread per level and the smallest error that could have been
//! detected.
//!
//! Cost for a window with 4096 occupied cells: the levels and T-Cal dominate; the classical
//! measures, the interval and the diagram together take some tens of microseconds, one pass over
//! the finest cells and a few hundred coarse ones.

pub use super::classical::{Brier, Cox, InTheLarge, Mce, Recalibration, Spiegelhalter};
pub use super::combined::{Combined, Part, PartResult};
pub use super::direction::Direction;
pub use super::discrete::{DiscreteMode, DiscreteTest};
pub use super::distance::{Distances, Extent};
pub use super::interval::{Ends, Interval, NullReach};
pub use super::ks::Path;
pub use super::reliability::ReliabilityCell;
pub use super::sampling::Sampling;
pub use super::smooth::ScoreTest;
pub use super::tcal::{Critical, LevelResult, Sharing, TCal, TCalOptions};
use super::tolerance::FEW;
pub use super::tolerance::{Comparison, Conclusion, Ratio, Tolerance};

use super::axis::Axis;
use super::classical::{self, Totals};
use super::clusters::{self, ClusterSums, Clusters};
use super::corp;
use super::discrete::{discrete_of_scores, discrete_of_sums};
use super::fixed::Score;
use super::levels::{Level, Levels, ascending, ascending_weighted};
use super::repeats::Repeats;
use super::sums::Sums;
use super::tcal::scales;
use super::tolerance::Compared;
use super::weighted::WeightedEvent;
use super::{detectable, direction, distance, interval, reliability};
use all_tests::Tests;
pub(crate) use laws::dispersion;
use sample::Sample;
use std::borrow::Cow;

mod all_tests;
mod clustered;
mod laws;
mod options;
mod result;
mod sample;

pub use options::{DecideBy, Options};
pub use result::{Evaluation, Sampled, WITHHELD, Weights};

/// Level of the ℓ1-ECE live: 16 cells, the dyadic number nearest to the customary 15.
const ECE_LEVEL: u32 = 4;

/// Cells of the ℓ1-ECE offline, as the literature has it.
const ECE_CELLS: u64 = 15;

/// Finest level offline, unless the paper's procedure is asked for: the daemon's default.
const OFFLINE_LEVEL: u32 = 12;

/// B = ⌈2·log₂(n/√ln n)⌉, the paper's number of scales (T-Cal (7)); 1 to 52, at most as deep as a
/// double distinguishes scores.
pub fn paper_scales(n: u64) -> u32 {
    if n < 3 { 1 } else { scales(n as f64).min(52) }
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
    let mut cells = o
        .interval_cells
        .unwrap_or(interval::default_cells(levels.n() as u64));
    let information = levels.finest().information();
    let repeated = sums.repeats().measure(sums.n(), information);
    let discrete = match sums.clusters() {
        // This test takes outcomes as independent.
        Some(_) => None,
        None => discrete_of_sums(sums, o.discrete, o.tcal.alpha, o.tcal.seed),
    };
    let unmarked = sums.clusters().is_none() && sums.weighted().is_none() && discrete.is_none();
    let unnamed = (repeated.as_ref().filter(|_| unmarked)).and_then(|r| {
        let scores = sums.repeats().distinct(information);
        clusters::by_score(levels.finest(), grid.level(), r, scores)
    });
    let clusters = sums.clusters().or(unnamed.as_ref());
    if clusters.is_some() {
        cells = cells.min(1 << clusters::LEVEL_MAX);
    }
    let sample = Sample {
        totals: match sums.weighted() {
            // Sums that were kept can be added up.
            Some(weighted) => Totals::from_weighted_sums(weighted).ok()?,
            None => Totals::from_sums(sums, at(ECE_LEVEL)),
        },
        weighted: sums.weighted().is_some(),
        clusters: clusters.map(|c| (c, ClusterSums::level_of(grid))),
        by_score: unnamed.is_some(),
        interval: at(cells.max(2).next_power_of_two().ilog2()),
        interval_leaves: None,
        ece: at(ECE_LEVEL),
        levels: &levels,
        repeated,
        discrete,
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
    Some(sample.judge(o, grid.axis(), at(level), |i| grid.edges(level, i as u32)))
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
    let sorted = &ascending(sample)[..];
    let levels = Levels::above(Level::of_ascending(sorted, 1 << finest), finest);
    let mut cells = o
        .interval_cells
        .unwrap_or(interval::default_cells(n))
        .max(1);
    let repeats = Repeats::from_scores(sample);
    let information = levels.finest().information();
    let repeated = repeats.measure(n, information);
    let discrete = discrete_of_scores(sample, o.discrete, o.tcal.alpha, o.tcal.seed);
    let unnamed = (repeated.as_ref().filter(|_| discrete.is_none() && !paper)).and_then(|r| {
        let scores = repeats.distinct(information);
        clusters::by_score(levels.finest(), finest, r, scores)
    });
    if unnamed.is_some() {
        cells = cells
            .min(1 << clusters::LEVEL_MAX)
            .next_power_of_two()
            .max(2);
    }
    let ece = Level::of_ascending(sorted, ECE_CELLS);
    let odd = !levels.finest().cells.is_multiple_of(cells);
    let odd = odd.then(|| Level::of_ascending(sorted, cells << 20));
    let parts = Sample {
        weighted: false,
        clusters: unnamed.as_ref().map(|c| (c, clusters::LEVEL_MAX)),
        by_score: unnamed.is_some(),
        totals: Totals::from_scores(sample, &ece),
        interval: &Level::of_ascending(sorted, cells),
        interval_leaves: odd.as_ref(),
        ece: &ece,
        levels: &levels,
        repeated,
        discrete,
        distances: distance::of_ascending(sorted, o.distances),
    };
    Some(parts.judge_offline(o, |m| Level::of_ascending(sorted, m)))
}

/// Evaluates raw weighted events, scores in [0, 1] and weights above 0, in double precision; `None`
/// without events. See [`super::weighted`]. Tests that redraw outcomes or rest on a theorem for
/// equal weights use the exact moments instead; [`WITHHELD`] lists what is left out.
pub fn evaluate_weighted(sample: &[WeightedEvent], o: &Options) -> Option<Evaluation> {
    if sample.is_empty() {
        return None;
    }
    let o = &plain(o, true);
    let carry = |&(z, y, w): &WeightedEvent| (carry(&o.sampling, z), y, w);
    let sample = &sample.iter().map(carry).collect::<Vec<_>>()[..];
    let totals = Totals::from_weighted(sample);
    let n = (totals.n * (totals.n / totals.w2)) as u64;
    let sorted = &ascending_weighted(sample)[..];
    let finest = paper_scales(n).min(OFFLINE_LEVEL);
    let levels = Levels::above(Level::of_ascending_weighted(sorted, 1 << finest), finest);
    let cells = (o.interval_cells).unwrap_or(interval::default_cells(n));
    let odd = !levels.finest().cells.is_multiple_of(cells.max(1));
    let odd = odd.then(|| Level::of_ascending_weighted(sorted, cells.max(1) << 20));
    let parts = Sample {
        weighted: true,
        clusters: None,
        by_score: false,
        totals,
        interval: &Level::of_ascending_weighted(sorted, cells.max(1)),
        interval_leaves: odd.as_ref(),
        ece: &Level::of_ascending_weighted(sorted, ECE_CELLS),
        levels: &levels,
        repeated: None,
        discrete: None,
        distances: None,
    };
    Some(parts.judge_offline(o, |m| Level::of_ascending_weighted(sorted, m)))
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
    let carry = |&(z, y): &(f64, bool)| (carry(sampling, z), y);
    Cow::Owned(sample.iter().map(carry).collect())
}

/// A score on that scale; what is no score stays as it is.
fn carry(sampling: &Sampling, z: f64) -> f64 {
    Score::new(z).map_or(z, |score| sampling.carry(score).value())
}

impl Sample<'_> {
    /// Judges raw scores; `cut` makes their level with a given number of cells.
    fn judge_offline(self, o: &Options, cut: impl FnOnce(u64) -> Level) -> Evaluation {
        let cells = 1 << o.reliability_level.clamp(1, reliability::LEVEL_MAX);
        let m = cells as f64;
        self.judge(o, Axis::Linear, &cut(cells), |i| {
            (i as f64 / m, (i + 1) as f64 / m)
        })
    }

    fn judge(
        self,
        o: &Options,
        axis: Axis,
        diagram: &Level,
        edges: impl Fn(u64) -> (f64, f64),
    ) -> Evaluation {
        let (t, n) = (&self.totals, self.totals.n);
        let effective = self.levels.n();
        let tests = self.tests(o);
        let measured = dispersion(o).map_or(1.0, |(factor, _)| factor);
        let dispersion = match &tests.clustered {
            Some(c) if self.by_score => c.dispersion(o.confidence).max(measured),
            Some(c) => c.dispersion(o.confidence),
            None => measured,
        };
        let coarsest = &self.levels.as_slice()[0];
        let weighting = match self.weighted && t.v_mean > 0.0 {
            true => (effective * t.v / (n * t.v_mean)).max(1.0),
            false => 1.0,
        };
        let paper = matches!(o.null_reach, NullReach::Paper { .. });
        // Sums by cluster are those of dyadic cells.
        let joined = match paper || tests.clustered.is_some() {
            true => Cow::Borrowed(self.interval),
            false => self.interval.joined(),
        };
        let exact = !paper && interval::needs_exact_ends(&joined);
        let (interval, level) = if exact {
            let level = match o.interval_cells {
                None if !interval::has_outcomes(self.interval) => coarsest,
                _ => &joined,
            };
            let asked = interval::Exact {
                confidence: o.confidence,
                dispersion,
                weighting,
                independent: tests.clustered.is_none(),
                halves: o.interval_cells.is_none().then_some(coarsest),
                tcal: &o.tcal,
            };
            asked.interval(level, effective)
        } else {
            (self.interval(o, &tests, (&joined, dispersion)), &*joined)
        };
        let (reject, p_value) = self.decision(o, &tests);
        // If scores repeat suspiciously, the fine part, which would find finer errors, is left out.
        let suspicious = self.repeated.is_some_and(|r| r.is_suspicious());
        let compared = Compared {
            n: effective,
            mean_score: t.z / n,
            event_rate: t.y / n,
            alpha: o.tcal.alpha,
            reject,
            tcal: &tests.tcal,
            single: tests.single.as_ref().or(suspicious.then_some(&tests.tcal)),
            interval: &interval,
            level,
            weighted: self.weighted,
            dispersion,
            weighting,
            few_clusters: tests.few_clusters(),
            heavy: tests.heavy,
        };
        let tolerance = compared.with(&o.tolerance);
        let by_score = self.by_score;
        let clusters = (tests.clustered.as_ref()).map(|c| Clusters { by_score, ..c.said });
        let few = tolerance.expected < FEW;
        // The power of a bound, and that at few outcomes, is not known.
        let unknown = tests.bounded || few || tests.combined.replicates.is_some();
        let detectable = self.detectable(o, &tests).filter(|_| !unknown);
        let noise = match &clusters {
            Some(c) if by_score => c.dispersion().0.max(measured),
            Some(c) => c.dispersion().0,
            None => measured,
        };
        Evaluation {
            n: t.count as u64,
            positives: t.positives as u64,
            mean_score: t.z / n,
            event_rate: t.y / n,
            tolerance,
            ece_l1: classical::ece_l1(self.ece, n),
            ece_l1_cells: self.ece.cells,
            mce: classical::mce(self.ece),
            brier: classical::brier(t, diagram),
            log_loss: t.loss / n,
            direction: if reject {
                let squared = interval.estimate_squared;
                let found = direction::direction(t, tests.cox.as_ref(), self.interval, squared);
                found.or_of_the_whole(tolerance.ratio.is_some_and(|r| r.is_off()), t.u)
            } else {
                Direction::None
            },
            in_the_large: tests.in_the_large,
            spiegelhalter: tests.spiegelhalter,
            cox: tests.cox,
            ks: tests.ks,
            kuiper: tests.kuiper,
            // The noise of the squared error grows by φ.
            detectable_ece_l2: detectable.map(|d| d * noise.sqrt()).filter(|d| *d <= 1.0),
            reliability: reliability::reliability(diagram, edges),
            axis,
            curve: corp::cells(self.levels),
            discrete: tests.discrete,
            repeated: self.repeated,
            overdispersion: o.overdispersion,
            sampled: sampled(&o.sampling, t.y / n),
            weights: self.weighted.then_some(Weights { sum: n, effective }),
            tcal: tests.tcal,
            tcal_options: tests.tcal_options,
            interval,
            combined: tests.combined,
            decided_by: o.decide_by,
            reject,
            p_value,
            bounded: tests.bounded,
            smooth: tests.smooth,
            distances: match &clusters {
                Some(_) => self.distances.map(Distances::of_dependent),
                None => self.distances,
            },
            clusters,
        }
    }

    /// The interval with normal ends.
    fn interval(
        &self,
        o: &Options,
        tests: &Tests<'_>,
        (level, dispersion): (&Level, f64),
    ) -> Interval {
        let (n, zero) = (self.levels.n(), tests.zero_p_value);
        let independent = |dispersion| {
            let reach = o.null_reach;
            interval::interval_with(level, n, o.confidence, reach, zero, dispersion)
        };
        let Some(clustered) = &tests.clustered else {
            return independent(dispersion);
        };
        let mut of = clustered.interval(self.interval, n, o, zero);
        // T has no pairs of events of one score there, and so misses what these err together.
        if self.by_score {
            of.upper = of.upper.max(independent(1.0).upper);
        }
        of
    }

    fn detectable(&self, o: &Options, tests: &Tests<'_>) -> Option<f64> {
        if o.decide_by == DecideBy::Combined {
            let parts: Vec<Part> = tests.combined.parts.iter().map(|p| p.part).collect();
            let form = (tests.form.as_ref()).filter(|_| parts.contains(&Part::Smooth))?;
            let finest = self.levels.finest();
            return detectable::detectable_by_combination((form, finest), o.tcal.alpha, &parts);
        }
        tests.tcal.tested()?;
        let levels = self.levels.as_slice();
        detectable::detectable_by_tcal(levels, o.tcal.alpha, tests.tcal.scales)
    }

    /// Whether the test that decides rejects, and its p-value.
    fn decision(&self, o: &Options, tests: &Tests<'_>) -> (bool, f64) {
        if tests.few_clusters() {
            return (false, 1.0);
        }
        let tcal = (tests.tcal.reject, tests.tcal.p_value);
        match o.decide_by {
            DecideBy::Combined => (tests.combined.reject, tests.combined.p_value),
            DecideBy::Tcal => tcal,
            DecideBy::Paper => (tests.discrete)
                .as_ref()
                .map_or(tcal, |d| (d.reject, d.p_value)),
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
