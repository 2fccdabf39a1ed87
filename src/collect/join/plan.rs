//! How the predictions of one source are joined with their outcomes.

/// What a mature prediction without outcome means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missing {
    /// Nothing: it is counted as expired and is in no sum.
    #[default]
    Drop,
    /// The class that did happen: 0 where a click that never came is no click.
    Class(u32),
}

impl Missing {
    /// The class that is implied, if any.
    pub fn class(self) -> Option<u32> {
        match self {
            Missing::Drop => None,
            Missing::Class(class) => Some(class),
        }
    }
}

/// What a second outcome of one prediction means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Repeated {
    /// The earlier in event time stays; the other is counted as a duplicate.
    #[default]
    First,
    /// The later in event time stays.
    Last,
    /// The one that arrived first stays; another that says something else is rejected.
    Reject,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinPlan {
    /// Number of the source (topic) of the predictions.
    pub predictions: u16,
    /// Number of the source (topic) of the outcomes; the same where one topic carries both.
    pub outcomes: u16,
    /// Horizon: a prediction is observed this long after its event time.
    pub maturity_ms: i64,
    /// What no outcome means.
    pub missing: Missing,
    /// What two outcomes mean.
    pub repeated: Repeated,
    /// Whether an outcome that comes after maturity still corrects the sums, while its pane is held.
    pub revise: bool,
    /// Whether ids are unique within a model only; else within the source.
    pub by_model: bool,
    /// The only model whose predictions come from here, if that is fixed; else any may.
    pub model: Option<String>,
    /// Most predictions held, and as many waiting outcomes, over all partitions.
    pub pending_max: usize,
    /// Bytes of memory that predictions may take, over all partitions; what is beyond spills, where there is
    /// a store.
    pub pending_memory: usize,
}
