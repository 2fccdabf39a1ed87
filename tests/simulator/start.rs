//! Where reading begins, where records are there already.

use std::time::{Duration, UNIX_EPOCH};

use super::broker::{Entry, Log};
use super::clock::wall_ms;
use super::scenario::BEGIN;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With the first record.
    Earliest,
    /// At the end of the log, where there are records already.
    Latest,
    /// With the first record that is younger than some of those that are there already.
    Time,
}

impl Start {
    /// So many records of a partition are there already.
    pub const OLD: usize = 40;
    const TIME: usize = Start::OLD / 2;

    /// The timestamp of a record that is there already, the `n`th of its partition, at most
    /// [`Start::OLD`].
    pub fn old_ms(n: usize) -> i64 {
        wall_ms(Duration::from_millis(n as u64)) - 5_000
    }

    /// As the configuration has it.
    pub fn setting(self) -> String {
        match self {
            Start::Earliest => "earliest".to_owned(),
            Start::Latest => "latest".to_owned(),
            Start::Time => {
                let since = Duration::from_millis(Start::old_ms(Start::TIME) as u64);
                humantime::format_rfc3339_millis(UNIX_EPOCH + since).to_string()
            }
        }
    }

    /// The first offset that is read of a log.
    pub fn first(self, log: &Log) -> i64 {
        let skipped = |e: &Entry| match self {
            Start::Earliest => false,
            Start::Latest => e.appended < BEGIN,
            Start::Time => e.time_ms < Start::old_ms(Start::TIME),
        };
        log.entries.iter().take_while(|e| skipped(e)).count() as i64
    }
}
