//! What happens to a partition, besides its records.

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionEvent {
    /// It has nothing more to read for now: it no longer holds others back.
    Ended,
    /// Its log has grown since its end was reached: it holds others back until it is read.
    Grown,
    /// It holds nobody back until its next record, though it was not read to its end.
    LeftOut,
    /// Its next record has this offset, though a later one was read.
    Rewound(i64),
    /// It is no longer read here.
    Revoked,
}

impl PartitionEvent {
    /// Whether others do not wait for the partition from now on, though it is still read here.
    pub fn lets_others_go(self) -> bool {
        matches!(self, PartitionEvent::Ended | PartitionEvent::LeftOut)
    }
}
