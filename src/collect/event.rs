//! What comes in, an event or an outcome, where it was read, and how its record ends.
//!
//! An [`Event`] borrows everything from the record it was decoded from: nothing is copied on the
//! hot path.
//!
//! Every record, decoded or not, ends in exactly one [`Disposition`]. Each event of a record with
//! several events counts as a record.

use super::key::Names;
use crate::stats::clusters::Bucket;
use crate::stats::view::{Outcome, Prediction, ViewError};
use crate::stats::weight::Weight;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use strum::{AsRefStr, IntoStaticStr, VariantArray};

/// Event times that are accepted, 2000-01-01 to 2100-01-01: later than every way of writing
/// "unknown" (0, −1) and than a clock that was never set, earlier than microseconds mistaken for
/// milliseconds.
pub const EVENT_TIMES_MS: Range<i64> = 946_684_800_000..4_102_444_800_000;

/// A decoded prediction, with its outcome if the record has one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event<'a> {
    /// Name of the model; it is an error to leave it empty (the record is rejected).
    pub model: &'a str,
    /// Version of the model, or "".
    pub version: &'a str,
    /// Values of the segment fields, joined as `k=v,k=v`, or "".
    pub segment: &'a str,
    /// Id of the prediction, for joins and sample splitting; may be empty.
    pub id: &'a [u8],
    /// Event time, milliseconds since the epoch.
    pub time_ms: i64,
    /// When the broker received the record; an event far ahead of that is rejected.
    pub arrival_ms: Option<i64>,
    /// What the model said.
    pub prediction: Prediction<'a>,
    /// What happened, if the record says so.
    pub outcome: Option<Outcome>,
    /// Its weight; models with weighted events require it, others ignore it.
    pub weight: Option<Weight>,
    /// The cluster whose outcomes depend on each other; models with clustered events require it,
    /// others ignore it.
    pub cluster: Option<Bucket>,
}

/// A decoded outcome in a record of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutcomeRecord<'a> {
    /// Name of the model, if ids are unique only within a model.
    pub model: Option<&'a str>,
    /// Id of the prediction; it is an error to leave it empty (the record is rejected).
    pub id: &'a [u8],
    /// Event time of the outcome, milliseconds since the epoch.
    pub time_ms: i64,
    /// When the broker received the record.
    pub arrival_ms: Option<i64>,
    /// What happened.
    pub outcome: Outcome,
}

impl<'a> Event<'a> {
    /// The names of its stream.
    #[inline]
    pub fn names(&self) -> Names<'a> {
        Names::new(self.model, self.version, self.segment)
    }
}

/// A partition of a source topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PartitionId {
    /// Number of the topic, counted over all sources in the order of the configuration.
    pub source: u16,
    /// Number of the partition in its topic.
    pub partition: i32,
}

impl PartitionId {
    /// The record at `offset` of this partition.
    pub fn at(self, offset: i64) -> Origin {
        Origin {
            source: self.source,
            partition: self.partition,
            offset,
        }
    }
}

impl From<(u16, i32)> for PartitionId {
    fn from((source, partition): (u16, i32)) -> PartitionId {
        PartitionId { source, partition }
    }
}

/// Where a record was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Origin {
    /// Number of the topic, as in [`PartitionId`].
    pub source: u16,
    /// Number of the partition in its topic.
    pub partition: i32,
    /// Offset of the record; in a list of positions, the offset of the next record to read.
    pub offset: i64,
}

impl Origin {
    /// The partition of the record.
    pub fn partition_id(self) -> PartitionId {
        PartitionId {
            source: self.source,
            partition: self.partition,
        }
    }
}

/// Why a record is rejected.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum Reason {
    /// Not what the decoder expects: broken JSON, a row with too few fields.
    Malformed,
    /// A field that is needed is not there.
    MissingField,
    /// A score or probability is NaN or infinite.
    ScoreNotFinite,
    /// A score or probability is below 0 or above 1.
    ScoreOutOfRange,
    /// A score or probability is not a number.
    ScoreNotNumber,
    /// The probabilities do not sum to 1.
    VectorSum,
    /// The vector does not have one probability for each class.
    VectorLength,
    /// A class that the model does not have.
    UnknownClass,
    /// The outcome is neither true nor false, nor a class.
    BadOutcome,
    /// A score where the model's views need a vector of probabilities, or the reverse.
    WrongShape,
    /// No model name.
    EmptyKey,
    /// The record, or a name in it, is too large.
    TooLarge,
    /// Event time before 2000, after 2100, or too far ahead of the broker's.
    TimeOutOfRange,
    /// Event time that cannot be read.
    BadTime,
    /// A model that the configuration does not name.
    UnknownModel,
    /// A second outcome of one prediction that says something else, if that is not allowed.
    Contradiction,
    /// The registry has no schema under the record's id, or one that cannot be used.
    UnknownSchema,
    /// The weight is zero, negative, not finite, too large, or too small for its resolution.
    BadWeight,
    /// A Kafka record whose value is null: its key was deleted. It holds nothing, so it does not
    /// speak against its source.
    Tombstone,
}

