//! Reference values: estimators, tests, intervals, distances, detector, maps.

mod distance;
mod estimators;
mod evaluation;
mod kernel;
mod recalibration;
mod recorded;
mod sequential;
mod smooth_ece;
#[path = "../support/mod.rs"]
mod support;
mod tables;
