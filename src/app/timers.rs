//! When the periodic work of the engine loop is due.

use std::time::{Duration, Instant};

/// When periodic work was last done. Sizes are due at the start.
#[derive(Debug)]
pub struct Timers {
    pub(super) tick: Timer,
    pub(super) sizes: Timer,
    pub(super) save: Timer,
    /// The last save that did not wait for its time.
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
            sizes,
            save: Timer::default(),
            hurry: Timer::default(),
            records: 0,
        }
    }
}

/// When something was last done that is due again after a period.
#[derive(Debug)]
pub(super) struct Timer(Instant);

impl Default for Timer {
    fn default() -> Timer {
        Timer(Instant::now())
    }
}

impl Timer {
    /// Makes it due now.
    pub(super) fn bring_forward(&mut self, period: Duration) {
        self.0 = self.0.checked_sub(period).unwrap_or(self.0);
    }

    /// Whether the period has passed since this was last true.
    pub(super) fn due(&mut self, period: Duration) -> bool {
        let due = self.0.elapsed() >= period;
        if due {
            self.0 = Instant::now();
        }
        due
    }
}
