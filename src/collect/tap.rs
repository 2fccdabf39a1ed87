//! Shows pairs of prediction and outcome as they form, for people who want to see what is counted.
//!
//! When off, a tap costs one comparison a record. When on, it takes as many pairs as it has room
//! for, and counts those that it let pass. So its cost does not depend on the traffic. Pairs of a
//! model take room only if pairs of this model, or of any, are wanted. A tap does not change what
//! is counted.

use super::event::Disposition;
use crate::stats::view::View;
use std::collections::BTreeMap;

/// A prediction with its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// Name of the model.
    pub model: String,
    /// Its version.
    pub version: String,
    /// Its segment, as the stream that counts it is called.
    pub segment: String,
    /// The prediction's id; bytes that are not text are replaced.
    pub id: String,
    /// Event time of the prediction.
    pub time_ms: i64,
    /// Event time of the outcome, if it came in a record of its own.
    pub outcome_ms: Option<i64>,
    /// For each view of the model the score.
    pub scores: Vec<(View, f64)>,
    /// The class that happened; of a binary outcome, 0 or 1.
    pub outcome: u32,
    /// How it ended: `observed`, `matched` or `revised`.
    pub how: Disposition,
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Tap {
    /// Room that is left.
    room: Wanted,
    /// Whether pairs of any model are wanted.
    any: bool,
    pairs: Vec<Pair>,
    passed: Passed,
}

/// How many pairs are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Pairs of any model.
    pub any: usize,
    /// Pairs of these models.
    pub models: Vec<(String, usize)>,
}

/// How many wanted pairs passed without being taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Passed {
    /// Pairs of all models.
    pub all: u64,
    /// Pairs of each model that was wanted by name.
    pub models: BTreeMap<String, u64>,
}

impl From<usize> for Wanted {
    fn from(any: usize) -> Wanted {
        let models = Vec::new();
        Wanted { any, models }
    }
}

impl Wanted {
    /// Whether no pair is wanted.
    pub fn is_empty(&self) -> bool {
        self.any == 0 && self.models.iter().all(|(_, room)| *room == 0)
    }

    /// The share of one of `n` taps.
    pub fn share(&self, n: usize) -> Wanted {
        let of = |room: usize| room.div_ceil(n.max(1));
        let models = self.models.iter();
        Wanted {
            any: of(self.any),
            models: models.map(|(m, room)| (m.clone(), of(*room))).collect(),
        }
    }
}

impl Passed {
    /// Adds the counts of another tap.
    pub fn add(&mut self, other: Passed) {
        self.all += other.all;
        for (model, n) in other.models {
            *self.models.entry(model).or_default() += n;
        }
    }
}

impl Tap {
    /// A tap with room for the `wanted` pairs.
    pub fn new(wanted: Wanted) -> Tap {
        Tap {
            any: wanted.any > 0,
            room: wanted,
            ..Tap::default()
        }
    }

    /// The pairs that were taken, and how many wanted pairs were not.
    pub fn into_pairs(self) -> (Vec<Pair>, Passed) {
        (self.pairs, self.passed)
    }

    /// Takes a pair of this model, if it is wanted and there is room.
    pub fn take(&mut self, model: &str, pair: impl FnOnce() -> Option<Pair>) {
        let named = self.room.models.iter_mut().find(|(m, _)| m == model);
        if named.is_none() && !self.any {
            return;
        }
        let by_name = named.is_some();
        // A pair that is taken is shown to all who want it.
        let mut has_room = self.room.any > 0;
        self.room.any = self.room.any.saturating_sub(1);
        if let Some((_, room)) = named {
            has_room |= *room > 0;
            *room = room.saturating_sub(1);
        }
        if has_room {
            self.pairs.extend(pair());
            return;
        }
        self.passed.all += 1;
        if by_name {
            *self.passed.models.entry(model.to_owned()).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(model: &str) -> Pair {
        Pair {
            model: model.to_owned(),
            version: String::new(),
            segment: String::new(),
            id: String::new(),
            time_ms: 0,
            outcome_ms: None,
            scores: Vec::new(),
            outcome: 1,
            how: Disposition::Observed,
        }
    }

    #[test]
    fn a_busy_model_takes_no_room_of_one_that_is_wanted_and_is_not_counted_as_missed() {
        let wanted = Wanted {
            any: 0,
            models: vec![("rare".to_owned(), 2)],
        };
        let mut tap = Tap::new(wanted.share(2));
        for model in ["busy", "busy", "rare", "busy", "rare"] {
            tap.take(model, || Some(pair(model)));
        }
        let (pairs, mut passed) = tap.into_pairs();
        assert_eq!(pairs, [pair("rare")]);
        passed.add(passed.clone());
        assert_eq!((passed.all, passed.models["rare"]), (2, 2));
    }

    #[test]
    fn room_for_any_model_is_there_for_a_named_one_too() {
        let wanted = Wanted {
            any: 1,
            models: vec![("a".to_owned(), 1)],
        };
        let mut tap = Tap::new(wanted);
        for model in ["b", "a", "b", "a"] {
            tap.take(model, || Some(pair(model)));
        }
        let (pairs, passed) = tap.into_pairs();
        assert_eq!(pairs, [pair("b"), pair("a")]);
        assert_eq!((passed.all, passed.models["a"]), (2, 1));
    }
}
