//! `trueline check`: finds the problems of a configuration before it runs.
//!
//! The checks come in layers; each runs only if the previous one found nothing: the text (TOML,
//! keys, types, bounds), the references (names, windows, topics), and the environment (brokers,
//! topics, directory, address). The last layer changes nothing, and works beside a running service.
//! `--no-environment` skips it, for CI. `--sample` also reads records of the existing topics, and
//! shows how they are decoded.

mod environment;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use super::config_file::ConfigFile;
use super::exit::{self, Exit};
use super::sample;
use crate::app::{self, AppError};
use crate::collect::join::Repeated;
use crate::config::bounds::{Expected, MemoryBound, human};
use crate::config::{Config, Input, SourceOptions, Verdicts, reference};
use crate::decode::{FieldOrConst, IdField};
use crate::judge::ANY_MODEL;
use crate::telemetry::published::{STREAM_SERIES, WINDOW_SERIES};

const EXAMPLES: &str = "\
Examples:
  trueline check --config trueline.toml                    everything, with the environment
  trueline check --config trueline.toml --sample           what the records in the topics become
  trueline check --config trueline.toml --no-environment   only the file, for CI
  trueline check --config trueline.toml --effective        every key with its value, but secrets
  trueline check --example > trueline.toml                 a file with every key and its meaning";

/// Check a configuration before it runs
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub struct Args {
    #[command(flatten)]
    pub file: ConfigFile,
    /// Check only the file, and no broker, directory or address
    #[arg(long, env = "TRUELINE_NO_ENVIRONMENT")]
    pub no_environment: bool,
    /// Read about this many records of each topic and show how they are decoded: fields, rejections
    /// with their reasons, delays of outcomes. Commits nothing
    #[arg(long, env = "TRUELINE_CHECK_SAMPLE", value_name = "RECORDS", num_args = 0..=1, default_missing_value = "5000", conflicts_with = "no_environment", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub sample: Option<u32>,
    /// How long a broker may take to respond
    #[arg(long, env = "TRUELINE_CHECK_TIMEOUT", value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration)]
    pub timeout: Duration,
    /// Estimate the memory for this many streams (segments of versions of models, once for each
    /// view)
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
        exit::print(&page);
        return Exit::Ok;
    }
    let config = match Config::load(&args.file.config) {
        Ok(config) => config,
        Err(problems) => {
            for problem in &problems {
                exit::eprint_line(format_args!("{problem}"));
            }
            let faults = if problems.len() == 1 {
                "fault"
            } else {
                "faults"
            };
            exit::eprint_line(format_args!(
                "{} {faults} in {}",
                problems.len(),
                args.file.config.display()
            ));
            return Exit::Config;
        }
    };
    if args.effective {
        exit::print(&config.effective());
    } else {
        let expected = args.streams.zip(args.rate);
        let expected = expected.map(|(streams, rate)| Expected { streams, rate });
        exit::print(&summary(&args.file.config, &config, expected));
    }
    if args.no_environment {
        return Exit::Ok;
    }
    if !args.effective {
        for line in environment::left_behind(&config) {
            exit::print_plain_line(format_args!("  {line}"));
        }
    }
    let found = environment::look(&config, args.timeout);
    let end = args.sample.map_or(Exit::Ok, |records| {
        for (source, why) in &found.unreadable {
            exit::print_plain_line(format_args!("sample of source {source}: none, since {why}"));
        }
        show_sample(&config, records, &found.unreadable)
    });
    for fault in &found.faults {
        exit::eprint_line(format_args!("{}: {fault}", args.file.config.display()));
    }
    match found.faults.is_empty() {
        true => end,
        false => Exit::Unavailable,
    }
}

/// Prints how records of the topics are decoded, without sources that cannot be read.
fn show_sample(config: &Config, records: u32, unreadable: &BTreeMap<String, &str>) -> Exit {
    let sources = match app::sample::take(config, records, |name| unreadable.contains_key(name)) {
        Ok(sources) => sources,
        // The file is valid, but the option does not support it.
        Err(AppError::Config(why)) if config.sources.iter().any(|s| s.input == Input::Http) => {
            return exit::fail(Exit::Usage, why);
        }
        Err(fault) => return Exit::of(&fault),
    };
    let words: Vec<sample::Words> = sources.iter().map(sample::describe).collect();
    for line in words.iter().flat_map(|w| &w.lines) {
        exit::print_plain_line(line);
    }
    let mut end = Exit::Ok;
    for problem in words.iter().flat_map(|w| &w.problems) {
        exit::eprint_line(format_args!("{problem}"));
        end = Exit::Data;
    }
    end
}

