//! Floor 0: the statistics, and nothing but statistics. Pure functions of integer sums; no clock, no
//! thread, no socket, no logging, no global randomness; only `std` and `statrs` are imported.
//!
//! The way of a number: [`fixed`] checks and rounds a score; [`axis`] finds its cell; [`sums`] adds it
//! up, many at a time where [`pending`] has gathered them, or with its [`weight`] in sums of their own ([`weighted`]); [`pyramid`] turns the sums into all dyadic levels; what follows are functions of the pyramid.

pub mod algebra;
pub mod axis;
mod binomial;
pub mod companions;
pub mod comparison;
pub mod detectable;
pub mod direction;
pub mod discrete;
pub mod distance;
pub mod distinct;
pub mod estimator;
pub mod evaluation;
pub mod fixed;
pub mod interval;
pub mod joint;
pub mod kernel;
pub mod ks;
pub mod ln;
mod monte_carlo;
pub mod multiclass;
mod narrow;
pub mod null;
pub mod offline;
pub mod pending;
pub mod pyramid;
pub mod recalibration;
pub mod reliability;
pub mod rng;
pub mod sampling;
pub mod sequential;
pub mod sums;
pub mod tcal;
pub mod view;
pub mod weight;
pub mod weighted;
