//! Where alerts go, and how.

use super::template::Template;
use crate::alert::Matcher;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// What kind of receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Prometheus' Alertmanager, by its API version 2.
    Alertmanager,
    /// Anything that takes a POST of a notice as JSON.
    Webhook,
    /// An incoming webhook of Slack, or of what speaks like it.
    Slack,
    /// A Kafka topic.
    Kafka,
}

impl Kind {
    /// Its name, as in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Alertmanager => "alertmanager",
            Kind::Webhook => "webhook",
            Kind::Slack => "slack",
            Kind::Kafka => "kafka",
        }
    }
}

/// The texts of alerts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texts {
    /// One line.
    pub summary: Template,
    /// All of it.
    pub description: Template,
}

/// One sink.
#[derive(Clone, PartialEq, Eq)]
pub struct SinkOptions {
    /// Its name, in metrics, logs and the ledger.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// Where it is; the topic of [`Kind::Kafka`].
    pub address: String,
    /// Key of the signature of a webhook.
    pub secret: Option<String>,
    /// Value of the header `authorization`.
    pub authorization: Option<String>,
    /// PEM file of the authority that signed its certificate; the system's when `None`.
    pub ca_file: Option<PathBuf>,
    /// It gets the alerts that satisfy all of these.
    pub matchers: Vec<Matcher>,
    /// Whether it is told that an alert has ended.
    pub resolved: bool,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// Longest pause between two attempts.
    pub retry_max: Duration,
    /// How often an Alertmanager is told of what still fires.
    pub resend: Duration,
    /// Most notices that wait.
    pub queue_max: usize,
    /// Log what would be sent, and send nothing.
    pub dry_run: bool,
}

impl fmt::Debug for SinkOptions {
    /// Without what is secret; the address of a Slack hook is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SinkOptions")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("matchers", &self.matchers)
            .finish_non_exhaustive()
    }
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifyOptions {
    /// Where this trueline is reached by those who read alerts.
    pub external_url: String,
    /// Folder of the runbooks.
    pub runbook_url: String,
    /// The texts.
    pub texts: Texts,
    /// The sinks.
    pub sinks: Vec<SinkOptions>,
}

impl NotifyOptions {
    /// Address of a runbook.
    pub fn runbook(&self, alert: &str) -> String {
        format!("{}/{alert}.md", self.runbook_url.trim_end_matches('/'))
    }
}
