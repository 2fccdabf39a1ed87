//! `trueline state`: inspects a state directory or the state topic, and exports and imports a state
//! directory.

mod alerts;
mod contents;
mod reset_watermark;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::exit::{self, Exit, Failure};
use super::state_topic;
use crate::app::AppError;
use crate::app::clock;
use crate::app::outputs::state_dir::{StateDir, in_use};
use crate::config::bounds::human;
use crate::monitor::Snapshot;
use crate::monitor::snapshot::StreamState;
use crate::report::moment::rfc3339;
use crate::report::table::printable;
use crate::store::inspect::{FileReport, FileRole, Inspection, inspect};
use crate::store::{Loaded, transfer};

const EXAMPLES: &str = "\
Examples:
  trueline state inspect /var/lib/trueline              every file, and what a start would restore
  trueline state inspect --config trueline.toml         each partition in the topic of [state]
  trueline state export /var/lib/trueline state.jsonl   the newest valid snapshot, as text
  trueline state import state.jsonl /var/lib/other      into an empty directory, to the bit
  trueline state reset /var/lib/trueline                set it aside; the next start has none
  trueline state reset-watermark /var/lib/trueline      after records with future times";

/// Inspect, export or import state
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub struct Args {
    #[command(subcommand)]
    act: Act,
}

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
enum Act {
    /// Print every file of a directory with its size, format and fault, and the content of the
    /// newest valid snapshot; or every partition in the state topic with its claimant, checkpoint,
    /// age, size and faults
    Inspect {
        /// The state directory
        #[arg(conflicts_with = "config")]
        directory: Option<PathBuf>,
        /// A configuration whose [state] topic is read; its processes may be running
        #[arg(short, long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write the newest valid snapshot, its journals, silences, acknowledgements and what was
    /// notified as one file of JSON lines
    Export {
        /// The state directory; a running trueline may use it
        directory: PathBuf,
        /// The file to write; `-` for standard output
        file: PathBuf,
    },
    /// Move the watermark back after records with future times have moved it ahead: panes and
    /// verdicts after the given time are dropped, and events after it count again; offsets, pending
    /// predictions and detectors stay. Stop trueline first; the previous snapshot is kept beside
    /// the new one
    ResetWatermark {
        /// The state directory; no trueline may be using it
        directory: PathBuf,
        /// Event time to go back to, as RFC 3339; by default now
        #[arg(long, value_name = "TIME")]
        to: Option<String>,
    },
    /// Set snapshots and pending predictions aside, so that the next start begins without them;
    /// silences, acknowledgements and the records of alerts stay. Stop trueline first.
    /// `trueline run --from` does the same and says where to read again
    Reset {
        /// The state directory; no trueline may be using it
        directory: PathBuf,
    },
    /// Create a state directory from an exported file. Silences, acknowledgements and notifications
    /// that the directory has stay
    Import {
        /// The exported file
        file: PathBuf,
        /// The directory; it is created if missing and must hold no state
        directory: PathBuf,
    },
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Exit {
    let done = match &args.act {
        Act::Inspect {
            directory,
            config,
            json,
        } => {
            return match (directory, config) {
                (Some(directory), _) => print_directory(directory, *json),
                (None, Some(config)) => state_topic::print_topic(config, *json),
                (None, None) => exit::fail(
                    Exit::Usage,
                    "name a directory, or a configuration with --config",
                ),
            };
        }
        Act::Export { directory, file } => export(directory, file),
        Act::Import { file, directory } => import(file, directory),
        Act::Reset { directory } => reset(directory),
        Act::ResetWatermark { directory, to } => reset_watermark::run(directory, to.as_deref()),
    };
    match done {
        Ok(text) => {
            exit::eprint_line(format_args!("{text}"));
            Exit::Ok
        }
        Err((exit, why)) => exit::fail(exit, why),
    }
}

type Done = Result<String, Failure>;

fn export(directory: &Path, file: &Path) -> Done {
    if !directory.is_dir() {
        let why = format!("{} is not a directory", directory.display());
        return Err((Exit::NoInput, why));
    }
    let failed = |error: transfer::TransferError| (Exit::Unavailable, error.to_string());
    let alerts = || alerts::export(directory);
    let loaded = if file == Path::new("-") {
        transfer::export(
            directory,
            alerts,
            &mut BufWriter::new(std::io::stdout().lock()),
        )
    } else {
        let made = File::create_new(file).map_err(|error| {
            let what = format!(
                "cannot create {}: {error}; name a file that does not exist",
                file.display()
            );
            (Exit::Unavailable, what)
        })?;
        let mut out = BufWriter::new(&made);
        let loaded = transfer::export(directory, alerts, &mut out);
        let synced = out.flush().and_then(|()| made.sync_all());
        if loaded.is_err() || synced.is_err() {
            // Half of an export is useless.
            let _ = std::fs::remove_file(file);
        }
        synced.map_err(|error| (Exit::Unavailable, format!("{}: {error}", file.display())))?;
        loaded
    };
    let loaded = loaded.map_err(failed)?;
    Ok(format!("exported {}", content(&loaded)))
}

fn import(file: &Path, directory: &Path) -> Done {
    // Checked before the directory is created.
    if let Err(error) = File::open(file) {
        let why = format!("cannot open {} ({error}); check the path", file.display());
        return Err((Exit::NoInput, why));
    }
    let failed = |error: transfer::TransferError| {
        let exit = match error {
            transfer::TransferError::Line(..) => Exit::Data,
            _ => Exit::Unavailable,
        };
        (exit, error.to_string())
    };
    transfer::verify(file).map_err(failed)?;
    // Locked until the end, so that no trueline starts in the directory meanwhile.
    let _ours = StateDir::open(directory).map_err(|f| (Exit::Unavailable, f.to_string()))?;
    let loaded = transfer::import(file, directory, |exported| {
        alerts::import(directory, exported)
    });
    Ok(format!("imported {}", content(&loaded.map_err(failed)?)))
}

fn reset(directory: &Path) -> Done {
    let unavailable = |fault: AppError| (Exit::Unavailable, fault.to_string());
    if !directory.is_dir() {
        let why = format!("{} is not a directory", directory.display());
        return Err((Exit::NoInput, why));
    }
    let ours = StateDir::open(directory).map_err(unavailable)?;
    let now = rfc3339(clock::now_ms()).replace(':', "");
    match ours.set_aside(&now).map_err(unavailable)? {
        None => Err((
            Exit::NoInput,
            format!("{} has no state", directory.display()),
        )),
        Some(folder) => Ok(format!(
            "the state is in {} now; delete it if you do not need it. Start with `trueline run --from START`, or set \
             `on_missing_state`, to say where to read again",
            folder.display()
        )),
    }
}

/// The content of a snapshot in one line.
fn content(loaded: &Loaded) -> String {
    let s = &loaded.snapshot;
    let journals: usize = loaded.segments.iter().flatten().map(Vec::len).sum();
    format!(
        "{}: {} topics, {} partitions, {} streams, {} of journals",
        loaded.path.display(),
        s.topics.len(),
        s.partitions.positions().count(),
        streams(&s.streams),
        human(journals as u64)
    )
}

fn streams(streams: &[StreamState]) -> usize {
    streams.iter().map(|s| s.judges.len()).sum()
}

fn print_directory(directory: &Path, json: bool) -> Exit {
    let found = match inspect(directory) {
        Ok(found) => found,
        Err(error) => return exit::fail(Exit::NoInput, error),
    };
    if json {
        exit::print_line(format_args!("{:#}", as_json(directory, &found)));
    } else {
        exit::print(&as_text(directory, &found));
    }
    match &found.newest {
        Ok(_) => Exit::Ok,
        Err(error) => exit::fail(Exit::Data, error),
    }
}

fn description(file: &FileReport, found: &Inspection) -> String {
    if let Some(fault) = &file.fault {
        return fault.to_string();
    }
    if let Some((journal, fault)) = &file.needs {
        let name = journal.file_name().unwrap_or_default().display();
        return format!("needs journal {name}, which is {fault}");
    }
    if let Some(damage) = contents::damage(file) {
        return damage;
    }
    let newest = found.newest.as_ref().ok().and_then(Option::as_ref);
    match file.role {
        FileRole::Snapshot if newest.is_some_and(|l| l.path == file.path) => {
            "valid; a start restores it".to_owned()
        }
        FileRole::Snapshot => "valid".to_owned(),
        FileRole::Journal => "journal of pending predictions".to_owned(),
        FileRole::Alerts => "notified alerts, silences, acknowledgements".to_owned(),
        FileRole::History => "what windows said over time".to_owned(),
        FileRole::Events => "posted events".to_owned(),
        FileRole::Refused => "refused at a start; kept, and not read".to_owned(),
        FileRole::Part => "left by a crash; not read".to_owned(),
        FileRole::Lock => "lock".to_owned(),
        FileRole::Unknown => "not a file of trueline".to_owned(),
    }
}

fn as_text(directory: &Path, found: &Inspection) -> String {
    let used = if in_use(directory) {
        "in use by a running trueline"
    } else {
        "not in use"
    };
    let mut lines = vec![format!("{}: {used}", directory.display())];
    for file in &found.files {
        let format = file
            .format
            .map_or("-".to_owned(), |v| format!("format {v}"));
        let name = file.path.strip_prefix(directory).unwrap_or(&file.path);
        lines.push(format!(
            "  {:<44} {:>10}  {format:<9} {}",
            name.display(),
            human(file.bytes),
            description(file, found)
        ));
    }
    if let Ok(Some(loaded)) = &found.newest {
        content_lines(loaded, &mut lines);
    } else if matches!(found.newest, Ok(None)) {
        lines.push("  no snapshot: a start begins with empty state".to_owned());
    }
    let lines: Vec<_> = lines.iter().map(|line| printable(line)).collect();
    lines.join("\n") + "\n"
}

fn content_lines(loaded: &Loaded, lines: &mut Vec<String>) {
    let s = &loaded.snapshot;
    let total = s.counters.total();
    lines.push(format!("holds {}", content(loaded)));
    lines.push(format!(
        "  records: {} read, {} observed, {} pending, {} waiting",
        total.records, total.observed, total.pending, total.waiting
    ));
    for origin in s.partitions.positions() {
        let topic = s.topics.get(usize::from(origin.source));
        let mut states = s.partitions.states();
        let state = states.find(|p| (p.source, p.partition) == (origin.source, origin.partition));
        let newest = state.and_then(|p| p.newest_ms);
        let truncated = state.and_then(|p| p.truncated_at);
        lines.push(format!(
            "  {}[{}]: next offset {}, newest event {}{}",
            topic.map_or("?", String::as_str),
            origin.partition,
            origin.offset,
            newest.map_or("none".to_owned(), rfc3339),
            truncated.map_or(String::new(), state_topic::unread)
        ));
    }
    for model in &s.models {
        let windows = model.ladder.windows.iter().map(|w| w.name.as_str());
        let windows: Vec<&str> = windows.collect();
        lines.push(format!(
            "  model {}: {} over {}, level {}, sealed up to {}",
            model.name,
            model.views.join(", "),
            windows.join(", "),
            model.grid.level,
            sealed_until(model.sealed_until_ms)
        ));
    }
    for stream in &s.streams {
        lines.push(format!(
            "  stream {}/{}/{}: newest event {}, {} open panes, {}",
            stream.name,
            stream.version,
            stream.segment,
            rfc3339(stream.newest_ms),
            stream.open.len(),
            verdicts(stream).join("; ")
        ));
    }
}

/// Event time up to which a model is sealed; the earliest possible time means that nothing is.
fn sealed_until(ms: i64) -> String {
    match ms {
        i64::MIN => "nothing".to_owned(),
        ms => rfc3339(ms),
    }
}

/// The verdict of each window, view by view.
fn verdicts(stream: &StreamState) -> Vec<String> {
    let of = |judge: &crate::judge::JudgeState| {
        let each = judge.verdicts.iter();
        let each = each.map(|m| format!("{} (n {})", m.verdict, m.n));
        each.collect::<Vec<String>>().join(", ")
    };
    stream.judges.iter().map(of).collect()
}

/// The windows of all views of a stream.
fn windows(stream: &StreamState, snapshot: &Snapshot) -> Value {
    let model = snapshot.models.get(stream.model as usize);
    let views = model.into_iter().flat_map(|m| &m.views);
    let windows = views.zip(&stream.judges).flat_map(|(view, judge)| {
        let names = model.into_iter().flat_map(|m| &m.ladder.windows);
        names.zip(&judge.verdicts).map(move |(window, v)| {
            json!({
                "view": view,
                "window": window.name,
                "n": v.n,
                "verdict": v.verdict.as_str(),
                "reason": v.verdict.reason(),
            })
        })
    });
    windows.collect()
}

fn as_json(directory: &Path, found: &Inspection) -> Value {
    let files = found.files.iter().map(|file| {
        json!({
            "path": file.path.display().to_string(),
            "role": file.role.as_ref(),
            "bytes": file.bytes,
            "format": file.format,
            "fault": file.fault.as_ref().map(ToString::to_string).or_else(|| contents::damage(file)),
            "needs": file.needs.as_ref().map(|(path, fault)| {
                json!({ "path": path.display().to_string(), "fault": fault.to_string() })
            }),
        })
    });
    let newest = found.newest.as_ref().ok().and_then(Option::as_ref);
    json!({
        "directory": directory.display().to_string(),
        "in_use": in_use(directory),
        "files": files.collect::<Value>(),
        "newest": newest.map(newest_json),
    })
}

fn newest_json(loaded: &Loaded) -> Value {
    let s = &loaded.snapshot;
    let partitions = s.partitions.positions().map(|o| {
        json!({
            "topic": s.topics.get(usize::from(o.source)),
            "partition": o.partition,
            "offset": o.offset,
            "truncated_at": s.partitions.truncated_at(o.partition_id()),
        })
    });
    let streams = s.streams.iter().map(|stream| {
        json!({
            "model": stream.name,
            "version": stream.version,
            "segment": stream.segment,
            "last_event_ms": (stream.newest_ms != i64::MIN).then_some(stream.newest_ms),
            "open_panes": stream.open.len(),
            "windows": windows(stream, s),
        })
    });
    let total = s.counters.total();
    json!({
        "path": loaded.path.display().to_string(),
        "topics": s.topics,
        "partitions": partitions.collect::<Value>(),
        "records": total.records,
        "observed": total.observed,
        "pending": total.pending,
        "models": s.models.iter().map(|m| m.name.clone()).collect::<Vec<String>>(),
        "streams": streams.collect::<Value>(),
        "journal_bytes": loaded.segments.iter().flatten().map(Vec::len).sum::<usize>(),
    })
}
