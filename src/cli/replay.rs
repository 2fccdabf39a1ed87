//! `trueline replay`: replays files of events, or ranges of topics, through the same engine in
//! event time.

mod page;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::exit::{self, Exit};
use super::progress::ProgressMeter;
use super::sample::CONFLICT;
use super::{range, report_file};
use crate::app::AppError;
use crate::app::replay::{self, Input, Listeners, Tally};
use crate::collect::{Reason, Refusal};
use crate::config::Config;
use crate::config::value::Outside;
use crate::judge::{Change, Step, StreamId, StreamReport};
use crate::kafka::OffsetBounds;
use crate::monitor::Engine;
use crate::report::moment::rfc3339;
use crate::report::table::{self, Cell};
use crate::report::{comparison, detector, ledger, stream};
use crate::telemetry::history::History;
use page::Changes;

/// The configuration without `--config`. The broker is never contacted.
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
  trueline replay --config trueline.toml --report october.html october.jsonl.gz
  trueline replay --config trueline.toml --last 7d
  trueline replay --config trueline.toml --from 2026-11-01T06:00Z --to 2026-11-02

With --from or --last, the topics of all sources are read from the brokers of the configuration,
between two record timestamps or offsets. The command joins no consumer group and writes nothing.
Topics of outcomes are read past --to until the predictions are mature.

Without --config the fields are model, score, outcome and time (milliseconds since 1970), in JSON
lines or under the same names in a CSV header, and every model has the default windows and
options.";

/// Replay files of events, or a range of topics, through the same engine in event time.
///
/// Prints every change of a verdict as it occurs, and at the end a report of every window. The
/// output is what `run` would have reported for the same events from Kafka, because the engine has
/// no clock but the time of the events.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub struct Args {
    /// The input
    #[command(flatten)]
    pub input: range::Args,
    /// The configuration: its first source names the fields of files, its sources the topics of a
    /// range, and its models the windows and options
    #[arg(short, long, env = "TRUELINE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print the final reports as one JSON object instead of the table: each stream with its
    /// detector and every alarm of it, the comparisons of versions, and the budgets of false alarms
    #[arg(long)]
    pub json: bool,
    /// Write one self-contained HTML page: each stream and window with its diagram, its past and
    /// its alerts
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

/// Replays the files or topics.
pub fn run(args: &Args) -> Exit {
    start(args).err().unwrap_or(Exit::Ok)
}

fn start(args: &Args) -> Result<(), Exit> {
    let config = match &args.config {
        Some(path) => Config::load(path),
        None => Config::parse(DEFAULTS, "the default configuration", &Outside::nothing()),
    };
    let config = config.map_err(|problems| exit::invalid(&problems))?;
    let range = (args.input.range()).map_err(|why| exit::fail(Exit::Usage, why))?;
    if range.is_some() && args.config.is_none() {
        let why = "a range of topics needs --config, which names them";
        return Err(exit::fail(Exit::Usage, why));
    }
    if let Some(path) = &args.report {
        let inputs = args.input.files.iter().chain(&args.input.outcomes);
        let checked = report_file::check("--report", path, inputs.chain(&args.config));
        checked.map_err(|why| exit::fail(Exit::Usage, why))?;
    }
    let meter = ProgressMeter::new(if range.is_some() { "records" } else { "bytes" });
    let history = History::default();
    let mut changes = Changes::default();
    let mut alarms = Alarms::new();
    let mut on_change = |change: &Change| {
        if matches!(change.step, Step::Detector { alarm: true, .. }) {
            alarms
                .entry(change.stream.clone())
                .or_default()
                .push(alarm_json(change));
        }
        if args.report.is_some() {
            changes.take(change);
        }
        let repeats = matches!(change.step, Step::Detector { again: true, .. });
        if !args.json && !repeats {
            meter.suspend(|| exit::print_plain_line(line(change)));
        }
    };
    let mut seen = OffsetBounds::new();
    let mut input = match &range {
        Some(range) => Input::Topics {
            range,
            seen: &mut seen,
        },
        None => Input::Files(args.input.file_input()),
    };
    let progress = |done, total| meter.set((0, 1), done, total);
    let listeners = Listeners {
        on_change: &mut on_change,
        history: args.report.as_ref().map(|_| &history),
    };
    let replayed = replay::replay(config, &mut input, listeners, &progress);
    meter.finish();
    let (engine, tally) = replayed.map_err(|fault| Exit::of(&fault))?;
    if tally.observed == 0 {
        return Err(Exit::of(&AppError::Data(nothing(&tally, range.is_some()))));
    }
    print(args.json, &engine, &tally, &alarms);
    if let Some(path) = &args.report {
        let (title, counts) = (title(args), summary(&tally));
        let written = page::write(path, &title, &counts, &engine, &history, changes);
        written.map_err(|why| exit::fail(Exit::Unavailable, why))?;
    }
    for note in notes(&tally, &args.input) {
        exit::eprint_line(note);
    }
    match mostly_uncounted(&tally) {
        Some(why) => Err(Exit::of(&AppError::Data(why))),
        None => Ok(()),
    }
}

