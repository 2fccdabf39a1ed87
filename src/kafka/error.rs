//! Errors of the Kafka client. Each message names the remedy.

use super::{KafkaOptions, OWNED};
use rdkafka::error::KafkaError as Native;
use rdkafka::types::RDKafkaErrorCode as Code;

/// Text of OpenSSL if the other side ended the connection; the reason follows.
const ALERT: &str = "SSL alert";

/// Texts of OpenSSL for a private key that does not belong to the certificate; the last one if the
/// two are of different kinds.
const UNPAIRED: [&str; 3] = [
    "key values mismatch",
    "key type mismatch",
    "no certificate assigned",
];

/// Text of librdkafka once no broker is connected.
const DOWN: &str = "brokers are down";

/// A failure of the Kafka client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KafkaError {
    /// An unknown setting of librdkafka, or an invalid value.
    #[error("kafka option `{name}`: {detail}")]
    Option {
        /// Name of the setting.
        name: String,
        /// What is wrong with it.
        detail: String,
    },
    /// No broker responds. The client keeps trying.
    #[error(
        "no kafka broker answers at `{brokers}` ({detail}); still trying: check `brokers` and the network"
    )]
    Unreachable {
        /// The brokers that were tried.
        brokers: String,
        /// Text of librdkafka.
        detail: String,
    },
    /// The broker refused the credentials.
    #[error(
        "the kafka broker refused the credentials ({detail}); check `security.protocol`, `mechanism`, `username` and `password`"
    )]
    Credentials {
        /// Text of librdkafka.
        detail: String,
    },
    /// The TLS connection failed, because of the certificate of the broker or of this client.
    #[error("{}", tls(detail))]
    Tls {
        /// Text of librdkafka.
        detail: String,
    },
    /// This user lacks a right.
    #[error("kafka {on}: this user lacks a right ({detail}); grant {right} on it")]
    Denied {
        /// The object of the right: "topic `scores`".
        on: String,
        /// The operations that an ACL must allow, as words: "READ".
        right: &'static str,
        /// Text of the broker.
        detail: String,
    },
    /// The topic does not exist, or its name is wrong.
    #[error("kafka topic `{topic}`: {detail}; create it or correct `{key}`")]
    Topic {
        /// Name of the topic.
        topic: String,
        /// Text of the broker.
        detail: String,
        /// The key of the configuration that names it.
        key: &'static str,
    },
    /// The topic exists, but is not as required.
    #[error("kafka topic `{topic}`: {detail}")]
    Unsuitable {
        /// Name of the topic.
        topic: String,
        /// What is wrong with it, and the remedy.
        detail: String,
    },
    /// Any other temporary error. The client tries again by itself.
    #[error("kafka client: {0}")]
    Other(String),
    /// The client cannot continue and must be recreated.
    #[error("kafka client cannot continue: {0}; it is replaced automatically")]
    Fatal(String),
    /// Another member has joined the group under the same `instance`: another process, or this one
    /// a second time, because the group's answer was lost.
    #[error(
        "the broker ended this member of the group: another process has joined it under the same `instance`, or \
         this one was cut off for longer than a session ({0}); give each process its own `instance`"
    )]
    Fenced(String),
}

fn tls(detail: &str) -> String {
    if detail.contains(ALERT) {
        return format!(
            "the kafka broker ended the TLS connection ({detail}); check `certificate_file`: whether the broker demands a \
             client certificate, knows its authority, and whether it has expired; restart after replacing the file"
        );
    }
    format!(
        "no TLS connection to the kafka broker ({detail}); check `ca_file`, and the names and the dates of the \
         broker's certificate; restart after replacing the file"
    )
}

impl KafkaError {
    /// Whether the consumer must be recreated.
    pub fn is_fatal(&self) -> bool {
        matches!(self, KafkaError::Fatal(_) | KafkaError::Fenced(_))
    }

    /// Whether this is a reason why a broker cannot be reached.
    pub(super) fn is_of_connection(&self) -> bool {
        matches!(
            self,
            KafkaError::Unreachable { .. }
                | KafkaError::Credentials { .. }
                | KafkaError::Tls { .. }
        )
    }

    /// Whether the error lasts until someone corrects the configuration or the broker.
    pub fn needs_operator(&self) -> bool {
        matches!(
            self,
            KafkaError::Option { .. }
                | KafkaError::Credentials { .. }
                | KafkaError::Tls { .. }
                | KafkaError::Denied { .. }
                | KafkaError::Topic { .. }
                | KafkaError::Unsuitable { .. }
        )
    }

    /// Whether this is a missing right on the group.
    pub(super) fn is_of_group(&self) -> bool {
        matches!(self, KafkaError::Denied { on, .. } if on.starts_with("group"))
    }

