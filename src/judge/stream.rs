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

impl StreamId {
    /// The resampling seed for a window that ends at `end_ms`, from the configured seed: the same
    /// for a rerun, another for each window.
    pub fn seed(&self, window: &str, end_ms: i64, base: u64) -> u64 {
        let names = format!("{self}\n{window}");
        let bytes = names.bytes().chain(end_ms.to_le_bytes());
        fnv1a(bytes.chain(base.to_le_bytes()))
    }
}

pub(super) fn fnv1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    })
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
