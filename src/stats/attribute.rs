//! The attribute of an event: a weight, a cluster, or none.

use super::clusters::Bucket;
use super::weight::Weight;

/// A weight or a cluster; all events of a model have the same kind, and no event has both.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Attribute {
    /// All events count equally and are independent.
    #[default]
    None,
    /// How much the event counts.
    Weight(Weight),
    /// The cluster whose events depend on each other.
    Cluster(Bucket),
}

impl Attribute {
    /// The weight, if the attribute is one.
    pub fn weight(self) -> Option<Weight> {
        match self {
            Attribute::Weight(weight) => Some(weight),
            Attribute::None | Attribute::Cluster(_) => None,
        }
    }
}
