//! `trueline man`: manual pages, from the definitions of the command line.

use super::exit::{self, Exit};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  trueline man ~/.local/share/man/man1    one page for each verb, then `man trueline-check`";

/// Write the manual pages
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub struct Args {
    /// The directory for the pages; it is created if it is missing
    #[arg(value_name = "DIRECTORY")]
    pub directory: PathBuf,
}

/// Writes a page for the program and a page for each verb.
pub fn run(args: &Args, command: clap::Command) -> Exit {
    let written = std::fs::create_dir_all(&args.directory)
        .and_then(|()| clap_mangen::generate_to(command, &args.directory));
    match written {
        Ok(()) => Exit::Ok,
        Err(error) => {
            let directory = args.directory.display();
            let why = format_args!("cannot write in {directory}: {error}");
            exit::fail(Exit::Unavailable, why)
        }
    }
}
