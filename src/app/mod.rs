//! Floor 5: wiring.

pub mod engine;
