//! trueline watches whether the probabilities of production models are true.
//!
//! Floors, from the ground up; each imports downwards only (a test reads the `use` lines):
//!
//! | floor | module | holds |
//! |---|---|---|
//! | 0 | [`stats`] | scores, cells, estimators, tests; pure mathematics |
//! | 5 | [`cli`], `app`, `demo` | wiring, the loops, the verbs |

pub mod cli;
pub mod stats;
