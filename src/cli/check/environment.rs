//! The last layer of `check`: the machine and the servers. It changes nothing.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use crate::app::READ_AGAIN;
use crate::app::cluster::judge_topic::{judge_topic, unsuitable};
use crate::config::{Config, Input, SourceOptions, Verdicts};
use crate::decode::Format;
use crate::http::client::Server;
use crate::kafka::{self, KafkaError, KafkaOptions, StateTopic, Truncated};
use crate::monitor::Snapshot;
use crate::monitor::restore::Fit;
use crate::notify::{Kind, SinkOptions};
use crate::registry::RegistryOptions;
use crate::store::{self, FormatError, StoreError, checkpoint::CHUNK_BYTES};

/// The result of the last layer.
pub(super) struct Found {
    /// The problems. Each message names the section and the remedy.
    pub faults: Vec<String>,
    /// Sources whose records cannot be sampled, with the reason.
    pub unreadable: BTreeMap<String, &'static str>,
}

/// Checks the environment.
pub(super) fn look(config: &Config, timeout: Duration) -> Found {
    let sources = config.sources.iter();
    let sources = sources.filter(|s| s.input == Input::Kafka);
    // A process that judges what others count reads no source.
    let judges = config.state.topic.is_some() && config.state.verdicts == Verdicts::All;
    // In parallel, so that an unreachable broker is waited for once and not once per source.
    let probed: Vec<Probed<'_>> = std::thread::scope(|scope| {
        let probes = sources.map(|s| scope.spawn(move || brokers(s, judges, timeout)));
        let probes: Vec<_> = probes.collect();
        let found = probes.into_iter().map(std::thread::ScopedJoinHandle::join);
        let found = found.map(|f| f.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        found.collect()
    });
    let sinks = sinks(config, timeout);
    let registry = registry(config, timeout);
    let unread = probed.iter().filter_map(|p| {
        let why = unread(p.source, p.readable, registry.is_none())?;
        Some((p.source.name.clone(), why))
    });
    let unreadable = unread.collect();
    let mut faults: Vec<String> = probed.into_iter().flat_map(|p| p.faults).collect();
    faults.dedup();
    faults.extend(sinks);
    // These come first, because the client's own message does not name the file.
    faults.splice(0..0, config.unreadable_files());
    faults.extend(registry);
    faults.extend(directory(&config.state.directory));
    faults.extend(state_format(config));
    faults.extend(state_topics(config));
    if let Err(error) = TcpListener::bind(config.http.listen)
        && !is_trueline(config)
    {
        faults.push(format!(
            "[http] listen: cannot listen on {}: {error}; stop what uses it or write another address",
            config.http.listen
        ));
    }
    Found { faults, unreadable }
}

/// Why the records of a source cannot be sampled, if so. JSON records are decoded without their
/// schema.
fn unread(source: &SourceOptions, readable: bool, registry: bool) -> Option<&'static str> {
    match (readable, registry) {
        (false, _) => Some("its topics cannot be read"),
        (true, false) if source.decode.packing.format != Format::Json => {
            Some("its records need schemas, and the registry does not answer as one")
        }
        _ => None,
    }
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

/// The parts of the stored state that a start with this configuration would not use.
pub(super) fn left_behind(config: &Config) -> Vec<String> {
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
    lines.extend(unread_partitions(config, &snapshot));
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
        lines.push(format!("left behind in {shown}: {more} more"));
    }
    if !fit.dropped.is_empty() {
        lines.push(format!("  these start empty; {READ_AGAIN}"));
    }
    lines
}

/// Partitions that a start would leave unread, because their logs ended before the offset up to
/// which they were read.
fn unread_partitions(config: &Config, snapshot: &Snapshot) -> Vec<String> {
    let unread = snapshot.partitions.states().filter_map(|p| {
        let (end, topic) = (
            p.truncated_at?,
            snapshot.topics.get(usize::from(p.source))?,
        );
        let mut sources = config.sources.iter();
        let source = sources.find(|s| s.kafka.topics.contains(topic))?;
        (source.kafka.truncated == Truncated::Stop).then(|| {
            format!(
                "partition {topic}/{} stays unread: its log ended at offset {end}, before what was read of it; set \
                 `on_truncated` of source {} to say where to continue",
                p.partition, source.name
            )
        })
    });
    unread.collect()
}