    /// Its text for commands, where the client does not try again.
    pub fn ended(&self) -> String {
        match self {
            KafkaError::Unreachable { brokers, detail } => format!(
                "no kafka broker answers at `{brokers}` ({detail}); check `brokers` and the network"
            ),
            KafkaError::Fatal(why) => format!("kafka client cannot continue: {why}; start again"),
            other => other.to_string(),
        }
    }

    /// The kind of the error. Two errors of the same kind count as a repetition.
    pub(super) fn kind(&self) -> String {
        match self {
            KafkaError::Option { name, .. } => format!("option {name}"),
            KafkaError::Unreachable { .. } => "unreachable".to_string(),
            KafkaError::Credentials { .. } => "credentials".to_string(),
            KafkaError::Tls { .. } => "tls".to_string(),
            KafkaError::Denied { on, .. } => format!("denied {on}"),
            KafkaError::Topic { topic, .. } | KafkaError::Unsuitable { topic, .. } => {
                format!("topic {topic}")
            }
            KafkaError::Other(s) | KafkaError::Fatal(s) | KafkaError::Fenced(s) => s.clone(),
        }
    }

    /// Checks that no setting is [`OWNED`]. An error names the first one that is, with the reason.
    pub(super) fn find_owned(options: &KafkaOptions) -> Result<(), KafkaError> {
        let mut set = OWNED.iter().filter(|o| options.options.contains_key(o.0));
        let refused = set.next().map(|(name, why)| KafkaError::Option {
            name: (*name).to_owned(),
            detail: format!("may not be set: {why}; remove it"),
        });
        refused.map_or(Ok(()), Err)
    }

    /// The error of a user who lacks a right on a topic.
    pub(super) fn topic_denied(topic: &str, right: &'static str, detail: String) -> KafkaError {
        KafkaError::Denied {
            on: format!("topic `{topic}`"),
            right,
            detail,
        }
    }

    /// Why a client with these options cannot be created. OpenSSL names no file.
    pub(super) fn of_creation(error: Native, options: &KafkaOptions) -> KafkaError {
        let option = |name: &str| options.options.get(name).map(String::as_str);
        let certificate = option("ssl.certificate.location").unwrap_or("which is not given");
        match &error {
            Native::ClientCreation(detail) => match option("ssl.key.location") {
                Some(key) if UNPAIRED.iter().any(|said| detail.contains(said)) => {
                    KafkaError::Other(format!(
                        "the private key in {key} (`key_file`) does not belong to the certificate in {certificate} \
                         (`certificate_file`) ({detail}); name the key that the certificate was made for"
                    ))
                }
                Some(key) if detail.starts_with("ssl.key.location") => KafkaError::Other(format!(
                    "no private key can be read from {key} (`key_file`) ({detail}); name a PEM file with the key, and \
                     its password in `key_password` if it has one"
                )),
                _ if detail.starts_with("ssl.certificate.location") => KafkaError::Other(format!(
                    "no certificate can be read from {certificate} (`certificate_file`) ({detail}); name a PEM file \
                     with the certificate"
                )),
                _ => error.into(),
            },
            _ => error.into(),
        }
    }

    /// An error that a callback of a client with these options reported.
    pub(super) fn from_code(code: Code, detail: String, options: &KafkaOptions) -> KafkaError {
        let topics = &options.topics;
        let topic = topics.iter().filter(|t| detail.contains(t.as_str()));
        let topic = topic.max_by_key(|t| t.len()).cloned();
        let topic = || topic.unwrap_or_else(|| topics.join(", "));
        match code {
            Code::SSL => KafkaError::Tls { detail },
            // The broker checks the certificate of a client only after the connection is made.
            Code::BrokerTransportFailure
                if detail.contains(ALERT) || detail.contains("certificate verify failed") =>
            {
                KafkaError::Tls { detail }
            }
            Code::BrokerTransportFailure
            | Code::AllBrokersDown
            | Code::Resolve
            | Code::OperationTimedOut
            | Code::RequestTimedOut => KafkaError::Unreachable {
                brokers: options.brokers.clone(),
                detail: match options.is_plain() && detail.ends_with(DOWN) {
                    // A broker that expects credentials closes the connection without an error.
                    true => {
                        format!(
                            "{detail}; if their port speaks TLS or SASL, set [kafka.tls] or [kafka.sasl]"
                        )
                    }
                    false => detail,
                },
            },
            Code::Authentication
            | Code::SaslAuthenticationFailed
            | Code::UnsupportedSASLMechanism => KafkaError::Credentials { detail },
            Code::TopicAuthorizationFailed => KafkaError::topic_denied(&topic(), "READ", detail),
            Code::GroupAuthorizationFailed => KafkaError::Denied {
                on: format!("group `{}`", options.group),
                right: "READ",
                detail,
            },
            Code::UnknownTopic | Code::UnknownTopicOrPartition | Code::UnknownPartition => {
                KafkaError::Topic {
                    topic: topic(),
                    detail,
                    key: "topics",
                }
            }
            Code::Fatal => KafkaError::Fatal(detail),
            _ => KafkaError::Other(detail),
        }
    }
}

