//! Intervals for the ℓ2-ECE by resampling: bootstrap, subsampling, HulC.
//!
//! All treat T, the unbiased estimator at m cells (Sun, Chaudhari, Barnett, Dobriban 2024, (4)), as
//! a black box and draw from the sample; the paper's Figure 4 shows why its own interval is needed.
//!
//! * Bootstrap: quantiles of T over samples drawn with replacement. An event drawn twice pairs with
//!   itself and adds U² to the cross products, so T* is off by about (cells/n)·mean U² and the
//!   interval sits too high.
//! * Subsampling (Politis, Romano 1994): √b(T_b − T) over subsets of b = ⌊√n⌋ approximates √n(T −
//!   ECE²) in distribution. At b = 31 and 50 cells hardly two events share a cell.
//! * HulC (Kuchibhotla, Balakrishnan, Wasserman 2024): the range of T over B disjoint parts. B is
//!   the least with ((½−Δ)^B + (½+Δ)^B) ≤ α, where Δ, the median bias of T, is estimated by
//!   subsampling. The number of parts is drawn from B − 1 and B, so that the error is exactly α.
//!
//! Ends are on the ℓ2-ECE scale, roots of ends cut at 0; the squared ends, which may be negative,
//! have functions of their own. Residuals may be vectors: then products are inner products. Cost:
//! replicates times n, no sorting.

use crate::rng::Rng;

/// An interval on the ℓ2-ECE scale.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Ends {
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

impl Ends {
    fn of_squares((low, high): (f64, f64)) -> Ends {
        Ends {
            lower: low.max(0.0).sqrt(),
            upper: high.max(0.0).sqrt(),
        }
    }

    /// Whether `x` lies in the interval, ends included.
    pub fn contains(&self, x: f64) -> bool {
        self.lower <= x && x <= self.upper
    }
}

/// The three intervals of one sample, beside its estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Compared {
    /// m, the number of cells.
    pub cells: u32,
    /// Number of redrawn samples, and of subsets.
    pub replicates: u32,
    /// Confidence of each interval.
    pub confidence: f64,
    /// T, the unbiased estimate of the squared error; may be negative.
    pub estimate_squared: f64,
    /// Bootstrap.
    pub bootstrap: Ends,
    /// Subsampling.
    pub subsampling: Ends,
    /// HulC.
    pub hulc: Ends,
}

/// The three intervals at `cells` cells, drawn by the seed; `None` with fewer than two events. The
/// parts of HulC are of a shuffled sample: a file is often sorted, by time or by class, and its
/// parts would differ.
pub fn compare(
    sample: &[(f64, bool)],
    cells: u32,
    replicates: u32,
    confidence: f64,
    seed: u64,
) -> Option<Compared> {
    let mut rng = Rng::new(seed);
    let mut shuffled = sample.to_vec();
    rng.choose(&mut shuffled, sample.len());
    let cut = Cut::new(&shuffled, cells)?;
    Some(Compared {
        cells,
        replicates,
        confidence,
        estimate_squared: cut.estimate(0..cut.n()),
        bootstrap: Ends::of_squares(cut.bootstrap_squared(replicates, confidence, &mut rng)),
        subsampling: Ends::of_squares(cut.subsampling_squared(replicates, confidence, &mut rng)),
        hulc: Ends::of_squares(cut.hulc_squared(replicates, confidence, &mut rng)),
    })
}

/// A sample cut into m cells once, so that T of any part takes one pass.
#[derive(Debug, Clone)]
pub struct Cut {
    cells: Vec<u32>,
    /// `width` coordinates an event.
    residuals: Vec<f64>,
    width: usize,
    m: usize,
}

impl Cut {
    /// Cuts scores in [0, 1] into `m` ≥ 1 equal cells, the last closed. At least two events, or
    /// `None`.
    pub fn new(sample: &[(f64, bool)], m: u32) -> Option<Cut> {
        let cell = |z: f64| ((z * f64::from(m)) as u32).min(m - 1);
        (sample.len() >= 2).then(|| Cut {
            cells: sample.iter().map(|s| cell(s.0)).collect(),
            residuals: sample
                .iter()
                .map(|&(z, y)| f64::from(u8::from(y)) - z)
                .collect(),
            width: 1,
            m: m as usize,
        })
    }

