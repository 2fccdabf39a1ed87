//! Listeners to labelled predictions (pairs of score and outcome): bounded buffers between the
//! engine and HTTP.
//!
//! Each listener has a buffer of [`BUFFER`] lines and a rate in pairs per second. The engine offers
//! pairs and never waits. Pairs that exceed the buffer or the rate are counted, and the listener
//! gets the number that it missed, at most once a second. Without listeners nothing is tapped.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::collect::{Passed, Wanted};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Lines buffered for a slow listener.
pub const BUFFER: usize = 1024;

/// Most simultaneous listeners.
pub const LISTENERS_MAX: usize = 8;

/// Highest rate of one listener, in pairs per second.
pub const RATE_MAX: u32 = 1000;

/// Seconds between two reports to a listener of how many pairs it missed.
const REPORT_S: f64 = 1.0;

#[derive(Debug)]
struct Listener {
    lines: Sender<String>,
    model: Option<String>,
    /// Pairs per second.
    rate: u32,
    /// Pairs that it may get now.
    tokens: f64,
    missed: u64,
    /// Seconds since the last such report.
    since_report: f64,
}

/// All listeners.
#[derive(Debug, Default)]
pub struct Taps {
    all: Mutex<Vec<Listener>>,
    missed: AtomicU64,
}

impl Taps {
    /// Adds a listener to the pairs of one model or of all; `None` if there are too many listeners.
    pub fn listen(&self, model: Option<String>, rate: u32) -> Option<Receiver<String>> {
        let mut all = self.all.lock();
        all.retain(|l| !l.lines.is_closed());
        if all.len() >= LISTENERS_MAX {
            return None;
        }
        let (lines, receiver) = channel(BUFFER);
        all.push(Listener {
            lines,
            model,
            rate: rate.clamp(1, RATE_MAX),
            tokens: 0.0,
            missed: 0,
            since_report: 0.0,
        });
        Some(receiver)
    }

    /// Ends all listeners.
    pub fn close(&self) {
        self.all.lock().clear();
    }

    /// Number of listeners.
    pub fn listeners(&self) -> usize {
        let mut all = self.all.lock();
        all.retain(|l| !l.lines.is_closed());
        all.len()
    }

    /// Numbers of pairs, of any model and of single ones, that listeners can use until the next
    /// offer, `seconds` from now; none without listeners.
    pub fn wanted(&self, seconds: f64) -> Wanted {
        let mut all = self.all.lock();
        all.retain(|l| !l.lines.is_closed());
        let mut wanted = Wanted::default();
        for listener in all.iter() {
            let most = (f64::from(listener.rate) * seconds).ceil() as usize;
            let models = &mut wanted.models;
            let room = match &listener.model {
                None => &mut wanted.any,
                Some(model) => match models.iter().position(|(m, _)| m == model) {
                    Some(i) => &mut models[i].1,
                    None => {
                        models.push((model.clone(), most));
                        continue;
                    }
                },
            };
            *room = most.max(*room);
        }
        wanted
    }

    /// Offers pairs, each with its model and its line. `passed` counts the pairs that were not
    /// tapped.
    pub fn offer(&self, pairs: &[(String, String)], passed: &Passed, seconds: f64) {
        for listener in self.all.lock().iter_mut() {
            let most = f64::from(listener.rate);
            listener.tokens = (listener.tokens + most * seconds).min(most);
            let before = listener.missed;
            listener.missed += match &listener.model {
                None => passed.all,
                Some(model) => passed.models.get(model).copied().unwrap_or(0),
            };
            for (model, line) in pairs {
                if listener.model.as_ref().is_none_or(|m| m == model) {
                    listener.offer(line);
                }
            }
            let missed = listener.missed - before;
            self.missed.fetch_add(missed, Ordering::Relaxed);
            listener.since_report += seconds;
            if listener.since_report >= REPORT_S {
                listener.report_missed();
            }
        }
    }

    /// Pairs that listeners missed so far.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

impl Listener {
    fn offer(&mut self, line: &str) {
        if self.tokens >= 1.0 && self.lines.try_send(line.to_owned()).is_ok() {
            self.tokens -= 1.0;
        } else {
            self.missed += 1;
        }
    }

    /// Sends the number of missed pairs once there is room.
    fn report_missed(&mut self) {
        let line = format!("{{\"missed\":{}}}\n", self.missed);
        if self.missed > 0 && self.lines.try_send(line).is_ok() {
            (self.missed, self.since_report) = (0, 0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_gets_its_rate_and_the_number_it_missed() {
        let taps = Taps::default();
        assert!(taps.wanted(0.1).is_empty());
        let mut slow = taps.listen(None, 20).expect("room");
        let mut one = taps.listen(Some("b".to_owned()), 1000).expect("room");
        let wanted = taps.wanted(0.1);
        assert_eq!(
            (wanted.any, &*wanted.models),
            (2, &[("b".to_owned(), 100)][..])
        );
        let passed = |all: u64, of_b: u64| Passed {
            all,
            models: [("b".to_owned(), of_b)].into(),
        };
        let pair = |m: &str| (m.to_owned(), format!("{m}\n"));
        taps.offer(&[pair("a"), pair("a"), pair("b")], &passed(5, 0), 0.1);
        assert_eq!(slow.try_recv().expect("a"), "a\n");
        assert_eq!(slow.try_recv().expect("a"), "a\n");
        assert!(slow.try_recv().is_err(), "said once a second");
        assert_eq!(one.try_recv().expect("b"), "b\n");
        for _ in 0..4 {
            taps.offer(&[], &passed(1, 0), 0.25);
        }
        assert_eq!(slow.try_recv().expect("missed"), "{\"missed\":10}\n");
        assert!(slow.try_recv().is_err());
        assert!(one.try_recv().is_err(), "it missed no pair of its model");
        taps.offer(&[], &passed(3, 2), 1.0);
        assert_eq!(one.try_recv().expect("missed"), "{\"missed\":2}\n");
        drop((slow, one));
        assert_eq!((taps.listeners(), taps.wanted(0.1).is_empty()), (0, true));
        assert_eq!(taps.missed(), 6 + 4 + 3 + 2);
    }

    #[test]
    fn a_listener_that_does_not_read_costs_only_its_buffer() {
        let taps = Taps::default();
        let _idle = taps.listen(None, RATE_MAX).expect("room");
        for _ in 0..10 {
            let pairs: Vec<(String, String)> = (0..1000)
                .map(|i| (String::new(), format!("{i}\n")))
                .collect();
            taps.offer(&pairs, &Passed::default(), 1.0);
        }
        let all: Vec<_> = (1..LISTENERS_MAX).map(|_| taps.listen(None, 1)).collect();
        assert!(all.iter().all(Option::is_some) && taps.listen(None, 1).is_none());
    }
}