impl Reason {
    /// All reasons, in the order of their discriminants.
    pub const ALL: &[Reason] = Reason::VARIANTS;

    /// Its name, as in labels, headers and JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// What is wrong and what to do, when the record is not at hand to be quoted.
    pub fn words(self) -> &'static str {
        match self {
            Reason::Malformed => "not a JSON object; write one object a record",
            Reason::MissingField => "the outcome is missing; every record must carry one",
            Reason::ScoreNotFinite => "the score is not finite; send a probability from 0 to 1",
            Reason::ScoreOutOfRange => {
                "the score is outside 0 to 1 (percentages or log-odds?); send a probability"
            }
            Reason::ScoreNotNumber => "the score is not a number; send it without quotes",
            Reason::VectorSum => "the probabilities do not sum to 1; send them after the softmax",
            Reason::VectorLength => {
                "the vector has not one probability for each of the model's `classes`; make them agree"
            }
            Reason::UnknownClass => {
                "the outcome or a view names a class that the vector does not have; see `classes` and `views`"
            }
            Reason::BadOutcome => "the outcome is neither 0 or 1 nor a class; see `fields.outcome`",
            Reason::WrongShape => {
                "the record has a vector and the model no `classes`, or the record has one score and a view needs a \
                 vector; list `classes` in the [[model]], or correct `views`"
            }
            Reason::EmptyKey => "the model's name or the message key is empty; fill it in",
            Reason::TooLarge => "model, version or segment are longer than 512 bytes; shorten them",
            Reason::TimeOutOfRange => {
                "the event time is before 2000, after 2100, or further ahead of the record's own than \
                 `future_max`; check the clock and `time_unit`"
            }
            Reason::BadTime => "the event time cannot be read; see `fields.time` and `time_unit`",
            Reason::UnknownModel => {
                "no [[model]] has this name, and there is none named \"*\"; add one of them"
            }
            Reason::UnknownSchema => {
                "the schema registry does not have the record's schema; register it and see [registry]"
            }
            Reason::BadWeight => {
                "the weight is not above 0 and below 65536, in steps of 1/65536; see `fields.weight`"
            }
            Reason::Tombstone => "the record has no value: its key was deleted, and nothing counts",
            Reason::Contradiction => {
                "another outcome of this prediction came before; send one, or set `repeated`"
            }
        }
    }
}

impl From<ViewError> for Reason {
    fn from(e: ViewError) -> Reason {
        match e {
            ViewError::NotFinite => Reason::ScoreNotFinite,
            ViewError::OutOfRange => Reason::ScoreOutOfRange,
            ViewError::VectorSum => Reason::VectorSum,
            ViewError::VectorLength => Reason::VectorLength,
            ViewError::UnknownClass => Reason::UnknownClass,
            ViewError::Shape => Reason::WrongShape,
        }
    }
}

/// Which cap refused a good record.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum Refusal {
    /// It would have begun a stream above the cap on streams.
    Streams,
    /// It would have opened a pane above the cap on open panes of its stream, or on their bytes
    /// over all streams.
    Panes,
    /// A sum of its cell would overflow.
    Sums,
    /// The cap on waiting predictions, or on waiting outcomes, is reached.
    Pending,
}

impl Refusal {
    /// All refusals, in the order of their discriminants.
    pub const ALL: &[Refusal] = Refusal::VARIANTS;

    /// Its name, as in labels and JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// How a record ended, for now. A pending or waiting record ends later, in one of the states in
/// brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, AsRefStr)]
#[strum(serialize_all = "snake_case")]
pub enum Disposition {
    /// Added to the sums.
    Observed,
    /// A prediction that is not mature (observed, expired, refused).
    Pending,
    /// An outcome whose prediction is pending.
    Matched,
    /// An outcome whose prediction has not come (matched, orphaned, rejected).
    Waiting,
    /// A prediction or outcome that was there already.
    Duplicate,
    /// A prediction with the id of another, and other scores.
    Conflict,
    /// An outcome that corrected the sums of a mature prediction.
    Revised,
    /// Its pane was sealed already.
    Late,
    /// It cannot be used.
    Rejected(Reason),
    /// It is good, but a cap refused it.
    Refused(Refusal),
    /// Its offset is below the position: it was counted in an earlier reading.
    Replayed,
}
