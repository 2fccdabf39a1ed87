//! Why the application does not start, or ends without being stopped.

use crate::kafka::KafkaError;
use std::fmt;

/// An error that the commands turn into a message and an exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppError {
    /// The configuration asks for something impossible.
    Config(String),
    /// The input has no usable events.
    Data(String),
    /// An input file cannot be opened.
    NoInput(String),
    /// Something outside the process is missing or does not answer.
    Unavailable(String),
    /// Another process, which was there first, has what only one may have.
    Displaced(String),
    /// A part of the program ended by itself, which is a bug.
    Internal(String),
}

impl AppError {
    /// The operating system started no thread.
    pub(super) fn no_thread(error: std::io::Error) -> AppError {
        AppError::Unavailable(format!("cannot start a thread: {error}"))
    }

    /// An error of a reader that has no other work meanwhile.
    pub(super) fn of_kafka(error: KafkaError) -> AppError {
        match error {
            KafkaError::Option { .. } | KafkaError::Topic { .. } => AppError::Config(error.ended()),
            _ => AppError::Unavailable(error.ended()),
        }
    }
}

impl fmt::Display for AppError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AppError::Config(what)
            | AppError::Data(what)
            | AppError::NoInput(what)
            | AppError::Unavailable(what)
            | AppError::Displaced(what)
            | AppError::Internal(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for AppError {}
