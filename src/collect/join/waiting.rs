//! Outcomes that wait: their prediction has not come, or was due before them.
//!
//! A map holds the outcomes by key. Beside it a queue holds the keys by model, in steps of event
//! time, so that [`WaitingOutcomes::orphan`] visits only outcomes that are old enough. A key stays
//! in the queue after its outcome leaves the map; the queue is rebuilt when it holds more than
//! twice as many keys as the map has outcomes.
//!
//! Always: the key of each outcome is in the queue under the outcome's model and step.

use super::key::{ByKey, Key};
use std::collections::BTreeMap;

/// Event time of the outcomes in one step of the queue.
const STEP_MS: i64 = 4096;

/// Keys in the queue, beyond twice the number of outcomes, at which it is rebuilt.
const REBUILD_AT: usize = 1024;

/// Model of an outcome that names none.
pub(super) const ANY_MODEL: u16 = u16::MAX;

#[derive(Debug, Clone, Copy)]
pub(in crate::collect) struct WaitingOutcome {
    pub time_ms: i64,
    pub class: u32,
    /// The model that it names, or [`ANY_MODEL`].
    pub model: u16,
}

impl WaitingOutcome {
    /// Its place in the queue.
    fn step(&self) -> (u16, i64) {
        (self.model, self.time_ms.div_euclid(STEP_MS))
    }
}

#[derive(Debug, Default)]
pub(super) struct WaitingOutcomes {
    outcomes: ByKey<WaitingOutcome>,
    /// By model and step.
    queue: BTreeMap<(u16, i64), Vec<Key>>,
    /// Keys in the queue.
    queued: usize,
}

impl WaitingOutcomes {
    pub fn len(&self) -> usize {
        self.outcomes.len()
    }

