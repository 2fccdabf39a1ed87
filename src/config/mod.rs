//! The configuration: from one TOML file to the read-only options of every layer.
//!
//! ```text
//! text ─ TOML with spans ─► document (every key, with its position) ─► settled models ─► options
//!          syntax             unknown keys, kinds, bounds, ${VAR}                       references
//! ```
//!
//! Everything about a key is defined once, in the table of [`keys`]. The parser, the defaults, the
//! hints, the reference page, the JSON Schema and the sample with every key are derived from it.
//! Each layer records all its problems and continues with defaults, so that one run names every
//! problem of the file with its line. A [`Config`] exists only if there was none, and it needs no
//! further checks. (The strictness is that of Prometheus, `config/config.go`; the layers and the
//! effective configuration are those of vector and Bento.)
//!
//! This module reads the file, environment variables and files with secrets, and nothing else.
//! `trueline check` tests the environment (brokers, directory, port).

pub mod bounds;
mod contradictions;
mod detector;
pub mod document;
mod estimate;
mod feeds;
mod fields;
mod inputs;
pub mod interpolate;
mod join;
pub mod keys;
mod ladder;
pub mod live;
mod models;
mod notify;
mod options;
pub mod problem;
mod read;
pub mod reference;
mod registry;
mod scalar;
pub mod schema;
mod security;
mod service;
mod sources;
mod start;
mod tls;
mod topics;
mod units;
pub mod value;
mod value_reader;
mod vectors;
mod views;
mod write;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::judge::Plan;
use crate::kafka::KafkaOptions;
use crate::notify::NotifyOptions;
use crate::registry::RegistryOptions;
use crate::telemetry::log::LogOptions;

pub use bounds::MemoryBound;
use notify::MatcherModels;
pub use options::{
    EventOptions, HttpOptions, Input, JoinOptions, SourceOptions, StateOptions, Verdicts,
};
use problem::Problems;
pub use problem::{Problem, TextPosition};
pub use start::start_at;
pub use tls::TLS_BUILT;
use value::Outside;

/// A valid configuration.
#[derive(Debug)]
pub struct Config {
    /// Models, windows, tests and caps, for the engine.
    pub plan: Plan,
    /// Sources.
    pub sources: Vec<SourceOptions>,
    /// Schema registry.
    pub registry: Option<RegistryOptions>,
    /// Sinks of alerts.
    pub notify: NotifyOptions,
    /// HTTP server.
    pub http: HttpOptions,
    /// Posted events.
    pub events: EventOptions,
    /// Snapshots and state topic.
    pub state: StateOptions,
    /// Logging.
    pub log: LogOptions,
    /// Threads that decode and judge; 0 lets the number of cores decide.
    pub threads: usize,
    /// The file with its defaults, for [`Config::effective`].
    document: InForce,
}

impl Config {
    /// Reads a file, with the environment variables of the process.
    pub fn load(path: &Path) -> Result<Config, Vec<Problem>> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            vec![Problem {
                file: file.clone(),
                at: TextPosition::START,
                what: format!("the configuration cannot be read: {error}"),
                remedy: "name a file with --config or TRUELINE_CONFIG".to_owned(),
            }]
        })?;
        let outside = Outside {
            variable: &|name| std::env::var(name).ok(),
            directory: directory_of(path),
        };
        Config::parse(&text, &file, &outside)
    }

    /// Parses a text, which messages call `file`.
    pub fn parse(text: &str, file: &str, outside: &Outside<'_>) -> Result<Config, Vec<Problem>> {
        let mut problems = Problems::new(file, text);
        let mut document = document::read(text, outside, &mut problems);
        if problems.broken() {
            return Err(problems.into_sorted());
        }
        models::settle_models(&mut document, document::any_model);
        views::settle_classes(&mut document, &mut problems);
        Config::of(document, true, problems)
    }

    /// The options of a document whose models are settled. A matcher without meaning for its models
    /// is a problem only if the document is a `whole` file.
    fn of(
        document: document::Record,
        whole: bool,
        mut problems: Problems<'_>,
    ) -> Result<Config, Vec<Problem>> {
        let mut plan = models::plan(&document, &mut problems);
        // After a problem the models may not be those that were meant.
        let knows_models = whole && problems.is_empty();
        let sources = sources::sources(&document, &mut problems);
        let registry = registry::registry(&document, &mut problems);
        plan.joins = join::plans(&sources);
        plan.ids = sources::ids(&sources);
        contradictions::check(&document, &plan, &sources, &mut problems);
        let state = service::state(&document, &mut problems);
        let http = service::http(&document, &mut problems);
        let events = service::events(&document, &mut problems);
        let models = MatcherModels {
            plan: &plan,
            known: knows_models,
        };
        let notify = notify::notify(&document, http.listen, models, &mut problems);
        tls::check(&document, &notify, &mut problems);
        let log = service::log(&document, &mut problems);
        match problems.is_empty() {
            true => Ok(Config {
                plan,
                sources,
                registry,
                notify,
                http,
                events,
                state,
                log,
                threads: document.child("limits").count("threads"),
                document: InForce(document),
            }),
            false => Err(problems.into_sorted()),
        }
    }

    /// The state topic with its client options, if there is one.
    pub fn moving(&self) -> Option<(KafkaOptions, String)> {
        let kafka = self.sources.first().map(|s| s.kafka.clone())?;
        Some((kafka, self.state.topic.clone()?))
    }

    /// The values that need a binary with TLS, with their positions.
    pub fn needs_tls(&self) -> Vec<(TextPosition, String)> {
        tls::needs(&self.document.0, &self.notify)
    }

    /// The files of [kafka.tls] that cannot be read, each with the remedy.
    pub fn unreadable_files(&self) -> Vec<String> {
        let kafka = self.sources.first().map(|s| &s.kafka);
        kafka.map(security::unreadable).unwrap_or_default()
    }

    /// Lets notifications link to a server that listens here, unless the file says otherwise.
    pub fn listens_on(&mut self, address: SocketAddr) {
        let (external_url, runbook_url) = notify::links(&self.document.0, address);
        self.notify.external_url = external_url;
        self.notify.runbook_url = runbook_url;
    }

    /// The values of this configuration as those in force.
    pub fn in_force(&self) -> InForce {
        self.document.clone()
    }

    /// All its keys, for comparison with another configuration.
    pub fn keys(&self) -> live::Keys {
        self.document.keys()
    }

    /// The configuration with every default in place and every secret masked, as TOML.
    pub fn effective(&self) -> String {
        write::effective(&self.document.0)
    }
}

/// The directory of a file, absolute, so that paths in the file do not depend on the working
/// directory.
fn directory_of(file: &Path) -> PathBuf {
    let file = std::path::absolute(file).unwrap_or_default();
    file.parent().map(Path::to_path_buf).unwrap_or_default()
}

/// The values in force: those of the start, with the live ones of the last reload. `Debug` shows
/// none, because some are secrets in plain text.
#[derive(Clone)]
pub struct InForce(document::Record);

impl fmt::Debug for InForce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InForce").finish_non_exhaustive()
    }
}

impl InForce {
    /// All its keys.
    pub fn keys(&self) -> live::Keys {
        live::Keys::of(&self.0)
    }

    /// The values in force with the live ones of `new`. The errors are conflicts between the two.
    pub fn with_live(&self, new: &Config) -> Result<Config, Vec<Problem>> {
        let mut document = self.0.clone();
        live::take_live(&mut document, &new.document.0);
        // Until the restart, models in force may lack names that new matchers use.
        Config::of(document, false, Problems::new("", ""))
    }
}
