//! One figure or table, and how much of it is drawn.

use super::report::Table;
use std::path::PathBuf;

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
    pub grid: Choice,
}

impl Effort {
    /// Few data sets, for continuous integration.
    pub fn quick(seed: u64) -> Effort {
        Effort {
            data_sets: 40,
            quick: true,
            seed,
            data: None,
            grid: Choice::default(),
        }
    }

    /// About as many data sets as the papers have.
    pub fn full(seed: u64) -> Effort {
        Effort {
            data_sets: 1000,
            quick: false,
            seed,
            data: None,
            grid: Choice::default(),
        }
    }

    /// Data sets of a costly figure: one in `part`, at least two.
    pub fn share_of_sets(&self, part: u32) -> u32 {
        (self.data_sets / part).max(2)
    }

    /// Data sets of the figures that run whole adaptive tests: a third; all in a quick run.
    pub fn costly_sets(&self) -> u32 {
        self.share_of_sets(if self.quick { 1 } else { 3 })
    }
}

/// Which part of the [grid](super::grid) is drawn; all of it where nothing is chosen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Choice {
    /// K.
    pub classes: Option<u32>,
    /// One of [`SETUPS`](super::grid::SETUPS).
    pub setup: Option<String>,
    /// One of [`ESTIMATORS`](super::grid::ESTIMATORS): its distribution, not only its mean.
    pub estimator: Option<String>,
    /// As many data sets and resamples as the paper.
    pub long: bool,
}

impl Choice {
    /// Something is chosen, so nothing else is wanted.
    pub fn is_some(&self) -> bool {
        self.classes.is_some() || self.setup.is_some() || self.estimator.is_some()
    }
}

/// What a job draws.
type Draw = Box<dyn Fn(&Effort) -> Result<Vec<Table>, String> + Send + Sync>;

/// One figure or table, which can be drawn by itself.
pub struct Job {
    /// What it draws.
    pub name: String,
    /// It takes long, so it is begun before the others.
    pub is_long: bool,
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
            is_long: false,
            draw: Box::new(draw),
        }
    }

    /// The same, begun before the others.
    pub fn long(self) -> Job {
        Job {
            is_long: true,
            ..self
        }
    }

    /// Draws it.
    pub fn run(&self, effort: &Effort) -> Result<Vec<Table>, String> {
        let mut tables = (self.draw)(effort)?;
        tables.iter_mut().for_each(|t| t.seed = effort.seed);
        Ok(tables)
    }
}
