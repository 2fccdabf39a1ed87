//! trueline watches whether the probabilities of production models are true.
//!
//! Floors, from the ground up; each imports downwards only (a test reads the `use` lines):
//!
//! | floor | module | holds |
//! |---|---|---|
//! | 0 | [`stats`] | scores, cells, estimators, tests; pure mathematics |

pub mod stats;
