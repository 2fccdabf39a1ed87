//! Layer 2: the first stage, from decoded events to the sums of sealed panes.
//!
//! The [`collector`] is the stage itself, with a file below it for each thing that it does besides
//! taking events into panes. In reading order:
//!
//! | file | holds |
//! |---|---|
//! | [`event`] | what comes in, and how each record ends |
//! | [`key`] | the names of a stream |
//! | [`counters`] | how many records ended in each way |
//! | [`shape`] | what the stage knows of a model, and how it reads an event by it |
//! | `caps` | bounds on memory and time |
//! | [`partition`] | offsets and event time of source partitions: the frontier |
//! | [`segment`] | which segments a version keeps, and what they are called |
//! | [`stream`] | one segment of one version with its open panes |
//! | [`vector_panes`] | the open panes of one vector view |
//! | [`streams`] | which streams there may be, and the table that is searched by their names |
//! | [`last_seen`] | when a stream was last seen |
//! | [`join`] | predictions that wait for their outcomes; `amend`: what late outcomes change |
//! | [`seen_ids`], [`deduplication`] | records that are delivered twice |
//! | [`pairing`] | ids that two versions have scored |
//! | [`rank()`] | which events are in samples |
//! | [`tap`] | pairs of prediction and outcome, shown as they form |

mod amend;
mod caps;
pub mod collector;
pub mod counters;
pub mod deduplication;
pub mod event;
pub mod join;
pub mod key;
pub mod last_seen;
pub mod pairing;
pub mod partition;
mod rank;
pub mod seen_ids;
pub mod segment;
pub mod shape;
pub mod stream;
pub mod streams;
pub mod tap;
pub mod vector_panes;

pub use amend::LateVector;
pub use caps::Caps;
pub use collector::{Collector, MaturedVector};
pub use counters::{Counters, SourceCounters};
pub use deduplication::IdPlan;
pub use event::{
    Disposition, EVENT_TIMES_MS, Event, Origin, OutcomeRecord, PartitionId, Reason, Refusal,
};
pub use key::{Key, Named, Names};
pub use last_seen::LastSeen;
pub use pairing::{PairCounts, PairShape, Pairing, PairingState};
pub use partition::{PartitionState, Partitions};
pub use rank::rank;
pub use segment::{OTHER, ROLL_UP, SegmentKind, Segmenting};
pub use shape::ModelShape;
pub use stream::{PaneDelta, Stream};
pub use streams::{Slots, Streams};
pub use tap::{Pair, Passed, Wanted};
pub use vector_panes::{VectorPanes, VectorPanesState};
