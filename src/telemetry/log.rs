//! Log lines: readable on a terminal, JSON elsewhere, limited where they could be too many.
//!
//! A line is a constant lowercase message with its values as fields, so that lines of one call site
//! group together and numbers stay numbers. A site that may log once per record (a bad record, a
//! refused connection) uses [`warn_limited!`](crate::warn_limited). It writes at most [`BURST`]
//! lines per [`PERIOD`] and then one line with the number of suppressed lines. Metrics count every
//! record, so only repetition is lost. (The pattern is vector's, keyed by site.)
//!
//! Lines go to standard error, because standard output carries the results of commands. A separate
//! thread writes them: a pipe that nobody reads blocks its writer, which must not be the engine.
//! While [`LINES_MAX`] lines wait, further ones are dropped and counted as suppressed.

use parking_lot::Mutex;
use std::io::IsTerminal;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::prelude::*;
use tracing_subscriber::{EnvFilter, Registry, fmt, registry, reload};

/// Lines that one site may write per period: enough to see a pattern.
pub const BURST: u64 = 5;
/// Length of a period.
pub const PERIOD: Duration = Duration::from_secs(10);

/// Most lines that wait to be written: about 4 MB.
pub const LINES_MAX: usize = 8_192;

/// How long writing the last lines may take; the writing thread has slightly less.
const FINISH_WITHIN: Duration = Duration::from_millis(1500);

/// Lines suppressed by all limited sites of the program.
static SUPPRESSED: AtomicU64 = AtomicU64::new(0);
/// Counts lines dropped because [`LINES_MAX`] others were waiting.
static DROPPED: OnceLock<ErrorCounter> = OnceLock::new();
/// Keeps the writing thread alive until [`finish`].
static WRITER: Mutex<Option<WorkerGuard>> = Mutex::new(None);

/// Format of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Human on a terminal, JSON otherwise.
    #[default]
    Auto,
    /// One readable line.
    Human,
    /// One JSON object a line.
    Json,
}

/// Logging options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogOptions {
    /// Format of the lines.
    pub format: Format,
    /// Directives of `tracing_subscriber::EnvFilter`, such as `info` or `trueline::kafka=debug`.
    pub filter: String,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions {
            format: Format::Auto,
            filter: "info".to_owned(),
        }
    }
}

/// Starts logging for the whole process. An error names the invalid directive. Starting twice is an
/// error too.
pub fn start(options: &LogOptions) -> Result<(), String> {
    let filter = &options.filter;
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        format!(
            "log filter `{filter}` is invalid ({error}); use a level such as `info` or `trueline=debug`"
        )
    })?;
    let terminal = std::io::stderr().is_terminal();
    let (lines, writer) = NonBlockingBuilder::default()
        .lossy(true)
        .buffered_lines_limit(LINES_MAX)
        .thread_name("log")
        .finish(std::io::stderr());
    let dropped = lines.error_counter();
    let layer = fmt::layer().with_writer(lines);
    let layer = match options.format {
        Format::Human => layer.with_ansi(terminal).boxed(),
        Format::Auto if terminal => layer.with_ansi(terminal).boxed(),
        Format::Json | Format::Auto => layer.json().flatten_event(true).boxed(),
    };
    let (filter, handle) = reload::Layer::new(filter);
    let started = registry().with(filter).with(layer).try_init();
    started.map_err(|error| format!("logging could not start: {error}"))?;
    let _ = REFILTER.set(handle);
    let _ = DROPPED.set(dropped);
    *WRITER.lock() = Some(writer);
    Ok(())
}

/// Writes the waiting lines, for about a second at most, or waits for another thread that does.
/// Later lines are not written.
pub fn finish() {
    let mut held = WRITER.lock();
    let writer = held.take();
    // In its own thread: with a full queue, dropping prints to standard output, which may be a pipe
    // that nobody reads.
    let (done, ended) = channel::<()>();
    let thread = std::thread::Builder::new().name("log-end".to_owned());
    if thread.spawn(move || drop((writer, done))).is_ok() {
        let _ = ended.recv_timeout(FINISH_WITHIN);
    }
}

