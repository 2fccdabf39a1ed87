//! How the predictions of one source are joined with their outcomes.

/// How a mature prediction without outcome is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missing {
    /// As expired; it enters no sum.
    #[default]
    Drop,
    /// As if this class had happened: 0 if a click that never came is no click.
    Class(u32),
}

impl Missing {
    /// The implied class, if any.
    pub fn class(self) -> Option<u32> {
        match self {
            Missing::Drop => None,
            Missing::Class(class) => Some(class),
        }
    }
}

/// Which of several outcomes of one prediction stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeated {
    /// The earlier in event time; the other is counted as a duplicate.
    #[default]
    First,
    /// The later in event time.
    Last,
    /// The one that arrived first; another with a different class is rejected.
    Reject,
}

/// One join: its topics, and what to do in each case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinPlan {
    /// Number of the source (topic) of the predictions.
    pub predictions: u16,
    /// Number of the source (topic) of the outcomes; the same if one topic carries both.
    pub outcomes: u16,
    /// Horizon: a prediction is observed this long after its event time.
    pub maturity_ms: i64,
    /// How a missing outcome is counted.
    pub missing: Missing,
    /// Which of several outcomes stays.
    pub repeated: Repeated,
    /// Whether an outcome that comes after maturity still corrects the sums, while its pane is
    /// retained.
    pub revise: bool,
    /// Whether ids are unique only within a model; otherwise they are unique within the source.
    pub by_model: bool,
    /// The only model that the source carries, if that is fixed.
    pub model: Option<String>,
    /// Most retained predictions, and most waiting outcomes, over the partitions of one collector.
    pub pending_max: usize,
    /// Bytes of memory that predictions may take, over all partitions; the rest spills if there is
    /// a store.
    pub pending_memory: usize,
}
