//! What a joiner writes to its journal besides records, and the journal for a snapshot.

use super::Joiner;
use crate::collect::join::journal::{JournalDelta, JournalMark};
use crate::collect::join::operation::Op;
use crate::collect::join::waiting::ANY_MODEL;

impl Joiner {
    /// Takes what the journal wrote since the last call, and releases segments that are older than
    /// everything held. `floor_of` says before when nothing of a model is retained; for `None`, of
    /// all models for which an outcome that names none waits.
    pub fn take_journal(
        &mut self,
        join: u16,
        partition: i32,
        floor_of: impl Fn(Option<u16>) -> i64,
    ) -> Vec<JournalDelta> {
        let deltas = self.journal.take(join, partition);
        let named = |model: u16| (model != ANY_MODEL).then_some(model);
        let waiting = self.waiting.models().into_iter().map(named);
        let retained = self.predictions.models().into_iter().map(Some);
        let floors = waiting.chain(retained).map(floor_of);
        self.journal.release(floors.min().unwrap_or(i64::MAX));
        deltas
    }

    /// The marks of the journal, for a snapshot.
    pub fn marks(&self) -> Vec<JournalMark> {
        self.journal.marks()
    }

    /// Records in the journal that nothing of a model is retained, because its views or cells
    /// changed: later records under its number are separate from those in the journal.
    pub fn drop_model(&mut self, model: u16) {
        self.journal.write(&Op::DropModel { model }, i64::MIN);
        self.waiting.forget_model(model);
    }

    /// Records in the journal that nothing of a stream is retained, because it has expired: later
    /// records in its slot may be of another stream.
    pub fn end_stream(&mut self, slot: u32) {
        self.journal.write(&Op::EndStream { slot }, i64::MIN);
    }
}
