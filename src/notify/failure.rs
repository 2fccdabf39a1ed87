//! Why a receiver did not accept a notification.

use std::fmt;

/// Why a notification was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It may be accepted later.
    Temporary(String),
    /// It will never be accepted.
    Permanent(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::Temporary(why) | Failure::Permanent(why)) = self;
        f.write_str(why)
    }
}
