//! One figure or table, and how much of it is drawn.

use super::report::Table;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How much to draw.
#[derive(Debug, Clone)]
pub struct Effort {
    /// Data sets per point of every figure; `None` where each has its own number.
    pub data_sets: Option<u32>,
    /// Fewer points, smaller samples.
    pub quick: bool,
    /// Seed of all draws.
    pub seed: u64,
    /// Folder of published model outputs, with `tcal` and `cifar10_multiclass` in it.
    pub data: Option<PathBuf>,
    /// Which of Figures 3 to 82 of the kernel paper are drawn.
    pub grid: Choice,
    /// How far a figure is.
    pub progress: Progress,
}

impl Effort {
    /// Few data sets, for continuous integration.
    pub fn quick(seed: u64) -> Effort {
        Effort {
            data_sets: None,
            quick: true,
            seed,
            data: None,
            grid: Choice::default(),
            progress: Progress::default(),
        }
    }

    /// As many data sets as a figure needs for errors that say something.
    pub fn full(seed: u64) -> Effort {
        Effort {
            quick: false,
            ..Effort::quick(seed)
        }
    }

    /// Data sets per point of a figure: what is asked for, else its own number, or that of a quick
    /// run.
    pub fn sets(&self, own: u32, quick: u32) -> u32 {
        let usual = if self.quick { quick } else { own };
        self.data_sets.unwrap_or(usual)
    }
}

/// How far one figure is. Copies share their state.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<AtomicU64>);

impl Progress {
    /// Parts that a whole figure has.
    pub const WHOLE: u64 = 1000;

    /// Says that `done` of `total` steps are over.
    pub fn of(&self, done: usize, total: usize) {
        let part = Progress::WHOLE * done as u64 / total.max(1) as u64;
        self.0.store(part.min(Progress::WHOLE), Ordering::Relaxed);
    }

    /// What is over, from 0 to [`Progress::WHOLE`].
    pub fn parts(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Which part of the [grid](super::grid) is drawn; all of it where nothing is chosen.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// K.
    pub classes: Option<u32>,
    /// One of [`SETUPS`](super::grid::SETUPS).
    pub setup: Option<String>,
    /// One of [`ESTIMATORS`](super::grid::ESTIMATORS): its distribution, not only its mean.
    pub estimator: Option<String>,
    /// One of [`TESTS`](super::grid::TESTS): its figure.
    pub test: Option<String>,
    /// As many data sets and resamples as the paper.
    pub long: bool,
}

impl Choice {
    /// Something is chosen, so nothing else is wanted.
    pub fn is_some(&self) -> bool {
        let names = [&self.setup, &self.estimator, &self.test];
        self.classes.is_some() || names.into_iter().any(Option::is_some)
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
    /// How far it is.
    pub progress: Progress,
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
            progress: Progress::default(),
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
        let effort = &Effort {
            progress: self.progress.clone(),
            ..effort.clone()
        };
        let mut tables = (self.draw)(effort)?;
        self.progress.of(1, 1);
        tables.iter_mut().for_each(|t| t.seed = effort.seed);
        Ok(tables)
    }
}
