//! Subjects whose streams expired, found while a journal is replayed.

use std::collections::BTreeSet;

/// Subjects that ended while a journal is replayed.
#[derive(Debug, Default)]
pub(super) struct EndedSubjects {
    /// By slot: whether predictions were put back that may still be there.
    seen: Vec<bool>,
    /// Those whose predictions are to be removed.
    subjects: BTreeSet<u32>,
}

impl EndedSubjects {
    /// A prediction of this subject was put back.
    pub fn saw(&mut self, subject: u32) {
        let at = subject as usize;
        if at >= self.seen.len() {
            self.seen.resize(at + 1, false);
        }
        self.seen[at] = true;
    }

    /// A subject ended. Mostly nothing of it was put back, and all predictions need no visit.
    pub fn end(&mut self, subject: u32) {
        let seen = self.seen.get_mut(subject as usize);
        if seen.is_some_and(std::mem::take) {
            self.subjects.insert(subject);
        }
    }

    /// The subjects whose predictions are to be removed now.
    pub fn take(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.subjects)
    }
}
