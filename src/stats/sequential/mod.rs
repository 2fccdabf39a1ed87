//! Alarms that can be trusted: an anytime-valid detector of miscalibration, run on sealed panes.
//!
//! A test at level 0.05 that is repeated on sliding windows raises a false alarm almost surely within a day of traffic.
//! Windows therefore describe; what alarms is a detector whose false alarms are bounded over all time, however often
//! one looks and however the scores drift. The only assumption is what is tested: given the past and the score,
//! the outcome has the probability that the score says, up to a tolerance in log-odds.
//!
//! | part | holds |
//! |---|---|
//! | [`mixture`] | the 76 components: what is bet on, with what weight |
//! | [`odds`] | log-likelihood ratios of all bets from the cell sums of a pane |
//! | [`likelihood`] | those of one pane |
//! | [`detector`] | the Shiryaev-Roberts recursion and its guarantee |
//! | [`evidence`] | what kind, which scores, since when |
//! | [`budget`] | thresholds from "1 per 30d", "2000000 events", "5% ever" |
//! | [`radius`], [`sequences`] | confidence sequences of the mean residual, of bins, below ECE² |
//! | [`drift`], [`paired`] | two versions on the same events: which scores better, which is calibrated better |
//! | [`fleet`] | which of many streams to call |
//! | [`watch`] | all of it for one stream: alarm, restart, all-clear |
//!
//! The way of a pane: [`Sums`](crate::sums::Sums) → [`Odds::likelihoods`] → [`Detector::observe`] → log M against log A;
//! [`Watch::observe`] does it all. No work per event.

pub mod budget;
pub mod detector;
pub mod drift;
pub mod evidence;
pub mod fleet;
pub mod likelihood;
pub mod mixture;
pub mod odds;
pub mod paired;
pub mod radius;
pub mod sequences;
pub mod watch;

pub use budget::Budget;
pub use detector::Detector;
pub use evidence::Evidence;
pub use likelihood::Likelihoods;
pub use odds::Odds;
pub use paired::{Compared, Difference, Pair, Paired};
pub use watch::{Outcome, Rules, Watch};
