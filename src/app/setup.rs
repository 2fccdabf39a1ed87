//! The options of an application as plain values, from a loaded configuration or from a test.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use super::cluster::checkpoint_store::CheckpointOptions;
use super::error::AppError;
use crate::config::live::Keys;
use crate::config::{Config, JoinOptions, SourceOptions, Verdicts};
use crate::decode::DecodeOptions;
use crate::kafka::KafkaOptions;
use crate::monitor::Plan;
use crate::notify::NotifyOptions;
use crate::registry::RegistryOptions;
use crate::telemetry::Limits;

/// One consumer and the format of its records.
#[derive(Debug, Clone)]
pub struct Source {
    /// Brokers, group and topics.
    pub kafka: KafkaOptions,
    /// Format of the records.
    pub decode: DecodeOptions,
    /// Outcomes in records of their own.
    pub join: Option<JoinOptions>,
}

impl Source {
    /// The name under which its readiness is published.
    pub fn part(&self) -> String {
        format!("kafka {}", self.kafka.topics.join(","))
    }

    /// An error in the options of this source.
    pub fn error(&self, error: &dyn Display) -> AppError {
        AppError::Config(format!("source {}: {error}", self.kafka.topics.join(",")))
    }
}

impl From<SourceOptions> for Source {
    fn from(s: SourceOptions) -> Source {
        Source {
            kafka: s.kafka,
            decode: s.decode,
            join: s.join,
        }
    }
}

/// Everything [`App::bind`](super::App::bind) needs.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The models to monitor and how.
    pub plan: Plan,
    /// The sources, at least one.
    pub sources: Vec<Source>,
    /// The schema registry, where records need one.
    pub registry: Option<RegistryOptions>,
    /// Where notifications go.
    pub notify: NotifyOptions,
    /// `host:port` of the HTTP server; port 0 takes any free one.
    pub listen: String,
    /// Directory of the snapshots; created when missing, locked while running.
    pub state: PathBuf,
    /// The state topic, where partitions move between processes with their state.
    pub moving: Option<CheckpointOptions>,
    /// With a state topic: which partitions the verdicts of this process cover.
    pub verdicts: Verdicts,
    /// How long verdicts over all partitions wait for a missing partition.
    pub missing_after: Duration,
    /// The values of all configuration keys.
    pub keys: Keys,
    /// The configuration file, where it can be reloaded.
    pub file: Option<PathBuf>,
    /// Time between two snapshots.
    pub snapshot_every: Duration,
    /// Maximum number of audit entries.
    pub records_max: usize,
    /// Limits of what is published.
    pub limits: Limits,
    /// How long HTTP stays up after the last snapshot.
    pub linger: Duration,
    /// How long a shutdown may take.
    pub shutdown_within: Duration,
}

impl Setup {
    /// The options of a loaded configuration, with a shutdown of at most thirty seconds and no linger.
    pub fn of(config: Config) -> Setup {
        let keys = config.keys();
        let moving = config.moving();
        let mut sources: Vec<Source> = config.sources.into_iter().map(Source::from).collect();
        if moving.is_some() {
            for source in &mut sources {
                source.kafka.followers = source.join.as_ref().map_or(0, |j| j.topics.len());
            }
        }
        let moving = moving.map(|(kafka, topic)| CheckpointOptions {
            kafka,
            groups: sources
                .iter()
                .flat_map(|s| s.kafka.topics.iter().map(|_| s.kafka.group.clone()))
                .collect(),
            topic,
            restore_within: Duration::from_millis(config.state.restore_within_ms.unsigned_abs()),
            fresh: config.state.fresh,
        });
        Setup {
            moving,
            verdicts: config.state.verdicts,
            missing_after: Duration::from_millis(config.state.missing_after_ms.unsigned_abs()),
            keys,
            file: None,
            plan: config.plan,
            sources,
            registry: config.registry,
            notify: config.notify,
            listen: config.http.listen.to_string(),
            state: config.state.directory,
            snapshot_every: Duration::from_millis(config.state.interval_ms.unsigned_abs()),
            records_max: config.state.records_max,
            limits: Limits {
                series_max: config.http.series_max,
                ..Limits::default()
            },
            linger: Duration::ZERO,
            shutdown_within: Duration::from_secs(30),
        }
    }
}
