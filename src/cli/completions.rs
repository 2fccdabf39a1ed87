//! `trueline completions`: shell completions, from the definitions of the command line.

use super::exit::{self, Exit};
use clap_complete::Shell;

const EXAMPLES: &str = "\
Examples:
  trueline completions bash > /etc/bash_completion.d/trueline
  trueline completions zsh > \"${fpath[1]}/_trueline\"
  trueline completions fish > ~/.config/fish/completions/trueline.fish";

/// Print the completions of a shell
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub struct Args {
    /// The shell
    pub shell: Shell,
}

/// Prints the completions.
pub fn run(args: &Args, mut command: clap::Command) -> Exit {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "trueline", &mut text);
    exit::print(&String::from_utf8_lossy(&text));
    Exit::Ok
}
