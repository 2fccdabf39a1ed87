//! The command line: one file for each verb.
//!
//! The file of a verb holds its arguments (`Args`, with the help text) and `run`, which turns them
//! into calls of [`crate::app`] and returns an [`Exit`]. No verb has statistics or I/O of its own:
//! `run` reads from a broker, `replay` from files and ranges of topics, `demo` from a broker that
//! it starts itself, and all use the same engine.
//!
//! Wrong arguments exit with [`Exit::Usage`] and not with clap's 2, which has no meaning to an init
//! system. Every flag that a container would set also has an environment variable, `TRUELINE_*`.

#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

mod alert;
mod backtest;
mod check;
mod completions;
mod config_file;
mod demo;
mod evaluate;
mod exit;
mod explain;
mod man;
mod progress;
mod range;
mod recalibrate;
mod replay;
mod report_file;
mod reproduce;
mod run;
mod sample;
mod service;
mod state;
mod state_topic;
mod tap;
mod top;
mod version;

pub use exit::Exit;

/// Watches whether the probabilities of production models are calibrated.
///
/// Reads predictions with their outcomes from Kafka or from files, keeps exact integer sums over
/// sliding windows of event time, tests calibration each time a window slides, and reports the
/// verdict via Prometheus metrics, an HTTP API and logs.
#[derive(Debug, Parser)]
#[command(name = "trueline", version, long_version = version::long(), max_term_width = 100, after_long_help = exit::HELP)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

/// The verbs, in the order of `--help`.
#[derive(Debug, Subcommand)]
enum Verb {
    /// Run everything on this machine: a broker, models of known truth, verdicts and metrics
    Demo(demo::Args),
    /// Consume from Kafka and serve verdicts until stopped
    Run(run::Args),
    /// Check a configuration before it runs
    Check(check::Args),
    /// Replay files of events, or a range of topics, through the same engine in event time
    Replay(replay::Args),
    /// Compare which alerts would have fired under several configurations
    Backtest(backtest::Args),
    /// Show the streams of a running trueline, worst first
    Top(top::Args),
    /// List, silence and acknowledge alerts, and test the sinks
    Alert(alert::Args),
    /// Print pairs of prediction and outcome as a running trueline counts them
    Tap(tap::Args),
    /// Explain why an alert changed, and recompute it from its record
    Explain(explain::Args),
    /// Inspect, export or import state
    State(state::Args),
    /// Evaluate a file of scored outcomes as one sample
    Evaluate(Box<evaluate::Args>),
    /// Run the papers' experiments and compare with the published numbers
    Reproduce(reproduce::Args),
    /// Print the completions of a shell
    Completions(completions::Args),
    /// Write the manual pages
    Man(man::Args),
}

/// Parses the arguments, runs the verb and returns the exit code.
pub fn main() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let exit = match cli.verb {
        Verb::Demo(args) => demo::run(&args),
        Verb::Run(args) => run::run(&args),
        Verb::Check(args) => check::run(&args),
        Verb::Replay(args) => replay::run(&args),
        Verb::Backtest(args) => backtest::run(&args),
        Verb::Top(args) => top::run(&args),
        Verb::Alert(args) => alert::run(&args),
        Verb::Tap(args) => tap::run(&args),
        Verb::Explain(args) => explain::run(&args),
        Verb::State(args) => state::run(&args),
        Verb::Evaluate(args) => evaluate::run(&args),
        Verb::Reproduce(args) => reproduce::run(&args),
        Verb::Completions(args) => completions::run(&args, Cli::command()),
        Verb::Man(args) => man::run(&args, Cli::command()),
    };
    exit::ended(exit).into()
}

/// Parses the arguments. `evaluate` also gets which ones were given.
fn parse() -> Result<Cli, clap::Error> {
    let matches = Cli::command().try_get_matches()?;
    let mut cli = Cli::from_arg_matches(&matches).map_err(|e| e.format(&mut Cli::command()))?;
    if let (Verb::Evaluate(args), Some((_, given))) = (&mut cli.verb, matches.subcommand()) {
        args.note_given(given);
    }
    Ok(cli)
}

