//! Options of the sinks.

use super::grouping::GroupBy;
use super::template::Template;
use crate::alert::Matcher;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Kind of receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Kind {
    /// Prometheus Alertmanager, by version 2 of its API.
    Alertmanager,
    /// Any server that accepts a POST of a notification as JSON.
    Webhook,
    /// An incoming webhook of Slack, or a compatible one.
    Slack,
    /// A workflow of Microsoft Teams.
    Teams,
    /// PagerDuty, by version 2 of its Events API.
    PagerDuty,
    /// Opsgenie, by version 2 of its Alert API.
    Opsgenie,
    /// A Kafka topic.
    Kafka,
}

impl Kind {
    /// The name of the kind, as in the configuration.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Configured texts of notifications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texts {
    /// One line.
    pub summary: Template,
    /// The full text.
    pub description: Template,
}

/// One sink.
#[derive(Clone, PartialEq, Eq)]
pub struct SinkOptions {
    /// Its name in metrics, logs and the journal.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// Its address; for [`Kind::Kafka`] the topic.
    pub address: String,
    /// Key of the signature of a webhook, integration key of PagerDuty, or API key of Opsgenie.
    pub secret: Option<String>,
    /// Value of the header `authorization`.
    pub authorization: Option<String>,
    /// PEM file of the certificate authority; `None` for those of the system.
    pub ca_file: Option<PathBuf>,
    /// The sink gets the alerts that satisfy all of these.
    pub matchers: Vec<Matcher>,
    /// Whether it gets resolutions.
    pub resolved: bool,
    /// Longest duration of one attempt.
    pub timeout: Duration,
    /// Longest pause between two attempts.
    pub retry_max: Duration,
    /// Time between two resends of firing alerts to an Alertmanager.
    pub resend: Duration,
    /// Most notifications in the queue.
    pub queue_max: usize,
    /// Log what would be sent, and send nothing.
    pub dry_run: bool,
}

impl fmt::Debug for SinkOptions {
    /// Omits secrets. The address of a Slack or Teams hook is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SinkOptions")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("matchers", &self.matchers)
            .finish_non_exhaustive()
    }
}

/// Options of all sinks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifyOptions {
    /// Address of this process for people who read alerts.
    pub external_url: String,
    /// Folder of the runbooks.
    pub runbook_url: String,
    /// The texts.
    pub texts: Texts,
    /// The labels by which the streams of a model are grouped into alerts.
    pub group_by: GroupBy,
    /// Age in event time, in ms, above which a change is not notified while records are unread.
    pub max_age_ms: i64,
    /// The sinks.
    pub sinks: Vec<SinkOptions>,
}