    /// Events in numbered cells, each with a residual of `width` ≥ 1 coordinates. At least two
    /// events, or `None`.
    pub fn of_vectors(cells: Vec<u32>, residuals: Vec<f64>, width: usize) -> Option<Cut> {
        assert_eq!(residuals.len(), width * cells.len(), "a residual an event");
        let m = cells.iter().max().map_or(0, |last| *last as usize + 1);
        (cells.len() >= 2).then_some(Cut {
            cells,
            residuals,
            width,
            m,
        })
    }

    fn n(&self) -> usize {
        self.cells.len()
    }

    /// T of the events at `indices`, repeated ones counted as often; 0 of none.
    pub fn estimate(&self, indices: impl Iterator<Item = usize>) -> f64 {
        // For each cell N, Σ‖U‖² and the coordinates of ΣU.
        let stride = self.width + 2;
        let mut sums = vec![0.0; stride * self.m];
        let mut n = 0.0;
        for i in indices {
            let at = stride * self.cells[i] as usize;
            let cell = &mut sums[at..at + stride];
            cell[0] += 1.0;
            for (k, u) in self.residuals[self.width * i..self.width * (i + 1)]
                .iter()
                .enumerate()
            {
                cell[1] += u * u;
                cell[2 + k] += u;
            }
            n += 1.0;
        }
        let pairs = sums.chunks_exact(stride).filter(|c| c[0] >= 2.0);
        let square = |c: &[f64]| c[2..].iter().map(|u| u * u).sum::<f64>();
        let sum: f64 = pairs.map(|c| (square(c) - c[1]) / (c[0] - 1.0)).sum();
        if n > 0.0 { sum / n } else { 0.0 }
    }

    /// Bootstrap percentile interval of the squared error.
    pub fn bootstrap_squared(&self, replicates: u32, confidence: f64, rng: &mut Rng) -> (f64, f64) {
        let n = self.n();
        let mut drawn: Vec<f64> = (0..replicates.max(1))
            .map(|_| self.estimate((0..n).map(|_| rng.below(n))))
            .collect();
        quantiles(&mut drawn, confidence)
    }

    /// The size ⌊√n⌋ of a subset, and T of random subsets of this size.
    fn subsets(&self, replicates: u32, rng: &mut Rng) -> (f64, Vec<f64>) {
        let n = self.n();
        let size = (n as f64).sqrt().floor().max(1.0) as usize;
        let mut order: Vec<usize> = (0..n).collect();
        let mut one = || {
            rng.choose(&mut order, size);
            self.estimate(order[..size].iter().copied())
        };
        (size as f64, (0..replicates.max(1)).map(|_| one()).collect())
    }

    /// Subsampling interval of the squared error: T − quantiles of √(b/n)(T_b − T).
    pub fn subsampling_squared(
        &self,
        replicates: u32,
        confidence: f64,
        rng: &mut Rng,
    ) -> (f64, f64) {
        let whole = self.estimate(0..self.n());
        let (size, drawn) = self.subsets(replicates, rng);
        let scale = (size / self.n() as f64).sqrt();
        let mut off: Vec<f64> = drawn.iter().map(|t| scale * (t - whole)).collect();
        let (low, high) = quantiles(&mut off, confidence);
        (whole - high, whole - low)
    }

    /// HulC interval of the squared error, with the median bias estimated by `replicates` subsets.
    pub fn hulc_squared(&self, replicates: u32, confidence: f64, rng: &mut Rng) -> (f64, f64) {
        let whole = self.estimate(0..self.n());
        let (_, drawn) = self.subsets(replicates, rng);
        let below_whole = drawn.iter().filter(|t| **t < whole).count() as f64 / drawn.len() as f64;
        // With a bias of ½ no number of parts is enough; a sample has at most n/2 useful ones.
        let bias = (below_whole - 0.5).abs().min(0.499);
        let parts = hulc_parts(bias, 1.0 - confidence, rng.uniform())
            .min(self.n() / 2)
            .max(1);
        let size = self.n() / parts;
        let part = |k: usize| {
            let end = if k + 1 == parts {
                self.n()
            } else {
                (k + 1) * size
            };
            self.estimate(k * size..end)
        };
        (0..parts)
            .map(part)
            .fold((f64::MAX, f64::MIN), |(a, b), t| (a.min(t), b.max(t)))
    }
}

