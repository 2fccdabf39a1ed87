//! Unnamed clusters: the events that share one score.
//!
//! A continuous model seldom repeats a score. If scores repeat and the outcomes of one score agree,
//! these events are not independent: an event was counted twice, or a user was scored again. Events
//! of one score lie in one finest cell, so a union of finest cells is a union of such clusters. A
//! hash of its index assigns each finest cell to a bucket, so the sums of a window give the sums by
//! bucket. Everything that holds for named clusters then holds here, as long as events of different
//! scores are independent.
//!
//! The cost: an error of single scores looks the same as dependence within them and is not found.
//! So no such window is called calibrated where T-Cal for independent outcomes shows an error
//! beyond the tolerance ([`crate::tolerance`]). Models of few distinct scores are tested value by
//! value instead. Files are treated alike, unless the procedure of the T-Cal paper is asked for.

use super::sums::{Bucket, ClusterCell, ClusterSums, LEVEL_MAX};
use crate::columns::LevelCell;
use crate::fixed::{CLIP, ONE};
use crate::levels::Level;
use crate::ln::ln;
use crate::repeats::RepeatedScores;

/// Number of occupied cells from which each bucket holds enough of them to be like the others.
const CELLS_MANY: usize = 128;

/// Fewest occupied cells, where scores are narrow or rare: twice the fewest effective buckets that
/// are tested, since buckets of few cells differ more.
const CELLS_MIN: usize = 16;

/// Distinct scores from which fewer than [`CELLS_MANY`] cells suffice: four times as many, because
/// their number is estimated from a sample. A tree or a table with as few leaves as cells errs leaf
/// by leaf, and these errors would not be found.
const SCORES_MIN: f64 = 512.0;

/// The sums by bucket of whole finest cells, if events of one score count as a cluster; else
/// `None`. `level` is that of the grid, and `scores` estimates the number of distinct scores.
pub fn by_score(
    finest: &Level,
    level: u32,
    repeated: &RepeatedScores,
    scores: f64,
) -> Option<ClusterSums> {
    let cells = finest.occupied.len();
    let enough = cells >= CELLS_MANY || cells >= CELLS_MIN && scores >= SCORES_MIN;
    // If too few scores repeat, there are no clusters, however well outcomes agree.
    let clustered =
        enough && repeated.are_clusters(f64::INFINITY) && repeated.are_clusters(agreement(finest)?);
    let up = level.saturating_sub(LEVEL_MAX);
    let row = |c: LevelCell| {
        let mean = (c.z / c.count).clamp(CLIP, 1.0 - CLIP);
        let cell = ClusterCell {
            n: c.count as u64,
            y: c.y as u64,
            z: units(c.z) as u64,
        };
        let terms = [c.u * ln(mean), -c.u * ln(1.0 - mean)].map(units);
        (
            Bucket::of(&c.index.to_le_bytes()),
            (c.index >> up) as usize,
            cell,
            terms,
        )
    };
    let rows = finest.occupied.iter().map(row);
    clustered
        .then(|| ClusterSums::of_cells(rows).ok())
        .flatten()
}

/// Rounds to units of 2⁻³², half to even. The sums of a cell can exceed the range of
/// [`to_fixed`](crate::fixed::to_fixed).
fn units(x: f64) -> i64 {
    (x * ONE as f64).round_ties_even() as i64
}

