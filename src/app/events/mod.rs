//! Posted events: from a request to the event log, and from there to the engine.
//!
//! ```text
//!  POST /v1/events ─► Intake ─► EventLog ─► LogClient ─► consumer ─► ... like a topic
//!                     checks    (disk)      a group of one
//! ```
//!
//! A source whose `input` is `http` has a log for each of its topics. [`Intake`] checks posted
//! events with the fields of the source, so that a sender learns at once what is wrong, and appends
//! them. [`LogBrokers`] makes the client of a broker that exists on this disk only. All code above
//! it is the code that reads Kafka, from the start of a partition to the commit of its offsets.

mod client;
mod intake;

pub use client::LogBrokers;
pub use intake::Intake;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::app::error::AppError;
use crate::collect::{Origin, Partitions};
use crate::config::{Config, Input};
use crate::store::event_log::{EventLog, FOLDER};

/// The logs by the names of their topics.
pub type EventLogs = BTreeMap<String, Arc<EventLog>>;

/// Opens the logs of all sources that take posted events.
pub fn open(config: &Config, directory: &Path) -> Result<EventLogs, AppError> {
    let mut logs = EventLogs::new();
    let sources = config.sources.iter().filter(|s| s.input == Input::Http);
    for topic in sources.flat_map(|s| &s.kafka.topics) {
        let log = EventLog::open(&directory.join(FOLDER).join(topic), config.events.limits);
        let log = log.map_err(|error| AppError::Unavailable(format!("event log: {error}")))?;
        logs.insert(topic.clone(), Arc::new(log));
    }
    Ok(logs)
}

/// The logs that were read, each with the offset up to which it was read. Logs that were truncated
/// since are left out, because their offsets no longer match. `topics` are the names of the topics
/// by number.
pub fn read_up_to<'a>(
    logs: &'a EventLogs,
    topics: &'a [String],
    partitions: &'a Partitions,
) -> impl Iterator<Item = (&'a EventLog, u64)> {
    let same = |at: &Origin| partitions.truncated_at(at.partition_id()).is_none();
    partitions.positions().filter(same).filter_map(|at| {
        let log = logs.get(topics.get(usize::from(at.source))?)?;
        Some((log.as_ref(), u64::try_from(at.offset).ok()?))
    })
}
