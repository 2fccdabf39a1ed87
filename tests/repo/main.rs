//! The repository itself: imports, deployment files, documentation.

mod deploy;
mod documents;
mod floors;
mod install;
mod prometheus;
#[path = "../support/mod.rs"]
mod support;
