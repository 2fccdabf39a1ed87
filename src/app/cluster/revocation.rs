//! Giving partitions up within a rebalance: how long that may take, and what became known
//! meanwhile.
//!
//! Each partition waits for its last checkpoint, and all that one rebalance takes share half a
//! session: if it took longer, the group would have removed this process first.

use crate::app::outputs::snapshots::Written;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Longest wait for last checkpoints, where sessions are long.
const REVOKE_MAX: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct Revocation {
    until: Option<Instant>,
    /// What became of batches that were waited for on the way, oldest first.
    results: VecDeque<Written>,
}

impl Revocation {
    /// A rebalance takes partitions from now on.
    pub(super) fn begin(&mut self, session: Duration) {
        self.until = Some(Instant::now() + REVOKE_MAX.min(session / 2));
    }

    /// How long the partitions that it takes may still wait.
    pub(super) fn left(&self) -> Duration {
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        self.until.map_or(Duration::ZERO, left)
    }

    /// Keeps what became of a batch for whoever asks next.
    pub(super) fn keep(&mut self, written: Option<Written>) {
        self.results.extend(written);
    }

    /// What became of a batch, once.
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
