//! The name of a monitored stream.

use crate::stats::view::View;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A stream: one view of one segment of one version of a model.
///
/// Prints as `model/version/segment/view`; empty parts stay empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StreamId {
    /// Name of the model.
    pub model: String,
    /// Version of the model, or "".
    pub version: String,
    /// Segment as `k=v,k=v`, or "".
    pub segment: String,
    /// What is tested.
    #[serde(serialize_with = "write_view", deserialize_with = "read_view")]
    pub view: View,
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StreamId {
            model,
            version,
            segment,
            view,
        } = self;
        write!(f, "{model}/{version}/{segment}/{view}")
    }
}

fn write_view<S: Serializer>(view: &View, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(view)
}

fn read_view<'de, D: Deserializer<'de>>(d: D) -> Result<View, D::Error> {
    String::deserialize(d)?.parse().map_err(D::Error::custom)
}
