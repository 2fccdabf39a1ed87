//! A job, which draws one figure or table, and its effort.

use super::report::Table;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How much to draw.
#[derive(Debug, Clone)]
pub struct Effort {
    /// Data sets per point of every figure; `None` if each has its own number.
    pub data_sets: Option<u32>,
    /// Fewer points, smaller samples.
    pub quick: bool,
    /// Seed of all draws.
    pub seed: u64,
    /// Folder of published model outputs, which contains `tcal` and `cifar10_multiclass`.
    pub data: Option<PathBuf>,
    /// Which of Figures 3 to 82 of the kernel paper are drawn.
    pub grid: Choice,
    /// Progress of the current figure.
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

    /// As many data sets as a figure needs for meaningful errors.
    pub fn full(seed: u64) -> Effort {
        Effort {
            quick: false,
            ..Effort::quick(seed)
        }
    }

    /// Data sets per point of a figure: the requested number, or the figure's own number for a full
    /// or a quick run.
    pub fn sets(&self, own: u32, quick: u32) -> u32 {
        let usual = if self.quick { quick } else { own };
        self.data_sets.unwrap_or(usual)
    }
}

/// Progress of one figure. Copies share their state.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<AtomicU64>);

impl Progress {
    /// The value of a complete figure.
    pub const WHOLE: u64 = 1000;

    /// Sets the progress to `done` of `total` steps.
    pub fn of(&self, done: usize, total: usize) {
        let part = Progress::WHOLE * done as u64 / total.max(1) as u64;
        self.0.store(part.min(Progress::WHOLE), Ordering::Relaxed);
    }

    /// The progress, from 0 to [`Progress::WHOLE`].
    pub fn parts(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The part of the [grid](super::grid) to draw; all of it if nothing is chosen.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Number of classes K.
    pub classes: Option<u32>,
    /// One of [`SETUPS`](super::grid::SETUPS).
    pub setup: Option<String>,
    /// One of [`ESTIMATORS`](super::grid::ESTIMATORS), for its distribution and not only its mean.
    pub estimator: Option<String>,
    /// One of [`TESTS`](super::grid::TESTS), for its figure.
    pub test: Option<String>,
    /// Use as many data sets and resamples as the paper.
    pub long: bool,
}

impl Choice {
    /// Whether something is chosen, so that nothing else is drawn.
    pub fn is_some(&self) -> bool {
        let names = [&self.setup, &self.estimator, &self.test];
        self.classes.is_some() || names.into_iter().any(Option::is_some)
    }
}

/// The function that draws a job's tables.
type Draw = Box<dyn Fn(&Effort) -> Result<Vec<Table>, String> + Send + Sync>;

/// One figure or table, which can be drawn independently.
pub struct Job {
    /// Name of the figure or table.
    pub name: String,
    /// Whether it takes long, and so is started before the others.
    pub is_long: bool,
    /// Its progress.
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

    /// A job that reads files. An unreadable file is an error that names its path.
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

    /// Marks the job as long, so that it is started before the others.
    pub fn long(self) -> Job {
        Job {
            is_long: true,
            ..self
        }
    }

    /// Draws the tables of the job.
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
