//! What reaches a judge after its time: late outcomes, and panes of shards that are behind.
//!
//! The windows that hold them show them at their next slide. The detector, which has passed their
//! time, counts them as missed.

use super::Judge;
use crate::window::{Correction, PackError, Pane, VectorCorrection, Windows};

impl Judge {
    /// Takes a correction of a sealed pane.
    pub fn correct(&mut self, c: &Correction) -> Result<(), PackError> {
        if let Some(detector) = &mut self.detector {
            detector.miss(c);
            self.detector_reported = false;
        }
        self.unseen_late += c.plus.n().max(c.minus.n());
        self.windows.correct(c)
    }

    /// Takes a late outcome of a vector; returns whether there was room for it.
    pub fn revise(&mut self, r: &VectorCorrection<'_>) -> bool {
        self.unseen_late += 1;
        self.windows.revise(r)
    }

    /// Late outcomes since the last pane was sealed; after the end of the input, those that some
    /// window lacks.
    pub fn unseen_late(&self) -> u64 {
        self.unseen_late
    }

    /// Takes a base pane from before `sealed_until_ms`.
    pub fn place(&mut self, pane: &Pane, sealed_until_ms: i64) -> Result<(), PackError> {
        if let Some(detector) = &mut self.detector {
            detector.miss_pane(pane.sums.n());
            self.detector_reported = false;
        }
        let placed = self.windows.place(pane, sealed_until_ms);
        self.measure_dispersion();
        placed
    }

    /// Takes all panes, up to `sealed_until_ms`, of another judge of the stream, over other
    /// partitions.
    pub fn absorb(&mut self, theirs: &Windows, sealed_until_ms: i64) -> Result<(), PackError> {
        let absorbed = self.windows.absorb(theirs, sealed_until_ms);
        self.measure_dispersion();
        absorbed
    }
}
