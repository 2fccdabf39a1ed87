//! `trueline check`: finds the problems of a configuration before it runs.
//!
//! The checks come in layers; each runs only if the one before found nothing: the text (TOML, keys,
//! types, bounds), the references (names, windows, topics), and the environment (brokers, topics,
//! directory, address). The last layer changes nothing, and works beside a running service.
//! `--no-environment` skips it, for CI. `--sample` then reads records and says what they become.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::exit::{self, Exit};
use super::sample;
use crate::app;
use crate::config::bounds::{Expected, MemoryBound, human};
use crate::config::{Config, Input, SourceOptions, Verdicts, reference};
use crate::decode::{FieldOrConst, IdField};
use crate::http::client::Server;
use crate::judge::ANY_MODEL;
use crate::kafka;
use crate::kafka::StateTopic;
use crate::monitor::restore::Fit;
use crate::registry::RegistryOptions;
use crate::store::{self, FormatError, StoreError, checkpoint::CHUNK_BYTES};
use crate::telemetry::published::{STREAM_SERIES, WINDOW_SERIES};

const EXAMPLES: &str = "\
Examples:
  trueline check --config trueline.toml                    everything, with the environment
  trueline check --config trueline.toml --sample           what the records in the topics become
  trueline check --config trueline.toml --no-environment   only the file, for CI
  trueline check --config trueline.toml --effective        every key with its value; secrets are masked
  trueline check --example > trueline.toml                 a file with every key and its meaning";

/// Check a configuration before it runs
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub struct Args {
    /// The configuration file
    #[arg(
        short,
        long,
        env = "TRUELINE_CONFIG",
        value_name = "FILE",
        default_value = "trueline.toml"
    )]
    pub config: PathBuf,
    /// Check only the file, and no broker, directory or address
    #[arg(long, env = "TRUELINE_NO_ENVIRONMENT")]
    pub no_environment: bool,
    /// Read about so many records of each topic and say what they become: fields, rejections with their
    /// reasons, delays of outcomes. Commits nothing
    #[arg(long, env = "TRUELINE_CHECK_SAMPLE", value_name = "RECORDS", num_args = 0..=1, default_missing_value = "5000", conflicts_with = "no_environment", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub sample: Option<u32>,
    /// How long a broker may take to respond
    #[arg(long, env = "TRUELINE_CHECK_TIMEOUT", value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration)]
    pub timeout: Duration,
    /// Estimate the memory for this many streams (segments of versions of models, once for each view)
    #[arg(long, value_name = "N", requires = "rate")]
    pub streams: Option<u64>,
    /// Events a second of all streams together, for the estimate
    #[arg(long, value_name = "R", requires = "streams")]
    pub rate: Option<f64>,
    /// Print the configuration with every default filled in and secrets masked
    #[arg(long)]
    pub effective: bool,
    /// Print the reference of all keys as Markdown and exit
    #[arg(long, group = "page")]
    pub reference: bool,
    /// Print the JSON Schema of the file and exit
    #[arg(long, group = "page")]
    pub schema: bool,
    /// Print an annotated file with every key and exit
    #[arg(long, group = "page")]
    pub example: bool,
}

/// Prints problems to standard error, and a summary to standard output.
pub fn run(args: &Args) -> Exit {
    if let Some(page) = page(args) {
        print!("{page}");
        return Exit::Ok;
    }
    let config = match Config::load(&args.config) {
        Ok(config) => config,
        Err(problems) => {
            for problem in &problems {
                eprintln!("{problem}");
            }
            let faults = if problems.len() == 1 {
                "fault"
            } else {
                "faults"
            };
            eprintln!("{} {faults} in {}", problems.len(), args.config.display());
            return Exit::Config;
        }
    };
    if args.effective {
        print!("{}", config.effective());
    } else {
        print!("{}", summary(&args.config, &config));
        if let (Some(streams), Some(rate)) = (args.streams, args.rate) {
            println!("  {}", estimate(&config, Expected { streams, rate }));
        }
    }
    if args.no_environment {
        return Exit::Ok;
    }
    if !args.effective {
        for line in left_behind(&config) {
            println!("  {line}");
        }
    }
    let faults = environment(&config, args.timeout);
    for fault in &faults {
        eprintln!("{}: {fault}", args.config.display());
    }
    match args.sample {
        _ if !faults.is_empty() => Exit::Unavailable,
        None => Exit::Ok,
        Some(records) => show_sample(&config, records),
    }
}

