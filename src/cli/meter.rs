//! How far a long replay has come, on standard error.
//!
//! On a terminal a bar; elsewhere a line now and then, so that a job's log shows that it lives. What is done
//! in less time says nothing.

use std::cell::Cell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Time between two lines where there is no terminal.
const EVERY: Duration = Duration::from_secs(10);

/// See the module.
pub struct Meter {
    bar: ProgressBar,
    what: &'static str,
    begun: Instant,
    told: Cell<Instant>,
    lines: bool,
}

impl Meter {
    /// A meter of so many rounds; `what` is counted.
    pub fn new(what: &'static str) -> Meter {
        let bar = ProgressBar::new(0);
        let template = match what {
            "bytes" => "{bar:40} {bytes}/{total_bytes} {eta}",
            _ => "{bar:40} {human_pos}/{human_len} {msg} {eta}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what);
        let begun = Instant::now();
        Meter {
            bar,
            what,
            begun,
            told: Cell::new(begun),
            lines: !std::io::stderr().is_terminal(),
        }
    }

    /// So much of round `round` of `rounds`, each of which has `total`, is done.
    pub fn at(&self, (round, rounds): (u64, u64), done: u64, total: u64) {
        let (done, all) = (round * total + done, rounds * total);
        self.bar.set_length(all);
        self.bar.set_position(done);
        if self.lines && self.told.get().elapsed() >= EVERY {
            self.told.set(Instant::now());
            let (what, seconds) = (self.what, self.begun.elapsed().as_secs());
            eprintln!("{done} of {all} {what} after {seconds} s");
        }
    }

    /// Prints something without tearing the bar.
    pub fn beside(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Takes the bar away.
    pub fn done(&self) {
        self.bar.finish_and_clear();
    }
}
