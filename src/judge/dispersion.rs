//! What one stream has measured of the dispersion of its outcomes, as the judge keeps it.
//!
//! It takes each pane once, when it is sealed, in order of event time. Outcomes that come after that
//! correct windows and not the series: it measures how outcomes vary, and a few that are missing do
//! not change that. So it is a function of the sealed panes, and the same in every topology.

use crate::stats::overdispersion::{Dispersion, PaneTotals};
use serde::{Deserialize, Serialize};

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamDispersion {
    /// End of the newest pane taken.
    pub at_ms: Option<i64>,
    /// The series.
    pub series: Dispersion,
}

impl StreamDispersion {
    /// Takes the pane that ends at `end_ms`.
    pub fn observe(&mut self, pane: &PaneTotals, end_ms: i64) {
        self.series.observe(pane);
        self.at_ms = Some(end_ms);
    }

    /// The one that has seen later panes.
    pub fn later(self, other: StreamDispersion) -> StreamDispersion {
        if other.at_ms > self.at_ms {
            other
        } else {
            self
        }
    }
}
