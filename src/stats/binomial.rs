//! The binomial law: its probabilities without cancellation, for counts up to 10⁹ and beyond.
//!
//! log n! − log k! − log (n−k)! loses as many digits as log n! has before the point; Loader's form
//! subtracts the large parts analytically (Stirling's error and the deviance), so a probability
//! keeps about fourteen digits at any n. Source: Loader, *Fast and accurate computation of binomial
//! probabilities* (2000). About 50 ns a probability.

use std::f64::consts::PI;

/// P(K = k) for K ~ Binomial(n, p), 0 ≤ k ≤ n, p in [0, 1].
pub fn probability(k: u64, n: u64, p: f64) -> f64 {
    let q = 1.0 - p;
    let (x, size) = (k as f64, n as f64);
    if p <= 0.0 {
        return f64::from(u8::from(k == 0));
    }
    if q <= 0.0 {
        return f64::from(u8::from(k == n));
    }
    if k == 0 {
        return (size * (-p).ln_1p()).exp();
    }
    if k == n {
        return (size * p.ln()).exp();
    }
    let rest = size - x;
    let log = stirling_error(size)
        - stirling_error(x)
        - stirling_error(rest)
        - deviance(x, size * p)
        - deviance(rest, size * q);
    log.exp() * (size / (2.0 * PI * x * rest)).sqrt()
}

/// log n! − log(√(2πn)(n/e)ⁿ), n ≥ 1.
fn stirling_error(n: f64) -> f64 {
    if n < 16.0 {
        let factorial: f64 = (2..=n as u64).map(|i| i as f64).product();
        return factorial.ln() - (n + 0.5) * n.ln() + n - 0.5 * (2.0 * PI).ln();
    }
    let s = 1.0 / (n * n);
    (1.0 / 12.0 - s * (1.0 / 360.0 - s * (1.0 / 1260.0 - s * (1.0 / 1680.0 - s / 1188.0)))) / n
}

/// x·log(x/m) + m − x without cancellation near x = m.
fn deviance(x: f64, m: f64) -> f64 {
    let d = x - m;
    if d.abs() < 0.1 * (x + m) {
        let v = d / (x + m);
        let mut sum = d * v;
        let mut term = 2.0 * x * v;
        for j in 1..1000 {
            term *= v * v;
            let next = sum + term / f64::from(2 * j + 1);
            if next == sum {
                break;
            }
            sum = next;
        }
        return sum;
    }
    x * (x / m).ln() + m - x
}

/// The probabilities of k = first, first + 1, … that are at least `least` times that of the mode;
/// returns `first` and the list. Only the mode's is computed directly; the others follow by ratios.
pub fn bulk(n: u64, p: f64, least: f64) -> (u64, Vec<f64>) {
    let mode = (((n + 1) as f64 * p) as u64).min(n);
    let top = probability(mode, n, p);
    let odds = p / (1.0 - p);
    let (mut below, mut above) = (Vec::new(), Vec::new());
    let (mut k, mut now) = (mode, top);
    while k > 0 && p < 1.0 {
        now *= k as f64 / ((n - k + 1) as f64 * odds);
        k -= 1;
        if now < least * top {
            break;
        }
        below.push(now);
    }
    (k, now) = (mode, top);
    while k < n && p < 1.0 {
        now *= (n - k) as f64 * odds / (k + 1) as f64;
        k += 1;
        if now < least * top {
            break;
        }
        above.push(now);
    }
    let first = mode - below.len() as u64;
    below.reverse();
    below.push(top);
    below.append(&mut above);
    (first, below)
}