/// The result of asking the brokers about a source.
struct Probed<'a> {
    source: &'a SourceOptions,
    faults: Vec<String>,
    /// Whether its topics can be read.
    readable: bool,
}

fn brokers(source: &SourceOptions, judges: bool, timeout: Duration) -> Probed<'_> {
    let probe = match judges {
        true => kafka::probe_of_judge(&source.kafka, timeout),
        false => kafka::probe(&source.kafka, timeout),
    };
    let named = |fault: &kafka::KafkaError| format!("source {}: {}", source.name, fault.ended());
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
    Probed {
        source,
        faults,
        readable: probe.readable,
    }
}

/// Problems of the topics that receive alerts.
fn sinks(config: &Config, timeout: Duration) -> Vec<String> {
    let mut sources = config.sources.iter();
    let Some(source) = sources.find(|s| s.input == Input::Kafka) else {
        return Vec::new();
    };
    if config.state.topic.is_some() && config.state.verdicts == Verdicts::None {
        // Another process notifies.
        return Vec::new();
    }
    let written = config.notify.sinks.iter();
    let written = written.filter(|sink| sink.kind == Kind::Kafka && !sink.dry_run);
    let ask = |sink: &SinkOptions| {
        let options = KafkaOptions {
            topics: vec![sink.address.clone()],
            ..source.kafka.clone()
        };
        let problems = kafka::probe_of_sink(&options, timeout).problems.into_iter();
        // The sources report all other problems.
        let of_topic =
            |e: &KafkaError| matches!(e, KafkaError::Topic { .. } | KafkaError::Denied { .. });
        let problems = problems.filter(of_topic);
        let named = problems.map(|e| format!("sink {}: {}", sink.name, e.ended()));
        named.collect::<Vec<String>>()
    };
    written.flat_map(ask).collect()
}

/// Problems of the existing topics that keep state; a missing one is created at the start.
fn state_topics(config: &Config) -> Vec<String> {
    let Some((options, state_topic)) = config.moving() else {
        return Vec::new();
    };
    let fault = |asked: Asked| {
        let topic = StateTopic::new(&options, &asked.topic, CHUNK_BYTES)?;
        let Some(found) = topic.found()? else {
            return Ok(None);
        };
        let partitions = asked.judge_partitions.unwrap_or(found);
        match unsuitable(&state_topic, partitions, found) {
            None => topic.misconfigured(asked.followed),
            some => Ok(some),
        }
    };
    let asked = asked(config, &state_topic).into_iter();
    let faults = asked.filter_map(|asked| fault(asked).unwrap_or_else(Some));
    let named = faults.map(|fault| format!("[state] topic: {}", fault.ended()));
    named.collect()
}

/// Requirements on a topic on which a process keeps state.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    topic: String,
    /// Whether a judge follows it.
    followed: bool,
    /// How many partitions it must have, if that is configured.
    judge_partitions: Option<i32>,
}

/// The topics of a process whose partitions may move. A worker for several judges writes to the
/// state topic and to that of the judges; one of these judges needs no access to the state topic.
fn asked(config: &Config, state_topic: &str) -> Vec<Asked> {
    let (verdicts, judge_partitions) = (config.state.verdicts, config.state.judge_partitions);
    let state = Asked {
        topic: state_topic.to_owned(),
        followed: verdicts != Verdicts::Own && judge_partitions.is_none(),
        judge_partitions: None,
    };
    if judge_partitions.is_none() {
        return vec![state];
    }
    let judges = Asked {
        topic: judge_topic(state_topic),
        followed: true,
        judge_partitions,
    };
    match verdicts {
        Verdicts::All => vec![judges],
        _ => vec![state, judges],
    }
}

/// The problem if the configured schema registry does not respond as one.
fn registry(config: &Config, timeout: Duration) -> Option<String> {
    let options = config.registry.as_ref()?;
    let options = RegistryOptions {
        timeout: options.timeout.min(timeout),
        ..options.clone()
    };
    let fault = crate::registry::probe(&options).err()?;
    Some(format!("[registry] url: {fault}"))
}

