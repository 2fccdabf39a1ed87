//! Restores a joiner from the segments of its journal.
//!
//! Predictions name their streams by slot. When a stream expires, all its predictions are mature,
//! and a restart restores none of them, unless the watermark was moved back in between. The slot
//! may then be another stream's, so predictions that come in the journal before the end of their
//! stream are removed.

use super::Joiner;
use crate::collect::join::ended_streams::EndedStreams;
use crate::collect::join::events::NewPrediction;
use crate::collect::join::journal::{self, Journal, JournalMark};
use crate::collect::join::operation::{JournalError, Op};
use crate::collect::join::row_layout::RowLayout;
use crate::stats::fixed::Score;

impl Joiner {
    /// The joiner that wrote these segments.
    ///
    /// `layouts` has the layout of each model's predictions. Panes that start before
    /// `retained_from` of their model are evicted. Panes before `sealed_until` of their model are
    /// mature. `due_ms` says up to when outcomes of a model's pane are on time.
    pub fn restore<'s>(
        segments: impl IntoIterator<Item = (&'s JournalMark, &'s [u8])>,
        layouts: &[RowLayout],
        sealed_until: impl Fn(u16) -> i64,
        retained_from: impl Fn(u16) -> i64,
        due_ms: impl Fn(u16, i64) -> i64,
    ) -> Result<Joiner, JournalError> {
        let mut joiner = Joiner::default();
        let mut marks = Vec::new();
        for (mark, bytes) in segments {
            marks.push(*mark);
            journal::replay(bytes, mark, |ops| {
                joiner.apply_all(ops, layouts, &retained_from, &due_ms)
            })?;
        }
        joiner.finish_restore(&marks, sealed_until);
        Ok(joiner)
    }

    /// Applies some operations of a journal, few enough for the caches.
    pub(in super::super) fn apply_all(
        &mut self,
        ops: &[Op<'_>],
        layouts: &[RowLayout],
        retained_from: impl Fn(u16) -> i64,
        due_ms: impl Fn(u16, i64) -> i64,
    ) -> Result<(), JournalError> {
        self.touch_all(ops);
        let (mut ops, mut views) = (ops.iter(), Vec::new());
        ops.try_for_each(|op| self.apply(*op, &mut views, layouts, &retained_from, &due_ms))
    }

    /// Applies one operation; `views` is a buffer.
    fn apply(
        &mut self,
        op: Op<'_>,
        views: &mut Vec<(Score, u32)>,
        layouts: &[RowLayout],
        retained_from: impl Fn(u16) -> i64,
        due_ms: impl Fn(u16, i64) -> i64,
    ) -> Result<(), JournalError> {
        if !matches!(op, Op::EndStream { .. }) {
            self.remove_ended();
        }
        match op {
            Op::Predict(p) if p.start_ms < retained_from(p.model) => {
                // It is evicted, and so is a later prediction that it replaced.
                self.predictions.remove(p.key);
            }
            Op::Predict(p) => {
                p.entries.decode(views)?;
                let layout = layouts.get(usize::from(p.model)).copied();
                if let Some(layout) = layout {
                    layout.convert(views, usize::from(p.full_vector));
                }
                let outcome = self.predictions.remove(p.key);
                let e = NewPrediction {
                    key: p.key,
                    model: p.model,
                    slot: p.slot,
                    start_ms: p.start_ms,
                    time_ms: p.start_ms + i64::from(p.offset_ms),
                    due_ms: due_ms(p.model, p.start_ms),
                    views,
                    full_vector: layout.map_or((0, 0), |l| l.full_vector()),
                    classes: 0,
                };
                // The outcome of a replaced prediction, if it is late for this one, waits only if
                // the journal says so.
                let _ = self.predictions.insert(&e, outcome);
                self.ended.saw(p.slot);
            }
            Op::Outcome(o) => {
                if o.start_ms >= retained_from(o.model)
                    && let Some(at) = self.predictions.find(o.key)
                {
                    self.predictions.set_outcome(at, o.time_ms, o.class);
                }
            }
            Op::Wait { key, outcome } => {
                self.waiting.insert(key, outcome);
            }
            Op::EndWait { key } => {
                self.waiting.remove(key);
            }
            Op::DropModel { model } => {
                self.predictions.evict_model(model);
                self.waiting.forget_model(model);
            }
            Op::EndStream { slot } => self.ended.end(slot),
            Op::Seen(_) => return Err(JournalError::Corrupt),
        }
        Ok(())
    }

    /// Completes a restore once all operations are applied: the journal continues after the marks.
    pub(in super::super) fn finish_restore(
        &mut self,
        marks: &[JournalMark],
        sealed_until: impl Fn(u16) -> i64,
    ) {
        self.remove_ended();
        self.ended = EndedStreams::default();
        self.predictions.finish_restore(sealed_until);
        self.journal = Journal::resume(marks);
    }

    /// Removes the predictions of streams that ended.
    fn remove_ended(&mut self) {
        let ended = self.ended.take();
        if !ended.is_empty() {
            self.predictions.remove_of(|slot| ended.contains(&slot));
        }
    }
}