/// Handle that replaces the filter, once logging has started.
static REFILTER: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// Replaces the directives. Does nothing if logging has not started.
pub fn set_filter(directives: &str) -> Result<(), String> {
    let Some(handle) = REFILTER.get() else {
        return Ok(());
    };
    let filter = EnvFilter::try_new(directives).map_err(|error| error.to_string())?;
    handle.reload(filter).map_err(|error| error.to_string())
}

/// Lines suppressed so far: by all limited sites, and because nobody read them.
pub fn suppressed() -> u64 {
    let dropped = DROPPED.get().map_or(0, ErrorCounter::dropped_lines);
    SUPPRESSED.load(Ordering::Relaxed) + dropped as u64
}

/// Whether a limited site may write a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permit {
    /// Write the line and the number of lines suppressed in the last period.
    Write {
        /// Lines suppressed since the last one written.
        suppressed: u64,
    },
    /// Write nothing.
    Silent,
}

/// The state of one site. Lives in a `static` made by [`warn_limited!`](crate::warn_limited).
#[derive(Debug, Default)]
pub struct Site {
    /// Number of the current period, plus one so that zero means none yet.
    period: AtomicU64,
    /// Lines attempted in this period.
    attempts: AtomicU64,
}

impl Site {
    /// A site that has written nothing.
    pub const fn new() -> Site {
        Site {
            period: AtomicU64::new(0),
            attempts: AtomicU64::new(0),
        }
    }

    /// Attempts to write a line at `elapsed` since a fixed moment. Two threads that cross the end
    /// of a period together may both count in it; the limit is then off by one, which is harmless.
    pub fn attempt(&self, elapsed: Duration) -> Permit {
        let now = elapsed.as_secs() / PERIOD.as_secs() + 1;
        if self.period.swap(now, Ordering::Relaxed) != now {
            let before = self.attempts.swap(1, Ordering::Relaxed);
            let suppressed = before.saturating_sub(BURST);
            return Permit::Write { suppressed };
        }
        if self.attempts.fetch_add(1, Ordering::Relaxed) < BURST {
            return Permit::Write { suppressed: 0 };
        }
        SUPPRESSED.fetch_add(1, Ordering::Relaxed);
        Permit::Silent
    }

    /// [`Site::attempt`] by the clock of the program.
    pub fn attempt_now(&self) -> Permit {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        self.attempt(START.get_or_init(Instant::now).elapsed())
    }
}

/// `tracing::warn!` that writes at most [`BURST`] lines per [`PERIOD`] at this place in the source.
#[macro_export]
macro_rules! warn_limited {
    ($($arg:tt)+) => {{
        static SITE: $crate::telemetry::log::Site = $crate::telemetry::log::Site::new();
        match SITE.attempt_now() {
            $crate::telemetry::log::Permit::Silent => {}
            $crate::telemetry::log::Permit::Write { suppressed: 0 } => ::tracing::warn!($($arg)+),
            $crate::telemetry::log::Permit::Write { suppressed } => ::tracing::warn!(suppressed, $($arg)+),
        }
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_writes_a_burst_then_is_silent_then_reports_how_much_it_suppressed() {
        let site = Site::new();
        let at = Duration::from_secs(3);
        for _ in 0..BURST {
            assert_eq!(site.attempt(at), Permit::Write { suppressed: 0 });
        }
        for _ in 0..100 {
            assert_eq!(site.attempt(at), Permit::Silent);
        }
        assert_eq!(site.attempt(at + PERIOD), Permit::Write { suppressed: 100 });
        assert!(suppressed() >= 100);
    }

    #[test]
    fn an_invalid_filter_is_named_with_the_remedy() {
        let options = LogOptions {
            filter: "trueline=loudly".to_owned(),
            ..LogOptions::default()
        };
        let error = start(&options).unwrap_err();
        assert!(error.contains("trueline=loudly") && error.contains("use a level"));
    }
}