/// Σ [(ΣU)² − ΣU²] over cells, in standard deviations of independent outcomes.
fn agreement(level: &Level) -> Option<f64> {
    let cells = level.occupied.iter();
    let (d, variance) = cells.fold((0.0, 0.0), |(d, variance), c| {
        (d + c.u * c.u - c.u2, variance + 2.0 * (c.v * c.v - c.v2))
    });
    (variance > 0.0).then(|| d / variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::{Axis, Grid};
    use crate::evaluation::{Critical, Options, Sharing, TCalOptions, evaluate, evaluate_scores};
    use crate::fixed::to_fixed;
    use crate::rng::Rng;
    use crate::samples;
    use crate::tolerance::Conclusion;

    /// Errors of single scores look like dependence within them. The decision does not find these
    /// errors, and the interval sees nothing finer than its cells; so no such window is called
    /// calibrated.
    #[test]
    fn leaves_that_err_one_by_one_are_not_called_calibrated() {
        let (mut rng, grid) = (Rng::new(21), Grid::new(Axis::Linear, 12));
        let leaves: Vec<(f64, f64)> = (0..300)
            .map(|i| (0.05 + 0.003 * f64::from(i), 0.08 * rng.normal()))
            .collect();
        let mut evaluated = |erring: f64| {
            let one = |_| {
                let (z, error) = leaves[rng.below(300)];
                (z, rng.uniform() < z + erring * error)
            };
            let sample: Vec<_> = (0..20_000).map(one).collect();
            evaluate(&samples::sums(grid, &sample), &Options::default()).unwrap()
        };
        let e = evaluated(1.0);
        assert!(e.clusters.is_some_and(|c| c.by_score) && !e.reject);
        let c = e.tolerance;
        assert!(e.interval.upper <= c.tolerance, "{c:?}");
        assert_eq!(
            (c.conclusion, c.more_events),
            (Conclusion::Inconclusive, None)
        );
        // Calibrated leaves keep the verdict.
        let calibrated = evaluated(0.0).tolerance.conclusion;
        assert_eq!(calibrated, Conclusion::Calibrated);
    }

    /// Every record twice.
    #[test]
    fn a_file_has_the_clusters_of_its_window() {
        let events = samples::events(&mut Rng::new(51), 2500, |u| u.powi(2), |z| z);
        let file: Vec<_> = events.iter().flat_map(|e| [*e; 2]).collect();
        let sums = samples::sums(Grid::new(Axis::Linear, 12), &file);
        let o = Options::default();
        let (a, b) = (
            evaluate_scores(&file, &o).unwrap(),
            evaluate(&sums, &o).unwrap(),
        );
        assert!(a.clusters.is_some_and(|c| c.by_score));
        let (said, of_window) = (a.clusters.unwrap(), b.clusters.unwrap());
        assert_eq!(said.buckets, of_window.buckets);
        assert!((said.factor - of_window.factor).abs() < 1e-6);
        assert!((a.p_value - b.p_value).abs() < 1e-3);
        assert_eq!(a.interval.cells, b.interval.cells);
        assert!((a.interval.upper - b.interval.upper).abs() < 1e-6);
        assert_eq!(a.tolerance.conclusion, b.tolerance.conclusion);
        // The paper's procedure takes all events as independent.
        let paper = Options {
            tcal: TCalOptions {
                critical: Critical::MonteCarlo { replicates: 100 },
                sharing: Sharing::Bonferroni,
                ..o.tcal
            },
            ..o
        };
        assert!(evaluate_scores(&file, &paper).unwrap().clusters.is_none());
    }

    /// Narrow and rare scores lie in few cells. While fewer than 128 cells had no clusters, samples
    /// with every record five times were rejected in 56 of 100, and with every record ten times in
    /// 94. The 70 leaves of a tree have too few scores for clusters, and their errors are found.
    #[test]
    fn many_scores_in_few_cells_are_clusters_and_few_scores_are_not() {
        let rejected = |sets: u64, by_score: bool, draw: &dyn Fn(&mut Rng) -> Vec<(f64, bool)>| {
            let one = |seed: &u64| {
                let sample = draw(&mut Rng::new(*seed));
                let e = evaluate_scores(&sample, &Options::default()).unwrap();
                assert_eq!(e.clusters.is_some_and(|c| c.by_score), by_score, "{seed}");
                e.reject
            };
            (0..sets).filter(one).count()
        };
        let copied = |rng: &mut Rng, records: usize, times: usize, score: fn(f64) -> f64| {
            let events = samples::events(rng, records, score, |z| z);
            events.iter().flat_map(|e| vec![*e; times]).collect()
        };
        // Of 100 tests at 5 %, more than 14 reject with probability below 1/5,000.
        let narrow = rejected(100, true, &|rng| copied(rng, 600, 5, |u| 0.5 + 0.005 * u));
        let rare = |u: f64| 1.0 - (1.0 - u).powf(1.0 / 400.0);
        let rare = rejected(100, true, &|rng| copied(rng, 3000, 10, rare));
        assert!(narrow <= 14 && rare <= 14, "{narrow} {rare}");
        // Nine scores in ten are 0 for the second.
        for (n, zeros) in [(20_000, 0.0), (200_000, 0.9)] {
            let leaves = rejected(20, false, &|rng| {
                let error: Vec<f64> = (0..70).map(|_| 0.08 * rng.normal()).collect();
                let one = |_| {
                    let leaf = (70.0 * rng.uniform()) as usize;
                    let z = 0.05 + 0.9 * (leaf as f64 + 0.37) / 70.0;
                    match rng.uniform() < zeros {
                        true => (0.0, false),
                        false => (z, rng.uniform() < z + error[leaf]),
                    }
                };
                (0..n).map(one).collect()
            });
            assert_eq!(leaves, 20, "{zeros}");
        }
    }

    #[test]
    fn sums_of_any_size_are_in_units_and_small_ones_as_single_values_are() {
        let mut rng = Rng::new(3);
        for scale in [1.0, 1e3, 5e5] {
            for _ in 0..1000 {
                let x = scale * (2.0 * rng.uniform() - 1.0);
                assert_eq!(units(x), to_fixed(x), "{x}");
            }
        }
        for x in [600_000.0, -600_000.0, 1e6, 2e6, 1e9] {
            assert_eq!(units(x), (x as i64) << 32, "{x}");
        }
    }
}
