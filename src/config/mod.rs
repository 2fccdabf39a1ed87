//! The configuration: from one TOML file to the options of every floor, read only.
//!
//! ```text
//! text ─ TOML with spans ─► document (every key, with its place) ─► settled models ─► options
//!          syntax             unknown keys, kinds, bounds, ${VAR}                       references
//! ```
//!
//! Everything that is known about a key stands once, in the table of [`keys`]; the parser, the
//! defaults, the hints, the reference page, the JSON Schema and the sample with every key are readings
//! of it. Each layer notes all its faults and goes on with defaults, so that one run names every fault
//! of the file with its line; a [`Config`] exists only when there was none, and then nothing about it
//! needs checking again. (The strictness is Prometheus', `config/config.go`; the layers and the
//! effective configuration are vector's and Bento's.)
//!
//! Reads the file, environment variables, and the files that hold secrets; opens nothing else. What
//! the surroundings have to offer (brokers, directory, port) is asked by `trueline check`.

pub mod bounds;
mod detector;
pub mod document;
mod feeds;
mod fields;
pub mod interpolate;
mod join;
pub mod keys;
mod ladder;
pub mod live;
mod models;
mod notify;
pub mod problem;
mod read;
pub mod reference;
mod registry;
pub mod schema;
mod security;
mod service;
mod sources;
pub mod value;
mod vectors;
mod write;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::decode::DecodeOptions;
use crate::judge::Plan;
use crate::kafka::KafkaOptions;
use crate::notify::NotifyOptions;
use crate::registry::RegistryOptions;
use crate::telemetry::log::LogOptions;

pub use bounds::MemoryBound;
pub use join::JoinOptions;
use problem::Problems;
pub use problem::{Place, Problem};
use value::Outside;

/// A sound configuration.
pub struct Config {
    /// Models, windows, tests and caps, for the engine.
    pub plan: Plan,
    /// What to read.
    pub sources: Vec<SourceOptions>,
    /// Where schemas are.
    pub registry: Option<RegistryOptions>,
    /// Where alerts go.
    pub notify: NotifyOptions,
    /// What to serve.
    pub http: HttpOptions,
    /// What to save.
    pub state: StateOptions,
    /// How to log.
    pub log: LogOptions,
    /// The file with its defaults, for [`Config::effective`].
    document: document::Record,
}

/// One source. `KafkaOptions` hides its secrets in `Debug`.
#[derive(Debug, Clone)]
pub struct SourceOptions {
    /// Its name.
    pub name: String,
    /// The client.
    pub kafka: KafkaOptions,
    /// The shape of its records.
    pub decode: DecodeOptions,
    /// Outcomes that come apart.
    pub join: Option<JoinOptions>,
}

/// The HTTP server.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Most series on `/metrics`.
    pub series_max: usize,
}

/// Snapshots.
#[derive(Debug, Clone)]
pub struct StateOptions {
    /// Their directory.
    pub directory: PathBuf,
    /// Milliseconds between them.
    pub interval_ms: i64,
    /// The topic through which partitions move with their state.
    pub topic: Option<String>,
    /// Over whose events verdicts are.
    pub verdicts: Verdicts,
    /// Milliseconds that verdicts over all partitions wait for one.
    pub missing_after_ms: i64,
    /// Milliseconds that taking over a partition may take.
    pub restore_within_ms: i64,
    /// Whether a partition whose state cannot be used begins anew.
    pub fresh: bool,
    /// Records of changes of alerts that are kept.
    pub records_max: usize,
}

/// Over whose events a process judges, where the state of partitions is in a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verdicts {
    /// Over those of the partitions that it reads.
    #[default]
    Own,
    /// It counts, and another judges.
    None,
    /// Over those that others count.
    All,
}

impl fmt::Debug for Config {
    /// Without the document, which holds secrets in the clear.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("plan", &self.plan)
            .field("sources", &self.sources)
            .field("registry", &self.registry)
            .field("notify", &self.notify)
            .field("http", &self.http)
            .field("state", &self.state)
            .field("log", &self.log)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// Reads a file with the variables of the process.
    pub fn load(path: &Path) -> Result<Config, Vec<Problem>> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            vec![Problem {
                file: file.clone(),
                at: Place::START,
                what: format!("the configuration cannot be read: {error}"),
                remedy: "name a file with --config or TRUELINE_CONFIG".to_owned(),
            }]
        })?;
        let outside = Outside {
            variable: &|name| std::env::var(name).ok(),
            directory: path.parent().map(Path::to_path_buf).unwrap_or_default(),
        };
        Config::parse(&text, &file, &outside)
    }

    /// Reads a text that is called `file` in messages.
    pub fn parse(text: &str, file: &str, outside: &Outside<'_>) -> Result<Config, Vec<Problem>> {
        let mut problems = Problems::new(file, text);
        let mut document = document::read(text, outside, &mut problems);
        if problems.broken() {
            return Err(problems.into_sorted());
        }
        models::settle_models(&mut document, document::any_model);
        let mut plan = models::plan(&document, &mut problems);
        let sources = sources::sources(&document, &mut problems);
        let registry = registry::registry(&document, &mut problems);
        plan.joins = join::plans(&sources);
        let state = service::state(&document, &outside.directory, &mut problems);
        let http = service::http(&document);
        let notify = notify::notify(&document, http.listen, &mut problems);
        let log = service::log(&document, &mut problems);
        match problems.is_empty() {
            true => Ok(Config {
                plan,
                sources,
                registry,
                notify,
                http,
                state,
                log,
                document,
            }),
            false => Err(problems.into_sorted()),
        }
    }

    /// The topic of state with the client that reaches it, where there is one.
    pub fn moving(&self) -> Option<(KafkaOptions, String)> {
        let kafka = self.sources.first().map(|s| s.kafka.clone())?;
        Some((kafka, self.state.topic.clone()?))
    }

    /// All its keys, to be compared with another's.
    pub fn keys(&self) -> live::Keys {
        live::Keys::of(&self.document)
    }

    /// The configuration with every default in place and every secret masked, as TOML.
    pub fn effective(&self) -> String {
        write::effective(&self.document)
    }
}
