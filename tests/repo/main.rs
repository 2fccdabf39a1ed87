//! The repository itself: imports, deployment files, documentation.

mod cycles;
mod deploy;
mod documents;
mod install;
mod layers;
mod path;
mod prometheus;
mod sizes;
mod source;
#[path = "../support/mod.rs"]
mod support;
mod width;
