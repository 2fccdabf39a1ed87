//! Why the application does not start, or ends before it was told to.

use std::fmt;

/// A fault that the verbs turn into a message and an exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The configuration asks for something that cannot be.
    Config(String),
    /// The input cannot be read as events.
    Data(String),
    /// Something outside is not there.
    Unavailable(String),
    /// A part of the program ended by itself, which is a bug of ours.
    Broken(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Config(what)
            | Fault::Data(what)
            | Fault::Unavailable(what)
            | Fault::Broken(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Fault {}
