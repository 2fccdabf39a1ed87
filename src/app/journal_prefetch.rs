//! Reads the segments of a snapshot's journals on a separate thread, one segment ahead of the
//! engine. So a start with millions of pending predictions uses two cores.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, Scope};

use super::error::AppError;
use super::outputs::state_dir::StateDir;
use crate::collect::join::{JoinState, JournalError};
use crate::monitor::restore::Segment;

/// Join, partition and number of a segment.
type SegmentId = (u16, i32, u64);

/// Receives the segments, in the order of the snapshot.
pub struct JournalPrefetch {
    ready: Receiver<(SegmentId, Result<Vec<u8>, JournalError>)>,
    total: usize,
    taken: Cell<usize>,
}

impl JournalPrefetch {
    /// Starts reading the segments of these states.
    pub fn read<'s>(
        scope: &'s Scope<'s, '_>,
        dir: &'s StateDir,
        states: Vec<JoinState>,
    ) -> Result<JournalPrefetch, AppError> {
        let total = states.iter().map(|state| state.marks.len()).sum();
        // Without a buffer, one segment waits while the engine uses another, so memory holds two.
        let (to, ready) = sync_channel(0);
        let read = move || {
            for state in &states {
                for mark in &state.marks {
                    let segment = dir.segment(state, mark);
                    if to.send((segment_id(state, mark.segment), segment)).is_err() {
                        return;
                    }
                }
            }
        };
        let thread = thread::Builder::new().name("segments".to_owned());
        thread
            .spawn_scoped(scope, read)
            .map_err(AppError::no_thread)?;
        Ok(JournalPrefetch {
            ready,
            total,
            taken: Cell::new(0),
        })
    }

    /// The segment of a mark. Segments must be requested in their order.
    pub fn next(&self, state: &JoinState, mark: usize) -> Segment<'static> {
        let wanted = segment_id(state, state.marks[mark].segment);
        // Skips segments of joins that the plan no longer has.
        for (at, segment) in &self.ready {
            self.taken.set(self.taken.get() + 1);
            if at == wanted {
                return segment.map(Cow::Owned);
            }
        }
        Err(JournalError::Torn)
    }

    /// Percent of the segments that were processed: all taken ones but the last.
    pub fn percent(&self) -> usize {
        100 * self.taken.get().saturating_sub(1) / self.total.max(1)
    }
}

fn segment_id(state: &JoinState, segment: u64) -> SegmentId {
    (state.join, state.partition, segment)
}
