//! When the periodic work of the engine loop is due.

use super::clock::AwakeClock;
use std::time::{Duration, Instant};

/// When periodic work was last done. Sizes are due at the start.
#[derive(Debug)]
pub struct Timers {
    pub(super) tick: Timer,
    /// The clock of the ticks.
    pub(super) awake: AwakeClock,
    pub(super) sizes: Timer,
    pub(super) save: Timer,
    /// When the last save began.
    pub(super) save_began: Instant,
    /// The last early save.
    pub(super) hurry: Timer,
    /// Records of the last step.
    pub(super) records: usize,
}

impl Default for Timers {
    fn default() -> Timers {
        let mut sizes = Timer::default();
        sizes.bring_forward(Duration::from_secs(3600));
        Timers {
            tick: Timer::default(),
            awake: AwakeClock::default(),
            sizes,
            save: Timer::default(),
            save_began: Instant::now(),
            hurry: Timer::default(),
            records: 0,
        }
    }
}

/// Work that walks over all streams takes at most this fraction (1/20) of the time, unless that
/// made it rarer than [`RAREST`].
const SHARE: u32 = 20;

/// The longest pause that [`SHARE`] causes: alerts wait for it, and scrapes come every few seconds.
const RAREST: Duration = Duration::from_secs(2);

/// When something was last done that is due again after a period, and how long it took.
#[derive(Debug)]
pub(super) struct Timer {
    last: Instant,
    took: Duration,
}

impl Default for Timer {
    fn default() -> Timer {
        Timer {
            last: Instant::now(),
            took: Duration::ZERO,
        }
    }
}

impl Timer {
    /// Makes the work due now, if its period is `period`.
    pub(super) fn bring_forward(&mut self, period: Duration) {
        self.last = self.last.checked_sub(period).unwrap_or(self.last);
    }

    /// Returns the time since the work was last due, if `period` has passed. The period is longer
    /// if the work [took](Timer::done) too large a share of it.
    pub(super) fn due(&mut self, period: Duration) -> Option<Duration> {
        let period = period.max((SHARE * self.took).min(RAREST));
        let passed = self.last.elapsed();
        let due = passed >= period;
        if due {
            self.last = Instant::now();
        }
        due.then_some(passed)
    }

    /// Notes that the work is done, to measure how long it took.
    pub(super) fn done(&mut self) {
        self.took = self.last.elapsed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_takes_long_is_done_less_often_and_never_too_rarely() {
        let passed = |seconds: u64, took_ms: u64| {
            let (mut timer, passed) = (Timer::default(), Duration::from_secs(seconds));
            timer.took = Duration::from_millis(took_ms);
            timer.bring_forward(passed);
            timer
        };
        let period = Duration::from_millis(100);
        assert_eq!(Timer::default().due(period), None);
        let since = passed(1, 40).due(period).expect("40 ms a second");
        assert!(since >= Duration::from_secs(1));
        assert_eq!(passed(1, 95).due(period), None);
        // Twice it is not due, because the time starts again.
        let mut long = passed(2, 3_600_000);
        assert!(long.due(period).is_some() && long.due(period).is_none());
        long.done();
        assert!(long.took < Duration::from_secs(2));
        // A longer period stays as it is.
        assert_eq!(passed(3, 0).due(Duration::from_secs(4)), None);
    }
}
