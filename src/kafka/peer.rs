//! Another process in a consumer group.

use super::process_start::ProcessStart;
use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

/// Another process in the group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its address as the broker sees it, if reported.
    pub host: Option<String>,
    /// When it started; `None` if unknown.
    pub start: Option<ProcessStart>,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a process")?;
        if let Some(host) = &self.host {
            write!(f, " at {host}")?;
        }
        match self.start {
            None => write!(f, " of unknown start"),
            Some(start) => {
                let at = UNIX_EPOCH + Duration::from_millis(start.at_ms);
                let at = humantime::format_rfc3339_seconds(at);
                write!(f, " that started at {at}")
            }
        }
    }
}
