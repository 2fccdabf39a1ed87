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

/// The latest possible arrival of a record that is read now: the later of both clocks. So current
/// records do not seem to come from the future after a clock stepped back or the machine was
/// suspended.
pub fn reading_ms() -> i64 {
    now_ms().max(steady_ms()).saturating_add(TOLERANCE_MS)
}

/// How much the clocks of well-kept machines may differ. With a smaller tolerance, the bound on an
/// event time would depend on when the event is read.
const TOLERANCE_MS: i64 = 1000;

/// The clock of the engine's ticks, without most of the time in which the process did not run.
/// Records of that time have yet to be read, so nothing is stale because they are missing.
#[derive(Debug, Default)]
pub struct AwakeClock {
    read_ms: Option<i64>,
    lost_ms: i64,
}

impl AwakeClock {
    /// Longest time between two ticks that counts in full.
    const GAP_MS_MAX: i64 = 10_000;

    /// The time of this clock when [`steady_ms`] returns `steady_ms`. It lags by the time that did
    /// not count.
    pub fn read(&mut self, steady_ms: i64) -> i64 {
        let gap_ms = steady_ms - self.read_ms.unwrap_or(steady_ms);
        self.lost_ms += (gap_ms - Self::GAP_MS_MAX).max(0);
        self.read_ms = Some(steady_ms);
        steady_ms - self.lost_ms
    }
}

/// Nanoseconds since the first call.
pub fn stopwatch() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let since = START.get_or_init(Instant::now).elapsed();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_without_ticks_counts_for_ten_seconds() {
        let mut clock = AwakeClock::default();
        let read = [1_000, 1_100, 11_100, 3_611_100, 3_611_200];
        let read = read.map(|steady_ms| clock.read(steady_ms));
        assert_eq!(read, [1_000, 1_100, 11_100, 21_100, 21_200]);
    }
}
