//! `trueline explain`: explains why an alert changed, and recomputes it from its record.

use std::path::{Path, PathBuf};

use super::exit::{self, Exit};
use crate::app::outputs::audit::{self, FOLDER, list};
use crate::report::moment::rfc3339;
use crate::report::record::Record;

const EXAMPLES: &str = "\
Examples:
  trueline explain --state /var/lib/trueline                      list the records, newest last
  trueline explain --state /var/lib/trueline 3f1c09a2b4d5e6f7     the newest record of this alert
  trueline explain --state /var/lib/trueline 3f1c09a2b4d5e6f7-1763757000000-page
  trueline explain 3f1c09a2b4d5e6f7-1763757000000-page.json       a record in a file";

/// Explain why an alert changed, and recompute it bit for bit from its record
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub struct Args {
    /// Fingerprint or name of the alert (the newest record of its streams), key of one change, or
    /// file of a record [default: list all records]
    pub alert: Option<String>,
    /// The state directory, `[state] directory` of the configuration; a running trueline may use it
    #[arg(
        long,
        env = "TRUELINE_STATE",
        value_name = "DIR",
        default_value = "trueline-state"
    )]
    pub state: PathBuf,
}

/// Prints a record and recomputes it.
pub fn run(args: &Args) -> Exit {
    let named = args.alert.as_deref().map(Path::new);
    if let Some(file) = named.filter(|path| path.is_file()) {
        return show(file);
    }
    let folder = args.state.join(FOLDER);
    let files = match list(&folder) {
        Ok(files) => files,
        Err(_) if named.is_some_and(is_a_file) => return no_file(named),
        Err(error) => {
            let folder = folder.display();
            let why = format_args!("{folder}: {error}; name the state directory with --state");
            return exit::fail(Exit::NoInput, why);
        }
    };
    let Some(wanted) = &args.alert else {
        for file in &files {
            match read(file) {
                Ok(record) => exit::print_plain_line(format_args!(
                    "{}  {}  {}",
                    record.key,
                    rfc3339(record.at_ms),
                    record.sentence
                )),
                Err(why) => exit::eprint_line(format_args!("error: {why}")),
            }
        }
        return Exit::Ok;
    };
    let newest = audit::newest(&files, std::slice::from_ref(wanted)).cloned();
    let found = newest.or_else(|| audit::newest_of_group(&files, wanted));
    let Some(file) = found else {
        if named.is_some_and(is_a_file) {
            return no_file(named);
        }
        let folder = folder.display();
        let why =
            format_args!("{folder} has no record of `{wanted}`; run without a name to list all");
        return exit::fail(Exit::NoInput, why);
    };
    show(&file)
}

/// Whether the argument looks like a file; names of streams contain slashes too.
fn is_a_file(named: &Path) -> bool {
    named.extension().is_some_and(|e| e == "json")
}

fn no_file(named: Option<&Path>) -> Exit {
    let name = named.unwrap_or(Path::new("")).display();
    let why = "no such file, and no record of this name; run without a name to list all";
    exit::fail(Exit::NoInput, format_args!("{name}: {why}"))
}

fn show(file: &Path) -> Exit {
    match read(file) {
        Ok(record) => explain(&record),
        Err(why) => exit::fail(Exit::Data, why),
    }
}

fn read(file: &Path) -> Result<Record, String> {
    let said = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
    let text = std::fs::read_to_string(file).map_err(|e| said(&e))?;
    Record::read(&text).map_err(|e| said(&e))
}

fn explain(record: &Record) -> Exit {
    exit::print_plain_line(format_args!("{} at {}", record.key, rfc3339(record.at_ms)));
    exit::print(&record.words());
    let checked = record.recompute();
    exit::print_plain_line(format_args!(
        "recomputed from the record, equal to the bit: {}",
        checked.equal.join("; ")
    ));
    if !checked.taken.is_empty() {
        exit::print_plain_line(format_args!(
            "taken as it stands, judged earlier: {}",
            checked.taken.join("; ")
        ));
    }
    if checked.different.is_empty() {
        return Exit::Ok;
    }
    exit::print_plain_line(format_args!("NOT equal: {}", checked.different.join("; ")));
    Exit::Verdict
}
