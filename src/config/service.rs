//! `[http]`, `[state]` and `[log]`: the process around the engine.

use std::path::Path;

use tracing_subscriber::filter::LevelFilter;

use crate::telemetry::log::LogOptions;

use super::document::Record;
use super::problem::Problems;
use super::value::{Value, nearest};
use super::{EventOptions, HttpOptions, StateOptions, Verdicts};
use crate::http::AccessOptions;
use crate::store::event_log::{LogLimits, REQUEST_BYTES_MAX};

/// Address and limits of the HTTP server.
pub fn http(root: &Record, problems: &mut Problems<'_>) -> HttpOptions {
    let record = root.child("http");
    for host in record.list("hosts") {
        if let Some((what, remedy)) = no_host(&host.value) {
            problems.add(host.at, what, remedy);
        }
    }
    let listen = match record.entry("listen").value {
        Value::Address(address) => address,
        _ => ([127, 0, 0, 1], 9464).into(),
    };
    HttpOptions {
        listen,
        series_max: root.child("limits").count("series_max"),
        cell_streams_max: root.child("limits").count("cell_series_streams"),
        access: AccessOptions {
            hosts: record.strings("hosts"),
            token: record.owned("token"),
            event_bytes_max: record.child("http.events").bytes("request_bytes_max"),
        },
    }
}

/// Why no request can have this host name, and what to write instead. Requests are compared with
/// the name alone, without their port.
fn no_host(host: &str) -> Option<(String, String)> {
    let what = |why: &str| format!("`hosts` has `{host}`, which {why}");
    if host.contains('*') {
        let remedy = "write each name by itself, such as \"trueline.example.com\"";
        return Some((
            what("is a pattern, and only whole names match"),
            remedy.to_owned(),
        ));
    }
    let name = host.trim();
    let name = name.split_once("://").map_or(name, |(_, rest)| rest);
    let name = name.split('/').next().unwrap_or(name);
    // In an IPv6 address, a colon does not precede a port.
    let name = match name.split_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => name,
    };
    let name = name.trim_end_matches('.');
    (name != host).then(|| {
        let remedy = match name {
            "" => "write a name, such as \"trueline.example.com\"".to_owned(),
            name => format!("write the name alone: \"{name}\""),
        };
        (what("is more than a name"), remedy)
    })
}

/// Limits of posted events.
pub fn events(root: &Record, problems: &mut Problems<'_>) -> EventOptions {
    let record = root.child("http").child("http.events");
    let options = EventOptions {
        limits: LogLimits {
            bytes_max: record.bytes("bytes_max") as u64,
            keep_ms: record.milliseconds("keep"),
        },
        request_bytes_max: record.bytes("request_bytes_max"),
    };
    if options.request_bytes_max > REQUEST_BYTES_MAX {
        let mib = REQUEST_BYTES_MAX >> 20;
        let what =
            format!("`request_bytes_max` is over {mib}MiB: the log cannot store so much at once");
        let remedy = format!("write \"{mib}MiB\" or less, and send fewer events in a request");
        problems.add(record.entry("request_bytes_max").at, what, remedy);
        return options;
    }
    // A segment is a sixteenth of a full log, and a request must fit into one segment.
    let least = 16 * options.request_bytes_max as u64;
    if options.limits.bytes_max < least {
        let what =
            "`bytes_max` is under sixteen times `request_bytes_max`: a few requests fill the log";
        let remedy = format!("write at least {least} bytes, or a smaller `request_bytes_max`");
        problems.add(record.entry("bytes_max").at, what, remedy);
    }
    options
}

/// Options of snapshots and the state topic.
pub fn state(root: &Record, problems: &mut Problems<'_>) -> StateOptions {
    let record = root.child("state");
    let interval_ms = record.milliseconds("interval");
    if interval_ms < 1000 {
        let at = record.entry("interval").at;
        let what = "`interval` is under a second: writing snapshots would be all the work";
        problems.add(at, what, "write \"1s\" or more");
    }
    let verdicts = verdicts(record, interval_ms, problems);
    let judge_partitions = record.integer("judge_partitions");
    if judge_partitions.is_some() && verdicts == Verdicts::Own {
        problems.add(
            record.entry("judge_partitions").at,
            "`judge_partitions` spreads what other processes judge, and `verdicts` is \"own\"",
            "write `verdicts = \"none\"` for processes that count and `verdicts = \"all\"` for those that judge, or \
             remove `judge_partitions`",
        );
    }
    StateOptions {
        verdicts,
        judge_partitions: judge_partitions.and_then(|n| i32::try_from(n).ok()),
        missing_after_ms: record.milliseconds("missing_after"),
        directory: record.path("directory").unwrap_or(Path::new("")).to_owned(),
        interval_ms,
        topic: record.owned("topic"),
        namespace: root.child("kafka").owned("group").unwrap_or_default(),
        restore_within_ms: record.milliseconds("restore_within"),
        fresh: record.text("on_broken") == Some("fresh"),
        records_max: record.count("records_max"),
    }
}

