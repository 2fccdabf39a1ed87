//! Methods of other authors, for comparison offline: no decision of the product uses them.
//!
//! [`intervals`]: bootstrap, subsampling and HulC intervals for the ℓ2-ECE, with which the interval
//! paper compares; [`classical`]: the debiased estimator of Kumar, Liang and Ma, and the
//! consistency resampling test of the ℓ1-ECE.

pub mod classical;
pub mod intervals;
