//! The papers' experiments, run through the product's own code.
//!
//! `trueline reproduce <paper>` draws the data sets of a paper's experiment, passes them through
//! the functions that a window uses, and prints each number with its Monte Carlo error beside the
//! published one. A number that is more than three errors off is marked. Where a paper has only a
//! picture, the number beside ours is read off the picture's file or comes from one run of another
//! program; the table says which.
//!
//! * [`tcal`] lists the figures and tables of the T-Cal paper: [`alternatives`] has Figures 2 to 4,
//!   7 and a rate after Figure 5, [`diagram`] Figure 6, [`convergence`] Figure 8, [`critical`] Figure 9,
//!   [`cross_fit`] Figure 10, [`networks`] Tables 1 to 6, [`published`] its numbers.
//! * [`interval`] has Figures 3 and 5 of the interval paper, [`lengths`] Figure 4 and the power and
//!   coverage of other intervals.
//! * [`kernel`] has Figures 1, 2 and 83 to 85 of the kernel paper, [`grid`] Figures 3 to 82,
//!   [`grid_published`] their numbers.
//! * [`distance`] has the synthetic family of the distance paper, both rows of its Figure 2.
//! * [`powers`] has level and power of the product's tests beside those that people use elsewhere.
//! * [`report`] holds the tables, [`picture`] draws them, and [`draw`] has the distributions.
//!
//! A figure is a [`Job`]: jobs share nothing, so they can run on several threads. Seeds are fixed, so
//! a run repeats to the last digit whatever the threads. A [quick](Effort::quick) run takes some tens
//! of seconds a paper on one core.

use std::path::PathBuf;

pub mod alternatives;
pub mod convergence;
pub mod critical;
pub mod cross_fit;
pub mod diagram;
pub mod distance;
pub mod draw;
pub mod grid;
pub mod grid_published;
pub mod interval;
pub mod kernel;
pub mod lengths;
pub mod networks;
pub mod picture;
pub mod powers;
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
    /// Which of Figures 3 to 82 of the kernel paper are drawn.
    pub grid: grid::Choice,
}

impl Effort {
    /// Few data sets, for continuous integration.
    pub fn quick(seed: u64) -> Effort {
        Effort {
            data_sets: 40,
            quick: true,
            seed,
            data: None,
            grid: grid::Choice::default(),
        }
    }

    /// About as many data sets as the papers have.
    pub fn full(seed: u64) -> Effort {
        Effort {
            data_sets: 1000,
            quick: false,
            seed,
            data: None,
            grid: grid::Choice::default(),
        }
    }
}

impl Effort {
    /// Data sets of a costly figure: one in `part`, at least two.
    pub fn share_of_sets(&self, part: u32) -> u32 {
        (self.data_sets / part).max(2)
    }

    /// Data sets of the figures that run whole adaptive tests: a third; all in a quick run.
    pub fn costly_sets(&self) -> u32 {
        self.share_of_sets(if self.quick { 1 } else { 3 })
    }
}

/// What a job draws.
type Draw = Box<dyn Fn(&Effort) -> Result<Vec<Table>, String> + Send + Sync>;

/// One figure or table, which can be drawn by itself.
pub struct Job {
    /// What it draws.
    pub name: String,
    draw: Draw,
}

impl Job {
    /// A job that only draws data sets.
    pub fn of(
        name: impl Into<String>,
        draw: impl Fn(&Effort) -> Vec<Table> + Send + Sync + 'static,
    ) -> Job {
        Job::reading(name, move |e| Ok(draw(e)))
    }

    /// A job that reads files. One that cannot be read is an error that names its path.
    pub fn reading(
        name: impl Into<String>,
        draw: impl Fn(&Effort) -> Result<Vec<Table>, String> + Send + Sync + 'static,
    ) -> Job {
        Job {
            name: name.into(),
            draw: Box::new(draw),
        }
    }

    /// Draws it.
    pub fn run(&self, effort: &Effort) -> Result<Vec<Table>, String> {
        let mut tables = (self.draw)(effort)?;
        tables.iter_mut().for_each(|t| t.seed = effort.seed);
        Ok(tables)
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
    /// None: the product's tests beside those that people use elsewhere.
    Tests,
}

impl Paper {
    /// All papers, in the order of their reports.
    pub const ALL: [Paper; 5] = [
        Paper::TCal,
        Paper::Interval,
        Paper::Kernel,
        Paper::Distance,
        Paper::Tests,
    ];

    /// Its figures and tables.
    pub fn jobs(self, effort: &Effort) -> Vec<Job> {
        match self {
            Paper::TCal => tcal::jobs(),
            Paper::Interval => interval::jobs()
                .into_iter()
                .chain(lengths::jobs())
                .collect(),
            Paper::Kernel => kernel::jobs(effort),
            Paper::Distance => distance::jobs(),
            Paper::Tests => powers::jobs(),
        }
    }
}
