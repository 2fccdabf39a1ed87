//! Error rates by simulation: level, power, coverage, false alarms.

mod alarms;
mod bars;
mod clustered_bets;
mod decision;
mod dependence;
mod interval_coverage;
mod level;
mod power;
mod sampling;
mod sequential;
#[path = "../support/mod.rs"]
mod support;
mod vectors;
mod weights;