/// Prints what the records of the topics become.
fn show_sample(config: &Config, records: u32) -> Exit {
    let sources = match app::sample::take(config, records) {
        Ok(sources) => sources,
        Err(fault) => return Exit::of(&fault),
    };
    let words: Vec<sample::Words> = sources.iter().map(sample::describe).collect();
    for line in words.iter().flat_map(|w| &w.lines) {
        println!("{line}");
    }
    let mut end = Exit::Ok;
    for problem in words.iter().flat_map(|w| &w.problems) {
        eprintln!("{problem}");
        end = Exit::Data;
    }
    end
}

/// The requested page about all configurations.
fn page(args: &Args) -> Option<String> {
    if args.reference {
        return Some(reference::markdown());
    }
    if args.schema {
        return Some(format!("{:#}\n", reference::json_schema()));
    }
    args.example.then(reference::sample)
}

/// What follows where the key of a record is its id, and each id counts once.
fn key_is_id(source: &SourceOptions) -> Option<String> {
    let within_ms = source.deduplicate_ms?;
    (source.decode.id == Some(IdField::Key)).then(|| {
        format!(
            "    the key of a record is its id: of the records of one key within {}, one counts; where keys name users \
             or devices and not predictions, name another field as `fields.id`, or write `deduplicate = false`",
            humantime::format_duration(Duration::from_millis(within_ms.unsigned_abs()))
        )
    })
}

/// A summary of the configuration.
pub fn summary(path: &Path, config: &Config) -> String {
    let mut lines = vec![format!("{}: the file is sound", path.display())];
    for source in &config.sources {
        if source.input == Input::Http {
            lines.push(posted(config, source));
            continue;
        }
        lines.push(format!(
            "  source {}: topics {} from {}, group {}, dead letters {}",
            source.name,
            source.kafka.topics.join(", "),
            source.kafka.brokers,
            source.kafka.group,
            source
                .kafka
                .dead_letter
                .as_deref()
                .unwrap_or("only counted"),
        ));
        lines.extend(key_is_id(source));
    }
    for model in &config.plan.models {
        let views: Vec<String> = model.views.iter().map(ToString::to_string).collect();
        let windows: Vec<&str> = model
            .ladder
            .windows
            .iter()
            .map(|w| w.name.as_str())
            .collect();
        lines.push(format!(
            "  model {}: {} over {}, alpha {}, tolerance {}",
            model.name,
            views.join(", "),
            windows.join(", "),
            model.judge.evaluation.tcal.alpha,
            model.judge.evaluation.tolerance,
        ));
    }
    lines.extend(others(config));
    let bound = MemoryBound::of(config);
    let each = match config.state.topic {
        None => "",
        Some(_) => " for one partition",
    };
    lines.push(format!(
        "  memory{each}: at most {} = 5/4 of ({} streams x {} + {} of panes ahead of the watermark + {} of vector views + {} of \
         detectors' bets + {} of what waits for outcomes + {} for a snapshot) + {} of fetched records + {} of the process",
        human(bound.total()),
        bound.streams_max,
        human(bound.stream_bytes),
        human(bound.ahead_bytes),
        human(bound.vector_bytes),
        human(bound.bets_bytes),
        human(bound.pending_bytes),
        human(bound.copy_bytes),
        human(bound.queue_bytes),
        human(bound.process_bytes),
    ));
    if bound.spill_bytes > 0 {
        lines.push(format!(
            "  disk{each}: at most {} of predictions that memory has no room for",
            human(bound.spill_bytes),
        ));
    }
    lines.push(series(config, bound.streams_max));
    lines.push(format!("  serves http://{}/metrics", config.http.listen));
    match &config.state.topic {
        None => lines.push(format!("  state in {}", config.state.directory.display())),
        Some(topic) => lines.push(moving(config, topic, &bound)),
    }
    lines.join("\n") + "\n"
}

/// What becomes of events of models that no `[[model]]` names, where a record may name any.
fn others(config: &Config) -> Option<String> {
    let watched = config.plan.models.iter().any(|m| m.name == ANY_MODEL);
    let may_come = |s: &SourceOptions| matches!(s.decode.model, FieldOrConst::Field(_));
    (!watched && config.sources.iter().any(may_come)).then(|| {
        "  other models: rejected as unknown_model; a [[model]] with the name \"*\" watches them".to_owned()
    })
}

/// A source whose events are posted.
fn posted(config: &Config, source: &SourceOptions) -> String {
    let paths = source.kafka.topics.iter();
    let paths = paths.map(|topic| format!("/v1/events/{topic}"));
    format!(
        "  source {}: takes POST {}, at most {} of each on disk",
        source.name,
        paths.collect::<Vec<_>>().join(", "),
        human(config.events.limits.bytes_max),
    )
}

