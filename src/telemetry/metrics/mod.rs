//! The one table of metrics.
//!
//! Every exported name is a row here, with its kind, unit, labels and meaning. The scrape can
//! only emit rows ([`Id`] is generated from them). Tests print the reference page from them, and
//! check every expression of the rules and dashboards in `deploy/` against them. So a metric
//! cannot be renamed in one place and forgotten in another.
//!
//! Names are `trueline_<noun>_<unit>[_total]` in base units. A dimensionless value (a probability,
//! a p-value, an estimate of calibration error) has no unit in its name. Labels are bounded: the
//! caps of the engine bound `model`, `version`, `segment`, `view` and `window`, the level of the
//! reliability diagram bounds `cell`, and the program itself bounds the others.

mod row;
mod table;

pub use row::{Group, Kind, Metric};
pub use table::{Id, TABLE};

/// The row of a metric.
pub fn metric(id: Id) -> &'static Metric {
    &TABLE[id as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_distinct_and_follow_the_rules() {
        let mut seen = BTreeSet::new();
        for row in TABLE {
            assert!(seen.insert(row.name), "{} twice", row.name);
            assert!(
                row.name.starts_with("trueline_") || row.name.starts_with("process_"),
                "{}",
                row.name
            );
            let counter = row.kind == Kind::Counter;
            assert_eq!(counter, row.name.ends_with("_total"), "{}", row.name);
            for unit in ["seconds", "bytes"] {
                let named = row.name.trim_end_matches("_total").ends_with(unit);
                assert_eq!(row.unit == unit, named, "{}", row.name);
            }
            assert!(row.help.ends_with('.'), "{}", row.name);
        }
    }
}
