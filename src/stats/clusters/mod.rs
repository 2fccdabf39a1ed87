//! Tests of calibration where outcomes of one cluster depend on each other: a user, a session, a
//! day.
//!
//! Events of different clusters are independent, events of one cluster need not be. The sums are
//! kept by bucket, a union of whole clusters ([`ClusterSums`]); with U_b the residuals of bucket b,
//!
//! * T_d at m cells is the sum over pairs of events of *different* buckets, T_d = (1/n) Σ_i [(ΣU)²
//!   − Σ_b U_ib²]/N_i, with U_ib the residuals of bucket b in cell i;
//! * the score test of the directions 1, ln z and −ln(1−z) is gᵀI⁻¹g with g = Σ_b g_b and I their
//!   information for independent outcomes; Cox's test has the directions 1 and the sum of the
//!   others. (With the variance Σ_b g_b g_bᵀ in place of I, calibrated rare events were rejected up
//!   to four times as often, and label noise was found in .38 of sets rather than .55);
//! * Kolmogorov–Smirnov, Kuiper and calibration in the large are statistics of the path Σ_{i ≤ j}
//!   U_i at 64 cells.
//!
//! **Sign flips.** If the law of a bucket's totals is symmetric, multiplying all its residuals by
//! ±1 does not change it, whatever the dependence within the bucket. Each flip draws one sign for
//! each bucket and computes all statistics again; Σ_b U_ib² stays. p is the rank of the sample's
//! own value among all, ties against it, so it is valid for any number of buckets (the
//! randomization test of Hoeffding, *The large-sample power of tests based on permutations of
//! observations*, 1952). Levels are joined by ranks: the smallest rank-p over levels, ranked among
//! those of the flips. With eleven buckets or fewer all 2^(G−1) patterns are taken. The smallest p
//! with G buckets is 2^(1−G), .016 at 7: with fewer than [`CLUSTERS_MIN`] buckets several tests
//! cannot share α, and there is no p-value.
//!
//! The flips assume that the totals of a bucket are about symmetric. With few and rare positives in
//! each bucket they are not. So a decision takes the larger of this p-value and the one for
//! independent outcomes, which holds there. Clusters therefore never make evidence stronger.
//!
//! **Dispersion.** φ̂ = G*/(G*−1) · Σ_b (U_b − n_b Ū)² / Σ(U − Ū)², the variance of bucket totals
//! as a multiple of that of independent outcomes, with G* = (Σn_b)²/Σn_b². It has about G* − 1
//! degrees of freedom: a bucket that holds most events counts for little.
//!
//! **Bets.** A detector multiplies the likelihood ratios of panes. If totals have variance φV in
//! place of V, the mean of a ratio is 1 again once its logarithm is divided by φ, as with exp(λU/φ
//! − λ²V/2φ) for normal U. φ depends on the residuals that a bet adds up: effects of a cluster that
//! cancel in its total do not cancel in the total of its high scores. So there are several φ,
//! estimated from the panes before ([`RunningClusters`]). Buckets are those of the whole stream: a
//! cluster that comes back is the same one. The upper bounds of φ at 90 % (99 % with few buckets)
//! are used, because bets that assume too little dispersion win even against a calibrated model.
//! With fewer than 12 effective buckets no bet is placed.
//!
//! **Interval.** T at the interval's level over pairs of different buckets,
//!
//! ```text
//! T = (1/n) Σ_i N_i [(ΣU)² − Σ_b U_ib²]/(N_i² − Σ_b n_ib²)
//! ψ_b = (1/n) Σ_i [2e_i(U_ib − n_ib e_i) + n_ib(e_i² − Σ_j (N_j/n)e_j²)],   e_i = ΣU/N_i
//! ```
//!
//! and n·G/(G−1)·Σψ_b² in place of σ̂₁² of [`super::interval`]; with one event in each bucket both
//! are the formulas there.
//!
//! Always: the same sums, seed and α give the same bits. Cost: 16 additions of a row of 67 numbers
//! a flip, because the rows of all sign patterns of four buckets are added up once; about a
//! millisecond for 999 flips.

mod by_score;
mod flips;
mod robust;
mod running;
mod sums;

pub use by_score::by_score;
pub use flips::{ClusterTests, sign_flips};
pub use robust::{Clusters, ends_factor, estimate};
pub use running::{Dispersions, GROUPS_MIN, RunningClusters};
pub use sums::{BUCKETS, Bucket, BucketSums, ClusterCell, ClusterSums, LEVEL_MAX};

/// Fewest buckets for a test.
pub const CLUSTERS_MIN: usize = 8;

#[cfg(test)]
mod tests;