/// Remedies for records that are late, in conflict or refused.
pub(super) fn notes(tally: &Tally, input: &range::Args) -> Vec<String> {
    let of = |what| tally.others.get(what).copied().unwrap_or_default();
    let mut notes = Vec::new();
    if let late @ 1.. = of("late")
        && !input.files.is_empty()
        && !input.sort
    {
        notes.push(format!(
            "{late} records came after their pane was sealed, and count in no window. If the files are not in order of \
             time, add --sort"
        ));
    }
    if let conflicts @ 1.. = of("conflict") {
        notes.push(format!(
            "{conflicts} records do not count, because another one with the same id differs (conflict); {CONFLICT}"
        ));
    }
    if let Some(cap) = tally.cap {
        let remedy = match cap {
            Refusal::Streams => "raise `streams_max` in [limits], or use fewer segments",
            Refusal::Panes => "raise `open_panes_max` or `open_memory` in [limits]",
            Refusal::Sums => "shorten the windows",
            Refusal::Pending => "raise `pending_max` in [source.outcomes]",
        };
        let (refused, cap) = (of("refused"), cap.as_str());
        notes.push(format!(
            "{refused} records are refused by a cap ({cap}); {remedy}"
        ));
    }
    notes
}

/// A warning if at least half of the records do not count, because verdicts on the rest may concern
/// another sample. Records of models that are not configured and copies are ignored here.
pub(super) fn mostly_uncounted(tally: &Tally) -> Option<String> {
    let other_models = Reason::UnknownModel.as_str();
    let of = |what| tally.others.get(what).copied().unwrap_or_default();
    let reasons = Reason::ALL.iter().map(|reason| reason.as_str());
    let reasons = reasons.filter(|what| *what != other_models);
    let uncounted: u64 = reasons.chain(["late", "conflict", "refused"]).map(of).sum();
    let all = tally.records - of(other_models) - of("duplicate");
    (uncounted > 0 && 2 * uncounted >= all).then(|| {
        format!(
            "{uncounted} of {all} records are rejected, late, in conflict or refused, and the verdicts are on the rest"
        )
    })
}

/// The message if no record counts.
pub(super) fn nothing(tally: &Tally, of_topics: bool) -> String {
    if tally.records == 0 {
        let what = if of_topics { "range" } else { "input" };
        return format!("the {what} holds no record");
    }
    let why = tally.first_rejected.as_deref();
    let records = tally.records;
    format!(
        "none of {records} records is counted in a window: {}",
        why.unwrap_or("they have no outcome, or are late")
    )
}

/// A title that names what was replayed.
fn title(args: &Args) -> String {
    let files = args.input.files.iter().chain(&args.input.outcomes);
    let names: Vec<String> = files.take(5).map(|f| f.display().to_string()).collect();
    match names.is_empty() {
        true => "Replay of a range of topics".to_owned(),
        false => format!("Replay of {}", names.join(", ")),
    }
}

