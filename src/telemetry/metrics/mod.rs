//! The one table of metrics.
//!
//! Every exported name is a row here, with its kind, unit, labels and meaning. The collector can
//! only emit rows ([`Id`] is generated from them), the reference page is printed from them
//! ([`markdown`]), and a test checks every expression of the rules and dashboards in `deploy/`
//! against them. So a metric cannot be renamed in one place and forgotten in another.
//!
//! Names are `trueline_<noun>_<unit>[_total]` in base units. A dimensionless value (a probability,
//! a p-value, an estimate of calibration error) has no unit in its name. Labels are bounded: the
//! caps of the engine bound `model`, `version`, `segment`, `view` and `window`, the level of the
//! reliability diagram bounds `cell`, and the program itself bounds the others.

mod table;

pub use table::{Id, TABLE};

/// Kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only increases until a restart.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts observations below upper bounds.
    Histogram,
}

impl Kind {
    /// Its name in the exposition format.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// When a metric has values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Per stream.
    Stream,
    /// Per account of the false-alarm budget.
    Account,
    /// Per pair of versions of a model that scored the same ids.
    Comparison,
    /// Per stream and window, always.
    Window,
    /// Per stream and window while the verdict is `calibrated` or `miscalibrated`. Withdrawn while
    /// the window is undecided.
    Evaluation,
    /// Per stream, window and cell of the reliability diagram. Withdrawn like `Evaluation`.
    Cell,
    /// Per source or partition.
    Input,
    /// Per process.
    Process,
}

impl Group {
    /// All groups in the order of the reference.
    pub const ALL: [Group; 8] = [
        Group::Stream,
        Group::Account,
        Group::Comparison,
        Group::Window,
        Group::Evaluation,
        Group::Cell,
        Group::Input,
        Group::Process,
    ];

    /// Heading in the reference.
    fn heading(self) -> &'static str {
        match self {
            Group::Stream => "Per stream; detector metrics only if its budget is not `none`",
            Group::Account => "Per account of the false-alarm budget",
            Group::Comparison => {
                "Per pair of versions if `[model.compare]` is enabled; intervals are anytime-valid"
            }
            Group::Window => "Per stream and window, always present",
            Group::Evaluation => {
                "Per stream and window, withdrawn while the verdict is `undecided`"
            }
            Group::Cell => {
                "Per cell of the reliability diagram, withdrawn while the verdict is `undecided`"
            }
            Group::Input => "Input",
            Group::Process => "Process",
        }
    }

    /// Labels of every metric of the group, which precede its own labels.
    pub fn labels(self) -> &'static [&'static str] {
        match self {
            Group::Stream => &["model", "version", "segment", "view"],
            Group::Account => &["account"],
            Group::Comparison => &["model", "view", "champion", "challenger"],
            Group::Window | Group::Evaluation => &["model", "version", "segment", "view", "window"],
            Group::Cell => &["model", "version", "segment", "view", "window", "cell"],
            Group::Input | Group::Process => &[],
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Full name.
    pub name: &'static str,
    /// Kind.
    pub kind: Kind,
    /// Determines when it has values, and its common labels.
    pub group: Group,
    /// Unit in words; `1` if dimensionless.
    pub unit: &'static str,
    /// Labels in addition to those of the group.
    pub labels: &'static [&'static str],
    /// Meaning.
    pub help: &'static str,
}

impl Metric {
    /// All labels in order.
    pub fn all_labels(&self) -> impl Iterator<Item = &'static str> {
        self.group.labels().iter().chain(self.labels).copied()
    }
}

/// The row of a metric.
pub fn metric(id: Id) -> &'static Metric {
    &TABLE[id as usize]
}

/// The reference page of the table, as `deploy/prometheus/README.md` carries it.
pub fn markdown() -> String {
    let mut page = String::new();
    for group in Group::ALL {
        let common = group.labels();
        page.push_str(&format!("**{}**", group.heading()));
        if !common.is_empty() {
            page.push_str(&format!(" (labels `{}`)", common.join("`, `")));
        }
        page.push_str("\n\n| metric | kind | unit | meaning |\n|---|---|---|---|\n");
        for row in TABLE.iter().filter(|row| row.group == group) {
            let own = match row.labels {
                [] => String::new(),
                labels => format!(" `{{{}}}`", labels.join(", ")),
            };
            page.push_str(&format!(
                "| `{}`{own} | {} | {} | {} |\n",
                row.name,
                row.kind.as_str(),
                row.unit,
                row.help
            ));
        }
        page.push('\n');
    }
    page.trim_end().to_owned()
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

    #[test]
    fn the_reference_names_every_metric_once() {
        let page = markdown();
        for row in TABLE {
            let cell = format!("| `{}`", row.name);
            assert_eq!(page.matches(&cell).count(), 1, "{}", row.name);
        }
    }
}
