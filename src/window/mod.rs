//! Floor 1: event time. Which panes there are, which are sealed, and what each window keeps of them.
//!
//! [`width`] says what windows a stream has and how they are cut.

pub mod width;

pub use width::{Ladder, LadderError, Width, WindowSpec};
