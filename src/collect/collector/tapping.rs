//! The collector's side of a tap: it shows clients the pairs that form.

use super::Collector;
use crate::collect::event::{Disposition, Event, OutcomeRecord};
use crate::collect::join::Key;
use crate::collect::shape::project;
use crate::collect::tap::{Pair, Passed, Tap, Wanted};
use crate::stats::fixed::Scored;

impl Collector {
    /// Makes room for the `wanted` pairs until the next call, or closes the tap if none are wanted.
    /// Returns the pairs that were taken, and how many wanted pairs were not.
    pub fn tap(&mut self, wanted: Wanted) -> (Vec<Pair>, Passed) {
        let full = self.tap.take().map(|tap| *tap).unwrap_or_default();
        if !wanted.is_empty() {
            self.tap = Some(Box::new(Tap::new(wanted)));
        }
        full.into_pairs()
    }

    /// Takes the pair of a record with prediction and outcome that this stream observed.
    #[cold]
    pub(super) fn tap_event(&mut self, slot: usize, event: &Event<'_>) {
        let Some(mut tap) = self.tap.take() else {
            return;
        };
        tap.take(event.model, || {
            let (stream, outcome) = (self.streams.get(slot)?, event.outcome?);
            let shape = &self.models[stream.model];
            let mut seen = Vec::new();
            project(shape, event, &mut seen).ok()?;
            let views = shape.views.iter().copied();
            let scores = seen.iter().map(|s: &Scored| s.score().value());
            Some(Pair {
                model: stream.key.model().to_owned(),
                version: stream.key.version().to_owned(),
                segment: stream.key.segment().to_owned(),
                id: String::from_utf8_lossy(event.id).into_owned(),
                time_ms: event.time_ms,
                outcome_ms: None,
                scores: views.zip(scores).collect(),
                outcome: outcome.class(),
                how: Disposition::Observed,
            })
        });
        self.tap = Some(tap);
    }

    /// Takes the pair of a new prediction and the outcome that waited for it.
    #[cold]
    pub(super) fn tap_joined(&mut self, join: u16, partition: i32, key: Key, id: &[u8]) {
        self.tap_held(join, partition, key, id, None);
    }

    /// Takes the pairs of an outcome with the predictions, of all versions, that it met.
    #[inline]
    pub(super) fn tap_outcome(
        &mut self,
        join: u16,
        partition: i32,
        key: Key,
        record: &OutcomeRecord<'_>,
        end: Disposition,
    ) {
        if self.tap.is_some() && matches!(end, Disposition::Matched | Disposition::Revised) {
            let ours = Some((record.time_ms, record.outcome.class()));
            self.tap_held(join, partition, key, record.id, ours);
        }
    }

    /// Takes the predictions of a key that have an outcome; if `ours` is given, that outcome.
    #[cold]
    fn tap_held(
        &mut self,
        join: u16,
        partition: i32,
        key: Key,
        id: &[u8],
        ours: Option<(i64, u32)>,
    ) {
        let Some(mut tap) = self.tap.take() else {
            return;
        };
        self.joins.reload(join, partition, key);
        for held in self.joins.retained_of(join, partition, key) {
            if ours.is_some_and(|(time_ms, class)| !held.has(time_ms, class)) {
                continue;
            }
            let Some(stream) = self.streams.get(held.slot as usize) else {
                continue;
            };
            tap.take(stream.key.model(), || {
                let views = self.models[stream.model].views.iter().copied();
                // The row may store a late outcome's time clamped; `ours` has it in full.
                let (outcome_ms, outcome) = ours.or(held.outcome)?;
                Some(Pair {
                    model: stream.key.model().to_owned(),
                    version: stream.key.version().to_owned(),
                    segment: stream.key.segment().to_owned(),
                    id: String::from_utf8_lossy(id).into_owned(),
                    time_ms: held.time_ms,
                    outcome_ms: Some(outcome_ms),
                    scores: views.zip(held.scores.iter().copied()).collect(),
                    outcome,
                    how: match held.matured {
                        true => Disposition::Revised,
                        false => Disposition::Matched,
                    },
                })
            });
        }
        self.tap = Some(tap);
    }
}
