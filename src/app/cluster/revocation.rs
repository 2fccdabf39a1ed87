//! Giving partitions up within a rebalance: how long that may take, and what became known
//! meanwhile.
//!
//! Each partition waits for its last checkpoint, and all partitions that one rebalance revokes
//! share half a session: after a longer wait, the group would already have removed this process.

use crate::app::outputs::snapshots::Written;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Longest wait for last checkpoints, however long the session is.
const REVOKE_MAX: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct Revocation {
    until: Option<Instant>,
    /// Results of batches that were waited for during the revocation, oldest first.
    results: VecDeque<Written>,
}

impl Revocation {
    /// Begins a rebalance that revokes partitions.
    pub(super) fn begin(&mut self, session: Duration) {
        self.until = Some(Instant::now() + REVOKE_MAX.min(session / 2));
    }

    /// How long the revoked partitions may still wait.
    pub(super) fn left(&self) -> Duration {
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        self.until.map_or(Duration::ZERO, left)
    }

    /// Keeps the result of a batch until it is next taken.
    pub(super) fn keep(&mut self, written: Option<Written>) {
        self.results.extend(written);
    }

    /// Returns the oldest kept result, once.
    pub(super) fn take(&mut self) -> Option<Written> {
        self.results.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_partitions_of_a_rebalance_share_half_a_session_or_less() {
        let mut revocation = Revocation::default();
        for (session, most) in [(6, 3), (45, 10)] {
            revocation.begin(Duration::from_secs(session));
            let (first, most) = (revocation.left(), Duration::from_secs(most));
            assert!(first <= most && first + Duration::from_secs(1) > most);
            std::thread::sleep(Duration::from_millis(2));
            assert!(revocation.left() < first);
        }
        revocation.begin(Duration::ZERO);
        assert_eq!(revocation.left(), Duration::ZERO);
    }
}
