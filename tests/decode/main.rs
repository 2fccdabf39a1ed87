//! Records in, events out: every format, every fault, and bytes that nobody made on purpose.

mod bad_input;
#[cfg(feature = "columnar")]
mod columns;
mod formats;
mod fuzz;
mod hostile_schemas;
mod json;
mod registry;
#[path = "../support/mod.rs"]
mod support;
