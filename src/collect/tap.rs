//! A look at pairs of prediction and outcome as they form, for people who wonder what is counted.
//!
//! Off, it is one comparison a record. On, it takes as many pairs as it was given room for, and counts those
//! that it let pass; so that a look costs what was asked for, whatever the traffic. What is taken here
//! changes nothing that is counted.

use super::collector::{Collector, project};
use super::event::{Disposition, Event, Label};
use super::join::{Key, Role};
use crate::stats::fixed::Scored;
use crate::stats::view::View;

/// A prediction with its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// Name of the model.
    pub model: String,
    /// Its version.
    pub version: String,
    /// Its segment, as the stream that counts it is called.
    pub segment: String,
    /// The prediction's id; where it is not text, its bytes that are not are replaced.
    pub id: String,
    /// Event time of the prediction; where that came apart from its outcome.
    pub time_ms: i64,
    /// Event time of the outcome, where that is one of its own.
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
    room: usize,
    pairs: Vec<Pair>,
    passed: u64,
}

impl Tap {
    fn take(&mut self, pair: impl FnOnce() -> Option<Pair>) {
        if self.pairs.len() >= self.room {
            self.passed += 1;
        } else {
            self.pairs.extend(pair());
        }
    }
}

impl Collector {
    /// Gives room for so many pairs until the next call, or closes the tap with none. Returns what was
    /// taken, and how many pairs passed without.
    pub fn tap(&mut self, room: usize) -> (Vec<Pair>, u64) {
        let full = self.tap.take().map(|tap| *tap).unwrap_or_default();
        if room > 0 {
            self.tap = Some(Box::new(Tap {
                room,
                ..Tap::default()
            }));
        }
        (full.pairs, full.passed)
    }

    /// A record that had both was observed in this subject, with these scores.
    #[cold]
    pub(super) fn tap_event(&mut self, slot: usize, event: &Event<'_>) {
        let Some(mut tap) = self.tap.take() else {
            return;
        };
        tap.take(|| {
            let (subject, outcome) = (self.subject(slot)?, event.outcome?);
            let shape = &self.models[subject.model];
            let mut seen = Vec::new();
            project(shape, event, &mut seen).ok()?;
            let views = shape.views.iter().copied();
            let scores = seen.iter().map(|s: &Scored| s.score().value());
            Some(Pair {
                model: subject.key.model().to_owned(),
                version: subject.key.version().to_owned(),
                segment: subject.key.segment().to_owned(),
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

    /// A prediction has found its outcome.
    #[cold]
    pub(super) fn tap_joined(&mut self, role: Role, partition: i32, key: Key, id: &[u8]) {
        self.tap_held(role, partition, key, id, None);
    }

    /// An outcome that came has found predictions: those of all versions that share it.
    #[inline]
    pub(super) fn tap_label(
        &mut self,
        role: Role,
        partition: i32,
        key: Key,
        label: &Label<'_>,
        end: Disposition,
    ) {
        if self.tap.is_some() && matches!(end, Disposition::Matched | Disposition::Revised) {
            let ours = Some((label.time_ms, label.class()));
            self.tap_held(role, partition, key, label.id, ours);
        }
    }

    /// Takes the predictions of a key that have an outcome; this one, where one came.
    #[cold]
    fn tap_held(
        &mut self,
        role: Role,
        partition: i32,
        key: Key,
        id: &[u8],
        ours: Option<(i64, u32)>,
    ) {
        let Some(mut tap) = self.tap.take() else {
            return;
        };
        self.joins.reload(role.join, partition, key);
        for held in self.joins.retained_of(role.join, partition, key) {
            if ours.is_some_and(|(time_ms, class)| !held.has(time_ms, class)) {
                continue;
            }
            tap.take(|| {
                let subject = self.subject(held.subject as usize)?;
                let views = self.models[subject.model].views.iter().copied();
                // One that came late is kept with less than its time.
                let (outcome_ms, outcome) = ours.or(held.outcome)?;
                Some(Pair {
                    model: subject.key.model().to_owned(),
                    version: subject.key.version().to_owned(),
                    segment: subject.key.segment().to_owned(),
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
