//! The papers' experiments, run through the product's own code.
//!
//! `trueline reproduce <paper>` draws the data sets of a paper's experiment, passes them through
//! the functions that a window uses, and prints each number with its Monte Carlo error beside the
//! published one. A number that is more than three errors off is marked. Where a paper has only a
//! picture, the number beside ours is read off the picture's file or comes from one run of another
//! program; the table says which.
//!
//! * [`tcal`] has Figures 2 to 4 and 7, a rate after Figure 5, and Tables 1 to 3 of the T-Cal
//!   paper; [`alternatives`] has its curves and simulations, [`published`] its numbers.
//! * [`interval`] has Figures 3 and 5 of the interval paper, and the coverage of the intervals of
//!   its Figure 4.
//! * [`kernel`] has Figures 1 and 2 of the kernel paper and its CIFAR-10 table.
//! * [`distance`] has the synthetic family of the distance paper.
//! * [`report`] holds the tables, [`picture`] draws them, and [`draw`] has the distributions.
//!
//! Seeds are fixed, so a run repeats to the last digit. A [quick](Effort::quick) run takes some
//! tens of seconds a paper on one core; a full run takes minutes.

use std::path::PathBuf;

pub mod alternatives;
pub mod distance;
pub mod draw;
pub mod interval;
pub mod kernel;
pub mod picture;
pub mod published;
pub mod report;
pub mod tcal;

pub use report::{Cell, Row, Table};

/// How much to draw.
#[derive(Debug, Clone, PartialEq)]
pub struct Effort {
    /// Data sets per point.
    pub data_sets: u32,
    /// Fewer points, smaller samples.
    pub quick: bool,
    /// Seed of all draws.
    pub seed: u64,
    /// Folder of published model outputs, with `tcal` and `cifar10_multiclass` in it.
    pub data: Option<PathBuf>,
}

impl Effort {
    /// Few data sets, for continuous integration.
    pub fn quick(seed: u64) -> Effort {
        Effort {
            data_sets: 40,
            quick: true,
            seed,
            data: None,
        }
    }

    /// About as many data sets as the papers have.
    pub fn full(seed: u64) -> Effort {
        Effort {
            data_sets: 1000,
            quick: false,
            seed,
            data: None,
        }
    }
}

/// A paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paper {
    /// Lee, Huang, Hassani, Dobriban (2022).
    TCal,
    /// Sun, Chaudhari, Barnett, Dobriban (2024).
    Interval,
    /// Widmann, Lindsten, Zachariah (2019).
    Kernel,
    /// Błasiok, Gopalan, Hu, Nakkiran (2023).
    Distance,
}

impl Paper {
    /// All papers, in the order in which they are run.
    pub const ALL: [Paper; 4] = [Paper::TCal, Paper::Interval, Paper::Kernel, Paper::Distance];

    /// Runs its experiments. A data file that cannot be read is an error that names its path.
    pub fn run(self, effort: &Effort) -> Result<Vec<Table>, String> {
        match self {
            Paper::TCal => tcal::run(effort),
            Paper::Interval => Ok(interval::run(effort)),
            Paper::Kernel => kernel::run(effort),
            Paper::Distance => Ok(distance::run(effort)),
        }
    }
}
