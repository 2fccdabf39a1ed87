//! The test at fixed locations: a χ² test of residuals weighted by closeness to chosen predictions.
//!
//! Widmann, Lindsten, Zachariah, *Calibration tests beyond classification* (2021), and
//! `CalibrationTests.jl` (UCME). With J locations (t_j, class c_j), d_j = (1{y = c_j} −
//! g_{c_j})·φ(g, t_j): the estimate is the mean of squared means d̄_j², and n·d̄ᵀS⁻¹d̄, S the
//! sample covariance, is χ² with J degrees in the limit under the null. Its sums (n, Σd, Σddᵀ) are
//! additive, so it is the cheapest streaming test for vectors: O(JK) an event.

use super::phi::Kernel;
use super::vectors::Vectors;
use statrs::function::gamma::checked_gamma_ur;

/// Sums of the weighted residuals at J locations.
#[derive(Debug, Clone, PartialEq)]
pub struct Locations {
    kernel: Kernel,
    places: Vec<(Vec<f64>, u32)>,
    n: f64,
    sum: Vec<f64>,
    squares: Vec<f64>,
}

/// What the test says.
#[derive(Debug, Clone, PartialEq)]
pub struct LocationTest {
    /// Mean of squared mean deviations.
    pub estimate: f64,
    /// The mean deviations.
    pub deviations: Vec<f64>,
    /// n·d̄ᵀS⁻¹d̄ and its upper p-value; `None` where S has no inverse.
    pub chi_squared: Option<(f64, f64)>,
}

impl Locations {
    /// No events, at the given predictions and classes.
    pub fn new(kernel: Kernel, places: Vec<(Vec<f64>, u32)>) -> Locations {
        let j = places.len();
        Locations {
            kernel,
            places,
            n: 0.0,
            sum: vec![0.0; j],
            squares: vec![0.0; j * j],
        }
    }

    /// Adds every event of the sample.
    pub fn observe(&mut self, sample: &Vectors) {
        let j = self.places.len();
        for (g, y) in sample.events() {
            let deviation = |(t, c): &(Vec<f64>, u32)| {
                let hit = if *c == y { 1.0 } else { 0.0 };
                (hit - g[*c as usize]) * self.kernel.value(g, t)
            };
            let d: Vec<f64> = self.places.iter().map(deviation).collect();
            for (a, x) in d.iter().enumerate() {
                self.sum[a] += x;
                for (b, z) in d.iter().enumerate() {
                    self.squares[a * j + b] += x * z;
                }
            }
            self.n += 1.0;
        }
    }

    /// Adds the sums of `other`, made at the same places.
    pub fn merge(&mut self, other: &Locations) {
        assert_eq!(self.places, other.places, "sums of other places never meet");
        self.n += other.n;
        self.sum
            .iter_mut()
            .zip(&other.sum)
            .for_each(|(a, b)| *a += b);
        self.squares
            .iter_mut()
            .zip(&other.squares)
            .for_each(|(a, b)| *a += b);
    }

    /// The test; `None` with fewer than two events.
    pub fn test(&self) -> Option<LocationTest> {
        let (n, j) = (self.n, self.places.len());
        if n < 2.0 || j == 0 {
            return None;
        }
        let mean: Vec<f64> = self.sum.iter().map(|s| s / n).collect();
        let covariance = (0..j * j)
            .map(|k| (self.squares[k] - n * mean[k / j] * mean[k % j]) / (n - 1.0))
            .collect();
        let chi_squared = quadratic_form(covariance, &mean).map(|q| {
            let at = n * q;
            let p = checked_gamma_ur(j as f64 / 2.0, at / 2.0).unwrap_or(1.0);
            (at, p)
        });
        Some(LocationTest {
            estimate: mean.iter().map(|m| m * m).sum::<f64>() / j as f64,
            deviations: mean,
            chi_squared,
        })
    }
}

/// xᵀA⁻¹x of a symmetric positive definite A by Cholesky's factor; `None` where A is not.
fn quadratic_form(mut a: Vec<f64>, x: &[f64]) -> Option<f64> {
    let j = x.len();
    let mut total = 0.0;
    let mut solved: Vec<f64> = Vec::with_capacity(j);
    for r in 0..j {
        for c in 0..=r {
            let inner: f64 = (0..c).map(|k| a[r * j + k] * a[c * j + k]).sum();
            let rest = a[r * j + c] - inner;
            if r > c {
                a[r * j + c] = rest / a[c * j + c];
            } else if rest > f64::EPSILON * a[r * j + r] {
                a[r * j + r] = rest.sqrt();
            } else {
                return None;
            }
        }
        let known: f64 = (0..r).map(|k| a[r * j + k] * solved[k]).sum();
        let z = (x[r] - known) / a[r * j + r];
        total += z * z;
        solved.push(z);
    }
    Some(total)
}