/// A change with its event time.
fn line(change: &Change) -> String {
    let at = rfc3339(change.at_ms);
    format!(
        "{at}  {}  {}  {}",
        change.stream, change.window, change.sentence
    )
}

fn print(json: bool, engine: &Engine, tally: &Tally, alarms: &Alarms) {
    let mut reports: Vec<&Arc<StreamReport>> = engine.reports().collect();
    reports.sort_by(|a, b| a.id.cmp(&b.id));
    if json {
        let report = |r: &&Arc<StreamReport>| report_json(r, alarms.get(&r.id));
        let all = json!({
            "streams": reports.iter().map(report).collect::<Value>(),
            "comparisons": engine.comparisons().iter().map(comparison::json).collect::<Value>(),
            "ledger": engine.ledger().iter().map(ledger::json).collect::<Value>(),
        });
        exit::print_line(all);
    } else {
        let rows: Vec<Vec<Cell>> = reports.iter().flat_map(|r| rows(r)).collect();
        let heading: Vec<&str> = ["stream"].into_iter().chain(table::JUDGEMENT).collect();
        exit::print("\n");
        for line in table::lines(&heading, &rows, std::io::stdout().is_terminal()) {
            exit::print_line(format_args!("{line}"));
        }
        for report in engine.comparisons() {
            exit::print_plain_line(format_args!(
                "{}: {}",
                report.id.model,
                comparison::words(&report)
            ));
        }
    }
    exit::eprint_line(format_args!("{}", summary(tally)));
}

fn rows(report: &StreamReport) -> Vec<Vec<Cell>> {
    let row = |window| {
        let mut row = vec![Cell::plain(report.id.to_string())];
        row.extend(table::judgement(window));
        row
    };
    report.windows.iter().map(row).collect()
}

fn report_json(report: &StreamReport, alarms: Option<&Vec<Value>>) -> Value {
    let judged = |window| stream::judged(window, &report.id);
    let mut entry = stream::json(report);
    entry["detector"] = report.detector.as_deref().map(detector::json).into();
    entry["alarms"] = alarms.cloned().unwrap_or_default().into();
    entry["windows"] = report.windows.iter().map(judged).collect();
    entry
}

/// The alarms of each stream's detector, in order.
type Alarms = std::collections::BTreeMap<StreamId, Vec<Value>>;

/// An alarm that a detector raised, or confirmed.
fn alarm_json(change: &Change) -> Value {
    json!({
        "at_ms": change.at_ms,
        "again": matches!(change.step, Step::Detector { again: true, .. }),
        "sentence": change.sentence,
    })
}

/// Counts of all records in one line, followed by lines about gaps in verdicts and the first
/// rejected record.
fn summary(tally: &Tally) -> String {
    let mut out = format!("{} records: {} observed", tally.records, tally.observed);
    for (what, count) in &tally.others {
        out.push_str(&format!(", {count} {what}"));
    }
    for gap in &tally.gaps {
        out.push_str(&format!("\nincomplete: {gap}"));
    }
    if let Some(((stream, n), others)) = tally.unseen_late.split_first() {
        let more = match others.len() {
            0 => String::new(),
            more => format!(" and some of {more} others"),
        };
        out.push_str(&format!(
            "\nlate outcomes after the last slide, not in every verdict: {n} of {stream}{more}"
        ));
    }
    if let Some(first) = &tally.first_rejected {
        out.push_str(&format!("\nfirst rejected: {first}"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_records_must_count() {
        let uncounted = |records, others: &[(&'static str, u64)]| {
            mostly_uncounted(&Tally {
                records,
                others: others.iter().copied().collect(),
                ..Tally::default()
            })
        };
        for what in ["malformed", "late", "conflict", "refused"] {
            assert_eq!(uncounted(10, &[(what, 4)]), None);
            let said = uncounted(10, &[(what, 5)]).expect(what);
            assert!(said.starts_with("5 of 10 records are rejected"), "{said}");
        }
        assert!(uncounted(10, &[("conflict", 4), ("duplicate", 2)]).is_some());
        assert_eq!(uncounted(10, &[("unknown_model", 9)]), None);
    }
}
