//! Calibration of probabilistic predictions: tests, intervals and distances, from raw scores or
//! from sums that are kept while events arrive.
//!
//! A model is *calibrated* if, among the events to which it gives the probability z, a share z
//! happens. With a score z, an outcome y in {0, 1} and the residual U = y − z this reads E\[U | z\]
//! = 0.
//!
//! | question | function | paper |
//! |---|---|---|
//! | Is the model calibrated? | [`tcal()`](tcal::tcal), [`evaluation::evaluate_scores`] | T-Cal: Lee, Huang, Hassani, Dobriban (2022) |
//! | How large is the error (ℓ2-ECE), with an interval? | [`interval()`](interval::interval) | Sun, Chaudhari, Barnett, Dobriban (2024) |
//! | Is a whole probability vector calibrated? | [`kernel::evaluate`], [`multiclass::evaluate`] | SKCE: Widmann, Lindsten, Zachariah (2019); T-Cal |
//! | How large is the error, whatever the bins? | [`smooth_ece`](distance::smooth_ece::smooth_ece), [`distance::of_scores`] | Błasiok, Nakkiran (2024); Błasiok, Gopalan, Hu, Nakkiran (2023) |
//! | When did a running model go wrong? | [`sequential::StreamDetector`] | e-detectors: Shin, Ramdas, Rinaldo (2023) |
//! | Which of many streams went wrong? | [`sequential::multiple_testing`] | Wang, Ramdas (2022); Dandapanthula, Ramdas (2025) |
//! | Which of two models is better on the same events? | [`comparison`], [`sequential::Paired`] | DeLong, DeLong, Clarke-Pearson (1988); Choe, Ramdas (2024) |
//! | Are the outcomes independent of each other? | [`overdispersion`] | von Neumann (1941) |
//! | Is it calibrated, whatever the dependence within clusters? | [`clusters`] | Hoeffding (1952) |
//! | Do records come twice? | [`repeats`] | Flajolet (1990) |
//! | How can the scores be corrected? | [`recalibration`] | Platt (1999); Kull, Silva Filho, Flach (2017); isotonic regression |
//! | AUC, accuracy | [`discrimination`] | Hanley, McNeil (1982); DeLong, DeLong, Clarke-Pearson (1988) |
//! | Brier score, log loss, Spiegelhalter, Cox | [`classical`] | Murphy (1973); Spiegelhalter (1986); Cox (1958) |
//! | What does a published test say of this sample? | [`offline`] | as T-Cal compares them |
//!
//! # Is the model calibrated?
//!
//! T-Cal tests all dyadic partitions of \[0, 1\] at once; nothing has to be chosen but α.
//!
//! ```
//! use trueline_stats::estimator::{debiased, plug_in};
//! use trueline_stats::evaluation::Options;
//! use trueline_stats::levels::{Level, Levels};
//! use trueline_stats::tcal::tcal;
//!
//! // Two events of score ¼ in one cell, neither happened: ΣU = −½ and ΣU² = ⅛.
//! let level = Level::from_scores(&[(0.25, false), (0.25, false)], 2);
//! assert_eq!(plug_in(&level), 1.0 / 16.0);
//! assert_eq!(debiased(&level), 1.0 / 32.0);
//!
//! // 1000 events of score 0.3: calibrated if 300 happened, not if 400 did.
//! let sample = |happened: u32| -> Vec<(f64, bool)> { (0..1000).map(|i| (0.3, i < happened)).collect() };
//! let test = |happened| tcal(&Levels::from_scores(&sample(happened), 12), &Options::default().tcal);
//! assert!(!test(300).reject);
//! assert!(test(400).reject && test(400).p_value < 1e-6);
//! ```
//!
//! # How large is the error?
//!
//! The interval for the ℓ2 expected calibration error. The estimate of the *squared* error is
//! unbiased, so it may be negative, and often is for a calibrated sample.
//!
//! ```
//! use trueline_stats::interval::{NullReach, interval};
//! use trueline_stats::levels::Level;
//!
//! // Score 0.2, every second event happens: the error is 0.3.
//! let sample: Vec<(f64, bool)> = (0..1000).map(|i| (0.2, i % 2 == 0)).collect();
//! let of = interval(&Level::from_scores(&sample, 16), 1000.0, 0.9, NullReach::Conditional);
//! assert!(of.lower < 0.3 && 0.3 < of.upper && of.upper - of.lower < 0.06);
//! assert!(!of.contains_zero);
//! ```
//!
//! # Is a whole probability vector calibrated?
//!
//! The squared kernel calibration error needs no bins in K − 1 dimensions.
//!
//! ```
//! use trueline_stats::kernel::{Kernel, Quadratic, Vectors};
//!
//! // Two equal predictions, class 0 twice: δ = (½, −½) both times, the kernel is 1, and δ·δ = ½.
//! let mut sample = Vectors::new(2);
//! sample.push(&[0.5, 0.5], 0).unwrap();
//! sample.push(&[0.5, 0.5], 0).unwrap();
//! let skce = Quadratic::of(&sample, Kernel::TotalVariation { nu: 1.0 });
//! assert_eq!((skce.biased(), skce.unbiased()), (0.5, Some(0.5)));
//! ```
//!
//! # How large is the error, whatever the bins?
//!
//! Smooth ECE and the distances from calibration are continuous in the scores.
//!
//! ```
//! use trueline_stats::distance::{Points, smooth_ece::smooth_ece};
//!
//! // One event of score 0.3 that happened: its residual is 0.7 at every bandwidth.
//! let points = Points::from_scores(&[(0.3, true)]).unwrap();
//! assert!((smooth_ece(&points).value - 0.7).abs() < 1e-3);
//! ```
//!
//! # When did a running model go wrong?
//!
//! A test that is repeated while events arrive raises a false alarm sooner or later. An e-detector
//! has a bound on its false alarms over all time ([`sequential`] derives it).
//!
//! ```
//! use trueline_stats::axis::{Axis, Grid};
//! use trueline_stats::fixed::Score;
//! use trueline_stats::sequential::{Budget, Odds, Outcome, Rules, StreamDetector};
//! use trueline_stats::sums::Sums;
//!
//! let grid = Grid::new(Axis::Linear, 8);
//! // A pane of 1000 events of score 0.2; `every` says how often one happens.
//! let pane = |every: u32| {
//!     let mut sums = Sums::new(grid);
//!     for i in 0..1000 {
//!         sums.observe(Score::new(0.2).unwrap(), i % every == 0).unwrap();
//!     }
//!     sums
//! };
//! let odds = Odds::new(grid, 0.05);
//! // A million events to a false alarm, on average, at least.
//! let budget = Budget::RunLength { events: 1e6 };
//! let rules = Rules { budget, ..Rules::default() };
//! let mut detector = StreamDetector::default();
//! for minute in 0..5 {
//!     let span = (minute * 60_000, (minute + 1) * 60_000);
//!     assert_eq!(detector.observe(&odds, &rules, &pane(5), span), Outcome::Quiet);
//! }
//! // 5000 events so far: 0.005 false alarms are to be expected at most.
//! assert!((detector.expected_false_alarms(&rules) - 0.005).abs() < 1e-12);
//! assert_eq!(detector.observe(&odds, &rules, &pane(2), (300_000, 360_000)), Outcome::Alarm);
//! ```
//!
//! # From events to statistics
//!
//! [`fixed`] checks a score and rounds it to 2⁻³². [`axis`] finds its cell. [`sums`] adds it up: in
//! batches where [`batch`] gathers events, with a [`weight`] in sums of their own ([`weighted`]),
//! and with a cluster also in sums by [cluster](clusters). [`levels`] turns the sums into all
//! dyadic levels, and every statistic is a function of the levels. Sums are integers, so they merge
//! and part exactly ([`algebra`]): a window is the sum of its panes to the last bit, in whatever
//! order events came and whichever process counted them.
//!
//! The crate is pure: no clock, thread, socket, log or global randomness. A seed is an argument.
//! Undefined quantities are `None`, never NaN. Feature `serde` derives `Serialize` on results and
//! both directions on options and stored state.

pub mod algebra;
pub mod attribute;
pub mod axis;
pub mod batch;
mod bennett;
mod binomial;
pub mod cell;
pub mod classical;
pub mod clusters;
pub mod columns;
pub mod combined;
mod compact;
pub mod comparison;
mod conditional;
pub mod corp;
pub mod detectable;
mod digits;
pub mod direction;
pub mod discrete;
pub mod discrimination;
pub mod distance;
pub mod distinct;
pub mod estimate;
pub mod estimator;
pub mod evaluation;
pub mod exp;
pub mod fixed;
pub mod interval;
pub mod joint;
pub mod kernel;
pub mod ks;
pub mod level;
pub mod levels;
pub mod ln;
pub mod logs;
mod monte_carlo;
pub mod multiclass;
pub mod null;
pub mod offline;
pub mod overdispersion;

pub mod recalibration;
pub mod reliability;
pub mod repeats;
pub mod rng;
#[cfg(test)]
mod samples;
pub mod sampling;
pub mod sequential;
pub mod smooth;
pub mod stored;
pub mod sums;
pub mod tcal;
pub mod tolerance;
pub mod totals;
pub mod view;
pub mod weight;
pub mod weighted;
