//! A joiner from its journal: the operations done again in order, and what another configuration makes of them.

use super::cohort::RowLayout;
use super::joiner::{ANY, Joiner, NewPrediction};
use super::journal::{Journal, JournalError, JournalMark, Op, Reader, Views};
use crate::stats::fixed::Score;

impl Joiner {
    /// The joiner that wrote these segments. `kept` says of each model what is kept of its predictions; panes
    /// before `floor_of` a model are no longer held, those before `line_of` it, or of all models for
    /// `None`, are mature; `due_of` says up to when outcomes of a model's pane are on time.
    pub fn restore<'s>(
        segments: impl IntoIterator<Item = (&'s JournalMark, &'s [u8])>,
        kept: &[RowLayout],
        line_of: impl Fn(Option<u16>) -> i64,
        floor_of: impl Fn(u16) -> i64,
        due_of: impl Fn(u16, i64) -> i64,
    ) -> Result<Joiner, JournalError> {
        let mut joiner = Joiner::default();
        let mut marks = Vec::new();
        for (mark, bytes) in segments {
            marks.push(*mark);
            let mut reader = Reader::new(bytes, mark)?;
            while let Some(op) = reader.next()? {
                joiner.redo(op, kept, &floor_of, &due_of)?;
            }
        }
        joiner.resume(&marks, line_of);
        Ok(joiner)
    }

    /// After everything was [done again](Joiner::redo): goes on behind the marks.
    pub(super) fn resume(&mut self, marks: &[JournalMark], line_of: impl Fn(Option<u16>) -> i64) {
        self.index.shrink_all();
        for cohort in self.index.cohorts_mut() {
            if cohort.start_ms < line_of(Some(cohort.model)) {
                cohort.matured = true;
                self.pending -= cohort.live();
                self.matured += cohort.live();
            }
        }
        let panes: Vec<_> = self.spilled.all().map(|(at, _)| at).collect();
        for at in panes {
            if at.1 < line_of(Some(at.0)) {
                let live = self.spilled.mature(at);
                self.pending -= live;
                self.matured += live;
            }
        }
        self.orphan(line_of);
        self.journal = Journal::resume(marks);
    }

    /// Does one operation of a journal again.
    pub(super) fn redo(
        &mut self,
        op: Op<'_>,
        kept: &[RowLayout],
        floor_of: impl Fn(u16) -> i64,
        due_of: impl Fn(u16, i64) -> i64,
    ) -> Result<(), JournalError> {
        match op {
            Op::Predict {
                model,
                start_ms,
                offset_ms,
                subject,
                key,
                views,
                whole,
            } => {
                if start_ms < floor_of(model) {
                    // Mature and gone, and so is a later one that it took the place of.
                    self.take_out(key);
                    return Ok(());
                }
                let Views::Written(views) = views else {
                    return Err(JournalError::Corrupt);
                };
                let views: Result<Vec<_>, _> = views.chunks_exact(12).map(view_of).collect();
                let mut views = views?;
                let mut at = (0, 0);
                if let Some(kept) = kept.get(usize::from(model)) {
                    kept.fit(&mut views, usize::from(whole));
                    at = kept.full_vector();
                }
                let e = NewPrediction {
                    key,
                    model,
                    subject,
                    start_ms,
                    time_ms: start_ms + i64::from(offset_ms),
                    due_ms: due_of(model, start_ms),
                    views: &views,
                    full_vector: at,
                    classes: 0,
                };
                let outcome = self.take_out(key);
                self.put(&e, outcome);
            }
            Op::Outcome {
                model,
                start_ms,
                key,
                class,
                time_ms,
            } => {
                if start_ms >= floor_of(model)
                    && let Some(at) = self.find(key)
                    && let Some(cohort) = self.index.cohort_mut(at.cohort)
                {
                    cohort.set_outcome(at.row, time_ms, class);
                    self.owe(key, time_ms);
                }
            }
            Op::Wait {
                key,
                class,
                time_ms,
                model,
            } => {
                self.keep_waiting(key, model, time_ms, class);
            }
            Op::Forget { key } => {
                self.take_waiting(key);
            }
            Op::Drop { model } => {
                self.evict_model(model);
                self.unname(model);
            }
        }
        Ok(())
    }

    /// Writes down that nothing is held of a model, whose views or cells are others than those of what the journal
    /// has of it: what comes later under its number is not to be taken for that, nor that for it.
    pub fn drop_model(&mut self, model: u16) {
        self.journal.write(&Op::Drop { model }, i64::MIN);
        self.unname(model);
    }

    /// Outcomes that wait and named a model whose number means another now, or none, wait for any.
    fn unname(&mut self, model: u16) {
        let waiting = self.waiting.values_mut();
        waiting
            .filter(|w| w.model == model)
            .for_each(|w| w.model = ANY);
    }

    /// Lets go of all predictions of a model, none of which is matured.
    fn evict_model(&mut self, model: u16) {
        let mine: Vec<(i64, u32)> = self.index.before(model, i64::MAX).collect();
        for (_, at) in mine {
            let gone = self.index.drop_cohort(at);
            self.pending -= gone.map_or(0, |c| c.live());
        }
        let there: Vec<i64> = self.spilled.panes(model, i64::MAX).map(|p| p.0).collect();
        for start_ms in there {
            self.pending -= self.spilled.visit((model, start_ms), false, |_| ());
        }
    }
}

fn view_of(bytes: &[u8]) -> Result<(Score, u32), JournalError> {
    let (z, k) = bytes.split_at_checked(8).ok_or(JournalError::Corrupt)?;
    let z = z.try_into().map_err(|_| JournalError::Corrupt)?;
    let k = k.try_into().map_err(|_| JournalError::Corrupt)?;
    let z = Score::new(f64::from_le_bytes(z)).map_err(|_| JournalError::Corrupt)?;
    Ok((z, u32::from_le_bytes(k)))
}