/// Number of parts of HulC for a median bias Δ = `bias` < ½: the least B with (½−Δ)^B + (½+Δ)^B ≤
/// α, or B − 1 with the probability that makes the error α on average. `uniform`, drawn from [0,
/// 1), decides.
pub fn hulc_parts(bias: f64, alpha: f64, uniform: f64) -> usize {
    let miss = |b: i32| (0.5 - bias).powi(b) + (0.5 + bias).powi(b);
    let mut parts = 1;
    while miss(parts) > alpha && parts < 10_000 {
        parts += 1;
    }
    let (with, without) = (miss(parts), miss(parts - 1));
    let fewer = parts > 1 && uniform <= (alpha - with) / (without - with);
    (parts - i32::from(fewer)) as usize
}

/// The equal-tailed quantiles of drawn values, by linear interpolation between order statistics.
fn quantiles(drawn: &mut [f64], confidence: f64) -> (f64, f64) {
    drawn.sort_by(f64::total_cmp);
    let at = |q: f64| {
        let place = q * (drawn.len() - 1) as f64;
        let low = place.floor() as usize;
        let high = (low + 1).min(drawn.len() - 1);
        drawn[low] + (place - low as f64) * (drawn[high] - drawn[low])
    };
    let tail = 0.5 * (1.0 - confidence);
    (at(tail), at(1.0 - tail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimator::unbiased;
    use crate::levels::Level;
    use crate::samples;

    fn sample(n: usize, push: f64, rng: &mut Rng) -> Vec<(f64, bool)> {
        samples::events(rng, n, |u| u, |z| z * (1.0 - push))
    }

    #[test]
    fn the_black_box_is_the_products_estimator() {
        let sample = sample(500, 0.2, &mut Rng::new(1));
        let cut = Cut::new(&sample, 20).unwrap();
        let want = unbiased(&Level::from_scores(&sample, 20));
        assert!((cut.estimate(0..500) - want).abs() < 1e-13);
        assert!(Cut::new(&sample[..1], 20).is_none());
    }

    #[test]
    fn hulc_uses_five_parts_or_four_without_bias_and_more_with_it() {
        // ½^(B−1) ≤ 0.1 needs B = 5; B = 4 with chance (0.1 − 0.0625)/(0.125 − 0.0625) = 0.6.
        assert_eq!(hulc_parts(0.0, 0.1, 0.59), 4);
        assert_eq!(hulc_parts(0.0, 0.1, 0.61), 5);
        assert!(hulc_parts(0.3, 0.1, 0.99) > 8);
    }

    /// T by its definition, a double loop over pairs of neighbours in a cell: Σ over cells of
    /// N·mean over pairs of U·U′, over n.
    fn naive(sample: &[(f64, bool)], drawn: &[usize], m: u32) -> f64 {
        let cell = |z: f64| ((z * f64::from(m)) as u32).min(m - 1);
        let mut sum = 0.0;
        for c in 0..m {
            let u: Vec<f64> = drawn
                .iter()
                .map(|&i| sample[i])
                .filter(|s| cell(s.0) == c)
                .map(|(z, y)| f64::from(u8::from(y)) - z)
                .collect();
            let n = u.len() as f64;
            for i in 0..u.len() {
                for j in 0..u.len() {
                    if i != j {
                        sum += u[i] * u[j] / (n - 1.0);
                    }
                }
            }
        }
        sum / drawn.len() as f64
    }

    #[test]
    fn the_intervals_are_what_their_definitions_say_of_the_same_draws() {
        let sample = sample(100, 0.5, &mut Rng::new(3));
        let cut = Cut::new(&sample, 4).unwrap();
        let whole: Vec<usize> = (0..100).collect();
        let t = naive(&sample, &whole, 4);
        let quantile = |v: &[f64], q: f64| {
            let place = q * (v.len() - 1) as f64;
            let (low, high) = (place.floor(), place.ceil());
            v[low as usize] * (1.0 - place.fract()) + v[high as usize] * place.fract()
        };
        let near = |e: (f64, f64), low: f64, high: f64| {
            assert!(
                (e.0 - low).abs() < 1e-9 && (e.1 - high).abs() < 1e-9,
                "{e:?} {low} {high}"
            );
        };
        // Bootstrap: the same draws, one by one.
        let mut rng = Rng::new(4);
        let got = cut.bootstrap_squared(39, 0.9, &mut Rng::new(4));
        let mut draw = || -> f64 {
            let drawn: Vec<usize> = (0..100).map(|_| rng.below(100)).collect();
            naive(&sample, &drawn, 4)
        };
        let mut all: Vec<f64> = (0..39).map(|_| draw()).collect();
        all.sort_by(f64::total_cmp);
        near(got, quantile(&all, 0.05), quantile(&all, 0.95));
        // Subsampling: subsets of ten, the first ten places of a shuffle that continues.
        let subsets = |seed: u64| -> (Vec<f64>, Rng) {
            let mut rng = Rng::new(seed);
            let mut order = whole.clone();
            let mut one = || {
                rng.choose(&mut order, 10);
                naive(&sample, &order[..10], 4)
            };
            let drawn = (0..39).map(|_| one()).collect();
            (drawn, rng)
        };
        let (drawn, _) = subsets(5);
        let got = cut.subsampling_squared(39, 0.9, &mut Rng::new(5));
        let mut off: Vec<f64> = drawn
            .iter()
            .map(|b| (10f64 / 100.0).sqrt() * (b - t))
            .collect();
        off.sort_by(f64::total_cmp);
        near(got, t - quantile(&off, 0.95), t - quantile(&off, 0.05));
        // HulC: parts of neighbours, as many as the bias asks for.
        let (drawn, mut rng) = subsets(6);
        let got = cut.hulc_squared(39, 0.9, &mut Rng::new(6));
        let bias = (drawn.iter().filter(|b| **b < t).count() as f64 / 39.0 - 0.5).abs();
        let parts = hulc_parts(bias, 0.1, rng.uniform());
        let size = 100 / parts;
        let of = |k: usize| {
            let end = if k + 1 == parts { 100 } else { (k + 1) * size };
            naive(&sample, &whole[k * size..end], 4)
        };
        let all: Vec<f64> = (0..parts).map(of).collect();
        let low = all.iter().copied().fold(f64::MAX, f64::min);
        let high = all.iter().copied().fold(f64::MIN, f64::max);
        near(got, low, high);
    }

    #[test]
    fn a_sorted_file_has_the_intervals_of_any_other_order_of_it() {
        let sample = sample(3000, 0.4, &mut Rng::new(7));
        let mut sorted = sample.clone();
        sorted.sort_by(|a, b| a.1.cmp(&b.1).then(a.0.total_cmp(&b.0)));
        let truth = (0.16f64 / 3.0).sqrt();
        for sample in [&sample, &sorted] {
            let c = compare(sample, 20, 200, 0.9, 1).unwrap();
            assert!(
                c.hulc.contains(truth) && c.bootstrap.contains(truth),
                "{c:?}"
            );
            assert_eq!(compare(sample, 20, 200, 0.9, 1), Some(c));
        }
        assert!(compare(&sample[..1], 20, 200, 0.9, 1).is_none());
    }

    #[test]
    fn far_from_calibration_the_intervals_hold_about_the_truth() {
        let mut rng = Rng::new(2);
        // E(0.4z)² = 0.16/3.
        let truth = (0.16f64 / 3.0).sqrt();
        let (mut hits, sets) = ([0; 3], 60);
        for _ in 0..sets {
            let cut = Cut::new(&sample(2000, 0.4, &mut rng), 20).unwrap();
            let ends = [
                cut.bootstrap_squared(100, 0.9, &mut rng),
                cut.subsampling_squared(100, 0.9, &mut rng),
                cut.hulc_squared(100, 0.9, &mut rng),
            ];
            for (hits, ends) in hits.iter_mut().zip(ends.map(Ends::of_squares)) {
                *hits += u32::from(ends.contains(truth));
            }
        }
        assert!(hits.iter().all(|h| *h > 40), "{hits:?}");
    }
}