/// Prints an error of clap. `--help` and `--version` are errors too; they go to stdout and exit
/// with 0.
fn refuse(error: &clap::Error) -> ExitCode {
    let help = !error.use_stderr();
    // A closed pipe (`trueline --help | head`) is not a failure.
    let lost = exit::lost(error.print()).is_some();
    let exit = match help {
        true if lost => Exit::Unavailable,
        true => Exit::Ok,
        false => Exit::Usage,
    };
    exit.into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;

    /// The ids in a list of clap's debug output of an argument, the only place that shows them.
    fn ids<'a>(printed: &'a str, list: &str) -> Vec<&'a str> {
        let (_, rest) = printed
            .split_once(&format!(", {list}: ["))
            .expect("a list of clap");
        let (inside, _) = rest.split_once(']').expect("its end");
        inside.split('"').skip(1).step_by(2).collect()
    }

    /// Checks a command and its subcommands; returns the number of references to other arguments.
    fn check(command: &clap::Command) -> usize {
        let of = command.get_name();
        let (mut names, mut known) = (BTreeSet::new(), BTreeSet::new());
        let mut once = |name: String| assert!(names.insert(name.clone()), "{of}: {name} twice");
        for arg in command.get_arguments() {
            once(format!("id {}", arg.get_id()));
            known.insert(arg.get_id().as_str());
            let aliases = arg.get_all_aliases().into_iter().flatten();
            let longs = arg.get_long().into_iter().chain(aliases);
            longs.for_each(|long| once(format!("--{long}")));
            let aliases = arg.get_all_short_aliases().into_iter().flatten();
            let shorts = arg.get_short().into_iter().chain(aliases);
            shorts.for_each(|short| once(format!("-{short}")));
        }
        for group in command.get_groups() {
            let strange = group.get_args().find(|id| !known.contains(id.as_str()));
            assert_eq!(strange, None, "{of}: group {}", group.get_id());
        }
        for group in command.get_groups() {
            once(format!("id {}", group.get_id()));
            known.insert(group.get_id().as_str());
        }
        for verb in command.get_subcommands() {
            let names = std::iter::once(verb.get_name()).chain(verb.get_all_aliases());
            names.for_each(|name| once(format!("verb {name}")));
        }
        let mut references = 0;
        for arg in command.get_arguments() {
            let printed = format!("{arg:?}");
            for list in ["conflicts", "overrides", "requires", "r_ifs", "r_unless"] {
                for id in ids(&printed, list) {
                    assert!(known.contains(id), "{of}: {} {list} {id}", arg.get_id());
                    references += 1;
                }
            }
        }
        // Required arguments come first, and only the last one takes several values.
        let places: Vec<_> = command.get_positionals().collect();
        assert!(
            places.is_sorted_by_key(|arg| !arg.is_required_set()),
            "{of}"
        );
        let single = |arg: &clap::Arg| arg.get_num_args().is_none_or(|n| n.max_values() == 1);
        let early = &places[..places.len().saturating_sub(1)];
        assert!(early.iter().all(|arg| single(arg)), "{of}");
        references + command.get_subcommands().map(check).sum::<usize>()
    }

    /// clap's own `debug_assert` checks nothing in release builds, in which tests run.
    #[test]
    fn the_command_tree_is_valid() {
        let mut command = Cli::command();
        command.clone().debug_assert();
        command.build();
        let references = check(&command);
        assert!(references > 20, "{references}");
    }

    /// The names of commands whose help has a line over 100 columns, which terminals wrap once
    /// more.
    fn wide(command: &mut clap::Command, found: &mut Vec<String>) {
        let after = [command.get_after_help(), command.get_after_long_help()];
        let after: String = after
            .iter()
            .flatten()
            .map(|text| format!("{text}\n"))
            .collect();
        let shown = command.render_long_help().to_string();
        for line in after.lines().chain(shown.lines()) {
            if line.chars().count() > 100 {
                found.push(format!("{}: {line}", command.get_name()));
            }
        }
        for verb in command.get_subcommands_mut() {
            wide(verb, found);
        }
    }

    #[test]
    fn no_line_of_a_help_text_is_over_100_columns() {
        let mut found = Vec::new();
        wide(&mut Cli::command(), &mut found);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn every_verb_has_a_help_text() {
        for verb in Cli::command().get_subcommands() {
            assert!(
                verb.get_about().is_some(),
                "{} has no help",
                verb.get_name()
            );
        }
    }
}
