//! Floor 1: alerts as such, free of what raised them and of who is told.
//!
//! [`machine`] is the life of an alert, one total function; [`matcher`] says which alerts are meant, by
//! their labels; [`book`] is what people said about alerts: silences and acknowledgements.

pub mod book;
pub mod machine;
pub mod matcher;

pub use book::{Ack, Book, BookError, Silence};
pub use machine::{Alert, AlertState, Condition, Holds, RESOLVED_MS, Severity};
pub use matcher::{Labels, Matcher};
