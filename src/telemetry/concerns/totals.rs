//! Counts of a source that show whether its records are usable.

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
    /// The counts of a source.
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

    /// The counts since `before`; none are negative, because partitions that leave take their
    /// counts along.
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

    /// Predictions given up without an outcome: expired ones, and those whose outcome was implied.
    pub fn given_up(self) -> u64 {
        self.expired + self.implied
    }
}