/// The problem if no file can be created in the state directory or in its nearest existing
/// ancestor. Leaves nothing behind.
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
        // A file left behind would do no harm: snapshots have other names.
        let _ = std::fs::remove_file(&trial);
    }
    made.err().map(|error| {
        format!(
            "[state] directory: cannot write in {}: {error}; make it writable for this user or name another",
            there.display()
        )
    })
}

/// The problem if another version wrote the state, so that a start after an upgrade would refuse
/// it. Other faults of files are left to the start, because a running process may be replacing
/// them.
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
    use crate::config::value::Outside;

    #[test]
    fn a_state_directory_that_is_a_file_is_refused_by_name() {
        let file = tempfile::NamedTempFile::with_prefix("trueline-state-").unwrap();
        let fault = directory(&file.path().join("state"));
        assert!(fault.is_some_and(|f| f.contains("[state] directory: cannot write in")));
    }

    fn config(head: &str, more: &str) -> Config {
        let text = format!(
            "version = 1\n[kafka]\nbrokers = \"b:1\"\n{head}\n[[source]]\ntopics = \"t\"\n{more}\n\
             [source.fields]\nscore = \"s\"\n"
        );
        let outside = Outside {
            variable: &|_| None,
            directory: ".".into(),
        };
        Config::parse(&text, "t", &outside).expect("sound")
    }

    #[test]
    fn a_partition_that_a_start_would_leave_unread_is_named() {
        let mut snapshot = Snapshot {
            topics: vec!["t".to_owned()],
            ..Snapshot::default()
        };
        let lines = |snapshot: &Snapshot, more: &str| {
            let all = unread_partitions(&config("", more), snapshot);
            all.join("\n")
        };
        let (read, cut) = ((0, 0).into(), (0, 1).into());
        snapshot.partitions.rewind(read, 1000);
        snapshot.partitions.rewind(cut, 1000);
        assert_eq!(lines(&snapshot, ""), "");
        snapshot.partitions.truncate(cut, 300);
        let said = lines(&snapshot, "");
        assert!(said.contains("t/1") && said.contains("300"), "{said}");
        assert_eq!(lines(&snapshot, "on_truncated = \"latest\""), "");
    }

    #[test]
    fn each_process_is_asked_about_the_topics_on_which_it_keeps_state() {
        let asked = |more: &str| {
            let config = config(&format!("[state]\ntopic = \"s\"\n{more}"), "");
            let asked = asked(&config, "s").into_iter();
            let asked = asked.map(|a| (a.topic, a.followed, a.judge_partitions));
            asked.collect::<Vec<_>>()
        };
        let state = |followed| ("s".to_owned(), followed, None);
        assert_eq!(asked(""), [state(false)]);
        assert_eq!(asked("verdicts = \"none\""), [state(true)]);
        assert_eq!(asked("verdicts = \"all\""), [state(true)]);
        let several = |verdicts: &str| {
            let more = format!("verdicts = \"{verdicts}\"\njudge_partitions = 6");
            asked(&more)
        };
        let judges = ("s-judges".to_owned(), true, Some(6));
        assert_eq!(several("none"), [state(false), judges.clone()]);
        assert_eq!(several("all"), [judges]);
    }

    #[test]
    fn a_registry_that_is_away_hides_only_what_needs_schemas() {
        let why = |format: &str, readable, registry| {
            let registry_url = "[registry]\nurl = \"http://r:1\"";
            let config = config(registry_url, &format!("format = \"{format}\""));
            unread(&config.sources[0], readable, registry)
        };
        assert_eq!(why("json", true, false), None);
        assert_eq!(why("avro", true, true), None);
        assert!(why("avro", true, false).is_some_and(|w| w.contains("need schemas")));
        assert!(why("json", false, true).is_some_and(|w| w.contains("topics")));
    }

    #[test]
    fn a_missing_state_directory_is_no_fault_and_is_not_created() {
        let folder = tempfile::TempDir::with_prefix("trueline-missing-").unwrap();
        let missing = folder.path().join("missing");
        assert_eq!(directory(&missing.join("state")), None);
        assert!(!missing.exists());
    }
}