/// p-value of the exact two-sided test that k of n have probability p: the sum of all probabilities
/// that do not exceed that of k (by more than 10⁻⁷ of it, so that ties of symmetric laws count),
/// the definition of R's `binom.test` and SciPy's `binomtest`. 1 for n = 0.
///
/// Tails are summed term by term from the edge outwards until a term no longer counts: O(√n).
pub fn two_sided(k: u64, n: u64, p: f64) -> f64 {
    const TIES: f64 = 1.0 + 1e-7;
    let mean = n as f64 * p;
    if n == 0 || k as f64 == mean {
        return 1.0;
    }
    let bar = probability(k, n, p) * TIES;
    let sum = if (k as f64) < mean {
        // The first k' on the far side that is as improbable.
        let (mut low, mut high) = (mean.ceil() as u64, n + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if probability(middle, n, p) <= bar {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        lower_tail(k, n, p) + upper_tail(low, n, p)
    } else {
        // One past the last k' on the far side that is as improbable.
        let (mut low, mut high) = (0, mean.floor() as u64 + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if probability(middle, n, p) <= bar {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        upper_tail(k, n, p) + low.checked_sub(1).map_or(0.0, |k| lower_tail(k, n, p))
    };
    sum.min(1.0)
}

/// P(K ≤ k). The sum is short if k is at most the mean (or the mode).
fn lower_tail(k: u64, n: u64, p: f64) -> f64 {
    upper_tail(n - k, n, 1.0 - p)
}

/// P(K ≥ k); 0 for k > n. The sum is short if k is at least the mean.
pub(super) fn upper_tail(k: u64, n: u64, p: f64) -> f64 {
    if k > n || p <= 0.0 {
        return f64::from(u8::from(k == 0));
    }
    let odds = p / (1.0 - p);
    let mut term = probability(k, n, p);
    let mut sum = term;
    for j in k..n {
        let ratio = (n - j) as f64 * odds / (j + 1) as f64;
        term *= ratio;
        sum += term;
        if ratio < 1.0 && term < 1e-17 * sum {
            break;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_sum_to_one() {
        for (n, p) in [(1, 0.3), (17, 0.01), (1000, 0.5), (1_000_000, 0.002)] {
            let (_, all) = bulk(n, p, 1e-18);
            assert!((all.iter().sum::<f64>() - 1.0).abs() < 1e-11, "{n} {p}");
        }
    }

    #[test]
    fn small_cases_are_exact() {
        assert!((probability(2, 4, 0.5) - 0.375).abs() < 1e-15);
        assert!((probability(1, 3, 0.25) - 27.0 / 64.0).abs() < 1e-15);
        assert_eq!(probability(0, 5, 0.0), 1.0);
        assert_eq!(bulk(5, 1.0, 1e-16), (5, vec![1.0]));
    }

    #[test]
    fn the_two_sided_test_sums_what_is_no_likelier() {
        // By hand: P(0)=P(4)=1/16, P(1)=P(3)=1/4, P(2)=3/8.
        assert!((two_sided(1, 4, 0.5) - 0.625).abs() < 1e-12);
        assert!((two_sided(4, 4, 0.5) - 0.125).abs() < 1e-12);
        assert_eq!(two_sided(2, 4, 0.5), 1.0);
        // R: binom.test(682, 925, p = 0.75)$p.value and binom.test(3, 15, 0.1)$p.value
        assert!((two_sided(682, 925, 0.75) - 0.3825).abs() < 5e-5);
        assert!((two_sided(3, 15, 0.1) - 0.184_061_06).abs() < 1e-7);
        assert_eq!(two_sided(0, 9, 0.0), 1.0);
        assert_eq!(two_sided(1, 9, 0.0), 0.0);
        assert_eq!(two_sided(9, 9, 1.0), 1.0);
        assert_eq!(two_sided(8, 9, 1.0), 0.0);
    }

    #[test]
    fn the_two_sided_test_agrees_with_its_definition() {
        for n in [1u64, 2, 7, 40] {
            for p in [0.003, 0.2, 0.5, 0.77, 0.999] {
                for k in 0..=n {
                    let bar = probability(k, n, p) * (1.0 + 1e-7);
                    let all = (0..=n).map(|j| probability(j, n, p));
                    let expected: f64 = all.filter(|&q| q <= bar).sum();
                    let got = two_sided(k, n, p);
                    assert!((got - expected.min(1.0)).abs() < 1e-10, "{k} {n} {p}");
                }
            }
        }
    }
}
