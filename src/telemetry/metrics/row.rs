//! The columns of the table of metrics.

/// Kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::AsRefStr)]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    /// Only increases until a restart.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts observations below upper bounds.
    Histogram,
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
    /// Per stream and window, withdrawn while the window was not evaluated.
    Evaluation,
    /// Per stream, window and cell of the reliability diagram. Withdrawn like `Evaluation`.
    Cell,
    /// Per source or partition.
    Input,
    /// Per process.
    Process,
}

impl Group {
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
    /// The group, which determines when the metric has values, and its common labels.
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
