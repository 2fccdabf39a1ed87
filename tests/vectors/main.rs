//! Views of class probabilities and the kernel view, live against offline.

mod configuration;
mod joins;
mod kernel;
#[path = "../support/mod.rs"]
mod support;
mod views;
mod weights;
