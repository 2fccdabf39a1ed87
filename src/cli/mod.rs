//! The command line: one file for each verb.
//!
//! The file of a verb holds its arguments (`Args`, with the help text) and `run`, which turns them
//! into calls of [`crate::app`] and returns an [`Exit`]. No verb has statistics or IO of its own:
//! `run` reads from a broker, `replay` from files and ranges of topics, `demo` from a broker that
//! it starts itself, and all use the same engine.
//!
//! Wrong arguments exit with [`Exit::Usage`] and not with clap's 2, which has no meaning to an init
//! system. Every flag that a container would set also has an environment variable, `TRUELINE_*`.

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

mod alert;
mod backtest;
mod check;
mod classes;
mod completions;
mod config_file;
mod demo;
mod distances;
mod estimators;
mod evaluate;
mod exit;
mod explain;
mod intervals;
mod kernel;
mod man;
mod offline;
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
    let cli = match Cli::try_parse() {
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
    exit.into()
}

/// Prints an error of clap. `--help` and `--version` are errors too; they go to stdout and exit
/// with 0.
fn refuse(error: &clap::Error) -> ExitCode {
    let help = !error.use_stderr();
    // A closed pipe (`trueline --help | head`) is not a failure.
    let _ = error.print();
    if help {
        Exit::Ok.into()
    } else {
        Exit::Usage.into()
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_tree_is_valid() {
        Cli::command().debug_assert();
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
