//! Log-likelihood ratios of one pane under every bet: what the detector is fed.
//!
//! They add over events, panes, partitions and workers, so the order inside a pane is irrelevant
//! and a pane is one event of the sequence ([the module](super) says why).

use crate::clusters::Dispersions;

use super::mixture::{CELLS, DIRECTED, LEARNT, SCALES, Scale, TOWARDS};

/// Sums over the events of a pane.
#[derive(Debug, Clone, PartialEq)]
pub struct Likelihoods {
    /// Number of events.
    pub n: u64,
    /// Log-likelihood ratio of each one-parameter bet: intercept, then slope.
    pub directed: [f64; 2 * DIRECTED],
    /// Log-likelihood ratio of each bet towards a probability.
    pub towards: [f64; TOWARDS],
    /// For each cell of each scale.
    pub cells: Vec<CellLikelihood>,
}

/// The likelihoods of one cell.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CellLikelihood {
    /// Log-likelihood ratio of +c for each amplitude.
    pub plus: [f64; LEARNT],
    /// Log-likelihood ratio of −c for each amplitude.
    pub minus: [f64; LEARNT],
    /// Σ z(1 − z): 0 where no event fell whose outcome could be in doubt.
    pub variance: f64,
    /// Number of events, as far as bets go: 0 leaves the cell out.
    pub n: u64,
}

impl CellLikelihood {
    /// Adds the sums of a part of the cell.
    #[inline]
    pub fn merge(&mut self, o: &CellLikelihood) {
        for j in 0..LEARNT {
            self.plus[j] += o.plus[j];
            self.minus[j] += o.minus[j];
        }
        self.variance += o.variance;
        self.n += o.n;
    }
}

impl Default for Likelihoods {
    fn default() -> Likelihoods {
        Likelihoods {
            n: 0,
            directed: [0.0; 2 * DIRECTED],
            towards: [0.0; TOWARDS],
            cells: vec![CellLikelihood::default(); CELLS],
        }
    }
}

impl Likelihoods {
    /// Divides the log ratios, and the variances of cells, by the dispersions of clustered
    /// outcomes.
    pub fn temper(&mut self, by: &Dispersions) {
        let (intercepts, slopes) = self.directed.split_at_mut(DIRECTED);
        intercepts.iter_mut().for_each(|x| *x /= by.intercept);
        slopes.iter_mut().for_each(|x| *x /= by.slope);
        let share = 1.0 / by.other;
        self.towards.iter_mut().for_each(|x| *x *= share);
        for cell in &mut self.cells {
            cell.plus.iter_mut().for_each(|x| *x *= share);
            cell.minus.iter_mut().for_each(|x| *x *= share);
            cell.variance *= share;
        }
    }

    /// Fills the coarser scales from the finest one of either axis: cells nest by halves.
    pub fn fold(&mut self) {
        for k in (0..SCALES - 1).rev() {
            let (coarse, fine) = (Scale::of(k), Scale::of(k + 1));
            if fine.cells != 2 * coarse.cells {
                continue;
            }
            for cell in 0..coarse.cells {
                let mut sum = self.cells[fine.first + 2 * cell];
                sum.merge(&self.cells[fine.first + 2 * cell + 1]);
                self.cells[coarse.first + cell] = sum;
            }
        }
    }
}
