//! When a process started, as the other processes of its group see it.
//!
//! A consumer carries the start of its process in its client id, `trueline-MS-NONCE`: the
//! wall-clock time and a number that distinguishes two starts in the same millisecond. Its commits
//! carry the same in their metadata. So all processes see the same order, whatever their clocks
//! say, and exactly one of two processes is the later one. A client id that `[kafka.options]` sets
//! carries no start.

use crate::report::moment::YEAR_10000_MS;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// What a client id with a start begins with.
const PREFIX: &str = "trueline-";

/// When a process started, in an order that all processes of a group agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessStart {
    /// Milliseconds since 1970 by the clock of its machine.
    pub at_ms: u64,
    /// Distinguishes starts in the same millisecond.
    pub nonce: u32,
}

impl ProcessStart {
    /// The start of this process.
    pub fn of_this_process() -> ProcessStart {
        static START: OnceLock<ProcessStart> = OnceLock::new();
        *START.get_or_init(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            ProcessStart {
                at_ms: now.map_or(0, |now| now.as_millis() as u64),
                nonce: RandomState::new().build_hasher().finish() as u32,
            }
        })
    }

    /// The client id that carries it.
    pub fn client_id(self) -> String {
        format!("{PREFIX}{}-{:08x}", self.at_ms, self.nonce)
    }

    /// The start that a client id carries, if any.
    pub fn of_client(id: &str) -> Option<ProcessStart> {
        let (at_ms, nonce) = id.strip_prefix(PREFIX)?.split_once('-')?;
        Some(ProcessStart {
            at_ms: at_ms
                .parse()
                .ok()
                .filter(|ms| *ms < YEAR_10000_MS.unsigned_abs())?,
            nonce: u32::from_str_radix(nonce, 16).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_what_its_client_id_says() {
        let ours = ProcessStart::of_this_process();
        assert_eq!(ours, ProcessStart::of_this_process());
        assert_eq!(ProcessStart::of_client(&ours.client_id()), Some(ours));
        for foreign in [
            "trueline",
            "trueline-",
            "trueline-x-1",
            "rdkafka",
            "trueline-1-zz",
            "trueline-253402300800000-1",
        ] {
            assert_eq!(ProcessStart::of_client(foreign), None, "{foreign}");
        }
    }
}
