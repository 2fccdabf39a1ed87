//! What a source has counted, of what tells whether its records are usable.

use crate::collect::Reason;
use crate::telemetry::facts::SourceFacts;

/// Counts that only grow.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub read: u64,
    /// Without tombstones.
    pub rejected: u64,
    pub late: u64,
    pub matched: u64,
    pub orphaned: u64,
    pub expired: u64,
    pub implied: u64,
}

impl Totals {
    /// Those of a source.
    pub fn of(source: &SourceFacts) -> Totals {
        let c = &source.counters;
        Totals {
            read: c.records,
            rejected: c.rejected.iter().sum::<u64>() - c.rejected(Reason::Tombstone),
            late: c.late,
            matched: c.matched,
            orphaned: c.orphaned,
            expired: c.expired,
            implied: c.implied,
        }
    }

    /// What was counted since `before`. Partitions that left take their counts along.
    pub fn since(self, before: Totals) -> Totals {
        Totals {
            read: self.read.saturating_sub(before.read),
            rejected: self.rejected.saturating_sub(before.rejected),
            late: self.late.saturating_sub(before.late),
            matched: self.matched.saturating_sub(before.matched),
            orphaned: self.orphaned.saturating_sub(before.orphaned),
            expired: self.expired.saturating_sub(before.expired),
            implied: self.implied.saturating_sub(before.implied),
        }
    }

    /// Predictions without an outcome: those that expired, and those whose outcome was implied.
    pub fn given_up(self) -> u64 {
        self.expired + self.implied
    }
}
