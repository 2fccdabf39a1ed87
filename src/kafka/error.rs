//! What can go wrong with the broker, in words that name the remedy.

use std::fmt;

/// A failure of the Kafka client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KafkaError {
    /// A setting that librdkafka does not know, or a value that it refuses.
    Option {
        /// Name of the setting.
        name: String,
        /// What is wrong with it.
        detail: String,
    },
    /// No broker answers; the client goes on trying.
    Unreachable {
        /// The brokers that were tried.
        brokers: String,
        /// librdkafka's words.
        detail: String,
    },
    /// The broker refused the credentials.
    Credentials {
        /// librdkafka's words.
        detail: String,
    },
    /// The topic does not exist, or may not be read.
    Topic {
        /// Name of the topic.
        topic: String,
        /// What the broker said.
        detail: String,
    },
    /// Anything else that passes.
    Other(String),
    /// The client cannot go on and must be made anew.
    Fatal(String),
}

impl KafkaError {
    /// Whether the consumer must be made anew.
    pub fn is_fatal(&self) -> bool {
        matches!(self, KafkaError::Fatal(_))
    }
}

impl fmt::Display for KafkaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KafkaError::Option { name, detail } => {
                write!(f, "kafka option `{name}`: {detail}")
            }
            KafkaError::Unreachable { brokers, detail } => write!(
                f,
                "no kafka broker answers at `{brokers}` ({detail}); still trying: check `brokers` and the network"
            ),
            KafkaError::Credentials { detail } => write!(
                f,
                "the kafka broker refused the credentials ({detail}); check `security.protocol`, `mechanism`, `username` and `password`"
            ),
            KafkaError::Topic { topic, detail } => write!(
                f,
                "kafka topic `{topic}`: {detail}; create it or correct `topics`"
            ),
            KafkaError::Other(detail) => write!(f, "kafka client: {detail}"),
            KafkaError::Fatal(detail) => {
                write!(
                    f,
                    "kafka client cannot go on: {detail}; restart the process"
                )
            }
        }
    }
}

impl std::error::Error for KafkaError {}
