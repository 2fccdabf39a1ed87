//! Errors of the Kafka client. Each message names the remedy.

use rdkafka::error::KafkaError as Native;
use rdkafka::types::RDKafkaErrorCode as Code;
use std::fmt;

/// A failure of the Kafka client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KafkaError {
    /// An unknown setting of librdkafka, or an invalid value.
    Option {
        /// Name of the setting.
        name: String,
        /// What is wrong with it.
        detail: String,
    },
    /// No broker responds. The client keeps trying.
    Unreachable {
        /// The brokers that were tried.
        brokers: String,
        /// Text of librdkafka.
        detail: String,
    },
    /// The broker refused the credentials.
    Credentials {
        /// Text of librdkafka.
        detail: String,
    },
    /// The topic does not exist or may not be read.
    Topic {
        /// Name of the topic.
        topic: String,
        /// Text of the broker.
        detail: String,
        /// The key of the configuration that names it.
        key: &'static str,
    },
    /// Any other temporary error.
    Other(String),
    /// The client cannot continue and must be recreated.
    Fatal(String),
    /// Another member has joined the group under the same `instance`: that of another process, or
    /// this one itself, whose answer from the group was lost.
    Fenced(String),
}

impl KafkaError {
    /// Whether the consumer must be recreated.
    pub fn is_fatal(&self) -> bool {
        matches!(self, KafkaError::Fatal(_) | KafkaError::Fenced(_))
    }

    /// Whether it lasts until someone corrects the configuration or the broker.
    pub fn needs_operator(&self) -> bool {
        matches!(
            self,
            KafkaError::Option { .. } | KafkaError::Credentials { .. } | KafkaError::Topic { .. }
        )
    }

    /// Its text where nothing tries again.
    pub fn ended(&self) -> String {
        match self {
            KafkaError::Unreachable { brokers, detail } => format!(
                "no kafka broker answers at `{brokers}` ({detail}); check `brokers` and the network"
            ),
            other => other.to_string(),
        }
    }

    /// Two errors of the same kind count as a repetition.
    pub(super) fn kind(&self) -> String {
        match self {
            KafkaError::Option { name, .. } => format!("option {name}"),
            KafkaError::Unreachable { .. } => "unreachable".to_string(),
            KafkaError::Credentials { .. } => "credentials".to_string(),
            KafkaError::Topic { topic, .. } => format!("topic {topic}"),
            KafkaError::Other(s) | KafkaError::Fatal(s) | KafkaError::Fenced(s) => s.clone(),
        }
    }

    /// An error that a call of the client returned.
    pub(super) fn from_native(error: Native) -> KafkaError {
        match error {
            Native::ClientConfig(_, detail, name, value) => {
                let shown = if super::is_secret(&name) {
                    "its value".to_string()
                } else {
                    format!("`{value}`")
                };
                KafkaError::Option {
                    name,
                    detail: format!(
                        "librdkafka refuses {shown}: {detail}; see its CONFIGURATION.md"
                    ),
                }
            }
            Native::ClientCreation(detail) => KafkaError::Other(format!(
                "{detail}; check the security settings and `options`"
            )),
            other => KafkaError::Other(other.to_string()),
        }
    }

    /// An error that a callback reported.
    pub(super) fn from_code(
        code: Code,
        detail: String,
        brokers: &str,
        topics: &[String],
    ) -> KafkaError {
        match code {
            Code::BrokerTransportFailure
            | Code::AllBrokersDown
            | Code::Resolve
            | Code::OperationTimedOut
            | Code::RequestTimedOut => KafkaError::Unreachable {
                brokers: brokers.to_string(),
                detail,
            },
            Code::Authentication
            | Code::SaslAuthenticationFailed
            | Code::UnsupportedSASLMechanism
            | Code::SSL => KafkaError::Credentials { detail },
            Code::UnknownTopic
            | Code::UnknownTopicOrPartition
            | Code::UnknownPartition
            | Code::TopicAuthorizationFailed => KafkaError::Topic {
                topic: topics
                    .iter()
                    .filter(|t| detail.contains(t.as_str()))
                    .max_by_key(|t| t.len())
                    .cloned()
                    .unwrap_or_else(|| topics.join(", ")),
                detail,
                key: "topics",
            },
            Code::Fatal => KafkaError::Fatal(detail),
            _ => KafkaError::Other(detail),
        }
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
            KafkaError::Topic { topic, detail, key } => write!(
                f,
                "kafka topic `{topic}`: {detail}; create it or correct `{key}`"
            ),
            KafkaError::Other(detail) => write!(f, "kafka client: {detail}"),
            KafkaError::Fenced(detail) => write!(
                f,
                "the broker ended this member of the group: another process has joined it under the same `instance`, or \
                 this one was cut off for longer than a session ({detail}); give each process its own `instance`"
            ),
            KafkaError::Fatal(detail) => {
                write!(
                    f,
                    "kafka client cannot continue: {detail}; restart the process"
                )
            }
        }
    }
}

impl std::error::Error for KafkaError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_ended_does_not_say_that_it_goes_on() {
        let error = KafkaError::Unreachable {
            brokers: "b:1".to_owned(),
            detail: "refused".to_owned(),
        };
        assert!(error.to_string().contains("still trying"));
        let said = "no kafka broker answers at `b:1` (refused); check `brokers` and the network";
        assert_eq!(error.ended(), said);
    }

    #[test]
    fn a_topic_that_is_missing_is_named_with_its_key() {
        let error = KafkaError::Topic {
            topic: "lost".to_owned(),
            detail: "unknown".to_owned(),
            key: "dead_letter",
        };
        assert!(
            error
                .ended()
                .ends_with("create it or correct `dead_letter`")
        );
    }
}
