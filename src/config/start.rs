//! Where to start reading: `"earliest"`, `"latest"`, a duration back, or a time.

use super::units::duration;
use super::value::Fault;
use crate::decode;
use crate::kafka::{MissingState, StartAt};

/// Parses a start given on the command line.
pub fn start_at(text: &str) -> Result<StartAt, String> {
    start(text).map_err(|(what, remedy)| format!("{what}; {remedy}"))
}

pub(super) fn start(text: &str) -> Result<StartAt, Fault> {
    let fault = || {
        (
            format!("is \"{text}\", which is no place to start"),
            "write \"earliest\", \"latest\", how far back (\"24h\"), or a time (\"2026-11-21T14:30:00Z\")".to_owned(),
        )
    };
    match text {
        "earliest" => Ok(StartAt::Earliest),
        "latest" => Ok(StartAt::Latest),
        _ => match duration(text) {
            Ok(ms) => Ok(StartAt::Back(ms)),
            Err(_) => decode::parse_time(text)
                .map(StartAt::Time)
                .ok_or_else(fault),
        },
    }
}

/// Parses what to do without state: one of the words, or a start.
pub(super) fn missing_state(text: &str) -> Result<MissingState, Fault> {
    match text {
        "stop" => Ok(MissingState::Stop),
        "committed" => Ok(MissingState::Committed),
        _ => start(text).map(MissingState::Start),
    }
}
