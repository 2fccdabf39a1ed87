//! Intervals by resampling as text, which `trueline evaluate --compare-intervals` adds. Ends are on
//! the ℓ2-ECE scale.

use crate::stats::comparison::intervals::{Compared, Ends};

/// One line per interval, below the report with our own.
pub fn text(c: &Compared) -> String {
    let line = |name: &str, e: &Ends| format!("{name:<22}{:.5} to {:.5}\n", e.lower, e.upper);
    format!(
        "\nother {:.0} % intervals of the ℓ2-ECE at {} cells, {} redrawn samples\n{}{}{}",
        100.0 * c.confidence,
        c.cells,
        c.replicates,
        line("bootstrap", &c.bootstrap),
        line("subsampling", &c.subsampling),
        line("HulC", &c.hulc),
    )
}
