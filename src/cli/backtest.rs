//! `trueline backtest`: compares which alerts would have fired under several configurations.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::exit::{self, Exit};
use super::progress::ProgressMeter;
use super::{range, replay};
use crate::app::AppError;
use crate::app::replay::Input;
use crate::app::replay::Progress;
use crate::app::replay::backtest::{self, PolicyOutcome, Signal, Span};
use crate::app::replay::topics::Range;
use crate::config::Config;
use crate::kafka::OffsetBounds;
use crate::report::moment::clock;
use crate::report::table::{self, Cell, Paint};
use crate::report::{comparison, ledger};

const EXAMPLES: &str = "\
Examples:
  trueline backtest --config now.toml --config stricter.toml october.jsonl.zst
  trueline backtest --json --config now.toml 2026-11-*.csv > now.json
  trueline backtest --config now.toml predictions.jsonl --outcomes outcomes.jsonl
  trueline backtest --config now.toml --config stricter.toml --last 7d
  trueline backtest --config now.toml --from 2026-11-01T06:00Z --to 2026-11-02

Files and topics are read as by `replay`. Every configuration reads the same offsets of a range of
topics; --json prints them.";

/// Compare which alerts would have fired under several configurations.
///
/// Replays the same events through one engine for each configuration, in event time. Prints side by
/// side how often the alert of each stream and each detector would have fired, how often an alert
/// would have become a page, when first, and for how long; with `window_alerts` each window too. No
/// notification is sent.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub struct Args {
    /// The input
    #[command(flatten)]
    pub input: range::Args,
    /// A configuration; repeat the option to compare several
    #[arg(short, long = "config", required = true, value_name = "FILE")]
    pub configs: Vec<PathBuf>,
    /// Print one JSON object instead of the table: all times of firing of alerts, windows and
    /// detectors, the budgets of false alarms and the comparisons of versions
    #[arg(long)]
    pub json: bool,
}

/// One configuration and its outcome.
struct Policy<'a> {
    /// Letter in the table.
    letter: String,
    path: &'a Path,
    outcome: PolicyOutcome,
}

/// Replays the files or topics under each configuration.
pub fn run(args: &Args) -> Exit {
    // Report all problems of all configurations before the first long run.
    let mut configs = Vec::new();
    let mut valid = true;
    for path in &args.configs {
        match exit::load(path) {
            Ok(config) => configs.push(config),
            Err(_) => valid = false,
        }
    }
    if !valid {
        return Exit::Config;
    }
    let range = match args.input.range() {
        Ok(range) => range,
        Err(why) => return exit::fail(Exit::Usage, why),
    };
    let meter = ProgressMeter::new(if range.is_some() { "records" } else { "bytes" });
    let rounds = configs.len() as u64;
    let (mut policies, mut seen) = (Vec::new(), OffsetBounds::new());
    for (i, (config, path)) in configs.into_iter().zip(&args.configs).enumerate() {
        let progress = |done, total| meter.set((i as u64, rounds), done, total);
        let mut input = input(args, range.as_ref(), &mut seen);
        match one(config, path, &mut input, &progress, range.is_some()) {
            Ok(outcome) => policies.push(Policy {
                letter: letter(i),
                path,
                outcome,
            }),
            Err(fault) => {
                meter.finish();
                return Exit::of(&fault);
            }
        }
    }
    meter.finish();
    print(args, &policies);
    let mut exit = Exit::Ok;
    for Policy {
        letter,
        path,
        outcome,
    } in &policies
    {
        for note in replay::notes(&outcome.tally, &args.input) {
            exit::eprint_line(format_args!("{letter}  {note}"));
        }
        if let Some(why) = replay::mostly_uncounted(&outcome.tally) {
            let why = format!("under {}, {why}", path.display());
            exit = Exit::of(&AppError::Data(why));
        }
    }
    exit
}

fn input<'a>(args: &'a Args, range: Option<&'a Range>, seen: &'a mut OffsetBounds) -> Input<'a> {
    match range {
        Some(range) => Input::Topics { range, seen },
        None => Input::Files(args.input.file_input()),
    }
}

fn one(
    config: Config,
    path: &Path,
    input: &mut Input<'_>,
    progress: Progress<'_>,
    of_topics: bool,
) -> Result<PolicyOutcome, AppError> {
    let name = path.display();
    let outcome = backtest::backtest(config, input, progress)?;
    if outcome.tally.observed == 0 {
        let why = replay::nothing(&outcome.tally, of_topics);
        return Err(AppError::Data(format!("under {name} {why}")));
    }
    Ok(outcome)
}

/// The letter of a configuration: A to Z, then numbers.
fn letter(i: usize) -> String {
    match u8::try_from(i) {
        Ok(i) if i < 26 => char::from(b'A' + i).to_string(),
        _ => format!("#{}", i + 1),
    }
}

