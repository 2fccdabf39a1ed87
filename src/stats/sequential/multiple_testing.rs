//! Which streams of a fleet to call miscalibrated at once: e-BH on their detectors.
//!
//! A single threshold A on each of N streams allows N false alarms per budget; A·N (Bonferroni)
//! allows one, and detects later. e-BH lies between them: with k* the largest k for which the k-th
//! largest M is at least N·A/k, call the k* largest. At any stopping time the expected share of
//! false ones among those called is at most (1/N) of the capital staked on calibrated streams, over
//! A, whatever the dependence between streams, since a called stream has 1/k* ≤ M/(N·A).
//! (Dandapanthula, Ramdas, *Multiple testing in multi-stream sequential change detection*, 2025;
//! Wang, Ramdas, *False discovery rate control with e-values*, 2022.)
//!
//! Ties are called together. The functions take logarithms, so no M is too large, and return
//! indices, ascending.

/// Streams called by e-BH from the log M of all of them and log A.
pub fn called(log_worths: &[f64], log_threshold: f64) -> Vec<usize> {
    let all = log_worths.len() as f64;
    largest(log_worths, log_threshold + all.ln())
}

/// Streams called by e-BH if each stakes a share of one budget, as in the product. Shares that sum
/// to 1 replace the factor N: the k largest are called, for the largest k with the k-th at least
/// A/k.
pub fn shared(log_worths: &[f64], log_threshold: f64) -> Vec<usize> {
    largest(log_worths, log_threshold)
}

/// Indices of the k largest, for the largest k with the k-th at least `threshold` − ln k.
fn largest(worths: &[f64], threshold: f64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..worths.len()).collect();
    order.sort_by(|&a, &b| worths[b].total_cmp(&worths[a]));
    let reaches = |k: &usize| worths[order[k - 1]] + (*k as f64).ln() >= threshold;
    let k = (1..=order.len()).rev().find(reaches).unwrap_or(0);
    order.truncate(k);
    order.sort_unstable();
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_streams_with_some_evidence_are_called_where_one_would_not_be() {
        let log_a = 1e6f64.ln();
        let mut all = vec![0.0; 10];
        all[3] = 3e6f64.ln();
        assert!(called(&all, log_a).is_empty());
        all[5] = all[3];
        all[6] = all[3];
        all[8] = all[3];
        assert_eq!(called(&all, log_a), [3, 5, 6, 8]);
        assert!(called(&[], log_a).is_empty());
    }
}
