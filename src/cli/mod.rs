//! The command line: one verb a file.
//!
//! A verb's file holds its arguments (`Args`, with the help that people read) and `run`, which turns
//! them into calls of [`crate::app`] and answers with an [`Exit`]. No verb holds statistics or IO of
//! its own: what `run` does from a broker, `replay` does from files and ranges of topics and `demo` from a broker that it
//! starts itself, all through the same engine.
//!
//! clap ends with code 2 when it cannot parse; here that is [`Exit::Usage`], because 2 means nothing to
//! an init system. Every flag that a container would set has an environment twin `TRUELINE_*`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod alert;
mod backtest;
mod check;
mod classes;
mod demo;
mod distances;
mod evaluate;
mod exit;
mod explain;
mod intervals;
mod kernel;
mod meter;
mod offline;
mod range;
mod recalibrate;
mod replay;
mod reproduce;
mod run;
mod state;
mod state_topic;
mod tap;
mod top;

pub use exit::Exit;

/// Watches whether the probabilities of production models are true.
///
/// Reads predictions with their outcomes from Kafka (or from files), keeps exact integer sums over
/// sliding windows of event time, tests calibration at every slide, and says what it found through
/// Prometheus metrics, an HTTP API and logs.
#[derive(Debug, Parser)]
#[command(name = "trueline", version, max_term_width = 100, after_long_help = exit::HELP)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

/// The verbs. Order is the order of `--help`: what one meets first stands first.
#[derive(Debug, Subcommand)]
enum Verb {
    /// Show everything at work on this machine: a broker, models of known truth, verdicts, metrics
    Demo(demo::Args),
    /// Consume from Kafka and serve verdicts until stopped
    Run(run::Args),
    /// Find every fault of a configuration before it runs
    Check(check::Args),
    /// Put files of events, or topics of the past, through the same engine, in event time
    Replay(replay::Args),
    /// See what would have fired over files or topics of the past, under each of several configurations
    Backtest(backtest::Args),
    /// Watch the streams of a running trueline, worst first
    Top(top::Args),
    /// See alerts, silence and acknowledge them, and try the sinks
    Alert(alert::Args),
    /// See pairs of prediction and outcome as a running trueline counts them
    Tap(tap::Args),
    /// Say why an alert changed, and recompute it from its record
    Explain(explain::Args),
    /// Look into a state directory or the topic of state, or carry state elsewhere
    State(state::Args),
    /// Evaluate a file of scored outcomes as one sample
    Evaluate(evaluate::Args),
    /// Run the papers' experiments and print the published numbers beside ours
    Reproduce(reproduce::Args),
}

/// Parses the process's arguments, runs the verb, and says how to end.
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
    };
    exit.into()
}

/// `--help` and `--version` arrive as errors too; they go to stdout and end with 0.
fn refuse(error: &clap::Error) -> ExitCode {
    let help = !error.use_stderr();
    // A closed pipe (`trueline --help | head`) is no failure of ours.
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
    fn the_command_tree_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_verb_says_what_it_is_for() {
        for verb in Cli::command().get_subcommands() {
            assert!(
                verb.get_about().is_some(),
                "{} has no help",
                verb.get_name()
            );
        }
    }
}
