//! The repository itself: imports, deployment files, documentation.

mod deploy;
mod floors;
mod prometheus;
#[path = "../support/mod.rs"]
mod support;
