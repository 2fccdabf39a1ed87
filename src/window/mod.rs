//! Floor 1: event time. Which panes there are, and what each window keeps of them.
//!
//! [`width`] says what windows a stream has and how they are cut; [`pack`] keeps a sealed pane in few
//! [`bits`] (of weighted events in more: [`weighted`]), and beside it how many predictions had no outcome
//! ([`unlabelled`]); [`ring`] holds the panes of all windows of a stream, and [`place`] puts panes into them that
//! come after their time. [`sparse`] has the windows of vector views, whose panes are [`held`].

pub mod bits;
pub mod held;
pub mod pack;
pub mod place;
pub mod ring;
pub mod sparse;
pub mod unlabelled;
mod weighted;
pub mod width;

pub use pack::{PackError, Packed};
pub use ring::{Correction, Pane, Ring, Windows};
pub use unlabelled::{COVERAGE_CELLS, Unlabelled};
pub use width::{Ladder, LadderError, Width, WindowSpec};