/// How many series the streams have that are allowed, beside the cap.
fn series(config: &Config, streams: u64) -> String {
    let windows = config.plan.models.iter().map(|m| m.ladder.windows.len());
    let windows = windows.max().unwrap_or(0);
    let each = STREAM_SERIES + windows * WINDOW_SERIES;
    let all = streams.saturating_mul(each as u64);
    let cap = config.http.series_max;
    let beyond = match all > cap as u64 {
        true => "; with so many, values of streams that need no attention are left out",
        false => "",
    };
    let cells = config.http.cell_streams_max;
    format!(
        "  series: about {all} for {streams} streams of {windows} windows, {each} each, and at most {cap} \
         unless alerts and verdicts alone are more{beyond}; cells of \
         diagrams with up to {cells} streams"
    )
}

/// What streams of this number and rate are expected to take.
fn estimate(config: &Config, expected: Expected) -> String {
    let bound = MemoryBound::of(config);
    let Expected { streams, rate } = expected;
    let beyond = match streams > bound.streams_max {
        true => format!(
            "; `streams_max` is {}, and more are refused",
            bound.streams_max
        ),
        false => String::new(),
    };
    format!(
        "estimate: {} for {streams} streams with {rate} events a second together{beyond}",
        human(bound.estimate(config, expected)),
    )
}

/// The memory of a process whose state is in a topic.
fn moving(config: &Config, topic: &str, bound: &MemoryBound) -> String {
    let streams = bound.stream_bytes.saturating_mul(bound.streams_max);
    let panes = human(streams.saturating_add(bound.vector_bytes));
    let union = human(bound.union());
    let each = bound.moving(1).saturating_sub(bound.union());
    match config.state.verdicts {
        Verdicts::Own => format!(
            "  state in topic {topic}; streams and what waits are held for each partition of this process, \
             and streams once more over all of them: at most {union} + {} for each",
            human(each),
        ),
        Verdicts::None => format!(
            "  state in topic {topic}; counts and leaves verdicts to another process: at most {} + {} for each partition",
            human(bound.queue_bytes.saturating_add(bound.process_bytes)),
            human(each),
        ),
        Verdicts::All => format!(
            "  verdicts over all partitions, from topic {topic}; no source is read: at most {union} + {panes} for each \
             partition of the sources; what was judged is kept in {}",
            config.state.directory.display(),
        ),
    }
}

/// The problems of the environment. Each message names the section and the remedy.
pub fn environment(config: &Config, timeout: Duration) -> Vec<String> {
    let sources = config.sources.iter();
    let sources = sources.filter(|s| s.input == Input::Kafka);
    // Side by side: a broker that is away is waited for once, not once a source.
    let mut faults: Vec<String> = std::thread::scope(|scope| {
        let probes = sources.map(|s| scope.spawn(move || brokers(s, timeout)));
        let probes: Vec<_> = probes.collect();
        let found = |probe: std::thread::ScopedJoinHandle<'_, Vec<String>>| {
            let found = probe.join();
            found.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        probes.into_iter().flat_map(found).collect()
    });
    faults.dedup();
    faults.extend(registry(config, timeout));
    faults.extend(directory(&config.state.directory));
    faults.extend(state_format(config));
    faults.extend(state_topic(config));
    if let Err(error) = TcpListener::bind(config.http.listen)
        && !is_trueline(config)
    {
        faults.push(format!(
            "[http] listen: cannot listen on {}: {error}; stop what uses it or write another address",
            config.http.listen
        ));
    }
    faults
}

/// Whether a running trueline answers on the configured address, as before a reload or an upgrade.
fn is_trueline(config: &Config) -> bool {
    let server = Server {
        url: format!("http://{}", config.http.listen),
        token: None,
    };
    server
        .get("/metrics")
        .is_ok_and(|(status, said)| status == 200 && said.contains("\ntrueline_build_info{"))
}

