//! Progress of a long replay, on standard error: a bar on a terminal, elsewhere a line every ten
//! seconds, so that the log of a job shows that it is alive.

use super::exit;
use std::cell::Cell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Time between two lines if there is no terminal.
const EVERY: Duration = Duration::from_secs(10);

/// A bar on a terminal; lines elsewhere.
pub struct ProgressMeter {
    bar: ProgressBar,
    what: &'static str,
    begun: Instant,
    last_line: Cell<Instant>,
    lines: bool,
}

impl ProgressMeter {
    /// A meter that counts `what`.
    pub fn new(what: &'static str) -> ProgressMeter {
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
        ProgressMeter {
            bar,
            what,
            begun,
            last_line: Cell::new(begun),
            lines: !std::io::stderr().is_terminal(),
        }
    }

    /// Sets the progress: `done` of `total` in this round. All rounds have the same total.
    pub fn set(&self, (round, rounds): (u64, u64), done: u64, total: u64) {
        let (done, all) = (round * total + done, rounds * total);
        self.bar.set_length(all);
        self.bar.set_position(done);
        if self.lines && self.last_line.get().elapsed() >= EVERY {
            self.last_line.set(Instant::now());
            let (what, seconds) = (self.what, self.begun.elapsed().as_secs());
            exit::eprint_line(format_args!("{done} of {all} {what} after {seconds} s"));
        }
    }

    /// Prints something above the bar.
    pub fn suspend(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
