//! Layer 1: alerts as such, without what raised them or who is notified.
//!
//! [`machine`] is the life of an alert, one total function; [`matcher`] says which alerts are
//! meant, by their labels; [`silences`] holds silences and acknowledgements.

pub mod machine;
pub mod matcher;
pub mod silences;

pub use machine::{Alert, AlertState, Condition, Holds, RESOLVED_MS, Severity};
pub use matcher::{Labels, Matcher};
pub use silences::{Ack, Deployment, Silence, SilenceError, Silences};
