//! Drawings as inline SVG: reliability, and history.

pub mod history;
pub mod reliability;
mod scale;
