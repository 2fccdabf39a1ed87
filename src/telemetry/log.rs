//! Log lines: readable on a terminal, JSON elsewhere, limited where they could flood.
//!
//! A line is a constant lowercase message and its facts as fields, so that lines of one site group
//! together and numbers stay numbers. A site that may fire once per record (a bad record, a refused
//! connection) goes through [`warn_limited!`](crate::warn_limited): it writes at most [`BURST`] lines
//! in [`PERIOD`] and then one line that says how many were held back; the records themselves are all
//! counted in the metrics, so nothing is lost but repetition. (The pattern is vector's, keyed by site.)
//!
//! Lines go to standard error: standard output belongs to the verbs' results.

use std::io::IsTerminal;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tracing_subscriber::EnvFilter;

/// Lines one site may write in a period: enough to see a pattern.
pub const BURST: u64 = 5;
/// Length of a period.
pub const PERIOD: Duration = Duration::from_secs(10);

/// Lines that no site wrote because it had written enough, over the whole program.
static SUPPRESSED: AtomicU64 = AtomicU64::new(0);

/// Shape of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Human on a terminal, JSON otherwise.
    #[default]
    Auto,
    /// One readable line.
    Human,
    /// One JSON object a line.
    Json,
}

/// How to log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogOptions {
    /// Shape of the lines.
    pub format: Format,
    /// Directives as of `tracing_subscriber::EnvFilter`, such as `info` or `trueline::kafka=debug`.
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

/// Starts logging for the whole process. The error names the faulty directive; it is also an error to
/// start twice.
pub fn start(options: &LogOptions) -> Result<(), String> {
    let filter = EnvFilter::try_new(&options.filter).map_err(|error| {
        format!(
            "log filter `{}` is not understood ({error}); use a level such as `info` or `trueline=debug`",
            options.filter
        )
    })?;
    let terminal = std::io::stderr().is_terminal();
    let builder = tracing_subscriber::fmt().with_writer(std::io::stderr as fn() -> std::io::Stderr);
    let (started, handle): (_, Refilter) = match options.format {
        Format::Json => json(builder, filter),
        Format::Auto if !terminal => json(builder, filter),
        Format::Human | Format::Auto => {
            let builder = builder.with_ansi(terminal).with_env_filter(filter);
            let builder = builder.with_filter_reloading();
            let handle = builder.reload_handle();
            let refilter = move |filter| handle.reload(filter).map_err(|e| e.to_string());
            (builder.try_init(), Box::new(refilter))
        }
    };
    started.map_err(|error| format!("logging could not start: {error}"))?;
    let _ = REFILTER.set(handle);
    Ok(())
}

type Refilter = Box<dyn Fn(EnvFilter) -> Result<(), String> + Send + Sync>;

/// How to change what is logged, once logging has started.
static REFILTER: OnceLock<Refilter> = OnceLock::new();

type Plain = tracing_subscriber::fmt::SubscriberBuilder<
    tracing_subscriber::fmt::format::DefaultFields,
    tracing_subscriber::fmt::format::Format,
    tracing_subscriber::filter::LevelFilter,
    fn() -> std::io::Stderr,
>;

/// Lines of JSON.
fn json(
    builder: Plain,
    filter: EnvFilter,
) -> (
    Result<(), Box<dyn std::error::Error + Send + Sync>>,
    Refilter,
) {
    let builder = builder.json().flatten_event(true).with_env_filter(filter);
    let builder = builder.with_filter_reloading();
    let handle = builder.reload_handle();
    let refilter = move |filter| handle.reload(filter).map_err(|e| e.to_string());
    (builder.try_init(), Box::new(refilter))
}

/// Logs by other directives from now on; nothing to do where logging has not started.
pub fn filter_by(directives: &str) -> Result<(), String> {
    let Some(refilter) = REFILTER.get() else {
        return Ok(());
    };
    refilter(EnvFilter::try_new(directives).map_err(|error| error.to_string())?)
}

/// Lines held back so far by all limited sites.
pub fn suppressed() -> u64 {
    SUPPRESSED.load(Ordering::Relaxed)
}

/// What a limited site may do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// Write, and say that this many lines were held back in the last period.
    Write {
        /// Lines held back since the last one written.
        held_back: u64,
    },
    /// Stay silent.
    Silent,
}

/// The state of one site. Lives in a `static` made by [`warn_limited!`](crate::warn_limited).
#[derive(Debug, Default)]
pub struct Site {
    /// Number of the current period, plus one so that zero means none yet.
    period: AtomicU64,
    /// Lines asked for in this period.
    asked: AtomicU64,
}

impl Site {
    /// A site that has written nothing.
    pub const fn new() -> Site {
        Site {
            period: AtomicU64::new(0),
            asked: AtomicU64::new(0),
        }
    }

    /// Asks to write a line at `elapsed` since some fixed moment. Two threads that cross a period's
    /// edge together may both count in it; the limit is then off by one, which is harmless.
    pub fn ask(&self, elapsed: Duration) -> Leave {
        let now = elapsed.as_secs() / PERIOD.as_secs() + 1;
        if self.period.swap(now, Ordering::Relaxed) != now {
            let before = self.asked.swap(1, Ordering::Relaxed);
            let held_back = before.saturating_sub(BURST);
            return Leave::Write { held_back };
        }
        if self.asked.fetch_add(1, Ordering::Relaxed) < BURST {
            return Leave::Write { held_back: 0 };
        }
        SUPPRESSED.fetch_add(1, Ordering::Relaxed);
        Leave::Silent
    }

    /// [`Site::ask`] by the program's own clock.
    pub fn ask_now(&self) -> Leave {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        self.ask(START.get_or_init(Instant::now).elapsed())
    }
}

/// `tracing::warn!` that writes at most [`BURST`] lines per [`PERIOD`] at this place in the source.
#[macro_export]
macro_rules! warn_limited {
    ($($arg:tt)+) => {{
        static SITE: $crate::telemetry::log::Site = $crate::telemetry::log::Site::new();
        match SITE.ask_now() {
            $crate::telemetry::log::Leave::Silent => {}
            $crate::telemetry::log::Leave::Write { held_back: 0 } => ::tracing::warn!($($arg)+),
            $crate::telemetry::log::Leave::Write { held_back } => ::tracing::warn!(held_back, $($arg)+),
        }
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_writes_a_burst_then_is_silent_then_says_how_much_it_held_back() {
        let site = Site::new();
        let at = Duration::from_secs(3);
        for _ in 0..BURST {
            assert_eq!(site.ask(at), Leave::Write { held_back: 0 });
        }
        for _ in 0..100 {
            assert_eq!(site.ask(at), Leave::Silent);
        }
        assert_eq!(site.ask(at + PERIOD), Leave::Write { held_back: 100 });
        assert!(suppressed() >= 100);
    }

    #[test]
    fn a_faulty_filter_is_named_with_the_remedy() {
        let options = LogOptions {
            filter: "trueline=loudly".to_owned(),
            ..LogOptions::default()
        };
        let error = start(&options).unwrap_err();
        assert!(error.contains("trueline=loudly") && error.contains("use a level"));
    }
}
