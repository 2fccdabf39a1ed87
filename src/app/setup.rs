//! What the application needs to know, as plain values: made from a loaded configuration, or by a test.

use std::path::PathBuf;
use std::time::Duration;

use super::depot::DepotOptions;
use super::engine::Plan;
use crate::config::live::Keys;
use crate::config::{Config, JoinOptions, SourceOptions, Verdicts};
use crate::decode::DecodeOptions;
use crate::kafka::KafkaOptions;
use crate::notify::NotifyOptions;
use crate::registry::RegistryOptions;
use crate::telemetry::Limits;

/// One consumer and the shape of its records.
#[derive(Debug, Clone)]
pub struct Source {
    /// Membership and topics.
    pub kafka: KafkaOptions,
    /// Shape of the records.
    pub decode: DecodeOptions,
    /// Outcomes that come apart.
    pub join: Option<JoinOptions>,
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
    /// What to monitor.
    pub plan: Plan,
    /// Where from, at least one.
    pub sources: Vec<Source>,
    /// Where schemas are, when records need them.
    pub registry: Option<RegistryOptions>,
    /// Where alerts go.
    pub notify: NotifyOptions,
    /// `host:port` of the HTTP server; port 0 takes any free one.
    pub listen: String,
    /// Directory of the snapshots; created when missing, locked while running.
    pub state: PathBuf,
    /// How state moves between processes, where it does.
    pub moving: Option<DepotOptions>,
    /// Over whose events verdicts are, where it does.
    pub verdicts: Verdicts,
    /// How long verdicts over all partitions wait for one.
    pub missing_after: Duration,
    /// Values of all keys of the configuration.
    pub keys: Keys,
    /// Its file, where it may be read again.
    pub file: Option<PathBuf>,
    /// Time between two snapshots.
    pub snapshot_every: Duration,
    /// Records of changes of alerts that are kept.
    pub records_max: usize,
    /// Limits of what is published.
    pub limits: Limits,
    /// How long HTTP goes on after the last snapshot.
    pub linger: Duration,
    /// How long an orderly end may take.
    pub shutdown_within: Duration,
}

impl Setup {
    /// What a loaded configuration says, with an orderly end of thirty seconds and no linger.
    pub fn of(config: Config) -> Setup {
        let keys = config.keys();
        let moving = config.moving();
        let mut sources: Vec<Source> = config.sources.into_iter().map(Source::from).collect();
        if moving.is_some() {
            for source in &mut sources {
                source.kafka.copartitions = source.join.as_ref().map_or(0, |j| j.topics.len());
            }
        }
        let moving = moving.map(|(kafka, topic)| DepotOptions {
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
