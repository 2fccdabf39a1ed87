//! The papers' experiments, run through the product's own code.
//!
//! `trueline reproduce <paper>` draws the data sets of a paper's experiment, passes them through
//! the functions that a window uses, and prints each number with its Monte Carlo error and the
//! published one. A number that differs by more than three errors is marked. If a paper has only a
//! picture, the published number is read off the picture's file or comes from one run of another
//! program; the table says which.
//!
//! * [`tcal`] lists the figures and tables of the T-Cal paper: [`alternatives`] has Figures 2 to 4
//!   and 7, [`detection`] Figure 5, [`diagram`] Figure 6, [`convergence`] Figure 8, [`critical`]
//!   Figure 9, [`cross_fit`] Figure 10, [`networks`] Tables 1 to 6.
//! * [`interval`] has Figures 3 and 5 of the interval paper, [`lengths`] Figure 4 and the power and
//!   coverage of other intervals.
//! * [`kernel`] has Figures 1, 2 and 83 to 85 of the kernel paper, [`grid`] Figures 3 to 82.
//! * [`distance`] has the synthetic family of the distance paper, both rows of its Figure 2.
//! * [`powers`] compares level and power of the product's tests with common other tests.
//! * [`published`] has the papers' numbers, [`report`] has the tables, [`picture`] draws them, and
//!   [`draw`] has the distributions.
//!
//! A figure is a [`Job`]: jobs share nothing, so they can run on several threads. Seeds are fixed,
//! so a run repeats to the last digit with any number of threads.

pub mod alternatives;
pub mod convergence;
pub mod critical;
pub mod cross_fit;
pub mod detection;
pub mod diagram;
pub mod distance;
pub mod draw;
pub mod grid;
pub mod interval;
pub mod job;
pub mod kernel;
pub mod lengths;
pub mod networks;
pub mod picture;
pub mod powers;
pub mod published;
pub mod report;
pub mod tcal;

pub use job::{Choice, Effort, Job, Progress};
pub use report::{Cell, Row, Table};