/// An error that a call of the client returned.
impl From<Native> for KafkaError {
    fn from(error: Native) -> KafkaError {
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
}

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
        let error = KafkaError::Fatal("fenced".to_owned());
        assert!(error.to_string().ends_with("it is replaced automatically"));
        assert!(error.ended().ends_with("fenced; start again"));
    }

    /// Texts of librdkafka and OpenSSL 3.
    #[test]
    fn a_key_and_a_certificate_that_cannot_be_used_are_named_with_their_files() {
        let mut options = KafkaOptions::default();
        let files = [
            ("ssl.key.location", "/b.key"),
            ("ssl.certificate.location", "/a.pem"),
        ];
        let files = files.map(|(name, file)| (name.to_owned(), file.to_owned()));
        options.options = files.into();
        let said = |detail: &str| {
            let error = Native::ClientCreation(detail.to_owned());
            KafkaError::of_creation(error, &options).to_string()
        };
        for unpaired in [
            "ssl.key.location failed: error:05800074:x509 certificate routines::key values mismatch",
            "Private key check failed: error:0A0000B1:SSL routines::no certificate assigned",
        ] {
            let said = said(unpaired);
            assert!(said.contains("/b.key (`key_file`) does not"), "{said}");
            assert!(said.contains("/a.pem (`certificate_file`)"), "{said}");
            assert!(said.ends_with("; name the key that the certificate was made for"));
        }
        let key = said("ssl.key.location failed: error:0A080009:SSL routines::PEM lib");
        assert!(
            key.contains("/b.key (`key_file`)") && !key.contains("/a.pem"),
            "{key}"
        );
        let certificate = said("ssl.certificate.location failed: error:0A080009::PEM lib");
        assert!(
            certificate.contains("/a.pem (`certificate_file`)"),
            "{certificate}"
        );
        assert!(said("else").ends_with("else; check the security settings and `options`"));
    }

    #[test]
    fn a_topic_that_is_missing_is_named_with_its_key() {
        let error = KafkaError::Topic {
            topic: "lost".to_owned(),
            detail: "unknown".to_owned(),
            key: "dead_letter",
        };
        let said = error.ended();
        assert!(said.ends_with("create it or correct `dead_letter`"));
    }

    /// Texts of librdkafka and OpenSSL 3, with what each of them must name as the remedy.
    #[test]
    fn each_fault_of_a_connection_names_what_to_check() {
        use Code::*;
        let plain = KafkaOptions {
            brokers: "b:1".to_owned(),
            group: "g".to_owned(),
            topics: vec!["scores".to_owned(), "scores-b".to_owned()],
            ..KafkaOptions::default()
        };
        let mut tls = plain.clone();
        tls.security.protocol = Some("ssl".to_owned());
        let verify = "error:0A000086:SSL routines::certificate verify failed";
        let alert = "error:0A000412:SSL routines::sslv3 alert bad certificate: SSL alert number 42";
        let down = "1/1 brokers are down";
        let cases = [
            (SSL, &tls, verify, "check `ca_file`"),
            (BrokerTransportFailure, &tls, verify, "check `ca_file`"),
            (
                BrokerTransportFailure,
                &tls,
                alert,
                "check `certificate_file`",
            ),
            (SSL, &tls, alert, "check `certificate_file`"),
            (
                AllBrokersDown,
                &plain,
                down,
                "set [kafka.tls] or [kafka.sasl]",
            ),
            (AllBrokersDown, &tls, down, "(1/1 brokers are down); still"),
            (
                SaslAuthenticationFailed,
                &tls,
                "no",
                "`username` and `password`",
            ),
            (GroupAuthorizationFailed, &tls, "no", "group `g`: this user"),
            (
                TopicAuthorizationFailed,
                &tls,
                "scores-b: no",
                "topic `scores-b`: this user",
            ),
            (
                UnknownTopic,
                &tls,
                "scores: none",
                "topic `scores`: scores: none; create it",
            ),
        ];
        for (code, options, detail, remedy) in cases {
            let said = KafkaError::from_code(code, detail.to_owned(), options).to_string();
            assert!(said.contains(remedy), "{code:?}: {said}");
            let others = ["`ca_file`", "`certificate_file`", "`password`", "`brokers`"];
            let others = others.iter().filter(|other| said.contains(*other));
            assert!(others.count() <= 1, "{code:?}: {said}");
        }
    }
}
