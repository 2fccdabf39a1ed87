//! Limits how often the same error is reported.

use super::KafkaError;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Time after which the same error is reported again.
const REPEAT_AFTER: Duration = Duration::from_secs(30);

/// The recently reported kinds of errors.
#[derive(Default)]
pub(super) struct ErrorThrottle(HashMap<String, Instant>);

impl ErrorThrottle {
    /// Whether the error must be reported now.
    pub fn admits(&mut self, error: &KafkaError) -> bool {
        self.admits_kind(error.kind())
    }

    /// Whether something of this kind must be reported now.
    pub fn admits_kind(&mut self, kind: String) -> bool {
        let now = Instant::now();
        self.0
            .retain(|_, at| now.duration_since(*at) < REPEAT_AFTER);
        if self.0.contains_key(&kind) {
            return false;
        }
        self.0.insert(kind, now);
        true
    }
}
