//! `[http]`, `[state]` and `[log]`: the process around the engine.

use std::path::{Path, PathBuf};

use crate::telemetry::log::{Format, LogOptions};

use super::document::Record;
use super::problem::Problems;
use super::value::Value;
use super::{HttpOptions, StateOptions};

/// Where to listen.
pub fn http(root: &Record) -> HttpOptions {
    let listen = match root.child("http").entry("listen").value {
        Value::Address(address) => address,
        _ => ([127, 0, 0, 1], 9464).into(),
    };
    HttpOptions {
        listen,
        series_max: root.child("limits").count("series_max"),
    }
}

/// Where and how often to save. A relative directory starts at that of the file.
pub fn state(root: &Record, directory: &Path, problems: &mut Problems<'_>) -> StateOptions {
    let record = root.child("state");
    let interval_ms = record.milliseconds("interval");
    if interval_ms < 1000 {
        let at = record.entry("interval").at;
        let what = "`interval` is under a second: writing snapshots would be all the work";
        problems.add(at, what, "write \"1s\" or more");
    }
    StateOptions {
        directory: directory.join(record.path("directory").unwrap_or(&PathBuf::new())),
        interval_ms,
        topic: record.owned("topic"),
        restore_within_ms: record.milliseconds("restore_within"),
        fresh: record.text("on_broken") == Some("fresh"),
        records_max: record.count("records_max"),
    }
}

/// How to log. The directives are tried here, so that a typing error is known before the start.
pub fn log(root: &Record, problems: &mut Problems<'_>) -> LogOptions {
    let record = root.child("log");
    let filter = record.owned("level").unwrap_or_default();
    if let Err(error) = tracing_subscriber::EnvFilter::try_new(&filter) {
        let what = format!("`level` is \"{filter}\", which is not understood: {error}");
        let remedy =
            "write a level such as \"info\", or directives such as \"info,trueline=debug\"";
        problems.add(record.entry("level").at, what, remedy);
    }
    LogOptions {
        format: match record.text("format") {
            Some("human") => Format::Human,
            Some("json") => Format::Json,
            _ => Format::Auto,
        },
        filter,
    }
}
