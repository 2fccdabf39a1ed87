//! Floor 2: the first stage, from decoded records to cell sums per stream and pane.
//!
//! [`event`] names what comes in and how each record ends; [`counters`] counts the ends; [`collector`]
//! is the stage itself: [`table`] finds the [`subject`] of an event by its [`key`], whose open panes take
//! it, while [`partition`] follows offsets and event time; [`segments`] says which subjects there may be,
//! and keeps the roll-ups over them; [`tap`] lets people look; [`pairing`] finds the ids that two versions scored. Where outcomes come apart from their predictions, [`join`] holds these until they are mature;
//! late outcomes amend what was counted. [`rank()`] says which events are in samples.

mod amend;
pub mod collector;
pub mod counters;
pub mod event;
pub mod join;
mod joining;
pub mod key;
pub mod pairing;
pub mod partition;
mod rank;
pub mod shape;
pub mod stream;
pub mod streams;
pub mod table;
pub mod tap;
mod tapping;
pub mod vector_panes;

pub use amend::LateVector;
pub use collector::{Bounds, Collector};
pub use counters::{Counters, SourceCounters};
pub use event::{Disposition, Event, Label, Origin, PartitionId, Reason, Refusal};
pub use joining::MaturedVector;
pub use key::{Key, Names};
pub use pairing::{PairCounts, PairShape, Pairing, PairingState};
pub use partition::{PartitionState, Partitions};
pub use rank::rank;
pub use shape::ModelShape;
pub use stream::{PaneDelta, Stream};
pub use streams::{OTHER, Part, ROLL_UP, Segmenting, Streams};
pub use table::{Named, Slots};
pub use tap::Pair;
pub use vector_panes::{VectorPanes, VectorPanesState};
