//! Reads the clocks: the engine's `now`, the time of reading, and the stopwatch for evaluations.

use std::sync::OnceLock;
use std::time::Instant;

pub use crate::telemetry::now_ms;

/// Milliseconds since 1970 by a clock that never steps: the machine's clock at the first call plus
/// the time that has passed since. Use it for every wait.
pub fn steady_ms() -> i64 {
    static START: OnceLock<(Instant, i64)> = OnceLock::new();
    let (start, at_ms) = START.get_or_init(|| (Instant::now(), now_ms()));
    let since = i64::try_from(start.elapsed().as_millis());
    at_ms.saturating_add(since.unwrap_or(i64::MAX))
}

/// The latest possible arrival of a record that is read now: the later of both clocks. So neither a
/// step back nor a machine that was suspended makes records of today look as if they came from the
/// future.
pub fn reading_ms() -> i64 {
    now_ms().max(steady_ms()).saturating_add(TOLERANCE_MS)
}

/// How much the clocks of well-kept machines may differ. With a smaller tolerance, the bound on an
/// event time would depend on when the event is read.
const TOLERANCE_MS: i64 = 1000;

/// Nanoseconds since the first call.
pub fn stopwatch() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let since = START.get_or_init(Instant::now).elapsed();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