    /// The keys of all outcomes with their times, in no order.
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
        self.enqueue(key, outcome.step());
        if self.queued > 2 * self.outcomes.len() + REBUILD_AT {
            self.rebuild_queue();
        }
    }

    /// Removes an outcome; its key stays in the queue until the queue is rebuilt.
    pub fn remove(&mut self, key: Key) -> Option<WaitingOutcome> {
        let outcome = self.outcomes.remove(&key);
        if self.outcomes.is_empty() {
            self.queue.clear();
            self.queued = 0;
        }
        outcome
    }

    /// Removes the outcomes that happened before the limit of the model that they name, which may
    /// be [`ANY_MODEL`], and shows each of them; returns how many.
    pub fn orphan(
        &mut self,
        limit_of: impl Fn(u16) -> i64,
        mut each: impl FnMut(Key, WaitingOutcome),
    ) -> usize {
        let before = self.outcomes.len();
        for model in self.models() {
            let limit_ms = limit_of(model);
            let last = (model, limit_ms.div_euclid(STEP_MS));
            let due = self.queue.range((model, i64::MIN)..=last);
            let due: Vec<(u16, i64)> = due.map(|(step, _)| *step).collect();
            for step in due {
                self.orphan_step(step, limit_ms, &mut each);
            }
        }
        before - self.outcomes.len()
    }

    fn orphan_step(
        &mut self,
        step: (u16, i64),
        limit_ms: i64,
        each: &mut impl FnMut(Key, WaitingOutcome),
    ) {
        let mut keys = self.queue.remove(&step).unwrap_or_default();
        self.queued -= keys.len();
        keys.retain(|key| {
            // An outcome that replaced another has its own entry in the queue.
            let outcome = self.outcomes.get(key).filter(|o| o.step() == step);
            let Some(outcome) = outcome.copied() else {
                return false;
            };
            let stays = outcome.time_ms >= limit_ms;
            if !stays {
                self.outcomes.remove(key);
                each(*key, outcome);
            }
            stays
        });
        self.queued += keys.len();
        if !keys.is_empty() {
            self.queue.insert(step, keys);
        }
    }

    /// Makes outcomes that name `model` wait for any model: its number means another model now.
    pub fn forget_model(&mut self, model: u16) {
        for outcome in self.outcomes.values_mut() {
            if outcome.model == model {
                outcome.model = ANY_MODEL;
            }
        }
        self.rebuild_queue();
    }

    pub fn bytes(&self) -> usize {
        // A hash map entry with its control byte, at three quarters full.
        let outcome = (size_of::<(Key, WaitingOutcome)>() + 1) * 4 / 3;
        self.outcomes.capacity() * outcome + self.queued * size_of::<Key>()
    }

    /// The models that outcomes name, including [`ANY_MODEL`], and those of keys still in the
    /// queue.
    pub fn models(&self) -> Vec<u16> {
        let (mut all, mut next) = (Vec::new(), Some(0));
        while let Some(from) = next
            && let Some((&(model, _), _)) = self.queue.range((from, i64::MIN)..).next()
        {
            all.push(model);
            next = model.checked_add(1);
        }
        all
    }

    fn enqueue(&mut self, key: Key, step: (u16, i64)) {
        self.queue.entry(step).or_default().push(key);
        self.queued += 1;
    }

    #[cold]
    fn rebuild_queue(&mut self) {
        self.queue.clear();
        self.queued = 0;
        let all: Vec<(Key, (u16, i64))> = (self.outcomes.iter())
            .map(|(key, outcome)| (*key, outcome.step()))
            .collect();
        for (key, step) in all {
            self.enqueue(key, step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(model: u16, time_ms: i64) -> WaitingOutcome {
        WaitingOutcome {
            time_ms,
            class: 1,
            model,
        }
    }

    /// Outcomes of 100 steps of one model, and as many of another.
    fn two_models() -> WaitingOutcomes {
        let mut waiting = WaitingOutcomes::default();
        for i in 0..100 {
            for model in [3, ANY_MODEL] {
                let key = Key([u64::from(model), i as u64]);
                waiting.insert(key, outcome(model, i * STEP_MS));
            }
        }
        waiting
    }

    #[test]
    fn outcomes_end_by_the_limit_of_their_own_model() {
        let mut waiting = two_models();
        let limit = |model| {
            if model == 3 {
                10 * STEP_MS + 1
            } else {
                STEP_MS
            }
        };
        let mut gone = Vec::new();
        let n = waiting.orphan(limit, |_, outcome| {
            gone.push((outcome.model, outcome.time_ms / STEP_MS));
        });
        assert_eq!(n, 12);
        let expected = (0..=10).map(|i| (3, i)).chain([(ANY_MODEL, 0)]);
        assert_eq!(gone, expected.collect::<Vec<_>>());
        assert_eq!((waiting.len(), waiting.queued), (188, 188));
        assert_eq!(waiting.models(), [3, ANY_MODEL]);
        assert_eq!(waiting.orphan(|_| i64::MIN, |_, _| ()), 0);
        assert_eq!(waiting.orphan(|_| i64::MAX, |_, _| ()), 188);
        assert!(waiting.queue.is_empty() && waiting.models().is_empty());
    }

    #[test]
    fn an_outcome_that_took_the_place_of_another_ends_by_its_own_time_and_model() {
        let mut waiting = WaitingOutcomes::default();
        let key = Key([1, 2]);
        waiting.insert(key, outcome(3, 0));
        waiting.insert(key, outcome(4, 9 * STEP_MS));
        assert_eq!(waiting.orphan(|_| 9 * STEP_MS, |_, _| ()), 0);
        assert_eq!((waiting.len(), waiting.queued), (1, 1));
        waiting.forget_model(4);
        assert_eq!(waiting.models(), [ANY_MODEL]);
        let limit = |model| {
            if model == ANY_MODEL {
                i64::MAX
            } else {
                i64::MIN
            }
        };
        assert_eq!(waiting.orphan(limit, |_, _| ()), 1);
    }
}
