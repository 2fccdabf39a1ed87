//! Exit codes, so that scripts and unit files can distinguish the cases.
//!
//! The numbers above 63 are those of BSD `sysexits.h`, which users of systemd and Kubernetes know.
//! 1 is an *answer* and not a failure: the data were read, and the verdict is not the expected one.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::app::AppError;
use crate::config::{Config, Problem};
use crate::report::table::printable_lines;

/// The exit codes. The numbers are part of the contract of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Success, with the expected verdicts.
    Ok = 0,
    /// The answer is "no": a verdict of `demo` is not the truth, `evaluate
    /// --fail-on-miscalibrated` finds the sample miscalibrated, `evaluate
    /// --fail-unless-calibrated` does not find it calibrated, `reproduce --fail-on-difference`
    /// finds another number, `explain` another result, or there is no alert or window of the given
    /// name.
    Verdict = 1,
    /// The command line is invalid.
    Usage = 64,
    /// The input data could not be read as events.
    Data = 65,
    /// The input file is missing or cannot be opened.
    NoInput = 66,
    /// Something outside is not available: a port, a broker, a file.
    Unavailable = 69,
    /// A part of the program failed, which is a bug.
    Software = 70,
    /// Another process has the group or the `instance`, and was there first; or a running trueline
    /// asks for another token.
    NotPermitted = 77,
    /// The configuration is invalid; each problem was printed with its place.
    Config = 78,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

impl Exit {
    /// Prints the fault on standard error and returns its code.
    pub fn of(fault: &AppError) -> Exit {
        let exit = match fault {
            AppError::Config(_) => Exit::Config,
            AppError::Data(_) => Exit::Data,
            AppError::NoInput(_) => Exit::NoInput,
            AppError::Unavailable(_) => Exit::Unavailable,
            AppError::Displaced(_) => Exit::NotPermitted,
            AppError::Internal(_) => Exit::Software,
        };
        fail(exit, fault)
    }
}

/// The failure of a verb: its exit code and reason.
pub type Failure = (Exit, String);

/// Prints the reason of a failure and returns the code.
pub fn fail(exit: Exit, why: impl Display) -> Exit {
    eprint_line(format_args!("error: {why}"));
    exit
}

/// Loads a configuration, or prints its problems.
pub fn load(path: &Path) -> Result<Config, Exit> {
    Config::load(path).map_err(|problems| invalid(&problems))
}

/// Prints the problems of a configuration.
pub fn invalid(problems: &[Problem]) -> Exit {
    problems.iter().for_each(eprint_line);
    Exit::Config
}

/// Whether something could not be printed on standard output.
static LOST: AtomicBool = AtomicBool::new(false);

/// Prints on standard output. A closed pipe (`| head`) is not a failure; any other, such as a full
/// disk, is reported on standard error, and [`ended`] turns it into an exit code.
pub fn print(text: &str) {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if let Some(error) = lost(written)
        && !LOST.swap(true, Ordering::Relaxed)
    {
        fail(
            Exit::Unavailable,
            format_args!("cannot write to standard output: {error}"),
        );
    }
}

/// Prints a line on standard output.
pub fn print_line(line: impl Display) {
    print(&format!("{line}\n"));
}

/// Prints a line with names or values from records on standard output; their control characters
/// are written out.
pub fn print_plain_line(line: impl Display) {
    print_line(printable_lines(&line.to_string()));
}

/// Prints a line on standard error; control characters of names and values are written out. A
/// failure to do so is ignored.
pub fn eprint_line(line: impl Display) {
    let line = line.to_string();
    let line = printable_lines(&line);
    let _ = io::stderr()
        .lock()
        .write_all(format!("{line}\n").as_bytes());
}

/// The error of a write, unless the reader has gone.
pub fn lost(written: io::Result<()>) -> Option<io::Error> {
    written.err().filter(|e| e.kind() != ErrorKind::BrokenPipe)
}

/// The exit code of the process: an answer that could not be printed counts as not given.
pub fn ended(exit: Exit) -> Exit {
    match exit {
        Exit::Ok | Exit::Verdict if LOST.load(Ordering::Relaxed) => Exit::Unavailable,
        _ => exit,
    }
}

/// The end of every long help text.
pub const HELP: &str = "\
Exit codes:
   0  success, with the expected verdicts
   1  the answer is no (demo: a verdict differs from the truth;
      evaluate --fail-on-miscalibrated: miscalibrated;
      evaluate --fail-unless-calibrated: miscalibrated or undecided;
      reproduce --fail-on-difference: a number differs;
      explain: NOT equal; alert, top --once: there is nothing of that name)
  64  the command line is invalid
  65  the input data cannot be read, or half of it or more does not count
      in replay or backtest
  66  the input file cannot be opened
  69  something outside is not available (port, file, directory,
      standard output)
  70  a part of the program failed, which is a bug
  77  another process has the group or the `instance`, and was there first;
      or the token is missing or another
  78  the configuration is invalid";