/// The requested page about the keys of configurations.
fn page(args: &Args) -> Option<String> {
    if args.reference {
        return Some(reference::markdown());
    }
    if args.schema {
        return Some(format!("{:#}\n", reference::json_schema()));
    }
    args.example.then(reference::sample)
}

/// A note for a source that takes the key of a record as its id, if each id counts once.
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

/// A summary of the configuration; the expected memory comes before the bound.
pub fn summary(path: &Path, config: &Config, expected: Option<Expected>) -> String {
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
        let views: Vec<String> = model.views.iter().map(|v| model.in_words(*v)).collect();
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
        lines.extend(model.no_alert().map(|why| format!("    {why}")));
    }
    lines.extend(others(config));
    lines.extend(hidden_outcomes(config));
    lines.extend(unnamed_outcomes(config));
    lines.extend(expected.map(|e| estimate(config, e)));
    let bound = MemoryBound::of(config);
    // With a state topic the bound depends on the number of partitions, and the last line shows it.
    let one = config.state.topic.is_none();
    let each = if one { "" } else { " for one partition" };
    lines.extend(one.then(|| format!(
        "  memory: at most {} = 5/4 of ({} streams x {} + {} of panes ahead of the watermark + {} of vector views + {} of \
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
    )));
    if bound.spill_bytes > 0 {
        lines.push(format!(
            "  disk{each}: at most {} of predictions that memory has no room for",
            human(bound.spill_bytes),
        ));
    }
    lines.push(series(config, bound.streams_max));
    lines.push(format!("  serves http://{}/metrics", config.http.listen));
    lines.extend(refused_links(config));
    lines.extend(shared_alerts(config));
    match &config.state.topic {
        None => lines.push(format!("  state in {}", config.state.directory.display())),
        Some(topic) => lines.push(moving(config, topic, &bound)),
    }
    lines.join("\n") + "\n"
}

/// A note that events of other models are rejected, if a record may name a model without a
/// `[[model]]`.
fn others(config: &Config) -> Option<String> {
    let watched = config.plan.models.iter().any(|m| m.name == ANY_MODEL);
    let may_come = |s: &SourceOptions| matches!(s.decode.model, FieldOrConst::Field(_));
    (!watched && config.sources.iter().any(may_come)).then(|| {
        "  other models: rejected as unknown_model; a [[model]] with the name \"*\" watches them".to_owned()
    })
}

/// A note if the order in which outcomes are read decides which one counts.
fn hidden_outcomes(config: &Config) -> Option<String> {
    let mut joins = config.plan.joins.iter();
    let hides = joins.any(|j| j.repeated == Repeated::Last && !j.revise);
    hides.then(|| {
        "  outcomes: with `repeated = \"last\"`, a late one that is read before its prediction hides one in time; \
         `revise = true` corrects that"
            .to_owned()
    })
}

/// A note about models for which outcomes that name no model do not wait.
fn unnamed_outcomes(config: &Config) -> Option<String> {
    let joins = &config.plan.joins;
    let named: BTreeSet<&str> = joins.iter().filter_map(|j| j.model.as_deref()).collect();
    let unnamed = joins.iter().any(|j| j.model.is_none() && !j.by_model);
    (unnamed && !named.is_empty()).then(|| {
        format!(
            "  outcomes: those that name no model do not wait for predictions of {}, which have a source of their own; \
             where a source without `model` carries such predictions too, set `model` in its [source.outcomes]",
            named.into_iter().collect::<Vec<_>>().join(", ")
        )
    })
}

/// A line about a source of posted events.
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

/// A warning if links in notifications lead to a name for which this server refuses requests. A
/// proxy in front of it may use another name.
fn refused_links(config: &Config) -> Option<String> {
    let url = &config.notify.external_url;
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let host = authority.rsplit('@').next().unwrap_or(authority);
    (!config.http.access.serves(host)).then(|| {
        format!(
            "  warning: links lead to {url}, and this server refuses requests for that name: add it to `hosts` in [http]"
        )
    })
}

/// A warning if several processes may notify about one stream, each for its own partitions.
fn shared_alerts(config: &Config) -> Option<String> {
    let state = &config.state;
    let divided = state.topic.is_some() && state.verdicts == Verdicts::Own;
    (divided && !config.notify.sinks.is_empty()).then(|| {
        "  warning: if the partitions of a stream lie in several processes, each has an alert of it, and receivers take these \
         for one: the first that ends closes it. Let the key of a record be its model, so that each model lies in one \
         partition, or let one process judge (`verdicts = \"none\"` and `\"all\"`)"
            .to_owned()
    })
}

/// The number of series of the allowed streams, and the cap.
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

/// The expected memory for this number and rate of streams.
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
        "  memory, estimated: {} for {streams} streams with {rate} events a second together{beyond}",
        human(bound.estimate(config, expected)),
    )
}

/// The memory bound of a process whose state is in a topic.
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
