//! Exit codes, so that scripts and unit files can distinguish the cases.
//!
//! The numbers above 63 are those of BSD `sysexits.h`, which users of systemd and Kubernetes know.
//! 1 is an *answer* and not a failure: the data were read, and the verdict is not the expected one.

use std::path::Path;
use std::process::ExitCode;

use crate::app::AppError;
use crate::config::{Config, Problem};

/// The exit codes. The numbers are part of the contract of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Success, with the expected verdicts.
    Ok = 0,
    /// The answer is "no": a verdict of `demo` is not the truth, or `evaluate
    /// --fail-on-miscalibrated` finds the sample miscalibrated.
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
    /// Another process has the group or the `instance`, and was there first.
    Displaced = 77,
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
        eprintln!("error: {fault}");
        match fault {
            AppError::Config(_) => Exit::Config,
            AppError::Data(_) => Exit::Data,
            AppError::Unavailable(_) => Exit::Unavailable,
            AppError::Displaced(_) => Exit::Displaced,
            AppError::Internal(_) => Exit::Software,
        }
    }
}

/// Loads a configuration, or prints its problems.
pub fn load(path: &Path) -> Result<Config, Exit> {
    Config::load(path).map_err(|problems| invalid(&problems))
}

/// Prints the problems of a configuration.
pub fn invalid(problems: &[Problem]) -> Exit {
    problems.iter().for_each(|p| eprintln!("{p}"));
    Exit::Config
}

/// Prints what is wrong with the command line.
pub fn usage(why: &str) -> Exit {
    eprintln!("error: {why}");
    Exit::Usage
}

/// Prints to stdout; a closed pipe (`| head`) is not a failure.
pub fn print(text: &str) {
    use std::io::Write;
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// The end of every long help text.
pub const HELP: &str = "\
Exit codes:
   0  success, with the expected verdicts
   1  the answer is no (demo: a verdict differs from the truth;
      evaluate --fail-on-miscalibrated: miscalibrated)
  64  the command line is invalid
  65  the input data cannot be read
  66  the input file cannot be opened
  69  something outside is not available (port, file, directory)
  70  a part of the program failed, which is a bug
  77  another process has the group or the `instance`, and was there first
  78  the configuration is invalid";
