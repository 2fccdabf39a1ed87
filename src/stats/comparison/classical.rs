//! The debiased estimator of Kumar, Liang and Ma, and the consistency resampling test of the
//! ℓ1-ECE.

use crate::conditional::rank::reaches;
use crate::estimator::ece_l1;
use crate::levels::Level;
use crate::rng::Rng;

/// Debiased squared ℓ2 error of binned scores: Σ(N/n)[(s − ȳ)² − ȳ(1−ȳ)/(N−1)], s the mean score of
/// a cell (Kumar, Liang, Ma, *Verified uncertainty calibration*, 2019, Definition 3.4).
///
/// Mean 0 over calibrated samples of discrete scores, may be negative. It differs from
/// [`crate::estimator::unbiased`] by treating the scores of a cell as one, so it is for calibrators
/// that output few values. Cells of one event are left out; 0 when there are no others.
///
/// Four events of score 0.5, three positive: (0.0625 − 0.1875/3) = 0.
pub fn debiased_l2(level: &Level) -> f64 {
    let (mut n, mut sum) = (0.0, 0.0);
    for c in level.occupied.iter() {
        n += c.n;
        if c.n >= 2.0 {
            let (s, y) = (c.z / c.n, c.y / c.n);
            sum += c.n * ((s - y) * (s - y) - y * (1.0 - y) / (c.n - 1.0));
        }
    }
    if n > 0.0 { sum / n } else { 0.0 }
}

/// [`debiased_l2`] over distinct scores, for calibrators that output few values: every score is a
/// cell of its own, so s is the score itself. The papers print it in per cent, without a root (Lee
/// et al. 2022, Tables 4 to 6).
///
/// A score that occurs once is left out, because its noise cannot be separated from its error;
/// `None` where no score repeats. The program of that paper (`ece_kumar`, later
/// `discrete_debiased_l2_ece`) adds the squared residual of such a score without a correction.
/// Where every score repeats both agree.
///
/// Eight events, four of score 0.5 with three positive and four of 0.25 with none: (4·0 +
/// 4·0.0625)/8 = 1/32.
pub fn debiased_l2_distinct(sample: &[(f64, bool)]) -> Option<f64> {
    let mut order = sample.to_vec();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut sum, mut repeats) = (0.0, false);
    for group in order.chunk_by(|a, b| a.0 == b.0).filter(|g| g.len() > 1) {
        repeats = true;
        let n = group.len() as f64;
        let y = group.iter().filter(|e| e.1).count() as f64 / n;
        let s = group[0].0;
        sum += n * ((s - y) * (s - y) - y * (1.0 - y) / (n - 1.0));
    }
    repeats.then(|| sum / sample.len() as f64)
}

/// Consistency resampling (Bröcker, Smith 2007; Vaicenavicius et al. 2019): p-value of the ℓ1-ECE
/// over `cells` equal cells by redrawing scores with replacement and outcomes from them, (1 +
/// #{ECE* ≥ ECE})/(1 + R).
///
/// Scores are redrawn too, so the test is not conditional on them; the ℓ1-ECE is biased alike in
/// the sample and in the draws. `None` without events. The test uses one level, where T-Cal uses
/// all.
pub fn consistency_p_value(
    sample: &[(f64, bool)],
    cells: u64,
    replicates: u32,
    seed: u64,
) -> Option<f64> {
    if sample.is_empty() {
        return None;
    }
    let observed = ece_l1(&Level::from_scores(sample, cells));
    let mut rng = Rng::new(seed);
    let mut above = 0;
    let mut residuals = vec![0.0; cells as usize];
    for _ in 0..replicates {
        residuals.fill(0.0);
        for _ in 0..sample.len() {
            let z = sample[rng.below(sample.len())].0;
            let y = if rng.uniform() < z { 1.0 } else { 0.0 };
            residuals[((z * cells as f64) as usize).min(cells as usize - 1)] += y - z;
        }
        let drawn = residuals.iter().map(|r| r.abs()).sum::<f64>() / sample.len() as f64;
        above += u32::from(reaches(drawn, observed));
    }
    Some((1.0 + f64::from(above)) / (1.0 + f64::from(replicates)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn four_events_give_the_number_of_the_documentation() {
        let sample = [(0.5, true), (0.5, true), (0.5, true), (0.5, false)];
        assert!(debiased_l2(&Level::from_scores(&sample, 10)).abs() < 1e-15);
        let eight: Vec<_> = sample.into_iter().chain([(0.25, false); 4]).collect();
        assert!((debiased_l2_distinct(&eight).unwrap() - 1.0 / 32.0).abs() < 1e-15);
        // A score that occurs once says nothing; eight of nine events do.
        let nine: Vec<_> = eight.into_iter().chain([(0.9, false)]).collect();
        assert!((debiased_l2_distinct(&nine).unwrap() - 0.25 / 9.0).abs() < 1e-15);
        assert_eq!(debiased_l2_distinct(&[(0.3, true), (0.4, false)]), None);
        assert_eq!(debiased_l2_distinct(&[]), None);
    }

    #[test]
    fn the_debiased_estimator_has_mean_zero_on_calibrated_discrete_scores() {
        let mut rng = Rng::new(4);
        let (mut sum, mut squares, sets) = (0.0, 0.0, 2000);
        for _ in 0..sets {
            let grade = |u: f64| (u * 5.0).floor() / 5.0 + 0.1;
            let sample = samples::events(&mut rng, 100, grade, |z| z);
            let e = debiased_l2(&Level::from_scores(&sample, 5));
            sum += e;
            squares += e * e;
        }
        let n = f64::from(sets);
        assert!((sum / n).abs() < 4.0 * (squares / n).sqrt() / n.sqrt());
    }

    #[test]
    fn drawn_errors_that_equal_the_observed_one_count() {
        // One score: the error of k positives is |k − 3|/10, here .2, so 0, 1, 5 and more reach it.
        let sample: Vec<_> = (0..10).map(|i| (0.3, i % 2 == 0)).collect();
        let reach: f64 = (0..=10u64)
            .filter(|k| k.abs_diff(3) >= 2)
            .map(|k| crate::binomial::probability(k, 10, 0.3))
            .sum();
        assert_eq!(consistency_p_value(&[], 15, 99, 1), None);
        let p = consistency_p_value(&sample, 15, 20_000, 1);
        assert!(p.is_some_and(|p| (p - reach).abs() < 0.01), "{p:?} {reach}");
    }

    #[test]
    fn consistency_resampling_keeps_its_level_and_finds_a_push() {
        let mut rng = Rng::new(6);
        let (mut level, mut power, sets) = (0, 0, 100);
        for set in 0..sets {
            for (push, hits) in [(0.0, &mut level), (0.25, &mut power)] {
                let sample = samples::events(&mut rng, 400, |u| u, |z| z * (1.0 - push));
                *hits += u32::from(consistency_p_value(&sample, 15, 99, set).unwrap() <= 0.05);
            }
        }
        assert!(level <= 13 && power > 90, "{level} {power}");
    }
}
