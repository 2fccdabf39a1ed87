//! What others compute, offline, for comparison: nothing here decides anything in the product.
//!
//! [`intervals`]: bootstrap, subsampling and HulC intervals for the ℓ2-ECE, as the interval paper
//! compares with; [`classical`]: the debiased estimator of Kumar, Liang and Ma, and the consistency
//! resampling test of the ℓ1-ECE.

pub mod classical;
pub mod intervals;
