//! The inputs of an application: a loaded configuration, and the options of the command line.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::cluster::options::CheckpointOptions;
use super::error::AppError;
use super::outputs::state_dir::StateDir;
use super::worker::{Threads, Workers};
use crate::config::{Config, Input, SourceOptions, Verdicts};
use crate::kafka::{Brokers, KafkaOptions, Librdkafka, MissingState, StartAt};
use crate::notify::{self, Host};
use crate::registry;

/// Everything that [`App::bind`](super::App::bind) needs.
#[derive(Debug)]
pub struct Setup {
    /// The configuration.
    pub config: Config,
    /// Its file, if it can be reloaded.
    pub file: Option<PathBuf>,
    /// `host:port` of the HTTP server; port 0 takes any free one.
    pub listen: String,
    /// How long HTTP stays up after the last snapshot.
    pub linger: Duration,
    /// How long the engine may take to end. The linger time and the end of open connections come
    /// after that.
    pub shutdown_within: Duration,
    /// If set, the state is set aside and the sources are read again from here.
    pub start_over: Option<StartAt>,
    /// The client of the brokers.
    pub brokers: Arc<dyn Brokers>,
    /// Makes the workers that run beside the engine's thread.
    pub workers: Arc<dyn Workers>,
    /// Runs the sinks of notifications and connects them to receivers.
    pub sinks: Arc<dyn Host>,
    /// Runs the fetching of schemas and connects to the registry.
    pub registry: Arc<dyn registry::Host>,
}

impl Setup {
    /// A setup whose engine ends within thirty seconds, without linger or reload.
    pub fn of(mut config: Config) -> Setup {
        if config.state.topic.is_some() {
            for source in &mut config.sources {
                source.kafka.copartitions = source.join.as_ref().map_or(0, |j| j.topics.len());
            }
        }
        Setup {
            listen: config.http.listen.to_string(),
            config,
            file: None,
            start_over: None,
            linger: Duration::ZERO,
            shutdown_within: Duration::from_secs(30),
            brokers: Arc::new(Librdkafka),
            workers: Arc::new(Threads),
            sinks: Arc::new(notify::Threads),
            registry: Arc::new(registry::Threads),
        }
    }

    /// If asked for, sets the state of the directory aside and makes all sources start at
    /// `start_over`.
    pub fn start_over(&mut self, dir: &StateDir) -> Result<(), AppError> {
        let Some(start) = self.start_over else {
            return Ok(());
        };
        if self.config.state.topic.is_some() {
            return Err(AppError::Config(
                "--from starts one process over, and with [state] topic the state is that of all; stop them, \
                 name another `group` in [kafka] and another `topic` in [state], and set `start` of the sources"
                    .to_owned(),
            ));
        }
        let now = humantime::format_rfc3339_seconds(std::time::SystemTime::now());
        let folder = dir.set_aside(&now.to_string().replace(':', ""))?;
        let folder = folder.map_or("nothing".to_owned(), |f| f.display().to_string());
        tracing::warn!(
            set_aside = folder,
            "starting over without state, where `--from` says"
        );
        for source in &mut self.config.sources {
            source.kafka.start = start;
            source.kafka.missing_state = MissingState::Start(start);
        }
        Ok(())
    }

    /// Names of all topics, by number.
    pub fn topics(&self) -> Vec<String> {
        let sources = self.config.sources.iter();
        sources.flat_map(|s| s.kafka.topics.clone()).collect()
    }

    /// The options of the state topic, if partitions move between processes with their state.
    pub fn state_topic(&self) -> Option<CheckpointOptions> {
        let (kafka, topic) = self.config.moving()?;
        let groups = self.config.sources.iter();
        let groups = groups.flat_map(|s| s.kafka.topics.iter().map(|_| s.kafka.group.clone()));
        let state = &self.config.state;
        Some(CheckpointOptions {
            kafka: KafkaOptions {
                copartitions: 0,
                ..kafka
            },
            namespace: state.namespace.clone(),
            groups: groups.collect(),
            topic,
            judge_partitions: state.judge_partitions,
            counts_only: state.verdicts == Verdicts::None,
            restore_within: Duration::from_millis(state.restore_within_ms.unsigned_abs()),
            fresh: state.fresh,
            brokers: Arc::clone(&self.brokers),
            workers: Arc::clone(&self.workers),
        })
    }
}

/// The name under which the readiness of a source is published.
pub fn part(source: &SourceOptions) -> String {
    let input = match source.input {
        Input::Kafka => "kafka",
        Input::Http => "http",
    };
    format!("{input} {}", source.kafka.topics.join(","))
}

/// An error in the options of a source.
pub fn source_error(source: &SourceOptions, error: &dyn Display) -> AppError {
    AppError::Config(format!("source {}: {error}", source.kafka.topics.join(",")))
}