fn print(args: &Args, policies: &[Policy]) {
    if args.json {
        let policies: Vec<Value> = policies.iter().map(json).collect();
        let all = json!({
            "files": args.input.files, "outcomes": args.input.outcomes, "policies": policies
        });
        exit::print_line(format_args!("{all:#}"));
        return;
    }
    for policy in policies {
        exit::print_plain_line(line(policy));
        for gap in &policy.outcome.tally.gaps {
            exit::print_plain_line(format_args!("{}  incomplete: {gap}", policy.letter));
        }
        if let Some(first) = &policy.outcome.tally.first_rejected {
            exit::eprint_line(format_args!("{}  first rejected: {first}", policy.letter));
        }
    }
    let rows = rows(policies);
    if rows.is_empty() {
        exit::print_line(format_args!("\nnothing would have fired"));
        return;
    }
    let mut heading = vec!["stream".to_owned(), "window".to_owned()];
    for p in policies {
        heading.extend(
            ["fired", "pages", "first (UTC)", "for"].map(|what| format!("{} {what}", p.letter)),
        );
    }
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    exit::print("\n");
    for line in table::lines(&heading, &rows, std::io::stdout().is_terminal()) {
        exit::print_line(format_args!("{line}"));
    }
}

fn line(p: &Policy) -> String {
    let (o, path) = (&p.outcome, p.path.display());
    let what = match (o.fired(), o.fired_per_day()) {
        (0, _) => "nothing fires".to_owned(),
        (times, per_day) => format!(
            "fires {times} time{}{}, becomes a page {} time{}, on {} of {} streams, for {} in all, first {}",
            if times == 1 { "" } else { "s" },
            per_day.map_or(String::new(), |d| format!(" ({d:.3} a day)")),
            o.pages(),
            if o.pages() == 1 { "" } else { "s" },
            o.streams_fired(),
            o.streams,
            lasting(o.firing_ms()),
            o.first_ms().map_or("-".to_owned(), clock)
        ),
    };
    let (records, observed, streams) = (o.tally.records, o.tally.observed, o.streams);
    format!(
        "{}  {path}: {what}; {observed} of {records} records, {streams} streams",
        p.letter
    )
}

/// A row for each signal that fires under any policy.
fn rows(policies: &[Policy]) -> Vec<Vec<Cell>> {
    let fires = policies.iter().flat_map(|p| {
        let fires = p.outcome.signals.iter().filter(|(_, s)| !s.is_empty());
        fires.map(|(signal, _)| signal)
    });
    let signals: std::collections::BTreeSet<&Signal> = fires.collect();
    let row = |signal: &Signal| {
        let mut row = vec![Cell::plain(&signal.stream), Cell::plain(&signal.window)];
        for p in policies {
            row.extend(cells(
                signal,
                p.outcome.signals.get(signal),
                p.outcome.end_ms(),
            ));
        }
        row
    };
    signals.into_iter().map(row).collect()
}

/// Number of times it fired, number of pages, first time and total duration; dashes if the policy
/// has no such window.
fn cells(signal: &Signal, spans: Option<&Vec<Span>>, end_ms: i64) -> [Cell; 4] {
    let Some(spans) = spans else {
        return ["-", "-", "-", "-"].map(Cell::plain);
    };
    // Only the alert of a stream has a severity.
    let pages = match signal.window == backtest::ALERT {
        true => backtest::pages(spans).to_string(),
        false => "-".to_owned(),
    };
    let Some(first) = spans.first() else {
        return ["0", &pages, "-", "-"].map(Cell::plain);
    };
    let still = spans.last().is_some_and(|s| s.end_ms.is_none());
    let still = if still { ", still" } else { "" };
    [
        Cell::painted(spans.len().to_string(), Paint::Red),
        Cell::plain(pages),
        Cell::plain(clock(first.start_ms)),
        Cell::plain(format!(
            "{}{still}",
            lasting(backtest::firing_ms(spans, end_ms))
        )),
    ]
}

fn json(p: &Policy) -> Value {
    let o = &p.outcome;
    let signal = |(signal, spans): (&Signal, &Vec<Span>)| {
        let span = |s: &Span| {
            json!({
                "start_ms": s.start_ms, "end_ms": s.end_ms, "pages_ms": s.pages_ms, "sentence": s.sentence,
            })
        };
        json!({
            "stream": signal.stream, "window": signal.window, "fired": spans.len(),
            "firing_ms": backtest::firing_ms(spans, o.end_ms()),
            "spans": spans.iter().map(span).collect::<Vec<_>>(),
        })
    };
    json!({
        "config": p.path, "offsets": o.tally.offsets, "incomplete": o.tally.gaps,
        "records": o.tally.records, "observed": o.tally.observed, "others": o.tally.others,
        "first_event_ms": o.tally.times_ms.map(|t| t.0), "last_event_ms": o.tally.times_ms.map(|t| t.1),
        "streams": o.streams, "fired": o.fired(), "pages": o.pages(), "fired_per_day": o.fired_per_day(),
        "firing_ms": o.firing_ms(), "first_fired_ms": o.first_ms(),
        "signals": o.signals.iter().map(signal).collect::<Vec<_>>(),
        "ledger": o.ledger.iter().map(ledger::json).collect::<Vec<_>>(),
        "comparisons": o.comparisons.iter().map(comparison::json).collect::<Vec<_>>(),
    })
}

fn lasting(ms: i64) -> String {
    let whole = Duration::from_secs(ms.unsigned_abs() / 1000);
    humantime::format_duration(whole).to_string()
}
