//! Outcomes that wait: their prediction has not come, or was due before them.
//!
//! A map holds the outcomes by key. Beside it a queue holds the keys in steps of event time, so
//! that [`WaitingOutcomes::orphan`] visits only outcomes that are old enough. A key stays in the
//! queue after its outcome leaves the map; the queue is rebuilt when it holds more than twice as
//! many keys as the map has outcomes.

use super::key::{ByKey, Key};
use std::collections::BTreeMap;

/// Event time of the outcomes in one step of the queue.
const STEP_MS: i64 = 4096;

/// Keys in the queue, beyond twice the number of outcomes, at which it is rebuilt.
const REBUILD_AT: usize = 1024;

/// Model of an outcome that names none.
pub(super) const ANY_MODEL: u16 = u16::MAX;

/// An outcome that waits.
#[derive(Debug, Clone, Copy)]
pub(in crate::collect) struct WaitingOutcome {
    pub time_ms: i64,
    pub class: u32,
    /// The model that it names, or [`ANY_MODEL`].
    pub model: u16,
}

/// The waiting outcomes of one joiner.
#[derive(Debug, Default)]
pub(super) struct WaitingOutcomes {
    outcomes: ByKey<WaitingOutcome>,
    queue: BTreeMap<i64, Vec<Key>>,
    /// Keys in the queue.
    queued: usize,
}

impl WaitingOutcomes {
    pub fn len(&self) -> usize {
        self.outcomes.len()
    }

    /// Keys of all, in no order.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        self.outcomes.keys().copied()
    }

    /// Keys of all with their times, in no order.
    pub fn times(&self) -> impl Iterator<Item = (Key, i64)> {
        self.outcomes
            .iter()
            .map(|(key, outcome)| (*key, outcome.time_ms))
    }

    pub fn contains(&self, key: Key) -> bool {
        self.outcomes.contains_key(&key)
    }

    pub fn get(&self, key: Key) -> Option<WaitingOutcome> {
        self.outcomes.get(&key).copied()
    }

    /// Adds an outcome, in place of another of the same key.
    pub fn insert(&mut self, key: Key, outcome: WaitingOutcome) {
        self.outcomes.insert(key, outcome);
        self.enqueue(key, outcome.time_ms);
        if self.queued > 2 * self.outcomes.len() + REBUILD_AT {
            self.rebuild_queue();
        }
    }

    /// Removes an outcome; its key stays in the queue until that is rebuilt.
    pub fn remove(&mut self, key: Key) -> Option<WaitingOutcome> {
        let outcome = self.outcomes.remove(&key);
        if self.outcomes.is_empty() {
            self.queue.clear();
            self.queued = 0;
        }
        outcome
    }

    /// Removes the outcomes that happened before the panes that are still open; returns how many.
    /// `sealed_until` says for a model, or over all models for `None`, up to where panes are
    /// mature.
    pub fn orphan(&mut self, sealed_until: impl Fn(Option<u16>) -> i64) -> usize {
        let before = self.outcomes.len();
        let limit = |m: u16| (m, sealed_until((m != ANY_MODEL).then_some(m)));
        let limits: BTreeMap<u16, i64> = self.models().into_iter().map(limit).collect();
        let Some(newest) = limits.values().max().copied() else {
            return 0;
        };
        let steps = ..=newest.div_euclid(STEP_MS);
        for (_, keys) in self.queue.range_mut(steps) {
            self.queued -= keys.len();
            keys.retain(|key| {
                let Some(outcome) = self.outcomes.get(key) else {
                    return false;
                };
                let limit = limits.get(&outcome.model);
                let orphaned = limit.is_some_and(|limit| outcome.time_ms < *limit);
                if orphaned {
                    self.outcomes.remove(key);
                }
                !orphaned
            });
            self.queued += keys.len();
        }
        self.queue.retain(|_, keys| !keys.is_empty());
        before - self.outcomes.len()
    }

    /// Outcomes that name `model` wait for any model from now on: its number means another model
    /// now.
    pub fn forget_model(&mut self, model: u16) {
        for outcome in self.outcomes.values_mut() {
            if outcome.model == model {
                outcome.model = ANY_MODEL;
            }
        }
    }

    /// Heap bytes.
    pub fn bytes(&self) -> usize {
        // A hash map entry with its control byte, at three quarters full.
        let outcome = (size_of::<(Key, WaitingOutcome)>() + 1) * 4 / 3;
        self.outcomes.capacity() * outcome + self.queued * size_of::<Key>()
    }

    /// The models that outcomes name; few, because a source carries few models.
    fn models(&self) -> Vec<u16> {
        let mut models = Vec::new();
        for outcome in self.outcomes.values() {
            if !models.contains(&outcome.model) {
                models.push(outcome.model);
            }
        }
        models
    }

    fn enqueue(&mut self, key: Key, time_ms: i64) {
        let step = time_ms.div_euclid(STEP_MS);
        self.queue.entry(step).or_default().push(key);
        self.queued += 1;
    }

    #[cold]
    fn rebuild_queue(&mut self) {
        self.queue.clear();
        self.queued = 0;
        let times: Vec<(Key, i64)> = self.times().collect();
        for (key, time_ms) in times {
            self.enqueue(key, time_ms);
        }
    }
}
