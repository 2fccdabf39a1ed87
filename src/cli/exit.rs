//! How the process ends: one small enum, so that scripts and unit files can tell the cases apart.
//!
//! The numbers above 63 are those of BSD `sysexits.h`, which systemd's and Kubernetes' users know; 1 is
//! kept for the one case that is an *answer* and not a failure: the data were read, and the verdict is
//! not the one asked for.

use std::process::ExitCode;

use crate::app::AppError;

/// The ways the process ends. The number is part of the command line's contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything asked for was done, and every expected verdict was met.
    Ok = 0,
    /// The answer is "no": `demo` saw a verdict that is not the truth, `evaluate` with
    /// `--fail-on-miscalibrated` a rejection.
    Verdict = 1,
    /// The command line could not be understood.
    Usage = 64,
    /// The input data could not be read as events.
    Data = 65,
    /// The input file is not there or cannot be opened.
    NoInput = 66,
    /// Something outside is not there: a port, a broker's library, a file.
    Unavailable = 69,
    /// A part of the program broke, which is a bug of ours.
    Software = 70,
    /// The configuration is wrong; each fault has been printed with its place.
    Config = 78,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

impl Exit {
    /// Prints the fault on standard error, and names its code.
    pub fn of(fault: &AppError) -> Exit {
        eprintln!("error: {fault}");
        match fault {
            AppError::Config(_) => Exit::Config,
            AppError::Data(_) => Exit::Data,
            AppError::Unavailable(_) => Exit::Unavailable,
            AppError::Internal(_) => Exit::Software,
        }
    }
}

/// The text that ends every long help, so that no verb describes the codes differently.
pub const HELP: &str = "\
Exit codes:
   0  done, and every expected verdict was met
   1  the answer is no (demo: a verdict differs from the truth;
      evaluate --fail-on-miscalibrated: calibration is rejected)
  64  the command line was not understood
  65  the input data could not be read
  66  the input file cannot be opened
  69  something outside is not available (port, file, directory)
  70  a part of the program broke, which is a bug
  78  the configuration is wrong";