/// Which process judges, checked against the other keys.
fn verdicts(record: &Record, interval_ms: i64, problems: &mut Problems<'_>) -> Verdicts {
    let verdicts = record.word("verdicts").unwrap_or_default();
    if verdicts != Verdicts::Own && record.text("topic").is_none() {
        problems.add(
            record.entry("verdicts").at,
            "`verdicts` of other processes' events, or by another process, go through the topic of state, and there is \
             none",
            "name a `topic` in [state], the same for all processes, or remove `verdicts`",
        );
    }
    if verdicts == Verdicts::All && record.milliseconds("missing_after") < 2 * interval_ms {
        let what =
            "`missing_after` is less than twice the `interval` at which checkpoints are written";
        let remedy = "write a longer time: after it verdicts continue without a partition";
        problems.add(record.entry("missing_after").at, what, remedy);
    }
    verdicts
}

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// A word of a filter that was meant as a level but is not one: the filter would take it for a
/// module. `None` if another directive is a level or for this program. Filters of spans are not
/// checked.
fn no_level(filter: &str) -> Option<&str> {
    let is_ours = |word: &str| word.starts_with("trueline") || word.parse::<LevelFilter>().is_ok();
    let words = || filter.split(',').map(str::trim);
    if filter.contains('[') || words().any(is_ours) {
        return None;
    }
    words().find(|word| !word.contains('='))
}

/// Logging options. The directives are parsed here, so that an error is reported before the start.
pub fn log(root: &Record, problems: &mut Problems<'_>) -> LogOptions {
    let record = root.child("log");
    let filter = record.owned("level").unwrap_or_default();
    if let Err(error) = tracing_subscriber::EnvFilter::try_new(&filter) {
        let what = format!("`level` is \"{filter}\", which is not understood: {error}");
        let remedy =
            "write a level such as \"info\", or directives such as \"info,trueline=debug\"";
        problems.add(record.entry("level").at, what, remedy);
    } else if let Some(word) = no_level(&filter) {
        let what =
            format!("`{word}` in `level` is no level, and this program would log nothing by it");
        let remedy = match nearest(word, LEVELS.into_iter()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "write one of {}, or `{word}=debug` for a target",
                LEVELS.join(", ")
            ),
        };
        problems.add(record.entry("level").at, what, remedy);
    }
    LogOptions {
        format: record.word("format").unwrap_or_default(),
        filter,
    }
}

#[cfg(test)]
mod tests {
    use super::{no_host, no_level};

    #[test]
    fn a_host_that_no_request_can_be_for_is_found_with_the_name_to_write() {
        for (host, name) in [
            ("https://a.example.com", "a.example.com"),
            ("http://a.example.com:9464/alerts", "a.example.com"),
            ("a.example.com:443", "a.example.com"),
            ("a.example.com.", "a.example.com"),
            (" a.example.com", "a.example.com"),
        ] {
            let (_, remedy) = no_host(host).expect(host);
            assert_eq!(
                remedy,
                format!("write the name alone: \"{name}\""),
                "{host}"
            );
        }
        for host in ["*.example.com", "*", "https://", ":443"] {
            let (_, remedy) = no_host(host).expect(host);
            assert!(remedy.ends_with("\"trueline.example.com\""), "{remedy}");
        }
        for host in [
            "a.example.com",
            "A.example.com",
            "trueline",
            "10.0.0.1",
            "::1",
            "[::1]",
        ] {
            assert_eq!(no_host(host), None, "{host}");
        }
    }

    #[test]
    fn a_filter_by_which_nothing_is_logged_is_found_and_others_are_not() {
        for filter in ["inof", "verbose", "hyper=debug,inof"] {
            let word = filter.rsplit(',').next();
            assert_eq!(no_level(filter), word, "{filter}");
        }
        for filter in [
            "info",
            "warn,hyper",
            "trueline=debug, verbose",
            "[span{a,b}]=debug",
        ] {
            assert_eq!(no_level(filter), None, "{filter}");
        }
    }
}
