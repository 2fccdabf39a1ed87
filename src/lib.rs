//! trueline watches whether the probabilities of production models are true.
//!
//! Floors, from the ground up; each imports downwards only (a test reads the `use` lines):
//!
//! | floor | module | holds |
//! |---|---|---|
//! | 0 | [`stats`] | scores, cells, estimators, tests; pure mathematics |
//! | 3 | [`kafka`], [`decode`] | the broker; records to checked events |
//! | 5 | [`cli`], `app`, `demo` | wiring, the loops, the verbs |

pub mod cli;
pub mod decode;
pub mod kafka;
pub mod stats;
