//! The sequential detector: laws, level and delays.
//!
//! | file | asks |
//! |---|---|
//! | `laws` | are cell sums a lower bound of the exact likelihoods? is every bet fair? do states come back? |
//! | `level` | how many calibrated streams raise a false alarm, and how many under repeated T-Cal? |
//! | `coverage` | do the confidence sequences hold at all times? |
//! | `delay` | how soon is a change found, and what is said of it? |
//! | `oracle_delay` | how soon beside one that knows the change? |

mod coverage;
mod delay;
mod laws;
mod level;
mod oracle_delay;
