//! The one place that reads the wall clock for the engine's `now`.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970 by this machine's clock.
pub fn now_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
