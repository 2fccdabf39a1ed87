//! From the records of a source to the engine.

pub mod schema_queue;
pub mod source;
