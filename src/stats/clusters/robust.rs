//! Dispersion and interval by buckets; see the [module above](super).

use super::super::estimate::Estimate;
use super::super::levels::Level;
use super::super::null::normal_upper_quantile;
use super::CLUSTERS_MIN;
use super::sums::{ClusterCell, ClusterSums};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The number and the dispersion of the clusters of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Clusters {
    /// Occupied buckets, G.
    pub buckets: u32,
    /// G* = (Σn_b)²/Σn_b², the effective number of buckets.
    pub effective: f64,
    /// φ̂, the variance of bucket totals as a multiple of that of independent outcomes; 1 where
    /// nothing varies.
    pub factor: f64,
    /// Number of sign patterns that the tests took; 0 where there are too few buckets.
    pub patterns: u32,
    /// Whether clusters are unnamed, so that events of one score count as a cluster.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub by_score: bool,
}

impl Clusters {
    /// The dispersion of ΣU by bucket; `u2` is ΣU² of all events.
    pub fn of(sums: &ClusterSums, u2: f64) -> Clusters {
        let of = |(_, b): (_, &super::BucketSums)| {
            let u: f64 = b.cells.iter().map(ClusterCell::u).sum();
            (b.n() as f64, u)
        };
        dispersion_of(sums.occupied().map(of).collect(), u2)
    }

    /// The dispersion of Spiegelhalter's sum Σ(1 − 2z)U by bucket; z is the mean score of its cell
    /// at `level`, the level at which the sums are kept.
    pub fn of_spiegelhalter(sums: &ClusterSums, level: &Level) -> Clusters {
        let mut means = vec![(0u64, 0u64); level.cells as usize];
        for (_, b) in sums.occupied() {
            for ((n, z), c) in means.iter_mut().zip(&b.cells) {
                (*n, *z) = (n.saturating_add(c.n), z.saturating_add(c.z));
            }
        }
        let unit = 1.0 / (1u64 << 32) as f64;
        let weight = |(n, z): &(u64, u64)| 1.0 - 2.0 * (*z as f64 * unit) / (*n as f64).max(1.0);
        let weights: Vec<f64> = means.iter().map(weight).collect();
        let of = |(_, b): (_, &super::BucketSums)| {
            let terms = b.cells.iter().zip(&weights);
            (b.n() as f64, terms.map(|(c, w)| w * c.u()).sum())
        };
        let cells = level.occupied.iter();
        let squares = cells
            .map(|c| weights[c.index as usize].powi(2) * c.u2)
            .sum();
        dispersion_of(sums.occupied().map(of).collect(), squares)
    }

    /// Whether there are fewer than [`CLUSTERS_MIN`] buckets.
    pub fn are_few(&self) -> bool {
        (self.buckets as usize) < CLUSTERS_MIN
    }

    /// φ, at least 1, and its degrees of freedom.
    pub fn dispersion(&self) -> (f64, f64) {
        (self.factor.max(1.0), (self.effective - 1.0).max(1.0))
    }
}

/// The dispersion of buckets with these numbers of events and ΣU; all events together have ΣU² of
/// `u2`.
pub(super) fn dispersion_of(all: Vec<(f64, f64)>, u2: f64) -> Clusters {
    let n: f64 = all.iter().map(|(n, _)| n).sum();
    let squares: f64 = all.iter().map(|(n, _)| n * n).sum();
    let mean = all.iter().map(|(_, u)| u).sum::<f64>() / n;
    let between: f64 = all.iter().map(|(n, u)| (u - n * mean).powi(2)).sum();
    let (effective, single) = (n * n / squares, u2 - n * mean * mean);
    Clusters {
        buckets: all.len() as u32,
        effective,
        // For independent outcomes the expected sum over buckets is (1 − 1/G*)·`single`.
        factor: match effective > 1.0 && single > 0.0 {
            true => between * effective / (effective - 1.0) / single,
            false => 1.0,
        },
        patterns: 0,
        by_score: false,
    }
}

/// The factor on a variance of ν = `degrees` degrees of freedom that turns the ends of a normal
/// interval at this confidence into those of Student's t.
pub fn ends_factor(degrees: f64, confidence: f64) -> f64 {
    let tail = 0.5 * (1.0 - confidence);
    match StudentsT::new(0.0, 1.0, degrees) {
        Ok(t) => (t.inverse_cdf(1.0 - tail) / normal_upper_quantile(tail)).powi(2),
        Err(_) => 1.0,
    }
}

/// The estimate at `level`, whose cells are unions of the 2^`kept` cells of the buckets.
pub fn estimate(sums: &ClusterSums, kept: u32, level: &Level) -> Estimate {
    let cells = level.cells as usize;
    let join = (1usize << kept) / cells;
    let mut total = vec![(0.0, 0.0); cells];
    let mut own = vec![(0.0, 0.0); cells];
    let buckets: Vec<Vec<(f64, f64)>> = (sums.occupied())
        .map(|(_, b)| {
            let mut joined = vec![(0.0, 0.0); cells];
            for (i, c) in b.cells.iter().enumerate() {
                joined[i / join].0 += c.n as f64;
                joined[i / join].1 += c.u();
            }
            for (i, (m, u)) in joined.iter().enumerate() {
                total[i] = (total[i].0 + m, total[i].1 + u);
                own[i] = (own[i].0 + m * m, own[i].1 + u * u);
            }
            joined
        })
        .collect();
    let n: f64 = total.iter().map(|(m, _)| m).sum();
    let of = |(m, u): &(f64, f64)| if *m > 0.0 { u / m } else { 0.0 };
    let errors: Vec<f64> = total.iter().map(of).collect();
    let squared: f64 = total
        .iter()
        .zip(&errors)
        .map(|((m, _), e)| m / n * e * e)
        .sum();
    let mut t = 0.0;
    for ((m, u), (m2, u2)) in total.iter().zip(&own) {
        let pairs = m * m - m2;
        if pairs > 0.0 {
            t += m * (u * u - u2) / pairs;
        }
    }
    let influence = |bucket: &Vec<(f64, f64)>| {
        let terms = bucket.iter().zip(&errors);
        let term = |((m, u), e): (&(f64, f64), &f64)| 2.0 * e * (u - m * e) + m * (e * e - squared);
        (terms.map(term).sum::<f64>() / n).powi(2)
    };
    let g = buckets.len() as f64;
    let variance = buckets.iter().map(influence).sum::<f64>() * g / (g - 1.0).max(1.0);
    Estimate {
        t: t / n,
        sigma1_squared: n * variance,
        ..Estimate::of(level, n)
    }
}