/// What the state directory holds that a start with this configuration would not use.
fn left_behind(config: &Config) -> Vec<String> {
    let directory = &config.state.directory;
    let Ok(Some(loaded)) = store::load_checked(directory) else {
        return Vec::new();
    };
    let (mut snapshot, shown) = (loaded.snapshot, directory.display());
    if snapshot.carry_over(&config.plan).is_err() {
        return Vec::new();
    }
    let read: Vec<&String> = config
        .sources
        .iter()
        .flat_map(|s| &s.kafka.topics)
        .collect();
    let gone = snapshot.topics.iter().filter(|topic| !read.contains(topic));
    let mut lines: Vec<String> = gone
        .map(|topic| {
            format!("left behind in {shown}: how far topic {topic} was read; no source reads it")
        })
        .collect();
    let Ok(fit) = Fit::new(&config.plan, &snapshot) else {
        return lines;
    };
    let shown_max = 10;
    lines.extend(
        fit.dropped
            .iter()
            .take(shown_max)
            .map(|what| format!("left behind in {shown}: {what}")),
    );
    if let more @ 1.. = fit.dropped.len().saturating_sub(shown_max) {
        lines.push(format!("left behind in {shown}: {more} more streams"));
    }
    lines
}

/// Problems between a source and its brokers.
fn brokers(source: &SourceOptions, timeout: Duration) -> Vec<String> {
    let probe = kafka::probe(&source.kafka, timeout);
    let named = |fault: &kafka::KafkaError| format!("source {}: {fault}", source.name);
    let mut faults: Vec<String> = probe.problems.iter().map(named).collect();
    let outcomes = source.join.as_ref().map_or(&[][..], |j| &j.topics);
    for (ours, theirs) in source.kafka.topics.iter().zip(outcomes) {
        if let (Some(a), Some(b)) = (probe.partitions.get(ours), probe.partitions.get(theirs))
            && a != b
        {
            faults.push(format!(
                "source {}: topic `{ours}` has {a} partitions and `{theirs}` {b}; outcomes are joined within \
                 partitions: give both as many, with the prediction's id as the key of every record",
                source.name
            ));
        }
    }
    faults
}

/// Whether an existing state topic is suitable; a missing one is created at the start.
fn state_topic(config: &Config) -> Option<String> {
    let (options, topic) = config.moving()?;
    let asked =
        StateTopic::new(&options, &topic, CHUNK_BYTES).and_then(|state| match state.exists()? {
            true => state.misconfigured(),
            false => Ok(None),
        });
    let fault = asked.unwrap_or_else(Some)?;
    Some(format!("[state] topic: {fault}"))
}

/// Whether the configured schema registry responds as one.
fn registry(config: &Config, timeout: Duration) -> Option<String> {
    let options = config.registry.as_ref()?;
    let options = RegistryOptions {
        timeout: options.timeout.min(timeout),
        ..options.clone()
    };
    let fault = crate::registry::probe(&options).err()?;
    Some(format!("[registry] url: {fault}"))
}

/// Whether a file can be created in the state directory, or in its nearest ancestor that exists, so
/// that the check leaves nothing behind.
fn directory(state: &Path) -> Option<String> {
    let there = state
        .ancestors()
        .find(|p| p.as_os_str().is_empty() || p.exists());
    let there = match there {
        Some(path) if !path.as_os_str().is_empty() => path,
        _ => Path::new("."),
    };
    let trial = there.join(format!(".trueline-check-{}", std::process::id()));
    let made = std::fs::File::create_new(&trial);
    if made.is_ok() {
        // A file that stays would do no harm: snapshots have other names.
        let _ = std::fs::remove_file(&trial);
    }
    made.err().map(|error| {
        format!(
            "[state] directory: cannot write in {}: {error}; make it writable for this user or name another",
            there.display()
        )
    })
}

/// Whether another version wrote the state, so that a start would refuse it: the question before an upgrade.
/// Other faults of files are left to the start, since a running process may be replacing them.
fn state_format(config: &Config) -> Option<String> {
    if config.state.topic.is_some() {
        return None;
    }
    let Err(StoreError::Refused(files)) = store::load_checked(&config.state.directory) else {
        return None;
    };
    let other = |(_, fault): &(_, FormatError)| {
        matches!(fault, FormatError::Past(_) | FormatError::Future(_))
    };
    files
        .iter()
        .any(other)
        .then(|| format!("[state] directory: {}", StoreError::Refused(files)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_directory_that_is_a_file_is_refused_by_name() {
        let file = std::env::temp_dir().join(format!("trueline-state-{}", std::process::id()));
        std::fs::write(&file, "").unwrap();
        let fault = directory(&file.join("state"));
        std::fs::remove_file(&file).unwrap();
        assert!(fault.is_some_and(|f| f.contains("[state] directory: cannot write in")));
    }

    #[test]
    fn a_missing_state_directory_is_no_fault_and_is_not_created() {
        let missing = std::env::temp_dir().join(format!("trueline-missing-{}", std::process::id()));
        assert_eq!(directory(&missing.join("state")), None);
        assert!(!missing.exists());
    }
}
