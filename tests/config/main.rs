//! The configuration from outside: every sample loads, every bad file is refused with exactly the
//! messages that stand beside it in `tests/config/bad/NAME.txt`, and whatever is generated from the
//! table of keys (the sample with every key, the reference in `config/README.md`, the JSON Schema)
//! is current.
//!
//! `TRUELINE_BLESS=1 cargo test --test config` writes the generated files and the messages again;
//! read the difference before committing it.

mod check;
mod command_line;
mod generated;
mod matchers;
mod mistakes;
mod models;
mod refused;
mod samples;
mod tls;
mod values;

use std::fs;
use std::path::{Path, PathBuf};
use trueline::config::value::Outside;
use trueline::config::{Config, Problem};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Reads a text without any variable defined.
fn parse(text: &str) -> Result<Config, Vec<Problem>> {
    let outside = Outside {
        variable: &|_| None,
        directory: PathBuf::from("tests/config"),
    };
    Config::parse(text, "trueline.toml", &outside)
}

fn sample(name: &str) -> Config {
    let text = fs::read_to_string(root().join("config").join(name)).unwrap();
    parse(&text).unwrap_or_else(|problems| panic!("{name}: {problems:#?}"))
}

/// Compares with a file of the repository, or writes it when blessing.
fn same_as_file(path: &Path, now: &str) {
    if std::env::var_os("TRUELINE_BLESS").is_some() {
        fs::write(path, now).unwrap();
    }
    let kept = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        kept,
        now,
        "{} is not current; see the head of tests/config/main.rs",
        path.display()
    );
}

const MINIMAL: &str = "version = 1\n[kafka]\nbrokers = \"b:1\"\n[[source]]\ntopics = \"t\"\n\
                       [source.fields]\nscore = \"s\"\n";
