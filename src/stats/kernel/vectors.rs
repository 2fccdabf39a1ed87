//! A sample of probability vectors with the classes that happened.
//!
//! Rows lie in one array, because every kernel statistic walks pairs of rows. A row is checked
//! once, when it comes: entries are scores, the sum is 1 within the tolerance of a view, the
//! outcome is one of the classes. Rows are kept as they came; [`Vectors::normalise`] divides small
//! errors of the sum out, as the views of the daemon do. Published estimates are of rows as their
//! program read them, so the step is apart.

use crate::view::{Checked, Outcome, Prediction, View, ViewError};

/// n vectors over K classes, with outcomes.
#[derive(Debug, Clone, PartialEq)]
pub struct Vectors {
    classes: usize,
    rows: Vec<f64>,
    outcomes: Vec<u32>,
}

impl Vectors {
    /// No events, of `classes` ≥ 2 classes.
    pub fn new(classes: usize) -> Vectors {
        Vectors {
            classes,
            rows: Vec::new(),
            outcomes: Vec::new(),
        }
    }

    /// Two classes of a scalar score z = P(y = 1): the rows are (1−z, z). Total variation is
    /// then |z − z′| and every h is twice that of the scalar form r·r′·φ, as its bound is, so
    /// p-values agree.
    pub fn of_scores(sample: &[(f64, bool)]) -> Result<Vectors, ViewError> {
        let mut all = Vectors::new(2);
        for &(z, y) in sample {
            all.push(&[1.0 - z, z], u32::from(y))?;
        }
        Ok(all)
    }

    /// Adds an event after checking it; nothing is added on error.
    pub fn push(&mut self, row: &[f64], outcome: u32) -> Result<(), ViewError> {
        if row.len() != self.classes {
            return Err(ViewError::VectorLength);
        }
        Checked::new(Prediction::Vector(row))?.project(View::TopLabel, Outcome::Class(outcome))?;
        self.rows.extend_from_slice(row);
        self.outcomes.push(outcome);
        Ok(())
    }

    /// Divides every row by its sum where that is off 1 by more than rounding; returns how many
    /// were.
    pub fn normalise(&mut self) -> usize {
        let mut changed = 0;
        for row in self.rows.chunks_exact_mut(self.classes) {
            let off = Checked::new(Prediction::Vector(row)).is_ok_and(|c| c.renormalised());
            if off {
                let sum: f64 = row.iter().sum();
                row.iter_mut().for_each(|p| *p /= sum);
                changed += 1;
            }
        }
        changed
    }

    /// n, the number of events.
    pub fn len(&self) -> usize {
        self.outcomes.len()
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.outcomes.is_empty()
    }

    /// K, the number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The vector of event `i` < n.
    #[inline]
    pub fn row(&self, i: usize) -> &[f64] {
        &self.rows[i * self.classes..(i + 1) * self.classes]
    }

    /// The class of event `i` < n.
    #[inline]
    pub fn outcome(&self, i: usize) -> u32 {
        self.outcomes[i]
    }

    /// All vectors with their outcomes.
    pub fn events(&self) -> impl Iterator<Item = (&[f64], u32)> {
        (self.rows.chunks_exact(self.classes)).zip(self.outcomes.iter().copied())
    }

    /// The same vectors with other outcomes, each below K, as many as events.
    pub fn with_outcomes(&self, outcomes: Vec<u32>) -> Vectors {
        assert_eq!(outcomes.len(), self.len(), "one outcome an event");
        Vectors {
            outcomes,
            ..self.clone()
        }
    }

    /// The events at `indices`, in that order; a bounded or resampled part.
    pub fn pick(&self, indices: impl IntoIterator<Item = usize>) -> Vectors {
        let mut part = Vectors::new(self.classes);
        for i in indices {
            part.rows.extend_from_slice(self.row(i));
            part.outcomes.push(self.outcomes[i]);
        }
        part
    }

    /// The events as a scalar view sees them.
    pub fn project(&self, view: View) -> Result<Vec<(f64, bool)>, ViewError> {
        let see = |(row, y): (&[f64], u32)| {
            let checked = Checked::new(Prediction::Vector(row))?;
            let (z, y) = checked.project(view, Outcome::Class(y))?;
            Ok((z.value(), y))
        };
        self.events().map(see).collect()
    }
}
