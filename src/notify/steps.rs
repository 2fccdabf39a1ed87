//! Background work beside the engine's thread, in steps. The caller decides on which thread it runs
//! and by which clock.
//!
//! A [`Steps`] never waits by itself. Each call does one thing and returns when to call again; a
//! [`Bell`] signals that there is work before that. The program runs it on a thread that sleeps
//! between the calls ([`super::host`]). A test may call it under a simulated clock, and stop
//! between any two calls.

use parking_lot::{Condvar, Mutex};
use std::time::Instant;

/// When to call again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// At once.
    Now,
    /// When the bell has rung.
    Rung,
    /// When the bell has rung, or at this time.
    Until(Instant),
    /// Never: all is done.
    Never,
}

/// Work that is done in steps.
pub trait Steps: Send {
    /// Does one thing, if one is due. A call that comes too early does nothing.
    fn step(&mut self) -> Again;
}

/// Signals between threads that there is something to do.
#[derive(Debug, Default)]
pub struct Bell {
    rung: Mutex<bool>,
    wakeup: Condvar,
}

impl Bell {
    /// Signals that there is something to do.
    pub fn ring(&self) {
        *self.rung.lock() = true;
        self.wakeup.notify_all();
    }

    /// Whether it has rung since the last call.
    pub fn take(&self) -> bool {
        std::mem::take(&mut *self.rung.lock())
    }

    /// Waits until it rings, at most until `until`.
    pub fn wait(&self, until: Option<Instant>) {
        let (mut rung, silent) = (self.rung.lock(), |rung: &mut bool| !std::mem::take(rung));
        match until {
            None => self.wakeup.wait_while(&mut rung, silent),
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                self.wakeup.wait_while_for(&mut rung, silent, left);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn a_bell_that_rings_before_or_while_one_waits_is_heard_once() {
        let bell = Arc::new(Bell::default());
        bell.ring();
        bell.ring();
        bell.wait(None);
        assert!(!bell.take());
        bell.wait(Some(Instant::now() + Duration::from_millis(1)));
        let theirs = Arc::clone(&bell);
        let ringing = std::thread::spawn(move || theirs.ring());
        bell.wait(None);
        ringing.join().expect("no panic");
        assert!(!bell.take());
    }
}
