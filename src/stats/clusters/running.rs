//! Dispersion of a stream so far, for bets on its next pane.

use super::super::overdispersion::{PaneTotals, chi_squared_quantile};
use super::super::sums::Sums;
use super::robust::{Clusters, dispersion_of};
use super::sums::BUCKETS;

/// Normal quantile below which the estimate lies with probability 0.1.
const Z_10: f64 = -1.281_551_565_544_6;

/// Totals by bucket of all panes of a stream so far. What leaves its integer stays at the end of
/// it.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RunningClusters {
    /// Events and ΣU in units of 2⁻³², by bucket; empty before the first pane of clustered events.
    buckets: Vec<(u64, i64)>,
    /// ΣU² in units of 2⁻³².
    u2: u64,
}

impl RunningClusters {
    /// Adds a pane; one of events without clusters adds nothing.
    pub fn add(&mut self, pane: &Sums) {
        let Some(clusters) = pane.clusters() else {
            return;
        };
        self.buckets.resize(BUCKETS, (0, 0));
        for (bucket, sums) in clusters.occupied() {
            let (n, u) = &mut self.buckets[bucket.index() as usize];
            *n = n.saturating_add(sums.n());
            for c in &sums.cells {
                let residual = (i128::from(c.y) << 32) - i128::from(c.z);
                *u = u.saturating_add(i64::try_from(residual).unwrap_or(i64::MAX));
            }
        }
        self.u2 = self.u2.saturating_add(PaneTotals::of(pane).u2);
    }

    /// A φ, at least 1, that the true one exceeds with probability 0.1; `None` while there are too
    /// few groups of clusters to say.
    pub fn dispersion(&self) -> Option<f64> {
        const UNIT: f64 = 1.0 / (1u64 << 32) as f64;
        let totals = self.buckets.iter().filter(|(n, _)| *n > 0);
        let totals = totals.map(|(n, u)| (*n as f64, *u as f64 * UNIT));
        let said = dispersion_of(totals.collect(), self.u2 as f64 * UNIT);
        let known = !said.are_few() && said.effective >= super::CLUSTERS_MIN as f64;
        let Clusters {
            factor, effective, ..
        } = said;
        let nu = effective - 1.0;
        known.then(|| (factor * nu / chi_squared_quantile(nu, Z_10)).max(1.0))
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<(u64, i64)>()
    }
}
