//! The papers' experiments, through the product's own code.
//!
//! Whoever doubts a figure of this project can run it: `trueline reproduce <paper>` draws the data sets of a
//! paper's experiment, puts them through the same functions that a window goes through, and prints each number
//! with its Monte Carlo error beside the published one. A number more than three errors off its published value
//! is marked. Where a paper shows only a picture, the value beside ours is read off its file or is that of a program,
//! run once (the table says which).
//!
//! [`tcal`] and [`bumps`] T-Cal Figures 2 to 5 and 7 and Tables 1 to 3 ([`published`] has what stands beside), [`interval`] the interval paper's Figure 3, [`kernel`] the
//! kernel paper's Figures 1 and 2 and its CIFAR-10 table, [`distance`] the distance paper's synthetic family.
//! [`report`] holds the tables, [`picture`] draws them, [`draw`] has the laws.
//!
//! Seeds are fixed, so a run repeats to the last digit. Cost: [`Effort::quick`] some tens of seconds a paper on one
//! core; the full run minutes.

use std::path::PathBuf;

pub mod bumps;
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
    /// Data sets a point.
    pub data_sets: u32,
    /// Fewer points, smaller samples.
    pub quick: bool,
    /// Seed of everything that is drawn.
    pub seed: u64,
    /// Folder of published model outputs, with `tcal` and `cifar10_multiclass` in it.
    pub data: Option<PathBuf>,
}

impl Effort {
    /// The few data sets that fit into continuous integration.
    pub fn quick(seed: u64) -> Effort {
        Effort {
            data_sets: 40,
            quick: true,
            seed,
            data: None,
        }
    }

    /// The papers' own number of data sets, or near it.
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

    /// Its experiments; a folder of data that cannot be read is an error with its path.
    pub fn run(self, effort: &Effort) -> Result<Vec<Table>, String> {
        match self {
            Paper::TCal => tcal::run(effort),
            Paper::Interval => Ok(interval::run(effort)),
            Paper::Kernel => kernel::run(effort),
            Paper::Distance => Ok(distance::run(effort)),
        }
    }
}
