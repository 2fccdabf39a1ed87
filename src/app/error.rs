//! Why the application does not start, or ends without being stopped.

use crate::kafka::KafkaError;

/// An error that the commands turn into a message and an exit code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub enum AppError {
    /// The configuration asks for something impossible.
    Config(String),
    /// The input has no usable events.
    Data(String),
    /// An input file cannot be opened.
    NoInput(String),
    /// Something outside the process is missing or does not answer.
    Unavailable(String),
    /// Another process, which was first, holds what only one process may hold.
    Displaced(String),
    /// A part of the program ended by itself, which is a bug.
    Internal(String),
}

impl AppError {
    /// The error if the operating system starts no thread.
    pub(super) fn no_thread(error: std::io::Error) -> AppError {
        AppError::Unavailable(format!("cannot start a thread: {error}"))
    }

    /// The error of a command that only reads Kafka.
    pub(super) fn of_kafka(error: KafkaError) -> AppError {
        match error {
            KafkaError::Option { .. }
            | KafkaError::Topic { .. }
            | KafkaError::Unsuitable { .. } => AppError::Config(error.ended()),
            _ => AppError::Unavailable(error.ended()),
        }
    }
}
