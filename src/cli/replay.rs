//! `trueline replay`: files of events, or ranges of topics, through the same engine, in event time.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use super::exit::{self, Exit};
use super::meter::Meter;
use super::range;
use crate::app::AppError;
use crate::app::replay::Tally;
use crate::app::replay::{self, Input};
use crate::app::table::{self, Cell};
use crate::config::value::Outside;
use crate::config::{Config, Problem};
use crate::judge::{Change, ComparisonReport, StreamReport, WindowReport, comparison, report};
use crate::kafka::Watermarks;
use crate::monitor::Engine;

/// What holds without `--config`. The broker is never asked.
const DEFAULTS: &str = r#"
version = 1
[kafka]
brokers = "none:0"
[[source]]
topics = ["replay"]
fields = { time = "time", score = "score" }
"#;

const EXAMPLES: &str = "\
Examples:
  trueline replay events.jsonl.gz
  trueline replay --config trueline.toml --json 2026-11-*.csv > report.json
  trueline replay --config trueline.toml predictions.jsonl --outcomes outcomes.jsonl
  trueline replay --config trueline.toml --last 7d
  trueline replay --config trueline.toml --from 2026-11-01T06:00Z --to 2026-11-02

With --from or --last the topics of all sources are read from the brokers of the configuration: between two
record timestamps, or from the first offsets to the last; no group is joined and nothing is written.
Outcomes on topics of their own are read on past --to until the predictions are mature.

Without --config the fields are model, score, outcome and time (milliseconds since 1970), in JSON
lines or under the same names in a CSV header, and every model gets the default windows and options.";

/// Put files of events, or topics of the past, through the same engine, in event time.
///
/// Prints every change of a verdict as it comes, and at the end the report of every window. What it
/// says is what `run` would have said had the events come from Kafka: the engine has no clock but the
/// events' own.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub struct Args {
    /// What is replayed
    #[command(flatten)]
    pub input: range::Args,
    /// Configuration whose first source gives the fields of files, or whose sources the topics, and whose models
    /// give windows and options
    #[arg(short, long, env = "TRUELINE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print the final reports as one JSON array in place of the table
    #[arg(long)]
    pub json: bool,
}

/// Replays the files or topics.
pub fn run(args: &Args) -> Exit {
    match start(args) {
        Ok(()) => Exit::Ok,
        Err(Stopped::Usage(why)) => {
            eprintln!("error: {why}");
            Exit::Usage
        }
        Err(Stopped::Config(problems)) => {
            for problem in problems {
                eprintln!("{problem}");
            }
            Exit::Config
        }
        Err(Stopped::Failed(fault)) => Exit::of(&fault),
    }
}

/// Why a replay ended early.
enum Stopped {
    Usage(String),
    Config(Vec<Problem>),
    Failed(AppError),
}

fn start(args: &Args) -> Result<(), Stopped> {
    let config = match &args.config {
        Some(path) => Config::load(path),
        None => {
            let outside = Outside {
                variable: &|_| None,
                directory: PathBuf::from("."),
            };
            Config::parse(DEFAULTS, "the default configuration", &outside)
        }
    };
    let config = config.map_err(Stopped::Config)?;
    let range = args.input.range().map_err(Stopped::Usage)?;
    if range.is_some() && args.config.is_none() {
        let why = "a range of topics needs --config, which names them";
        return Err(Stopped::Usage(why.to_owned()));
    }
    let meter = Meter::new(if range.is_some() { "records" } else { "bytes" });
    let mut told = |change: &Change| {
        if !args.json {
            meter.beside(|| println!("{}", line(change)));
        }
    };
    let mut seen = Watermarks::new();
    let mut input = match &range {
        Some(range) => Input::Topics {
            range,
            seen: &mut seen,
        },
        None => Input::Files {
            events: &args.input.files,
            outcomes: &args.input.outcomes,
        },
    };
    let progress = |done, total| meter.at((0, 1), done, total);
    let replayed = replay::replay(config, &mut input, &mut told, &progress);
    meter.done();
    let (engine, tally) = replayed.map_err(Stopped::Failed)?;
    if tally.observed == 0 {
        return Err(Stopped::Failed(AppError::Data(format!(
            "none of {} records counts in a window: {}",
            tally.records,
            tally
                .first_rejected
                .as_deref()
                .unwrap_or("they have no outcome, or came too late")
        ))));
    }
    print(args.json, &engine, &tally);
    Ok(())
}

/// A change with its event time.
fn line(change: &Change) -> String {
    let at = UNIX_EPOCH + Duration::from_millis(change.at_ms.unsigned_abs());
    format!(
        "{}  {}  {}  {}",
        humantime::format_rfc3339_seconds(at),
        change.stream,
        change.window,
        change.sentence
    )
}

fn print(json: bool, engine: &Engine, tally: &Tally) {
    let mut reports: Vec<&StreamReport> = engine.reports().collect();
    reports.sort_by(|a, b| a.id.cmp(&b.id));
    if json {
        let compared = engine.comparisons();
        let mut all: Vec<serde_json::Value> = reports.iter().map(|r| report_json(r)).collect();
        all.extend(compared.iter().map(comparison_json));
        println!("{}", serde_json::Value::Array(all));
    } else {
        let rows: Vec<Vec<Cell>> = reports.iter().flat_map(|r| rows(r)).collect();
        let heading: Vec<&str> = ["stream"].into_iter().chain(table::JUDGEMENT).collect();
        println!();
        for line in table::lines(&heading, &rows, std::io::stdout().is_terminal()) {
            println!("{line}");
        }
        for report in engine.comparisons() {
            println!("{}: {}", report.id.model, comparison::words(&report));
        }
    }
    eprintln!("{}", summary(tally));
}

fn rows(report: &StreamReport) -> Vec<Vec<Cell>> {
    let row = |window| {
        let mut row = vec![Cell::plain(report.id.to_string())];
        row.extend(table::judgement(window));
        row
    };
    report.windows.iter().map(row).collect()
}

fn report_json(report: &StreamReport) -> serde_json::Value {
    let window = |w: &WindowReport| {
        serde_json::json!({
            "window": w.window, "start_ms": w.start_ms, "end_ms": w.end_ms, "n": w.n,
            "verdict": w.verdict.to_string(), "alert": w.alert.as_str(),
            "evaluation": w.scores().map(report::json),
        })
    };
    serde_json::json!({
        "stream": report.id.to_string(),
        "last_event_ms": report.last_event_ms,
        "windows": report.windows.iter().map(window).collect::<Vec<_>>(),
    })
}

/// Versions against each other: an entry with `comparison` in place of `stream`.
fn comparison_json(report: &ComparisonReport) -> serde_json::Value {
    serde_json::json!({ "comparison": comparison::json(report) })
}

/// Where all records went, in one line, and the first that was rejected, in another.
fn summary(tally: &Tally) -> String {
    let mut out = format!("{} records: {} observed", tally.records, tally.observed);
    for (what, count) in &tally.others {
        out.push_str(&format!(", {count} {what}"));
    }
    for gap in &tally.gaps {
        out.push_str(&format!("\nincomplete: {gap}"));
    }
    if let Some(first) = &tally.first_rejected {
        out.push_str(&format!("\nfirst rejected: {first}"));
    }
    out
}
